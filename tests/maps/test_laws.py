"""Laws of z: everything that a table of quantiles says is that of plain integration."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from sigmascale.exceptions import FewRowsWarning
from sigmascale.maps.laws import NORMAL, EmpiricalLaw, QuantileTable

RNG = np.random.default_rng(0)
NONE = np.zeros(1, dtype=np.int64)
SETS = {
    "normal": (RNG.normal(size=25), None),
    "one row": (np.array([0.7]), None),
    "two rows": (np.array([-1.0, 2.0]), None),
    "half zero": (np.append(np.zeros(30), RNG.normal(size=30)), None),
    "atoms at the ends": (np.repeat([-2.0, 0.5, 3.0], [4, 1, 7]), None),
    "all alike": (np.full(12, 1.5), None),
    "heavy tails": (RNG.standard_t(1.5, 60), None),
    "whole weights": (RNG.normal(size=20), RNG.integers(1, 5, 20).astype(float)),
    "real weights": (RNG.exponential(size=30), RNG.gamma(0.7, size=30)),
    "many rows": (RNG.lognormal(size=3000), None),
    "many weights": (RNG.normal(size=1500), RNG.gamma(0.7, size=1500)),
}
every_set = pytest.mark.parametrize("name", SETS)


def table_of(name, most=1001):
    return QuantileTable.learn(*SETS[name], most)


def share_up_to(table, x, *, below=False):
    """Return the share of levels whose quantile is at most x, line by line."""
    p = np.concatenate([[0], table.levels, [1]])
    q = np.concatenate([table.values[:1], table.values, table.values[-1:]])
    total = 0.0
    for width, a, b in zip(np.diff(p), q[:-1], q[1:], strict=True):
        if a == b:
            total += width * (a < x if below else a <= x)
        else:
            total += width * min(max((x - a) / (b - a), 0.0), 1.0)
    return total


def points_of(table):
    """Return values inside, at the quantiles, and outside."""
    q = table.values
    few = q[:: max(1, q.size // 6)]
    spread = np.ptp(q) + 1
    inside = (few[1:] + few[:-1]) / 2
    return np.concatenate([few, inside, [q[0] - spread, q[-1], q[-1] + 3 * spread]])


@every_set
def test_the_ranked_score_is_the_integral_of_squared_differences(name):
    table = table_of(name, most=60)
    points = points_of(table)
    found = table.ranked_scores(points)
    for y, score in zip(points, found, strict=True):
        knots = np.unique(np.append(table.values, y))

        def square(x, y=y):
            return np.array(
                [(share_up_to(table, each) - (each >= y)) ** 2 for each in x]
            )

        # between two knots, it is a polynomial of the second degree
        expected = sum(
            integrate.fixed_quad(square, a, b, n=3)[0] for a, b in pairwise(knots)
        )
        assert score == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_set
def test_quantiles_invert_the_distribution(name):
    table = table_of(name, most=60)
    low, high = table.values[0] - 1, table.values[-1] + 1
    for level in (0.001, 0.1, 1 / 3, 0.5, 0.77, 0.999):
        (found,) = table.quantiles(np.array([level]))
        step = 1e-9 * max(1, abs(found))
        assert share_up_to(table, found + step) >= level
        assert share_up_to(table, found - step, below=True) <= level
        if table.levels[0] < level < table.levels[-1]:
            expected = optimize.bisect(
                lambda x, level=level: share_up_to(table, x) - level,
                low,
                high,
                xtol=1e-13,
            )
            assert found == pytest.approx(expected, abs=1e-9)


@every_set
def test_cumulative_probabilities_are_shares_of_the_levels(name):
    table = table_of(name)
    points = points_of(table)
    expected = [share_up_to(table, x) for x in points]
    np.testing.assert_allclose(table.cdf(points), expected, atol=1e-12)
    expected = [share_up_to(table, x, below=True) for x in points]
    np.testing.assert_allclose(table.below(points), expected, atol=1e-12)


@every_set
def test_mean_and_spread_are_integrals_of_the_quantiles(name):
    table = table_of(name, most=60)

    def moment(power, centre=0.0):
        def of(p):
            return (table.quantiles(p) - centre) ** power

        knots = np.unique(np.concatenate([[0], table.levels, [1]]))
        return sum(integrate.fixed_quad(of, a, b, n=3)[0] for a, b in pairwise(knots))

    mean = moment(1)
    assert table.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    expected = np.sqrt(moment(2, mean))
    assert table.std == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_set
def test_every_table_is_sound(name):
    assert table_of(name).is_sound
    assert table_of(name, most=7).is_sound


def test_tables_that_are_none_are_not_sound():
    good = [0.2, 0.8], [1.0, 2.0]
    assert QuantileTable(*map(np.array, good)).is_sound
    for levels, values in (
        ([0.2, 0.2], [1.0, 2.0]),
        ([0.2, 0.8], [2.0, 1.0]),
        ([0.0, 0.8], [1.0, 2.0]),
        ([0.2, 1.0], [1.0, 2.0]),
        ([0.2], [1.0, 2.0]),
        ([0.2, 0.8], [1.0, np.inf]),
        ([], []),
    ):
        assert not QuantileTable(np.array(levels), np.array(values)).is_sound


@pytest.mark.parametrize("most", [1001, 30])
def test_a_whole_weight_counts_repeats(most):
    z = RNG.normal(size=40).round(1)  # some are the same
    w = RNG.integers(1, 5, 40)
    weighted = QuantileTable.learn(z, w.astype(float), most)
    repeated = QuantileTable.learn(np.repeat(z, w), None, most)
    p = np.linspace(0.001, 0.999, 400)
    np.testing.assert_allclose(weighted.quantiles(p), repeated.quantiles(p), atol=1e-12)
    x = np.linspace(-4, 4, 300)
    np.testing.assert_allclose(weighted.cdf(x), repeated.cdf(x), atol=1e-12)
    np.testing.assert_allclose(
        weighted.ranked_scores(x), repeated.ranked_scores(x), rtol=1e-12
    )


def test_weights_make_a_sample_that_of_others():
    z = RNG.uniform(-1, 1, 20_000)
    table = QuantileTable.learn(z, 1 + z, 1001)  # the density of the others is rising
    p = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(table.quantiles(p), 2 * np.sqrt(p) - 1, atol=0.03)


def test_many_rows_make_a_thousand_quantiles_that_lose_little():
    z = RNG.standard_t(3, 50_000)
    found, whole = (QuantileTable.learn(z, None, most) for most in (1001, 10**9))
    assert found.levels.size == 1001
    assert found.values[[0, -1]].tolist() == [z.min(), z.max()]
    p = np.append(np.linspace(0.002, 0.998, 500), [0.0005, 0.9995])
    np.testing.assert_allclose(
        found.quantiles(p), whole.quantiles(p), rtol=0.02, atol=0.003
    )
    x = RNG.standard_t(3, 1000)
    assert found.ranked_scores(x).mean() == pytest.approx(
        whole.ranked_scores(x).mean(), rel=1e-4
    )


def test_a_thousand_z_scores_have_nearly_the_score_of_an_ensemble():
    for z in (RNG.normal(size=1000), RNG.standard_t(3, 1000), RNG.lognormal(size=1000)):
        y = RNG.permutation(z)[:300] + 0.01
        pairs = np.mean(np.abs(z[:, None] - z))
        ensemble = np.mean(np.abs(z - y[:, None])) - pairs / 2
        found = QuantileTable.learn(z, None, 1001).ranked_scores(y).mean()
        assert found == pytest.approx(ensemble, rel=0.002)


# --- the normal law ------------------------------------------------------------------


@pytest.mark.parametrize("z", [-7.0, -0.3, 0.0, 1e-9, 2.5, 30.0])
def test_the_normal_law_is_that_of_plain_integration(z):
    (found,) = NORMAL.ranked_scores(np.array([z]), NONE)
    below = integrate.quad(lambda x: stats.norm.cdf(x) ** 2, -40, z, epsabs=1e-13)[0]
    above = integrate.quad(lambda x: stats.norm.sf(x) ** 2, z, 40, epsabs=1e-13)[0]
    assert found == pytest.approx(below + above, abs=1e-10)
    assert NORMAL.cdf(np.array([z]), NONE)[0] == stats.norm.cdf(z)
    quantile = NORMAL.quantiles(np.array([0.9]), NONE)[0, 0]
    assert quantile == pytest.approx(stats.norm.ppf(0.9), rel=1e-14)
    assert (NORMAL.mean(NONE), NORMAL.std(NONE)) == (0, 1)


# --- laws by bins of the scale -------------------------------------------------------


@pytest.fixture(scope="module")
def by_bins():
    """Return the law of z-scores: uniform where the scale is small, and else skewed."""
    rng = np.random.default_rng(1)
    scale = rng.uniform(1, 3, 4000)
    z = np.where(scale < 2, rng.uniform(-1, 1, 4000), rng.exponential(size=4000) - 1)
    return EmpiricalLaw.learn(z, scale, None, 2)


def test_each_bin_of_the_scale_has_the_law_of_its_own_rows(by_bins):
    law = by_bins
    assert len(law.tables) == 2
    assert sum(each.levels.size for each in law.tables) <= 1001
    codes = law.codes(np.array([1.1, 2.9]))
    assert codes.tolist() == [0, 1]
    p = np.array([0.1, 0.9])
    expected = [2 * p - 1, -np.log1p(-p) - 1]
    np.testing.assert_allclose(law.quantiles(p, codes), expected, atol=0.1)
    x, of_rows = np.linspace(-2, 5, 50), np.arange(50) % 2
    for method in ("cdf", "below", "ranked_scores"):
        found = getattr(law, method)(x, of_rows)
        for code, table in enumerate(law.tables):
            own = of_rows == code
            np.testing.assert_array_equal(found[own], getattr(table, method)(x[own]))
    for what in ("mean", "std"):
        alone = [getattr(table, what) for table in law.tables]
        np.testing.assert_array_equal(getattr(law, what)(codes), alone)
    draws = np.full((2, 3), 0.5)
    np.testing.assert_allclose(
        law.draws(draws, codes), np.tile(law.quantiles(p[:1] * 5, codes), 3)
    )
    assert "in 2 bins" in law.words


def test_a_scale_that_is_all_alike_has_one_law():
    law = EmpiricalLaw.learn(RNG.normal(size=1000), np.ones(1000), None, 5)
    assert len(law.tables) == 1
    assert law.is_sound


def test_levels_beyond_the_rows_get_the_outermost_z_score_and_are_told():
    z = np.arange(1.0, 40.0)  # 39 rows: the first is the level 1 / 40
    law = EmpiricalLaw.learn(z, np.ones(39), None, 1)
    codes = np.zeros(2, dtype=np.int64)
    found = law.quantiles(np.array([0.025, 0.5, 0.975]), codes)
    np.testing.assert_allclose(found, [[1, 20, 39]] * 2)
    with pytest.warns(FewRowsWarning, match=r"what 39 rows can tell.*need 99 rows"):
        found = law.quantiles(np.array([0.01, 0.5]), codes)
    assert found[:, 0].tolist() == [1, 1]
    with pytest.warns(FewRowsWarning, match=r"need 999 rows"):
        assert law.quantiles(np.array([0.999]), codes)[0, 0] == 39
    law.draws(np.full((1, 1), 1e-9), codes[:1])  # random draws are no question
