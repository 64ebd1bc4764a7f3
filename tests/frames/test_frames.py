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
from sigmascale.frames import expressions, fine_bins
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
    import narwhals as nw

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


@pytest.mark.parametrize("name", [*SCALERS, "linear", "isotonic", "raked"])
def test_the_new_column_is_what_the_recalibrator_predicts(data, name):
    others = {
        "linear": ss.LinearScaling(),
        "isotonic": ss.IsotonicScaling(),
        "raked": ss.RakedScaling(
            5, pairs=[("u", "mass")], shrinkage=60.0, categorical=["shells"]
        ),
    }
    scaler = clone((SCALERS | others)[name]).fit(data.select("u", *FEATURES), data["E"])
    found = frames.predict(scaler, data.lazy()).collect()
    assert found.columns == [*data.columns, "u_recalibrated"]
    assert found.drop("u_recalibrated").equals(data)
    np.testing.assert_allclose(
        found["u_recalibrated"], scaler.predict(data.select("u", *FEATURES)), rtol=1e-12
    )


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


@pytest.mark.parametrize("selected", [False, True])
def test_polars_applies_boosted_factors_batch_by_batch(data, selected):
    scaler = ss.BoostedScaling(max_trees=20, n_folds=2)
    if selected:
        scaler = ss.SelectedScaling({"boosted": scaler}, n_folds=2)
    X = data.select("u", *FEATURES)
    scaler.fit(X, data["E"])
    bad = pl.DataFrame(
        {
            "u": [np.nan, np.inf, -1.0, None, 1.0, 1.0, 1.0, 0.0],
            "mass": [50.0, 50.0, 50.0, 50.0, np.inf, np.nan, None, 50.0],
            "shells": [1, 2, 3, 4, 5, 6, None, 8],
            "phase": ["gas", "gas", "gas", "gas", "gas", "plasma", None, "gas"],
        }
    )
    frame = pl.concat([X, bad]).lazy()
    found = frames.predict(
        scaler, frame.rename({"mass": "M"}), features=["M", "shells", "phase"]
    ).collect()
    assert found.columns == ["u", "M", "shells", "phase", "u_recalibrated"]
    rescaled = found["u_recalibrated"]
    assert rescaled.head(N_ROWS).to_list() == scaler.predict(X).tolist()
    assert rescaled.tail(8).is_null().to_list() == [True] * 5 + [False] * 3
    known = bad[5:7].vstack(bad[7:].with_columns(u=pl.lit(scaler.min_uncertainty_)))
    with (
        pytest.warns(UnseenCategoryWarning, match="^2 of 3 rows .* column 'phase'"),
        pytest.warns(MissingFeatureWarning, match="2 of 3 rows have no 'mass'"),
        pytest.warns(MissingFeatureWarning, match="1 of 3 rows have no 'shells'"),
    ):
        assert rescaled.tail(3).to_list() == scaler.predict(known).tolist()


@pytest.mark.parametrize("scaler", [ss.BinwiseScaling(40), ss.IsotonicScaling()])
def test_polars_looks_up_what_an_expression_would_give(scaler, data):
    bad = pl.DataFrame({"u": [np.nan, np.inf, -np.inf, -1.0, 0.0, None, 1e-300, 1e300]})
    frame = pl.concat([data.select("u"), bad]).lazy()
    frame = frame.with_columns(pl.lit("mine").alias("computed 0"))
    scaler = scaler.fit(data["u"], data["E"])
    found = frames.predict(scaler, frame).collect()
    u = nw.when(nw.col("u") == 0).then(scaler.min_uncertainty_).otherwise(nw.col("u"))
    u = u.clip(1e-70, 1e70)
    lazy = nw.from_native(frame)
    expression = expressions.Expressions(lazy.collect_schema(), ["u"], u)
    usable = nw.col("u").is_finite() & (nw.col("u") >= 0)
    value = nw.when(usable).then(expression.of(scaler.map_))
    same = lazy.with_columns(u_recalibrated=value).collect()
    np.testing.assert_allclose(
        found["u_recalibrated"], same["u_recalibrated"], rtol=1e-11
    )
    assert found.columns == ["u", "computed 0", "u_recalibrated"]
    assert found["u_recalibrated"].tail(8).is_null().to_list() == [True] * 4 + [
        *(False, True, False, False)
    ]
    np.testing.assert_allclose(
        found["u_recalibrated"].head(N_ROWS), scaler.predict(data["u"]), rtol=1e-15
    )


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


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_pairs_of_raked_columns_are_applied_by_every_engine(engine):
    rng = np.random.default_rng(0)
    n = 600
    table = pl.DataFrame(
        {
            "u": rng.uniform(1, 2, n),
            "x": rng.normal(size=n),
            "kind": rng.choice(["a", "b", "c"], n),
            "shells": rng.integers(0, 4, n).astype(float),
        }
    )
    error = rng.normal(size=n) * np.exp(table["x"].to_numpy())
    scaler = ss.RakedScaling(
        4, pairs=[("u", "x"), ("x", "kind"), ("kind", "shells")], categorical=["shells"]
    ).fit(table, error)
    pandas = table.to_pandas()
    if engine == "polars":
        found = frames.predict(scaler, table.lazy()).collect()
    elif engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        found = frames.predict(scaler, connection.from_df(pandas)).df()
    else:
        dd = pytest.importorskip("dask.dataframe")
        found = frames.predict(scaler, dd.from_pandas(pandas, npartitions=2)).compute()
    np.testing.assert_allclose(
        np.asarray(found["u_recalibrated"]), scaler.predict(table), rtol=1e-12
    )
