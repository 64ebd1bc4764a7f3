"""What the worker does: it runs commands, and looks at tables where no command does."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..bins.partitions import feasible_bins
from ..cli.app import run
from ..cli.check import expected_by
from ..cli.demo import halves
from ..cli.files import load_saved, write_table
from ..cli.fit import range_in_words
from ..cli.options import Wanted
from ..cli.table import Columns, Table, read_columns
from ..datasets import make_molecules
from ..exceptions import InvalidInputError
from ..judging.intervals import MIN_ROWS
from ..judging.local import check_settings, measure
from ..report.svg import CONTENTS, METHODS
from ..roles import guess
from .commands import Additions, Plan, TableSettings, line, python_lines
from .uploads import refuse_bomb
from .views import (
    HEAD_ROWS,
    candidates_view,
    columns_view,
    local_view,
    problem_view,
    rows_view,
    unclear_columns,
    validation_view,
)

DEMO_ROWS = 4000
REGION_ROWS = 100
MOST_BINS = 200
STEPS = {
    "divide": "dividing the table",
    "fit": "learning from known errors",
    "check": "judging the other rows",
    "apply": "writing the table",
    "export": "writing the recalibrator",
}


class Orders:
    """Does what it is told, one thing after the other, in the present folder.

    A table comes as the arguments of :meth:`TableSettings.parse`. One that was looked
    at stays in memory until a command needs the place.

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
        self._read: tuple[Any, Columns] | None = None

    # -- tables ---------------------------------------------------------------------

    def demo(self, folder: str) -> dict[str, Any]:
        """Write the two tables of the demo, as the command line does."""
        calibration, test = halves(make_molecules(DEMO_ROWS, seed=0))
        tables = {"known": "calibration.csv", "table": "test.csv"}
        for name, half in zip(tables.values(), (calibration, test), strict=True):
            write_table(half, str(Path(folder, name)))
        return tables

    def examine(self, table: dict[str, Any], kind: str) -> dict[str, Any]:
        """Return the first rows, what columns are taken for, and what is wrong.

        New predictions have the columns that a recalibrator was fitted with, or what is
        said; of a recalibrator, what it has learned is told.
        """
        settings = TableSettings.parse(**table)
        nothing = {"settings": settings.to_dict(), "columns": [], "rows": 0}
        try:
            if kind == "scaler":
                told = self._run(["show", settings.file])
                return nothing | problem_view(None) | {"words": told["words"]}
            raw = self._columns(settings)
        except (InvalidInputError, OSError) as problem:
            return nothing | problem_view(problem)
        wrong: Exception | None = None
        if kind == "new":
            roles = settings.roles or dict.fromkeys(raw.names, "ignored")
            settings = replace(settings, roles=roles)
        elif settings.roles is None:
            roles, unclear = guess(raw)
            settings = replace(settings, roles=roles)
            if unclear:
                wrong = unclear_columns(unclear, raw.names)
        try:
            if kind != "new":
                self._table(settings)
        except InvalidInputError as problem:
            wrong = wrong or problem
        return {
            "settings": settings.to_dict(),
            **problem_view(wrong),
            **columns_view(raw, settings.roles or {}, lifted=bool(settings.minimum)),
        }

    def _columns(self, settings: TableSettings) -> Columns:
        """Return the columns of a file, which is read once."""
        changed = Path(settings.file).stat().st_mtime_ns
        key = (settings.file, settings.separator, settings.decimal, changed)
        if self._read is None or self._read[0] != key:
            self._read = None  # never two at once
            refuse_bomb(settings.file, self._largest)
            self._read = (key, read_columns([settings.file], settings.reading()))
        return self._read[1]

    def _table(self, settings: TableSettings, scaler: str | None = None) -> Table:
        """Return the rows of a table, maybe with what a recalibrator needs."""
        choice: Any = settings.choice(features=scaler is None)
        if scaler is not None:
            choice = expected_by(scaler, load_saved(scaler), choice)
        columns = self._columns(settings)
        return Table.take([settings.file], settings.reading(), columns, choice)

    # -- commands -------------------------------------------------------------------

    def _run(self, command: list[str]) -> Any:
        self._read = None
        return run(command)[1]

    def judge(self, table: dict[str, Any]) -> dict[str, Any]:
        """Judge a table as it is."""
        settings = TableSettings.parse(**table)
        judged = self._run(settings.check(report=False))
        return {
            "told": str(judged.data),
            "found": validation_view(judged.found.targets[""]),
            "command": line(settings.check(report=True)),
            **_numbers_of_bins(judged),
        }

    def report(self, table: dict[str, Any]) -> dict[str, Any]:
        """Write the report on a table as it is, with its pictures."""
        settings = TableSettings.parse(**table)
        self._run(settings.check(report=True))
        return _contents(*settings.verdict)

    def recalibrate(
        self,
        table: dict[str, Any],
        known: dict[str, Any] | None,
        plan: dict[str, Any],
    ) -> dict[str, Any]:
        """Divide, fit, judge, report, apply and export; return what the page shows."""
        second = None if known is None else TableSettings.parse(**known)
        wanted = Plan.parse(TableSettings.parse(**table), second, plan)
        levels = (
            wanted.additions.quantiles or None
        )  # are checked before rows are learned
        Wanted.of(None, levels, shift=False, prediction=None)
        commands, told = wanted.commands(), {}
        files, test = wanted.files, wanted.judged
        for command in list(commands):
            self._tell(STEPS[command[0]])
            try:
                told[command[0]] = self._run(command)
            except Exception as problem:
                if command[0] != "export":
                    raise
                commands.remove(command)
                msg = f"{files.pop('onnx')} was not written: {problem}"
                warnings.warn(msg, UserWarning, stacklevel=1)
        learned, judged = told["fit"], told["check"]
        return {
            "rows": [learned["data"]["rows"], judged.data.n_rows],
            "words": learned["words"],
            "factors": range_in_words(learned["factors"])
            if "factors" in learned
            else "",
            "candidates": candidates_view(learned),
            "before": validation_view(judged.found.targets[""]),
            "after": validation_view(judged.recalibrated.targets[""]),
            **_numbers_of_bins(judged),
            "test": {"file": test.file, "stem": "", "settings": test.to_dict()},
            "scaler": files["scaler"],
            **_contents(files["report"], wanted.parts),
            "files": files,
            "commands": [line(command) for command in commands],
            "python": python_lines(wanted, learned["data"]),
        }

    def apply(
        self, table: dict[str, Any], scaler: str, wanted: dict[str, Any]
    ) -> dict[str, Any]:
        """Recalibrate new predictions; return what was written."""
        settings = TableSettings.parse(**table)
        command = Additions.parse(wanted).apply(settings, scaler)
        told = self._run(command)
        made = replace(settings, file=settings.made, where=None)
        head = self._columns(made).frame.head(HEAD_ROWS)
        new = [told["column"], *told.get("distribution", ())]
        head = head.select(*new, pl.exclude(new))
        return {
            "rows": told["rows"],
            "scaler": scaler,
            "head": rows_view(head, np.arange(head.height)),
            "files": {"new": settings.made},
            "commands": [line(command)],
        }

    # -- what the picture asks for --------------------------------------------------

    def local(
        self, table: dict[str, Any], scaler: str | None, bins: int
    ) -> dict[str, Any]:
        """Return local calibration in other bins, as `check --bins` would."""
        settings = TableSettings.parse(**table)
        data = self._table(settings, scaler)
        rows = data.judged_rows(_maps(scaler), settings.groups)[""]
        feasible = feasible_bins(rows.n_rows, bins, min_size=MIN_ROWS)
        how = replace(check_settings(bins, "bca", 0.95, 1500), n_bins=feasible)
        rng = np.random.default_rng(0)
        found = measure(rows, how, rng, ties=data.uncertainty)
        return {name: local_view(each, 2.0) for name, each in found.local.items()}

    def rows(
        self,
        table: dict[str, Any],
        scaler: str | None,
        variable: str,
        low: Any,
        high: Any,
    ) -> dict[str, Any]:
        """Return the rows of a region, the worst first."""
        data = self._table(TableSettings.parse(**table), scaler)
        judged = data.judged_rows(_maps(scaler))[""]
        if variable != "u" and variable not in data.X.columns[1:]:
            msg = f"There is no variable {variable!r}."
            raise InvalidInputError(msg)
        x = pl.Series(judged.uncertainty) if variable == "u" else data.X[variable]
        if x.dtype.is_numeric():
            limits = (
                -np.inf if low is None else float(low),
                np.inf if high is None else float(high),
            )
            inside = x.is_between(*limits)
        else:
            inside = x.cast(pl.String) == str(low)
        z = judged.z
        within = np.flatnonzero(inside.to_numpy())
        worst = within[np.argsort(-np.abs(z[within]), kind="stable")][:REGION_ROWS]
        places = data.columns.places
        return {
            "count": int(within.size),
            "zms": float(np.mean(z[within] ** 2)) if within.size else None,
            "z": z[worst].tolist(),
            **rows_view(
                data.columns.frame[worst.tolist()],
                worst if places is None else places.to_numpy()[worst],
            ),
        }


def _maps(scaler: str | None) -> Any:
    return None if scaler is None else load_saved(scaler).maps


def _numbers_of_bins(judged: Any) -> dict[str, int]:
    most = max(2, min(MOST_BINS, judged.data.n_rows // MIN_ROWS))
    return {"bins": judged.found.targets[""].local["u"].n.size, "most_bins": most}


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
