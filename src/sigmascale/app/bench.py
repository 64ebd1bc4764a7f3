"""The work itself, in the child process: what the commands do, by their functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..bins.partitions import feasible_bins
from ..cli.app import finite
from ..cli.check import Judged, expected_by, judge_table
from ..cli.columns import MISSING_TEXTS, Columns
from ..cli.demo import halves
from ..cli.divide import divide_table
from ..cli.files import kind_of, write_table
from ..cli.fit import learn, range_in_words
from ..cli.methods import load_saved, source_of
from ..cli.table import Table, read_columns
from ..datasets import make_molecules
from ..exceptions import ColumnError, InvalidInputError
from ..export import to_onnx
from ..judging.intervals import MIN_ROWS
from ..judging.local import check_settings, measure
from ..persistence import load_map, save
from ..predictions import as_predictions
from ..report.svg import CONTENTS, METHODS
from ..roles import Choice, Expected, guess
from .plan import Plan, ending, verdict_files
from .recipes import DEMO_ROWS, check_command, python_lines, recalibration_commands
from .settings import TableSettings
from .unpacking import refuse_bomb
from .views import candidates_view, local_view, text_of, validation_view

HEAD_ROWS, BAD_ROWS, REGION_ROWS = 8, 20, 100
MOST_VALUES = 20  # of a column that may divide the table
MOST_SHOWN = 60  # columns


class Bench:
    """Does what it is told, one thing after the other, in the present folder.

    A table that was read stays in memory until another takes its place.

    Parameters
    ----------
    tell : callable
        Is called with what is being done.
    largest : int
        Bytes that a packed file may hold.
    """

    def __init__(self, tell: Callable[[str], None], largest: int) -> None:
        self._tell = tell
        self._largest = largest
        self._read: dict[str, tuple[tuple[Any, ...], Columns]] = {}
        self._judged: dict[str, tuple[Any, Judged]] = {}

    # -- the table ------------------------------------------------------------------

    def demo(self) -> dict[str, Any]:
        """Write the two files of the demo, as the command line does."""
        calibration, test = halves(make_molecules(DEMO_ROWS, seed=0))
        write_table(calibration, "calibration.csv")
        write_table(test, "test.csv")
        return {"table": "test.csv", "known": "calibration.csv"}

    def examine(self, file: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the first rows, what columns are taken for, and what is wrong."""
        table = TableSettings.parse(file, settings)
        try:
            raw = self._raw(table)
        except (InvalidInputError, OSError) as problem:
            sentence = _sentence(problem)
            return {
                "settings": table.to_dict(),
                "problem": sentence,
                "remedies": _remedies(problem),
                "columns": [],
                "rows": 0,
            }
        frame = raw.frame
        guessed = ""
        if table.roles is None:
            roles, problems = guess(raw)
            guessed = " ".join(map(str, problems))
            table = replace(table, roles=roles)
        roles = table.roles or {}
        wrong, remedies = "", {}
        try:
            self._table(table).refuse_zeros()
        except InvalidInputError as problem:
            wrong, remedies = _sentence(problem), _remedies(problem)
            if guessed and isinstance(problem, ColumnError):
                wrong = guessed
        bad = _bad_cells(raw, roles)
        return {
            "settings": table.to_dict(),
            "problem": wrong,
            "remedies": remedies,
            "rows": frame.height,
            "columns": [
                _column(raw, name, role, bad.get(name)) for name, role in roles.items()
            ],
            "head": _rows(frame.head(HEAD_ROWS), range(min(HEAD_ROWS, frame.height))),
            "bad": _bad_rows(frame, bad),
        }

    def _raw(self, table: TableSettings) -> Columns:
        """Return the table of a file, which is read once."""
        changed = Path(table.file).stat().st_mtime_ns
        key = (table.separator, table.decimal, changed)
        if table.file not in self._read or self._read[table.file][0] != key:
            self._read.pop(table.file, None)  # never two at once
            refuse_bomb(table.file, self._largest)
            self._read[table.file] = (key, read_columns([table.file], table.reading()))
        return self._read[table.file][1]

    def _table(
        self, table: TableSettings, expected: Choice | Expected | None = None
    ) -> Table:
        choice = table.choice() if expected is None else expected
        return Table.take([table.file], table.reading(), self._raw(table), choice)

    # -- the verdict ----------------------------------------------------------------

    def judge(self, file: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Judge a table as it is."""
        table = TableSettings.parse(file, settings)
        judged = self._judge(table)
        data: Any = judged.data
        return {
            "told": str(data),
            "data": data.to_dict(),
            "found": validation_view(judged.found),
            "bins": judged.found.local["u"].n.size,
            "most_bins": max(2, min(200, data.n_rows // MIN_ROWS)),
            "command": check_command(table),
        }

    def _judge(self, table: TableSettings) -> Judged:
        key = (table, Path(table.file).stat().st_mtime_ns)
        found = self._judged.get(table.file)
        if found is None or found[0] != key:
            judged = judge_table(self._table(table), groups=table.groups)
            self._judged[table.file] = found = (key, judged)
        return found[1]

    def report(self, file: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Write the report on a table as it is, with its pictures."""
        table = TableSettings.parse(file, settings)
        report, parts = verdict_files(file)
        self._judge(table).write_report(Path(report), parts=Path(parts))
        return _contents(report, parts)

    def local(
        self, file: str, settings: dict[str, Any], bins: int, scaler: str | None
    ) -> dict[str, Any]:
        """Return local calibration in other bins, as `check --bins` would."""
        table, data = self._of_stage(file, settings, scaler)
        u = (
            data.uncertainty
            if scaler is None
            else data.recalibrated(load_saved(scaler).maps)
        )
        labels = data.groups(table.groups)
        rows = as_predictions(data.error, u, data.features, labels)
        settled = check_settings(bins, "bca", 0.95, 1500)
        feasible = feasible_bins(rows.n_rows, bins, min_size=MIN_ROWS)
        found = measure(
            rows,
            replace(settled, n_bins=feasible),
            np.random.default_rng(0),
            ties=data.uncertainty,
        )
        return {name: local_view(each, 2.0) for name, each in found.local.items()}

    def rows(
        self,
        file: str,
        settings: dict[str, Any],
        scaler: str | None,
        variable: str,
        low: Any,
        high: Any,
    ) -> dict[str, Any]:
        """Return the rows of a region, the worst first."""
        _, data = self._of_stage(file, settings, scaler)
        u = (
            data.uncertainty
            if scaler is None
            else data.recalibrated(load_saved(scaler).maps)
        )
        if variable == "u":
            x = pl.Series(u)
        elif variable in data.X.columns[1:]:
            x = data.X[variable]
        else:
            msg = f"There is no variable {variable!r}."
            raise InvalidInputError(msg)
        if x.dtype.is_numeric():
            limits = [float(each) if each is not None else None for each in (low, high)]
            inside = pl.Series(np.full(x.len(), fill_value=True))
            inside &= True if limits[0] is None else x >= limits[0]
            inside &= True if limits[1] is None else x <= limits[1]
        else:
            inside = x.cast(pl.String) == str(low)
        z = np.asarray(data.error) / u
        within = np.flatnonzero(inside.to_numpy())
        worst = within[np.argsort(-np.abs(z[within]), kind="stable")][:REGION_ROWS]
        places = data.columns.places
        frame = data.columns.frame[worst.tolist()]
        shown = _rows(frame, worst if places is None else places.to_numpy()[worst])
        return {
            "count": int(within.size),
            "zms": float(np.mean(z[within] ** 2)) if within.size else None,
            "z": z[worst].tolist(),
            **shown,
        }

    def _of_stage(
        self, file: str, settings: dict[str, Any], scaler: str | None
    ) -> tuple[TableSettings, Table]:
        table = TableSettings.parse(file, settings)
        if scaler is None:
            return table, self._table(table)
        return table, self._table(table, _expected(scaler, table))

    # -- recalibration --------------------------------------------------------------

    def recalibrate(
        self,
        file: str,
        settings: dict[str, Any],
        known: tuple[str, dict[str, Any]] | None,
        plan: dict[str, Any],
    ) -> dict[str, Any]:
        """Divide, fit, judge, report and apply; return all that the page shows."""
        table = TableSettings.parse(file, settings)
        second = None if known is None else TableSettings.parse(*known)
        wanted = Plan.parse(table, second, plan)
        divided = wanted.kind != "file"
        if divided:
            self._tell("dividing the table")
            random = wanted.kind == "random"
            divide_table(
                file,
                self._raw(table),
                table.reading(),
                wanted.calibration,
                wanted.test,
                share=wanted.share if random else None,
                first_where=None if random else wanted.condition,
                groups=table.groups if wanted.together else None,
                seed=wanted.seed,
            )
        learned_from, test = wanted.learned, replace(table, file=wanted.test)
        if divided:
            learned_from = replace(table, file=wanted.calibration, where=None)
            test = replace(test, where=None)
        self._tell("learning from known errors")
        data = self._table(learned_from)
        learned = learn(
            data,
            wanted.method,
            bins=wanted.bins,
            groups=learned_from.groups,
            seed=wanted.seed,
        )
        save(learned.scaler, wanted.scaler, source=source_of(data.roles))
        told = learned.to_dict()
        self._tell("judging the other rows")
        judged_data = self._table(test, _expected(wanted.scaler, test))
        judged = judge_table(
            judged_data,
            scaler=wanted.scaler,
            groups=test.groups,
            seed=wanted.seed,
        )
        self._tell("writing the report")
        expected = _expected(wanted.scaler, test)
        judged.write_report(
            Path(wanted.report),
            calibration=self._table(learned_from, expected)
            if wanted.is_comparable
            else None,
            parts=Path(wanted.parts),
        )
        self._tell("writing the table")
        self._apply(wanted)
        is_excel = file.lower().endswith(".xlsx")
        with_onnx = find_spec("onnx") is not None
        if with_onnx:
            to_onnx(load_map(wanted.scaler), wanted.onnx)
        assert judged.recalibrated is not None
        return {
            "told": [str(data), str(judged.data)],
            "rows": [data.n_rows, judged_data.n_rows],
            "words": told["words"],
            "factors": range_in_words(told["factors"]) if "factors" in told else "",
            "chosen": told.get("chosen"),
            "candidates": candidates_view(told),
            "before": validation_view(judged.found),
            "after": validation_view(judged.recalibrated),
            "bins": judged.found.local["u"].n.size,
            "most_bins": max(2, min(200, judged_data.n_rows // MIN_ROWS)),
            "test": {"file": test.file, "settings": test.to_dict()},
            "scaler": wanted.scaler,
            **_contents(wanted.report, wanted.parts),
            "files": {
                "table": wanted.recalibrated,
                "scaler": wanted.scaler,
                "report": wanted.report,
                **({"onnx": wanted.onnx} if with_onnx else {}),
                **(
                    {"calibration": wanted.calibration, "test": wanted.test}
                    if divided
                    else {}
                ),
            },
            "commands": recalibration_commands(wanted, with_onnx=with_onnx),
            "python": python_lines(
                wanted,
                source_of(data.roles),
                kind_of(file if is_excel else f"x{ending(file)}", b""),
            ),
        }

    def _apply(self, plan: Plan) -> None:
        """Write the whole table with new uncertainties, as `apply` does."""
        table = plan.table
        saved = load_saved(plan.scaler)
        named = Choice(
            options=True,
            uncertainty=next(iter(table.of("uncertainty")), None),
            variance=next(iter(table.of("variance")), None),
        )
        data = self._table(table, Expected(saved.roles, named))
        data = data.recalibrate(saved.maps, None, None)
        data.write(plan.recalibrated, saved.roles)


def _expected(scaler: str, table: TableSettings) -> Expected:
    choice = replace(table.choice(), features=(), labels=())
    return expected_by(scaler, load_saved(scaler), choice)


def _contents(report: str, parts: str) -> dict[str, Any]:
    """Return what a report consists of."""
    contents = json.loads((Path(parts) / CONTENTS).read_text("utf-8"))
    methods = (Path(parts) / METHODS).read_text("utf-8")
    return {
        "report": report,
        "parts": parts,
        "pictures": contents["pictures"],
        "methods": methods,
    }


def _sentence(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}"
    return " ".join(str(problem).split())


def _remedies(problem: Exception | None) -> dict[str, Any]:
    """Return the settings that would mend a problem, so that a click can make them."""
    code, fields = getattr(problem, "code", ""), getattr(problem, "fields", {})
    if code == "separator":
        comma = {"decimal": ","} if fields["decimal"] == "," else {}
        return {"separator": fields["separator"], **comma}
    settings: dict[str, dict[str, Any]] = {
        "decimal-comma": {"decimal": ","},
        "missing-values": {"drop_missing": True},
    }
    return settings.get(code, {})


def _column(
    raw: Columns, name: str, role: str, bad: pl.Series | None
) -> dict[str, Any]:
    column = raw.frame[name]
    texts = column.dtype == pl.String
    missing = column.is_null()
    if texts:
        missing |= column.str.strip_chars().str.to_lowercase().is_in(MISSING_TEXTS)
    nested = column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object)
    values = None
    if not nested and role != "feature":
        distinct = column.unique().drop_nulls()
        if 1 < distinct.len() <= MOST_VALUES:
            values = sorted(map(str, distinct.to_list()))
    return {
        "name": name,
        "role": role,
        "type": "number" if raw.is_numeric(name) else _kind(column.dtype),
        "numeric": column.dtype.is_numeric(),
        "missing": int(missing.sum()),
        "bad": 0 if bad is None else int(bad.sum()),
        "values": values,
    }


def _kind(dtype: pl.DataType) -> str:
    return "text" if dtype == pl.String else str(dtype).lower()


def _bad_cells(raw: Columns, roles: dict[str, str]) -> dict[str, pl.Series]:
    """Return where the columns that are used hold what cannot be used."""
    found = {}
    for name, role in roles.items():
        column = raw.frame[name]
        if role == "ignored" or column.dtype.is_nested():
            continue
        if role in ("label", "groups"):
            found[name] = column.is_null()
            continue
        if column.dtype == pl.String:
            if role == "feature" and not raw.is_numeric(name):
                found[name] = column.is_null()  # labels
                continue
            text = column.str.strip_chars()
            if raw.decimal == ",":
                text = text.str.replace(",", ".", literal=True)
            values = text.cast(pl.Float64, strict=False)
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            values = column.cast(pl.Float64)
        else:
            continue
        bad = ~values.is_finite().fill_null(False)
        if role in ("uncertainty", "variance"):
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
    return {"count": int(anywhere.sum()), "marks": marks, **_rows(kept, places)}


def _rows(frame: pl.DataFrame, places: Any) -> dict[str, Any]:
    """Return rows as text, with their place in the file, from 1."""
    shown = frame.select(frame.columns[:MOST_SHOWN])
    return {
        "columns": shown.columns,
        "places": [int(place) + 1 for place in places],
        "cells": [[text_of(cell) for cell in row] for row in shown.rows()],
    }


def done(result: Any) -> Any:
    """Return a result that JSON can hold."""
    return finite(result)
