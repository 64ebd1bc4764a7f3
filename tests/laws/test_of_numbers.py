"""Laws of numbers: scores and moments beside the few lines that define them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import sigmascale as ss

from .conftest import columns

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@settings(max_examples=25)
@given(columns(80, 200))
def test_scores_are_those_of_a_few_lines_of_numpy(rows):
    p = rows.predictions()
    weights = np.ones(len(p)) if rows.weights is None else rows.weights

    def mean(values):
        return np.average(values, weights=weights)

    u, error = rows.u, rows.error
    dim = 1 if error.ndim == 1 else error.shape[1]
    squares = error**2 if dim == 1 else (error**2).mean(axis=1)
    assert ss.scores.zms(p) == pytest.approx(mean(squares / u**2))
    log_likelihood = mean(squares / u**2) + mean(np.log(u**2)) + np.log(2 * np.pi)
    assert ss.scores.nll(p) == pytest.approx(dim / 2 * log_likelihood)
    if dim > 1:
        return

    z, limit = error / u, stats.norm.ppf(0.95)
    held = mean(np.abs(z) <= limit)
    assert ss.scores.coverage(p, coverage=0.9) == pytest.approx(held)
    crps = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    assert ss.scores.crps(p) == pytest.approx(mean(u * crps))
    outside = np.maximum(0, np.abs(error) - limit * u)
    score = mean(2 * limit * u + 20 * outside)
    assert ss.scores.interval_score(p, coverage=0.9) == pytest.approx(score)


bounds = st.sampled_from([(None, None), (0.0, None), (None, 0.7), (-0.5, 1.2)])


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["normal", "empirical"]), bounds)
def test_crps_mean_and_std_are_the_integrals_that_define_them(seed, kind, bounds):
    rng = np.random.default_rng(seed)
    truth = rng.standard_t(4, 60) + 0.2
    p = ss.Predictions(np.zeros(60), np.ones(60), y_true=truth)
    scaling = ss.TemperatureScaling()
    r = ss.Recalibrator(scaling, distribution=kind, bounds=bounds).fit(p)
    d = r.apply(ss.Predictions([0.1], [rng.uniform(0.3, 2)])).distributions
    grid, y = np.linspace(-25, 25, 200_001), rng.normal()
    everywhere = r.apply(ss.Predictions(np.full(grid.size, 0.1), np.full(grid.size, 1)))
    rescaled = ss.Distributions.of(
        everywhere.distributions.location, np.full(grid.size, d.scale[0]), d.z, d.bounds
    )
    cdf = rescaled.cdf(grid)
    crps = integrate.trapezoid((cdf - (grid >= y)) ** 2, grid)
    assert d.crps([y])[0] == pytest.approx(crps, abs=5e-4)
    mean = integrate.trapezoid((grid >= 0) - cdf, grid)
    assert d.mean[0] == pytest.approx(mean, abs=5e-4)
    second = integrate.trapezoid(2 * grid * ((grid >= 0) - cdf), grid)
    assert d.std[0] == pytest.approx(np.sqrt(second - mean**2), abs=2e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("df", [2.5, 5.0, 30.0])
def test_students_t_is_that_of_scipy(seed, df):
    z = np.random.default_rng(seed).standard_t(df, 400)
    p = ss.Predictions(y_std=np.ones(400), error=z)
    ours = ss.scores.tails(p)

    def log_likelihood(df, scale):
        return stats.t.logpdf(z, min(df, 1e9), scale=scale).sum()

    df_scipy, _, scale = stats.t.fit(z, floc=0)
    found = stats.t.fit(z, fdf=min(ours.nu, 1e6), floc=0)[2]
    assert log_likelihood(ours.nu, found) >= log_likelihood(df_scipy, scale) - 1e-2
