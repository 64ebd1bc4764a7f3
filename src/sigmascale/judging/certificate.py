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
from typing import Literal

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.render import Cells, Result, text_table
from .._support.text import shorten
from .limits import (
    Limits,
    OneSided,
    PartSums,
    Score,
    WholeLimits,
    by_chance,
    either_way,
    moments,
)
from .parts import ASKED, FINENESS, IN_WORDS, Partition, parts_of
from .questions import Bias, Coverage, Question, SizeOfU, Values
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
    **{1: "average", 2: "halves", 3: "thirds", 5: "fifths", 10: "tenths"},
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
        at_most, perfect = (_number(x) for x in (self.at_most, self.perfect))
        least = f"{self.at_least:.2f}"
        words = IN_WORDS[self.fineness].removeprefix("in ")
        return self.question, words, at_most, least, perfect, self.where


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
        return {x.fineness: x for x in self.proofs if x.question == question}

    def _cells(self) -> Cells:
        """Return T by question and fineness; and of all, at least and a perfect u."""
        header = ("off by at most", *(FINENESS_NAMES[k] for k in FINENESS))
        rows = []
        for question in dict.fromkeys(x.question for x in self.proofs):
            unit = ", u" if question == "bias" else ""
            of = self.of(question)
            cells = (_number(of[k].at_most) for k in FINENESS)
            rows.append((shorten(question, 20) + unit, *cells))
        if rows:
            curve = self.curve
            least = (f"{curve[k][0]:.2f}" for k in FINENESS)
            rows.append(("at least, somewhere", *least))
            rows.append(("a perfect u", *(_number(curve[k][2]) for k in FINENESS)))
        return header, rows

    def __str__(self) -> str:
        """Return the picture and the table as text."""
        return "\n".join([*self.picture(), "", text_table(*self._cells())])

    def picture(self, before: Certificate | None = None) -> list[str]:
        """Return the certificate as lines of at most 80 characters.

        A line for each fineness reaches from *at least* to *at most*, by the side of
        that of the same rows `before`.
        """
        both = [("before", before), ("after", self)]
        named = [("", self)] if before is None else both
        stages = [(when, x) for when, x in named if x is not None and x.proofs]
        known = [
            min(x, FARTHEST_DRAWN)
            for _, stage in stages
            for _, most, perfect in stage.curve.values()
            for x in (most, perfect)
        ]
        if not known:
            return []
        most = 1.05 * max([1.4, 1.1 * self.tolerance, *known])
        bar = Bar(most, self.tolerance)
        lines = [f"{'off by, times':<18}{bar.axis()}"]
        for fineness in DRAWN_FINENESSES:
            for number, (when, stage) in enumerate(stages):
                name = FINENESS_NAMES[fineness] if not number else ""
                lines.append(bar.line(name, when, stage.curve[fineness]))
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
            words, first = f"{factor:g}", self.place(factor)
            last = first + len(words)
            if factor < self.most and not line[max(0, first - 1) : last + 1].strip():
                line = line[:first] + words + line[last:]
        return line.rstrip()

    def line(self, name: str, when: str, ends: tuple[float, float, float]) -> str:
        """Return one line: at least, at most and perfect."""
        least, most, perfect = ends
        characters = [" "] * BAR_WIDTH
        characters[self.place(self.tolerance)] = "┊"
        mark = "─" if when != "before" else "━"
        for at in range(self.place(least), self.place(most) + 1):
            characters[at] = mark
        if least > 1.005:
            characters[self.place(least)] = "├"
        characters[self.place(most)] = "●" if most <= self.most else "›"
        sign = "?"
        if most <= self.tolerance:
            sign = "✓"
        elif least > self.tolerance:
            sign = "✗"
        right = f"{_number(most):>5}"
        if when != "before":
            right += f"  perfect {_number(perfect)}"
        return f"{name:<8} {when:<6} {sign} {''.join(characters)} {right}"


def _number(x: float) -> str:
    return f"{math.ceil(100 * x - 1e-6) / 100:.2f}" if x < UNKNOWN_FACTOR else "–"


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
class Shown:
    """Parts of one variable with their limits, those of a picture among them."""

    parts: Partition
    limits: Limits
    places: slice


@dataclass(frozen=True, eq=False)
class Worst:
    """The part, or all rows, whose limit is T."""

    far: float
    low: float
    high: float
    off: float
    parts: Partition | None
    part: int


class Certified:
    """All limits of all parts, of which certificates and verdicts are made.

    Parameters
    ----------
    values : Values
        The rows.
    asked : sequence of Asked
        The questions.
    confidence : float
        The level of one-sided limits.
    """

    def __init__(
        self, values: Values, asked: Sequence[Asked], confidence: float
    ) -> None:
        self.values, self.asked, self.confidence = values, asked, confidence
        self.n_rows = float(values.w.sum() ** 2 / (values.w @ values.w))
        self.parts = self._cut()
        self.sums = PartSums(values, list(self.parts.values())) if self.parts else None
        self.places = {}
        if self.sums is not None:
            self.places = dict(zip(self.parts, self.sums.places, strict=True))
        self.finest = self._finest()
        self._whole_limits = WholeLimits(values)
        self.levels = (confidence, self._sure())
        self.wholes: dict[type[Question], tuple[OneSided, OneSided]] = {}
        for x in {type(each.question): each.question for each in asked}.values():
            of_levels = [self._whole_limits.of(x, level) for level in self.levels]
            self.wholes[type(x)] = of_levels[0], of_levels[1]
        self.limits = self._limits()

    def _cut(self) -> dict[tuple[str, int], Partition]:
        """Cut all variables at all finenesses."""
        cut = {}
        for v in {v.name: v for x in self.asked for v in x.variables}.values():
            for fineness in FINENESS[1:]:
                parts = parts_of(v, fineness, self.n_rows)
                if parts is not None and parts.n > 1:
                    cut[v.name, fineness] = parts
        return cut

    def _finest(self) -> dict[str, int]:
        """Return the finest parts of each variable that are worth showing."""
        finest: dict[str, int] = {}
        if self.sums is None:
            return finest
        score = self.sums.scores[SizeOfU]
        rows = self.sums.units(self.sums.correlation(score.psi_of_rows)).rows
        for (name, fineness), place in self.places.items():
            if fineness <= FINEST_SHOWN and rows[place].min() >= ROWS_SHOWN:
                finest[name] = fineness
        return finest

    def _sure(self) -> float:
        """Return the level of one-sided limits of all shown parts at once."""
        n_parts = 0
        for x in self.asked:
            n_parts += x.with_whole
            for v in x.variables:
                fineness = self.finest.get(v.name)
                n_parts += self.parts[v.name, fineness].n if fineness else 0
        return 1 - SHOWN_RATE / (2 * max(1, n_parts))

    def _limits(self) -> dict[type[Question], Limits]:
        """Return limits of all parts by question."""
        if self.sums is None:
            return {}
        asked = {type(x.question) for x in self.asked}
        limits: dict[type[Question], Limits] = {}
        sizes, relative = self.sums.size_limits(*self._of(SizeOfU))
        limits[SizeOfU] = sizes
        if Coverage in asked:
            limits[Coverage] = self.sums.scale_limits(Coverage(), *self._of(Coverage))[
                0
            ]
        if Bias in asked:
            limits[Bias] = self.sums.bias_limits(*self._of(Bias), relative)
        return limits

    def _of(self, kind: type[Question]) -> tuple[Sequence[OneSided], Sequence[float]]:
        """Return limits of all rows, and their levels."""
        if kind not in self.wholes:
            wholes = [self._whole_limits.of(kind(), level) for level in self.levels]
            return wholes, self.levels
        return self.wholes[kind], self.levels

    # -- what is asked of them ---------------------------------------------------------

    def whole(self, asked: Asked, at: int = 0) -> OneSided:
        """Return the limits of all rows, one-sided, or with those of all parts."""
        return self.wholes[type(asked.question)][at]

    def judged(
        self, asked: Asked, fineness: int
    ) -> list[tuple[Partition, slice, Bools]]:
        """Return parts, their places, and which of them a question is about.

        Of the bias and of coverage, labels that are too rare are not judged together.
        """
        found = []
        for v in asked.variables:
            parts = self.parts.get((v.name, fineness))
            if parts is not None:
                counts = np.ones(parts.n, dtype=np.bool_)
                if asked.with_whole and parts.rest is not None:
                    counts[parts.rest] = False
                found.append((parts, self.places[v.name, fineness], counts))
        return found

    def worst(self, asked: Asked, fineness: int) -> Worst:
        """Return the part whose limit is the farthest: T at a fineness."""
        whole = self.whole(asked)
        low, high = whole.off - whole.down, whole.off + whole.up
        best = Worst(whole.far, low, high, whole.off, None, -1)
        if fineness == 1 or not asked.variables:
            return best
        if not self.is_known(fineness):
            return Worst(math.inf, -math.inf, math.inf, whole.off, None, -1)
        judged = self.judged(asked, fineness)
        if not asked.with_whole and judged:
            best = Worst(-math.inf, 0.0, 0.0, 0.0, None, -1)
        limits = self.limits.get(type(asked.question))
        for parts, place, counts in judged:
            assert limits is not None
            far = np.where(counts, limits.far[place], -np.inf)
            part = int(np.argmax(far))
            if not far[part] <= best.far:
                at = place.start + part
                ends = float(limits.low[at]), float(limits.high[at])
                best = Worst(
                    float(far[part]), *ends, float(limits.off[at]), parts, part
                )
        return best

    def is_known(self, fineness: int) -> bool:
        """Return whether rows are enough for so many parts."""
        return self.n_rows >= 20 * fineness

    def range(self, asked: Asked, fineness: int) -> tuple[float, float]:
        """Return between which limits all parts lie."""
        whole = self.whole(asked)
        low, high = whole.off - whole.down, whole.off + whole.up
        judged = self.judged(asked, fineness) if fineness > 1 else []
        if asked.variables and not self.is_known(fineness):
            return -math.inf, math.inf
        if judged and not asked.with_whole:
            low, high = math.inf, -math.inf
        limits = self.limits.get(type(asked.question))
        for _, place, counts in judged:
            assert limits is not None
            low = min(low, float(limits.low[place][counts].min()))
            high = max(high, float(limits.high[place][counts].max()))
        return low, high

    def shown(self, asked: Asked) -> int:
        """Return the fineness of a sentence: fifths, or the finest that is enough."""
        finest = [self.finest.get(v.name, 1) for v in asked.variables]
        known = [x for x in finest if x > 1]
        return min(ASKED, min(known)) if known else 1

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


def perfect_reach(
    certified: Certified, some: Ints, counted: Iterable[str], rng: np.random.Generator
) -> tuple[dict[tuple[str, int], float], dict[int, Floats]]:
    """Return what a perfect u would reach, by question and fineness.

    The z-scores of some rows are permuted, groups together: differences between parts
    that are left are chance. Of more rows they are smaller, as a root.

    Returns
    -------
    medians : dict
        By question and fineness.
    largest : dict of int to array
        By fineness, the largest of all counted questions but the bias, of each set.
    """
    sums, values = certified.sums, certified.values
    scale = 1 / math.sqrt(values.mean)  # of z of a perfect u, whose mean square is 1
    draws: dict[tuple[type[Question], int], Floats] = {}
    if sums is not None:
        reaches = _permuted(sums, certified, some, scale, rng)
        for kind, reach in reaches.items():
            for i, place in enumerate(sums.places):
                draws[kind, i] = reach[place].max(axis=0)
    places = {key: i for i, key in enumerate(certified.parts)}
    medians: dict[tuple[str, int], float] = {}
    largest = {k: np.zeros(PERMUTED) for k in FINENESS}
    for asked in certified.asked:
        kind = type(asked.question)
        whole = certified.whole(asked)
        half = max(whole.down, whole.up) * (scale if kind is Bias else 1.0)
        for fineness in FINENESS:
            reach = np.full(PERMUTED, half)
            if fineness > 1 and asked.variables and not certified.is_known(fineness):
                reach = np.full(PERMUTED, np.inf)
            elif fineness > 1:
                for parts, _, _ in certified.judged(asked, fineness):
                    at = places[parts.variable.name, fineness]
                    reach = np.maximum(reach, draws[kind, at])
            medians[asked.name, fineness] = float(np.median(reach))
            if kind is not Bias and asked.name in counted:
                largest[fineness] = np.maximum(largest[fineness], reach)
    return medians, largest


def _permuted(
    sums: PartSums,
    certified: Certified,
    some: Ints,
    scale: float,
    rng: np.random.Generator,
) -> dict[type[Question], Floats]:
    """Return the farther limit of each part in each permuted set, by question."""
    values = sums.values
    kinds = list(certified.limits)
    columns: dict[type[Question], Floats] = {
        SizeOfU: sums.scores[SizeOfU].psi_of_rows,
        Coverage: sums.scores[Coverage].psi_of_rows,
        Bias: values.z * scale,
    }
    table = np.column_stack([columns[kind][some] for kind in kinds])
    sources = shuffles(some.size, groups_of(values, some), PERMUTED, rng)
    drawn = table[sources].reshape(some.size, -1)
    gather = gathers([v for v, _ in sums.variables], some)
    deviations = []
    for v, matrix in sums.variables:
        weight = matrix @ (gather[id(v)] @ np.ones(some.size))
        by_part = matrix @ (gather[id(v)] @ drawn)
        w = v.w[some]
        mean = (w @ drawn) / w.sum()
        here = by_part / np.maximum(weight, 1e-300)[:, None] - mean
        deviations.append(np.where(weight[:, None] > 0, here, 0.0))
    # chance falls with the root of the rows
    fewer = math.sqrt(min(1.0, float(values.w[some].sum() / values.w.sum())))
    by_kind = fewer * np.concatenate(deviations).reshape(-1, PERMUTED, len(kinds))
    reaches: dict[type[Question], Floats] = {}
    for i, kind in enumerate(kinds):
        whole = certified._of(kind)[0][0]
        dev = by_kind[:, :, i]
        if kind is Bias:
            reaches[kind] = _reach_of_means(sums, certified, dev, scale)
        else:
            score = sums.scores[kind]
            reaches[kind] = _reach_of_scores(sums, certified, score, dev, whole)
    return reaches


def _reach_of_scores(
    sums: PartSums, certified: Certified, score: Score, dev: Floats, whole: OneSided
) -> Floats:
    """Return how far limits of factors reach, of parts that are alike in shape."""
    units = sums.units(sums.correlation(score.psi_of_rows))
    se = np.sqrt(score.variance * units.q * np.maximum(1 - sums.share, 0.01))
    skewness = score.skewness * units.cube
    low_t, high_t = by_chance(certified.confidence, skewness, units.df)

    up = score.pooled_shift_to(score.mean + low_t * se)
    down = -score.pooled_shift_to(score.mean + high_t * se)
    off = -score.pooled_shift_to(score.mean + dev)
    low = off - np.hypot(down, whole.down)[:, None]
    high = off + np.hypot(up, whole.up)[:, None]
    return np.maximum(-low, high)


def _reach_of_means(
    sums: PartSums, certified: Certified, dev: Floats, scale: float
) -> Floats:
    """Return how far limits of means of z reach."""
    values = sums.values
    z = values.z * scale
    units = sums.units(sums.correlation(z))
    _, spread, skewness = moments(z, values.w)
    longer = either_way(certified.confidence, skewness * units.cube, units.df)
    reach = longer * np.sqrt(spread * units.q)
    return np.abs(dev) + reach[:, None]


def certificate_of(
    certified: Certified,
    at_least: dict[tuple[str, int], float],
    perfect: tuple[dict[tuple[str, int], float], dict[int, Floats]],
    counted: Iterable[str],
    *,
    tolerance: float,
    claim: Claim,
) -> Certificate:
    """Return the certificate of all questions; those that are counted make T."""
    medians, largest = perfect
    proofs = []
    for asked in certified.asked:
        told = asked.question.told
        for fineness in FINENESS:
            worst = certified.worst(asked, fineness)
            where = "all rows"
            if worst.parts is not None:
                where = worst.parts.words(worst.part)
            proofs.append(
                Proof(
                    asked.name,
                    fineness,
                    told(worst.far),
                    told(at_least[asked.name, fineness]),
                    told(medians[asked.name, fineness]),
                    where,
                )
            )
    # the bias is apart, which has a unit of its own
    factors = set(counted) - {"bias"}
    curve = {}
    for fineness in FINENESS:
        here = [x for x in proofs if x.fineness == fineness and x.question in factors]
        of_perfect = SizeOfU().told(float(np.median(largest[fineness])))
        least = max((x.at_least for x in here), default=1.0)
        curve[fineness] = least, max((x.at_most for x in here), default=1.0), of_perfect
    return Certificate(
        tuple(proofs),
        curve[ASKED][1],
        curve[ASKED][2],
        tolerance,
        certified.confidence,
        certified.values.level,
        claim,
        curve,
    )
