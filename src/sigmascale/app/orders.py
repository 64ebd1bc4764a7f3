"""What the worker does: it runs commands, and looks at files where no command does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import polars as pl

from .._support.text import shorten
from ..cli.options import Command, Reading, command as class_of, shell
from ..cli.table import preview
from ..datasets import make_molecules
from ..exceptions import InvalidInputError
from ..judging import Validation, headline_after
from ..report import pictures

DEMO_ROWS, DEMO = 3000, "molecules.csv"
HEAD_ROWS = 5
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

    A table that is to be learned from has the columns of the table that is judged, if
    they are there; else, what was not said is guessed from names.
    """
    if kind == "recalibrator":
        show = class_of("show")(recalibrator=file)  # type: ignore[call-arg]
        return {"words": show.run().words, "fields": {}}
    own = {each.name for each in fields_of(Reading)}
    how = {name: value for name, value in fields.items() if name in own}
    found = preview((file,), Reading(**how))
    names = [column["name"] for column in found["columns"]]
    said = {name: value for name, value in fields.items() if name not in own}
    if like and all(set(_names(value)) <= set(names) for value in like.values()):
        said = {name: value for name, value in like.items() if name not in own}
    ...
    return {"fields": how | said}


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
    if step == "apply":
        told["head"] = _head(fields["output"])
    return told


def _judged(step: str, before: Validation, after: Validation | None) -> dict[str, Any]:
    """Return verdicts in words, and their pictures as files."""
    sketches = [pictures.forest(before, after), *pictures.along(before, after)]
    figures = []
    Path("figures").mkdir(exist_ok=True)
    for number, each in enumerate(pictures.draw(sketches, alone=True)):
        file = f"figures/{step}-{number}.svg"
        Path(file).write_text(each.svg, "utf-8")
        width, height = (round(96 * inches) for inches in each.size)
        about = {"name": each.name, "words": pictures.variable(each.name)}
        figures.append(
            about | {"title": each.title, "file": file, "width": width, "height": height}
        )
    return {
        "headline": before.headline if after is None else headline_after(before, after),
        "before": _view(before),
        "after": None if after is None else _view(after),
        "at_fault": pictures.at_fault(after or before),
        "figures": figures,
    }


def _view(found: Validation) -> dict[str, Any]:
    verdicts = [
        {"name": each.name, "answer": each.answer, "sentence": each.sentence}
        for each in found.verdicts.values()
    ]
    about = {"answer": found.answer, "headline": found.headline, "verdicts": verdicts}
    return about | {"next_steps": list(found.next_steps), "closing": found.closing}
