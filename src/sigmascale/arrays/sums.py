"""Bin sums of rows on a device: rows are summed there, and only sums come here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .._support.checks import Floats, Ints
from ..bins.sums import BinSums
from .libraries import Array, Library

TERMS = ("z2", "z4", "z6", "e2", "u2", "log_u2", "x_min", "x_max")
# Rows at a time: so many that starting the work takes no time, and so few that what is
# computed on the way takes little memory.
CHUNK = 2**24
_GATHERED = 2**27  # rows at a time, where they are gathered by their codes
_FEW_CODES = 512  # for which rows are gathered: sums by code are slow if they are few


def chunks(n_rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Yield slices that cover `n_rows` rows."""
    starts = range(0, n_rows, size)
    return (slice(start, min(start + size, n_rows)) for start in starts)


def sums_of_all(
    library: Library, error: Array, uncertainty: Array, terms: tuple[str, ...] = TERMS
) -> BinSums:
    """Return the sums of all rows; terms that are not asked for are NaN."""
    parts = [
        _sums_of_runs(library, [slice(None)], error[rows], uncertainty[rows], terms)
        for rows in chunks(error.shape[0])
    ]
    return _bin_sums(np.array([error.shape[0]]), parts)


def sums_of_codes(
    library: Library,
    codes: Array,
    n_codes: int,
    error: Array,
    uncertainty: Array,
    terms: tuple[str, ...] = TERMS,
) -> BinSums:
    """Return the sums of the rows of each code; those not asked for are NaN.

    If there are few codes, rows are brought into their order first, and each run of
    equal codes is summed by itself: faster than adding row by row to few sums, where
    rows would wait for each other.
    """
    n, parts = np.zeros(n_codes, dtype=np.int64), []
    for rows in chunks(codes.shape[0], _GATHERED):
        code, e, u = codes[rows], error[rows], uncertainty[rows]
        counts = library.counts(code, n_codes)
        n += counts
        sums_here = None
        if library.name == "jax" or n_codes > _FEW_CODES:
            sums_here = _sums_in_place(library, code, n_codes, e, u, terms)
        parts.append(sums_here or _gathered(library, code, counts, e, u, terms))
    return _bin_sums(n, parts)


def _gathered(
    library: Library,
    codes: Array,
    counts: Ints,
    error: Array,
    uncertainty: Array,
    terms: tuple[str, ...],
) -> dict[str, Floats]:
    xp = library.xp
    small = xp.uint8 if counts.size <= 2**8 else xp.int32  # the former sorts fast
    order = xp.argsort(xp.astype(codes, small), stable=True)
    ends = np.cumsum(counts).tolist()
    runs = [slice(end - n, end) for n, end in zip(counts.tolist(), ends, strict=True)]
    e, u = xp.take(error, order, axis=0), xp.take(uncertainty, order, axis=0)
    del order
    return _sums_of_runs(library, runs, e, u, terms)


def _sums_of_runs(
    library: Library, runs: list[slice], e: Array, u: Array, terms: tuple[str, ...]
) -> dict[str, Floats]:
    """Return the sums of runs of neighbouring rows."""
    xp = library.xp
    e, u = library.floats(e), library.floats(u)
    found: dict[str, list[Array]] = {}

    def add(name: str, left: Array, right: Array) -> None:
        # sums of products need no array of the products
        found[name] = [left[run] @ right[run] for run in runs]

    if "e2" in terms:
        add("e2", e, e)
    if "u2" in terms:
        add("u2", u, u)
    if {"z2", "z4", "z6"} & set(terms):
        z = e / u
        add("z2", z, z)
        if {"z4", "z6"} & set(terms):
            z2 = z * z
            add("z4", z2, z2)
            z = z2 * z
            add("z6", z, z)
            del z2
        del z
    if "log_u2" in terms:
        log_u = xp.log(u)
        found["log_u2"] = [2 * xp.sum(log_u[run]) for run in runs]
    if "x_min" in terms:
        filled = [u[run].shape[0] > 0 for run in runs]
        none = xp.full((1,), float("inf"), dtype=xp.float64, device=library.device)[0]
        ranges = [
            library.extremes(u[run]) if some else (none, -none)
            for run, some in zip(runs, filled, strict=True)
        ]
        found["x_min"], found["x_max"] = (
            list(each) for each in zip(*ranges, strict=True)
        )
    values = [each for name in found for each in found[name]]
    table = library.to_host(xp.stack(values)).reshape(len(found), len(runs))
    return dict(zip(found, table, strict=True))


def _sums_in_place(
    library: Library,
    codes: Array,
    n_codes: int,
    error: Array,
    uncertainty: Array,
    terms: tuple[str, ...],
) -> dict[str, Floats] | None:
    """Return sums of rows that stay where they are, if the library has such sums."""
    found: dict[str, Floats] = {}
    for rows in chunks(codes.shape[0]):
        code = codes[rows]
        e, u = library.floats(error[rows]), library.floats(uncertainty[rows])
        for name, values in _values(library, e, u, terms):
            sums = library.sums_by_code(code, n_codes, values)
            if sums is None:
                return None
            found[name] = found.get(name, 0.0) + library.to_host(sums)
        if "x_min" in terms:
            low, high = library.range_by_code(code, n_codes, u) or (None, None)
            low, high = library.to_host(low), library.to_host(high)
            found["x_min"] = np.minimum(found.get("x_min", np.inf), low)
            found["x_max"] = np.maximum(found.get("x_max", -np.inf), high)
    return found


def _values(
    library: Library, e: Array, u: Array, terms: tuple[str, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield the terms of each row that are asked for."""
    if {"z2", "z4", "z6"} & set(terms):
        z2 = (e / u) ** 2
        yield "z2", z2
        if {"z4", "z6"} & set(terms):
            yield "z4", z2 * z2
            yield "z6", z2 * z2 * z2
    if "e2" in terms:
        yield "e2", e * e
    if "u2" in terms:
        yield "u2", u * u
    if "log_u2" in terms:
        yield "log_u2", 2 * library.xp.log(u)


def _bin_sums(n: Ints, parts: list[dict[str, Floats]]) -> BinSums:
    how: Mapping[str, np.ufunc] = {"x_min": np.minimum, "x_max": np.maximum}
    merged = {
        name: how.get(name, np.add).reduce([part[name] for part in parts])
        for name in parts[0]
    }
    unknown = {name: np.full(n.size, np.nan) for name in TERMS}
    return BinSums(n=n, **(unknown | merged))
