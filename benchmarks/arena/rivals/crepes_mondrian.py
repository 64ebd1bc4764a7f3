"""crepes: a conformal predictive system normalised by u, in Mondrian bins of u."""

import numpy as np
from crepes import ConformalPredictiveSystem
from crepes.extras import binning

NAME = "crepes, Mondrian"
PACKAGE = "crepes"
LEAGUE = "kept"
LEAST = 100  # rows of a bin


def percentiles(system, n, sigmas, levels, bins=None):
    """Return quantiles as far as n rows tell."""
    least = (1 + 1e-9) / (n + 1)
    asked = 100 * np.clip(levels, least, 1 - least)
    return system.predict_percentiles(
        y_hat=0 * sigmas,
        sigmas=sigmas,
        bins=bins,
        lower_percentiles=list(asked[levels < 0.5]),
        higher_percentiles=list(asked[levels >= 0.5]),
    )


def fit(train):
    n_bins = max(1, min(10, len(train) // LEAST))
    bins, edges = binning(train.u, bins=n_bins)
    system = ConformalPredictiveSystem()
    system.fit(residuals=train.error, sigmas=train.u, bins=bins, seed=0)
    return system, edges, np.unique(bins, return_counts=True)[1].min()


def predict_quantiles(state, new, levels):
    system, edges, n = state
    return percentiles(system, n, new.u, levels, binning(new.u, bins=edges))
