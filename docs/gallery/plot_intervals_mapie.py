"""
Intervals of MAPIE, right for every kind of input
=================================================

Conformal intervals hold what they claim over all rows. That says nothing of any kind of
row: with one width for all, intervals are too wide where a model is good, and too
narrow where it is not. Intervals go in as they are, with the coverage that they claim;
what comes out follows the inputs.
"""

import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import SplitConformalRegressor
from sklearn.ensemble import HistGradientBoostingRegressor

import sigmascale as ss
from sigmascale import plots

rng = np.random.default_rng(0)


def measure(n):
    """Return n rows whose noise grows with the second input."""
    X = rng.uniform(size=(n, 4))
    truth = 10 * np.sin(3 * X[:, 0]) * X[:, 2] + 5 * X[:, 3]
    return X, truth + rng.normal(scale=0.3 + 2 * X[:, 1] ** 2)


model = HistGradientBoostingRegressor(max_iter=60).fit(*measure(1000))
conformal = SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
conformal.conformalize(*measure(1000))


def predictions(n):
    """Return the intervals of new rows, and the truth."""
    X, y = measure(n)
    limits = conformal.predict_interval(X)[1][:, :, 0]
    return ss.Predictions.from_interval(
        *limits.T, coverage=0.9, y_true=y, features={"noise": X[:, 1]}
    )


calibration, test = predictions(1000), predictions(2000)
after = ss.Recalibrator().fit(calibration).apply(test)

# %%
# How much intervals of 90 % hold, in bins of the input that the noise depends on, and
# how wide they are on average.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
normal = ss.Distributions(test.y_pred, test.uncertainty)
for ax, d, title in (
    (axes[0], normal, "conformal"),
    (axes[1], after.distributions, "recalibrated"),
):
    interval = d.interval(0.9)
    of_error = interval - test.y_pred[:, None]
    u, noise = test.uncertainty, test.features["noise"]
    found = ss.local_coverage(test.error, u, of_error, by=noise, n_bins=15)
    plots.plot_local_coverage(found, ax=ax)
    held, width = ss.picp(test.truth, interval), np.diff(interval).mean()
    ax.set_title(f"{title}: {held:.1%} held, mean width {width:.2f}")
    ax.set(xlabel="second input", ylim=(0.6, 1.05))
