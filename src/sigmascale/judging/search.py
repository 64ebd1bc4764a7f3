"""Search: simultaneous limits of all runs, labels and combinations.

For every question and every region the mean of something is compared with that of the
rest of the rows by a *moderated Welch t*:

    size      x = min(z², cap)         log(m_in / m_out) / se
    bias      x = z                    (m_in − m_out) / se
    coverage  x = [interval holds]     (m_in − m_out) / se, with the variance of a share

In the first two, each side has its own variance, to which `PRIOR` rows of the overall
one are added (Smyth 2004). How large the largest t is by chance is told by sets in
which z-scores are shuffled over the rows, groups together: exact if z has one
distribution everywhere, and right in the limit if only its shape differs, because t is
studentised (Chung and Romano 2013). The largest t of a shuffled set, over all
questions, regions and scales (Westfall and Young 1993), makes limits that hold at once.

Limits of a region relative to all rows, and those of all rows, are of independent
errors: their distances add up as squares (Zou and Donner 2008). None of them depends on
the tolerance.

References
----------
G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), doi:10.2202/1544-6115.1027;
E. Chung and J. P. Romano, Ann. Statist. 41, 484 (2013), doi:10.1214/13-AOS1090;
P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993);
G. Y. Zou and A. Donner, Stat. Med. 27, 1693 (2008), doi:10.1002/sim.3095.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.checks import Bools, Floats, Ints
from .questions import Question, Values, Whole
from .variables import SCALES, Variable

OF_RUNS = 0.8  # of the error rate, that the search takes
DRAWS, MOST_DRAWS, SHUFFLED = 400, 4000, 5000  # shuffled sets, and rows of each at most
SHUFFLED_AT_A_TIME = 2**18  # numbers that are shuffled at a time
PRIOR = 100.0  # rows of the overall variance that are added to a part's own
OWN = 0.05  # rate of the own intervals of all regions of a size
# of a simultaneous distance, what the 95 % limit of one region takes
SHARE_OF_ONE_REGION = 0.4
REGIONS_LOOKED_AT = 4  # by themselves, for a lower limit


@dataclass(eq=False)
class Inquiry:
    """One question that is asked of all regions of one variable.

    Attributes
    ----------
    name : str
        The name of the question in verdicts: "u" or "mass", "bias", "coverage".
    question : Question
        What is asked.
    variable : Variable
        The variable.
    critical : array of shape (2, n_scales)
        How far t reaches by chance, upwards and downwards, by scale.
    """

    name: str
    question: Question
    variable: Variable
    critical: Floats = field(default_factory=lambda: np.empty(0))

    def compare(self, v: Variable, sums: Floats) -> tuple[Floats, Floats]:
        """Return how much regions differ from the rest, and the standard error.

        `sums` has bins in rows, sets in columns, and columns of :class:`Values` along
        its last axis; so have the results regions in rows and sets in columns.
        """
        first = self.question.first
        s1 = v.summed(sums[:, :, first])
        n1 = np.maximum(v.summed(v.sizes), 1e-300)[:, None]
        n0 = np.maximum(v.sizes.sum() - n1, 1e-300)
        total, n = sums[:, :, first].sum(axis=0), v.sizes.sum()
        q1, q0 = (q[:, None] for q in v.one_over_n)
        mean = total / n
        if first + 1 == sums.shape[2]:  # of shares, whose mean tells their variance
            se = np.sqrt(np.maximum(mean * (1 - mean), 1e-9 / n) * (q1 + q0))
            return s1 / n1 - (total - s1) / n0, se
        squares = sums[:, :, first + 1]
        s2, all_squares = v.summed(squares), squares.sum(axis=0)
        spread = all_squares / n - mean**2
        # the region and the rest: a variance is its own, and some rows of the overall
        sides = ((s1, s2, n1, q1), (total - s1, all_squares - s2, n0, q0))
        variance, centres = np.zeros_like(s1), []
        for x, xx, m, q in sides:
            centre, own, unit = self.question.moments(x, xx, m, mean)
            centres.append(centre)
            pooled = m * np.maximum(own, 0) + PRIOR * spread / unit
            variance += pooled * (q / (m + PRIOR))
        return centres[0] - centres[1], np.sqrt(np.maximum(variance, 1e-300))

    def largest(self, v: Variable, sums: Floats) -> Floats:
        """Return the largest t of each scale, upwards and then downwards, of each set.

        A share near 1 cannot rise far, the less the fewer rows there are: upwards, both
        sides count by halves, as some of the rows tell too little of all of them.
        """
        t, se = self.compare(v, sums)
        t /= se
        up = np.maximum.reduceat(t, v.scales[1])
        down = -np.minimum.reduceat(t, v.scales[1])
        if self.question.sign < 0:
            up, down = (up + down) / 2, np.maximum(up, down)
        return np.concatenate([up, down])

    def limits(self, values: Values, whole: Whole, sums: Floats) -> RegionLimits:
        """Return how far all regions are off, once critical values are known."""
        v = self.variable
        off, se = (x[:, 0] for x in self.compare(v, sums[:, None, :5]))
        up, down = self.critical[:, v.regions[2]]
        relative = off, off - up * se, off + down * se
        absolute = self.question.absolute(values, v, sums, relative, whole)
        contrast = self.question.sign * _contrast(*relative[1:])
        return RegionLimits(self, *absolute, contrast)


@dataclass(frozen=True, eq=False)
class RegionLimits:
    """How far all regions of a variable are off, with limits that hold at once.

    Attributes
    ----------
    family : Inquiry
        What was compared.
    off, low, high : array of shape (n_regions,)
        How far each is off, and its limits.
    contrast : array of shape (n_regions,)
        How far the limits of its difference from the rest of the rows are from 0, in
        their width; its sign is that of the difference, and it is 0 within chance.
    """

    family: Inquiry
    off: Floats
    low: Floats
    high: Floats
    contrast: Floats

    @property
    def variable(self) -> Variable:
        """The variable."""
        return self.family.variable

    @property
    def outwards(self) -> Floats:
        """How far each region differs from the rest, in the direction it is off."""
        return np.asarray(self.contrast * np.sign(self.off))

    def beyond(self, bound: float) -> Bools:
        """Return which regions lie beyond a bound by their limits."""
        return np.asarray((self.low > bound) | (self.high < -bound))


@dataclass(frozen=True, eq=False)
class Finding:
    """A region that was looked at by itself; of all rows it has no limits of regions.

    Attributes
    ----------
    question : Question
        What was asked.
    limits : RegionLimits or None
        Those of all regions of its variable.
    region : int
        Its place among these.
    off, low, high : float
        How far it is off, and its limits.
    """

    question: Question
    limits: RegionLimits | None
    region: int
    off: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """Its limits."""
        return self.low, self.high

    @property
    def contrast(self) -> float:
        """How far it differs from the rest of the rows, more than by chance."""
        return 0.0 if self.limits is None else float(self.limits.outwards[self.region])

    @property
    def share(self) -> float:
        """Its share of the rows."""
        if self.limits is None:
            return 1.0
        return float(self.limits.variable.shares[self.region])

    def beyond(self, bound: float) -> bool:
        """Return whether it lies beyond a bound."""
        return self.low > bound or self.high < -bound


@dataclass(frozen=True, eq=False)
class Search:
    """What was found: limits of all regions, by the name of a question.

    Attributes
    ----------
    values : Values
        The rows.
    wholes : dict of Question to Whole
        How far all rows are off.
    limits : dict of str to tuple of RegionLimits
        Those of all variables that a question is asked of.
    """

    values: Values
    wholes: dict[Question, Whole]
    limits: dict[str, tuple[RegionLimits, ...]]
    _looked: dict[tuple[int, int], Finding] = field(default_factory=dict, repr=False)

    def whole(self, question: Question) -> Finding:
        """Return how far all rows are off."""
        whole = self.wholes[question]
        return Finding(question, None, -1, whole.off, whole.low, whole.high)

    def look(self, limits: RegionLimits, region: int) -> Finding:
        """Look at a region by itself: its limits reach as far as its own interval.

        Limits of the search know how z is distributed in all rows; those of a region
        whose z has another shape must rest on its own.
        """
        key = id(limits), region
        if key not in self._looked:
            self._looked[key] = self._looked_at(limits, region)
        return self._looked[key]

    def _looked_at(self, limits: RegionLimits, region: int) -> Finding:
        question, v = limits.family.question, limits.variable
        arrays = (limits.off, limits.low, limits.high)
        off, low, high = (float(x[region]) for x in arrays)
        if not low <= 0 <= high:
            share = float(v.shares[region])
            level = 1 - OWN * min(share, 1 - share)
            inside = v.inside(region)
            own = question.own_limits(self.values, inside, share, level)
            low, high = min(low, own[0]), max(high, own[1])
        return Finding(question, limits, region, off, low, high)

    def fault(self, name: str, bound: float) -> Finding | None:
        """Return the region that is surely beyond a bound, or None.

        Of such regions the one counts that differs most from the rest of the rows, in
        the direction in which it is off; at each scale this one is looked at, and the
        one that is off most surely.
        """
        candidates = []
        for limits in self.limits.get(name, ()):
            candidates += list(_candidates(limits, bound))
        candidates.sort(key=lambda c: (-c[0], -c[1].variable.shares[c[2]]))
        for _, limits, region in candidates:
            finding = self.look(limits, region)
            if finding.beyond(bound):
                return finding
        return None

    def suspect(self, name: str, bound: float) -> Finding | None:
        """Return the region that is off, and alone would be beyond a bound, or None.

        A limit of one region, which did not have to be found among many, is at 0.4 of
        the distance of a simultaneous one.
        """
        best, most = None, 0.0
        for limits in self.limits.get(name, ()):
            off = limits.off
            limit = np.where(off > 0, limits.low, limits.high)
            alone = off + SHARE_OF_ONE_REGION * (limit - off)
            score = np.where(
                (np.abs(alone) > bound) & limits.beyond(0.0), limits.outwards, 0.0
            )
            region = int(np.argmax(score)) if score.size else 0
            if score.size and score[region] > most:
                best, most = (limits, region), float(score[region])
        if best is None:
            return None
        finding = self.look(*best)  # its own rows must say so, too
        return finding if finding.beyond(0.0) else None

    def at_least(self, name: str, share: float, floor: float) -> float:
        """Return how far some region with such a share of the rows is off at least.

        Nothing is looked at that is below a `floor`.
        """
        largest = floor
        for limits in self.limits.get(name, ()):
            far = np.maximum(limits.low, -limits.high)
            far = np.where(limits.variable.shares >= share * (1 - 1e-6), far, 0.0)
            for region in np.argsort(-far, kind="stable")[:REGIONS_LOOKED_AT]:
                if far[region] <= largest:
                    break
                finding = self.look(limits, int(region))
                largest = max(largest, finding.low, -finding.high)
        return largest


def _candidates(
    limits: RegionLimits, bound: float
) -> Iterator[tuple[float, RegionLimits, int]]:
    """Yield the regions of each scale that are beyond a bound most clearly."""
    broken = limits.beyond(bound)
    if not broken.any():
        return
    score = np.where(broken, limits.outwards, -np.inf)
    for scale in limits.variable.scales[0]:
        of_scale = broken & (limits.variable.regions[2] == scale)
        for sign, limit in ((1, limits.low), (-1, -limits.high)):
            here = of_scale & (np.sign(limits.off) == sign)
            if not here.any():
                continue
            for order in (score, limit):
                best = int(np.argmax(np.where(here, order, -np.inf)))
                yield float(score[best]), limits, best


def _contrast(low: Floats, high: Floats) -> Floats:
    """Return how far limits are from 0, in their width, and on which side."""
    width = np.maximum(high - low, 1e-300)
    with np.errstate(invalid="ignore"):
        above = np.where(low > 0, low / width, 0.0)
        return np.asarray(np.where(high < 0, high / width, above))


# -- how it is calibrated --------------------------------------------------------------


def search(
    values: Values,
    families: Iterable[Inquiry],
    questions: Iterable[Question],
    rate: float,
    rng: np.random.Generator,
) -> Search:
    """Look at all regions; limits of all of them hold at once but at an error rate."""
    wholes = {x: x.whole(values, 1 - x.share_of_all * rate) for x in questions}
    asked = [f for f in families if f.variable.n_regions]
    limits: dict[str, list[RegionLimits]] = {f.name: [] for f in asked}
    if asked:
        some = shuffled_rows(values, asked[-1].variable.w, rng)
        _calibrate(asked, values, some, OF_RUNS * rate, rng)
        for f in asked:
            of_f = f.limits(values, wholes[f.question], values.by_bin(f.variable))
            limits[f.name].append(of_f)
    return Search(values, wholes, {name: tuple(x) for name, x in limits.items()})


def shuffled_rows(values: Values, w: Floats, rng: np.random.Generator) -> Ints:
    """Return which rows are shuffled: some of those with weights, groups together."""
    used: Bools = w > 0
    n_used = max(1, int(np.count_nonzero(used)))
    chance = by_unit(values.groups, w.size, rng)
    return np.flatnonzero(used & (chance < SHUFFLED / n_used))


def gathers(variables: Iterable[Variable], some: Ints) -> dict[int, sparse.csc_array]:
    """Return, for each variable, what makes sums by bin of columns of some rows."""
    ends = np.arange(some.size + 1)
    return {
        id(v): sparse.csc_array((v.w[some], v.codes[some], ends), (v.n_bins, some.size))
        for v in variables
    }


def groups_of(values: Values, some: Ints) -> Ints | None:
    """Return the groups of some rows, numbered without gaps."""
    if values.groups is None:
        return None
    return np.unique(values.groups[some], return_inverse=True)[1]


def _calibrate(
    families: list[Inquiry],
    values: Values,
    some: Ints,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Set the critical values of all families, from shuffled sets of some of the rows.

    All statistics of a set come from the same shuffle: each is in units of its spread
    by chance, so that the number of scales, or of variables, dilutes none of them.
    """
    variables = {id(f.variable): f.variable for f in families}
    gather = gathers(variables.values(), some)
    of_some = {key: v.some(some) for key, v in variables.items()}
    columns, groups = values.columns[some], groups_of(values, some)
    n_draws = int(np.clip(2 / rate, DRAWS, MOST_DRAWS))
    block = int(np.clip(SHUFFLED_AT_A_TIME // some.size, 4, 64))
    blocks = []
    for first in range(0, n_draws, block):
        count = min(block, n_draws - first)
        drawn = columns[shuffles(some.size, groups, count, rng)]
        flat = drawn.reshape(some.size, -1)
        sums = {
            key: (g @ flat).reshape(-1, count, columns.shape[1])
            for key, g in gather.items()
        }
        keys = [(f, id(f.variable)) for f in families]
        largest = [f.largest(of_some[key], sums[key]) for f, key in keys]
        blocks.append(np.concatenate(largest))
    draws = np.concatenate(blocks, axis=1)
    # the largest of all statistics of a set, each in units of its spread
    counts = [2 * f.variable.scales[0].size for f in families]
    behind = np.repeat([f.question.behind for f in families], counts)
    sd = np.maximum(draws.std(axis=1), 1e-9)
    mean = draws.mean(axis=1) + behind * sd
    maxima = np.sort(((draws - mean[:, None]) / sd[:, None]).max(axis=0))[::-1]
    limit = mean + sd * maxima[max(0, int(rate * (1 + maxima.size) + 1e-9) - 1)]
    for f, part in zip(families, np.split(limit, np.cumsum(counts)[:-1]), strict=True):
        f.critical = np.full((2, len(SCALES) + 1), np.inf)
        f.critical[:, f.variable.scales[0]] = part.reshape(2, -1)


def shuffles(
    n: int, groups: Ints | None, n_draws: int, rng: np.random.Generator
) -> npt.NDArray[np.uint32]:
    """Return which row's z each row gets, a set a column; groups stay together.

    Groups are laid out by size, and take each other's places where sizes are alike.
    """
    sources = np.empty((n, n_draws), dtype=np.uint32)
    if groups is None:
        for draw in range(n_draws):
            sources[:, draw] = rng.permutation(n)
        return sources
    sizes = np.bincount(groups)
    by_size = np.argsort(sizes, kind="stable")
    members = np.argsort(np.argsort(by_size)[groups], kind="stable")
    sizes = sizes[by_size]
    starts = np.cumsum(sizes) - sizes
    noise = 0.3 if sizes[0] < sizes[-1] else 1.0
    for draw in range(n_draws):
        source = np.argsort(np.log(sizes) + noise * rng.normal(size=sizes.size))
        lengths = sizes[source]
        of_row = np.repeat(lengths, lengths)
        turn = np.repeat((rng.random(source.size) * lengths).astype(int), lengths)
        place = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        place = (place + turn) % of_row + np.repeat(starts[source], lengths)
        sources[members, draw] = members[place]
    return sources


def by_unit(groups: Ints | None, n: int, rng: np.random.Generator) -> Floats:
    """Return a random number for each row, the same for rows of a group."""
    if groups is None:
        return rng.random(n)
    return np.asarray(rng.random(int(groups.max()) + 1)[groups])
