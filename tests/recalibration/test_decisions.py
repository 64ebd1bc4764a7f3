"""Decisions: nothing is learned that is not there, and what is there is learned.

A fit decides on trees, on the sign of b², on a power of u, on a bias, on the number of
tables of z and on parts. Rates are those of seeds that have chosen nothing.
"""

import warnings

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import ExtrapolationWarning

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SEEDS = range(700, 740)


def rows(seed, n, errors, n_features=0, **more):
    """Rows whose errors are a function of u, of normal numbers and of the features."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, n_features))
    u = rng.lognormal(0, 0.5, n)
    error = errors(u, rng.normal(size=n), x)
    features = x if n_features else None
    return ss.Predictions(y_std=u, error=error, features=features, **more)


def right(u, z, _):
    return u * z


def by_x(size):
    return lambda u, z, x: u * z * np.exp(size * x[:, 0])


def count(decision, n, errors, n_features=0, seeds=SEEDS):
    return sum(bool(decision(rows(seed, n, errors, n_features))) for seed in seeds)


def line(p, **options):
    return ss.Recalibrator(ss.LinearScaling(), **options).fit(p)


def has_trees(p):
    return ss.Recalibrator(ss.BoostedScaling(max_trees=60)).fit(p).scale_.tables


def base_without_trees(p):
    return ss.Recalibrator(ss.BoostedScaling(max_trees=0)).fit(p).scale_.base


# -- the scale -------------------------------------------------------------------------


def test_trees_grow_seldom_where_nothing_is_to_be_learned():
    # 12 and 6 of 40 where the gain must be half a standard error; 23 and 16 without
    assert count(has_trees, 200, right, n_features=4) <= 16
    assert count(has_trees, 800, right, n_features=2) <= 10


def test_trees_grow_where_a_feature_tells_the_size_of_errors():
    assert count(has_trees, 400, by_x(0.5), n_features=1, seeds=SEEDS[:15]) == 15


def test_nothing_is_subtracted_where_u_is_right_and_a_part_that_errors_lack_is():
    def subtracts(p):
        return line(p).scale_.base.b < 0

    def excess(u, z, _):
        return z * np.sqrt(np.maximum(u**2 - 0.36, 0.01))

    # 2 of 40; where the likelihood need not be clearly higher, 20
    assert count(subtracts, 300, right) <= 5
    assert count(subtracts, 300, excess) >= 39


def test_a_power_of_u_is_taken_where_rows_out_of_fold_gain_from_it_and_else_is_not():
    def has_power(p):
        return base_without_trees(p).power

    assert count(has_power, 400, right) <= 2
    for power in (1.3, 1.6):
        assert count(has_power, 600, lambda u, z, _, q=power: u**q * z) >= 37
    bases = [
        base_without_trees(rows(seed, 600, lambda u, z, _: u**1.6 * z))
        for seed in SEEDS
    ]
    exponents = [1 + base.power for base in bases if base.power]
    assert np.mean(exponents) == pytest.approx(1.6, abs=0.1)


def test_few_rows_have_no_trees():
    strong = by_x(2.0)
    assert count(has_trees, 39, strong, n_features=1, seeds=SEEDS[:5]) == 0
    assert count(has_trees, 300, strong, n_features=1, seeds=SEEDS[:5]) == 5


def test_each_of_as_many_values_as_bins_has_its_own_factor_however_rare_it_is():
    rng = np.random.default_rng(0)
    x = rng.choice([0, 1, 2, 3], 2000, p=[0.7, 0.1, 0.1, 0.1])
    error = rng.normal(size=2000) * (1 + x)
    p = ss.Predictions(y_std=np.ones(2000), error=error, features={"x": x})
    (axis,) = ss.Recalibrator(ss.RakedScaling(4)).fit(p).scale_.axes
    assert axis.edges == pytest.approx([0.5, 1.5, 2.5], abs=1e-4)


# -- the bias --------------------------------------------------------------------------


def kind_of_bias(p):
    bias = line(p, bias="auto").bias_
    return "none" if bias is None else "trees" if bias.tables else "constant"


def kinds(n, errors, seeds=SEEDS[:12]):
    """Return how often each kind of bias is learned, with two features."""
    found = [kind_of_bias(rows(seed, n, errors, 2)) for seed in seeds]
    return {kind: found.count(kind) for kind in ("none", "constant", "trees")}


def test_a_bias_is_learned_where_there_is_one_and_in_its_own_form():
    assert kinds(400, right)["none"] >= 11
    assert kinds(400, lambda u, z, _: u * (z + 0.3))["constant"] >= 9
    assert kinds(400, lambda u, z, x: u * (z + 0.8 * x[:, 0]))["trees"] >= 11


def test_a_bias_that_is_asked_for_is_learned_whether_it_is_worth_it_or_not():
    constants = [
        line(rows(seed, 300, right), bias="constant").bias_.constant for seed in SEEDS
    ]
    # means of 300 normal numbers
    assert np.std(constants) == pytest.approx(1 / np.sqrt(300), rel=0.35)
    assert abs(np.mean(constants)) < 4 / np.sqrt(300 * len(constants))


def test_fewer_than_100_rows_do_not_tell_a_bias():
    def biased(u, z, _):
        return u * (z + 2)

    assert [kind_of_bias(rows(1, n, biased)) for n in (99, 100)] == ["none", "constant"]


# -- the distribution of z -------------------------------------------------------------


def n_tables(p):
    return len(line(p).distribution_.tables)


def by_size(u, z, _):
    """Errors of ±u where u is large, and normal ones where it is small."""
    return np.where(u > 1, np.sign(z), z) * u


def test_there_are_more_tables_only_where_shapes_differ():
    assert count(lambda p: n_tables(p) > 1, 1200, right) <= 6  # 5 of 60
    assert count(lambda p: n_tables(p) > 1, 1200, by_size, seeds=SEEDS[:15]) == 15


def test_a_table_of_a_bin_needs_200_rows():
    found = {n: n_tables(rows(1, n, by_size)) for n in (399, 400, 999)}
    assert found == {399: 1, 400: 2, 999: 2}


def test_fewer_than_40_rows_do_not_tell_the_sign():
    for n, is_symmetric in ((39, True), (40, False)):
        p = rows(3, n, lambda u, z, _: u * np.exp(z))
        table = line(p).distribution_.tables[0]
        found = np.allclose(table.values, -table.values[::-1])
        assert found == is_symmetric
        assert (table.values.size == 2 * n) == is_symmetric


# -- parts -----------------------------------------------------------------------------


def in_labels(seed, n, factor):
    """Rows of two labels, one of which is rare and has errors of another size."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["often", "rare"], n, p=[0.8, 0.2])
    u = rng.lognormal(0, 0.3, n)
    error = u * rng.normal(size=n) * np.where(label == "rare", factor, 1.0)
    return ss.Predictions(y_std=u, error=error, features={"label": label})


def widths(recalibrator, p):
    """Return the mean width of the intervals of each label."""
    width = np.ptp(recalibrator.apply(p).distributions.interval(0.9), axis=1)
    label = p.features["label"]
    return np.array([width[label == name].mean() for name in ("often", "rare")])


def test_parts_stretch_intervals_where_errors_are_larger_and_else_hardly():
    for factor, stretched in ((1.0, (1.0, 1.0)), (2.0, (0.82, 1.67))):
        ratios = []
        for seed in SEEDS[:20]:
            p = in_labels(seed, 600, factor)
            ratios.append(widths(line(p, parts=["label"]), p) / widths(line(p), p))
        assert np.mean(ratios, axis=0) == pytest.approx(stretched, rel=0.05)


def test_intervals_of_parts_hold_what_they_claim_in_each():
    held = []
    for seed in SEEDS[:20]:
        new = in_labels(seed + 1000, 2000, 2.0)
        q = line(in_labels(seed, 600, 2.0), parts=["label"]).apply(new)
        low, high = q.distributions.interval(0.9).T
        is_held = (low <= q.target) & (q.target <= high)
        label = new.features["label"]
        held.append([is_held[label == name].mean() for name in ("often", "rare")])
    assert np.mean(held, axis=0) == pytest.approx([0.9, 0.9], abs=0.015)


# -- what is told of new rows ----------------------------------------------------------


def test_rows_outside_the_range_of_the_fit_are_told_from_a_number_on():
    def tells(n_fit, n, n_outside, at):
        x = np.linspace(0, 1, n_fit)
        rng = np.random.default_rng(0)
        known = ss.Predictions(
            y_std=np.ones(n_fit), error=rng.normal(size=n_fit), features={"x": x}
        )
        values = np.full(n, 0.5)
        values[:n_outside] = at
        new = ss.Predictions(y_std=np.ones(n), features={"x": values})
        r = ss.Recalibrator(ss.RakedScaling()).fit(known)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            r.predict(new)
        return any(one.category is ExtrapolationWarning for one in told)

    # rows of the fit, new rows, how many of these are told, and where they lie
    for n_fit, n, most, at in (
        (99, 1000, 100, 5.0),  # 10 of each 100 far outside
        (99, 1000, 100, -4.0),
        (99, 1000, 200, 1.001),  # or 20 of each 100 outside
        (999, 1000, 50, -0.001),  # and a twentieth of the rows
        (999, 100, 10, 1.001),  # and more than 10
        (999, 100, 1, 5.0),
    ):
        is_told = [tells(n_fit, n, most + more, at) for more in (0, 1)]
        assert is_told == [False, True], (n_fit, n, most, at)
