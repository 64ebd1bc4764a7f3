"""
A recalibrator that follows
===========================

Errors double on one day, and later fall back. A recalibrator that is updated every day,
and forgets, follows; one that forgets nothing averages over all it has seen. Neither
needs the old rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss

rng = np.random.default_rng(1)
days, rows = 120, 100
truth = np.where((np.arange(days) >= 40) & (np.arange(days) < 80), 2.0, 1.0)
u = rng.gamma(4.0, 0.1, size=(days, rows))
error = truth[:, None] * u * rng.normal(size=(days, rows))

# %%
# A half-life of 300 rows is three days. Nine days after a step up the factor is within
# 6.5 % of the truth; after a step down by one half it takes three days more.

first = rng.gamma(4.0, 0.1, size=1000)
first_error = rng.normal(scale=first)
figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
for half_life in (None, 1000, 300):
    scaler = ss.TemperatureScaling().fit(first, first_error)
    factors = [
        scaler.update(u[day], error[day], half_life=half_life).factor_
        for day in range(days)
    ]
    name = "nothing is forgotten" if half_life is None else f"half-life {half_life}"
    ax.plot(factors, label=name)
ax.step(range(days), truth, where="post", color="black", lw=1, label="truth")
ax.set(xlabel="day", ylabel="factor of uncertainties", ylim=(0.8, 2.3))
ax.legend(frameon=False)

# %%
# :doc:`Updates </updates>` says which recalibrators can be updated, and how files and
# the command line do it.
plt.show()
