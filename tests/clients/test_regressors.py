"""Regressors of twelve kinds, recalibrated: 90 % intervals hold 90 % of new rows."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
X_ALL = RNG.normal(size=(4500, 4))
Y_ALL = X_ALL[:, 0] + np.exp(0.5 * X_ALL[:, 1]) * RNG.normal(size=4500)
FIT, OTHER, NEW = slice(0, 2000), slice(2000, 2500), slice(2500, 4500)
LEVELS = [0.05, 0.5, 0.95]


def ngboost():
    package = pytest.importorskip("ngboost")
    return package.NGBRegressor(n_estimators=60, verbose=False, random_state=0)


def catboost(loss):
    package = pytest.importorskip("catboost")
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return package.CatBoostRegressor(loss_function=loss, iterations=60, **quiet)


def xgboost():
    package = pytest.importorskip("xgboost")
    how = {"objective": "reg:quantileerror", "quantile_alpha": LEVELS}
    return package.XGBRegressor(n_estimators=30, n_jobs=1, **how)


def lightgbm():
    package = pytest.importorskip("lightgbm")
    quiet = {"verbose": -1, "n_jobs": 1}
    return package.LGBMRegressor(objective="quantile", n_estimators=30, **quiet)


def quantile_forest():
    package = pytest.importorskip("quantile_forest")
    how = {"min_samples_leaf": 5, "random_state": 0}
    return package.RandomForestQuantileRegressor(30, **how)


def skpro():
    package = pytest.importorskip("skpro.regression.residual")
    return package.ResidualDouble(LinearRegression())


def mapie():
    package = pytest.importorskip("mapie.regression")
    ridge = Ridge().fit(X_ALL[OTHER][:250], Y_ALL[OTHER][:250])
    model = package.SplitConformalRegressor(ridge, 0.9, prefit=True)
    return FrozenEstimator(model.conformalize(X_ALL[OTHER][250:], Y_ALL[OTHER][250:]))


def gaussian_process():
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    kernel = kernels.RBF(3.0) + kernels.WhiteKernel(1.0)
    return GaussianProcessRegressor(kernel, optimizer=None)


def bagging():
    from sklearn.ensemble import BaggingRegressor

    return BaggingRegressor(n_estimators=20, random_state=0)


REGRESSORS = {
    "NGBoost": ngboost,
    "CatBoost, with uncertainty": lambda: catboost("RMSEWithUncertainty"),
    "CatBoost, quantiles": lambda: catboost("MultiQuantile:alpha=0.05,0.5,0.95"),
    "XGBoost": xgboost,
    "LightGBM": lightgbm,
    "quantile-forest": quantile_forest,
    "skpro": skpro,
    "MAPIE": mapie,
    "Gaussian process": gaussian_process,
    "BayesianRidge": BayesianRidge,
    "bagging": bagging,
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_of_any_regressor_hold(name):
    regressor = REGRESSORS[name]()
    model = ss.RecalibratedRegressor(regressor, features=[1], cv=3)
    model.fit(X_ALL[FIT], Y_ALL[FIT])
    assert model.std_ is None  # it tells an uncertainty
    low, high = model.predict_interval(X_ALL[NEW], coverage=0.9).T
    y = Y_ALL[NEW]
    assert 0.87 <= np.mean((low <= y) & (y <= high)) <= 0.93
    y_pred, u = model.predict(X_ALL[NEW], return_std=True)
    assert y_pred.shape == u.shape == y.shape
    assert np.sqrt(np.mean((y - y_pred) ** 2)) < 1.5
    assert 0.9 < np.sqrt(np.mean(((y - y_pred) / u) ** 2)) < 1.1


def test_intervals_of_statsmodels_hold():
    api = pytest.importorskip("statsmodels.api")
    fitted = api.OLS(Y_ALL[OTHER], api.add_constant(X_ALL[OTHER])).fit()

    def predicted(rows):
        X = api.add_constant(X_ALL[rows])
        told = fitted.get_prediction(X)
        features = {"x1": X_ALL[rows, 1]}
        about = {"y_true": Y_ALL[rows], "features": features}
        return ss.Predictions(told.predicted_mean, told.se_obs, **about)

    q = ss.Recalibrator().fit(predicted(FIT)).apply(predicted(NEW))
    low, high = q.distributions.interval(0.9).T
    assert 0.87 <= np.mean((low <= q.y_true) & (q.y_true <= high)) <= 0.93


def test_what_cannot_be_fitted_names_the_line_to_write():
    api = pytest.importorskip("statsmodels.api")
    fitted = api.OLS(Y_ALL[FIT], X_ALL[FIT]).fit()
    told = fitted.get_prediction(X_ALL[NEW])
    with pytest.raises(InvalidInputError, match=r"se_obs"):
        ss.RecalibratedRegressor(told).fit(X_ALL[FIT], Y_ALL[FIT])
    package = pytest.importorskip("mapie.regression")
    unfitted = package.SplitConformalRegressor()
    with pytest.raises(InvalidInputError, match=r"FrozenEstimator"):
        ss.RecalibratedRegressor(unfitted).fit(X_ALL[FIT], Y_ALL[FIT])
