"""
Heavy tails and the attainable target
=====================================

A perfectly calibrated set should have 95 % of its bins valid. With heavy-tailed
errors it has not: rare large errors make the interval of a bin's mean unreliable. What
should one ask for, then? :func:`~sigmascale.validate` computes the attainable target
from the set's own z-scores.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss

n, n_sets = 5000, 60
rng = np.random.default_rng(8)
u = rng.gamma(4.0, 0.1, n)


def draw(df):
    """Return errors of exactly the right spread u: normal, or Student's t."""
    if df is None:
        return rng.normal(scale=u)
    return u * rng.standard_t(df, n) * np.sqrt((df - 2) / df)


# %%
# Every set below is perfectly calibrated, because we drew its errors with standard
# deviation u. We count the valid bins of many such sets, for normal errors and for
# Student's t with 6 and with 4 degrees of freedom.

shapes = {"normal": None, "Student, 6 d.f.": 6, "Student, 4 d.f.": 4}
fractions = {
    name: [
        ss.local_zms(draw(df), u, n_bins=70, method="moments").fraction_valid
        for _ in range(n_sets)
    ]
    for name, df in shapes.items()
}
for name, found in fractions.items():
    print(f"{name:<16} valid bins of perfect sets, on average: {np.mean(found):.2f}")

# %%
# In practice one has a single set, and does not know its distribution. *attainable*
# is computed from the set alone. Here we ask for the verdicts on a dozen sets of each
# kind, to see how well it is known.

attainable = {name: [] for name in shapes}
for name, df in shapes.items():
    for _ in range(12):
        verdicts = ss.validate(draw(df), u, n_bins=70, method="moments", n_draws=40)
        attainable[name].append(verdicts.verdicts["u"].attainable)
    mean, sd = np.mean(attainable[name]), np.std(attainable[name])
    print(f"{name:<16} attainable {mean:.2f} ± {sd:.2f}")

# %%
# The points are perfect sets, the dashes what single sets say is attainable. The
# heavier the tails, the lower both are, and the more the second varies: a single
# enormous error moves it. To ask heavy-tailed errors for 95 % is to ask for what no
# uncertainties can give.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for i, name in enumerate(shapes):
    jitter = np.random.default_rng(i).uniform(-0.18, 0.18, n_sets)
    ax.plot(i + jitter, fractions[name], "o", color="#0072B2", markersize=4, alpha=0.5)
    ax.hlines(attainable[name], i + 0.25, i + 0.4, color="#D55E00")
ax.axhline(0.95, color="black", linestyle="--", linewidth=0.8)
ax.text(2.45, 0.953, "nominal 95 %", ha="right", va="bottom", fontsize="small")
ax.set_xticks(range(len(shapes)), shapes)
ax.set_ylabel("fraction of valid bins")
ax.plot([], [], "o", color="#0072B2", label="a perfect set")
ax.plot([], [], color="#D55E00", label="attainable, from one set")
ax.legend(loc="lower left")
