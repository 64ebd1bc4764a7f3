import re

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, RepeatedRowsWarning
from sigmascale.judging import bin_numbers as module
from sigmascale.maps import prediction
from sigmascale.scaling import choice as choosing

NUMBERS = (2, 7, 30)


@pytest.fixture(scope="module")
def halves():
    data = ss.datasets.make_molecules(3000, seed=3)
    X = pl.DataFrame(data.X, schema=["u", "mass", "hetero"])
    return (X[:1500], data.error[:1500]), (X[1500:], data.error[1500:])


@pytest.fixture(scope="module", params=["u", "mass"])
def by(request):
    return request.param


@pytest.fixture(scope="module")
def scan(halves, by):
    return ss.scan_bins(*halves, n_bins=NUMBERS, by=by, n_draws=30, rng=2)


def local_zms(error, scaled, u, features):
    rng = np.random.default_rng(2)
    return {
        name: ss.local_zms(error, scaled, by=x, ties=u, rng=rng)
        for name, x in {"u": None, **features}.items()
    }


def test_every_point_of_a_scan_equals_a_direct_computation(halves, by, scan):
    calibration, (X, error) = halves
    u, features = X["u"].to_numpy(), {name: X[name] for name in ("mass", "hetero")}
    assert scan.n_bins.tolist() == list(NUMBERS)
    for i, n in enumerate(NUMBERS):
        scaled = ss.BinwiseScaling(n, by=by).fit(*calibration).predict(X)
        card = ss.scorecard(error, scaled, features, ties=u).to_dict()
        assert {name: values[i] for name, values in scan.scores.items()} == card
        for name, each in local_zms(error, scaled, u, features).items():
            assert scan.valid[name][i] == each.fraction_valid
            ends = (scan.valid_low[name][i], scan.valid_high[name][i])
            assert ends == each.fraction_interval
        perfect = ss.reference_scores(scaled, features, n_draws=30, ties=u, rng=2)
        means = {name: values[i] for name, values in scan.simulated_mean.items()}
        assert means == perfect.mean
        sds = {name: values[i] for name, values in scan.simulated_sd.items()}
        assert sds == perfect.sd


def test_the_isotonic_reference_of_a_scan_equals_a_direct_computation(halves, scan):
    calibration, (X, error) = halves
    u, features = X["u"].to_numpy(), {name: X[name] for name in ("mass", "hetero")}
    scaled = ss.IsotonicScaling().fit(*calibration).predict(X)
    assert scan.isotonic == ss.scorecard(error, scaled, features, ties=u)
    local = local_zms(error, scaled, u, features)
    expected = {name: each.fraction_valid for name, each in local.items()}
    assert scan.isotonic_valid == expected


def test_a_scan_is_shown_with_one_line_a_number_and_one_for_isotonic(scan):
    lines = str(scan).splitlines()
    assert lines[0].split() == ["bins", "NLL", "S_cal", *_local_names(scan), "S_tot"]
    assert [line.split()[0] for line in lines[2:]] == ["2", "7", "30", "isotonic"]
    assert lines[3].split()[1] == f"{scan.scores['NLL'][1]:.3f}"
    assert lines[-1].split()[-1] == f"{scan.isotonic.s_tot:.3f}"
    cells = re.findall(r"<td>(.*?)</td>", scan._repr_html_())
    assert cells == [cell for line in lines[2:] for cell in line.split()]


def _local_names(scan):
    return [f"S_{name}" for name in scan.valid]


def test_a_scan_becomes_columns_of_plain_numbers(scan):
    columns = scan.to_dict()
    assert columns["n_bins"] == list(NUMBERS)
    assert columns["valid_mass high"] == scan.valid_high["mass"].tolist()
    assert columns["simulated S_u sd"] == scan.simulated_sd["S_u"].tolist()
    for values in columns.values():
        assert len(values) == len(NUMBERS)
        assert {type(value) for value in values} <= {int, float}


def test_a_scan_of_no_numbers_is_refused(halves):
    with pytest.raises(InvalidInputError, match="at least one integer; found none"):
        ss.scan_bins(*halves, n_bins=())


def test_a_scan_of_zero_bins_is_refused(halves):
    with pytest.raises(InvalidInputError, match="`n_bins` must be at least 1; found 0"):
        ss.scan_bins(*halves, n_bins=(2, 0))


# R 4.2.2, ErrViewLib 1.7.2 and the study's script, version 1.2: scores of the test set
# after scaling in bins of u, rows being sorted by u. The script writes ln 2π in NLL as
# 1.837877.
GOLDEN_NAMES = (
    *("NLL", "S_cal", "S_u", "S_X1", "S_X2", "S_tot"),
    *("ENCE_u", "ENCE_X1", "ENCE_X2", "UCE_u", "UCE_X1", "UCE_X2"),
)
GOLDEN = {
    2: (
        -3.0161630586765,
        0.00847800255991992,
        0.285540815308552,
        0.342220671475267,
        0.294931502402018,
        0.931170991745757,
        0.160749242095145,
        0.615859567053899,
        0.529589200598422,
        0.00100680733931075,
        0.000996035309134597,
        0.000994658291767148,
    ),
    40: (
        -3.07370175083521,
        0.0409979087648193,
        0.185365122681579,
        0.302919746635392,
        0.267084387359462,
        0.796367165441253,
        0.0987540646270306,
        0.398429480797345,
        0.313318147000123,
        0.000874678782451538,
        0.000915505439720036,
        0.000893201725787622,
    ),
    99: (
        -3.07011400289079,
        0.00916630450267628,
        0.211598448757761,
        0.293564400405445,
        0.26114126550745,
        0.775470419173333,
        0.106379417352257,
        0.330250465132091,
        0.248599851166072,
        0.000732320509020795,
        0.000872389072188881,
        0.00082399543698419,
    ),
}
NLL_TRUNCATION = 0.5 * (np.log(2 * np.pi) - 1.837877)


def test_a_scan_of_qm9_matches_the_published_code(qm9):
    names = ["u", "X1", "X2"]
    sets = [
        (pl.DataFrame(each.X, schema=names), each.error)
        for each in (qm9.calibration, qm9.test)
    ]
    scan = ss.scan_bins(*sets, n_bins=GOLDEN, n_draws=2, method="moments")
    found = {name: scan.scores[name].copy() for name in GOLDEN_NAMES}
    found["NLL"] -= NLL_TRUNCATION
    np.testing.assert_allclose(
        np.column_stack(list(found.values())), list(GOLDEN.values()), rtol=0, atol=1e-9
    )


def test_one_bin_is_chosen_when_uncertainties_are_right_up_to_a_factor():
    rng = np.random.default_rng(0)
    for _ in range(5):
        u = np.exp(rng.normal(size=2000))
        choice = ss.choose_n_bins(u, 3 * u * rng.normal(size=u.size))
        assert choice.n_bins <= 2


def test_more_bins_are_chosen_the_more_uncertainties_are_wrong():
    rng = np.random.default_rng(0)
    u = np.exp(rng.normal(size=5000))
    z = rng.normal(size=u.size)
    chosen = [ss.choose_n_bins(u, u**power * z).n_bins for power in (1.0, 1.3, 2.0)]
    assert chosen[0] <= 2 < chosen[1] < chosen[2]


def test_bins_of_a_feature_are_chosen_when_it_decides_about_the_errors():
    rng = np.random.default_rng(0)
    u, x = np.exp(rng.normal(size=3000)), rng.uniform(size=3000)
    error = u * np.exp(2 * x) * rng.normal(size=u.size)
    X = pl.DataFrame({"u": u, "label": ["a"] * u.size, "x": x})
    assert ss.choose_n_bins(X, error).n_bins <= 2
    assert ss.choose_n_bins(X, error, by="x").n_bins >= 5
    by_number = ss.choose_n_bins(X, error, by=2)
    assert by_number.to_dict() == ss.choose_n_bins(X, error, by="x").to_dict()


def test_a_choice_never_judges_a_fit_by_rows_that_it_has_seen(monkeypatch):
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 103)  # all different: u tells the row
    fits, judged = [], {}

    class Spy(ss.BinwiseScaling):
        def _fit_rows(self, rows):
            fits.append((self.n_bins, set(rows.uncertainty)))
            return super()._fit_rows(rows)

    def rescale(learned, rows):
        n_bins, seen = fits[-1]
        assert seen.isdisjoint(rows.uncertainty)
        assert seen | set(rows.uncertainty) == set(u)
        judged[n_bins] = judged.get(n_bins, []) + list(rows.uncertainty)
        return prediction.rescale(learned, rows)

    monkeypatch.setattr(module, "BinwiseScaling", Spy)
    monkeypatch.setattr(choosing, "rescale", rescale)
    ss.choose_n_bins(u, u * rng.normal(size=u.size), n_bins=(1, 4), cv=4)
    assert len(fits) == 8
    for n_bins in (1, 4):
        assert sorted(judged[n_bins]) == sorted(u)


def test_the_choice_has_the_fewest_bins_within_one_standard_error_of_the_best(halves):
    X, error = halves[0]
    choices = [ss.choose_n_bins(X, error, rng=seed) for seed in range(4)]
    for choice in choices:
        best = np.argmin(choice.nll)
        assert choice.best == choice.candidates[best]
        within = choice.nll <= choice.nll[best] + choice.standard_error
        assert choice.n_bins == choice.candidates[within].min()
        assert choice.standard_error[best] == 0
    assert any(choice.n_bins < choice.best for choice in choices)


def test_neither_the_order_of_candidates_nor_of_calls_changes_a_choice(halves):
    X, error = halves[0]
    choice = ss.choose_n_bins(X, error, rng=1)
    backwards = choice.candidates[::-1].tolist()
    again = ss.choose_n_bins(X, error, n_bins=backwards, rng=1)
    assert again.to_dict() == choice.to_dict()
    assert choice.to_dict()["nll"] == choice.nll.tolist()
    assert ss.choose_n_bins(X, error, rng=2).nll.tolist() != choice.nll.tolist()


def test_one_bin_has_the_cross_validated_nll_of_one_factor(halves):
    X, error = halves[0][0][:200], halves[0][1][:200]
    u = X["u"].to_numpy()
    choice = ss.choose_n_bins(X, error, n_bins=[1], cv=200)  # leaves one out
    z2 = (error / u) ** 2
    factors = np.sqrt((z2.sum() - z2) / (z2.size - 1))
    assert choice.nll[0] == pytest.approx(ss.nll(error, factors * u), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": ()}, "at least one integer; found none"),
        ({"n_bins": (0,)}, "`n_bins` must be at least 1"),
        ({"cv": 1}, "`cv` must be at least 2"),
        ({"cv": 11}, "found 11 for 10 rows"),
        ({"by": 1}, "`by` must be a column of X"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        ss.choose_n_bins(np.arange(1.0, 11), np.ones(10), **options)


def test_a_choice_keeps_groups_together_and_counts_them(monkeypatch):
    rng = np.random.default_rng(1)
    u = rng.uniform(1, 2, 400)
    error = u * rng.normal(size=400)
    folds = []

    def predict_unseen(candidate, rows, fold):
        folds.append((rows.groups, fold))
        return choosing.predict_unseen(candidate, rows, fold)

    monkeypatch.setattr(module, "predict_unseen", predict_unseen)
    groups = rng.integers(0, 40, 400)
    settings = {"n_bins": (1, 5), "cv": 4}
    grouped = ss.choose_n_bins(u, error, groups=groups, **settings)
    labels, fold = folds[-1]
    assert all(np.unique(fold[labels == g]).size == 1 for g in np.unique(labels))
    copies = np.tile(np.arange(400), 4)
    copied = ss.choose_n_bins(u[copies], error[copies], groups=copies, **settings)
    with pytest.warns(RepeatedRowsWarning, match="all numbers of another row"):
        alone = ss.choose_n_bins(u[copies], error[copies], **settings)
    # four copies of each row make no error smaller
    assert copied.standard_error.max() > 1.5 * alone.standard_error.max()
    assert grouped.candidates.tolist() == [1, 5]


def test_more_folds_than_groups_are_refused():
    with pytest.raises(InvalidInputError, match="number of groups; found 5 for 3 gro"):
        ss.choose_n_bins(np.ones(30), np.arange(30.0), groups=np.arange(30) % 3)


def test_a_scan_takes_groups_with_the_sets(halves):
    (X, error), (X_test, error_test) = halves
    groups = np.arange(len(error_test)) // 3
    quick = {"n_bins": (3,), "n_draws": 20, "method": "moments", "score_bins": 10}
    found = ss.scan_bins((X, error), (X_test, error_test, groups), **quick)
    plain = ss.scan_bins((X, error), (X_test, error_test), **quick)
    assert found.scores["S_u"] == plain.scores["S_u"]
    assert found.simulated_sd["S_cal"] != plain.simulated_sd["S_cal"]
