"""Do intervals cover as they claim? The share of true values within them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import special

from ..._support.checks import Bools, Floats
from ...scores.intervals import Mean
from ..regions import Regions
from ..scores import SHIFTS, STEP, ZERO, Score
from ..values import Values
from .question import FAR, AllRows, Estimates, Limits, Question, student_t

# ψ rises from 0 to 1 between the quantiles that leave so many times (1 − coverage)
WIDEST = 3.0
NARROWEST = 0.3


class Coverage(Question):
    """Off is ln of the factor by which normal errors of that coverage are too large.

    Intervals of normal errors f times as large as claimed cover P(χ²_d < q / f²), with
    q the quantile that is claimed and d the components of an error.
    """

    kind = "coverage"
    statistic = "coverage"
    unit = "share"
    scopes = ("intervals", "both")

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.dim = values.rows.dim if values.rows.is_vector else 1
        self.claimed = float(special.chdtri(self.dim, 1 - values.coverage))

    def as_read(self, off: float) -> float:
        """Return the coverage of normal errors so much too large."""
        return float(self.share_of(np.array(off)))

    def share_of(self, off: Floats) -> Floats:
        """Return the coverage of normal errors so much too large."""
        return np.asarray(special.chdtr(self.dim, self.claimed * np.exp(-2 * off)))

    def off_of(self, share: Floats) -> Floats:
        """Return by ln of what factor normal errors are too large with a coverage."""
        if self.dim == 1:  # of normal z², which is faster than of any χ²
            quantile = special.ndtri((1 + share) / 2) ** 2
        else:
            quantile = special.chdtri(self.dim, np.clip(1 - share, 0, 1))
        with np.errstate(divide="ignore"):
            off = 0.5 * np.log(self.claimed / quantile)
        return np.asarray(np.clip(off, -FAR, FAR))

    @cached_property
    def score(self) -> Score:
        """ψ of ln of the stretch that covers a row, clipped and rising, around 0."""
        values = self.values
        missed = 1 - values.coverage
        at_level = float(np.quantile(values.stretch, values.coverage))
        x = np.log(np.maximum(values.stretch, 1e-9 * max(at_level, 1e-300)))
        shares = [max(1 - WIDEST * missed, values.coverage / 4), 1 - NARROWEST * missed]
        a, b = values.quantiles(x, np.array(shares)).tolist()
        b = max(b, a + 1e-6)

        def psi(x: Floats) -> Floats:
            return np.asarray(np.clip((x - a) / (b - a), 0, 1))

        return Score.of(x, values.w, psi, (a - 3, b + 3))

    @property
    def influence(self) -> Floats:
        """The clipped stretch."""
        return self.score.psi

    @cached_property
    def mean(self) -> Mean:
        """The share of true values within intervals, of all rows."""
        values = self.values
        return Mean.of(values.is_covered, values.groups, values.rows.weights)

    @cached_property
    def _covered_by_shift(self) -> Floats:
        """The share that all intervals cover, stretched by exp(shift)."""
        x = np.log(np.maximum(self.values.stretch, 1e-300))
        place = np.searchsorted(SHIFTS + 1e-9, x)
        counts = np.bincount(place, self.values.w, SHIFTS.size + 1)
        return np.asarray(np.cumsum(counts)[:-1] / self.values.w.sum())

    def covered(self, shift: Floats) -> Floats:
        """Return the share that all intervals cover if they are so much wider."""
        return np.interp(shift, SHIFTS, self._covered_by_shift)

    def shift_of(self, share: Floats) -> Floats:
        """Return by ln of what factor all intervals must be wider for a coverage."""
        # flat stretches, where nothing is covered more, are passed by the nearest end
        line = self._covered_by_shift + 1e-12 * np.arange(SHIFTS.size)
        return np.interp(share, line, SHIFTS)

    def _all_rows(self, level: float) -> AllRows:
        """Return the limits of the share, as ln of factors of normal errors."""
        off = self.off_of(np.array(self.mean.value))
        low, high = self.share_limits(level)
        return AllRows(
            float(off),
            off - self.off_of(np.array(high)),
            self.off_of(np.array(low)) - off,
        )

    def share_limits(self, level: float) -> tuple[float, float]:
        """Return Wilson's limits of the share of all rows."""
        t = float(special.stdtrit(self.mean.df, level))
        n = max(1.0, self.mean.n_effective)
        low, high = wilson(np.array(self.mean.value), np.array(1 / n), np.array(t))
        return float(low), float(high)

    def estimates(self, regions: Regions) -> Estimates:
        """Return the coverage of regions."""
        return CoverageEstimates(self, regions)


class CoverageEstimates(Estimates):
    """Coverage of regions: limits are those of the shift of stretches from all rows.

    What a shift d means for the coverage follows from the stretches of all rows: it is
    the share that they cover if they are wider by exp(−d). Limits reach the own share;
    regions of another shape have Wilson's limits, too.
    """

    def __init__(self, question: Coverage, regions: Regions) -> None:
        values = question.values
        self.question = question
        self.regions = regions
        self.shifts = regions.shifts(question.score)
        self.difference = self.shifts.d
        self.se = self.shifts.se
        self.share = np.clip(regions.means(values.is_covered), 0, 1)
        self.off = question.off_of(self.share)

        # the own share as a shift, and the influence of each row on it
        own = -question.shift_of(self.share)
        less, more = question.covered(SHIFTS[[ZERO - 1, ZERO + 1]])
        slope = max((more - less) / (2 * STEP), 1e-9)
        influence = (question.mean.value - values.is_covered) / slope
        self.has_own_shape: Bools = self.shifts.has_own_shape(own, influence)
        self.q = regions.variance_of_mean(values.is_covered)

    def limits(self, level: Floats | float, *, is_moderated: bool) -> Limits:
        """Return limits of the coverage, as ln of factors of normal errors."""
        question = self.question
        t = student_t(self.regions, level, is_moderated=is_moderated)
        low_shift, high_shift = self.shifts.limits(t)
        d = self.shifts.d

        # limits of all rows as shifts of their stretches
        whole = question.all_rows(level)
        share_low = question.share_of(whole.off + whole.up)
        share_high = question.share_of(whole.off - whole.down)
        down = -question.shift_of(share_low)
        up = question.shift_of(share_high)

        narrow = -d - np.hypot(high_shift - d, np.maximum(down, 0))
        wide = -d + np.hypot(d - low_shift, np.maximum(up, 0))
        low, high = question.covered(narrow), question.covered(wide)
        own_low, own_high = wilson(self.share, self.q, t)
        low = np.minimum(low, np.where(self.has_own_shape, own_low, self.share))
        high = np.maximum(high, np.where(self.has_own_shape, own_high, self.share))
        return Limits(
            question.off_of(high), question.off_of(low), low_shift, high_shift
        )


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
