import sys

import numpy as np
import pytest

from sigmascale.scaling import optimize
from sigmascale.scaling.losses import minimise


class Counted:
    """A loss that counts how often it is asked."""

    def __init__(self, loss):
        self.loss = loss
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return float(self.loss(x))


def bowl(x):
    return np.sum(x**2)


def rugged(x):
    """A bowl with a local minimum every 0.1 along each coordinate; the least is 0."""
    return np.sum(x**2 + 0.02 * (1 - np.cos(20 * np.pi * x)))


def stairs(x):
    """A bowl that falls in steps, as scores do when rows change their bins."""
    return np.sum(np.floor(50 * np.abs(x)) / 50)


def test_the_same_seed_gives_the_same_result_to_the_last_bit():
    first, again, other = (
        minimise(rugged, np.full(5, 0.4), seed=seed, max_evaluations=1000)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.x, again.x)
    assert (first.loss, first.n_evaluations) == (again.loss, again.n_evaluations)
    assert not np.array_equal(first.x, other.x)


def test_numpy_s_global_generator_is_neither_used_nor_changed():
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002 - the generator under test
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        found.append(minimise(rugged, np.full(4, 0.4), seed=0, max_evaluations=500))
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    np.testing.assert_array_equal(found[0].x, found[1].x)


@pytest.mark.parametrize("n_parameters", [1, 2, 30])
@pytest.mark.parametrize("limit", [1, 2, 3, 59, 60, 61, 100, 701])
def test_evaluations_are_counted_and_never_exceed_the_limit(n_parameters, limit):
    loss = Counted(rugged)
    found = minimise(loss, np.full(n_parameters, 0.4), seed=0, max_evaluations=limit)
    assert found.n_evaluations == loss.calls <= limit


@pytest.mark.parametrize("n_parameters", [1, 2, 30])
def test_the_start_is_kept_when_nothing_is_better(n_parameters):
    start = np.zeros(n_parameters)
    found = minimise(bowl, start, seed=0, max_evaluations=2000)
    np.testing.assert_array_equal(found.x, start)
    assert found.loss == found.start_loss == 0


@pytest.mark.parametrize("limit", [1, 2, 50, 500])
@pytest.mark.parametrize("loss", [bowl, rugged, stairs])
def test_what_is_found_is_what_it_says_and_never_worse_than_the_start(loss, limit):
    start = np.full(6, 0.37)
    untouched = start.copy()
    found = minimise(loss, start, seed=0, max_evaluations=limit)
    np.testing.assert_array_equal(start, untouched)
    assert found.start_loss == loss(start)
    assert found.loss == loss(found.x) <= found.start_loss


@pytest.mark.parametrize("n_parameters", [2, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_lowest_of_many_local_minima_is_found(n_parameters, seed):
    start = np.full(n_parameters, 0.4)  # four minima away, in each coordinate
    found = minimise(rugged, start, seed=seed, max_evaluations=15_000)
    assert found.loss < 0.01 * found.start_loss  # at most a few one minimum away


@pytest.mark.parametrize("n_parameters", [2, 20])
def test_the_bottom_of_stairs_is_reached(n_parameters):
    found = minimise(stairs, np.full(n_parameters, 0.4), seed=0, max_evaluations=15_000)
    assert found.loss == 0


def test_one_parameter_is_found_without_a_global_search(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    found = minimise(bowl, np.array([0.4]), seed=0, max_evaluations=300)
    assert found.loss < 1e-6


def test_a_search_among_places_without_a_loss_ends_where_there_is_one():
    def half(x):
        return float("inf") if x[0] < 0 else np.sum((x + 0.05) ** 2)

    found = minimise(half, np.full(3, 0.3), seed=0, max_evaluations=3000)
    assert found.loss == pytest.approx(3 * 0.05**2 - 0.05**2 * 2, abs=1e-4)
    assert found.x[0] >= 0


@pytest.mark.parametrize("nowhere", [float("inf"), float("nan")])
def test_a_start_without_a_finite_loss_is_returned_at_once(nowhere):
    loss = Counted(lambda x: nowhere)
    start = np.array([0.1, 0.2])
    found = minimise(loss, start, seed=0, max_evaluations=100)
    np.testing.assert_array_equal(found.x, start)
    assert loss.calls == found.n_evaluations == 1
    assert not np.isfinite(found.start_loss)
    assert found.loss == float("inf")


def test_without_cma_the_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[optimize\]" in a'):
        minimise(bowl, np.ones(2), seed=0, max_evaluations=100)


def test_the_start_is_kept_where_all_is_flat():
    start = np.array([0.1, 0.2])
    found = minimise(lambda x: 1.0, start, seed=0, max_evaluations=200)
    np.testing.assert_array_equal(found.x, start)


def test_two_thirds_of_the_evaluations_are_left_to_the_global_search(monkeypatch):
    limits = []
    monkeypatch.setattr(
        optimize, "_global_search", lambda best, rng, limit: limits.append(limit) or ()
    )
    minimise(bowl, np.ones(2), seed=0, max_evaluations=600)
    assert limits == [400]


def test_the_global_search_has_generations_of_40_as_long_as_one_fits():
    for limit, expected in ((40, 1), (41, 41), (80, 41), (81, 81)):
        best = optimize._Best(bowl, np.ones(3))
        best(best.x)
        for _ in optimize._global_search(best, np.random.default_rng(0), limit):
            pass
        assert best.count == expected


# --- the walk along coordinates -------------------------------------------------------


class NoChance:
    """Stands for a generator: coordinates in turn, the lengths of steps as given."""

    def __init__(self, normal=0.0, uniform=0.0):
        self.normal, self.uniform = normal, uniform

    def permutation(self, n):
        return np.arange(n)

    def standard_normal(self):
        return self.normal

    def random(self):
        return self.uniform


def walk(loss, start, rng, limit):
    """Return the points that are tried after the start, relative to it."""
    tried = []

    def record(x):
        tried.append(x - start)
        return float(loss(x))

    best = optimize._Best(record, start)
    best(start)
    for _ in optimize._refine(best, rng, limit):
        pass
    return np.array(tried[1:])


@pytest.mark.parametrize(("uniform", "sign"), [(0.0, 1), (0.9, -1)])
@pytest.mark.parametrize("normal", [0.0, 1.0])
def test_both_ways_are_tried_and_steps_shrink_where_neither_is_better(
    normal, uniform, sign
):
    tried = walk(bowl, np.zeros(2), NoChance(normal, uniform), 10_000)
    rounds = np.ceil(np.log(1e-5 / 0.03) / np.log(0.7))  # until steps are tiny
    lengths = 0.03 * 0.7 ** np.arange(rounds) * np.exp(0.5 * normal) * sign
    expected = np.zeros((lengths.size, 4, 2))
    expected[:, 0, 0], expected[:, 1, 0] = lengths, -lengths
    expected[:, 2, 1], expected[:, 3, 1] = lengths, -lengths
    np.testing.assert_allclose(tried, expected.reshape(-1, 2), atol=1e-15)


def test_steps_double_where_they_help_and_the_walk_goes_on_while_any_does():
    # downhill along the second coordinate for ever, never along the first
    tried = walk(lambda x: x[0] ** 2 - x[1], np.zeros(2), NoChance(), 121)
    assert len(tried) == 120  # with the start, as many as allowed
    np.testing.assert_allclose(tried[:3], [[0.03, 0], [-0.03, 0], [0, 0.03]])
    np.testing.assert_allclose(tried[5], [0, 0.03 + 0.06])
    along = tried[2::3, 1]
    np.testing.assert_allclose(np.diff(along), 0.03 * 2.0 ** np.arange(1, 40))
