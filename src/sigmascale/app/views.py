"""Tables and results as the page shows them, with the words of the report, as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..cli.table import MISSING_TEXTS, Columns
from ..exceptions import ColumnError
from ..report.text import (
    MARKS,
    clean,
    meaning_of,
    meaning_of_answers,
    percent,
    question_of,
    score_cells,
    short,
    small_print,
    tabulate_candidates,
    valid_cells,
)
from ..roles import listed
from .commands import ROLES

if TYPE_CHECKING:
    from ..judging.local import LocalZMS
    from ..judging.validation import LocalFactors, Validation, Verdict

HEAD_ROWS, BAD_ROWS = 8, 20
MOST_VALUES = 20  # of a column that may divide the table
MOST_SHOWN = 60  # columns
LONGEST_CELL = 200  # letters


# -- results ------------------------------------------------------------------------


def validation_view(found: Validation) -> dict[str, Any]:
    """Return verdicts, scores and local calibration of one set of uncertainties."""
    return {
        "verdicts": [_verdict(each, found) for each in found.verdicts.values()],
        "meanings": meaning_of_answers(found),
        "marks": MARKS,
        "scores": _scores(found),
        "local": {
            name: local_view(each, found.tolerance, found.verdicts[name].band)
            for name, each in found.local.items()
        },
    }


def _verdict(verdict: Verdict, found: Validation) -> dict[str, Any]:
    region = verdict.region
    place = None
    if region is not None and verdict.local is not None:
        is_number = not verdict.local.is_grouped
        if is_number or region.low == region.high:
            place = {"variable": verdict.name, "low": region.low, "high": region.high}
            place |= {"where": region.where}
    return {
        "name": verdict.name,
        "answer": verdict.answer,
        "question": question_of(verdict.name),
        "sentence": verdict.sentence,
        "note": small_print(verdict, found.confidence),
        "region": place,
    }


def _scores(found: Validation) -> list[dict[str, str]]:
    rows = [
        (short(name), meaning_of(name), score_cells(found, name))
        for name in found.scores.to_dict()
    ]
    rows += [
        (f"valid bins of {short(name)}", "", valid_cells(found, name))
        for name in found.local
    ]
    scores = [
        {"name": name, "meaning": words, "value": x.text, "attainable": best.text}
        for name, words, (x, best) in rows
    ]
    if (law := found.distribution) is not None:
        shown = {"CRPS": f"{law.crps:.4g}"}
        shown |= {
            f"held by intervals of {100 * level:g} %": percent(share)
            for level, share in law.coverage.items()
        }
        shown["law of errors"] = law.law
        scores += [
            {"name": name, "meaning": "", "value": value, "attainable": ""}
            for name, value in shown.items()
        ]
    return scores


def local_view(
    local: LocalZMS, tolerance: float, band: LocalFactors | None = None
) -> dict[str, Any]:
    """Return the bins of a variable, and the band that holds ⟨Z²⟩ along it."""
    grey = local.says_nothing(tolerance)
    found = local.to_dict() | {"grouped": local.is_grouped, "grey": grey.tolist()}
    if band is not None:
        mean = local.overall[0]
        places = band.x_min if local.is_grouped else (band.x_min + band.x_max) / 2
        found["band"] = {
            "x": places.tolist(),
            "low": (mean * band.low**2).tolist(),
            "high": (mean * band.high**2).tolist(),
        }
    return found


def candidates_view(told: dict[str, Any]) -> dict[str, Any] | None:
    """Return the candidates of a selection, with the reason of the choice."""
    if "candidates" not in told:
        return None
    table = tabulate_candidates(told["candidates"], told["chosen"])
    return {
        "header": table.header,
        "rows": [
            [name, *(cell.text for cell in cells)] for name, _, cells in table.rows
        ],
        "chosen": [any(c.chosen for c in cells) for _, _, cells in table.rows],
    }


# -- tables -------------------------------------------------------------------------


# What options of commands are called on the page.
ON_PAGE = {
    **{f"--{role}": role for role in ROLES},
    "--bins": "Bins",
    "--coverage": "Intervals that hold",
    "--decimal": "Decimal mark",
    "--drop-missing": "Leave out rows with missing values",
    "--first-where": "Learn where it is",
    "--interval": "lower limit",
    "--interval-coverage": "Intervals claim to hold",
    "--label": "labels",
    "--members": "ensemble member",
    "--method": "Recalibrator",
    "--minimum": "Lift uncertainties to",
    "--quantile-columns": "quantile",
    "--quantiles": "Quantiles",
    "--separator": "Between columns",
    "--share": "Share to learn from",
    "--shift": "Shifted predictions",
    "--where": "Only rows where",
}


def on_page(words: str) -> str:
    """Return the words of a command for someone who has a page, and no options.

    >>> on_page("Fill them in, or pass --decimal ,.")
    'Fill them in, or set “Decimal mark” ,.'
    """

    def said(found: re.Match[str]) -> str:
        name = ON_PAGE.get(found[2])
        verb = found[1].replace("ass", "et").replace("p", "s").replace("P", "S")
        return found[0] if name is None else f"{verb}“{name}”"

    plain = " ".join(words.split())
    return re.sub(r"([Pp]ass |)'?(--[a-z][a-z-]*)'?", said, plain)


def problem_view(problem: Exception | None) -> dict[str, Any]:
    """Return what is wrong: a sentence, and for the page's own words a code."""
    if problem is None:
        return {"problem": ""}
    words = on_page(str(problem))
    if isinstance(problem, OSError) and problem.strerror:
        words = f"{problem.filename}: {problem.strerror}"
    code, fields = getattr(problem, "code", ""), getattr(problem, "fields", {})
    return {"problem": words, "code": code, "fields": fields}


def unclear_columns(
    problems: Sequence[ColumnError], names: Sequence[str]
) -> ColumnError:
    """Return what cannot be told of columns as the page says it: a click mends it."""
    words = []
    for each in problems:
        if len(each.columns) > 1:
            several = listed(each.columns)
            words.append(f"Several columns could be the {each.role}: {several}.")
        else:
            words.append(f"No column is plainly the {each.role}.")
    words.append(f"Choose below. The columns are: {listed(names)}.")
    return ColumnError(" ".join(words))


def columns_view(
    raw: Columns, roles: dict[str, str], *, lifted: bool = False
) -> dict[str, Any]:
    """Return the columns of a table, its first rows, and those that cannot be used.

    Uncertainties of 0 can be used if they are `lifted`.
    """
    frame = raw.frame
    bad = _bad_cells(raw, roles, lifted=lifted)
    head = frame.head(HEAD_ROWS)
    return {
        "rows": frame.height,
        "columns": [
            _column(raw, name, role, bad.get(name)) for name, role in roles.items()
        ],
        "head": rows_view(head, np.arange(head.height)),
        "bad": _bad_rows(frame, bad),
    }


def rows_view(frame: pl.DataFrame, places: Any) -> dict[str, Any]:
    """Return rows as text, with their place in the file, from 1."""
    shown = frame.select(frame.columns[:MOST_SHOWN])
    return {
        "columns": shown.columns,
        "places": [int(place) + 1 for place in places],
        "cells": [
            ["" if cell is None else clean(str(cell))[:LONGEST_CELL] for cell in row]
            for row in shown.rows()
        ],
    }


def _column(
    raw: Columns, name: str, role: str, bad: pl.Series | None
) -> dict[str, Any]:
    column = raw.frame[name]
    kind = column.dtype
    missing = column.is_null()
    if kind == pl.String:
        missing |= column.str.strip_chars().str.to_lowercase().is_in(MISSING_TEXTS)
    values = None
    if not _is_odd(kind) and role != "feature":
        distinct = column.unique().drop_nulls()
        if 1 < distinct.len() <= MOST_VALUES:
            values = sorted(map(str, distinct.to_list()))
    called = "text" if kind == pl.String else str(kind).lower()
    return {
        "name": name,
        "role": role,
        "type": "number" if raw.is_numeric(name) else called,
        "numeric": kind.is_numeric(),
        "missing": int(missing.sum()),
        "bad": 0 if bad is None else int(bad.sum()),
        "values": values,
    }


def _is_odd(kind: pl.DataType) -> bool:
    return kind.is_nested() or kind in (pl.Binary, pl.Object)


def _bad_cells(
    raw: Columns, roles: dict[str, str], *, lifted: bool
) -> dict[str, pl.Series]:
    """Return where the columns that are used hold what cannot be used."""
    found = {}
    for name, role in roles.items():
        column = raw.frame[name]
        if role == "ignored" or _is_odd(column.dtype):
            continue
        if role in ("label", "groups") or (
            role == "feature" and not raw.is_numeric(name)
        ):
            found[name] = column.is_null()
            continue
        if column.dtype == pl.String:
            values = raw.parse(column.str.strip_chars())
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            values = column.cast(pl.Float64)
        else:
            continue
        bad = ~values.is_finite().fill_null(False)
        if role in ("uncertainty", "variance") and not lifted:
            bad |= (values <= 0).fill_null(False)
        found[name] = bad
    return found


def _bad_rows(frame: pl.DataFrame, bad: dict[str, pl.Series]) -> dict[str, Any]:
    """Return how many rows cannot be used, and the first of them."""
    anywhere = np.zeros(frame.height, dtype=bool)
    for each in bad.values():
        anywhere |= each.to_numpy()
    places = np.flatnonzero(anywhere)[:BAD_ROWS]
    kept = frame[places.tolist()].select(list(bad))
    marks = [[bool(bad[name][int(i)]) for name in kept.columns] for i in places]
    return {"count": int(anywhere.sum()), "marks": marks, **rows_view(kept, places)}
