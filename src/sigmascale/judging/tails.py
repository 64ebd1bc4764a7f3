"""The tails of a set: what they are, and which statistics they leave to be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from .._support.checks import Floats, check_count, check_fraction, check_pair, rng_from
from .._support.render import html_table, text_table
from ..bins.partitions import cut_positions, rank_bins
from ..exceptions import InvalidInputError
from .confidence_curves import area_to_oracle
from .estimates import Estimate, bca_of_means, zeta_score
from .tail_scores import (
    SKEWED_COVERAGE,
    SKEWED_E2,
    SKEWED_U2,
    SKEWED_Z2,
    CoverageAt95,
    StudentShape,
    coverage_at_95,
    relative_calibration_error,
    skewness_gm,
    student_shape,
)

NORMAL_BEYOND = float(2 * special.ndtr(-3))  # share of normal z-scores beyond 3
_HEADER = ("statistic", "value", "interval", "best", "zeta")
_POINTS = 100  # of a confidence curve


@dataclass(frozen=True)
class TailStatistics:
    """The tails of a set, and the statistics that tails spoil or leave alone.

    Attributes
    ----------
    n_rows : int
        Size of the set.
    beyond : float
        Share of errors beyond 3 u; 0.0027 of normal ones with right u.
    shape : StudentShape
        Student's t that suits the z-scores.
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
    shape: StudentShape
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
        share = self.coverage
        return {
            "mean_z": self.mean_z.zeta(0),
            "zms": self.zms.zeta(1),
            "rce": self.rce.zeta(0),
            "coverage": zeta_score(share.picp, (share.low, share.high), 0.95),
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
        fields = {
            name: value.to_dict() if hasattr(value, "to_dict") else value
            for name, value in vars(self).items()
        }
        return fields | {
            "zms_is_reliable": self.zms_is_reliable,
            "rce_is_reliable": self.rce_is_reliable,
            "coverage_is_reliable": self.coverage_is_reliable,
            "zeta": self.zeta,
            "sentences": list(self.sentences),
        }

    def _rows(self) -> list[tuple[str, ...]]:
        zeta = {name: f"{value:.2f}" for name, value in self.zeta.items()}
        share = self.coverage
        correlation, area = (
            self.rank_correlation_reference,
            self.area_to_oracle_reference,
        )
        return [
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
        table = text_table(_HEADER, self._rows())
        return "\n".join([table, "", *self.sentences])

    def _repr_html_(self) -> str:
        return html_table(_HEADER, self._rows())


def tails(
    error: Any,
    uncertainty: Any,
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
    error : array-like of shape (n,)
        Errors, reference minus prediction; at least 5, and not all 0.
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
    e, u = check_pair(error, uncertainty)
    confidence = check_fraction(confidence, "confidence")
    n_resamples = check_count(n_resamples, "n_resamples")
    n_draws = check_count(n_draws, "n_draws", least=2)
    if e.size < 5:
        msg = f"`error` must have at least 5 rows for tails; found {e.size}. Add rows."
        raise InvalidInputError(msg)
    shape = student_shape(e, u)
    generator = rng_from(rng)
    z = e / u
    zms = bca_of_means(
        z[None] ** 2,
        lambda means: means[0],
        confidence=confidence,
        n_resamples=n_resamples,
        rng=generator,
    )
    rce = relative_calibration_error(
        e, u, confidence=confidence, n_resamples=n_resamples, rng=generator
    )
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
        shape=shape,
        skewness_z2=skewness_gm(z**2),
        skewness_u2=skewness_gm(u_unit**2),
        skewness_e2=skewness_gm(e_unit**2),
        mean_z=_mean(z, confidence),
        zms=zms,
        rce=rce,
        coverage=coverage_at_95(e, u, confidence=confidence),
        rank_correlation=correlation,
        rank_correlation_reference=_reference(simulated[:, 0], confidence),
        area_to_oracle=area,
        area_to_oracle_reference=_reference(simulated[:, 1], confidence),
    )


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
