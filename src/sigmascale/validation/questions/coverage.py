"""Do intervals cover as they claim? The share of true values within them."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import special

from ..._support.checks import Floats
from ...scores.intervals import Mean
from ..regions import Regions
from ..scores import Score
from ..values import Values
from .question import FAR, AllRows, Estimates, Limits, Question, student_t

# ψ rises from 0 to 1 between the quantiles that leave so many times (1 − coverage)
WIDEST = 3.0
NARROWEST = 0.3
LEAST_RISE = 0.05  # of ln of a stretch, over which ψ rises


class Coverage(Question):
    """Off is ln of the factor by which normal errors of that coverage are too large.

    Intervals of normal errors f times as large as claimed cover P(χ²_d < q / f²), with
    q the quantile that is claimed and d the components of an error.
    """

    kind = "coverage"
    statistic = "coverage"
    unit = "share"
    scopes = ("intervals", "both")
    has_one_family = True  # where it fails, RMS z does, too

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.dim = values.rows.dim if values.rows.is_vector else 1
        self.claimed = float(special.chdtri(self.dim, 1 - values.coverage))

    def as_read(self, off: float) -> float:
        """Return the coverage of normal errors so much too large."""
        return float(
            special.chdtr(self.dim, self.claimed * math.exp(-2 * max(off, -300.0)))
        )

    def off_of(self, share: Floats) -> Floats:
        """Return by ln of what factor normal errors are too large with a coverage."""
        if self.dim == 1:  # of normal z², which is faster than of any χ²
            quantile = special.ndtri((1 + share) / 2) ** 2
        else:
            quantile = special.chdtri(self.dim, np.clip(1 - share, 0, 1))
        with np.errstate(divide="ignore"):
            off = 0.5 * np.log(self.claimed / quantile)
        return np.asarray(np.clip(off, -FAR, 3 * FAR))  # as a coverage: 1, and 0

    @cached_property
    def _log_stretch(self) -> Floats:
        """The logarithm of what the interval of each row must be stretched by."""
        stretch = self.values.stretch
        at_level = float(np.quantile(stretch, self.values.coverage))
        return np.log(np.maximum(stretch, 1e-9 * max(at_level, 1e-300)))

    @cached_property
    def _ends(self) -> tuple[float, float, float]:
        """The quantiles between which ψ rises, and what a shift means between them.

        Stretches that are shifted by d leave intervals off by `per_shift` · d: 1 where
        errors are normal.
        """
        missed = 1 - self.values.coverage
        shares = np.array(
            [max(1 - WIDEST * missed, self.values.coverage / 4), 1 - NARROWEST * missed]
        )
        a, b = self.values.quantiles(self._log_stretch, shares).tolist()
        b = max(b, a + LEAST_RISE)
        narrow, wide = self.off_of(shares)
        return a, b, float(narrow - wide) / (b - a)

    @property
    def is_coarse(self) -> bool:
        """Whether ψ rises over so little that shifts tell nothing."""
        a, b, _ = self._ends
        return b <= a + LEAST_RISE * (1 + 1e-9)

    @property
    def per_shift(self) -> float:
        """How much farther off intervals are, by a shift of stretches."""
        return self._ends[2]

    @cached_property
    def score(self) -> Score:
        """ψ of ln of the stretch that covers a row, clipped and rising."""
        a, b, _ = self._ends

        def psi(x: Floats) -> Floats:
            return np.asarray(np.clip((x - a) / (b - a), 0, 1))

        return Score.of(self._log_stretch, self.values.w, psi, (a - 3, b + 3))

    @property
    def influence(self) -> Floats:
        """The clipped stretch."""
        return self.score.psi

    @cached_property
    def mean(self) -> Mean:
        """The share of true values within intervals, of all rows."""
        values = self.values
        return Mean.of(values.is_covered, values.groups, values.rows.weights)

    def _all_rows(self, level: float) -> AllRows:
        """Return Wilson's limits of the share, as ln of factors of normal errors."""
        t = special.stdtrit(self.mean.df, level)
        q = 1 / max(1.0, self.mean.n_effective)
        share = np.array(self.mean.value)
        low, high = wilson(share, np.array(q), np.array(t))
        off = self.off_of(share)
        # equal but for rounding
        low, high = np.minimum(low, share), np.maximum(high, share)
        return AllRows(float(off), off - self.off_of(high), self.off_of(low) - off)

    def estimates(self, regions: Regions) -> Estimates:
        """Return the coverage of regions."""
        return CoverageEstimates(self, regions)


class CoverageEstimates(Estimates):
    """Coverage of regions: limits are those of the shift of stretches from all rows.

    Distances of the shift and of all rows add up as squares, and reach the own share.
    ψ rises where it matters, so that regions of another shape need nothing else; where
    a few values of stretches hold all rows, limits are Wilson's of the own share, too.
    """

    def __init__(self, question: Coverage, regions: Regions) -> None:
        values = question.values
        self.question = question
        self.regions = regions
        self.shifts = regions.shifts(question.score)
        self.difference = question.per_shift * self.shifts.d
        self.se = question.per_shift * self.shifts.se
        self.share = np.clip(regions.means(values.is_covered), 0, 1)
        self.q = regions.variance_of_mean(values.is_covered)
        self.off = question.off_of(self.share)

    def limits(self, level: Floats | float, *, is_moderated: bool) -> Limits:
        """Return limits of the coverage, as ln of factors of normal errors."""
        question = self.question
        t = student_t(self.regions, level, is_moderated=is_moderated)
        low_shift, high_shift = (question.per_shift * x for x in self.shifts.limits(t))
        whole = question.all_rows(level)
        low, high = whole.plus(self.difference, low_shift, high_shift)

        far = np.maximum(-low, high)  # a few rows, all covered, tell no factor
        own_low, own_high = self.off, self.off
        if question.is_coarse:
            low_share, high_share = wilson(self.share, self.q, t)
            own_low, own_high = question.off_of(high_share), question.off_of(low_share)
        low, high = np.minimum(low, own_low), np.maximum(high, own_high)
        return Limits(low, high, low_shift, high_shift, far)


def wilson(share: Floats, q: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return Wilson's limits of a share whose variance is q p (1 − p), at Student's t.

    E. B. Wilson, J. Am. Stat. Assoc. 22, 209 (1927), doi:10.1080/01621459.1927.10502953
    """
    t2q = t * t * q
    half = t * np.sqrt(np.maximum(q * share * (1 - share) + t2q * q / 4, 0))
    middle = share + t2q / 2
    return (
        np.clip((middle - half) / (1 + t2q), 0, 1),
        np.clip((middle + half) / (1 + t2q), 0, 1),
    )
