"""Validation: the certificate and all verdicts on some rows, and how they are shown."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._support.checks import check_choice, check_fraction, is_real
from .._support.notices import quiet
from .._support.render import Cells, Result, html_table
from .._support.text import WIDTH, quoted, shorten
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions
from .answers import Answer, Judged, judge
from .certificate import CLAIMS, Certificate, Claim
from .headline import closing_of, headline_of
from .paper import paper_words
from .parts import ASKED, IN_WORDS
from .variables import number
from .verdicts import MARKS, Region, Verdict, as_factor
from .words import UNKNOWN, Words, at_most

if TYPE_CHECKING:
    from ..scores import Evidence, Scorecard

PICTURE_WIDTH = 54  # characters of a picture in a line
FARTHEST = 8.0  # factors beyond it are at the edge of pictures
PRE = (
    "style=\"font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    '; line-height: 1.25; white-space: pre"'
)


class Step(str):
    """What to do next: a sentence with a line of Python, and its parts for others.

    Attributes
    ----------
    what, python : str
        What to do, and the line that does it; empty where no line does.
    how : dict or None
        Options of a recalibrator that does it, as `sigmascale fit` has them, such as
        ``{"bias": "auto"}``; None where a recalibrator is not what is needed.
    """

    what: str
    python: str
    how: dict[str, Any] | None

    def __new__(
        cls, what: str, python: str = "", how: dict[str, Any] | None = None
    ) -> Step:
        """Join what to do and the line of Python."""
        new = super().__new__(cls, f"{what}: {python}" if python else f"{what}.")
        new.what = what
        new.python = python
        new.how = how
        return new


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Result):
    """Verdicts on some rows: are their uncertainties right, on average and everywhere.

    Attributes
    ----------
    headline : str
        The worst fault or what is suspected, where it is, and T, in one line.
    verdicts : dict of str to Verdict
        By question: "bias" (of numbers), "average", "u", the features, "time", "joint"
        (with features) and "coverage"; those that `claim` covers.
    certificate : Certificate
        T by question and fineness: how right u is, how finely, as far as the rows
        prove it.
    tolerance : float
        The factor that u of no fifth of the rows may be off by.
    confidence : float
        The level of T, and one minus the chance of a wrong no on each side.
    level : float
        The coverage of the intervals that were judged.
    claim : {"u", "intervals", "both"}
        What was judged.
    notes : tuple of str
        What is odd about the rows.
    closing : str
        T, what a perfect u would reach with as many rows, and how many would show more.
    rows : Predictions
        The rows that were judged.
    judged : object
        What verdicts and certificate were made from; for the library's own use.
    advise : callable or None
        What tells next steps when they are asked for.
    """

    headline: str
    verdicts: dict[str, Verdict]
    certificate: Certificate
    tolerance: float
    confidence: float
    level: float
    claim: Claim
    notes: tuple[str, ...]
    closing: str
    rows: Predictions = field(compare=False)
    judged: Judged = field(compare=False)
    advise: Callable[[Validation], tuple[Step, ...]] | None = field(
        default=None, compare=False
    )

    @property
    def T(self) -> float:
        """The tolerance that the rows prove: no fifth of them is off by more.

        It is the largest of all questions that were judged but the bias, which has a
        unit of its own; infinite where nothing is known.
        """
        return self.certificate.T

    @property
    def answer(self) -> Answer:
        """The worst answer that counts: "no", then "cannot tell", then "yes"."""
        counted = {v.answer for v in self.verdicts.values() if v.counts}
        worst_first: tuple[Answer, ...] = ("no", "cannot tell", "yes")
        return next(answer for answer in worst_first if answer in counted)

    @property
    def passed(self) -> bool:
        """Whether every answer that counts is "yes"."""
        return self.answer == "yes"

    @cached_property
    def next_steps(self) -> tuple[Step, ...]:
        """What to do about it, at most two lines; none where nothing is wrong.

        Advice may rest on recalibrators that are fitted for it, when it is asked for.
        """
        return () if self.advise is None else self.advise(self)

    @cached_property
    def scores(self) -> Scorecard:
        """All scores of the rows; see :func:`sigmascale.scores.scorecard`."""
        from ..scores import scorecard

        with quiet():
            return scorecard(self.rows)

    @property
    def worst(self) -> Region | None:
        """The region that the headline is about; None where no answer is "no"."""
        from .headline import worst_verdict

        worst = worst_verdict(self.verdicts)
        return None if worst is None else worst.worst

    def compared_with(self, before: Validation) -> str:
        """Return what recalibration has changed, in one line.

        Parameters
        ----------
        before : Validation
            The same rows, as they were.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.datasets.make_molecules(1000).predictions
        >>> before = ss.validate(p, claim="intervals")
        >>> after = ss.validate(p.with_y_std(2 * p.y_std), claim="intervals")
        >>> after.compared_with(before).split(",")[0]
        'Right to within 2.73 → 5.46 times in every fifth'
        """
        from ..scores import coverage, crps, energy_score

        score = crps
        name = "CRPS"
        intervals = "intervals"
        if self.rows.is_vector:
            score = energy_score
            name = "energy score"
            intervals = "balls"
        with quiet():
            scores = f"{score(before.rows):.3g} → {score(self.rows):.3g}"
            held = 100 * coverage(self.rows, level=self.level)
        T = f"{_T_words(before.T)} → {_T_words(self.T)}"
        return (
            f"Right to within {T} times {IN_WORDS[ASKED]}, {name} {scores}, "
            f"{100 * self.level:g} % {intervals} hold {held:.3g} %."
        )

    @cached_property
    def evidence(self) -> Evidence:
        """What stands beside the verdicts; see :func:`sigmascale.scores.evidence`."""
        from ..scores import evidence

        with quiet():
            return evidence(self.judged.rows, confidence=self.confidence)

    def describe(self, kind: Literal["paper"] = "paper") -> str:
        """Return what a referee asks, in two sentences for a paper.

        Parameters
        ----------
        kind : {"paper"}, default "paper"
            What the words are for.

        Examples
        --------
        >>> import sigmascale as ss
        >>> v = ss.validate(ss.datasets.make_molecules(1000).predictions)
        >>> v.describe("paper").split(":")[0]
        'Uncertainties of 1,000 rows were judged with sigmascale'
        """
        check_choice(kind, "kind", ("paper",))
        return paper_words(self)

    def card(
        self,
        path: str | os.PathLike[str],
        *,
        before: Validation | None = None,
        recalibrator: Any = None,
        **others: Any,
    ) -> None:
        """Write a card: the evidence on one page, which travels and can be verified.

        Parameters
        ----------
        path : path-like
            A file that ends in .html, .md or .json.
        before : Validation, optional
            The same rows before they were recalibrated.
        recalibrator : Recalibrator, optional
            What recalibrated them.
        **others
            As for :func:`sigmascale.report.write_card`.

        Examples
        --------
        >>> import tempfile
        >>> import sigmascale as ss
        >>> v = ss.validate(ss.datasets.load_diabetes().test)
        >>> v.card(tempfile.mkdtemp() + "/card.md")
        """
        # the one way that leads downwards: pages are made by rooms that know verdicts
        report = import_module("sigmascale.report")
        report.write_card(
            path, self, before=before, recalibrator=recalibrator, **others
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts and what they rest on, as plain values.

        Next steps are among them, which takes as long as they take.
        """
        return self.findings() | {"next_steps": list(self.next_steps)}

    def findings(self) -> dict[str, Any]:
        """Return the same without next steps: what was found, whatever is advised."""
        curve = {}
        for fineness, (least, most, perfect) in self.certificate.curve.items():
            curve[str(fineness)] = {
                "at_least": least,
                "at_most": most,
                "perfect": perfect,
            }
        return {
            "headline": self.headline,
            "answer": self.answer,
            "passed": self.passed,
            "T": self.T,
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "level": self.level,
            "claim": self.claim,
            "n_rows": self.rows.n_rows,
            "notes": list(self.notes),
            "closing": self.closing,
            "verdicts": {name: v.to_dict() for name, v in self.verdicts.items()},
            "certificate": self.certificate.to_dict(),
            "curve": curve,
            "evidence": self.evidence.to_dict(),
        }

    def _cells(self) -> Cells:
        rows = [
            (shorten(name, 16), v.answer, v.sentence)
            for name, v in self.verdicts.items()
        ]
        return ("question", "answer", ""), rows

    # -- text --------------------------------------------------------------------------

    def __str__(self) -> str:
        """Return the headline, the picture, a sentence a question, and what to do."""
        return self.text(self.next_steps)

    def text(self, steps: Sequence[str]) -> str:
        """Return what is printed, with other words for what to do next.

        Parameters
        ----------
        steps : sequence of str
            What to do, a paragraph each; lines of a paragraph stay as they are.
        """
        lines = [fill(self.headline, WIDTH), ""]
        width = min(12, max(len(name) for name in self.verdicts))
        if picture := self.picture(width):
            lines += [*picture, ""]
        for name, v in self.verdicts.items():
            start = f"{MARKS[v.answer]} {shorten(name, width):<{width}}  "
            lines.append(_filled(v.sentence, start))

        # what is odd, and what to do, each after an empty line
        for mark, paragraphs in (("!", self.notes), ("→", steps)):
            if paragraphs:
                lines.append("")
            for paragraph in paragraphs:
                sentence, *as_they_are = paragraph.split("\n")
                lines += [_filled(sentence, f"{mark} "), *as_they_are]
        if self.closing:
            lines += ["", fill(self.closing, WIDTH)]
        return "\n".join(lines)

    @property
    def reach(self) -> float:
        """How far an axis of factors reaches: to estimates and most limits."""
        factors = [1.6, 1.3 * self.tolerance]
        for name, verdict in self.verdicts.items():
            if verdict.worst is None:
                continue
            for value in (verdict.worst.estimate, *(verdict.limits or ())):
                factor = as_factor(value, name, self.tolerance)
                factors.append(max(factor, 1 / factor))
        return 1.08 * max(factor for factor in factors if factor < FARTHEST)

    def picture(self, width: int = 12) -> list[str]:
        """Return verdicts as lines of characters, as `plots.verdicts` draws them.

        They are the tolerance ░, the range in which all parts lie ─, the part or region
        that the sentence is about ●, and the limit of a fault ┃; ‹ and › stand where
        the axis ends. At the right is T.
        """
        lines = []
        for name, v in self.verdicts.items():
            if v.worst is None:
                continue
            start = f"{MARKS[v.answer]} {shorten(name, width):<{width}}"
            bar = f"{self._bar(name):<{PICTURE_WIDTH}}"
            lines.append(f"{start}  {bar} {_T_cell(name, v.T):>6}".rstrip())
        if not lines:
            return []
        axis = f"{'u times':<{width + 4}}{self._axis():<{PICTURE_WIDTH}} {'T':>6}"
        return [axis, *lines]

    def _place(self, factor: float) -> int:
        """Return the character of a line at which a factor stands."""
        # from −1 to 1 along the axis
        along = math.log(factor) / math.log(self.reach)
        along = min(max(along, -1.0), 1.0)
        return round((along + 1) / 2 * (PICTURE_WIDTH - 1))

    def _axis(self) -> str:
        """Return factors in words at their places, where there is room for them."""
        line = " " * PICTURE_WIDTH
        for factor in (1, self.tolerance, 1 / self.tolerance, 2, 0.5, 4, 0.25):
            words = number(factor)
            start = self._place(factor) - len(words) // 2
            stop = start + len(words)
            is_inside = start > 0 and stop < PICTURE_WIDTH
            if is_inside and not line[start - 1 : stop + 1].strip():
                line = line[:start] + words + line[stop:]
        return line.rstrip()

    def _bar(self, name: str) -> str:
        """Return a verdict as a line of characters."""
        v = self.verdicts[name]
        assert v.worst is not None
        line = [" "] * PICTURE_WIDTH

        def place(value: float) -> int:
            return self._place(as_factor(value, name, self.tolerance))

        def draw(character: str, start: int, end: int) -> None:
            line[start : end + 1] = character * (end + 1 - start)

        # the tolerance, and between which limits all parts lie; its ends stay visible
        low = self._place(1 / self.tolerance)
        high = self._place(self.tolerance)
        draw("░", low, high)
        if v.limits is not None:
            draw("─", place(v.limits[0]), place(v.limits[1]))
        draw("┊", low, low)
        draw("┊", high, high)

        # the limit of a fault that is nearer to what is right
        if v.answer == "no":
            right = 0.0 if name == "bias" else 1.0
            limit = v.worst.low if v.worst.low > right else v.worst.high
            draw("┃", place(limit), place(limit))

        estimate = as_factor(v.worst.estimate, name, self.tolerance)
        mark = "●"
        if not 1 / self.reach <= estimate <= self.reach:
            mark = "›" if estimate > 1 else "‹"
        draw(mark, place(v.worst.estimate), place(v.worst.estimate))
        return "".join(line).rstrip()

    def _repr_html_(self) -> str:
        lines = [f"<p><strong>{escape(self.headline)}</strong></p>"]
        if picture := self.picture():
            lines.append(f"<pre {PRE}>{escape(chr(10).join(picture))}</pre>")
        rows = [
            (MARKS[v.answer], shorten(name, 30), v.sentence)
            for name, v in self.verdicts.items()
        ]
        lines.append(html_table(("", "question", ""), rows, n_left=3))
        lines += [f"<p>! {escape(words)}</p>" for words in self.notes]
        lines += [f"<p>→ {escape(step)}</p>" for step in self.next_steps]
        return "".join([*lines, f"<p>{escape(self.closing)}</p>"])


def _filled(words: str, start: str) -> str:
    """Return a paragraph after a start, with an indent as wide."""
    indent = " " * len(start)
    return fill(words, WIDTH, initial_indent=start, subsequent_indent=indent)


def _T_words(T: float) -> str:
    """Return T in a sentence."""
    return at_most(T) if T < UNKNOWN else "?"


def _T_cell(name: str, T: float) -> str:
    """Return T in a picture, a bias in units of u."""
    if not T < UNKNOWN:
        return "?"
    if name == "bias":
        return f"{math.ceil(100 * T - 1e-6) / 100:.2g} u"
    return f"{math.ceil(100 * T - 1e-6) / 100:.2f}"


# -- how it is made --------------------------------------------------------------------


def judged_rows(
    p: Predictions,
    rows: Predictions,
    *,
    tolerance: float,
    confidence: float,
    level: float,
    claim: Claim,
    repeats: str,
    rng: np.random.Generator,
    advise: Callable[[Validation], tuple[Step, ...]] | None = None,
) -> Validation:
    """Return verdicts on rows in canonical order; all arguments are checked.

    Parameters
    ----------
    p : Predictions
        The rows as they came.
    rows : Predictions
        The same in canonical order.
    tolerance, confidence, level, claim, rng
        As for :func:`sigmascale.validate`.
    repeats : str
        What looks like repeats though no groups were given, or nothing.
    advise : callable, optional
        What tells next steps when they are asked for.
    """
    judged = judge(
        rows,
        tolerance=tolerance,
        confidence=confidence,
        level=level,
        claim=claim,
        repeats=repeats,
        rng=rng,
    )
    words = Words(judged)
    verdicts = words.verdicts()
    headline = headline_of(judged, words, verdicts)
    return Validation(
        headline=headline.words,
        verdicts=verdicts,
        certificate=judged.certificate,
        tolerance=tolerance,
        confidence=confidence,
        level=level,
        claim=claim,
        notes=headline.notes,
        closing=closing_of(judged),
        rows=p,
        judged=judged,
        advise=advise,
    )


def check_tolerance(tolerance: Any) -> float:
    """Return a factor that is larger than 1."""
    if not is_real(tolerance) or not 1 < tolerance < math.inf:
        msg = (
            "`tolerance` must be a factor larger than 1, such as 1.25; found "
            f"{quoted(tolerance)}."
        )
        raise InvalidInputError(msg)
    return float(tolerance)


def check_confidence(confidence: Any) -> float:
    """Return a confidence of one side, which is above a half."""
    share = check_fraction(confidence, "confidence")
    if share <= 0.5:
        msg = (
            "`confidence` must be between 0.5 and 1, such as 0.95: it is the level of "
            f"one-sided limits; found {quoted(confidence)}."
        )
        raise InvalidInputError(msg)
    return share


def check_claim(claim: Any) -> Claim:
    """Return what is to be judged."""
    for known_claim in CLAIMS:
        if claim == known_claim:
            return known_claim
    names = ", ".join(f'"{known_claim}"' for known_claim in CLAIMS)
    msg = f"`claim` must be one of {names}; found {quoted(claim)}."
    raise InvalidInputError(msg)
