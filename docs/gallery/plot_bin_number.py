"""
How many bins?
==============

Bin-wise scaling needs a number of bins. Too few miss the structure, too many fit
noise. :func:`~sigmascale.scan_bins` shows the trade-off on a test set;
:func:`~sigmascale.choose_n_bins` decides without one.
"""

import matplotlib.pyplot as plt

import sigmascale as ss

data = ss.datasets.make_molecules(16_000, seed=5)
half = len(data) // 2
calibration = (data.X[:half], data.error[:half])
test = (data.X[half:], data.error[half:])

numbers = [1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320]
scan = ss.scan_bins(calibration, test, n_bins=numbers, n_draws=50)
print(scan)

# %%
# To choose by the test set would make the test set part of the training. Cross-
# validation on the calibration set gives an honest choice: the fewest bins that are
# within one standard error of the best.

choice = ss.choose_n_bins(*calibration)
print(f"chosen: {choice.n_bins} bins; lowest loss: {choice.best} bins")

# %%
# S_u, the score of consistency, falls while bins follow the law, and rises again as
# the factors of small bins become noise. Adaptivity for mass hardly notices: bins of u
# know nothing of mass. The dotted line is what a perfectly calibrated set with normal
# errors would score; the errors of these molecules have heavier tails, so that even
# the true uncertainties would score more.

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, label, colour in (
    ("S_u", "S_u", "#0072B2"),
    ("S_X1", "S of mass", "#D55E00"),
):
    ax.plot(scan.n_bins, scan.scores[name], "o-", color=colour, label=label)
ax.plot(scan.n_bins, scan.simulated_mean["S_u"], ":", color="#555555", label="perfect")
ax.axvline(choice.n_bins, color="black", linewidth=0.8, label="chosen")
ax.set(xscale="log", xlabel="number of bins of u", ylabel="score on the test set")
ax.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
ax.set_ylim(bottom=0)
ax.legend(loc="lower left", ncols=2)
