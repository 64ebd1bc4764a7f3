"""What a person has said on the page, and the commands that do it.

The worker runs these commands, and the page shows them: what comes of both is the same.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..exceptions import ColumnError, InvalidInputError

if TYPE_CHECKING:
    from ..cli.options import Reading
    from ..roles import Choice

# What a column can be; of those in ONE there is at most one.
ERRORS = ("error", "reference", "prediction")
FEATURES = ("feature", "label")
ONE = (*ERRORS, "uncertainty", "variance", "low", "high", "groups")
ROLES = (*ONE, "member", "quantile", *FEATURES, "ignored")
KINDS = ("random", "column", "file")
NUMBERS = ("interval_coverage", "minimum")
TEXTS = ("separator", "decimal", "where", *NUMBERS)
MOST_COLUMNS = 10_000
LONGEST_TEXT = 1_000
ENDING = re.compile(
    r"(\.(csv|tsv|tab|parquet|pq|feather|arrow|ipc|jsonl|ndjson|xlsx)(\.gz)?)$", re.I
)
# What names of files that are made end in, before what tells their format.
MADE = ("calibration", "test", "recalibrated", "scaler", "verdict")
PARTS = "_parts"  # a folder of pictures


# -- tables -------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSettings:
    """A file, what its columns are, and how it is read.

    Attributes
    ----------
    file : str
        Its name in the folder of the app.
    stem : str
        What the names of files that are made of it begin with.
    roles : dict of str to str
        What each column is; None if they are still to be guessed.
    separator, decimal, where, interval_coverage, minimum : str or None
        As for the command line.
    drop_missing : bool
        Whether rows with missing values are left out.
    """

    file: str
    stem: str
    roles: dict[str, str] | None = None
    separator: str | None = None
    decimal: str | None = None
    where: str | None = None
    interval_coverage: str | None = None
    minimum: str | None = None
    drop_missing: bool = False

    @classmethod
    def parse(cls, file: str, stem: str, settings: Any) -> TableSettings:
        """Check what the page has sent."""
        if not isinstance(settings, dict):
            msg = "The settings of a table must be an object."
            raise InvalidInputError(msg)
        roles = settings.get("roles")
        if roles is not None and (
            not isinstance(roles, dict)
            or len(roles) > MOST_COLUMNS
            or not all(value in ROLES for value in roles.values())
        ):
            msg = f"Columns must be one of {', '.join(ROLES)}."
            raise InvalidInputError(msg)
        texts = {}
        for name in TEXTS:
            text = settings.get(name) or None
            if text is not None and (
                not isinstance(text, str) or len(text) > LONGEST_TEXT
            ):
                msg = f"{name} must be text, of at most {LONGEST_TEXT} characters."
                raise InvalidInputError(msg)
            texts[name] = text
        complete = bool(settings.get("drop_missing"))
        return cls(file, stem, roles, **texts, drop_missing=complete)

    def to_dict(self) -> dict[str, Any]:
        """Return what a person has said."""
        return {k: v for k, v in vars(self).items() if k not in ("file", "stem")}

    def of(self, role: str) -> list[str]:
        """Return the columns that have a role."""
        return [name for name, each in (self.roles or {}).items() if each == role]

    @property
    def groups(self) -> str | None:
        """The column of groups, if there is one."""
        return next(iter(self.of("groups")), None)

    @property
    def made(self) -> str:
        """The table with recalibrated uncertainties."""
        return f"{self.stem}_recalibrated{ending_of(self.file)}"

    def choice(self, *, features: bool = True) -> Choice:
        """Return the columns as the command line names them."""
        from ..roles import Choice

        one = {role: self.of(role) for role in ONE}
        for role, names in one.items():
            if len(names) > 1:
                msg = f"There can be one column of the kind {role}; found {names}."
                raise InvalidInputError(msg)
        said = self.uncertainty
        if not set(said) - {"minimum"}:
            msg = "No column is the uncertainty. Choose one in the table of columns."
            raise ColumnError(msg, "uncertainty")
        made = not {"uncertainty", "variance"} & set(said)
        if not one["error"] and not (one["reference"] and (one["prediction"] or made)):
            msg = (
                "No column is the error. Choose one in the table of columns; or choose "
                "both the reference and the prediction, whose difference it is."
            )
            raise ColumnError(msg, "error")
        named: dict[str, Any] = {role: next(iter(one[role]), None) for role in ERRORS}
        numbers = {each: _number(each, said.pop(each, None)) for each in NUMBERS}
        named |= said | numbers
        if features:
            named |= {"features": self.of("feature"), "labels": self.of("label")}
        return Choice(options=True, **named)

    def reading(self) -> Reading:
        """Return how the file is read."""
        from ..cli.options import Reading

        return Reading(self.where, self.drop_missing, self.separator, self.decimal)

    @property
    def uncertainty(self) -> dict[str, str]:
        """What is said of the uncertainty, by what options call it."""
        found = sorted((_level_in(name), name) for name in self.of("quantile"))
        levels = [f"{name}={level:g}" for level, name in found]
        interval = [*self.of("low"), *self.of("high")]
        said = {
            **{
                each: "".join(self.of(each)[:1]) for each in ("uncertainty", "variance")
            },
            "members": ",".join(self.of("member")),
            "quantile_columns": ",".join(levels),
            "interval": ",".join(interval),
            "interval_coverage": (interval and self.interval_coverage) or "",
            "minimum": self.minimum or "",
        }
        return {each: value for each, value in said.items() if value}

    @property
    def uncertain(self) -> list[str]:
        """The options that name the uncertainty."""
        said = self.uncertainty.items()
        return [w for k, v in said for w in option(f"--{k.replace('_', '-')}", v)]

    def columns(self, *roles: str) -> list[str]:
        """Return the options that name the columns of some roles."""
        return [
            word
            for role in roles
            for name in self.of(role)
            for word in option(f"--{role}", name)
        ]

    def how_read(self, *, whole: bool = False) -> list[str]:
        """Return the options that say how the file is read, maybe with all its rows."""
        found = [*option("--separator", self.separator)]
        found += option("--decimal", self.decimal)
        return found if whole else found + ["--drop-missing"] * self.drop_missing

    @property
    def verdict(self) -> tuple[str, str]:
        """The report on the table as it is, and the folder of its pictures."""
        return f"{self.stem}_verdict.html", f"{self.stem}_verdict{PARTS}"

    def check(self, *, report: bool) -> list[str]:
        """Return the command that judges the table, maybe with a report."""
        path, parts = self.verdict
        return [
            *("check", self.file, *self.columns(*ERRORS), *self.uncertain),
            *self.columns(*FEATURES),
            *(*option("--where", self.where), *self.how_read()),
            *(*self.columns("groups"), *in_memory(self.file)),
            *(("--report", path, "--parts", parts) if report else ()),
        ]


@dataclass(frozen=True)
class Additions:
    """What a table gets beside uncertainties, as options of commands.

    Attributes
    ----------
    quantiles, coverage : str
        Levels of quantiles, and the coverage of limits; empty if not wanted.
    shift : bool
        Whether shifted predictions are.
    """

    quantiles: str = ""
    coverage: str = ""
    shift: bool = False

    @classmethod
    def parse(cls, found: dict[str, Any]) -> Additions:
        """Take what the page has sent; commands check it."""
        quantiles, coverage = (
            str(found.get(each) or "") for each in ("quantiles", "coverage")
        )
        return cls(quantiles, coverage, found.get("shift") is True)

    @property
    def options(self) -> list[str]:
        """The options that ask for it."""
        found = option("--quantiles", self.quantiles)
        found += option("--coverage", self.coverage)
        return found + ["--shift"] * self.shift

    def apply(self, table: TableSettings, scaler: str) -> list[str]:
        """Return the command that recalibrates a table."""
        about = table.columns("prediction") if self.options else []
        return [
            *("apply", scaler, table.file, *table.uncertain, *about),
            *(*option("--where", table.where), *table.how_read()),
            *(*in_memory(table.file), *self.options, "-o", table.made),
        ]


def _level_in(name: str) -> float:
    """Return the level of a quantile that the name of its column tells."""
    from ..roles import level_of

    digits = re.findall(r"\d+(?:\.\d+)?", name)
    if not digits:
        msg = (
            f"The name {name!r} tells no level of a quantile. Call such columns "
            "q05, q50, q95, or the like."
        )
        raise InvalidInputError(msg)
    return level_of("quantile", digits[-1])


def _number(name: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError as problem:
        msg = f"--{name.replace('_', '-')} must be a number; found {text!r}."
        raise InvalidInputError(msg) from problem


def option(name: str, value: str | None) -> list[str]:
    """Return the words of an option, none if it has no value.

    >>> option("--error", "E"), option("--error", "-E"), option("--bins", None)
    (['--error', 'E'], ['--error=-E'], [])
    """
    if not value:
        return []
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def in_memory(file: str) -> list[str]:
    """Return what makes a command read a large file as the page does."""
    from ..cli.table import stays_lazy

    return ["--engine", "memory"] if stays_lazy([file], None) else []


def line(arguments: Sequence[str]) -> str:
    """Return a command as a line for a shell."""
    return shlex.join(["sigmascale", *arguments])


def free_stem(file: str, tables: Iterable[str], other: str = "") -> str:
    """Return a beginning of names that no table has, for files made of one of them.

    Nor is it that of the files made of an `other` table.

    >>> free_stem("a.csv", ["a.csv"]), free_stem("a.csv", ["a_test.parquet"])
    ('a', 'a-2')
    """
    first = found = stem_of(file)
    taken = {stem_of(table).removesuffix(PARTS).casefold() for table in tables}
    number = 1
    while found.casefold() == other.casefold() or any(
        f"{found}_{what}".casefold() in taken for what in MADE
    ):
        number += 1
        found = f"{first}-{number}"
    return found


def stem_of(file: str) -> str:
    """Return the name of a file without what tells its format.

    >>> stem_of("a.b.csv.gz"), stem_of("table.json"), stem_of("plain")
    ('a.b', 'table', 'plain')
    """
    return ENDING.sub("", file) if ENDING.search(file) else PurePath(file).stem


def ending_of(file: str) -> str:
    """Return the ending of a table that is written in the format of another.

    >>> ending_of("a.CSV"), ending_of("a.tsv.gz"), ending_of("a.json"), ending_of("a")
    ('.CSV', '.tsv.gz', '.jsonl', '.csv')
    """
    found = ENDING.search(file)
    if found and found[2].lower() != "xlsx":  # which is only read
        return found[1]
    return ".jsonl" if file.lower().endswith(".json") else ".csv"


# -- recalibration ------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How rows are divided, and what is fitted.

    Attributes
    ----------
    table : TableSettings
        The table.
    kind : str
        How to divide it: "random", "column" or "file".
    known : TableSettings or None
        The second file, for "file".
    share : str
        Rows to learn from, for "random".
    condition : str
        Which rows to learn from, for "column", as `--first-where` takes it.
    together : bool
        Whether rows of one group stay together.
    method : str
        The recalibrator.
    bins : str
        Its number of bins; empty if it is the usual one.
    seed : str
        The seed of all random numbers.
    additions : Additions
        What is taken along beside uncertainties.
    """

    table: TableSettings
    kind: str
    known: TableSettings | None
    share: str
    condition: str
    together: bool
    method: str
    bins: str
    seed: str
    additions: Additions

    @classmethod
    def parse(
        cls, table: TableSettings, known: TableSettings | None, found: Any
    ) -> Plan:
        """Take what the page has sent; values of options are checked by commands."""
        found = found if isinstance(found, dict) else {}
        kind = found.get("kind", "random")
        if kind not in KINDS:
            msg = f"Rows are divided by {', '.join(KINDS)}."
            raise InvalidInputError(msg)
        if kind == "file" and known is None:
            msg = "There is no second file yet. Drop one, or divide the table."
            raise InvalidInputError(msg)
        if kind == "column" and not found.get("column"):
            msg = "Name the column that says which rows to learn from."
            raise InvalidInputError(msg)
        return cls(
            table=table,
            kind=kind,
            known=known if kind == "file" else None,
            share=str(found.get("share") or 0.5),
            condition=_condition(found),
            together=bool(found.get("together")),
            method=str(found.get("method") or "boosted"),
            bins=str(found.get("bins") or ""),
            seed=str(found.get("seed") or 0),
            additions=Additions(quantiles=str(found.get("quantiles") or "")),
        )

    @property
    def learned(self) -> TableSettings:
        """The table to learn from."""
        return self.known or self._part("calibration")

    @property
    def judged(self) -> TableSettings:
        """The table to judge by."""
        return self.table if self.known else self._part("test")

    def _part(self, what: str) -> TableSettings:
        file = f"{self.table.stem}_{what}{ending_of(self.table.file)}"
        return replace(self.table, file=file, where=None)

    @property
    def files(self) -> dict[str, str]:
        """What is made, by what the page calls it."""
        stem = self.table.stem
        found = {
            "table": self.table.made,
            "scaler": f"{stem}_scaler.json",
            "report": f"{stem}_recalibrated.html",
        }
        if find_spec("onnx") is not None:
            found["onnx"] = f"{stem}_scaler.onnx"
        if self.known is None:
            found |= {"calibration": self.learned.file, "test": self.judged.file}
        return found

    @property
    def parts(self) -> str:
        """The folder of pictures."""
        return f"{self.table.stem}_recalibrated{PARTS}"

    def commands(self) -> list[list[str]]:
        """Return the commands that divide, fit, judge, apply and export."""
        table, learned, judged, files = (
            self.table,
            self.learned,
            self.judged,
            self.files,
        )
        seed = option("--seed", self.seed)
        scaler = files["scaler"]
        divide, export = [], []
        if self.known is None:
            how = ["--first-where", self.condition]
            if self.kind == "random":
                groups = table.columns("groups") if self.together else []
                how = [*option("--share", self.share), *groups, *seed]
            divide = [
                *("divide", table.file, *option("--where", table.where)),
                *(*table.how_read(whole=True), *how),
                *("--calibration", learned.file, "--test", judged.file),
            ]
        fit = [
            *("fit", learned.file, *learned.columns(*ERRORS), *learned.uncertain),
            *learned.columns(*FEATURES),
            *(*option("--where", learned.where), *learned.how_read()),
            *(*option("--method", self.method), *option("--bins", self.bins)),
            *(*learned.columns("groups"), *in_memory(learned.file), *seed),
            *("-o", scaler),
        ]
        check = [
            *("check", judged.file, *judged.columns(*ERRORS), *judged.uncertain),
            *(*option("--where", judged.where), *judged.how_read()),
            *(*judged.columns("groups"), *in_memory(judged.file), *seed),
            *("--scaler", scaler),
            *(("--calibration", learned.file) if self._are_alike else ()),
            *("--report", files["report"], "--parts", self.parts),
        ]
        apply = self.additions.apply(table, scaler)
        if "onnx" in files:
            export = ["export", scaler, "--to", "onnx", *self.additions.options]
            export += ["-o", files["onnx"]]
        return [each for each in (divide, fit, check, apply, export) if each]

    @property
    def _are_alike(self) -> bool:
        """Whether both files are read alike, so that the report can compare them."""
        first, second = (
            (each.columns(*ERRORS), each.uncertain, each.where, each.how_read())
            for each in (self.learned, self.judged)
        )
        return first == second


def _condition(found: dict[str, Any]) -> str:
    """Return that a column has a value, in SQL."""
    column, value = (str(found.get(name, "")) for name in ("column", "value"))
    quoted = "'" + value.replace("'", "''") + "'"
    if found.get("numeric") is True and _is_number(value):
        quoted = value
    return '"' + column.replace('"', '""') + f'" = {quoted}'


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# -- the same in Python -------------------------------------------------------------

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
{made}    return table{complete}


def conditioning(table):
    return table.select(columns){root}{lift}


calibration = read({calibration})
error = {error}
scaler = ss.{scaler}
scaler.fit(conditioning(calibration), error{groups})

table = read({file})
new = pl.Series({new}, scaler.predict(conditioning(table)){square})
{quantiles}print(table.with_columns(new{more}))
"""
QUANTILES = """\
levels = [{levels}]
quantiles = scaler.predict_quantiles(conditioning(table), levels){about}
named = zip(levels, quantiles.T)
more = [pl.Series(f"{{new.name}}_q{{level:g}}", values) for level, values in named]
"""


def python_lines(plan: Plan, roles: dict[str, Any]) -> str:
    """Return a Python program that fits and applies the same recalibrator.

    `roles` are those of the file that was learned from, as `fit` tells them.
    """
    table, u = plan.table, roles["uncertainty"]
    columns = [u, *roles["numbers"], *roles["labels"]]
    used = list(dict.fromkeys([*columns, *roles["error"]]))
    root = f".with_columns(pl.col({u!r}).sqrt())"
    groups = f", groups=calibration[{plan.learned.groups!r}].cast(pl.String)"
    about = [f" + table[{each!r}].to_numpy()[:, None]" for each in roles["error"][1:]]
    levels, least = plan.additions.quantiles, roles["minimum"]
    lift = f".with_columns(pl.col({u!r}).clip({least}))"
    quantiles = QUANTILES.format(levels=levels, about="".join(about))
    return PROGRAM.format(
        columns=repr(columns),
        reader=_reader(table),
        made=_making(roles),
        lift="" if least is None or roles["made_of"] else lift,
        complete=f".drop_nulls({used!r})" if table.drop_missing else "",
        root=root if roles["is_variance"] else "",
        calibration=repr(plan.learned.file),
        error=" - ".join(f"calibration[{name!r}]" for name in roles["error"]),
        scaler=_constructor(plan, roles),
        groups="" if plan.learned.groups is None else groups,
        file=repr(table.file),
        new=repr("u_recalibrated" if roles["made_of"] else f"{u}_recalibrated"),
        square=" ** 2" if roles["is_variance"] else "",
        quantiles=quantiles if levels else "",
        more=", *more" if levels else "",
    )


def _making(roles: dict[str, Any]) -> str:
    """Return what makes prediction and uncertainty of members or quantiles."""
    from ..roles import Form

    if not roles["made_of"]:
        return ""
    form = Form(tuple(roles["made_of"]), tuple(roles["levels"]))
    how = f"quantiles({roles['levels']!r}, " if form.levels else "members("
    columns = [f"{name}=" for name in form.made]
    least = "" if roles["minimum"] is None else f", minimum={roles['minimum']}"
    return (
        f"    rows = table.select({roles['made_of']!r}).to_numpy()\n"
        f"    made = ss.Predictions.from_{how}rows{least})\n"
        f"    table = table.with_columns({columns[0]}made.y_pred, "
        f"{columns[1]}made.uncertainty)\n"
    )


def _reader(table: TableSettings) -> str:
    """Return what reads a table."""
    from ..cli.files import kind_of

    kind = kind_of(table.file, b"")
    if kind in READERS:
        return READERS[kind]
    between = table.separator or ("\t" if kind == "tsv" else ",")
    comma = ", decimal_comma=True" if table.decimal == "," else ""
    return (
        f"pl.read_csv(file, separator={between!r}, infer_schema_length=None,"
        f'\n        null_values=["", "NA", "NaN", "nan", "null"]{comma})'
    )


def _constructor(plan: Plan, roles: dict[str, Any]) -> str:
    """Return the recalibrator as `fit` makes it."""
    from ..cli.methods import make_scaler
    from ..roles import Roles

    names = Roles(roles["uncertainty"], labels=tuple(roles["labels"]))
    bins = int(plan.bins) if plan.bins else None
    made = make_scaler(plan.method, names, bins=bins, seed=int(plan.seed))
    own = made.get_params(deep=False).items()
    words = ", ".join(f"{name}={value!r}" for name, value in own)
    return f"Recalibrator(ss.{type(made).__name__}({words}), random_state={plan.seed})"
