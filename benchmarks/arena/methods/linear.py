"""a u + b by maximum likelihood, as in MAST-ML (doi:10.1038/s41524-022-00794-8)."""

import numpy as np
from scipy.optimize import minimize

NAME = "a u + b (MAST-ML)"
PACKAGE = None
FEATURES = False


def fit(train):
    def loss(parameters):
        sigma = np.abs(parameters[0] * train.u + parameters[1])
        if not sigma.all():
            return np.inf
        return np.sum(np.log(sigma) + 0.5 * (train.error / sigma) ** 2)

    return minimize(loss, [1.0, 0.0], method="Nelder-Mead").x


def predict(line, new):
    return np.abs(line[0] * new.u + line[1])
