"""
Right on average, wrong for every molecule
==========================================

Uncertainties can be perfect on average and at every level of uncertainty, and still be
wrong for each single molecule. This is why adaptivity is a question of its own.

We make a set in which we know the truth: heavy molecules have errors twice as large as
light ones, and the model does not know it. Its uncertainties depend on something else,
so that each level of uncertainty holds as many light as heavy molecules.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale import plots

rng = np.random.default_rng(2)
n = 10_000
mass = rng.uniform(20, 140, n)
u = rng.gamma(8.0, 0.1, n)
factor = np.where(mass > 80, 2.0, 1.0)
error = rng.normal(scale=u * factor / np.sqrt(np.mean(factor**2)))

verdicts = ss.validate(error, u, {"mass": mass})
print(verdicts.summary)

# %%
# The left panel looks perfect: whatever the uncertainty, :math:`\langle Z^2 \rangle` is
# 1. The right panel shows the same errors and the same uncertainties, sorted by mass:
# every single error bar is wrong, too large for light molecules and too small for
# heavy ones. The two mistakes cancel in each bin of u.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, result in zip(axes, verdicts.local.values(), strict=True):
    plots.plot_local_zms(result, ax=ax)

# %%
# No function of u can mend this: u knows nothing of mass. A recalibrator that sees the
# mass can.

X = np.column_stack([u, mass])
half = n // 2
for scaler in (ss.IsotonicScaling(), ss.RakedScaling()):
    scaled = scaler.fit(X[:half], error[:half]).predict(X[half:])
    after = ss.validate(error[half:], scaled, {"mass": mass[half:]})
    print(f"{type(scaler).__name__}: {after.summary}")
