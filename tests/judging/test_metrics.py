import json

import numpy as np
import pytest
from scipy import integrate, stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.judging import metrics

RNG = np.random.default_rng(0)
U = RNG.lognormal(0, 0.5, 400)
E = RNG.normal(scale=1.4 * U)
CURVE_METRICS = [
    metrics.mean_absolute_calibration_error,
    metrics.root_mean_squared_calibration_error,
    ss.miscalibration_area,
]


@pytest.mark.parametrize(("error", "u"), [(0.0, 1.0), (1.3, 0.5), (-4.0, 2.0)])
def test_crps_is_the_integral_that_defines_it(error, u):
    def integrand(x):
        return (stats.norm.cdf(x, scale=u) - (x >= error)) ** 2

    expected, _ = integrate.quad(integrand, -40, 40, points=[0.0, error], limit=400)
    assert ss.crps([error], [u]) == pytest.approx(expected, abs=1e-9)


def test_crps_of_a_sure_prediction_is_the_absolute_error():
    assert ss.crps([3.0], [1e-9]) == pytest.approx(3.0)
    assert ss.crps([1e60], [1e30]) == pytest.approx(1e60)


def test_the_right_uncertainty_has_the_lowest_crps():
    u = 1.4 * U
    assert ss.crps(E, u) < min(ss.crps(E, 0.7 * u), ss.crps(E, 1.4 * u))


def test_sharpness_is_the_root_mean_variance():
    assert ss.sharpness(U) == pytest.approx(np.sqrt(np.mean(U**2)))


def test_curve_metrics_follow_their_definition_level_by_level():
    p = np.linspace(0, 1, 50)
    observed = np.array(
        [np.mean(np.abs(E) <= U * stats.norm.ppf(0.5 + q / 2)) for q in p]
    )
    difference = observed - p
    mace, rmsce, area = (m(E, U, n_levels=50) for m in CURVE_METRICS)
    assert mace == pytest.approx(np.abs(difference).mean())
    assert rmsce == pytest.approx(np.sqrt((difference**2).mean()))
    fine = np.linspace(0, 1, 200_001)
    curve = np.abs(np.interp(fine, p, difference))
    assert area == pytest.approx(integrate.trapezoid(curve, fine), abs=1e-8)


def test_pieces_that_cross_the_diagonal_count_with_both_triangles():
    # half of the errors are 0 and half enormous: the curve is 1/2 from 0 to 1
    error = np.repeat([0.0, 1e9], 50)
    area = ss.miscalibration_area(error, np.ones(100), n_levels=1000)
    assert area == pytest.approx(0.25, abs=1e-3)
    # at levels 0, 1/3, 2/3 and 1 the differences are 1/2, 1/6, -1/6 and 0
    area = ss.miscalibration_area(error, np.ones(100), n_levels=4)
    assert area == pytest.approx((1 / 3 + 1 / 12 + 1 / 12) / 3)


@pytest.mark.parametrize("metric", [*CURVE_METRICS, ss.crps])
def test_more_miscalibration_costs_more(metric):
    right = 1.4 * U
    assert metric(E, right) < metric(E, 1.6 * right) < metric(E, 3 * right)


@pytest.mark.parametrize("metric", CURVE_METRICS)
def test_curve_metrics_do_not_depend_on_the_unit_or_the_sign(metric):
    assert metric(-8 * E, 8 * U) == metric(E, U)
    with pytest.raises(InvalidInputError, match="`n_levels` must be at least 2"):
        metric(E, U, n_levels=1)


def test_all_rows_together_are_the_last_group_of_the_adversary():
    result = ss.adversarial_group_calibration(E, U)
    whole = metrics.mean_absolute_calibration_error(E, U)
    assert result.worst[-1] == pytest.approx(whole)
    assert result.spread[-1] == pytest.approx(0, abs=1e-12)
    assert result.size[[0, -1]].tolist() == [2, 400]
    assert result.fraction[[0, -1]].tolist() == [0, 1]
    assert result.worst[0] > 3 * result.worst[-1]


def test_the_adversary_depends_on_the_seed_alone():
    first, again, other = (
        ss.adversarial_group_calibration(E, U, n_sizes=3, rng=seed).worst
        for seed in (1, np.random.default_rng(1), 2)
    )
    np.testing.assert_array_equal(first, again)
    assert first[0] != other[0]


def test_the_kind_of_average_can_be_chosen():
    result = ss.adversarial_group_calibration(E, U, kind="root mean square")
    whole = metrics.root_mean_squared_calibration_error(E, U)
    assert result.worst[-1] == pytest.approx(whole)
    with pytest.raises(InvalidInputError, match="`kind` must be one of"):
        ss.adversarial_group_calibration(E, U, kind="worst")


def test_one_row_makes_no_group():
    with pytest.raises(InvalidInputError, match="at least 2 rows; found n_samples = 1"):
        ss.adversarial_group_calibration([1.0], [1.0])


def test_the_adversary_s_result_prints_and_converts():
    result = ss.adversarial_group_calibration(E, U, n_sizes=3)
    assert len(str(result).splitlines()) == 5
    assert json.loads(json.dumps(result.to_dict()))["size"] == [2, 200, 400]
    assert "<th>worst error</th>" in result._repr_html_()
