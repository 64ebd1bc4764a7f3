import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.bins.partitions import rank_bins
from sigmascale.scaling.losses import ScaledLoss


def mean_abs_log(z2, starts):
    sizes = np.diff(starts, append=z2.size)
    with np.errstate(divide="ignore"):
        return np.abs(np.log(np.add.reduceat(z2, starts) / sizes)).mean()


def straightforward_loss(
    log_factors, error, u, codes, features, *, by_uncertainty, n_score_bins
):
    """The definition: scale, sort afresh for each term, cut, and take logarithms."""
    n = error.size
    n_score_bins = min(n_score_bins, n)
    starts = np.floor(np.arange(n_score_bins) * n / n_score_bins + 0.5).astype(int)
    scaled = np.exp(log_factors)[codes] * u
    z2 = (error / scaled) ** 2
    # Only where scaled u are equal: by factor bin, then shuffled as in all scores.
    shuffled = np.argsort(rank_bins(u, 1, error=error).order)
    keys = (shuffled, codes, scaled)
    with np.errstate(divide="ignore"):
        loss = abs(np.log(z2.mean()))
    if by_uncertainty:
        loss += mean_abs_log(z2[np.lexsort(keys)], starts)
    for x in features:
        cuts = starts
        if x.dtype.kind != "f":  # labels: one bin each
            cuts = np.unique(np.sort(x), return_index=True)[1]
        loss += mean_abs_log(z2[np.lexsort((*keys, x))], cuts)
    return loss


FEATURES = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "stratified": lambda rng, n: np.round(rng.normal(size=n), 1),
    "three values": lambda rng, n: rng.integers(3, size=n).astype(float),
    "one value": lambda rng, n: np.full(n, 7.0),
    "labels": lambda rng, n: rng.choice(["ketone", "amine", "ether", "alkane"], n),
}


@st.composite
def problems(draw, zeros=(0.0, 0.0, 0.1, 0.9)):
    """Draw rows, factor bins, features, factors and options of a loss."""
    n = draw(st.integers(1, 400), label="rows")
    n_factors = draw(st.integers(1, 12), label="factors")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    u = np.exp(
        draw(st.sampled_from([0.1, 1.0, 10.0]), label="spread") * rng.normal(0, 1, n)
    )
    if draw(st.booleans(), label="ties in u"):
        u = np.round(u, 1) + 0.1
    if draw(st.booleans(), label="outlier in u"):
        u[0] = 1e-60  # beside it, all others look alike
    error = u * rng.standard_t(4, n)
    share = draw(st.sampled_from(zeros), label="share of zero errors")
    error[rng.random(n) < share] = 0
    kinds = draw(st.lists(st.sampled_from(sorted(FEATURES)), max_size=3), label="x")
    features = [FEATURES[kind](rng, n) for kind in kinds]
    by = draw(st.sampled_from(["u", "feature", "nothing"]), label="factor bins of")
    x = {"u": u, "feature": FEATURES["stratified"](rng, n), "nothing": None}[by]
    codes = rng.integers(n_factors, size=n)
    if x is not None:
        limits = np.sort(rng.choice(x, n_factors - 1))
        codes = np.searchsorted(limits, x, side="right")
    options = {
        "by_uncertainty": draw(st.booleans(), label="by uncertainty"),
        "n_score_bins": draw(st.integers(1, 130), label="score bins"),
    }
    log_factors = draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=n_factors)
    return log_factors, (error, u, codes), features, options


@given(problem=problems())
def test_the_loss_equals_the_straightforward_one(problem):
    log_factors, rows, features, options = problem
    fast = ScaledLoss(*rows, log_factors.size, features, **options)
    expected = straightforward_loss(log_factors, *rows, features, **options)
    assert fast(log_factors) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(problem=problems(zeros=(0.0,)), seed=st.integers(0, 1000))
def test_the_order_in_which_rows_come_does_not_change_a_bit_of_the_loss(problem, seed):
    log_factors, rows, features, options = problem
    order = np.random.default_rng(seed).permutation(rows[0].size)
    shuffled = [column[order] for column in rows]
    losses = [
        ScaledLoss(*each, log_factors.size, x, **options)(log_factors)
        for each, x in (
            (rows, features),
            (shuffled, [column[order] for column in features]),
        )
    ]
    assert losses[0] == losses[1]


@given(problem=problems(), log_factor=st.floats(-3, 3))
def test_one_factor_for_all_rows_moves_every_term_by_its_logarithm(problem, log_factor):
    _, (error, u, codes), features, options = problem
    error = np.abs(error) + u  # <Z²> of at least 1 in every bin: all terms fall alike
    loss = ScaledLoss(error, u, np.zeros_like(codes), 1, features, **options)
    n_terms = 1 + options["by_uncertainty"] + len(features)
    smaller = loss(np.array([-abs(log_factor)]))
    assert smaller - loss(np.zeros(1)) == pytest.approx(
        2 * abs(log_factor) * n_terms, abs=1e-9
    )


def test_more_groups_of_tied_values_than_a_byte_can_count_are_kept_apart():
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=4000), np.round(rng.normal(size=4000), 2)
    rows = (u * rng.normal(size=4000), u, rng.integers(3, size=4000))
    options = {"by_uncertainty": False, "n_score_bins": 300}
    log_factors = np.array([-1.0, 0.0, 1.0])
    found = ScaledLoss(*rows, 3, [x], **options)(log_factors)
    expected = straightforward_loss(log_factors, *rows, [x], **options)
    assert found == pytest.approx(expected, rel=1e-12)


# --- what is fast: results would be right without it ----------------------------------


def test_a_feature_that_no_limit_cuts_needs_no_order_of_rows():
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=(2, 100))
    rows = (rng.normal(size=100), u, np.zeros(100, dtype=int), 1)
    assert not ScaledLoss(*rows, [x], by_uncertainty=False)._needs_order
    assert ScaledLoss(*rows, [x])._needs_order
    assert ScaledLoss(*rows, [np.round(x)], by_uncertainty=False)._needs_order


def test_values_that_no_limit_cuts_are_lumped_together():
    x = np.arange(100.0)
    x[20:30] = 25  # cut after the fifth
    rows = (np.ones(100), 1 + np.arange(100.0), np.zeros(100, dtype=int), 1)
    (bins,) = ScaledLoss(*rows, [x], n_score_bins=4)._features
    # before, at and after 25 up to the next limit, and the last two score bins
    assert np.bincount(bins._groups).tolist() == [20, 10, 20, 25, 25]


def test_rows_are_nearly_in_order_before_they_are_merged(monkeypatch):
    sorted_arrays = []
    argsort = np.argsort

    def spy(values, **options):
        sorted_arrays.append(values)
        return argsort(values, **options)

    u = np.exp(np.linspace(0, 9, 301))
    u[7] = u[6]  # a tie
    error = np.ones(301)
    by_u, by_chance = (
        ScaledLoss(error, u, codes, 3)
        for codes in (np.arange(301) // 101, np.arange(301) * 37 % 3)
    )
    factors = np.array([0.3, 0.0, -0.4])
    monkeypatch.setattr(np, "argsort", spy)
    by_u._order(factors)
    assert len(sorted_arrays) == 1  # runs as they are, which a stable sort merges
    sorted_arrays.clear()
    by_chance._order(factors)
    _, merged = sorted_arrays
    assert np.all(np.diff(merged) > -2e-4)  # but for one part in 65536 of the range


@pytest.fixture(scope="module")
def molecules():
    return ss.datasets.make_molecules(3000, seed=1)


def test_the_loss_is_the_score_of_the_scaled_set(molecules):
    features = {**molecules.features, "group": molecules.group}
    codes = np.searchsorted([0.015, 0.02, 0.03], molecules.uncertainty, side="right")
    log_factors = np.array([-0.2, -0.6, -0.7, -0.9])
    scaled = np.exp(log_factors)[codes] * molecules.uncertainty
    card = ss.scorecard(molecules.error, scaled, features)
    rows = (molecules.error, molecules.uncertainty, codes, 4)
    columns = list(features.values())
    for loss, score in (
        (ScaledLoss(*rows), card.s_con),
        (ScaledLoss(*rows, columns, by_uncertainty=False), card.s_ada),
        (ScaledLoss(*rows, columns), card.s_tot),
    ):
        assert loss(log_factors) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize("by_uncertainty", [True, False])
def test_a_score_bin_of_zero_errors_makes_the_loss_infinite(molecules, by_uncertainty):
    error = molecules.error.copy()
    x = molecules.uncertainty  # as a feature, it has no ties
    error[np.argsort(x)[:60]] = 0  # two score bins
    codes = np.zeros(x.size, dtype=int)
    for shift in (-1.0, 0.0, 1.0):
        loss = ScaledLoss(error, x, codes, 1, [x], by_uncertainty=by_uncertainty)
        assert loss(np.array([shift])) == float("inf")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e4, -1e4])
def test_factors_that_overflow_make_the_loss_infinite_without_a_warning(molecules, bad):
    codes = (molecules.mass > 120).astype(int)
    loss = ScaledLoss(
        molecules.error, molecules.uncertainty, codes, 2, [molecules.mass]
    )
    assert loss(np.array([bad, bad])) == float("inf")


# R 4.2.2, ErrViewLib 1.7.2 and the study's script, version 1.2: its loss function at
# the factors of NLL scaling, on the calibration set. (bins, column): consistency
# (weights 1100), adaptivity (1011), total (1111).
GOLDEN = {
    (20, 0): (0.207815341660273, 0.615582024380951, 0.823397366041225),
    (40, 0): (0.164934737220961, 0.595270035167807, 0.760204772388768),
    (80, 0): (0.127832669046987, 0.560795787748433, 0.68862845679542),
    (20, 1): (0.276570839122614, 0.602100073872118, 0.878670912994732),
    (40, 1): (0.238845251242768, 0.525811928151876, 0.764657179394644),
    (80, 1): (0.204034801146808, 0.369455574353644, 0.573490375500452),
}


@pytest.mark.parametrize(("n_bins", "column"), GOLDEN)
def test_the_loss_of_analytic_factors_on_qm9_matches_the_published_code(
    qm9, n_bins, column
):
    X, error = qm9.calibration.X, qm9.calibration.error
    u, *features = X.T
    scaler = ss.BinwiseScaling(n_bins, by=column).fit(X, error)
    rows = (error, u, scaler.partition_.codes(X[:, column], u), n_bins)
    losses = (
        ScaledLoss(*rows),
        ScaledLoss(*rows, features, by_uncertainty=False),
        ScaledLoss(*rows, features),
    )
    found = [loss(np.log(scaler.factors_)) for loss in losses]
    assert found == pytest.approx(GOLDEN[n_bins, column], rel=0, abs=1e-9)
