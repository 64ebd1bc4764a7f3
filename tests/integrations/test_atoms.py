"""Molecular dynamics with honest forces: radii, stops, what is new, and going on."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest
from ase import Atoms, units
from ase.calculators.calculator import Calculator, all_changes
from ase.io import read
from ase.io.trajectory import Trajectory
from ase.md.verlet import VelocityVerlet
from scipy.stats import special_ortho_group

import sigmascale as ss
from sigmascale.exceptions import (
    FewRowsWarning,
    InfiniteIntervalWarning,
    InvalidInputError,
    MemberError,
    RunStoppedError,
)
from sigmascale.integrations.forces import HonestCalculator

N_ATOMS, N_MEMBERS = 8, 10
LIMIT = 2.25  # eV/Å, that the radii of `moving` exceed now and then
SYMBOLS = ["Cu"] * 6 + ["Au"] * 2
CORNERS = 2.6 * np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


class Springs(Calculator):
    """Springs of equal length between all atoms, steeper where they are short."""

    implemented_properties = ("energy", "forces", "dipole")

    def __init__(self, stiffness, bent):
        super().__init__()
        self.stiffness, self.bent = stiffness, bent

    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        off = atoms.positions[None] - atoms.positions[:, None]
        r = np.linalg.norm(off, axis=2) + np.eye(len(atoms))
        x = np.where(np.eye(len(atoms)), 0, r - 2.6)
        pull = self.stiffness * x + self.bent * x**3
        energy = (self.stiffness * x**2 / 2 + self.bent * x**4 / 4).sum() / 2
        forces = (pull / r)[:, :, None] * off
        self.results = {"energy": energy, "forces": forces.sum(axis=1)}
        self.results["dipole"] = np.full(3, self.bent)


class Together(Calculator):
    """One calculator with the forces of all members, as MACE gives them."""

    implemented_properties = ("energy", "forces")

    def __init__(self, members):
        super().__init__()
        self.members = members

    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        forces = np.array([each.get_forces(atoms) for each in self.members])
        energies = np.array([each.get_potential_energy(atoms) for each in self.members])
        self.results = {"energy": energies.mean(), "forces": forces.mean(axis=0)}
        self.results |= {"forces_comm": forces, "energies": energies}
        self.results |= {f"forces {k}": each for k, each in enumerate(forces)}
        u = np.sqrt(forces.var(axis=0, ddof=1).mean(axis=1))
        self.results["forces_std"] = u


def committee():
    rng = np.random.default_rng(1)
    return [
        Springs(1 + 0.04 * a, 0.5 + 0.3 * b) for a, b in rng.normal(size=(N_MEMBERS, 2))
    ]


TRUTH = Springs(1.02, 0.7)


def structure(seed, spread=0.2):
    rng = np.random.default_rng(seed)
    positions = CORNERS + rng.normal(0, spread, (N_ATOMS, 3))
    return Atoms(SYMBOLS, positions)


def labelled(atoms):
    """Return a structure with true forces, and those of the members."""
    atoms = atoms.copy()
    atoms.arrays["REF_forces"] = TRUTH.get_forces(atoms)
    atoms.info["forces_comm"] = [each.get_forces(atoms) for each in committee()]
    return atoms


NAMES = {"reference": "REF_forces", "members": "forces_comm"}


@functools.cache
def fitted(n=60):
    known = [labelled(structure(seed)) for seed in range(n)]
    return ss.Recalibrator().fit(ss.Predictions.from_atoms(known, **NAMES))


def honest(**parameters):
    return HonestCalculator(committee(), fitted(), **parameters)


def calculated(atoms, calculator):
    atoms = atoms.copy()
    atoms.calc = calculator
    atoms.get_forces()
    return atoms


def moving(calculator, seed=5):
    """Return atoms that begin to move ever faster, and what moves them."""
    atoms = structure(seed, spread=0.05)
    atoms.calc = calculator
    rng = np.random.default_rng(seed)
    atoms.set_momenta(rng.normal(0, 12.0, (N_ATOMS, 3)))
    return atoms, VelocityVerlet(atoms, 2 * units.fs)


# -- radii -----------------------------------------------------------------------------


def test_radii_are_those_of_the_recalibrated_predictions():
    calculator = honest(coverage=0.9)
    atoms = calculated(structure(99), calculator)
    p = ss.Predictions.from_atoms([labelled(structure(99))], **NAMES)
    q = fitted().apply(p)
    np.testing.assert_allclose(atoms.get_forces(), p.y_pred)
    np.testing.assert_allclose(atoms.arrays["force_std"], q.y_std)
    radius = q.distributions.radius(0.9)
    np.testing.assert_allclose(atoms.arrays["force_radius"], radius)
    assert atoms.info["max_force_radius"] == pytest.approx(radius.max())
    # what the calculator leaves can be read like any other structure
    again = ss.Predictions.from_atoms([atoms], members="forces_comm")
    np.testing.assert_allclose(again.y_std, p.y_std)


def test_the_default_level_is_that_of_the_worst_atom():
    default = calculated(structure(99), honest())
    of_worst = calculated(structure(99), honest(coverage=1 - 0.05 / N_ATOMS))
    radius = default.arrays["force_radius"]
    np.testing.assert_array_equal(radius, of_worst.arrays["force_radius"])
    assert (
        radius > calculated(structure(99), honest(coverage=0.9)).arrays["force_radius"]
    ).all()


def test_all_balls_of_a_structure_hold_as_often_as_the_default_level_says():
    calculator, held = honest(), []
    for seed in range(1000, 1400):
        atoms = calculated(structure(seed), calculator)
        off = np.linalg.norm(atoms.get_forces() - TRUTH.get_forces(atoms), axis=1)
        held.append((off < atoms.arrays["force_radius"]).all())
    # 480 calibrated atoms tell the radius itself within some per cent
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(held)) - 0.02


def test_one_calculator_with_all_members_gives_the_same():
    wanted = calculated(structure(99), honest())
    names = [f"forces {k}" for k in range(N_MEMBERS)]
    for parameters in ({}, {"members": names}, {"uncertainty": "forces_std"}):
        one = HonestCalculator(Together(committee()), fitted(), **parameters)
        atoms = calculated(structure(99), one)
        np.testing.assert_allclose(atoms.get_forces(), wanted.get_forces())
        radius = atoms.arrays["force_radius"]
        np.testing.assert_allclose(radius, wanted.arrays["force_radius"])


def test_the_file_of_a_recalibrator_serves_as_well(tmp_path):
    fitted().save(tmp_path / "r.json")
    from_file = HonestCalculator(committee(), tmp_path / "r.json")
    radius = calculated(structure(99), from_file).arrays["force_radius"]
    wanted = calculated(structure(99), honest()).arrays["force_radius"]
    np.testing.assert_array_equal(radius, wanted)


def test_energies_have_their_spread_per_atom():
    wanted = None
    for calculator in (honest(), HonestCalculator(Together(committee()), fitted())):
        atoms = calculated(structure(99), calculator)
        energies = [each.get_potential_energy(atoms) for each in committee()]
        atoms.info["members"] = np.array(energies)
        p = ss.Predictions.from_atoms([atoms], members="members", energies=True)
        assert atoms.info["energy_std"] == pytest.approx(p.y_std[0])
        assert atoms.get_potential_energy() / N_ATOMS == pytest.approx(p.y_pred[0])
        wanted = wanted or p.y_pred[0]
        assert p.y_pred[0] == wanted


def test_structures_between_two_estimates_have_no_radii():
    atoms, dynamics = moving(honest(every=3))
    judged = []
    for _ in range(7):
        dynamics.run(1)
        judged.append("force_radius" in atoms.arrays)
        assert judged[-1] == ("max_force_radius" in atoms.info)
    # the first evaluation is that of the structure at the start
    assert judged == [False, False, True, False, False, True, False]


def test_a_further_property_of_a_structure_is_no_further_step():
    calculator = honest()
    atoms = calculated(structure(99), calculator)
    bent = np.mean([each.bent for each in committee()])
    np.testing.assert_allclose(atoms.get_dipole_moment(), bent)
    atoms.get_potential_energy()
    assert calculator.state["step"] == 1


def test_features_are_computed_by_a_function():
    def nearest(atoms, forces):
        r = atoms.get_all_distances() + 99 * np.eye(len(atoms))
        return {"nearest": r.min(axis=1), "force": np.linalg.norm(forces, axis=1)}

    known = [labelled(structure(seed)) for seed in range(40)]
    p = ss.Predictions.from_atoms(known, **NAMES)
    columns = [nearest(a, np.mean(a.info["forces_comm"], axis=0)) for a in known]
    more = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
    features = {**p.features, **more}
    p = ss.Predictions(
        p.y_pred, p.y_std, y_true=p.y_true, features=features, groups=p.groups
    )
    r = ss.Recalibrator().fit(p)
    calculator = HonestCalculator(committee(), r, coverage=0.9, features=nearest)
    radius = calculated(known[3], calculator).arrays["force_radius"]
    own = p.groups == 3
    np.testing.assert_allclose(radius, r.apply(p).distributions.radius(0.9)[own])
    with pytest.raises(InvalidInputError, match=r"nearest.*force.*pass `features`"):
        HonestCalculator(committee(), r)


# -- nothing depends on orientation, place or order ------------------------------------


def test_rotated_moved_and_permuted_atoms_have_the_same_radii_and_stops():
    rng = np.random.default_rng(0)
    turn = special_ortho_group.rvs(3, random_state=0)
    order = rng.permutation(N_ATOMS)

    def run(change):
        atoms, dynamics = moving(honest(threshold=LIMIT))
        change(atoms)
        radii = []
        dynamics.attach(lambda: radii.append(atoms.arrays["force_radius"]))
        with pytest.raises(RunStoppedError) as stopped:
            dynamics.run(300)
        return np.array(radii), stopped.value.event.step

    def rotate(atoms):
        atoms.positions = atoms.positions @ turn
        atoms.set_momenta(atoms.get_momenta() @ turn)

    def move(atoms):
        atoms.positions += [3.0, -1.0, 7.0]

    def permute(atoms):
        atoms.arrays = {name: x[order] for name, x in atoms.arrays.items()}

    wanted, step = run(lambda atoms: None)
    assert step > 3
    for change, places in (
        (rotate, slice(None)),
        (move, slice(None)),
        (permute, order),
    ):
        radii, now = run(change)
        assert now == step
        np.testing.assert_allclose(radii, wanted[:, places], rtol=1e-7)


# -- where radii become too large ------------------------------------------------------


def test_a_run_stops_where_a_radius_exceeds_the_threshold():
    free = honest()
    atoms, dynamics = moving(free)
    worst = []
    dynamics.attach(lambda: worst.append(atoms.info["max_force_radius"]))
    dynamics.run(60)
    threshold = 0.9 * max(worst)
    first = int(np.argmax(np.array(worst) > threshold))

    atoms, dynamics = moving(honest(threshold=threshold))
    with pytest.raises(RunStoppedError, match=r"99\.375 % ball of atom") as stopped:
        dynamics.run(60)
    assert stopped.value.event.kind == "threshold"
    assert stopped.value.event.step == first
    assert atoms.calc.events[-1] == stopped.value.event
    # nothing is lost: forces and radii of the structure are there
    assert atoms.info["max_force_radius"] == pytest.approx(worst[first])
    assert np.isfinite(atoms.get_forces()).all()
    with pytest.raises(RunStoppedError):  # it stays a reason to stop
        dynamics.run(1)


def test_a_run_that_is_logged_goes_on(caplog):
    seen = []
    atoms, dynamics = moving(honest(threshold=LIMIT, on_exceed="log"))
    beyond = []
    dynamics.attach(lambda: beyond.append(atoms.info["max_force_radius"] > LIMIT))
    dynamics.run(80)
    begun = [i for i, b in enumerate(beyond) if b and (i == 0 or not beyond[i - 1])]
    assert len(begun) > 1
    found = [e.step for e in atoms.calc.events if e.kind == "threshold"]
    assert found == begun
    assert f"step {begun[0]}: The 99.375 % ball" in caplog.text

    def call(event, atoms):
        seen.append((event.step, len(atoms)))

    _, dynamics = moving(honest(threshold=LIMIT, on_exceed=call))
    dynamics.run(80)
    assert seen == [(step, N_ATOMS) for step in begun]


def test_structures_that_crossed_are_collected_labelled_and_learned_from(tmp_path):
    path = tmp_path / "crossed.xyz"
    atoms, dynamics = moving(honest(threshold=LIMIT, on_exceed="log", collect=path))
    dynamics.run(200)
    frames = read(path, ":")
    assert len(frames) == len({e.step for e in atoms.calc.events}) >= 2
    for frame in frames:
        frame.arrays["REF_forces"] = TRUTH.get_forces(frame)
    p = ss.Predictions.from_atoms(frames, **NAMES)
    forces = [np.mean([c.get_forces(f) for c in committee()], axis=0) for f in frames]
    np.testing.assert_allclose(p.y_pred, np.concatenate(forces), atol=1e-6)
    largest = frames[0].arrays["force_radius"].max()
    assert frames[0].info["max_force_radius"] == pytest.approx(largest, abs=1e-6)
    known = [labelled(structure(seed)) for seed in range(60)]
    again = ss.Predictions.from_atoms(known + frames, **NAMES)
    assert ss.Recalibrator().fit(again).n_rows_ > fitted().n_rows_


# -- levels that calibrated atoms do not support ---------------------------------------


def test_construction_warns_of_a_level_that_calibrated_atoms_do_not_support():
    many = Atoms("Cu1000", np.zeros((1000, 3)))
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(_few_atoms())
    words = (
        r"`coverage` 0\.99995, that of the worst of 1000 atoms.*highest level.* is "
        r"0\.995.*at least 19999 atoms.*pass coverage=0\.995"
    )
    with pytest.warns(FewRowsWarning, match=words):
        HonestCalculator(committee(), r, atoms=many)
    with pytest.warns(FewRowsWarning, match=r"`coverage` 0\.9999 is beyond"):
        HonestCalculator(committee(), r, coverage=0.9999)
    # structures of the size that was calibrated: by default nothing is said
    calculator = HonestCalculator(committee(), r)
    bigger = structure(1) + structure(2) + structure(3)
    with pytest.warns(FewRowsWarning, match="worst of 24 atoms"):
        calculated(bigger, calculator)
    calculated(bigger, calculator)  # it is said once
    HonestCalculator(committee(), r, coverage=0.995)


def _few_atoms():
    known = [labelled(structure(seed)) for seed in range(50)]
    return ss.Predictions.from_atoms(known, **NAMES)


def test_radii_of_atoms_held_out_are_infinite_where_these_are_too_few():
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.2).fit(_few_atoms())
    with pytest.warns(InfiniteIntervalWarning, match="hold out at least 159 atoms"):
        calculator = HonestCalculator(committee(), r, threshold=1.0)
    with pytest.raises(RunStoppedError, match="radius of ∞"):
        calculated(structure(9), calculator)


# -- novelty ---------------------------------------------------------------------------


class Drawn(Calculator):
    """Forces of members that are drawn anew for every structure."""

    implemented_properties = ("forces",)

    def __init__(self, rng):
        super().__init__()
        self.rng, self.size, self.push = rng, 1.0, 1.0

    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        shape = (N_MEMBERS, len(atoms), 3)
        u = self.size * np.exp(
            self.rng.normal(0, 0.2) + self.rng.normal(0, 0.3, shape[1])
        )
        mean = self.push * self.rng.normal(size=shape[1:])
        forces = mean + u[:, None] * self.rng.normal(size=shape)
        self.results = {"forces": forces.mean(axis=0), "forces_comm": forces}


@functools.cache
def fitted_to_draws():
    drawn, known = Drawn(np.random.default_rng(0)), []
    for seed in range(100):
        atoms = structure(seed)
        drawn.get_forces(atoms)
        atoms.info["forces_comm"] = drawn.results["forces_comm"]
        atoms.arrays["REF_forces"] = drawn.rng.normal(size=(N_ATOMS, 3))
        known.append(atoms)
    p = ss.Predictions.from_atoms(known, **NAMES)
    return ss.Recalibrator(ss.TemperatureScaling()).fit(p)


def evaluations_until_novel(calculator, n):
    """Return after how many structures novelty rings; n if it does not."""
    for step in range(n):
        calculated(structure(step), calculator)
        if calculator.events:
            return step
    return n


def test_novelty_rings_where_u_or_forces_have_risen_and_hardly_ever_otherwise():
    r, rung = fitted_to_draws(), []
    for seed in range(10):
        drawn = Drawn(np.random.default_rng(100 + seed))
        same = HonestCalculator(drawn, r)
        rung.append(evaluations_until_novel(same, 300) < 300)
        for risen in ({"size": 2.5}, {"push": 1.6}):
            drawn = Drawn(np.random.default_rng(100 + seed))
            vars(drawn).update(risen)
            assert evaluations_until_novel(HonestCalculator(drawn, r), 300) < 150
    assert np.mean(rung) <= 0.1


def test_one_odd_structure_is_no_novelty_but_several_are():
    drawn = Drawn(np.random.default_rng(7))
    calculator = HonestCalculator(drawn, fitted_to_draws())
    drawn.push = 10.0  # as forces of a lattice that was not warmed
    calculated(structure(0), calculator)
    drawn.push = 1.0
    for step in range(1, 40):
        calculated(structure(step), calculator)
    assert not calculator.events
    drawn.push = 10.0
    for step in range(40, 61):
        calculated(structure(step), calculator)
    assert [event.step for event in calculator.events] == [60]


def test_a_species_that_was_never_seen_is_said_once_and_may_stop_the_run(caplog):
    calculator = honest()
    strange = structure(99)
    strange.symbols[2] = "Ag"
    calculated(strange, calculator)
    strange.positions += 0.01
    calculated(strange, calculator)
    assert caplog.text.count("Ag was not among the species") == 1
    assert [event.kind for event in calculator.events] == ["novelty"]
    with pytest.raises(RunStoppedError, match="Ag was not among the species"):
        calculated(strange, honest(on_novelty="stop"))


def test_forces_far_outside_the_calibrated_u_are_new():
    calculator = honest()
    calculated(structure(99, spread=1.0), calculator)
    assert "lie outside" in calculator.events[0].words


# -- going on --------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    def write(path, atoms, dynamics, rows):
        file = Trajectory(path, "w", atoms)
        dynamics.attach(file)
        keys = ("max_force_radius", "novelty", "honest_state")
        dynamics.attach(lambda: rows.append([atoms.info.get(key) for key in keys]))
        return file

    whole, parts = [], []
    atoms, dynamics = moving(honest(every=3))
    with write(tmp_path / "whole.traj", atoms, dynamics, whole):
        dynamics.run(60)
    final = atoms.positions.copy()

    atoms, dynamics = moving(honest(every=3, threshold=LIMIT))
    file = write(tmp_path / "parts.traj", atoms, dynamics, parts)
    with file, pytest.raises(RunStoppedError):
        dynamics.run(60)
    n_done = len(parts)
    assert 3 < n_done < 55
    frame = read(tmp_path / "parts.traj")  # the last that was complete
    frame.calc = honest(every=3)
    frame.calc.resume(frame)
    dynamics = VelocityVerlet(frame, 2 * units.fs)
    del parts[-1]  # it is written again
    dynamics.attach(
        lambda: parts.append(
            [frame.info.get(k) for k in ("max_force_radius", "novelty", "honest_state")]
        )
    )
    dynamics.run(61 - n_done)
    np.testing.assert_array_equal(frame.positions, final)
    assert parts == whole


def test_the_state_of_a_run_is_plain_json():
    calculator = honest()
    calculated(structure(1), calculator)
    state = json.loads(json.dumps(calculator.state))
    other = honest()
    other.resume(state)
    for each in (calculator, other):
        calculated(structure(2), each)
    assert other.state == calculator.state
    with pytest.raises(InvalidInputError, match="honest_state"):
        other.resume(structure(1))
    with pytest.raises(InvalidInputError, match="`state` must have beyond, evidence"):
        other.resume({"step": 1})


# -- what goes wrong -------------------------------------------------------------------


class Failing(Springs):
    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        if atoms.positions.max() > 4:
            msg = "out of memory"
            raise MemoryError(msg)


class Nan(Springs):
    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"][6:] = np.nan


def test_a_member_that_fails_is_named_and_nothing_is_lost():
    members = [*committee()[:-1], Failing(1, 1)]
    calculator = HonestCalculator(members, fitted())
    atoms = calculated(structure(99, spread=0.05), calculator)
    before, state = atoms.info.copy(), dict(calculator.state)
    positions = atoms.positions.copy()
    atoms.positions += 2
    with pytest.raises(MemberError, match=r"Member 9 of 10 \(Failing\).*out of memory"):
        atoms.get_forces()
    assert calculator.state == state
    atoms.positions = positions
    atoms.get_forces()
    assert atoms.info["max_force_radius"] == before["max_force_radius"]


def test_forces_that_are_not_finite_are_refused_with_their_atom():
    words = r"2 of 8 atoms \(first atom 6, Au\)"
    for members in (
        [*committee()[:3], Nan(1, 1)],
        Together([*committee()[:3], Nan(1, 1)]),
    ):
        with pytest.raises(MemberError, match=words):
            calculated(structure(99), HonestCalculator(members, fitted()))


def test_wrong_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="`committee` must be a list of two"):
        HonestCalculator(committee()[:1], fitted())
    with pytest.raises(InvalidInputError, match="`recalibrator` must be a fitted"):
        HonestCalculator(committee(), ss.Recalibrator())
    numbers = ss.Predictions(y_std=[1.0, 2.0] * 30, error=[2.0, -4.0] * 30)
    of_numbers = ss.Recalibrator(ss.TemperatureScaling()).fit(numbers)
    with pytest.raises(InvalidInputError, match=r"fitted to forces.*found 'numbers'"):
        HonestCalculator(committee(), of_numbers)
    wrong = {"threshold": -1, "coverage": 1.0, "every": 0, "on_exceed": "halt"}
    for name, value in wrong.items():
        with pytest.raises(InvalidInputError, match=f"`{name}` must"):
            honest(**{name: value})
    one = HonestCalculator(Together(committee()), fitted(), members="forces_all")
    with pytest.raises(InvalidInputError, match=r"no 'forces_all'.*forces_comm"):
        calculated(structure(1), one)
    one = HonestCalculator(Together(committee()), fitted(), members="forces")
    with pytest.raises(InvalidInputError, match=r"have shape \(m, 8, 3\)"):
        calculated(structure(1), one)


def test_without_ase_the_module_says_what_to_install():
    code = "import sys; sys.modules['ase'] = None\nimport sigmascale\n"
    subprocess.run([sys.executable, "-c", code], check=True)
    code += "import sigmascale.integrations.forces"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "sigmascale.integrations.forces needs ase: pip install" in done.stderr
