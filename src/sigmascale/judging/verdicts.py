"""Verdicts: the questions, their answers, and the answers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .._support.checks import Bools
from .._support.render import Cells, Result
from .._support.text import shorten
from .joint import describe
from .judge import BIAS, COVERAGE, COVERED, SIZE, Found, Judge, Local, State
from .variables import RARE, TENTH, number

Answer = Literal["yes", "no", "cannot tell"]
ROWS_OF_TREES = 150  # that a yes to "joint" takes, a unit of likelihood
UNJUDGED = 0.01  # share of the rows whose labels may go unjudged
HOPELESS = 1e4  # times as many rows: nobody knows how many
OUTLIERS = 0.02  # share of the largest errors that may decide alone
OFF = 1.1  # from which a factor elsewhere is worth words
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


# -- answers ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was found about one question, before it is put into words.

    Attributes
    ----------
    answer : {"yes", "no", "cannot tell"}
        The answer.
    whole : Found or None
        All rows, where the question is about them, too.
    worst : Found or None
        What the sentence is about.
    doubt : Found or None
        A region that looked wrong until it was looked at by itself.
    low, high : float
        Limits of all regions that a yes is about.
    tail : bool
        Whether nothing but rarer, larger errors stand in the way of a yes.
    needed : int or None
        About how many rows would tell.
    """

    answer: Answer
    whole: Found | None
    worst: Found | None
    doubt: Found | None
    low: float
    high: float
    tail: bool
    needed: int | None


class Answers:
    """Puts what a judge has found into verdicts."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.rows = judge, judge.rows

    def all(self) -> dict[str, Verdict]:
        """Answer all questions, by name."""
        j = self.judge
        names = [
            *([] if self.rows.is_vector else ["bias"]),
            "average",
            *self.rows.names,
        ]
        names += ["joint"] if len(self.rows.names) > 1 else []
        if not j.enough:
            return {name: self._nothing(name) for name in (*names, "coverage")}
        known = {"bias": self.bias, "average": self.average, "joint": self.joint}
        found = [known.get(name, lambda n=name: self.along(n))() for name in names]
        return {v.name: v for v in (*found, self.coverage())}

    def _nothing(self, name: str) -> Verdict:
        """Return the verdict where there is nothing to go by."""
        j, unit = self.judge, self.unit
        why = f"{j.units:.0f} {unit} are too few to tell anything"
        if j.rows.weights is not None:
            why = f"weights leave {j.units:.0f} {unit} in effect: too few to tell"
        if j.mean == 0:
            why = "all errors are 0: there is nothing to tell by"
        return Verdict(name, "cannot tell", why[0].upper() + why[1:])

    @property
    def unit(self) -> str:
        """What is counted."""
        return "rows" if self.judge.groups is None else "groups"

    def whole(self, kind: int) -> Found:
        """Return how far all rows are off."""
        j = self.judge
        off, down, up = j.whole[kind]
        low, high = off - down, off + up
        if kind == SIZE:
            low, high = (
                math.log(max(x, 1e-300)) / 2 for x in (j.size.low, j.size.high)
            )
        if kind == COVERAGE:
            off, low, high = j.all_stretch
        return Found(None, -1, off, low, high, j.state(kind, low, high))

    def outcome(self, name: str, kind: int, *, with_whole: bool) -> Outcome:
        """Return the answer to a question about regions, and about all rows if asked."""
        j = self.judge
        whole = self.whole(kind)
        worst, doubt = j.worst(name)
        broken = [] if worst is None else [worst]
        if whole.state == "broken" and (with_whole or worst is not None):
            # a fault that is the same everywhere is one of all rows
            broken = [x for x in broken if x.contrast > 0] + [whole]
        low, high = (whole.low, whole.high) if with_whole else (math.inf, -math.inf)
        kept, tail = not with_whole or whole.state == "kept", 0.0
        needed = 0.0 if kept else self._times(kind, whole.off, whole.low, whole.high)
        nearest, bound = whole if with_whole else None, j.bound(kind)
        for local in j.locals.get(name, []):
            m = local.variable.matters
            if not m.any():
                kept, needed = False, math.inf
                continue
            lows, highs = local.low[m], local.high[m]
            here = np.maximum(np.abs(lows), np.abs(highs))
            at = int(np.argmax(here))
            if lows.min() < low or highs.max() > high:
                if nearest is None or here[at] > max(-nearest.low, nearest.high):
                    nearest = j.look(local, int(np.flatnonzero(m)[at]))
            low, high = min(low, float(lows.min())), max(high, float(highs.max()))
            if here[at] > bound:
                kept, tail = False, max(tail, local.tail)
                offs = local.off[m]
                needed = max(needed, self._times(kind, offs, lows, highs))
        is_tail = not kept and low >= -bound and high - tail <= bound and tail > 0
        if broken:
            return Outcome("no", whole, broken[0], doubt, low, high, False, None)
        if not j.locals.get(name):
            kept = False
        answer: Answer = "yes" if kept else "cannot tell"
        rows = None if kept or is_tail or doubt is not None else self._needed(needed)
        return Outcome(answer, whole, nearest, doubt, low, high, is_tail, rows)

    def _times(self, kind: int, off: Any, low: Any, high: Any) -> float:
        """Return how many times as many rows would tell of all regions."""
        bound = self.judge.bound(kind)
        off, low, high = np.atleast_1d(off, low, high)
        far, size = np.maximum(-low, high), np.abs(off)
        # what is known to be off: until it is kept, or broken
        room = np.where(size < 0.75 * bound, bound - size, size - bound / 2)
        known = (low > 0) | (high < 0)
        with np.errstate(over="ignore"):
            times = np.where(
                known, (high - low) / 2 / np.maximum(room, 1e-9), far / bound
            )
        return float(np.where(far <= bound, 0.0, np.minimum(times, 1e6) ** 2).max())

    def _needed(self, times_as_many: float) -> int | None:
        if not times_as_many < HOPELESS:
            return None
        needed = max(1.0, times_as_many) * self.judge.units * (1 + 1e-9)
        unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
        return unit * math.ceil(needed / unit)

    def inside(self, region: Region) -> Bools:
        """Return which rows a region has."""
        if region.column is None or region.column not in self.judge.variables:
            return np.ones(self.rows.n_rows, dtype=np.bool_)
        v = self.judge.variables[region.column]
        for i in range(v.n_regions):
            if v.limits(i) == (region.low_value, region.high_value):
                return v.inside(i)
        return np.ones(self.rows.n_rows, dtype=np.bool_)

    # -- regions -----------------------------------------------------------------------

    def region(self, kind: int, found: Found, where: str = "") -> Region:
        """Return a region with numbers in the unit that people read."""
        convert = float if kind == BIAS else _factor
        numbers = (convert(found.off), convert(found.low), convert(found.high))
        if found.local is None:
            n = self.rows.n_rows
            return Region(
                where or "all rows", None, None, None, n, *numbers, found.state
            )
        v = found.local.variable
        n = int(v.n_rows[found.region])
        if v.name == "joint":
            return Region(
                where or "rows that trees pick",
                None,
                None,
                None,
                n,
                *numbers,
                found.state,
            )
        ends = v.limits(found.region)
        return Region(v.words(found.region), v.name, *ends, n, *numbers, found.state)

    def regions(self, name: str, kind: int, *, with_whole: bool) -> tuple[Region, ...]:
        """Return what a picture shows: all rows, and tenths or labels in order."""
        found = [self.whole(kind)] if with_whole else []
        for local in self.judge.locals.get(name, []):
            found += [self.judge.look(local, int(i)) for i in local.variable.shown]
        return tuple(self.region(kind, each) for each in found)

    def verdict(
        self, name: str, kind: int, found: Outcome, sentence: str, **more: Any
    ) -> Verdict:
        """Return a verdict; its limits are in the unit that people read."""
        with_whole = name in ("bias", "average", "coverage")
        convert = float if kind == BIAS else _factor
        limits = None
        if found.low <= found.high:
            limits = convert(found.low), convert(found.high)
        if found.worst is not None and "worst" not in more:
            more["worst"] = self.region(kind, found.worst)
        regions = self.regions(name, kind, with_whole=with_whole)
        needed = more.pop("needed", found.needed)
        answer = more.pop("answer", found.answer)
        return Verdict(
            name,
            answer,
            shorten(sentence, 140),
            regions=regions,
            limits=limits,
            rows_needed=needed if answer == "cannot tell" else None,
            **more,
        )

    # -- questions ---------------------------------------------------------------------

    def average(self) -> Verdict:
        """Answer whether u is right on average."""
        j, whole = self.judge, self.whole(SIZE)
        limits = _factor(whole.low), _factor(whole.high)
        likely = math.log(max(j.size.likely, 1e-300)) / 2
        is_tail = whole.state == "open" and j.state(SIZE, whole.low, likely) == "kept"
        answer: Answer = {"kept": "yes", "broken": "no", "open": "cannot tell"}[
            whole.state
        ]  # type: ignore[assignment]
        times_ = self._times(SIZE, whole.off, whole.low, whole.high)
        needed = None if is_tail or whole.state != "open" else self._needed(times_)
        found = Outcome(
            answer, whole, whole, None, whole.low, whole.high, is_tail, needed
        )
        factor = _factor(whole.off)
        if answer == "no":
            words = f"u is {off_by(factor)} on average"
            if factor < 1:
                words += ", if no rarer, larger errors are to come"
            elif self.outliers is not None:
                words += f", because of the largest {100 * self.outliers:.0f} % of the errors"
        elif answer == "yes":
            words = f"Right on average, to within {times(at_most(limits))} times"
        elif is_tail:
            words = (
                "Right on average as far as seen; rare large errors cannot be ruled out"
            )
        elif not whole.low <= 0 <= whole.high:
            words = f"u is {self._between(whole)} on average; more rows would tell whether that matters"
        else:
            words = f"On average, u may be up to {times(at_most(limits))} times off"
        return self.verdict("average", SIZE, found, words)

    @property
    def outliers(self) -> float | None:
        """The share of the largest errors that alone make u too small, if so."""
        z2, w = self.judge.z2, self.judge.w
        limit = np.quantile(z2, 1 - OUTLIERS)
        rest = z2 <= limit
        if rest.all() or w[~rest] @ z2[~rest] < 0.4 * (w @ z2):
            return None
        without = math.log(max(np.average(z2[rest], weights=w[rest]), 1e-300)) / 2
        bound = self.judge.bound(SIZE)
        if not -2 * bound < without < bound / 2:
            return None
        share = float(
            w[z2 > 12 * np.average(z2[rest], weights=w[rest])].sum() / w.sum()
        )
        return share if 0 < share <= OUTLIERS else None

    def _between(self, found: Found) -> str:
        """Return between which factors u is off, where limits exclude 1."""
        low, high = sorted((abs(found.low), abs(found.high)))
        side = "small" if found.off > 0 else "large"
        return f"{times(math.exp(low))} to {times(math.exp(high))} times too {side}"

    def along(self, name: str) -> Verdict:
        """Answer whether u is right for all values of a variable."""
        j, v = self.judge, self.judge.variables[name]
        short = shorten(name, 30)
        if not j.locals.get(name):
            return self._not_divided(name)
        found = self.outcome(name, SIZE, with_whole=False)
        unjudged, note = self._unjudged(name)
        answer = found.answer
        if answer == "yes" and unjudged:
            answer = "cannot tell"
        limits = _factor(found.low), _factor(found.high)
        everywhere = "at every level of u" if name == "u" else f"all along {short}"
        if v.labels is not None:
            everywhere = f"for every {short}"
        worst = found.worst
        if answer == "no":
            assert worst is not None
            words = f"u is {off_by(_factor(worst.off))} "
            if worst.local is None:
                words += everywhere
            else:
                words += f"for {v.words(worst.region)}{self._elsewhere(worst)}"
            return self.verdict(name, SIZE, found, words)
        if answer == "yes":
            words = (
                f"Right {everywhere}, to within {times(at_most(limits))} times{note}"
            )
        elif unjudged:
            words = unjudged
        elif found.doubt is not None:
            words = f"Errors for {v.words(found.doubt.region)} have another shape; their size may be right"
        else:
            words = self._open_words(found, everywhere)
        needed = None if unjudged else found.needed
        return self.verdict(name, SIZE, found, words, answer=answer, needed=needed)

    def _open_words(self, found: Outcome, everywhere: str) -> str:
        """Return what cannot be told of factors of u."""
        most = at_most((_factor(found.low), _factor(found.high)))
        worst = found.worst
        if (
            worst is not None
            and worst.local is not None
            and not worst.low <= 0 <= worst.high
        ):
            where = worst.local.variable.words(worst.region)
            return f"u is {self._between(worst)} for {where}; more rows would tell whether that matters"
        if found.tail:
            return f"Right {everywhere} as far as seen; rare large errors cannot be ruled out"
        if most > 100:
            return f"Too few rows to tell whether u is right {everywhere}"
        return f"No fault found {everywhere}, but up to {times(most)} times cannot be excluded"

    def _elsewhere(self, worst: Found) -> str:
        """Return how far off the other rows are, if that is worth words."""
        assert worst.local is not None
        rest = ~worst.local.variable.inside(worst.region)
        z2, w = self.judge.z2[rest], self.judge.w[rest]
        factor = math.sqrt(max(float(w @ z2) / max(float(w.sum()), 1e-300), 1e-300))
        if max(factor, 1 / factor) < OFF:
            return ""
        same = (factor > 1) == (worst.off > 0)
        words = times(max(factor, 1 / factor)) if same else off_by(factor)
        return f" ({words} elsewhere)"

    def _not_divided(self, name: str) -> Verdict:
        """Return the verdict on a variable whose rows cannot be told apart."""
        v, short = self.judge.variables[name], shorten(name, 30)
        if v.n_rare:
            words = f"{short} has {v.n_rare} labels of few rows each: too fine to judge one by one"
            return Verdict(name, "cannot tell", words)
        if v.n_bins > 1:
            return Verdict(
                name,
                "cannot tell",
                f"Too few rows to tell whether u is right along {short}",
            )
        whole = self.whole(SIZE)
        answer: Answer = {"kept": "yes", "broken": "no", "open": "cannot tell"}[
            whole.state
        ]  # type: ignore[assignment]
        limits = _factor(whole.low), _factor(whole.high)
        words = f"{short} has one value: what holds on average holds for it"
        return Verdict(name, answer, words, self.region(SIZE, whole), (), limits)

    def _unjudged(self, name: str) -> tuple[str, str]:
        """Return why a yes is not possible, and what it says of a few rare labels."""
        v = self.judge.variables[name]
        share, short = v.rare_share, shorten(name, 30)
        percent = f"{100 * share:.2g} %"
        if share >= TENTH and v.n_rare > 1:
            return (
                f"{percent} of the rows have a {short} too rare to judge one by one",
                "",
            )
        judged = RARE in (v.labels or ()) and v.n_bins - 1 in v.regions[0]
        if not share or judged:
            return "", ""
        if share >= UNJUDGED:
            return (
                f"{percent} of the rows have a {short} that is too rare to be judged",
                "",
            )
        return "", f"; rare labels ({percent} of the rows) were not judged"

    def joint(self) -> Verdict:
        """Answer whether u is right for all combinations of u and the features."""
        j = self.judge
        if not j.locals.get("joint"):
            return Verdict("joint", "cannot tell", "Too few rows to check combinations")
        found = self.outcome("joint", SIZE, with_whole=False)
        most = at_most((_factor(found.low), _factor(found.high)))
        if found.answer == "no":
            return self._guilty(found)
        gain = math.log((j.tolerance**2 + j.tolerance**-2) / 2)
        enough = ROWS_OF_TREES / gain / j.units
        if enough > 1:
            words = "Too few rows to check combinations"
            needed = max(found.needed or 0, self._needed(enough) or 0) or None
            return self.verdict(
                "joint", SIZE, found, words, answer="cannot tell", needed=needed
            )
        if found.answer == "yes":
            words = f"No combination of features was found where u is off by more than {times(most)} times"
        elif found.doubt is not None:
            words = "Errors of rows that trees pick have another shape; their size may be right"
        elif found.tail:
            words = "No combination was found where u is wrong; rare large errors cannot be ruled out"
        else:
            words = f"No wrong combination of features was found, but up to {times(most)} times cannot be excluded"
        return self.verdict("joint", SIZE, found, words)

    def _guilty(self, found: Outcome) -> Verdict:
        """Say which rows are wrong, by the columns that matter."""
        j, worst = self.judge, found.worst
        assert worst is not None
        assert j.expected is not None
        if worst.local is None or worst.contrast <= 0:
            words = f"u is {off_by(_factor(worst.off))} everywhere: no combination of features is at fault"
            return self.verdict("joint", SIZE, found, words)
        sign = math.copysign(1.0, worst.off)
        named = describe(self.rows, *j.expected, sign)
        if named is not None:
            conditions, inside = named
            own = self._own(inside)
            if sign * own.off >= max(abs(worst.off) / 2, 0) and own.state == "broken":
                where = " and ".join(each.words for each in conditions)
                n = int(np.count_nonzero(inside))
                factor = _factor(own.off)
                column = (
                    self.rows.names[conditions[0].column]
                    if len(conditions) == 1
                    else None
                )
                region = Region(
                    where,
                    column,
                    None,
                    None,
                    n,
                    factor,
                    _factor(own.low),
                    _factor(own.high),
                    own.state,
                )
                words = f"Most wrong where {where} ({n:,} rows): {off_by(factor)}"
                if len(words) <= 140:
                    return self.verdict("joint", SIZE, found, words, worst=region)
        region = self.region(SIZE, worst)
        words = f"u is {off_by(region.estimate)} for {region.n_rows:,} rows that trees pick; no short description was found"
        return self.verdict("joint", SIZE, found, words, worst=region)

    def _own(self, inside: Bools) -> Found:
        """Return how far some rows are off, by nothing but these."""
        j = self.judge
        off = math.log(max(np.average(j.z2[inside], weights=j.w[inside]), 1e-300)) / 2
        low, high = j.own_limits(SIZE, inside, float(inside.mean()))
        return Found(None, -1, off, low, high, j.state(SIZE, low, high))

    def bias(self) -> Verdict:
        """Answer whether predictions are unbiased, on average and everywhere."""
        found = self.outcome("bias", BIAS, with_whole=True)
        whole, worst = found.whole, found.worst
        assert whole is not None
        if found.answer == "no":
            assert worst is not None
            side = "low" if worst.off > 0 else "high"
            words = f"Predictions are too {side} by {u_words(worst.off)}"
            if worst.local is None:
                words += " on average"
            else:
                words += f" for {worst.local.variable.words(worst.region)}"
                if abs(whole.off) >= 0.05:
                    words += f" ({u_words(whole.off)} on average)"
            return self.verdict("bias", BIAS, found, words)
        most = max(abs(found.low), abs(found.high))
        if found.answer == "yes":
            words = f"No bias of more than {u_words(most)}, on average or anywhere"
        elif not math.isfinite(most):
            words = "No bias found on average; too few rows to tell of every tenth"
        elif worst is not None and not worst.low <= 0 <= worst.high:
            side = "low" if worst.off > 0 else "high"
            where = (
                "on average"
                if worst.local is None
                else f"for {worst.local.variable.words(worst.region)}"
            )
            low, high = sorted((abs(worst.low), abs(worst.high)))
            words = f"Predictions are too {side} by {low:.2g} to {u_words(high)} {where}; more rows would tell whether that matters"
        else:
            words = f"No bias found; locally up to {u_words(most)} cannot be excluded"
        return self.verdict("bias", BIAS, found, words)

    def coverage(self) -> Verdict:
        """Answer whether the 95 % intervals that were claimed hold 95 %, everywhere."""
        j = self.judge
        found = self.outcome("coverage", COVERAGE, with_whole=True)
        worst = found.worst
        what = (
            f"{100 * COVERED:.0f} % {'balls' if self.rows.is_vector else 'intervals'}"
        )
        inside = np.ones(self.rows.n_rows, dtype=np.bool_)
        where = ""
        if found.answer == "no" and worst is not None and worst.local is not None:
            inside = worst.local.variable.inside(worst.region)
            where = f" for {worst.local.variable.words(worst.region)}"
        held = np.average(j.stretch[inside] <= 1, weights=j.w[inside])
        words = f"{what} hold {100 * float(f'{held:.3g}'):.3g} %{where}"
        most = at_most((_factor(found.low), _factor(found.high)))
        if found.answer == "no":
            assert worst is not None
            factor = _factor(worst.off)
            side = "narrow" if factor > 1 else "wide"
            words += f": {times(max(factor, 1 / max(factor, 1e-300)))} times too {side}"
        elif found.answer == "yes":
            words += f", and are right everywhere to within {times(most)} times"
        elif most > 10:
            words += "; too few rows to tell of every tenth"
        else:
            words += f"; locally, up to {times(most)} times too narrow or wide cannot be excluded"
        return self.verdict("coverage", COVERAGE, found, words)


def _factor(log: float) -> float:
    return math.exp(min(float(log), 600.0)) if log > -math.inf else 0.0
