import numpy as np
import pytest

from sigmascale.judging.multiplicity import Compared

RNG = np.random.default_rng(0)


def make(observed, n_draws=999, n=5):
    draws = {f"q{i}": RNG.gamma(2, 1, n_draws) for i in range(n)}
    return Compared({f"q{i}": value for i, value in enumerate(observed)}, draws)


def test_the_smallest_corrected_p_depends_on_the_number_of_draws_alone():
    for n in (1, 5, 60):
        tests = make([1e6, *[1.0] * (n - 1)], n=n)
        assert tests.adjusted()["q0"] == 1 / 1000
        assert tests.p_values()["q0"] == 1 / 1000


def test_corrected_p_are_those_of_step_down_maxima():
    tests = make([6.0, 7.0, 1.0, 8.0, 2.0])
    found = tests.adjusted()
    scale = {name: (v.mean(), v.std()) for name, v in tests.draws.items()}
    unit = {n: (tests.observed[n] - m) / s for n, (m, s) in scale.items()}
    names = sorted(unit, key=lambda name: -unit[name])
    so_far = 0.0
    for i, name in enumerate(names):
        rest = [(tests.draws[n] - scale[n][0]) / scale[n][1] for n in names[i:]]
        share = (1 + np.sum(np.max(rest, axis=0) >= unit[name])) / 1000
        so_far = max(so_far, share)
        assert found[name] == pytest.approx(so_far)
        assert found[name] >= tests.p_values()[name]


def test_a_statistic_beyond_its_critical_value_is_significant():
    tests = make([1.0] * 5)
    limit = tests.critical("q2", 0.05)
    for value, significant in ((limit * 1.001, True), (limit * 0.98, False)):
        observed = tests.observed | {"q2": value}
        p = Compared(observed, tests.draws).adjusted()["q2"]
        assert (p <= 0.052) == significant


def test_one_question_of_many_fails_by_chance_as_often_as_the_level_says():
    failed = 0
    for _ in range(400):
        tests = make(RNG.gamma(2, 1, 8), n_draws=199, n=8)
        failed += min(tests.adjusted().values()) <= 0.1
    assert 0.06 < failed / 400 < 0.145
