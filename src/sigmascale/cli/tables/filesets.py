"""Several files as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from ..._support.files import as_pattern
from ...exceptions import InvalidInputError
from ...roles import listed
from .files import UNTYPED, read_part, with_rows

if TYPE_CHECKING:
    import polars as pl


def read_tables(
    files: Sequence[str], *, separator: str | None = None
) -> tuple[pl.DataFrame, bool]:
    """Return the rows of some files as one table, see `read_table`.

    Also return whether all columns are text that says no types.

    Patterns such as ``run/*.parquet``, and folders of Parquet files, stand for the
    files there. All must have the same columns, of the same types, but whole numbers
    may be real ones elsewhere; parts without rows do no harm.
    """
    import polars as pl

    read = {path: read_part(path, separator) for path in matching(files)}
    untyped = all(kind in UNTYPED for _, kind in read.values())
    filled = {path: table for path, (table, _) in read.items() if table.height}
    if not filled:
        return with_rows(named(files), next(iter(read.values()))[0]), untyped
    first, *others = filled
    if not others:
        return filled[first], untyped
    for other in others:
        _check_alike(first, filled[first], other, filled[other])
    tables = [table.select(filled[first].columns) for table in filled.values()]
    frame = pl.concat(tables, how="vertical_relaxed")
    _check_exact(named(files), frame, tables)
    return frame, untyped


def _check_alike(
    first: str, table: pl.DataFrame, other: str, its_table: pl.DataFrame
) -> None:
    """Refuse tables whose columns differ; one without a value has any type."""
    known, its = (
        {n: "number" if t.is_numeric() else str(t) for n, t in each.schema.items()}
        for each in (table, its_table)
    )
    lacking, more = ([*a.keys() - b.keys()] for a, b in ((known, its), (its, known)))
    unlike = [
        name
        for name in known.keys() & its.keys()
        if known[name] != its[name] and "Null" not in (known[name], its[name])
    ]
    differences = {"lacks": lacking, "also has": more, "has other types in": unlike}
    words = [f"{word} {listed(sorted(n))}" for word, n in differences.items() if n]
    if words:
        msg = (
            f"{other}: unlike {first}, it {' and '.join(words)}. Files that are read "
            "together must have the same columns, of the same types."
        )
        raise InvalidInputError(msg)


def _check_exact(path: str, frame: pl.DataFrame, tables: list[pl.DataFrame]) -> None:
    """Refuse a table whose numbers are not quite those of its parts."""
    for name, dtype in frame.schema.items():
        for x in (table[name] for table in tables if table[name].dtype != dtype):
            large = x.dtype.is_integer() and not x.is_between(-(2**53), 2**53).all()
            if (large and dtype.is_float()) or (
                x.dtype.is_numeric() and not dtype.is_numeric()
            ):
                msg = (
                    f"{path}: column {name!r} has types in these files ({x.dtype} in "
                    f"one) that only {dtype} could hold, not exactly. Convert it first."
                )
                raise InvalidInputError(msg)


def matching(files: Sequence[str]) -> list[str]:
    """Return the files that files, patterns and folders of Parquet files stand for."""
    found = []
    for file in files:
        there = [
            path
            for path in sorted(glob(as_pattern(file), recursive=True))
            if not Path(path).is_dir() or path.endswith(".parquet")
        ]
        if not there and Path(file).is_dir():
            msg = f"{file}: is a folder without Parquet files. Name a file in it."
            raise InvalidInputError(msg)
        if not there and has_magic(file):
            msg = f"{file}: no file is there. Is the path right?"
            raise InvalidInputError(msg)
        found += there or [file]  # standard input, or what reading will tell
    twice = [path for path, count in Counter(map(realpath, found)).items() if count > 1]
    if twice:
        msg = f"{Path(twice[0]).name}: is given twice; its rows would count twice."
        raise InvalidInputError(msg)
    return found


def named(files: Sequence[str]) -> str:
    """Return what to call files in a message.

    >>> named(["a.csv"]), named(["a.csv", "b.csv"])
    ('a.csv', 'a.csv, b.csv (as one table)')
    """
    if len(files) == 1:
        return files[0]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return f"{', '.join(files[:3])}{more} (as one table)"


@contextmanager
def about(file: str) -> Iterator[None]:
    """Put the name of a file in front of what is wrong with it."""
    try:
        yield
    except InvalidInputError as problem:
        msg = f"{file}: {problem}"
        raise InvalidInputError(msg) from problem
