import numpy as np
import polars as pl
import pytest

from sigmascale._support.tables import check_table
from sigmascale.exceptions import InvalidInputError
from sigmascale.scaling import TemperatureScaling, VarianceScaler


class Witness(VarianceScaler):
    """Remembers what there was to learn from, and changes nothing."""

    def _learn(self, table, uncertainty, error, groups):
        self.learned_ = (uncertainty.tolist(), error.tolist())

    def _rescale(self, table, uncertainty):
        return uncertainty


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
        ([1e-70, -1e-71, 1.0], [1e-70, 0.0, 1.0]),  # at least 1e-70, or 0
    ],
)
def test_errors_are_brought_into_the_range_that_can_be_squared(error, inside):
    scaler = Witness().fit([1e-40, 1.0, 1e40], error)
    np.testing.assert_allclose(scaler.learned_[1], inside, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "groups"), [([1.0, 2.0], None), ("e", [1, 2]), (["e"], [1, 2])]
)
def test_a_lazy_frame_is_fitted_by_the_name_of_its_errors_and_without_groups(
    error, groups
):
    frame = pl.LazyFrame({"u": [1.0, 2.0], "e": [1.0, 2.0]})
    with pytest.raises(InvalidInputError, match="`y` must be the name of its column"):
        Witness().fit(frame, error, groups)


def test_what_is_predicted_for_a_table_teaches_nothing():
    scaler = Witness().fit([2.0, 3.0], [1.0, 1.0])
    assert scaler._predict_table(check_table([5.0, 7.0, 9.0])).tolist() == [5, 7, 9]
    assert (scaler.min_uncertainty_, scaler.n_samples_fit_) == (2, 2)


def test_of_a_lazy_frame_the_first_column_but_the_errors_is_the_uncertainty():
    frame = pl.LazyFrame({"e": [2.0, 6.0], "u": [1.0, 2.0], "x": [7.0, 8.0]})
    scaler = TemperatureScaling().fit(frame, "e")
    assert scaler.factor_ == pytest.approx(np.sqrt((4 + 9) / 2))
    assert list(scaler.feature_names_in_) == ["u", "x"]
