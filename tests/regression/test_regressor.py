"""The regressor with recalibrated uncertainties, and where these come from."""

import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

import sigmascale as ss
from sigmascale.exceptions import (
    DegenerateFitWarning,
    InvalidInputError,
    ZeroUncertaintyWarning,
)

NAMES = ["age", "mass", "dose", "time"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def make_data(n=150, seed=0):
    """Four inputs and a target whose noise depends on the first of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(scale=np.exp(X[:, 0]))


def as_frame(library, X):
    return FRAMES[library](dict(zip(NAMES, X.T, strict=True)))


def quick(regressor=None, scaling=None, **parameters):
    """A model with one factor, which takes no time to fit."""
    scaling = ss.TemperatureScaling() if scaling is None else scaling
    recalibrator = ss.Recalibrator(scaling)
    return ss.RecalibratedRegressor(regressor, recalibrator, **parameters)


def unit_uncertainty(regressor, X):
    return np.ones(X.shape[0])


# The default, with less to select from.
few_candidates = ss.Recalibrator(
    ss.SelectedScaling(
        {"temperature": ss.TemperatureScaling(), "linear": ss.LinearScaling()},
        n_folds=2,
    )
)


def expected_failures(model):
    selects = isinstance(model.recalibrator.scaling, ss.SelectedScaling)
    reason = (
        "repeats without groups are torn apart by the folds, a weighted row is not"
        if selects
        else "neighbours know no weights, so that the regressor is fitted without"
    )
    kinds = ("dense",) if selects else ("dense", "sparse")
    if selects and parse_version(sklearn.__version__) < parse_version("1.8"):
        kinds = ()  # of the rows of that check, it chooses the same
    return {f"check_sample_weight_equivalence_on_{each}_data": reason for each in kinds}


@pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
    "ignore::sigmascale.exceptions.RepeatedRowsWarning",  # of weights against repeats
    "ignore::sigmascale.exceptions.AbsurdScaleWarning",
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",  # of two members
)
@parametrize_with_checks(
    [
        ss.RecalibratedRegressor(recalibrator=few_candidates, cv=3),
        # takes sparse matrices, too
        quick(VotingRegressor([("ridge", Ridge()), ("near", KNeighborsRegressor(1))])),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_predictions_are_those_of_the_regressor_fitted_to_all_rows():
    X, y = make_data()
    model = quick(Ridge(alpha=3), uncertainty=unit_uncertainty).fit(X, y)
    expected = Ridge(alpha=3).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(X, return_std=True)[0], expected)


def test_errors_and_uncertainties_of_rows_not_seen_calibrate_the_recalibrator():
    X, y = make_data()
    error, u = np.empty(y.size), np.empty(y.size)
    for train, test in KFold(4).split(X):
        fold = BayesianRidge().fit(X[train], y[train])
        prediction, u[test] = fold.predict(X[test], return_std=True)
        error[test] = y[test] - prediction
    model = quick(BayesianRidge(), cv=KFold(4)).fit(X, y)
    factor = np.sqrt(np.mean((error / u) ** 2))
    assert model.recalibrator_.scaling_.factor_ == pytest.approx(factor)
    _, raw = BayesianRidge().fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], factor * raw)
    np.testing.assert_allclose(model.calibration_error_, error)
    np.testing.assert_allclose(model.calibration_table_, u)
    np.testing.assert_array_equal(model.calibration_rows_, np.arange(y.size))


def test_by_default_bayesian_ridge_is_recalibrated_by_a_recalibrator():
    X, y = make_data(60)
    model = ss.RecalibratedRegressor().fit(X, y)
    assert type(model.regressor_) is BayesianRidge
    assert type(model.recalibrator_) is ss.Recalibrator
    assert type(model.recalibrator_.scaling_) is ss.BoostedScaling
    assert model.score(X, y) == BayesianRidge().fit(X, y).score(X, y)


def test_a_frozen_regressor_is_not_refitted_and_all_rows_calibrate():
    X, y = make_data()
    fitted = BayesianRidge().fit(X[:50], y[:50])
    before = fitted.coef_.copy()
    model = quick(FrozenEstimator(fitted)).fit(X[50:], y[50:])
    assert model.regressor_.estimator is fitted
    np.testing.assert_array_equal(fitted.coef_, before)
    prediction, u = fitted.predict(X[50:], return_std=True)
    z = (y[50:] - prediction) / u
    assert model.recalibrator_.scaling_.factor_ == pytest.approx(np.sqrt(np.mean(z**2)))


def test_a_frozen_regressor_that_was_never_fitted_is_an_error():
    X, y = make_data()
    with pytest.raises(NotFittedError, match="BayesianRidge"):
        quick(FrozenEstimator(BayesianRidge())).fit(X, y)


def test_rows_that_were_left_out_or_tested_repeatedly_are_allowed():
    X, y = make_data(100)
    later = quick(cv=TimeSeriesSplit(4)).fit(X, y)
    np.testing.assert_array_equal(later.calibration_rows_, np.arange(20, 100))
    repeated = quick(cv=RepeatedKFold(n_splits=4, n_repeats=2, random_state=0))
    repeated.fit(X, y)
    np.testing.assert_array_equal(
        repeated.calibration_rows_, np.repeat(np.arange(100), 2)
    )
    listed = quick(cv=[(np.arange(50), np.arange(50, 100))]).fit(X, y)
    assert listed.calibration_error_.size == 50


class Recorder(ss.TemperatureScaling):
    """Keeps the groups that it was fitted with."""

    def _learn(self, rows):
        self.groups_ = rows.groups
        return super()._learn(rows)


def test_a_row_tested_repeatedly_stays_together_in_the_recalibrators_own_folds():
    X, y = make_data(100)
    model = quick(
        BayesianRidge(), Recorder(), cv=RepeatedKFold(n_splits=4, n_repeats=2)
    )
    model.fit(X, y)
    np.testing.assert_array_equal(
        model.recalibrator_.scaling_.groups_, model.calibration_rows_
    )
    assert (
        quick(BayesianRidge(), Recorder()).fit(X, y).recalibrator_.scaling_.groups_
        is None
    )


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "`cv` must be at least 2; found 1"),
        (7, r"at most the number of sample\(s\); found cv=7 and 6 sample"),
    ],
)
def test_a_number_of_folds_that_the_rows_cannot_carry_is_refused(cv, message):
    X, y = make_data(6)
    with pytest.raises(InvalidInputError, match=message):
        quick(cv=cv).fit(X, y)


def test_shuffled_folds_depend_on_the_seed_alone():
    X, y = make_data()
    with joblib.parallel_config(backend="threading"):
        one, same, parallel, other = (
            quick(**parameters).fit(X, y).recalibrator_.scaling_.factor_
            for parameters in ({}, {}, {"n_jobs": 2}, {"random_state": 1})
        )
    assert one == same == parallel != other


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
    "Bayesian ridge": (BayesianRidge(), return_std),
    "ARD": (ARDRegression(), return_std),
    "pipeline": (make_pipeline(StandardScaler(), BayesianRidge()), return_std),
    "pipeline of one": (Pipeline([("only", BayesianRidge())]), return_std),
    "random forest": (RandomForestRegressor(20, random_state=0), of_trees),
    "extra trees": (ExtraTreesRegressor(20, bootstrap=True, random_state=0), of_trees),
    "bagging": (
        BaggingRegressor(max_features=2, n_estimators=20, random_state=0),
        of_bags,
    ),
    "voting": (
        VotingRegressor(members),
        lambda fitted, X: spread([each.predict(X) for each in fitted.estimators_]),
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
    "callable": (Ridge(), None),
}


few_agree = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning"
)


@few_agree
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("frozen", [False, True])
def test_uncertainties_come_from_the_regressor_or_its_members(source, frozen):
    regressor, expected = SOURCES[source]
    uncertainty = "auto"
    if expected is None:
        uncertainty = expected = lambda fitted, X: (
            np.exp(fitted.coef_[0]) + X[:, 0] ** 2
        )
    X, y = make_data(80)
    fitted = clone(regressor).fit(X, y)
    model = quick(
        FrozenEstimator(fitted) if frozen else regressor,
        ss.NoScaling(),
        uncertainty=uncertainty,
        cv=2,
    ).fit(X, y)
    prediction, std = model.predict(X[:20], return_std=True)
    np.testing.assert_allclose(prediction, fitted.predict(X[:20]))
    raw = np.maximum(expected(fitted, X[:20]), model.minimum_)
    np.testing.assert_allclose(std, raw)


class NeverFitted(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise AssertionError

    def predict(self, X):
        raise AssertionError


@pytest.mark.parametrize("wrap", [lambda r: r, FrozenEstimator, make_pipeline])
def test_a_regressor_without_uncertainty_is_refused_before_it_is_fitted(wrap):
    X, y = make_data()
    message = (
        r"finds no uncertainty of NeverFitted: it needs a `predict` with `return_std`"
        r".*BayesianRidge.*RandomForestRegressor.*VotingRegressor.*Pass a callable"
    )
    with pytest.raises(InvalidInputError, match=message):
        quick(wrap(NeverFitted())).fit(X, y)
    assert issubclass(GradientBoostingRegressor, RegressorMixin)
    with pytest.raises(InvalidInputError, match="of GradientBoostingRegressor"):
        quick(GradientBoostingRegressor()).fit(X, y)


@pytest.mark.parametrize(
    ("uncertainty", "message"),
    [
        ("spread", "`uncertainty` must be \"auto\" or a callable .*found 'spread'"),
        (lambda r, X: np.ones(3), "`prediction` and `uncertainty` must have the same"),
        (lambda r, X: np.ones(X.shape), "`uncertainty` must be one-dimensional"),
        (lambda r, X: np.full(len(X), np.nan), "`uncertainty` must be finite"),
        (lambda r, X: np.full(len(X), -1.0), "positive uncertainty; none of 150"),
    ],
)
def test_an_uncertainty_that_cannot_be_used_is_refused(uncertainty, message):
    X, y = make_data()
    with pytest.raises(InvalidInputError, match=message):
        quick(Ridge(), uncertainty=uncertainty).fit(X, y)


def test_an_ensemble_of_one_has_no_spread():
    X, y = make_data()
    message = "RandomForestRegressor is no uncertainty: it has 1 member"
    with pytest.raises(InvalidInputError, match=message):
        quick(RandomForestRegressor(1)).fit(X, y)


def test_an_ensemble_whose_members_all_agree_has_no_spread():
    X, y = make_data()
    message = "BaggingRegressor must have a positive uncertainty; none of 150 is"
    with pytest.raises(InvalidInputError, match=message):
        quick(BaggingRegressor()).fit(X, np.ones(y.size))


class Quantiles(RegressorMixin, BaseEstimator):
    """Three models of quantiles that know nothing of each other, and cross."""

    def fit(self, X, y):
        levels = (0.05, 0.5, 0.95)
        self.models_ = [
            GradientBoostingRegressor(
                loss="quantile",
                alpha=p,
                n_estimators=40,
                learning_rate=0.6,
                random_state=0,
            ).fit(X, y)
            for p in levels
        ]
        return self

    def predict(self, X):
        return self.models_[1].predict(X)

    def spread(self, X):
        low, high = (self.models_[k].predict(X) for k in (0, 2))
        return (high - low) / (2 * stats.norm.ppf(0.95))


def zero_in_half(n=240, seed=1):
    """A target that is 0 in half of the rows, which trees know for sure."""
    X, y = make_data(n, seed)
    return X, np.where(X[:, 1] > 0, y, 0.0)


@pytest.mark.parametrize("kind", ["forest", "quantiles"])
def test_zero_spreads_and_crossing_quantiles_are_lifted_and_counted(kind):
    regressor, source = RandomForestRegressor(12, random_state=0), "auto"
    if kind == "quantiles":
        regressor, source = Quantiles(), Quantiles.spread
    X, y = zero_in_half()
    raw = clone(regressor).fit(X, y)
    model = ss.RecalibratedRegressor(regressor, cv=3, uncertainty=source)
    with pytest.warns(ZeroUncertaintyWarning, match=r"^\d+ of 240 .*lifted") as told:
        model.fit(X, y)
    u = model.calibration_table_
    assert f"{np.count_nonzero(u == u.min())} of 240" in str(told[0].message)
    assert u.min() == model.minimum_ > 0
    new, truth = zero_in_half(500, 2)
    raw_u = Quantiles.spread(raw, new) if kind == "quantiles" else None
    few = None if raw_u is None else np.count_nonzero(raw_u < model.minimum_)
    match = r"^\d+ of 500" if few is None else f"^{few} of 500"
    with pytest.warns(ZeroUncertaintyWarning, match=match):
        _, std = model.predict(new, return_std=True)
    assert std.min() > 0
    with pytest.warns(ZeroUncertaintyWarning):
        assert ss.picp(truth, model.predict_interval(new)) == pytest.approx(0.9, 0.07)
    with pytest.warns(ZeroUncertaintyWarning):  # and no error in any fold
        scores = cross_validate(model, X, y, cv=2, error_score="raise")["test_score"]
    assert np.isfinite(scores).all()


def test_what_is_no_recalibrator_is_refused():
    X, y = make_data()
    with pytest.raises(InvalidInputError, match=r"`scaling` must be .*Ridge"):
        quick(BayesianRidge(), Ridge()).fit(X, y)
    model = ss.RecalibratedRegressor(BayesianRidge(), ss.TemperatureScaling())
    match = r"`recalibrator` must be a Recalibrator.*found TemperatureScaling"
    with pytest.raises(InvalidInputError, match=match):
        model.fit(X, y)


# Which features the recalibrator may use


def test_features_make_uncertainties_right_for_every_kind_of_input():
    X, y = make_data(2000)
    new_X, new_y = make_data(2000, seed=1)
    nll = {}
    for features in (None, [0]):
        model = quick(None, ss.RakedScaling(), features=features)
        prediction, std = model.fit(X, y).predict(new_X, return_std=True)
        nll[str(features)] = ss.nll(new_y - prediction, std)
    best = ss.nll(new_y - new_X @ [1.0, -2.0, 0.5, 0.0], np.exp(new_X[:, 0]))
    assert nll["[0]"] < nll["None"] - 0.5
    assert nll["[0]"] < best + 0.1


def age_and_dose(X):
    return np.column_stack([np.asarray(X[name]) for name in ("age", "dose")])


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(
    "features",
    [[0, 2], ["age", "dose"], [np.int64(0), "dose"], age_and_dose],
    ids=["positions", "names", "both", "function"],
)
def test_features_are_named_counted_or_computed(library, features):
    X, y = make_data()
    scaler = ss.RakedScaling(5)
    expected = quick(BayesianRidge(), scaler, features=[0, 2]).fit(X, y)
    frame = as_frame(library, X)
    model = quick(BayesianRidge(), scaler, features=features).fit(frame, y)
    np.testing.assert_allclose(
        model.predict(frame, return_std=True), expected.predict(X, return_std=True)
    )


def test_names_of_features_reach_the_recalibrator():
    X, y = make_data(200)
    frame = as_frame("pandas", X).assign(
        phase=np.where(X[:, 0] > 0, "gas", "solid"), u=X[:, 1]
    )
    frame.index = np.arange(200)[::-1] * 3  # an index is no number of rows
    regressor = make_pipeline(
        # the regressor itself cannot use text
        _Columns(NAMES),
        BayesianRidge(),
    )
    scaler = ss.CategoryScaling(by="phase")
    model = quick(regressor, scaler, features=["phase", "u"]).fit(frame, y)
    assert list(model.calibration_table_.columns) == ["uncertainty", "phase", "u"]
    assert list(model.recalibrator_.scaling_.categories_.labels) == ["gas", "solid"]
    error, u = model.calibration_error_, model.calibration_table_["uncertainty"]
    gas = (X[:, 0] > 0)[model.calibration_rows_]
    z = (error / u.to_numpy())[gas]
    assert model.recalibrator_.scaling_.factors_[0] == pytest.approx(
        np.sqrt(np.mean(z**2))
    )


class _Columns(BaseEstimator):
    def __init__(self, names):
        self.names = names

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        return np.asarray(X[self.names])


def test_columns_of_a_sparse_matrix_can_be_features():
    X, y = make_data()
    X[np.abs(X) < 0.2] = 0
    scaler = ss.BinwiseScaling(3, by=1)
    model = quick(
        KNeighborsRegressor(3), scaler, features=[0, 2], uncertainty=unit_uncertainty
    )
    dense = model.fit(X, y).predict(X, return_std=True)
    table = model.calibration_table_
    for kind in (sparse.csr_matrix, sparse.coo_array):
        found = model.fit(kind(X), y).predict(sparse.csr_array(X), return_std=True)
        np.testing.assert_allclose(found, dense)
        np.testing.assert_array_equal(model.calibration_table_[:, 1:], table[:, 1:])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("age", "`features` must be a list of columns or a callable; found 'age'"),
        (3, "`features` must be a list of columns or a callable; found 3"),
        (["mas"], r"has 4 \(named: age, mass, dose, time\); found 'mas'"),
        ([4], "found 4"),
        ([-1], "found -1"),
    ],
)
def test_features_that_are_no_columns_are_refused(features, message):
    X, y = make_data()
    with pytest.raises(InvalidInputError, match=message):
        quick(features=features).fit(as_frame("polars", X), y)


# At home in scikit-learn


@few_agree
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("source", ["Bayesian ridge", "random forest", "voting"])
def test_data_frames_give_the_same_numbers_as_arrays(library, source):
    regressor, _ = SOURCES[source]
    X, y = make_data()
    model = quick(regressor)
    expected = model.fit(X, y).predict(X, return_std=True)
    interval = model.predict_interval(X)
    frame = as_frame(library, X)
    target = FRAMES[library]({"y": y})["y"]
    model.fit(frame, target)
    np.testing.assert_allclose(model.predict(frame, return_std=True), expected)
    np.testing.assert_allclose(model.predict_interval(frame), interval)


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("method", ["predict", "predict_interval", "transform"])
def test_names_of_columns_are_checked_when_predicting(library, method):
    X, y = make_data()
    model = quick(FrozenEstimator(BayesianRidge().fit(X, y)))
    frame = as_frame(library, X)
    with warnings.catch_warnings():
        # the frozen regressor knows no names, so that this one must
        warnings.filterwarnings("ignore", "X has feature names, but BayesianRidge")
        predict = getattr(model.fit(frame, y), method)
        predict(frame)
    renamed = FRAMES[library](dict(zip(["weight", *NAMES[1:]], X.T, strict=True)))
    with pytest.raises(ValueError, match=r"(?s)should match.*weight.*age"):
        predict(renamed)
    with pytest.raises(ValueError, match="Reshape your data"):
        predict(X[0])
    with pytest.raises(ValueError, match=r"has 3 features, but Recal.* expecting 4"):
        quick(BayesianRidge()).fit(X, y).predict(X[:, :3])


def test_the_table_of_results_follows_set_output():
    X, y = make_data()
    frame = as_frame("pandas", X).set_index(np.arange(150) * 2)
    model = quick().fit(frame, y)
    expected = np.column_stack(model.predict(frame, return_std=True))
    interval = model.predict_interval(frame)
    np.testing.assert_array_equal(model.transform(frame), expected)
    assert type(interval) is np.ndarray

    for kind in ("pandas", "polars"):
        with config_context(transform_output=kind):
            by_config = model.transform(frame)
        found = clone(model).set_output(transform=kind).fit(frame, y)
        table, limits = found.transform(frame), found.predict_interval(frame)
        assert type(by_config) is type(table) is type(limits) is FRAMES[kind]
        assert list(table.columns) == ["prediction", "uncertainty"]
        assert list(limits.columns) == ["low", "high"]
        np.testing.assert_array_equal(table, expected)
        np.testing.assert_array_equal(limits, interval)
        # what a regressor predicts is an array, as everywhere in scikit-learn
        assert type(found.predict(frame)) is np.ndarray
        if kind == "pandas":
            np.testing.assert_array_equal(table.index, frame.index)
            np.testing.assert_array_equal(limits.index, frame.index)


def test_a_pipeline_and_cross_validation_contain_it():
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), quick())
    prediction, std = pipeline.fit(X, y).predict(X, return_std=True)
    assert prediction.shape == std.shape == y.shape
    found = cross_val_predict(quick(), X, y, cv=3)
    np.testing.assert_allclose(found, cross_val_predict(BayesianRidge(), X, y, cv=3))


def test_a_search_reaches_the_parameters_of_regressor_and_recalibrator():
    X, y = make_data()
    grid = {
        "regressor__fit_intercept": [False, True],
        "recalibrator__scaling__n_bins": [2, 3],
        "cv": [2, 3],
    }
    model = quick(BayesianRidge(), ss.BinwiseScaling())
    search = GridSearchCV(model, grid, cv=2).fit(X, 5 + y)
    assert search.best_params_["regressor__fit_intercept"]
    assert search.best_estimator_.regressor_.fit_intercept
    assert len(search.cv_results_["params"]) == 8


def make_groups(n_groups=20, size=5):
    """Rows of a group are the same but for noise: a neighbour gives them away."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), size)
    X = (groups + 0.01 * rng.normal(size=groups.size))[:, None]
    return X, rng.normal(size=n_groups)[groups], groups


nearest = KNeighborsRegressor(1)


@pytest.mark.parametrize("cv", [5, GroupKFold(4)])
def test_rows_of_a_group_stay_together_in_all_folds(cv):
    X, y, groups = make_groups()
    model = quick(nearest, Recorder(), uncertainty=unit_uncertainty, cv=cv)
    for given in (groups, pl.Series(groups), [f"{each:02d}" for each in groups]):
        model.fit(X, y, groups=given)
        assert np.all(model.calibration_error_ != 0)
        seen = model.recalibrator_.scaling_.groups_
        np.testing.assert_array_equal(np.unique(seen, return_inverse=True)[1], groups)
    leaking = quick(nearest, uncertainty=unit_uncertainty, cv=5)
    with pytest.warns(DegenerateFitWarning, match="All 100 errors are 0"):
        leaking.fit(X, y)


def test_more_folds_than_groups_are_refused():
    X, y, groups = make_groups(n_groups=4)
    with pytest.raises(InvalidInputError, match=r"found cv=5 and 4 group\(s\)"):
        quick().fit(X, y, groups=groups)


class Weighed(LinearRegression):
    """Keeps the weights that it was fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.weights_ = sample_weight
        assert sample_weight is None or len(sample_weight) == len(y)
        return super().fit(X, y, sample_weight)

    def predict(self, X, return_std=False):
        prediction = super().predict(X)
        return (prediction, np.ones(prediction.size)) if return_std else prediction


def test_weights_reach_every_fit_of_the_regressor():
    X, y = make_data()
    weight = np.where(np.arange(y.size) % 3, 1.0, 0.0)
    model = quick(Weighed()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.regressor_.weights_, weight)
    expected = Weighed().fit(X, y, weight).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    unweighed = quick(Weighed()).fit(X, y)
    known = unweighed.calibration_error_[weight > 0]
    assert not np.allclose(model.calibration_error_, known)
    np.testing.assert_array_equal(model.calibration_rows_, np.flatnonzero(weight))


def test_the_recalibrator_and_intervals_weigh_rows_too():
    X, y = make_data()
    weight = np.random.default_rng(1).integers(0, 4, y.size)
    parameters = {"regressor": nearest, "uncertainty": unit_uncertainty}
    model = quick(**parameters).fit(X, y, sample_weight=weight)
    error, rows = model.calibration_error_, model.calibration_rows_
    expected = np.sqrt(np.average(error**2, weights=weight[rows]))
    assert model.recalibrator_.scaling_.factor_ == pytest.approx(expected, rel=1e-12)
    same = quick(**parameters).fit(X, y, sample_weight=0.3 * weight)
    np.testing.assert_array_equal(
        model.predict_interval(X[:5]), same.predict_interval(X[:5])
    )
    plain = quick(**parameters).fit(X, y)
    assert (model.predict_interval(X) != plain.predict_interval(X)).all()
    one = quick(**parameters).fit(X, y, sample_weight=np.full(y.size, 7.0))
    np.testing.assert_array_equal(one.predict_interval(X), plain.predict_interval(X))
    held = quick(**parameters, conformal_size=0.5).fit(X, y, sample_weight=weight)
    assert held.recalibrator_.conformal_.weights is not None


def test_metadata_are_routed_where_they_are_asked_for():
    X, y, groups = make_groups()
    weight = np.linspace(1, 2, y.size)
    with config_context(enable_metadata_routing=True):
        asking = Weighed().set_fit_request(sample_weight=True)
        model = quick(asking, cv=GroupKFold(4))
        model.fit(X, y, groups=groups, sample_weight=weight)
        np.testing.assert_array_equal(model.regressor_.weights_, weight)
        # nothing need be said for groups, inside a pipeline inside a cross-validation
        neighbour = quick(nearest, uncertainty=unit_uncertainty)
        found = cross_validate(
            make_pipeline(StandardScaler(), neighbour),
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": groups},
            return_estimator=True,
        )
        for fold in found["estimator"]:
            assert np.all(fold[-1].calibration_error_ != 0)
        default = quick().fit(X, y, sample_weight=weight)
        expected = BayesianRidge().fit(X, y, weight).predict(X)
        np.testing.assert_array_equal(default.predict(X), expected)
        with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set"):
            quick(Weighed()).fit(X, y, sample_weight=weight)
        with pytest.raises(TypeError, match=r"unexpected argument.*weigth"):
            quick(Weighed()).fit(X, y, weigth=weight)


def test_text_can_be_the_input_where_the_regressor_takes_it():
    smiles = np.array(["C", "CC", "CCO", "CCC", "CO", "CCCC"] * 5).tolist()
    y = np.array([len(each) for each in smiles]) + np.linspace(0, 1, 30)
    regressor = make_pipeline(_Length(), BayesianRidge())
    prediction, std = quick(regressor).fit(smiles, y).predict(["CCN"], return_std=True)
    assert prediction.shape == std.shape == (1,)


class _Length(_Columns):
    def __init__(self):
        pass

    def transform(self, X):
        return np.array([[len(each)] for each in X])


# Prediction intervals


def test_an_interval_is_the_prediction_and_the_limits_of_its_error():
    X, y = make_data()
    model = quick().fit(X, y)
    prediction, std = model.predict(X, return_std=True)
    interval = model.predict_interval(X, 0.8)
    of_error = (interval - prediction[:, None]) / std[:, None]
    assert of_error.std(axis=0).max() < 1e-9
    # the z-scores of 150 unseen rows, of which the i-th is the level i / 151
    z = np.sort(model.calibration_error_ / model.calibration_table_)
    z = z / model.recalibrator_.scaling_.factor_
    expected = np.interp([0.1, 0.9], np.arange(1, 151) / 151, z)
    # folds differ in the factor
    np.testing.assert_allclose(of_error[0], expected, rtol=0.05)
    found = model.predict_distribution(X)
    np.testing.assert_allclose(found.interval(0.8), interval)
    np.testing.assert_allclose(found.location, prediction)
    # with rows set aside, limits are symmetric unless asked for otherwise
    model = quick(conformal_size=0.5).fit(X, y)
    prediction = model.predict(X)
    np.testing.assert_allclose(model.predict_interval(X).mean(axis=1), prediction)
    skewed = model.predict_interval(X, 0.8, asymmetric=True) - prediction[:, None]
    assert not np.allclose(-skewed[:, 0], skewed[:, 1])


def test_a_shift_moves_distributions_and_not_predictions():
    X, y = make_data(400)
    frozen = FrozenEstimator(BayesianRidge().fit(X, y - 2))
    recalibrator = ss.Recalibrator(ss.TemperatureScaling(), shift="constant")
    model = ss.RecalibratedRegressor(frozen, recalibrator).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), frozen.predict(X))
    moved = model.predict_distribution(X).location - frozen.predict(X)
    assert moved == pytest.approx(2, abs=0.4)
    plain = quick(frozen).fit(X, y)
    assert (model.predict(X, return_std=True)[1] < plain.predict(X, True)[1]).all()
    for each in (model, plain):
        assert ss.picp(y, each.predict_interval(X)) == pytest.approx(0.9, abs=0.02)


def heavy_set(n, rng):
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.standard_t(3, size=n)


@pytest.mark.slow
def test_a_frozen_regressor_with_rows_set_aside_has_exact_coverage():
    rng = np.random.default_rng(0)
    frozen = FrozenEstimator(BayesianRidge().fit(*heavy_set(50, rng)))
    model = quick(frozen, conformal_size=0.5)
    inside = []
    for _ in range(500):
        model.fit(*heavy_set(40, rng))
        X, y = heavy_set(1, rng)
        low, high = model.predict_interval(X, 0.9)[0]
        inside.append(low <= y[0] <= high)
    # the 19th of 20 sizes covers a further row with probability 19 / 21
    assert stats.binomtest(sum(inside), 500, 19 / 21).pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_without_rows_set_aside_coverage_is_nearly_what_was_asked_for(frozen):
    rng = np.random.default_rng(1)
    regressor = BayesianRidge()
    if frozen:
        regressor = FrozenEstimator(regressor.fit(*heavy_set(50, rng)))
    # bins of five rows fit these so closely that their own z-scores would cover 0.87
    bins = ss.BinwiseScaling(12, by=1, least_rows=0)
    model = quick(regressor, bins, features=[0])
    coverage = []
    for _ in range(60):
        model.fit(*heavy_set(60, rng))
        X, y = heavy_set(300, rng)
        coverage.append(ss.picp(y, model.predict_interval(X, 0.95)))
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.02)


def test_rows_set_aside_are_whole_groups_that_the_recalibrator_does_not_see():
    X, y, groups = make_groups()
    model = quick(nearest, Recorder(), uncertainty=unit_uncertainty, conformal_size=0.3)
    model.fit(X, y, groups=groups)
    seen = model.recalibrator_.scaling_.groups_
    assert seen.size == 70
    assert np.unique(seen).size == 14
    assert quick(conformal_size=0.3).fit(X, y).recalibrator_.conformal_.z.size == 30


def test_the_coverage_holds_in_every_group_where_fit_knows_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    phase = np.where(X[:, 1] > 0, "gas", "solid")
    y = X[:, 0] + np.where(phase == "gas", 5.0, 1.0) * rng.normal(size=2000)
    known = {"by_category": phase[:1000]}
    with pytest.raises(InvalidInputError, match="pass conformal_size"):
        quick().fit(X[:1000], y[:1000], **known)
    model = quick(conformal_size=0.5).fit(X[:1000], y[:1000], **known)
    low, high = model.predict_interval(X[1000:], by_category=phase[1000:]).T
    inside = (low <= y[1000:]) & (y[1000:] <= high)
    for each in ("gas", "solid"):
        of_group = phase[1000:] == each
        assert inside[of_group].mean() == pytest.approx(0.9, abs=0.04)
    half = high - model.predict(X[1000:])
    ratio = half[phase[1000:] == "gas"].mean() / half[phase[1000:] == "solid"].mean()
    assert ratio == pytest.approx(5, rel=0.2)
    pooled = quick().fit(X[:1000], y[:1000]).predict_interval(X[1000:])
    assert np.diff(pooled, axis=1).min() > 2 * np.diff([low, high], axis=0).min()


@pytest.mark.parametrize("size", [0.0, 1.0, "some"])
def test_a_share_of_rows_that_is_no_share_is_refused(size):
    X, y = make_data()
    with pytest.raises(InvalidInputError, match=r"`conformal_size` must lie strictly"):
        quick(conformal_size=size).fit(X, y)


# The claim of the tutorial, with smaller models and fewer splits


def half_range(regressor, X):
    low, high = (regressor.named_estimators_[q].predict(X) for q in ("low", "high"))
    return np.abs(high - low) / 2


def quantile(level):
    return GradientBoostingRegressor(
        loss="quantile", alpha=level, n_estimators=30, max_depth=2, random_state=0
    )


DIABETES = {
    "Gaussian process": (
        GaussianProcessRegressor(
            RBF(5.0, "fixed") + WhiteKernel(0.5), normalize_y=True, optimizer=None
        ),
        "auto",
    ),
    "Bayesian ridge": (BayesianRidge(), "auto"),
    "random forest": (
        RandomForestRegressor(30, min_samples_leaf=3, random_state=0),
        "auto",
    ),
    "quantile boosting": (
        VotingRegressor(
            [("low", quantile(0.16)), ("mid", quantile(0.5)), ("high", quantile(0.84))],
            weights=[0, 1, 0],
        ),
        half_range,
    ),
    "deep ensemble": (
        BaggingRegressor(
            MLPRegressor(
                hidden_layer_sizes=(10,),
                max_iter=60,
                learning_rate_init=0.05,
                random_state=0,
            ),
            n_estimators=5,
            random_state=0,
        ),
        "auto",
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
)
@pytest.mark.parametrize("name", DIABETES)
def test_recalibration_never_hurts_on_the_diabetes_data_and_mends_what_is_wrong(name):
    regressor, uncertainty = DIABETES[name]
    regressor = make_pipeline(StandardScaler(), regressor)
    if callable(uncertainty):

        def uncertainty(pipeline, X):
            return half_range(pipeline[-1], pipeline[:-1].transform(X))

    X, y = load_diabetes(return_X_y=True)
    raw, recalibrated, zms = [], [], []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = ss.RecalibratedRegressor(regressor, uncertainty=uncertainty, cv=4)
        model.fit(X_train, y_train)
        prediction, std = model.predict(X_test, return_std=True)
        as_it_is = quick(
            FrozenEstimator(model.regressor_), ss.NoScaling(), uncertainty=uncertainty
        ).fit(X_test, y_test)
        _, u = as_it_is.predict(X_test, return_std=True)
        raw.append(ss.nll(y_test - prediction, u))
        recalibrated.append(ss.nll(y_test - prediction, std))
        zms.append(ss.zms(y_test - prediction, u))
    gain = np.array(raw) - np.array(recalibrated)
    noise = gain.std(ddof=1) / np.sqrt(gain.size)
    assert gain.mean() > -2 * noise
    assert gain.mean() > -0.02
    if abs(np.log(np.mean(zms))) > 0.3:
        assert gain.mean() > 2 * noise
    assert (abs(np.log(np.mean(zms))) > 0.3) == (
        name in ("random forest", "deep ensemble")
    )


@pytest.mark.parametrize(
    "names", [["u", "uncertainty"], ["uncertainty", "u", "uncertainty_"], ["x", "u"]]
)
def test_features_never_take_the_place_of_the_uncertainty(names):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=120) for name in names})
    y = X.sum(axis=1) + rng.normal(size=120)
    scaling = ss.BinwiseScaling(2)
    model = quick(BayesianRidge(), scaling, features=names).fit(X, y)
    plain = quick(BayesianRidge(), scaling).fit(X, y)
    table = model.calibration_table_
    assert list(table.columns[1:]) == names
    assert len(set(table.columns)) == 1 + len(names)
    np.testing.assert_array_equal(table.iloc[:, 0], plain.calibration_table_)
    expected = plain.predict(X, return_std=True)[1]
    np.testing.assert_array_equal(model.predict(X, return_std=True)[1], expected)


def test_features_whose_names_are_the_same_as_text_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = quick(BayesianRidge(), features=lambda X: X.set_axis([1, "1"], axis=1))
    with pytest.raises(InvalidInputError, match=r"differ as text; found 1, '1'"):
        model.fit(X, X["a"])
