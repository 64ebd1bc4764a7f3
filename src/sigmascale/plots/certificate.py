"""The figure of certificates: how right, how finely, before and after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.text import quoted
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions
from ..validation.advice import validate
from ..validation.certificate import DRAWN_FINENESSES, FARTHEST_DRAWN, Certificate
from ..validation.validation import Validation
from .canvas import (
    CARD,
    GREEN,
    INK,
    SOFT,
    Look,
    axes_for,
    explain,
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
# at least, at most, and what a perfect u would reach
EndsByFineness = dict[int, tuple[float, float, float]]
NO_ENDS = (1.0, math.inf, math.inf)  # of a fineness for which rows are too few


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
    stages: list[Validation] = results_of(before, after, Validation, validate)
    ax = axes_for(ax)
    tolerance = stages[0].tolerance
    sets: list[tuple[EndsByFineness, Look, str]] = []
    for v, look, name in zip(stages, looks_of(stages), names, strict=False):
        shown_name = name if len(stages) > 1 else ""
        sets.append((_curve(v.certificate, question), look, shown_name))

    # the axis holds the tolerance and all that is not absurd, with some room above
    highest = max(1.4, 1.1 * tolerance)
    for curve, _, _ in sets:
        for _, at_most, perfect in curve.values():
            for factor in (at_most, perfect):
                if factor < FARTHEST_DRAWN:
                    highest = max(highest, factor)
    top = 1.15 * highest

    # lines and numbers
    ax.axhline(tolerance, color=GREEN, linewidth=1.3, zorder=1)
    for curve, look, name in sets:
        _ribbon(ax, curve, look, name, top)
    _numbers(ax, sets, top)
    _perfect(ax, sets[-1][0], top)

    # what they are: beside their ends if there is room, else in a legend
    is_wide = ax.get_window_extent().width / ax.figure.dpi >= 0.6 * WIDE
    if is_wide:
        _beside(ax, sets, tolerance, top)
    else:
        explain([ax])
        margin: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
        margin["fontsize"] = text_size()
        ax.text(1.01, tolerance, f"{tolerance:g}×", color=SOFT, **margin)

    # axes
    factor_ticks(ax, "y", 1.0, top)
    ax.yaxis.set_major_formatter(lambda factor, _: f"{factor:g}×")
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
    """Return at least, at most and perfect by fineness, of one question or of all."""
    if question is None:
        return of.curve
    proofs = of.of(question)
    if not proofs or question == "bias":
        asked = dict.fromkeys(proof.question for proof in of.proofs)
        asked.pop("bias", None)
        msg = f"`question` must be one of {', '.join(asked)}; found {quoted(question)}."
        raise InvalidInputError(msg)
    curve = {}
    for fineness, proof in proofs.items():
        curve[fineness] = (proof.at_least, proof.at_most, proof.perfect)
    return curve


def _ends(curve: EndsByFineness, top: float) -> tuple[Any, Any, Any]:
    """Return places along x, at least and at most there; none is above the top."""
    ends = np.array([curve.get(fineness, NO_ENDS) for fineness in DRAWN_FINENESSES])
    places = np.arange(len(DRAWN_FINENESSES))
    at_least, at_most, _ = np.minimum(ends, top).T
    return places, at_least, at_most


def _ribbon(ax: Axes, curve: EndsByFineness, look: Look, name: str, top: float) -> None:
    """Draw what lies between at least and at most, up to the top of the axes."""
    places, low, high = _ends(curve, top)
    low = np.minimum(low, high)
    colour = look["color"]
    ax.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
    if low.max() > 1.02:  # else there is no fault to be seen
        thin: Look = {"linewidth": 1, "zorder": 3, "label": "" if name else "at least"}
        ax.plot(places, low, color=colour, **thin)
    line: Look = {"linewidth": 2, "markersize": 6, "clip_on": False, "zorder": 4}
    line["label"] = name or "at most (95 % sure)"
    ax.plot(places, high, color=colour, marker=look["marker"], **line)


def _numbers(
    ax: Axes, sets: list[tuple[EndsByFineness, Look, str]], top: float
) -> None:
    """Write T beside its marks: above the highest at a place, below another."""
    box: Look = {"facecolor": CARD, "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
    text: Look = {"fontsize": text_size(), "fontweight": "bold", "ha": "center"}
    text |= {"textcoords": "offset points", "bbox": box, "zorder": 6}
    above: Look = {"xytext": (0, 7), "va": "bottom"}
    below: Look = {"xytext": (0, -8), "va": "top"}
    heights = [_ends(curve, top)[2] for curve, _, _ in sets]
    highest = np.max(heights, axis=0)
    for high, (_, look, _) in zip(heights, sets, strict=True):
        for place, value in enumerate(high):
            # rounded up, as it is what u is off by at most
            words = f"{math.ceil(100 * value - 1e-6) / 100:.2f}" if value < top else "?"
            side = below if value < highest[place] else above
            at = (place, value)
            ax.annotate(words, at, color=look["color"], **side, **text)


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
    _, _, perfect = sets[-1][0].get(DRAWN_FINENESSES[-1], NO_ENDS)
    if perfect < top:
        entries.append((perfect, "dotted: a perfect u", SOFT, "normal"))

    # from above, each at its height or as far below as the last one needs
    look = {"transform": ax.transAxes, "va": "center", "fontsize": text_size()}
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    step = 1.5 * text_size() / points
    height = 1.1  # as a part of the axes
    for value, words, colour, weight in sorted(entries, reverse=True):
        height = min(math.log(value) / math.log(top), height - step)
        ax.text(1.01, height, words, color=colour, fontweight=weight, **look)


def _perfect(ax: Axes, curve: EndsByFineness, top: float) -> None:
    """Draw what a perfect u would reach, unless that is above the top of the axes."""
    dots: Look = {"color": INK, "linewidth": 1.2, "linestyle": (0, (1, 2)), "zorder": 5}
    factors = []
    for fineness in DRAWN_FINENESSES:
        _, _, perfect = curve.get(fineness, NO_ENDS)
        factors.append(perfect if perfect < top else math.nan)
    ax.plot(range(len(factors)), factors, label="a perfect u", **dots)
