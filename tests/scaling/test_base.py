from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sigmascale as ss
from sigmascale.exceptions import ForgottenIntervalsWarning, InvalidInputError
from sigmascale.maps import UNCERTAINTY
from sigmascale.scaling import VarianceScaler


class Witness(VarianceScaler):
    """Remembers what there was to learn from, and changes nothing."""

    def _learn(self, rows):
        self.learned_ = (rows.uncertainty.tolist(), rows.errors.tolist())
        return UNCERTAINTY


@pytest.mark.parametrize("u", [[1e-80, 1.0], [1.0, 1e80]])
def test_uncertainties_that_cannot_be_squared_are_refused(u):
    with pytest.raises(InvalidInputError, match=r"between 1e-70 and 1e\+70; 1 of 2"):
        Witness().fit(u, [1.0, 1.0])
    inside = [1e-70, 1e70]
    assert Witness().fit(inside, [1.0, 1.0]).learned_[0] == inside


@pytest.mark.parametrize(
    ("error", "inside"),
    [
        ([1.0, -1e80, 2.0], [1.0, -1e45, 2.0]),  # at most 1e45 times u,
        ([1e30, 1.0, 2.0], [1e5, 1.0, 2.0]),
        ([1e80, 1.0, -1e80], [1e5, 1.0, -1e70]),  # and 1e70
    ],
)
def test_errors_are_brought_into_the_range_that_can_be_squared(error, inside):
    scaler = Witness().fit([1e-40, 1.0, 1e40], error)
    np.testing.assert_allclose(scaler.learned_[1], inside, rtol=1e-12)


def test_a_lazy_frame_is_sent_to_the_functions_that_take_one():
    frame = pl.LazyFrame({"u": [1.0, 2.0], "e": [1.0, 2.0]})
    scaler = Witness().fit([2.0, 3.0], [1.0, 1.0])
    fitted = ss.Recalibrator(ss.NoScaling(), law="normal").fit([2.0, 3.0], [1.0, 1.0])
    for ask in (
        lambda: fitted.conformalize(frame, [1.0, 2.0]),
        lambda: Witness().fit(frame, [1.0, 2.0]),
        lambda: scaler.predict(frame),
        lambda: scaler.score(frame, [1.0, 2.0]),
    ):
        with pytest.raises(InvalidInputError, match=r"a lazy frame\. .*frames: fit"):
            ask()


def test_what_learns_from_rows_gets_those_of_a_lazy_frame():
    scaler = Witness()
    assert scaler._needs_rows
    assert not ss.TemperatureScaling()._needs_rows
    frame = pl.LazyFrame({"sd": [2.0, 3.0], "e": [1.0, 1.0], "x": [0.0, 0.0]})
    ss.frames.fit(scaler, frame, error="e", uncertainty="sd", features=["x"])
    assert (scaler.min_uncertainty_, scaler.n_samples_fit_) == (2, 2)
    assert list(scaler.feature_names_in_) == ["sd", "x"]


def test_what_learns_from_nothing_says_so():
    with pytest.raises(NotImplementedError, match="learn from sums, or from rows"):
        VarianceScaler().fit([1.0], [1.0])


def test_a_recalibrator_is_described_in_words():
    assert Witness().fit([1.0], [1.0]).describe() == (
        "Uncertainties are recalibrated by a method of your own."
    )
    with pytest.raises(NotFittedError, match="Witness"):
        Witness().describe()


def test_what_is_predicted_for_a_table_teaches_nothing():
    scaler = Witness().fit([2.0, 3.0], [1.0, 1.0])
    assert scaler.predict([5.0, 7.0, 9.0]).tolist() == [5, 7, 9]
    assert (scaler.min_uncertainty_, scaler.n_samples_fit_) == (2, 2)


# --- Predictions in place of (X, y, groups, sample_weight) ---------------------------


def predictions(n=300, seed=0, **others):
    rng = np.random.default_rng(seed)
    u, mass = rng.lognormal(0, 0.5, n), rng.uniform(1, 100, n)
    phase = rng.choice(["gas", "solid"], n)
    error = rng.normal(scale=u * np.where(phase == "gas", 2.0, 1.0))
    features = {"mass": mass, "phase": phase}
    return ss.Predictions(error=error, y_std=u, features=features, **others)


def as_table(p):
    columns = {"u": p.uncertainty, "mass": p.columns[1]}
    return pl.DataFrame(columns | {"phase": list(p.labels("phase").values())})


@pytest.mark.parametrize(
    "scaler",
    [
        ss.TemperatureScaling(),
        ss.BinwiseScaling(5, by="mass"),
        ss.CategoryScaling("phase"),
        ss.RakedScaling(),
        ss.BoostedScaling(max_trees=20),
        ss.Recalibrator(ss.RakedScaling(), shift="auto"),
        ss.Recalibrator(ss.CategoryScaling("phase")),
    ],
    ids=lambda scaler: type(scaler).__name__,
)
def test_predictions_take_the_place_of_a_table_in_every_call(scaler):
    groups, weights = np.arange(300) // 2, np.arange(1.0, 301.0)
    p, new = predictions(groups=groups, weights=weights), predictions(seed=1)
    X, Y = as_table(p), as_table(new)
    one = clone(scaler).fit(p)
    other = clone(scaler).fit(X, p.error, groups, weights)
    np.testing.assert_array_equal(one.predict(new), other.predict(Y))
    assert list(one.feature_names_in_) == ["u", "mass", "phase"]
    assert one.score(new) == other.score(Y, new.error)
    told = nullcontext()
    if isinstance(scaler, ss.Recalibrator):
        one.conformalize(new, by_category=Y["phase"])
        other.conformalize(Y, new.error, by_category=Y["phase"])
        np.testing.assert_array_equal(one.conformal_.z, other.conformal_.z)
        levels = [0.1, 0.5, 0.9]
        np.testing.assert_array_equal(
            one.predict_quantiles(new, levels), other.predict_quantiles(Y, levels)
        )
        told = pytest.warns(ForgottenIntervalsWarning)
    if one.is_updatable:
        with told:
            one.update(new)
        with told:
            other.update(Y, new.error)
        np.testing.assert_array_equal(one.predict(p), other.predict(X))


def test_nothing_is_passed_beside_predictions():
    p = predictions()
    fitted = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    twice = pytest.raises(InvalidInputError, match="given twice")
    for others in ({"y": p.error}, {"groups": p.error}, {"sample_weight": p.error}):
        with twice:
            ss.TemperatureScaling().fit(p, **others)
    with twice:
        fitted.score(p, p.error)
    with twice:
        fitted.conformalize(p, p.error)
    with twice:
        fitted.update(p, p.error)


def test_predictions_without_errors_are_for_predict_alone():
    new = ss.Predictions(y_std=[1.0, 2.0])
    fitted = ss.Recalibrator(ss.TemperatureScaling(), law="normal")
    fitted.fit([1.0, 2.0], [2.0, -4.0])
    assert fitted.predict(new).tolist() == [2.0, 4.0]
    for ask in (fitted.fit, fitted.score, fitted.conformalize, fitted.update):
        with pytest.raises(InvalidInputError, match="must have errors"):
            ask(new)


def test_predictions_need_the_features_of_fit_in_their_order():
    p = predictions()
    fitted = ss.RakedScaling().fit(p)
    with pytest.raises(InvalidInputError, match="mass, phase; found phase, mass"):
        fitted.predict(p.with_features(["phase", "mass"]))
    with pytest.raises(InvalidInputError, match="mass, phase; found none"):
        fitted.predict(p.with_features([]))
    with pytest.raises(InvalidInputError, match="takes no weights"):
        ss.TemperatureScaling().fit(p).update(predictions(weights=np.arange(300.0)))


def test_predictions_that_arrays_were_made_to_need_no_names():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1, 2, 50), rng.normal(size=50)])
    p = ss.Predictions(error=rng.normal(size=50), y_std=X[:, 0], features=X[:, 1:])
    fitted = ss.TemperatureScaling().fit(p)
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(p))
    assert not hasattr(fitted, "feature_names_in_")
    named = ss.Predictions(y_std=X[:, 0], features={"mass": X[:, 1]})
    np.testing.assert_array_equal(fitted.predict(named), fitted.predict(p))
