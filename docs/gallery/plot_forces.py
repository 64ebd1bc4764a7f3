"""
Force components
================

A machine-learned potential predicts a force for every atom of a structure, and a
committee of such potentials tells an uncertainty for each atom. Are these right, and
for each element? Components are rows, and structures are what is independent.
"""

import matplotlib.pyplot as plt
import numpy as np

import sigmascale as ss
from sigmascale import plots

# %%
# Here are 400 structures of 12 atoms. The committee's uncertainty is half of what it
# should be for hydrogen, and right for carbon; the errors of a structure share a part.

rng = np.random.default_rng(4)
n_structures, n_atoms = 400, 12
structure = np.repeat(np.arange(n_structures), n_atoms)
element = np.tile(["H"] * 8 + ["C"] * 4, n_structures)
u = rng.gamma(6, 0.01, structure.size)  # eV/Å, one for each atom
factor = np.where(element == "H", 2.0, 1.0)
shared = rng.normal(size=(n_structures, 3))[structure]
own = rng.normal(size=(structure.size, 3))
error = (factor * u)[:, None] * (0.5 * shared + np.sqrt(0.75) * own)

# %%
# Each component becomes a row, ``error.ravel()``, and what is known of the atom is
# repeated three times. ``groups`` are the structures.


def components(atoms):
    """Return the force components of some atoms, as rows."""
    return ss.Predictions(
        error=error[atoms].ravel(),
        y_std=np.repeat(u[atoms], 3),
        features={"element": np.repeat(element[atoms], 3)},
        groups=np.repeat(structure[atoms], 3),
    )


known, new = components(structure < 200), components(structure >= 200)
before = ss.validate(new)
print(repr(before))

# %%
# One factor for each element mends it.

recalibrator = ss.Recalibrator(ss.CategoryScaling(by="element")).fit(known)
print(recalibrator)
after = ss.validate(recalibrator.apply(new))
print(repr(after))

# %%
# The band holds <Z²> of both elements at once. Without ``groups`` it would be too
# narrow: 7,200 components of 200 structures know less than 7,200 independent ones.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, found, title in zip(axes, (before, after), ("before", "after"), strict=True):
    plots.plot_adaptivity(found.verdicts["element"], ax=ax)
    ax.set_title(title)
plots.share_zms_range(axes)
