"""`conformalize` and `predict_interval`, with every scaling there is."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sigmascale as ss
from sigmascale.exceptions import InfiniteIntervalWarning, InvalidInputError
from sigmascale.persistence import dumps, loads
from sigmascale.scaling import scalers

SCALERS = tuple(scalers().values())

QUICK = {
    ss.BinwiseScaling: {"n_bins": 5},
    ss.RakedScaling: {"n_bins": 5, "shrinkage": 10.0},
    ss.BoostedScaling: {"max_trees": 5, "n_folds": 2},
    ss.SelectedScaling: {
        "candidates": {
            "temperature": ss.TemperatureScaling(),
            "raked": ss.RakedScaling(5, shrinkage=10.0),
        },
        "n_folds": 2,
    },
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_scaler = pytest.mark.parametrize("Scaler", SCALERS, ids=lambda s: s.__name__)


def make_rows(n, seed, *, tail=None):
    """Columns u, a label, a feature; skewed errors unless `tail` is a distribution."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    label = rng.integers(0, 3, n).astype(float)
    mass = rng.normal(size=n)
    z = rng.gamma(2, size=n) - 1 if tail is None else tail.rvs(size=n, random_state=rng)
    return np.column_stack([u, label, mass]), (1 + label) * u * z


FIT, HELD_OUT, NEW = (make_rows(n, seed) for n, seed in ((200, 1), (150, 2), (80, 3)))


def recalibrator(Scaler):
    return ss.Recalibrator(Scaler(**QUICK.get(Scaler, {})))


TEMPERATURE = ss.Recalibrator(ss.TemperatureScaling())


@pytest.fixture(scope="module")
def fitted():
    """A recalibrator of every scaling, fitted once."""
    return {each: recalibrator(each).fit(*FIT) for each in SCALERS}


def limits_of(scaler, z, coverage=0.9):
    """What the definition says, in one line."""
    rank = int(np.ceil(round((z.size + 1) * coverage, 9)))
    return np.sort(np.abs(z))[rank - 1]


@every_scaler
def test_limits_are_quantiles_of_held_out_z_scores_times_the_uncertainty(
    fitted, Scaler
):
    scaler = fitted[Scaler]
    assert scaler.conformalize(*HELD_OUT) is scaler
    z = HELD_OUT[1] / scaler.predict(HELD_OUT[0])
    half = limits_of(scaler, z) * scaler.predict(NEW[0])
    np.testing.assert_array_equal(
        scaler.predict_interval(NEW[0]), np.column_stack([-half, half])
    )
    low, high = np.sort(z)[[7 - 1, 144 - 1]]  # floor and ceil of 151 × 0.05 and 0.95
    expected = scaler.predict(NEW[0])[:, None] * [low, high]
    np.testing.assert_array_equal(
        scaler.predict_interval(NEW[0], 0.9, asymmetric=True), expected
    )


@every_scaler
def test_a_saved_recalibrator_gives_the_same_intervals_bit_for_bit(fitted, Scaler):
    labels = HELD_OUT[0][:, 1].astype(str)
    for by_category in (None, labels, HELD_OUT[0][:, 1]):
        scaler = fitted[Scaler].conformalize(*HELD_OUT, by_category=by_category)
        again = loads(dumps(scaler))
        for asymmetric in (False, True):
            arguments = {"asymmetric": asymmetric, "by_category": by_category}
            np.testing.assert_array_equal(
                again.predict_interval(HELD_OUT[0], 0.8, **arguments),
                scaler.predict_interval(HELD_OUT[0], 0.8, **arguments),
            )
        assert dumps(again) == dumps(scaler)


@every_scaler
def test_fitting_again_forgets_the_held_out_rows(Scaler):
    scaler = recalibrator(Scaler).fit(*FIT)
    before = set(vars(scaler))
    expected = scaler.predict_interval(NEW[0])
    scaler.conformalize(*HELD_OUT)
    assert not np.array_equal(scaler.predict_interval(NEW[0]), expected)
    scaler.fit(*FIT)
    assert set(vars(scaler)) == before
    np.testing.assert_array_equal(scaler.predict_interval(NEW[0]), expected)


def test_a_fit_that_fails_forgets_them_too():
    scaler = clone(TEMPERATURE).fit(*FIT).conformalize(*HELD_OUT)
    with pytest.raises(InvalidInputError, match="same number of rows"):
        scaler.fit(FIT[0], FIT[1][1:])
    assert not hasattr(scaler, "conformal_")


def test_without_fit_or_held_out_rows_the_error_names_the_remedy():
    scaler = clone(TEMPERATURE)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        scaler.predict_interval(NEW[0])
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        scaler.conformalize(*HELD_OUT)
    scaler.fit(*FIT)
    with pytest.raises(InvalidInputError, match="call conformalize with `by_category`"):
        scaler.predict_interval(NEW[0], by_category=NEW[0][:, 1])
    copy = clone(scaler.conformalize(*HELD_OUT)).fit(*FIT)
    assert not hasattr(copy, "conformal_")


@every_scaler
def test_without_held_out_rows_limits_are_those_of_the_law(fitted, Scaler):
    scaler = clone(fitted[Scaler]).fit(*FIT)
    limits = scaler.predict_interval(NEW[0], 0.8)
    expected = scaler.predict_quantiles(NEW[0], [0.1, 0.9])
    np.testing.assert_allclose(limits, expected, rtol=1e-12)
    z = limits / scaler.predict(NEW[0])[:, None]
    assert z[0, 0] > -z[0, 1]  # errors are skewed
    assert ss.picp(NEW[1], limits) == pytest.approx(0.8, abs=0.15)


def test_conformalizing_again_replaces_the_rows():
    scaler = clone(TEMPERATURE).fit(*FIT).conformalize(*NEW)
    first = scaler.predict_interval(NEW[0])
    scaler.conformalize(*HELD_OUT, by_category=HELD_OUT[0][:, 1]).conformalize(*NEW)
    np.testing.assert_array_equal(scaler.predict_interval(NEW[0]), first)


@pytest.mark.parametrize("library", FRAMES)
def test_data_frames_give_the_limits_that_arrays_give(library):
    def frame(X):
        names = ("u", "label", "mass")
        return FRAMES[library](dict(zip(names, X.T, strict=True)))

    def labels(X):
        column = frame(X)["label"]
        return column if library == "pandas" else column.cast(*cast)

    cast = {"polars": (pl.String,), "pyarrow": (pa.string(),), "pandas": ()}[library]
    arrays = recalibrator(ss.BinwiseScaling).fit(*FIT)
    frames = recalibrator(ss.BinwiseScaling).fit(frame(FIT[0]), FIT[1])
    np.testing.assert_array_equal(
        frames.predict_quantiles(frame(NEW[0]), [0.1, 0.9]),
        arrays.predict_quantiles(NEW[0], [0.1, 0.9]),
    )
    arrays.conformalize(*HELD_OUT, by_category=HELD_OUT[0][:, 1])
    frames.conformalize(
        frame(HELD_OUT[0]), HELD_OUT[1], by_category=labels(HELD_OUT[0])
    )
    np.testing.assert_array_equal(
        frames.predict_interval(frame(NEW[0]), by_category=labels(NEW[0])),
        arrays.predict_interval(NEW[0], by_category=NEW[0][:, 1]),
    )


def test_bad_held_out_rows_are_refused_by_name():
    scaler = clone(TEMPERATURE).fit(*FIT)
    X, error = HELD_OUT
    with pytest.raises(InvalidInputError, match="`X` and `error` must have the same"):
        scaler.conformalize(X, error[1:])
    with pytest.raises(InvalidInputError, match=r"`error` must be finite.*1 of 150"):
        scaler.conformalize(X, np.append(error[1:], np.nan))
    with pytest.raises(
        InvalidInputError, match="`X` and `by_category` must have the same"
    ):
        scaler.conformalize(X, error, by_category=X[1:, 1])
    with pytest.raises(ValueError, match="X has 2 features, but Recalibrator"):
        scaler.conformalize(X[:, :2], error)
    assert not hasattr(scaler, "conformal_")


def test_the_caller_s_line_is_the_one_that_a_warning_shows():
    scaler = clone(TEMPERATURE).fit(*FIT).conformalize(HELD_OUT[0][:5], np.ones(5))
    with pytest.warns(InfiniteIntervalWarning) as caught:
        scaler.predict_interval(NEW[0], 0.99)
    assert caught[0].filename == __file__


# --- the law ------------------------------------------------------------------------

N_REPLICATIONS, N_NEW = 500, 20
LAW_SCALERS = {
    "temperature": TEMPERATURE,
    "binwise": ss.Recalibrator(ss.BinwiseScaling(5, least_rows=0)),
    "boosted": ss.Recalibrator(ss.BoostedScaling(max_trees=5, n_folds=2)),
}
TAILS = {"normal": stats.norm, "t(3)": stats.t(3)}


def covered_counts(scaler, tail, n, coverage, *, asymmetric, grouped, seed):
    """Return how many of 20 new rows are covered, and whether the first is, 500 times.

    Every 50th replication has a fit of its own: given any fit on other rows, the law
    holds, so that fewer fits only save time.
    """
    counts, first = [], []
    for i in range(N_REPLICATIONS):
        if i % 50 == 0:
            scaler = clone(scaler).fit(*make_rows(60, (seed, i, 0), tail=tail))
        X, error = make_rows(n + N_NEW, (seed, i, 1), tail=tail)
        held_out, new = slice(0, n), slice(n, None)
        if grouped:  # the group has n rows, and others surround it
            others, other_error = make_rows(30, (seed, i, 2), tail=stats.norm(scale=9))
            X, error = np.concatenate([others, X]), np.append(other_error, error)
            held_out, new = slice(0, 30 + n), slice(30 + n, None)
        labels = np.where(np.arange(error.size) < 30, "others", "own")
        by_category = (labels[held_out], labels[new]) if grouped else (None, None)
        scaler.conformalize(X[held_out], error[held_out], by_category=by_category[0])
        low, high = scaler.predict_interval(
            X[new], coverage, asymmetric=asymmetric, by_category=by_category[1]
        ).T
        inside = (low <= error[new]) & (error[new] <= high)
        counts.append(int(inside.sum()))
        first.append(bool(inside[0]))
    return np.array(counts), np.array(first)


def law_of(n, coverage, *, asymmetric):
    """The exact law of a count: the covered share is Beta(k, n + 1 - k)."""
    if asymmetric:
        k = -(-(n + 1) * (100 + coverage) // 200) - (n + 1) * (100 - coverage) // 200
    else:
        k = -(-(n + 1) * coverage // 100)
    return stats.betabinom(N_NEW, k, n + 1 - k), k / (n + 1)


def chi_square_p(counts, law):
    """The p-value of counts against the law, cells of fewer than 5 merged."""
    expected = law.pmf(np.arange(N_NEW + 1)) * counts.size
    observed = np.bincount(counts, minlength=N_NEW + 1)
    # merge from the left until every cell expects 5, the rest into the last
    cells = np.minimum(np.cumsum(expected) // 5, np.sum(expected) // 5 - 1).astype(int)
    _, cells = np.unique(cells, return_inverse=True)
    return stats.chisquare(
        np.bincount(cells, observed), np.bincount(cells, expected)
    ).pvalue


LAW_CASES = [
    (name, tail, n, kind)
    for name in ("temperature", "binwise")
    for tail in TAILS
    for n in (20, 50, 200)
    for kind in ("symmetric", "asymmetric", "by group")
] + [("boosted", "t(3)", 50, kind) for kind in ("symmetric", "asymmetric", "by group")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tail", "n", "kind"), LAW_CASES)
def test_coverage_follows_the_beta_binomial_law(name, tail, n, kind):
    asymmetric = kind == "asymmetric"
    counts, first = covered_counts(
        LAW_SCALERS[name],
        TAILS[tail],
        n,
        0.9,
        asymmetric=asymmetric,
        grouped=kind == "by group",
        seed=LAW_CASES.index((name, tail, n, kind)),
    )
    law, probability = law_of(n, 90, asymmetric=asymmetric)
    assert probability >= 0.9
    # 39 cases of two tests each: a wrong rank gives far smaller p-values than these
    assert stats.binomtest(int(first.sum()), first.size, probability).pvalue > 1e-4
    assert chi_square_p(counts, law) > 1e-4


# --- groups -------------------------------------------------------------------------


def grouped_rows(n_groups, seed, size=40, correlation=0.9):
    """Errors of which those of a group have most in common."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    common = rng.normal(size=n_groups)[group] * np.sqrt(correlation)
    error = common + rng.normal(size=group.size) * np.sqrt(1 - correlation)
    return np.ones(group.size), error, group


def test_each_group_counts_as_one_row():
    scaler = clone(TEMPERATURE).fit(*FIT)
    X, error = HELD_OUT
    alone = scaler.conformalize(X, error).predict_interval(NEW[0])
    groups = np.array([f"g{i}" for i in range(150)])
    found = scaler.conformalize(X, error, groups=groups).predict_interval(NEW[0])
    np.testing.assert_array_equal(found, alone)
    # a row that was measured ten times counts as one, and not as ten
    rows = np.repeat(np.arange(150), np.where(np.arange(150) < 50, 10, 1))
    scaler.conformalize(X[rows], error[rows], groups=groups[rows])
    np.testing.assert_array_equal(scaler.predict_interval(NEW[0]), alone)
    # weights of groups are those of their rows, whatever their number
    w = np.random.default_rng(0).gamma(1, size=150)
    one = scaler.conformalize(X, error, sample_weight=w).predict_interval(NEW[0], 0.8)
    scaler.conformalize(
        X[rows], error[rows], groups=groups[rows], sample_weight=w[rows]
    )
    np.testing.assert_allclose(scaler.predict_interval(NEW[0], 0.8), one)


def test_few_groups_are_few_rows():
    scaler = clone(TEMPERATURE).fit(*FIT)
    X, error = HELD_OUT
    scaler.conformalize(X, error, groups=np.arange(150) % 8)
    with pytest.warns(InfiniteIntervalWarning, match="at least 9 held-out rows.*8"):
        assert np.isinf(scaler.predict_interval(NEW[0], 0.9)).all()
    assert np.isfinite(scaler.predict_interval(NEW[0], 0.8)).all()


def test_groups_within_a_category_are_those_of_its_rows_alone():
    scaler = clone(TEMPERATURE).fit(*FIT)
    X, error = HELD_OUT
    category = np.where(np.arange(150) < 70, "a", "b")
    groups = np.random.default_rng(0).integers(0, 12, 150)
    scaler.conformalize(X, error, category, groups)
    for each in ("a", "b"):
        own = category == each
        alone = clone(TEMPERATURE).fit(*FIT)
        alone.conformalize(X[own], error[own], None, groups[own])
        for coverage in np.arange(1, 9) / 10:
            found = scaler.predict_interval(
                NEW[0], coverage, by_category=np.full(len(NEW[0]), each)
            )
            expected = alone.predict_interval(NEW[0], coverage)
            np.testing.assert_allclose(found, expected)
    # groups of one row each are rows, with weights and categories, too
    w = np.random.default_rng(1).gamma(2, size=150)
    scaler.conformalize(X, error, category, None, w)
    alone.conformalize(X, error, category, np.arange(150), w)
    np.testing.assert_allclose(alone.conformal_.weights, scaler.conformal_.weights)


@pytest.mark.slow
def test_rows_of_new_groups_are_held_as_often_as_asked_for():
    scaler = ss.Recalibrator(ss.NoScaling(), law="normal").fit([1.0, 1.0], [1.0, -1.0])
    held, without = [], []
    for seed in range(200):
        u, error, group = grouped_rows(10, (seed, 0))
        new_u, new_error, _ = grouped_rows(200, (seed, 1), size=1)
        scaler.conformalize(u, error, groups=group)
        held.append(ss.picp(new_error, scaler.predict_interval(new_u, 0.9)))
        scaler.conformalize(u, error)
        without.append(ss.picp(new_error, scaler.predict_interval(new_u, 0.9)))
    assert np.mean(held) >= 0.89
    assert np.mean(without) < 0.88


@pytest.mark.slow
def test_the_law_would_notice_the_quantile_without_the_finite_sample_rule():
    counts = []
    for i in range(N_REPLICATIONS):
        z = np.abs(np.random.default_rng(i).normal(size=20 + N_NEW))
        counts.append(int((z[20:] <= np.quantile(z[:20], 0.9)).sum()))
    law, _ = law_of(20, 90, asymmetric=False)
    assert chi_square_p(np.array(counts), law) < 1e-4
