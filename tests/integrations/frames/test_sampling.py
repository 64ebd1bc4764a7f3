"""Samples of lazy frames: the same rows in every engine, in whatever order they are."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

# Dask's own use of pandas, PySpark's word on the version of pandas
pytestmark = pytest.mark.filterwarnings(
    "ignore:The inplace keyword:DeprecationWarning",
    "ignore:PySpark does not yet fully:FutureWarning",
)

N_ROWS = 40_000
NAMES = {"y_true": "y", "y_pred": "pred", "y_std": "u", "features": ["mass", "phase"]}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    u = np.exp(rng.normal(-3, 0.7, N_ROWS))
    mass = rng.uniform(10, 150, N_ROWS)
    mass[::97] = np.nan
    pred = rng.normal(size=N_ROWS)
    return pl.DataFrame(
        {
            "y": pred + rng.normal(size=N_ROWS) * u,
            "pred": pred,
            "u": u,
            "mass": mass,
            "phase": rng.choice(["gas", "solid"], N_ROWS),
            "run": np.arange(N_ROWS) // 8,
        }
    ).with_columns(run_name=pl.format("run {}", "run"))


def assert_equal(found, wanted):
    np.testing.assert_array_equal(found.error, wanted.error)
    assert found.names == wanted.names
    for mine, theirs in zip(found.columns, wanted.columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    if wanted.groups is not None:
        np.testing.assert_array_equal(found.groups, wanted.groups)


def test_engines_draw_the_same_rows_to_the_last_bit(data, scan):
    lazy = scan(data)
    for groups in (None, "run", "run_name"):
        options = {"n_rows": 3000, "groups": groups, **NAMES}
        wanted = ss.frames.sample(data.lazy(), **options)
        assert_equal(ss.frames.sample(lazy, **options), wanted)


def test_rows_do_not_depend_on_their_order_nor_on_files_but_on_the_seed(data, tmp_path):
    wanted = ss.frames.sample(data.lazy(), n_rows=3000, **NAMES)
    parts = data.sample(fraction=1.0, shuffle=True, seed=1)
    for k in range(3):
        parts[k::3].write_parquet(tmp_path / f"part{k}.parquet")
    shuffled = pl.scan_parquet(tmp_path / "*.parquet")
    assert_equal(ss.frames.sample(shuffled, n_rows=3000, **NAMES), wanted)
    assert_equal(ss.frames.sample(data, n_rows=3000, **NAMES), wanted)  # in memory
    other = ss.frames.sample(data, n_rows=3000, seed=1, **NAMES)
    shared = np.isin(other.error, wanted.error).sum()
    assert shared < 2 * 3000**2 / N_ROWS


def test_a_sample_is_of_the_size_asked_for_and_like_all_rows(data):
    found = ss.frames.sample(data.lazy(), n_rows=4000, **NAMES)
    assert len(found) == pytest.approx(4000, rel=0.06)
    assert np.isnan(found.features["mass"]).mean() == pytest.approx(1 / 97, abs=0.006)
    for name, values in (("u", found.y_std), ("pred", found.y_pred)):
        assert stats.ks_2samp(values, data[name].to_numpy()).pvalue > 1e-3


def test_rounded_tiny_and_constant_numbers_are_hashed_as_well():
    rng = np.random.default_rng(0)
    n = 50_000
    e, u, x = rng.normal(size=n), rng.lognormal(size=n), rng.uniform(1, 2, n)
    outliers = np.where(rng.uniform(size=n) < 1e-4, 1e6, 1.0)
    mostly_0 = np.where(rng.uniform(size=n) < 0.9, 0.0, e)
    for error, std in (
        (e, u),
        (np.round(e, 2), np.round(u, 1) + 0.1),
        (e * outliers, u),
        (e, np.full(n, 0.3)),
        (mostly_0, u),
        (1e-30 * e, 1e-30 * u),
    ):
        frame = pl.LazyFrame({"e": error, "u": std, "x": x})
        found = ss.frames.sample(
            frame, n_rows=5000, error="e", y_std="u", features=["x"]
        )
        assert len(found) == pytest.approx(5000, abs=5 * np.sqrt(4500))
        for values, drawn in ((error, found.error), (x, found.features["x"])):
            assert stats.ks_2samp(values, drawn).pvalue > 1e-4


def test_groups_stay_whole(data):
    found = ss.frames.sample(data.lazy(), n_rows=3000, groups="run", **NAMES)
    assert set(np.bincount(found.groups)) == {8}
    assert len(found) == pytest.approx(3000, rel=0.01)


def test_few_rows_are_all_taken_as_they_come(data):
    some = data[:1500]
    found = ss.frames.sample(some.lazy(), **NAMES)
    assert_equal(found, ss.Predictions.from_frame(some, **NAMES))


def test_members_and_guesses_are_as_in_memory(data):
    members = data.select(
        "y", *((pl.col("pred") + k * pl.col("u")).alias(f"m{k}") for k in range(12))
    )
    names = [f"m{k}" for k in range(12)]
    found = ss.frames.sample(members.lazy(), n_rows=2000, y_true="y", members=names)
    np.testing.assert_allclose(found.y_std.mean(), data["u"].mean() * 13**0.5, rtol=0.1)
    guessed = ss.frames.sample(data.select("y", "pred", "u").lazy(), n_rows=2000)
    assert guessed.y_true is not None


def test_rows_that_memory_refuses_are_refused_whether_or_not_drawn(data):
    for name, value in (("u", None), ("y", float("nan")), ("pred", float("inf"))):
        first = pl.int_range(pl.len()) == 7
        spoilt = data.with_columns(pl.when(~first).then(name).otherwise(pl.lit(value)))
        with pytest.raises(InvalidInputError, match=f"`{name}`.*1 of {N_ROWS}"):
            ss.frames.sample(spoilt.lazy(), n_rows=1000, **NAMES)
    with pytest.raises(InvalidInputError, match="masss"):
        ss.frames.sample(data.lazy(), y_std="u", features=["masss"])
    with pytest.raises(InvalidInputError, match="lazy frame"):
        ss.frames.sample([1, 2, 3], y_std="u")


def test_rows_that_are_alike_are_refused_rather_than_taken_for_a_sample():
    frame = pl.LazyFrame({"u": [1.0] * 1000, "E": [1.0, -1.0] * 500})
    with pytest.raises(InvalidInputError, match="alike to be sampled: of 1000"):
        ss.frames.sample(frame, n_rows=100, y_std="u", error="E")
