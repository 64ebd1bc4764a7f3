"""Regressors of twelve kinds, recalibrated: 90 % intervals hold 90 % of new rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
X_ALL = RNG.normal(size=(4500, 4))
Y_ALL = X_ALL[:, 0] + np.exp(0.5 * X_ALL[:, 1]) * RNG.normal(size=4500)
FIT, OTHER, NEW = slice(0, 2000), slice(2000, 2500), slice(2500, 4500)
LEVELS = [0.05, 0.5, 0.95]


def ngboost(**how):
    package = pytest.importorskip("ngboost")
    if "Dist" in how:
        how["Dist"] = getattr(package.distns, how["Dist"])
    return package.NGBRegressor(n_estimators=60, verbose=False, random_state=0, **how)


def catboost(**how):
    package = pytest.importorskip("catboost")
    how = {"loss_function": "RMSEWithUncertainty"} | how
    if "objective" in how:  # another name of the same
        del how["loss_function"]
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return package.CatBoostRegressor(iterations=60, **how, **quiet)


def xgboost(levels=LEVELS, **how):
    package = pytest.importorskip("xgboost")
    how |= {"objective": "reg:quantileerror", "quantile_alpha": levels}
    return package.XGBRegressor(n_estimators=30, n_jobs=1, **how)


def lightgbm():
    package = pytest.importorskip("lightgbm")
    quiet = {"verbose": -1, "n_jobs": 1}
    return package.LGBMRegressor(objective="quantile", n_estimators=30, **quiet)


def quantile_forest(**how):
    package = pytest.importorskip("quantile_forest")
    how |= {"min_samples_leaf": 5, "random_state": 0}
    return package.RandomForestQuantileRegressor(30, **how)


def skpro():
    package = pytest.importorskip("skpro.regression.residual")
    return package.ResidualDouble(LinearRegression())


def mapie(name="SplitConformalRegressor"):
    """Return a conformal regressor that has learned from the rows of OTHER."""
    package = pytest.importorskip("mapie.regression")
    X, y = X_ALL[OTHER], Y_ALL[OTHER]
    if name == "SplitConformalRegressor":
        model = package.SplitConformalRegressor(Ridge(), 0.9, prefit=False)
        model.fit(X[:250], y[:250]).conformalize(X[250:], y[250:])
    elif name == "ConformalizedQuantileRegressor":
        model = package.ConformalizedQuantileRegressor(QuantileRegressor(alpha=0), 0.9)
        model.fit(X[:250], y[:250]).conformalize(X[250:], y[250:])
    else:
        model = getattr(package, name)(Ridge(), 0.9).fit_conformalize(X, y)
    return FrozenEstimator(model)


def crepes():
    model = pytest.importorskip("crepes").WrapRegressor(Ridge())
    model.fit(X_ALL[OTHER][:250], Y_ALL[OTHER][:250])
    model.calibrate(X_ALL[OTHER][250:], Y_ALL[OTHER][250:])
    return FrozenEstimator(model)


def statsmodels():
    api = pytest.importorskip("statsmodels.api")
    return FrozenEstimator(api.OLS(Y_ALL[OTHER], X_ALL[OTHER]).fit())


def gaussian_process():
    kernel = kernels.RBF(3.0) + kernels.WhiteKernel(1.0)
    return GaussianProcessRegressor(kernel, optimizer=None)


REGRESSORS = {
    "NGBoost": ngboost,
    "CatBoost, with uncertainty": catboost,
    "CatBoost, quantiles": lambda: catboost(
        loss_function="MultiQuantile:alpha=0.05,0.5,0.95"
    ),
    "XGBoost": xgboost,
    "LightGBM": lightgbm,
    "quantile-forest": quantile_forest,
    "skpro": skpro,
    "MAPIE": mapie,
    "Gaussian process": gaussian_process,
    "BayesianRidge": BayesianRidge,
    "bagging": lambda: BaggingRegressor(n_estimators=20, random_state=0),
    "statsmodels": statsmodels,
}
VARIANTS = {
    "NGBoost, Laplace": lambda: ngboost(Dist="Laplace"),
    "NGBoost, in a pipeline": lambda: make_pipeline(StandardScaler(), ngboost()),
    "CatBoost, objective": lambda: catboost(objective="RMSEWithUncertainty"),
    "CatBoost, one quantile": lambda: catboost(loss_function="Quantile:alpha=0.9"),
    "CatBoost, in a search": lambda: GridSearchCV(
        catboost(), {"depth": [2, 4]}, scoring=ss.scorers.neg_crps, cv=2
    ),
    "XGBoost, one quantile": lambda: xgboost([0.5]),
    "XGBoost, levels from an array": lambda: xgboost(np.array(LEVELS)),
    "XGBoost, in a pipeline": lambda: make_pipeline(StandardScaler(), xgboost()),
    "XGBoost, in a search": lambda: GridSearchCV(
        xgboost(), {"max_depth": [2, 4]}, scoring=ss.scorers.neg_crps, cv=2
    ),
    "LightGBM, in a pipeline": lambda: make_pipeline(StandardScaler(), lightgbm()),
    "quantile-forest, of quantiles": lambda: quantile_forest(
        default_quantiles=[0.1, 0.5, 0.9]
    ),
    "skpro, in a pipeline": lambda: make_pipeline(StandardScaler(), skpro()),
    "MAPIE, cross": lambda: mapie("CrossConformalRegressor"),
    "MAPIE, jackknife": lambda: mapie("JackknifeAfterBootstrapRegressor"),
    "MAPIE, quantiles": lambda: mapie("ConformalizedQuantileRegressor"),
    "crepes": crepes,
}
FROZEN = [
    "NGBoost",
    "CatBoost, with uncertainty",
    "XGBoost",
    "quantile-forest",
    "skpro",
]


def check(regressor, X, y, least, most):
    """Recalibrate a regressor, and compare its intervals with what comes then."""
    model = ss.RecalibratedRegressor(regressor, features=[1], cv=3)
    model.fit(X[FIT], y[FIT])
    assert model.std_ is None  # it has an uncertainty
    y_new = np.asarray(y[NEW])
    low, high = model.predict_interval(X[NEW], coverage=0.9).T
    assert least <= np.mean((low <= y_new) & (y_new <= high)) <= most
    y_pred, u = model.predict(X[NEW], return_std=True)
    assert y_pred.shape == u.shape == y_new.shape
    assert np.array_equal(y_pred, model.predict(X[NEW]))
    assert np.sqrt(np.mean((y_new - y_pred) ** 2)) < 1.5
    assert 0.9 < np.sqrt(np.mean(((y_new - y_pred) / u) ** 2)) < 1.1


@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_of_any_regressor_have_nominal_coverage(name):
    check(REGRESSORS[name](), X_ALL, Y_ALL, 0.87, 0.93)


@pytest.mark.filterwarnings(
    "ignore::UserWarning:sklearn",  # of names of columns
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",  # of lines that cross
)
@pytest.mark.parametrize("name", VARIANTS)
def test_regressors_may_be_made_and_wrapped_otherwise(name):
    check(VARIANTS[name](), X_ALL, Y_ALL, 0.86, 0.94)


@pytest.mark.parametrize("name", FROZEN)
def test_regressors_that_were_fitted_to_a_data_frame_can_be_frozen(name):
    X = pd.DataFrame(X_ALL, columns=list("abcd"))
    y = pd.Series(Y_ALL)
    frozen = FrozenEstimator(REGRESSORS[name]().fit(X[OTHER], y[OTHER]))
    check(frozen, X, y, 0.86, 0.94)


def refused(regressor, match):
    with pytest.raises(InvalidInputError, match=match):
        ss.RecalibratedRegressor(regressor).fit(X_ALL[FIT], Y_ALL[FIT])


def test_what_cannot_be_fitted_names_the_line_to_write():
    api = pytest.importorskip("statsmodels.api")
    fitted = api.OLS(Y_ALL[FIT], X_ALL[FIT]).fit()
    refused(fitted.get_prediction(X_ALL[NEW]), "se_obs")
    refused(fitted, r"FrozenEstimator\(regressor\)")
    of_mean = api.GLM(Y_ALL[FIT], X_ALL[FIT]).fit()
    refused(FrozenEstimator(of_mean), "standard error of the mean.*scikit-learn")
    package = pytest.importorskip("mapie.regression")
    refused(package.SplitConformalRegressor(), r"FrozenEstimator\(regressor\)")
    refused(xgboost([0.05, 0.5, 0.9]), "symmetric pair, such as 0.05 and 0.95")
    refused(FrozenEstimator(lightgbm().fit(X_ALL, Y_ALL)), "Pass it unfrozen")
