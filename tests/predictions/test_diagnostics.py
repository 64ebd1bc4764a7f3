"""One look at rows: slips and repeats are noticed, ordinary sets are not."""

import warnings

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import (
    AbsoluteErrorsWarning,
    ConstantUncertaintyWarning,
    DegenerateFitWarning,
    DominantErrorWarning,
    LikelySlipWarning,
    RepeatedRowsWarning,
    TargetsNotErrorsWarning,
    UnitsWarning,
    VarianceNotUncertaintyWarning,
)
from sigmascale.predictions.diagnostics import (
    informative,
    repeats_found,
    slips_found,
    warn_of_dominant,
    warn_of_oddities,
)

N = 300
RNG = np.random.default_rng(0)
U = 0.1 * RNG.lognormal(sigma=0.7, size=N)
ERROR = U * RNG.normal(size=N)


def rows(u=U, error=ERROR, **others):
    return ss.Predictions(y_std=u, error=error, **others)


def kinds(p):
    return [kind for _, kind in slips_found(p)]


def test_each_slip_is_noticed_by_its_own_class():
    for p, expected in [
        (rows(error=ERROR - 400), TargetsNotErrorsWarning),
        (rows(error=3 + 0.5 * np.arange(N) / N), TargetsNotErrorsWarning),
        (rows(error=-2 + 10 * ERROR), TargetsNotErrorsWarning),
        (rows(error=np.abs(ERROR)), AbsoluteErrorsWarning),
        (rows(u=U**2), VarianceNotUncertaintyWarning),
        (rows(u=np.full(N, 0.1)), ConstantUncertaintyWarning),
        (rows(u=U / 1000), UnitsWarning),
        (rows(u=U * 1000), UnitsWarning),
        (rows(u=U * 1000, error=np.tile(ERROR, (2, 1)).T), UnitsWarning),
    ]:
        assert kinds(p) == [expected]
        assert issubclass(expected, LikelySlipWarning)
        with pytest.warns(expected) as told:
            warn_of_oddities(p, stacklevel=1)
        assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_oddities(rows(u=np.full(N, 0.1)), learning=False)
    few = np.arange(50)
    assert kinds(rows(error=ERROR - 400).take(few)) == []


def test_sets_that_are_only_badly_calibrated_are_no_slips():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        u, z = rng.lognormal(sigma=0.5, size=N), rng.normal(size=N)
        zeros = np.where(np.arange(N) % 2, u * z, 0)
        for factor in (0.1, 0.5, 1.0, 3.0, 30.0):
            for error in (u * z, u * rng.standard_t(2, N), zeros, u * (z + 0.5), z):
                assert kinds(rows(factor * u, error)) == []
            # so that u is about as large as the squares of errors
            beside = rng.normal(size=N) * np.hypot(0.2 * u, 0.3)
            assert kinds(rows(0.2 * factor * u, beside)) == []


def test_variances_are_told_from_uncertainties_by_the_errors_alone():
    right = wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u = 0.3 * rng.lognormal(sigma=0.7, size=N)
        error = u * rng.standard_t(5, N)
        off = 10 ** rng.uniform(-1, 1)
        hinted = VarianceNotUncertaintyWarning in kinds(rows((off * u) ** 2, error))
        right += hinted
        wrong += VarianceNotUncertaintyWarning in kinds(rows(off * u, error))
        shuffled = rng.permutation(N)
        again = kinds(rows((off * u[shuffled]) ** 2, error[shuffled]))
        assert (VarianceNotUncertaintyWarning in again) is hinted
    assert right >= 11
    assert wrong == 0


def found(n, u=None, features=None, error=None):
    rng = np.random.default_rng(1)
    u = rng.uniform(1, 2, n) if u is None else u
    error = u * rng.normal(size=n) if error is None else error
    return repeats_found(rows(u, error, features=features))


def of_groups(n_groups, sizes):
    return np.repeat(np.random.default_rng(2).normal(size=n_groups), sizes)


def test_what_rows_of_a_sample_share_is_noticed():
    for n_groups, size in [(250, 4), (500, 2), (82, 5), (30, 10)]:
        x = of_groups(n_groups, size)
        assert f"`x` has about {n_groups} " in found(x.size, features={"x": x})
        assert f"`u` has about {n_groups} " in found(x.size, u=np.exp(x))
    uneven = of_groups(200, np.random.default_rng(4).integers(1, 11, 200))
    assert found(
        uneven.size, features={"own": np.sin(np.arange(uneven.size)), "x": uneven}
    )
    many = of_groups(50_000, 4)
    assert "about 5" in found(many.size, features={"x": many})


def test_rows_that_appear_twice_are_noticed():
    u, error = RNG.uniform(1, 2, 500), RNG.normal(size=500)
    twice, few = (np.r_[np.arange(500), np.arange(k)] for k in (60, 10))
    assert "another row" in found(560, u=u[twice], error=error[twice])
    assert not found(510, u=u[few], error=error[few])


def test_ties_that_mean_nothing_are_passed_over():
    for x in (
        np.round(RNG.normal(size=1000), 2),
        np.round(RNG.lognormal(size=1000), 1),
        RNG.integers(0, 250, 1000).astype(float),
        298.15 + 5 * RNG.integers(0, 60, 1000),
        np.linspace(0, 1, 37)[RNG.integers(0, 37, 1000)],
        RNG.normal(size=10)[RNG.integers(0, 10, 1000)],
        np.repeat(RNG.normal(size=5), 200),
        RNG.normal(size=400)[RNG.zipf(1.5, 1000) % 400],  # as isomers share masses
        np.zeros(1000),
        np.where(RNG.random(1000) < 0.5, np.nan, RNG.normal(size=1000)),
        RNG.normal(size=1000),
        np.repeat([f"molecule {i}" for i in range(250)], 4),
    ):
        assert not found(1000, features={"x": x})
    u = np.round(RNG.uniform(1, 2, 1000), 1)
    assert not found(1000, u=u, error=np.where(u < 1.9, 0.0, u - 1.95))
    for n in (300, 3000):
        assert not repeats_found(ss.datasets.make_molecules(n, seed=3).predictions)


def test_groups_silence_the_warning_of_repeats():
    x = of_groups(250, 4)
    u = RNG.uniform(1, 2, 1000)
    error = u * RNG.normal(size=1000)
    with pytest.warns(RepeatedRowsWarning, match="`groups`"):
        warn_of_oddities(rows(u, error, features={"x": x}))
    warn_of_oddities(rows(u, error, features={"x": x}, groups=x))


def test_one_error_that_outweighs_all_others_is_told_by_its_row():
    error = ERROR.copy()
    error[17] = 1e3
    weights = np.where(np.arange(N) < 5, 0.0, 1.0 + np.arange(N))
    with pytest.warns(DominantErrorWarning, match="row 17,"):
        warn_of_dominant(rows(error=error, weights=weights))
    warn_of_dominant(rows())


def test_errors_of_0_teach_nothing_and_are_told():
    for zeros in (np.zeros(N), np.zeros((N, 3))):
        with pytest.warns(DegenerateFitWarning, match="All 300 errors are 0"):
            p = informative(rows(error=zeros))
        np.testing.assert_allclose(p.z2, 1)
    p = rows()
    assert informative(p) is p
