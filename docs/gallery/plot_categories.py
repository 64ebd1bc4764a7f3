"""
Kinds of molecules
==================

Some kinds of input have names rather than numbers: a phase, a functional group, a
laboratory. Labels make categories, and each can be checked and corrected on its own.
Here, they are the numbers of oxygen and nitrogen atoms of molecules.
"""

import warnings

import matplotlib.pyplot as plt
import polars as pl

import sigmascale as ss
from sigmascale import plots
from sigmascale.exceptions import FewerBinsWarning, UnseenCategoryWarning

data = ss.datasets.make_molecules(12_000, seed=9)
print(data.formula[:4], data.group[:4])

# %%
# Categories with a handful of rows say nothing about themselves:
# :class:`~sigmascale.CategoryScaling` gives them the factor of all rows, as it does to
# labels that it has never seen, and the interval of a mean needs at least five rows.
# Both are said in warnings, which we silence here because we expect them.

warnings.simplefilter("ignore", FewerBinsWarning)
warnings.simplefilter("ignore", UnseenCategoryWarning)

table = pl.DataFrame({"u": data.uncertainty, "group": data.group})
half = len(data) // 2
scaler = ss.CategoryScaling(by="group", min_size=50)
scaler = scaler.fit(table[:half], data.error[:half])
*factors, other = scaler.factors_
for label, factor in zip(scaler.categories_.labels, factors, strict=True):
    print(f"{label}  {factor:.2f}")
print(f"other {other:.2f}")

# %%
# The test half, before and after. Categories are sorted by their label; the more oxygen
# and nitrogen, the smaller the uncertainties are against the errors.

group, error = data.group[half:], data.error[half:]
common = pl.Series(group).is_in(list(scaler.categories_.labels)).to_numpy()
figure, axes = plt.subplots(2, 1, figsize=(9, 6.5), layout="constrained", sharex=True)
for ax, u, title in (
    (axes[0], data.uncertainty[half:], "before"),
    (axes[1], scaler.predict(table[half:]), "after"),
):
    local = ss.local_zms(error[common], u[common], by=group[common])
    plots.plot_local_zms(local, ax=ax)
    ax.set_title(title)
axes[0].set_xlabel("")
axes[1].set_xlabel("group")

# %%
# One factor per category mends these. It does not make the set consistent: within
# each, u is as wrong as before. :class:`~sigmascale.RakedScaling` takes labels
# beside numbers, and mends both at once.

raked = ss.RakedScaling().fit(table[:half], data.error[:half])
for name, fitted in (("by category", scaler), ("raked", raked)):
    card = ss.scorecard(error, fitted.predict(table[half:]), {"group": group})
    print(f"{name:<11} S_u {card.s['u']:.2f}")
