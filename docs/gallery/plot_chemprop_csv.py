"""
I have a CSV from chemprop
==========================

``chemprop predict --uncertainty-method ensemble`` (or ``mve``, ``evidential-total``,
``dropout``) writes a CSV with a column of predictions under the name of the target, and
one of *variances* under the same name with ``_unc`` at its end. This page takes such a
file to recalibrated standard deviations.
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale import chemistry, plots
from sigmascale.exceptions import CandidateDroppedWarning

# %%
# The files
# ---------
#
# This page has no chemprop, and makes up two files like those it reads and writes:
# ``measured.csv`` with known values, and ``measured_preds.csv`` with what was predicted
# for the same molecules. Three things to know about the latter:
#
# - the predictions *replace* the measured values, which have the same name, so that
#   both files are needed;
# - ``_unc`` is a variance: take the square root;
# - variances are rounded to six decimals, so that small ones may be 0. They are raised
#   to the smallest other one, with a warning.
#
# Chemprop 1 wrote ``logS_ensemble_uncal_var`` in place of ``logS_unc``.

folder = Path(tempfile.mkdtemp())
made_up = ss.datasets.make_molecules(6000, seed=11)
atoms = [chemistry.composition(formula) for formula in made_up.formula]
molecules = pl.DataFrame(
    {
        "smiles": [
            "".join(a * n for a, n in each.items() if a != "H") for each in atoms
        ],
        "formula": made_up.formula,
        "logS": np.random.default_rng(0).normal(-3.0, 2.0, len(made_up)),
    }
)
molecules.write_csv(folder / "measured.csv")
molecules.with_columns(
    logS=pl.col("logS") - 20 * made_up.error,
    logS_unc=pl.Series((20 * made_up.uncertainty) ** 2).round(6),
).write_csv(folder / "measured_preds.csv")

# %%
# From files to errors and uncertainties
# --------------------------------------
#
# The molecules must be others than those that the model was trained on: its validation
# or test set. The heavier a molecule, the harder it may be to predict, so that the mass
# is worth a column.

measured = pl.read_csv(folder / "measured.csv")
predicted = pl.read_csv(folder / "measured_preds.csv")
table = predicted.select(
    u=pl.col("logS_unc").sqrt(),
    mass=pl.Series(chemistry.describe_formulas(predicted["formula"]).mass),
)
error = (measured["logS"] - predicted["logS"]).to_numpy()
calibration, test = slice(0, 3000), slice(3000, None)
mass = {"mass": table["mass"][test]}
print(ss.validate(error[test], table["u"][test], features=mass))

# %%
# Recalibrate
# -----------
#
# A candidate that fails in cross-validation is dropped with a warning. The table says
# so, too, and we silence the warning.

warnings.simplefilter("ignore", CandidateDroppedWarning)
scaler = ss.SelectedScaling().fit(table[calibration], error[calibration])
print(scaler.explain())
u_new = scaler.predict(table[test])
print(ss.validate(error[test], u_new, features=mass))

# %%
# The recalibrator is saved once, and used for every file that chemprop writes with the
# same model from now on.

ss.save(scaler, folder / "scaler.json")
new = predicted[test].with_columns(
    logS_std=pl.Series(ss.load(folder / "scaler.json").predict(table[test]))
)
new.write_csv(folder / "recalibrated.csv")
print(new.head(3))

# %%
# The same check as a picture, against the mass:

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, u, title in (
    (axes[0], table["u"][test], "as chemprop wrote them"),
    (axes[1], u_new, "recalibrated"),
):
    local = ss.local_zms(error[test], u, by=table["mass"][test], n_bins=30)
    plots.plot_local_zms(local, ax=ax)
    ax.set(title=title, xlabel="mass", ylim=(0.1, 5))
