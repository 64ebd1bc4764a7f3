"""T: the tolerance that the rows prove, by question and fineness.

    T(K) = the largest one-sided limit over the parts of a question at fineness K

is an upper limit of the worst fault, of the same confidence, without a correction for
the number of parts: to be too small, it takes that the limit of the worst part is (an
intersection-union test, Berger 1982). Beside it stands the *least* that some run or
label with 1/K of the weight is off by, from the simultaneous limits of the search, and
what a perfect u would reach with as many rows: the median of T over sets in which the
z-scores are permuted.

References
----------
R. L. Berger, Technometrics 24, 295 (1982), doi:10.1080/00401706.1982.10487790.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.render import Cells, Result, text_table
from .._support.text import shorten
from .limits import (
    Limits,
    OneSided,
    PartSums,
    WholeLimits,
    by_chance,
    either_way,
    moments,
)
from .parts import ASKED, FINENESS, IN_WORDS, Partition, parts_of
from .questions import FEWEST, Bias, Coverage, Question, SizeOfU, Values
from .search import gathers, groups_of, shuffles
from .variables import Variable

Claim = Literal["u", "intervals", "both"]
CLAIMS: tuple[Claim, ...] = ("u", "intervals", "both")
PERMUTED = 25  # sets that tell what a perfect u would reach
ROWS_SHOWN = 50.0  # rows in effect of a part that is worth showing
FINEST_SHOWN = 10  # fineness of pictures
SHOWN_RATE = 0.05  # the chance that limits of the shown parts do not hold at once
DRAWN_FINENESSES = (1, 2, 5, 10)  # finenesses of pictures
FINENESS_NAMES = {
    1: "average",
    2: "halves",
    3: "thirds",
    5: "fifths",
    10: "tenths",
    20: "twentieths",
}
BAR_WIDTH = 40  # characters
FARTHEST_DRAWN = 12.0  # the factor where a bar ends
UNKNOWN_FACTOR = 99.0  # a factor of which nothing is known


@dataclass(frozen=True, repr=False)
class Proof(Result):
    """What the rows prove of a question at a fineness.

    Attributes
    ----------
    question : str
        "bias", "average", "u", a feature, "joint" or "coverage".
    fineness : int
        1 is on average, 5 are fifths.
    at_most : float
        T: no part is off by more, with the confidence of the certificate. A factor; of
        the bias, in units of u. Infinite where nothing is known.
    at_least : float
        Some run or label with such a share of the rows is off by as much; 1, or 0 of
        the bias, if none is known to be off.
    perfect : float
        What a perfect u would reach with as many rows.
    where : str
        The part that may be off by most, in words.
    """

    question: str
    fineness: int
    at_most: float
    at_least: float
    perfect: float
    where: str

    def _cells(self) -> Cells:
        header = ("question", "", "at most", "at least", "perfect", "where")
        return header, [self.cells]

    @property
    def cells(self) -> tuple[str, ...]:
        """The proof as a line of a table."""
        return (
            self.question,
            IN_WORDS[self.fineness].removeprefix("in "),
            _number(self.at_most),
            f"{self.at_least:.2f}",
            _number(self.perfect),
            self.where,
        )


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """How right u is, how finely, with the rows that there are.

    Attributes
    ----------
    proofs : tuple of Proof
        By question, and then by fineness.
    T : float
        The largest *at most* in fifths, over all questions but the bias: the one number
        that reports and pictures show.
    perfect : float
        What a perfect u would reach in place of `T` with as many rows: if that is much
        less, u is the limit; if not, rows are.
    tolerance, confidence, level : float
        The factor that is small enough, the confidence of `T`, and the level of the
        intervals that were judged.
    claim : {"u", "intervals", "both"}
        What was judged.
    curve : dict of int to tuple of float
        *At least*, *at most* and *perfect* by fineness, of all questions that `T` is
        about: the curve of pictures, which passes through `T` and `perfect`.
    """

    proofs: tuple[Proof, ...]
    T: float
    perfect: float
    tolerance: float
    confidence: float
    level: float
    claim: Claim
    curve: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    def of(self, question: str) -> dict[int, Proof]:
        """Return the proofs of a question by fineness."""
        return {
            proof.fineness: proof for proof in self.proofs if proof.question == question
        }

    def _cells(self) -> Cells:
        """Return T by question and fineness; and of all, at least and a perfect u."""
        header = ("off by at most", *(FINENESS_NAMES[k] for k in FINENESS))
        rows = []
        for question in dict.fromkeys(proof.question for proof in self.proofs):
            unit = ", u" if question == "bias" else ""
            proofs = self.of(question)
            cells = [_number(proofs[k].at_most) for k in FINENESS]
            rows.append((shorten(question, 20) + unit, *cells))
        if not rows:
            return header, rows

        at_least = []
        perfect = []
        for fineness in FINENESS:
            least, _, of_perfect = self.curve[fineness]
            at_least.append(f"{least:.2f}")
            perfect.append(_number(of_perfect))
        rows.append(("at least, somewhere", *at_least))
        rows.append(("a perfect u", *perfect))
        return header, rows

    def __str__(self) -> str:
        """Return the picture and the table as text."""
        return "\n".join([*self.picture(), "", text_table(*self._cells())])

    def picture(self, before: Certificate | None = None) -> list[str]:
        """Return the certificate as lines of at most 80 characters.

        A line for each fineness reaches from *at least* to *at most*, by the side of
        that of the same rows `before`.
        """
        # what is drawn, by the word that stands before its bars
        stages = {}
        if before is not None and before.proofs:
            stages["before"] = before.curve
        if self.proofs:
            stages["" if before is None else "after"] = self.curve

        # an axis that reaches as far as all that is drawn, within limits
        factors = [1.4, 1.1 * self.tolerance]
        for curve in stages.values():
            for _, most, perfect in curve.values():
                factors += [min(most, FARTHEST_DRAWN), min(perfect, FARTHEST_DRAWN)]
        if not any(stages.values()):
            return []
        bar = Bar(1.05 * max(factors), self.tolerance)

        lines = [f"{'off by, times':<18}{bar.axis()}"]
        for fineness in DRAWN_FINENESSES:
            name = FINENESS_NAMES[fineness]
            for when, curve in stages.items():
                lines.append(bar.line(name, when, curve[fineness]))
                name = ""  # stands once
        key = "● at most   ├ at least, somewhere   ┊ good enough"
        lines.append(f"{key} ({self.tolerance:g})   perfect: a perfect")
        lines.append("u, judged by as few rows")
        return lines


@dataclass(frozen=True)
class Bar:
    """A logarithmic axis of factors in characters.

    Attributes
    ----------
    most : float
        The factor at its end.
    tolerance : float
        The factor that is good enough.
    """

    most: float
    tolerance: float

    def place(self, factor: float) -> int:
        """Return the character at which a factor stands."""
        at = math.log(max(factor, 1.0)) / math.log(self.most)
        return round((BAR_WIDTH - 1) * min(at, 1.0))

    def axis(self) -> str:
        """Return factors at their places."""
        line = " " * (BAR_WIDTH + 3)
        for factor in (1, self.tolerance, 1.5, 2, 3, 5, 8):
            words = f"{factor:g}"
            start = self.place(factor)
            stop = start + len(words)
            is_free = not line[max(0, start - 1) : stop + 1].strip()
            if factor < self.most and is_free:
                line = line[:start] + words + line[stop:]
        return line.rstrip()

    def line(self, name: str, when: str, ends: tuple[float, float, float]) -> str:
        """Return one line: at least, at most and perfect."""
        # what is drawn later stands over what is drawn before
        least, most, perfect = ends
        start = self.place(least)
        end = self.place(most)
        characters = [" "] * BAR_WIDTH
        characters[self.place(self.tolerance)] = "┊"
        mark = "─" if when != "before" else "━"
        characters[start : end + 1] = mark * (end + 1 - start)
        if least > 1.005:
            characters[start] = "├"
        characters[end] = "●" if most <= self.most else "›"

        sign = "?"
        if most <= self.tolerance:
            sign = "✓"
        elif least > self.tolerance:
            sign = "✗"
        right = f"{_number(most):>5}"
        if when != "before":
            right += f"  perfect {_number(perfect)}"
        return f"{name:<8} {when:<6} {sign} {''.join(characters)} {right}"


def _number(factor: float) -> str:
    """Return a factor to two decimals, rounded up; a dash where nothing is known."""
    if factor >= UNKNOWN_FACTOR:
        return "–"
    return f"{math.ceil(100 * factor - 1e-6) / 100:.2f}"


# -- how it is made --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A question by the name that it has in verdicts.

    Attributes
    ----------
    name : str
        "bias", "average", "u", a feature, "joint" or "coverage".
    question : Question
        What is asked.
    variables : tuple of Variable
        What it is asked of; none on average.
    with_whole : bool
        Whether it is about all rows, too.
    """

    name: str
    question: Question
    variables: tuple[Variable, ...]
    with_whole: bool


@dataclass(frozen=True, eq=False)
class Worst:
    """The part, or all rows, whose limit is T.

    Attributes
    ----------
    far : float
        T: how far from 0 the farther of its limits is.
    low, high, off : float
        Its limits, and how far it is off.
    parts : Partition or None
        The parts that it is of; None of all rows.
    part : int
        Its place among them.
    """

    far: float
    low: float
    high: float
    off: float
    parts: Partition | None = None
    part: int = -1

    @classmethod
    def of_all(cls, whole: OneSided) -> Worst:
        """Return all rows."""
        return cls(whole.far, whole.low, whole.high, whole.off)


@dataclass(frozen=True, eq=False)
class JudgedParts:
    """Parts of one variable that a question is asked of.

    Attributes
    ----------
    parts : Partition
        The parts.
    place : slice
        Where they stand among the parts of all variables.
    counts : array of bool, shape (n_parts,)
        Which of them the question is about.
    """

    parts: Partition
    place: slice
    counts: Bools


@dataclass(frozen=True, eq=False)
class Certified:
    """All limits of all parts, of which certificates and verdicts are made.

    Attributes
    ----------
    values : Values
        The rows.
    asked : sequence of Asked
        The questions.
    confidence : float
        The level of one-sided limits.
    """

    values: Values
    asked: Sequence[Asked]
    confidence: float

    @cached_property
    def n_rows(self) -> float:
        """The number of rows in effect, (Σw)² / Σw²."""
        w = self.values.w
        return float(w.sum() ** 2 / (w @ w))

    @cached_property
    def parts(self) -> dict[tuple[str, int], Partition]:
        """The parts of all variables at all finenesses, by both."""
        variables: dict[str, Variable] = {}
        for asked in self.asked:
            variables |= {v.name: v for v in asked.variables}
        cut = {}
        for name, v in variables.items():
            for fineness in FINENESS[1:]:
                parts = parts_of(v, fineness, self.n_rows)
                if parts is not None and parts.n > 1:
                    cut[name, fineness] = parts
        return cut

    @cached_property
    def sums(self) -> PartSums | None:
        """Sums over all these parts, if there are any."""
        return PartSums(self.values, list(self.parts.values())) if self.parts else None

    @cached_property
    def places(self) -> dict[tuple[str, int], slice]:
        """Where the parts of a variable at a fineness stand among all parts."""
        if self.sums is None:
            return {}
        return dict(zip(self.parts, self.sums.places, strict=True))

    @cached_property
    def finest(self) -> dict[str, int]:
        """The fineness of the finest parts of a variable that are worth showing."""
        finest: dict[str, int] = {}
        if self.sums is None:
            return finest
        score = self.sums.scores[SizeOfU]
        rows = self.sums.units(self.sums.correlation(score.psi_of_rows)).rows
        for (name, fineness), place in self.places.items():
            if fineness <= FINEST_SHOWN and rows[place].min() >= ROWS_SHOWN:
                finest[name] = fineness
        return finest

    @cached_property
    def levels(self) -> tuple[float, float]:
        """The levels of one-sided limits: of each, and of all shown parts at once."""
        n_shown = 0
        for asked in self.asked:
            n_shown += asked.with_whole
            for v in asked.variables:
                if v.name in self.finest:
                    n_shown += self.parts[v.name, self.finest[v.name]].n
        return self.confidence, 1 - SHOWN_RATE / (2 * max(1, n_shown))

    @cached_property
    def wholes(self) -> dict[type[Question], list[OneSided]]:
        """The limits of all rows by question, of both levels.

        Those of the size are always there: limits of the bias of parts rest on them.
        """
        of_all = WholeLimits(self.values)
        wholes = {}
        for question in (SizeOfU(), *(asked.question for asked in self.asked)):
            kind = type(question)
            if kind not in wholes:
                wholes[kind] = [of_all.of(question, level) for level in self.levels]
        return wholes

    @cached_property
    def limits(self) -> dict[type[Question], Limits]:
        """The limits of all parts by question."""
        if self.sums is None:
            return {}
        sizes, relative = self.sums.size_limits(self.wholes[SizeOfU], self.levels)
        limits: dict[type[Question], Limits] = {SizeOfU: sizes}
        if Coverage in self.wholes:
            limits[Coverage], _ = self.sums.scale_limits(
                Coverage(), self.wholes[Coverage], self.levels
            )
        if Bias in self.wholes:
            limits[Bias] = self.sums.bias_limits(self.levels, relative)
        return limits

    # -- what is asked of them ---------------------------------------------------------

    def whole(self, asked: Asked) -> OneSided:
        """Return the one-sided limits of all rows."""
        return self.wholes[type(asked.question)][0]

    def whole_as_shown(self, asked: Asked) -> OneSided:
        """Return limits of all rows that hold at once with those of all shown parts."""
        return self.wholes[type(asked.question)][1]

    def judged(self, asked: Asked, fineness: int) -> list[JudgedParts]:
        """Return the parts that a question is asked of, variable by variable.

        Of the bias and of coverage, labels that are too rare are not judged together.
        """
        judged = []
        for v in asked.variables:
            parts = self.parts.get((v.name, fineness))
            if parts is None:
                continue
            counts = np.ones(parts.n, dtype=np.bool_)
            if asked.with_whole and parts.rest is not None:
                counts[parts.rest] = False
            judged.append(JudgedParts(parts, self.places[v.name, fineness], counts))
        return judged

    def worst(self, asked: Asked, fineness: int) -> Worst:
        """Return the part whose limit is the farthest: T at a fineness."""
        whole = self.whole(asked)
        worst = Worst.of_all(whole)
        if fineness == 1 or not asked.variables:
            return worst
        if not self.is_known(fineness):
            return Worst(math.inf, -math.inf, math.inf, whole.off)

        # all rows count beside their parts only where they are asked for
        judged = self.judged(asked, fineness)
        if not asked.with_whole and judged:
            worst = Worst(-math.inf, 0.0, 0.0, 0.0)
        for of_variable in judged:
            limits = self.limits[type(asked.question)]
            far = np.where(of_variable.counts, limits.far[of_variable.place], -np.inf)
            part = int(np.argmax(far))
            if not far[part] <= worst.far:
                at = of_variable.place.start + part
                worst = Worst(
                    far=float(far[part]),
                    low=float(limits.low[at]),
                    high=float(limits.high[at]),
                    off=float(limits.off[at]),
                    parts=of_variable.parts,
                    part=part,
                )
        return worst

    def is_known(self, fineness: int) -> bool:
        """Return whether rows are enough for so many parts."""
        return self.n_rows >= FEWEST * fineness

    def range(self, asked: Asked, fineness: int) -> tuple[float, float]:
        """Return between which limits all parts lie."""
        whole = self.whole(asked)
        if asked.variables and not self.is_known(fineness):
            return -math.inf, math.inf
        judged = self.judged(asked, fineness) if fineness > 1 else []
        lows = []
        highs = []
        if asked.with_whole or not judged:
            lows.append(whole.low)
            highs.append(whole.high)
        for of_variable in judged:
            limits = self.limits[type(asked.question)]
            lows += limits.low[of_variable.place][of_variable.counts].tolist()
            highs += limits.high[of_variable.place][of_variable.counts].tolist()
        return min(lows), max(highs)

    def shown(self, asked: Asked) -> int:
        """Return the fineness of a sentence: fifths, or the finest that is enough."""
        finest = [self.finest[v.name] for v in asked.variables if v.name in self.finest]
        return min(ASKED, *finest) if finest else 1

    def proved(self, asked: Asked, bound: float) -> int:
        """Return the finest that is proved within a bound; 0 if none is.

        A fixed sequence, which stops at the first that fails, has no cost.
        """
        proved = 0
        for fineness in FINENESS:
            if not self.worst(asked, fineness).far <= bound:
                break
            proved = fineness
        return proved


@dataclass(frozen=True, eq=False)
class PerfectReach:
    """What a perfect u would reach with as many rows: limits of permuted sets.

    Attributes
    ----------
    medians : dict of (str, int) to float
        By question and fineness.
    largest : dict of int to array of shape (n_sets,)
        By fineness, the largest of all counted questions but the bias, of each set.
    """

    medians: dict[tuple[str, int], float]
    largest: dict[int, Floats]


def perfect_reach(
    certified: Certified, rows: Ints, counted: Iterable[str], rng: np.random.Generator
) -> PerfectReach:
    """Return what a perfect u would reach, by question and fineness.

    The z-scores of some rows are permuted, groups together: differences between parts
    that are left are chance. Of more rows they are smaller, as a root.
    """
    # z of a perfect u has the mean square 1
    scale = 1 / math.sqrt(certified.values.mean)
    reaches = _permuted(certified, rows, scale, rng)
    medians: dict[tuple[str, int], float] = {}
    largest = {k: np.zeros(PERMUTED) for k in FINENESS}
    for asked in certified.asked:
        kind = type(asked.question)
        whole = certified.whole(asked)
        half = max(whole.down, whole.up) * (scale if kind is Bias else 1.0)
        for fineness in FINENESS:
            # the farthest limit of all rows and of all parts, in each set
            reach = np.full(PERMUTED, half)
            if fineness > 1 and asked.variables and not certified.is_known(fineness):
                reach = np.full(PERMUTED, np.inf)
            elif fineness > 1:
                for of_variable in certified.judged(asked, fineness):
                    of_parts = reaches[kind][of_variable.place]
                    reach = np.maximum(reach, of_parts.max(axis=0))
            medians[asked.name, fineness] = float(np.median(reach))
            if kind is not Bias and asked.name in counted:
                largest[fineness] = np.maximum(largest[fineness], reach)
    return PerfectReach(medians, largest)


def _permuted(
    certified: Certified, rows: Ints, scale: float, rng: np.random.Generator
) -> dict[type[Question], Floats]:
    """Return the farther limit of each part in each permuted set, by question.

    `rows` are permuted, and `scale` makes of z that of a perfect u. What has been
    summed over the parts stays; only how far their means are off is drawn anew.
    """
    sums = certified.sums
    if sums is None:
        return {}
    values = certified.values
    columns: dict[type[Question], Floats] = {
        SizeOfU: sums.scores[SizeOfU].psi_of_rows,
        Coverage: sums.scores[Coverage].psi_of_rows,
        Bias: values.z * scale,
    }

    # the columns of all questions, set by set, side by side
    kinds = list(certified.limits)
    table = np.column_stack([columns[kind][rows] for kind in kinds])
    sources = shuffles(rows.size, groups_of(values, rows), PERMUTED, rng)
    drawn = table[sources].reshape(rows.size, -1)

    # how far the means of parts are from those of all rows
    gather = gathers([v for v, _ in sums.variables], rows)
    deviations = []
    for v, matrix in sums.variables:
        weight = matrix @ (gather[id(v)] @ np.ones(rows.size))
        by_part = matrix @ (gather[id(v)] @ drawn)
        w = v.w[rows]
        mean = (w @ drawn) / w.sum()
        deviation = by_part / np.maximum(weight, 1e-300)[:, None] - mean
        deviations.append(np.where(weight[:, None] > 0, deviation, 0.0))

    # chance falls with the root of the rows
    fewer = math.sqrt(min(1.0, float(values.w[rows].sum() / values.w.sum())))
    by_kind = fewer * np.concatenate(deviations).reshape(-1, PERMUTED, len(kinds))
    reaches: dict[type[Question], Floats] = {}
    for i, kind in enumerate(kinds):
        of_kind = by_kind[:, :, i]
        if kind is Bias:
            reaches[kind] = _reach_of_means(certified, sums, of_kind, scale)
        else:
            reaches[kind] = _reach_of_scores(certified, sums, of_kind, kind)
    return reaches


def _reach_of_scores(
    certified: Certified, sums: PartSums, deviations: Floats, kind: type[Question]
) -> Floats:
    """Return how far limits of factors reach, of parts that are alike in shape.

    `deviations` of the mean of psi, from that of all rows, are parts × sets.
    """
    score = sums.scores[kind]
    units = sums.units(sums.correlation(score.psi_of_rows))
    se = np.sqrt(score.variance * units.q * np.maximum(1 - sums.share, 0.01))
    skewness = score.skewness * units.cube
    low_t, high_t = by_chance(certified.confidence, skewness, units.df)

    whole = certified.wholes[kind][0]
    up = score.pooled_shift_to(score.mean + low_t * se)
    down = -score.pooled_shift_to(score.mean + high_t * se)
    off = -score.pooled_shift_to(score.mean + deviations)
    low = off - np.hypot(down, whole.down)[:, None]
    high = off + np.hypot(up, whole.up)[:, None]
    return np.maximum(-low, high)


def _reach_of_means(
    certified: Certified, sums: PartSums, deviations: Floats, scale: float
) -> Floats:
    """Return how far limits of means of z reach, in units of a perfect u.

    `deviations` of these means, from that of all rows, are parts × sets.
    """
    z = certified.values.z * scale
    units = sums.units(sums.correlation(z))
    _, variance, skewness = moments(z, certified.values.w)
    longer = either_way(certified.confidence, skewness * units.cube, units.df)
    reach = longer * np.sqrt(variance * units.q)
    return np.abs(deviations) + reach[:, None]


def certificate_of(
    certified: Certified,
    at_least: dict[tuple[str, int], float],
    perfect: PerfectReach,
    counted: Iterable[str],
    *,
    tolerance: float,
    claim: Claim,
) -> Certificate:
    """Return the certificate of all questions; those that are counted make T."""
    proofs = []
    for asked in certified.asked:
        as_read = asked.question.as_read
        for fineness in FINENESS:
            worst = certified.worst(asked, fineness)
            where = "all rows"
            if worst.parts is not None:
                where = worst.parts.words(worst.part)
            proofs.append(
                Proof(
                    asked.name,
                    fineness,
                    at_most=as_read(worst.far),
                    at_least=as_read(at_least[asked.name, fineness]),
                    perfect=as_read(perfect.medians[asked.name, fineness]),
                    where=where,
                )
            )

    # the bias is apart, which has a unit of its own
    factors = set(counted) - {"bias"}
    curve = {}
    for fineness in FINENESS:
        of_fineness = []
        for proof in proofs:
            if proof.fineness == fineness and proof.question in factors:
                of_fineness.append(proof)
        least = max((proof.at_least for proof in of_fineness), default=1.0)
        most = max((proof.at_most for proof in of_fineness), default=1.0)
        of_perfect = float(np.median(perfect.largest[fineness]))
        curve[fineness] = least, most, SizeOfU().as_read(of_perfect)
    _, T, perfect_T = curve[ASKED]
    return Certificate(
        tuple(proofs),
        T,
        perfect_T,
        tolerance,
        certified.confidence,
        certified.values.level,
        claim,
        curve,
    )
