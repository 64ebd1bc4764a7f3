"""Members, quantiles, intervals, vectors and structures of ASE."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import (
    CrossingQuantilesWarning,
    FewMembersWarning,
    InvalidInputError,
    NormOrRootMeanSquareWarning,
    SquareMembersWarning,
)

RNG = np.random.default_rng(1)
MIDDLE, STD = RNG.normal(size=50), RNG.uniform(0.5, 2, 50)


def quantiles(levels):
    return MIDDLE[:, None] + STD[:, None] * stats.norm.ppf(levels)


def test_all_forms_of_one_forecast_say_the_same():
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    ends = quantiles([0.1, 0.9]).T
    for p in (
        ss.Predictions.from_quantiles(levels, quantiles(levels), y_true=MIDDLE),
        ss.Predictions.from_quantiles([0.1, 0.9], pl.DataFrame(quantiles([0.1, 0.9]))),
        ss.Predictions.from_quantiles(
            [0.2, 0.4, 0.6, 0.8], quantiles([0.2, 0.4, 0.6, 0.8])
        ),
        ss.Predictions.from_interval(*ends, coverage=0.8, groups=np.arange(50)),
    ):
        np.testing.assert_allclose(p.y_pred, MIDDLE, atol=1e-12)
        np.testing.assert_allclose(p.y_std, STD)
    members = MIDDLE[:, None] + STD[:, None] * RNG.normal(size=(50, 40))
    p = ss.Predictions.from_members(members, y_true=MIDDLE, features={"x": STD})
    np.testing.assert_allclose(p.y_pred, members.mean(axis=1))
    np.testing.assert_allclose(p.y_std, members.std(axis=1, ddof=1))
    q = ss.Predictions.from_members(pl.DataFrame(members), ddof=0)
    np.testing.assert_allclose(q.y_std, members.std(axis=1))


def test_the_median_and_the_outermost_symmetric_pair_are_taken():
    p = ss.Predictions.from_quantiles([0.1, 0.25, 0.5, 0.75], [[0.0, 1.0, 2.5, 3.0]])
    assert p.y_pred.tolist() == [2.5]
    np.testing.assert_allclose(p.y_std, 2 / (2 * stats.norm.ppf(0.75)))


def test_members_in_rows_are_refused_and_square_ones_are_asked_about():
    members = (MIDDLE[:, None] + STD[:, None] * RNG.normal(size=(50, 20))).T
    with pytest.raises(InvalidInputError, match="20 rows and 50 columns"):
        ss.Predictions.from_members(members, y_true=MIDDLE)
    p = ss.Predictions.from_members(members, y_true=MIDDLE, members_axis=0)
    np.testing.assert_allclose(p.y_std, members.std(axis=0, ddof=1))
    square = MIDDLE[:, None] + STD[:, None] * RNG.normal(size=(50, 50))
    with pytest.warns(SquareMembersWarning, match="members_axis=1 or 0") as told:
        ss.Predictions.from_members(square.T, y_true=MIDDLE)
    assert told[0].filename == __file__
    p = ss.Predictions.from_members(square, y_true=MIDDLE, members_axis=1)
    np.testing.assert_allclose(p.y_pred, square.mean(axis=1))


def test_quantiles_that_cross_are_sorted_and_counted():
    table = quantiles([0.1, 0.5, 0.9])
    table[[3, 7]] = table[[3, 7], ::-1]
    with pytest.warns(CrossingQuantilesWarning, match=r"2 of 50 rows.*row 3\)"):
        p = ss.Predictions.from_quantiles([0.1, 0.5, 0.9], table)
    np.testing.assert_allclose(p.y_std, STD)


class Posterior:
    """A stand-in for posteriors of PyTorch, whose moments are attributes."""

    mean = MIDDLE[:, None]
    variance = STD[:, None] ** 2


class Tensor:
    """A stand-in for a tensor with gradients, which NumPy cannot read."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self.values

    def __array__(self, *_, **__):
        raise RuntimeError


def test_objects_with_a_mean_and_a_spread_are_predictions():
    for d in (stats.norm(MIDDLE, STD), stats.Normal(mu=MIDDLE, sigma=STD), Posterior()):
        p = ss.Predictions.from_distribution(d, y_true=MIDDLE, groups=np.arange(50))
        np.testing.assert_allclose(p.y_pred, MIDDLE)
        np.testing.assert_allclose(p.y_std, STD)
    p = ss.Predictions(Tensor(MIDDLE), Tensor(STD[:, None]), y_true=MIDDLE[:, None])
    np.testing.assert_array_equal(p.y_std, STD)
    assert not p.is_vector


def test_few_members_are_told_and_equal_ones_have_no_spread():
    with pytest.warns(FewMembersWarning, match="3 members.*50 %"):
        ss.Predictions.from_members([[1.0, 2.0, 3.0]])
    third = np.full((1, 10), 1 / 3)
    with pytest.raises(InvalidInputError, match="`y_std` must be positive"):
        ss.Predictions.from_members(third)


def test_bad_forms_are_refused_by_name():
    P = ss.Predictions
    two = [[1.0, 2.0], [1.0, np.nan]]
    for call, match in [
        (lambda: P.from_members([[1.0], [2.0]]), "`members` must have at least 2"),
        (lambda: P.from_members([1.0, 2.0]), "`members` must have shape"),
        (lambda: P.from_members(two), "`members` must be finite.*row 1"),
        (lambda: P.from_members([[1.0, 2.0]], ddof=-1), "`ddof`"),
        (lambda: P.from_members([[1.0, 2.0, 4.0]], ddof=3), "at least 4 columns"),
        (
            lambda: P.from_quantiles([0.1, 0.9], two),
            "`quantiles` must be finite.*row 1",
        ),
        (lambda: P.from_quantiles([0.9, 0.1], [[1.0, 2.0]]), "`levels` must ascend"),
        (lambda: P.from_quantiles([0.1, 1.0], [[1.0, 2.0]]), "`levels` must ascend"),
        (lambda: P.from_quantiles([0.1, 0.8], [[1.0, 2.0]]), "symmetric pair"),
        (lambda: P.from_quantiles([0.1, 0.9], [[1.0]]), "column for each of 2 levels"),
        (lambda: P.from_quantiles([0.1, 0.9], [[2.0, 1.0]]), "in the order.*exchanged"),
        (lambda: P.from_interval([2.0], [1.0], coverage=0.9), "in the order.*row 0"),
        (lambda: P.from_members(np.ones((9, 4)), y_true=np.ones(4)), "Transpose"),
        (lambda: P.from_members(np.ones((4, 9)), members_axis=2), "`members_axis`"),
        (lambda: P.from_distribution(3.0), "`d` must have a `mean`.*found float"),
        (lambda: P.from_interval([1.0], [2.0], coverage=1.5), "`coverage`"),
        (lambda: P.from_interval([1.0], [2.0, 3.0], coverage=0.5), "`low` and `high`"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            call()


# -- vectors ---------------------------------------------------------------------------

FORCE = RNG.normal(size=(50, 3))
ERROR = STD[:, None] * RNG.normal(size=(50, 3))


def vectors(**others):
    return ss.Predictions(FORCE, STD, y_true=FORCE + ERROR, **others)


def test_a_vector_has_a_size_and_no_sign():
    p = vectors(groups=np.arange(50) // 5)
    assert (p.is_vector, p.dim) == (True, 3)
    expected = (p.error**2).sum(axis=1) / (3 * STD**2)
    np.testing.assert_allclose(p.z2, expected)
    np.testing.assert_allclose(p.abs_z, np.sqrt(expected))
    np.testing.assert_allclose(p.squared_error, expected * STD**2)
    assert "of 3 components" in repr(p)
    p._repr_html_()
    with pytest.raises(InvalidInputError, match="no sign") as found:
        _ = p.z
    assert found.value.code == "vectors"
    part = p.take(np.arange(5))
    assert part.error.shape == part.y_pred.shape == (5, 3)
    again = {"y_true": p.y_true, "groups": p.groups}
    same = ss.Predictions(p.y_pred, p.y_std, **again)
    np.testing.assert_array_equal(same.error, p.error)


def test_members_of_vectors_have_the_root_of_the_mean_component_variance():
    members = FORCE[:, None] + RNG.normal(size=(50, 12, 3))
    p = ss.Predictions.from_members(members, y_true=FORCE)
    np.testing.assert_allclose(p.y_pred, members.mean(axis=1))
    variance = members.var(axis=1, ddof=1).mean(axis=1)
    np.testing.assert_allclose(p.y_std, np.sqrt(variance))


def test_shapes_that_do_not_fit_are_refused_with_what_to_pass():
    component = np.ones((50, 3))
    covariance = np.tile(np.eye(3), (50, 1, 1))
    P = ss.Predictions
    for call, match in [
        (lambda: P(FORCE, component), r"one number a row.*y_std\*\*2\)\.mean\(axis=1"),
        (lambda: P(FORCE, covariance), r"one number a row.*np\.trace"),
        (lambda: P(FORCE, STD, y_true=MIDDLE), r"same shape.*ravel"),
        (lambda: P(FORCE, STD, y_true=FORCE[:, :2]), r"same shape"),
        (lambda: P(FORCE[:10], STD, y_true=FORCE), r"`y_std` and `y_pred`"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            call()
    bad = FORCE.copy()
    bad[7, 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"`y_true` must be finite.*row 7"):
        P(FORCE, STD, y_true=bad)


# -- structures ------------------------------------------------------------------------

ase = pytest.importorskip("ase")
N_MEMBERS = 12


def structures():
    """Return molecules with true forces, members of an ensemble, and energies."""
    from ase.build import molecule

    rng, found = np.random.default_rng(3), []
    for name in ("H2O", "CH4", "NH3"):
        atoms = molecule(name)
        n = len(atoms)
        atoms.arrays["REF_forces"] = rng.normal(size=(n, 3))
        members = atoms.arrays["REF_forces"] + rng.normal(size=(N_MEMBERS, n, 3))
        atoms.info["forces_comm"] = members
        atoms.arrays["all_forces"] = members.swapaxes(0, 1).reshape(n, -1)
        for i, each in enumerate(members):
            atoms.arrays[f"forces_{i}"] = each
        atoms.arrays["MACE_forces"] = members.mean(axis=0)
        atoms.arrays["u"] = rng.uniform(1, 2, n)
        atoms.info["REF_energy"] = float(-n)
        atoms.info["energies"] = -n + 0.1 * rng.normal(size=N_MEMBERS)
        atoms.info["energy_std"] = 0.1 * n
        found.append(atoms)
    return found


def test_forces_come_with_species_and_structures():
    data = structures()
    truth = np.concatenate([each.arrays["REF_forces"] for each in data])
    comm = np.concatenate([each.info["forces_comm"].swapaxes(0, 1) for each in data])
    names = [f"forces_{i}" for i in range(N_MEMBERS)]
    for members in ("forces_comm", "all_forces", names):
        p = ss.Predictions.from_atoms(data, reference="REF_forces", members=members)
        np.testing.assert_array_equal(p.y_true, truth)
        np.testing.assert_allclose(p.y_pred, comm.mean(axis=1))
        expected = np.sqrt(comm.var(axis=1, ddof=1).mean(axis=1))
        np.testing.assert_allclose(p.y_std, expected)
    assert p.features["species"].tolist() == [*"OHH", *"CHHHH", *"NHHH"]
    assert p.groups.tolist() == [0] * 3 + [1] * 5 + [2] * 4
    q = ss.Predictions.from_atoms(
        data, prediction="MACE_forces", uncertainty="u", norm=False
    )
    assert q.error is None
    np.testing.assert_allclose(q.y_pred, comm.mean(axis=1))
    assert len(ss.Predictions.from_atoms(data[0], members="forces_comm")) == 3


def test_the_uncertainty_of_an_atom_may_be_a_norm():
    data = structures()  # ASE has warnings of its own
    names = {"prediction": "MACE_forces", "uncertainty": "u"}
    with pytest.warns(NormOrRootMeanSquareWarning, match="norm=True") as told:
        p = ss.Predictions.from_atoms(data, **names)
    assert told[0].filename == __file__
    q = ss.Predictions.from_atoms(data, **names, norm=True)
    np.testing.assert_allclose(p.y_std, np.sqrt(3) * q.y_std)


def test_energies_are_those_of_an_atom():
    data = structures()
    p = ss.Predictions.from_atoms(
        data, reference="REF_energy", members="energies", energies=True
    )
    assert p.y_true.tolist() == [-1.0] * 3
    assert p.features["n_atoms"].tolist() == [3.0, 5.0, 4.0]
    assert p.groups is None
    spread = data[0].info["energies"].std(ddof=1) / 3
    assert p.y_std[0] == pytest.approx(spread)
    q = ss.Predictions.from_atoms(
        data, prediction="REF_energy", uncertainty="energy_std", energies=True
    )
    np.testing.assert_allclose(q.y_std, 0.1)


def test_a_file_of_structures_is_read(tmp_path):
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.io import write

    data = structures()
    for atoms in data:
        del atoms.info["forces_comm"]
        forces = atoms.arrays["MACE_forces"]
        atoms.calc = SinglePointCalculator(atoms, forces=forces, energy=-1.0)
    path = tmp_path / "frames.extxyz"
    write(path, data)
    names = {
        "reference": "REF_forces",
        "prediction": "forces",
        "uncertainty": "u",
        "norm": True,
    }
    p = ss.Predictions.from_atoms(path, **names)
    q = ss.Predictions.from_atoms(data, **names)
    np.testing.assert_allclose(p.error, q.error, atol=1e-7)
    np.testing.assert_allclose(p.y_pred, q.y_pred, atol=1e-7)
    assert p.groups.tolist() == q.groups.tolist()


def test_structures_that_lack_something_are_told():
    data = structures()
    del data[1].arrays["u"]
    data[2].arrays["REF_forces"] = np.zeros((4, 3))
    data[2].info["flat"] = np.zeros((7, 2))
    from_atoms = ss.Predictions.from_atoms
    names = {"reference": "REF_forces", "prediction": "MACE_forces"}
    for call, match in [
        (lambda: from_atoms(data, **names), "`y_std` must be given"),
        (lambda: from_atoms(data, **names, uncertainty="u"), "Structure 1.*'u'.*REF"),
        (lambda: from_atoms(data[2:], members="flat"), r"'flat'.*shape.*\(7, 2\)"),
        (lambda: from_atoms(data, reference="REF_energy", members="all_forces"), "row"),
        (lambda: from_atoms([], members="all_forces"), "at least 1 structure"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            call()
