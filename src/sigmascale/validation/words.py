"""Answers in words: a sentence a question; numbers come from elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._support.checks import Bools
from .._support.text import shorten
from .answers import Answered, Judged
from .joint import describe
from .parts import ASKED, IN_WORDS, Partition
from .questions import Bias, Coverage, SizeOfU, half_log
from .search import OWN, Finding
from .variables import Variable, number
from .verdicts import Region, State, Verdict

LONGEST_SENTENCE = 140  # characters of a sentence
OFF = 1.1  # from which a factor elsewhere is worth words
UNKNOWN = 20.0  # a factor, from which nothing is known


# -- numbers ---------------------------------------------------------------------------


def times(factor: float) -> str:
    """Return a factor of at least 1 in words, to three digits at most.

    >>> times(1.268), times(4.63), times(12.34)
    ('1.27', '4.6', '12')
    """
    if factor < 2:
        return f"{factor:.2f}".rstrip("0").rstrip(".")
    return number(float(f"{factor:.2g}"))


def at_most(factor: float) -> str:
    """Return T in words, rounded up.

    >>> at_most(1.2314), at_most(2.0), at_most(12.31)
    ('1.24', '2', '13')
    """
    if factor >= 10:
        return f"{math.ceil(factor - 1e-9)}"
    up = math.ceil(100 * factor - 1e-6) / 100
    return f"{up:.2f}".rstrip("0").rstrip(".")


def off_by(factor: float, sides: tuple[str, str] = ("small", "large")) -> str:
    """Return what is wrong with u that should be multiplied by a factor.

    >>> off_by(1.5), off_by(0.5)
    ('1.5 times too small', '2 times too large')
    """
    if factor <= 0:
        return f"far too {sides[1]}"
    size = max(factor, 1 / factor)
    return f"{times(size)} times too {sides[0] if factor > 1 else sides[1]}"


def u_words(mean: float) -> str:
    """Return a bias in units of u.

    >>> u_words(-0.254)
    '0.25 u'
    """
    return f"{float(f'{abs(mean):.2g}'):g} u"


def percent(share: float) -> str:
    """Return a share in per cent.

    >>> percent(0.95), percent(0.048)
    ('95 %', '4.8 %')
    """
    return f"{float(f'{100 * share:.2g}'):g} %"


# -- verdicts --------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """Which rows a region has: in words, and between which values of a column."""

    words: str
    n_rows: int
    column: str | None = None
    low_value: Any = None
    high_value: Any = None


class Words:
    """Puts what is known of some rows into words.

    Parameters
    ----------
    judged : Judged
        What is known.
    """

    def __init__(self, judged: Judged) -> None:
        self.judged = judged
        self.level = f"{100 * judged.values.level:g} %"
        self.intervals = "balls" if judged.rows.is_vector else "intervals"

    def verdicts(self) -> dict[str, Verdict]:
        """Return all verdicts by question."""
        answers = self.judged.answers.values()
        return {answered.name: self.verdict(answered) for answered in answers}

    def verdict(self, answered: Answered) -> Verdict:
        """Return one verdict."""
        certified = self.judged.certified
        if certified is None:
            return Verdict(answered.name, answered.answer, self._nothing())

        # what the sentence is about: a fault or a suspect, else the farthest part
        suspect = None
        if answered.suspect is not None:
            suspect = self.region(answered, answered.suspect)
        if answered.fault is None:
            worst = self._worst(answered) if suspect is None else suspect
        elif answered.name == "joint" and self.described is not None:
            worst, _ = self.described
        else:
            worst = self.region(answered, answered.fault)

        as_read = answered.asked.question.as_read
        low, high = certified.range(answered.asked, ASKED)
        return Verdict(
            answered.name,
            answered.answer,
            shorten(self._sentence(answered), LONGEST_SENTENCE),
            T=as_read(answered.worst[ASKED].far),
            worst=worst,
            suspect=suspect,
            regions=self._shown(answered),
            limits=(as_read(low), as_read(high)),
            rows_needed=answered.needed,
            counts=answered.counts,
        )

    def _nothing(self) -> str:
        """Return why nothing can be told."""
        values = self.judged.values
        if values.mean == 0:
            return "All errors are 0: there is nothing to tell by"
        units = f"{values.n_units:.0f} {self.judged.unit}"
        if values.rows.weights is not None:
            return f"Weights leave {units} in effect: too few to tell anything"
        return f"{units} are too few to tell anything"

    # -- regions -----------------------------------------------------------------------

    def _region(
        self,
        answered: Answered,
        where: Where,
        off: float,
        low: float,
        high: float,
    ) -> Region:
        """Return some rows with numbers in the unit that people read.

        `off`, `low` and `high` are as the question has them, logarithms of factors or
        means of z; so is the bound that tells whether the rows keep the tolerance.
        """
        bound = answered.bound
        state: State = "open"
        if -bound <= low and high <= bound:
            state = "kept"
        elif low > bound or high < -bound:
            state = "broken"
        as_read = answered.asked.question.as_read
        return Region(
            where.words,
            where.column,
            where.low_value,
            where.high_value,
            where.n_rows,
            estimate=as_read(off),
            low=as_read(low),
            high=as_read(high),
            state=state,
        )

    @property
    def _all_rows(self) -> Where:
        """All rows, which no column tells apart."""
        return Where("all rows", self.judged.rows.n_rows)

    def region(self, answered: Answered, finding: Finding) -> Region:
        """Return what was found."""
        where = self._all_rows
        if finding.limits is not None:
            where = _where(finding.limits.variable, finding.region)
        return self._region(answered, where, finding.off, finding.low, finding.high)

    def _part(
        self, answered: Answered, parts: Partition, part: int, *limits: float
    ) -> Region:
        """Return a part; `limits` are how far it is off, and its limits."""
        where = Where(
            parts.words(part),
            int(parts.counts[part]),
            parts.variable.name,
            *parts.ends(part),
        )
        return self._region(answered, where, *limits)

    def _worst(self, answered: Answered) -> Region:
        """Return the part that may be off by most."""
        worst = answered.worst[ASKED]
        ends = worst.off, worst.low, worst.high
        if worst.parts is None:
            return self._region(answered, self._all_rows, *ends)
        return self._part(answered, worst.parts, worst.part, *ends)

    def _shown(self, answered: Answered) -> tuple[Region, ...]:
        """Return all rows and the finest parts with limits that hold at once."""
        certified = self.judged.certified
        assert certified is not None
        regions = []
        if answered.asked.with_whole:
            whole = certified.whole_as_shown(answered.asked)
            ends = whole.off, whole.low, whole.high
            regions.append(self._region(answered, self._all_rows, *ends))
        limits = certified.limits.get(type(answered.asked.question))
        for v in answered.asked.variables:
            fineness = certified.finest.get(v.name)
            if fineness is None or limits is None:
                continue
            parts = certified.parts[v.name, fineness]
            place = certified.places[v.name, fineness]
            of_parts = np.column_stack([limits.off, limits.all_low, limits.all_high])
            for part, ends in enumerate(of_parts[place].tolist()):
                regions.append(self._part(answered, parts, part, *ends))
        return tuple(regions)

    # -- sentences ---------------------------------------------------------------------

    def _sentence(self, answered: Answered) -> str:
        """Return the answer in words."""
        if answered.answer == "no":
            words = self._no(answered)
        elif answered.name == "joint" and "combinations" in answered.note:
            words = f"C{answered.note[1:]}"
        else:
            words = self.proved(answered)
        if answered.suspect is not None:
            # of other questions the sentence has named it
            subject = f"{self.subject(answered)} " if answered.name == "bias" else ""
            return f"{words}, but {subject}{self.suspected(answered)}"
        return words

    def _right(self, answered: Answered, fineness: int) -> str:
        """Return T at a fineness, as the start of a sentence."""
        far = answered.worst[fineness].far
        if isinstance(answered.asked.question, Bias):
            return f"no bias of more than {u_words(math.ceil(100 * far) / 100)}"
        subject = self.subject(answered)
        if answered.name == "coverage":
            subject = f"{self.level} {subject}"
        return f"{subject} right to within {at_most(math.exp(far))} times"

    def _in_words(self, answered: Answered, fineness: int) -> str:
        """Return a fineness of a question in words."""
        if answered.name == "average" or fineness == 1:
            return "on average"
        words = IN_WORDS[fineness]
        if answered.name == "joint":
            return f"{words} by what trees expect"
        if answered.name in ("bias", "coverage"):
            return words
        (v,) = answered.asked.variables
        short = shorten(v.name, 30)
        if v.labels is not None or v.is_by_value:
            return f"for every {short} of {percent(0.25 / fineness)} or more"
        return f"{words} of {short}"

    def proved(self, answered: Answered) -> str:
        """Return what is proved, whatever the answer is; T is always said."""
        far = {fineness: worst.far for fineness, worst in answered.worst.items()}
        unknown = math.log(UNKNOWN)
        if not far[1] < unknown:
            return f"Too few {self.judged.unit} to tell anything"
        if self._is_one_value(answered):
            one = f"{shorten(answered.name, 30)} has one value"
            return f"{self._right(answered, 1)} on average: {one}"

        # how right, at the finest of halves, thirds and fifths that is known
        fineness = 1
        for finer in (2, 3, ASKED):
            if finer <= answered.shown and far[finer] < unknown:
                fineness = finer
        if answered.answer == "yes" and answered.asked.variables:
            fineness = ASKED
        words = (
            f"{self._right(answered, fineness)} {self._in_words(answered, fineness)}"
        )
        if words.startswith("no"):
            words = f"N{words[1:]}"
        beside = self._beside(answered, fineness)
        return f"{words}{beside}{self._why_not_yes(answered)}"

    def _beside(self, answered: Answered, fineness: int) -> str:
        """Return what is proved beside a fineness: finer, or on average."""
        if answered.name == "average" or (
            answered.suspect is not None and fineness > 1
        ):
            return ""
        if answered.answer == "yes":
            return self._finer(answered)
        if fineness == 1 and answered.asked.variables:
            return "; too few rows to tell more"
        return f", {self._brief(answered)} on average"

    def _why_not_yes(self, answered: Answered) -> str:
        """Return what hinders a yes, or how many rows would show the tolerance."""
        if answered.note:
            return f"; {answered.note}"
        if self.is_heavy(answered):
            return "; rare large errors cannot be excluded"
        if answered.needed is None:
            return ""
        question = answered.asked.question
        unit = " u" if isinstance(question, Bias) else ""
        tolerance = f"{question.as_read(answered.bound):.3g}{unit}"
        return f"; about {answered.needed:,} {self.judged.unit} would show {tolerance}"

    def _finer(self, answered: Answered) -> str:
        """Return the finest that is proved, if it is finer than fifths."""
        finest = answered.proved
        finer = ""
        if finest > ASKED and answered.asked.variables:
            finer = f", {self._brief(answered, finest)} {IN_WORDS[finest]}"
        return finer + self._unjudged(answered)

    def _unjudged(self, answered: Answered) -> str:
        """Return the share of rare labels that were not judged, if there are any."""
        certified = self.judged.certified
        assert certified is not None
        if answered.asked.with_whole or not answered.asked.variables:
            return ""
        parts = certified.parts.get((answered.asked.variables[0].name, ASKED))
        if parts is None or not parts.unjudged:
            return ""
        return f"; rare labels ({percent(parts.unjudged)} of the rows) were not judged"

    def _is_one_value(self, answered: Answered) -> bool:
        """Return whether a question is of one column that does not vary."""
        if answered.asked.with_whole or not answered.asked.variables:
            return False
        (v,) = answered.asked.variables
        return v.n_bins == 1 and not v.n_rare

    def _brief(self, answered: Answered, fineness: int = 1) -> str:
        """Return T at a fineness without words, where the subject is clear."""
        far = answered.worst[fineness].far
        if isinstance(answered.asked.question, Bias):
            return u_words(math.ceil(100 * far) / 100)
        return f"{at_most(math.exp(far))}"

    def is_heavy(self, answered: Answered) -> bool:
        """Return whether rare large errors, seen or not, are why it cannot be told."""
        if (
            not isinstance(answered.asked.question, SizeOfU)
            or answered.answer != "cannot tell"
        ):
            return False
        certified = self.judged.certified
        assert certified is not None
        whole = certified.whole(answered.asked)
        could_be_right = (
            answered.worst[1].far > answered.bound and abs(whole.off) < answered.bound
        )
        return could_be_right and self.judged.is_heavy_tailed

    def subject(self, answered: Answered) -> str:
        """Return what is too low, too narrow or too small."""
        if answered.name == "bias":
            return "predictions are"
        return f"{self.intervals} are" if answered.name == "coverage" else "u is"

    def suspected(self, answered: Answered) -> str:
        """Return what is off, and by how much."""
        finding = answered.suspect
        assert finding is not None
        where = self._for(answered, finding)
        low, high = sorted((abs(finding.low), abs(finding.high)))
        if isinstance(answered.asked.question, Bias):
            side = "low" if finding.off > 0 else "high"
            ends = f"({low:.2g} to {high:.2g} u)"
            return f"probably too {side} by {u_words(finding.off)} {where} {ends}"
        factor = math.exp(finding.off)
        off = off_by(factor)
        if answered.name == "coverage":
            off = off_by(factor, ("narrow", "wide"))
        ends = f"({times(math.exp(low))} to {times(math.exp(min(high, 9)))})"
        if high > math.log(UNKNOWN):
            ends = f"(at least {times(math.exp(low))})"
        return f"probably {off} {where} {ends}"

    def _for(self, answered: Answered, finding: Finding) -> str:
        """Return of which rows something was found, for use in a sentence."""
        where = self.region(answered, finding).where
        return "on average" if where == "all rows" else f"for {where}"

    def _no(self, answered: Answered) -> str:
        """Return what is wrong."""
        fault = answered.fault
        assert fault is not None
        if answered.name == "joint":
            return self._guilty(answered)
        where = self._for(answered, fault)
        if isinstance(answered.asked.question, Bias):
            return self._biased(answered, where)
        if isinstance(answered.asked.question, Coverage):
            return self._missing(answered, where)

        # of the size of u
        off = off_by(math.exp(fault.off))
        if answered.name == "average":
            words = f"u is {off} on average"
            if fault.off < 0:
                return f"{words}, if no rarer, larger errors are to come"
            if self.judged.outliers is not None:
                share = percent(self.judged.outliers)
                return f"{words}, because of the largest {share} of the errors"
            return words
        if fault.limits is None:
            return f"u is {off} {self._all_along(answered)}"
        return f"u is {off} {where}{self._elsewhere(fault)}"

    def _all_along(self, answered: Answered) -> str:
        """Return that a fault is one of all values of a column."""
        (v,) = answered.asked.variables
        short = shorten(answered.name, 30)
        if answered.name == "u":
            return "at every level of u"
        return f"for every {short}" if v.labels is not None else f"all along {short}"

    def _biased(self, answered: Answered, where: str) -> str:
        """Return a bias that is wrong `where`, and that of all rows beside it."""
        fault = answered.fault
        certified = self.judged.certified
        assert fault is not None
        assert certified is not None
        side = "low" if fault.off > 0 else "high"
        words = f"Predictions are too {side} by {u_words(fault.off)} {where}"
        average = certified.whole(answered.asked).off
        if fault.limits is not None and abs(average) >= 0.05:
            words += f" ({u_words(average)} on average)"
        return words

    def _missing(self, answered: Answered, where: str) -> str:
        """Return what intervals that are wrong hold `where`, in place of the claim."""
        fault = answered.fault
        assert fault is not None
        values = self.judged.values
        inside = self.inside(fault)
        holds = values.stretch[inside] <= 1
        held = np.average(holds, weights=values.w[inside])
        place = "" if fault.limits is None else f" {where}"
        off = off_by(math.exp(fault.off), ("narrow", "wide"))
        return f"{self.level} {self.intervals} hold {100 * held:.3g} %{place}: {off}"

    def inside(self, finding: Finding) -> Bools:
        """Return which rows were found."""
        if finding.limits is None:
            return np.ones(self.judged.rows.n_rows, dtype=np.bool_)
        return finding.limits.variable.inside(finding.region)

    def _elsewhere(self, fault: Finding) -> str:
        """Return how far off the other rows are, if that is worth words."""
        is_rest = ~self.inside(fault)
        z2 = self.judged.values.z2[is_rest]
        w = self.judged.values.w[is_rest]
        mean = float(w @ z2) / max(float(w.sum()), 1e-300)
        factor = math.sqrt(max(mean, 1e-300))
        if max(factor, 1 / factor) < OFF:
            return ""
        if (factor > 1) == (fault.off > 0):
            return f" ({times(max(factor, 1 / factor))} elsewhere)"
        return f" ({off_by(factor)} elsewhere)"

    # -- combinations ------------------------------------------------------------------

    @cached_property
    def described(self) -> tuple[Region, list[str]] | None:
        """The rows that trees blame by a few conditions, and their columns."""
        answered = self.judged.answers.get("joint")
        fault = None if answered is None else answered.fault
        expected = self.judged.expected
        if answered is None or fault is None or fault.contrast <= 0 or expected is None:
            return None

        # a few conditions, and the rows for which they hold
        values = self.judged.values
        variables = self.judged.variables.values()
        sign = math.copysign(1.0, fault.off)
        runs, inside = describe(variables, values.z2, *expected, sign)
        if not runs:
            return None

        # these rows with limits of their own, if they are clearly at fault
        off = half_log(float(np.average(values.z2[inside], weights=values.w[inside])))
        share = float(inside.mean())
        level = 1 - OWN * min(share, 1 - share)
        low, high = answered.asked.question.own_limits(values, inside, share, level)
        where = Where(
            " and ".join(run.words for run in runs),
            int(np.count_nonzero(inside)),
            column=runs[0].column if len(runs) == 1 else None,
        )
        region = self._region(answered, where, off, low, high)
        is_clear = sign * off >= abs(fault.off) / 2
        if not is_clear or region.state != "broken":
            return None
        return region, [run.column for run in runs]

    def _guilty(self, answered: Answered) -> str:
        """Say which combinations are wrong, by the columns that matter."""
        fault = answered.fault
        assert fault is not None
        off = off_by(math.exp(fault.off))
        if fault.limits is None:
            return f"u is {off} everywhere; no combination of features stands out"
        if self.described is not None:
            region, _ = self.described
            factor = off_by(region.estimate)
            words = (
                f"Most wrong where {region.where} ({region.n_rows:,} rows): {factor}"
            )
            if len(words) <= LONGEST_SENTENCE:
                return words
        where = self.region(answered, fault).where
        return f"u is {off} for {where}"


def _where(v: Variable, region: int) -> Where:
    """Return which rows a region of a variable has."""
    n_rows = int(v.n_rows[region])
    if v.name == "joint":
        return Where(f"{n_rows:,} rows of no simple kind", n_rows)
    return Where(v.words(region), n_rows, v.name, *v.limits(region))
