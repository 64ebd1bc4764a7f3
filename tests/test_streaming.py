"""Scores of pieces are those of the whole, however it is divided."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

LIMITS = {"u": [0.7, 1.0, 1.5], "X1": [-1.0, 0.0, 1.0], "X2": []}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.5, 20_000)
    return rng.normal(scale=u**1.2), u, rng.normal(size=(20_000, 2))


def pieces(rows, n_pieces, seed):
    """Yield parts of the rows, of any size and in any order."""
    error, u, X = rows
    rng = np.random.default_rng(seed)
    order = rng.permutation(u.size)
    cuts = np.sort(rng.choice(u.size - 1, n_pieces - 1, replace=False)) + 1
    for which in np.split(order, cuts):
        yield error[which], u[which], X[which]


@pytest.mark.parametrize("limits", [None, LIMITS], ids=["fine intervals", "limits"])
@pytest.mark.parametrize("n_pieces", [2, 7, 300])
def test_pieces_in_any_division_give_the_scores_of_one_pass(rows, limits, n_pieces):
    whole = ss.RunningScores(limits=limits).update(*rows).scorecard()
    first, second = ss.RunningScores(limits=limits), ss.RunningScores(limits=limits)
    for i, piece in enumerate(pieces(rows, n_pieces, n_pieces)):
        (second if i % 3 else first).update(*piece)
    merged = first.merge(second)
    assert merged.n_rows == rows[1].size
    assert merged.scorecard().to_dict() == pytest.approx(whole.to_dict(), rel=1e-9)


def test_fine_intervals_come_close_to_the_scores_in_memory(rows):
    found = ss.RunningScores(n_bins=20).update(*rows).scorecard().to_dict()
    wanted = ss.scorecard(*rows, n_bins=20).to_dict()
    for name in ("NLL", "ZMS", "S_cal"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-9)
    assert found == pytest.approx(wanted, abs=0.005)


def test_fixed_limits_give_the_sums_of_their_bins():
    error, u = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 2.0, 2.0])
    found = ss.RunningScores(limits={"u": [1.5]}).update(error, u).scorecard()
    wanted = ss.scorecard(error, u, n_bins=2)
    assert found.to_dict() == pytest.approx(wanted.to_dict(), rel=1e-12)


@pytest.mark.parametrize("limits", [None, LIMITS], ids=["fine intervals", "limits"])
def test_tensors_and_arrays_are_summed_alike(rows, limits):
    torch = pytest.importorskip("torch")
    there = [torch.from_numpy(each) for each in rows]
    found = ss.RunningScores(limits=limits).update(*there).scorecard()
    wanted = ss.RunningScores(limits=limits).update(*rows).scorecard()
    assert found.to_dict() == pytest.approx(wanted.to_dict(), rel=1e-9)


def test_what_does_not_fit_together_is_refused(rows):
    error, u, _ = rows
    with pytest.raises(InvalidInputError, match="under the name u"):
        ss.RunningScores(limits={"X1": [0.0]})
    with pytest.raises(InvalidInputError, match="must ascend"):
        ss.RunningScores(limits={"u": [1.0, 0.5]})
    with pytest.raises(InvalidInputError, match="no rows yet"):
        ss.RunningScores().scorecard()
    with pytest.raises(InvalidInputError, match="same in all pieces"):
        ss.RunningScores().update(error, u).update(*rows)
    with pytest.raises(InvalidInputError, match="'X1' is none of u"):
        ss.RunningScores(limits={"u": [1.0]}).update(*rows)
    with pytest.raises(InvalidInputError, match="same limits"):
        ss.RunningScores().merge(ss.RunningScores(n_bins=7))
    with pytest.raises(InvalidInputError, match="holds labels"):
        ss.RunningScores().update(error[:2], u[:2], {"phase": ["gas", "solid"]})
