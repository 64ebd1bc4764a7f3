"""The same rows mean the same through every library."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss

N = 400
RNG = np.random.default_rng(0)
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(k) for k in range(5)]
TABLE = pl.DataFrame(
    {
        "y": RNG.normal(size=N),
        "pred": RNG.normal(size=N),
        "std": RNG.uniform(0.5, 1, N),
        "x": RNG.normal(size=N),
        "kind": RNG.choice(["gas", "alloy", "NA", "nan"], N),
        "code": RNG.integers(1, 9, N),
        "zero": RNG.choice(["01", "1", "007"], N),
        "flag": RNG.random(N) < 0.5,
        "day": [DAYS[k] for k in RNG.integers(0, 5, N)],
        "w": RNG.integers(0, 5, N),
        "g": RNG.integers(0, 50, N),
    }
).with_columns(
    x=pl.when(pl.col("w") == 2).then(None).otherwise("x"),
    kind=pl.when(pl.col("g") == 7).then(None).otherwise("kind"),
)
COLUMNS = {
    **{"y_true": "y", "y_pred": "pred", "y_std": "std", "groups": "g", "weights": "w"},
    **{"features": ["x", "kind", "zero", "flag"], "labels": ["code", "day"]},
}


def assert_same(p, q):
    """Compare rows in the order of their predictions."""
    p, q = (each.take(np.argsort(each.y_pred)) for each in (p, q))
    assert p.names == q.names
    for name, column in p.features.items():
        np.testing.assert_array_equal(column, q.features[name], err_msg=name)
    for name in ("y_true", "y_pred", "y_std", "weights", "groups"):
        np.testing.assert_array_equal(getattr(p, name), getattr(q, name), err_msg=name)


def test_tables_of_all_libraries_hold_the_same_rows():
    expected = ss.Predictions.from_frame(TABLE, **COLUMNS)
    assert expected.features["day"][0].startswith("2024-01-0")
    assert expected.features["flag"][0] in ("True", "False")
    assert None in expected.features["kind"].tolist()
    pandas = TABLE.to_pandas()
    nullable = {
        "kind": "category",
        "zero": "string",
        "code": "Int64",
        "flag": "boolean",
    }
    for frame in (
        pandas,
        pandas.astype(nullable).assign(day=pd.to_datetime(pandas["day"])),
        pandas.convert_dtypes(dtype_backend="pyarrow"),
        pandas.astype({"code": float, "w": float}),
        TABLE.to_arrow(),
        TABLE.with_columns(
            pl.col("kind").cast(pl.Categorical),
            pl.col("code").cast(pl.Float64),
            pl.col("w").cast(pl.Decimal(10, 2)),
            pl.col("day").cast(pl.Datetime),
        ),
    ):
        assert_same(ss.Predictions.from_frame(frame, **COLUMNS), expected)


def test_lazy_frames_of_all_engines_hold_the_same_rows():
    duckdb = pytest.importorskip("duckdb")
    dask = pytest.importorskip("dask.dataframe")
    expected = ss.Predictions.from_frame(TABLE, **COLUMNS)
    for lazy in (
        TABLE.lazy(),
        duckdb.from_arrow(TABLE.to_arrow()),
        dask.from_pandas(TABLE.to_pandas(), npartitions=3),
    ):
        assert_same(ss.frames.sample(lazy, **COLUMNS), expected)
