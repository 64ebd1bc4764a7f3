"""
Do large uncertainties go with large errors?
============================================

Before anything is recalibrated: do the uncertainties say anything at all? Remove the
most uncertain predictions first and watch the error of those that are left. If it
falls, the ranking is useful. This is a confidence curve.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale import plots

data = ss.datasets.make_molecules(5000, seed=6)
as_given = ss.confidence_curve(data.error, data.uncertainty)

# %%
# To compare: the same uncertainties dealt out at random, so that they say nothing of
# the errors, and those of a recalibrator that has learned from another set.

shuffled = np.random.default_rng(0).permutation(data.uncertainty)
useless = ss.confidence_curve(data.error, shuffled)

other = ss.datasets.make_molecules(5000, seed=7)
scaler = ss.BoostedScaling().fit(other.X, other.error)
recalibrated = ss.confidence_curve(data.error, scaler.predict(data.X))

for name, curve in (
    ("as given", as_given),
    ("shuffled", useless),
    ("recalibrated", recalibrated),
):
    left = curve.error[50]
    print(f"{name:<12} RMSE of the most certain half: {left / curve.error[0]:.0%}")

# %%
# The curve depends on the order of the uncertainties alone. One factor for all, or any
# increasing function of u, leaves it as it is. A recalibrator that sees the features
# changes the order, and can make the curve steeper.
#
# The grey band is where the curve of honest uncertainties lies, if errors are normal:
# the *probabilistic reference*. The *oracle* removes rows by their true error. No
# honest uncertainty follows it, because nobody knows how an error will turn out.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, curve, title in zip(
    axes,
    (useless, as_given, recalibrated),
    ("shuffled", "as given", "recalibrated"),
    strict=True,
):
    plots.plot_confidence_curve(curve, ax=ax)
    ax.set_title(title)
axes[0].set_ylim(0, 1.35 * max(c.reference_high.max() for c in (as_given, useless)))
