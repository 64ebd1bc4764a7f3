"""Intervals that follow a stream: what they hold, and what is kept of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def stream(n=3000, seed=0, factor=2.0, **more):
    """Rows whose errors grow by a factor in the middle."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.4, n)
    grown = np.where(np.arange(n) < n // 2, 1.0, factor)
    y_pred = rng.normal(size=n)
    y_true = y_pred + grown * u * rng.normal(size=n)
    return ss.Predictions(y_pred, u, y_true=y_true, **more)


def recalibrator(**options):
    known = stream(1000, seed=99, factor=1.0)
    return ss.Recalibrator(ss.LinearScaling(), **options).fit(known)


def held(limits, p):
    return (limits[:, 0] <= p.y_true) & (p.y_true <= limits[:, 1])


def one_by_one(follower, p):
    """Return which rows were held by the intervals that they were given."""
    found = []
    for k in range(len(p)):
        row = p.take(np.array([k]))
        found.append(held(follower.interval(row), row)[0])
        follower.update(row)
    return np.array(found)


def test_before_any_row_intervals_are_those_of_the_recalibrator():
    p = stream(50)
    for options in ({}, {"bias": "constant"}, {"bounds": (0, None)}):
        r = recalibrator(**options)
        wanted = r.apply(p).distributions.interval(0.8)
        np.testing.assert_allclose(ss.Follower(r, 0.8).interval(p), wanted, atol=1e-12)


def test_rows_are_held_after_a_change_and_the_share_of_misses_is_exact():
    p, follower = stream(), ss.Follower(recalibrator(), 0.9)
    is_held = one_by_one(follower, p)
    static = held(follower.recalibrator.apply(p).distributions.interval(0.9), p)
    assert static[1500:].mean() < 0.65
    assert is_held[1600:].mean() == pytest.approx(0.9, abs=0.01)
    # the identity: misses of rows that came one by one follow from the state
    misses = 1 - is_held.mean()
    assert misses == pytest.approx(0.1 + follower.log_stretch / (0.05 * 3000))
    assert follower.missed == pytest.approx(misses)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_batches_are_one_stream(sizes):
    follower, whole = (ss.Follower(recalibrator_once(), 0.9) for _ in range(2))
    p = stream(sum(sizes))
    start = 0
    for size in sizes:
        follower.update(p.take(np.arange(start, start + size)))
        start += size
    whole.update(p)
    assert follower.log_stretch == whole.log_stretch
    assert follower.n_units == whole.n_units == sum(sizes)


_once = []


def recalibrator_once():
    if not _once:
        _once.append(recalibrator())
    return _once[0]


def test_a_follower_that_is_saved_and_loaded_goes_on_as_if_it_had_not_been(tmp_path):
    p, follower = stream(), ss.Follower(recalibrator(), 0.9)
    follower.update(p.take(np.arange(1700)))
    follower.save(tmp_path / "f.json")
    again = ss.load(tmp_path / "f.json", kind=ss.Follower)
    rest = p.take(np.arange(1700, 3000))
    assert again.update(rest).log_stretch == follower.update(rest).log_stretch
    np.testing.assert_array_equal(again.interval(p), follower.interval(p))
    assert again.to_dict() == follower.to_dict()


def test_rows_are_taken_in_the_order_of_their_time():
    p = stream(400, time=np.arange(400.0))
    shuffled = p.take(np.random.default_rng(0).permutation(400))
    follower, other = (ss.Follower(recalibrator(), 0.9) for _ in range(2))
    assert follower.update(shuffled).log_stretch == other.update(p).log_stretch


def test_a_group_counts_once():
    groups = np.repeat(np.arange(100), 5)
    follower = ss.Follower(recalibrator(), 0.9).update(stream(500, groups=groups))
    assert follower.n_units == 100
    # 500 copies of a row are one unit: t moves by one step, not by 500
    p = stream(1)
    copies = p.take(np.zeros(500, dtype=int))
    copies = ss.Predictions(
        copies.y_pred, copies.y_std, y_true=copies.y_true + 99, groups=np.zeros(500)
    )
    again = ss.Follower(recalibrator(), 0.9).update(copies)
    assert again.log_stretch == pytest.approx(0.5 * 0.9)
    assert again.missed == pytest.approx(1.0)
    with pytest.raises(InvalidInputError, match="groups"):
        again.update(p)


def test_balls_of_vectors_follow_too():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.3, 2000)
    error = u[:, None] * rng.normal(size=(2000, 3))
    p = ss.Predictions(np.zeros((2000, 3)), u, error=error)
    r = ss.Recalibrator(ss.LinearScaling()).fit(p)
    worse = ss.Predictions(np.zeros((2000, 3)), u, error=2 * error)
    follower = ss.Follower(r, 0.9).update(worse)
    assert follower.missed == pytest.approx(0.1, abs=0.02)
    static = r.apply(worse).distributions.radius(0.9)
    np.testing.assert_allclose(follower.radius(worse) / static, 2, rtol=0.2)
    with pytest.raises(InvalidInputError, match="radius"):
        follower.interval(worse)


def test_what_is_no_recalibrator_is_refused():
    for wrong in (ss.Recalibrator(), None, stream(5)):
        with pytest.raises(InvalidInputError, match="fitted Recalibrator"):
            ss.Follower(wrong)
    with pytest.raises(InvalidInputError, match="coverage"):
        ss.Follower(recalibrator(), 1.2)


def test_ties_are_counted_as_the_intervals_that_were_given_have_held_them():
    # where log t comes back to 0, limits are ties, which t = 1 - 2e-15 would miss
    n = 1000
    error = np.random.default_rng(11).integers(-1, 2, n + 500).astype(float)
    p = ss.Predictions(y_std=np.ones(n + 500), error=error)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(p.take(slice(500)))
    for coverage in (0.9, 0.95):
        follower = ss.Follower(r, coverage)
        n_missed = 0
        for k in range(500, n + 500):
            row = p.take(np.array([k]))
            ((low, high),) = follower.interval(row)
            n_missed += not low <= error[k] <= high
            follower.update(row)
        assert round(n * follower.missed, 6) == n_missed
        whole = ss.Follower(r, coverage).update(p.take(slice(500, None)))
        assert whole.log_stretch == follower.log_stretch
        covered = f"covered {100 * (1 - n_missed / n):.1f} % of 1,000 rows"
        assert f"{100 * coverage:g} % intervals {covered}" in follower.words


def test_a_group_whose_errors_lie_on_the_limits_is_held():
    r = recalibrator()
    one = ss.Predictions(y_std=[1.0], error=[0.0])
    low, high = r.apply(one).distributions.interval(0.9)[0]
    p = ss.Predictions(y_std=np.ones(3), error=[low, 0, high], groups=np.zeros(3))
    assert ss.Follower(r, 0.9).update(p).missed == 0


def test_a_follower_shows_its_coverage_and_how_many_rows_have_come():
    follower = ss.Follower(recalibrator(), 0.8)
    assert "No row has come: 80 % intervals" in repr(follower)
    follower.update(stream(200, groups=np.arange(200) // 2))
    covered = f"{100 * (1 - follower.missed):.1f} % of 100 groups"
    for shown in (repr(follower), follower._repr_html_()):
        assert f"80 % intervals covered {covered}" in shown
        assert f"a factor of {follower.stretch:.3g}." in shown
    assert follower._repr_html_() == f"<p>{follower!r}</p>"
