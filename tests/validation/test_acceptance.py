"""Up to which uncertainty predictions may be used as they are."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

LIMIT = 2.0
KINDS = ("plain", "ties", "tails", "one u a group", "weights")


def drawn(kind, n, rng):
    """Return rows, and the share of errors beyond 2 up to each u."""
    u = np.exp(0.7 * rng.normal(size=n))
    groups = weights = None
    if kind == "ties":
        u = rng.choice([0.3, 0.6, 1.0, 1.5, 3.0], n)
    error = 1.2 * u * rng.normal(size=n)
    if kind == "tails":
        error = 1.2 * u * rng.standard_t(2.5, n) / np.sqrt(5)
    if kind == "one u a group":
        groups = rng.integers(0, n // 10, n)
        u = np.exp(0.7 * rng.normal(size=n // 10))[groups]
        common = rng.normal(size=n // 10)[groups]
        error = 1.2 * u * np.sqrt(0.5) * (common + rng.normal(size=n))
    if kind == "weights":
        x = rng.normal(size=n)
        weights = np.exp(0.7 * x)
        error = u * np.exp(0.3 * x) * rng.normal(size=n)
    return ss.Predictions(y_std=u, error=error, groups=groups, weights=weights)


@pytest.fixture(scope="module")
def truth():
    """The share of errors beyond the limit up to each u, of many rows, by kind."""
    shares = {}
    for kind in KINDS:
        p = drawn(kind, 400_000, np.random.default_rng(99))
        order = np.argsort(p.y_std, kind="stable")
        w = np.ones(p.n_rows) if p.weights is None else p.weights[order]
        beyond = np.cumsum(w * (np.abs(p.error[order]) > LIMIT)) / np.cumsum(w)
        shares[kind] = p.y_std[order], beyond
    return shares


@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_is_broken_in_at_most_five_per_cent(kind, truth):
    u, beyond = truth[kind]
    broken = 0
    n_trials = 60
    for seed in range(n_trials):
        p = drawn(kind, 1000, np.random.default_rng(seed))
        a = ss.accept(p, limit=LIMIT)
        if a.up_to is not None:
            last = np.searchsorted(u, a.up_to, side="right") - 1
            broken += beyond[last] > 0.05
    assert broken <= 0.05 * n_trials + 2 * np.sqrt(0.05 * 0.95 * n_trials)


def test_a_u_that_fails_at_its_small_end_still_keeps_rows():
    rng = np.random.default_rng(0)
    u = np.exp(0.7 * rng.normal(size=4000))
    error = np.where(u < 0.4, 1.4, 0.6 * u) * rng.normal(size=4000)
    assert ss.accept(ss.Predictions(y_std=u, error=error), limit=LIMIT).kept > 0.3


def test_rows_are_marked_and_numbers_agree_with_them():
    p = drawn("plain", 2000, np.random.default_rng(1))
    a = ss.accept(p, limit=LIMIT)
    kept = a.of(p)
    assert kept.mean() == pytest.approx(a.kept)
    assert (np.abs(p.error[kept]) > LIMIT).mean() == pytest.approx(a.beyond)
    assert a.beyond < a.upper <= 0.05
    assert "ACCEPT u up to" in str(a)
    assert a.to_dict()["up_to"] == a.up_to


def test_units_and_order_change_nothing():
    p = drawn("ties", 900, np.random.default_rng(2))
    a = ss.accept(p, limit=LIMIT)
    turned = p.take(np.random.default_rng(0).permutation(p.n_rows))
    in_unit = ss.Predictions(y_std=1e-3 * turned.y_std, error=1e-3 * turned.error)
    b = ss.accept(in_unit, limit=1e-3 * LIMIT)
    assert (b.kept, b.upper) == pytest.approx((a.kept, a.upper))


def test_distributions_rank_by_risk():
    data = ss.datasets.make_molecules(3000, seed=1).predictions
    new = ss.datasets.make_molecules(3000, seed=2).predictions
    q = ss.Recalibrator().fit(data).apply(new)
    a = ss.accept(q, limit=float(np.quantile(np.abs(q.error), 0.85)))
    assert a.ranking == "risk"
    assert 0 < a.up_to < 1
    assert a.of(q).mean() == pytest.approx(a.kept)
    with pytest.raises(InvalidInputError, match=r"r\.apply"):
        a.of(data)


def test_too_few_rows_and_bad_rows_say_so():
    few = ss.accept(drawn("plain", 60, np.random.default_rng(0)), limit=LIMIT)
    assert few.up_to is None
    assert few.rows_needed > 60
    assert "rows could show it" in str(few)
    rng = np.random.default_rng(0)
    bad = ss.Predictions(y_std=np.ones(500), error=3 * rng.normal(size=500))
    a = ss.accept(bad, limit=LIMIT)
    assert a.rows_needed is None
    assert "NOTHING" in str(a)
    assert not a.of(bad).any()
    with pytest.raises(InvalidInputError, match="positive"):
        ss.accept(bad, limit=0)
