"""All results that a report shows, computed once and gathered in one place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Labels, as_labels, check_features, check_pair
from .._support.progress import track
from .._support.tables import default_names
from ..comparison import CheckedSet, Comparison
from ..exceptions import FewerBinsWarning, InvalidInputError, ZeroErrorBinWarning
from ..judging.confidence_curves import ConfidenceCurve, confidence_curve
from ..judging.diagnostics import (
    Shift,
    ZScores,
    compare_distributions,
    count_shared_rows,
    z_scores,
)
from ..judging.verdicts import Validation, validate
from ..scaling import SelectedScaling, VarianceScaler

N_RESAMPLES = 1500
Seed = int | np.random.Generator | None


@dataclass(frozen=True)
class Stage:
    """The judged rows with one set of uncertainties, and what is known of them."""

    name: str
    uncertainty: Floats
    validation: Validation
    curve: ConfidenceCurve
    z: ZScores


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
    error, features : array, and dict of str to array
        The judged rows.
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
    notes : tuple of str
        What the library warned about.
    seed : int, Generator or None
        Seed of bootstrap and simulations.
    """

    error: Floats
    features: dict[str, Labels]
    stages: tuple[Stage, ...]
    scaler: Any
    columns: tuple[str, ...]
    calibration: Calibration | None
    comparison: Comparison | None
    notes: tuple[str, ...]
    seed: Seed

    @property
    def fitted(self) -> Any:
        """The recalibrator that made the new uncertainties."""
        chosen = isinstance(self.scaler, SelectedScaling)
        return self.scaler.scaler_ if chosen else self.scaler

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
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    recalibrated: Any = None,
    scaler: Any = None,
    calibration: Any = None,
    comparison: Any = None,
    n_bins: int | None = None,
    rng: Seed = 0,
) -> Evidence:
    """Check the input, judge the rows before and after, and return all results."""
    e, u = check_pair(error, uncertainty)
    judged = check_features(features, e)
    _check_scaler(scaler, recalibrated)
    if comparison is not None and not isinstance(comparison, Comparison):
        found = type(comparison).__name__
        msg = f"`comparison` must be what `compare` returns; found {found}."
        raise InvalidInputError(msg)
    stages = {"as they are": u}
    if recalibrated is not None:
        stages = {
            "before": u,
            "after": check_pair(e, recalibrated, "recalibrated")[1],
        }
    learned_from = None
    columns: tuple[str, ...] = ()
    if calibration is not None:
        learned_from = CheckedSet.read(calibration, "calibration")
        columns = _renamed(learned_from.table.names, judged)
    elif scaler is not None:
        columns = _renamed(_columns_of(scaler), judged)
    with _noted() as notes:
        results = [
            Stage(
                name,
                each,
                # bins of the features are the same before and after
                validate(
                    e,
                    each,
                    judged,
                    n_bins=n_bins,
                    ties=u,
                    n_resamples=N_RESAMPLES,
                    rng=rng,
                ),
                confidence_curve(e, each, rng=rng),
                z_scores(e, each),
            )
            for name, each in track(stages.items(), "judging", len(stages))
        ]
    return Evidence(
        error=e,
        features=judged,
        stages=tuple(results),
        scaler=scaler,
        columns=columns,
        calibration=None
        if learned_from is None
        else _compare_sets(learned_from, columns, e, u, judged),
        comparison=comparison,
        notes=tuple(dict.fromkeys(notes)),
        seed=rng,
    )


def _check_scaler(scaler: Any, recalibrated: Any) -> None:
    if scaler is None:
        return
    if recalibrated is None:
        msg = (
            "`recalibrated` must be given with `scaler`: the uncertainties that it "
            "predicts for the judged rows."
        )
        raise InvalidInputError(msg)
    fitted = not isinstance(scaler, VarianceScaler) or hasattr(
        scaler, "min_uncertainty_"
    )
    if not hasattr(scaler, "predict") or not fitted:
        msg = f"`scaler` must be a fitted recalibrator; found {scaler!r}."
        raise InvalidInputError(msg)


def _columns_of(scaler: Any) -> tuple[str, ...]:
    """Return the names of the columns that a recalibrator was fitted on."""
    names = getattr(scaler, "feature_names_in_", None)
    if names is not None:
        return tuple(str(name) for name in names)
    return default_names(getattr(scaler, "n_features_in_", 1))


def _renamed(columns: tuple[str, ...], judged: dict[str, Labels]) -> tuple[str, ...]:
    """Give the columns of an array, which have only numbers, the features' names."""
    numbered = columns[1:] == default_names(len(columns))[1:]
    if numbered and len(judged) == len(columns) - 1:
        return (columns[0], *judged)
    return columns


def _compare_sets(
    learned_from: CheckedSet,
    columns: tuple[str, ...],
    error: Floats,
    uncertainty: Floats,
    judged: dict[str, Labels],
) -> Calibration:
    shifts = [compare_distributions("u", learned_from.uncertainty, uncertainty)]
    for name, column in zip(columns[1:], learned_from.table.columns[1:], strict=True):
        if name in judged:
            shifts.append(compare_distributions(name, as_labels(column), judged[name]))
    old = (learned_from.error, learned_from.uncertainty)
    return Calibration(
        n_rows=learned_from.table.n_rows,
        n_shared=count_shared_rows(old, (error, uncertainty)),
        shifts=tuple(shifts),
    )


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Turn what the library warns about bins into notes: the report will say it."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    for each in caught:
        if issubclass(each.category, (FewerBinsWarning, ZeroErrorBinWarning)):
            notes.append(str(each.message))
        else:
            warnings.warn_explicit(
                each.message, each.category, each.filename, each.lineno
            )
