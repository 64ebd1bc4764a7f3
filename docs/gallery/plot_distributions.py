"""
An ensemble forecast, before and after
======================================

Ensembles of weather models are underdispersed and biased: their members resemble each
other more than they resemble the weather. What a forecaster wants from them is a whole
distribution. :class:`~sigmascale.Recalibrator` learns its shift, its scale and its law
from the forecasts of past days.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale import plots

rng = np.random.default_rng(2)


def forecast(first, last):
    """Return forecasts of wind on some days, by the mean and spread of ten members."""
    day = np.arange(first, last)
    season = np.cos(2 * np.pi * day / 365.25)
    spread = rng.gamma(9, 0.1, day.size) * (1 + 0.3 * season)
    signal = 8 + 2 * season + rng.normal(scale=2, size=day.size)
    # too strong in winter; gusts go further up than lulls go down
    gust = rng.gamma(2.0, 1 / np.sqrt(2), day.size) - np.sqrt(2)
    wind = signal - 0.6 - 0.6 * season + 1.5 * spread * gust
    members = signal[:, None] + spread[:, None] * rng.normal(size=(day.size, 10))
    return ss.Predictions.from_members(
        members, y_true=wind, features={"season": season}, time=day
    )


past, future = forecast(0, 1500), forecast(1500, 3000)

# %%
# Shift, scale and law are learned from past days. ``shift="auto"`` asks unseen
# stretches of time whether a shift is worth while, and says by how much.

recalibrator = ss.Recalibrator(shift="auto").fit(past)
print(recalibrator.describe())

# %%
# New forecasts are distributions: quantiles, or the chance of a storm.

distributions = recalibrator.predict_distribution(future)
print(distributions[:3].to_frame())
storm = 1 - distributions.cdf(np.full(len(future), 13.0))
print(f"chance of more than 13 m/s on three days: {storm[:3].round(3)}")

# %%
# Judged by what came: CRPS (lower is better), and the share of days within intervals of
# 50, 80, 90 and 95 %. Before, members stand for a normal distribution with their mean
# and spread. With the scale alone, and a normal law, intervals hold nearly what they
# claim, and are wide, because they lie at the wrong place.

scale_alone = ss.Recalibrator(law="normal").fit(past).apply(future)
after = recalibrator.apply(future)
stages = {"as given": future, "scale alone": scale_alone, "shift, scale, law": after}
for name, rows in stages.items():
    print(f"{name}: {ss.distribution_scores(rows).sentence}")

# %%
# The PIT is where the truth lies in its distribution: uniform, if all is well. The band
# holds all bins of a calibrated set with a probability of 95 %.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
for ax, (name, rows) in zip(axes, stages.items(), strict=True):
    plots.plot_pit_histogram(ss.pit_histogram(rows), ax=ax)
    ax.set(title=name, ylim=(0, 6))

# %%
# And intervals of 90 % hold what they claim, in winter (a season of 1) as in summer.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
limits = {
    "as given": ss.normal_interval(future.uncertainty, 0.9),
    "recalibrated": distributions.interval(0.9) - future.y_pred[:, None],
}
for ax, (name, interval) in zip(axes, limits.items(), strict=True):
    local = ss.local_coverage(
        future.errors,
        future.uncertainty,
        interval,
        coverage=0.9,
        by=future.features["season"],
        n_bins=10,
    )
    plots.plot_local_coverage(local, ax=ax)
    ax.set(title=name, xlabel="season", ylim=(0.3, 1.2))
