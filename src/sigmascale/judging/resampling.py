"""Reshuffled rows: which row's z-score each row gets in a simulated, calibrated set.

In a calibrated set the z-scores know nothing of the uncertainty and the features, so
that any row could have had the z-score of any other. Rows that belong together are the
exception: their z-scores resemble each other, and stay together when they move.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from .._support.checks import Floats, Ints, Labels
from .grouped_intervals import within_groups

Sources = npt.NDArray[np.uint32]

ENOUGH_GROUPS = 20  # of one size, to be exchanged among themselves only
SIMILAR = 2  # times as large, up to which groups are exchanged where these are few


def shuffled_rows(
    n_rows: int,
    groups: Labels | None,
    rng: np.random.Generator,
    *,
    replace: bool = False,
) -> Callable[[], Sources]:
    """Return a function whose every call tells which row's z-score each row gets.

    Without groups an answer is a random permutation of the rows. With groups, the
    z-scores of whole groups change places: those of a group go to another group of the
    same size or, where fewer than 20 groups have that size, of a similar one (up to
    twice as large); they are cut, or start over again, where the sizes differ. A group
    without any of a similar size keeps its own z-scores. Within a group the z-scores
    move on by a random number of rows, the last ones to the front: neighbours stay
    neighbours, while a z-score is not bound to the first or the last row of groups.

    Parameters
    ----------
    n_rows : int
        Number of rows, below 2**32.
    groups : array of shape (n_rows,) or None
        Labels; rows with the same label belong together.
    rng : Generator
        Where the random numbers come from.
    replace : bool, default False
        Whether the z-scores of a row, or of a group, may go to several: a bootstrap
        rather than a permutation, whose mean differs from draw to draw.

    Returns
    -------
    callable
        Without arguments; returns a new array of uint32 and of shape (n_rows,).

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array(["a", "a", "b", "b", "c", "c"])
    >>> draw = shuffled_rows(6, groups, np.random.default_rng(1))
    >>> draw()
    array([0, 1, 3, 2, 4, 5], dtype=uint32)
    """
    if groups is not None:
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        if sizes.max() > 1:
            return _shuffled_groups(codes, sizes, rng, replace)
    if replace:
        return lambda: rng.integers(n_rows, size=n_rows, dtype=np.uint32)
    every = np.arange(n_rows, dtype=np.uint32)
    return lambda: rng.permutation(every)


def _shuffled_groups(
    codes: Ints, sizes: Ints, rng: np.random.Generator, replace: bool
) -> Callable[[], Sources]:
    """Return the draws of :func:`shuffled_rows` for numbered groups."""
    # Groups are laid out one after the other, the smallest first; those of a pool are
    # neighbours then, and exchange their z-scores.
    by_size = np.argsort(sizes, kind="stable")
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(by_size.size)
    members = np.argsort(rank[codes], kind="stable").astype(np.uint32)
    sizes = sizes[by_size]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(members.size) - np.repeat(starts, sizes)
    pools = _pools(sizes)

    def sources(first: int, last: int) -> Ints:
        if replace:
            return rng.integers(first, last, size=last - first)
        return first + rng.permutation(last - first)

    def draw() -> Sources:
        source = np.concatenate([sources(*pool) for pool in pools])
        lengths = sizes[source]
        offset = (rng.random(source.size) * lengths).astype(np.int64)
        place = np.repeat(offset, sizes)
        place += within
        place %= np.repeat(lengths, sizes)
        place += np.repeat(starts[source], sizes)
        drawn = np.empty_like(members)
        drawn[members] = members[place]
        return drawn

    return draw


def _pools(sizes: Ints) -> list[tuple[int, int]]:
    """Return the first group of each pool, and the one after its last.

    `sizes` ascend. A pool holds all groups of a size. It takes in the next size while
    it has too few groups itself, or where the next size has too few, if the two are
    similar.
    """
    values, counts = np.unique(sizes, return_counts=True)
    pools: list[tuple[int, int]] = []
    smallest = 0  # size of the last pool
    end = 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        begin, end = end, end + count
        few = pools and min(count, pools[-1][1] - pools[-1][0]) < ENOUGH_GROUPS
        if few and value <= SIMILAR * smallest:
            pools[-1] = (pools[-1][0], end)
        else:
            pools.append((begin, end))
            smallest = value
    return pools


def correlated_squares(
    own: Floats, groups: Labels, independent: Floats, rng: np.random.Generator
) -> Callable[[], Floats]:
    """Return a function whose every call draws squared z-scores, alike within groups.

    Each square is the quantile, of a distribution, that a normal number has in its own
    distribution; the normal numbers of a group are correlated. Their correlation is
    that which the normal numbers behind the rows' own squares have.

    Parameters
    ----------
    own : array of shape (n,)
        The squares of the rows' own z-scores, of unit mean.
    groups : array of shape (n,)
        Labels; rows with the same label belong together.
    independent : array
        Many squares drawn from the distribution, which stand for it.
    rng : Generator
        Where the random numbers come from.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    ordered = np.sort(independent / independent.mean())
    levels = (np.arange(ordered.size) + 0.5) / ordered.size
    # |x| of a normal number x at the level p has the square chi2(p)
    squares = special.chdtri(1, 1 - np.interp(own, ordered, levels))
    # numbers with the correlation r have squares with the correlation r²
    r = np.sqrt(within_groups(squares - squares.mean(), codes))
    n_groups = int(codes.max()) + 1

    def draw() -> Floats:
        x = np.sqrt(r) * rng.standard_normal(n_groups)[codes]
        x += np.sqrt(1 - r) * rng.standard_normal(codes.size)
        drawn: Floats = np.interp(2 * special.ndtr(np.abs(x)) - 1, levels, ordered)
        return drawn

    return draw
