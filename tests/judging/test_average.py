import numpy as np
import pytest
from scipy import stats

from sigmascale.judging.intervals import average_of, fit_nu
from sigmascale.predictions import as_predictions


def average(z, groups=None, level=0.95):
    rows = as_predictions(z, np.ones(z.size), None, groups)
    return average_of(rows, level, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "t(5)", "zeros"])
def test_the_interval_holds_1_as_often_as_it_says_or_more(law):
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(150):
        z = rng.normal(size=300)
        if law == "t(5)":
            z = rng.standard_t(5, 300) * np.sqrt(3 / 5)
        elif law == "zeros":
            z *= (rng.random(300) > 0.3) / np.sqrt(0.7)
        missed += average(z).is_off
    assert stats.binomtest(missed, 150, 0.05, alternative="greater").pvalue > 1e-2


def test_heavy_tails_make_the_upper_limit_large_and_more_so_the_heavier_they_are():
    rng = np.random.default_rng(5)
    highs = [
        np.median([average(rng.standard_t(nu, 500)).high / nu for _ in range(5)])
        for nu in (2.5, 4, 30)
    ]
    assert highs[0] > 2 * highs[1] > 4 * highs[2] or highs[0] > highs[1] > highs[2]


def test_degrees_of_freedom_are_found():
    rng = np.random.default_rng(6)
    for nu in (3, 6):
        found, low = fit_nu(rng.standard_t(nu, 20_000))
        assert found == pytest.approx(nu, rel=0.15)
        assert low < found
    normal, low = fit_nu(rng.normal(size=5000))
    assert normal > 25
    assert low > 10


def test_a_few_more_enormous_errors_never_raise_doubts_about_small_uncertainties():
    rng = np.random.default_rng(7)
    z = 1.5 * rng.normal(size=400)
    assert average(z).low > 1
    for factor in (3, 30, 1e6):
        worse = z.copy()
        worse[np.argsort(np.abs(z))[-4:]] *= factor
        assert average(worse).low > 1


def test_rows_of_one_group_count_less():
    rng = np.random.default_rng(8)
    z = np.repeat(rng.normal(size=100), 5)
    alone, together = average(z), average(z, np.repeat(np.arange(100), 5))
    assert together.high - together.low > 1.8 * (alone.high - alone.low)
    assert together.n_effective == pytest.approx(100, rel=0.05)
    assert alone.n_effective == pytest.approx(500, rel=0.01)


def test_errors_of_only_zero_have_no_interval():
    found = average(np.zeros(50))
    assert (found.zms, found.low, found.high) == (0, 0, 0)
    assert found.is_off
