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
            assert len(flat) == (len(found) - 2) / 2


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
    scores, valid = str(table).split("\n\n")
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
    assert page.count("<td>&lt;b&gt;bold&lt;/b&gt;</td>") == 2
    tags = set(re.findall(r"</?(\w+)", page))
    table = {"table", "thead", "tbody", "tr", "th", "td"}
    figure = {"svg", "rect", "text", "circle"}
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
