"""
A monitor for drift
===================

A recalibrator is fitted once and used for months. A monitor takes true values as they
come in, and says when uncertainties no longer fit: since when, and by how much.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale import plots

fit, held_out, new = (ss.datasets.make_molecules(4000, seed=i) for i in (1, 2, 3))
scaler = ss.Recalibrator(ss.LinearScaling()).fit(fit.uncertainty, fit.error)
scaler.conformalize(held_out.uncertainty, held_out.error)

# %%
# The rows held out from the fit show what is normal. Four streams of 4,000 molecules
# go wrong in the middle, or do not: errors grow by 30 %, shrink by as much, or are
# shifted by half an uncertainty.

u = scaler.predict(new.uncertainty)
later = np.arange(4000) >= 2000
streams = {
    "no change": new.error,
    "uncertainties too small": np.where(later, 1.3 * new.error, new.error),
    "uncertainties too large": np.where(later, new.error / 1.3, new.error),
    "predictions too low": np.where(later, new.error + 0.5 * u, new.error),
}
figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained", sharey=True)
for ax, (name, error) in zip(axes.flat, streams.items(), strict=True):
    monitor = ss.Monitor(scaler).update(error, new.uncertainty)
    plots.plot_monitor(monitor, ax=ax)
    ax.set_title(name)
    print(f"{name}: {monitor.alarm or 'no alarm'}\n")

# %%
# The evidence is what one would own who had bet on each kind of change with fair odds.
# While nothing changes it ever exceeds 20, the dashed line, in at most 5 % of streams,
# however long they are. :doc:`Drift </drift>` explains why.
