"""Pernot's later statistics of the average: RCE, <Z²>, the share within 1.96 u, and ν.

Means of u², E² and z² are at the mercy of a few rows where tails are heavy, and so are
all statistics that compare variances. Here are these, with intervals, beside what tells
whether they can be believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, check_count, check_fraction, rng_from
from .._support.numerals import fixed, number
from .._support.render import Cells, Result
from .._support.weighting import ones_if_none
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from ..scores.curves import rows_in_effect
from ..scores.intervals import Estimate, wilson_limits
from ..scores.student import fit_student
from .valid_bins import STATISTICS, bca_limits, bootstrap_weights, normal_quantile

SKEWED_U2 = 0.6  # skewness of u² above which the mean of u² says little
SKEWED_E2 = 0.8  # the same of E²
SKEWED_Z2 = 0.8  # and of z²; 0.63 for normal z
SKEWED_SHARE = 0.85  # of z², above which not even the share within 1.96 u is safe
REACH = 1.96  # of an interval at 95 %, in units of u
EQUIVALENT = (0.945, 0.955)  # shares that are 0.95 for all purposes
_MOST_RESAMPLED = 2000  # of a set, that are resampled as a whole


@dataclass(frozen=True)
class Tails(Result):
    """The statistics that tails spoil or leave alone, and how heavy tails are.

    Attributes
    ----------
    rce : Estimate
        Relative calibration error (RMV − RMSE) / RMV; best is 0, and positive values
        say that uncertainties are too large.
    zms : Estimate
        Mean of the squared z-scores; best is 1.
    share : Estimate
        Share of errors within 1.96 u; best is 0.95. Of all multiples of u, 1.96 depends
        least on the tails: it holds between 94.5 and 95.5 % of errors from Student's t
        of unit variance with 3.2 or more degrees of freedom.
    nu : float
        Degrees of freedom of Student's t that suits the z-scores best; infinite where
        tails are not heavier than normal ones.
    beyond : float
        Share of errors beyond 3 u; 0.0027 of normal ones with right u.
    skewness_z2, skewness_u2, skewness_e2 : float
        Robust skewness of z², u² and E², from -1 to 1.
    n_rows : int
        Size of the set.
    """

    rce: Estimate
    zms: Estimate
    share: Estimate
    nu: float
    beyond: float
    skewness_z2: float
    skewness_u2: float
    skewness_e2: float
    n_rows: int

    @property
    def rce_is_reliable(self) -> bool:
        """Whether the means of u² and E² can be believed: skewness up to 0.6, 0.8."""
        return self.skewness_u2 <= SKEWED_U2 and self.skewness_e2 <= SKEWED_E2

    @property
    def zms_is_reliable(self) -> bool:
        """Whether the mean of z² can be believed: its skewness is at most 0.8."""
        return self.skewness_z2 <= SKEWED_Z2

    @property
    def share_is_reliable(self) -> bool:
        """Whether the share within 1.96 u can: the skewness of z² is at most 0.85."""
        return self.skewness_z2 <= SKEWED_SHARE

    @property
    def share_is_valid(self) -> bool:
        """Whether the interval of the share overlaps [0.945, 0.955]."""
        return self.share.low <= EQUIVALENT[1] and self.share.high >= EQUIVALENT[0]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and what is reliable."""
        return super().to_dict() | {
            "rce_is_reliable": self.rce_is_reliable,
            "zms_is_reliable": self.zms_is_reliable,
            "share_is_reliable": self.share_is_reliable,
            "share_is_valid": self.share_is_valid,
        }

    def _cells(self) -> Cells:
        def row(name: str, estimate: Estimate, best: float, *, reliable: bool) -> Any:
            interval = f"{fixed(estimate.low, 3)} to {fixed(estimate.high, 3)}"
            believed = "yes" if reliable else "no: heavy tails"
            return name, fixed(estimate.value, 3), interval, f"{best:g}", believed

        return ("statistic", "value", "interval", "best", "to be believed"), [
            row("RCE", self.rce, 0, reliable=self.rce_is_reliable),
            row("mean of z²", self.zms, 1, reliable=self.zms_is_reliable),
            row("within 1.96 u", self.share, 0.95, reliable=self.share_is_reliable),
            ("beyond 3 u", fixed(self.beyond, 4), "", "0.0027", ""),
            ("degrees of freedom of z", number(self.nu), "", "above 4", ""),
        ]


def tails(
    p: Predictions,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: int | np.random.Generator | None = 0,
) -> Tails:
    """Return RCE, <Z²> and the share within 1.96 u with intervals, and ν of the tails.

    Where tails are heavy, a few rows decide on the means of z², u² and E², and on all
    that is made of them: read the share of errors within 1.96 u instead.

    Parameters
    ----------
    p : Predictions
        At least 5 rows with known errors that are not all 0. If they have groups, whole
        groups are resampled. Vectors have no share within 1.96 u, and are refused.
    confidence : float, default 0.95
        Coverage of all intervals: of the BCa bootstrap for RCE and <Z²>, Wilson's with
        continuity correction for the share.
    n_resamples : int, default 10000
        Number of bootstrap resamples; so many give two digits of an interval's limits,
        as seeds move these by about 2 % of its width.
    rng : int, Generator or None, default 0
        Seed of the bootstrap.

    Returns
    -------
    Tails

    Notes
    -----
    :func:`sigmascale.validate` answers another question about the average. It asks
    whether the factor sqrt(<Z²>) that u wants lies within a tolerance, by limits that
    hold for all of its questions at once and allow for larger errors than those that
    the set happens to have. Here each interval stands alone, is made of the rows as
    they are, and is compared with the one best value. So a set that is off by 3 %
    passes there, whatever its size, while with many rows intervals here exclude 1; and
    with few rows and heavy tails, intervals here exclude 1 too often (of <Z²> in about
    12 % of calibrated sets with Student's t of 4 degrees of freedom), which is
    what the column "to be believed" is for. RCE may also differ from <Z²> itself: it
    compares means of u² and E², on which the rows with the largest u decide.

    References
    ----------
    P. Pernot, arXiv:2402.10043, arXiv:2403.00423 and arXiv:2408.13089 (2024);
    R. A. Groeneveld and G. Meeden, The Statistician 33, 391 (1984), doi:10.2307/2987742

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> p = ss.Predictions(y_std=u, error=u * rng.standard_t(3, size=2000))
    >>> found = ss.scores.tails(p)
    >>> found.zms_is_reliable, round(found.nu, 1)
    (False, 2.9)
    """
    p = check_predictions(p, vectors=False)
    confidence = check_fraction(confidence, "confidence")
    n_resamples = check_count(n_resamples, "n_resamples", least=20)
    if p.n_rows < 5:
        msg = f"Tails need at least 5 rows; found {p.n_rows}. Add rows."
        raise InvalidInputError(msg)
    e = p.errors
    u = p.y_std
    z = p.z
    if not np.any(e):
        msg = "Errors must not be 0 in every row: z-scores have no distribution."
        raise InvalidInputError(msg)
    generator = rng_from(rng)

    # u² and E² in units in which squares of numbers of any size stay numbers
    unit = np.sqrt(np.mean((u / u.max()) ** 2)) * u.max()
    u2 = (u / unit) ** 2
    e2 = (e / unit) ** 2
    settings = (confidence, n_resamples, generator)
    rce = _bca_of_means(p, [u2, e2], STATISTICS["rce"].of_means, *settings)
    zms = _bca_of_means(p, [p.z2], STATISTICS["zms"].of_means, *settings)

    # the share within 1.96 u, of as many independent rows as tell as much
    within = (np.abs(e) <= REACH * u).astype(np.float64)
    share = p.mean(within)
    n_trials = rows_in_effect(p, within)
    limits = wilson_limits(round(share * n_trials), n_trials, confidence)

    nu, _ = fit_student(z, p.weights)
    return Tails(
        rce=rce,
        zms=zms,
        share=Estimate(share, *limits, confidence),
        nu=nu,
        beyond=p.mean(np.abs(z) > 3),
        skewness_z2=_skewness(p.z2),
        skewness_u2=_skewness((u / u.max()) ** 2),
        skewness_e2=_skewness((e / np.abs(e).max()) ** 2),
        n_rows=p.n_rows,
        _origin=p.origin,
    )


def _bca_of_means(
    p: Predictions,
    values: list[Floats],
    statistic: Callable[[Any], Any],
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """Return a function of the means of several columns, with its BCa interval.

    Whole groups are resampled, if there are any. Beyond a few thousand, they are first
    put together at random in as many parts, which are then resampled: that is as good.
    """
    part = np.arange(p.n_rows) if p.groups is None else p.groups
    n_parts = int(part.max()) + 1
    if n_parts > _MOST_RESAMPLED:
        part = (rng.permutation(n_parts) % _MOST_RESAMPLED)[part]

    # the weight of each part, and its sums of all columns
    weights = ones_if_none(p.weights, p.n_rows)
    sizes = np.bincount(part, weights)
    sums = np.array([np.bincount(part, weights * column) for column in values])
    total = sums.sum(axis=1, keepdims=True)
    value = statistic(total / sizes.sum())
    resampled = np.empty((1, n_resamples))
    for resamples, drawn in bootstrap_weights(sizes.size, rng, n_resamples):
        resampled[0, resamples] = statistic((sums @ drawn) / (sizes @ drawn))

    # the influence of a part is what the value gains from it
    lacking = statistic((total - sums) / (sizes.sum() - sizes))
    centred = lacking.mean() - lacking
    centred /= np.abs(centred).max() or 1.0  # or cubes might leave the range
    quantile = normal_quantile(confidence)
    low, high = bca_limits(resampled, value, centred[None], quantile)
    return Estimate(float(value[0]), float(low[0]), float(high[0]), confidence)


def _skewness(values: Floats) -> float:
    """Return the robust skewness (mean − median) / mean(abs(x − median)), -1 to 1.

    It is 0 of a symmetric distribution and 0.63 of squares of normal numbers.
    """
    distance = values - np.median(values)
    spread = float(np.mean(np.abs(distance)))
    return float(np.mean(distance)) / spread if spread > 0 else 0.0
