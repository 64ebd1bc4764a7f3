"""
Choosing a recalibrator
=======================

Which of the recalibrators should one use? :class:`~sigmascale.SelectedScaling` decides
by cross-validation on the calibration set, and says why. :func:`~sigmascale.compare`
shows what each of them does on a test set.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss

data = ss.datasets.make_molecules(6000, seed=3)
half = len(data) // 2
X, error = data.X, data.error

scaler = ss.SelectedScaling().fit(X[:half], error[:half])
print(scaler.explain())

# %%
# NLL is the negative log-likelihood of rows that were held back; lower is better. The
# choice is the simplest candidate within one standard error of the best: on data that
# need nothing more, it is a single factor.
#
# Now the test set, which no method has seen. The column *valid %* lists the percentage
# of valid bins of u, of mass and of the hetero-atom fraction.

methods = {
    "one factor": ss.TemperatureScaling(),
    "linear": ss.LinearScaling(),
    "isotonic": ss.IsotonicScaling(),
    "bins of u": ss.BinwiseScaling(20),
    "raked": ss.RakedScaling(),
    "boosted": ss.BoostedScaling(),
}
table = ss.compare(methods, (X[:half], error[:half]), (X[half:], error[half:]))
print(table)

# %%
# The picture stacks the parts of S_tot. Methods of u alone mend consistency (S_u) and
# leave adaptivity where it was; only those that see the features mend all. The line is
# what a perfectly calibrated set with errors of this shape would score: nothing can be
# expected below it.

target = ss.reference_scores(
    data.true_sigma[half:],
    {name: x[half:] for name, x in data.features.items()},
    distribution="empirical",
    error=error[half:],
    n_draws=200,
).mean["S_tot"]

names = list(methods)
cards = [table[name].test for name in names]
parts = {"S_cal": [card.s_cal for card in cards]}
parts |= {f"S_{x}": [card.s[x] for card in cards] for x in cards[0].s}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
left = np.zeros(len(names))
colours = ("#999999", "#0072B2", "#E69F00", "#D55E00")
labels = ("S_cal (average)", "S_u", "S of mass", "S of hetero-atom fraction")
for values, colour, label in zip(parts.values(), colours, labels, strict=True):
    ax.barh(names, values, left=left, color=colour, label=label)
    left += values
ax.axvline(target, color="black", linestyle="--", label="attainable")
ax.invert_yaxis()
ax.set_xlabel("S_tot on the test set (lower is better)")
ax.legend(fontsize="small")
