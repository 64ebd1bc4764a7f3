"""The same rows through every door: the same numbers, or refused by all of them."""

import datetime
import json

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.app import orders
from sigmascale.cli.file_formats import write
from sigmascale.recalibration.scalings import SCALINGS

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of gaps, and of few rows
    # Dask's own use of pandas
    pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning"),
]

N = 400
RNG = np.random.default_rng(5)
WHICH = RNG.integers(0, 4, N)
DAY = datetime.date(2024, 5, 1)
U, X = RNG.lognormal(-1, 0.5, N), np.round(RNG.normal(size=N), 3)
ERROR = RNG.normal(size=N) * U * np.exp(0.3 * X + 0.3 * (WHICH == 2))
V = RNG.normal(3, 1, N)
# what labels may be, and how it is written in a file that has text alone
LABELS = {
    "kind": ["gas", "liquid", "solid", "a,b"],
    "charge": [-1, 0, 1, 2],
    "code": ["01", "1", "007", "1.0"],
    "word": ["NA", "nan", "None", "x"],
    "ionic": [True, False, False, True],
    "step": [1.0, 2.0, 0.5, -1.0],
    "truth": ["true", "FALSE", "True", "x"],
    "day": [DAY + datetime.timedelta(k) for k in (0, 1, 31, 400)],
}
TABLE = pl.DataFrame(
    {"R": V + ERROR, "V": V, "u": U, "x": X, "w": np.round(RNG.uniform(0.5, 3, N), 2)}
    | {name: [values[k] for k in WHICH] for name, values in LABELS.items()}
)
NUMBERS = {"y_true": "R", "y_pred": "V", "y_std": "u"}
FILES = ("t.csv", "t.parquet", "t.jsonl", "t.xlsx", "t.tsv", "t.feather")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def options(labels, *, weights):
    """Return the columns as Python takes them, and as the command line does."""
    columns = NUMBERS | {"features": ["x", *labels], "labels": list(labels)}
    words = ["--reference", "R", "--prediction", "V", "--uncertainty", "u"]
    words += ["--feature", "x", *(each for x in labels for each in ("--label", x))]
    if weights:
        columns, words = columns | {"weights": "w"}, [*words, "--weight", "w"]
    return columns, words


def of_python(table, labels, *, weights):
    """Return rows made of arrays and lists."""
    features = {"x": table["x"].to_numpy()}
    for name in labels:
        cells = table[name].to_list()
        if name in (
            "charge",
            "step",
            "day",
        ):  # numbers and dates are labels if they are text
            cells = [None if each is None else str(each) for each in cells]
        features[name] = np.array(cells, dtype=object)
    y_true, y_pred, y_std, w = (table[x].to_numpy() for x in ("R", "V", "u", "w"))
    return ss.Predictions(
        y_pred,
        y_std,
        y_true=y_true,
        features=features,
        weights=w if weights else None,
    )


def frames_of(table):
    """Return the table in every library and engine, by name."""
    import dask.dataframe as dd
    import duckdb

    table.write_parquet("engines.parquet")
    yield "polars", table
    pandas = table.to_pandas()
    yield "pandas", pandas
    kinds = {"kind": "category", "code": "string", "charge": "Int64"}
    yield "pandas, other types", pandas.astype(kinds)
    with np.errstate(invalid="ignore"):  # older pandas tries whether inf is whole
        arrow = pandas.convert_dtypes(dtype_backend="pyarrow")
    yield "pandas of Arrow", arrow
    yield "arrow", table.to_arrow()
    yield (
        "polars, other types",
        table.with_columns(
            pl.col("kind").cast(pl.Categorical),
            pl.col("charge").cast(pl.Float64),
            pl.col("day").cast(pl.Datetime),
            pl.col("w").cast(pl.Decimal(10, 2)),
        ),
    )
    yield "polars, lazy", pl.scan_parquet("engines.parquet")
    yield "duckdb", duckdb.read_parquet("engines.parquet")
    yield "dask", dd.read_parquet("engines.parquet")


def rows_of(frame, columns):
    """Return rows of a table in memory, or all rows of a lazy frame."""
    if isinstance(nw.from_native(frame), nw.DataFrame):
        return ss.Predictions.from_frame(frame, **columns)
    return ss.frames.sample(frame, **columns)


def new_column(frame):
    """Return the new column of a frame of any engine, in the order of the rows."""
    found = nw.from_native(frame).select("R", "u_recalibrated")
    found = found.collect() if isinstance(found, nw.LazyFrame) else found
    keys, values = (found[x].to_numpy() for x in ("R", "u_recalibrated"))
    return values[np.argsort(keys)][np.argsort(np.argsort(TABLE["R"]))]


def through_commands(file, scaling, words, sigmascale):
    done = sigmascale("fit", file, "--scaling", scaling, *words, "-o", "r.json")
    assert done.code == 0, done.err
    done = sigmascale("apply", "r.json", file, "-o", "out.parquet")
    assert done.code == 0, done.err
    return pl.read_parquet("out.parquet")["u_recalibrated"].to_numpy()


def through_the_app(file, scaling, columns):
    """Return what the worker makes of the fields that the page sends."""
    parts = {"reference": "R", "prediction": "V", "uncertainty": "u"}
    labels = columns["labels"]
    fields = parts | {"features": ["x"], "labels": labels, "files": [file]}
    if "weights" in columns:
        fields["weight"] = columns["weights"]
    fields |= {"scaling": scaling, "output": "a.json", "command": "fit"}
    orders.command("fit", fields)
    new = {"recalibrator": "a.json", "files": [file], "output": "app.parquet"}
    orders.command("apply", new | {"command": "apply"})
    return pl.read_parquet("app.parquet")["u_recalibrated"].to_numpy()


def close(found, expected, door):
    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=str(door))


def test_every_door_gives_every_scaling_the_same_rows(sigmascale):
    labels = list(LABELS)
    columns, words = options(labels, weights=True)
    for file in FILES:
        write(TABLE.lazy(), file)
    p = of_python(TABLE, labels, weights=True)
    fits = {x: ss.Recalibrator(cls()).fit(p) for x, cls in SCALINGS.items()}
    expected = {x: r.predict(p) for x, r in fits.items()}
    for door, frame in frames_of(TABLE):
        rows = rows_of(frame, columns)
        assert len(rows) == N, door
        fits["boosted"] = ss.Recalibrator(ss.BoostedScaling()).fit(rows)
        for name, r in fits.items():
            close(np.sort(r.predict(rows)), np.sort(expected[name]), (door, name))
            applied = ss.frames.apply(r, frame)
            assert type(applied) is type(frame), door
            close(new_column(applied), expected[name], (door, name))
    for name in SCALINGS:
        for file in FILES if name == "boosted" else FILES[:4]:
            found = through_commands(file, name, words, sigmascale)
            close(found, expected[name], (file, name))
        close(through_the_app("t.csv", name, columns), expected[name], ("app", name))


def test_every_door_gives_the_same_results(sigmascale):
    labels = list(LABELS)
    missing = pl.when(pl.int_range(N) % 9 > 0).then(pl.col("kind"))  # one more label
    for weights, table in ((False, TABLE.with_columns(kind=missing)), (True, TABLE)):
        columns, words = options(labels, weights=weights)
        expected = ss.validate(of_python(table, labels, weights=weights)).to_dict()
        expected = numbers_of(expected)
        told = {}
        for door, frame in frames_of(table):
            told[door] = numbers_of(ss.validate(rows_of(frame, columns)).to_dict())
        for file in FILES:
            write(table.lazy(), file)
            done = sigmascale("check", file, *words, "--json")
            assert done.code in (0, 1, 4), done.err
            told[file] = numbers_of(json.loads(done.out))
        for door, checks in told.items():
            assert list(checks) == list(expected), door
            for name, (result, limits) in checks.items():
                assert result == expected[name][0], (door, name)
                close(limits, expected[name][1], (door, name))


def numbers_of(told):
    """Return the result of each check, and the limits of what decides it."""
    found = {}
    for name, check in told["checks"].items():
        s = check["subgroup"] or {"low": None, "high": None}
        ends = [np.inf if s[end] is None else s[end] for end in ("low", "high")]
        found[name] = (check["result"], ends)
    return found


def test_gaps_in_features_are_learned_from_alike_and_judged_by_nobody(sigmascale):
    labels = ["kind", "charge", "ionic", "day"]
    table = TABLE.with_columns(
        pl.when(pl.int_range(N) % every != 3).then(pl.col(name)).alias(name)
        for name, every in zip(("x", *labels), (7, 11, 13, 17, 19), strict=True)
    )
    columns, words = options(labels, weights=True)
    p = of_python(table, labels, weights=True)
    for file in FILES[:4]:
        write(table.lazy(), file)
    for name in ("boosted", "raked"):
        expected = ss.Recalibrator(SCALINGS[name]()).fit(p).predict(p)
        for door, frame in frames_of(table):
            r = ss.Recalibrator(SCALINGS[name]()).fit(rows_of(frame, columns))
            close(new_column(ss.frames.apply(r, frame)), expected, (door, name))
        for file in FILES[:4]:
            found = through_commands(file, name, words, sigmascale)
            close(found, expected, (file, name))
    for door, frame in frames_of(table):
        with pytest.raises(ss.exceptions.InvalidInputError, match=r"`x`.*57"):
            raise AssertionError(door, ss.validate(rows_of(frame, columns)))
    for file in FILES[:4]:
        done = sigmascale("check", file, *words)
        assert done.code == 2, file
        assert done.says("'x' 57.*--drop-missing"), file


# What nobody can use, in a column: the name that all doors must tell.
UNUSABLE = {
    "u": [None, -1.0, float("inf")],
    "R": [None, float("inf")],
    "w": [None, -1.0],
}


def test_what_cannot_be_used_is_refused_by_every_door_with_its_column(sigmascale):
    columns, words = options(["kind"], weights=True)
    for name, values in UNUSABLE.items():
        known = {**{b: a for a, b in NUMBERS.items()}, "w": "weights"}[name]
        for value in values:
            table = TABLE.with_columns(pl.Series(name, [*TABLE[name][:-1], value]))
            with pytest.raises(ss.exceptions.InvalidInputError, match=known):
                of_python(table, ["kind"], weights=True)
            for door, frame in frames_of(table):
                with pytest.raises(
                    ss.exceptions.InvalidInputError, match=f"{known}|`{name}`"
                ):
                    raise AssertionError(door, name, value, rows_of(frame, columns))
            for file in FILES[:4]:
                if value == float("inf") and file in ("t.jsonl", "t.xlsx"):
                    continue  # which have no such number
                write(table.lazy(), file)
                for most in ("100", "1000000"):
                    done = sigmascale("check", file, *words, "--most", most)
                    assert done.code == 2, (file, name, value)
                    assert done.says(f"'{name}'"), (file, name, value)


def test_rows_beyond_the_limit_are_judged_as_the_same_sample_is_in_memory(sigmascale):
    many = pl.concat([TABLE] * 8).with_columns(
        u=pl.Series(np.random.default_rng(1).lognormal(-1, 0.5, 8 * N))
    )
    many.write_csv("many.csv")
    columns, words = options(["kind", "code"], weights=False)
    sample = ss.frames.sample(many.lazy(), n_rows=1000, **columns)
    pl.DataFrame(
        {"R": sample.y_true, "V": sample.y_pred, "u": sample.y_std} | sample.features
    ).write_csv("sample.csv")
    found = []
    for file, most in (("many.csv", "1000"), ("sample.csv", "1000000")):
        done = sigmascale("check", file, *words, "--most", most, "--json")
        checks = numbers_of(json.loads(done.out))
        found.append((done.code, {x: result for x, (result, _) in checks.items()}))
        found[-1] += ([limits for _, limits in checks.values()],)
    assert found[0][:2] == found[1][:2]
    for one, other in zip(found[0][2], found[1][2], strict=True):
        assert one == pytest.approx(other, rel=1e-9)
    assert sigmascale("fit", "sample.csv", *words, "-o", "r.json").code == 0
    cells = []
    for most in ("1000", "1000000"):
        done = sigmascale("apply", "r.json", "many.csv", "-o", "o.csv", "--most", most)
        assert done.code == 0, done.err
        cells.append(pl.read_csv("o.csv", infer_schema=False))
    assert cells[0].equals(cells[1])
