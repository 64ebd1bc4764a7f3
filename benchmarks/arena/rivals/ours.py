"""`Recalibrator()`: a boosted scale, and the z-scores of rows out of fold."""

from scipy.stats import norm

import sigmascale as ss

NAME = "sigmascale"
PACKAGE = "sigmascale"
LEAGUE = "kept"


def fit(train, **options):
    return ss.Recalibrator(**options).fit(train.predictions)


def predict_quantiles(state, new, levels):
    return state.apply(new.predictions).distributions.quantile(levels)


def log_density(state, new, error):
    found = state.apply(new.predictions).distributions
    return norm.logpdf(error, found.location, found.scale)
