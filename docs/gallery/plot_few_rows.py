"""
How many rows does a recalibrator need?
=======================================

Errors with known reference values are expensive. With a few dozen of them, which
recalibrator is worth fitting? The synthetic molecules have a known truth, so that we
can measure how far each result is from it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale.exceptions import FewerBinsWarning

warnings.simplefilter("ignore", FewerBinsWarning)

test = ss.datasets.make_molecules(5000, seed=100)
methods = {
    "one factor": ss.TemperatureScaling(),
    "linear": ss.LinearScaling(),
    "isotonic": ss.IsotonicScaling(),
    "40 bins of u": ss.BinwiseScaling(40),
    "raked": ss.RakedScaling(),
    "boosted": ss.BoostedScaling(),
}
sizes = [50, 150, 500, 1500, 4000]
repeats = 3


def distance(u):
    """Return by what factor u is typically off the true standard deviation."""
    return np.exp(np.sqrt(np.mean(np.log(u / test.true_sigma) ** 2))) - 1


# %%
# Every method is fitted on sets of growing size, three of each.

result = {name: np.empty((len(sizes), repeats)) for name in methods}
for i, n in enumerate(sizes):
    for k in range(repeats):
        calibration = ss.datasets.make_molecules(n, seed=10 * k + i)
        for name, method in methods.items():
            u = method.fit(calibration.X, calibration.error).predict(test.X)
            result[name][i, k] = distance(u)
print(f"{'rows':<14}" + "".join(f"{n:>7}" for n in sizes))
for name, values in result.items():
    print(f"{name:<14}" + "".join(f"{v:>7.0%}" for v in values.mean(axis=1)))

# %%
# One factor and the linear law learn all they can from a few dozen rows. Forty bins of
# u are too many until there are thousands: thin bins lean on the average factor.
# Raking and boosting hold back while there is little to learn from, and go on learning
# where the others have stopped.

figure, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
colours = ("#999999", "#000000", "#56B4E9", "#0072B2", "#E69F00", "#D55E00")
for (name, values), colour, marker in zip(
    result.items(), colours, "osv^DX", strict=True
):
    ax.plot(sizes, 100 * values.mean(axis=1), marker=marker, color=colour, label=name)
ax.set(xscale="log", yscale="log", xlabel="rows to learn from")
ax.set_ylabel("typical distance from the truth (%)")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.minorticks_off()
ax.set_yticks([10, 20, 50, 100], ["10", "20", "50", "100"])
ax.legend()
