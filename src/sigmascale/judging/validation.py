"""Verdicts, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats
from .._support.labels import label_text
from .._support.notebook import answered, chart, log_ticks_of, page
from .._support.render import Cells, Result, html_table, shorten, text_table
from .._support.weights import effective_number
from ..predictions import Predictions
from .distributions import DistributionScores
from .local import LocalZMS
from .references import ReferenceScores
from .regions import Region, how_far_off
from .scores import Scorecard
from .student import poor_normal

Answer = Literal["yes", "no", "cannot tell"]
AVERAGE, UNCERTAINTY = "average", "u"
BIAS, JOINT, COVERAGE = "bias", "joint", "coverage"
MOST_OFF = 100.0  # limits of a factor beyond which they say nothing
OTHERS = (BIAS, AVERAGE, UNCERTAINTY, JOINT, COVERAGE)  # questions that no feature is


def worst(answers: Iterable[Answer]) -> Answer:
    """Return "no" before "cannot tell" before "yes"."""
    found = set(answers)
    return next(each for each in ("no", "cannot tell", "yes") if each in found)


@dataclass(frozen=True, eq=False)
class LocalFactors(Result):
    """By which factors u must be multiplied to be right, along a variable.

    Attributes
    ----------
    name : str
        The variable.
    x_min, x_max : array of shape (n_regions,)
        The range of each region: a tenth of the rows or a little more, or a label.
    n : array of shape (n_regions,)
        Its rows.
    factor, low, high : array of shape (n_regions,)
        Its factor relative to the average, and limits that hold for all at once.
    """

    name: str
    x_min: npt.NDArray[Any]
    x_max: npt.NDArray[Any]
    n: Floats
    factor: Floats
    low: Floats
    high: Floats

    def _cells(self) -> Cells:
        columns = (self.x_min, self.x_max, self.n, self.factor, self.low, self.high)
        lines = [
            (*(label_text(x) if isinstance(x, str) else f"{x:.4g}" for x in row),)
            for row in zip(*columns, strict=True)
        ]
        return ("from", "to", "rows", "factor", "low", "high"), lines


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
    p_adjusted : float or None
        The chance that any question of a set whose z has one law everywhere looks as
        bad; None where no test was made, or an interval of all rows has decided.
    interval : tuple of float, or None
        Of all rows: <Z²>, with the limits of its interval; of "bias" the mean of z, of
        "coverage" the share of errors held. If the latter two fail in a region only:
        how much the mean of z differs there, and the share held there.
    limits : tuple of float, or None
        Between which lies what u must be multiplied by to be right, in every tenth of
        the rows and for every label of 5 % of them, relative to the average; of "bias",
        the mean of z. All such limits hold at once. Where the answer is "no": those of
        the worst region.
    rows_needed : int or None
        About how many rows a "yes" takes, or groups, if rows belong together; None
        where the answer is "no", or nobody can tell.
    regions : tuple of Region
        Where uncertainties are wrong, the worst first.
    band : LocalFactors or None
        The same limits along the variable.
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
    p_adjusted: float | None = None
    interval: tuple[float, float, float] | None = None
    limits: tuple[float, float] | None = None
    rows_needed: int | None = None
    regions: tuple[Region, ...] = ()
    band: LocalFactors | None = field(default=None, repr=False)
    score: float | None = None
    target: float | None = None
    target_sd: float | None = None
    local: LocalZMS | None = field(default=None, repr=False)
    attainable: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is "yes"."""
        return self.answer == "yes"

    @property
    def region(self) -> Region | None:
        """The worst region, where the answer is "no"."""
        return self.regions[0] if self.regions else None

    @property
    def at_most(self) -> float | None:
        """The largest factor by which u may be off, in any tenth of the rows."""
        if self.limits is None or self.name in (BIAS, COVERAGE):
            return None
        low, high = self.limits
        return max(high, 1 / low) if low > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, nested ones too."""
        regions = [each.to_dict() for each in self.regions]
        return super().to_dict() | {"passed": self.passed, "regions": regions}

    def _cells(self) -> Cells:
        valid = score = "-"
        if self.local is not None:
            low, high = self.local.fraction_interval
            valid = f"{self.local.fraction_valid:.2f} [{low:.2f}, {high:.2f}]"
        if self.score is not None:
            score = f"{self.score:.2f} ({self.target:.2f})"
        p = "-" if self.p_adjusted is None else f"{self.p_adjusted:.3f}"
        limits = "-" if self.limits is None else "{:.2f} to {:.2f}".format(*self.limits)
        cells = (shorten(self.name, 11), self.answer, p, limits, score, valid)
        return ("", "answer", "p", "within", "S", "valid bins"), [cells]

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
        The factor that u of no tenth of the rows may be off by.
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
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The verdicts in words, with one sentence for variables that agree."""
        return [sentence for _, sentence in self._answered()]

    def _answered(self) -> list[tuple[Answer, str]]:
        """Return each of the sentences, with its answer."""
        found: dict[Any, list[Verdict]] = {}
        for name, each in self.verdicts.items():
            key = (each.answer, each.limits is None)
            alike = each.sentence.startswith("Along")
            found.setdefault(key if alike else name, []).append(each)
        return [
            (g[0].answer, g[0].sentence if len(g) == 1 else self._together(g))
            for g in found.values()
        ]

    def _together(self, group: list[Verdict]) -> str:
        limits = [each.limits or (0.0, math.inf) for each in group]
        widest = min(low for low, _ in limits), max(high for _, high in limits)
        needed = max(each.rows_needed or 0 for each in group) or None
        has_groups = self.rows is not None and self.rows.groups is not None
        told = would_tell(needed, "groups" if has_groups else "rows")
        relative = self.verdicts[AVERAGE].answer == "no"
        names = [each.name for each in group]
        return along(names, group[0].answer, widest, told, relative=relative)

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
            "p: corrected for all questions. Within: what u of every tenth of rows\n"
            "must be multiplied by, relative to the average (of bias: the mean of z;\n"
            "of a no: in the worst region); all limits hold at once. S (attainable)\n"
            f"and valid bins: from {bins} bins of u and of each number."
        )
        if self.n_effective is not None:
            note += (
                f"\nRows were weighted: {self.scores.n_rows} of them count as "
                f"{self.n_effective:.0f} in effect."
            )
        return "\n".join([repr(self), "", self.to_table(), note])

    def __repr__(self) -> str:
        """Return the verdicts in words."""
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        words = [answered(*each) for each in self._answered()]
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
        The factor that u of no tenth of the rows may be off by.
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
    def _counted(self) -> str:
        answers = [each.answer for each in self.targets.values()]
        return (
            f"{len(answers)} targets: {answers.count('yes')} right, "
            f"{answers.count('no')} not right, {answers.count('cannot tell')} of which "
            "one cannot tell."
        )

    @property
    def summary(self) -> str:
        """What was found, in plain words: how many targets pass, and what fails."""
        words = [self._counted]
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

    def __repr__(self) -> str:
        """Return what was found, in words."""
        return self.summary

    def _repr_html_(self) -> str:
        words = [escape(self._counted)]
        for name, each in self.targets.items():
            bad = [v for v in each.verdicts.values() if v.answer == each.answer]
            said = "" if each.passed else f": {' '.join(v.sentence for v in bad)}"
            words.append(answered(each.answer, f"{name}{said}"))
        names = {-float(i): shorten(name, 24) for i, name in enumerate(self.targets)}
        averages = [v.verdicts[AVERAGE].interval for v in self.targets.values()]
        zms, low, high = np.log(np.maximum(np.array(averages, dtype=float), 1e-9)).T
        places = np.array([*names])
        figure = chart(
            zms,
            places,
            labels=("⟨Z²⟩ of all rows; 1 is right", ""),
            ticks=(log_ticks_of(np.concatenate([low, high])), names),
            bars=(low, high),
            wrong=(low > 0) | (high < 0),
            lines=[(np.zeros(2), np.array([0.5, places[-1] - 0.5]))],
            flat=True,
        )
        return page(words, figure, {"Targets": html_table(*self._cells())})


def along(
    names: Sequence[str],
    answer: Answer,
    limits: tuple[float, float],
    would_tell: str,
    *,
    relative: bool,
) -> str:
    """Return in words between which limits u is, along some variables.

    >>> along(["mass"], "yes", (0.9, 1.1), "", relative=False)
    'Along mass, u is between 9 % too small and 11 % too large everywhere.'
    """
    named = [*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else list(names)
    where = " and ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
    than = ", relative to the average" if relative else ""
    if not 1 / MOST_OFF <= limits[0] <= limits[1] <= MOST_OFF:
        why = "there are too few rows of some of its values"
        if limits[0] > 0 and math.isfinite(limits[1]):
            why = "a few errors outweigh all others"
        return f"Along {where}, one cannot tell whether u is right: {why}.{would_tell}"
    if answer == "yes":
        return f"Along {where}, u is {between(limits)} everywhere{than}."
    return (
        f"Along {where}, one cannot tell whether u is right: it may be "
        f"{between(limits)} somewhere{than}.{would_tell}"
    )


def would_tell(rows_needed: int | None, unit: str = "rows") -> str:
    """Return how many rows, or groups, would tell, as a sentence; or nothing."""
    return "" if rows_needed is None else f" About {rows_needed:,} {unit} would tell."


def between(limits: tuple[float, float]) -> str:
    """Return in words how far off u may be, from the limits of its factor."""
    low, high = (how_far_off(each**2) for each in limits)
    return f"between {high} and {low}"
