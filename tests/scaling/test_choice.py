"""Candidates are ranked with errors of their differences that count groups."""

import numpy as np
import pytest

from sigmascale.scaling.crossfit import rank


def losses(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n), "b": rng.normal(0.3, 1, n)}


def test_copies_of_rows_do_not_make_a_difference_more_certain():
    once = losses(100)
    copied = {name: np.tile(loss, 5) for name, loss in once.items()}
    groups = np.tile(np.arange(100), 5)
    found = rank(copied, groups)
    assert found.best == rank(once).best
    single = rank(once).standard_error["b"] * np.sqrt(100 / 99)
    assert found.standard_error["b"] == pytest.approx(single)
    assert rank(copied).standard_error["b"] == pytest.approx(
        rank(once).standard_error["b"] / np.sqrt(5)
    )


def test_the_standard_error_of_dependent_rows_is_the_spread_of_their_mean():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(80), 5)
    means, errors = [], []
    for _ in range(300):
        d = rng.normal(size=80)[groups] + 0.5 * rng.normal(size=400)
        found = rank({"a": np.zeros(400), "b": 10 + d}, groups)
        means.append(found.difference["b"])
        errors.append(found.standard_error["b"])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_one_group_has_no_error_and_no_warning():
    assert rank(losses(10), np.zeros(10)).standard_error["b"] == pytest.approx(0)
