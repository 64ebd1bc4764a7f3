"""Regions: which are right, which are wrong, and which cannot be told.

Every region of every question has limits of how far it is *off*: the logarithm of a
factor (of u, or of the width of intervals), or the mean of z. All limits hold at once.
Those of a region relative to all rows, and those of all rows, are of independent
errors: their distances add up as squares (Zou and Donner 2008). With B the tolerance, a
region is

    kept     both limits lie within ±B
    broken   not kept, and both lie on one side beyond B / 2 (of intervals 3 B / 4)
    open     else

and the answer *no* if one is broken, *yes* if all that were to be looked at are kept,
*cannot tell* else.

References
----------
G. Y. Zou and A. Donner, Stat. Med. 27, 1693 (2008), doi:10.1002/sim.3095.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special, stats

from .._support.checks import Bools, Floats, Ints
from .._support.notices import quiet
from ..distributions import Distributions
from ..predictions import Predictions
from ..scores.intervals import Mean, renumbered, size_interval, sums_of
from ..scores.student import StudentProfile
from . import scan
from .joint import learn_jointly
from .scan import BIAS, COVERAGE, SIZE, Family, Values
from .variables import Variable

State = Literal["kept", "broken", "open"]
SHARES = {"average": 0.15, "bias": 0.025, "coverage": 0.025, "scan": 0.8}  # of the rate
FEWEST = 20  # rows, or groups, below which nothing can be told
# From which part of the tolerance on a region is broken. The shape of z alone moves
# intervals by some: ±1.96 u of lognormal errors are 1.2 times too wide if u is right.
BROKEN = {SIZE: 0.5, BIAS: 0.5, COVERAGE: 0.75}
CAP = 12.0  # times the mean; of larger z², so much is compared
ALIKE = 0.05  # chance by which distributions that are alike look as different
NO_HEAVIER = 2.0  # twice the log-likelihood that tails may lose which are no heavier
HEAVY = 4.0  # degrees of freedom below which the mean of z² is slow to settle
MOST_COMPARED = 4000  # rows that tell whether they are
OWN = 0.05  # rate of the own intervals of all regions of a size
COVERED = 0.95  # what the intervals that are asked about claim to hold
STRETCH = np.geomspace(0.02, 50.0, 161)  # factors of their width that are looked at


@dataclass(frozen=True, eq=False)
class Local:
    """How far all regions of a variable are off, with limits that hold at once.

    Attributes
    ----------
    family : Family
        What was compared.
    off, low, high : array of shape (n_regions,)
        How far each is off, and its limits.
    contrast : array of shape (n_regions,)
        How far t, against the rest of the rows, reaches beyond what chance does; its
        sign is that of the difference, and it is 0 within chance.
    half : array of shape (n_regions,), or None
        Of coverage: by how much a share must exceed 95 % to be told from it.
    """

    family: Family
    off: Floats
    low: Floats
    high: Floats
    contrast: Floats
    half: Floats | None = None

    @property
    def variable(self) -> Variable:
        """The variable."""
        return self.family.variable


@dataclass(frozen=True, eq=False)
class Found:
    """A region that was looked at by itself; of all rows it has no variable."""

    local: Local | None
    region: int
    off: float
    low: float
    high: float
    state: State

    @property
    def contrast(self) -> float:
        """How far it differs from the rest of the rows, more than by chance."""
        if self.local is None:
            return 0.0
        return float(self.local.contrast[self.region] * np.sign(self.off))


class Judge:
    """Looks at some rows, in canonical order, and answers all questions about them."""

    def __init__(
        self,
        rows: Predictions,
        tolerance: float,
        confidence: float,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.tolerance, self.alpha = rows, tolerance, 1 - confidence
        self.groups = rows.groups
        self.w = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        self.z2 = rows.z2
        self.mean = rows.mean(self.z2)
        of_units = self.w if self.groups is None else np.bincount(self.groups, self.w)
        self.units = float(of_units.sum() ** 2 / (of_units @ of_units))
        self.enough = self.units >= FEWEST and self.mean > 0
        self.locals: dict[str, list[Local]] = {}
        self.expected: tuple[Floats, Floats] | None = None
        if self.enough:
            self._scan(rng)

    # -- what is looked at -------------------------------------------------------------

    def bound(self, kind: int) -> float:
        """Return how far off a region may be."""
        return self.tolerance - 1 if kind == BIAS else math.log(self.tolerance)

    def level(self, name: str) -> float:
        """Return the coverage of an interval of all rows."""
        return 1 - SHARES[name] * self.alpha

    @cached_property
    def stretch(self) -> Floats:
        """How far errors are from the middle of 95 % intervals, in half widths."""
        rows = self.rows
        with quiet():  # of levels beyond the rows of a table
            given = rows.distributions or Distributions.normal(rows)
            if rows.is_vector:
                off: Floats = np.sqrt(rows.squared_error * rows.dim)
                return off / np.maximum(given.radius(COVERED), 1e-300)
            low, high = given.interval(COVERED).T
        off = np.abs(rows.target - (low + high) / 2)
        found: Floats = 2 * off / np.maximum(high - low, 1e-300)
        return found

    def _scan(self, rng: np.random.Generator) -> None:
        rows, n = self.rows, self.rows.n_rows
        capped = np.minimum(self.z2, CAP * self.mean)
        reach = float(np.quantile(self.stretch, COVERED))
        # what is equal but for its last bits, as in another unit, is equal
        held = (self.stretch <= reach * (1 + 1e-9)).astype(np.float64)
        z = np.zeros(n) if rows.is_vector else rows.z
        self.values = Values(capped, z, held, self.groups)
        self.size = size_interval(
            self.z2, self.level("average"), self.groups, rows.weights
        )
        variables = Variable.all_of(rows, self.w)
        families = [Family(SIZE, v.name, v) for v in variables]
        if not rows.is_vector:
            families += [Family(BIAS, "bias", v) for v in variables]
        families += [Family(COVERAGE, "coverage", v) for v in variables]
        self.expected = learn_jointly(rows, rng)
        if self.expected is not None:
            v = Variable.of_numbers("joint", *self.expected)
            families.append(Family(SIZE, "joint", v))
        families = [f for f in families if f.variable.n_regions]
        self.variables = {v.name: v for v in variables}
        self.locals = {f.question: [] for f in families}
        if not families:
            return
        in_all = families[-1].variable.w > 0
        chance = scan.by_unit(self.groups, n, rng)
        fits = chance < scan.SHUFFLED / max(1, int(np.count_nonzero(in_all)))
        scan.calibrate(
            families,
            self.values,
            np.flatnonzero(in_all & fits),
            SHARES["scan"] * self.alpha,
            rng,
        )
        make = {SIZE: self._sizes, BIAS: self._biases, COVERAGE: self._coverages}
        for f in families:
            self.locals[f.question].append(make[f.kind](f))

    @cached_property
    def tail(self) -> float:
        """What is part of upper limits only for rarer, larger errors to come."""
        high, likely = self.size.high, self.size.likely
        return 0.0 if math.isinf(likely) else max(0.0, math.log(high / likely) / 2)

    @cached_property
    def is_heavy(self) -> bool:
        """Whether rare large errors, seen or not, decide about the mean of z²."""
        tails = StudentProfile.of(self.z2, self.units, self.rows.weights)
        slow = tails is not None and tails.best < HEAVY
        return slow or self.tail > self.bound(SIZE) / 2

    @cached_property
    def whole(self) -> dict[int, tuple[float, float, float]]:
        """How far all rows are off, and the distances of the limits."""
        groups, weights, found = self.groups, self.rows.weights, {}
        capped = Mean.of(self.values.size, groups, weights).interval(
            self.level("average"), skewed=True
        )
        size = self.size
        low = math.log(capped.value / max(min(capped.low, size.low), 1e-300)) / 2
        high = math.log(max(size.likely, capped.high) / capped.value) / 2
        found[SIZE] = (math.log(size.mean) / 2, low, high)
        z = Mean.of(self.values.bias, groups, weights)
        interval = z.interval(self.level("bias"), skewed=False)
        found[BIAS] = (z.value, z.value - interval.low, interval.high - z.value)
        held = Mean.of(self.values.held, groups, weights)
        n = max(1.0, held.n_effective)
        quantile = float(special.ndtri(0.5 + self.level("coverage") / 2))
        half = quantile * math.sqrt(COVERED * (1 - COVERED) / n) + 0.5 / n
        found[COVERAGE] = (0.0, half, half)
        return found

    def _sizes(self, f: Family) -> Local:
        """Return the factors of u: relative ones with those of all rows."""
        v, share = f.variable, f.variable.shares
        off, low, high = f.relative(self.values)

        def of_all(x: Floats) -> Floats:  # log m_in / m_out -> log m_in / m_all, halved
            return -np.log(share + (1 - share) * np.exp(-x)) / 2

        n = v.summed(v.sizes)
        capped = v.summed(self.values.sums(v)[:, 0])
        centre = np.log(np.maximum(capped, 1e-300) / n) / 2
        value = np.log(np.maximum(v.summed(v.sums(self.z2)), 1e-300) / n) / 2
        with np.errstate(over="ignore"):
            down, up = of_all(off) - of_all(low), of_all(high) - of_all(off)
        _, all_down, all_up = self.whole[SIZE]
        lower = np.minimum(centre - np.hypot(down, all_down), value)
        upper = np.maximum(centre + np.hypot(up, all_up) + self.tail, value)
        return Local(f, value, lower, upper, _contrast(low, high))

    def _biases(self, f: Family) -> Local:
        """Return means of z."""
        v, share = f.variable, f.variable.shares
        off, low, high = f.relative(self.values)
        value = v.summed(self.values.sums(v)[:, 2]) / v.summed(v.sizes)
        _, all_down, all_up = self.whole[BIAS]
        down = np.hypot((1 - share) * (off - low), all_down)
        up = np.hypot((1 - share) * (high - off), all_up)
        return Local(f, value, value - down, value + up, _contrast(low, high))

    def _coverages(self, f: Family) -> Local:
        """Return by what intervals must be stretched to hold 95 %.

        Limits of a stretch are where the share that it holds differs from 95 % by as
        much as chance does.
        """
        v = f.variable
        off, low, high = f.relative(self.values)
        down, up = (
            np.hypot((1 - v.shares) * x, self.whole[COVERAGE][1])
            for x in (high - off, off - low)
        )
        by_bin = v.codes * (STRETCH.size + 1) + self._stretch_codes
        counts = sums_of(by_bin, v.w, v.n_bins * (STRETCH.size + 1))
        counts = np.cumsum(counts.reshape(v.n_bins, -1), axis=1)[:, :-1]
        held = v.summed(counts) / v.summed(v.sizes)[:, None]
        return Local(f, *_stretches(held, down, up), -_contrast(low, high), up)

    @cached_property
    def _stretch_codes(self) -> Ints:
        return np.searchsorted(STRETCH, self.stretch)

    @cached_property
    def all_stretch(self) -> tuple[float, float, float]:
        """The stretch that all rows need, and its limits."""
        held = np.bincount(self._stretch_codes, self.w, STRETCH.size + 1)
        held = np.cumsum(held)[:-1]
        share, half = held[None, :] / self.w.sum(), self.whole[COVERAGE][1]
        value, low, high = (
            float(x[0]) for x in _stretches(share, *np.full((2, 1), half))
        )
        return value, low, high

    # -- what is found -----------------------------------------------------------------

    def state(self, kind: int, low: float, high: float) -> State:
        """Return whether a region with these limits is kept, broken or open."""
        bound = self.bound(kind)
        if -bound <= low and high <= bound:
            return "kept"
        far = BROKEN[kind] * bound
        return "broken" if low > far or high < -far else "open"

    def is_broken(self, local: Local) -> Bools:
        """Return which regions are broken."""
        bound, low, high = self.bound(local.family.kind), local.low, local.high
        kept = (low >= -bound) & (high <= bound)
        far = BROKEN[local.family.kind] * bound
        found: Bools = ~kept & ((low > far) | (high < -far))
        return found

    def look(self, local: Local, region: int) -> Found:
        """Look at a region by itself: its limits reach as far as its own interval.

        Limits of the scan know how z is distributed in all rows; those of a region
        whose z has another shape must rest on its own.
        """
        kind, v = local.family.kind, local.variable
        off, low, high = (float(x[region]) for x in (local.off, local.low, local.high))
        if self.state(kind, low, high) != "kept" and not low <= 0 <= high:
            own = self.own_limits(kind, v.inside(region), float(v.shares[region]))
            low, high = min(low, own[0]), max(high, own[1])
        return Found(local, region, off, low, high, self.state(kind, low, high))

    def own_limits(self, kind: int, inside: Bools, share: float) -> tuple[float, float]:
        """Return limits of some rows that do not rest on the shape of others."""
        level = 1 - OWN * min(share, 1 - share)
        groups, weights = renumbered(self.groups, inside), self.rows.weights
        if weights is not None:
            weights = weights[inside]
        if kind == SIZE:
            size = size_interval(
                self.z2[inside],
                level,
                groups,
                weights,
                share=share,
                least_df=self._known_tails(inside),
            )
            return _half_log(size.low), _half_log(size.high)
        if kind == BIAS:
            mean = Mean.of(self.values.bias[inside], groups, weights)
            interval = mean.interval(level, skewed=False)
            return interval.low, interval.high
        held = self.stretch[inside]
        n = Mean.of((held <= 1).astype(np.float64), groups, weights).n_effective
        half = float(special.ndtri(0.5 + level / 2))
        half *= math.sqrt(COVERED * (1 - COVERED) / max(n, 1.0))
        w = np.ones(held.size) if weights is None else weights
        order = np.argsort(held)
        shares = np.cumsum(w[order]) / w.sum()
        ends = np.searchsorted(shares, [COVERED - half, COVERED + half])
        at = [held[order[i]] if i < held.size else np.inf for i in ends]
        return math.log(max(at[0], 1e-300)), math.log(max(at[1], 1e-300))

    def _known_tails(self, inside: Bools) -> float:
        """Return the fewest degrees of freedom that the rest of the rows leave.

        They tell how heavy tails may be if the distributions of z are alike but for
        their scale, and the tails of the rows no heavier.
        """
        z = np.sqrt(self.z2) if self.rows.is_vector else self.values.bias
        here, rest = z[inside], z[~inside]
        rest = rest[:: -(-rest.size // MOST_COMPARED)]
        if min(here.size, rest.size) < FEWEST:
            return 0.0
        units = [x / max(float(np.abs(x).mean()), 1e-300) for x in (here, rest)]
        if stats.ks_2samp(*units, method="asymp").pvalue <= ALIKE:
            return 0.0
        known = StudentProfile.of(rest**2, rest.size)
        own = StudentProfile.of(here**2, here.size)
        if known is None or own is None:
            return 0.0
        least = known.heaviest
        return least if own.lost_by(least) <= NO_HEAVIER else 0.0

    def worst(self, question: str) -> tuple[Found | None, Found | None]:
        """Return the region at fault, and one that only looked so; None if none did.

        Of regions that are broken the one counts that differs most from the rest of the
        rows, in the direction in which it is off; at each scale this one is looked at,
        and the one that is off most surely.
        """
        doubt, found = None, []
        for local in self.locals.get(question, []):
            broken = self.is_broken(local)
            score = np.where(broken, local.contrast * np.sign(local.off), -np.inf)
            for scale in local.variable.scales[0]:
                of_scale = broken & (local.variable.regions[2] == scale)
                for sign, limit in ((1, local.low), (-1, -local.high)):
                    here = of_scale & (np.sign(local.off) == sign)
                    if not here.any():
                        continue
                    for order in (score, limit):
                        best = int(np.argmax(np.where(here, order, -np.inf)))
                        found.append((float(score[best]), local, best))
        found.sort(key=lambda each: (-each[0], -each[1].variable.shares[each[2]]))
        for _, local, region in found:
            seen = self.look(local, region)
            if seen.state == "broken":
                return seen, doubt
            doubt = doubt or seen
        return None, doubt


def _contrast(low: Floats, high: Floats) -> Floats:
    """Return how far limits are from 0, in their width, and on which side."""
    width = np.maximum(high - low, 1e-300)
    with np.errstate(invalid="ignore"):
        found = np.where(low > 0, low / width, np.where(high < 0, high / width, 0.0))
    return found


def _half_log(x: float) -> float:
    return math.log(max(x, 1e-300)) / 2 if math.isfinite(x) else math.inf


def _stretches(held: Floats, down: Floats, up: Floats) -> tuple[Floats, Floats, Floats]:
    """Return logarithms of the stretches at which 95 % are held, and less, and more.

    `held` has a region a row, and the shares within each stretch.
    """
    row, log, found = np.arange(up.size), np.log(STRETCH), []
    ends = ((log[0], log[-1]), (-np.inf, log[-1]), (log[0], np.inf))
    for by, (least, most) in zip((0 * up, -down, up), ends, strict=True):
        target = COVERED + by
        enough = held >= target[:, None]
        at = np.argmax(enough, axis=1)
        before = np.maximum(at - 1, 0)
        left, right = held[row, before], held[row, at]
        part = np.clip((target - left) / np.maximum(right - left, 1e-12), 0, 1)
        between = log[before] + part * (log[at] - log[before])
        between = np.where(at == 0, least, between)
        found.append(np.where(enough.any(axis=1), between, most))
    return found[0], found[1], found[2]
