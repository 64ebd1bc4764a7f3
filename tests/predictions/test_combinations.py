"""Sums, means and differences of rows, whose errors are correlated in groups."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sigmascale as ss
from sigmascale.exceptions import FewRowsWarning, InvalidInputError


def grouped(rho, n_groups, seed, *, df=None, scale=1.3):
    """Return rows of groups of 2 to 39, whose z-scores have a correlation."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(2, 40, n_groups))

    def draw(n):
        if df is None:
            return rng.normal(size=n)
        return rng.standard_t(df, n) * np.sqrt(1 - 2 / df)

    u = np.exp(0.4 * rng.normal(size=groups.size))
    z = np.sqrt(rho) * draw(n_groups)[groups] + np.sqrt(1 - rho) * draw(groups.size)
    pred = rng.normal(size=groups.size)
    return ss.Predictions(pred, u, y_true=pred + scale * u * z, groups=groups)


def test_a_sum_by_hand():
    p = ss.Predictions([1.0, 2.0, 4.0], [0.3, 0.4, 0.5], groups=[0, 0, 1])
    C = [[1.0, 1.0, 1.0], [0.0, -1.0, 1.0]]
    t = p.combined(C, rho=0.5)
    own = np.array([0.3**2 + 0.4**2 + 0.5**2, 0.4**2 + 0.5**2])
    together = np.array([(0.3 + 0.4) ** 2 + 0.5**2, 0.4**2 + 0.5**2])
    np.testing.assert_allclose(t.y_std**2, (own + together) / 2, rtol=1e-14)
    np.testing.assert_allclose(t.y_pred, [7.0, 2.0])
    assert t.groups.tolist() == [0, 0]  # they share rows


def test_matrices_of_all_kinds_and_frames_are_the_same():
    p = grouped(0.3, 5, seed=0)
    C = sparse.random(7, p.n_rows, 0.2, rng=np.random.default_rng(1), format="coo")
    frame = pd.DataFrame({"which": C.row, "row": C.col, "c": C.data})
    frame = frame.sort_values("which")
    expected = p.combined(C, rho=0.2)
    for other in (C.toarray(), C.tocsc(), frame):
        found = p.combined(other, rho=0.2)
        np.testing.assert_allclose(found.y_std, expected.y_std, rtol=1e-12)
        np.testing.assert_allclose(found.error, expected.error, rtol=1e-9, atol=1e-12)


def test_sums_and_means_by_label_and_by_group():
    p = ss.Predictions(
        [1.0, 2.0, 4.0],
        [0.3, 0.4, 0.5],
        features={"batch": ["b", "a", "b"]},
        groups=[1, 0, 1],
    )
    assert p.combined(by="batch", rho=0).y_pred.tolist() == [2.0, 5.0]
    assert p.combined(by="groups", rho=0, mean=True).y_pred.tolist() == [2.0, 2.5]


def test_skewed_rows_add_up_by_the_means_of_their_distributions():
    rng = np.random.default_rng(0)
    draws = rng.gamma(1.5, [[1.0], [2.0]], (2, 20_000))
    p = ss.Predictions.from_samples(draws, y_true=[1.0, 2.0])
    total = p.combined([[1, 1]], rho=0)
    assert total.y_pred == pytest.approx(draws.mean(axis=1).sum(), rel=0.02)
    assert total.y_std == pytest.approx(np.hypot(*p.distributions.std))
    assert total.y_true == pytest.approx(3.0)


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
def test_intervals_of_sums_and_differences_hold_with_a_learned_correlation(rho):
    known = grouped(rho, 200, seed=1)
    new = grouped(rho, 400, seed=2)
    r = ss.Recalibrator(ss.TemperatureScaling(), distribution="normal").fit(known)
    q = r.apply(new)
    learned = ss.scores.group_correlation(r.out_of_fold_)
    assert learned.low <= learned.rho <= learned.high
    assert abs(learned.rho - rho) < 0.1

    sums = q.combined(by="groups", rho=learned)
    assert 0.85 < (np.abs(sums.z) < 1.645).mean() < 0.95
    # of the first two rows of each group
    first = np.flatnonzero(np.diff(q.groups, prepend=-1))
    which = np.repeat(np.arange(first.size), 2)
    rows = np.stack([first, first + 1], axis=1).ravel()
    coefficients = np.tile([1.0, -1.0], first.size)
    shape = (first.size, q.n_rows)
    signs = sparse.csr_matrix((coefficients, (which, rows)), shape=shape)
    differences = q.combined(signs, rho=learned)
    assert 0.84 < (np.abs(differences.z) < 1.645).mean() < 0.96
    if rho == 0.5:  # what the correlation is for
        assert ss.scores.zms(q.combined(by="groups", rho=0)) > 4


def test_few_groups_warn_and_take_the_careful_end_of_each_row():
    p = grouped(0.3, 12, seed=3)
    learned = ss.scores.group_correlation(p)
    with pytest.warns(FewRowsWarning, match="12 groups"):
        t = p.combined(by="groups")
    np.testing.assert_allclose(t.y_std, p.combined(by="groups", rho=learned.high).y_std)
    pair = np.zeros((1, p.n_rows))
    pair[0, :2] = [1, -1]
    with pytest.warns(FewRowsWarning, match="larger"):
        t = p.combined(pair)
    np.testing.assert_allclose(t.y_std, p.combined(pair, rho=learned.low).y_std)


def test_reactions_alone_tell_the_correlation_and_a_factor():
    rng = np.random.default_rng(0)
    rhos, factors = [], []
    for _ in range(5):
        family = np.repeat(np.arange(40), 10)
        u = np.exp(0.4 * rng.normal(size=400))
        z = np.sqrt(0.6) * rng.normal(size=40)[family]
        z += np.sqrt(0.4) * rng.normal(size=400)
        C = np.zeros((150, 400))
        for row in C:
            row[rng.choice(np.flatnonzero(family == rng.integers(40)), 4, False)] = [
                1,
                1,
                -1,
                -1,
            ]
        C[:50] = 0
        for row in C[:50]:  # some between families, or ρ and the factor are one
            row[rng.choice(400, 4, replace=False)] = [1, 1, -1, -1]
        p = ss.Predictions(np.zeros(400), u, groups=family)
        learned = ss.scores.group_correlation(p, C, error=C @ (1.5 * u * z))
        rhos.append(learned.rho)
        factors.append(learned.factor)
        t = p.combined(C, rho=learned, y_true=C @ (1.5 * u * z))
        assert 0.8 < ss.scores.zms(t) < 1.2
    assert abs(np.mean(rhos) - 0.6) < 0.15
    assert abs(np.mean(factors) - 1.5) < 0.15


def test_vectors_are_combined_by_component():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 4)
    error = rng.normal(size=(100, 3))[groups]  # fully correlated
    p = ss.Predictions(np.zeros((400, 3)), np.ones(400), y_true=error, groups=groups)
    t = p.combined(by="groups")
    np.testing.assert_allclose(t.y_std, 4.0, rtol=0.05)
    assert t.y_true.shape == (100, 3)


def test_what_cannot_be_answered_names_the_remedy():
    p = ss.Predictions([1.0, 2.0], [0.3, 0.4])
    grouped_alone = ss.Predictions([1.0, 2.0], [0.3, 0.4], groups=[0, 1])
    for combine, remedy in (
        (lambda: p.combined([[1, 1]]), "rho=0"),
        (lambda: grouped_alone.combined([[1, 1]]), r"group_correlation_"),
        (lambda: p.combined([[1, 1]], rho=0.5), "groups"),
        (lambda: p.combined([[1, 1, 1]], rho=0), "column for each of 2 rows"),
        (lambda: p.combined([[0, 0]], rho=0), "coefficient in each"),
        (lambda: p.combined(rho=0), "one of them"),
        (lambda: p.combined(by="mass", rho=0), "mass"),
    ):
        with pytest.raises(InvalidInputError, match=remedy):
            combine()
