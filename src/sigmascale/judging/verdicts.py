"""Verdicts: the questions, their answers, and the answers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .._support.checks import Bools
from .._support.render import Cells, Result
from .._support.text import shorten
from .joint import describe
from .judge import COVERED, Found, Judge, State
from .scan import BIAS, COVERAGE, SIZE
from .variables import FEW_ROWS, TENTH, number

Answer = Literal["yes", "no", "cannot tell"]
ROWS_OF_TREES = 150  # that a yes to "joint" takes, a unit of likelihood
UNJUDGED = 0.01  # share of the rows whose labels may go unjudged
HOPELESS = 1e4  # times as many rows: nobody knows how many
OUTLIERS, DECIDE = 0.02, 0.4  # share of the largest errors, and of z², if they decide
OFF = 1.1  # from which a factor elsewhere is worth words
WITH_WHOLE = ("bias", "average", "coverage")  # questions that are about all rows, too
QUESTIONS = {
    "bias": "Are predictions unbiased, on average and everywhere?",
    "average": "Is u right on average?",
    "u": "Is u right at every level of u?",
    "joint": "Is u right for every combination of u and the features?",
    "coverage": "Do the 95 % intervals hold 95 %, on average and everywhere?",
}


@dataclass(frozen=True, repr=False)
class Region(Result):
    """Some of the rows, and how far they are off.

    Attributes
    ----------
    where : str
        Which rows, in words: "all rows", "kind = alloy", "mass above 126".
    column : str or None
        The column that tells them; None if it is not one.
    low_value, high_value : float, str or None
        Its limits in that column, None where it is open; for a label, that label.
    n_rows : int
        How many rows.
    estimate, low, high : float
        What u should be multiplied by, and limits that hold for all regions at once; of
        coverage, what the width of intervals should be multiplied by; of bias, the mean
        of z, in units of u.
    state : {"kept", "broken", "open"}
        Whether it lies within the tolerance, outside, or cannot be told.
    """

    where: str
    column: str | None
    low_value: Any
    high_value: Any
    n_rows: int
    estimate: float
    low: float
    high: float
    state: State

    def _cells(self) -> Cells:
        numbers = (f"{x:.3g}" for x in (self.estimate, self.low, self.high))
        header = ("where", "rows", "estimate", "low", "high", "state")
        return header, [(self.where, str(self.n_rows), *numbers, self.state)]


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The answer to one question, and what it rests on.

    Attributes
    ----------
    name : str
        The question: "bias", "average", "u", the name of a feature, "joint" or
        "coverage".
    answer : {"yes", "no", "cannot tell"}
        Whether uncertainties are right in this respect.
    sentence : str
        The answer in words, of at most 140 characters.
    worst : Region or None
        The region that the sentence is about.
    regions : tuple of Region
        All rows, tenths or labels, in order: what a picture shows.
    limits : tuple of float, or None
        Between which all regions lie that a yes is about.
    rows_needed : int or None
        About how many rows, or groups, would tell; None where nothing is to be told, or
        nobody knows.
    """

    name: str
    answer: Answer
    sentence: str
    worst: Region | None = None
    regions: tuple[Region, ...] = field(default=(), repr=False)
    limits: tuple[float, float] | None = None
    rows_needed: int | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is "yes"."""
        return self.answer == "yes"

    @property
    def question(self) -> str:
        """The question in words."""
        return QUESTIONS.get(self.name, f"Is u right for every value of {self.name}?")

    def _cells(self) -> Cells:
        return ("question", "answer", ""), [(self.name, self.answer, self.sentence)]

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence


# -- numbers in words ------------------------------------------------------------------


def times(factor: float) -> str:
    """Return a factor of at least 1 in words, to three digits at most.

    >>> times(1.268), times(4.63), times(12.34)
    ('1.27', '4.6', '12')
    """
    if factor < 2:
        return f"{factor:.2f}".rstrip("0").rstrip(".")
    return number(float(f"{factor:.2g}"))


def off_by(factor: float) -> str:
    """Return what is wrong with u that should be multiplied by a factor.

    >>> off_by(1.5), off_by(0.5)
    ('1.5 times too small', '2 times too large')
    """
    if factor <= 0:
        return "far too large"
    size = max(factor, 1 / factor)
    return f"{times(size)} times too {'small' if factor > 1 else 'large'}"


def at_most(limits: tuple[float, float]) -> float:
    """Return the largest factor, of at least 1, that limits leave; rounded up."""
    low, high = limits
    most = max(high, 1 / low if low > 0 else math.inf)
    return math.ceil(100 * most - 1e-9) / 100 if most < 10 else most


def u_words(mean: float) -> str:
    """Return a bias in units of u.

    >>> u_words(-0.254)
    '0.25 u'
    """
    return f"{float(f'{abs(mean):.2g}'):g} u"


def as_factor(value: float, name: str, tolerance: float) -> float:
    """Return where a value stands; a bias at its tolerance where a factor at its own.

    >>> as_factor(1.1, "average", 1.25), round(as_factor(0.25, "bias", 1.25), 3)
    (1.1, 1.25)
    """
    if name == "bias":
        at = value / (tolerance - 1) * math.log(tolerance)
        value = math.exp(min(max(at, -9.0), 9.0))
    return min(max(value, 1e-3), 1e3)  # limits may be 0, or infinite


# -- answers ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was found about one question, before it is put into words.

    Attributes
    ----------
    answer : {"yes", "no", "cannot tell"}
        The answer.
    worst, doubt : Found or None
        What the sentence is about, and a region that looked wrong until it was looked
        at by itself.
    low, high : float
        Limits of all regions that a yes is about.
    needed : int or None
        About how many rows would tell.
    """

    answer: Answer
    worst: Found | None
    doubt: Found | None
    low: float
    high: float
    needed: int | None

    @property
    def limits(self) -> tuple[float, float]:
        """The limits as factors."""
        return _factor(self.low), _factor(self.high)


class Answers:
    """Puts what a judge has found into verdicts."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.rows = judge, judge.rows
        self.unit = "rows" if judge.groups is None else "groups"
        self.blamed: dict[str, Found] = {}  # the regions at fault, by question
        self.blamed_jointly: list[str] = []  # columns that say which rows trees blame

    def all(self) -> dict[str, Verdict]:
        """Answer all questions, by name."""
        names = ([] if self.rows.is_vector else ["bias"]) + [
            "average",
            *self.rows.names,
        ]
        # what one column says alone needs no other question
        varied = sum(x.min() < x.max() for x in self.rows.columns)
        names += ["joint", "coverage"] if varied > 1 else ["coverage"]
        if not self.judge.enough:
            return {name: self._nothing(name) for name in names}
        known = {
            "bias": self.bias,
            "average": self.average,
            "joint": self.joint,
            "coverage": self.coverage,
        }
        return {n: known[n]() if n in known else self.along(n) for n in names}

    def _nothing(self, name: str) -> Verdict:
        """Return the verdict where there is nothing to go by."""
        units = f"{self.judge.units:.0f} {self.unit}"
        why = f"{units} are too few to tell anything"
        if self.rows.weights is not None:
            why = f"Weights leave {units} in effect: too few to tell anything"
        if self.judge.mean == 0:
            why = "All errors are 0: there is nothing to tell by"
        return Verdict(name, "cannot tell", why)

    def whole(self, kind: int) -> Found:
        """Return how far all rows are off."""
        j = self.judge
        off, down, up = j.whole[kind]
        low, high = off - down, off + up
        if kind == SIZE:
            low, high = (
                math.log(max(x, 1e-300)) / 2 for x in (j.size.low, j.size.high)
            )
        elif kind == COVERAGE:
            off, low, high = j.all_stretch
        return Found(None, -1, off, low, high, j.state(kind, low, high))

    def outcome(self, name: str, kind: int) -> Outcome:
        """Return the answer to a question, and what it is about."""
        j, whole, bound = self.judge, self.whole(kind), self.judge.bound(kind)
        with_whole = name in WITH_WHOLE
        worst, doubt = j.worst(name)
        # a fault that is the same everywhere is one of all rows
        alike = with_whole if worst is None else worst.contrast <= 0
        if whole.state == "broken" and alike:
            worst = whole
        low, high, needed, widest = math.inf, -math.inf, 0.0, None
        if with_whole:
            low, high, widest = whole.low, whole.high, whole
            needed = self._times(kind, whole.off, low, high)
        for local in j.locals.get(name, []):
            m = np.flatnonzero(local.variable.matters)
            if not m.size:
                needed = math.inf
                continue
            lows, highs = local.low[m], local.high[m]
            far = np.maximum(-lows, highs)
            if widest is None or far.max() > max(-widest.low, widest.high):
                widest = j.look(local, int(m[np.argmax(far)]))
            low, high = min(low, float(lows.min())), max(high, float(highs.max()))
            more = self._times(kind, local.off[m], lows, highs)
            if local.half is not None and more:
                # what normal intervals hold that are wider by the tolerance: so much
                # must be told from 95 %, of which it differs by chance, too
                held = math.erf(1.96 * j.tolerance / math.sqrt(2))
                by_chance = math.sqrt(held * (1 - held) / COVERED / (1 - COVERED))
                gain = 0.9 * (held - COVERED) / (1 + 0.8 * by_chance)
                more = max(1.0, (float(local.half[m].max()) / gain) ** 2)
            needed = max(needed, more)
        if worst is not None:
            self.blamed[name] = worst
            return Outcome("no", worst, doubt, low, high, None)
        if max(-low, high) <= bound and not needed:
            return Outcome("yes", widest, None, low, high, None)
        told = doubt is None and not (kind == SIZE and j.is_heavy)
        rows = self._needed(needed) if told else None
        return Outcome("cannot tell", widest, doubt, low, high, rows)

    def _times(self, kind: int, off: Any, low: Any, high: Any) -> float:
        """Return how many times as many rows would tell of all regions."""
        bound = self.judge.bound(kind)
        off, low, high = np.atleast_1d(off, low, high)
        far, size = np.maximum(-low, high), np.abs(off)
        # what is known to be off: until it is kept, or broken
        room = np.where(size < 0.75 * bound, bound - size, size - bound / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            known = (high - low) / 2 / np.maximum(room, 1e-9)
            times = np.where((low > 0) | (high < 0), known, far / bound)
        return float(np.where(far <= bound, 0.0, np.clip(times, 1, 1e6) ** 2).max())

    def _needed(self, times_as_many: float) -> int | None:
        if not 0 < times_as_many < HOPELESS:
            return None
        needed = times_as_many * self.judge.units * (1 + 1e-9)
        unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
        return int(unit * math.ceil(needed / unit))

    # -- regions -----------------------------------------------------------------------

    def region(self, kind: int, found: Found) -> Region:
        """Return a region with numbers in the unit that people read."""
        convert = float if kind == BIAS else _factor
        about: Any = ("all rows", None, None, None, self.rows.n_rows)
        if found.local is not None:
            v, n = found.local.variable, int(found.local.variable.n_rows[found.region])
            about = (f"{n:,} rows of no simple kind", None, None, None, n)
            if v.name in self.judge.variables:
                about = (v.words(found.region), v.name, *v.limits(found.region), n)
        numbers = (convert(x) for x in (found.off, found.low, found.high))
        return Region(*(*about, *numbers, found.state))

    def inside(self, name: str) -> Bools:
        """Return which rows are at fault; all of them if no one column tells."""
        found = self.blamed[name]
        if found.local is None or name == "joint":
            return np.ones(self.rows.n_rows, dtype=np.bool_)
        return found.local.variable.inside(found.region)

    def verdict(
        self, name: str, kind: int, found: Outcome, sentence: str, **more: Any
    ) -> Verdict:
        """Return a verdict, with the regions that a picture shows."""
        j, shown = self.judge, [self.whole(kind)] if name in WITH_WHOLE else []
        for local in j.locals.get(name, []):
            shown += [j.look(local, int(i)) for i in local.variable.shown]
        fields: dict[str, Any] = {
            "answer": found.answer,
            "worst": None if found.worst is None else self.region(kind, found.worst),
            "regions": tuple(self.region(kind, each) for each in shown),
            "rows_needed": found.needed,
            "limits": found.limits if kind != BIAS else (found.low, found.high),
        }
        if found.low > found.high:
            fields["limits"] = None
        fields |= more
        if fields["answer"] != "cannot tell":
            fields["rows_needed"] = None
        return Verdict(name=name, sentence=shorten(sentence, 140), **fields)

    # -- questions ---------------------------------------------------------------------

    def average(self) -> Verdict:
        """Answer whether u is right on average."""
        found = self.outcome("average", SIZE)
        words = self._size_words(found, "on average")
        if found.answer == "no" and found.worst is not None:
            words = f"u is {off_by(_factor(found.worst.off))} on average"
            if found.worst.off < 0:
                words += ", if no rarer, larger errors are to come"
            elif self.outliers is not None:
                share = f"{100 * self.outliers:.2g} %"
                words += f", because of the largest {share} of the errors"
        return self.verdict("average", SIZE, found, words)

    def _size_words(self, found: Outcome, where: str, note: str = "") -> str:
        """Return a yes, or what cannot be told, of factors of u."""
        j, worst, most = self.judge, found.worst, at_most(found.limits)
        if found.answer == "yes":
            return f"Right {where}, to within {times(most)} times{note}"
        if found.doubt is not None and found.doubt.local is not None:
            rows = self.region(SIZE, found.doubt).where
            return f"Errors of {rows} have another shape; their size may be right"
        if worst is not None and (between := self._between(worst)):
            if worst.local is not None:
                where = f"for {self.region(SIZE, worst).where}"
            return f"u is {between} {where}; more rows would tell whether that matters"
        seen = at_most((_factor(found.low), _factor(found.high - j.tail)))
        if j.is_heavy and seen < 100:
            up_to = f"up to {times(seen)} times, and " if seen > j.tolerance else ""
            return (
                f"No fault found {where}; {up_to}rare large errors cannot be excluded"
            )
        if most > 100:
            return f"Too few rows to tell whether u is right {where}"
        return f"No fault found {where}; up to {times(most)} times cannot be excluded"

    def _between(self, found: Found) -> str:
        """Return between which factors u is off, where limits exclude 1."""
        low, high = sorted((abs(found.low), abs(found.high)))
        if found.low <= 0 <= found.high or times(math.exp(low)) == "1" or high > 1.6:
            return ""
        side = "small" if found.off > 0 else "large"
        return f"{times(math.exp(low))} to {times(math.exp(high))} times too {side}"

    @cached_property
    def outliers(self) -> float | None:
        """The share of the largest errors that alone make u too small, if so."""
        z2, w = self.judge.z2, self.judge.w
        rest = z2 <= np.quantile(z2, 1 - OUTLIERS)
        if rest.all() or w[~rest] @ z2[~rest] < DECIDE * (w @ z2):
            return None
        mean = float(np.average(z2[rest], weights=w[rest]))
        share = float(w[z2 > 12 * mean].sum() / w.sum())
        return share if mean < self.judge.tolerance and 0 < share <= OUTLIERS else None

    def along(self, name: str) -> Verdict:
        """Answer whether u is right for all values of a variable."""
        j, v, short = self.judge, self.judge.variables[name], shorten(name, 30)
        where = "at every level of u" if name == "u" else f"all along {short}"
        if v.labels is not None:
            where = f"for every {short}"
        if v.n_bins == 1 and not v.n_rare:
            found = self.outcome("average", SIZE)
            words = f"{short} has one value: what holds on average holds for it"
            return self.verdict(name, SIZE, found, words)
        if not j.locals.get(name):
            words = f"Too few rows to tell whether u is right {where}"
            if v.n_rare:
                words = f"{short} has {v.n_rare:,} labels of fewer than {FEW_ROWS} rows"
                words += ": too fine to judge one by one"
            return Verdict(name, "cannot tell", words)
        found = self.outcome(name, SIZE)
        if found.answer == "no" and found.worst is not None:
            words = f"u is {off_by(_factor(found.worst.off))} {where}"
            if found.worst.local is not None:
                there = v.words(found.worst.region)
                words = f"u is {off_by(_factor(found.worst.off))} for {there}"
                words += self._elsewhere(found.worst)
            return self.verdict(name, SIZE, found, words)
        unjudged, note = self._unjudged(name)
        if unjudged and found.answer == "yes":
            return self.verdict(name, SIZE, found, unjudged, answer="cannot tell")
        return self.verdict(name, SIZE, found, self._size_words(found, where, note))

    def _elsewhere(self, worst: Found) -> str:
        """Return how far off the other rows are, if that is worth words."""
        assert worst.local is not None
        rest = ~worst.local.variable.inside(worst.region)
        z2, w = self.judge.z2[rest], self.judge.w[rest]
        factor = math.sqrt(max(float(w @ z2) / max(float(w.sum()), 1e-300), 1e-300))
        if max(factor, 1 / factor) < OFF:
            return ""
        same = (factor > 1) == (worst.off > 0)
        return (
            f" ({times(max(factor, 1 / factor)) if same else off_by(factor)} elsewhere)"
        )

    def _unjudged(self, name: str) -> tuple[str, str]:
        """Return why a yes is not possible, and what it says of a few rare labels."""
        v, short = self.judge.variables[name], shorten(name, 30)
        share, percent = v.rare_share, f"{100 * v.rare_share:.2g} %"
        judged = share > 0 and v.n_bins - 1 in v.regions[0]
        if share >= (TENTH if judged else UNJUDGED) and v.n_rare > 1 - judged:
            return f"{percent} of the rows have a {short} too rare to judge alone", ""
        if share and not judged:
            return "", f"; rare labels ({percent} of the rows) were not judged"
        return "", ""

    def joint(self) -> Verdict:
        """Answer whether u is right for all combinations of u and the features."""
        j = self.judge
        if not j.locals.get("joint"):
            return Verdict("joint", "cannot tell", "Too few rows to check combinations")
        found = self.outcome("joint", SIZE)
        if found.answer == "no":
            return self._guilty(found)
        gain = math.log((j.tolerance**2 + j.tolerance**-2) / 2)
        few = ROWS_OF_TREES / gain / j.units
        if few > 1:
            words, needed = "Too few rows to check combinations", self._needed(few)
            more = {
                "answer": "cannot tell",
                "rows_needed": max(found.needed or 0, needed or 0),
            }
            return self.verdict("joint", SIZE, found, words, **more)
        words = self._size_words(replace(found, worst=None), "for any combination")
        if found.answer == "yes":
            most = times(at_most(found.limits))
            words = "No combination of features was found where u is off by more than "
            words += f"{most} times"
        return self.verdict("joint", SIZE, found, words)

    def _guilty(self, found: Outcome) -> Verdict:
        """Say which rows are wrong, by the columns that matter."""
        j, worst = self.judge, found.worst
        assert worst is not None
        assert j.expected is not None
        off = off_by(_factor(worst.off))
        if worst.contrast <= 0:
            words = f"u is {off} everywhere; no combination of features stands out"
            return self.verdict("joint", SIZE, found, words)
        sign = math.copysign(1.0, worst.off)
        runs, inside = describe(j.variables.values(), j.z2, *j.expected, sign)
        own = self._own(inside) if runs else worst
        where = " and ".join(each.words for each in runs)
        factor, n = _factor(own.off), int(np.count_nonzero(inside))
        words = f"Most wrong where {where} ({n:,} rows): {off_by(factor)}"
        shown = sign * own.off >= abs(worst.off) / 2 and own.state == "broken"
        if runs and shown and len(words) <= 140:
            self.blamed_jointly = [each.column for each in runs]
            column = runs[0].column if len(runs) == 1 else None
            limits = _factor(own.low), _factor(own.high)
            region = Region(where, column, None, None, n, factor, *limits, own.state)
            return self.verdict("joint", SIZE, found, words, worst=region)
        words = f"u is {off} for {self.region(SIZE, worst).where}"
        words += ": no short description was found"
        return self.verdict("joint", SIZE, found, words)

    def _own(self, inside: Bools) -> Found:
        """Return how far some rows are off, by nothing but these."""
        j = self.judge
        off = math.log(max(np.average(j.z2[inside], weights=j.w[inside]), 1e-300)) / 2
        low, high = j.own_limits(SIZE, inside, float(inside.mean()))
        return Found(None, -1, off, low, high, j.state(SIZE, low, high))

    def bias(self) -> Verdict:
        """Answer whether predictions are unbiased, on average and everywhere."""
        found, whole = self.outcome("bias", BIAS), self.whole(BIAS)
        worst, most = found.worst, max(abs(found.low), abs(found.high))
        assert worst is not None
        side = "low" if worst.off > 0 else "high"
        where = "on average"
        if worst.local is not None:
            where = f"for {self.region(BIAS, worst).where}"
        if found.answer == "no":
            words = f"Predictions are too {side} by {u_words(worst.off)} {where}"
            if worst.local is not None and abs(whole.off) >= 0.05:
                words += f" ({u_words(whole.off)} on average)"
        elif found.answer == "yes":
            words = f"No bias of more than {u_words(most)}, on average or anywhere"
        elif not math.isfinite(most):
            words = "No bias found on average; too few rows to tell of every tenth"
        elif not worst.low <= 0 <= worst.high:
            low, high = sorted((abs(worst.low), abs(worst.high)))
            words = (
                f"Predictions are too {side} by {low:.2g} to {u_words(high)} {where}"
            )
            words += "; more rows would tell whether that matters"
        else:
            words = f"No bias found; locally up to {u_words(most)} cannot be excluded"
        return self.verdict("bias", BIAS, found, words)

    def coverage(self) -> Verdict:
        """Answer whether the 95 % intervals that were claimed hold 95 %, everywhere."""
        j, found = self.judge, self.outcome("coverage", COVERAGE)
        worst, most = found.worst, at_most(found.limits)
        inside, where = slice(None), ""
        if found.answer == "no" and worst is not None and worst.local is not None:
            inside = worst.local.variable.inside(worst.region)  # type: ignore[assignment]
            where = f" for {self.region(COVERAGE, worst).where}"
        held = 100 * np.average(j.stretch[inside] <= 1, weights=j.w[inside])
        what = "balls" if self.rows.is_vector else "intervals"
        words = f"{100 * COVERED:.0f} % {what} hold {held:.3g} %{where}"
        if found.answer == "no" and worst is not None:
            side = "narrow" if worst.off > 0 else "wide"
            words += f": {times(math.exp(abs(worst.off)))} times too {side}"
        elif found.answer == "yes":
            words += f", and are right everywhere to within {times(most)} times"
        elif most > 3:
            words += "; too few rows to tell of every tenth"
        else:
            words += (
                f"; locally up to {times(most)} times too narrow or wide is possible"
            )
        return self.verdict("coverage", COVERAGE, found, words)


def _factor(log: float) -> float:
    """Return a factor; one that nothing is known of is infinite."""
    return math.exp(log) if log < 600 else math.inf
