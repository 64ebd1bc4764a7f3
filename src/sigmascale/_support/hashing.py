"""One hash of numbers: the same on every machine and in every version, for ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import IN_CACHE

Hashes = npt.NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio


def scrambled(x: Any) -> Hashes:
    """Return 64 bits that depend on all bits of whole numbers (splitmix64's finaliser).

    S. Vigna's variant 13 of G. Steele et al., OOPSLA (2014),
    doi:10.1145/2660193.2660195.
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def hash_of_positions(positions: Any) -> Hashes:
    """Return the numbers 0, 1, 2, ... in an order as good as random."""
    return scrambled(positions.astype(np.uint64) * GOLDEN)


def hash_of_rows(columns: Any) -> Hashes:
    """Return a hash of the numbers of each row; 0 and −0 have the same."""
    hashes = np.zeros(columns[0].size, dtype=np.uint64)
    for start in range(0, hashes.size, IN_CACHE):
        part = slice(start, start + IN_CACHE)
        for column in columns:
            bits = (column[part] + 0.0).view(np.uint64)  # 0 of −0
            hashes[part] = scrambled(hashes[part] ^ bits)
    return hashes
