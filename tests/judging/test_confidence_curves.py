import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sigmascale import confidence_curve
from sigmascale.exceptions import InvalidInputError

RNG = np.random.default_rng(11)
U = RNG.lognormal(size=300)
ERROR = RNG.normal(size=300) * U
CURVES = ("error", "oracle", "reference", "reference_low", "reference_high")


def brute_force(error, by, kept, statistic):
    """Keep the rows with the smallest `by`."""
    ranked = error[np.argsort(by)]
    return [statistic(ranked[:k]) for k in kept]


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("rmse", lambda e: np.sqrt(np.mean(e**2))),
        ("mae", lambda e: np.mean(np.abs(e))),
    ],
)
def test_each_point_is_the_statistic_of_the_rows_left(name, statistic):
    curve = confidence_curve(ERROR, U, statistic=name, n_points=7, n_draws=2)
    removed = [0, 43, 86, 129, 171, 214, 257]
    kept = [300 - k for k in removed]
    np.testing.assert_allclose(curve.pruned, np.array(removed) / 300)
    np.testing.assert_allclose(curve.error, brute_force(ERROR, U, kept, statistic))
    np.testing.assert_allclose(
        curve.oracle, brute_force(ERROR, np.abs(ERROR), kept, statistic)
    )
    assert curve.statistic == name


def test_a_callable_gives_the_curve_of_the_statistic_it_computes():
    def rmse(errors):
        return np.sqrt(np.mean(errors**2))

    built_in = confidence_curve(ERROR, U, n_draws=20)
    own = confidence_curve(ERROR, U, statistic=rmse, n_draws=20)
    for name in CURVES:
        np.testing.assert_allclose(getattr(own, name), getattr(built_in, name))
    assert own.statistic == "rmse"


def test_a_callable_without_a_name_is_called_statistic():
    class Median:
        def __call__(self, errors):
            return np.median(np.abs(errors))

    curve = confidence_curve(ERROR, U, statistic=Median(), n_points=3, n_draws=2)
    assert curve.statistic == "statistic"
    assert curve.error[0] == np.median(np.abs(ERROR))


pair = st.tuples(st.floats(-100, 100), st.floats(0.01, 100))


@given(st.lists(pair, min_size=1, max_size=50))
def test_the_oracle_is_below_every_curve_and_never_rises(rows):
    error, u = np.array(rows).T
    curve = confidence_curve(error, u, n_draws=1)
    slack = 1e-9 * (1 + curve.error)
    assert np.all(curve.oracle <= curve.error + slack)
    assert np.all(np.diff(curve.oracle) <= slack[1:])
    assert curve.error[0] == pytest.approx(curve.oracle[0])


def test_errors_that_grow_with_u_follow_the_oracle():
    curve = confidence_curve(np.arange(1, 101), np.arange(1, 101), n_draws=2)
    np.testing.assert_allclose(curve.error, curve.oracle)


@given(st.lists(pair, min_size=1, max_size=30), st.data())
def test_the_order_of_rows_does_not_matter_even_with_ties(rows, data):
    error, u = np.array(rows).T
    u = np.ceil(u / 30)  # few distinct values
    place = data.draw(st.permutations(range(len(rows))))
    first = confidence_curve(error, u, n_draws=2)
    again = confidence_curve(error[place], u[place], n_draws=2)
    for name in CURVES:
        np.testing.assert_allclose(
            getattr(first, name), getattr(again, name), rtol=1e-12
        )


def test_the_scale_of_uncertainties_moves_the_reference_alone():
    first, scaled = confidence_curve(ERROR, U), confidence_curve(ERROR, 4 * U)
    for name in ("pruned", "error", "oracle"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(first, name))
    for name in ("reference", "reference_low", "reference_high"):
        np.testing.assert_allclose(getattr(scaled, name), 4 * getattr(first, name))


def test_the_reference_is_the_error_that_honest_uncertainties_promise():
    curve = confidence_curve(ERROR, U, n_points=5, n_draws=2000)
    u = np.sort(U)
    expected = [np.sqrt(np.mean(u[:k] ** 2)) for k in (300, 240, 180, 120, 60)]
    # the mean of a root is a little below the root of the mean
    np.testing.assert_allclose(curve.reference, expected, rtol=0.03)
    assert np.all(curve.reference_low < curve.reference)
    assert np.all(curve.reference < curve.reference_high)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_band_holds_the_curves_of_honest_uncertainties_as_often_as_it_says(
    confidence,
):
    u = U[:100]
    bands = confidence_curve(u, u, n_points=3, n_draws=4000, confidence=confidence)
    inside = []
    for seed in range(400):
        error = np.random.default_rng(1000 + seed).normal(size=100) * u
        curve = confidence_curve(error, u, n_points=3, n_draws=1).error
        inside.append((bands.reference_low <= curve) & (curve <= bands.reference_high))
    for count in np.sum(inside, axis=0):
        assert stats.binomtest(int(count), 400, confidence).pvalue > 1e-3


def test_the_relative_curve_starts_at_1_and_that_of_no_errors_is_0():
    curve = confidence_curve(ERROR, U, n_draws=2)
    np.testing.assert_allclose(curve.relative * curve.error[0], curve.error)
    assert curve.relative[0] == 1
    silent = confidence_curve(np.zeros(10), np.ones(10), n_draws=2)
    assert silent.relative.tolist() == [0.0] * 10
    assert silent.oracle.tolist() == [0.0] * 10


def test_there_are_no_more_points_than_rows():
    curve = confidence_curve([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], n_draws=2)
    np.testing.assert_allclose(curve.pruned, [0, 1 / 3, 2 / 3])
    np.testing.assert_allclose(curve.error, [np.sqrt(14 / 3), np.sqrt(5 / 2), 1])
    assert confidence_curve([2.0], [1.0], n_draws=2).error.tolist() == [2.0]


def test_the_same_seed_gives_the_same_reference_and_another_seed_another():
    first, again, other = (
        confidence_curve(ERROR, U, n_draws=10, rng=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.reference, again.reference)
    assert not np.any(first.reference == other.reference)


def test_results_print_and_serialise():
    curve = confidence_curve(ERROR, U, n_draws=2)
    table = json.loads(json.dumps(curve.to_dict()))
    assert table["error"] == curve.error.tolist()
    assert table["statistic"] == "rmse"
    assert curve._repr_html_().count("<tr>") == 12
    assert f"<td>0%</td><td>{curve.error[0]:.4g}</td>" in curve._repr_html_()
    assert repr(curve) == "ConfidenceCurve(statistic='rmse')"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"statistic": "median"}, '`statistic` must be one of "rmse", "mae"; found'),
        ({"statistic": lambda e: np.nan}, "`statistic` must return a finite number"),
        ({"n_points": 0}, "`n_points` must be at least 1; found 0"),
        ({"n_draws": 0}, "`n_draws` must be at least 1; found 0"),
        (
            {"confidence": 95},
            "`confidence` must lie strictly between 0 and 1; found 95",
        ),
        ({"rng": -1}, "`rng` must be a seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        confidence_curve(ERROR, U, **arguments)


def test_uncertainties_of_0_and_unequal_lengths_are_refused():
    with pytest.raises(
        InvalidInputError, match="`uncertainty` must be strictly positive"
    ):
        confidence_curve([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(InvalidInputError, match="same number of rows; found 2 and 1"):
        confidence_curve([1.0, 2.0], [1.0])
