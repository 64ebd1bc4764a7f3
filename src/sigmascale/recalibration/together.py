"""Several targets of a row at once: boxes that contain all of their true values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._support import numerals
from .._support.checks import Floats, check_fraction
from .._support.render import Cells, Result
from .._support.text import listed
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from .recalibrator import Recalibrator


@dataclass(frozen=True, repr=False)
class Together(Result):
    """Intervals of several targets, stretched until boxes have one coverage.

    Attributes
    ----------
    recalibrators : dict of str to Recalibrator
        One a target.
    coverage : float
        The share of rows in which all true values lie inside.
    stretch : float
        What intervals of this coverage are multiplied by; infinite where rows are few.
    n_rows : int
        The rows it was found from, whose true values are known of all targets.
    """

    recalibrators: Mapping[str, Recalibrator]
    coverage: float
    stretch: float
    n_rows: int

    def boxes(self, new: Mapping[str, Predictions]) -> dict[str, Floats]:
        """Return lower and upper limits of each target, of shape (n, 2) each.

        Parameters
        ----------
        new : dict of str to Predictions
            The same rows in each, in the same order.
        """
        _check_names(self.recalibrators, new, "new")
        boxes = {}
        for name, recalibrator in self.recalibrators.items():
            q = recalibrator.apply(new[name])
            middle, half = _middle_and_half(q, self.coverage)
            boxes[name] = np.stack(
                [middle - self.stretch * half, middle + self.stretch * half], axis=1
            )
        return boxes

    def _cells(self) -> Cells:
        coverage = numerals.level(self.coverage)
        rows = [
            ("targets", listed(self.recalibrators)),
            (f"{coverage} intervals are stretched by", numerals.factor(self.stretch)),
            ("rows", f"{self.n_rows:,}"),
        ]
        return ("all true values inside", coverage), rows


def together(
    recalibrators: Mapping[str, Recalibrator],
    *,
    coverage: float = 0.9,
    calibration: Mapping[str, Predictions] | None = None,
) -> Together:
    """Return intervals of several targets with a joint coverage.

    Intervals of each target at the coverage are stretched by one number: the conformal
    quantile, over rows that no fit has seen, of how far the worst target of a row must
    be stretched. Boxes are narrower than those of Bonferroni's correction, the more so
    the more the targets' errors are correlated.

    Parameters
    ----------
    recalibrators : dict of str to Recalibrator
        One for each target, fitted to the same rows in the same order.
    coverage : float, default 0.9
        Of all targets of a row together.
    calibration : dict of str to Predictions, optional
        Rows with known true values that neither models nor recalibrators have seen;
        by default the cross-validated rows of the fits.

    Returns
    -------
    Together

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=500)
    >>> def target(seed):
    ...     own = np.random.default_rng(seed).normal(size=500)
    ...     return ss.Predictions(np.zeros(500), np.ones(500), y_true=common + own)
    >>> logp = ss.Recalibrator(ss.TemperatureScaling()).fit(target(1))
    >>> pka = ss.Recalibrator(ss.TemperatureScaling()).fit(target(2))
    >>> both = ss.together({"logP": logp, "pKa": pka})
    >>> 1.0 < both.stretch < 1.3
    True
    """
    coverage = check_fraction(coverage, "coverage")
    if len({id(recalibrator) for recalibrator in recalibrators.values()}) < 2:
        msg = (
            "`recalibrators` must have one of its own for each of two targets or more; "
            "a single target has its intervals."
        )
        raise InvalidInputError(msg)

    # rows that no fit has seen, by their places in the table
    unseen = {}
    for name, recalibrator in recalibrators.items():
        if calibration is None:
            unseen[name] = recalibrator.out_of_fold_
        else:
            _check_names(recalibrators, calibration, "calibration")
            unseen[name] = recalibrator.apply(check_predictions(calibration[name]))
    places = [_places(q) for q in unseen.values()]
    shared = places[0]
    for other in places[1:]:
        shared = np.intersect1d(shared, other)  # whole numbers
    if not shared.size:
        msg = (
            "`recalibrators` must be fitted to the same rows: with `hold_out`, other "
            "rows are held out for each target. Pass `calibration`."
        )
        raise InvalidInputError(msg)

    # how far the worst target of each row must be stretched
    worst = np.zeros(shared.size)
    for q, place in zip(unseen.values(), places, strict=True):
        middle, half = _middle_and_half(q, coverage)
        stretch = np.abs(q.target - middle) / half
        order = np.argsort(place)  # whole numbers
        of_shared = order[np.searchsorted(place, shared, sorter=order)]  # whole numbers
        worst = np.maximum(worst, stretch[of_shared])
    rank = int(np.ceil((worst.size + 1) * coverage))
    stretch_of_all = float(np.sort(worst)[rank - 1]) if rank <= worst.size else np.inf
    return Together(dict(recalibrators), coverage, stretch_of_all, worst.size)


def _check_names(
    recalibrators: Mapping[str, Recalibrator], rows: Mapping[str, object], name: str
) -> None:
    """Refuse targets that are not those of the recalibrators."""
    if set(rows) != set(recalibrators):
        msg = (
            f"`{name}` must have Predictions for each of {listed(recalibrators)}; "
            f"found {listed(rows)}."
        )
        raise InvalidInputError(msg)


def _places(q: Predictions) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return which rows of the table these are."""
    return np.arange(q.n_rows) if q.places is None else np.asarray(q.places)


def _middle_and_half(q: Predictions, coverage: float) -> tuple[Floats, Floats]:
    """Return the middle and half the width of intervals."""
    low, high = q.distributions.interval(coverage).T
    return (low + high) / 2, np.maximum((high - low) / 2, 1e-300)
