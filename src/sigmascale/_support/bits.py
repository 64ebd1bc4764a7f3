"""The bits of numbers and labels, and a hash that mixes them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import Ints
from .labels import Categories

Hashes = npt.NDArray[np.uint64]
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


def mixed(x: Hashes) -> Hashes:
    """Return other bits for each number, as good as random: splitmix64's finaliser."""
    with np.errstate(over="ignore"):
        x = (x + _GOLDEN).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
