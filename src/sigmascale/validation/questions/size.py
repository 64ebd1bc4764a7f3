"""Is the size of u right? RMS z, the root mean square of z; ideally 1."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import special

from ..._support.checks import Bools, Floats
from ...scores.intervals import Mean, abc_limits
from ...scores.student import DF, profile_losses
from ..regions import Regions
from .question import FAR, AllRows, Estimates, Limits, Question, student_t

TRIMMED = 0.95  # the quantile at which a lower limit is taken, too
N_RUNS = 1000  # of sorted z², of which the middle stands for each, and largest z²
# where the largest 1 % of the errors hold 30 % of z², four fifths of them with one
# sign, limits of all rows have a fifth of the error rate
TOP_SHARE = 0.01
TOP_HOLDS = 0.3
ONE_SIGN = 0.8
STRICTER = 5.0


class SizeOfU(Question):
    """Off is ln RMS z: the logarithm of the factor that u wants."""

    kind = "calibration"
    statistic = "RMS z"
    scopes = ("u", "both")
    is_by_column = True

    @property
    def influence(self) -> Floats:
        """The capped z²."""
        return self.values.capped.psi

    def estimates(self, regions: Regions) -> Estimates:
        """Return ln RMS z of regions."""
        return SizeEstimates(self, regions)

    # -- all rows ----------------------------------------------------------------------

    @cached_property
    def _of_z2(self) -> Mean:
        return Mean.of(self.values.z2, self.values.groups, self.values.rows.weights)

    @cached_property
    def _of_trimmed(self) -> Mean:
        z2 = self.values.z2
        trimmed = np.minimum(z2, np.quantile(z2, TRIMMED))
        return Mean.of(trimmed, self.values.groups, self.values.rows.weights)

    def _all_rows(self, level: float) -> AllRows:
        """Return ½ ln ⟨z²⟩ by ABC, upwards also by every Student's t that is possible.

        Downwards, a few enormous errors never make u look better: limits are also those
        of trimmed z².
        """
        if self.is_lopsided:
            level = 1 - (1 - level) / STRICTER
        of_all = self._of_z2.interval(2 * level - 1, skewed=True)
        of_trimmed = self._of_trimmed.interval(2 * level - 1, skewed=True)
        centre = np.log(self._of_z2.value)
        low = np.log(max(of_all.low, of_trimmed.low, 1e-300))
        high = centre + 2 * FAR
        if np.isfinite(of_all.high):
            high = np.log(of_all.high)
        high = max(high, self._heaviest(float(special.ndtri(level))))
        down = np.asarray(max(0.0, centre - low) / 2)
        return AllRows(centre / 2, down, np.asarray(max(0.0, high - centre) / 2))

    @cached_property
    def is_lopsided(self) -> bool:
        """Whether few errors of one sign hold much of z²: moments tell little then."""
        values = self.values
        k = max(10, int(values.z2.size * TOP_SHARE))
        if values.rows.is_vector or values.z2.size <= 5 * k:
            return False
        top = np.argpartition(values.z2, -k)[-k:]
        holds = values.z2[top].sum() > TOP_HOLDS * values.z2.sum()
        return bool(holds and abs(np.sign(values.rows.z[top]).sum()) >= ONE_SIGN * k)

    @cached_property
    def _profile(self) -> tuple[Floats, Floats, Floats]:
        """The ln ⟨z²⟩, loss and variance of ln s² of Student's t, on a line of ν."""
        from scipy.interpolate import PchipInterpolator

        # of many rows, the middle of each of many runs and all of the largest
        order = np.argsort(self.values.z2, kind="stable")
        z2 = self.values.z2[order]
        w = self.values.w[order]
        share = float(w[z2 > 0].sum() / w.sum())
        w = w[z2 > 0]
        z2 = z2[z2 > 0]
        if z2.size > 2 * N_RUNS:
            head = z2.size - N_RUNS
            starts = np.linspace(0, head, N_RUNS + 1).astype(int)[:-1]
            middle = np.minimum(starts + head // (2 * N_RUNS), head - 1)
            z2 = np.append(z2[middle], z2[head:])
            w = np.append(np.add.reduceat(w[:head], starts), w[head:])

        # a few enormous errors do not tell how dependent rows are: trimmed ones do
        n = self._of_trimmed.n_effective * share
        scale2, loss = profile_losses(z2, w / w.sum(), n, DF, 1e-4)
        known = np.log(DF - 2)
        line = np.linspace(known[0], known[-1], 400)
        nu = 2 + np.exp(line)
        log_scale2 = PchipInterpolator(known, np.log(scale2))(line)
        loss = PchipInterpolator(known, loss)(line)
        log_mean = np.log(share * nu / (nu - 2)) + log_scale2
        return log_mean, loss - loss.min(), 2 * (1 + 3 / nu) / n

    def _heaviest(self, q: float) -> float:
        """Return max of ln ⟨z²⟩ + √((q² − loss) · var ln s²) over ν with loss ≤ q²."""
        log_mean, loss, variance = self._profile
        left = np.maximum(q * q - loss, 0)
        highest = np.where(loss <= q * q, log_mean + np.sqrt(left * variance), -np.inf)
        return float(highest.max())


class SizeEstimates(Estimates):
    """ln RMS z of regions: limits are those of their shift from all rows.

    Distances of the shift and of all rows add up as squares, and reach the own RMS z;
    regions of another shape have the limits of their own ⟨z²⟩, too.
    """

    def __init__(self, question: SizeOfU, regions: Regions) -> None:
        values = question.values
        self.question = question
        self.regions = regions
        self.shifts = regions.shifts(values.capped)
        self.difference = self.shifts.d
        self.se = self.shifts.se

        # the own mean of z² in units of that of all rows, its variance and skewness
        x = values.z2 / values.mean_z2
        first, second, third = (regions.means(x**k) for k in (1, 2, 3))
        variance = np.maximum(second - first**2, 1e-15 * (second + 1e-9))
        skewness = (third - 3 * first * second + 2 * first**3) / variance**1.5
        q = self.shifts.q
        self.mean = first
        self.second = variance * q
        self.third = skewness * np.sqrt(q) * self.second**1.5
        self.off_of_all = 0.5 * np.log(values.mean_z2)
        own = 0.5 * np.log(np.maximum(first, 1e-300))
        self.off = own + self.off_of_all
        self.has_own_shape: Bools = self.shifts.has_own_shape(own, (x - 1) / 2)

    def limits(self, level: Floats | float, *, is_moderated: bool) -> Limits:
        """Return limits of ln RMS z."""
        t = student_t(self.regions, level, is_moderated=is_moderated)
        low_shift, high_shift = self.shifts.limits(t)
        whole = self.question.all_rows(level)
        low, high = whole.plus(self.shifts.d, low_shift, high_shift)

        own = abc_limits(1.0, self.mean, self.second, self.third, t)
        own_low, own_high = (
            self.off_of_all + 0.5 * np.log(np.maximum(x, 1e-300)) for x in own
        )
        own_low = np.where(self.has_own_shape, own_low, self.off)
        own_high = np.where(self.has_own_shape, own_high, self.off)
        return Limits(
            np.minimum(low, own_low), np.maximum(high, own_high), low_shift, high_shift
        )
