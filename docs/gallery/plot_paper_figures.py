"""
The figures of a paper on uncertainty
=====================================

Reliability diagram, calibration curve, PIT histogram, errors against uncertainties:
what reviewers ask for, before and after recalibration, on real data. A random forest
predicts the medical expenses of persons that it has not seen; its uncertainty is the
spread of its trees, as people often take it.
"""

import matplotlib.pyplot as plt

import sigmascale as ss
from sigmascale import plots

data = ss.datasets.load_health("forest")
raw = data.test
ss.validate(raw)

# %%
# All four at once
# ----------------
#
# Recalibrate on one half of the persons, and look at the other.

recalibrated = ss.Recalibrator().fit(data.calibration).apply(raw)
figure = plt.figure(figsize=(7.2, 6), layout="constrained")
_ = plots.summary(raw, recalibrated, figure=figure)

# %%
# The forest is *overconfident*: errors are larger than it says (a), intervals hold less
# than they claim (b), and too many truths lie at the ends of their distributions (c).
# After recalibration, nearly all bins in (a) lie where those of a calibrated set of
# this size would, and (b) and (c) stay in their bands: beside the uncertainty, the
# recalibrator has learned the distribution of errors, which is not normal here.
#
# One at a time
# -------------
#
# Each figure draws a result, whose numbers can be printed, too. A **reliability
# diagram** compares the root mean squared error of bins of u with their root mean
# variance. The band shows what is attainable: even a perfect set does not lie on the
# diagonal.

diagram = ss.reliability_diagram(recalibrated)
fig, ax = plt.subplots(layout="constrained")
_ = plots.plot_reliability_diagram(diagram, ax=ax)

# %%
# A **calibration curve** compares observed with nominal coverage, at all levels. The
# band holds the whole curve of a calibrated set.

curve = ss.calibration_curve(raw)
fig, ax = plt.subplots(layout="constrained")
_ = plots.plot_calibration_curve(curve, ax=ax)

# %%
# The **probability integral transform** (PIT) is where a truth lies in the distribution
# that was predicted for it. If distributions are right, its histogram is flat: a U is
# overconfident, a hill underconfident, a slope biased.

fig, ax = plt.subplots(layout="constrained")
_ = plots.plot_pit_histogram(ss.pit_histogram(raw), ax=ax)

# %%
# **Predictions against true values**, with intervals that hold the truth or miss it:

fig, ax = plt.subplots(layout="constrained")
_ = plots.plot_predictions(recalibrated, coverage=0.9, ax=ax)

# %%
# **Along an input**: conditional calibration, <Z²> in bins of a feature, with the band
# that holds every tenth of the rows at once. Where it leaves out 1, uncertainties are
# wrong for that kind of input.

fig, ax = plt.subplots(layout="constrained")
_ = plots.plot_adaptivity(ss.validate(recalibrated).verdicts["age"], ax=ax)
