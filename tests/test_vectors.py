"""Forces and other vectors: the same answers in every orientation, and honest balls."""

import functools

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import FewMembersWarning, InvalidInputError
from sigmascale.scaling import SCALINGS

scores, plots = ss.scores, ss.plots
N_MEMBERS, ATOMS = 10, 8
WRONG = {"H": 1.0, "C": 1.0, "O": 2.0}


def members_of(n_structures, seed, d=3):
    """Return members and truths of atoms in structures, species and structure.

    The spread of members is half as large as it should be for O.
    """
    rng = np.random.default_rng(seed)
    n = n_structures * ATOMS
    u, species = rng.lognormal(-2, 0.4, n), rng.choice(list(WRONG), n)
    wrong = np.array([WRONG[each] for each in species])
    centre = rng.normal(size=(n, d))
    truth = centre + (u * wrong)[:, None] * rng.normal(size=(n, d))
    members = centre[:, None] + u[:, None, None] * rng.normal(size=(n, N_MEMBERS, d))
    return members, truth, species, np.repeat(np.arange(n_structures), ATOMS)


def predictions(members, truth, species, groups):
    return ss.Predictions.from_members(
        members, y_true=truth, features={"species": species}, groups=groups
    )


def forces(n_structures=60, seed=0, d=3):
    return predictions(*members_of(n_structures, seed, d))


def in_one_component(p):
    """Return predictions of numbers, and the same as vectors with d = 1."""
    same = {"features": p.features, "groups": p.groups, "weights": p.weights}
    column = ss.Predictions(
        p.y_pred[:, None], p.y_std, y_true=p.y_true[:, None], **same
    )
    return p, column


@functools.cache
def numbers():
    return in_one_component(ss.datasets.make_molecules(600).predictions)


def judged(v):
    """Return all numbers of verdicts by name."""
    found = {}
    for name, verdict in v.verdicts.items():
        found[name] = [*verdict.limits]
        for region in (*verdict.regions, verdict.worst):
            if region is not None:
                found[name] += [region.estimate, region.low, region.high]
    return found


def words(v):
    """Return all that verdicts say but numbers."""
    return [
        (name, each.answer, each.worst and each.worst.where, each.worst and each.state)
        for name, each in v.verdicts.items()
    ]


# -- orientation -----------------------------------------------------------------------


def all_of(sets, scaling):
    """Return answers and numbers: verdicts before and after, u, radii, scores."""
    known, new = (predictions(*each) for each in sets)
    after = ss.Recalibrator(scaling).fit(known).apply(new)
    before, verdicts = ss.validate(new), ss.validate(after)
    found = {"u": after.y_std, "score": after.distributions.energy_score(after.y_true)}
    found |= {f"radius {c}": after.distributions.radius(c) for c in (0.5, 0.9)}
    for when, v in (("before", before), ("after", verdicts)):
        found |= {f"{when}: {name}": x for name, x in judged(v).items()}
    held = after.distributions.contains(after.y_true, 0.9)
    said = [(k, x.answer, x.worst and x.worst.where) for v in (before, verdicts)
            for k, x in v.verdicts.items()]
    return found, (said, before.headline, verdicts.headline, held.tolist())


def turned(parts, seed):
    """Return the same structures, each rotated by itself."""
    members, truth, species, groups = parts
    turns = stats.special_ortho_group.rvs(3, groups.max() + 1, random_state=seed)
    turns = turns[groups]
    return (
        np.einsum("nij,nkj->nki", turns, members),
        np.einsum("nij,nj->ni", turns, truth),
        species,
        groups,
    )


def same_in_every_orientation(sets, scaling, n_turns):
    wanted, said = all_of(sets, scaling)
    for seed in range(n_turns):
        rotated = [turned(each, 2 * seed + i) for i, each in enumerate(sets)]
        found, now = all_of(rotated, scaling)
        assert now == said
        assert found.keys() == wanted.keys()
        for name, numbers in found.items():
            np.testing.assert_allclose(numbers, wanted[name], rtol=1e-10, err_msg=name)


def test_rotating_every_structure_changes_nothing():
    sets = [members_of(60, seed) for seed in (0, 1)]
    for scaling in (None, ss.RakedScaling()):
        same_in_every_orientation(sets, scaling, n_turns=2)


@pytest.mark.slow
def test_twenty_rotations_of_every_structure_change_nothing():
    sets = [members_of(120, seed) for seed in (2, 3)]
    same_in_every_orientation(sets, None, n_turns=20)


def test_vectors_of_the_same_length_are_ties_in_every_orientation():
    rng = np.random.default_rng(0)
    e = rng.normal(size=(400, 3))
    e *= rng.integers(1, 4, 400)[:, None] / np.linalg.norm(e, axis=1, keepdims=True)
    x, found = rng.normal(size=400), []
    for turn in stats.special_ortho_group.rvs(3, 4, random_state=0):
        p = ss.Predictions(y_std=np.exp(x / 3), error=e @ turn, features={"x": -x})
        r = ss.Recalibrator().fit(p)
        found.append((r.predict(p), r.apply(p).distributions.radius(0.9)))
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-10)
