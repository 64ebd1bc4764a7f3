"""New columns of lazy frames: what memory says, in every engine, whatever they hold."""

import pickle
import re
import warnings
from contextlib import suppress
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, NotANumberError

# Dask's own use of pandas, PySpark's word on the version of pandas
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully:FutureWarning"),
    # of new rows in memory, which are odd on purpose
    pytest.mark.filterwarnings(
        "ignore::sigmascale.exceptions.UnseenCategoryWarning",
        "ignore::sigmascale.exceptions.MissingFeatureWarning",
    ),
]


def collected(lazy, *columns):
    """Rows of a lazy frame of any engine, in the order of their numbers."""
    frame = nw.from_native(lazy)
    frame = frame.select("row", *columns) if columns else frame
    return frame.collect("polars").to_native().sort("row")


def make(n=2000, seed=0, **columns):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(-1, 0.5, n)
    kind = rng.choice(["gas", "liquid", "solid"], n)
    x = rng.normal(size=n)
    pull = 0.4 * (kind == "gas") + 0.3 * x
    table = {"u": u, "x": x, "kind": kind, "E": rng.normal(size=n) * u * np.exp(pull)}
    return pl.DataFrame({"row": np.arange(n), **table, **columns})


def rows_of(table, **options):
    options = {"y_std": "u", "error": "E", "features": ["x", "kind"], **options}
    return ss.Predictions.from_frame(table, **options)


def test_every_kind_of_recalibrator_runs_in_batches_of_the_engine(scan):
    table = make()
    rows = rows_of(table)
    for scaling in (None, ss.RakedScaling(), ss.BinwiseScaling(by=("u", "kind"))):
        r = ss.Recalibrator(scaling).fit(rows)
        found = collected(ss.frames.apply(r, scan(table), coverage=0.9))
        assert found.columns[:5] == table.columns
        np.testing.assert_allclose(found["u_recalibrated"], r.predict(rows), rtol=1e-12)
        # without predictions, limits are those of errors
        limits = r.apply(rows).distributions.interval(0.9) - 0.0
        assert rows.y_pred is None
        low, high = found["u_recalibrated_low"], found["u_recalibrated_high"]
        np.testing.assert_allclose(np.stack([low, high], axis=1), limits, rtol=1e-12)


def test_tables_in_memory_keep_their_columns_and_their_index():
    table = make(300, note=["?"] * 299 + [None])
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows_of(table))
    predicted = r.predict(rows_of(table))
    frame = table.to_pandas().set_index(np.arange(300) // 7)
    found = ss.frames.apply(r, frame)
    pd.testing.assert_frame_equal(found[frame.columns], frame)
    np.testing.assert_array_equal(found["u_recalibrated"], predicted)
    found = ss.frames.apply(r, table)
    assert found[table.columns].equals(table)
    np.testing.assert_array_equal(found["u_recalibrated"], predicted)


def test_rows_that_cannot_be_used_are_null_and_missing_features_are_not(scan):
    table = make(300)
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows_of(make(2000, 1)))
    bad = {3: None, 5: float("nan"), 7: 0.0, 9: -1.0, 11: float("inf")}
    u = [bad.get(i, x) for i, x in enumerate(table["u"].to_list())]
    x = table["x"].to_list()
    x[20], x[21], x[22] = None, float("nan"), float("inf")
    kind = table["kind"].to_list()
    kind[30], kind[31] = None, "plasma"
    spoilt = table.with_columns(
        u=pl.Series(u), x=pl.Series(x), kind=pl.Series(kind, dtype=pl.String)
    )
    found = collected(ss.frames.apply(r, scan(spoilt), quantiles=[0.5]))
    null = [3, 5, 7, 9, 11, 22]
    for name in ("u_recalibrated", "u_recalibrated_q0.5"):
        assert found.filter(pl.col(name).is_null())["row"].to_list() == null
    good = [i for i in range(300) if i not in null]
    kept = spoilt[good].with_columns(pl.col("x").fill_nan(None))
    wanted = r.predict(rows_of(kept, error=None))
    np.testing.assert_allclose(found["u_recalibrated"][good], wanted, rtol=1e-12)
    none = collected(ss.frames.apply(r, scan(table.with_columns(u=pl.lit(-1.0)))))
    assert none["u_recalibrated"].null_count() == 300


def told(act):
    """What is warned of: kind and column, in order."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        act()
    ours = [x for x in heard if x.category.__module__ == "sigmascale.exceptions"]
    return sorted(
        (x.category.__name__, re.findall("'(.*?)'", str(x.message))[0]) for x in ours
    )


def test_what_is_unlike_the_fit_is_told_once_as_in_memory(scan):
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows_of(make()))
    usual = make(2000, 1)
    assert told(lambda: collected(ss.frames.apply(r, scan(usual)))) == []
    every_third = pl.int_range(pl.len()) % 3 == 0
    odd = usual.with_columns(
        u=pl.col("u") * 1000,
        x=pl.when(~every_third).then("x"),
        kind=pl.when(every_third).then(pl.lit("plasma")).otherwise("kind"),
    )
    expected = told(lambda: r.apply(rows_of(odd)))
    assert expected == [
        ("ExtrapolationWarning", "u"),
        ("MissingFeatureWarning", "x"),
        ("UnseenCategoryWarning", "kind"),
    ]
    assert told(lambda: collected(ss.frames.apply(r, scan(odd)))) == expected
    of_all, so_far = "^667 of 2000 rows", "^Of the rows read so far, [0-9]+ of [0-9]+ r"
    with pytest.warns(ss.exceptions.UnseenCategoryWarning, match=of_all):
        ss.frames.apply(r, odd)
    with pytest.warns(ss.exceptions.UnseenCategoryWarning, match=so_far):
        collected(ss.frames.apply(r, scan(odd)))


def test_whole_numbers_that_were_text_in_the_fit_are_told(scan):
    codes = make(kind=["01", "02"] * 1000)
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows_of(codes))
    numbers = codes.with_columns(pl.col("kind").cast(pl.Float64))
    found = told(lambda: collected(ss.frames.apply(r, scan(numbers))))
    assert found == [("UnseenCategoryWarning", "kind")]


def ill(frame, mark):
    """Return a frame whose worker is killed in mid-run, the first time."""
    psutil = pytest.importorskip("psutil")

    def kill_once(worker):
        with suppress(FileExistsError), open(mark, "x"):
            worker.kill()

    if not hasattr(frame, "sparkSession"):

        def passed(part):
            kill_once(psutil.Process())
            return part

        return frame.map_partitions(passed, meta=frame._meta)

    def evaluate(parts):
        for number, part in enumerate(parts):
            yield part
            if number == 1:  # the executor has a daemon, which has this process
                kill_once(psutil.Process().parent().parent())

    return frame.mapInArrow(evaluate, frame.schema)


@pytest.mark.parametrize(
    "scan",
    [
        pytest.param("processes of dask", marks=pytest.mark.slow),
        pytest.param("executors of spark", marks=pytest.mark.spark),
    ],
    indirect=True,
)
def test_a_worker_that_is_killed_in_mid_run_loses_nothing(scan, tmp_path):
    table = make(20_000)
    rows = rows_of(table)
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows)
    applied = ss.frames.apply(r, scan(table), coverage=0.9)
    found = collected(ill(applied, tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert found["row"].to_list() == table["row"].to_list()
    again = r.apply(rows)
    np.testing.assert_allclose(found["u_recalibrated"], again.y_std, rtol=1e-12)
    lowest = again.distributions.interval(0.9)[:, 0]
    np.testing.assert_allclose(found["u_recalibrated_low"], lowest, rtol=1e-12)


def test_nothing_but_json_travels_to_workers():
    r = ss.Recalibrator().fit(rows_of(make()))
    seen = []
    frame = pytest.importorskip("dask.dataframe").from_pandas(make().to_pandas())
    for task in ss.frames.apply(r, frame).__dask_graph__().values():
        seen.append(pickle.dumps(task))
    assert not any(b"sigmascale.recalibration.additive" in each for each in seen)
    assert any(b'{"format": "sigmascale"' in each for each in seen)


def test_other_names_and_columns_that_are_replaced(scan):
    table = make(500)
    rows = rows_of(table)
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows)
    other = table.rename({"u": "my std", "x": "x.1, kg", "kind": "what's that"})
    options = {"y_std": "my std", "features": ["x.1, kg", "what's that"]}
    lazy = ss.frames.apply(r, scan(other), name="E", **options)
    found = collected(lazy)
    assert found.columns == ["row", "my std", "x.1, kg", "what's that", "E"]
    np.testing.assert_allclose(found["E"], r.predict(rows), rtol=1e-12)
    same = collected(ss.frames.apply(r, scan(table), name="u"))
    np.testing.assert_allclose(same["u"], r.predict(rows), rtol=1e-12)


def test_decimal_and_whole_numbers_are_those_of_memory(scan):
    rng = np.random.default_rng(0)
    n = 1500
    cents = rng.integers(-5000, 5000, n)
    shells = rng.integers(0, 6, n)
    table = make(n).with_columns(
        x=pl.Series([Decimal(int(c)) / 100 for c in cents], dtype=pl.Decimal(10, 2)),
        shells=pl.Series(shells, dtype=pl.Int32),
        E=pl.Series(
            rng.normal(size=n) * np.exp(cents / 5000 + shells / 9), dtype=pl.Float32
        ),
    )
    features = ["x", "shells", "kind"]
    rows = rows_of(table, features=features)
    plain = table.with_columns(pl.col("x", "shells", "E").cast(pl.Float64))
    for scaling in (
        None,
        ss.RakedScaling(),
        ss.BinwiseScaling(20, by="x"),
        ss.BinwiseScaling(by="shells"),
    ):
        r = ss.Recalibrator(scaling).fit(rows)
        wanted = r.predict(rows)
        np.testing.assert_array_equal(
            r.predict(rows_of(plain, features=features)), wanted
        )
        found = collected(ss.frames.apply(r, scan(table)), "u_recalibrated")
        np.testing.assert_allclose(found["u_recalibrated"], wanted, rtol=1e-10)


def test_relations_of_another_connection_need_it():
    duckdb = pytest.importorskip("duckdb")
    table = make(100)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows_of(make()))
    connection = duckdb.connect()
    rows = connection.from_arrow(table.to_arrow())
    for wrong in (None, duckdb.connect()):
        with pytest.raises(InvalidInputError, match="`connection`"):
            ss.frames.apply(r, rows, connection=wrong)
    new = ss.frames.apply(r, rows, connection=connection)
    connection.sql("CREATE TABLE other AS SELECT 1.5::DOUBLE AS factor")
    joined = new.cross(connection.table("other"))
    for found in (collected(new), collected(joined)):  # more than once, beside others
        np.testing.assert_allclose(found["u_recalibrated"], r.predict(rows_of(table)))


def test_what_is_not_there_or_no_number_is_refused_before_anything_is_read():
    r = ss.Recalibrator(ss.RakedScaling()).fit(rows_of(make()))
    table = make(50)
    with pytest.raises(InvalidInputError, match="'u'"):
        ss.frames.apply(r, table.lazy().rename({"u": "sd"}))
    with pytest.raises(InvalidInputError, match="`features` must be 2 columns"):
        ss.frames.apply(r, table.lazy(), features=["x"])
    with pytest.raises(NotANumberError, match=r"`x`.*String"):
        ss.frames.apply(r, table.lazy().with_columns(x=pl.lit("a")))
    with pytest.raises(InvalidInputError, match="lazy frame"):
        ss.frames.apply(r, np.ones(3))
    with pytest.raises(InvalidInputError, match="levels"):
        ss.frames.apply(r, table.lazy(), quantiles=[0.5, 1.5])
    with pytest.raises(InvalidInputError, match="coverage"):
        ss.frames.apply(r, table.lazy(), coverage=95)
    bounded = ss.Recalibrator(ss.TemperatureScaling(), bounds=(0, None))
    with pytest.raises(InvalidInputError, match="y_pred"):
        ss.frames.apply(bounded.fit(rows_of(make())), table.lazy(), coverage=0.9)


def test_columns_that_are_called_as_ours_are_kept_and_repeats_refused(scan):
    table = make(300, **{"New columns": np.arange(300), "Hash of the row": 1.5})
    rows = rows_of(table)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows)
    found = collected(ss.frames.apply(r, scan(table), coverage=0.9))
    assert found.columns[: len(table.columns)] == table.columns
    assert found["New columns"].to_list() == list(range(300))
    features = ["x", "New columns", "Hash of the row"]
    columns = {"y_std": "u", "error": "E", "features": features}
    drawn = ss.frames.sample(scan(table), n_rows=200, **columns)
    assert set(drawn.features["Hash of the row"]) == {1.5}
    for options in (
        {"quantiles": [0.1, 0.1]},
        {"quantiles": [0.1234567, 0.1234568]},
    ):
        with pytest.raises(InvalidInputError, match=r"2 new columns.*'u.*_q0\.1"):
            ss.frames.apply(r, scan(table), **options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis' use of DuckDB
def test_a_table_of_ibis_is_refused_with_what_to_call_first():
    ibis = pytest.importorskip("ibis")
    table = make(50)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows_of(table))
    lazy = ibis.memtable(table.to_arrow())
    for use in (
        lambda: ss.frames.apply(r, lazy),
        lambda: ss.frames.sample(lazy, y_std="u", error="E"),
    ):
        with pytest.raises(InvalidInputError, match=r"found Table of ibis.*to_polars"):
            use()
    assert ss.frames.apply(r, lazy.to_polars()).height == 50
