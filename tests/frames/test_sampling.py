"""Samples of lazy frames: the same for all engines, and what is fitted to them."""

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone

import sigmascale as ss
from sigmascale import frames
from sigmascale.exceptions import InvalidInputError
from sigmascale.frames.sampling import HASH, draw, with_hash
from sigmascale.persistence import dumps, loads

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")

N_ROWS = 40_000
NAMES = {"error": "E", "uncertainty": "u"}
FEATURES = ["mass", "phase"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    u = np.exp(rng.normal(-3, 0.7, N_ROWS))
    mass = rng.uniform(10, 150, N_ROWS)
    mass[::97] = np.nan
    phase = rng.choice(["gas", "solid"], N_ROWS)
    scale = np.where(mass > 90, 1.6, 1.0) * np.where(phase == "gas", 1.5, 1.0)
    error = rng.normal(size=N_ROWS) * u * scale
    table = {"E": error, "u": u, "mass": mass, "phase": phase}
    return pl.DataFrame({**table, "run": np.arange(N_ROWS) // 8})


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("sample") / "data.parquet"
    data.write_parquet(file, row_group_size=5_000)
    return file


ENGINES = ["polars", "duckdb", "dask"]


def scan(engine, path):
    pytest.importorskip({"dask": "dask.dataframe"}.get(engine, engine))
    if engine == "dask":
        import dask.dataframe as dd

        return dd.read_parquet(path, split_row_groups=True)
    return frames.scan(path, engine=engine)


def drawn(frame, most, groups=None):
    return draw(frame, "E", "u", FEATURES, most=most, groups=groups)


@pytest.mark.parametrize("groups", [None, "run"])
@pytest.mark.parametrize("engine", ENGINES[1:])
def test_engines_draw_the_same_rows_to_the_last_bit(path, engine, groups):
    expected = drawn(scan("polars", path), 3000, groups).rows
    found = drawn(scan(engine, path), 3000, groups).rows
    np.testing.assert_array_equal(found.errors, expected.errors)
    for mine, theirs in zip(found.columns, expected.columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_sample_does_not_depend_on_the_order_of_rows_nor_on_files(
    data, path, tmp_path
):
    expected = drawn(scan("polars", path), 3000).rows
    parts = data.sample(fraction=1.0, shuffle=True, seed=1)
    for k in range(3):
        parts[k::3].write_parquet(tmp_path / f"part{k}.parquet")
    found = drawn(frames.scan(str(tmp_path / "*.parquet")), 3000).rows
    np.testing.assert_array_equal(found.errors, expected.errors)


def test_groups_stay_whole(path):
    found = drawn(scan("polars", path), 3000, "run").rows
    counts = np.unique(found.groups, return_counts=True)[1]
    assert set(counts) == {8}
    assert found.n_rows == pytest.approx(3000, rel=0.1)


@pytest.mark.parametrize(
    "kind", ["normal", "rounded", "tiny beside outliers", "one u", "mostly 0"]
)
def test_the_hash_is_uniform_and_independent_of_the_values(kind):
    rng = np.random.default_rng(0)
    n = 50_000
    e, u, x = rng.normal(size=n), rng.lognormal(size=n), rng.uniform(1, 2, n)
    if kind == "rounded":
        e, u = np.round(e, 2), np.round(u, 1)
    elif kind == "tiny beside outliers":
        e *= np.where(rng.uniform(size=n) < 1e-4, 1e6, 1.0)
    elif kind == "one u":
        u[:] = 0.3
    elif kind == "mostly 0":
        e[rng.uniform(size=n) < 0.9] = 0
    frame = pl.DataFrame({"e": e, "u": u, "x": x})
    means = {name: float(frame[name].abs().mean()) for name in frame.columns}
    found = with_hash(nw.from_native(frame.lazy()), means).collect()[HASH].to_numpy()
    assert stats.kstest(found, "uniform").pvalue > 1e-4
    chosen = found < 0.1
    for values in (e, np.abs(e), u, x):
        assert stats.ks_2samp(values[chosen], values[~chosen]).pvalue > 1e-4


SCALERS = {
    "selected": ss.SelectedScaling(n_folds=3),
    "boosted": ss.BoostedScaling(max_trees=30, n_folds=3),
    "component": ss.ComponentScaling(),
    "total": ss.BinwiseScaling(5, loss="consistency", max_evaluations=200),
}


@pytest.mark.parametrize("name", SCALERS)
def test_all_rows_are_right_on_average_after_a_fit_to_a_few(data, name):
    features = ["phase"] if name == "total" else FEATURES
    scaler = clone(SCALERS[name])
    frames.fit(scaler, data.lazy(), features=features, sample=2000, **NAMES)
    X = data.select("u", *features)
    z2 = (data["E"].to_numpy() / scaler.predict(X)) ** 2
    assert abs(z2.mean() - 1) < 3 * z2.std() / np.sqrt(N_ROWS)
    assert 1900 < scaler.n_sample_ < 2100
    assert scaler.n_samples_fit_ == N_ROWS
    assert scaler.min_uncertainty_ == data["u"].min()
    words = f"a sample of {scaler.n_sample_} of {N_ROWS} rows"
    assert words in " ".join(scaler.describe().split())
    again = loads(dumps(scaler))
    np.testing.assert_array_equal(again.predict(X), scaler.predict(X))
    assert words in again.describe()
    # which a new fit forgets
    scaler.fit(X[:200], data["E"][:200])
    assert not hasattr(scaler, "level_")


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_every_engine_fits_trees_as_polars_does(path, engine):
    options = {"features": FEATURES, "sample": 4000, **NAMES}
    expected = frames.fit(
        ss.BoostedScaling(max_trees=20), scan("polars", path), **options
    )
    assert expected.n_trees_ > 0
    found = frames.fit(ss.BoostedScaling(max_trees=20), scan(engine, path), **options)
    assert found.level_ == pytest.approx(expected.level_, rel=1e-12)
    X = pl.read_parquet(path).select("u", *FEATURES)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-12)


def test_few_rows_are_fitted_as_in_memory(data):
    some = data[:1500]
    X = some.select("u", *FEATURES)
    expected = ss.BoostedScaling(max_trees=20).fit(X, some["E"])
    found = frames.fit(
        ss.BoostedScaling(max_trees=20), some.lazy(), features=FEATURES, **NAMES
    )
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-12)
    assert not hasattr(found, "level_")


def test_groups_are_those_of_the_rows_that_were_drawn(data):
    scaler = ss.SelectedScaling({"temperature": ss.TemperatureScaling()}, n_folds=3)
    frames.fit(
        scaler, data.lazy(), features=["phase"], groups="run", sample=2000, **NAMES
    )
    assert list(scaler.feature_names_in_) == ["u", "phase"]
    assert scaler.n_sample_ % 8 == 0
    # sums know no groups: what they determine is fitted to whole groups, too
    raked = ss.RakedScaling(4)
    frames.fit(raked, data.lazy(), groups="run", sample=2000, **NAMES)
    assert raked.n_sample_ == scaler.n_sample_


def test_rows_that_are_alike_are_refused_rather_than_taken_for_a_sample():
    frame = pl.LazyFrame({"u": [1.0] * 1000, "E": [1.0, -1.0] * 500})
    with pytest.raises(
        InvalidInputError, match="too much alike to be sampled: of 1000"
    ):
        frames.fit(ss.BoostedScaling(), frame, sample=100, **NAMES)


def test_infinite_features_are_refused_and_missing_ones_are_not(data):
    spoilt = data[:1000].with_columns(mass=pl.lit(float("inf")))
    with pytest.raises(InvalidInputError, match="`mass`: 1000 infinite"):
        frames.fit(ss.BoostedScaling(), spoilt.lazy(), features=["mass"], **NAMES)
    missing = data[:1000].with_columns(mass=pl.lit(None, dtype=pl.Float64))
    frames.fit(
        ss.BoostedScaling(max_trees=2), missing.lazy(), features=["mass"], **NAMES
    )
