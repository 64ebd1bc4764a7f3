"""CatBoost: quantiles of the error by one model, conformalized on a fifth of the rows.

MultiQuantile at 19 levels; each is moved by the order statistic of the held-out rows.
"""

import numpy as np
from catboost import CatBoostRegressor

NAME = "CatBoost, conformal"
PACKAGE = "catboost"
LEAGUE = "corrected"
ALPHAS = np.round(np.arange(0.05, 0.951, 0.05), 3)


def fit(train):
    within, held = next(train.folds())
    z = train.error / train.u
    alphas = ", ".join(map(str, ALPHAS))
    model = CatBoostRegressor(
        loss_function=f"MultiQuantile:alpha={alphas}",
        iterations=120,
        depth=4,
        learning_rate=0.12,
        thread_count=1,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    ).fit(train.X[within], z[within])
    off = z[held, None] - np.sort(model.predict(train.X[held]), axis=1)
    rank = ALPHAS * (len(held) + 1)  # steps outwards
    rank = np.where(ALPHAS < 0.5, np.floor(rank), np.ceil(rank)).astype(int)
    at = np.clip(rank, 1, len(held)) - 1
    return model, np.sort(off, axis=0)[at, range(len(ALPHAS))], np.sort(z)


def predict_quantiles(state, new, levels):
    model, moved, z = state
    inner = np.sort(np.sort(model.predict(new.X), axis=1) + moved, axis=1)
    found = np.array([np.interp(levels, ALPHAS, row) for row in inner])
    # beyond the outermost levels, as far as all z-scores go beyond theirs
    ends = np.quantile(z, [ALPHAS[0], ALPHAS[-1]])
    beyond = np.quantile(z, levels) - np.clip(np.quantile(z, levels), *ends)
    return new.u[:, None] * (found + beyond)
