import itertools

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale import SelectedScaling, TemperatureScaling, nll
from sigmascale.bins.partitions import EqualSizeBins
from sigmascale.exceptions import (
    AverageOffWarning,
    CandidateDroppedWarning,
    DegenerateFitWarning,
    InvalidInputError,
    UnseenCategoryWarning,
)
from sigmascale.maps import (
    UNCERTAINTY,
    Clip,
    Code,
    Constant,
    Lookup,
    Product,
    scaled,
)
from sigmascale.predictions import as_predictions
from sigmascale.scaling import selected
from sigmascale.scaling.crossfit import Ranking, Unseen, make_folds
from sigmascale.scaling.selected import default_candidates

RNG = np.random.default_rng(31)
N = 1200
U = RNG.lognormal(sigma=0.4, size=N)
FEATURE = RNG.uniform(-1, 1, N)
X = np.column_stack([U, FEATURE])
ERROR = U * np.exp(FEATURE) * RNG.normal(size=N)


class Failing(TemperatureScaling):
    """Cannot be fitted to more than a few rows."""

    def _learn(self, rows):
        msg = "no solution " * 20
        raise RuntimeError(msg)


class Overconfident(TemperatureScaling):
    """Has seen every error there is, or thinks so."""

    def _learn(self, rows):
        code = Code(UNCERTAINTY, EqualSizeBins(np.array([1.0])))
        return Product((Lookup((code,), np.array([1, 1, 1e-6])), super()._learn(rows)))


class NotANumber(TemperatureScaling):
    def _learn(self, rows):  # infinity times 0
        return Product((Constant(0.0), Clip(UNCERTAINTY, np.inf, np.inf)))


class Zero(TemperatureScaling):
    def _learn(self, rows):
        return scaled(0.0)


class Infinite(TemperatureScaling):
    def _learn(self, rows):
        return Clip(UNCERTAINTY, np.inf, np.inf)


class Recorder(TemperatureScaling):
    """Remembers the groups that each fit has seen."""

    seen: list = []  # noqa: RUF012

    def _learn(self, rows):
        groups = rows.groups
        self.seen.append(None if groups is None else set(groups.tolist()))
        return super()._learn(rows)


def ranked(name, difference, standard_error):
    return Ranking(
        "best", {name: difference}, {name: difference}, {name: standard_error}
    )


def cheap():
    return {"temperature": TemperatureScaling(), "linear": ss.LinearScaling()}


# --- the choice ----------------------------------------------------------------------


def test_a_needed_feature_is_used_and_the_reason_given():
    scaler = SelectedScaling().fit(X, ERROR)
    assert scaler.name_ in ("raked", "boosted")
    assert scaler.best_name_ in ("raked", "boosted")
    table = scaler.cv_results_
    assert table["candidate"] == list(default_candidates(None, 0))
    assert {len(column) for column in table.values()} == {6}
    chosen = table["candidate"].index(scaler.name_)
    assert table["verdict"][chosen].startswith("chosen: ")
    one_factor = table["candidate"].index("temperature")
    assert table["difference"][one_factor] > 2 * table["standard_error"][one_factor]
    assert table["verdict"][one_factor].startswith(f"worse than {scaler.best_name_} by")
    np.testing.assert_allclose(scaler.predict(X), scaler.scaler_.predict(X))


def test_the_simplest_of_equals_is_chosen():
    chosen, best = [], []
    for seed in range(8):
        error = 2 * U * np.random.default_rng([3, seed]).normal(size=N)
        candidates = cheap() | {"binwise": ss.BinwiseScaling(2)}
        scaler = SelectedScaling(candidates).fit(X, error)
        chosen.append(scaler.name_)
        best.append(scaler.best_name_)
        for verdict in scaler.cv_results_["verdict"]:
            assert verdict.startswith(("chosen", "within 1 s.e.", "best", "worse"))
    assert chosen.count("temperature") > best.count("temperature") + 1, (chosen, best)
    assert chosen.count("temperature") >= 5, chosen


def test_right_uncertainties_are_left_alone_and_wrong_ones_are_not():
    z = np.random.default_rng(4).normal(size=N)
    z /= np.sqrt(np.mean(z**2))
    candidates = {"none": ss.NoScaling(), **cheap()}
    assert SelectedScaling(candidates).fit(U, z * U).name_ == "none"
    wrong = SelectedScaling(candidates).fit(U, 1.06 * z * U)
    assert wrong.name_ == "temperature"


def test_the_cross_validated_likelihood_is_that_of_unseen_rows():
    candidates = cheap() | {"isotonic": ss.IsotonicScaling()}
    scaler = SelectedScaling(candidates).fit(X, ERROR)
    inside = nll(ERROR, ss.IsotonicScaling().fit(X, ERROR).predict(X))
    outside = scaler.cv_results_["nll"][2]
    assert 0 < outside - inside < 0.05
    # one factor has no shape that unseen rows could tell from another
    inside = nll(ERROR, TemperatureScaling().fit(X, ERROR).predict(X))
    assert scaler.cv_results_["nll"][0] == pytest.approx(inside, rel=1e-12)


def test_explain_fits_a_terminal():
    scaler = SelectedScaling().fit(X, ERROR)
    lines = scaler.explain().splitlines()
    assert lines[0].split() == ["candidate", "loss", "NLL", "verdict"]
    assert lines[8] == selected.FOOTNOTE
    assert max(map(len, lines)) <= 80
    with pytest.warns(CandidateDroppedWarning, match="no solution no solution"):
        failing = SelectedScaling({**cheap(), "failing": Failing()}).fit(X, ERROR)
    assert max(map(len, failing.explain().splitlines())) <= 80
    assert failing.explain().splitlines()[4].endswith(" ...")


def test_every_pair_of_default_names_fits_a_terminal():
    scaler = SelectedScaling()
    names = list(default_candidates(None, 0))
    width = 80 - max(map(len, names)) - 2 * len("-10.1234") - 6
    for best, chosen in itertools.combinations(reversed(names), 2):
        scaler.best_name_, scaler.name_ = best, chosen  # never less simple than best
        for mean in (0.0, 9.0):
            for name in names:
                ranking = ranked(name, mean, 1.0)
                verdict = scaler._verdict(name, ranking, dict.fromkeys(names, 0.0))
                assert len(verdict) <= width


# --- what is dropped -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidate", "match"),
    [
        (Failing(), r"candidate 'bad' dropped: RuntimeError: no solution"),
        (Overconfident(), r"candidate 'bad' dropped: it diverged, an unseen \|z\| is"),
        (NotANumber(), "candidate 'bad' dropped: ValueError: predicted nan"),
        (Zero(), "candidate 'bad' dropped: it diverged"),
        (Infinite(), "candidate 'bad' dropped: ValueError: predicted 1.8e"),
    ],
)
def test_a_candidate_that_fails_or_diverges_is_dropped_and_never_chosen(
    candidate, match
):
    candidates = {"bad": candidate, **cheap()}
    with pytest.warns(CandidateDroppedWarning, match=match):
        scaler = SelectedScaling(candidates).fit(X, ERROR)
    assert scaler.name_ != "bad"
    assert scaler.best_name_ != "bad"
    assert scaler.cv_results_["nll"][0] is None
    assert scaler.cv_results_["verdict"][0].startswith("dropped: ")
    assert {len(column) for column in scaler.cv_results_.values()} == {3}
    np.testing.assert_array_equal(
        scaler.predict(X), SelectedScaling(cheap()).fit(X, ERROR).predict(X)
    )


def test_if_every_candidate_fails_each_reason_is_given():
    candidates = {"first": Failing(), "second": NotANumber()}
    with (
        pytest.warns(CandidateDroppedWarning, match="dropped"),
        pytest.raises(
            InvalidInputError,
            match=r"Every candidate failed: first dropped: .*; second dropped: Value",
        ),
    ):
        SelectedScaling(candidates).fit(X, ERROR)


def test_an_enormous_error_drops_nobody_who_could_not_know():
    error = ERROR.copy()
    error[5] = 1e5
    candidates = {"one": TemperatureScaling(), "line": ss.LinearScaling()}
    scaler = SelectedScaling(candidates).fit(X, error)
    assert None not in scaler.cv_results_["nll"]


# --- folds ---------------------------------------------------------------------------


def test_groups_keep_together():
    groups = np.repeat(np.arange(40), N // 40)
    Recorder.seen.clear()
    SelectedScaling({"recorder": Recorder()}, n_folds=4).fit(X, ERROR, groups=groups)
    *folds, last = Recorder.seen
    assert last == set(range(40))
    assert len(folds) == 4
    # each fold lacks whole groups, and each group is lacking once
    lacking = [set(range(40)) - seen for seen in folds]
    assert [len(each) for each in lacking] == [10] * 4
    assert set.union(*lacking) == set(range(40))
    Recorder.seen.clear()
    SelectedScaling({"recorder": Recorder()}).fit(X, ERROR)
    assert Recorder.seen == [None] * 6


def test_groups_guard_against_learning_the_groups():
    # a feature that says no more than which group a row is of
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(30), 40)
    spread = np.exp(0.7 * rng.normal(size=30))
    code = rng.permutation(30).astype(float)[groups]
    error = U * spread[groups] * rng.normal(size=N)
    table = np.column_stack([U, code])
    candidates = {**cheap(), "raked": ss.RakedScaling(30, shrinkage=0.0)}
    assert SelectedScaling(candidates).fit(table, error).name_ == "raked"
    grouped = SelectedScaling(candidates).fit(table, error, groups=groups)
    assert grouped.name_ != "raked"


@pytest.mark.parametrize("n", [1, 5, 9])
def test_few_rows_get_one_factor_with_a_warning(n):
    with pytest.warns(DegenerateFitWarning, match=f"{n} rows are too few to cross-val"):
        scaler = SelectedScaling().fit(X[:n], ERROR[:n])
    assert scaler.name_ == "temperature"
    expected = TemperatureScaling().fit(X[:n], ERROR[:n]).predict(X)
    np.testing.assert_allclose(scaler.predict(X), expected)


def test_rows_of_one_group_get_one_factor_with_a_warning():
    with pytest.warns(DegenerateFitWarning, match="1200 rows of one group are too few"):
        scaler = SelectedScaling().fit(X, ERROR, groups=["all"] * N)
    assert scaler.name_ == "temperature"


# --- parameters ----------------------------------------------------------------------


def test_candidates_are_left_as_they_were_given():
    candidates = cheap()
    scaler = SelectedScaling(candidates).fit(X, ERROR)
    assert list(scaler.cv_results_["candidate"]) == ["temperature", "linear"]
    assert not any(hasattr(each, "factor_") for each in candidates.values())
    assert scaler.scaler_ is not candidates[scaler.name_]


def test_labels_and_the_names_of_categorical_columns_reach_the_candidates():
    rng = np.random.default_rng(9)
    label, kind = rng.integers(0, 4, N), rng.choice(["a", "b"], N)
    error = U * np.where(label % 2, 2.0, 0.5) * np.where(kind == "a", 1, 2)
    frame = pl.DataFrame({"u": U, "label": label, "kind": kind})
    scaler = SelectedScaling(categorical=["label"])
    scaler.fit(frame, error * rng.normal(size=N))
    assert scaler.name_ in ("raked", "boosted")
    assert scaler.scaler_.categorical == ["label"]
    unseen = pl.DataFrame({"u": [1.0], "label": [17], "kind": ["z"]})
    with pytest.warns(UnseenCategoryWarning, match="^1 of 1 rows have a label") as told:
        assert 0.2 < scaler.predict(unseen)[0] < 5
    assert len(told) == 2


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"candidates": {}}, "`candidates` must hold at least one recalibrator"),
        ({"n_folds": 1}, "`n_folds` must be at least 2; found 1"),
        ({"random_state": 0.5}, "`random_state` must be an integer; found 0.5"),
    ],
)
def test_wrong_parameters_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        SelectedScaling(**arguments).fit(X, ERROR)


# --- data with a known answer --------------------------------------------------------


def test_the_true_sigma_of_molecules_is_recovered_better_than_by_any_one_variable():
    fit, new = (
        ss.datasets.make_molecules(n, seed=s) for n, s in ((3000, 61), (9000, 62))
    )

    def distance(scaler):
        predicted = scaler.fit(fit.X, fit.error).predict(new.X)
        return np.sqrt(np.mean(np.log(predicted / new.true_sigma) ** 2))

    others = [
        TemperatureScaling(),
        ss.LinearScaling(),
        ss.IsotonicScaling(),
        *(ss.BinwiseScaling(n, by=by) for n in (10, 20, 40) for by in (0, 1, 2)),
    ]
    found, rest = distance(SelectedScaling()), [distance(scaler) for scaler in others]
    print(f"selected {found:.3f}, best of one variable {min(rest):.3f}")
    assert found < 0.75 * min(rest)


@pytest.mark.slow
def test_qm9_is_served_as_well_as_by_the_best_candidate(qm9):
    def loss(scaler):
        scaler.fit(qm9.calibration.X, qm9.calibration.error)
        return nll(qm9.test.error, scaler.predict(qm9.test.X))

    selected = SelectedScaling()
    found = loss(selected)
    losses = {name: loss(each) for name, each in default_candidates(None, 0).items()}
    print(selected.name_, found, losses)
    assert found <= min(losses.values()) + 0.01


# --- the table -----------------------------------------------------------------------


def choose(predicted, error, verdicts=None):
    """Return a selection from what candidates predicted for unseen rows."""
    scaler = SelectedScaling()
    names = [*predicted, *(verdicts or {})]
    unseen = {name: Unseen(u, u) for name, u in predicted.items()}
    rows = as_predictions(error, np.ones(error.size))
    scaler._choose(names, unseen, verdicts or {}, rows)
    scaler.decisive_rows_, scaler.column_notes_ = [], []
    return scaler


def test_the_table_is_that_of_a_plain_computation():
    sigma = U * np.exp(0.3 * FEATURE)
    bounded = sigma * np.random.default_rng(0).uniform(-1.7, 1.7, N)
    predicted = {"one": 2 * U, "two": sigma, "three": np.full(N, 3.0)}
    assert max(np.max((bounded / u) ** 2) for u in predicted.values()) < 20  # the cap
    scaler = choose(predicted, bounded, {"four": "dropped: why"})
    table = scaler.cv_results_
    assert table["candidate"] == ["one", "two", "three", "four"]
    losses = {
        name: 0.5 * np.log(2 * np.pi * u**2) + 0.5 * (bounded / u) ** 2
        for name, u in predicted.items()
    }
    for i, name in enumerate(predicted):
        difference = losses[name] - losses["two"]
        assert table["nll"][i] == pytest.approx(losses[name].mean(), rel=1e-12)
        assert table["difference"][i] == pytest.approx(difference.mean(), abs=1e-12)
        expected = difference.std() / np.sqrt(N)
        assert table["standard_error"][i] == pytest.approx(expected, abs=1e-12)
    assert [table[key][3] for key in ("nll", "difference", "standard_error")] == [
        None
    ] * 3
    assert scaler.name_ == scaler.best_name_ == "two"
    assert table["loss"][:3] == pytest.approx(table["nll"][:3], rel=1e-12)
    assert table["average"][0] == pytest.approx(np.mean((bounded / (2 * U)) ** 2))
    mean, error = (table[key][0] for key in ("difference", "standard_error"))
    assert table["verdict"] == [
        f"worse than two by {mean:.3f} ± {error:.3f}",
        "chosen: best",
        table["verdict"][2],
        "dropped: why",
    ]


def test_an_enormous_error_counts_up_to_a_cap_in_differences_and_in_full_in_errors():
    error = np.append(ERROR, 1e6)
    predicted = {"flat": np.append(U, 1.0), "wide": np.append(1.5 * U, 2.0)}
    table = choose(predicted, error).cv_results_
    expected = [ss.nll(error, u) for u in predicted.values()]
    assert table["nll"] == pytest.approx(expected, rel=1e-12)
    assert table["difference"][0] < 1
    # one row decides on the difference of the NLL, which says nothing then
    difference = expected[0] - expected[1]
    assert table["standard_error"][0] == pytest.approx(difference, rel=1e-3)
    assert table["verdict"][0].startswith("chosen")


@pytest.mark.parametrize("factor", [0.97, 0.98, 1.0, 1.02, 1.03])
def test_uncertainties_are_left_alone_only_within_5_percent_of_the_variance(factor):
    z = np.random.default_rng(4).normal(size=N)
    z *= factor / np.sqrt(np.mean(z**2))
    right = abs(np.log(factor**2)) <= 0.05
    scaler = choose({"none": U, "same": U}, z * U)
    assert scaler.name_ == ("none" if right else "same")
    # under another name, it is a candidate like any other
    assert choose({"all": U, "same": U}, z * U).name_ == "all"


def test_every_verdict_has_its_words():
    scaler = SelectedScaling()
    scaler.best_name_, scaler.name_ = "best", "simple"
    nll = {"simple": 1.0, "best": 0.99, "other": 1.0, "poor": 0.9}
    assert [
        scaler._verdict("simple", ranked("simple", 0.1, 0.2), nll),
        scaler._verdict("best", ranked("best", 0.0, 0.0), nll),
        scaler._verdict("other", ranked("other", 0.2, 0.2), nll),
        scaler._verdict("poor", ranked("poor", 0.3, 0.2), nll),
    ] == [
        "chosen: within 1 s.e. of best",
        "best, less simple",
        "within 1 s.e. of best, less simple",
        "worse than best by 0.300 ± 0.200; its NLL is lower",
    ]
    scaler.name_ = "best"
    assert scaler._verdict("best", ranked("best", 0.0, 0.0), nll) == "chosen: best"


@pytest.mark.parametrize(("size", "dropped"), [(9.0, False), (11.0, True)])
def test_a_candidate_diverges_beyond_ten_times_the_largest_ratio_of_one_factor(
    size, dropped
):
    error, one = np.full(500, 2.0), np.full(500, 2.0)
    error[0] = 20.0  # a ratio of 100 with one factor
    predicted = {"bad": one.copy(), "good": one, "none": one / 1e3}
    predicted["bad"][0] = 2 / np.sqrt(size)
    verdicts = {}
    predicted = {name: Unseen(u, u) for name, u in predicted.items()}
    rows = as_predictions(error, np.ones(error.size))
    SelectedScaling()._drop_diverged(predicted, verdicts, rows, one)
    assert ("bad" not in predicted) == dropped
    assert list(verdicts) == ["bad"] * dropped
    assert "none" in predicted  # nor is temperature dropped, which all are judged by


def test_the_last_candidate_is_kept_even_if_it_diverged():
    predicted = {"bad": Unseen(np.full(10, 1e-9), np.full(10, 1e-9))}
    rows = as_predictions(np.ones(10), np.ones(10))
    SelectedScaling()._drop_diverged(predicted, {}, rows, np.ones(10))
    assert list(predicted) == ["bad"]


@pytest.mark.parametrize("n", [499, 500])
def test_bins_need_fifty_rows_each(n):
    candidates = {**cheap(), "bins": ss.BinwiseScaling(10)}
    scaler = SelectedScaling(candidates).fit(X[:n], ERROR[:n])
    tried = scaler.cv_results_["nll"][2] is not None
    assert tried == (n == 500)


def test_ten_rows_are_enough_to_cross_validate_in_five_folds():
    scaler = SelectedScaling(cheap()).fit(X[:10], ERROR[:10])
    assert scaler.cv_results_["candidate"] == ["temperature", "linear"]


def test_rows_are_dealt_to_folds_by_the_size_of_z(monkeypatch):
    sizes = []

    def spy(size, *arguments):
        sizes.append(size)
        return make_folds(size, *arguments)

    monkeypatch.setattr(selected, "make_folds", spy)
    SelectedScaling(cheap()).fit(X, ERROR)
    np.testing.assert_allclose(np.sort(sizes[0]), np.sort(np.abs(ERROR / U)))


def test_long_verdicts_are_shortened_to_what_a_line_can_hold():
    scaler = choose({"one": U}, ERROR, {"two with a name": "a " * 60})
    lines = scaler.explain().splitlines()[:-1]
    assert len(lines) == 4  # a wider table would go on below
    assert lines[-1].endswith(" a ...")
    assert len(lines[-1]) == 80


def test_seeds_and_categorical_columns_are_passed_on():
    candidates = default_candidates(["X1"], 7)
    for name in ("raked", "boosted"):
        assert candidates[name].random_state == 7
        assert candidates[name].categorical == ["X1"]


# --- fitted once, right on average ---------------------------------------------------


class Counted(ss.BoostedScaling):
    """Counts how often it is fitted."""

    n_fits = 0

    def _learn_in_folds(self, rows, fold):
        Counted.n_fits += 1
        return super()._learn_in_folds(rows, fold)


def test_a_candidate_that_cross_fits_is_fitted_once():
    Counted.n_fits = 0
    scaler = SelectedScaling({"one": TemperatureScaling(), "trees": Counted()})
    scaler.fit(X, ERROR)
    assert scaler.name_ == "trees"
    assert Counted.n_fits == 1
    again = ss.BoostedScaling().fit(X, ERROR)  # other folds, but the same otherwise
    assert np.abs(np.log(scaler.predict(X) / again.predict(X))).max() < 0.3


def test_the_average_is_the_one_that_unseen_rows_ask_for():
    n = 200  # of which 10 bins make too much
    candidates = {"bins": ss.BinwiseScaling(10, least_rows=0)}
    new = np.random.default_rng(5).lognormal(sigma=0.4, size=20_000)
    ratios = []
    for seed in range(30):
        rng = np.random.default_rng([6, seed])
        u = rng.lognormal(sigma=0.4, size=10 * n)[: 5 * n]
        error = u * rng.normal(size=u.size)
        alone = ss.BinwiseScaling(10, least_rows=0).fit(u[:500], error[:500])
        chosen = SelectedScaling(candidates).fit(u[:500], error[:500])
        ratios.append([np.mean((new / s.predict(new)) ** 2) for s in (alone, chosen)])
    alone, chosen = np.mean(ratios, axis=0)
    assert alone > 1.02
    assert abs(chosen - 1) < 0.6 * (alone - 1)


def test_nothing_is_left_alone_only_because_all_else_is_poor():
    error = ERROR.copy()
    error[7] = 1e4
    scaler = SelectedScaling().fit(X, 30 * error)
    assert scaler.name_ != "none"
    none = scaler.cv_results_["verdict"][0]
    assert none.startswith("not considered: <Z²> is ")


def test_rows_that_decide_are_named():
    error = ERROR.copy()
    error[[7, 500]] = 1e3, -900.0
    scaler = SelectedScaling(cheap()).fit(X, error)
    assert set(scaler.decisive_rows_) <= {7, 500}
    assert scaler.decisive_rows_
    assert "these decide on the average" in scaler.explain().replace("\n", " ")
    assert not SelectedScaling(cheap()).fit(X, ERROR).decisive_rows_


def test_constant_columns_identifiers_and_copies_are_told():
    frame = pl.DataFrame(
        {
            "u": U,
            "x": FEATURE,
            "same": 3 * FEATURE + 1,
            "one": np.ones(N),
            "id": [f"row {i}" for i in range(N)],
        }
    )
    scaler = SelectedScaling(cheap()).fit(frame, ERROR)
    one, name, same = scaler.column_notes_
    assert same == "Column 'same' is nearly a copy of 'x'."
    assert one == "Column 'one' is constant."
    assert name.startswith("Column 'id' has another label in every row")
    assert same in scaler.explain()


def test_a_choice_that_leaves_the_average_wrong_says_so():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 400)
    error = 3 * u * rng.normal(size=400)
    only = SelectedScaling({"none": ss.NoScaling()})
    with pytest.warns(AverageOffWarning, match=r"'none', leaves <Z²> at \d.*too small"):
        only.fit(u, error)
    SelectedScaling().fit(u, error)  # no warning
