"""All that a report shows, computed once: rows, verdicts, curves, tails, shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.progress import track
from ..comparison import Comparison
from ..exceptions import InvalidInputError
from ..judging.confidence_curves import ConfidenceCurve, confidence_curve
from ..judging.reliability import (
    CalibrationCurve,
    PITHistogram,
    ReliabilityDiagram,
    calibration_curve,
    pit_histogram,
    reliability_diagram,
)
from ..judging.tails import TailStatistics, tails
from ..judging.validation import Validation
from ..judging.verdicts import validate
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
    reliability : ReliabilityDiagram or None
        RMSE against uncertainty; None of errors that are all 0.
    coverage, pit : CalibrationCurve, PITHistogram
        Coverage at every level, and where truths lie in their distributions.
    z : ZScores
        The shape of their z-scores.
    tails : TailStatistics or None
        Their tails; None of fewer than 20 rows, or of errors that are all 0.
    """

    name: str
    rows: Predictions
    validation: Validation
    curve: ConfidenceCurve
    reliability: ReliabilityDiagram | None
    coverage: CalibrationCurve
    pit: PITHistogram
    z: ZScores
    tails: TailStatistics | None

    @classmethod
    def of(cls, name: str, validation: Validation, rng: Seed) -> Stage:
        """Return what is known of rows that were judged."""
        rows, found, diagram = _rows(validation), None, None
        alike = rows.changed(weights=None)  # curves and tails take all rows alike
        if rows.errors.any():
            diagram = reliability_diagram(rows, rng=rng)
            if rows.n_rows >= TAIL_ROWS:
                found = tails(alike, confidence=validation.confidence, rng=rng)
        return cls(
            name=name,
            rows=rows,
            validation=validation,
            curve=confidence_curve(alike, rng=rng),
            reliability=diagram,
            coverage=calibration_curve(rows),
            pit=pit_histogram(rows),
            z=z_scores(rows.errors, rows.uncertainty),
            tails=found,
        )


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

    @classmethod
    def of(
        cls, learned_from: Predictions, columns: tuple[str, ...], judged: Predictions
    ) -> Calibration:
        """Compare both sets; `columns` are the names of those learned from."""
        shared = [name for name in columns[1:] if name in judged.names[1:]]
        pairs = [("u", 0, 0)]
        pairs += [(x, columns.index(x), judged.names.index(x)) for x in shared]
        shifts = [
            compare_distributions(x, _values(learned_from, old), _values(judged, new))
            for x, old, new in pairs
        ]
        n_shared = count_shared_rows(learned_from, judged)
        return cls(learned_from.n_rows, n_shared, tuple(shifts))


def _values(rows: Predictions, position: int) -> Any:
    if rows.is_labelled(position):
        return rows.labels(position)
    return rows.columns[position]


@dataclass(frozen=True)
class Results:
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
    def final(self) -> Stage:
        """The uncertainties that the report is about."""
        return self.stages[-1]

    @property
    def rows(self) -> Predictions:
        """The judged rows, with these uncertainties."""
        return self.final.rows

    @property
    def recalibrated(self) -> bool:
        """Whether there is a before and an after."""
        return len(self.stages) == 2

    @property
    def n_groups(self) -> int | None:
        """Groups of rows that belong together, if they were given."""
        groups = self.rows.groups
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
        return getattr(self.scaler, "_chosen", self.scaler)

    @property
    def scaling(self) -> Any:
        """What learned the scale."""
        return getattr(self.scaler, "scaling_", self.scaler)

    @property
    def selection(self) -> dict[str, list[Any]] | None:
        """The candidates that a selection chose from, as a table."""
        results = getattr(self.scaling, "cv_results_", {})
        # other searches have results of the same name, but of another form
        return results if "candidate" in results else None

    @property
    def n_learned_from(self) -> int | None:
        """Rows that the recalibrator was fitted on, if they are known."""
        if self.calibration is not None:
            return self.calibration.n_rows
        return getattr(self.scaler, "n_samples_fit_", None)

    @property
    def unexamined(self) -> tuple[str, ...]:
        """Columns that the recalibrator knows, but that were not judged."""
        return tuple(x for x in self.columns[1:] if x not in self.rows.names[1:])


def gather(
    validation: Any,
    *,
    recalibrated: Any = None,
    scaler: Any = None,
    calibration: Any = None,
    comparison: Any = None,
    time: Any = None,
    rng: Seed = 0,
) -> Results:
    """Check that verdicts belong together, and return them with all other results."""
    judged = {"as they are": _judged(validation, "validation")}
    before = _rows(judged["as they are"])
    if recalibrated is not None:
        after = _judged(recalibrated, "recalibrated", before)
        _check_same_rows(before, _rows(after))
        judged = {"before": judged["as they are"], "after": after}
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
    stages = [
        Stage.of(name, each, rng)
        for name, each in track(judged.items(), "pruning", len(judged))
    ]
    final = stages[-1]
    when = before.time if time is None else time
    return Results(
        stages=tuple(stages),
        scaler=scaler,
        columns=columns,
        calibration=None
        if learned_from is None
        else Calibration.of(learned_from, columns, before),
        comparison=comparison,
        repeats="" if before.groups is not None else repeats_found(before),
        over_time=None
        if when is None
        else over_time(final.rows, when, confidence=final.validation.confidence),
    )


def _judged(given: Any, name: str, before: Predictions | None = None) -> Validation:
    """Return verdicts as they were given, or those on predictions."""
    if isinstance(given, Predictions):
        return validate(given, ties=None if before is None else before.uncertainty)
    if not isinstance(given, Validation):
        msg = (
            f"`{name}` must be Predictions, or what `validate` returns; found "
            f"{type(given).__name__}. Call ss.validate(error, uncertainty, features) "
            "first, and pass its result."
        )
        raise InvalidInputError(msg)
    if given.rows is None:
        msg = (
            f"`{name}` must have its rows in memory, to be drawn; found verdicts on a "
            "lazy frame. Collect some of its rows and call ss.validate(error, "
            "uncertainty, features) on them."
        )
        raise InvalidInputError(msg)
    return given


def _rows(validation: Validation) -> Predictions:
    assert validation.rows is not None
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
