"""Verdicts, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from .._support.notebook import answered, page
from .._support.render import Cells, Result, html_table, shorten, text_table
from .._support.weights import effective_number
from ..predictions import Predictions
from .distributions import DistributionScores
from .local import LocalZMS
from .references import ReferenceScores
from .regions import Region
from .scores import Scorecard
from .student import poor_normal

Answer = Literal["yes", "no", "cannot tell"]
AVERAGE, UNCERTAINTY = "average", "u"
BIAS, JOINT, COVERAGE = "bias", "joint", "coverage"
OTHERS = (BIAS, AVERAGE, UNCERTAINTY, JOINT, COVERAGE)  # questions that no feature is


def worst(answers: Iterable[Answer]) -> Answer:
    """Return "no" before "cannot tell" before "yes"."""
    found = set(answers)
    return next(each for each in ("no", "cannot tell", "yes") if each in found)


@dataclass(frozen=True)
class Verdict(Result):
    """The verdict on one question, with its evidence.

    Attributes
    ----------
    name : str
        The question: "bias", "average", "u", the name of a feature, "joint" or
        "coverage".
    answer : {"yes", "no", "cannot tell"}
        Whether uncertainties are right in this respect.
    sentence : str
        The verdict in plain words.
    p_value, p_adjusted : float or None
        The chance that a calibrated set looks as bad, for this question alone, and for
        any of all questions; None where no test was made.
    interval : tuple of float, or None
        <Z²> of all rows (of "bias": the mean of z) with the limits of its interval,
        whose level belongs to the error rate of all questions.
    seen : float or None
        The smallest factor by which the uncertainties of a tenth of the rows would have
        to be too small to be found nearly always; of "average", those of all rows.
    region : Region or None
        The worst region, where the answer is "no".
    score, target, target_sd : float or None
        S_cal or S_x, and its mean and spread in perfectly calibrated sets with the
        z-distribution of this one.
    local : LocalZMS or None
        <Z²> of each bin of a variable.
    attainable : float or None
        The fraction of valid bins that a perfectly calibrated set with this
        z-distribution attains.
    """

    name: str
    answer: Answer
    sentence: str
    p_value: float | None = None
    p_adjusted: float | None = None
    interval: tuple[float, float, float] | None = None
    seen: float | None = None
    region: Region | None = None
    score: float | None = None
    target: float | None = None
    target_sd: float | None = None
    local: LocalZMS | None = field(default=None, repr=False)
    attainable: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is "yes"."""
        return self.answer == "yes"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, nested ones too."""
        return super().to_dict() | {"passed": self.passed}

    def _cells(self) -> Cells:
        valid = score = "-"
        if self.local is not None:
            low, high = self.local.fraction_interval
            valid = f"{self.local.fraction_valid:.2f} [{low:.2f}, {high:.2f}]"
        if self.score is not None:
            score = f"{self.score:.2f} ({self.target:.2f})"
        p = "-" if self.p_adjusted is None else f"{self.p_adjusted:.3f}"
        seen = "-" if self.seen is None else f"{self.seen:.3g}"
        cells = (shorten(self.name, 11), self.answer, p, seen, score, valid)
        return ("", "answer", "p", "seen", "S", "valid bins"), [cells]

    def __str__(self) -> str:
        """Return the verdict in plain words."""
        return self.sentence


@dataclass(frozen=True)
class Validation(Result):
    """Verdicts on one set: unbiased, calibrated, consistent, adaptive, jointly right.

    Attributes
    ----------
    verdicts : dict of str to Verdict
        By question: "bias", "average", "u", the features, "joint" and "coverage".
    confidence : float
        One minus the chance that a perfect set gets a "no" to any of them.
    tolerance : float
        The factor by which u of a tenth of the rows may be too small unseen.
    scores : Scorecard
        All scores of the set.
    reference : ReferenceScores
        The same scores of perfectly calibrated sets: what is attainable.
    reach : float
        The multiple of u that holds 95 % of the errors; 1.96 of normal ones.
    rows : Predictions or None
        The rows that were judged; None if they stayed in a lazy frame.
    n_draws : int
        Shuffled sets behind the tests.
    seed : int or None
        The seed of bootstrap and simulation, if it was a number.
    n_resamples : int or None
        Bootstrap draws behind the intervals; None if these need none.
    notes : tuple of str
        What `validate` warned about bins: those that are fewer than asked for, or left
        out, or without any error.
    """

    verdicts: dict[str, Verdict] = field(repr=False)
    confidence: float
    tolerance: float
    scores: Scorecard = field(repr=False)
    reference: ReferenceScores = field(repr=False)
    reach: float
    rows: Predictions | None = field(default=None, repr=False, compare=False)
    n_draws: int = field(default=0, repr=False)
    seed: int | None = field(default=None, repr=False)
    n_resamples: int | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def answer(self) -> Answer:
        """The worst answer: "no" before "cannot tell" before "yes"."""
        return worst(verdict.answer for verdict in self.verdicts.values())

    @property
    def passed(self) -> bool:
        """Whether every answer is "yes"."""
        return self.answer == "yes"

    @property
    def distribution(self) -> DistributionScores | None:
        """The scores of distributions; None if rows stayed in a lazy frame."""
        return self.scores.distribution

    @property
    def failures(self) -> list[str]:
        """The questions that were answered by "no"."""
        return [name for name, each in self.verdicts.items() if each.answer == "no"]

    @property
    def calibrated(self) -> bool:
        """Whether uncertainties are right on average."""
        return self.verdicts[AVERAGE].passed

    @property
    def consistent(self) -> bool:
        """Whether they are right at every level of uncertainty."""
        return self.verdicts[UNCERTAINTY].passed

    @property
    def adaptive(self) -> dict[str, bool]:
        """Whether they are right for every value of each feature."""
        return {
            name: verdict.passed
            for name, verdict in self.verdicts.items()
            if name not in OTHERS
        }

    @property
    def local(self) -> dict[str, LocalZMS]:
        """The local <Z²> of u and each feature."""
        found = {name: verdict.local for name, verdict in self.verdicts.items()}
        return {name: local for name, local in found.items() if local is not None}

    @property
    def summary(self) -> str:
        """All verdicts in plain words."""
        return " ".join(verdict.sentence for verdict in self.verdicts.values())

    @property
    def sampled(self) -> str:
        """That a sample was judged, in words; nothing if all rows were."""
        if self.rows is None or self.rows.n_rows == self.scores.n_rows:
            return ""
        return (
            f"Judged by {self.rows.n_rows} rows, drawn by a hash, of "
            f"{self.scores.n_rows}; NLL and S are those of all rows."
        )

    @cached_property
    def tails(self) -> str:
        """Why a normal law describes the errors poorly, in words; or nothing."""
        if self.rows is None:
            return ""
        return poor_normal(self.rows.z, self.rows.weights)

    @property
    def n_effective(self) -> float | None:
        """How many rows of equal weight would tell as much, if rows were weighted."""
        if self.rows is None or self.rows.weights is None:
            return None
        return effective_number(self.rows.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return verdicts and what they rest on."""
        weighted = {} if self.n_effective is None else {"n_effective": self.n_effective}
        return {
            "answer": self.answer,
            "passed": self.passed,
            "summary": self.summary,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            **weighted,
            "verdicts": {name: v.to_dict() for name, v in self.verdicts.items()},
        }

    def _cells(self) -> Cells:
        cells = [verdict._cells() for verdict in self.verdicts.values()]
        return cells[0][0], [rows[0] for _, rows in cells]

    def __str__(self) -> str:
        """Return the verdicts in words, and the evidence as a table."""
        bins = self.local[UNCERTAINTY].n.size
        note = (
            "p: corrected for all questions. Seen: the smallest factor of u, in a\n"
            "tenth of the rows, that would be found. S (in parentheses what is\n"
            f"attainable) and valid bins: from {bins} bins of u and of each number."
        )
        if self.n_effective is not None:
            note += (
                f"\nRows were weighted: {self.scores.n_rows} of them count as "
                f"{self.n_effective:.0f} in effect."
            )
        return "\n".join([repr(self), "", self.to_table(), note])

    def __repr__(self) -> str:
        """Return the verdicts in words."""
        return "\n".join(verdict.sentence for verdict in self.verdicts.values())

    def _repr_html_(self) -> str:
        words = [answered(v.answer, v.sentence) for v in self.verdicts.values()]
        tables = {"Evidence": html_table(*self._cells())}
        return page(words, self.local[UNCERTAINTY].chart(), tables)


@dataclass(frozen=True)
class Validations(Result):
    """Verdicts on several targets, which share one error rate.

    Attributes
    ----------
    targets : dict of str to Validation
        The verdicts on each, by its name.
    confidence : float
        One minus the chance that perfect targets get a "no" to anything.
    tolerance : float
        The factor by which u of a tenth of the rows may be too small unseen.
    """

    targets: dict[str, Validation] = field(repr=False)
    confidence: float
    tolerance: float

    @property
    def answer(self) -> Answer:
        """The worst answer: "no" before "cannot tell" before "yes"."""
        return worst(each.answer for each in self.targets.values())

    @property
    def passed(self) -> bool:
        """Whether every answer is "yes"."""
        return self.answer == "yes"

    @property
    def summary(self) -> str:
        """What was found, in plain words: how many targets pass, and what fails."""
        answers = [each.answer for each in self.targets.values()]
        words = [
            f"{len(answers)} targets: {answers.count('yes')} right, "
            f"{answers.count('no')} not right, {answers.count('cannot tell')} of which "
            "one cannot tell."
        ]
        for name, each in self.targets.items():
            words += [f"{name}: {each.verdicts[x].sentence}" for x in each.failures]
        return "\n".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts on all targets, and what they rest on."""
        return {
            "answer": self.answer,
            "passed": self.passed,
            "summary": self.summary,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "targets": {
                name: each.to_dict() | {"scores": each.scores.to_dict()}
                for name, each in self.targets.items()
            },
        }

    def _cells(self) -> Cells:
        rows = []
        for name, each in self.targets.items():
            interval = each.verdicts[AVERAGE].interval
            assert interval is not None
            zms, low, high = interval
            size, nll = str(each.scores.n_rows), f"{each.scores.nll:.3f}"
            average = f"{zms:.2f} [{low:.2f}, {high:.2f}]"
            fails = shorten(", ".join(each.failures) or "-", 24)
            rows.append((shorten(name, 24), size, average, nll, each.answer, fails))
        return ("target", "rows", "<Z²>", "NLL", "answer", "fails"), rows

    def __str__(self) -> str:
        """Return the table of targets, and what fails in words."""
        return f"{text_table(*self._cells())}\n\n{self.summary}"
