"""All results that a report shows, computed once and gathered in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Labels
from .._support.labels import label_array, label_text
from .._support.progress import track
from ..comparison import Comparison
from ..exceptions import InvalidInputError
from ..judging.confidence_curves import ConfidenceCurve, confidence_curve
from ..judging.tails import TailStatistics, tails
from ..judging.validation import Validation
from ..monitoring.over_time import OverTime, over_time
from ..oddities import (
    Shift,
    ZScores,
    compare_distributions,
    count_shared_rows,
    repeats_found,
    z_scores,
)
from ..predictions import Predictions, default_names, fitted_names, read_pair

Seed = int | np.random.Generator | None
TAIL_ROWS = 20  # below, a set has no tails to speak of


@dataclass(frozen=True)
class Stage:
    """The judged rows with one set of uncertainties, and what is known of them.

    Attributes
    ----------
    name : str
        "as they are", "before" or "after".
    rows : Predictions
        The rows, with these uncertainties.
    validation : Validation
        The verdicts on them.
    curve : ConfidenceCurve
        Their confidence curve.
    z : ZScores
        The shape of their z-scores.
    tails : TailStatistics or None
        Their tails; None of fewer than 20 rows, or of errors that are all 0.
    """

    name: str
    rows: Predictions
    validation: Validation
    curve: ConfidenceCurve
    z: ZScores
    tails: TailStatistics | None

    @property
    def uncertainty(self) -> Floats:
        """The uncertainties of this stage."""
        return self.rows.uncertainty


@dataclass(frozen=True)
class Calibration:
    """The set that the recalibrator learned from, beside the judged one.

    Attributes
    ----------
    n_rows, n_shared : int
        Its rows, and how many of the judged rows are among them.
    shifts : tuple of Shift
        From it to the judged set, for u and every feature that both sets have.
    """

    n_rows: int
    n_shared: int
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class Evidence:
    """All results of a report.

    Attributes
    ----------
    stages : tuple of Stage
        "as they are", or "before" and "after".
    scaler : recalibrator or None
        As it was given; `fitted` is what a selection has chosen.
    columns : tuple of str
        Names of the columns that the recalibrator was fitted on, the uncertainty first.
    calibration : Calibration or None
        What is known of the set it was fitted on.
    comparison : Comparison or None
        As it was given.
    repeats : str
        What looks like repeats of a sample, if no groups were given; or nothing.
    over_time : OverTime or None
        How calibration runs over time, if times were given.
    """

    stages: tuple[Stage, ...]
    scaler: Any
    columns: tuple[str, ...]
    calibration: Calibration | None
    comparison: Comparison | None
    repeats: str
    over_time: OverTime | None = None

    @property
    def error(self) -> Floats:
        """The errors of the judged rows."""
        return self.final.rows.errors

    @property
    def features(self) -> dict[str, Labels]:
        """The features of the judged rows, by name."""
        rows = self.final.rows
        return {
            name: label_array(map(label_text, rows.labels(name).values()))
            if rows.is_labelled(name)
            else column
            for name, column in rows.features.items()
        }

    @property
    def n_groups(self) -> int | None:
        """Groups of rows that belong together, if they were given."""
        groups = self.final.rows.groups
        return None if groups is None else int(np.unique(groups).size)

    @property
    def n_effective(self) -> float | None:
        """How many rows of equal weight would tell as much, if rows were weighted."""
        return self.final.validation.n_effective

    @property
    def notes(self) -> tuple[str, ...]:
        """What the library warned about as the rows were judged."""
        every = [note for stage in self.stages for note in stage.validation.notes]
        return tuple(dict.fromkeys(every))

    @property
    def fitted(self) -> Any:
        """The recalibrator that made the new uncertainties."""
        return getattr(self.scaler, "chosen", self.scaler)

    @property
    def selection(self) -> dict[str, list[Any]] | None:
        """The candidates that a selection chose from, as a table."""
        results = getattr(self.scaler, "cv_results_", {})
        # other searches have results of the same name, but of another form
        return results if "candidate" in results else None

    @property
    def n_learned_from(self) -> int | None:
        """Rows that the recalibrator was fitted on, if they are known."""
        if self.calibration is not None:
            return self.calibration.n_rows
        return getattr(self.scaler, "n_samples_fit_", None)

    @property
    def recalibrated(self) -> bool:
        """Whether there is a before and an after."""
        return len(self.stages) == 2

    @property
    def final(self) -> Stage:
        """The uncertainties that the report is about."""
        return self.stages[-1]

    @property
    def unexamined(self) -> tuple[str, ...]:
        """Columns that the recalibrator knows, but that were not judged."""
        return tuple(name for name in self.columns[1:] if name not in self.features)


def gather(
    validation: Any,
    *,
    recalibrated: Any = None,
    scaler: Any = None,
    calibration: Any = None,
    comparison: Any = None,
    time: Any = None,
    rng: Seed = 0,
) -> Evidence:
    """Check that verdicts belong together, and return them with all other results."""
    before = _judged(validation, "validation")
    stages = {"as they are": (validation, before)}
    if recalibrated is not None:
        after = _judged(recalibrated, "recalibrated")
        _check_same_rows(before, after)
        stages = {"before": (validation, before), "after": (recalibrated, after)}
    _check_scaler(scaler, recalibrated)
    if comparison is not None and not isinstance(comparison, Comparison):
        found = type(comparison).__name__
        msg = f"`comparison` must be what `compare` returns; found {found}."
        raise InvalidInputError(msg)
    learned_from = None
    columns: tuple[str, ...] = ()
    if calibration is not None:
        learned_from = read_pair(calibration, "calibration")
        columns = _renamed(learned_from.names, before)
    elif scaler is not None:
        columns = _renamed(fitted_names(scaler), before)
    results = [
        Stage(
            name,
            rows,
            judged,
            confidence_curve(rows.errors, rows.uncertainty, rng=rng),
            z_scores(rows.errors, rows.uncertainty),
            _tails_of(rows, judged.confidence, rng),
        )
        for name, (judged, rows) in track(stages.items(), "pruning", len(stages))
    ]
    return Evidence(
        stages=tuple(results),
        scaler=scaler,
        columns=columns,
        calibration=None
        if learned_from is None
        else _compare_sets(learned_from, columns, before),
        comparison=comparison,
        repeats="" if before.groups is not None else repeats_found(before),
        over_time=None if time is None else _over_time(results[-1], time),
    )


def _over_time(stage: Stage, time: Any) -> OverTime:
    return over_time(stage.rows, time, confidence=stage.validation.confidence)


def _tails_of(rows: Predictions, confidence: float, rng: Seed) -> TailStatistics | None:
    if rows.n_rows < TAIL_ROWS or not rows.errors.any():
        return None
    return tails(rows.errors, rows.uncertainty, confidence=confidence, rng=rng)


def _judged(validation: Any, name: str) -> Predictions:
    """Return the rows that were judged."""
    if not isinstance(validation, Validation):
        msg = (
            f"`{name}` must be what `validate` returns; found "
            f"{type(validation).__name__}. Call ss.validate(error, uncertainty, "
            "features) first, and pass its result."
        )
        raise InvalidInputError(msg)
    if validation.rows is None:
        msg = (
            f"`{name}` must have its rows in memory, to be drawn; found verdicts on a "
            "lazy frame. Collect some of its rows and call ss.validate(error, "
            "uncertainty, features) on them."
        )
        raise InvalidInputError(msg)
    return validation.rows


def _check_same_rows(before: Predictions, after: Predictions) -> None:
    """Refuse verdicts on other rows: nothing could be concluded from both."""
    if before.names != after.names:
        found = [", ".join(rows.names[1:]) or "none" for rows in (before, after)]
        msg = (
            "`recalibrated` must be judged by the same features as `validation`; "
            f"found {found[1]} and {found[0]}. Call ss.validate with the same features."
        )
        raise InvalidInputError(msg)
    pairs: list[tuple[Any, Any]] = [
        (before.errors, after.errors),
        (before.weights, after.weights),
    ]
    pairs += zip(before.columns[1:], after.columns[1:], strict=True)
    if not all(np.array_equal(old, new) for old, new in pairs):
        msg = (
            "`recalibrated` must be the verdicts on the rows of `validation` with new "
            "uncertainties; found other errors, features or weights. Call "
            "ss.validate(error, uncertainty, features) with the same error, features "
            "and sample_weight for both."
        )
        raise InvalidInputError(msg)


def _check_scaler(scaler: Any, recalibrated: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if scaler is None:
        return
    if recalibrated is None:
        msg = (
            "`recalibrated` must be given with `scaler`: the verdicts on the "
            "uncertainties that it predicts for the judged rows."
        )
        raise InvalidInputError(msg)
    fitted = hasattr(scaler, "predict")
    try:
        check_is_fitted(scaler)
    except NotFittedError:
        fitted = False
    except TypeError:  # it need not be an estimator, if it can predict
        pass
    if not fitted:
        msg = f"`scaler` must be a fitted recalibrator; found {scaler!r}."
        raise InvalidInputError(msg)


def _renamed(columns: tuple[str, ...], judged: Predictions) -> tuple[str, ...]:
    """Give the columns of an array, which have only numbers, the features' names."""
    numbered = columns[1:] == default_names(len(columns))[1:]
    if numbered and len(judged.names) == len(columns):
        return (columns[0], *judged.names[1:])
    return columns


def _compare_sets(
    learned_from: Predictions, columns: tuple[str, ...], judged: Predictions
) -> Calibration:
    old, new = learned_from.uncertainty, judged.uncertainty
    shifts = [compare_distributions("u", old, new)]
    for position, name in enumerate(columns[1:], start=1):
        if name in judged.names[1:]:
            both = [
                rows.labels(key) if rows.is_labelled(key) else rows.columns[key]
                for rows, key in (
                    (learned_from, position),
                    (judged, judged.names.index(name)),
                )
            ]
            shifts.append(compare_distributions(name, *both))
    return Calibration(
        n_rows=learned_from.n_rows,
        n_shared=count_shared_rows(learned_from, judged),
        shifts=tuple(shifts),
    )
