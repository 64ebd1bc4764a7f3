"""Answers in words: a sentence a question; numbers come from elsewhere."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from .._support.checks import Bools
from .._support.text import shorten
from .answers import Answered, Judged
from .joint import Run, describe
from .parts import ASKED, IN_WORDS, Partition
from .questions import Bias, Coverage, SizeOfU, half_log
from .search import OWN, Finding
from .variables import number
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
        self.what = "balls" if judged.rows.is_vector else "intervals"

    def verdicts(self) -> dict[str, Verdict]:
        """Return all verdicts by question."""
        return {name: self.verdict(a) for name, a in self.judged.answers.items()}

    def verdict(self, a: Answered) -> Verdict:
        """Return one verdict."""
        j = self.judged
        if j.search is None or j.certified is None:
            return Verdict(a.name, a.answer, self._nothing())
        as_read = a.asked.question.as_read
        about = a.fault or a.suspect
        region = self._worst(a) if about is None else self.region(a, about)
        if a.name == "joint" and a.fault is not None and self.described is not None:
            region = self.described[0]
        low, high = j.certified.range(a.asked, ASKED)
        return Verdict(
            a.name,
            a.answer,
            shorten(self._sentence(a), LONGEST_SENTENCE),
            T=as_read(a.worst[ASKED].far),
            worst=region,
            suspect=None if a.suspect is None else self.region(a, a.suspect),
            regions=self._shown(a),
            limits=(as_read(low), as_read(high)),
            rows_needed=a.needed,
            counts=a.counts,
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
        a: Answered,
        about: tuple[str, str | None, Any, Any, int],
        off: float,
        low: float,
        high: float,
    ) -> Region:
        """Return some rows with numbers in the unit that people read.

        `about` has them in words, their column, its limits, and their number.
        """
        as_read = a.asked.question.as_read
        state: State = "open"
        if -a.bound <= low and high <= a.bound:
            state = "kept"
        elif low > a.bound or high < -a.bound:
            state = "broken"
        where, column, first, last, n = about
        ends = as_read(off), as_read(low), as_read(high)
        return Region(where, column, first, last, n, *ends, state)

    @property
    def _all_rows(self) -> tuple[str, None, None, None, int]:
        return "all rows", None, None, None, self.judged.rows.n_rows

    def region(self, a: Answered, finding: Finding) -> Region:
        """Return what was found."""
        ends = finding.off, finding.low, finding.high
        if finding.limits is None:
            return self._region(a, self._all_rows, *ends)
        v, region = finding.limits.variable, finding.region
        n = int(v.n_rows[region])
        if v.name == "joint":
            where = f"{n:,} rows of no simple kind"
            return self._region(a, (where, None, None, None, n), *ends)
        first, last = v.limits(region)
        return self._region(a, (v.words(region), v.name, first, last, n), *ends)

    def _part(self, a: Answered, parts: Partition, part: int, *ends: float) -> Region:
        """Return a part."""
        first, last = parts.ends(part)
        where, n = parts.words(part), int(parts.counts[part])
        return self._region(a, (where, parts.variable.name, first, last, n), *ends)

    def _worst(self, a: Answered) -> Region:
        """Return the part that may be off by most."""
        worst = a.worst[ASKED]
        ends = worst.off, worst.low, worst.high
        if worst.parts is None:
            return self._region(a, self._all_rows, *ends)
        return self._part(a, worst.parts, worst.part, *ends)

    def _shown(self, a: Answered) -> tuple[Region, ...]:
        """Return all rows and the finest parts with limits that hold at once."""
        certified = self.judged.certified
        assert certified is not None
        regions = []
        if a.asked.with_whole:
            whole = certified.whole_as_shown(a.asked)
            ends = whole.off, whole.low, whole.high
            regions.append(self._region(a, self._all_rows, *ends))
        limits = certified.limits.get(type(a.asked.question))
        for v in a.asked.variables:
            fineness = certified.finest.get(v.name)
            if fineness is None or limits is None:
                continue
            parts = certified.parts[v.name, fineness]
            place = certified.places[v.name, fineness]
            of_parts = np.column_stack([limits.off, limits.all_low, limits.all_high])
            for part, ends in enumerate(of_parts[place].tolist()):
                regions.append(self._part(a, parts, part, *ends))
        return tuple(regions)

    # -- sentences ---------------------------------------------------------------------

    def _sentence(self, a: Answered) -> str:
        """Return the answer in words."""
        if a.name == "joint" and a.answer != "no" and "combinations" in a.note:
            words = f"C{a.note[1:]}"
        elif a.answer == "no":
            words = self._no(a)
        else:
            words = self.proved(a)
        if a.suspect is not None:
            # of other questions the sentence has named it
            subject = f"{self.subject(a)} " if a.name == "bias" else ""
            return f"{words}, but {subject}{self.suspected(a)}"
        return words

    def _right(self, a: Answered, fineness: int) -> str:
        """Return how right it is at a fineness."""
        far = a.worst[fineness].far
        if isinstance(a.asked.question, Bias):
            return f"no bias of more than {u_words(math.ceil(100 * far) / 100)}"
        subject = f"{self.level} {self.what} are" if a.name == "coverage" else "u is"
        return f"{subject} right to within {at_most(math.exp(far))} times"

    def _in_words(self, a: Answered, fineness: int) -> str:
        """Return a fineness of a question in words."""
        if a.name == "average" or fineness == 1:
            return "on average"
        words = IN_WORDS[fineness]
        if a.name == "joint":
            return f"{words} by what trees expect"
        if a.name in ("bias", "coverage"):
            return words
        (v,) = a.asked.variables
        short = shorten(v.name, 30)
        if v.labels is not None or v.is_by_value:
            return f"for every {short} of {percent(0.25 / fineness)} or more"
        return f"{words} of {short}"

    def proved(self, a: Answered) -> str:
        """Return what is proved, whatever the answer is; T is always said."""
        j, far = self.judged, {k: x.far for k, x in a.worst.items()}
        unknown = math.log(UNKNOWN)
        if not far[1] < unknown:
            return f"{self._few()} to tell anything"
        if self._is_one_value(a):
            one = f"{shorten(a.name, 30)} has one value"
            return f"{self._right(a, 1)} on average: {one}"
        known = [k for k in (5, 3, 2) if k <= a.shown and far[k] < unknown]
        fineness = max(known, default=1)
        if a.answer == "yes" and a.asked.variables:
            fineness = ASKED
        words = f"{self._right(a, fineness)} {self._in_words(a, fineness)}"
        words = words[0].upper() + words[1:] if words.startswith("no") else words
        if a.name == "average" or (a.suspect is not None and fineness > 1):
            notes = []
        elif a.answer == "yes":
            notes = [self._finer(a)]
        elif fineness == 1 and a.asked.variables:
            notes = ["; too few rows to tell more"]
        else:
            notes = [f", {self._brief(a)} on average"]
        if a.note:
            notes.append(f"; {a.note}")
        elif self.is_heavy(a):
            notes.append("; rare large errors cannot be excluded")
        elif a.needed is not None and a.answer != "yes" and a.suspect is None:
            tolerance = f"{a.asked.question.as_read(a.bound):.3g}"
            tolerance += " u" if isinstance(a.asked.question, Bias) else ""
            notes.append(f"; about {a.needed:,} {j.unit} would show {tolerance}")
        return words + "".join(notes)

    def _finer(self, a: Answered) -> str:
        """Return the finest that is proved, if it is finer than fifths."""
        finer = ""
        if a.proved > ASKED and a.asked.variables:
            finer = f", {self._brief(a, a.proved)} {IN_WORDS[a.proved]}"
        return finer + self._unjudged(a)

    def _unjudged(self, a: Answered) -> str:
        """Return the share of rare labels that were not judged, if there are any."""
        certified = self.judged.certified
        assert certified is not None
        if a.asked.with_whole or not a.asked.variables:
            return ""
        parts = certified.parts.get((a.asked.variables[0].name, ASKED))
        if parts is None or not parts.unjudged:
            return ""
        return f"; rare labels ({percent(parts.unjudged)} of the rows) were not judged"

    def _is_one_value(self, a: Answered) -> bool:
        of_size = bool(a.asked.variables) and not a.asked.with_whole
        return of_size and all(
            v.n_bins == 1 and not v.n_rare for v in a.asked.variables
        )

    def _few(self) -> str:
        return f"Too few {self.judged.unit}"

    def _brief(self, a: Answered, fineness: int = 1) -> str:
        """Return T without words."""
        far = a.worst[fineness].far
        if isinstance(a.asked.question, Bias):
            return u_words(math.ceil(100 * far) / 100)
        return f"{at_most(math.exp(far))}"

    def is_heavy(self, a: Answered) -> bool:
        """Return whether rare large errors, seen or not, are why it cannot be told."""
        if not isinstance(a.asked.question, SizeOfU) or a.answer != "cannot tell":
            return False
        certified = self.judged.certified
        assert certified is not None
        whole = certified.whole(a.asked)
        could_be_right = a.worst[1].far > a.bound and abs(whole.off) < a.bound
        return could_be_right and self.judged.is_heavy_tailed

    def subject(self, a: Answered) -> str:
        """Return what is too low, too narrow or too small."""
        if a.name == "bias":
            return "predictions are"
        return f"{self.what} are" if a.name == "coverage" else "u is"

    def suspected(self, a: Answered) -> str:
        """Return what is off, and by how much."""
        finding = a.suspect
        assert finding is not None
        where = self.region(a, finding).where
        where = "on average" if where == "all rows" else f"for {where}"
        low, high = sorted((abs(finding.low), abs(finding.high)))
        if isinstance(a.asked.question, Bias):
            side = "low" if finding.off > 0 else "high"
            ends = f"({low:.2g} to {high:.2g} u)"
            return f"probably too {side} by {u_words(finding.off)} {where} {ends}"
        sides = ("narrow", "wide") if a.name == "coverage" else ("small", "large")
        off = off_by(math.exp(finding.off), sides)
        ends = f"({times(math.exp(low))} to {times(math.exp(min(high, 9)))})"
        if high > math.log(UNKNOWN):
            ends = f"(at least {times(math.exp(low))})"
        return f"probably {off} {where} {ends}"

    def _no(self, a: Answered) -> str:
        """Return what is wrong."""
        fault = a.fault
        assert fault is not None
        if a.name == "joint":
            return self._guilty(a)
        where = self.region(a, fault).where
        where = "on average" if where == "all rows" else f"for {where}"
        if isinstance(a.asked.question, Bias):
            return self._biased(a, where)
        if isinstance(a.asked.question, Coverage):
            return self._missing(a, where)
        off = off_by(math.exp(fault.off))
        if a.name == "average":
            words = f"u is {off} on average"
            if fault.off < 0:
                return f"{words}, if no rarer, larger errors are to come"
            if self.judged.outliers is not None:
                share = percent(self.judged.outliers)
                return f"{words}, because of the largest {share} of the errors"
            return words
        if fault.limits is None:
            return f"u is {off} {self._all_along(a)}"
        return f"u is {off} {where}{self._elsewhere(fault)}"

    def _all_along(self, a: Answered) -> str:
        (v,) = a.asked.variables
        short = shorten(a.name, 30)
        if a.name == "u":
            return "at every level of u"
        return f"for every {short}" if v.labels is not None else f"all along {short}"

    def _biased(self, a: Answered, where: str) -> str:
        fault, certified = a.fault, self.judged.certified
        assert fault is not None
        assert certified is not None
        side = "low" if fault.off > 0 else "high"
        words = f"Predictions are too {side} by {u_words(fault.off)} {where}"
        average = certified.whole(a.asked).off
        if fault.limits is not None and abs(average) >= 0.05:
            words += f" ({u_words(average)} on average)"
        return words

    def _missing(self, a: Answered, where: str) -> str:
        """Return what intervals hold that are wrong."""
        fault, values = a.fault, self.judged.values
        assert fault is not None
        inside = self.inside(fault)
        holds = values.stretch[inside] <= 1
        held = np.average(holds, weights=values.w[inside])
        place = "" if fault.limits is None else f" {where}"
        off = off_by(math.exp(fault.off), ("narrow", "wide"))
        return f"{self.level} {self.what} hold {100 * held:.3g} %{place}: {off}"

    def inside(self, finding: Finding) -> Bools:
        """Return which rows were found."""
        if finding.limits is None:
            return np.ones(self.judged.rows.n_rows, dtype=np.bool_)
        return finding.limits.variable.inside(finding.region)

    def _elsewhere(self, fault: Finding) -> str:
        """Return how far off the other rows are, if that is worth words."""
        rest = ~self.inside(fault)
        z2, w = self.judged.values.z2[rest], self.judged.values.w[rest]
        factor = math.sqrt(max(float(w @ z2) / max(float(w.sum()), 1e-300), 1e-300))
        if max(factor, 1 / factor) < OFF:
            return ""
        if (factor > 1) == (fault.off > 0):
            return f" ({times(max(factor, 1 / factor))} elsewhere)"
        return f" ({off_by(factor)} elsewhere)"

    # -- combinations ------------------------------------------------------------------

    @cached_property
    def described(self) -> tuple[Region, list[str]] | None:
        """The rows that trees blame by a few conditions, and their columns."""
        j, a = self.judged, self.judged.answers.get("joint")
        if a is None or a.fault is None or a.fault.contrast <= 0 or j.expected is None:
            return None
        values, fault = j.values, a.fault
        sign = math.copysign(1.0, fault.off)
        runs, inside = describe(j.variables.values(), values.z2, *j.expected, sign)
        if not runs:
            return None
        mean = float(np.average(values.z2[inside], weights=values.w[inside]))
        share = float(inside.mean())
        level = 1 - OWN * min(share, 1 - share)
        ends = a.asked.question.own_limits(values, inside, share, level)
        column = runs[0].column if len(runs) == 1 else None
        about = (_joined(runs), column, None, None, int(np.count_nonzero(inside)))
        region = self._region(a, about, half_log(mean), *ends)
        is_clear = sign * half_log(mean) >= abs(fault.off) / 2
        if not is_clear or region.state != "broken":
            return None
        return region, [run.column for run in runs]

    def _guilty(self, a: Answered) -> str:
        """Say which combinations are wrong, by the columns that matter."""
        fault = a.fault
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
        where = self.region(a, fault).where
        return f"u is {off} for {where}"


def _joined(runs: list[Run]) -> str:
    return " and ".join(run.words for run in runs)
