"""Distributions: location + scale × law, row by row."""

from functools import partial

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import FewRowsWarning, InvalidInputError
from sigmascale.maps.laws import EmpiricalLaw
from sigmascale.roles import Roles

RNG = np.random.default_rng(0)
LOCATION, SCALE = RNG.normal(size=50), RNG.uniform(0.5, 3, 50)
Z = RNG.exponential(size=2000) - 1  # skewed
SKEWED = EmpiricalLaw.learn(Z, RNG.uniform(0.5, 3, 2000), None, 1)
BINNED = EmpiricalLaw.learn(
    Z * np.repeat([1.0, 2.0], 1000), np.repeat([1.0, 2.0], 1000), None, 2
)
DISTRIBUTIONS = {
    "normal": ss.Distributions(LOCATION, SCALE),
    "skewed": ss.Distributions(LOCATION, SCALE, SKEWED),
    "by bins": ss.Distributions(LOCATION, SCALE, BINNED),
}
every = pytest.mark.parametrize("d", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def test_a_normal_law_has_what_scipy_has():
    d, same = DISTRIBUTIONS["normal"], stats.norm(LOCATION, SCALE)
    y = LOCATION + 1
    np.testing.assert_allclose(d.mean, same.mean())
    np.testing.assert_allclose(d.std, same.std())
    np.testing.assert_allclose(d.cdf(y), same.cdf(y))
    np.testing.assert_allclose(d.pit(y), same.cdf(y))
    np.testing.assert_allclose(d.quantile(0.3), same.ppf(0.3))
    np.testing.assert_allclose(d.interval(0.8), np.transpose(same.interval(0.8)))
    assert d.crps(y).mean() == pytest.approx(ss.crps(y - LOCATION, SCALE))


def test_units_and_places_move_everything_with_them():
    d = DISTRIBUTIONS["skewed"]
    moved = ss.Distributions(3 + 10 * LOCATION, 10 * SCALE, SKEWED)
    y = LOCATION + 0.2
    np.testing.assert_allclose(moved.mean, 3 + 10 * d.mean)
    np.testing.assert_allclose(moved.std, 10 * d.std)
    np.testing.assert_allclose(moved.crps(3 + 10 * y), 10 * d.crps(y))
    np.testing.assert_allclose(moved.cdf(3 + 10 * y), d.cdf(y))
    np.testing.assert_allclose(
        moved.quantile([0.1, 0.9]), 3 + 10 * d.quantile([0.1, 0.9])
    )


@every
def test_draws_are_from_the_distribution(d):
    draws = d.sample(20_000)
    assert draws.shape == (50, 20_000)
    np.testing.assert_allclose(draws.mean(axis=1), d.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=1), d.std, rtol=0.1)
    share = np.mean(draws < d.quantile(0.2)[:, None], axis=1)
    np.testing.assert_allclose(share, 0.2, atol=0.015)
    np.testing.assert_array_equal(d.sample(3), d.sample(3, random_state=0))
    assert not np.array_equal(d.sample(3), d.sample(3, random_state=1))


@every
def test_what_was_drawn_has_uniform_pit_and_is_held_as_often_as_asked_for(d):
    y = d.sample(400)
    pit = np.concatenate([d.pit(column) for column in y.T])
    assert stats.kstest(pit, "uniform").pvalue > 0.001
    low, high = d.interval(0.9).T
    inside = (low <= y.T) & (high >= y.T)
    assert inside.mean() == pytest.approx(0.9, abs=0.01)
    # no other distribution has a lower score
    own = np.mean([d.crps(column) for column in y.T])
    for factor, law in ((0.7, d.law), (1.4, d.law)):
        other = ss.Distributions(d.location, factor * d.scale, law)
        assert np.mean([other.crps(column) for column in y.T]) > own


@every
def test_rows_are_taken_like_those_of_an_array(d):
    y = LOCATION + 0.5
    for rows in (slice(3, 9), np.arange(50) % 3 == 0, [4, 4, 1]):
        some = d[rows]
        np.testing.assert_array_equal(some.crps(y[rows]), d.crps(y)[rows])
        np.testing.assert_array_equal(some.quantile(0.7), d.quantile(0.7)[rows])
        np.testing.assert_array_equal(some.mean, d.mean[rows])
        assert len(some) == len(y[rows])
    one = d[7]
    assert len(one) == 1
    assert one.std[0] == d.std[7]
    assert one.crps(y[7]) == d.crps(y)[7]


def test_a_value_with_a_probability_of_its_own_has_the_middle_of_its_step_as_pit():
    half_zero = np.append(np.zeros(50), np.linspace(-2, 2, 49))
    law = EmpiricalLaw.learn(half_zero, np.ones(99), None, 1)
    d = ss.Distributions([0.0, 5.0], [1.0, 2.0], law)
    np.testing.assert_allclose(d.cdf([0, 5]), [0.75, 0.75])
    np.testing.assert_allclose(d.pit([0, 5]), [0.5, 0.5])
    assert d.quantile([0.3, 0.5, 0.7]).tolist() == [[0, 0, 0], [5, 5, 5]]


def test_the_mean_of_a_skewed_law_is_not_the_prediction():
    law = EmpiricalLaw.learn(Z + 0.5, np.ones(2000), None, 1)
    d = ss.Distributions(LOCATION, SCALE, law)
    offset = np.mean(Z) + 0.5
    # the outermost rows weigh a little more than others
    np.testing.assert_allclose((d.mean - LOCATION) / SCALE, offset, rtol=0.01)
    np.testing.assert_allclose(d.std, np.std(Z) * SCALE, rtol=0.02)


def test_they_are_shown_as_a_table():
    frame = DISTRIBUTIONS["by bins"].to_frame([0.1, 0.5])
    assert frame.columns == ["mean", "std", "q0.1", "q0.5"]
    d = DISTRIBUTIONS["by bins"]
    np.testing.assert_array_equal(frame["q0.1"], d.quantile(0.1))
    np.testing.assert_array_equal(frame["mean"], d.mean)
    assert "q0.95" in d.to_frame().columns
    assert "50 rows" in repr(d)
    assert "empirical" in repr(d)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidInputError, match="same number of rows"):
        ss.Distributions([1.0, 2.0], [1.0])
    with pytest.raises(InvalidInputError, match="`scale` must be strictly positive"):
        ss.Distributions([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(InvalidInputError, match="`location` must be finite"):
        ss.Distributions([1.0, np.nan], [1.0, 1.0])
    d = DISTRIBUTIONS["normal"]
    with pytest.raises(InvalidInputError, match="same number of rows"):
        d.crps([1.0])
    for levels in (0.0, 1.0, [0.5, 1.2], [], [[0.5]], np.nan):
        with pytest.raises(InvalidInputError, match="`levels` must lie between 0 and"):
            d.quantile(levels)
    for coverage in (0, 1, "0.9", None):
        with pytest.raises(InvalidInputError, match="`coverage` must lie"):
            d.interval(coverage)
    with pytest.raises(InvalidInputError, match="`n_draws` must be"):
        d.sample(0)


def test_the_caller_s_line_is_the_one_that_a_warning_shows():
    law = EmpiricalLaw.learn(Z[:50], np.ones(50), None, 1)
    d = ss.Distributions([0.0], [1.0], law)
    with pytest.warns(FewRowsWarning, match="need 199 rows") as caught:
        d.quantile(0.005)
    assert caught[0].filename == __file__
    with pytest.warns(FewRowsWarning, match="need 199 rows"):
        d.interval(0.99)
    d.interval(0.96)  # 49 rows would do


def test_bare_predictions_are_judged_as_normal_ones():
    p = ss.Predictions(LOCATION, SCALE, y_true=LOCATION + 1)
    assert p.distributions is None
    np.testing.assert_allclose(p.truth, LOCATION + 1)
    normal = ss.Distributions(LOCATION, SCALE)
    assert ss.crps(p) == pytest.approx(normal.crps(p.truth).mean())
    errors = ss.Predictions(error=np.ones(50), y_std=SCALE)
    np.testing.assert_array_equal(errors.truth, np.ones(50))
    normal = ss.Distributions(np.zeros(50), SCALE)
    assert ss.crps(errors) == pytest.approx(normal.crps(np.ones(50)).mean())


LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture(scope="module")
def travelling(tmp_path_factory):
    """A recalibrator with a shift of trees and laws by bins, its file, and rows."""
    folder = tmp_path_factory.mktemp("travelling")
    data = ss.datasets.make_molecules(1200, seed=3)
    kind = np.where(
        data.heteroatom_fraction > np.median(data.heteroatom_fraction), "a", "b"
    )
    columns = {"u": data.uncertainty, "mass": data.mass, "kind": kind}
    table = pl.DataFrame(columns)
    error = data.error + data.uncertainty * np.where(kind == "a", 2.0, -2.0)
    r = ss.Recalibrator(ss.BoostedScaling(max_trees=20), shift="auto")
    r.fit(table, error)
    assert r.shift_kind_ == "trees"
    # laws by bins of the scale, whatever unseen rows gain
    scale = r.predict(table)
    r.law_ = type(r.law_).learn(error / scale, scale, None, 5)
    roles = Roles(
        "u", error=("E",), numbers=("mass",), labels=("kind",), prediction="V"
    )
    ss.save(r, folder / "r.json", source=roles.to_dict())
    table = table.with_columns(V=np.linspace(-5, 5, 1200))
    table.write_parquet(folder / "new.parquet")
    return r, folder, table


def by_engine(name, r, folder, sigmascale):
    frame = ss.frames.scan(folder / "new.parquet", engine=name)
    new = ss.frames.predict(r, frame, name="new", quantiles=LEVELS, prediction="V")
    return nw.from_native(new).collect("polars").to_native()


def by_onnx(r, folder, sigmascale):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    how = ("--quantiles", "0.05,0.5,0.95", "--shift", "-o", folder / "r.onnx")
    assert sigmascale("export", folder / "r.json", *how).code == 0
    table = pl.read_parquet(folder / "new.parquet")
    columns = {name: table[name].to_numpy() for name in table.columns}
    session = onnxruntime.InferenceSession(folder / "r.onnx")
    names = [f"new{'_' * (i > 0)}{x.name}" for i, x in enumerate(session.get_outputs())]
    return table.with_columns(
        pl.Series(name, values)
        for name, values in zip(names, session.run(None, columns), strict=True)
    ).rename({"newuncertainty": "new"})


def by_torch(r, folder, sigmascale):
    torch = pytest.importorskip("torch")
    table = pl.read_parquet(folder / "new.parquet")
    module = ss.export.to_torch(ss.load(folder / "r.json"), quantiles=LEVELS)
    places = [module.labels["kind"].index(each) for each in table["kind"]]
    X = torch.from_numpy(np.column_stack([table["u"], table["mass"], places]))
    u, quantiles = module(X, prediction=torch.tensor(table["V"].to_numpy()))
    named = zip(LEVELS, quantiles.numpy().T, strict=True)
    columns = {f"new_q{level:g}": values for level, values in named}
    return table.with_columns(new=u.numpy(), **columns)


def by_apply(engine, r, folder, sigmascale):
    how = ("--quantiles", "0.05,0.5,0.95", "--name", "new", "--engine", engine)
    files = (folder / "r.json", folder / "new.parquet", "-o", folder / "out.parquet")
    assert sigmascale("apply", *files, *how).code == 0
    return pl.read_parquet(folder / "out.parquet")


DOORS = {
    **{name: partial(by_engine, name) for name in ("polars", "duckdb", "dask")},
    "ONNX": by_onnx,
    "PyTorch": by_torch,
    **{f"apply, {name}": partial(by_apply, name) for name in ("memory", "polars")},
}


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
@pytest.mark.parametrize("door", DOORS)
def test_the_same_quantiles_come_by_every_door(door, travelling, sigmascale):
    r, folder, table = travelling
    X = table.select("u", "mass", "kind")
    expected = r.predict_quantiles(X, LEVELS)
    again = ss.load(folder / "r.json")
    np.testing.assert_array_equal(again.predict_quantiles(X, LEVELS), expected)
    found = DOORS[door](r, folder, sigmascale).sort("V")
    quantiles = found.select(f"new_q{level:g}" for level in LEVELS).to_numpy()
    about = table["V"].to_numpy()[:, None]
    np.testing.assert_allclose(quantiles, about + expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found["new"], r.predict(X), rtol=1e-10)
    if "new_shifted" in found.columns:
        shifted = about[:, 0] + r.predict_shift(X)
        np.testing.assert_allclose(found["new_shifted"], shifted, atol=1e-10)
