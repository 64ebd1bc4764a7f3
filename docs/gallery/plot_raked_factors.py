"""
Reading the factors of raking
=============================

:class:`~sigmascale.RakedScaling` multiplies each uncertainty by one factor for its bin
of u and one for its bin of every feature. The factors can be read like a table: they
say how wrong the model's uncertainties were, and where.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale import plots

data = ss.datasets.make_molecules(10_000, seed=4)
X = pl.DataFrame(
    {
        "u": data.uncertainty,
        "mass": data.mass,
        "hetero-atom fraction": data.heteroatom_fraction,
    }
)
scaler = ss.RakedScaling().fit(X, data.error)
print(f"{scaler.n_iter_} sweeps; a factor of {scaler.scale_:.3f} for all rows")

# %%
# These molecules are synthetic, so that we know the law behind them: the true spread
# is the product of a function of u, one of mass and one of the fraction of hetero-atoms
# (see :func:`~sigmascale.datasets.make_molecules`). The lines are what raking has
# learned from errors alone; the dotted curves are the truth, up to a constant.

truth = {
    "u": lambda u: (u / 0.02) ** -0.4,
    "mass": lambda m: np.exp(0.3 * np.tanh((m - 118) / 10)),
    "hetero-atom fraction": lambda x: np.exp(0.3 * np.tanh((x - 0.12) / 0.08)),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, (name, law) in zip(axes, truth.items(), strict=True):
    plots.plot_factors(scaler, name, ax=ax, label="learned")
    learned = scaler.factors_[name][1:]
    inside = np.linspace(*np.quantile(X[name], [0.01, 0.99]), 200)
    middle = np.exp(np.mean(np.log(learned)) - np.mean(np.log(law(X[name].to_numpy()))))
    ax.plot(inside, middle * law(inside), ":", color="#D55E00", label="truth")
    ax.legend()
