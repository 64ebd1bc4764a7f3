"""The commands, and the Python lines, that do again what was done on the page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from .plan import Plan, verdict_files
from .settings import TableSettings

Options = Sequence[tuple[str, str | None]]
DEMO_ROWS = 4000


def check_command(table: TableSettings) -> str:
    """Return the command that judges a table and writes the report."""
    report, parts = verdict_files(table.file)
    options = [*table.errors(), *table.features(), *table.how_read()]
    options += [*_groups(table), *_engine(table.file)]
    options += [("--report", report), ("--parts", parts)]
    return command("check", [table.file], options)


def recalibration_commands(plan: Plan, *, with_onnx: bool) -> list[str]:
    """Return the commands that divide, fit, judge, apply and export."""
    table, learned, seed = plan.table, plan.learned, ("--seed", str(plan.seed))
    found = []
    how: Options
    parts = [("--calibration", plan.calibration), ("--test", plan.test)]
    if plan.kind == "random":
        together = _groups(table) if plan.together else []
        how = [("--share", repr(plan.share)), *together, seed]
        found.append(command("divide", [table.file], [*_whole(table), *how, *parts]))
    elif plan.kind == "column":
        how = [("--first-where", plan.condition)]
        found.append(command("divide", [table.file], [*_whole(table), *how, *parts]))
    divided = plan.kind != "file"
    fit: list[tuple[str, str | None]] = [*learned.errors(), *learned.features()]
    fit += [*learned.how_read(where=not divided), ("--method", plan.method)]
    fit += [("--bins", str(plan.bins))] if plan.bins else []
    fit += [*_groups(learned), *_engine(plan.calibration)]
    fit += [seed, ("-o", plan.scaler)]
    found.append(command("fit", [plan.calibration], fit))
    judge: list[tuple[str, str | None]] = [*table.errors()]
    judge += [*table.how_read(where=not divided), *_groups(table)]
    judge += [*_engine(plan.test), seed, ("--scaler", plan.scaler)]
    judge += [("--calibration", plan.calibration)] if plan.is_comparable else []
    judge += [("--report", plan.report), ("--parts", plan.parts)]
    found.append(command("check", [plan.test], judge))
    apply: list[tuple[str, str | None]] = [*table.uncertainties()]
    apply += [*table.how_read(), *_engine(table.file), ("-o", plan.recalibrated)]
    found.append(command("apply", [plan.scaler, table.file], apply))
    if with_onnx:
        export = [("--to", "onnx"), ("-o", plan.onnx)]
        found.append(command("export", [plan.scaler], export))
    return found


def _whole(table: TableSettings) -> Options:
    """Return how a table is read that is only divided."""
    return [each for each in table.how_read() if each[0] != "--drop-missing"]


def _groups(table: TableSettings) -> list[tuple[str, str | None]]:
    return [("--groups", table.groups)] if table.groups is not None else []


def _engine(file: str) -> list[tuple[str, str | None]]:
    """Return what makes the command line read a large file as the page does."""
    from ..cli.table import stays_lazy

    return [("--engine", "memory")] if stays_lazy([file], None) else []


def command(name: str, files: Sequence[str], options: Options) -> str:
    """Return a line for a shell.

    >>> command("check", ["a b.csv"], [("--error", "-E"), ("--drop-missing", None)])
    "sigmascale check 'a b.csv' --error=-E --drop-missing"
    """
    words = ["sigmascale", name, *files]
    for option, value in options:
        if value is None:
            words.append(option)
        elif value.startswith("-"):
            words.append(f"{option}={value}")
        else:
            words += [option, value]
    return shlex.join(words)


READERS = {
    "parquet": "pl.read_parquet(file)",
    "arrow": "pl.read_ipc(file)",
    "ndjson": "pl.read_ndjson(file)",
    "excel": 'pl.read_excel(file) if file.endswith(".xlsx") else pl.read_csv(file)',
}
PROGRAM = """\
import polars as pl
import sigmascale as ss

columns = {columns}  # the uncertainty first


def read(file):
    table = {reader}
    return table{complete}


def conditioning(table):
    return table.select(columns){root}


calibration = read({calibration})
error = {error}
scaler = ss.{scaler}
scaler.fit(conditioning(calibration), error{groups})

table = read({file})
new = pl.Series({new}, scaler.predict(conditioning(table)){square})
print(table.with_columns(new))
"""


def python_lines(plan: Plan, roles: dict[str, Any], kind: str) -> str:
    """Return a Python program that fits and applies the same recalibrator.

    `roles` are those of the file that was learned from, as `fit` saves them, and `kind`
    the format of the files.
    """
    table, u = plan.table, roles["uncertainty"]
    columns = [u, *roles["numbers"], *roles["labels"]]
    reader = READERS.get(kind)
    if reader is None:
        between = table.separator or ("\t" if kind == "tsv" else ",")
        comma = ", decimal_comma=True" if table.decimal == "," else ""
        missing = '", "'.join(["", "NA", "NaN", "nan", "null"])
        reader = (
            f"pl.read_csv(file, separator={between!r}, infer_schema_length=None,"
            f'\n        null_values=["{missing}"]{comma})'
        )
    used = list(dict.fromkeys([*columns, *roles["error"]]))
    groups = plan.learned.groups
    return PROGRAM.format(
        columns=repr(columns),
        reader=reader,
        complete=f".drop_nulls({used!r})" if table.drop_missing else "",
        root=f".with_columns(pl.col({u!r}).sqrt())" if roles["is_variance"] else "",
        calibration=repr(plan.calibration),
        error=" - ".join(f"calibration[{name!r}]" for name in roles["error"]),
        scaler=_constructor(plan, roles),
        groups=""
        if groups is None
        else f", groups=calibration[{groups!r}].cast(pl.String)",
        file=repr(table.file),
        new=repr(f"{u}_recalibrated"),
        square=" ** 2" if roles["is_variance"] else "",
    )


def _constructor(plan: Plan, roles: dict[str, Any]) -> str:
    """Return the recalibrator as `fit` makes it."""
    from ..cli.methods import make_scaler
    from ..roles import Roles

    made = make_scaler(
        plan.method, Roles.from_dict(roles), bins=plan.bins, seed=plan.seed
    )
    own = made.get_params(deep=False).items()
    words = ", ".join(f"{name}={value!r}" for name, value in own)
    return f"{type(made).__name__}({words})"
