"""
A deep ensemble
===============

A few neural networks, trained from different starts, agree where there are data and
disagree where there are none. How much they disagree is a good hint, and a bad number:
it knows nothing of noise. Here are five small networks from scikit-learn; large ones
from elsewhere are no different, and a function would hand over their spread.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sigmascale as ss
from sigmascale import plots

warnings.simplefilter("ignore", ConvergenceWarning)  # short training is enough here

rng = np.random.default_rng(3)


def measure(n):
    """Return n rows, most of them near the origin, with noise of size 0.3."""
    X = rng.standard_t(4, size=(n, 3))
    truth = np.tanh(X[:, 0]) * X[:, 1] + np.cos(X[:, 2])
    return X, truth + rng.normal(scale=0.3, size=n)


X, y = measure(800)
X_test, y_test = measure(3000)

# %%
# Bagging without resampling is an ensemble: each member gets all rows, and a random
# start of its own.

network = MLPRegressor(hidden_layer_sizes=(30,), max_iter=150, learning_rate_init=0.01)
ensemble = make_pipeline(
    StandardScaler(),
    BaggingRegressor(network, n_estimators=5, bootstrap=False, random_state=0),
)
model = ss.RecalibratedRegressor(ensemble).fit(X, y)
raw = model.calibration_table_
print(f"<Z²> of the ensemble's spread: {ss.zms(model.calibration_error_, raw):.1f}")
print(model.recalibrator_.describe())

# %%
# The linear law u → sqrt(a² u² + b²) is made for this case: a stretches the spread, and
# b is the noise that no ensemble can see. The picture shows the errors of new rows with
# the limits ± 2 u, which should hold 95 % of them at every uncertainty.

prediction, std = model.predict(X_test, return_std=True)
error = y_test - prediction
members = model.regressor_[-1].estimators_
scaled = model.regressor_[0].transform(X_test)
spread = np.std([member.predict(scaled) for member in members], axis=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, u, title in ((axes[0], spread, "spread"), (axes[1], std, "recalibrated")):
    plots.plot_errors(error, u, ax=ax)
    ax.set_title(f"{title}: {np.mean(np.abs(error) < 2 * u):.0%} within ± 2 u")
    ax.set(xscale="log", xlim=(0.01, 2), ylim=(-2, 2))
