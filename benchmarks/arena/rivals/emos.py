"""EMOS: a linear mean of the features, and the variance c + d u², by least CRPS.

Gneiting et al. 2005, doi:10.1175/MWR2904.1: the nonhomogeneous Gaussian regression of
weather forecasts.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri
from scipy.stats import norm

NAME = "EMOS"
PACKAGE = None
LEAGUE = "corrected"


def fit(train):
    centre, width = train.X.mean(axis=0), train.X.std(axis=0) + 1e-12
    A = np.column_stack([np.ones(len(train)), (train.X - centre) / width])
    unit, scale = np.std(train.error) + 1e-300, np.sqrt(np.mean(train.u**2))
    y, u2 = train.error / unit, (train.u / scale) ** 2
    start = np.linalg.lstsq(A, y, rcond=None)[0]

    def loss(x):
        s = np.sqrt(x[-2] ** 2 + x[-1] ** 2 * u2 + 1e-12)
        z = (y - A @ x[:-2]) / s
        pdf = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        crps = s * (z * (2 * ndtr(z) - 1) + 2 * pdf - 1 / np.sqrt(np.pi))
        slope = 2 * pdf - 1 / np.sqrt(np.pi)  # of the CRPS along s
        to_mean = -(2 * ndtr(z) - 1)
        parts = [A.T @ to_mean, [np.sum(slope * x[-2] / s)]]
        gradient = np.concatenate([*parts, [np.sum(slope * x[-1] * u2 / s)]])
        return crps.mean(), gradient / y.size

    found = minimize(loss, np.append(start, [0.5, 0.5]), jac=True, method="BFGS").x
    return found, centre, width, unit, scale


def _moments(state, new):
    x, centre, width, unit, scale = state
    A = np.column_stack([np.ones(len(new)), (new.X - centre) / width])
    s = np.sqrt(x[-2] ** 2 + x[-1] ** 2 * (new.u / scale) ** 2 + 1e-12)
    return unit * (A @ x[:-2]), unit * s


def predict_quantiles(state, new, levels):
    mean, s = _moments(state, new)
    return mean[:, None] + np.multiply.outer(s, ndtri(levels))


def log_density(state, new, error):
    return norm.logpdf(error, *_moments(state, new))
