"""The tails of a set: what they are, and which statistics they leave to be believed.

Means of u², E² and z² are at the mercy of a few rows where tails are heavy, and so are
all statistics that compare variances. Here tails are measured, and there is what does
not depend on them so much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from .._support.checks import Floats, check_count, check_fraction, rng_from
from .._support.render import Cells, Result
from .._support.weights import effective_number
from ..bins.partitions import cut_positions, rank_bins
from ..exceptions import InvalidInputError
from ..predictions import Predictions, as_predictions
from .binning import unweighted
from .confidence_curves import area_to_oracle
from .intervals import Estimate, bca_of_means, wilson_limits
from .student import StudentLaw

SKEWED_U2 = 0.6  # skewness of u² above which the mean of u² says little
SKEWED_E2 = 0.8  # the same of E²
SKEWED_Z2 = 0.8  # and of z²; 0.63 for normal z
SKEWED_COVERAGE = 0.85  # of z², above which not even the share within 1.96 u is safe
REACH = 1.96  # of an interval at 95 %, in units of u
EQUIVALENT = (0.945, 0.955)  # coverages that are 0.95 for all purposes
NORMAL_BEYOND = float(2 * special.ndtr(-3))  # share of normal z-scores beyond 3
_HEADER = ("statistic", "value", "interval", "best", "zeta")
_POINTS = 100  # of a confidence curve


def relative_calibration_error(
    error: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Estimate:
    """Return (RMV − RMSE) / RMV with its confidence interval; best is 0.

    RMV is the root of the mean u², RMSE that of the mean E². Positive values say that
    uncertainties are too large. The few largest u and errors decide on it: believe it
    only where :func:`tails` says so: the skewness of u² is at most 0.6 and that of E²
    at most 0.8.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction, at least 2; or Predictions, which hold all
        of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    confidence : float, default 0.95
        Coverage of the interval, which is that of the BCa bootstrap of rows.
    n_resamples : int, default 1500
        Number of bootstrap resamples.
    rng : int, Generator or None, default 0
        Seed of the bootstrap.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Returns
    -------
    Estimate

    References
    ----------
    P. Pernot, arXiv:2402.10043 (2024); T. J. DiCiccio and B. Efron, Statist. Sci. 11,
    189 (1996), doi:10.1214/ss/1032280214

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 1000)
    >>> print(relative_calibration_error(rng.normal(scale=2 * u), u))
    -1.037 [-1.132, -0.9499]
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    confidence = check_fraction(confidence, "confidence")
    n_resamples = check_count(n_resamples, "n_resamples")
    generator = rng_from(rng)
    if rows.n_rows < 2:
        msg = "`error` must have at least 2 rows for an interval; found 1. Add rows."
        raise InvalidInputError(msg)
    return _rce(rows, confidence, n_resamples, generator)


def _rce(
    rows: Predictions, confidence: float, n_resamples: int, rng: np.random.Generator
) -> Estimate:
    e, u = rows.errors, rows.uncertainty
    # of a unit in which the mean u² is 1, so that no square leaves the range of numbers
    unit = np.sqrt(np.mean((u / u.max()) ** 2)) * u.max()
    squares = np.stack([(u / unit) ** 2, (e / unit) ** 2])
    return bca_of_means(
        squares if rows.weights is None else rows.weights * squares,
        lambda means: 1 - np.sqrt(means[1] / means[0]),
        confidence=confidence,
        n_resamples=n_resamples,
        rng=rng,
    )


@dataclass(frozen=True)
class CoverageAt95(Result):
    """The share of errors within 1.96 u, and whether it is 0.95 for all purposes.

    Attributes
    ----------
    n_rows : int
        Size of the set.
    picp : float
        The share of errors within 1.96 u; best is 0.95.
    low, high : float
        Its confidence interval, of Wilson with continuity correction.
    plain_low, plain_high : float
        The same without continuity correction, which is a little narrower.
    valid : bool
        Whether the interval overlaps [0.945, 0.955].
    confidence : float
        The coverage of the intervals.
    """

    n_rows: int
    picp: float
    low: float
    high: float
    plain_low: float
    plain_high: float
    valid: bool
    confidence: float

    @property
    def estimate(self) -> Estimate:
        """The share with its interval."""
        return Estimate(self.picp, self.low, self.high, self.confidence)

    def _cells(self) -> Cells:
        return ("what", "value"), [
            ("within 1.96 u", str(self.estimate)),
            ("is 0.95", "yes" if self.valid else "no"),
            ("rows", f"{self.n_rows}"),
        ]


def coverage_at_95(
    error: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> CoverageAt95:
    """Return the share of errors within 1.96 u and its interval; best is 0.95.

    Of all multiples of u, 1.96 depends least on the tails: it holds 95 % of normal
    errors, and between 94.5 and 95.5 % of those from Student's t of unit variance with
    3.2 or more degrees of freedom. The share is therefore safe where <Z²> is not.
    :func:`local_coverage` with ``normal_interval(u, 0.95)`` has it by bins.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    confidence : float, default 0.95
        Coverage of the intervals.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The interval is that
        of the rows in effect.

    Returns
    -------
    CoverageAt95

    References
    ----------
    P. Pernot, arXiv:2408.13089 (2024); R. G. Newcombe, Statist. Med. 17, 857 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E

    Examples
    --------
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> print(coverage_at_95(error, np.ones(1000)))
    within 1.96 u  0.96 [0.9454, 0.9709]
    is 0.95        yes
    rows           1000
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    return _coverage_at_95(rows, check_fraction(confidence, "confidence"))


def _coverage_at_95(rows: Predictions, confidence: float) -> CoverageAt95:
    picp, n = rows.mean(np.abs(rows.errors) <= REACH * rows.uncertainty), rows.n_rows
    trials = n if rows.weights is None else effective_number(rows.weights)
    low, high = wilson_limits(picp * trials, trials, confidence)
    plain = wilson_limits(picp * trials, trials, confidence, continuity=False)
    return CoverageAt95(
        n_rows=n,
        picp=picp,
        low=low,
        high=high,
        plain_low=plain[0],
        plain_high=plain[1],
        valid=low <= EQUIVALENT[1] and high >= EQUIVALENT[0],
        confidence=confidence,
    )


@dataclass(frozen=True)
class TailStatistics(Result):
    """The tails of a set, and the statistics that tails spoil or leave alone.

    Attributes
    ----------
    n_rows : int
        Size of the set.
    beyond : float
        Share of errors beyond 3 u; 0.0027 of normal ones with right u.
    shape : StudentLaw
        Student's t that suits the z-scores best, by maximum likelihood.
    skewness_z2, skewness_u2, skewness_e2 : float
        Robust skewness of z², u² and E², from -1 to 1.
    mean_z : Estimate
        Mean of the z-scores; best is 0.
    zms : Estimate
        Mean of their squares; best is 1.
    rce : Estimate
        Relative calibration error; best is 0.
    coverage : CoverageAt95
        Share of errors within 1.96 u; best is 0.95.
    rank_correlation : float
        Spearman's, of the absolute errors with u.
    area_to_oracle : float
        Area between the confidence curve and its oracle (AUCO), with rmse.
    rank_correlation_reference, area_to_oracle_reference : Estimate
        Mean and interval of the two, of simulated sets with normal errors and right u.
    """

    n_rows: int
    beyond: float
    shape: StudentLaw
    skewness_z2: float
    skewness_u2: float
    skewness_e2: float
    mean_z: Estimate
    zms: Estimate
    rce: Estimate
    coverage: CoverageAt95
    rank_correlation: float
    rank_correlation_reference: Estimate
    area_to_oracle: float
    area_to_oracle_reference: Estimate

    @property
    def zms_is_reliable(self) -> bool:
        """Whether the mean of z² can be believed: its skewness is at most 0.8."""
        return self.skewness_z2 <= SKEWED_Z2

    @property
    def rce_is_reliable(self) -> bool:
        """Whether those of u² and E² can: skewness at most 0.6 and 0.8."""
        return self.skewness_u2 <= SKEWED_U2 and self.skewness_e2 <= SKEWED_E2

    @property
    def coverage_is_reliable(self) -> bool:
        """Whether the share within 1.96 u can: the skewness of z² is at most 0.85."""
        return self.skewness_z2 <= SKEWED_COVERAGE

    @property
    def zeta(self) -> dict[str, float]:
        """The zeta-score of each statistic; between -1 and 1 is valid."""
        return {
            "mean_z": self.mean_z.zeta(0),
            "zms": self.zms.zeta(1),
            "rce": self.rce.zeta(0),
            "coverage": self.coverage.estimate.zeta(0.95),
            "rank_correlation": _within(
                self.rank_correlation, self.rank_correlation_reference
            ),
            "area_to_oracle": _within(
                self.area_to_oracle, self.area_to_oracle_reference
            ),
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, in words."""
        return tuple(_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, with the zeta-scores, what is reliable, and the words."""
        return super().to_dict() | {
            "shape": vars(self.shape),
            "zms_is_reliable": self.zms_is_reliable,
            "rce_is_reliable": self.rce_is_reliable,
            "coverage_is_reliable": self.coverage_is_reliable,
            "zeta": self.zeta,
            "sentences": list(self.sentences),
        }

    def _cells(self) -> Cells:
        zeta = {name: f"{value:.2f}" for name, value in self.zeta.items()}
        share = self.coverage
        correlation, area = (
            self.rank_correlation_reference,
            self.area_to_oracle_reference,
        )
        return _HEADER, [
            _row("mean of z", self.mean_z, "0", zeta["mean_z"]),
            _row("mean of z²", self.zms, "1", zeta["zms"]),
            _row("RCE", self.rce, "0", zeta["rce"]),
            (
                "within 1.96 u",
                f"{share.picp:.4f}",
                f"{share.low:.4f} to {share.high:.4f}",
                "0.95",
                zeta["coverage"],
            ),
            (
                "rank correlation of |E| and u",
                f"{self.rank_correlation:.3f}",
                "",
                f"{correlation.low:.3f} to {correlation.high:.3f}",
                zeta["rank_correlation"],
            ),
            (
                "area to the oracle",
                f"{self.area_to_oracle:.3f}",
                "",
                f"{area.low:.3f} to {area.high:.3f}",
                zeta["area_to_oracle"],
            ),
            ("beyond 3 u", f"{self.beyond:.4f}", "", f"{NORMAL_BEYOND:.4f}", ""),
            ("skewness of z²", f"{self.skewness_z2:.3f}", "", "at most 0.8", ""),
            ("skewness of u²", f"{self.skewness_u2:.3f}", "", "at most 0.6", ""),
            ("skewness of E²", f"{self.skewness_e2:.3f}", "", "at most 0.8", ""),
            ("degrees of freedom of z", f"{self.shape.df:.3g}", "", "above 4", ""),
        ]

    def __str__(self) -> str:
        """Return a line for each statistic, and then the words."""
        return "\n".join([self.to_table(), "", *self.sentences])


def tails(
    error: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    n_draws: int = 200,
    rng: int | np.random.Generator | None = 0,
) -> TailStatistics:
    """Return the tails of a set, and the statistics that they spoil or leave alone.

    Where tails are heavy, a few rows decide on the means of z², u² and E², and on all
    that is made of them: read the share of errors within 1.96 u instead.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction, at least 5 and not all 0; or Predictions,
        which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    confidence : float, default 0.95
        Coverage of all intervals.
    n_resamples : int, default 1500
        Number of bootstrap resamples behind the intervals of means of squares.
    n_draws : int, default 200
        Number of simulated sets behind the references.
    rng : int, Generator or None, default 0
        Seed of the bootstrap and of the simulation.

    Returns
    -------
    TailStatistics

    References
    ----------
    P. Pernot, arXiv:2402.10043, arXiv:2403.00423 and arXiv:2408.13089 (2024); of the
    area to the oracle: G. Scalia et al., J. Chem. Inf. Model. 60, 2697 (2020),
    doi:10.1021/acs.jcim.9b00975

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> found = tails(u * rng.standard_t(3, size=2000), u)
    >>> found.zms_is_reliable
    False
    >>> print(found.sentences[0])
    5.6 % of the errors are beyond 3 u; 0.27 % of normal errors with right u are.
    """
    rows = unweighted(error, uncertainty)
    e, u, z = rows.errors, rows.uncertainty, rows.z
    confidence = check_fraction(confidence, "confidence")
    n_resamples = check_count(n_resamples, "n_resamples")
    n_draws = check_count(n_draws, "n_draws", least=2)
    if e.size < 5:
        msg = f"`error` must have at least 5 rows for tails; found {e.size}. Add rows."
        raise InvalidInputError(msg)
    if not np.any(e):
        msg = "`error` must not be 0 in every row: the z-scores have no distribution."
        raise InvalidInputError(msg)
    generator = rng_from(rng)
    zms = bca_of_means(
        rows.z2[None],
        lambda means: means[0],
        confidence=confidence,
        n_resamples=n_resamples,
        rng=generator,
    )
    rce = _rce(rows, confidence, n_resamples, generator)
    order = rank_bins(u, 1, error=e).order
    u_ranks = stats.rankdata(u[order]) - (u.size + 1) / 2
    correlation, area = _order_statistics(e[order], u_ranks)
    drawn = (generator.standard_normal(u.size) * u[order] for _ in range(n_draws))
    simulated = np.array([_order_statistics(errors, u_ranks) for errors in drawn])
    # squares of numbers of any unit must stay numbers
    u_unit, e_unit = u / u.max(), e / np.abs(e).max()
    return TailStatistics(
        n_rows=e.size,
        beyond=float(np.mean(np.abs(z) > 3)),
        shape=StudentLaw.learn(z),
        skewness_z2=_skewness(rows.z2),
        skewness_u2=_skewness(u_unit**2),
        skewness_e2=_skewness(e_unit**2),
        mean_z=_mean(z, confidence),
        zms=zms,
        rce=rce,
        coverage=_coverage_at_95(rows, confidence),
        rank_correlation=correlation,
        rank_correlation_reference=_reference(simulated[:, 0], confidence),
        area_to_oracle=area,
        area_to_oracle_reference=_reference(simulated[:, 1], confidence),
    )


def _skewness(values: Floats) -> float:
    """Return the robust skewness of Groeneveld and Meeden, from -1 to 1.

    It is (mean − median) / mean(abs(x − median)): 0 of a symmetric distribution, 0.63
    of squares of normal numbers.

    References
    ----------
    R. A. Groeneveld and G. Meeden, The Statistician 33, 391 (1984),
    doi:10.2307/2987742; P. Pernot, arXiv:2402.10043 (2024), which has the limits and
    computes the median by the estimator of Harrell and Davis.
    """
    distance = values - np.median(values)
    spread = float(np.mean(np.abs(distance)))
    return float(np.mean(distance)) / spread if spread > 0 else 0.0


def _mean(values: Floats, confidence: float) -> Estimate:
    """Return a mean with Student's interval."""
    mean, n = float(values.mean()), values.size
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1) * values.std(ddof=1) / n**0.5)
    return Estimate(mean, mean - half, mean + half, confidence)


def _reference(draws: Floats, confidence: float) -> Estimate:
    """Return the mean and the interval of simulated values."""
    low, high = np.quantile(draws, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(float(draws.mean()), float(low), float(high), confidence)


def _order_statistics(error: Floats, u_ranks: Floats) -> tuple[float, float]:
    """Return the rank correlation of |E| and u, and the area to the oracle.

    Rows are in the order of u, whose ranks are centred.
    """
    size = np.abs(error)
    order = np.argsort(size)
    ordered = size[order]
    ranks = np.empty(size.size)
    ranks[order] = np.arange(1, size.size + 1)
    if np.any(ordered[1:] == ordered[:-1]):  # ties share the mean of their ranks
        ranks = stats.rankdata(size)
    ranks -= (size.size + 1) / 2
    spread = ranks.std() * u_ranks.std()
    correlation = float(np.mean(ranks * u_ranks) / spread) if spread > 0 else 0.0
    kept = size.size - cut_positions(size.size, min(_POINTS, size.size))
    return correlation, area_to_oracle(size, ordered, kept)


def _within(value: float, reference: Estimate) -> float:
    """Return the place of a value in the interval of simulated ones."""
    return -reference.zeta(value) + 0.0


def _row(name: str, found: Estimate, best: str, zeta: str) -> tuple[str, ...]:
    interval = f"{found.low:.3f} to {found.high:.3f}"
    return name, f"{found.value:.3f}", interval, best, zeta


def _sentences(found: TailStatistics) -> list[str]:
    """Return what the numbers say."""
    normal = f"{100 * NORMAL_BEYOND:.2f} % of normal errors with right u are"
    said = [f"{100 * found.beyond:.2g} % of the errors are beyond 3 u; {normal}."]
    df = found.shape.df
    if np.isfinite(df):
        said.append(f"The z-scores are like those of Student's t with {df:.3g} df.")
    else:
        said.append("The tails of the z-scores are not heavier than normal ones.")
    if not found.zms_is_reliable:
        said.append(
            f"A few rows decide on the mean of z² (skewness {found.skewness_z2:.2f}, "
            f"above {SKEWED_Z2}): it says little."
        )
    if not found.rce_is_reliable:
        said.append(
            "A few rows decide on the means of u² and E² (skewness "
            f"{found.skewness_u2:.2f} and {found.skewness_e2:.2f}; up to {SKEWED_U2} "
            f"and {SKEWED_E2} are safe): RCE says little."
        )
    share = found.coverage
    said.append(
        f"{100 * share.picp:.3g} % of the errors are within 1.96 u "
        f"[{100 * share.low:.3g}, {100 * share.high:.3g}]: that "
        f"{'cannot be told from' if share.valid else 'is not'} 95 %."
    )
    if not found.coverage_is_reliable:
        said.append("With such tails, even that share says little of calibration.")
    return said
