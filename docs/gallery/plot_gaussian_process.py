"""
A Gaussian process with the wrong noise
=======================================

A Gaussian process is an honest model: if its assumptions hold, so do its uncertainties.
They seldom do. Here the noise grows along x, and the model assumes that it is the same
everywhere. Knowing the input, a recalibrator can put this right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import sigmascale as ss

rng = np.random.default_rng(1)


def measure(n):
    """Return n points of a sine with noise that grows along x."""
    x = np.sort(rng.uniform(0, 10, n))
    return x[:, None], np.sin(x) + rng.normal(scale=0.05 + 0.06 * x)


X, y = measure(400)
X_test, y_test = measure(1000)
process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), normalize_y=True)

# %%
# ``features`` says which columns of X the recalibrator may look at besides the
# uncertainty. Without any, it cannot see where the uncertainties are wrong.

average = ss.RecalibratedRegressor(process).fit(X, y)
adaptive = ss.RecalibratedRegressor(process, features=[0]).fit(X, y)
for name, model in (("without features", average), ("with x", adaptive)):
    prediction, std = model.predict(X_test, return_std=True)
    error = y_test - prediction
    inside = ss.picp(y_test, model.predict_interval(X_test, coverage=0.9))
    print(
        f"{name:<17} NLL {ss.nll(error, std):.3f}   <Z²> {ss.zms(error, std):.2f}"
        f"   inside the 90 % limits: {inside:.0%}"
    )

# %%
# Both pairs of limits hold at least 90 % of the points. Only one of them does so
# everywhere. That <Z²> is below 1 is no accident: what a few hundred rows teach about
# x is uncertain itself, and the recalibrator stays on the safe side.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
grid = np.linspace(0, 10, 300)[:, None]
for ax, model, title in (
    (axes[0], average, "without features"),
    (axes[1], adaptive, "with x as a feature"),
):
    low, high = model.predict_interval(grid, coverage=0.9).T
    ax.plot(X_test, y_test, ".", color="#999999", markersize=3)
    ax.fill_between(grid[:, 0], low, high, color="#0072B2", alpha=0.25, linewidth=0)
    ax.plot(grid, model.predict(grid), color="#0072B2")
    ax.set(title=title, xlabel="x")
axes[0].set_ylabel("y")
