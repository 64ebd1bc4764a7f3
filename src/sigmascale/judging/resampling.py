"""Reshuffled rows: which row's z-score each row gets in a simulated, calibrated set.

In a calibrated set the z-scores know nothing of the uncertainty and the features, so
that any row could have had the z-score of any other. Rows that belong together are the
exception: their z-scores resemble each other, and stay together when they move.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._support.checks import Ints, Labels

Sources = npt.NDArray[np.uint32]

ENOUGH_GROUPS = 20  # of one size, to be exchanged among themselves only
SIMILAR = 2  # times as large, up to which groups are exchanged where these are few


def shuffled_rows(
    n_rows: int, groups: Labels | None, rng: np.random.Generator
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
            return _shuffled_groups(codes, sizes, rng)
    every = np.arange(n_rows, dtype=np.uint32)
    return lambda: rng.permutation(every)


def _shuffled_groups(
    codes: Ints, sizes: Ints, rng: np.random.Generator
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

    def draw() -> Sources:
        source = np.concatenate(
            [first + rng.permutation(last - first) for first, last in pools]
        )
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
