"""Whether dynamics stop before forces are wrong by more than they may be.

    python benchmarks/honest_md.py --out benchmarks/studies/honest_md.md

The truth is a Lennard-Jones cluster of 24 copper and 8 gold atoms. A model is a
committee of eight pair potentials, fitted to 12 of 24 structures at 400 K each; what is
beyond them is drawn for each member, so that members differ there. It is calibrated on
80 structures of its own dynamics at 400 K. Ramps then heat the cluster from 300 to
3,000 K in 3,000 steps of 4 fs, driven by the model, and every tenth step is looked at:
where does the error of an atom first exceed 1 eV/Å, and where do radii? *Before* is the
share of ramps that are stopped at an earlier look, *in time* that at the same or an
earlier one; *of the steps* is the median share of the steps to the error that are made.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from pathlib import Path

import numpy as np
from ase import units
from ase.build import bulk
from ase.calculators.calculator import Calculator, all_changes
from ase.calculators.emt import EMT
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution

import sigmascale as ss
from sigmascale.integrations.forces import HonestCalculator

N_ATOMS, N_GOLD, N_MEMBERS = 32, 8, 8
PAIRS = np.triu_indices(N_ATOMS, 1)
THRESHOLD = 1.0  # eV/Å
BROKEN = 30.0  # eV/Å of the true force, beyond which a structure is not labelled
STEP, FRICTION = 4 * units.fs, 0.02 / units.fs
WORST = 1 - 0.05 / N_ATOMS
NAMES = {"reference": "REF_forces", "members": "forces_comm"}


# -- the truth and the model -----------------------------------------------------------


def kinds(atoms):
    """Return the kind of each pair: 0 Cu-Cu, 1 Cu-Au, 2 Au-Au."""
    is_gold = (atoms.numbers == 79).astype(int)
    return is_gold[PAIRS[0]] + is_gold[PAIRS[1]]


def pair_forces(atoms, pull):
    """Return the forces (..., n, 3) of pairs that pull by so much per distance."""
    matrix = np.zeros((*pull.shape[:-1], N_ATOMS, N_ATOMS))
    matrix[..., PAIRS[0], PAIRS[1]] = pull
    matrix[..., PAIRS[1], PAIRS[0]] = pull
    x = atoms.positions
    return matrix @ x - matrix.sum(axis=-1)[..., None] * x


def distances(atoms):
    """Return the distance of each pair."""
    off = atoms.positions[PAIRS[1]] - atoms.positions[PAIRS[0]]
    return np.sqrt((off**2).sum(axis=1))


class LennardJones(Calculator):
    """The truth: a well of 0.35 eV, wider where there is gold."""

    implemented_properties = ("energy", "forces")

    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        """Calculate energy and forces."""
        super().calculate(atoms, properties, system_changes)
        r = distances(atoms)
        x = (np.where(kinds(atoms) > 0, 2.45, 2.30) / r) ** 6
        pull = -24 * 0.35 / r**2 * (2 * x * x - x)
        energy = float((4 * 0.35 * (x * x - x)).sum())
        self.results = {"energy": energy, "forces": pair_forces(atoms, pull)}


class PairCommittee(Calculator):
    """Pair potentials made of waves of distance, with the forces of all members.

    Parameters
    ----------
    weights : array of shape (m, 3, n_waves)
        Of each member, kind of pair and wave.
    basis : Basis
        The waves.
    """

    implemented_properties = ("energy", "forces")

    def __init__(self, weights, basis):
        super().__init__()
        self.weights, self.basis = np.asarray(weights), basis

    def calculate(self, atoms=None, properties=(), system_changes=all_changes):
        """Calculate the forces of all members; their energies are not needed."""
        super().calculate(atoms, properties, system_changes)
        r, kind = distances(atoms), kinds(atoms)
        waves = self.basis.waves(r) / r[:, None]
        pull = np.empty((len(self.weights), r.size))
        for k in range(3):
            pull[:, kind == k] = self.weights[:, k] @ waves[kind == k].T
        forces = pair_forces(atoms, pull)
        self.results = {"energy": 0.0, "forces": forces.mean(axis=0)}
        self.results["forces_comm"] = forces


class Basis:
    """Waves of distance, and how members are fitted with them."""

    def __init__(self, centres, sharpness, ridge, *, priors):
        self.centres, self.sharpness = centres, sharpness
        self.ridge, self.priors = ridge, priors

    def waves(self, r):
        """Return the waves at distances."""
        return np.exp(-self.sharpness * (r[:, None] - self.centres) ** 2)

    def design(self, atoms):
        """Return what force components are linear in."""
        r, kind = distances(atoms), kinds(atoms)
        waves = self.waves(r) / r[:, None]
        columns = [
            pair_forces(atoms, np.where(kind == k, wave, 0.0)).ravel()
            for k in range(3)
            for wave in waves.T
        ]
        return np.column_stack(columns)

    def prior(self, rng):
        """Return the weights where there are no data: repulsion of some strength."""
        n = self.centres.size
        if not self.priors:
            return np.zeros(3 * n)
        wall = np.exp(-(self.centres - self.centres[0]) / 0.35)
        strength = rng.lognormal(1.5, 0.8, (3, 1))
        return (-strength * wall + rng.normal(0, 0.1, (3, n))).ravel()

    def member(self, structures, rng):
        """Return the weights of a member, fitted to structures."""
        X = np.concatenate([self.design(atoms) for atoms in structures])
        y = np.concatenate([a.arrays["REF_forces"].ravel() for a in structures])
        prior = self.prior(rng)
        normal = X.T @ X + self.ridge * np.eye(X.shape[1])
        weights = prior + np.linalg.solve(normal, X.T @ (y - X @ prior))
        return weights.reshape(3, -1)


RIGHT = Basis(np.linspace(1.6, 5.6, 12), 4.0, 1e-2, priors=True)
BLIND = Basis(np.linspace(2.0, 5.5, 6), 2.0, 1e-3, priors=False)


# -- dynamics --------------------------------------------------------------------------


def moving(calculator, temperature, rng):
    """Return a cluster with velocities, and its dynamics."""
    atoms = bulk("Cu", cubic=True, a=3.65).repeat(2)
    atoms.pbc = False
    atoms.symbols[rng.permutation(N_ATOMS)[:N_GOLD]] = "Au"
    atoms.positions += rng.normal(0, 0.03, (N_ATOMS, 3))
    atoms.calc = calculator
    MaxwellBoltzmannDistribution(atoms, temperature_K=temperature, rng=rng)
    dynamics = Langevin(
        atoms, STEP, temperature_K=temperature, friction=FRICTION, rng=rng
    )
    return atoms, dynamics


def sampled(calculator, truth, n_runs, n_structures, rng, temperature=400):
    """Return structures of dynamics, each 20 steps after the last, with true forces."""
    structures = []
    for _ in range(n_runs):
        atoms, dynamics = moving(calculator, temperature, rng)
        dynamics.run(80)
        for _ in range(n_structures):
            dynamics.run(20)
            copy = atoms.copy()
            copy.arrays["REF_forces"] = truth.get_forces(copy)
            if np.abs(copy.arrays["REF_forces"]).max() > BROKEN:
                break
            structures.append(copy)
    return structures


def labelled(structures, committee):
    """Return what a committee predicts for structures with true forces."""
    for atoms in structures:
        committee.get_forces(atoms)
        atoms.info["forces_comm"] = committee.results["forces_comm"]
    return ss.Predictions.from_atoms(structures, **NAMES)


class Model:
    """A committee, and what it is calibrated on."""

    def __init__(self, truth, basis, rng):
        self.truth, self.rng = truth, rng
        known = sampled(truth, truth, 4, 6, rng)
        members = [
            basis.member([known[i] for i in rng.permutation(len(known))[:12]], rng)
            for _ in range(N_MEMBERS)
        ]
        self.committee = PairCommittee(members, basis)
        own = sampled(self.committee, truth, 8, 10, rng)
        self.calibrated = labelled(own, self.committee)
        self.ours = ss.Recalibrator().fit(self.calibrated)
        self.one_factor = ss.Recalibrator(
            ss.TemperatureScaling(), distribution="normal"
        ).fit(self.calibrated)

    def judges(self):
        """Return calculators that judge the structures of a run by their radii."""
        rules = {
            "one factor, 95 %": (self.one_factor, 0.95),
            "one factor, worst atom": (self.one_factor, None),
            "ours, 95 %": (self.ours, 0.95),
        }
        return {
            name: HonestCalculator(self.committee, r, coverage=level)
            for name, (r, level) in rules.items()
        }

    def run(self, start, end, n_steps, every, *, compared=True):
        """Return where error, radii and novelty exceed their limits, in looks.

        A ramp ends where everything has happened that is asked for.
        """
        driver = HonestCalculator(
            self.committee,
            self.ours,
            threshold=THRESHOLD,
            on_exceed="log",
            every=every,
        )
        atoms, dynamics = moving(driver, start, self.rng)
        judges = self.judges() if compared else {}
        first = {}
        for look, step in enumerate(range(0, n_steps, every)):
            temperature = start + (end - start) * step / n_steps
            dynamics.set_temperature(temperature_K=temperature)
            dynamics.run(every)
            if not np.isfinite(atoms.positions).all():
                break
            error = atoms.get_forces() - self.truth.get_forces(atoms)
            largest = np.linalg.norm(error, axis=1).max()
            exceeding = {"error": largest, "ours, worst atom": worst(atoms)}
            if compared:
                exceeding |= raw_radii(driver)
            for name, judge in judges.items():
                judge.get_property("forces", atoms)
                exceeding[name] = worst(atoms)
            for name, value in exceeding.items():
                if not value <= THRESHOLD:
                    first.setdefault(name, look)
            for event in driver.events:
                if event.kind == "novelty":
                    first.setdefault("novelty", look)
            if end > start and "error" in first:
                break
        return first


def worst(atoms):
    """Return the largest radius of a structure that was judged."""
    return atoms.info["max_force_radius"]


def raw_radii(calculator):
    """Return the largest radii that the spread itself claims."""
    forces = calculator.results["forces_comm"].swapaxes(0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.exceptions.FewMembersWarning)
        p = ss.Predictions.from_members(forces, min_std=1e-9)
    raw = ss.Distributions.normal(p)
    return {
        "raw, 95 %": raw.radius(0.95).max(),
        "raw, worst atom": raw.radius(WORST).max(),
    }


# -- tables ----------------------------------------------------------------------------


def of_committees(shares):
    """Return the mean over committees with its standard error, as text."""
    shares = np.array(shares)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    return f"{shares.mean():.2f} ± {error:.2f}"


RULES = (
    *("raw, 95 %", "raw, worst atom", "one factor, 95 %", "one factor, worst atom"),
    *("ours, 95 %", "ours, worst atom", "novelty"),
)


def table_of_ramps(runs, rules=RULES):
    """Yield lines on ramps: a list, for each committee, of what happened where."""
    yield "| rule | before | in time | of the steps |"
    yield "| --- | --- | --- | --- |"
    for rule in rules:
        before, in_time, parts = [], [], []
        for of_committee in runs:
            pairs = [
                (run.get(rule, np.inf), run["error"])
                for run in of_committee
                if "error" in run
            ]
            stops, errors = np.array(pairs).T
            before.append(np.mean(stops < errors))
            in_time.append(np.mean(stops <= errors))
            parts += list(np.minimum(stops, errors) / np.maximum(errors, 1))
        share = f"{np.median(parts):.2f}"
        yield (
            f"| {rule} | {of_committees(before)} | {of_committees(in_time)} | {share} |"
        )


def study_of_ramps(
    truth, basis, n_committees, n_runs, seed, *, every=10, still=0, compared=True
):
    """Return what happened in ramps, and in runs at 400 K, by committee."""
    ramps, runs = [], []
    for number in range(n_committees):
        model = Model(truth, basis, np.random.default_rng([seed, number]))
        ramps.append(
            [
                model.run(300, 3000, 3000, every, compared=compared)
                for _ in range(n_runs)
            ]
        )
        runs.append(
            [model.run(400, 400, 3000, every, compared=False) for _ in range(still)]
        )
    return ramps, runs


def shares_held(model, rng):
    """Return how many true forces 95 % balls hold, by how they were calibrated."""
    own = labelled(sampled(model.committee, model.truth, 4, 10, rng), model.committee)
    hot = sampled(model.committee, model.truth, 4, 10, rng, temperature=2000)
    of_truth = sampled(model.truth, model.truth, 8, 10, rng)
    elsewhere = ss.Recalibrator().fit(labelled(of_truth, model.committee))
    return {
        "the model's dynamics at 400 K": held(model.ours, own),
        "the truth's dynamics at 400 K": held(elsewhere, own),
        "the model's at 400 K, used at 2,000 K": held(
            model.ours, labelled(hot, model.committee)
        ),
    }


def held(r, p):
    """Return the share of true forces in their balls of 95 %."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.exceptions.ExtrapolationWarning)
        return r.apply(p).distributions.contains(p.y_true, 0.95).mean()


def table_of_balls(n_committees, seed):
    """Yield lines on what balls hold where they were not calibrated."""
    yield "| the model | calibrated on | 95 % balls hold, on the model's own dynamics |"
    yield "| --- | --- | --- |"
    models = {
        "could be right": (LennardJones(), RIGHT),
        "pairs, under EMT": (EMT(), BLIND),
    }
    for name, (truth, basis) in models.items():
        rows = []
        for number in range(n_committees):
            rng = np.random.default_rng([seed, number])
            rows.append(shares_held(Model(truth, basis, rng), rng))
        for where in rows[0]:
            share = of_committees([row[where] for row in rows])
            yield f"| {name} | {where} | {share} |"


def busy(function, atoms):
    """Return how long a function of a structure keeps a processor busy."""
    start = time.process_time()
    function(atoms)
    return time.process_time() - start


class Told:
    """A member that answers at once, with what another has found."""

    def __init__(self, member):
        self.member = member
        self.implemented_properties = member.implemented_properties

    def get_property(self, name, atoms):
        """Return a property of the structure that the other has just been asked of."""
        return self.member.results[name]


def table_of_overhead(r):
    """Yield lines on the time that is spent beside the members.

    The members are asked first, alone; then a calculator around members that know what
    these found. What that takes is ours.
    """
    yield "| atoms | members alone, ms a step | every step | every tenth |"
    yield "| --- | --- | --- | --- |"
    rng = np.random.default_rng(0)
    for repeat, n_steps in (((2, 2, 2), 200), ((10, 5, 5), 20)):
        atoms = bulk("Cu", cubic=True, a=3.65).repeat(repeat)
        atoms.symbols[::4] = "Au"
        members = [EMT() for _ in range(N_MEMBERS)]
        told = [Told(member) for member in members]

        def alone(atoms, members=members):
            for member in members:
                member.get_forces(atoms)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ss.exceptions.FewRowsWarning)
            each = HonestCalculator(told, r, on_novelty=ignore, atoms=atoms)
            tenth = HonestCalculator(told, r, every=10, on_novelty=ignore)
        times = []
        for _ in range(n_steps):
            atoms.positions += rng.normal(0, 1e-3, atoms.positions.shape)
            functions = (alone, each.get_forces, tenth.get_forces)
            times.append([busy(function, atoms) for function in functions])
        base, judged, some = np.array(times).T
        every_step = np.median(judged) / np.median(base)
        in_ten = some.mean() / np.median(base)
        yield (
            f"| {len(atoms):,} | {1000 * np.median(base):.3g} | {100 * every_step:.1f} "
            f"% | {100 * in_ten:.1f} % |"
        )


def ignore(event, atoms):
    """Do nothing."""


def lines(options):
    """Yield the lines of the page."""
    seed, n_committees, n_runs = options.seed, options.committees, options.ramps
    yield "# Whether dynamics stop before forces are wrong"
    yield ""
    yield (
        f"`python benchmarks/honest_md.py --seed {seed}`. Errors are standard errors "
        "over committees. *Worst atom*: at the level 1 − 0.05/n, the default."
    )
    yield from ["", f"## {n_runs} ramps of {n_committees} committees", ""]
    ramps, still = study_of_ramps(
        LennardJones(), RIGHT, n_committees, n_runs, seed, still=options.still
    )
    looks = [run["error"] for runs in ramps for run in runs if "error" in run]
    yield (
        f"The error exceeded 1 eV/Å in {len(looks)} ramps, at a median of look "
        f"{np.median(looks):.0f} of 300."
    )
    yield from ["", *table_of_ramps(ramps), ""]
    rung = [["novelty" in run for run in runs] for runs in still]
    n_still = sum(map(len, rung))
    yield (
        f"At 400 K, the temperature of calibration, novelty rang in "
        f"{np.sum(rung)} of {n_still} runs of 300 looks "
        f"({of_committees([np.mean(each) for each in rung])}). Its constants were "
        "chosen on seeds 7 to 9."
    )
    n_few = max(1, n_runs // 4)
    yield from ["", f"## Every step is looked at ({n_few} ramps each)", ""]
    ramps, _ = study_of_ramps(
        LennardJones(), RIGHT, n_committees, n_few, seed, every=1, compared=False
    )
    yield from table_of_ramps(ramps, ("ours, worst atom", "novelty"))
    n_blind = max(2, n_committees // 2)
    title = "A committee that is blind: pair potentials under EMT"
    yield from ["", f"## {title} ({n_few} ramps of {n_blind})", ""]
    ramps, _ = study_of_ramps(EMT(), BLIND, n_blind, n_few, seed)
    yield from table_of_ramps(ramps)
    yield from ["", "## What balls hold", ""]
    yield from table_of_balls(n_committees, seed)
    yield from ["", "## Time beside that of the members (EMT, 8 members)", ""]
    model = Model(LennardJones(), RIGHT, np.random.default_rng(seed))
    yield from table_of_overhead(model.ours)


def main():
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--committees", type=int, default=8)
    parser.add_argument("--ramps", type=int, default=40, help="of each committee")
    parser.add_argument("--still", type=int, default=5, help="runs at 400 K of each")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.getLogger("sigmascale.integrations.forces").setLevel(logging.ERROR)
    for about in ("fixcm", "thermalize"):  # of ASE's own habits
        warnings.filterwarnings("ignore", f".*{about}.*")
    warnings.simplefilter("ignore", ss.exceptions.FewMembersWarning)
    written = []
    for line in lines(options):
        written.append(line)
        print(line, flush=True)
        if options.out:
            options.out.write_text("\n".join(written) + "\n", "utf-8")


if __name__ == "__main__":
    main()
