"""
Twelve targets, some with thirty rows
=====================================

One model predicts twelve properties, and reference values are known for many rows of
some and for few of others. :class:`~sigmascale.RecalibratedTargets` gives each property
a recalibrator that leans on those of the others, as far as its own rows do not suffice.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss

sizes = np.array([30, 30, 30, 30, 60, 60, 60, 200, 200, 200, 1000, 1000])
names = [f"property {k}" for k in range(1, 13)]


def draw(seed):
    """Return uncertainties, errors and true factors; most errors are not known."""
    rng = np.random.default_rng(seed)
    true = np.exp(rng.normal(0.3, 0.08, 12))
    u = rng.lognormal(0, 0.5, (1000, 12)) * 10.0 ** rng.uniform(-3, 3, 12)
    error = rng.normal(scale=u * true)
    error[np.arange(1000)[:, None] >= sizes] = np.nan
    return u, error, true


u, error, true = draw(seed=4)
template = ss.TemperatureScaling()
targets = ss.RecalibratedTargets(template, law="normal", names=names).fit(u, error)
print(targets.to_table())

# %%
# The factor of each target: of its own rows, as it is used, and the true one, which
# only simulations know. With 30 rows, what a target says of itself is noise to a good
# part, and is drawn towards the others; with 1,000 it is taken at its word.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
place = np.arange(12)
scales = [each.scaling_ for each in targets.recalibrators_.values()]
own = [each.own_factor_ for each in scales]
used = [each.factor_ for each in scales]
ax.vlines(place, own, used, color="#BBBBBB", lw=2)
ax.plot(place, true, "_", ms=22, mew=2, color="#000000", label="truth")
ax.plot(place, own, "o", ms=7, mfc="white", color="#E69F00", label="own rows alone")
ax.plot(place, used, "o", ms=7, color="#0072B2", label="leaning on the others")
ax.set_xticks(place, [str(n) for n in sizes])
ax.set_xlabel("rows of the target")
ax.set_ylabel("factor")
ax.legend(frameon=False)

# %%
# Is that better on average? The distance from the true factors, over many such sets.

distance = {"own rows alone": [], "leaning on the others": [], "one for all": []}
for seed in range(25):
    u, error, true = draw(seed)
    targets = ss.RecalibratedTargets(template, law="normal").fit(u, error)
    fitted = [each.scaling_ for each in targets.recalibrators_.values()]
    known = ~np.isnan(error)
    one = np.sqrt(np.mean((error[known] / u[known]) ** 2))
    for name, factors in (
        ("own rows alone", [each.own_factor_ for each in fitted]),
        ("leaning on the others", [each.factor_ for each in fitted]),
        ("one for all", np.full(12, one)),
    ):
        distance[name].append(np.log(factors / true) ** 2)
for name, squares in distance.items():
    few, many = (
        np.sqrt(np.mean(squares, axis=0)[part].mean())
        for part in (sizes == 30, sizes == 1000)
    )
    print(f"{name:<22} off by {few:.1%} with 30 rows, by {many:.1%} with 1,000")

# %%
# New rows are judged with one error rate for all targets.

rng = np.random.default_rng(99)
u_new = rng.lognormal(0, 0.5, (300, 12)) * np.median(u, axis=0)
error_new = rng.normal(scale=u_new * true)
print(ss.validate(ss.split_targets(error_new, targets.predict(u_new), names=names)))
