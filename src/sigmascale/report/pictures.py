"""The pictures of report and app; :mod:`sigmascale.plots` draws all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .. import plots, scores
from .._support.progress import track
from ..exceptions import InvalidInputError
from ..validation.validation import Validation

SIZE = (4.5, 3.2)  # inches; text of 10 points is readable on a phone of that width
MOST_VARIABLES = 12  # that are drawn, those at fault first
NOT_VARIABLES = ("bias", "average", "joint", "coverage")


@dataclass(frozen=True)
class Picture:
    """One picture: what it is of, what stands below it, and SVG once it is drawn.

    `paint` draws on the axes `ax`.
    """

    name: str
    title: str
    caption: str
    paint: Callable[..., object]
    size: tuple[float, float] = SIZE
    svg: str = ""


def draw(sketches: Iterable[Picture], *, alone: bool = False) -> list[Picture]:
    """Draw pictures as SVG for the inside of a page, or as files of their own."""
    drawn = []
    with plots.drawing() as new_figure:
        for number, sketch in enumerate(track(sketches, "drawing")):
            figure = new_figure(sketch.size)
            sketch.paint(ax=figure.subplots())
            words = {"title": sketch.title, "description": sketch.caption}
            svg = plots.svg(figure, key=f"p{number}", alone=alone, **words)
            drawn.append(replace(sketch, svg=svg))
    return drawn


def forest(before: Validation, after: Validation | None) -> Picture:
    """Return the picture of the verdicts that are shown."""
    last = after or before
    names = shown(before, after)

    def of_names(validation: Validation) -> Validation:
        verdicts = {name: validation.verdicts[name] for name in names}
        return replace(validation, verdicts=verdicts)

    paint = partial(plots.verdicts, of_names(before), after and of_names(after))
    caption = (
        "Each question: the range in which all its parts lie, and the worst part, or "
        "what is at fault with the limit that it surely exceeds (tick). The band, "
        f"{1 / last.tolerance:.2g} to {last.tolerance:g}, is good enough."
    )
    size = (5.2, 1.1 + 0.36 * len(names))
    return Picture("", "Verdicts", caption, paint, size)


def certificate(before: Validation, after: Validation | None) -> Picture:
    """Return the picture of T: how right, how finely."""
    last = after or before
    caption = (
        "How far u is off, at most (marks, "
        f"{100 * last.confidence:g} % sure) and at least somewhere (the lower edge), "
        "on average and in ever smaller parts of the rows. Below the line is right "
        "enough; a perfect u, judged by as few rows, reaches the dots."
    )
    paint = partial(plots.certificate, before, after)
    return Picture("", "Certificate", caption, paint, (5.2, 3.2))


def along(before: Validation, after: Validation | None) -> list[Picture]:
    """Return the pictures along variables, that at fault first."""
    last = after or before
    pictures = []
    for name in variables(before, after):
        paint = partial(plots.local, before, after, by=name)
        caption = last.verdicts[name].sentence
        pictures.append(Picture(name, variable(name), caption, paint))
    return pictures


def shown(before: Validation, after: Validation | None) -> list[str]:
    """Return the questions that are shown: of many features, those most at fault."""
    drawn = {*NOT_VARIABLES, *variables(before, after)}
    if after is not None:  # if u has become constant, nothing is asked jointly
        drawn &= after.verdicts.keys()
    return [name for name in before.verdicts if name in drawn]


def variables(before: Validation, after: Validation | None = None) -> list[str]:
    """Return the variables that are drawn, those first along which u is most wrong.

    What was wrong before stays in sight where nothing is wrong after.
    """
    stage = after if after is not None and after.answer == "no" else before
    names = [name for name in stage.verdicts if name not in NOT_VARIABLES]

    def how_right(name: str) -> tuple[bool, bool, float]:
        verdict = stage.verdicts[name]
        worst = verdict.worst
        off_by = 1.0 if worst is None else abs(math.log(max(worst.estimate, 1e-9)))
        is_worst = stage.worst is not None and stage.worst.column == name
        return not is_worst, verdict.answer != "no", -off_by

    return sorted(names, key=how_right)[:MOST_VARIABLES]


def variable(name: str) -> str:
    """Return what a variable is called in a sentence."""
    return "uncertainty u" if name == "u" else name


def others(before: Validation, after: Validation | None) -> list[Picture]:
    """Return what papers on uncertainty print, before and after in one picture."""
    stages = [before] if after is None else [before, after]
    rows = [stage.rows for stage in stages]
    pictures: list[Picture] = []

    def add(title: str, caption: str, make: Callable[[Any], Any], paint: Any) -> None:
        try:
            results = [make(p) for p in rows]
        except InvalidInputError:  # of too few rows, or of errors that are all 0
            return
        pictures.append(Picture("", title, caption, partial(paint, *results)))

    if not before.rows.is_vector:
        add(
            "Calibration curve",
            "What central intervals hold against what they claim. Below the diagonal, "
            "they are too narrow.",
            scores.calibration_curve,
            plots.calibration,
        )
        add(
            "PIT histogram",
            "Where truths lie in their predicted distributions: flat is right, a U is "
            "too narrow, a slope is bias.",
            scores.pit_histogram,
            plots.pit,
        )
    add(
        "Reliability diagram",
        "The error against the uncertainty, in bins of u. Above the diagonal, u is "
        "too small.",
        scores.reliability_diagram,
        plots.reliability,
    )
    add(
        "Confidence curve",
        "The error that is left as the most uncertain rows are removed: a curve that "
        "falls steadily shows that large u goes with large errors.",
        scores.confidence_curve,
        plots.confidence_curve,
    )
    caption = "Each error against its uncertainty, with what u claims."
    pictures.append(Picture("", "Errors", caption, partial(plots.errors, *rows)))
    if not before.rows.is_vector:
        caption = "Errors within their 90 % intervals, row by row."
        paint = partial(plots.intervals, *rows)
        pictures.append(Picture("", "Intervals", caption, paint))
    return pictures
