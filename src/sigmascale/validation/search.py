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
FEWEST_DRAWS = 400  # shuffled sets
MOST_DRAWS = 4000
MOST_SHUFFLED = 5000  # rows of a shuffled set
SHUFFLED_AT_A_TIME = 2**18  # numbers that are shuffled at a time
PRIOR = 100.0  # rows of the overall variance that are added to a part's own
OWN = 0.05  # rate of the own intervals of all regions of a size
# of a simultaneous distance, what the 95 % limit of one region takes
SHARE_OF_ONE_REGION = 0.4
REGIONS_LOOKED_AT = 4  # by themselves, for a lower limit


@dataclass(frozen=True, eq=False)
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
    """

    name: str
    question: Question
    variable: Variable

    def compare(self, v: Variable, sums: Floats) -> tuple[Floats, Floats]:
        """Return how much regions differ from the rest, and the standard error.

        `sums` has bins in rows, sets in columns, and columns of :class:`Values` along
        its last axis; so have the results regions in rows and sets in columns.
        """
        # sums of x, and Σw and Σw² / (Σw)², of each region and of the rest
        x_by_bin = sums[:, :, self.question.first]
        x_of_all = x_by_bin.sum(axis=0)
        x_inside = v.summed(x_by_bin)
        x_outside = x_of_all - x_inside
        n = v.sizes.sum()
        n_inside = np.maximum(v.summed(v.sizes), 1e-300)[:, None]
        n_outside = np.maximum(n - n_inside, 1e-300)
        q_inside, q_outside = (q[:, None] for q in v.one_over_n)
        mean = x_of_all / n

        # of shares, the mean tells the variance, m (1 − m)
        if self.question.is_share:
            share_variance = np.maximum(mean * (1 - mean), 1e-9 / n)
            se = np.sqrt(share_variance * (q_inside + q_outside))
            return x_inside / n_inside - x_outside / n_outside, se

        # of others, each side has its own variance, and that of PRIOR rows of all
        x2_by_bin = sums[:, :, self.question.first + 1]
        x2_of_all = x2_by_bin.sum(axis=0)
        x2_inside = v.summed(x2_by_bin)
        x2_outside = x2_of_all - x2_inside
        overall = x2_of_all / n - mean**2
        centre_inside, variance_inside = self._moderated(
            x_inside, x2_inside, n_inside, q_inside, mean, overall
        )
        centre_outside, variance_outside = self._moderated(
            x_outside, x2_outside, n_outside, q_outside, mean, overall
        )
        variance = np.maximum(variance_inside + variance_outside, 1e-300)
        return centre_inside - centre_outside, np.sqrt(variance)

    def _moderated(
        self, x: Floats, x2: Floats, n: Floats, q: Floats, mean: Floats, overall: Floats
    ) -> tuple[Floats, Floats]:
        """Return the centre of some rows, and its variance q (n s² + P s₀²) / (n + P).

        `x` and `x2` are sums of x and x² over `n` rows, q is one over the rows in
        effect, s² is their variance, s₀² the overall one, and P is `PRIOR`.
        """
        centre, own, unit = self.question.moments(x, x2, n, mean)
        pooled = n * np.maximum(own, 0) + PRIOR * overall / unit
        return centre, pooled * (q / (n + PRIOR))

    def largest(self, v: Variable, sums: Floats) -> Floats:
        """Return the largest t of each scale, upwards and then downwards, of each set.

        A share near 1 cannot rise far, the less the fewer rows there are: upwards, both
        sides count by halves, as some of the rows tell too little of all of them.
        """
        difference, se = self.compare(v, sums)
        t = difference / se
        up = np.maximum.reduceat(t, v.first_of_scale)
        down = -np.minimum.reduceat(t, v.first_of_scale)
        if self.question.is_share:
            return np.concatenate([(up + down) / 2, np.maximum(up, down)])
        return np.concatenate([up, down])

    def limits(
        self, values: Values, whole: Whole, sums: Floats, critical: Floats
    ) -> RegionLimits:
        """Return how far all regions are off, with simultaneous limits.

        `sums` are those by bin; `critical`, of shape (2, n_scales), has how far t
        reaches by chance, upwards and downwards.
        """
        v = self.variable
        one_set = sums[:, None, :]
        off, se = (of_sets[:, 0] for of_sets in self.compare(v, one_set))
        up, down = critical[:, v.regions.scale]
        low = off - up * se
        high = off + down * se
        absolute = self.question.absolute(values, v, sums, (off, low, high), whole)
        # what is held too rarely wants wider intervals
        sign = -1 if self.question.is_share else 1
        return RegionLimits(self, *absolute, contrast=sign * _contrast(low, high))


@dataclass(frozen=True, eq=False)
class RegionLimits:
    """How far all regions of a variable are off, with limits that hold at once.

    Attributes
    ----------
    inquiry : Inquiry
        What was compared.
    off, low, high : array of shape (n_regions,)
        How far each is off, and its limits.
    contrast : array of shape (n_regions,)
        How far the limits of its difference from the rest of the rows are from 0, in
        their width; its sign is that of the difference, and it is 0 within chance.
    """

    inquiry: Inquiry
    off: Floats
    low: Floats
    high: Floats
    contrast: Floats

    @property
    def variable(self) -> Variable:
        """The variable."""
        return self.inquiry.variable

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
        """Return a region with the farther of its limits among all and by itself.

        A region of a share s has its own limits at a level of 1 − OWN · s: one error
        rate for all disjoint regions of its size together.
        """
        question = limits.inquiry.question
        off = float(limits.off[region])
        low = float(limits.low[region])
        high = float(limits.high[region])
        if not low <= 0 <= high:
            share = float(limits.variable.shares[region])
            level = 1 - OWN * min(share, 1 - share)
            inside = limits.variable.inside(region)
            own_low, own_high = question.own_limits(self.values, inside, share, level)
            low = min(low, own_low)
            high = max(high, own_high)
        return Finding(question, limits, region, off, low, high)

    def fault(self, name: str, bound: float) -> Finding | None:
        """Return the region that is surely beyond a bound, or None.

        Of such regions the one counts that differs most from the rest of the rows, in
        the direction in which it is off; at each scale this one is looked at, and the
        one that is off most surely.
        """
        candidates: list[Candidate] = []
        for limits in self.limits.get(name, ()):
            candidates += _candidates(limits, bound)
        candidates.sort(key=lambda x: (-x.contrast, -x.share))
        for candidate in candidates:
            finding = self.look(candidate.limits, candidate.region)
            if finding.beyond(bound):
                return finding
        return None

    def suspect(self, name: str, bound: float) -> Finding | None:
        """Return the region that is off, and alone would be beyond a bound, or None.

        A limit of one region, which did not have to be found among many, is at 0.4 of
        the distance of a simultaneous one.
        """
        best = None
        for limits in self.limits.get(name, ()):
            if not limits.off.size:
                continue
            off = limits.off
            limit = np.where(off > 0, limits.low, limits.high)
            alone = off + SHARE_OF_ONE_REGION * (limit - off)
            is_suspect = (np.abs(alone) > bound) & limits.beyond(0.0)
            contrast = np.where(is_suspect, limits.outwards, 0.0)
            region = int(np.argmax(contrast))
            most = 0.0 if best is None else best.contrast
            if contrast[region] > most:
                best = Candidate(float(contrast[region]), limits, region)
        if best is None:
            return None
        finding = self.look(best.limits, best.region)  # its own rows must say so, too
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


@dataclass(frozen=True, eq=False)
class Candidate:
    """A region that may be a fault, and how far it differs from the rest of the rows.

    Attributes
    ----------
    contrast : float
        `outwards` of its limits.
    limits : RegionLimits
        Those of all regions of its variable.
    region : int
        Its place among these.
    """

    contrast: float
    limits: RegionLimits
    region: int

    @property
    def share(self) -> float:
        """Its share of the rows."""
        return float(self.limits.variable.shares[self.region])


def _candidates(limits: RegionLimits, bound: float) -> Iterator[Candidate]:
    """Yield the regions of each scale and side that are beyond a bound most clearly.

    These are the one that differs most from the rest of the rows, and the one whose
    limit is the farthest.
    """
    is_beyond = limits.beyond(bound)
    if not is_beyond.any():
        return
    contrast = limits.outwards
    for scale in limits.variable.scales:
        of_scale = is_beyond & (limits.variable.regions.scale == scale)
        for sign, limit in ((1, limits.low), (-1, -limits.high)):
            is_eligible = of_scale & (np.sign(limits.off) == sign)
            if not is_eligible.any():
                continue
            for measure in (contrast, limit):
                best = int(np.argmax(np.where(is_eligible, measure, -np.inf)))
                yield Candidate(float(contrast[best]), limits, best)


def _contrast(low: Floats, high: Floats) -> Floats:
    """Return how far limits are from 0, in their width, and on which side."""
    width = np.maximum(high - low, 1e-300)
    with np.errstate(invalid="ignore"):
        above = np.where(low > 0, low / width, 0.0)
        return np.asarray(np.where(high < 0, high / width, above))


# -- how it is calibrated --------------------------------------------------------------


def search(
    values: Values,
    inquiries: Iterable[Inquiry],
    questions: Iterable[Question],
    rate: float,
    rng: np.random.Generator,
) -> Search:
    """Look at all regions; limits of all of them hold at once but at an error rate."""
    wholes = {}
    for question in questions:
        level = 1 - question.share_of_all * rate
        wholes[question] = question.whole(values, level)

    limits: dict[str, tuple[RegionLimits, ...]] = {}
    asked = [inquiry for inquiry in inquiries if inquiry.variable.n_regions]
    if not asked:
        return Search(values, wholes, limits)
    rows = shuffled_rows(values, asked[-1].variable.w, rng)
    critical_values = _critical_values(asked, values, rows, OF_RUNS * rate, rng)
    for inquiry, critical in zip(asked, critical_values, strict=True):
        whole = wholes[inquiry.question]
        sums = values.by_bin(inquiry.variable)
        of_regions = inquiry.limits(values, whole, sums, critical)
        limits[inquiry.name] = (*limits.get(inquiry.name, ()), of_regions)
    return Search(values, wholes, limits)


def shuffled_rows(values: Values, w: Floats, rng: np.random.Generator) -> Ints:
    """Return which rows are shuffled: some of those with weights, groups together."""
    is_used: Bools = w > 0
    n_used = max(1, int(np.count_nonzero(is_used)))
    chance = by_unit(values.groups, w.size, rng)
    return np.flatnonzero(is_used & (chance < MOST_SHUFFLED / n_used))


def gathers(variables: Iterable[Variable], rows: Ints) -> dict[int, sparse.csc_array]:
    """Return, for each variable, what makes sums by bin of columns of some rows.

    It is the matrix (n_bins, n_rows) that has the weight of each row in its bin.
    """
    matrices = {}
    ends = np.arange(rows.size + 1)  # a column has one number
    for v in variables:
        weights_in_bins = (v.w[rows], v.codes[rows], ends)
        matrices[id(v)] = sparse.csc_array(weights_in_bins, (v.n_bins, rows.size))
    return matrices


def groups_of(values: Values, rows: Ints) -> Ints | None:
    """Return the groups of some rows, numbered without gaps."""
    if values.groups is None:
        return None
    return np.unique(values.groups[rows], return_inverse=True)[1]


def _critical_values(
    inquiries: list[Inquiry],
    values: Values,
    rows: Ints,
    rate: float,
    rng: np.random.Generator,
) -> list[Floats]:
    """Return how far t of each inquiry reaches by chance, upwards and downwards.

    Shuffled sets of some of the rows tell it. All statistics of a set come from the
    same shuffle: each is in units of its spread by chance, so that the number of
    scales, or of variables, dilutes none of them.

    Returns
    -------
    list of array of shape (2, n_scales)
    """
    # t: the largest of each inquiry, scale and side (rows), in each set (columns)
    n_draws = int(np.clip(2 / rate, FEWEST_DRAWS, MOST_DRAWS))
    blocks = list(_largest_of_sets(inquiries, values, rows, n_draws, rng))
    t = np.concatenate(blocks, axis=1)

    # the largest of all of them in a set, each in units of its spread
    n_statistics = [2 * inquiry.variable.scales.size for inquiry in inquiries]
    behind = [inquiry.question.behind for inquiry in inquiries]
    sd = np.maximum(t.std(axis=1), 1e-9)
    mean = t.mean(axis=1) + np.repeat(behind, n_statistics) * sd
    largest = ((t - mean[:, None]) / sd[:, None]).max(axis=0)

    # of which a share, the rate, lies beyond the critical values
    descending = np.sort(largest)[::-1]
    place = max(0, int(rate * (1 + descending.size) + 1e-9) - 1)
    critical = mean + sd * descending[place]
    split = np.split(critical, np.cumsum(n_statistics)[:-1])
    by_inquiry = []
    for inquiry, of_inquiry in zip(inquiries, split, strict=True):
        by_scale = np.full((2, len(SCALES) + 1), np.inf)
        by_scale[:, inquiry.variable.scales] = of_inquiry.reshape(2, -1)
        by_inquiry.append(by_scale)
    return by_inquiry


def _largest_of_sets(
    inquiries: list[Inquiry],
    values: Values,
    rows: Ints,
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[Floats]:
    """Yield the largest t of all inquiries, one below the other, of blocks of sets."""
    variables = {id(inquiry.variable): inquiry.variable for inquiry in inquiries}
    of_rows = {key: v.take(rows) for key, v in variables.items()}
    gather = gathers(variables.values(), rows)
    columns = values.columns[rows]
    groups = groups_of(values, rows)
    n_at_a_time = int(np.clip(SHUFFLED_AT_A_TIME // rows.size, 4, 64))
    for start in range(0, n_draws, n_at_a_time):
        n_sets = min(n_at_a_time, n_draws - start)
        drawn = columns[shuffles(rows.size, groups, n_sets, rng)]
        flat = drawn.reshape(rows.size, -1)

        # sums of each variable: bins × sets × columns
        sums = {}
        for key, matrix in gather.items():
            sums[key] = (matrix @ flat).reshape(-1, n_sets, columns.shape[1])

        largest = []
        for inquiry in inquiries:
            key = id(inquiry.variable)
            largest.append(inquiry.largest(of_rows[key], sums[key]))
        yield np.concatenate(largest)


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

    # rows laid out group by group, from small to large; where groups start
    sizes = np.bincount(groups)
    by_size = np.argsort(sizes, kind="stable")
    layout = np.argsort(np.argsort(by_size)[groups], kind="stable")
    sizes = sizes[by_size]
    starts = np.cumsum(sizes) - sizes

    noise = 0.3 if sizes[0] < sizes[-1] else 1.0
    for draw in range(n_draws):
        # groups in another order, in which those of like sizes have changed places
        source = np.argsort(np.log(sizes) + noise * rng.normal(size=sizes.size))
        lengths = sizes[source]

        # rows of each turned round by as many places as chance has it
        turn = (rng.random(source.size) * lengths).astype(int)
        first = np.cumsum(lengths) - lengths
        within_group = np.arange(n) - np.repeat(first, lengths)
        turned = within_group + np.repeat(turn, lengths)
        turned %= np.repeat(lengths, lengths)
        place = turned + np.repeat(starts[source], lengths)
        sources[layout, draw] = layout[place]
    return sources


def by_unit(groups: Ints | None, n: int, rng: np.random.Generator) -> Floats:
    """Return a random number for each row, the same for rows of a group."""
    if groups is None:
        return rng.random(n)
    return np.asarray(rng.random(int(groups.max()) + 1)[groups])
