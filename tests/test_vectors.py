"""Forces and other vectors: the same answers in every orientation, and honest balls."""

import functools

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.scalings import SCALINGS

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


@functools.cache
def numbers():
    """Return errors that are numbers, and the same as vectors with d = 1."""
    p = ss.datasets.make_molecules(800).predictions
    same = {"y_std": p.y_std, "features": p.features}
    return p, ss.Predictions(error=p.error[:, None], **same)


def judged(v):
    """Return all numbers of checks by name."""
    found = {}
    for name, check in v.checks.items():
        found[name] = [check.bound]
        for s in (*check.subgroups, check.subgroup):
            if s is not None:
                found[name] += [s.estimate, s.low, s.high]
    return found


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
    said = [
        (name, each.result, each.subgroup and each.subgroup.where)
        for v in (before, verdicts)
        for name, each in v.checks.items()
    ]
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
    sets = [members_of(50, seed) for seed in (2, 3)]
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


# -- one component ---------------------------------------------------------------------


def test_vectors_of_one_component_are_scaled_as_numbers_are():
    p, column = numbers()
    for name, scaling in SCALINGS.items():
        for hold_out in (0.0, 0.2):
            one, other = (
                ss.Recalibrator(scaling(), hold_out=hold_out).fit(each)
                for each in (p, column)
            )
            found, wanted = other.predict(column), one.predict(p)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)


def test_vectors_of_one_component_have_the_scores_of_numbers():
    p, column = numbers()
    for name in ("zms", "nll", "calibration_error", "ence", "uce", "coverage"):
        one, other = (getattr(scores, name)(each) for each in (p, column))
        assert other == pytest.approx(one, rel=1e-12)
    crps = ss.Distributions.normal(p).crps(p.target)
    energy = ss.Distributions.normal(column).energy_score(column.target)
    np.testing.assert_allclose(energy, crps, rtol=1e-12)
    for by in ("u", *p.names[1:]):
        one, other = (scores.local_statistics(each, by=by) for each in (p, column))
        for field in ("value", "low", "high", "n"):
            found, wanted = (getattr(each, field) for each in (other, one))
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_vectors_of_one_component_are_judged_as_numbers_but_for_bias():
    p, column = numbers()
    one, other = ss.validate(p), ss.validate(column)
    assert set(one.checks) - set(other.checks) == {"bias"}
    for name, check in other.checks.items():
        if name == "coverage":
            continue
        wanted = one.checks[name]
        assert check.result == wanted.result
        for found, s in zip(check.subgroups, wanted.subgroups, strict=True):
            assert found.where == s.where
            assert found.estimate == pytest.approx(s.estimate, rel=1e-12)
    # simultaneous limits are of all checks, of which vectors have one less
    bound = one.checks["calibration"].bound
    assert other.checks["calibration"].bound == pytest.approx(bound, rel=1e-12)


# -- balls -----------------------------------------------------------------------------


def test_radii_are_quantiles_of_distances():
    known, new = forces(150, 0), forces(150, 1)
    r = ss.Recalibrator().fit(known)
    after = r.apply(new)
    d = after.distributions
    distance = np.linalg.norm(new.y_true - new.y_pred, axis=1)
    for share in (0.5, 0.9):
        inside = d.contains(new.y_true, share)
        np.testing.assert_array_equal(inside, distance <= d.radius(share))
        assert inside.mean() == pytest.approx(share, abs=0.04)
        drawn = np.linalg.norm(d.sample(200) - new.y_pred[:, None], axis=2)
        held = (drawn <= d.radius(share)[:, None]).mean()
        assert held == pytest.approx(share, abs=0.01)
    # u of O was half of what it should be
    is_o = new.features["species"] == "O"
    factor = after.y_std / new.y_std
    assert np.median(factor[is_o]) / np.median(factor[~is_o]) > 1.6
    normal = ss.Recalibrator(distribution="normal").fit(known).apply(new)
    radius = normal.distributions.radius(0.9)
    np.testing.assert_allclose(radius, normal.y_std * stats.chi(3).ppf(0.9))


@pytest.mark.slow
def test_balls_of_new_structures_hold_for_every_species():
    held = []
    for seed in range(0, 16, 2):
        after = ss.Recalibrator().fit(forces(150, seed)).apply(forces(150, seed + 1))
        inside = after.distributions.contains(after.y_true, 0.9)
        species = after.features["species"]
        held.append(
            [inside.mean(), *(inside[species == each].mean() for each in WRONG)]
        )
    # of 9,600 atoms, and of 3,200 of each species; one standard error is 0.3 to 0.5 %
    assert np.mean(held, axis=0) == pytest.approx(0.9, abs=0.02)


def test_the_energy_score_is_that_of_draws():
    for d in (2, 3, 5):
        p = forces(40, 0, d)
        for distribution in ("normal", "empirical"):
            r = ss.Recalibrator(ss.TemperatureScaling(), distribution=distribution)
            found = r.fit(p).apply(p).distributions[:5]
            X, other = found.sample(20_000), found.sample(20_000, rng=1)
            y = p.y_true[:5]
            apart = np.linalg.norm(X - y[:, None], axis=2).mean(axis=1)
            apart -= np.linalg.norm(X - other, axis=2).mean(axis=1) / 2
            np.testing.assert_allclose(found.energy_score(y), apart, rtol=0.03)


def test_files_frames_and_graphs_give_the_same_radii(tmp_path):
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    ort, _ = pytest.importorskip("onnxruntime"), pytest.importorskip("ndonnx")
    known, new = forces(60, 0), forces(60, 1)
    table = pl.DataFrame({"u": new.y_std, "species": new.features["species"].tolist()})
    for options in ({}, {"distribution": "normal"}, {"hold_out": 0.2}):
        r = ss.Recalibrator(**options).fit(known)
        wanted = r.apply(new).distributions.radius(0.9)
        r.save(tmp_path / "r.json")
        loaded = ss.load(tmp_path / "r.json")
        ss.export.to_onnx(r, tmp_path / "r.onnx", coverage=0.9)
        graph = ort.InferenceSession(tmp_path / "r.onnx")
        inputs = {each.name: table[each.name].to_list() for each in graph.get_inputs()}
        radius = "u_recalibrated_radius"
        on_polars = ss.frames.apply(r, table.lazy(), coverage=0.9).collect()
        relation = duckdb.from_arrow(table.to_arrow())
        on_duckdb = ss.frames.apply(r, relation, coverage=0.9).fetchnumpy()
        for found in (
            loaded.apply(new).distributions.radius(0.9),
            on_polars[radius].to_numpy(),
            on_duckdb[radius],
            graph.run([radius], inputs)[0],
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


# -- every door ------------------------------------------------------------------------

NO_SIGN = {"crps", "interval_score", "tails"}  # scores that need one


def test_every_score_takes_vectors_or_says_that_they_have_no_sign():
    p = forces(40)
    for name in scores.__all__:
        function = getattr(scores, name)
        if isinstance(function, type):
            continue
        if name == "bin_study":
            assert function(p, forces(40, 1), numbers=[2, 4]) is not None
        elif name in NO_SIGN:
            with pytest.raises(InvalidInputError, match="no sign") as found:
                function(p)
            assert found.value.code == "vectors"
        else:
            assert function(p) is not None
    with pytest.raises(InvalidInputError, match="no sign"):
        scores.calibration_curve(p, kind="quantile")


def test_every_picture_takes_vectors_or_says_that_they_have_no_sign():
    p = forces(40)
    after = ss.Recalibrator().fit(forces(40, 1)).apply(p)
    v = ss.validate(p), ss.validate(after)
    monitor = ss.Monitor(p.take(p.groups < 20)).update(p.take(p.groups >= 20))
    drawn = {
        "checks": v,
        "factors": v,
        "errors": (p,),
        "reliability": (scores.reliability_diagram(p),),
        "calibration": (scores.calibration_curve(p),),
        "pit": (scores.pit_histogram(p),),
        "confidence_curve": (scores.confidence_curve(p),),
        "local_statistics": (scores.local_statistics(p),),
        "comparison": (ss.compare({"raw": p, "after": after}),),
        "monitor": (monitor,),
    }
    others = {"bin_study", "intervals", "drawing", "style", "svg"}
    others |= {"acceptance", "explanation"}  # of numbers, or of a recalibrator
    assert drawn.keys() | others == {x for x in plots.__all__ if x.islower()}
    for name, arguments in drawn.items():
        assert getattr(plots, name)(*arguments) is not None
    with pytest.raises(InvalidInputError, match="no sign"):
        plots.intervals(p)


def test_what_needs_a_sign_says_that_vectors_have_none(tmp_path):
    p = forces(40)
    r = ss.Recalibrator().fit(p)
    d = r.apply(p).distributions
    frame = {"u": p.y_std, "species": p.features["species"].tolist()}
    y, frame = p.y_true, pytest.importorskip("polars").DataFrame(frame)
    for call in (
        lambda: p.z,
        lambda: d.quantile(0.5),
        lambda: d.interval(0.9),
        lambda: d.cdf(y),
        lambda: d.crps(y),
        lambda: ss.Recalibrator(bias="auto").fit(p),
        lambda: ss.Recalibrator(bounds=(0, None)).fit(p),
        lambda: ss.export.to_onnx(r, tmp_path / "r.onnx", quantiles=[0.5]),
        lambda: ss.frames.apply(r, frame, quantiles=[0.5]),
    ):
        with pytest.raises(InvalidInputError, match="no sign") as found:
            call()
        assert found.value.code == "vectors"
    # numbers where vectors were fitted, and the other way round
    number = ss.Predictions(y[:, 0], p.y_std, features=p.features)
    with pytest.raises(InvalidInputError, match="fitted to vectors"):
        r.apply(number)
    of_numbers = ss.Recalibrator(ss.TemperatureScaling()).fit(
        ss.Predictions(error=y[:, 0] - p.y_pred[:, 0], y_std=p.y_std)
    )
    with pytest.raises(InvalidInputError, match="fitted to numbers"):
        of_numbers.apply(p)
    with pytest.raises(InvalidInputError, match="of 2"):
        r.apply(forces(5, d=2))


def test_vectors_are_reported_with_balls_and_without_bias(tmp_path):
    known, new = forces(60, 0), forces(60, 1)
    r = ss.Recalibrator().fit(known)
    v = ss.validate(r.apply(new), before=new)
    assert "bias" not in v.checks
    assert v.before.checks["adaptivity: species"].subgroup.where == "species = O"
    assert "95 % balls" in str(v.before)
    assert "energy score" in v.headline
    ss.report.write_report(tmp_path / "r.html", v, recalibrator=r)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "balls" in page
    assert "radius" in v.rows.distributions._repr_html_()


# -- the files of the field ------------------------------------------------------------


def structures(n, seed=0):
    """Return structures of ASE with true forces, and a committee's as MACE has them."""
    ase = pytest.importorskip("ase")
    from ase.calculators.singlepoint import SinglePointCalculator

    members, truth, species, _ = members_of(n, seed)
    shape = (n, ATOMS, N_MEMBERS, 3)
    found = []
    for F, y, kinds in zip(
        members.reshape(shape),
        truth.reshape(n, ATOMS, 3),
        species.reshape(n, ATOMS),
        strict=True,
    ):
        atoms = ase.Atoms(kinds.tolist(), positions=np.zeros((ATOMS, 3)))
        atoms.arrays["REF_forces"] = y
        atoms.arrays["MACE_forces"] = F.mean(axis=1)
        atoms.arrays["u"] = np.sqrt(F.var(axis=1, ddof=1).mean(axis=1))
        atoms.calc = SinglePointCalculator(atoms, energy=0.0)
        atoms.calc.results["forces_comm"] = F.swapaxes(0, 1)
        found.append(atoms)
    return found


def test_from_a_file_of_many_structures_to_a_verdict_in_a_few_lines(tmp_path):
    write = pytest.importorskip("ase.io").write
    path, data = tmp_path / "frames.extxyz", structures(1000)
    for atoms in data:
        atoms.calc = None
    write(path, data)
    p = ss.Predictions.from_atoms(
        path,
        reference="REF_forces",
        prediction="MACE_forces",
        uncertainty="u",
        norm=False,
    )
    v = ss.validate(p)
    assert len(p) == 1000 * ATOMS
    assert p.groups.max() == 999
    worst = v.checks["adaptivity: species"].subgroup
    assert worst.where == "species = O"
    assert worst.estimate == pytest.approx(2.1, rel=0.1)


def test_a_committee_of_a_calculator_gives_forces():
    data = structures(30)
    p = ss.Predictions.from_atoms(data, reference="REF_forces", members="forces_comm")
    same = forces(30)
    np.testing.assert_allclose(p.y_std, same.y_std, rtol=1e-12)
    np.testing.assert_allclose(p.error, same.error, atol=1e-12)
    assert p.features["species"].tolist() == same.features["species"].tolist()
