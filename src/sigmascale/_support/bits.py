"""The bits of numbers and labels, and hashes that mix them; all in one place."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import Ints
from .labels import Categories

Array = Any  # of NumPy, or of a library of arrays on a device
Hashes = npt.NDArray[np.uint64]
MAGNITUDE = 2**63 - 1  # all bits of a number but its sign
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_CHUNK = 2**15  # rows at a time


def label_bits(labels: Categories) -> Hashes:
    """Return bits of labels that depend on these alone."""
    digests = [
        blake2b(repr(each).encode(errors="surrogatepass"), digest_size=8).digest()
        for each in labels.labels
    ]
    bits = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return bits[labels.codes]


def number_keys(x: npt.NDArray[Any]) -> Hashes:
    """Return a quick hash of numbers; 0 and -0 have the same."""
    return (x + 0.0).view(np.uint64) * _GOLDEN


def rows_below(x: npt.NDArray[Any], bound: int) -> Ints:
    """Return which numbers have a key below a bound, a random part of 2**64.

    Equal numbers are chosen together. Keys are made a chunk at a time, in the cache.
    """
    starts, below = range(0, x.size, _CHUNK), np.uint64(bound)
    chosen = [
        start + np.flatnonzero(number_keys(x[start : start + _CHUNK]) < below)
        for start in starts
    ]
    return np.concatenate(chosen)


def row_bits(columns: Iterable[npt.NDArray[Any]]) -> Hashes:
    """Return a hash of each row of columns, which are numbers, or bits already.

    Of numbers, 0 and -0 are the same.
    """
    found: Any = np.uint64(0)
    for column in columns:
        is_bits = column.dtype == np.uint64
        found = mixed(found ^ (column if is_bits else (column + 0.0).view(np.uint64)))
    return np.asarray(found)


def ordered_bits(bits: Array) -> Array:
    """Return the bits of float64 as integers in the order of the numbers, and back."""
    return bits ^ ((bits >> 63) & MAGNITUDE)


def mixed(x: Array) -> Array:
    """Return other bits for each integer: the finaliser of splitmix64.

    Integers are unsigned in NumPy. In other libraries, which lack such, they are signed
    and in the same order.
    """
    signed = not isinstance(x, np.ndarray)
    for shift, factor in (
        (30, 0xBF58476D1CE4E5B9),
        (27, 0x94D049BB133111EB),
        (31, 1),
    ):
        above = x >> shift
        if signed:  # no sign comes in from the left
            above, factor = above & (2 ** (64 - shift) - 1), _as_signed(factor)
        x = (x ^ above) * factor
    return x ^ _as_signed(2**63) if signed else x


def hashed(positions: Array) -> Array:
    """Return numbers in random order, which never change, for some whole numbers."""
    if isinstance(positions, np.ndarray):
        return mixed(positions.astype(np.uint64) * _GOLDEN)
    return mixed(positions * _as_signed(int(_GOLDEN)))


def _as_signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
