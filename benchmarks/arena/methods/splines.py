"""scikit-learn: a gamma GLM of z² on splines of all columns and their products.

The penalty is cross-validated; the law is that of the z-scores of unseen rows.
"""

import numpy as np
from sklearn.linear_model import GammaRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from benchmarks.arena.parts import with_law

NAME = "splines with products"
PACKAGE = "scikit-learn"
FEATURES = True
PENALTIES = {"gammaregressor__alpha": [0.003, 0.03, 0.3, 3.0]}


def fit(train):
    z2 = (train.error / train.u) ** 2
    ratio = np.maximum(z2 / z2.mean(), 1e-6)
    folds, X = list(train.folds()), _logged(train.X)
    model = make_pipeline(
        StandardScaler(),
        FunctionTransformer(np.clip, kw_args={"a_min": -3, "a_max": 3}),
        make_union(
            SplineTransformer(n_knots=4),
            PolynomialFeatures(2, interaction_only=True, include_bias=False),
        ),
        StandardScaler(),
        GammaRegressor(solver="newton-cholesky"),
    )
    search = GridSearchCV(model, PENALTIES, scoring="neg_mean_gamma_deviance", cv=folds)
    best = search.fit(X, ratio).best_estimator_
    unseen = cross_val_predict(best, X, ratio, cv=folds)
    return best, train.error / (train.u * np.sqrt(unseen))


def _logged(X):
    return np.column_stack([np.log(X[:, 0]), X[:, 1:]])


def predict(state, new):
    model, z = state
    return with_law(new.u * np.sqrt(model.predict(_logged(new.X))), z)
