"""
A quantile model whose quantiles are wrong, and cross
=====================================================

Gradient boosting can predict quantiles, each by a model of its own. Together they claim
a distribution, which nobody has checked: on new rows their interval holds less than it
says, and here and there the lower quantile lies above the upper one.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import sigmascale as ss
from sigmascale import plots

rng = np.random.default_rng(0)


def measure(n):
    """Return n rows whose noise grows with the second input."""
    X = rng.uniform(size=(n, 4))
    truth = 10 * np.sin(3 * X[:, 0]) * X[:, 2] + 5 * X[:, 3]
    return X, truth + rng.normal(scale=0.05 + 2 * X[:, 1] ** 2)


X, y = measure(1000)
levels = [0.05, 0.5, 0.95]
models = [
    HistGradientBoostingRegressor(
        loss="quantile", quantile=level, learning_rate=0.2, random_state=0
    ).fit(X, y)
    for level in levels
]


def predictions(n):
    """Return what the models say of new rows, and the truth."""
    X, y = measure(n)
    quantiles = np.column_stack([model.predict(X) for model in models])
    return ss.Predictions.from_quantiles(
        levels,
        quantiles,
        y_true=y,
        features={"noise": X[:, 1]},
        minimum=0.05,  # of rows whose quantiles cross: see the warning
    )


with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    calibration, test = predictions(2000), predictions(3000)
print(*(f"{each.message}\n" for each in told))

# %%
# The prediction is the median, and the uncertainty the width of the outer pair, over
# that of a standard normal. Rows that the models have not seen say how far off it is,
# and set it right; what is left is a distribution for every row.

recalibrator = ss.Recalibrator().fit(calibration)
after = recalibrator.apply(test)
for name, p in (("before", test), ("after", after)):
    d = p.distributions or ss.Distributions(p.y_pred, p.uncertainty)
    held = ss.picp(p.truth, d.interval(0.9))
    print(
        f"{name}: intervals of 90 % hold {held:.1%}, CRPS {d.crps(p.truth).mean():.3f}"
    )

# %%
# The same in bins of the uncertainty: <Z²> should be 1 in each.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, p, title in ((axes[0], test, "quantile models"), (axes[1], after, "after")):
    plots.plot_local_zms(ss.local_zms(p, n_bins=30), ax=ax)
    ax.set(title=title, yscale="log", ylim=(0.4, 60))

# %%
# On the command line, with columns q05, q50 and q95:
#
# .. code-block:: console
#
#    $ sigmascale fit past.csv --reference y --quantile-columns 'q*' --minimum 0.05 \
#          --feature noise -o scaler.json
#    $ sigmascale apply scaler.json new.csv --quantiles 0.05,0.5,0.95 -o honest.csv
