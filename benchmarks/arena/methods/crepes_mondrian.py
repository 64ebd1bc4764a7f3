"""crepes: a predictive system normalised by u, with a law in each bin of u."""

import numpy as np
from crepes import ConformalPredictiveSystem
from crepes.extras import binning

from benchmarks.arena.methods.crepes_normalised import laws

NAME = "crepes, Mondrian"
PACKAGE = "crepes"
FEATURES = False
LEAST = 100  # rows of a bin


def fit(train):
    n_bins = max(1, min(10, len(train) // LEAST))
    bins, edges = binning(train.u, bins=n_bins)
    system = ConformalPredictiveSystem()
    system.fit(residuals=train.error, sigmas=train.u, bins=bins, seed=0)
    return system, edges, np.unique(bins, return_counts=True)[1].min()


def predict(state, new):
    system, edges, n = state
    return laws(system, n, new.u, binning(new.u, bins=edges))
