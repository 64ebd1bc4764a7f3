"""Lazy frames: the same results as in memory, from every engine."""

import os
import shutil
import signal
import threading
import time

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import sigmascale as ss
from sigmascale import frames
from sigmascale.exceptions import (
    DegenerateFitWarning,
    FewerBinsWarning,
    InvalidInputError,
    MissingFeatureWarning,
    NotANumberError,
    UnseenCategoryWarning,
)
from sigmascale.frames import fine_bins
from sigmascale.persistence import dumps, loads

# Dask's own use of pandas, PySpark's word on the version of pandas
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully:FutureWarning"),
]

N_ROWS = 20_000
NAMES = {"error": "E", "uncertainty": "u"}
FEATURES = ["mass", "shells", "phase"]


@pytest.fixture(scope="module")
def data():
    """Errors, uncertainties and features: a number, one of few values, and text."""
    rng = np.random.default_rng(5)
    u = np.exp(rng.normal(-3, 0.7, N_ROWS))
    mass = rng.uniform(10, 150, N_ROWS)
    shells = rng.integers(-3, 30, N_ROWS)
    phase = rng.choice(["gas", "liquid", "solid"], N_ROWS)
    scale = np.where(mass > 90, 1.3, 1.0) * np.where(phase == "gas", 1.5, 1.0)
    error = rng.standard_t(5, N_ROWS) * u**1.1 * scale
    return pl.DataFrame(
        {"E": error, "u": u, "mass": mass, "shells": shells, "phase": phase}
    )


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    """The same in a Parquet file of several parts."""
    file = tmp_path_factory.mktemp("frames") / "data.parquet"
    data.write_parquet(file, row_group_size=10_000)
    return file


@pytest.fixture(
    params=["polars", "duckdb", "dask", pytest.param("spark", marks=pytest.mark.spark)]
)
def engine(request):
    """The name of an engine that is installed; Spark only where it is asked for."""
    package = {"dask": "dask.dataframe", "spark": "pyspark"}
    if request.param == "spark" and os.environ.get("SIGMASCALE_SPARK") != "1":
        pytest.skip("SIGMASCALE_SPARK is not 1: Spark takes half a minute")
    if request.param == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which was not found")
    pytest.importorskip(package.get(request.param, request.param))
    return request.param


@pytest.fixture
def frame(engine, path):
    """The file as a lazy frame of each engine."""
    if engine != "dask":
        return frames.scan(path, engine=engine)
    import dask.dataframe as dd

    return dd.read_parquet(path, split_row_groups=True)  # in several parts


def collected(lazy):
    """The rows of a lazy frame of any engine, in the order of their errors."""

    table = nw.from_native(lazy).collect("polars").to_native()
    return table.sort("E")


SCALERS = {
    "none": ss.NoScaling(),
    "temperature": ss.TemperatureScaling(),
    "u bins": ss.BinwiseScaling(15),
    "feature bins": ss.BinwiseScaling(15, by="mass"),
    "tied bins": ss.BinwiseScaling(40, by="shells"),
    "cells": ss.BinwiseScaling((6, 4), by=("u", "mass")),
    "text groups": ss.CategoryScaling("phase"),
    "number groups": ss.CategoryScaling("shells"),
}


@pytest.mark.parametrize("name", SCALERS)
def test_a_fit_to_a_lazy_frame_is_that_to_arrays(data, name):
    in_memory = clone(SCALERS[name]).fit(data.select("u", *FEATURES), data["E"])
    lazy = frames.fit(clone(SCALERS[name]), data.lazy(), features=FEATURES, **NAMES)
    X = data.select("u", *FEATURES)
    np.testing.assert_allclose(lazy.predict(X), in_memory.predict(X), rtol=1e-12)
    assert vars(lazy).keys() == vars(in_memory).keys()
    assert lazy.n_samples_fit_ == N_ROWS
    assert lazy.min_uncertainty_ == data["u"].min()
    if hasattr(lazy, "sums_"):
        for field, values in vars(in_memory.sums_).items():
            np.testing.assert_allclose(getattr(lazy.sums_, field), values, rtol=1e-11)
    if hasattr(lazy, "loss_"):
        assert lazy.loss_ == pytest.approx(in_memory.loss_, rel=1e-12)


ALL = {
    **SCALERS,
    "linear": ss.LinearScaling(),
    "isotonic": ss.IsotonicScaling(),
    "raked": ss.RakedScaling(
        5,
        pairs=[("u", "mass"), ("mass", "phase")],
        shrinkage=60.0,
        categorical=["shells"],
    ),
    "boosted": ss.BoostedScaling(max_trees=20, n_folds=2),
    "selected": ss.SelectedScaling(
        {"boosted": ss.BoostedScaling(max_trees=5, n_folds=2)}, n_folds=2
    ),
    "components": ss.ComponentScaling(),
    "optimised": ss.BinwiseScaling(4, loss="consistency", max_evaluations=50),
}


@pytest.fixture(scope="module")
def fitted(data):
    """Every recalibrator, with the columns that it was fitted on and predictions."""
    some, found = data[:2000], {}
    for name, scaler in ALL.items():
        features = FEATURES[:1] if name == "components" else FEATURES
        X = data.select("u", *features)
        each = clone(scaler).fit(X[:2000], some["E"])
        found[name] = each, each.predict(X)
    return found


@pytest.mark.parametrize("name", ALL)
def test_the_new_column_is_what_the_recalibrator_predicts(data, fitted, frame, name):
    scaler, expected = fitted[name]
    found = collected(frames.predict(scaler, frame))
    assert found.columns == [*data.columns, "u_recalibrated"]
    assert found.drop("u_recalibrated").equals(data.sort("E"))
    in_order = expected[data["E"].arg_sort().to_numpy()]
    np.testing.assert_allclose(found["u_recalibrated"], in_order, rtol=1e-12)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_relations_of_any_connection_get_the_new_column(
    data, fitted, path, name, given
):
    duckdb = pytest.importorskip("duckdb")
    scaler, expected = fitted[name]
    connection = duckdb.connect()
    rows = connection.read_parquet(str(path)).filter("u > 0")
    known = {"connection": connection} if given else {}
    new = frames.predict(scaler, rows, **known)
    connection.sql("CREATE TABLE other AS SELECT 1.5 AS factor")
    # it can be queried more than once, beside other tables of the connection
    joined = new.cross(connection.table("other"))
    for found in (collected(new), collected(joined)):
        assert found.columns[:6] == [*data.columns, "u_recalibrated"]
        in_order = expected[data["E"].arg_sort().to_numpy()]
        np.testing.assert_allclose(found["u_recalibrated"], in_order, rtol=1e-12)


def test_a_connection_must_be_that_of_the_relation(data, fitted, path):
    duckdb = pytest.importorskip("duckdb")
    scaler, _ = fitted["boosted"]
    connection = duckdb.connect()
    rows = connection.read_parquet(str(path))
    with pytest.raises(InvalidInputError, match="`connection` must be the one that"):
        frames.predict(scaler, rows, connection=duckdb.connect())
    with pytest.raises(InvalidInputError, match="`connection` is for relations"):
        frames.predict(scaler, data.lazy(), connection=duckdb.connect())


def test_everything_works_on_relations_of_a_connection_of_their_own(
    data, path, tmp_path
):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    rows = connection.read_parquet(str(path))
    for scaler in (*SCALERS.values(), ss.RakedScaling(4), ss.IsotonicScaling()):
        ours = frames.fit(clone(scaler), rows, features=FEATURES, **NAMES)
        theirs = frames.fit(clone(scaler), data.lazy(), features=FEATURES, **NAMES)
        X = data.select("u", *FEATURES)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    trees = ss.BoostedScaling(max_trees=5, n_folds=2)
    frames.fit(trees, rows, features=FEATURES, sample=2000, **NAMES)
    assert trees.level_ > 0
    options = {"features": FEATURES, **NAMES}
    found = frames.scorecard(rows, **options).to_dict()
    expected = frames.scorecard(data.lazy(), **options).to_dict()
    assert found == pytest.approx(expected, rel=1e-9)
    judged = frames.validate(rows, sample=2000, n_draws=100, **options)
    assert judged.scores.n_rows == N_ROWS
    local = frames.local_zms(rows, by="mass", n_bins=5, **NAMES)
    assert local.n.sum() == N_ROWS
    frames.sink(rows, tmp_path / "all.parquet")
    assert pl.read_parquet(tmp_path / "all.parquet").equals(data)


def test_a_column_of_that_name_is_replaced(data, fitted, frame):
    scaler, expected = fitted["temperature"]
    found = collected(frames.predict(scaler, frame, name="mass"))
    assert found.columns == data.columns
    in_order = expected[data["E"].arg_sort().to_numpy()]
    np.testing.assert_allclose(found["mass"], in_order, rtol=1e-12)


def test_thousands_of_labels_are_looked_up(engine, tmp_path):
    rng = np.random.default_rng(0)
    n = 40_000
    table = pl.DataFrame(
        {
            "E": rng.normal(size=n),
            "u": rng.uniform(1, 2, n),
            "kind": [f"kind {k}" for k in rng.integers(0, 4000, n)],
        }
    )
    table.write_parquet(tmp_path / "labels.parquet")
    lazy = frames.scan(tmp_path / "labels.parquet", engine=engine)
    X = table.select("u", "kind")
    groups = frames.fit(ss.CategoryScaling("kind"), lazy, features=["kind"], **NAMES)
    expected = ss.CategoryScaling("kind").fit(X, table["E"])
    assert groups.categories_.labels == expected.categories_.labels
    found = collected(frames.predict(groups, lazy))
    np.testing.assert_allclose(
        found["u_recalibrated"],
        expected.predict(X.select("u", "kind"))[table["E"].arg_sort().to_numpy()],
        rtol=1e-12,
    )
    # of which raking keeps the most frequent ones
    raked = frames.fit(
        ss.RakedScaling(3, shrinkage=5.0), lazy, features=["kind"], **NAMES
    )
    in_memory = ss.RakedScaling(3, shrinkage=5.0).fit(X, table["E"])
    np.testing.assert_allclose(
        raked.factors_["kind"], in_memory.factors_["kind"], rtol=1e-8
    )


def test_null_and_text_that_says_missing_are_two_labels(engine, tmp_path):
    kind = [None, "missing", "None", "nan"] * 25
    error = [1.0, 2.0, 4.0, 8.0] * 25
    signs = np.repeat([1.0, -1.0], 50)
    table = pl.DataFrame({"u": 1.0, "kind": kind, "E": error * signs})
    table.write_parquet(tmp_path / "labels.parquet")
    lazy = frames.scan(tmp_path / "labels.parquet", engine=engine)
    scaler = frames.fit(ss.CategoryScaling("kind"), lazy, features=["kind"], **NAMES)
    assert scaler.categories_.labels == ("None", "missing", "nan", None)
    found = collected(frames.predict(scaler, lazy))
    np.testing.assert_allclose(found["u_recalibrated"], found["E"].abs())


def test_missing_categories_are_missing_labels():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    kind = ["gas", None, "solid", "gas"] * 10
    table = pl.DataFrame({"u": 1.0, "kind": kind, "E": [1.0, -2.0, 3.0, -1.0] * 10})
    X = table.select("u", "kind")
    expected = ss.CategoryScaling("kind").fit(X, table["E"]).predict(X)
    frame = table.to_pandas()
    for column in (pd.Categorical(kind), pd.array(kind, dtype="string"), kind):
        frame["kind"] = column
        scaler = ss.CategoryScaling("kind").fit(frame[["u", "kind"]], frame["E"])
        assert scaler.categories_.labels == ("gas", "solid", None)
        lazy = dd.from_pandas(frame, npartitions=2)
        again = frames.fit(ss.CategoryScaling("kind"), lazy, features=["kind"], **NAMES)
        assert again.categories_.labels == ("gas", "solid", None)
        new = frames.predict(scaler, lazy).compute()["u_recalibrated"]
        np.testing.assert_allclose(new, expected, rtol=1e-12)


@pytest.mark.parametrize("holes", [False, True])
def test_large_whole_numbers_are_labels_that_stay_apart(engine, tmp_path, holes):
    if holes and engine == "dask":
        pytest.skip("Dask itself reads whole numbers with gaps as float64")
    numbers = [2**60 + k for k in range(8)]
    run = pl.Series(numbers * 20, dtype=pl.Int64)
    error = np.repeat([1.0, -1.0], 80) * (1 + np.arange(160) % 8)
    table = pl.DataFrame({"u": np.ones(160), "run": run, "E": error})
    if holes:
        gap = pl.col("run") == numbers[-1]
        table = table.with_columns(run=pl.when(~gap).then("run"))
    table.write_parquet(tmp_path / "labels.parquet")
    lazy = frames.scan(tmp_path / "labels.parquet", engine=engine)
    scaler = frames.fit(ss.CategoryScaling("run"), lazy, features=["run"], **NAMES)
    expected = (*numbers[:-1], None) if holes else tuple(numbers)
    assert scaler.categories_.labels == expected
    found = collected(frames.predict(scaler, lazy))
    np.testing.assert_allclose(found["u_recalibrated"], found["E"].abs())
    if not holes:
        raked = ss.RakedScaling(2, categorical=["run"], shrinkage=0.01)
        frames.fit(raked, lazy, features=["run"], **NAMES)
        assert len(set(np.round(raked.factors_["run"], 6))) >= 8
        local = frames.local_zms(lazy, groups="run", n_bins=1, **NAMES)
        assert local.n_groups.tolist() == [8]


def test_laws_and_raked_factors_agree_with_those_of_arrays(data):
    X = data.select("u", *FEATURES)
    for scaler, tolerance in (
        (ss.LinearScaling(), 1e-5),
        (ss.RakedScaling(6, shrinkage=20.0), 1e-2),
    ):
        in_memory = clone(scaler).fit(X, data["E"])
        lazy = frames.fit(clone(scaler), data.lazy(), features=FEATURES, **NAMES)
        np.testing.assert_allclose(
            lazy.predict(X), in_memory.predict(X), rtol=tolerance
        )
    # bins and factors of raking do not depend on the folds, but the average does
    for name, factors in in_memory.factors_.items():
        np.testing.assert_allclose(lazy.factors_[name], factors, rtol=1e-8)
    in_memory = ss.IsotonicScaling().fit(data["u"], data["E"])
    lazy = frames.fit(ss.IsotonicScaling(), data.lazy(), **NAMES)
    ratio = lazy.predict(data["u"].to_frame()) / in_memory.predict(data["u"])
    assert np.mean(np.abs(np.log(ratio))) < 2e-3


def test_scores_of_a_lazy_frame_are_those_of_arrays(data):
    in_memory = ss.scorecard(data["E"], data["u"], data.select(FEATURES), n_bins=50)
    lazy = frames.scorecard(data.lazy(), features=FEATURES, n_bins=50, **NAMES)
    assert lazy.to_dict() == pytest.approx(in_memory.to_dict(), rel=1e-11)
    assert (lazy.n_rows, lazy.n_bins) == (N_ROWS, 50)


@pytest.mark.parametrize("by", [None, "mass", "shells", "phase"])
def test_local_zms_of_a_lazy_frame_is_that_of_arrays(data, by):
    column = None if by is None else data[by]
    in_memory = ss.local_zms(
        data["E"], data["u"], by=column, n_bins=20, method="moments"
    )
    lazy = frames.local_zms(data.lazy(), by=by, n_bins=20, **NAMES)
    for name in ("n", "zms", "low", "high"):
        np.testing.assert_allclose(
            getattr(lazy, name), getattr(in_memory, name), rtol=1e-9
        )
    assert lazy.overall == pytest.approx(in_memory.overall, rel=1e-11)
    assert lazy.fraction_interval == in_memory.fraction_interval
    if by == "phase":
        assert lazy.x.tolist() == in_memory.x.tolist()
    else:
        np.testing.assert_allclose(lazy.x_min, in_memory.x_min, rtol=1e-12)
        np.testing.assert_allclose(lazy.x_max, in_memory.x_max, rtol=1e-12)
        np.testing.assert_allclose(lazy.x, in_memory.x, rtol=1e-2)


def test_verdicts_on_a_lazy_frame_are_those_on_arrays(data):
    X = data.select(FEATURES)
    in_memory = ss.validate(data["E"], data["u"], X, method="moments", n_draws=400)
    lazy = frames.validate(
        data.lazy(), features=FEATURES, method="moments", n_draws=400, **NAMES
    )
    for name, verdict in in_memory.verdicts.items():
        found = lazy.verdicts[name]
        assert (found.answer, found.sentence) == (verdict.answer, verdict.sentence)
        assert found.score == verdict.score
        assert found.p_adjusted == verdict.p_adjusted


def test_a_calibrated_frame_passes():
    rng = np.random.default_rng(2)
    u = rng.uniform(1, 2, 50_000)
    frame = pl.LazyFrame({"u": u, "x": rng.uniform(size=u.size), "E": rng.normal(0, u)})
    assert frames.validate(frame, features=["x"], **NAMES).passed


def test_engines_give_the_same_sums(frame, data):
    reference = data.lazy()
    for name in ("u bins", "tied bins", "cells", "text groups"):
        ours = frames.fit(clone(SCALERS[name]), frame, features=FEATURES, **NAMES)
        theirs = frames.fit(clone(SCALERS[name]), reference, features=FEATURES, **NAMES)
        for field, values in vars(theirs.sums_).items():
            np.testing.assert_allclose(getattr(ours.sums_, field), values, rtol=1e-9)


def test_engines_give_the_same_raked_factors_scores_and_columns(frame, data):
    scaler = ss.RakedScaling(5, shrinkage=10.0)
    ours = frames.fit(scaler, frame, features=FEATURES, **NAMES)
    theirs = frames.fit(clone(scaler), data.lazy(), features=FEATURES, **NAMES)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-9)
    for name, factors in theirs.factors_.items():
        np.testing.assert_allclose(ours.factors_[name], factors, rtol=1e-9)
    card = frames.scorecard(frame, features=FEATURES, n_bins=20, **NAMES)
    same = frames.scorecard(data.lazy(), features=FEATURES, n_bins=20, **NAMES)
    assert card.to_dict() == pytest.approx(same.to_dict(), rel=1e-9)
    new = collected(frames.predict(ours, frame))
    expected = frames.predict(theirs, data.lazy()).sort("E").collect()
    np.testing.assert_allclose(
        new["u_recalibrated"],
        expected["u_recalibrated"],
        rtol=1e-9,
    )
    assert new.drop("u_recalibrated").equals(data.sort("E"))


def test_every_engine_counts_unusable_rows_by_column(engine, data, tmp_path):
    row = pl.int_range(pl.len())
    bad = data.with_columns(
        u=pl.when(row == 7)
        .then(0.0)
        .when(row == 8)
        .then(-1.0)
        .when(row == 9)
        .then(None)
        .otherwise("u"),
        E=pl.when(row.is_in([9, 10])).then(float("nan")).otherwise("E"),
        mass=pl.when(row < 5).then(float("inf")).otherwise("mass"),
    )
    file = tmp_path / "bad.parquet"
    bad.write_parquet(file)
    lazy = frames.scan(file, engine=engine)
    found = "`E`: 2 missing; `u`: 1 missing, 2 not positive; `mass`: 5 infinite"
    for ask in (
        lambda: frames.scorecard(lazy, features=["mass"], **NAMES),
        lambda: frames.fit(ss.RakedScaling(), lazy, features=["mass"], **NAMES),
    ):
        with pytest.raises(InvalidInputError, match=found):
            ask()
    with pytest.raises(InvalidInputError, match="`u`: 1 missing, 2 not positive"):
        frames.fit(ss.TemperatureScaling(), lazy, **NAMES)


def test_a_large_frame_gets_limits_right_to_one_part_in_ten_thousand(data, monkeypatch):
    monkeypatch.setattr(fine_bins, "EXACT_ROWS", 0)
    rng = np.random.default_rng(0)
    n = 300_000
    frame = pl.DataFrame(
        {
            "u": np.exp(rng.normal(-3, 0.5, n)),
            "offset": 1e6 + rng.uniform(size=n),  # crowded in a few wide intervals
            "zeros": np.where(rng.uniform(size=n) < 0.4, 0.0, rng.normal(size=n)),
        }
    ).with_columns(E=pl.col("u") * pl.Series(rng.normal(size=n)))
    for by in ("u", "offset", "zeros"):
        scaler = ss.BinwiseScaling(40, by=by)
        lazy = frames.fit(
            clone(scaler), frame.lazy(), features=["offset", "zeros"], **NAMES
        )
        exact = scaler.fit(frame.select("u", "offset", "zeros"), frame["E"])
        ranks, wanted = np.cumsum(lazy.sums_.n), np.cumsum(exact.sums_.n)
        assert np.abs(ranks - wanted).max() <= 1e-4 * n
        np.testing.assert_allclose(lazy.factors_, exact.factors_, rtol=3e-3)
        # the sums are those of the bins that the limits make
        ties = None if by == "u" else frame["u"].to_numpy()
        codes = lazy.partition_.codes(frame[by].to_numpy(), ties)
        assert np.bincount(codes).tolist() == lazy.sums_.n.tolist()
    card = frames.scorecard(frame.lazy(), features=["offset", "zeros"], **NAMES)
    same = ss.scorecard(frame["E"], frame["u"], frame.select("offset", "zeros"))
    assert card.to_dict() == pytest.approx(same.to_dict(), rel=0.03)


def test_as_few_passes_as_promised(data, monkeypatch):
    passes = []
    collect = fine_bins.collect
    monkeypatch.setattr(
        fine_bins, "collect", lambda query: passes.append(query) or collect(query)
    )
    monkeypatch.setattr(fine_bins, "EXACT_ROWS", 0)
    monkeypatch.setattr(fine_bins, "SHARE", 2e-4)
    frames.fit(ss.BinwiseScaling(5), data.lazy(), **NAMES)
    frames.scorecard(data.lazy(), features=["mass"], **NAMES)
    assert len(passes) <= 4
    passes.clear()
    by_shells = ss.BinwiseScaling(40, by="shells")
    frames.fit(by_shells, data.lazy(), features=["shells"], **NAMES)
    assert len(passes) <= 3


def test_missing_features_are_a_bin_of_their_own_in_raking(data):
    row = pl.int_range(pl.len())
    holes = data.with_columns(
        mass=pl.when(row % 7 == 0).then(None).otherwise("mass"),
        phase=pl.when(row % 5 == 0).then(None).otherwise("phase"),
    )
    X = holes.select("u", "mass", "phase")
    in_memory = ss.RakedScaling(5, shrinkage=1.0).fit(X, holes["E"])
    lazy = ss.RakedScaling(5, shrinkage=1.0)
    frames.fit(lazy, holes.lazy(), features=["mass", "phase"], **NAMES)
    for name, factors in in_memory.factors_.items():
        np.testing.assert_allclose(lazy.factors_[name], factors, rtol=1e-8)
    new = frames.predict(lazy, holes.lazy()).collect()["u_recalibrated"]
    np.testing.assert_allclose(new, lazy.predict(X), rtol=1e-12)


def test_every_engine_takes_trees_and_missing_features(engine, data, fitted, tmp_path):
    scaler, _ = fitted["boosted"]
    bad = pl.DataFrame(
        {
            "u": [np.nan, np.inf, -1.0, None, 1.0, 1.0, 1.0, 0.0],
            "mass": [50.0, 50.0, 50.0, 50.0, np.inf, np.nan, None, 50.0],
            "shells": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, None, 8.0],
            "phase": ["gas", "gas", "gas", "gas", "gas", "plasma", None, "gas"],
            "E": np.arange(8.0),
        }
    )
    bad.rename({"mass": "M"}).write_parquet(tmp_path / "bad.parquet")
    frame = frames.scan(tmp_path / "bad.parquet", engine=engine)
    new = frames.predict(scaler, frame, features=["M", "shells", "phase"])
    rescaled = collected(new)["u_recalibrated"]
    assert rescaled.is_null().to_list() == [True] * 5 + [False] * 3
    known = bad[5:7].vstack(bad[7:].with_columns(u=pl.lit(scaler.min_uncertainty_)))
    with (
        pytest.warns(UnseenCategoryWarning, match="^2 of 3 rows .* column 'phase'"),
        pytest.warns(MissingFeatureWarning, match="2 of 3 rows have no 'mass'"),
        pytest.warns(MissingFeatureWarning, match="1 of 3 rows have no 'shells'"),
    ):
        expected = scaler.predict(known.drop("E"))
    np.testing.assert_allclose(rescaled.tail(3), expected, rtol=1e-12)


def test_what_cannot_be_recalibrated_gives_null_and_zero_gives_a_number(
    engine, tmp_path
):
    scaler = ss.BinwiseScaling(2, by=1, least_rows=0).fit(
        np.column_stack([[1.0, 1.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0]]),
        [1.0, 1.0, 4.0, 4.0],
    )
    nan, inf = float("nan"), float("inf")
    table = pl.DataFrame(
        {
            "sd": [1.0, -1.0, nan, None, inf, 1.0, 1.0, 1.0, 0.0],
            "x": [3.0, 3.0, 3.0, 3.0, 3.0, nan, None, inf, 3.0],
            "E": np.arange(9.0),
        }
    )
    table.write_parquet(tmp_path / "new.parquet")
    frame = frames.scan(tmp_path / "new.parquet", engine=engine)
    found = collected(frames.predict(scaler, frame, name="new"))["new"].to_list()
    assert found == [2.0, None, None, None, None, None, None, None, 2.0]


def test_no_engine_overlooks_nan_that_the_file_does_not_mention(engine, tmp_path):
    # the range of a column that Parquet files keep leaves NaN out
    table = pl.DataFrame({"u": [1.0, 2.0] * 50, "E": [1.0, float("nan")] * 50})
    table.write_parquet(tmp_path / "nan.parquet")
    lazy = frames.scan(tmp_path / "nan.parquet", engine=engine)
    with pytest.raises(InvalidInputError, match="`E`: 50 missing"):
        frames.fit(ss.BinwiseScaling(2), lazy, **NAMES)
    lazy = frames.scan(tmp_path / "nan.parquet", engine=engine)
    with pytest.raises(InvalidInputError, match="`E`: 50 missing"):
        frames.fit(ss.TemperatureScaling(), lazy, error="u", uncertainty="E")


def test_labels_that_were_never_seen_take_the_average_factor(data):
    scaler = ss.CategoryScaling("phase").fit(data.select("u", "phase"), data["E"])
    new = pl.LazyFrame({"u": [1.0, 1.0, 1.0], "phase": ["plasma", None, "gas"]})
    found = frames.predict(scaler, new).collect()["u_recalibrated"].to_list()
    assert found[:2] == [scaler.factors_[-1]] * 2
    assert found[2] == scaler.factors_[0]
    other = pl.LazyFrame({"u": [1.0], "phase": [3]})
    numbers = frames.predict(scaler, other).collect()
    assert numbers["u_recalibrated"].to_list() == [scaler.factors_[-1]]


def test_what_was_fitted_to_a_frame_can_be_saved(data):
    for scaler in (ss.RakedScaling(4), SCALERS["tied bins"], SCALERS["cells"]):
        fitted = frames.fit(clone(scaler), data.lazy(), features=FEATURES, **NAMES)
        X = data.select("u", *FEATURES)
        assert np.array_equal(loads(dumps(fitted)).predict(X), fitted.predict(X))


def test_wrong_arguments_are_named(data):
    lazy = data.lazy()
    for match, ask in {
        "must have a column 'sd'; its columns are: E, u, mass": lambda: (
            frames.scorecard(lazy, error="E", uncertainty="sd")
        ),
        "must be different columns": lambda: frames.scorecard(
            lazy, error="E", uncertainty="E"
        ),
        "`features` must be a list": lambda: frames.scorecard(
            lazy, features="mass", **NAMES
        ),
        'named "u"': lambda: frames.scorecard(lazy, features=["u"], **NAMES),
        "must be a lazy frame of Polars, DuckDB, Dask or Spark; found dict": lambda: (
            frames.scorecard({"E": [1.0]}, **NAMES)
        ),
        "`sample` must be at least 100; found 5": lambda: frames.fit(
            ss.BoostedScaling(), lazy, sample=5, **NAMES
        ),
        '`loss` must be one of "nll", "consistency"': lambda: frames.fit(
            ss.BinwiseScaling(loss="least"), lazy, **NAMES
        ),
        "no Parquet file is there": lambda: frames.scan("none*.parquet"),
        "'phase' holds text": lambda: frames.fit(
            ss.BinwiseScaling(by="phase"), lazy, features=["phase"], **NAMES
        ),
        "already has a column 'u_recalibrated'": lambda: frames.predict(
            ss.NoScaling().fit([1.0], [1.0]),
            pl.LazyFrame({"u": [1.0]}).with_columns(u_recalibrated=1.0),
        ),
        "mass not found": lambda: frames.predict(
            ss.NoScaling().fit(data.select("u", "mass"), data["E"]), lazy.select("u")
        ),
        "at least 1 row": lambda: frames.scorecard(lazy.head(0), **NAMES),
        'engine "duckdb" runs on this machine only': lambda: frames.scan(
            "x.parquet", engine="duckdb", scheduler="tcp://127.0.0.1:1"
        ),
    }.items():
        with pytest.raises(InvalidInputError, match=match):
            ask()
    with pytest.raises(NotANumberError, match="`phase` must hold numbers"):
        frames.scorecard(lazy, error="phase", uncertainty="u")


def test_errors_of_zero_teach_nothing_and_say_so(data):
    zero = data.lazy().with_columns(E=pl.lit(0.0))
    for scaler in (
        ss.TemperatureScaling(),
        ss.BinwiseScaling(4),
        ss.IsotonicScaling(),
        ss.RakedScaling(3),
    ):
        with pytest.warns(DegenerateFitWarning, match="All 20000 errors are 0"):
            frames.fit(scaler, zero, **NAMES)
        u = data["u"].to_numpy()
        found = scaler.predict(data.select("u"))
        np.testing.assert_allclose(found, u, rtol=2e-4)


def test_few_values_make_fewer_bins_with_a_warning():
    frame = pl.LazyFrame({"u": [1.0, 1.0 + 1e-9, 2.0] * 5, "E": [1.0, 2.0, 3.0] * 5})
    with pytest.warns(FewerBinsWarning, match="leave 3 distinct bins"):
        scaler = frames.fit(ss.BinwiseScaling(6, least_rows=0), frame, **NAMES)
    assert scaler.partition_.limits.tolist() == [1.0 + 1e-9, 2.0]


def test_an_infinite_label_is_not_a_missing_one():
    x = [1.0, np.nan, 1.0, np.nan] * 10
    table = pl.DataFrame({"u": 1.0, "x": x, "E": [1.0, 2.0, -1.0, -2.0] * 10})
    scaler = ss.CategoryScaling("x").fit(table.select("u", "x"), table["E"])
    new = pl.LazyFrame({"u": 1.0, "x": [1.0, np.nan, np.inf]})
    found = frames.predict(scaler, new).collect()
    expected = scaler.predict(table[:2].select("u", "x")).tolist()
    assert found["u_recalibrated"].to_list() == [*expected, scaler.factors_[-1]]


def test_a_sink_writes_whole_files_or_none(engine, frame, data, tmp_path):
    target = tmp_path / "new" / "out.parquet"
    frames.sink(frame, target)
    assert os.listdir(target.parent) == ["out.parquet"]
    assert collected(frames.scan(target, engine=engine)).equals(data.sort("E"))
    if target.is_dir():
        with pytest.raises(InvalidInputError, match="is not a file"):
            frames.sink(frame, target)
    else:
        frames.sink(frame, target)  # replaces it


def test_a_failed_sink_leaves_the_old_file(data, tmp_path):
    target = tmp_path / "out.parquet"
    target.write_text("old")
    failing = data.lazy().with_columns(pl.col("phase").cast(pl.Float64))
    with pytest.raises(pl.exceptions.InvalidOperationError):
        frames.sink(failing, target)
    assert os.listdir(tmp_path) == ["out.parquet"]
    assert target.read_text() == "old"


@pytest.mark.filterwarnings("default")  # of the cluster, when its worker dies
def test_a_fit_survives_the_death_of_a_worker(data, tmp_path):
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    for part in range(12):
        data[part::12].write_parquet(tmp_path / f"{part:02}.parquet")

    def slowly(part):
        import time

        time.sleep(0.05)
        return part

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        frame = dd.read_parquet(str(tmp_path / "*.parquet")).map_partitions(slowly)
        fitted = {}
        fitting = threading.Thread(
            target=lambda: fitted.update(
                scaler=frames.fit(ss.BinwiseScaling(10), frame, **NAMES)
            )
        )
        fitting.start()
        deadline = time.monotonic() + 30
        while not any(client.processing().values()) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        assert fitting.is_alive()
        victim = cluster.workers[0].pid
        os.kill(victim, signal.SIGKILL)
        fitting.join(60)
    in_memory = ss.BinwiseScaling(10).fit(data.select("u"), data["E"])
    np.testing.assert_allclose(
        fitted["scaler"].factors_, in_memory.factors_, rtol=1e-12
    )
    assert fitted["scaler"].sums_.n.tolist() == in_memory.sums_.n.tolist()


# --- rows in groups ------------------------------------------------------------------


@pytest.fixture(scope="module")
def repeats(tmp_path_factory):
    """Rows of which four each belong together, in memory and as a file."""
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(500), 4)
    u = rng.uniform(1, 2, 2000)
    z = 0.9 * rng.normal(size=500)[group] + 0.4 * rng.normal(size=2000)
    table = pl.DataFrame(
        {
            "u": u,
            "E": u * z,
            "whole": rng.normal(size=500)[group],
            "mixed": rng.normal(size=2000),
            "steps": rng.integers(0, 50, 2000).astype(float),
            "label": np.array(["a", "b", "c"])[group % 3],
            "number": group,
            "text": [f"molecule {i}" for i in group],
        }
    )
    path = tmp_path_factory.mktemp("repeats") / "repeats.parquet"
    table.write_parquet(path)
    return table, path


@pytest.mark.parametrize("groups", ["number", "text"])
@pytest.mark.parametrize("by", [None, "whole", "mixed", "steps", "label"])
def test_local_zms_of_groups_is_that_in_memory(repeats, engine, by, groups):
    table, path = repeats
    lazy = frames.scan(path, engine=engine)
    found = frames.local_zms(lazy, **NAMES, by=by, groups=groups, n_bins=20)
    expected = ss.local_zms(
        table["E"],
        table["u"],
        by=None if by is None else table[by],
        groups=table[groups],
        n_bins=20,
        method="moments",
    )
    np.testing.assert_array_equal(found.n, expected.n)
    np.testing.assert_array_equal(found.n_groups, expected.n_groups)
    for name in ("zms", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.x_min, expected.x_min)
    np.testing.assert_array_equal(found.x_max, expected.x_max)
    assert found.overall == pytest.approx(expected.overall)


def test_bins_of_a_frame_with_too_few_groups_are_merged(repeats):
    table, _ = repeats
    with pytest.warns(FewerBinsWarning, match="rows in groups give"):
        found = frames.local_zms(
            table.lazy(), **NAMES, by="whole", groups="text", n_bins=200
        )
    assert found.n.sum() == 2000
    assert found.n_groups.min() >= 5
    assert found.zms.size >= 40


def test_rows_of_a_frame_without_a_group_are_refused(repeats):
    table, _ = repeats
    missing = table.with_columns(
        text=pl.when(pl.col("number") > 3).then(pl.col("text")),
        number=pl.when(pl.col("number") > 3).then(pl.col("number")),
    )
    for groups in ("text", "number"):
        with pytest.raises(InvalidInputError, match="every row; 16 of"):
            frames.local_zms(missing.lazy(), **NAMES, groups=groups)


def test_one_group_of_a_frame_is_refused(repeats):
    table, _ = repeats
    one = table.with_columns(text=pl.lit("same"))
    with pytest.raises(InvalidInputError, match="at least 2 labels"):
        frames.local_zms(one.lazy(), **NAMES, groups="text", n_bins=1)


@pytest.mark.parametrize("shift", [None, "auto"])
def test_quantiles_on_every_engine_are_those_of_memory(frame, data, shift):
    X = data.select("u", *FEATURES)
    error = data["E"] + 0.4 * data["u"] * (data["mass"] > 90)
    scaling = ss.BoostedScaling(max_trees=20)
    r = ss.Recalibrator(scaling, shift=shift).fit(X[:4000], error[:4000])
    assert (r.shift_kind_ == "trees") == (shift == "auto")
    # laws by bins of the scale, whatever unseen rows gain
    z = error[:4000].to_numpy() / r.predict(X[:4000])
    r.law_ = type(r.law_).learn(z, r.predict(X[:4000]), None, 5)
    levels = [0.05, 0.5, 0.9]
    ordered = data.sort("E")
    expected = r.predict_quantiles(ordered.select("u", *FEATURES), levels)
    for saved in (r, loads(dumps(r))):
        found = collected(
            frames.predict(
                saved, frame, name="new", quantiles=levels, prediction="mass"
            )
        )
        columns = [f"new_q{level:g}" for level in levels]
        assert found.columns == [*data.columns, "new", *columns]
        about = found["mass"].to_numpy()[:, None]
        np.testing.assert_allclose(
            found.select(columns).to_numpy() - about, expected, atol=1e-10
        )


def test_a_recalibrator_is_fitted_to_a_lazy_frame(frame, data):
    X = data.select("u", *FEATURES)
    how = {"features": FEATURES, **NAMES}
    by_sums = frames.fit(ss.Recalibrator(ss.TemperatureScaling()), frame, **how)
    expected = ss.TemperatureScaling().fit(X, data["E"])
    np.testing.assert_allclose(by_sums.predict(X), expected.predict(X), rtol=1e-12)
    boosted = ss.Recalibrator(ss.BoostedScaling(max_trees=20))
    by_sample = frames.fit(boosted, frame, sample=5000, **how)
    assert by_sample.n_sample_ < by_sample.n_samples_fit_ == N_ROWS
    for r in (by_sums, by_sample):
        held = ss.picp(data["E"], r.predict_interval(X, 0.9))
        assert held == pytest.approx(0.9, abs=0.015)
        assert loads(dumps(r)).describe() == r.describe()


def test_what_dask_cannot_write_is_refused(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    kind = pl.Series(["a", "b"]).cast(pl.Enum(["a", "b"]))
    pl.DataFrame({"u": [1.0, 2.0], "k": kind}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(
        InvalidInputError, match=r"b\.parquet: Dask cannot .*Store text"
    ):
        frames.sink(dd.read_parquet(tmp_path / "a.parquet"), tmp_path / "b.parquet")
