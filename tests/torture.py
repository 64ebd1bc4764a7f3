"""Attack the doors: the same data by each of them, odd, large, damaged or shared.

    make torture
    python tests/torture.py --only names types --seed 1

Whatever comes in by a door gives the numbers of all others, or an error in a sentence.
Saves and kills leave whole files, and nothing behind. A table says how many cases of
each class were tried, refused and failed; the program ends with 0 if none failed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import decimal
import http.client
import io
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale._support.files import PREFIX
from sigmascale.cli.app import run as command
from sigmascale.exceptions import InvalidInputError
from sigmascale.persistence import dumps, loads

sys.path.insert(0, str(Path(__file__).parent))
from cli.test_excel import write_workbook
from devices.conftest import Arrays

SIGNALS = [getattr(signal, f"SIG{name}") for name in ("KILL", "TERM", "HUP", "INT")]
LEAVES_NOTHING = SIGNALS[1:]  # the command line cleans up by itself
SAVE = """
import sys
import polars as pl
import sigmascale as ss

folder, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
scaler = ss.TemperatureScaling().fit([1.0, 2.0], [2.0, -4.0])
frame = pl.LazyFrame({"u": [1.0, 2.0]})
for i in range(count):
    if i % 20 == number:
        ss.frames.sink(frame, f"{folder}/{i % 7}.parquet")
    else:
        ss.save(scaler, f"{folder}/{i % 7}.json")
"""
SINK = (
    "from sigmascale.frames import scan, sink\nsink(scan('new.parquet'), 'o.parquet')"
)


def left(folder: Path) -> list[Path]:
    """Return temporary files and folders."""
    return list(folder.glob(f"{PREFIX}*"))


def save_at_once(n_saves: int, processes: int = 6) -> list[str]:
    """Save into one folder from several processes; return what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        share = [n_saves // processes] * processes
        share[0] += n_saves - sum(share)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", SAVE, name, str(number), str(count)],
                stderr=subprocess.PIPE,
                text=True,
            )
            for number, count in enumerate(share)
        ]
        problems = [each.communicate()[1].strip()[-300:] for each in running]
        wrong = [words for words in problems if words]
        wrong += [f"left behind: {path.name}" for path in left(Path(name))]
        for path in Path(name).glob("*.json"):
            ss.load(path)
        for path in Path(name).glob("*.parquet"):
            pl.read_parquet(path)
        return wrong


@dataclass(frozen=True)
class Command:
    """What is killed: its arguments, what it writes, and whether that is whole."""

    arguments: list[str]
    output: str
    is_whole: Callable[[Path], bool]
    is_ours: bool = True  # a command of sigmascale, which cleans up by itself


def commands(folder: Path, rows: int) -> list[Command]:
    """Write the tables that commands need, and return the commands."""
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, rows)
    table = pl.DataFrame({"E": rng.normal(scale=2 * u), "u": u, "x": rng.random(rows)})
    table.write_csv(folder / "new.csv")
    table.write_parquet(folder / "new.parquet", row_group_size=1000)
    table[:2000].write_csv(folder / "few.csv")
    sigmascale = ["-m", "sigmascale"]
    run([*sigmascale, "fit", "few.csv", "--method", "linear", "-o", "s.json"], folder)

    def has_all_rows(path: Path) -> bool:
        read = pl.read_csv if path.suffix == ".csv" else pl.read_parquet
        return bool(read(path).height == rows)

    def is_page(path: Path) -> bool:
        return path.read_text().rstrip().endswith("</html>")

    def loads(path: Path) -> bool:
        return ss.load(path) is not None

    apply = [*sigmascale, "apply", "s.json"]
    lazily = [*apply, "new.parquet", "--engine", "polars", "-o", "p.parquet"]
    fit = [*sigmascale, "fit", "few.csv", "--method", "isotonic", "-o", "f.json"]
    report = [*sigmascale, "check", "few.csv", "--report", "r.html"]
    return [
        Command([*apply, "new.csv", "-o", "o.csv"], "o.csv", has_all_rows),
        Command(lazily, "p.parquet", has_all_rows),
        Command(fit, "f.json", loads),
        Command([*report, "--tolerate", "no"], "r.html", is_page),
        Command(["-c", SINK], "o.parquet", has_all_rows, is_ours=False),
    ]


def run(arguments: list[str], folder: Path) -> None:
    """Run a command to its end."""
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=True, capture_output=True
    )


def kill_while_writing(n_kills: int, seed: int, rows: int) -> tuple[list[str], int]:
    """Kill commands at random moments; return what went wrong, and how many wrote."""
    rng = random.Random(seed)
    wrong, caught = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_commands = commands(folder, rows)
        seconds = {}
        for command in all_commands:
            start = time.monotonic()
            run(command.arguments, folder)
            seconds[command.output] = time.monotonic() - start
        cases = itertools.product(SIGNALS, all_commands)
        for number, command in itertools.islice(itertools.cycle(cases), n_kills):
            output = folder / command.output
            old = rng.choice([b"old", None])
            output.unlink(missing_ok=True)
            if old is not None:
                output.write_bytes(old)
            process = subprocess.Popen(
                [sys.executable, *command.arguments],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            before = set(left(folder))
            if rng.random() < 0.7:  # as soon as something is being written
                while process.poll() is None and not set(left(folder)) - before:
                    time.sleep(0.0005)
                time.sleep(rng.choice([0.0, 0.01 * rng.random(), 0.2 * rng.random()]))
            else:
                time.sleep(rng.random() * seconds[command.output])
            caught += bool(set(left(folder)) - before)
            process.send_signal(number)  # unless it has ended
            process.wait()
            what = f"{signal.Signals(number).name} of {' '.join(command.arguments)}"
            if not output.exists():
                if old is not None:
                    wrong.append(f"{what}: the old file is gone")
            elif output.read_bytes() != old and not command.is_whole(output):
                wrong.append(f"{what}: the file is torn")
            if command.is_ours and number in LEAVES_NOTHING:
                stale = set(left(folder)) - before
                wrong += [f"{what}: {path.name} was left" for path in stale]
    return wrong, caught


# -- the same table by every door ------------------------------------------------------

ROWS = 240
PATIENCE = 60  # seconds; what takes longer hangs
FEATURE = "f"
Doors = dict[str, Callable[[], Any]]


@dataclass
class Tally:
    """What was tried of a class, what was refused in a sentence, and what failed."""

    tried: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)

    def ask(self, what: str, act: Callable[[], Any], expected: Any = None) -> Any:
        """Try something; all but the expected result, or a refusal, is a failure."""
        self.tried += 1
        try:
            with warnings.catch_warnings(), in_time():
                warnings.simplefilter("ignore")
                found = act()
        except InvalidInputError as problem:
            self.refused += 1
            if len(str(problem)) > 1500 or not str(problem).strip():
                self.failed.append(f"{what}: refused with {str(problem)[:80]!r}")
            return None
        except BaseException as problem:
            where = traceback.extract_tb(problem.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            words = " ".join(str(problem).split())[:120]
            self.failed.append(f"{what}: {type(problem).__name__} at {place}: {words}")
            return None
        if expected is not None and not same(found, expected):
            self.failed.append(f"{what}: another result, in silence")
        return found


def same(found: Any, expected: Any) -> bool:
    """Return whether numbers are the same, but for rounding."""
    found = np.asarray(found, dtype=float)
    return found.shape == expected.shape and bool(
        np.allclose(found, expected, rtol=1e-9, atol=0)
    )


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """End what hangs."""

    def stop(*_: Any) -> None:
        msg = f"not done after {PATIENCE} s"
        raise TimeoutError(msg)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)


def by_doors(
    table: pl.DataFrame, scaler: Any, folder: Path, options: list[str]
) -> Doors:
    """Return how uncertainties are recalibrated by each door.

    The columns of the table are the error, the uncertainty and a feature.
    """
    error = table.to_series(0).to_numpy()
    X = table[:, 1:]
    numeric = X.to_series(1).dtype.is_numeric()

    def fitted(X: Any) -> Any:
        return scaler().fit(X, error).predict(X)

    def converted(how: str) -> Any:
        with convertible():
            given = getattr(X, how)()
        return fitted(given)

    def onnx() -> Any:
        import onnxruntime

        path = str(folder / "a.onnx")
        ss.export.to_onnx(scaler().fit(X, error), path)
        session = onnxruntime.InferenceSession(path)
        given = [np.array(each.to_list()) for each in X.get_columns()]
        asked = session.get_inputs()
        feeds = {
            each.name: x.astype(object if "string" in each.type else float)
            for each, x in zip(asked, given[-len(asked) :], strict=True)
        }
        return session.run(None, feeds)[0]

    def device() -> Any:
        there = Arrays("array_api_strict")
        return Arrays.back(fitted(there(X.to_numpy().astype(float))))

    def file(first: str, second: str = "", *engine: str) -> Callable[[], Any]:
        paths = [folder / f"a.{end}" for end in (first, second or first)]

        def act() -> Any:
            for path in paths:
                write(table, path)
            out = Path(tempfile.mkdtemp(dir=folder)) / "out.parquet"
            roles = ["--error", table.columns[0], "--uncertainty", table.columns[1]]
            fit = ["fit", str(paths[0]), *roles, *options, *engine]
            command([*fit, "-o", str(folder / "m.json")])
            apply = ["apply", str(folder / "m.json"), str(paths[1]), *engine]
            command([*apply, "-o", str(out)])
            found = sorted(out.glob("*")) if out.is_dir() else [out]
            table_out = pl.concat([pl.read_parquet(each) for each in found])
            return table_out[:, -1].to_numpy()

        return act

    doors: Doors = {
        "polars": lambda: fitted(X),
        "pandas": lambda: converted("to_pandas"),
        "pyarrow": lambda: converted("to_arrow"),
        "onnx": onnx,
        "saved": lambda: loads(dumps(scaler().fit(X, error))).predict(X),
        "lists": lambda: fitted([list(row) for row in X.rows()]),
    }
    for end in ("csv", "tsv.gz", "parquet", "feather", "jsonl", "xlsx"):
        doors[end] = file(end)
    doors["csv to parquet"] = file("csv", "parquet")
    doors["jsonl to csv"] = file("jsonl", "csv")
    for engine in ("polars", "duckdb", "dask"):
        doors[engine + " files"] = file("parquet", "", "--engine", engine)
    if numeric and not X.to_series(1).null_count():
        doors["device"] = device
    return doors


def write(table: pl.DataFrame, path: Path) -> None:
    """Write a table as others do; what a format cannot hold is no case."""
    with convertible():
        _write(table, path, path.name.split(".", 1)[1])


@contextlib.contextmanager
def convertible() -> Iterator[None]:
    """What others cannot convert or write is no case."""
    import pyarrow as pa

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise InvalidInputError(str(problem)[:99]) from problem
    except (pa.ArrowException, pa.ArrowInvalid) as problem:
        raise InvalidInputError(str(problem)[:99]) from problem


def _write(table: pl.DataFrame, path: Path, kind: str) -> None:
    if kind == "xlsx":
        for x in itertools.chain(*table.rows()):
            if not isinstance(x, (int, float, str, type(None))) or x != x:
                msg = f"a workbook has no place for {x}"
                raise InvalidInputError(msg)
            if isinstance(x, int) and abs(x) > 2**53:
                msg = f"a workbook rounds {x}"
                raise InvalidInputError(msg)
        write_workbook(path, table)
    elif kind == "tsv.gz":
        import gzip

        path.write_bytes(gzip.compress(table.write_csv(separator="\t").encode()))
    else:
        writers = {
            "csv": table.write_csv,
            "parquet": table.write_parquet,
            "feather": table.write_ipc,
            "jsonl": table.write_ndjson,
        }
        writers[kind](path)


def data(rows: int = ROWS, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return uncertainties, a feature, and errors that depend on it."""
    rng = np.random.default_rng(seed)
    u, x = rng.gamma(4.0, 0.1, rows), rng.normal(size=rows)
    return u, x, rng.normal(size=rows) * u * np.exp(0.4 * x)


def named_table(columns: list[tuple[str, Any]]) -> pl.DataFrame:
    """Return a table of columns with any names."""
    frame = pl.DataFrame([pl.Series(f"c{i}", x) for i, (_, x) in enumerate(columns)])
    frame.columns = [name for name, _ in columns]
    return frame


NAMES = [
    *("uncertainty", "low", "high", "", " ", "a b", "\u00e9", "e\u0301", "E", "error"),
    *(
        "X1",
        "0",
        "1.5",
        "u",
        "u2",
        "__index_level_0__",
        "index",
        "x,y",
        'q"r',
        "'",
        "`",
    ),
    *("a\nb", "a\tb", "a;b", "*", "a*", "u_recalibrated", "len", "count", "n", "label"),
    *(
        "*.parquet",
        "\u202e",
        "x" * 300,
        "select",
        "members_mean",
        "mass",
        "bias",
        "NaN",
    ),
    *(
        "average",
        "joint",
        "coverage",
        "is",
        "nodes",
        "$id",
        "{}",
        "{0}",
        "%s",
        "\\",
        "-",
    ),
    *("--where", "/", "..", "\x1b[31m", "\u0000", "\U0001f600", "__class__", "y_std"),
]


def names(tally: Tally, folder: Path, _: Any) -> None:
    """Columns with odd names, of features and of uncertainties."""
    u, x, error = data()
    expected = ss.BinwiseScaling(4, by=1).fit(np.column_stack([u, x]), error)
    expected = expected.predict(np.column_stack([u, x]))

    def binned() -> Any:
        return ss.BinwiseScaling(4, by=1)

    for name in NAMES:
        for columns in (["the error", "the u", name], ["the error", name, "the x"]):
            table = named_table(list(zip(columns, (error, u, x), strict=True)))
            options = [f"--feature={columns[2]}", "--method", "binwise"]
            options += [f"--by={columns[2]}", "--bins", "4"]
            doors = by_doors(table, binned, folder, options)
            if columns[1] == name:  # the same doors find less, and these take long
                doors = {k: doors[k] for k in ("pandas", "onnx", "csv", "jsonl")}
            for door, act in doors.items():
                tally.ask(f"name {name!r} of {columns}, {door}", act, expected)
    for pair in ([("a", 0), ("a", 1)], [0.5, 1.5], [2, 1], ["a", "a"], ["a", 1]):
        tally.ask(f"names {pair} in another order", lambda p=pair: _swapped(p))


def _swapped(pair: list[Any]) -> None:
    """Predict with columns in another order, which must be told or found."""
    import pandas as pd

    u, x, error = data()
    table = pd.DataFrame(np.column_stack([u, x]))
    table.columns = pd.Index(pair, tupleize_cols=False)
    scaler = ss.BoostedScaling(max_trees=5, n_folds=2).fit(table, error)
    if not same(scaler.predict(table.iloc[:, ::-1]), scaler.predict(table)):
        msg = "columns were taken in another order"
        raise AssertionError(msg)


def kinds() -> dict[str, tuple[pl.Series, Any]]:
    """Return columns of all types, and what they stand for: numbers, or else codes."""
    _, x, _ = data()
    whole = np.round(10 * x).astype(int)
    code = np.arange(ROWS) % 4
    found: dict[str, tuple[pl.Series, Any]] = {}
    for kind in (
        pl.Int8,
        pl.Int16,
        pl.Int32,
        pl.Int64,
        pl.Float32,
        pl.Float64,
        pl.Int128,
    ):
        found[str(kind)] = pl.Series(whole).cast(kind), whole.astype(float)
    for kind in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64):
        found[str(kind)] = pl.Series(whole + 50).cast(kind), whole + 50.0
    found["large whole numbers"] = pl.Series(whole + 2**60), whole + 50.0
    found["large unsigned"] = (
        pl.Series([2**63 + int(each) for each in whole], dtype=pl.UInt64),
        whole + 50.0,
    )
    exact = [decimal.Decimal(int(each)) / 4 for each in whole]
    found["decimals"] = pl.Series(exact), whole / 4
    found["half precision"] = pl.Series(whole.astype(np.float16)), whole.astype(float)
    found["tiny"] = pl.Series(x * 1e-300), x
    found["huge"] = pl.Series(x * 1e300), x
    found["numbers as text"] = pl.Series([f"{each:.3f}" for each in x]), None
    found["truth values"] = pl.Series(code > 1), (code > 1).astype(float)
    day = datetime.datetime(2024, 3, 30, 23, 30)
    moments = pl.Series([day + datetime.timedelta(hours=int(6 * c)) for c in code])
    found["dates"] = moments.dt.date(), None
    for zone in (None, "UTC", "Europe/Berlin"):
        found[f"moments, {zone}"] = moments.dt.replace_time_zone(zone), None
    found["times"] = moments.dt.time(), None
    found["durations"] = moments - moments.min(), None
    found["lists"] = pl.Series([[int(each)] for each in code]), None
    found["records"] = pl.Series([{"a": int(each)} for each in code]), None
    found["bytes"] = pl.Series([bytes([65 + each]) for each in code]), None
    found["nothing"] = pl.Series([None] * ROWS), None
    found["one value"] = pl.Series([1.5] * ROWS), np.ones(ROWS)
    return found


def types(tally: Tally, folder: Path, _: Any) -> None:
    """Features of all types, as numbers."""
    u, _x, error = data()
    for kind, (column, numbers) in kinds().items():
        expected = None
        if numbers is not None:
            X = np.column_stack([u, numbers])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = ss.BinwiseScaling(4, by=1).fit(X, error).predict(X)
        table = named_table([("E", error), ("u", u), (FEATURE, column)])
        options = ["--feature", FEATURE, "--method", "binwise", "--by", FEATURE]

        def binned() -> Any:
            return ss.BinwiseScaling(4, by=1)

        doors = by_doors(table, binned, folder, [*options, "--bins", "4"])
        for door, act in doors.items():
            tally.ask(f"{kind} as numbers, {door}", act, expected)


TEXTS: dict[str, list[Any]] = {
    "plain": ["a", "b", "c", "d"],
    "one": ["a"],
    "NFC and NFD": ["\u00e9", "e\u0301", "E\u0301", "\u00c9"],
    "blanks": ["a", " a", "a ", "a\t"],
    "words for nothing": ["nan", "None", "NA", "null"],
    "numbers as text": ["1", "1.0", "01", "+1"],
    "empty": ["", "a", "b", "c"],
    "missing": [None, "a", "b", "c"],
    "empty and missing": [None, "", "b", "c"],
    "truth": ["true", "True", "TRUE", "false"],
    "marks": ['a"b', "a,b", "a\nb", "a;b"],
    "letters from right to left": ["\u05d0", "\u0661", "\u202ea", "a\u200b"],
    "long": ["x" * 5000 + end for end in "abcd"],
    "control": ["\x01", "\x1b[31m", "\x7f", "\u0085"],
    "emoji": ["\U0001f600", "\U0001f601", "\ufeffa", "a"],
    "small and large letters": ["a", "A", "\u00df", "SS"],
    "large whole numbers": [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3],
    "whole numbers with gaps": [None, 1, 2, 3],
    "real numbers": [0.1, 0.1 + 1e-16, 1.5, 2.5],
    "days": [datetime.date(2024, 2, 26 + i) for i in range(4)],
}


def labels(tally: Tally, folder: Path, _: Any) -> None:
    """Labels of all kinds: each has a factor of its own."""
    u, _x, error = data()
    code = np.arange(ROWS) % 4
    error = error * (1 + code)
    for kind, texts in TEXTS.items():
        values = [texts[each % len(texts)] for each in code]
        distinct = list(dict.fromkeys(texts))
        plain = [f"L{distinct.index(value)}" for value in values]
        plain_table = named_table([("u", u), ("f", pl.Series(plain))])
        expected = ss.CategoryScaling(by=1).fit(plain_table, error).predict(plain_table)
        column = pl.Series(values)
        columns = {"": column}
        if isinstance(distinct[-1], str):
            columns["categorical"] = column.cast(pl.Categorical)
            known = [each for each in distinct if each is not None]
            columns["enum"] = column.cast(pl.Enum(known))
        for of, each in columns.items():
            table = named_table([("E", error), ("u", u), (FEATURE, each)])
            options = ["--method", "category", "--label", FEATURE]

            def by_label() -> Any:
                return ss.CategoryScaling(by=1)

            for door, act in by_doors(table, by_label, folder, options).items():
                missing = None in texts or "" in texts
                wanted = None if missing and door != "polars" else expected
                tally.ask(f"labels: {kind} {of}, {door}", act, wanted)


def gaps(tally: Tally, folder: Path, _: Any) -> None:
    """What is missing, infinite or too large, in each part of the rows."""
    u, x, error = data()
    whole = {"error": error, "uncertainty": u, "x": x}
    odd = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -1.0,
        1e-200,
        1e200,
        1e308,
        5e-324,
        None,
        "1_0",
    ]
    for part, value in itertools.product((*whole, "groups", "weights"), odd):
        columns: dict[str, Any] = {k: v.astype(object) for k, v in whole.items()}
        columns["groups"] = (np.arange(ROWS) // 4).astype(object)
        columns["weights"] = np.ones(ROWS).astype(object)
        columns[part][7] = value

        def all_numbers(found: Any) -> None:
            numbers = np.asarray(found, dtype=float)
            assert np.isfinite(numbers).all(), "a result is no number"
            assert (numbers > 0).all(), "an uncertainty is not positive"

        def fit(c: dict[str, Any] = columns, scaler: Any = None) -> None:
            X = np.column_stack([c["uncertainty"], c["x"]])
            scaler.fit(X, c["error"], groups=c["groups"], sample_weight=c["weights"])
            all_numbers(scaler.predict(np.column_stack([u, x])))

        for scaler in (
            ss.TemperatureScaling(),
            ss.LinearScaling(),
            ss.BinwiseScaling(5),
            ss.BoostedScaling(max_trees=5, n_folds=2),
            ss.Recalibrator(ss.TemperatureScaling()),
        ):
            what = f"{value!r} in {part}, {type(scaler).__name__}"
            tally.ask(what, lambda s=scaler, c=columns: fit(c, s))

        def judged(c: dict[str, Any] = columns) -> None:
            rest = {"groups": c["groups"], "sample_weight": c["weights"]}
            ss.validate(c["error"], c["uncertainty"], {"x": c["x"]}, rng=0, **rest)

        tally.ask(f"{value!r} in {part}, validate", judged)
        text = ["" if each is None else str(each) for each in columns[part]]
        table = pl.DataFrame({**{k: v.astype(float) for k, v in whole.items()}})
        table = table.with_columns(
            groups=pl.Series(np.arange(ROWS) // 4), weights=pl.lit(1.0)
        ).with_columns(pl.Series(part, text))
        table.write_csv(folder / "a.csv")
        given = ["--feature", "x", "--groups", "groups", "--weight", "weights"]
        check = ["check", str(folder / "a.csv"), *given]
        tally.ask(f"{value!r} in {part}, check", lambda c=check: command(c) and None)


def sizes(tally: Tally, folder: Path, _: Any) -> None:
    """Few rows and very many labels, columns and groups."""
    for rows in (1, 2, 3, 5, 7, 11):
        u, x, error = data(rows)
        X = np.column_stack([u, x])
        for name, scaler in ss.scaling.scalers().items():
            for what in (scaler(), ss.Recalibrator(scaler())):
                act = lambda s=what, X=X, e=error: s.fit(X, e).predict(X)  # noqa: E731
                tally.ask(f"{rows} rows, {name}", act)
        tally.ask(
            f"{rows} rows, validate", lambda e=error, u=u: ss.validate(e, u, rng=0)
        )
    many, out = 100_000, str(folder / "o.csv")
    u, x, error = data(many)
    label = [f"L{i}" for i in range(many)]
    table = named_table([("E", error), ("u", u), (FEATURE, pl.Series(label))])
    table.write_csv(folder / "many.csv")
    file, saved = str(folder / "many.csv"), str(folder / "many.json")
    for method in ("category", "boosted"):
        given = ["--label", FEATURE, "--method", method]
        act = lambda g=given: command(["fit", file, *g, "-o", saved]) and None  # noqa: E731
        tally.ask(f"{many} labels, {method}", act)
        act = lambda: command(["apply", saved, file, "-o", out]) and None  # noqa: E731
        tally.ask(f"{many} labels, {method}, apply", act)
    act = lambda: command(["check", file, "--label", FEATURE]) and None  # noqa: E731
    tally.ask(f"{many} labels, check", act)
    wide = 5000
    rng = np.random.default_rng(0)
    u, x, error = data()
    columns = [
        ("E", error),
        ("u", u),
        *((f"x{i}", rng.normal(size=ROWS)) for i in range(wide)),
    ]
    table = named_table(columns)
    table.write_csv(folder / "wide.csv")
    file = str(folder / "wide.csv")
    for method in ("temperature", "binwise", "boosted"):
        given = ["--all-features", "--method", method, "-o", saved]
        act = lambda g=given: command(["fit", file, *g]) and None  # noqa: E731
        tally.ask(f"{wide} columns, {method}", act)
    act = lambda: command(["apply", saved, file, "-o", out]) and None  # noqa: E731
    tally.ask(f"{wide} columns, apply", act)


# -- files that are shared or damaged --------------------------------------------------


def damaged(tally: Tally, folder: Path, options: Any) -> None:
    """Files of which bytes were changed, cut or added."""
    rng = random.Random(options.seed)
    u, x, error = data()
    table = named_table([("E", error), ("u", u), ("x", x)])
    for end in ("csv", "tsv.gz", "parquet", "feather", "jsonl", "xlsx"):
        write(table, folder / f"whole.{end}")
        whole = (folder / f"whole.{end}").read_bytes()
        path = folder / f"torn.{end}"
        for number in range(options.damaged):
            torn = bytearray(whole)
            at = rng.randrange(len(torn))
            kind = number % 4
            if kind == 0:
                torn[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del torn[at:]
            elif kind == 2:
                torn[at : at + rng.randrange(40)] = rng.randbytes(rng.randrange(40))
            else:
                torn[at:at] = rng.choice([b"\0", b'"', b"\r", b"\n,", b"\xff", b"1_0"])
            path.write_bytes(bytes(torn))
            read = ["check", str(path), "--error", "E", "--uncertainty", "u"]
            tally.ask(f"{end}, damage {number}", lambda r=read: quiet_command(r))


def quiet_command(arguments: list[str]) -> None:
    """Run a command whose libraries may print what they panic about."""
    with contextlib.redirect_stderr(io.StringIO()):
        command(arguments)


def saves(tally: Tally, _: Path, options: Any) -> None:
    """Saves from six processes into one folder."""
    tally.tried += options.saves
    tally.failed += save_at_once(options.saves)


def kills(tally: Tally, _: Path, options: Any) -> None:
    """Commands that are killed, mostly while they write."""
    tally.tried += options.kills
    tally.failed += kill_while_writing(options.kills, options.seed, options.rows)[0]


def shared(tally: Tally, folder: Path, _: Any) -> None:
    """Ten processes that update one file at once; some are killed."""
    u, x, error = data()
    table = named_table([("E", error), ("u", u), ("x", x)])
    for i in range(12):
        table[20 * i : 20 * (i + 1)].write_csv(folder / f"part{i}.csv")
    first = ["-m", "sigmascale", "fit", "part0.csv", "--method", "temperature"]
    run([*first, "-o", "one.json"], folder)
    for killed in (False, True):
        saved = folder / ("two.json" if killed else "all.json")
        saved.write_bytes((folder / "one.json").read_bytes())
        update = [sys.executable, "-m", "sigmascale", "update", saved.name]
        running = [
            subprocess.Popen(
                [*update, f"part{i}.csv"],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i in range(1, 11)
        ]
        if killed:
            rng = random.Random(0)
            for each in running[:5]:
                time.sleep(0.3 * rng.random())
                each.kill()
        told = [each.communicate(timeout=PATIENCE * 3)[1] for each in running]
        done = sum(each.returncode == 0 for each in running)
        tally.tried += 10
        tally.failed += [
            f"update: {words[-200:]}" for words in told if "Trace" in words
        ]
        rows = ss.load(saved).n_samples_fit_
        if rows != 20 * (1 + done):
            tally.failed.append(f"{done} of 10 updates are told as done; {rows} rows")


def hostile(tally: Tally, _: Path, options: Any) -> None:
    """Hostile recalibrators in files, by a test of their own."""
    marked = ["-p", "no:cacheprovider", "-q", "-m", "torture", "tests"]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *marked],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    tally.tried += 50_000
    if found.returncode:
        tally.failed.append(found.stdout[-500:])


# -- requests ------------------------------------------------------------------------

REQUESTS = [
    *(b"", b"\r\n\r\n", b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x00\xa5\x01"),
    *(b"GET /\xff\xfe HTTP/1.1\r\nHost: {host}\r\n\r\n", b"\0" * 5000, b"A" * 100_000),
    b"GET {path} HTTP/1.1\r\n" + b"X: y\r\n" * 5000,
    b"PUT {path}api/table/table?name=a.csv HTTP/1.1\r\nHost: {host}\r\n"
    b"Origin: http://{host}\r\nContent-Length: 10\r\n\r\nE,",
    b"POST {path}api/judge HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST {path}api/judge HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
    b"Content-Length: -5\r\n\r\n",
]
BODIES = [
    *(b"", b"{", b"[]", b"null", b"1e999", b'"\xff"', b"[" * 50_000, b'{"a": NaN}'),
    *(b'{"error": 5}', b'{"error": "\\ud800"}', b'{"uncertainty": ["u"]}', b"\xff\xfe"),
    *(b'{"method": "../x"}', b'{"__class__": 1}', b'{"bins": 1e400}', b'{"bins": -1}'),
]


def requests(tally: Tally, folder: Path, _: Any) -> None:
    """Requests that nobody should make, and tables as no one sends them."""
    start = [
        sys.executable,
        "-m",
        "sigmascale",
        "app",
        "--no-browser",
        "--largest",
        "16",
    ]
    environment = {**os.environ, "TMPDIR": str(folder)}
    server = subprocess.Popen(
        start,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().strip())
        host, path = address.netloc, f"{address.path.rstrip('/')}/"
        own = {"Origin": f"http://{host}", "Content-Type": "application/json"}

        def ask(
            method: str, where: str, body: bytes | None = None
        ) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection(host, timeout=PATIENCE)
            try:
                connection.request(method, path + where, body, own)
                answer = connection.getresponse()
                return answer.status, answer.read()
            finally:
                connection.close()

        def well() -> None:
            status, body = ask("GET", "api/state")
            assert status == 200, f"the state is answered with {status}"
            json.loads(body)

        def send(content: bytes) -> None:
            port = int(address.port or 0)
            with (
                socket.create_connection(("127.0.0.1", port), timeout=5) as line,
                contextlib.suppress(OSError),
            ):
                line.sendall(content)
                line.shutdown(socket.SHUT_WR)
                while line.recv(1 << 16):
                    pass
            well()

        def answered(method: str, where: str, body: bytes | None = None) -> None:
            status, content = ask(method, where, body)
            assert status < 500, f"answered with {status}: {content[:100]!r}"
            well()

        for content in REQUESTS:
            content = content.replace(b"{host}", host.encode())
            content = content.replace(b"{path}", path.encode())
            tally.ask(f"request {content[:40]!r}", lambda c=content: send(c))
        places = (
            "settings",
            "judge",
            "report",
            "recalibrate",
            "apply",
            "cancel",
            "demo",
        )
        for place, body in itertools.product(places[:5], BODIES):
            what = f"{place} with {body[:30]!r}"
            tally.ask(what, lambda p=place, b=body: answered("POST", f"api/{p}", b))
        u, x, error = data()
        table = named_table([("E", error), ("u", u), ("x", x)])
        write(table, folder / "good.parquet")
        good = (folder / "good.parquet").read_bytes()
        tables = [
            b"",
            b"E,u\n",
            b"\0" * 99,
            b"E,u\n1,2\n" * 3,
            b"\xff\xfeE\0",
            good[:-9],
            good,
        ]
        file_names = [
            "a.csv",
            "a.parquet",
            "..%2Fa.csv",
            "%00.csv",
            "%FF.csv",
            "a" * 300,
            "",
        ]
        for body, name in itertools.product(tables, file_names):
            where = f"api/table/table?name={name}"
            what = f"upload of {body[:20]!r} as {name[:20]!r}"
            tally.ask(what, lambda w=where, b=body: answered("PUT", w, b))
        for where in (
            "api/rows?low=x",
            "api/bins?n=-1",
            "files/..%2F..%2Fetc%2Fpasswd",
            "files/%00",
            "static/%2e%2e/x",
            "api/rows?low=%FF",
            "archive",
        ):
            tally.ask(f"GET {where}", lambda w=where: answered("GET", w))
        server.terminate()
        told = server.communicate(timeout=PATIENCE)[1]
        if "Traceback" in told:
            tally.failed.append(f"the server printed {told[-1500:]}")
    finally:
        server.kill()
        server.wait()


CLASSES: dict[str, Callable[[Tally, Path, Any], None]] = {
    "names": names,
    "types": types,
    "labels": labels,
    "gaps": gaps,
    "sizes": sizes,
    "damaged": damaged,
    "shared": shared,
    "requests": requests,
    "hostile": hostile,
    "saves": saves,
    "kills": kills,
}


def main() -> int:
    """Attack by class, and tell what was tried and what failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CLASSES, default=[*CLASSES])
    parser.add_argument("--saves", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--damaged", type=int, default=150, help="of each format")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed: list[str] = []
    print(f"{'class':<10}{'tried':>8}{'refused':>9}{'failed':>8}{'seconds':>9}")
    for name in options.only:
        tally, start = Tally(), time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            CLASSES[name](tally, Path(folder), options)
        took = time.monotonic() - start
        counts = f"{tally.tried:>8}{tally.refused:>9}{len(tally.failed):>8}{took:>9.0f}"
        print(f"{name:<10}{counts}", flush=True)
        failed += [f"{name}: {words}" for words in tally.failed]
    for words in failed[:200]:
        print(re.sub(r"[^ -~]", "?", words)[:1800])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
