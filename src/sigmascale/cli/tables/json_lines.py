"""JSON lines: one object a line, whose keys are the columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...exceptions import InvalidInputError
from .sources import Source, first_line, opened

if TYPE_CHECKING:
    import polars as pl

KINDS = {bool: "bool", int: "number", float: "number", type(None): ""}


def read_json_lines(path: str, source: Source) -> pl.DataFrame:
    """Return the keys of all lines as columns; values of several kinds are text."""
    import polars as pl

    def read(**options: Any) -> pl.DataFrame:
        with opened(source) as file:
            # the first lines need not have all keys, nor numbers of all types
            return pl.read_ndjson(file, infer_schema_length=None, **options)

    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        mixed = _of_several_kinds(path, source)
        if not mixed:
            msg = f"{path}: cannot be read as NDJSON: {first_line(problem)}."
            raise InvalidInputError(msg) from problem
    return read(schema_overrides=dict.fromkeys(mixed, pl.String))


def _of_several_kinds(path: str, source: Source) -> list[str]:
    """Return the keys that have values of several kinds; refuse what is no object."""
    kinds: dict[str, set[Any]] = {}
    with opened(source) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as problem:
                found = problem
            if not isinstance(found, dict):
                msg = (
                    f"{path}: cannot be read as NDJSON: line {number} is no JSON "
                    "object. Is it a whole file, with one object a line?"
                )
                raise InvalidInputError(msg)
            for key, value in found.items():
                kinds.setdefault(key, set()).add(KINDS.get(type(value), type(value)))
    return [key for key, of_it in kinds.items() if len(of_it - {""}) > 1]
