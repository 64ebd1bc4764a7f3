import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import (
    ExtrapolationWarning,
    MissingFeatureWarning,
    UnseenCategoryWarning,
)
from sigmascale.oddities import N_HASHES, Profile
from sigmascale.persistence import dumps, loads
from sigmascale.predictions import as_predictions

pytestmark = pytest.mark.filterwarnings("error")


def rows_of(n, seed=0, **features):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(size=n)
    columns = {"u": u, "x": rng.normal(size=n)} | features
    error = rng.normal(size=n) * u
    named = {name: x for name, x in columns.items() if name != "u"}
    return as_predictions(error, u, named)


def fitted(scaler, n=500):
    rows = rows_of(n)
    X = pl.DataFrame(dict(zip(rows.names, rows.columns, strict=True)))
    return scaler.fit(X, rows.error), X


@pytest.mark.parametrize("again", [lambda s: s, lambda s: loads(dumps(s))])
def test_another_unit_is_told_with_the_column_the_share_and_both_ranges(again):
    scaler, X = fitted(ss.TemperatureScaling())
    scaler = again(scaler)
    other = X.with_columns(pl.col("u") * 1000)
    with pytest.warns(
        ExtrapolationWarning,
        match=r"499 of 500 rows \(100%\) .* 'u' .* in fit: ",
    ) as told:
        scaler.predict(other)
    low, high = X["u"].min(), X["u"].max()
    words = str(told[0].message)
    assert f"{1000 * low:.3g} to {1000 * high:.3g} here" in words
    assert f"{low:.3g} to {high:.3g} there" in words
    assert len(told) == 1
    with pytest.warns(ExtrapolationWarning, match="'u'"):
        scaler.predict(X.with_columns(pl.col("u") / 1000))


def test_another_population_is_told_for_the_feature_alone():
    scaler, X = fitted(ss.RakedScaling(4))
    with pytest.warns(ExtrapolationWarning, match=r"\d+ of 500 rows .* 'x'") as told:
        scaler.predict(X.with_columns(pl.col("x") + 4))
    assert len(told) == 1


@pytest.mark.parametrize("n_fit", [5, 30, 300, 3000])
@pytest.mark.parametrize("n_new", [1, 20, 5000])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "t2", "binary", "uniform"])
def test_new_rows_from_the_same_source_are_not_told(n_fit, n_new, kind):
    def feature(rng, n):
        return {
            "normal": rng.normal(size=n),
            "lognormal": rng.lognormal(size=n),
            "t2": rng.standard_t(2, size=n),
            "binary": rng.integers(0, 2, n).astype(float),
            "uniform": rng.uniform(size=n),
        }[kind]

    rng = np.random.default_rng(0)
    for seed in range(20):
        seen = Profile.of(rows_of(n_fit, seed, x=feature(rng, n_fit)))
        new = rows_of(n_new, 1000 + seed, x=feature(rng, n_new))
        seen.warn_of_others(new, n_fit, {1: "optional"})


@pytest.mark.parametrize("scaler", [ss.RakedScaling(4), ss.BoostedScaling()])
def test_gaps_in_a_feature_that_had_none_are_counted(scaler):
    rows = rows_of(500)
    x = rows.columns[1]
    error = rows.error * np.exp(x)  # so that the feature matters
    X = pl.DataFrame({"u": rows.uncertainty, "x": x})
    with_gaps = X.with_columns(x=np.where(np.arange(500) < 7, np.nan, x))
    scaler.fit(X, error).predict(X)
    with pytest.warns(MissingFeatureWarning, match="7 of 500 rows have no 'x'") as told:
        scaler.predict(with_gaps)
    assert len(told) == 1
    with pytest.warns(MissingFeatureWarning, match="500 of 500 rows"):
        scaler.predict(X.with_columns(x=pl.lit(None, dtype=pl.Float64)))
    scaler.fit(with_gaps, error).predict(with_gaps)  # such gaps were seen


@pytest.mark.parametrize(
    "scaler", [ss.RakedScaling(3), ss.BoostedScaling(), ss.CategoryScaling(by="kind")]
)
def test_labels_never_seen_are_counted_once_a_call(scaler):
    rng = np.random.default_rng(0)
    n = 600
    kind = rng.choice(["a", "b", "c"], n)
    u = rng.uniform(1, 2, n)
    error = rng.normal(size=n) * u * np.where(kind == "a", 6.0, 1.0)
    X = pl.DataFrame({"u": u, "kind": kind})
    candidates = {"it": scaler}
    for each in (scaler, ss.SelectedScaling(candidates)):
        each.fit(X, error)
        new = X.with_columns(
            pl.when(pl.int_range(n) < 9)
            .then(pl.lit("z"))
            .otherwise("kind")
            .alias("kind")
        )
        with pytest.warns(
            UnseenCategoryWarning, match="9 of 600 rows .* 'kind'"
        ) as told:
            each.predict(new)
        assert len(told) == 1


def test_rows_of_the_calibration_set_are_recognised():
    rows = rows_of(2000, kind=np.repeat(["a", "b"], 1000))
    seen = Profile.of(rows)
    assert seen.hashes.size == N_HASHES
    assert seen.shared(rows) == 1
    half = rows.take(np.arange(1000))
    assert seen.shared(half) == pytest.approx(0.5, abs=0.12)
    assert seen.shared(rows_of(2000, 1, kind=np.repeat(["a", "b"], 1000))) == 0
    shuffled = rows.take(np.random.default_rng(0).permutation(2000))
    assert Profile.of(shuffled).hashes.tolist() == seen.hashes.tolist()


def test_rows_that_repeat_each_other_are_not_remembered():
    rows = rows_of(50).take(np.repeat(np.arange(50), 4))
    assert Profile.of(rows).shared(rows) == 0


def test_a_lazy_fit_keeps_the_range_of_the_uncertainty():
    rows = rows_of(400)
    frame = pl.LazyFrame({"u": rows.uncertainty, "x": rows.columns[1], "E": rows.error})
    for scaler in (ss.LinearScaling(), ss.BinwiseScaling(4), ss.RakedScaling(3)):
        ss.frames.fit(scaler, frame, error="E", uncertainty="u", features=["x"])
        expected = [[rows.uncertainty.min(), rows.uncertainty.max()]]
        np.testing.assert_allclose(scaler.seen_.quantiles, expected)
        with pytest.warns(ExtrapolationWarning, match="2 of 2 rows"):
            scaler.predict(pd.DataFrame({"u": [1e4, 1e5], "x": [0.0, 0.0]}))
