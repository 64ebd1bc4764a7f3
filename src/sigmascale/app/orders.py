"""What the worker does: it runs commands, and looks at files where no command does."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import polars as pl

from .._support import numerals
from .._support.text import shorten, visible
from ..cli.input_table import preview
from ..cli.options import Command, Reading, shell
from ..predictions.datasets import make_molecules
from ..recalibration.scalings import summaries
from ..report import pictures
from ..report.page import boxes
from ..validation import words
from ..validation.validation import Validation

DEMO = "molecules.csv"
DEMO_ROWS = 3000
HEAD_ROWS = 8  # that are shown of a new table
ROWS_OF_DROPPED = 3  # that are shown of one that was dropped
MOST_COLUMNS = 40  # of a new table
MAY_BE = {"feature": "features", "label": "labels"}  # the field that takes a column
LONGEST_CELL = 40  # letters
Fields = dict[str, Any]


def demo(folder: str) -> str:
    """Write the table of the demo."""
    p = make_molecules(DEMO_ROWS, seed=0).predictions
    table = pl.DataFrame({"E": p.error, "u": p.y_std, **p.features})
    table.write_csv(Path(folder, DEMO), float_precision=6)
    return DEMO


def examine(file: str, kind: str, fields: Fields, like: Fields) -> dict[str, Any]:
    """Return what a file holds, and the fields of commands about it.

    What was not said of a table is guessed from the names of its columns; one that is
    fitted has those of the table that is tested, if they are there.
    """
    if kind == "recalibrator":
        show = Command.from_json({"command": "show", "recalibrator": file})
        return {"words": show.run().words, "fields": {}}

    # how it is read, and what is in it
    reading, roles = _divided(fields)
    table = preview((file,), Reading(**reading), HEAD_ROWS)
    columns = table["columns"]
    names = {column["name"] for column in columns}

    # the roles of columns: as they were said, as those of the other table, or guessed
    _, roles_of_tested = _divided(like)
    if not roles and kind == "known" and _named(roles_of_tested) <= names:
        roles = roles_of_tested
    elif not _named(roles) <= names or (not roles and kind != "new"):
        roles = {}
        for column in columns:
            if column["role"] and column["role"] not in MAY_BE:
                roles[column["role"]] = column["name"]

    return {
        "rows": table["rows"],
        "columns": [_column(column) for column in columns],
        "problem": table["problem"],
        "fields": reading | roles,
        "scalings": [(name, f"{name}: {what}") for name, what in summaries().items()],
    }


def _divided(fields: Fields) -> tuple[Fields, Fields]:
    """Return the fields that say how a table is read, and those of its columns."""
    of_reading = {field.name for field in dataclasses.fields(Reading)}
    reading = {name: value for name, value in fields.items() if name in of_reading}
    roles = {name: value for name, value in fields.items() if name not in of_reading}
    return reading, roles


def _named(roles: Fields) -> set[str]:
    """Return the columns that fields of commands name."""
    names: set[str] = set()
    for role, value in roles.items():
        if role == "quantile_columns":  # each with its level
            names.update(item.rpartition("=")[0] for item in value)
        elif not isinstance(value, float):  # the coverage, or the least, of numbers
            names.update([value] if isinstance(value, str) else value)
    return names


def _column(column: dict[str, Any]) -> dict[str, Any]:
    """Return a column as the page shows it, and which kind of feature it may be."""
    return {
        "name": column["name"],
        "kind": column["kind"],
        "missing": column.get("missing", 0),
        "first": [_short(cell) for cell in column["first"][:ROWS_OF_DROPPED]],
        "may_be": MAY_BE.get(column["role"]),
    }


def _rounded(column: dict[str, Any], cell: str) -> str:
    """Return a cell as text, with six digits if it is a number."""
    if column["kind"] == "number":
        with contextlib.suppress(ValueError):
            return numerals.number(float(cell), 6)
    return _short(cell)


def _short(cell: Any) -> str:
    """Return a cell, or what stands above it, as text that the page shows."""
    return shorten(visible(str(cell), keep=""), LONGEST_CELL)


def command(step: str, fields: Fields) -> dict[str, Any]:
    """Run a command; return its line, and what the page shows of what it found."""
    made = Command.from_json(fields)
    result = made.run()
    told: dict[str, Any] = {"line": shell(made.argv())}
    if result.validation is not None:
        told |= _found(step, result.validation)
        told["report"] = fields["report"]
    if result.recalibrator is not None:
        told["fitted"] = result.recalibrator.describe()
    if fields["command"] == "apply":
        new = [str(name) for name in result.to_dict()["columns"]]
        told["head"] = _head(fields["output"], made, new)
    return told


def _head(file: str, made: Any, new: list[str]) -> dict[str, Any]:
    """Return the first rows of a table that was written, the new columns first."""
    reading = Reading(separator=made.separator, decimal=made.decimal)
    columns = preview((file,), reading, HEAD_ROWS)["columns"]
    columns.sort(key=lambda column: column["name"] not in new)

    names = []
    cells_of_columns = []
    for column in columns[:MOST_COLUMNS]:
        names.append(column["name"])
        cells_of_columns.append([_rounded(column, cell) for cell in column["first"]])
    rows = [list(row) for row in zip(*cells_of_columns, strict=True)]
    return {"columns": names, "rows": rows}


def _found(step: str, v: Validation) -> dict[str, Any]:
    """Return results in words, and their pictures as files of this step."""
    # each picture with its size on the page, in pixels
    figures = []
    Path("figures").mkdir(exist_ok=True)
    for number, picture in enumerate(pictures.draw(pictures.factors(v), alone=True)):
        file = f"figures/{step}-{number}.svg"
        Path(file).write_text(picture.svg, "utf-8")
        width, height = (round(96 * inches) for inches in picture.size)
        about = {
            "name": picture.name,
            "words": pictures.variable(picture.name),
            "title": f"{picture.title}. {picture.caption}",
            "file": file,
            "width": width,
            "height": height,
        }
        figures.append(about)

    stages = [("", v)] if v.before is None else [("Before", v.before), ("After", v)]
    tables = []
    for stage, of_stage in stages:
        for table in words.tables(of_stage):
            tables.append({"stage": stage, **dataclasses.asdict(table)})
            stage = ""  # stands once
    return {
        "result": v.result,
        "boxes": [dataclasses.asdict(box) | {"kind": box.kind} for box in boxes(v)],
        "tables": tables,
        "statements": words.statements(v),
        "next_steps": [dataclasses.asdict(step) for step in v.next_steps],
        "figures": figures,
    }
