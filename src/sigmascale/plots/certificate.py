"""The figure of certificates: how right, how finely, before and after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.text import quoted
from ..advice import validate
from ..exceptions import InvalidInputError
from ..judging import Certificate, Validation
from ..judging.certificate import DRAWN_FINENESSES, FARTHEST_DRAWN
from ..predictions import Predictions
from .canvas import (
    CARD,
    GREEN,
    INK,
    SOFT,
    Look,
    axes_for,
    factor_ticks,
    looks_of,
    results_of,
    text_size,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 5.0  # inches from which words stand beside the lines
UNDER = 12  # points under 1, for numbers below the lowest marks
_LONG = {
    1: "on\naverage",
    2: "in every\nhalf",
    5: "in every\nfifth",
    10: "in every\ntenth",
}
_SHORT = {1: "average", 2: "halves", 5: "fifths", 10: "tenths"}
EndsByFineness = dict[int, tuple[float, float, float]]


def certificate(
    before: Predictions | Validation,
    after: Predictions | Validation | None = None,
    *,
    question: str | None = None,
    names: tuple[str, str] = ("before", "after"),
    ax: Axes | None = None,
) -> Axes:
    """Plot how far u is off, at most and at least, in ever smaller parts of the rows.

    Marks are T, *at most*: no part is off by more, with the confidence of the
    certificate. The ribbon reaches down to *at least*: some run or label of that size
    is off by as much. The line is the tolerance; dots are what a perfect u would reach
    with as many rows.

    Parameters
    ----------
    before : Predictions or Validation
        Rows with errors, or what :func:`sigmascale.validate` returns.
    after : Predictions or Validation, optional
        Of the same rows after recalibration.
    question : str, optional
        One question, such as "u", "coverage" or a feature; by default the largest of
        all but the bias.
    names : tuple of str
        What the two are called.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Words stand beside the lines if it
        is at least 5 inches wide.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.certificate(ss.datasets.load_diabetes().test).get_ylabel()
    'off by at most, times'
    """
    found: list[Validation] = results_of(before, after, Validation, validate)
    ax = axes_for(ax)
    tolerance = found[0].tolerance
    sets: list[tuple[EndsByFineness, Look, str]] = []
    for v, look, name in zip(found, looks_of(found), names, strict=False):
        shown = name if len(found) > 1 else ""
        sets.append((_curve(v.certificate, question), look, shown))
    known = [
        x
        for curve, *_ in sets
        for ends in curve.values()
        for x in ends[1:]
        if x < FARTHEST_DRAWN
    ]
    top = 1.15 * max([1.4, 1.1 * tolerance, *known])
    is_wide = ax.get_window_extent().width / ax.figure.dpi >= 0.6 * WIDE
    ax.axhline(tolerance, color=GREEN, linewidth=1.3, zorder=1)
    for curve, look, name in sets:
        _ribbon(ax, curve, look, name, top)
    _numbers(ax, sets, top)
    _perfect(ax, sets[-1][0], top)
    if is_wide:
        _beside(ax, sets, tolerance, top)
    else:
        if len(sets) > 1:
            above: Look = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
            ax.legend(frameon=False, fontsize=text_size(), **above)
        margin: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
        margin["fontsize"] = text_size()
        ax.text(1.01, tolerance, f"{tolerance:g}×", color=SOFT, **margin)
    factor_ticks(ax, "y", 1.0, top)
    ax.yaxis.set_major_formatter(lambda x, _: f"{x:g}×")
    words = _LONG if is_wide else _SHORT
    ax.set_xticks(range(len(DRAWN_FINENESSES)), [words[k] for k in DRAWN_FINENESSES])
    ax.set_xlim(-0.35, len(DRAWN_FINENESSES) - 0.65)
    ax.set_ylabel("off by at most, times")
    ax.tick_params(axis="x", length=0)
    ax.spines["bottom"].set_position(("outward", UNDER))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _curve(of: Certificate, question: str | None) -> EndsByFineness:
    """Return at least, at most and perfect by fineness."""
    if question is None:
        return of.curve
    proofs = of.of(question)
    if not proofs or question == "bias":
        known = dict.fromkeys(x.question for x in of.proofs if x.question != "bias")
        msg = f"`question` must be one of {', '.join(known)}; found {quoted(question)}."
        raise InvalidInputError(msg)
    return {k: (x.at_least, x.at_most, x.perfect) for k, x in proofs.items()}


def _ends(curve: EndsByFineness, top: float) -> tuple[Any, Any, Any]:
    """Return places, and the ends of the ribbon there."""
    nothing = (1.0, math.inf, math.inf)
    ends = np.array([curve.get(k, nothing) for k in DRAWN_FINENESSES])
    return (
        np.arange(len(DRAWN_FINENESSES)),
        np.minimum(ends[:, 0], top),
        np.minimum(ends[:, 1], top),
    )


def _ribbon(ax: Axes, curve: EndsByFineness, look: Look, name: str, top: float) -> None:
    """Draw what lies between at least and at most."""
    x, low, high = _ends(curve, top)
    low = np.minimum(low, high)
    colour = look["color"]
    ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
    if low.max() > 1.02:
        ax.plot(x, low, color=colour, linewidth=1, zorder=3)
    line: Look = {"linewidth": 2, "markersize": 6, "clip_on": False, "zorder": 4}
    ax.plot(x, high, color=colour, marker=look["marker"], label=name, **line)


def _numbers(
    ax: Axes, sets: list[tuple[EndsByFineness, Look, str]], top: float
) -> None:
    """Write T beside its marks: above the highest at a place, below another."""
    box: Look = {"facecolor": CARD, "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
    text: Look = {"fontsize": text_size(), "fontweight": "bold", "ha": "center"}
    marks = [_ends(curve, top)[2] for curve, *_ in sets]
    for high, (_, look, _) in zip(marks, sets, strict=True):
        for place, value in enumerate(high):
            is_lower = value < max(other[place] for other in marks)
            words = f"{math.ceil(100 * value - 1e-6) / 100:.2f}" if value < top else "?"
            ax.annotate(
                words,
                (place, value),
                (0, -8 if is_lower else 7),
                textcoords="offset points",
                va="top" if is_lower else "bottom",
                color=look["color"],
                bbox=box,
                zorder=6,
                **text,
            )


def _beside(
    ax: Axes, sets: list[tuple[EndsByFineness, Look, str]], tolerance: float, top: float
) -> None:
    """Write what lines are beside their ends, none over another."""
    entries: list[tuple[float, str, str, str]] = []
    for curve, look, name in sets:
        _, low, high = _ends(curve, top)
        if name:
            entries.append((high[-1], name, look["color"], "bold"))
        if low.max() > 1.02 and high[-1] < top:
            words = f"at least {math.floor(100 * low.max()) / 100:.2f} somewhere"
            entries.append((high[-1] * 0.999, words, look["color"], "normal"))
    entries.append((tolerance, f"good enough: {tolerance:g}×", SOFT, "normal"))
    perfect = sets[-1][0].get(DRAWN_FINENESSES[-1], (1.0, top, top))[2]
    if perfect < top:
        entries.append((perfect, "dotted: a perfect u", SOFT, "normal"))
    # from above, each at its height or as far below as the last one needs
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    step, free = 1.5 * text_size() / height, 1.1
    for value, words, colour, weight in sorted(entries, reverse=True):
        free = min(math.log(value) / math.log(top), free - step)
        place: Look = {
            "transform": ax.transAxes,
            "va": "center",
            "fontsize": text_size(),
        }
        ax.text(1.01, free, words, color=colour, fontweight=weight, **place)


def _perfect(ax: Axes, curve: EndsByFineness, top: float) -> None:
    """Draw what a perfect u would reach."""
    values = [curve.get(k, (1.0, top, top))[2] for k in DRAWN_FINENESSES]
    dots: Look = {"color": INK, "linewidth": 1.2, "linestyle": (0, (1, 2)), "zorder": 5}
    shown = [x if x < top else math.nan for x in values]
    ax.plot(range(len(DRAWN_FINENESSES)), shown, **dots)
