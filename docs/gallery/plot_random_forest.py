"""
A random forest and its intervals
=================================

The trees of a random forest are trained on resampled data, and the spread of their
predictions is often taken for an uncertainty. It says how sure the forest is of its
mean, and knows little of the noise. Recalibrated, it becomes the size of an error, and
prediction intervals follow from it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import sigmascale as ss
from sigmascale import plots

rng = np.random.default_rng(0)


def measure(n):
    """Return n rows whose target is noisy where the second input is large."""
    X = rng.uniform(size=(n, 4))
    truth = 10 * np.sin(3 * X[:, 0]) * X[:, 2] + 5 * X[:, 3]
    return X, truth + rng.normal(scale=0.3 + 2 * X[:, 1] ** 2)


X, y = measure(1500)
X_test, y_test = measure(3000)

# %%
# Errors come from forests that have not seen the rows in question, in five folds; the
# forest that predicts is then grown on all rows. The out-of-fold errors and
# uncertainties remain in the model, so that we can see what was wrong.

forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=0)
model = ss.RecalibratedRegressor(forest, features=[1]).fit(X, y)
raw = np.asarray(model.calibration_table_)[:, 0]
print(f"<Z²> of the forest itself: {ss.zms(model.calibration_error_, raw):.2f}")
print(model.recalibrator_.describe())

# %%
# On new data, before and after, in bins of the uncertainty. The spread of the trees is
# too small, and most so where they agree. The recalibrated uncertainties are too large
# by a few per cent: a forest grown on all rows is better than those of the folds.

spread = np.std([tree.predict(X_test) for tree in model.regressor_.estimators_], axis=0)
prediction, std = model.predict(X_test, return_std=True)
error = y_test - prediction
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, u, title in (
    (axes[0], spread, "spread of trees"),
    (axes[1], std, "recalibrated"),
):
    plots.plot_local_zms(ss.local_zms(error, u, n_bins=30), ax=ax)
    ax.set(title=title, ylim=(0.4, 4))

# %%
# Intervals from the z-scores of unseen rows hold the share of rows that was asked for,
# whatever the distribution of errors.

for coverage in (0.5, 0.8, 0.9, 0.95):
    interval = model.predict_interval(X_test, coverage=coverage)
    print(f"asked for {coverage:.0%}, found {ss.picp(y_test, interval):.1%}")
