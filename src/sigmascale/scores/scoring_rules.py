"""Scores that are one number: of all rows, of their distributions, and of bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, check_fraction
from .._support.notices import warn
from ..exceptions import ZeroErrorBinWarning
from ..predictions.bins import Bins, bins_of, check_ties, cut
from ..predictions.predictions import Predictions, check_predictions
from .curves import CurveKind, calibration_curve
from .losses_by_row import energy_scores, interval_scores, is_held, normal_nll

# -- scores of all rows ----------------------------------------------------------------


def zms(p: Predictions) -> float:
    """Return the mean squared z-score <Z²>, Z = error / uncertainty; best is 1.

    Parameters
    ----------
    p : Predictions
        Rows with known errors; of vectors, Z² is ‖E‖² / (d u²).

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0, 2.0], error=[1.0, -1.0, 2.0])
    >>> ss.scores.zms(p)
    1.0
    """
    p = check_predictions(p)
    return p.mean(p.z2)


def nll(p: Predictions) -> float:
    """Return the mean negative log-likelihood of normal errors; lower is better.

    NLL = d (<Z²> + <ln u²> + ln 2π) / 2, where d is 1 or the dimension of vectors. It
    rewards uncertainties that are right on average and, among these, the sharp ones.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. They are scored as normal with their u, even if they
        have other distributions.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0], error=[1.0, -1.0])
    >>> round(ss.scores.nll(p), 4)
    1.4189
    """
    p = check_predictions(p)
    return p.mean(normal_nll(p))


def calibration_error(p: Predictions) -> float:
    """Return S_cal = abs(ln <Z²>), the error of average calibration; best is 0.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023)

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0], error=[1.0, -1.0])
    >>> ss.scores.calibration_error(p)
    0.0
    """
    p = check_predictions(p)
    return _mean_log(np.array([p.mean(p.z2)]))


def sharpness(p: Predictions) -> float:
    """Return the root mean squared uncertainty; of two calibrated ones, less is better.

    Parameters
    ----------
    p : Predictions
        Rows; errors need not be known.

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon, ICML (2018), arXiv:1807.00263

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.scores.sharpness(ss.Predictions(y_std=[1.0, 7.0]))
    5.0
    """
    p = check_predictions(p, errors=False)
    return float(np.sqrt(p.mean(p.y_std**2)))


# -- scores of distributions -----------------------------------------------------------


def crps(p: Predictions) -> float:
    """Return the mean continuous ranked probability score; lower is better.

    Rows that have distributions (:meth:`sigmascale.Recalibrator.apply`) are scored by
    these, others as normal: u [z (2 Φ(z) − 1) + 2 φ(z) − 1 / √π] with z = error / u, in
    the unit of the error. It rewards what NLL does, and forgives large errors more.

    Parameters
    ----------
    p : Predictions
        Rows with known errors; of vectors, take :func:`energy_score`.

    References
    ----------
    T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102, 359 (2007),
    doi:10.1198/016214506000001437

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0], error=[0.0, 2.0])
    >>> round(ss.scores.crps(p), 4)
    0.8432
    """
    p = check_predictions(p, vectors=False)
    return p.mean(energy_scores(p))


def energy_score(p: Predictions) -> float:
    """Return the mean energy score, E‖X − y‖ − E‖X − X'‖ / 2; lower is better.

    X and X' are drawn from the distribution of a row. It is what the CRPS, which it
    equals in one dimension, becomes for vectors.

    Parameters
    ----------
    p : Predictions
        Rows with known errors, vectors or numbers.

    References
    ----------
    T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102, 359 (2007),
    doi:10.1198/016214506000001437

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0], error=[[1.0, 0.0, 0.0]])
    >>> round(ss.scores.energy_score(p), 3)
    0.721
    """
    p = check_predictions(p)
    return p.mean(energy_scores(p))


def coverage(p: Predictions, *, coverage: float = 0.95) -> float:
    """Return the share of true values in central intervals; best is `coverage`.

    Intervals are those of the rows' distributions or, without these, ± u Φ⁻¹((1 +
    coverage) / 2); of vectors, balls. Limits belong to an interval. The share is known
    as the prediction interval coverage probability (PICP).

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    coverage : float, default 0.95
        The nominal coverage of the intervals.

    References
    ----------
    A. Khosravi et al., IEEE Trans. Neural Netw. 22, 1341 (2011),
    doi:10.1109/TNN.2011.2162110

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0, 1.0, 1.0], error=[0.5, -1.0, 1.5, 3.0])
    >>> ss.scores.coverage(p)
    0.75
    """
    p = check_predictions(p)
    return p.mean(is_held(p, check_fraction(coverage, "coverage")))


def interval_score(p: Predictions, *, coverage: float = 0.95) -> float:
    """Return the mean interval score (Winkler's) of central intervals; less is better.

    It is (high − low) + 2 / (1 − coverage) × the distance by which a value is outside.
    It is proper: nothing beats the true quantiles at (1 ± coverage) / 2.

    Parameters
    ----------
    p : Predictions
        Rows with known errors; vectors have no such score.
    coverage : float, default 0.95
        The nominal coverage of the intervals.

    References
    ----------
    R. L. Winkler, J. Am. Stat. Assoc. 67, 187 (1972),
    doi:10.1080/01621459.1972.10481224; T. Gneiting and A. E. Raftery, ibid. 102, 359
    (2007), doi:10.1198/016214506000001437

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0], error=[0.5, 3.0])
    >>> round(ss.scores.interval_score(p, coverage=0.9), 2)
    16.84
    """
    p = check_predictions(p, vectors=False)
    coverage = check_fraction(coverage, "coverage")
    return p.mean(interval_scores(p, coverage))


def miscalibration_area(
    p: Predictions, *, n_levels: int = 100, kind: CurveKind = "interval"
) -> float:
    """Return the area between the calibration curve and the diagonal; best is small.

    By default fractions are two-sided. K. Tran et al. count one-sided ones: that is
    ``kind="quantile"``, which sees a bias, too.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    n_levels : int, default 100
        Number of levels from 0 to 1, joined by straight lines.
    kind : {"interval", "quantile"}, default "interval"
        What the fractions count: values within central intervals, or below quantiles.

    References
    ----------
    K. Tran et al., Mach. Learn.: Sci. Technol. 1, 025006 (2020),
    doi:10.1088/2632-2153/ab7e1a

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> error = np.random.default_rng(0).normal(size=10_000)
    >>> p = ss.Predictions(y_std=np.full(10_000, 2.0), error=error)
    >>> round(ss.scores.miscalibration_area(p), 3)
    0.204
    """
    return calibration_curve(p, n_levels=n_levels, kind=kind).area


# -- scores of bins --------------------------------------------------------------------


def local_calibration_error(
    p: Predictions, *, by: str | int = "u", n_bins: int | None = None, ties: Any = None
) -> float:
    """Return S_x, the mean over bins of abs(ln <Z²>); best is small but not 0.

    A perfectly calibrated set does not reach 0 because bins are finite;
    :func:`reference_scores` says what it would reach.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    by : str or int, default "u"
        The column to bin by: the uncertainty (consistency), or a feature (adaptivity).
        Numbers make equal-size bins, labels one bin each.
    n_bins : int, optional
        Number of bins. By default they have 30 rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023)

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u))
    >>> round(ss.scores.local_calibration_error(p), 2)
    0.12
    """
    return _local(p, by, n_bins, ties).s


def ence(
    p: Predictions, *, by: str | int = "u", n_bins: int | None = None, ties: Any = None
) -> float:
    """Return the expected normalised calibration error; best is small but not 0.

    ENCE is the mean over bins of abs(RMV − RMSE) / RMV, with RMV² the mean variance
    and RMSE² the mean squared error of the bin.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    by : str or int, default "u"
        The column to bin by.
    n_bins : int, optional
        Number of bins. By default they have 30 rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[2.0, 2.0, 6.0, 6.0], error=[2.0, -2.0, 3.0, 3.0])
    >>> ss.scores.ence(p, n_bins=2)
    0.25
    """
    return _local(p, by, n_bins, ties).ence


def uce(
    p: Predictions, *, by: str | int = "u", n_bins: int | None = None, ties: Any = None
) -> float:
    """Return the uncertainty calibration error (error units squared); best is small.

    UCE is the mean over bins of abs(MV − MSE), with MV the mean variance and MSE the
    mean squared error of the bin. As ENCE, it is small but not 0 for a perfect set.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    by : str or int, default "u"
        The column to bin by.
    n_bins : int, optional
        Number of bins. By default they have 30 rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[2.0, 2.0, 6.0, 6.0], error=[2.0, -2.0, 3.0, 3.0])
    >>> ss.scores.uce(p, n_bins=2)
    13.5
    """
    return _local(p, by, n_bins, ties).uce


@dataclass(frozen=True)
class LocalScores:
    """The local scores of one variable, from the means of its bins."""

    zms: Floats
    mse: Floats
    variance: Floats

    @classmethod
    def of(cls, p: Predictions, bins: Bins) -> LocalScores:
        """Return the scores of one variable, cut into bins."""
        return cls(
            bins.means(p.z2), bins.means(p.squared_error), bins.means(p.y_std**2)
        )

    @property
    def s(self) -> float:
        """S_x, the mean of abs(ln <Z²>) over bins."""
        return _mean_log(self.zms)

    @property
    def ence(self) -> float:
        """The expected normalised calibration error."""
        return float(np.mean(np.abs(1 - np.sqrt(self.mse / self.variance))))

    @property
    def uce(self) -> float:
        """The uncertainty calibration error."""
        return float(np.mean(np.abs(self.variance - self.mse)))


def _local(p: Predictions, by: str | int, n_bins: Any, ties: Any) -> LocalScores:
    """Return the scores of one column, of arguments as users pass them."""
    p = check_predictions(p, complete=True)
    count = bins_of(n_bins, p.n_effective)
    (bins,) = cut(p, count, by=by, ties=check_ties(ties, p)).values()
    return LocalScores.of(p, bins)


def _mean_log(zms: Floats) -> float:
    """Return the mean of abs(ln <Z²>) over bins."""
    n_zero = int(np.count_nonzero(zms == 0))
    if n_zero:
        warn(
            f"All errors are exactly 0 in {n_zero} of {zms.size} bins: their |ln <Z²>| "
            "and so the score are infinite. Use fewer bins.",
            ZeroErrorBinWarning,
            stacklevel=4,
        )
        return float("inf")
    return float(np.mean(np.abs(np.log(zms))))
