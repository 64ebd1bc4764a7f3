"""What the distributions of a method are worth on one part of a set."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

import sigmascale as ss

from .parts import LEVELS, Part

COVERAGE = 0.9
BINS = 20
ABSURD = 100.0  # times the largest error; or that small a part of the median one

# What is measured; README.md says of what.
SCORES = ("crps", "nll", "coverage", "width", "local_u", "local_x", "absurd")


def completed(found: Any, n: int) -> dict[str, np.ndarray]:
    """Return mean, std and quantiles of what a method has predicted.

    A method returns standard deviations, of normal laws; or a dict with `std` or
    `quantiles` (at LEVELS) or both, and `mean` if that is not 0. The standard deviation
    of quantiles is corrected for the tails beyond them, as if these were normal.
    """
    given = dict(found) if isinstance(found, dict) else {"std": found}
    for name, shape in {
        "std": (n,),
        "mean": (n,),
        "quantiles": (n, LEVELS.size),
    }.items():
        if name in given:
            given[name] = np.asarray(given[name], dtype=float)
            if given[name].shape != shape:
                msg = f"{name} has shape {given[name].shape}, which must be {shape}"
                raise ValueError(msg)
    if "std" in given:
        given.setdefault("mean", np.zeros(n))
        normal = given["mean"][:, None] + np.multiply.outer(given["std"], ndtri(LEVELS))
        given.setdefault("quantiles", normal)
    else:
        given.setdefault("mean", given["quantiles"].mean(axis=1))
        given["std"] = given["quantiles"].std(axis=1) / ndtri(LEVELS).std()
    return given


def score(test: Part, train: Part, found: Any) -> dict[str, float]:
    """Return the scores of what a method has predicted of the test rows."""
    law = completed(found, len(test))
    mean, std, quantiles = law["mean"], law["std"], np.sort(law["quantiles"], axis=1)
    # where a method says that there is no error at all, the NLL would be infinite
    size = np.abs(train.error)
    absurd = ~(np.isfinite(std) & np.isfinite(quantiles).all(axis=1))
    absurd |= ~((std <= ABSURD * size.max()) & (std >= np.median(size) / ABSURD**2))
    if not (np.isfinite(std).all() and np.isfinite(quantiles).all()):
        msg = f"{np.count_nonzero(absurd)} of {len(test)} rows are not finite"
        raise ValueError(msg)
    e = test.error - mean
    low, high = quantiles[:, LEVELS == 0.05], quantiles[:, LEVELS == 0.95]
    if test.sigma is None:
        nll = float(np.mean(np.log(std) + 0.5 * (e / std) ** 2) + _HALF_LOG)
    else:  # expected, which is as good as endlessly many test rows
        square = (test.sigma**2 + mean**2) / std**2
        nll = float(np.mean(np.log(std) + 0.5 * square) + _HALF_LOG)
    inside = (low[:, 0] <= test.error) & (test.error <= high[:, 0])
    n_bins = max(1, min(BINS, len(test) // 20))
    local = [
        ss.local_calibration_error(e, std, by=by, n_bins=n_bins, ties=test.u)
        for by in (column.to_numpy() for column in test.frame.iter_columns())
    ]
    return {
        "crps": _crps(test.error, quantiles),
        "nll": nll,
        "coverage": float(inside.mean()),
        "width": float((high - low).mean()),
        "local_u": local[0],
        "local_x": float(np.mean(local[1:])) if local[1:] else float("nan"),
        "absurd": int(absurd.sum()),
    }


_HALF_LOG = 0.5 * np.log(2 * np.pi)


def _crps(error: np.ndarray, quantiles: np.ndarray) -> float:
    """Return the mean CRPS: twice the integral of the pinball loss over levels."""
    off = error[:, None] - quantiles
    losses = np.where(off > 0, LEVELS * off, (LEVELS - 1) * off)
    return float(2 * np.sum(losses) / len(error) * (LEVELS[1] - LEVELS[0]))
