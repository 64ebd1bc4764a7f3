"""The regressor with recalibrated uncertainties, and where these come from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",  # of members that agree
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.AbsurdScaleWarning",
    "ignore::sigmascale.exceptions.InterpolatingWarning",  # of trees and neighbours
)
NAMES = ["age", "mass", "dose", "time"]


def make_data(n=150, seed=0):
    """Four inputs and a target whose noise depends on the first of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(scale=np.exp(X[:, 0]))


def quick(regressor=None, scaling=None, **parameters):
    """A model with one factor, which takes no time to fit."""
    scaling = ss.TemperatureScaling() if scaling is None else scaling
    recalibrator = ss.Recalibrator(scaling)
    return ss.RecalibratedRegressor(regressor, recalibrator, **parameters)


def factor(model):
    """The one factor that a quick model learns."""
    return float(model.recalibrator_.predict(np.ones(1))[0])


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
@parametrize_with_checks(
    [
        ss.RecalibratedRegressor(cv=3),
        # takes sparse matrices, too
        quick(VotingRegressor([("ridge", Ridge()), ("near", KNeighborsRegressor(1))])),
        # has no uncertainty
        ss.RecalibratedRegressor(Ridge(), cv=3),
        ss.RecalibratedRegressor(Ridge(), cv=3, ensemble=True),
        # has none, and takes no weights
        quick(KNeighborsRegressor(3), cv=3),
    ],
    expected_failed_checks=lambda model: {
        f"check_sample_weight_equivalence_on_{kind}_data": (
            "neighbours know no weights, so that the regressor is fitted without"
        )
        for kind in ("dense", "sparse")
        if isinstance(model.regressor, (VotingRegressor, KNeighborsRegressor))
    },
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_errors_and_uncertainties_out_of_fold_teach_the_recalibrator():
    X, y = make_data()
    error, u = np.empty(y.size), np.empty(y.size)
    for train, test in KFold(4).split(X):
        fold = BayesianRidge().fit(X[train], y[train])
        prediction, u[test] = fold.predict(X[test], return_std=True)
        error[test] = y[test] - prediction
    model = quick(BayesianRidge(), cv=KFold(4)).fit(X, y)
    expected = np.sqrt(np.mean((error / u) ** 2))
    assert factor(model) == pytest.approx(expected)
    np.testing.assert_allclose(model.predictions_.error, error)
    np.testing.assert_allclose(model.predictions_.y_std, u)
    alone = BayesianRidge().fit(X, y)
    prediction, raw = alone.predict(X, return_std=True)
    np.testing.assert_array_equal(model.predict(X), prediction)
    np.testing.assert_allclose(model.predict_std(X), expected * raw)
    default = ss.RecalibratedRegressor().fit(X, y)
    assert type(default.regressor_) is BayesianRidge
    assert default.score(X, y) == alone.score(X, y)


def test_a_frozen_regressor_is_not_refitted_and_all_rows_teach():
    X, y = make_data()
    fitted = BayesianRidge().fit(X[:50], y[:50])
    model = quick(FrozenEstimator(fitted)).fit(X[50:], y[50:])
    assert model.regressor_.estimator is fitted
    prediction, u = fitted.predict(X[50:], return_std=True)
    expected = np.sqrt(np.mean(((y[50:] - prediction) / u) ** 2))
    assert factor(model) == pytest.approx(expected)
    with pytest.raises(NotFittedError, match="BayesianRidge"):
        quick(FrozenEstimator(BayesianRidge())).fit(X, y)


def test_rows_that_were_left_out_or_tested_repeatedly_are_allowed():
    X, y = make_data(100)
    later = quick(cv=TimeSeriesSplit(4)).fit(X, y)
    np.testing.assert_array_equal(later.predictions_.y_true, y[20:])
    repeated = quick(cv=RepeatedKFold(n_splits=4, n_repeats=2, random_state=0))
    rows = repeated.fit(X, y).predictions_
    assert len(rows) == 200
    for group in range(100):  # a row stays together with itself
        assert np.unique(rows.y_true[rows.groups == group]).size == 1
    listed = quick(cv=[(np.arange(50), np.arange(50, 100))]).fit(X, y)
    assert len(listed.predictions_) == 50
    for cv, n in ((1, 100), (7, 6)):
        with pytest.raises(InvalidInputError, match=f"cv={cv} and {n} sample"):
            quick(cv=cv).fit(X[:n], y[:n])


def test_shuffled_folds_depend_on_the_seed_alone():
    X, y = make_data()
    one, same, other = (
        factor(quick(random_state=seed).fit(X, y)) for seed in (0, 0, 1)
    )
    assert one == same != other


# Where the uncertainty comes from


def spread(predicted, weights=None):
    mean = np.average(predicted, axis=0, weights=weights)
    return np.sqrt(np.average((predicted - mean) ** 2, axis=0, weights=weights))


def return_std(fitted, X):
    return fitted.predict(X, return_std=True)[1]


def of_trees(fitted, X):
    return spread([tree.predict(X) for tree in fitted.estimators_])


def of_bags(fitted, X):
    pairs = zip(fitted.estimators_, fitted.estimators_features_, strict=True)
    return spread([member.predict(X[:, columns]) for member, columns in pairs])


members = [
    ("flat", BayesianRidge(lambda_init=1e3)),
    ("near", KNeighborsRegressor(7)),
    ("tree", DecisionTreeRegressor(max_depth=3, random_state=0)),
]
SOURCES = {
    "Gaussian process": (
        GaussianProcessRegressor(RBF(2.0) + WhiteKernel(1.0), optimizer=None),
        return_std,
    ),
    "ARD": (ARDRegression(), return_std),
    "pipeline": (make_pipeline(StandardScaler(), BayesianRidge()), return_std),
    "pipeline of one": (Pipeline([("only", BayesianRidge())]), return_std),
    "extra trees": (ExtraTreesRegressor(20, bootstrap=True, random_state=0), of_trees),
    "bagging": (
        BaggingRegressor(max_features=2, n_estimators=20, random_state=0),
        of_bags,
    ),
    "voting with weights": (
        VotingRegressor(members, weights=[1, 2, 5]).set_params(near="drop"),
        lambda fitted, X: spread(
            [each.predict(X) for each in fitted.estimators_], [1, 5]
        ),
    ),
    "forest in a pipeline": (
        make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=0)),
        lambda fitted, X: of_trees(fitted[-1], fitted[0].transform(X)),
    ),
    "search": (
        GridSearchCV(
            RandomForestRegressor(4, random_state=0), {"max_depth": [1, 2]}, cv=2
        ),
        lambda fitted, X: of_trees(fitted.best_estimator_, X),
    ),
}


def test_uncertainties_come_from_the_regressor_or_its_members():
    X, y = make_data(80)
    for regressor, expected in SOURCES.values():
        fitted = clone(regressor).fit(X, y)
        for given in (regressor, FrozenEstimator(fitted)):
            model = quick(given, cv=2).fit(X, y)
            np.testing.assert_allclose(model.predict(X[:20]), fitted.predict(X[:20]))
            raw = np.maximum(expected(fitted, X[:20]), model.min_std_)
            np.testing.assert_allclose(model.predict_std(X[:20]), factor(model) * raw)


class AllQuantiles(LinearRegression):
    """Predicts any quantile, as quantile forests do."""

    def predict(self, X, quantiles=None):
        mean = super().predict(X)
        if quantiles is None:
            return mean
        width = np.where(X[:, 0] < -2, 0.0, 2.0)  # some are sure
        return mean[:, None] + width[:, None] * stats.norm.ppf(quantiles)


def test_quantiles_are_an_uncertainty():
    X, y = make_data(200)
    model = quick(AllQuantiles(), cv=2).fit(X, y)
    sure = model.predictions_.y_std == model.min_std_
    assert sure.any()
    np.testing.assert_allclose(model.predictions_.y_std[~sure], 2.0)
    frozen = quick(FrozenEstimator(AllQuantiles().fit(X, y))).fit(X, y)
    wanted = np.where(X[:, 0] < -2, frozen.min_std_, 2.0)
    np.testing.assert_allclose(frozen.predictions_.y_std, wanted)
    for regressor, level in (
        (GradientBoostingRegressor(loss="quantile", n_estimators=20), "alpha"),
        (HistGradientBoostingRegressor(loss="quantile", max_iter=20), "quantile"),
        (QuantileRegressor(alpha=0.01), "quantile"),
        (
            make_pipeline(StandardScaler(), QuantileRegressor(alpha=0.01)),
            "quantileregressor__quantile",
        ),
    ):
        regressor.set_params(**{level: 0.3})  # whatever it was
        if "random_state" in regressor.get_params():
            regressor.set_params(random_state=0)
        model = quick(regressor, cv=2).fit(X, y)
        low, middle, high = (
            clone(regressor).set_params(**{level: p}).fit(X, y).predict(X[:20])
            for p in (0.05, 0.5, 0.95)
        )
        np.testing.assert_allclose(model.predict(X[:20]), middle)
        width = np.ptp([low, middle, high], axis=0) / (2 * stats.norm.ppf(0.95))
        raw = np.maximum(width, model.min_std_)
        np.testing.assert_allclose(model.predict_std(X[:20]), factor(model) * raw)


class Listing(LinearRegression):
    """Lists quantiles if it is asked for them, as TabPFN does."""

    def predict(self, X, *, output_type="mean", quantiles=None):
        mean = super().predict(X)
        if output_type == "mean":
            return mean
        assert output_type == "quantiles"
        return [mean + 3.0 * stats.norm.ppf(level) for level in quantiles]


class Asking(LinearRegression):
    """Predicts quantiles whose middle is not its prediction, as sktime may."""

    def predict_quantiles(self, X, alpha):
        mean = super().predict(X)[:, None]
        return pd.DataFrame(mean + 1 + 3 * stats.norm.ppf(alpha), columns=alpha)


def test_quantiles_that_are_asked_for_by_another_name_are_an_uncertainty():
    X, y = make_data()
    predicted = LinearRegression().fit(X, y).predict(X)
    for kind in (Listing, Asking):
        for regressor in (kind(), FrozenEstimator(kind().fit(X, y))):
            model = quick(regressor, cv=2).fit(X, y)
            np.testing.assert_allclose(model.predictions_.y_std, 3.0)
            np.testing.assert_allclose(model.predict(X), predicted)
            np.testing.assert_allclose(model.to_predictions(X).y_pred, predicted)


def test_stacks_have_no_uncertainty_and_learn_one():
    X, y = make_data()
    stack = StackingRegressor([("ridge", Ridge()), ("bayes", BayesianRidge())])
    model = quick(stack, cv=2).fit(X, y)
    assert model.std_ is not None
    np.testing.assert_allclose(model.predict(X), clone(stack).fit(X, y).predict(X))


class TwoColumns(LinearRegression):
    def predict(self, X):
        mean = super().predict(X)
        return np.column_stack([mean, np.ones(mean.size)])


class Infinite(LinearRegression):
    def predict(self, X, return_std=False):
        mean = super().predict(X)
        return (mean, np.where(X[:, 0] > 1, np.inf, 1.0)) if return_std else mean


def test_what_predicts_several_columns_or_infinite_u_is_told_what_to_write():
    X, y = make_data()
    for regressor in (TwoColumns(), FrozenEstimator(TwoColumns().fit(X, y))):
        with pytest.raises(InvalidInputError, match=r"\(.*, 2\).*from_quantiles"):
            quick(regressor).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"finite.*choose another distribution"):
        quick(Infinite()).fit(X, y)


def test_what_cannot_be_is_refused():
    X, y = make_data()
    one_quantile = GradientBoostingRegressor(loss="quantile").fit(X, y)
    with pytest.raises(InvalidInputError, match="unfrozen"):
        quick(FrozenEstimator(one_quantile)).fit(X, y)
    with pytest.raises(InvalidInputError, match="RandomForestRegressor has 1"):
        quick(RandomForestRegressor(1)).fit(X, y)
    with pytest.raises(InvalidInputError, match="positive uncertainty; none of 150"):
        quick(BaggingRegressor()).fit(X, np.ones(y.size))
    with pytest.raises(InvalidInputError, match="found TemperatureScaling"):
        ss.RecalibratedRegressor(None, ss.TemperatureScaling()).fit(X, y)
    frozen = FrozenEstimator(BayesianRidge().fit(X, y))
    with pytest.raises(InvalidInputError, match="`ensemble`"):
        quick(frozen, ensemble=True).fit(X, y)


# Regressors without an uncertainty, and the mean of the folds


def covered(model, X, y, coverage=0.9):
    low, high = model.predict_interval(X, coverage).T
    return (low <= y) & (y <= high)


def test_a_regressor_without_uncertainty_learns_where_its_errors_are_larger():
    X, y = make_data(1500)
    new_X, new_y = make_data(4000, seed=1)
    for regressor in (Ridge(), HistGradientBoostingRegressor(max_iter=60)):
        model = ss.RecalibratedRegressor(regressor).fit(X, y)
        assert model.std_ == pytest.approx(
            np.sqrt(np.mean(model.predictions_.error**2))
        )
        assert (model.predictions_.y_std == model.std_).all()
        names = (*(f"x{i}" for i in range(4)), "prediction")
        assert model.recalibrator_.names_ == ("u", *names)
        is_held = covered(model, new_X, new_y)
        u = model.predict_std(new_X)
        for own in (np.ones(4000, bool), u < np.quantile(u, 0.2), new_X[:, 0] > 1):
            assert 0.84 < is_held[own].mean() < 0.96
        # the noise follows the first column
        assert stats.spearmanr(u, new_X[:, 0]).statistic > 0.8


def test_rows_of_a_regressor_can_be_judged_watched_and_followed():
    X, y = make_data(600)
    new_X, new_y = make_data(300, seed=1)
    model = quick(Ridge()).fit(X, y)
    rows = model.to_predictions(new_X, new_y, groups=np.arange(300) // 3)
    assert (rows.y_std == model.std_).all()
    assert np.unique(rows.groups).size == 100
    np.testing.assert_array_equal(rows.y_true, new_y)
    applied = model.recalibrator_.apply(rows)
    np.testing.assert_allclose(applied.y_std, model.predict_std(new_X))
    follower = ss.Follower(model.recalibrator_)
    np.testing.assert_allclose(follower.interval(rows), model.predict_interval(new_X))
    assert model.to_predictions(new_X).y_true is None


def test_features_of_a_regressor_without_uncertainty_can_be_named_or_none():
    X, y = make_data(300)
    table = pd.DataFrame(X, columns=NAMES)
    for features, wanted in ((["age"], ("age", "prediction")), ([], ("prediction",))):
        model = quick(Ridge(), features=features).fit(table, y)
        assert model.recalibrator_.names_ == ("u", *wanted)
    fitted = quick(Ridge()).fit(sparse.csr_matrix(X), y)
    assert fitted.recalibrator_.names_ == ("u", "prediction")


def test_parts_are_features_and_groups_pass_through():
    X, y = make_data(600)
    recalibrator = ss.Recalibrator(ss.LinearScaling(), parts=["x0", "u"])
    groups = np.arange(600) // 2
    model = ss.RecalibratedRegressor(BayesianRidge(), recalibrator)
    model.fit(X, y, groups=groups)
    assert model.recalibrator_.names_ == ("u", "x0")
    assert model.recalibrator_.parts_ is not None
    np.testing.assert_array_equal(np.unique(model.predictions_.groups), np.arange(300))
    new_X, new_y = make_data(4000, seed=1)
    assert covered(model, new_X, new_y)[new_X[:, 0] > 0.85].mean() > 0.87


class LeastNorm(RegressorMixin, BaseEstimator):
    """Least squares of minimum norm: it interpolates with as many columns as rows."""

    def fit(self, X, y):
        self.coef_ = np.linalg.lstsq(X, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X @ self.coef_


@pytest.mark.filterwarnings("default::sigmascale.exceptions.InterpolatingWarning")
def test_the_mean_of_the_folds_has_the_errors_that_were_measured():
    def made(n, seed):
        X = np.random.default_rng(seed).normal(size=(n, 100))
        return X, X.sum(axis=1) + np.random.default_rng([seed]).normal(size=n)

    X, y = made(100, 0)
    new_X, new_y = made(2000, 1)
    alone = quick(LeastNorm())
    with pytest.warns(ss.exceptions.InterpolatingWarning, match="ensemble=True"):
        alone.fit(X, y)
    mean = quick(LeastNorm(), ensemble=True).fit(X, y)
    assert covered(alone, new_X, new_y).mean() < 0.6
    assert covered(mean, new_X, new_y).mean() > 0.85
    folds = [model.predict(new_X) for model in mean.regressor_.regressors]
    np.testing.assert_allclose(mean.predict(new_X), np.mean(folds, axis=0))
    forest = quick(RandomForestRegressor(9, random_state=0), ensemble=True).fit(X, y)
    raw = [of_trees(model, np.float32(new_X)) for model in forest.regressor_.regressors]
    expected = factor(forest) * np.maximum(np.mean(raw, axis=0), forest.min_std_)
    np.testing.assert_allclose(forest.predict_std(new_X), expected)


@pytest.mark.filterwarnings("default::sigmascale.exceptions.ZeroUncertaintyWarning")
def test_members_that_agree_and_quantiles_that_cross_are_lifted_and_counted():
    X, y = make_data(240, 1)
    y = np.where(X[:, 1] > 0, y, 0.0)  # which trees know for sure in half of the rows
    for regressor in (
        RandomForestRegressor(12, random_state=0),
        GradientBoostingRegressor(
            loss="quantile", learning_rate=0.6, n_estimators=40, random_state=0
        ),
    ):
        model = ss.RecalibratedRegressor(regressor, cv=3)
        with pytest.warns(ss.exceptions.ZeroUncertaintyWarning, match="of 240"):
            model.fit(X, y)
        assert model.predictions_.y_std.min() == model.min_std_ > 0
        with pytest.warns(ss.exceptions.ZeroUncertaintyWarning, match="of 240"):
            assert model.predict_std(X).min() > 0


# Which features the recalibrator may use


def test_features_make_uncertainties_right_for_every_kind_of_input():
    X, y = make_data(2000)
    new_X, new_y = make_data(2000, seed=1)
    nll = {}
    for features in (None, [0]):
        model = quick(None, ss.RakedScaling(), features=features).fit(X, y)
        std = model.predict_std(new_X)
        z = (new_y - model.predict(new_X)) / std
        nll[features is None] = np.mean(z**2 / 2 + np.log(std))
    best = np.mean(
        ((new_y - new_X @ [1.0, -2.0, 0.5, 0.0]) / np.exp(new_X[:, 0])) ** 2 / 2
        + new_X[:, 0]
    )
    assert nll[False] < nll[True] - 0.5
    assert nll[False] < best + 0.1


def test_tables_of_any_library_give_the_numbers_of_arrays():
    X, y = make_data()
    columns = dict(zip(NAMES, X.T, strict=True))
    for regressor in (BayesianRidge(), RandomForestRegressor(9, random_state=0)):
        model = quick(regressor, ss.RakedScaling(5), features=[0, 2]).fit(X, y)
        expected = model.predict_interval(X)
        assert model.recalibrator_.names_ == ("u", "x0", "x2")
        for library in (pd.DataFrame, pl.DataFrame):
            for features in ([0, 2], ["age", "dose"], [np.int64(0), "dose"]):
                table = library(columns)
                model = quick(regressor, ss.RakedScaling(5), features=features)
                model.fit(table, library({"y": y})["y"])
                assert model.recalibrator_.names_ == ("u", "age", "dose")
                np.testing.assert_allclose(model.predict_interval(table), expected)
    X[np.abs(X) < 0.2] = 0
    model = quick(KNeighborVotes(), ss.BinwiseScaling(3, by="x2"), features=[0, 2])
    dense = model.fit(X, y).predict_std(X)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        np.testing.assert_allclose(model.fit(kind(X), y).predict_std(kind(X)), dense)


class KNeighborVotes(KNeighborsRegressor):
    def predict(self, X, return_std=False):
        mean = super().predict(X)
        return (mean, np.ones(mean.size)) if return_std else mean


class Select(BaseEstimator):
    def __init__(self, names=()):
        self.names = names

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        return np.asarray(X[self.names])


def test_labels_of_a_table_stay_labels():
    X, y = make_data(200)
    kind = np.where(X[:, 0] > 0, "gas", "solid")
    table = pd.DataFrame(X, columns=NAMES).assign(phase=kind)
    table.index = np.arange(200)[::-1] * 3  # an index is no number of rows
    regressor = make_pipeline(Select(NAMES), BayesianRidge())
    scaling = ss.BinwiseScaling(by="phase", prior_rows=0)
    model = quick(regressor, scaling, features=["phase"]).fit(table, y)
    rows = model.predictions_
    gas = rows.features["phase"] == "gas"
    ratio = (
        model.predict_std(table)
        / regressor.fit(table, y).predict(table, return_std=True)[1]
    )
    expected = np.sqrt(np.mean(rows.z[gas] ** 2))
    np.testing.assert_allclose(ratio[kind == "gas"], expected)
    for wrong in (["mas"], [5], [-1]):
        with pytest.raises(InvalidInputError, match=r"`features`.*age, mass"):
            quick(regressor, features=wrong).fit(table, y)


# At home in scikit-learn


def test_names_and_numbers_of_columns_are_checked_when_predicting():
    X, y = make_data()
    table = pd.DataFrame(X, columns=NAMES)
    model = quick().fit(table, y)
    for predict in (model.predict, model.predict_std, model.predict_interval):
        with pytest.raises(ValueError, match=r"(?s)should match.*weight.*age"):
            predict(table.rename(columns={"age": "weight"}))
        with pytest.raises(ValueError, match="Reshape your data"):
            predict(X[0])
    with pytest.raises(ValueError, match=r"has 3 features.*expecting 4"):
        quick().fit(X, y).predict(X[:, :3])
    with pytest.raises(NotFittedError):
        quick().predict_distribution(X)


def test_pipelines_searches_and_cross_validation_contain_it():
    X, y = make_data()
    found = cross_val_predict(make_pipeline(StandardScaler(), quick()), X, y, cv=3)
    alone = make_pipeline(StandardScaler(), BayesianRidge())
    np.testing.assert_allclose(found, cross_val_predict(alone, X, y, cv=3))
    grid = {
        "regressor__fit_intercept": [False, True],
        "recalibrator__scaling__n_bins": [2, 3],
    }
    model = quick(BayesianRidge(), ss.BinwiseScaling())
    search = GridSearchCV(model, grid, cv=2).fit(X, 5 + y)
    assert search.best_estimator_.regressor_.fit_intercept


def test_rows_of_a_group_stay_together_in_all_folds():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 5)
    X = (groups + 0.01 * rng.normal(size=100))[:, None]  # a neighbour gives them away
    y = rng.normal(size=20)[groups]
    nearest = KNeighborVotes(1)
    for cv in (5, GroupKFold(4)):
        for given in (groups, pl.Series(groups), [f"{each:02d}" for each in groups]):
            model = quick(nearest, cv=cv).fit(X, y, groups=given)
            assert (model.predictions_.error != 0).all()
            assert np.bincount(model.predictions_.groups).tolist() == [5] * 20
    with pytest.raises(InvalidInputError, match=r"cv=21 and 20 group"):
        quick(cv=21).fit(X, y, groups=groups)


class Weighed(LinearRegression):
    """Keeps the weights that it was fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.weights_ = sample_weight
        return super().fit(X, y, sample_weight)

    def predict(self, X, return_std=False):
        prediction = super().predict(X)
        return (prediction, np.ones(prediction.size)) if return_std else prediction


def test_weights_reach_the_regressor_and_the_recalibrator():
    X, y = make_data()
    weight = np.random.default_rng(1).uniform(0, 4, y.size)
    weight[::3] = 0
    model = quick(Weighed()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.regressor_.weights_, weight)
    rows = model.predictions_
    assert len(rows) == np.count_nonzero(weight)
    assert factor(model) == pytest.approx(np.sqrt(rows.mean(rows.z**2)), rel=1e-12)
    same = quick(Weighed()).fit(X, y, sample_weight=0.3 * weight)
    np.testing.assert_allclose(model.predict_std(X), same.predict_std(X))


def test_intervals_and_distributions_are_of_the_truth_and_a_bias_moves_them():
    X, y = make_data(400)
    frozen = FrozenEstimator(BayesianRidge().fit(X, y - 2))
    recalibrator = ss.Recalibrator(ss.TemperatureScaling(), bias="constant")
    model = ss.RecalibratedRegressor(frozen, recalibrator).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), frozen.predict(X))
    moved = model.predict_distribution(X).location - frozen.predict(X)
    assert moved == pytest.approx(2, abs=0.4)
    plain = quick(frozen).fit(X, y)
    assert (model.predict_std(X) < plain.predict_std(X)).all()
    for each in (model, plain):
        low, high = each.predict_interval(X).T
        assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.02)
        found = each.predict_distribution(X).interval(0.9)
        np.testing.assert_array_equal(found[:, 0], low)


@pytest.mark.slow
def test_a_frozen_regressor_with_rows_held_out_has_the_coverage_asked_for():
    rng = np.random.default_rng(0)

    def heavy(n):
        X = rng.normal(size=(n, 2))
        return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.standard_t(3, size=n)

    frozen = FrozenEstimator(BayesianRidge().fit(*heavy(50)))
    recalibrator = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.5)
    model = ss.RecalibratedRegressor(frozen, recalibrator)
    inside = 0
    for _ in range(400):
        model.fit(*heavy(80))
        X, y = heavy(1)
        low, high = model.predict_interval(X, 0.9)[0]
        inside += low <= y[0] <= high
    assert stats.binomtest(inside, 400, 0.9, alternative="less").pvalue > 0.01
