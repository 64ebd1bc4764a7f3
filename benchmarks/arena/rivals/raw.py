"""u as it came, with normal errors."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

NAME = "as predicted"
PACKAGE = None
LEAGUE = "kept"


def fit(train):
    return 1.0


def predict_quantiles(factor, new, levels):
    return np.multiply.outer(factor * new.u, ndtri(levels))


def log_density(factor, new, error):
    return norm.logpdf(error, 0, factor * new.u)
