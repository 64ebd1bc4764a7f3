"""The metrics of uncertainty-toolbox 0.1.1, under their names, from our functions.

``import sigmascale.compat.uncertainty_toolbox as uct`` takes the place of
``import uncertainty_toolbox as uct`` where metrics are concerned: names, order of
arguments and numbers are the same. What it draws and recalibrates is done otherwise
here: see :mod:`sigmascale.plots` and the recalibrators.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from scipy import special

from .._support.checks import Floats, check_choice, check_column, check_fraction
from ..exceptions import InvalidInputError
from ..judging import metrics as ours
from ..judging.coverage import interval_scores, normal_interval, picp
from ..judging.reliability import Curve, area_between, depths_of, fractions_within
from ..judging.scores import nll
from ..predictions import Predictions, as_predictions

__all__ = [
    "adversarial_group_calibration",
    "check_score",
    "crps_gaussian",
    "get_all_accuracy_metrics",
    "get_all_adversarial_group_calibration",
    "get_all_average_calibration",
    "get_all_metrics",
    "get_all_scoring_rule_metrics",
    "get_all_sharpness_metrics",
    "get_prediction_interval",
    "get_proportion_in_interval",
    "get_proportion_lists",
    "get_proportion_lists_vectorized",
    "get_quantile",
    "interval_score",
    "mean_absolute_calibration_error",
    "miscalibration_area",
    "nll_gaussian",
    "prediction_error_metrics",
    "root_mean_squared_calibration_error",
    "sharpness",
]

metrics = sys.modules[__name__]  # for those who write uct.metrics.get_all_metrics

_KINDS = {"mean_abs": "mean absolute", "root_mean_sq": "root mean square"}


def _rows(y_pred: Any, y_std: Any, y_true: Any) -> Predictions:
    return as_predictions(Predictions(y_pred, y_std, y_true=y_true))


def prediction_error_metrics(y_pred: Any, y_true: Any) -> dict[str, float]:
    """Return MAE, RMSE, median absolute error, MARPD, R² and correlation."""
    from sklearn import metrics

    pred, true = check_column(y_pred, "y_pred"), check_column(y_true, "y_true")
    relative = 2 * np.abs(true - pred) / (np.abs(pred) + np.abs(true))
    return {
        "mae": float(metrics.mean_absolute_error(true, pred)),
        "rmse": float(metrics.root_mean_squared_error(true, pred)),
        "mdae": float(metrics.median_absolute_error(true, pred)),
        "marpd": float(relative.mean() * 100),
        "r2": float(metrics.r2_score(true, pred)),
        "corr": float(np.corrcoef(true, pred)[0, 1]),
    }


def sharpness(y_std: Any) -> float:
    """Return the root mean squared uncertainty."""
    return ours.sharpness(y_std)


def get_proportion_lists(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    recal_model: Any = None,
    prop_type: Curve = "interval",
) -> tuple[Floats, Floats]:
    """Return expected and observed proportions: the calibration curve."""
    rows = _rows(y_pred, y_std, y_true)
    check_choice(prop_type, "prop_type", ("interval", "quantile"))
    expected = np.linspace(0, 1, num_bins)
    levels = expected if recal_model is None else recal_model.predict(expected)
    mirrored = rows.changed(error=-rows.errors)  # quantiles of y_pred - y_true there
    return expected, fractions_within(levels, depths_of(mirrored, prop_type))


def get_proportion_lists_vectorized(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    recal_model: Any = None,
    prop_type: Curve = "interval",
) -> tuple[Floats, Floats]:
    """Return expected and observed proportions, as `get_proportion_lists` does."""
    return get_proportion_lists(y_pred, y_std, y_true, num_bins, recal_model, prop_type)


def get_proportion_in_interval(
    y_pred: Any, y_std: Any, y_true: Any, quantile: float
) -> float:
    """Return the proportion of truths within the interval of a nominal coverage."""
    rows = _rows(y_pred, y_std, y_true)
    return picp(rows.errors, normal_interval(rows.uncertainty, quantile))


def get_prediction_interval(
    y_pred: Any, y_std: Any, quantile: Any, recal_model: Any = None
) -> Namespace:
    """Return the `lower` and `upper` limits of intervals of a nominal coverage."""
    (level,) = _recalibrated(quantile, recal_model)
    lower, upper = check_column(y_pred, "y_pred") + normal_interval(y_std, level).T
    return Namespace(upper=upper, lower=lower)


def get_quantile(
    y_pred: Any, y_std: Any, quantile: Any, recal_model: Any = None
) -> Floats:
    """Return a quantile of each prediction."""
    (level,) = _recalibrated(quantile, recal_model)
    rows = Predictions(y_pred, y_std)
    found: Floats = rows.y_pred + rows.uncertainty * special.ndtri(level)
    return found


def _recalibrated(quantile: Any, recal_model: Any) -> Floats:
    level = np.atleast_1d(check_fraction(np.asarray(quantile).item(), "quantile"))
    return level if recal_model is None else np.asarray(recal_model.predict(level))


def root_mean_squared_calibration_error(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    vectorized: bool = False,
    recal_model: Any = None,
    prop_type: Curve = "interval",
) -> float:
    """Return the rms distance of the calibration curve from the diagonal."""
    expected, observed = get_proportion_lists(
        y_pred, y_std, y_true, num_bins, recal_model, prop_type
    )
    return float(np.sqrt(np.mean((observed - expected) ** 2)))


def mean_absolute_calibration_error(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    vectorized: bool = False,
    recal_model: Any = None,
    prop_type: Curve = "interval",
) -> float:
    """Return the mean distance of the calibration curve from the diagonal."""
    expected, observed = get_proportion_lists(
        y_pred, y_std, y_true, num_bins, recal_model, prop_type
    )
    return float(np.mean(np.abs(observed - expected)))


def miscalibration_area(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    vectorized: bool = False,
    recal_model: Any = None,
    prop_type: Curve = "interval",
) -> float:
    """Return the area between the calibration curve and the diagonal."""
    expected, observed = get_proportion_lists(
        y_pred, y_std, y_true, num_bins, recal_model, prop_type
    )
    return area_between(observed - expected)


def adversarial_group_calibration(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    cali_type: Literal["mean_abs", "root_mean_sq"],
    prop_type: Curve = "interval",
    num_bins: int = 100,
    num_group_bins: int = 10,
    draw_with_replacement: bool = False,
    num_trials: int = 10,
    num_group_draws: int = 10,
    verbose: bool = False,
) -> Namespace:
    """Return `group_size`, `score_mean` and `score_stderr` of the worst groups.

    Draws depend on no global state: the same rows give the same numbers. What is called
    the standard error is, as there, the standard deviation over trials.
    """
    if prop_type != "interval" or draw_with_replacement:
        msg = (
            'Groups are drawn without replacement and judged by prop_type="interval"; '
            f"found prop_type={prop_type!r} and "
            f"draw_with_replacement={draw_with_replacement!r}."
        )
        raise InvalidInputError(msg)
    found = ours.adversarial_group_calibration(
        _rows(y_pred, y_std, y_true),
        kind=_KINDS[check_choice(cali_type, "cali_type", tuple(_KINDS))],  # type: ignore[arg-type]
        n_levels=num_bins,
        n_sizes=num_group_bins,
        n_trials=num_trials,
        n_groups=num_group_draws,
    )
    return Namespace(
        group_size=found.fraction, score_mean=found.worst, score_stderr=found.spread
    )


def nll_gaussian(y_pred: Any, y_std: Any, y_true: Any, scaled: bool = True) -> float:
    """Return the negative log-likelihood, the mean or (not `scaled`) the sum."""
    rows = _rows(y_pred, y_std, y_true)
    return nll(rows) * (1 if scaled else rows.n_rows)


def crps_gaussian(y_pred: Any, y_std: Any, y_true: Any, scaled: bool = True) -> float:
    """Return the continuous ranked probability score, the mean or the sum."""
    rows = _rows(y_pred, y_std, y_true)
    return ours.crps(rows) * (1 if scaled else rows.n_rows)


def check_score(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    scaled: bool = True,
    start_q: float = 0.01,
    end_q: float = 0.99,
    resolution: int = 99,
) -> float:
    """Return the pinball loss of quantiles, their mean or (not `scaled`) their sum."""
    from sklearn.metrics import mean_pinball_loss

    rows = _rows(y_pred, y_std, y_true)
    losses = [
        mean_pinball_loss(rows.errors, rows.uncertainty * special.ndtri(q), alpha=q)
        for q in np.linspace(start_q, end_q, resolution)
    ]
    return float(np.mean(losses) if scaled else np.sum(losses))


def interval_score(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    scaled: bool = True,
    start_p: float = 0.01,
    end_p: float = 0.99,
    resolution: int = 99,
) -> float:
    """Return the Winkler score of intervals, their mean or (not `scaled`) their sum."""
    rows = _rows(y_pred, y_std, y_true)
    scores = [
        interval_scores(
            rows.errors, normal_interval(rows.uncertainty, p), coverage=p
        ).interval_score
        for p in np.linspace(start_p, end_p, resolution)
    ]
    return float(np.mean(scores) if scaled else np.sum(scores))


def get_all_accuracy_metrics(
    y_pred: Any, y_true: Any, verbose: bool = True
) -> dict[str, float]:
    """Return all metrics of accuracy."""
    return _told(prediction_error_metrics(y_pred, y_true), verbose)


def get_all_average_calibration(
    y_pred: Any, y_std: Any, y_true: Any, num_bins: int, verbose: bool = True
) -> dict[str, float]:
    """Return all metrics of average calibration."""
    rows = (y_pred, y_std, y_true, num_bins)
    found = {
        "rms_cal": root_mean_squared_calibration_error(*rows),
        "ma_cal": mean_absolute_calibration_error(*rows),
        "miscal_area": miscalibration_area(*rows),
    }
    return _told(found, verbose)


def get_all_adversarial_group_calibration(
    y_pred: Any, y_std: Any, y_true: Any, num_bins: int, verbose: bool = True
) -> dict[str, dict[str, Floats]]:
    """Return both metrics of adversarial group calibration."""
    found = {}
    kinds: dict[str, Literal["mean_abs", "root_mean_sq"]] = {
        "ma_adv_group_cal": "mean_abs",
        "rms_adv_group_cal": "root_mean_sq",
    }
    for name, kind in kinds.items():
        groups = adversarial_group_calibration(
            y_pred, y_std, y_true, kind, num_bins=num_bins
        )
        found[name] = {
            "group_sizes": groups.group_size,
            "adv_group_cali_mean": groups.score_mean,
            "adv_group_cali_stderr": groups.score_stderr,
        }
    _told({k: v["adv_group_cali_mean"].max() for k, v in found.items()}, verbose)
    return found


def get_all_sharpness_metrics(y_std: Any, verbose: bool = True) -> dict[str, float]:
    """Return the sharpness."""
    return _told({"sharp": sharpness(y_std)}, verbose)


def get_all_scoring_rule_metrics(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    resolution: int,
    scaled: bool,
    verbose: bool = True,
) -> dict[str, float]:
    """Return all proper scoring rules."""
    rows = (y_pred, y_std, y_true, scaled)
    found = {
        "nll": nll_gaussian(*rows),
        "crps": crps_gaussian(*rows),
        "check": check_score(*rows, resolution=resolution),
        "interval": interval_score(*rows, resolution=resolution),
    }
    return _told(found, verbose)


def get_all_metrics(
    y_pred: Any,
    y_std: Any,
    y_true: Any,
    num_bins: int = 100,
    resolution: int = 99,
    scaled: bool = True,
    verbose: bool = True,
) -> dict[str, Any]:
    """Return all metrics, in the groups and under the keys of uncertainty-toolbox.

    Parameters
    ----------
    y_pred, y_std, y_true : array-like of shape (n,)
        Predictions, standard uncertainties and true values.
    num_bins : int, default 100
        Levels of the calibration curve.
    resolution : int, default 99
        Levels of the check score and the interval score.
    scaled : bool, default True
        Whether scores are means rather than sums.
    verbose : bool, default True
        Whether to print them, too.

    Returns
    -------
    dict
        With the keys "accuracy", "avg_calibration", "adv_group_calibration",
        "sharpness" and "scoring_rule".

    Examples
    --------
    >>> import sigmascale.compat.uncertainty_toolbox as uct
    >>> rows = [1.0, 2.0, 3.0], [0.1, 0.2, 0.2], [1.1, 1.9, 3.2]
    >>> metrics = uct.get_all_metrics(*rows, verbose=False)
    >>> round(metrics["scoring_rule"]["crps"], 3)
    0.082
    """
    rows = y_pred, y_std, y_true
    return {
        "accuracy": get_all_accuracy_metrics(y_pred, y_true, verbose),
        "avg_calibration": get_all_average_calibration(*rows, num_bins, verbose),
        "adv_group_calibration": get_all_adversarial_group_calibration(
            *rows, num_bins, verbose
        ),
        "sharpness": get_all_sharpness_metrics(y_std, verbose),
        "scoring_rule": get_all_scoring_rule_metrics(
            *rows, resolution, scaled, verbose
        ),
    }


def _told(found: Mapping[str, float], verbose: bool) -> dict[str, float]:
    """Return metrics, after they are printed if that is wanted."""
    if verbose:
        for name, value in found.items():
            print(f"{name:<18} {value:.3f}")
    return dict(found)
