"""
A first validation
==================

A table of errors and uncertainties, one question: are the error bars right?

The built-in synthetic molecules stand for the output of a model that predicts a
property with an uncertainty. Their errors are known, because the reference values are.
"""

import matplotlib.pyplot as plt

import sigmascale as ss
from sigmascale import plots

data = ss.datasets.make_molecules(10_000, seed=1)
print(data)

# %%
# One call answers all questions: are errors unbiased, and are uncertainties right on
# average (*calibrated*), at every level (*consistent*) and for every kind of molecule
# (*adaptive*)?

verdicts = ss.validate(data.error, data.uncertainty, data.features)
print(verdicts)

# %%
# The sentences say what is wrong and where it is worst. In the table, **p** is the
# chance that a calibrated set looks as bad, corrected for all questions; at or below
# 0.05 the answer is no. **within** says between which limits the factor lies that u
# would have to be multiplied by to be right, in any tenth of the rows, or where it is
# worst. **S** is a score, with what a perfectly calibrated set of this size would score
# in parentheses, and the last column is the fraction of bins whose interval contains 1.
#
# The picture shows the evidence. Each point is a bin of 100 rows; the vertical line is
# the confidence interval of its mean squared z-score :math:`\langle Z^2 \rangle`, which
# should be 1. Here nearly all bins lie below 1: the uncertainties are too large. They
# are most too large where they are largest, and for light molecules with few
# hetero-atoms.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, result in zip(axes, verdicts.local.values(), strict=True):
    plots.plot_local_zms(result, ax=ax)
