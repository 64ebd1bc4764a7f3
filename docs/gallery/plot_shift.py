"""
Inputs that have moved
======================

The molecules whose errors are known are light, and those that uncertainties are wanted
for are heavy. A recalibrator that does not know about mass learns from the light ones
what is wrong for the heavy ones, unless rows are weighted.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss

rng = np.random.default_rng(1)
known, pool = (ss.datasets.make_molecules(n, seed=n) for n in (2000, 20_000))
heavy = np.exp((pool.mass - pool.mass.mean()) / pool.mass.std())
new = rng.choice(len(pool), 2000, replace=False, p=heavy / heavy.sum())

# %%
# The weights come from inputs alone: a classifier learns to tell new rows from known
# ones. How many rows remain in effect says what they cost.

inputs = [
    np.column_stack([each.uncertainty[rows], each.mass[rows]])
    for each, rows in ((known, slice(None)), (pool, new))
]
weights = ss.covariate_weights(*inputs)
print(weights)

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
bins = np.linspace(pool.mass.min(), pool.mass.max(), 40)
style = {"bins": bins, "histtype": "step", "density": True, "linewidth": 1.8}
ax.hist(known.mass, label="known", **style)
ax.hist(known.mass, weights=weights.weights, label="known, weighted", **style)
ax.hist(pool.mass[new], label="new", **style)
ax.set_xlabel("mass / u")
ax.set_ylabel("density")
ax.legend()

# %%
# Weighted, the known rows stand for the new ones: one factor, and the limits of
# intervals, are right for these.

error, new_u = pool.error[new], pool.uncertainty[new]
fit, held_out = slice(0, None, 2), slice(1, None, 2)
for name, w in (("alike", np.ones(2000)), ("weighted", weights.weights)):
    scaler = ss.Recalibrator(ss.TemperatureScaling())
    scaler.fit(known.uncertainty[fit], known.error[fit], sample_weight=w[fit])
    scaler.conformalize(
        known.uncertainty[held_out], known.error[held_out], sample_weight=w[held_out]
    )
    zms = ss.zms(error, scaler.predict(new_u))
    inside = ss.picp(error, scaler.predict_interval(new_u, 0.9))
    print(f"{name:<9} <Z²> {zms:.2f}   90 % limits hold {inside:.1%}")
