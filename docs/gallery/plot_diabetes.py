"""
Five regressors, recalibrated
=============================

:class:`~sigmascale.RecalibratedRegressor` takes any regressor that has uncertainties.
Here are five kinds of them on the diabetes data that come with scikit-learn: 442
patients, ten inputs, and a measure of how the disease went on. Some of the five know
how wrong they are, others do not. Does recalibration help those that need it, and does
it leave the others alone?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sigmascale as ss
from sigmascale.exceptions import CandidateDroppedWarning

warnings.simplefilter("ignore", ConvergenceWarning)  # short training is enough here
warnings.simplefilter("ignore", CandidateDroppedWarning)

# %%
# Where uncertainties come from
# -----------------------------
#
# A Gaussian process and Bayesian ridge return a standard deviation with their
# predictions. The trees of a random forest, and neural networks trained from different
# starts, disagree with each other, and the spread of their predictions is an
# uncertainty. All this is found automatically. For gradient boosting we fit the 16th,
# 50th and 84th percentiles, which are one standard deviation apart where errors are
# normal, and say in a function what their uncertainty is. Only the median makes the
# prediction: its weight is 1, that of the others 0.


def half_range(regressor, X):
    """Return half the distance of the outer percentiles."""
    low, high = (
        regressor.named_estimators_[name].predict(X) for name in ("p16", "p84")
    )
    return np.abs(high - low) / 2


def percentile(p):
    """Return a gradient-boosted model of a percentile."""
    return GradientBoostingRegressor(
        loss="quantile", alpha=p / 100, n_estimators=30, max_depth=2, random_state=0
    )


network = MLPRegressor(
    hidden_layer_sizes=(20,), max_iter=60, learning_rate_init=0.05, alpha=1.0
)
regressors = {
    "Gaussian process": make_pipeline(
        StandardScaler(),
        GaussianProcessRegressor(
            ConstantKernel(1.0) * RBF(5.0) + WhiteKernel(1.0), normalize_y=True
        ),
    ),
    "Bayesian ridge": BayesianRidge(),
    "random forest": RandomForestRegressor(30, min_samples_leaf=3, random_state=0),
    "quantile boosting": VotingRegressor(
        [(f"p{p}", percentile(p)) for p in (16, 50, 84)], weights=[0, 1, 0]
    ),
    "deep ensemble": make_pipeline(
        StandardScaler(),
        BaggingRegressor(network, n_estimators=5, bootstrap=False, random_state=0),
    ),
}

# %%
# Ten splits
# ----------
#
# Each regressor is fitted, with and without recalibration, on three quarters of the
# patients, and judged on the others by the negative log-likelihood (NLL) of its errors:
# lower is better. Recalibration changes uncertainties, never predictions, so that the
# difference is due to the uncertainties alone. Raw ones come from the same model with
# :class:`~sigmascale.NoScaling` in its recalibrator.


def study(regressor, uncertainty="auto", n_splits=10):
    """Return NLL and <Z²> of the test sets, raw and recalibrated."""
    X, y = load_diabetes(return_X_y=True)
    nll, zms = np.empty((2, n_splits)), np.empty((2, n_splits))
    for split in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=split)
        model = ss.RecalibratedRegressor(clone(regressor), uncertainty=uncertainty)
        model.fit(X_train, y_train)
        raw = ss.RecalibratedRegressor(
            FrozenEstimator(model.regressor_),
            ss.Recalibrator(ss.NoScaling(), law="normal"),
            uncertainty=uncertainty,
        ).fit(X_train, y_train)
        for i, each in enumerate((raw, model)):
            prediction, std = each.predict(X_test, return_std=True)
            nll[i, split] = ss.nll(y_test - prediction, std)
            zms[i, split] = ss.zms(y_test - prediction, std)
    return nll, zms


results = {
    name: study(regressor, half_range if name == "quantile boosting" else "auto")
    for name, regressor in regressors.items()
}

print(f"{'':<18}{'<Z²>':>14}{'NLL':>16}")
print(f"{'':<18}{'raw':>8}{'new':>6}{'raw':>10}{'new':>7}   gain")
for name, (nll, zms) in results.items():
    gain = nll[0] - nll[1]
    noise = gain.std(ddof=1) / np.sqrt(gain.size)
    print(
        f"{name:<18}{zms[0].mean():>8.2f}{zms[1].mean():>6.2f}"
        f"{nll[0].mean():>10.3f}{nll[1].mean():>7.3f}"
        f"   {gain.mean():.3f} ± {noise:.3f}"
    )

# %%
# A mean squared z-score <Z²> of 1 is right on average. The Gaussian process, Bayesian
# ridge and the percentiles had it, and lose nothing. The trees of the forest and, much
# more so, the networks agree with each other more than with the truth: after
# recalibration, their uncertainties are as good as those of the others.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
rows = np.arange(len(results))[::-1]
for i, (label, colour) in enumerate((("raw", "#D55E00"), ("recalibrated", "#0072B2"))):
    for ax, what in zip(axes, (0, 1), strict=True):
        values = [result[what][i].mean() for result in results.values()]
        ax.plot(values, rows, "Xo"[i], color=colour, markersize=8, label=label)
axes[0].set(xlim=(5.35, 5.75), xlabel="NLL of the test set (lower is better)")
axes[0].set_yticks(rows, results)
raw = results["deep ensemble"][0][0].mean()
axes[0].text(
    5.74, rows[-1], f"raw: {raw:.0f} →", color="#D55E00", ha="right", va="center"
)
axes[1].set(xscale="log", xlabel="$⟨Z^2⟩$ of the test set (1 is right)")
axes[1].axvline(1, color="#999999", linewidth=0.8, zorder=1)
axes[1].legend()
