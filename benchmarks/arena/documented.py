"""Opponents as plain scripts after their documentation, to compare the arena with.

Each function gets u, all columns, errors, a split of the rows where its documentation
has one, and the u and columns of new rows. It returns what a method returns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .parts import LEVELS, Part
from .running import FOLDER, Set, build, load_method, parts
from .scoring import score

HALF = LEVELS[LEVELS > 0.5]
SETS = (Set("floor_300", "world", rows=300), Set("diabetes_forest", "developed"))


def uncertainty_toolbox(u, X, e, split, new_u, new_X):
    import uncertainty_toolbox as uct
    from uncertainty_toolbox.recalibration import (
        iso_recal,
        optimize_recalibration_ratio,
    )

    zero, new_zero = np.zeros(len(u)), np.zeros(len(new_u))
    expected, observed = uct.get_proportion_lists_vectorized(
        zero, u, e, prop_type="quantile"
    )
    model = iso_recal(expected, observed)
    quantiles = [
        uct.metrics_calibration.get_quantile(new_zero, new_u, level, recal_model=model)
        for level in LEVELS
    ]
    ratio = optimize_recalibration_ratio(zero, u, e, criterion="ma_cal")
    return {"std": ratio * new_u, "quantiles": np.column_stack(quantiles)}


def _predictive_system(system, y_hat, sigmas, bins=None):
    rows = {"sigmas": sigmas, "bins": bins}
    intervals = [
        system.predict_int(y_hat, confidence=float(2 * level - 1), **rows)
        for level in HALF
    ]
    low, high = (np.column_stack([each[:, k] for each in intervals]) for k in (0, 1))
    middle = system.predict_percentiles(y_hat, higher_percentiles=50, **rows)
    laws = system.predict_cpds(y_hat, **rows)
    std, mean = ([f(law) for law in laws] for f in (np.std, np.mean))
    quantiles = np.hstack([low[:, ::-1], np.reshape(middle, (-1, 1)), high])
    largest = 10 * np.nanmax(np.abs(quantiles[np.isfinite(quantiles)]))
    return {"std": std, "mean": mean, "quantiles": quantiles.clip(-largest, largest)}


def crepes_normalised(u, X, e, split, new_u, new_X):
    from crepes import ConformalPredictiveSystem

    system = ConformalPredictiveSystem().fit(e, sigmas=u)
    return _predictive_system(system, np.zeros(len(new_u)), new_u)


def mapie(u, X, e, split, new_u, new_X):
    from mapie.regression import SplitConformalRegressor
    from sklearn.dummy import DummyRegressor

    given = DummyRegressor(strategy="constant", constant=0.0).fit(X, e)
    most = len(e) / (len(e) + 1) - 1e-9
    model = SplitConformalRegressor(
        given, confidence_level=list((2 * HALF - 1).clip(max=most)), prefit=True
    )
    _, found = model.conformalize(X, e / u).predict_interval(new_X)
    low, high = (new_u[:, None] * found[:, k] for k in (0, 1))
    return {"quantiles": np.hstack([low[:, ::-1], 0 * new_u[:, None], high])}


def puncc(u, X, e, split, new_u, new_X):
    from deel.puncc.api.prediction import MeanVarPredictor
    from deel.puncc.regression import LocallyAdaptiveCP
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import RandomForestRegressor

    models = [
        DummyRegressor(strategy="constant", constant=0.0),
        RandomForestRegressor(n_estimators=100, random_state=0),
    ]
    lacp = LocallyAdaptiveCP(MeanVarPredictor(models=models))
    fit, calib = split
    lacp.fit(X_fit=X[fit], y_fit=e[fit], X_calib=X[calib], y_calib=e[calib])
    most = len(calib) / (len(calib) + 1) - 1e-9
    high = np.column_stack(
        [lacp.predict(new_X, alpha=1 - min(2 * level - 1, most))[2] for level in HALF]
    )
    return {"quantiles": np.hstack([-high[:, ::-1], 0 * new_u[:, None], high])}


def ngboost(u, X, e, split, new_u, new_X):
    from ngboost import NGBRegressor

    fit, val = split
    z = e / u
    ngb = NGBRegressor(random_state=0, verbose=False)
    ngb.fit(X[fit], z[fit], X_val=X[val], Y_val=z[val], early_stopping_rounds=20)
    found = ngb.pred_dist(new_X)
    quantiles = np.column_stack([found.ppf(level) for level in LEVELS])
    moments = {"mean": new_u * found.loc, "std": new_u * found.scale}
    return {**moments, "quantiles": new_u[:, None] * quantiles}


def quantile_forest(u, X, e, split, new_u, new_X):
    from quantile_forest import RandomForestQuantileRegressor

    forest = RandomForestQuantileRegressor(random_state=0).fit(X, e / u)
    return {"quantiles": new_u[:, None] * forest.predict(new_X, quantiles=list(LEVELS))}


def lightgbm(u, X, e, split, new_u, new_X):
    from lightgbm import LGBMRegressor, early_stopping

    fit, val = split
    z2 = np.maximum((e / u) ** 2, 1e-9)
    model = LGBMRegressor(
        objective="gamma", n_estimators=1000, learning_rate=0.05, verbose=-1, n_jobs=1
    )
    model.fit(
        X[fit],
        z2[fit],
        eval_set=[(X[val], z2[val])],
        callbacks=[early_stopping(30, verbose=False)],
    )
    return new_u * np.sqrt(model.predict(new_X))


# Whether the arena tunes what the documentation leaves alone.
SCRIPTS: dict[Callable[..., Any], bool] = {
    **dict.fromkeys((uncertainty_toolbox, crepes_normalised, mapie, ngboost), False),
    **dict.fromkeys((puncc, quantile_forest, lightgbm), True),
}


def compared(script: Callable[..., Any], train: Part, test: Part) -> dict[str, float]:
    """Return the scores of the arena's version, and by how much the script's differ.

    The CRPS relative to its size, and the NLL; positive where the script is better.
    """
    method = load_method(FOLDER / "methods" / f"{script.__name__}.py")
    ours = score(test, train, method.predict(method.fit(train), test.unlabelled()))
    split = next(train.folds())
    theirs = score(
        test,
        train,
        script(train.u, train.X, train.error, split, test.u, test.X),
    )
    return {
        "CRPS": ours["crps"],
        "script is better by": ours["crps"] / theirs["crps"] - 1,
        "NLL": ours["nll"],
        "by": ours["nll"] - theirs["nll"],
    }


def write(cache: Path, path: Path) -> None:
    """Write the comparison of all packages at hand."""
    rows = []
    for script, tuned in SCRIPTS.items():
        for each in SETS:
            build(each, cache)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = compared(script, *parts(each, cache, 0, 1000))
            except ImportError:
                continue
            row = {name: f"{value:.4f}" for name, value in found.items()}
            note = "tuned in the arena" if tuned else ""
            rows.append({"method": script.__name__, "set": each.name, **row, "": note})
    if rows:
        pl.DataFrame(rows).write_csv(path)
