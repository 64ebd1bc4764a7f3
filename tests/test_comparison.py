import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

import sigmascale as ss
from sigmascale.bins.partitions import rank_bins
from sigmascale.comparison import name_of
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError
from sigmascale.judging import binning


def halves(X, error):
    half = error.size // 2
    return (X[:half], error[:half]), (X[half:], error[half:])


@pytest.fixture(scope="module")
def molecules():
    return ss.datasets.make_molecules(2400, seed=3)


@pytest.fixture(scope="module")
def frames(molecules):
    table = pl.DataFrame(
        {
            "u": molecules.uncertainty,
            "mass": molecules.mass,
            "hetero": molecules.heteroatom_fraction,
        }
    )
    return halves(table, molecules.error)


SCALERS = {
    "one factor": ss.TemperatureScaling(),
    "bins of mass": ss.BinwiseScaling(8, by="mass"),
}


@pytest.fixture(scope="module")
def table(frames):
    return ss.compare(SCALERS, *frames, rng=5)


def test_every_row_equals_a_direct_computation(table, frames):
    calibration, _ = frames
    assert [row.name for row in table.rows] == ["none", *SCALERS]
    for row in table.rows:
        for which, (X, error) in zip(("calibration", "test"), frames, strict=True):
            u = X["u"].to_numpy()
            features = {name: X[name] for name in ("mass", "hetero")}
            scaled = u
            if row.name != "none":
                scaled = SCALERS[row.name].fit(*calibration).predict(X)
            card = ss.scorecard(error, scaled, features, ties=u)
            rng = np.random.default_rng(5)
            local = {
                name: ss.local_zms(error, scaled, by=x, ties=u, rng=rng)
                for name, x in {"u": None, **features}.items()
            }
            flat = {f"{which} {name}": v for name, v in card.to_dict().items()}
            for name, each in local.items():
                flat[f"{which} valid_{name}"] = each.fraction_valid
                flat[f"{which} valid_{name} low"] = each.fraction_interval[0]
                flat[f"{which} valid_{name} high"] = each.fraction_interval[1]
            found = row.to_dict()
            assert {name: found[name] for name in flat} == flat
            assert len(flat) == (len(found) - 8) / 2


def test_predictions_are_compared_as_tables_are(table, frames):
    sets = [
        ss.Predictions(error=error, y_std=X["u"], features=X.drop("u"))
        for X, error in frames
    ]
    found = ss.compare(SCALERS, *sets, rng=5).to_dict()
    expected = table.to_dict()
    del found["fit seconds"], expected["fit seconds"]
    assert found == expected


def test_a_recalibrator_of_another_library_gets_a_table_of_predictions(frames):
    class Constant(BaseEstimator):
        def fit(self, X, y):
            self.shape_ = X.shape
            return self

        def predict(self, X):
            return 2 * X[:, 0].astype(float)

    sets = [
        ss.Predictions(
            error=error, y_std=X["u"], features={"kind": ["a", "b"] * (len(X) // 2)}
        )
        for X, error in frames
    ]
    found = ss.compare({"twice": Constant()}, *sets, method="moments")
    assert found["twice"].test.zms == pytest.approx(found["none"].test.zms / 4)


def test_the_test_set_does_not_influence_the_calibration_scores(frames):
    (X, error), test = frames
    columns = [
        ss.compare(
            [ss.IsotonicScaling()], (X, error), other, method="moments"
        ).to_dict()
        for other in (test, (test[0], 100 * test[1]))
    ]
    for name, values in columns[0].items():
        if name.startswith("calibration"):
            assert values == columns[1][name]
    assert columns[0]["test NLL"] != columns[1]["test NLL"]


def test_recalibrators_are_cloned_and_stay_unfitted(frames):
    scaler = ss.TemperatureScaling()
    ss.compare([scaler], *frames, method="moments")
    assert not [name for name in vars(scaler) if name.endswith("_")]


def test_the_time_of_a_fit_is_told(table):
    assert table["none"].fit_seconds == 0
    assert all(0 < row.fit_seconds < 60 for row in table.rows[1:])


def test_a_list_is_named_by_class_and_by_what_is_not_default(frames):
    scalers = [ss.TemperatureScaling(), ss.BinwiseScaling(8, by="mass")]
    found = ss.compare(scalers, *frames, method="moments")
    names = ["none", "Temperature", "Binwise(by='mass', n_bins=8)"]
    assert [row.name for row in found.rows] == names
    assert name_of(ss.BinwiseScaling()) == "Binwise"


def test_a_single_recalibrator_need_not_be_in_a_list(frames):
    found = ss.compare(ss.TemperatureScaling(), *frames, method="moments")
    assert [row.name for row in found.rows] == ["none", "Temperature"]


def test_arrays_and_data_frames_give_the_same_numbers(table, frames):
    arrays = [(X.to_numpy(), error) for X, error in frames]
    scalers = {**SCALERS, "bins of mass": ss.BinwiseScaling(8, by=1)}
    found = ss.compare(scalers, *arrays, rng=5)
    for row, expected in zip(found.rows, table.rows, strict=True):
        assert list(row.test.s) == ["u", "X1", "X2"]
        for name, score in zip(("u", "X1", "X2"), ("u", "mass", "hetero"), strict=True):
            assert row.test.s[name] == expected.test.s[score]


def test_only_the_features_asked_for_are_scored(frames):
    found = ss.compare([], *frames, features=["hetero"], method="moments")
    assert list(found["none"].test.s) == ["u", "hetero"]
    assert list(found["none"].calibration_local) == ["u", "hetero"]


def test_the_text_shows_the_test_scores_within_80_columns(table):
    lines = str(table).splitlines()
    assert max(map(len, lines)) <= 80
    # the table is divided if it is too wide
    scores, valid, _ = str(table).split("\n\n")
    assert scores.splitlines()[0].split() == [
        *("method", "NLL", "CRPS", "in", "90%", "S_cal", "S_u", "S_mass"),
        *("S_hetero", "S_tot"),
    ]
    for line, row in zip(scores.splitlines()[2:], table.rows, strict=True):
        card = row.test
        numbers = [card.s_cal, *card.s.values(), card.s_tot]
        found = card.distribution
        cells = [f"{card.nll:.2f}", f"{found.crps:.3g}"]
        cells += [f"{100 * found.coverage[0.9]:.0f}"]
        cells += [f"{value:.2f}" for value in numbers]
        assert line.startswith(row.name)
        assert line[len(row.name) :].split() == cells
    for line, row in zip(valid.splitlines()[2:], table.rows, strict=True):
        assert line[len(row.name) :].split() == [
            f"{100 * each.fraction_valid:.0f}" for each in row.test_local.values()
        ]


def test_the_text_of_all_default_recalibrators_fits_in_80_columns(molecules):
    names = ["u", "molecular_mass", "heteroatom_fraction"]
    X = pl.DataFrame(molecules.X, schema=names)
    scalers = [
        ss.TemperatureScaling(),
        ss.LinearScaling(),
        ss.IsotonicScaling(),
        ss.BinwiseScaling(),
    ]
    text = str(ss.compare(scalers, *halves(X, molecules.error), method="moments"))
    assert max(map(len, text.splitlines())) <= 80
    assert "S_molecula…" in text


def test_the_html_has_both_sets_and_escapes_every_name(molecules):
    X = pl.DataFrame(molecules.X, schema=["u", "<script>", "a&b"])
    scalers = {"<b>bold</b>": ss.TemperatureScaling()}
    page = ss.compare(scalers, *halves(X, molecules.error))._repr_html_()
    assert page.index("Test set") < page.index("Calibration set")
    assert page.count("S_&lt;script&gt;") == 2
    assert page.count("S_a&amp;b") == 2
    assert page.count("<td>&lt;b&gt;bold&lt;/b&gt;</td>") == 3
    tags = set(re.findall(r"</?(\w+)", page))
    table = {"table", "thead", "tbody", "tr", "th", "td"}
    figure = {"svg", "rect", "text", "circle", "line", "polyline"}
    assert tags == table | figure | {"p", "div", "details", "summary"}


@pytest.mark.parametrize(
    ("backend", "kind"),
    [("polars", pl.DataFrame), ("pandas", pd.DataFrame), ("pyarrow", pa.Table)],
)
def test_the_table_becomes_a_data_frame_of_each_kind(table, backend, kind):
    frame = table.to_frame(backend)
    assert type(frame) is kind
    columns = frame.columns if backend != "pyarrow" else frame.column_names
    expected = table.to_dict()
    assert list(columns) == list(expected)
    for name, values in expected.items():
        found = frame[name]
        assert (found.to_pylist() if backend == "pyarrow" else list(found)) == values


def test_polars_is_the_default_data_frame(table):
    assert isinstance(table.to_frame(), pl.DataFrame)


@pytest.mark.parametrize(
    ("scalers", "message"),
    [
        ([ss.TemperatureScaling()] * 2, "`scalers` must not repeat one; pass a dict"),
        ({"none": ss.TemperatureScaling()}, 'must not have one named "none"'),
    ],
)
def test_names_that_would_clash_are_refused(frames, scalers, message):
    with pytest.raises(InvalidInputError, match=message):
        ss.compare(scalers, *frames)


@pytest.mark.parametrize("name", ["calibration", "test"])
@pytest.mark.parametrize("wrong", [None, np.ones(5), ("X", "y", "z", "w", "v")])
def test_what_is_not_a_pair_is_refused_by_name(frames, name, wrong):
    sets = dict(zip(("calibration", "test"), frames, strict=True)) | {name: wrong}
    with pytest.raises(InvalidInputError, match=rf"`{name}` must be a pair \(X, y\)"):
        ss.compare([], **sets)


def test_errors_that_do_not_belong_to_the_table_are_refused(frames):
    calibration, (X, error) = frames
    with pytest.raises(InvalidInputError, match="same number of rows; found 1200 and"):
        ss.compare([], calibration, (X, error[1:]))


def test_scores_and_valid_fractions_of_a_set_share_one_partition_of_each_variable(
    frames, monkeypatch
):
    cut = []

    def counted(x, *args, **kwargs):
        cut.append(x.size)
        return rank_bins(x, *args, **kwargs)

    monkeypatch.setattr(binning, "rank_bins", counted)
    monkeypatch.setattr(binning, "rank_codes", None)
    ss.compare([ss.TemperatureScaling()], *frames)
    assert cut == [1200] * (2 * 2 * 3)  # methods, sets and variables


def test_bins_with_too_few_rows_are_merged_for_scores_as_for_intervals(frames):
    few = tuple((X[:60], error[:60]) for X, error in frames)
    with pytest.warns(FewerBinsWarning, match="12 are used"):
        found = ss.compare([], *few, n_bins=100)["none"]
    assert found.test_local["u"].n.size == 12
    X, error = few[1]
    features = {name: X[name] for name in ("mass", "hetero")}
    card = ss.scorecard(error, X["u"], features, n_bins=12)
    assert found.test.s == card.s


def test_uncertainties_that_a_recalibrator_should_not_predict_are_refused(frames):
    class Negative(ss.TemperatureScaling):
        def predict(self, X):
            return -super().predict(X)

    with pytest.raises(InvalidInputError, match="must be strictly positive; 1200 of"):
        ss.compare([Negative()], *frames)


def test_groups_go_to_the_fits_and_to_the_intervals(frames):
    (X, error), (X_test, error_test) = frames
    groups, test_groups = (np.arange(len(e)) // 4 for e in (error, error_test))
    seen = []

    class Spy(ss.TemperatureScaling):
        def fit(self, X, *others):
            seen.append(getattr(X, "groups", None))
            return super().fit(X, *others)

    settings = {"n_bins": 10, "method": "moments"}
    found = ss.compare(
        {"spy": Spy()},
        (X, error, groups),
        (X_test, error_test, test_groups),
        **settings,
    )
    np.testing.assert_array_equal(seen[0], groups)
    row = found["spy"]
    u = Spy().fit(X, error).predict(X_test)
    expected = ss.local_zms(error_test, u, groups=test_groups, **settings)
    np.testing.assert_array_equal(row.test_local["u"].low, expected.low)
    plain = ss.compare({"spy": Spy()}, (X, error), (X_test, error_test), **settings)[
        "spy"
    ]
    assert seen[-1] is None
    assert row.test == plain.test
    assert (row.test_local["u"].low != plain.test_local["u"].low).all()


# --- which is better


def two_models(rng, n, *, worse=1.0, size=1):
    """Return Predictions of two models of the same truths, in groups of a size."""
    groups = np.arange(n) // size
    y = rng.normal(size=n)
    u = rng.uniform(0.5, 1.5, n)
    common = rng.normal(size=n // size + 1)[groups] if size > 1 else 0.0
    scale = 1 / np.sqrt(2) if size > 1 else 1.0
    errors = [
        scale * u * (common + rng.normal(size=n)),
        scale * worse * u * (common + rng.normal(size=n)),
    ]
    labels = groups if size > 1 else None
    return {
        name: ss.Predictions(y - error, std, y_true=y, groups=labels)
        for name, error, std in zip("ab", errors, (u, worse * u), strict=True)
    }


def test_differences_are_means_of_rows_and_count_groups(table, frames):
    models = two_models(np.random.default_rng(0), 400, worse=1.2)
    found = ss.compare(models)
    loss = [ss.crps(p) for p in models.values()]
    off = found["b"].differences["crps"]
    assert off.value == pytest.approx(loss[1] - loss[0], rel=1e-12)
    assert off.low < off.value < off.high
    nll = [row.test.nll for row in found.rows]
    assert found["b"].differences["nll"].value == pytest.approx(nll[1] - nll[0])
    assert found["a"].differences["crps"].high == 0
    assert found.to_dict()["test crps difference"] == [0.0, off.value]
    # every row four times is as good as once, if that is said
    each = np.repeat(np.arange(400), 4)
    many = {name: p.take(each).changed(groups=each) for name, p in models.items()}
    grouped = ss.compare(many)
    assert grouped.units == "groups"
    again = grouped["b"].differences["crps"]
    assert (again.low, again.high) == pytest.approx((off.low, off.high), rel=1e-9)


def test_the_sentence_says_which_is_better_or_that_it_cannot_be_told():
    rng = np.random.default_rng(1)
    told = ss.compare(two_models(rng, 2000, worse=1.3))
    assert (told.best, told.alike) == ("a", ())
    assert "By CRPS, a is best." in str(told)
    assert "worse" in str(told)
    alike = ss.compare(two_models(rng, 200))
    assert alike.alike
    assert "cannot be told which is better" in str(alike)
    assert "cannot tell" in str(alike)


def test_models_must_be_of_the_same_rows():
    models = two_models(np.random.default_rng(0), 100)
    few = {**models, "b": models["b"].take(np.arange(50))}
    with pytest.raises(InvalidInputError, match="a has 100 of them, and b has 50"):
        ss.compare(few)
    with pytest.raises(InvalidInputError, match="dict of Predictions of two models"):
        ss.compare({"a": models["a"]})
    with pytest.raises(InvalidInputError, match="must be recalibrators"):
        ss.compare(models, models["a"], models["b"])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5])
def test_paired_intervals_hold_what_they_claim(size):
    from benchmarks.paired import study

    found = study(n_sets=200, n_rows=1000, size=size, seed=size)
    error = np.sqrt(0.95 * 0.05 / 200)
    assert abs(found.held - 0.95) <= 0.02 + 2 * error
    assert study(n_sets=50, n_rows=2000, size=1, worse=1.05).told >= 0.8
