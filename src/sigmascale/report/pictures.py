"""The pictures of report and app; :mod:`sigmascale.plots` draws all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .. import plots, scores
from .._support.progress import track
from ..exceptions import InvalidInputError
from ..validation import words
from ..validation.validation import Validation

SIZE = (4.5, 3.2)  # inches; text of 10 points is readable on a phone of that width
MOST_VARIABLES = 12  # that are drawn, u and the worst features


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


def factors(v: Validation) -> list[Picture]:
    """Return the pictures along u and the features, the worst of these first."""
    stages = {"": v} if v.before is None else {"Before: ": v.before, "After: ": v}
    features = words.ranked_features(list(stages.values()))
    pictures = []
    for name in ["u", *features][:MOST_VARIABLES]:
        results = {stage: _result(x, name) for stage, x in stages.items()}
        if any(results.values()):
            paint = partial(plots.factors, v, by=name)
            told = [f"{stage}{said}." for stage, said in results.items() if said]
            caption = " ".join(told)
            pictures.append(Picture(name, variable(name), caption, paint))
    return pictures


def _result(v: Validation, column: str) -> str:
    """Return the result along a column, as its line has it."""
    check = next((x for x in v.checks.values() if x.column == column), None)
    if check is None:
        return ""
    line = words.line(v, check)
    if words.is_same(v, check):
        return "same as all rows"
    return f"{line.mark}, {line.where}, RMS z {line.numbers}".removesuffix(", RMS z ")


def variable(name: str) -> str:
    """Return what a variable is called in a sentence."""
    return "uncertainty u" if name == "u" else name


def others(v: Validation) -> list[Picture]:
    """Return what papers on uncertainty print, before and after in one picture."""
    rows = [v.rows] if v.before is None else [v.before.rows, v.rows]
    pictures: list[Picture] = []

    def add(title: str, caption: str, make: Callable[[Any], Any], paint: Any) -> None:
        try:
            results = [make(p) for p in rows]
        except InvalidInputError:  # of too few rows, or of errors that are all 0
            return
        pictures.append(Picture("", title, caption, partial(paint, *results)))

    if not v.rows.is_vector:
        add(
            "Calibration curve",
            "Observed versus nominal coverage of central intervals. Below the "
            "diagonal, they are too narrow.",
            scores.calibration_curve,
            plots.calibration,
        )
        add(
            "PIT histogram",
            "Where true values lie in their predicted distributions: flat is ideal, a "
            "U is too narrow, a slope is bias.",
            scores.pit_histogram,
            plots.pit,
        )
    add(
        "Reliability diagram",
        "RMS error versus RMS u, in bins of u. Above the diagonal, u is too small.",
        scores.reliability_diagram,
        plots.reliability,
    )
    add(
        "Confidence curve",
        "The error that remains as the most uncertain rows are removed: a curve that "
        "falls steadily shows that u ranks the errors.",
        scores.confidence_curve,
        plots.confidence_curve,
    )
    caption = "Each error versus its uncertainty u, with lines at ±2u."
    pictures.append(Picture("", "Errors", caption, partial(plots.errors, *rows)))
    if not v.rows.is_vector:
        caption = "Errors within their 90 % intervals, row by row."
        paint = partial(plots.intervals, *rows)
        pictures.append(Picture("", "Intervals", caption, paint))
    return pictures
