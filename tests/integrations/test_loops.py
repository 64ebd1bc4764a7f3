"""The loops of scikit-learn, as users write them."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def rows(n, seed):
    """Return rows whose noise grows with the second column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.exp(0.7 * X[:, 1]) * rng.normal(size=n)


def test_a_search_by_crps_finds_the_features_that_tell_the_noise():
    X, y = rows(600, seed=0)
    forest = RandomForestRegressor(20, min_samples_leaf=5, random_state=0)
    model = ss.RecalibratedRegressor(forest, ss.Recalibrator(ss.LinearScaling()), cv=3)
    leaves = {"regressor__min_samples_leaf": [1, 30]}
    search = GridSearchCV(model, leaves, scoring=ss.scorers.neg_crps, cv=3).fit(X, y)
    assert search.best_params_ == {"regressor__min_samples_leaf": 30}
    direct = ss.scores.crps(search.best_estimator_.predictions_)
    assert -search.best_score_ == pytest.approx(direct, rel=0.15)
    for scorer in (
        ss.scorers.neg_interval_score,
        ss.scorers.neg_coverage_error,
        ss.scorers.neg_rms_z_error,
    ):
        scored = cross_val_score(search.best_estimator_, X, y, scoring=scorer, cv=3)
        assert (scored < 0).all()
    assert scored.mean() > -0.2  # RMS z is about 1


def test_scorers_read_any_regressor_that_tells_an_uncertainty():
    X, y = rows(300, seed=1)
    ridge = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    u = ridge.predict(X, return_std=True)[1]
    by_hand = ss.scores.crps(ss.Predictions(ridge.predict(X), u, y_true=y))
    assert ss.scorers.neg_crps(ridge, X, y) == pytest.approx(-by_hand)
    doubled = np.repeat([1.0, 2.0], 150)
    assert ss.scorers.neg_crps(ridge, X, y, sample_weight=doubled) != pytest.approx(
        -by_hand
    )
    with pytest.raises(InvalidInputError, match="RecalibratedRegressor"):
        ss.scorers.neg_crps(Ridge().fit(X, y), X, y)


class Noticing(RegressorMixin, BaseEstimator):
    """A regressor that keeps what its `fit` gets."""

    def fit(self, X, y, sample_weight=None, colour=None):
        self.got_ = sample_weight, colour
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_metadata_goes_where_it_is_asked_for():
    X, y = rows(100, seed=3)
    weights = np.linspace(1, 2, 100)
    model = ss.RecalibratedRegressor(Noticing(), cv=2)
    model.fit(X, y, sample_weight=weights, colour=np.arange(100))
    got, colour = model.regressor_.got_
    assert np.array_equal(got, weights)
    assert np.array_equal(colour, np.arange(100))
    with sklearn.config_context(enable_metadata_routing=True):
        silent = Noticing().set_fit_request(sample_weight=False, colour=True)
        model = ss.RecalibratedRegressor(silent, cv=2)
        model.fit(X, y, sample_weight=weights, colour=np.arange(100))
    got, colour = model.regressor_.got_
    assert got is None
    assert colour is not None
    assert model.predictions_.weights is not None
