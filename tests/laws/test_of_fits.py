"""Laws of fits: what holds whatever the rows and whatever learns from them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.recalibration.persistence import dumps
from sigmascale.recalibration.scalings import SCALINGS

from .conftest import cases, columns, fitted, read_off

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
some = settings(max_examples=15)  # each is a fit or two


@some
@given(cases(), st.integers(0, 99))
def test_order_of_rows_and_names_of_groups_and_labels_are_nothing(case, seed):
    rows, name = case
    order = np.random.default_rng(seed).permutation(rows.u.size)
    renamed = replace(rows, kind=np.char.add("k", rows.kind))
    if rows.groups is not None:
        renamed = replace(renamed, groups=1000 - rows.groups)
    p, q = rows.predictions(), renamed.take(order).predictions()
    one, other = read_off(fitted(name, p).apply(p)), read_off(fitted(name, q).apply(q))
    np.testing.assert_allclose(other, one[order], 1e-10, 1e-12)


@some
@given(cases(), st.integers(0, 99), st.booleans())
def test_files_of_fits_do_not_know_the_order_of_rows(case, seed, is_corrected):
    rows, name = case
    order = np.random.default_rng(seed).permutation(rows.u.size)
    bias = "auto" if is_corrected and rows.error.ndim == 1 else None
    p, q = rows.predictions(), rows.take(order).predictions()
    one, other = fitted(name, p, bias=bias), fitted(name, q, bias=bias)
    assume(not one.cautions_)  # which name rows by their numbers
    assert dumps(other) == dumps(one)


@pytest.mark.parametrize("seed", [185, 205, 289])
def test_what_is_kept_of_groups_does_not_know_the_order_of_rows(seed):
    """Sums over rows of groups, which lie at the edge of a rounding."""
    rng = np.random.default_rng(seed)
    u, groups = rng.lognormal(size=200), rng.integers(0, 50, 200)
    error = u * rng.normal(size=200)
    r = ss.Recalibrator(ss.TemperatureScaling(), distribution="normal")
    saved = set()
    for order in (np.arange(200), rng.permutation(200)):
        p = ss.Predictions(y_std=u[order], error=error[order], groups=groups[order])
        saved.add(dumps(r.fit(p)))
    assert len(saved) == 1


@some
@given(cases(), st.sampled_from([1e-12, 0.1, 3.0, 1e9]))
def test_the_unit_is_nothing(case, unit):
    rows, name = case
    p, q = rows.predictions(), rows.in_unit(unit).predictions()
    one, other = read_off(fitted(name, p).apply(p)), read_off(fitted(name, q).apply(q))
    np.testing.assert_allclose(other / unit, one, 1e-6, 1e-9)


@some
@given(cases(), st.floats(0.01, 100))
def test_weights_have_no_unit(case, unit):
    rows, name = case
    assume(rows.weights is not None)
    p = rows.predictions()
    q = replace(rows, weights=unit * rows.weights).predictions()
    one, other = read_off(fitted(name, p).apply(p)), read_off(fitted(name, q).apply(q))
    np.testing.assert_allclose(other, one, 1e-7, 1e-12)


@some
@given(cases(least=80, most=200))
def test_rows_without_weight_are_not_there(case):
    rows, name = case
    weights = np.ones(rows.u.size) if rows.weights is None else rows.weights
    weights = np.where(np.arange(weights.size) % 7 == 0, 0.0, weights)
    weighted = replace(rows, weights=weights)
    few = weighted.take(weights > 0).predictions()
    one, other = fitted(name, weighted.predictions()), fitted(name, few)
    np.testing.assert_allclose(one.predict(few), other.predict(few), 1e-9)


@some
@given(cases())
def test_what_is_saved_is_what_was_learned(one_folder, case):
    rows, name = case
    p = rows.predictions()
    learned = fitted(name, p)
    learned.save(one_folder / "r.json")
    loaded = ss.load(one_folder / "r.json")
    np.testing.assert_array_equal(read_off(loaded.apply(p)), read_off(learned.apply(p)))


@some
@given(columns(), st.sampled_from(["temperature", "binwise", "isotonic"]))
def test_a_factor_of_u_is_undone(rows, name):
    p = rows.predictions()
    q = replace(rows, u=3.7 * rows.u).predictions()
    np.testing.assert_allclose(
        fitted(name, q).predict(q), fitted(name, p).predict(p), 1e-6
    )


@some
@given(columns(), st.sampled_from(["raked", "boosted", "binwise"]))
def test_a_constant_feature_is_nothing(rows, name):
    p = rows.predictions()
    features = p.features | {"constant": np.ones(p.n_rows)}
    q = ss.Predictions(
        y_std=rows.u,
        error=rows.error,
        features=features,
        groups=rows.groups,
        weights=rows.weights,
    )
    np.testing.assert_allclose(
        fitted(name, q).predict(q), fitted(name, p).predict(p), 1e-9
    )


@pytest.mark.parametrize("name", sorted(SCALINGS))
def test_weights_undo_a_biased_draw(name):
    """Rows drawn where errors are small, with weights that say so, are as all rows."""
    rng = np.random.default_rng(5)
    n = 6000
    x = rng.random(n)
    error = rng.standard_t(6, n) * (1 + 2 * x) + 0.5 * x
    share = 0.05 + 0.95 * (1 - x)
    drawn = rng.random(n) < share
    p = ss.Predictions(
        y_std=np.ones(drawn.sum()), error=error[drawn], weights=1 / share[drawn]
    )
    q = fitted(name, p).apply(ss.Predictions(y_std=[1.0]))
    for level in (0.05, 0.5, 0.95):
        below = np.mean(error <= q.distributions.quantile([level])[0, 0])
        standard_error = np.sqrt(level * (1 - level) / (drawn.sum() / 4))
        assert abs(below - level) < 0.01 + 3 * standard_error


def test_a_weighted_row_stands_for_the_middle_of_its_share_of_the_levels():
    # with some of exactly 0: what has an atom is not drawn towards a normal
    z = np.sort(np.append(np.arange(-60.0, 61.0), np.zeros(40)))
    weights = np.resize([0.2, 1.0, 3.0], z.size)
    p = ss.Predictions(y_std=np.ones(z.size), error=z, weights=weights)
    d = fitted("temperature", p).apply(ss.Predictions(y_std=[1.0])).distributions
    in_effect = weights * weights.sum() / np.sum(weights**2)
    ends = np.cumsum(in_effect)
    level = (ends - in_effect / 2 + 0.5) / (ends[-1] + 1)
    own = z != 0
    np.testing.assert_allclose(d.quantile(level)[0][own], z[own], atol=1e-9)


@some
@given(cases(numbers=True), st.booleans())
def test_quantiles_ascend_and_are_the_inverse_of_the_cdf(case, is_held_out):
    rows, name = case
    p = rows.predictions()
    d = fitted(name, p, hold_out=0.3 * is_held_out).apply(p).distributions
    levels = np.array([0.02, 0.1, 0.5, 0.9, 0.98])
    quantiles = d.quantile(levels)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    if is_held_out:  # limits are steps outwards
        return
    for level, y in zip(levels[1:-1], quantiles.T[1:-1], strict=True):
        near = 1e-9 * (1 + np.abs(y))
        assert (d.cdf(y - near) <= level + 1e-6).all()
        assert (level - 1e-6 <= d.cdf(y + near)).all()


def test_z_scores_out_of_fold_are_taken_at_the_level_of_all_rows():
    """One enormous error raises the level of the folds that have seen it, not z."""
    rng = np.random.default_rng(2)
    error = rng.normal(size=400)
    error[7] = 1000.0
    p = ss.Predictions(y_std=np.ones(400), error=error)
    d = fitted("linear", p).apply(ss.Predictions(y_std=[1.0])).distributions
    one, other = d.quantile([0.16, 0.84])[0]
    assert (other - one) / 2 == pytest.approx(1, abs=0.12)
