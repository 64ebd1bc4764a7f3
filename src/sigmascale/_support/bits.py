"""The bits of numbers and labels, and hashes that mix them; all in one place."""

from __future__ import annotations

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


def float_bits(x: npt.NDArray[Any]) -> Hashes:
    """Return the bits of numbers; 0 and -0 have the same."""
    return (x + 0.0).view(np.uint64)


def label_bits(labels: Categories) -> Hashes:
    """Return bits of labels that depend on these alone."""
    digests = [
        blake2b(repr(each).encode(errors="surrogatepass"), digest_size=8).digest()
        for each in labels.labels
    ]
    bits = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return bits[labels.codes]


def rough_key(x: npt.NDArray[Any], below: int = 2**64) -> tuple[Ints, Hashes]:
    """Return which rows have a key below a bound, and their keys.

    The key of a number is a quick hash of its bits: rows are chosen by it at random,
    but equal numbers together. Keys are made a chunk at a time, within the cache.
    """
    rows, keys = [], []
    for start in range(0, x.size, _CHUNK):
        key = float_bits(x[start : start + _CHUNK])
        key *= _GOLDEN
        chosen = np.arange(key.size)
        if below < 2**64:
            chosen = np.flatnonzero(key < np.uint64(below))
            key = key[chosen]
        rows.append(start + chosen)
        keys.append(key)
    return np.concatenate(rows), np.concatenate(keys)


def ordered_bits(bits: Array) -> Array:
    """Return the bits of float64 as integers in the order of the numbers, and back."""
    return bits ^ ((bits >> 63) & MAGNITUDE)


def mixed(x: Array) -> Array:
    """Return other bits for each integer: the finaliser of splitmix64.

    Integers are unsigned in NumPy. In other libraries, which lack such, they are signed
    and in the same order.
    """

    def constant(value: int) -> Any:
        if isinstance(x, np.ndarray):
            return np.uint64(value)
        return value - 2**64 if value >= 2**63 else value

    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ _shifted(x, shift)) * constant(factor)
    x = x ^ _shifted(x, 31)
    return x if isinstance(x, np.ndarray) else x ^ constant(2**63)


def hashed(positions: Array) -> Array:
    """Return numbers in random order, which never change, for some whole numbers."""
    if isinstance(positions, np.ndarray):
        return mixed(positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return mixed(positions * (0x9E3779B97F4A7C15 - 2**64))


def _shifted(x: Array, shift: int) -> Array:
    if isinstance(x, np.ndarray):
        return x >> np.uint64(shift)
    return (x >> shift) & (2 ** (64 - shift) - 1)  # no sign comes in from the left
