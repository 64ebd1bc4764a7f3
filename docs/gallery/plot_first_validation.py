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
# One call answers all three questions: right on average (*calibrated*), right at every
# level of uncertainty (*consistent*), right for every kind of molecule (*adaptive*).

verdicts = ss.validate(data.error, data.uncertainty, data.features)
print(verdicts)

# %%
# The sentences say what is wrong and where it is worst. In the table, **S** is the
# score of each question and **attainable S** what a perfectly calibrated set of this
# size would score, with errors of the same shape. **p Holm** is the chance that such a
# set scores as high; below 0.05 the answer is no. The last columns say the same in
# terms of bins: which fraction has a confidence interval that contains 1, and which
# fraction a perfect set would attain.
#
# The picture shows the evidence. Each point is a bin of 100 rows; the vertical line is
# the confidence interval of its mean squared z-score :math:`\langle Z^2 \rangle`, which
# should be 1. Here nearly all bins lie below 1: the uncertainties are too large. They
# are most too large where they are largest, and for light molecules with few
# hetero-atoms.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, result in zip(axes, verdicts.local.values(), strict=True):
    plots.plot_local_zms(result, ax=ax)
