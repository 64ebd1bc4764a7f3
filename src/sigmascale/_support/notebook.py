"""What notebooks show: sentences first, a small figure, and tables folded.

The figure is drawn without Matplotlib, in the text colour of the page, so that it is
there in every environment and on dark pages, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
import numpy.typing as npt

from .checks import Floats
from .drawing import BLUE, DARK, VERMILION

WIDTH, HEIGHT = 400, 220
_TOP, _RIGHT, _BOTTOM = 8, 10, 36  # room around the frame, in pixels
_ANSWERS = {"yes": BLUE, "no": VERMILION, "cannot tell": DARK}

Ticks = Mapping[float, str]


def answered(answer: str, sentence: str) -> str:
    """Return a sentence as HTML, after a coloured answer."""
    look = "color:#fff;padding:0 .5em;border-radius:.6em;white-space:nowrap"
    colour = _ANSWERS[answer]
    badge = f'<span style="background:{colour};{look}">{escape(answer)}</span>'
    return f"{badge} {escape(sentence)}"


def page(sentences: Iterable[str], figure: str, tables: Mapping[str, str]) -> str:
    """Return sentences, which are HTML, beside a figure, above folded tables."""
    words = "".join(f'<p style="margin:.3em 0">{each}</p>' for each in sentences)
    folded = "".join(
        f"<details><summary>{escape(name)}</summary>{table}</details>"
        for name, table in tables.items()
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f'<div style="flex:1 1 24em;max-width:46em">{words}</div>{figure}</div>'
        f'<div style="overflow-x:auto;white-space:nowrap">{folded}</div>'
    )


def ticks_of(values: Floats) -> Ticks:
    """Return three or so round numbers within the range of values.

    >>> ticks_of(np.array([0.3, 6.2]))
    {2.0: '2', 4.0: '4', 6.0: '6'}
    """
    low, high = float(values.min()), float(values.max())
    width = (high - low) / 3 or abs(high) or 1.0
    unit = 10.0 ** np.floor(np.log10(width))
    step = next(k * unit for k in (1, 2, 5, 10) if k * unit >= width / 1.5)
    found = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return {float(each): f"{each:.6g}" for each in found}


def log_ticks_of(logs: Floats) -> Ticks:
    """Return round numbers, of which the logarithms are within the range of some.

    >>> list(log_ticks_of(np.log([0.4, 3.0])).values())
    ['0.5', '1', '2']
    """
    choices = (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100)
    low, high = min(logs.min(), 0.0), max(logs.max(), 0.0)
    return {math.log(v): f"{v:g}" for v in choices if low <= math.log(v) <= high}


def chart(
    x: Floats,
    y: Floats,
    *,
    labels: tuple[str, str],
    ticks: tuple[Ticks, Ticks],
    bars: tuple[Floats, Floats] | None = None,
    wrong: npt.NDArray[np.bool_] | None = None,
    lines: Iterable[tuple[Floats, Floats]] = (),
    flat: bool = False,
) -> str:
    """Return points as SVG, with bars, upright or flat; wrong ones stand out."""
    drawn = list(lines)
    both = (x, y) if bars is None else (np.concatenate(bars), y)
    both = both if flat or bars is None else (x, np.concatenate([y, *bars]))
    ends_x = np.concatenate([both[0], *(each for each, _ in drawn), list(ticks[0])])
    ends_y = np.concatenate([both[1], *(each for _, each in drawn), list(ticks[1])])
    left = 28 + 6.5 * max(map(len, ticks[1].values()), default=0)

    def scaled(values: Floats, ends: Floats, first: float, last: float) -> Floats:
        low, high = ends.min(), ends.max()
        share = (values - low) / (high - low or 1.0)
        place: Floats = first + (0.03 + 0.94 * share) * (last - first)
        return place

    def across(values: Floats) -> Floats:
        return scaled(values, ends_x, left, WIDTH - _RIGHT)

    def up(values: Floats) -> Floats:
        return scaled(values, ends_y, HEIGHT - _BOTTOM, _TOP)

    floor = HEIGHT - _BOTTOM
    parts = [
        f'<rect x="{left:.1f}" y="{_TOP}" width="{WIDTH - _RIGHT - left:.1f}" '
        f'height="{floor - _TOP}" fill="none" stroke="currentColor" opacity=".5"/>'
    ]
    along, beside = (np.array([*each]) for each in ticks)
    for place, text in zip(across(along), ticks[0].values(), strict=True):
        parts.append(_text(place, floor + 14, text))
    for place, text in zip(up(beside), ticks[1].values(), strict=True):
        parts.append(_text(left - 4, place + 4, text, anchor="end"))
    parts.append(_text((left + WIDTH - _RIGHT) / 2, HEIGHT - 6, labels[0]))
    middle = (_TOP + floor) / 2
    turned = f' transform="rotate(-90 10 {middle:.0f})"'
    parts.append(_text(10, middle, labels[1], more=turned))
    for each in drawn:
        points = zip(across(each[0]), up(each[1]), strict=True)
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        look = 'fill="none" stroke="currentColor" stroke-dasharray="4 3" opacity=".8"'
        parts.append(f'<polyline points="{path}" {look}/>')
    columns, heights = across(x), up(y)
    colours = [BLUE] * x.size
    if wrong is not None:
        colours = [VERMILION if each else BLUE for each in wrong]
    if bars is not None:
        left_end, right_end = map(across, bars) if flat else (columns, columns)
        bottom, top = (heights, heights) if flat else map(up, bars)
        for a, b, low, high, colour in zip(
            left_end, right_end, bottom, top, colours, strict=True
        ):
            path = f'x1="{a:.1f}" x2="{b:.1f}" y1="{low:.1f}" y2="{high:.1f}"'
            parts.append(f'<line {path} stroke="{colour}"/>')
    radius = 2.5 if x.size <= 100 else 1.5
    for a, b, colour in zip(columns, heights, colours, strict=True):
        where = f'cx="{a:.1f}" cy="{b:.1f}"'
        parts.append(f'<circle {where} r="{radius}" fill="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" style="max-width:100%;height:auto" '
        f'font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor"{more}>{escape(text)}</text>'
