"""What the worker does: it runs commands, and looks at files where no command does."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import polars as pl

from .._support.text import listed, shorten, visible
from ..cli.options import Command, Reading, shell
from ..cli.table import preview
from ..datasets import make_molecules
from ..judging import Validation
from ..report import pictures

DEMO_ROWS, DEMO = 3000, "molecules.csv"
HEAD_ROWS, ROWS_OF_DROPPED = 8, 3  # rows of a new table, and of one that was dropped
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
    learned from has those of the table that is judged, if they are there.
    """
    if kind == "recalibrator":
        show = Command.from_json({"command": "show", "recalibrator": file})
        return {"words": show.run().words, "fields": {}}
    own = {each.name for each in dataclasses.fields(Reading)}
    said = {name: value for name, value in fields.items() if name in own}
    found = preview((file,), Reading(**said), HEAD_ROWS)
    columns = found["columns"]
    names = {each["name"] for each in columns}
    parts = {name: value for name, value in fields.items() if name not in own}
    like = {name: value for name, value in like.items() if name not in own}
    if not parts and kind == "known" and _named(like) <= names:
        parts = like
    elif not _named(parts) <= names or (not parts and kind != "new"):
        every = [(x["part"], x["name"]) for x in columns]
        parts = {part: name for part, name in every if part and part not in MAY_BE}
    unclear = found["unclear"][0] if found["unclear"] else None
    return {
        "rows": found["rows"],
        "columns": [_column(each) for each in columns],
        "problem": unclear and _problem(unclear),
        "fields": said | parts,
    }


def _problem(unclear: Fields) -> Fields:
    """Return what cannot be told of columns, and what a click can take them for."""
    problem: Fields = {"message": unclear["words"], "code": "column", "fields": {}}
    if offers := unclear.get("offers"):
        taken = {part: value for part, value in offers[0].items() if value is not None}
        if "members" in taken:  # the page knows columns, and no patterns
            taken["members"] = unclear["columns"]
        taken = {k: list(v) if isinstance(v, tuple) else v for k, v in taken.items()}
        words = f"Take {listed(unclear['columns'], 3)} for that"
        problem["fields"] = {"take": taken, "words": words}
    return problem


def _named(parts: Fields) -> set[str]:
    """Return the columns that fields of commands name."""
    found: set[str] = set()
    for part, value in parts.items():
        if part == "quantile_columns":
            found.update(each.rpartition("=")[0] for each in value)
        elif not isinstance(value, float):  # the coverage, or the least, of numbers
            found.update([value] if isinstance(value, str) else value)
    return found


def _column(found: dict[str, Any]) -> dict[str, Any]:
    """Return a column as the page shows it, and which kind of feature it may be."""
    return {
        "name": found["name"],
        "kind": found["kind"],
        "missing": found.get("missing", 0),
        "first": [_short(cell) for cell in found["first"][:ROWS_OF_DROPPED]],
        "may_be": MAY_BE.get(found["part"]),
    }


def _rounded(column: dict[str, Any], cell: str) -> str:
    """Return a cell as text, with six digits if it is a number."""
    with contextlib.suppress(ValueError):
        return f"{float(cell):.6g}" if column["kind"] == "number" else _short(cell)
    return _short(cell)


def _short(cell: Any) -> str:
    return shorten(visible(str(cell), keep=""), LONGEST_CELL)


def command(step: str, fields: Fields) -> dict[str, Any]:
    """Run a command; return its line, and what the page shows of what it found."""
    made = Command.from_json(fields)
    result = made.run()
    told: dict[str, Any] = {"line": shell(made.words())}
    if result.before is not None:
        told |= _judged(step, result.before, result.after)
        told["report"] = fields["report"]
    if result.recalibrator is not None:
        told["learned"] = result.recalibrator.describe()
    if fields["command"] == "apply":
        new = [str(name) for name in result.to_dict()["columns"]]
        told["head"] = _head(fields["output"], made, new)
    return told


def _head(file: str, made: Any, new: list[str]) -> dict[str, Any]:
    """Return the first rows of a table that was written, the new columns first."""
    how = Reading(separator=made.separator, decimal=made.decimal)
    columns = preview((file,), how, HEAD_ROWS)["columns"]
    columns.sort(key=lambda each: each["name"] not in new)
    shown = columns[:MOST_COLUMNS]
    cells = [[_rounded(each, x) for x in each["first"]] for each in shown]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return {"columns": [each["name"] for each in shown], "rows": rows}


def _judged(step: str, before: Validation, after: Validation | None) -> dict[str, Any]:
    """Return verdicts in words, and their pictures as files."""
    first = [pictures.certificate(before, after), pictures.forest(before, after)]
    sketches = [*first, *pictures.along(before, after)]
    figures = []
    Path("figures").mkdir(exist_ok=True)
    for number, each in enumerate(pictures.draw(sketches, alone=True)):
        file = f"figures/{step}-{number}.svg"
        Path(file).write_text(each.svg, "utf-8")
        width, height = (round(96 * inches) for inches in each.size)
        about = {"name": each.name, "words": pictures.variable(each.name)}
        figures.append(
            about
            | {"title": each.title, "file": file, "width": width, "height": height}
        )
    return {
        "headline": before.headline if after is None else after.compared_with(before),
        "judged": _view(after or before, pictures.shown(before, after)),
        "figures": figures,
    }


def _view(found: Validation, shown: list[str]) -> dict[str, Any]:
    verdicts = [
        {
            "name": name,
            "answer": each.answer,
            "sentence": each.sentence,
            "shown": name in shown,
        }
        for name, each in found.verdicts.items()
    ]
    about = {"answer": found.answer, "verdicts": verdicts}
    steps = [{"what": step.what, "how": step.how} for step in found.next_steps]
    return about | {
        "next_steps": steps,
        "notes": list(found.notes),
        "closing": found.closing,
    }
