"""a u + b by maximum likelihood, as in MAST-ML (doi:10.1038/s41524-022-00794-8)."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import norm

NAME = "a u + b (MAST-ML)"
PACKAGE = None
LEAGUE = "kept"


def fit(train):
    def loss(line):
        sigma = np.abs(line[0] * train.u + line[1])
        if not sigma.all():
            return np.inf
        return np.sum(np.log(sigma) + 0.5 * (train.error / sigma) ** 2)

    return minimize(loss, [1.0, 0.0], method="Nelder-Mead").x


def predict_quantiles(line, new, levels):
    return np.multiply.outer(np.abs(line[0] * new.u + line[1]), ndtri(levels))


def log_density(line, new, error):
    return norm.logpdf(error, 0, np.abs(line[0] * new.u + line[1]))
