"""RCE, <Z²>, the share within 1.96 u and the heaviness of tails."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

tails = ss.scores.tails


def make(n=1000, seed=0, df=np.inf, **others):
    """Draw a calibrated set: u² is inverse gamma, E is Student's t with df."""
    rng = np.random.default_rng([seed, 2])
    u = np.exp(0.3 * rng.normal(size=n))
    if np.isfinite(df):
        u = 1 / np.sqrt(rng.gamma(df / 2, 2 / df, n))
    return ss.Predictions(y_std=u, error=rng.normal(scale=u), **others)


def test_numbers_are_those_of_their_formulas():
    p = make()
    found = tails(p, n_resamples=100)
    rmv, rmse = np.sqrt(np.mean(p.y_std**2)), np.sqrt(np.mean(p.error**2))
    assert found.rce.value == pytest.approx((rmv - rmse) / rmv)
    assert found.zms.value == pytest.approx(p.z2.mean())
    inside = np.abs(p.z) <= 1.96
    assert found.share.value == pytest.approx(inside.mean())
    exact = stats.binomtest(int(inside.sum()), 1000).proportion_ci(0.95, "wilsoncc")
    limits = found.share.low, found.share.high
    assert limits == pytest.approx((exact.low, exact.high))
    assert found.beyond == pytest.approx(np.mean(np.abs(p.z) > 3))
    for inside, valid in ((980, False), (965, True), (935, True), (925, False)):
        z = np.where(np.arange(1000) < inside, 0.5, 2.5)
        rows = ss.Predictions(y_std=np.ones(1000), error=z)
        assert tails(rows, n_resamples=20).share_is_valid is valid
    median = np.median(p.z2)
    skewness = (p.z2.mean() - median) / np.mean(np.abs(p.z2 - median))
    assert found.skewness_z2 == pytest.approx(skewness)
    assert found.skewness_z2 == pytest.approx(0.63, abs=0.05)  # of normal z


def test_intervals_are_those_of_scipys_bca_bootstrap():
    p = make(300)
    found = tails(p)
    squares = p.y_std**2, p.error**2

    def rce(u2, e2, axis=-1):
        return 1 - np.sqrt(e2.mean(axis=axis) / u2.mean(axis=axis))

    for ours, data, statistic in (
        (found.rce, squares, rce),
        (found.zms, (p.z2,), np.mean),
    ):
        theirs = stats.bootstrap(
            data, statistic, n_resamples=10_000, paired=True, vectorized=True, rng=1
        ).confidence_interval
        width = theirs.high - theirs.low
        assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
        assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_two_digits_do_not_depend_on_the_seed_nor_on_parts_of_many_rows():
    for p in (make(800), make(9000)):
        found = [tails(p, rng=seed) for seed in range(3)]
        for name in ("rce", "zms"):
            limits = np.array(
                [[getattr(f, name).low, getattr(f, name).high] for f in found]
            )
            width = np.diff(limits.mean(axis=0))[0]
            assert np.ptp(limits, axis=0).max() < 0.12 * width
    # as narrow as sqrt(2 / n) says
    assert width == pytest.approx(2 * 1.96 * np.sqrt(2 / 9000), rel=0.1)


@pytest.mark.slow
def test_intervals_contain_the_best_value_as_often_as_they_say():
    inside = np.zeros(2)
    for seed in range(300):
        found = tails(make(300, seed, df=20), n_resamples=500)
        inside += [
            x.low <= best <= x.high for x, best in ((found.rce, 0), (found.zms, 1))
        ]
    assert (inside / 300 > 0.91).all()
    heavy = [tails(make(300, seed, df=3), n_resamples=300) for seed in range(100)]
    # where tails are heavy, RCE fails often, and says that it cannot be believed
    assert np.mean([f.rce.low <= 0 <= f.rce.high for f in heavy]) < 0.9
    assert np.mean([f.rce_is_reliable for f in heavy]) < 0.2
    assert np.mean([f.share_is_valid for f in heavy]) > 0.95


def test_heavy_tails_are_measured_and_spoil_what_depends_on_them():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 1.2, 20_000)
    light = tails(ss.Predictions(y_std=u, error=rng.normal(scale=u)), n_resamples=50)
    z = rng.standard_t(2.5, 20_000)
    heavy = tails(ss.Predictions(y_std=u, error=u * z), n_resamples=50)
    assert light.nu > 50
    assert heavy.nu == pytest.approx(2.5, abs=0.2)
    assert light.zms_is_reliable
    assert light.rce_is_reliable
    assert not heavy.zms_is_reliable
    assert not heavy.rce_is_reliable
    assert "heavy tails" in str(heavy)
    assert "heavy tails" not in str(light)


def test_repeats_tell_no_more_than_rows_and_units_do_not_matter():
    p = make(400)
    rows = np.repeat(np.arange(400), 5)
    alone, together, apart, other = (
        tails(each, n_resamples=2000)
        for each in (
            p,
            p.take(rows)._with(groups=rows),
            p.take(rows),
            p._with(y_std=1e-60 * p.y_std, error=1e-60 * p.error),
        )
    )
    for name in ("rce", "zms", "share"):
        width = {
            k: getattr(each, name).high - getattr(each, name).low
            for k, each in (("one", alone), ("groups", together), ("rows", apart))
        }
        assert width["groups"] == pytest.approx(width["one"], rel=0.12)
        assert width["rows"] < 0.6 * width["one"]
        unit = getattr(other, name)
        assert unit.low == pytest.approx(getattr(alone, name).low, rel=1e-6, abs=1e-9)
    weights = np.random.default_rng(0).lognormal(size=400)
    weighted = tails(make(400, weights=weights), n_resamples=100)
    assert weighted.zms.value == pytest.approx(np.average(p.z2, weights=weights))


def test_too_few_rows_and_errors_of_only_0_are_refused():
    with pytest.raises(InvalidInputError, match="at least 5"):
        tails(make(4))
    with pytest.raises(InvalidInputError, match="not be 0"):
        tails(ss.Predictions(y_std=np.ones(10), error=np.zeros(10)))
