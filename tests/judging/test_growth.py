"""Memory that grows with the rows, and not with rows times resamples or draws."""

import tracemalloc

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.judging import confidence_intervals
from sigmascale.judging.confidence_intervals import bca_interval, bootstrap_t_interval


@pytest.mark.parametrize("interval", [bca_interval, bootstrap_t_interval])
def test_bins_are_resampled_some_at_a_time_with_the_same_weights(interval, monkeypatch):
    rng = np.random.default_rng(0)
    sizes = np.repeat([6, 7, 40], [50, 30, 5])
    values = rng.chisquare(1, sizes.sum())

    def limits():
        return interval(values, sizes, np.random.default_rng(1), n_resamples=200)

    at_once = limits()
    monkeypatch.setattr(confidence_intervals, "_MEANS_AT_ONCE", 10 * 200)
    np.testing.assert_allclose(limits(), at_once, rtol=1e-12)


def test_labels_of_few_rows_take_no_memory_for_each_resample():
    n, n_resamples = 30_000, 1500
    values = np.random.default_rng(0).chisquare(1, n)
    tracemalloc.start()
    bca_interval(
        values,
        np.full(n // 6, 6),
        np.random.default_rng(1),
        n_resamples=n_resamples,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * 8 * n_resamples * n // 6


@pytest.mark.slow
def test_validating_labels_of_six_rows_takes_at_most_eight_times_the_input():
    n = 6 * 166_667
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, n)
    error = rng.normal(size=n) * u
    labels = np.array([f"L{i // 6}" for i in range(n)])
    tracemalloc.start()
    ss.validate(error, u, {"label": labels})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * (u.nbytes + error.nbytes + labels.nbytes)
