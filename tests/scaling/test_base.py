import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.maps import UNCERTAINTY
from sigmascale.scaling import VarianceScaler


class Witness(VarianceScaler):
    """Remembers what there was to learn from, and changes nothing."""

    def _learn(self, rows):
        self.learned_ = (rows.uncertainty.tolist(), rows.errors.tolist())
        return UNCERTAINTY


@pytest.mark.parametrize(
    ("u", "inside"),
    [
        ([1e-80, 1.0], [1e-70, 1.0]),
        ([1.0, 1e80], [1.0, 1e70]),
        ([1e-70, 1e70], [1e-70, 1e70]),
    ],
)
def test_uncertainties_are_brought_into_the_range_that_can_be_squared(u, inside):
    scaler = Witness().fit(u, [1.0, 1.0])
    assert scaler.learned_[0] == inside
    assert scaler.predict(u).tolist() == inside
    assert scaler.min_uncertainty_ == u[0]


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
    for ask in (
        lambda: Witness().fit(frame, [1.0, 2.0]),
        lambda: scaler.predict(frame),
        lambda: scaler.score(frame, [1.0, 2.0]),
        lambda: scaler.conformalize(frame, [1.0, 2.0]),
    ):
        with pytest.raises(InvalidInputError, match=r"a lazy frame\. .*frames: fit"):
            ask()


def test_what_learns_from_rows_gets_those_of_a_lazy_frame():
    scaler = Witness()
    assert scaler.needs_rows
    assert not ss.TemperatureScaling().needs_rows
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
