"""What was learned says the same in files, ONNX Runtime, arrays and lazy frames."""

import sys
from functools import cache

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.additive import Additive, Axis, Base, Table
from sigmascale.recalibration.scalings import SCALINGS, Learned

pytestmark = pytest.mark.filterwarnings(
    "ignore:The inplace keyword:DeprecationWarning",  # Dask's own use of pandas
    # new rows have labels of their own
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
)

LEVELS, COVERAGE = (0.05, 0.5, 0.95), 0.8
FEATURES = ["mass", "shells", "phase"]


class ByQuadrant(ss.Scaling):
    """A scaling of one's own: one factor for each sign of mass and each phase."""

    def learn(self, rows):
        axes = (
            Axis(rows.position("mass"), edges=np.zeros(1)),
            Axis(rows.position("phase"), labels=rows.labels("phase").labels),
        )
        codes = [
            axes[0].codes(rows.columns),
            axes[1].codes({axes[1].column: rows.labels("phase")}),
        ]
        shape = tuple(axis.n_codes for axis in axes)
        flat = np.ravel_multi_index(codes, shape)
        n, total = (np.bincount(flat, w, np.prod(shape)) for w in (None, rows.z2))
        values = 0.5 * np.log((total + 1) / (n + 1)).reshape(shape)
        return Learned(Additive(axes=axes, tables=(Table.of((0, 1), values),)))


class PowerOfU(ss.Scaling):
    """A line times a power of u, as the default starts from where rows gain by it."""

    def learn(self, rows):
        span = float(rows.y_std.min()), float(rows.y_std.max())
        return Learned(Additive(Base(a=1.2, b=0.3, power=-0.4, span=span)))


def table_of(n, seed):
    """Numbers, some missing, few values, and labels, some missing or unknown."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.6, n)
    mass = rng.normal(size=n)
    shells = rng.integers(0, 9, n).astype(float)
    phase = rng.choice(["gas", "liquid", "solid", "α", ""], n).astype(object)
    pull = 0.3 * mass + 0.1 * shells + 0.4 * (phase == "gas") * (mass > 0)
    error = rng.standard_t(5, n) * u**0.8 * np.exp(pull) + 0.3 * u * (phase == "α")
    phase[phase == ""] = None
    mass[::17] = np.nan
    if seed:
        phase[::13] = "plasma"
    y_pred = rng.gamma(2.0, 1.0, n)
    return pl.DataFrame(
        {
            "y": y_pred + error,
            "pred": y_pred,
            "sd": u,
            "mass": mass,
            "shells": shells,
            "phase": pl.Series(phase.tolist(), dtype=pl.String),
        }
    ).with_columns(pl.col("mass").fill_nan(None))


def rows_of(table):
    names = {"y_true": "y", "y_pred": "pred", "y_std": "sd"}
    return ss.Predictions.from_frame(table, features=FEATURES, **names)


KINDS = {
    **{name: kind() for name, kind in SCALINGS.items()},
    "bins of ties": ss.BinwiseScaling(20, by="shells"),
    "labels": ss.BinwiseScaling(by="phase"),
    "cells": ss.BinwiseScaling((8, 5), by=("u", "shells")),
    "a loss of the paper": ss.BinwiseScaling(6, by="shells", loss="adaptivity"),
    "cells of labels": ss.BinwiseScaling((5, 5), by=("u", "phase")),
    "one's own": ByQuadrant(),
    "power": PowerOfU(),
    "parts out of fold": ss.RakedScaling(),
    "parts held out": ss.LinearScaling(),
}
OPTIONS = {
    "parts out of fold": {"parts": ["phase", "u", "mass"], "bias": "constant"},
    "parts held out": {"parts": ["u", "shells"], "hold_out": 0.3},
    "boosted": {"bias": "auto", "bounds": (0, None)},
    "raked": {"bias": "constant", "bounds": (0, 9)},
    "linear": {"hold_out": 0.3},
    "isotonic": {"distribution": "normal", "bounds": (None, 5)},
}


@cache
def fitted(name):
    options = OPTIONS.get(name, {"bounds": (0, None)})
    return ss.Recalibrator(KINDS[name], **options).fit(rows_of(table_of(2500, 0)))


@cache
def new():
    return table_of(1000, 1)


def expected(r):
    """What memory says, by the names of new columns."""
    done = r.apply(rows_of(new()))
    q, limits = (
        done.distributions.quantile(LEVELS),
        done.distributions.interval(COVERAGE),
    )
    found = {"sd_recalibrated": done.y_std}
    if r.bias_ is not None:
        found["pred_recalibrated"] = done.y_pred
    for p, x in zip(LEVELS, q.T, strict=True):
        found[f"sd_recalibrated_q{p:g}"] = x
    for end, x in zip(("low", "high"), limits.T, strict=True):
        found[f"sd_recalibrated_{end}"] = x
    return found


def assert_same(found, wanted):
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(
            np.asarray(found[name], dtype=float), values, rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("name", KINDS)
def test_a_file_says_the_same_to_the_last_bit(name, tmp_path):
    r = fitted(name)
    if name == "one's own":  # which another process may not have
        ss.Recalibrator(ss.TemperatureScaling()).fit(rows_of(new())).save(
            tmp_path / "t"
        )
    r.save(tmp_path / "r.json")
    again = ss.load(tmp_path / "r.json")
    for key, values in expected(r).items():
        np.testing.assert_array_equal(expected(again)[key], values)


@pytest.mark.parametrize("name", KINDS)
def test_onnx_runtime_says_the_same(name, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("ndonnx")
    r, path = fitted(name), tmp_path / "r.onnx"
    ss.export.to_onnx(r, path, quantiles=LEVELS, coverage=COVERAGE)
    session = ort.InferenceSession(path)
    given = {
        "u": new()["sd"].to_numpy(),
        "y_pred": new()["pred"].to_numpy(),
        "mass": new()["mass"].fill_null(np.nan).to_numpy(),
        "shells": new()["shells"].to_numpy(),
        "phase": new()["phase"].fill_null("").to_numpy().astype(object),
    }
    inputs = {each.name: given[each.name] for each in session.get_inputs()}
    found = session.run(None, inputs)
    named = [each.name for each in session.get_outputs()]
    renamed = [
        x.replace("u_recal", "sd_recal", 1)
        if x[0] == "u"
        else x.replace("y_pred", "pred")
        for x in named
    ]
    assert_same(dict(zip(renamed, found, strict=True)), expected(r))


def lazy_of(engine, table):
    if engine == "polars":
        return table.lazy()
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(table.to_arrow())
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(table.to_pandas(), npartitions=3)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("name", KINDS)
def test_lazy_frames_say_the_same(name, engine):
    r, numbered = fitted(name), new().with_row_index("row")
    lazy = ss.frames.apply(
        r,
        lazy_of(engine, numbered),
        y_std="sd",
        y_pred="pred",
        quantiles=LEVELS,
        coverage=COVERAGE,
    )
    found = nw.from_native(lazy).collect("polars").to_native().sort("row")
    assert found.columns[: numbered.width] == numbered.columns
    assert_same(found.select(found.columns[numbered.width :]).to_dict(), expected(r))


def test_an_export_has_the_inputs_that_it_needs_and_no_others(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("ndonnx")
    path = tmp_path / "r.onnx"
    for name, options, wanted in (
        ("temperature", {}, {"u"}),
        ("bins of ties", {}, {"u", "shells"}),
        ("labels", {"quantiles": [0.5]}, {"u", "phase", "y_pred"}),
        ("raked", {}, {"u", "mass", "shells", "phase", "y_pred"}),  # it has a bias
    ):
        ss.export.to_onnx(fitted(name), path, **options)
        found = ort.InferenceSession(path).get_inputs()
        assert {each.name for each in found} == wanted
        assert {each.type for each in found} <= {"tensor(double)", "tensor(string)"}
    assert [file.name for file in tmp_path.iterdir()] == ["r.onnx"]


def test_vectors_are_exported_with_a_radius(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("ndonnx")
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.5, 900)
    error = rng.standard_t(4, size=(900, 3)) * u[:, None] ** 1.2
    x = rng.normal(size=900)
    p = ss.Predictions(np.zeros((900, 3)), u, error=error, features={"x": x})
    for options in (
        {"distribution": "empirical"},
        {"distribution": "normal"},
        {"parts": ["x", "u"]},
        {"parts": ["x"], "hold_out": 0.5},
    ):
        r = ss.Recalibrator(ss.RakedScaling(), **options).fit(p)
        ss.export.to_onnx(r, tmp_path / "r.onnx", coverage=0.9)
        session = ort.InferenceSession(tmp_path / "r.onnx")
        _, radius = session.run(None, {"u": u, "x": x})
        wanted = r.apply(p).distributions.radius(0.9)
        np.testing.assert_allclose(radius, wanted, rtol=1e-10)
        with pytest.raises(InvalidInputError, match="coverage"):
            ss.export.to_onnx(r, tmp_path / "r.onnx", quantiles=[0.5])


def test_what_cannot_be_exported_is_refused(tmp_path, monkeypatch):
    with pytest.raises(NotFittedError):
        ss.export.to_onnx(ss.Recalibrator(), tmp_path / "r.onnx")
    with pytest.raises(InvalidInputError, match="levels"):
        ss.export.to_onnx(fitted("linear"), tmp_path / "r.onnx", quantiles=[1.5])
    monkeypatch.setitem(sys.modules, "ndonnx", None)
    with pytest.raises(ImportError, match=r"sigmascale\[onnx\]"):
        ss.export.to_onnx(fitted("linear"), tmp_path / "r.onnx")
    assert not list(tmp_path.iterdir())
