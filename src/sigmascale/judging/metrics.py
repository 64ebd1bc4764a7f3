"""Metrics that users of other libraries look for, under the names they know.

They judge uncertainties as those of normal errors. Most compare, at many levels p, the
fraction of errors within ± u Φ⁻¹((1 + p) / 2) with p: the *calibration curve*. That is
an average over all rows; :func:`local_coverage` and :func:`local_zms` look closer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_uncertainty,
    rng_from,
)
from .._support.render import Cells, Result
from ..exceptions import InvalidInputError
from ..maps.distributions import distributions_of
from ..predictions import Predictions, as_predictions
from .binning import unweighted
from .reliability import Curve, area_between, depths_of, fractions_within


def crps(
    error: Any,
    uncertainty: Any = None,
    *,
    sample_weight: Any = None,
) -> float:
    """Return the mean continuous ranked probability score; lower is better.

    Predictions that carry a law (:meth:`sigmascale.Recalibrator.apply`) are judged by
    it. For normal errors it is u [z (2 Φ(z) − 1) + 2 φ(z) − 1 / √π], with z = error /
    u, in the unit of the error. It rewards what NLL does, and forgives large errors
    more.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102, 359 (2007),
    doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(crps([0.0, 2.0], [1.0, 1.0]), 4)
    0.8432
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    return rows.mean(distributions_of(rows).crps(rows.truth))


def sharpness(uncertainty: Any, *, sample_weight: Any = None) -> float:
    """Return the root mean squared uncertainty; of two calibrated ones, less is better.

    Parameters
    ----------
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon, ICML (2018), arXiv:1807.00263

    Examples
    --------
    >>> sharpness([1.0, 7.0])
    5.0
    """
    rows = Predictions.of((check_uncertainty(uncertainty),), ("u",))
    rows = rows.weighted(sample_weight, "uncertainty")
    return float(np.sqrt(rows.mean(rows.uncertainty**2)))


def mean_absolute_calibration_error(
    error: Any,
    uncertainty: Any = None,
    *,
    n_levels: int = 100,
    kind: Curve = "interval",
    sample_weight: Any = None,
) -> float:
    """Return the mean distance of the calibration curve from p; best is small.

    MACE is the mean of abs(observed fraction − p) over `n_levels` levels p from 0 to 1.
    Also known as the expected calibration error of a regression.
    By default fractions are two-sided. K. Tran et al. count one-sided ones: that is
    ``kind="quantile"``, which sees a bias, too.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    n_levels : int, default 100
        Number of levels.
    kind : {"interval", "quantile"}, default "interval"
        What the fractions count: the errors within ± u Φ⁻¹((1 + p) / 2), or those
        below u Φ⁻¹(p).
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon, ICML (2018), arXiv:1807.00263; K. Tran et al.,
    Mach. Learn.: Sci. Technol. 1, 025006 (2020), doi:10.1088/2632-2153/ab7e1a

    Examples
    --------
    >>> import numpy as np
    >>> error = np.random.default_rng(0).normal(size=10_000)
    >>> round(mean_absolute_calibration_error(error, np.ones(10_000)), 3)
    0.003
    >>> round(mean_absolute_calibration_error(error, np.full(10_000, 2.0)), 3)
    0.202
    """
    deviation = _deviation(error, uncertainty, n_levels, kind, sample_weight)
    return float(np.mean(np.abs(deviation)))


def root_mean_squared_calibration_error(
    error: Any,
    uncertainty: Any = None,
    *,
    n_levels: int = 100,
    kind: Curve = "interval",
    sample_weight: Any = None,
) -> float:
    """Return the rms distance of the calibration curve from p; best is small.

    RMSCE² is the mean of (observed fraction − p)² over `n_levels` levels p from 0 to 1.
    By default fractions are two-sided. K. Tran et al. count one-sided ones: that is
    ``kind="quantile"``, which sees a bias, too.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    n_levels : int, default 100
        Number of levels.
    kind : {"interval", "quantile"}, default "interval"
        What the fractions count: the errors within ± u Φ⁻¹((1 + p) / 2), or those
        below u Φ⁻¹(p).
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon, ICML (2018), arXiv:1807.00263; K. Tran et al.,
    Mach. Learn.: Sci. Technol. 1, 025006 (2020), doi:10.1088/2632-2153/ab7e1a

    Examples
    --------
    >>> import numpy as np
    >>> error = np.random.default_rng(0).normal(size=10_000)
    >>> round(root_mean_squared_calibration_error(error, np.full(10_000, 2.0)), 3)
    0.227
    """
    deviation = _deviation(error, uncertainty, n_levels, kind, sample_weight)
    return float(np.sqrt(np.mean(deviation**2)))


def miscalibration_area(
    error: Any,
    uncertainty: Any = None,
    *,
    n_levels: int = 100,
    kind: Curve = "interval",
    sample_weight: Any = None,
) -> float:
    """Return the area between the calibration curve and the diagonal; best is small.

    The curve joins `n_levels` points (p, observed fraction) by straight lines; pieces
    that cross the diagonal count with both their triangles.
    By default fractions are two-sided. K. Tran et al. count one-sided ones: that is
    ``kind="quantile"``, which sees a bias, too.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    n_levels : int, default 100
        Number of levels, from 0 to 1.
    kind : {"interval", "quantile"}, default "interval"
        What the fractions count: the errors within ± u Φ⁻¹((1 + p) / 2), or those
        below u Φ⁻¹(p).
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    K. Tran et al., Mach. Learn.: Sci. Technol. 1, 025006 (2020),
    doi:10.1088/2632-2153/ab7e1a

    Examples
    --------
    >>> import numpy as np
    >>> error = np.random.default_rng(0).normal(size=10_000)
    >>> round(miscalibration_area(error, np.full(10_000, 2.0)), 3)
    0.204
    >>> round(miscalibration_area(error, np.full(10_000, 2.0), kind="quantile"), 3)
    0.102
    """
    deviation = _deviation(error, uncertainty, n_levels, kind, sample_weight)
    return area_between(deviation)


@dataclass(frozen=True)
class AdversarialGroupCalibration(Result):
    """The worst calibration error among random groups of rows, by their size.

    Attributes
    ----------
    fraction : array of shape (n_sizes,)
        Size of the groups as a fraction of all rows, from 0 to 1.
    size : array of int, shape (n_sizes,)
        Their number of rows, at least 2.
    worst : array of shape (n_sizes,)
        The worst calibration error of the groups of a trial, averaged over trials.
    spread : array of shape (n_sizes,)
        Its standard deviation over trials.
    """

    fraction: Floats
    size: Ints
    worst: Floats
    spread: Floats = field(repr=False)

    def _cells(self) -> Cells:
        rows = [
            (f"{size}", f"{fraction:.2f}", f"{worst:.4f}", f"{spread:.4f}")
            for size, fraction, worst, spread in zip(
                self.size, self.fraction, self.worst, self.spread, strict=True
            )
        ]
        return ("rows of a group", "fraction", "worst error", "spread"), rows


def adversarial_group_calibration(
    error: Any,
    uncertainty: Any = None,
    *,
    kind: Literal["mean absolute", "root mean square"] = "mean absolute",
    n_levels: int = 100,
    n_sizes: int = 10,
    n_trials: int = 10,
    n_groups: int = 10,
    rng: int | np.random.Generator | None = 0,
) -> AdversarialGroupCalibration:
    """Return the worst calibration error of random groups, by size; best is small.

    Whoever searches long enough finds a group of rows whose uncertainties are wrong;
    the smaller the group, the worse. Compare with what honest uncertainties reach, or
    bin by features that mean something: :func:`local_coverage`, :func:`validate`.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction, at least 2; or Predictions, which hold all
        of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    kind : {"mean absolute", "root mean square"}, default "mean absolute"
        How a group's calibration error is averaged over levels.
    n_levels : int, default 100
        Number of levels of the calibration curve.
    n_sizes : int, default 10
        Number of group sizes, from 2 rows to all.
    n_trials, n_groups : int, default 10
        Each trial keeps the worst of `n_groups` groups drawn without replacement.
    rng : int, Generator or None, default 0
        Seed of the draws.

    Returns
    -------
    AdversarialGroupCalibration

    References
    ----------
    S. Zhao, T. Ma and S. Ermon, ICML (2020), arXiv:2006.10288

    Examples
    --------
    >>> import numpy as np
    >>> u = np.ones(1000)
    >>> error = np.random.default_rng(0).normal(scale=u)
    >>> result = adversarial_group_calibration(error, u, n_sizes=3)
    >>> result.size
    array([   2,  500, 1000])
    >>> result.worst.round(2)
    array([0.36, 0.02, 0.01])
    """
    rows = unweighted(error, uncertainty)
    kind_ = check_choice(kind, "kind", ("mean absolute", "root mean square"))
    levels = np.linspace(0, 1, check_count(n_levels, "n_levels", least=2))
    trials = check_count(n_trials, "n_trials", least=2)
    groups = check_count(n_groups, "n_groups")
    fraction = np.linspace(0, 1, check_count(n_sizes, "n_sizes", least=2))
    generator = rng_from(rng)
    n_rows = rows.n_rows
    if n_rows < 2:
        msg = "A group needs at least 2 rows; found n_samples = 1."
        raise InvalidInputError(msg)
    depths = depths_of(rows, "interval")
    size = np.maximum(np.round(n_rows * fraction).astype(np.int64), 2)
    worst = np.empty((fraction.size, trials))
    for i, trial in np.ndindex(worst.shape):
        drawn = [
            depths[generator.choice(n_rows, size[i], replace=False)]
            for _ in range(groups)
        ]
        deviations = np.abs([fractions_within(levels, each) - levels for each in drawn])
        worst[i, trial] = (
            deviations.mean(axis=1)
            if kind_ == "mean absolute"
            else np.sqrt((deviations**2).mean(axis=1))
        ).max()
    return AdversarialGroupCalibration(
        fraction, size, worst.mean(axis=1), worst.std(axis=1, ddof=1)
    )


def _deviation(
    error: Any, uncertainty: Any, n_levels: Any, kind: Any, sample_weight: Any
) -> Floats:
    """Return observed minus expected fractions at levels from 0 to 1."""
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    levels = np.linspace(0, 1, check_count(n_levels, "n_levels", least=2))
    counted = check_choice(kind, "kind", get_args(Curve))
    depths = depths_of(rows, counted)  # type: ignore[arg-type]
    deviation: Floats = fractions_within(levels, depths, rows.weights) - levels
    return deviation
