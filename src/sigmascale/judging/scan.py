"""One family of statistics for all questions, calibrated at once by shuffled sets.

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

References
----------
G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), doi:10.2202/1544-6115.1027;
E. Chung and J. P. Romano, Ann. Statist. 41, 484 (2013), doi:10.1214/13-AOS1090;
P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.checks import Floats, Ints
from .variables import SCALES, Variable

SIZE, BIAS, COVERAGE = 0, 1, 2  # what is compared
DRAWS, MOST_DRAWS, SHUFFLED = 400, 4000, 5000  # shuffled sets, and rows of each at most
IN_CACHE = 2**18  # numbers that are shuffled at a time
PRIOR = 100.0  # rows of the overall variance that are added to a region's own
BEHIND = {SIZE: 0.0, BIAS: 0.3, COVERAGE: 0.0}  # by which they count less, in spreads


@dataclass(frozen=True, eq=False)
class Values:
    """What is compared, of each row.

    Attributes
    ----------
    size, bias, held : array of shape (n,)
        z² without what exceeds a cap; z (0 where it has no sign); whether an interval
        holds the error, as 0 or 1.
    groups : array of int, shape (n,), or None
        Numbers, without gaps, of rows that belong together.
    """

    size: Floats
    bias: Floats
    held: Floats
    groups: Ints | None

    @cached_property
    def columns(self) -> Floats:
        """The sums that statistics take: of x and x² for size and bias, of x else."""
        x, z = self.size, self.bias
        return np.column_stack([x, x * x, z, z * z, self.held])

    @cached_property
    def _sums(self) -> dict[int, Floats]:
        return {}

    def sums(self, v: Variable) -> Floats:
        """Return the sums of each column by the bins of a variable, made once."""
        if id(v) not in self._sums:
            found = np.column_stack([v.sums(x) for x in self.columns.T])
            self._sums[id(v)] = found
        return self._sums[id(v)]


@dataclass(eq=False)
class Family:
    """One thing that is compared in all regions of one variable.

    Attributes
    ----------
    kind : int
        What is compared: `SIZE`, `BIAS` or `COVERAGE`.
    question : str
        The question that it answers.
    variable : Variable
        The variable.
    critical : array of shape (2, n_scales)
        How far t reaches by chance, upwards and downwards, by scale.
    """

    kind: int
    question: str
    variable: Variable
    critical: Floats = field(default_factory=lambda: np.empty(0))

    def compare(self, v: Variable, sums: Floats) -> tuple[Floats, Floats]:
        """Return how much regions differ from the rest, and the standard error.

        `sums` has bins in rows, sets in columns, and columns of :class:`Values` along
        its last axis; so have the results regions in rows and sets in columns.
        """
        first = 2 * self.kind
        s1 = v.summed(sums[:, :, first])
        n1 = np.maximum(v.summed(v.sizes), 1e-300)[:, None]
        n0 = np.maximum(v.sizes.sum() - n1, 1e-300)
        total, n = sums[:, :, first].sum(axis=0), v.sizes.sum()
        q1, q0 = (each[:, None] for each in v.one_over_n)
        mean = total / n
        if self.kind == COVERAGE:
            se = np.sqrt(np.maximum(mean * (1 - mean), 1e-9 / n) * (q1 + q0))
            return s1 / n1 - (total - s1) / n0, se
        squares = sums[:, :, first + 1]
        s2, spread = v.summed(squares), squares.sum(axis=0) / n - mean**2
        variance, means = np.zeros_like(s1), []
        for s, ss, m, q in (
            (s1, s2, n1, q1),
            (total - s1, squares.sum(axis=0) - s2, n0, q0),
        ):
            if self.kind == SIZE:  # a region without errors has half an average one
                s = np.maximum(s, 0.5 * mean)
                own = ss * m / (s * s) - 1
                prior = spread / (mean * mean)
                means.append(np.log(s / m))
            else:
                own, prior = ss / m - (s / m) ** 2, spread
                means.append(s / m)
            variance += (m * np.maximum(own, 0) + PRIOR * prior) * (q / (m + PRIOR))
        return means[0] - means[1], np.sqrt(np.maximum(variance, 1e-300))

    def largest(self, v: Variable, sums: Floats) -> Floats:
        """Return the largest t of each scale, upwards and then downwards, of each set.

        A share near 1 cannot rise far, the less the fewer rows there are: upwards, both
        sides count by halves, as some of the rows tell too little of all of them.
        """
        off, se = self.compare(v, sums)
        off /= se
        up = np.maximum.reduceat(off, v.scales[1])
        down = -np.minimum.reduceat(off, v.scales[1])
        if self.kind == COVERAGE:
            up, down = (up + down) / 2, np.maximum(up, down)
        return np.concatenate([up, down])

    def relative(self, values: Values) -> tuple[Floats, Floats, Floats]:
        """Return the difference of each region from the rest, and its limits."""
        v = self.variable
        sums = values.sums(v)[:, None, :]
        off, se = (each[:, 0] for each in self.compare(v, sums))
        up, down = self.critical[:, v.regions[2]]
        return off, off - up * se, off + down * se


def calibrate(
    families: list[Family],
    values: Values,
    some: Ints,
    level: float,
    rng: np.random.Generator,
) -> None:
    """Set the critical values of all families, from shuffled sets of some of the rows.

    All statistics of a set come from the same shuffle: each is in units of its spread
    by chance, so that the number of scales, or of variables, dilutes none of them.
    """
    variables = {id(f.variable): f.variable.some(some) for f in families}
    gather = {
        key: sparse.csc_array(
            (v.w, v.codes, np.arange(some.size + 1)), (v.n_bins, some.size)
        )
        for key, v in variables.items()
    }
    columns, groups = values.columns[some], values.groups
    if groups is not None:
        groups = np.unique(groups[some], return_inverse=True)[1]
    n_draws = int(np.clip(2 / level, DRAWS, MOST_DRAWS))
    block = int(np.clip(IN_CACHE // some.size, 4, 64))
    found = []
    for first in range(0, n_draws, block):
        count = min(block, n_draws - first)
        drawn = columns[shuffles(some.size, groups, count, rng)]
        flat = drawn.reshape(some.size, -1)
        sums = {
            key: (g @ flat).reshape(-1, count, columns.shape[1])
            for key, g in gather.items()
        }
        found.append(
            np.concatenate(
                [
                    f.largest(variables[id(f.variable)], sums[id(f.variable)])
                    for f in families
                ]
            )
        )
    draws = np.concatenate(found, axis=1)
    counts = [2 * f.variable.scales[0].size for f in families]
    behind = np.repeat([BEHIND[f.kind] for f in families], counts)
    sd = np.maximum(draws.std(axis=1), 1e-9)
    mean = draws.mean(axis=1) + behind * sd
    maxima = np.sort(((draws - mean[:, None]) / sd[:, None]).max(axis=0))[::-1]
    limit = mean + sd * maxima[max(0, int(level * (1 + maxima.size) + 1e-9) - 1)]
    for f, each in zip(families, np.split(limit, np.cumsum(counts)[:-1]), strict=True):
        f.critical = np.full((2, len(SCALES) + 1), np.inf)
        f.critical[:, f.variable.scales[0]] = each.reshape(2, -1)


def shuffles(
    n: int, groups: Ints | None, n_draws: int, rng: np.random.Generator
) -> npt.NDArray[np.uint32]:
    """Return which row's z each row gets, a set a column; groups stay together.

    Groups are laid out by size, and take each other's places where sizes are alike.
    """
    found = np.empty((n, n_draws), dtype=np.uint32)
    if groups is None:
        for draw in range(n_draws):
            found[:, draw] = rng.permutation(n)
        return found
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
        found[members, draw] = members[place]
    return found


def by_unit(groups: Ints | None, n: int, rng: np.random.Generator) -> Floats:
    """Return a random number for each row, the same for rows of a group."""
    if groups is None:
        return rng.random(n)
    found: Floats = rng.random(int(groups.max()) + 1)[groups]
    return found
