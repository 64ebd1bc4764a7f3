"""Rows leave as they came in: the library, the index and the columns."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_index_equal
from sklearn.linear_model import BayesianRidge

import sigmascale as ss
from sigmascale.exceptions import ColumnError

N = 120
RNG = np.random.default_rng(0)
U = RNG.uniform(1, 2, N)
TABLE = {
    "y": 10 + 1.5 * U * RNG.normal(size=N),
    "pred": np.full(N, 10.0),
    "std": U,
    "mass": RNG.normal(size=N),
    "kind": np.where(np.arange(N) % 3, "gas", "solid"),
}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
INDEXES = {
    "text": pd.Index([f"row {i}" for i in range(N)], name="sample"),
    "not unique": pd.Index(np.arange(N) // 4),
    "of days": pd.date_range("2024-05-01", periods=N),
    "of two levels": pd.MultiIndex.from_arrays([np.arange(N) // 2, np.arange(N) % 2]),
}


def made(frame, **roles):
    return ss.Predictions.from_frame(frame, features=["mass"], labels=["kind"], **roles)


def columns(frame):
    """Return the columns of a frame of any library as lists."""
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict("list")
    return frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_leave_in_the_library_in_which_they_came(library):
    kind = LIBRARIES[library]
    p = made(kind(TABLE))
    r = ss.Recalibrator(ss.LinearScaling()).fit(p)
    q = r.apply(p)
    some = q.take(np.array([5, 1]))
    again = pickle.loads(pickle.dumps(some))
    rows = (p, q, some, again, copy.deepcopy(some), r.out_of_fold_, p.with_y_std(U))
    for each in rows:
        found = each.to_frame()
        assert type(found) is type(kind({}))
        names = ["y_pred", "y_std", "y_true", "mass", "kind"]
        assert list(columns(found)) == names
        for name, values in columns(found).items():
            given = each.features.get(name, getattr(each, name, None))
            np.testing.assert_array_equal(values, given)
        distributions = each.distributions.to_frame()
        assert type(distributions) is type(found)
        np.testing.assert_array_equal(
            np.column_stack([columns(distributions)[x] for x in ("low", "high")]),
            each.distributions.interval(0.9),
        )
        # and can be read again
        read = ss.Predictions.from_frame(found, features=["mass"], labels=["kind"])
        np.testing.assert_array_equal(read.y_std, each.y_std)
        np.testing.assert_allclose(read.error, each.error)
    assert columns(some.to_frame())["mass"][0] == TABLE["mass"][5]


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_the_index_of_pandas_follows_the_rows(index, recwarn):
    frame = pd.DataFrame(TABLE, index=index)
    p = made(frame)
    assert_index_equal(p.to_frame().index, index)
    r = ss.Recalibrator(ss.LinearScaling(), hold_out=0.5).fit(p)
    assert_index_equal(r.apply(p).to_frame(0.9).index, index)
    assert_index_equal(r.apply(p).distributions.to_frame().index, index)
    assert_index_equal(r.explain(p).to_frame().index, index)

    # some rows, in another order
    order = np.array([7, 3, 100])
    assert_index_equal(p.take(order).to_frame().index, index[order])
    assert_index_equal(r.apply(p).distributions[order].to_frame().index, index[order])
    is_some = TABLE["mass"] > 0
    assert_index_equal(p.take(is_some).to_frame().index, index[is_some])
    for few in (slice(3, 5), range(3, 5), [3, 4]):
        assert_index_equal(p.take(few).to_frame().index, index[3:5])

    # rows held out, and rows of some weight, know where they were
    unseen = r.out_of_fold_
    assert 0 < unseen.n_rows < N
    assert_index_equal(unseen.to_frame().index, index[unseen.places])
    np.testing.assert_array_equal(
        unseen.to_frame()["mass"], p.columns[1][unseen.places]
    )
    weighted = made(frame.assign(w=np.where(is_some, 2.0, 0.0)), weights="w")
    assert_index_equal(weighted.to_frame().index, index[is_some])


def test_whatever_has_an_index_gives_it():
    index = INDEXES["text"]
    series = {name: pd.Series(values, index) for name, values in TABLE.items()}
    y, pred, std = series["y"], series["pred"], series["std"]
    members = pd.DataFrame(RNG.normal(10, 1, (N, 12)), index)
    levels = [0.1, 0.5, 0.9]
    quantiles = pd.DataFrame(np.sort(members.to_numpy()[:, :3]), index)
    for rows in (
        ss.Predictions(pred, TABLE["std"]),
        ss.Predictions(TABLE["pred"], std, y_true=TABLE["y"]),
        ss.Predictions(TABLE["pred"], U, y_true=y),
        ss.Predictions(error=TABLE["y"], y_std=U, features=pd.DataFrame(TABLE, index)),
        ss.Predictions(error=TABLE["y"], y_std=U, features={"mass": series["mass"]}),
        ss.Predictions.from_members(members),
        ss.Predictions.from_members(members, y_true=TABLE["y"]),
        ss.Predictions.from_samples(members),
        ss.Predictions.from_quantiles(levels, quantiles),
        ss.Predictions.from_quantiles(levels, quantiles, shape=False),
        ss.Predictions.from_interval(std, TABLE["std"] + 1, coverage=0.9),
    ):
        assert_index_equal(rows.to_frame().index, index)
    assert_index_equal(ss.Distributions(pred, std).to_frame().index, index)

    # members in rows have another index
    upright = ss.Predictions.from_members(members.T, members_axis=0)
    assert_index_equal(upright.to_frame().index, pd.RangeIndex(N))
    X = pd.DataFrame({"mass": TABLE["mass"]}, index)
    model = ss.RecalibratedRegressor(BayesianRidge(), cv=3).fit(X, TABLE["y"])
    assert_index_equal(model.predict_distribution(X[:9]).to_frame().index, index[:9])


def test_all_that_is_known_of_a_row_is_a_column():
    p = ss.Predictions(
        y_std=U[:4],
        error=TABLE["y"][:4],
        features={"kind": ["a", None, "b", "b"], "time": [1.0, 2.0, np.nan, 3.0]},
        groups=["g", "h", "g", "h"],
        weights=[1.0, 2.0, 3.0, 0.0],
        time=np.array(["2024-05-01"] * 4, dtype="datetime64[D]"),
    )
    found = p.to_frame(coverage=0.8)
    names = ["y_std", "error", "low", "high", "groups", "weights", "time"]
    assert list(found) == [*names, "kind", "time_"]
    assert list(found["groups"]) == [0, 1, 0]
    np.testing.assert_array_equal(found["weights"], p.weights)
    assert found["time"].dt.day.tolist() == [1, 1, 1]
    assert found["kind"].tolist()[::2] == ["a", "b"]
    assert found["kind"].isna().tolist() == [False, True, False]
    limits = p.distributions.interval(0.8)
    np.testing.assert_array_equal(found[["low", "high"]], limits)
    seconds = np.array(["2024-05-01T12:00"], dtype="datetime64[s]")
    in_polars = ss.Predictions(y_std=pl.Series([1.0]), time=seconds).to_frame()
    assert in_polars["time"][0].hour == 12


def test_vectors_have_a_column_for_each_component_and_a_radius():
    forces = RNG.normal(size=(4, 3))
    p = ss.Predictions(np.zeros((4, 3)), np.ones(4), y_true=forces)
    found = p.to_frame(coverage=0.9)
    np.testing.assert_array_equal(found[[f"y_true_{k}" for k in (1, 2, 3)]], forces)
    np.testing.assert_array_equal(found["radius"], p.distributions.radius(0.9))
    distributions = p.distributions.to_frame(0.9)
    assert list(distributions) == ["mean_1", "mean_2", "mean_3", "std", "radius"]


def test_quantiles_of_distributions_are_named_as_they_are_read():
    p = made(pl.DataFrame(TABLE))
    levels = (0.025, 0.5, 0.975)
    frame = p.distributions.to_frame(levels=levels).select("^q.*$")
    with pytest.raises(ColumnError, match="look like quantiles") as found:
        ss.Predictions.from_frame(frame)
    for name, level in zip(frame.columns, levels, strict=True):
        assert f'"{name}": {level}' in str(found.value)
    quantiles = dict(zip(frame.columns, levels, strict=True))
    read = ss.Predictions.from_frame(frame, quantiles=quantiles)
    np.testing.assert_allclose(read.y_std, p.y_std)
    of_distributions = ss.Predictions.from_frame(p.distributions.to_frame())
    np.testing.assert_allclose(of_distributions.y_std, p.y_std)


def test_sums_of_rows_are_in_their_library_without_their_index():
    for kind in (pl.DataFrame, pd.DataFrame):
        totals = made(kind(TABLE)).combined(by="kind", rho=0)
        assert type(totals.to_frame()) is kind
        assert len(totals.to_frame()) == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_results_are_frames_of_the_library_of_the_rows(library):
    kind = LIBRARIES[library]
    p = made(kind(TABLE))
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p)
    v = ss.validate(p)
    compared = ss.compare({"raw": p, "new": q})
    change = compared.change("new")
    reliability = ss.scores.reliability_diagram(p, n_bins=3)
    local = ss.scores.local_statistics(p, n_bins=3)
    pit = ss.scores.pit_histogram(p)
    tails = ss.scores.tails(p, n_resamples=50)
    reference = ss.scores.reference_scores(p, n_draws=5)
    study = ss.scores.bin_study(p, q, numbers=[2, 3])
    accepted = ss.accept(p, limit=20.0)
    checks = list(v.checks.values())
    for result, expected in (
        (v, {"check": [x.kind for x in checks], "bound": [x.bound for x in checks]}),
        (v.summary(), {name: [x] for name, x in v.summary().to_dict().items()}),
        (v.scores, {name: [x] for name, x in v.scores.to_dict().items()}),
        (compared, {"name": ["raw", "new"], "change_low": [np.nan, change.low]}),
        (reliability, {"rmse": reliability.rmse, "n": reliability.n}),
        (local, {"value": local.value, "valid": local.valid, "x": local.x}),
        (pit, {"left": pit.edges[:-1], "low": [pit.low] * pit.density.size}),
        (
            tails,
            {"nu": [tails.nu], "rce": [tails.rce.value], "zms_low": [tails.zms.low]},
        ),
        (reference, {"score": [*reference.mean], "sd": [*reference.sd.values()]}),
        (study, {"n_bins": [2, 3], "S_u": study.scores["S_u"]}),
        (accepted, {"limit": [20.0], "kept": [accepted.kept]}),
    ):
        found = result.to_frame()
        assert type(found) is type(kind({})), result
        found = columns(found)
        for name, values in expected.items():
            assert list(found[name]) == pytest.approx(list(values), nan_ok=True), name


def test_arrays_leave_as_pandas_or_else_as_polars_or_ask_for_one():
    assert type(ss.Predictions([1.0], [1.0]).to_frame()) is pd.DataFrame
    program = (
        "import sys; hidden = sys.argv[1:]\n"
        "from importlib import util; found = util.find_spec\n"
        "util.find_spec = lambda x, *a: None if x in hidden else found(x, *a)\n"
        "import sigmascale as ss\n"
        "frame = ss.Predictions([1.0], [1.0]).to_frame()\n"
        "print(type(frame).__module__, 'pandas' in sys.modules)"
    )
    for hidden, expected in (
        (["pandas"], "polars.dataframe.frame False"),
        (["pandas", "polars"], "pip install pandas"),
    ):
        command = [sys.executable, "-c", program, *hidden]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert expected in done.stdout + done.stderr
