"""Molecular dynamics with honest forces: an ASE calculator around a committee.

The mean of the committee drives the atoms. Its standard deviation, recalibrated, gives
each force a radius; where one is too large, the run stops, or goes on and says so.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._support import numerals
from .._support.checks import Floats, check_count, check_fraction, is_real, need
from .._support.extras import needed_for
from .._support.notices import gathered, quiet, warn
from .._support.text import listed, quoted
from ..exceptions import (
    ExtrapolationWarning,
    FewRowsWarning,
    InfiniteIntervalWarning,
    InvalidInputError,
    MemberError,
    MissingFeatureWarning,
    RunStoppedError,
    UnseenCategoryWarning,
)
from ..predictions.forms import of_members
from ..predictions.predictions import Predictions
from ..recalibration.persistence import load
from ..recalibration.recalibrator import Recalibrator

with needed_for("sigmascale.integrations.forces"):
    from ase.calculators.calculator import Calculator, all_changes
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.io import write

__all__ = ["Event", "HonestCalculator"]

SPECIES = "species"
STATE = "honest_state"  # of the run before a structure was evaluated, in `atoms.info`
# What is written beside atoms: in `atoms.arrays`,
RADIUS = "force_radius"
STD = "force_std"
# and in `atoms.info`.
WORST = "max_force_radius"
ENERGY_STD = "energy_std"
EVIDENCE = "novelty"
MISSED = 0.05  # chance that the worst of all atoms lies beyond its ball, by default
_UNLIKE = (ExtrapolationWarning, MissingFeatureWarning, UnseenCategoryWarning)
_log = logging.getLogger(__name__)

Reaction = str | Callable[["Event", Any], None]


@dataclass(frozen=True)
class Event:
    """What happened in a run: a radius beyond the threshold, or novelty.

    Attributes
    ----------
    kind : str
        "threshold" or "novelty".
    step : int
        The evaluation at which it began, counted from 0.
    words : str
        What happened.
    """

    kind: str
    step: int
    words: str


# -- what the committee says -----------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """What a committee says of a structure.

    Attributes
    ----------
    results : dict
        The mean of each property.
    forces : array of shape (m, n, 3) or None
        The forces of the members.
    u : array of shape (n,) or None
        The uncertainty of each force, where there are no members.
    energies : array of shape (m,) or None
        The energies of the members.
    """

    results: dict[str, Any]
    forces: Floats | None = None
    u: Floats | None = None
    energies: Floats | None = None


class _SeparateMembers:
    """A committee of calculators."""

    def __init__(self, calculators: Sequence[Any]) -> None:
        self.calculators = list(calculators)
        sets = [set(member.implemented_properties) for member in self.calculators]
        self.properties = sorted(set.intersection(*sets))

    def mean(self, name: str, atoms: Any) -> Any:
        """Return the mean of a property."""
        return self._of_members(name, atoms).mean(axis=0)

    def evaluate(self, atoms: Any) -> _Answer:
        """Return what each member says of forces and energy, and the means."""
        forces = self._of_members("forces", atoms)
        for number, of_member in enumerate(forces):
            _check_finite(of_member, atoms, self._who(number))
        results = {"forces": forces.mean(axis=0)}
        if "energy" not in self.properties:
            return _Answer(results, forces=forces)
        energies = self._of_members("energy", atoms, known=True)
        results["energy"] = energies.mean()
        return _Answer(results, forces=forces, energies=energies)

    def _of_members(self, name: str, atoms: Any, *, known: bool = False) -> Floats:
        """Return a property from each member, which may know it already."""
        values = []
        for number, calculator in enumerate(self.calculators):
            who = self._who(number)
            values.append(_ask(calculator, name, atoms, who, known=known))
        return np.array(values)

    def _who(self, number: int) -> str:
        """Return which member it is, to name it in messages."""
        kind = type(self.calculators[number]).__name__
        return f"Member {number} of {len(self.calculators)} ({kind})"


class _OneCalculator:
    """A calculator whose results hold what all members say, or an uncertainty."""

    def __init__(
        self, calculator: Any, members: Any, uncertainty: str | None, energies: str
    ) -> None:
        self.calculator = calculator
        self.members = [members] if isinstance(members, str) else list(members)
        self.uncertainty = uncertainty
        self.energies = energies
        self.properties = sorted(calculator.implemented_properties)

    def mean(self, name: str, atoms: Any) -> Any:
        """Return a property, which the calculator takes the mean of."""
        return _ask(self.calculator, name, atoms, type(self.calculator).__name__)

    def evaluate(self, atoms: Any) -> _Answer:
        """Return what the calculator says of forces and energy, and its members."""
        # the means
        who = type(self.calculator).__name__
        results = {"forces": self.mean("forces", atoms)}
        _check_finite(results["forces"], atoms, who)
        if "energy" in self.properties:
            results["energy"] = _ask(self.calculator, "energy", atoms, who, known=True)

        # an uncertainty, or the members
        if self.uncertainty is not None:
            u = self._named(self.uncertainty, (len(atoms),))
            _check_finite(u, atoms, who, quoted(self.uncertainty))
            return _Answer(results, u=u)
        forces = self._forces(len(atoms))
        for number, of_member in enumerate(forces):
            member = f"Member {number} of {len(forces)} ({who})"
            _check_finite(of_member, atoms, member)
        results["forces"] = forces.mean(axis=0)
        energies = self.calculator.results.get(self.energies)
        if np.shape(energies) != forces.shape[:1]:
            energies = None  # those of atoms have this name, too
        return _Answer(results, forces=forces, energies=energies)

    def _forces(self, n_atoms: int) -> Floats:
        """Return the forces of all members, from one array or from several."""
        if len(self.members) > 1:
            by_member = [self._named(name, (n_atoms, 3)) for name in self.members]
            return np.array(by_member)
        return self._named(self.members[0], (None, n_atoms, 3))

    def _named(self, name: str, shape: tuple[int | None, ...]) -> Floats:
        """Return an array of the results, if it has the right shape."""
        results = self.calculator.results
        if name not in results:
            msg = (
                f"The results of the calculator have no {quoted(name)}; they have "
                f"{listed(sorted(results), 20)}. Name the forces of the members with "
                "`members`, or the uncertainty of each force with `uncertainty`."
            )
            raise InvalidInputError(msg, "no-column", columns=sorted(results))
        array = np.asarray(results[name], dtype=np.float64)
        pairs = zip(shape, array.shape, strict=False)
        sizes_fit = all(wanted in (None, size) for wanted, size in pairs)
        fits = array.ndim == len(shape) and sizes_fit
        must = str(shape).replace("None", "m")
        need(fits, name, f"have shape {must}", array.shape, "shapes")
        return array


def _ask(
    calculator: Any, name: str, atoms: Any, who: str, *, known: bool = False
) -> Any:
    """Return a property from a calculator, and say which one fails.

    If it has just been asked about the same structure, it may know the answer already,
    and ASE would only compare the structures again.
    """
    if known and name in getattr(calculator, "results", {}):
        return calculator.results[name]
    try:
        return calculator.get_property(name, atoms)
    except Exception as problem:
        kind = type(problem).__name__
        msg = f"{who} failed to give {quoted(name)}: {kind}: {problem}"
        raise MemberError(msg) from problem


def _check_finite(values: Any, atoms: Any, who: str, what: str = "forces") -> None:
    """Refuse what is not finite, with its atom."""
    if np.isfinite(values).all():
        return
    is_finite = np.isfinite(values.reshape(len(atoms), -1)).all(axis=1)
    n_bad = int(np.count_nonzero(~is_finite))
    atom = int(np.argmin(is_finite))  # the first
    msg = (
        f"{who} gives {what} that are not finite, for {n_bad} of {len(atoms)} "
        f"atoms (first atom {atom}, {atoms.symbols[atom]}). Have atoms come too close, "
        "or does it not know them?"
    )
    raise MemberError(msg)


# -- what a run has become -------------------------------------------------------------


class _Novelty:
    """Evidence that a run has left what was calibrated: martingales that start anew.

    How large u, or the force, of a structure is, in standard deviations of calibrated
    structures from their mean, is z. If z is normal with a mean of at most δ, the
    product of exp(λ (z − δ) − λ²/2) is a supermartingale; started anew wherever it is
    below 1 (Page's CUSUM), it needs exp(limit) looks on average to exceed the limit.
    So does the mean of several. Where z is larger than `largest` it counts as that,
    which makes the product no larger: a run has not left what was calibrated because of
    one structure, such as a lattice at the start that was not warmed.

    References
    ----------
    G. Lorden, Ann. Math. Stat. 42, 1897 (1971), doi:10.1214/aoms/1177693055; J. Shin,
    A. Ramdas and A. Rinaldo, New Engl. J. Stat. Data Sci. 2, 229 (2024),
    doi:10.51387/23-NEJSDS51.
    """

    # δ: structures of a run are alike, and slowly change. Forces follow the temperature
    # at once; u depends on where atoms are, and may be this far off for long.
    allowed = np.array([2.0, 0.5])  # u, forces
    largest = 4.5  # z of one structure, so that three at least are needed
    bet = 1.25  # λ
    limit = math.log(10_000)
    every = 10  # evaluations from one look to the next, as neighbours tell the same

    def __init__(self, recalibrator: Recalibrator) -> None:
        rows = recalibrator.fitted_rows_
        self.levels = rows.levels_of_groups
        self.smallest = float(rows.quantiles[0, 0])
        self.species: tuple[Any, ...] = ()
        if SPECIES in recalibrator.names_:
            self.species = rows.labels[recalibrator.names_.index(SPECIES)]

    @property
    def usual_size(self) -> int:
        """The number of atoms of calibrated structures; 0 if they are not known."""
        return round(self.levels[0, 2]) if self.levels.size else 0

    def unknown_species(self, atoms: Any) -> list[str]:
        """Return what is to be said of species that were not calibrated."""
        if not self.species:
            return []
        sentences = []
        for symbol in sorted(set(atoms.get_chemical_symbols()) - set(self.species)):
            sentences.append(
                f"{symbol} was not among the species that were calibrated "
                f"({listed(self.species)}): its radii are a guess."
            )
        return sentences

    def after(self, evidence: Sequence[float], p: Predictions) -> list[float]:
        """Return the logarithm of the evidence of each after a further structure."""
        # how large u, and forces, are: logarithms, as `levels` has them
        mean_square = float((np.asarray(p.y_pred) ** 2).sum(axis=1).mean())
        log_u = float(np.log(p.y_std).mean())
        log_force = math.log(max(mean_square, 1e-300)) / 2
        sizes = (log_u, log_force)

        # ln exp(λ (z − δ) − λ²/2) is added to what there is, which is 0 at least
        updated = []
        for k, (mean, spread, n_rows) in enumerate(self.levels):
            of_few = math.sqrt(max(1.0, n_rows / p.n_rows))  # fewer atoms vary more
            z = min((sizes[k] - mean) / (spread * of_few), self.largest)
            gain = self.bet * (z - self.allowed[k]) - self.bet**2 / 2
            updated.append(max(0.0, evidence[k]) + float(gain))
        return updated

    def together(self, evidence: Sequence[float]) -> float:
        """Return the logarithm of the mean evidence."""
        known = evidence[: len(self.levels)]
        return float(np.logaddexp.reduce(known) - math.log(len(known)))


# -- the calculator --------------------------------------------------------------------


class HonestCalculator(Calculator):
    """Calculate forces with recalibrated uncertainties, and report large ones.

    The mean of a committee drives the atoms. Its standard deviation, recalibrated,
    gives each force a ball that contains the true one; the radii are written beside the
    atoms. Where the largest exceeds a threshold, or where the run leaves what was
    calibrated, it stops, is logged, or calls a function of yours.

    Parameters
    ----------
    committee : list of ASE calculators, or one
        The members; or one calculator whose results hold what all of them say.
    recalibrator : Recalibrator or path
        Fitted to forces, such as those of :meth:`sigmascale.Predictions.from_atoms`.
    coverage : float, optional
        The probability with which each ball contains the true force. By default
        1 − 0.05/n, at which all balls of n atoms do so with a probability of at least
        0.95: the level of the worst atom.
    threshold : float, optional
        The largest radius, in eV/Å, that is tolerated.
    on_exceed : {"stop", "log"} or callable, default "stop"
        What happens where a radius exceeds the threshold. "stop" raises
        RunStoppedError, after everything has been written. Where it begins to exceed
        it, "log" writes a warning to the log of this module, and a function is called
        as ``on_exceed(event, atoms)``.
    on_novelty : {"log", "stop"} or callable, default "log"
        What happens where radii say too little, as the run has left what was
        calibrated.
    every : int, default 1
        How many evaluations lie between two estimates of radii. Structures in between
        have none.
    collect : path, optional
        An extended XYZ file, to which each structure at which an event begins is added,
        with the forces of the members: to be labelled, read by
        :meth:`sigmascale.Predictions.from_atoms`, and learned from.
    features : callable, optional
        What the recalibrator was fitted on beside u and species: ``features(atoms,
        forces)`` returns a dict of arrays with a row for each atom.
    members : str or list of str, default "forces_comm"
        Of one calculator: the name, in its results, of the forces of all members, of
        shape (m, n, 3), or the names of several arrays of shape (n, 3).
    energies : str, default "energies"
        Of one calculator: the name of the energies of the members, of shape (m,).
    uncertainty : str, optional
        Of one calculator without members: the name of the uncertainty of each force, of
        shape (n,).
    atoms : ase.Atoms, optional
        Atoms that the calculator is attached to.

    Attributes
    ----------
    events : list of Event
        What has happened.
    state : dict
        Where the run stands, in terms of JSON; see :meth:`resume`.

    Notes
    -----
    Every structure that is evaluated carries ``atoms.arrays["force_radius"]`` (eV/Å)
    and ``atoms.arrays["force_std"]`` (recalibrated, of a component), and
    ``atoms.info["max_force_radius"]``. Where members give energies,
    ``atoms.info["energy_std"]`` is their standard deviation per atom in eV, which is
    not recalibrated. ``atoms.info["novelty"]`` is the logarithm of the evidence that
    the run has left what was calibrated. Where u is below the smallest that was
    calibrated, it is lifted to that.

    Novelty is reported where u or features lie outside the range of calibrated rows,
    where a species was not among them, and where u or forces of structures stay above
    those of calibrated ones. The last is tested by martingales, which would need 10,000
    looks on average for a false alarm, were looks independent and normal. They look at
    every tenth evaluation, need three looks at least, and allow a run to lie 2 (u)
    or 0.5 (forces) standard deviations of structures above the mean of these. They need
    a recalibrator that was fitted with groups, as `from_atoms` has them.

    What to expect:

    - **Calibrate on the model's own dynamics, at the temperatures that will be met.**
      The model visits structures that the reference does not: of pair potentials under
      EMT, calibrated on dynamics with the true forces, 95 % balls covered 74 ± 1 %.
      Those calibrated at 400 K covered 61 ± 1 % at 2,000 K, and 84 ± 1 % for a model
      that could be right.
    - **Errors that all members share are not in their standard deviation**, such as
      missing many-body forces if all are pair potentials; recalibration makes u right
      on average only. Under EMT a committee of these gave notice before its error in 1
      of 40 runs: it was beyond 1 eV/Å, with its radii, at once.
    - **What coverage means.** Of atoms like those calibrated, a share of `coverage` lie
      within their balls, atom by atom and step by step. Nothing is said of all balls of
      all steps together.

    Examples
    --------
    >>> import numpy as np
    >>> from ase import Atoms
    >>> from ase.calculators.morse import MorsePotential
    >>> import sigmascale as ss
    >>> from sigmascale.integrations.forces import HonestCalculator
    >>> truth = MorsePotential(epsilon=1.15, r0=2.5)
    >>> committee = [MorsePotential(epsilon=e, r0=2.5) for e in np.linspace(1, 1.2, 10)]
    >>> rng, names, known = np.random.default_rng(0), list("abcdefghij"), []
    >>> for _ in range(40):  # in earnest: structures of the model's own dynamics
    ...     atoms = Atoms("Cu4", 2.5 * np.eye(4, 3) + rng.normal(0, 0.1, (4, 3)))
    ...     atoms.arrays["true"] = truth.get_forces(atoms)
    ...     for name, member in zip(names, committee):
    ...         atoms.arrays[name] = member.get_forces(atoms)
    ...     known.append(atoms)
    >>> p = ss.Predictions.from_atoms(known, reference="true", members=names)
    >>> r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    >>> atoms.calc = HonestCalculator(committee, r, threshold=20.0)
    >>> off = np.linalg.norm(atoms.get_forces() - truth.get_forces(atoms), axis=1)
    >>> bool((off < atoms.arrays["force_radius"]).all())
    True
    """

    results: dict[str, Any]

    def __init__(
        self,
        committee: Any,
        recalibrator: Recalibrator | str | Path,
        *,
        coverage: float | None = None,
        threshold: float | None = None,
        on_exceed: Reaction = "stop",
        on_novelty: Reaction = "log",
        every: int = 1,
        collect: str | Path | None = None,
        features: Callable[[Any, Floats], dict[str, Any]] | None = None,
        members: str | Sequence[str] = "forces_comm",
        energies: str = "energies",
        uncertainty: str | None = None,
        atoms: Any = None,
    ) -> None:
        # what was asked for
        if threshold is not None:
            is_positive = is_real(threshold) and 0 < threshold < math.inf
            need(is_positive, "threshold", "be a positive number, in eV/Å", threshold)
        self.coverage = (
            None if coverage is None else check_fraction(coverage, "coverage")
        )
        self.threshold = threshold
        _check_reaction(on_exceed, "on_exceed")
        _check_reaction(on_novelty, "on_novelty")
        self.on_exceed = on_exceed
        self.on_novelty = on_novelty
        self.every = check_count(every, "every")
        self.collect = None if collect is None else Path(collect)
        self.features = features

        # what forces are, and their radii
        self.recalibrator = _fitted_to_forces(recalibrator)
        _check_features(self.recalibrator, features)
        self._committee = _committee_of(committee, members, uncertainty, energies)
        self._uncertainty = uncertainty
        self._novelty = _Novelty(self.recalibrator)
        self.implemented_properties = self._committee.properties

        # what has become of the run
        self.events: list[Event] = []
        self.state: dict[str, Any] = dict(_START)
        self._levels: dict[int, float] = {}
        self._from_look_to_look = self.every * math.ceil(_Novelty.every / self.every)
        super().__init__(atoms=atoms)
        usual_size = self._novelty.usual_size if atoms is None else len(atoms)
        if usual_size:
            self._level_of(usual_size)

    # -- what ASE asks for -------------------------------------------------------------

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] | None = None,
        system_changes: Any = all_changes,
    ) -> None:
        """Evaluate the committee, and the radii of its forces.

        Parameters
        ----------
        atoms : ase.Atoms
            The structure, which radii are written beside.
        properties : list of str
            What is asked for; forces, and energies where there are any, always are.
        system_changes : list of str
            What has changed since the last structure.
        """
        super().calculate(atoms, properties, system_changes)
        if system_changes or "forces" not in self.results:
            answer = self._committee.evaluate(self.atoms)
            self.results = answer.results
            if answer.forces is not None:
                self.results["forces_comm"] = answer.forces
            self._go_on(self.atoms if atoms is None else atoms, answer)
        for name in properties or ():
            if name not in self.results:
                self.results[name] = self._committee.mean(name, self.atoms)

    def resume(self, state: Any) -> None:
        """Go on where another run stood.

        Parameters
        ----------
        state : ase.Atoms or dict
            The structure to go on from, as the other run wrote it (to a trajectory of
            ASE, or as extended XYZ), which is then evaluated as if anew; or
            the `state` that the other run ended with.
        """
        if hasattr(state, "info"):
            if STATE not in state.info:
                msg = (
                    f"`state` must be a structure with {quoted(STATE)} in its `info`, "
                    "as this calculator writes it; found "
                    f"{listed(sorted(state.info)) if state.info else 'none'}."
                )
                raise InvalidInputError(msg)
            state = state.info[STATE]
        fits = isinstance(state, dict) and state.keys() == _START.keys()
        need(fits, "state", f"have {listed(sorted(_START))}", state)
        self.state = dict(state)
        self.reset()

    # -- one structure after the other -------------------------------------------------

    def _go_on(self, atoms: Any, answer: _Answer) -> None:
        """Count a structure, and evaluate it if it is its turn."""
        for name in (RADIUS, STD):
            atoms.arrays.pop(name, None)
        for name in (WORST, ENERGY_STD, EVIDENCE):
            atoms.info.pop(name, None)
        atoms.info[STATE] = dict(self.state)
        step = self.state["step"]
        self.state["step"] += 1
        if step % self.every == 0:
            events = self._evaluate(atoms, answer, step)
            self._react(atoms, answer, events)

    def _evaluate(self, atoms: Any, answer: _Answer, step: int) -> list[Event]:
        """Write radii beside the atoms, and return what begins here."""
        # the recalibrated uncertainty of each force, and the radius of its ball
        with gathered() as warnings:
            p = self._predictions(atoms, answer)
            honest = self.recalibrator.apply(p)
        level = self._level_of(len(atoms))
        with quiet():  # it has been said when the level was taken
            radius = honest.distributions.radius(level)
        worst = int(np.argmax(radius))
        atoms.arrays[RADIUS] = radius
        atoms.arrays[STD] = honest.y_std
        atoms.info[WORST] = float(radius[worst])
        if answer.energies is not None:
            std = float(np.std(answer.energies, ddof=1))
            atoms.info[ENERGY_STD] = std / len(atoms)

        # what begins here: novelty, and a radius beyond the threshold
        events = self._watch(atoms, p, warnings, step)
        is_beyond = self.threshold is not None and radius[worst] > self.threshold
        if is_beyond and (not self.state["beyond"] or self.on_exceed == "stop"):
            words = (
                f"The {numerals.number(100 * level, 6)} % ball of atom {worst} "
                f"({atoms.symbols[worst]}) has a radius of "
                f"{numerals.number(radius[worst])} eV/Å, above {self.threshold:.3g} "
                "eV/Å."
            )
            events.append(Event("threshold", step, words))
        self.state["beyond"] = bool(is_beyond)
        return events

    def _predictions(self, atoms: Any, answer: _Answer) -> Predictions:
        """Return mean forces with their u, and the features that the fit knows."""
        forces = answer.results["forces"]
        u = answer.u
        if answer.forces is not None:
            _, u = of_members(answer.forces.swapaxes(0, 1))
        # below the smallest calibrated u nothing is known of errors
        y_std = np.maximum(np.asarray(u), self._novelty.smallest)
        features = {} if self.features is None else dict(self.features(atoms, forces))
        if SPECIES in self.recalibrator.names_:
            features.setdefault(SPECIES, np.array(atoms.get_chemical_symbols()))
        return Predictions(forces, y_std, features=features)

    def _watch(
        self, atoms: Any, p: Predictions, warnings: Any, step: int
    ) -> list[Event]:
        """Return what is new about a structure, by warnings and by evidence.

        It is told once, unless each time stops the run.
        """
        events = []
        each_time = self.on_novelty == "stop"

        # rows unlike those of the fit
        sentences = self._novelty.unknown_species(atoms)
        for sentence, category in warnings:
            if issubclass(category, _UNLIKE):
                sentences.append(sentence)
        if sentences and (each_time or not self.state["outside"]):
            self.state["outside"] = True
            events.append(Event("novelty", step, " ".join(sentences)))

        # u or forces that have risen, and stay there
        if not self._novelty.levels.size:
            return events
        if step % self._from_look_to_look == 0:
            self.state["evidence"] = self._novelty.after(self.state["evidence"], p)
        evidence = self._novelty.together(self.state["evidence"])
        atoms.info[EVIDENCE] = evidence
        has_risen = evidence > self._novelty.limit
        if has_risen and (each_time or not self.state["risen"]):
            self.state["risen"] = True
            events.append(Event("novelty", step, _RISEN))
        return events

    def _react(self, atoms: Any, answer: _Answer, events: Sequence[Event]) -> None:
        """Write down what begins here, and do what is to be done about it."""
        self.events += events
        if events and self.collect is not None:
            self._write_frame(self.collect, atoms, answer)
        reactions = {"threshold": self.on_exceed, "novelty": self.on_novelty}
        for event in events:
            reaction = reactions[event.kind]
            if callable(reaction):
                reaction(event, atoms)
            elif reaction == "log":
                _log.warning("step %d: %s", event.step, event.words)
        # the run stops after all others have been told
        for event in events:
            if reactions[event.kind] == "stop":
                raise RunStoppedError(event)

    def _write_frame(self, path: Path, atoms: Any, answer: _Answer) -> None:
        """Add a structure, and what the members say of it, to a file."""
        frame = atoms.copy()
        if answer.forces is not None:
            by_atom = answer.forces.swapaxes(0, 1)
            frame.arrays["forces_comm"] = by_atom.reshape(len(atoms), -1)
        if self._uncertainty is not None:
            frame.arrays[self._uncertainty] = answer.u
        known = {name: answer.results.get(name) for name in ("energy", "forces")}
        frame.calc = SinglePointCalculator(frame, **known)
        text = io.StringIO()
        write(text, frame, format="extxyz")
        with path.open("a", encoding="utf-8") as file:
            file.write(text.getvalue())  # whole or not at all

    # -- levels ------------------------------------------------------------------------

    def _level_of(self, n_atoms: int) -> float:
        """Return the level of balls of a structure, and warn if it cannot be held."""
        if n_atoms not in self._levels:
            level = 1 - MISSED / n_atoms if self.coverage is None else self.coverage
            self._levels[n_atoms] = self._supported(level, n_atoms)
        return self._levels[n_atoms]

    def _supported(self, level: float, n_atoms: int) -> float:
        """Return a level, or warn, and return the highest that can be held."""
        z = self.recalibrator.distribution_
        highest = min((float(table.levels[-1]) for table in z.tables), default=1.0)
        if level <= highest + 1e-12:
            return level

        # of each table, the i-th of n rows stands for i / (n + 1)
        needed = math.ceil(round(1 / (1 - level), 6)) - 1
        is_infinite = z.tables[0].infinite
        remedy = "Radii are those of that level, and too small: calibrate on"
        category: type[Warning] = FewRowsWarning
        if is_infinite:
            remedy = "Radii are infinite: hold out"
            category = InfiniteIntervalWarning
        shown = f"{math.floor(1e6 * highest) / 1e6:.6g}"
        whose = (
            f", that of the worst of {n_atoms} atoms," if self.coverage is None else ""
        )
        where = " in each bin of u" if len(z.tables) > 1 else ""
        words = (
            f"`coverage` {level:.8g}{whose} is beyond what {min(z.n_rows)} calibrated "
            f"atoms{where} can tell: the highest level that they support is {shown}. "
            f"{remedy} at least {needed} atoms{where}, or pass coverage={shown}."
        )
        warn(words, category, stacklevel=4)
        return level if is_infinite else highest


_START = {
    "step": 0,
    "evidence": [0.0, 0.0],
    "beyond": False,
    "outside": False,
    "risen": False,
}
_RISEN = (
    "Forces or u have risen above those of calibrated structures, and stay there: "
    "radii say too little from here on. Calibrate on structures such as these."
)


# -- what was passed -------------------------------------------------------------------


def _committee_of(
    committee: Any, members: Any, uncertainty: str | None, energies: str
) -> _SeparateMembers | _OneCalculator:
    """Return the committee, of one calculator or of several."""
    if _is_calculator(committee):
        return _OneCalculator(committee, members, uncertainty, energies)
    are_several = isinstance(committee, Sequence) and len(committee) > 1
    are_right = are_several and all(_is_calculator(member) for member in committee)
    must = "be a list of two ASE calculators at least, or one that holds all members"
    need(are_right, "committee", must, committee)
    return _SeparateMembers(committee)


def _is_calculator(value: Any) -> bool:
    """Return whether something is a calculator of ASE, by what it has."""
    return hasattr(value, "get_property") and hasattr(value, "implemented_properties")


def _fitted_to_forces(given: Any) -> Recalibrator:
    """Return a recalibrator of vectors, from its file if that is what was passed."""
    loaded = load(given) if isinstance(given, (str, Path)) else given
    is_fitted = isinstance(loaded, Recalibrator) and hasattr(loaded, "scale_")
    must = "be a fitted Recalibrator, or the path of its file"
    need(is_fitted, "recalibrator", must, type(loaded).__name__)
    recalibrator: Recalibrator = loaded
    dim = recalibrator.distribution_.dim
    must = "be fitted to forces, such as those of Predictions.from_atoms(...)"
    fitted_to = "numbers" if dim is None else f"vectors of {dim} components"
    need(dim == 3, "recalibrator", must, fitted_to)
    return recalibrator


def _check_features(recalibrator: Recalibrator, features: Any) -> None:
    """Refuse a recalibrator of features that nothing computes."""
    needed = [name for name in recalibrator.names_[1:] if name != SPECIES]
    if needed and features is None:
        msg = (
            f"The recalibrator was fitted with {listed(needed)}: pass `features`, a "
            "function of (atoms, forces) that returns them as a dict of arrays."
        )
        raise InvalidInputError(msg, "features", columns=needed)


def _check_reaction(value: Any, name: str) -> None:
    """Refuse what is neither "stop" nor "log" nor a function."""
    is_known = callable(value) or value in ("stop", "log")
    need(is_known, name, 'be "stop", "log" or a function of (event, atoms)', value)
