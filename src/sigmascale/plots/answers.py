"""Figures of answers: verdicts, comparisons, and evidence over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.text import quoted, shorten
from ..exceptions import InvalidInputError
from ..judging.validation import FARTHEST, MARKS, Validation
from ..judging.verdicts import Region, as_factor
from ..monitoring.monitor import COLUMNS, Monitor
from ..predictions import Predictions
from ..scores.comparison import TITLES, Comparison
from .canvas import (
    AFTER,
    BEFORE,
    BLUE,
    GREY,
    INK,
    SOFT,
    TEXT,
    VERMILION,
    Look,
    axes_for,
    factor_ticks,
    legend_above,
    literal,
    log_helps,
    log_ticks,
    name_ticks,
    styled,
    variable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = {
    **{"bias": "bias", "average": "on average", "u": "at every u"},
    **{"joint": "jointly", "coverage": "95 % intervals"},
}
_FACTOR = "u should be multiplied by"


def verdicts(
    v: Validation, after: Validation | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot all verdicts: a row a question, with the factor that u should have.

    The band is the tolerance. A thin line reaches as far as the limits of all regions
    that a yes is about; the thick one are the limits of the region that the sentence
    names, and the mark is its estimate. A bias has the axis above, in units of u. Marks
    at the right are the answers: yes ✓, no ✗, cannot tell ?.

    Parameters
    ----------
    v : Validation
        What :func:`sigmascale.validate` returns.
    after : Validation, optional
        Of the same rows after recalibration, drawn below each.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure, as high as there are rows.

    Examples
    --------
    >>> import sigmascale as ss
    >>> v = ss.validate(ss.datasets.load_diabetes().test)
    >>> ax = ss.plots.verdicts(v)
    >>> ax.get_xlabel()
    'u should be multiplied by'
    """
    step = 0.27 if after is None else 0.36  # inches
    ax = axes_for(ax, v, Validation, lambda v: 1.0 + step * len(v.verdicts))
    names, sets = list(v.verdicts), _sets(v, after)
    most = max(found.reach for found, *_ in sets)
    ax.axvspan(1 / v.tolerance, v.tolerance, color=GREY, alpha=0.3, linewidth=0)
    ax.axvline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    for found, look, side in sets:
        for row, name in enumerate(names):
            if name in found.verdicts:
                _verdict(ax, found, name, row + 0.17 * side, most, look)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=_FACTOR)
    ax.set_yticks(range(len(names)), [_ROWS.get(x, literal(x, 18)) for x in names])
    ax.tick_params(axis="y", length=0)
    factor_ticks(ax, "x", 1 / most, most)
    if "bias" in v.verdicts:
        _bias_axis(ax, v.tolerance)
    if after is not None:
        _legend_of_sets(ax)
    return ax


def _sets(
    v: Validation, after: Validation | None
) -> list[tuple[Validation, Look, int]]:
    """Return what is drawn, how it looks, and on which side of the middle it is."""
    if after is None:
        return [(v, AFTER | {"label": None}, 0)]
    return [(v, BEFORE, -1), (after, AFTER, 1)]


def _bias_axis(ax: Axes, tolerance: float) -> None:
    """Add the axis of the bias above, in units of u."""
    unit = (tolerance - 1) / math.log(tolerance)
    to_bias: Any = lambda factor: unit * np.log(factor)  # noqa: E731
    to_factor: Any = lambda bias: np.exp(bias / unit)  # noqa: E731
    above = ax.secondary_xaxis("top", functions=(to_bias, to_factor))
    low, high = (unit * math.log(x) for x in ax.get_xlim())
    steps = [x for x in (0.05, 0.1, 0.25, 0.5, 1, 2) if high / x <= 3.2] or [2]
    ticks = np.arange(math.ceil(low / steps[0]), math.floor(high / steps[0]) + 1)
    above.set_xscale("linear")
    above.set_xticks(ticks * steps[0])
    above.xaxis.set_major_formatter(
        lambda x, _: f"{x:+g}".replace("-", "−") if x else "0"
    )
    above.set_xlabel("bias in units of u", fontsize=TEXT)
    above.tick_params(labelsize=TEXT)


def _verdict(
    ax: Axes, v: Validation, name: str, y: float, most: float, look: Look
) -> None:
    """Draw one verdict: limits, estimate and answer."""
    verdict, colour = v.verdicts[name], look["color"]
    worst, limits = verdict.worst, verdict.limits
    text: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
    ax.text(1.015, y, MARKS[verdict.answer], color=colour, fontweight="bold", **text)
    if worst is None:
        return

    def shown(value: float) -> float:
        return min(max(as_factor(value, name, v.tolerance), 1 / most), most)

    line: Look = {"color": colour, "solid_capstyle": "butt", "zorder": 2}
    own = [shown(worst.low), shown(worst.high)]
    ax.plot(own, [y, y], linewidth=4, alpha=0.45, **line)
    if limits is not None:
        ends = [shown(each) for each in limits]
        ax.plot(ends, [y, y], linewidth=1.2, **line)
        for end, edge, arrow in zip(ends, (1 / most, most), "<>", strict=True):
            if end == edge:  # or beyond
                ax.plot([end], [y], arrow, color=colour, markersize=4, clip_on=False)
    mark: Look = {"linestyle": "none", "markersize": 5.5, "zorder": 4}
    ax.plot([shown(worst.estimate)], [y], **mark, **look)


def _legend_of_sets(ax: Axes) -> None:
    """Add a legend of before and after beside the label of the axis."""
    handles, names = ax.get_legend_handles_labels()
    entries = dict(zip(names, handles, strict=True))
    ax.set_xlabel(_FACTOR, loc="left", fontsize=TEXT)
    look: Look = {"loc": "upper right", "bbox_to_anchor": (1, 0), "borderaxespad": 1.9}
    look |= {"frameon": False, "fontsize": TEXT, "handletextpad": 0, "borderpad": 0.2}
    ax.legend([*entries.values()], [*entries], ncols=2, columnspacing=0.8, **look)


def local(
    v: Validation,
    name: str,
    after: Validation | None = None,
    *,
    question: str | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot the factor that u should have along a variable, with its limits.

    Each tenth of the rows, or label, has an estimate and limits that hold at once for
    all of them. The grey band is the tolerance; regions that are broken have an X, and
    those that cannot be told an open mark.

    Parameters
    ----------
    v : Validation
        What :func:`sigmascale.validate` returns.
    name : str
        "u", or a feature.
    after : Validation, optional
        Of the same rows after recalibration.
    question : {"bias", "coverage"}, optional
        What else is to be drawn along the variable: the bias in units of u, or the
        factor for the width of intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the marks, Matplotlib lines.

    Examples
    --------
    >>> import sigmascale as ss
    >>> v = ss.validate(ss.datasets.load_diabetes().test)
    >>> ss.plots.local(v, "u").get_xlabel()
    'uncertainty u'
    """
    ax = axes_for(ax, v, Validation)
    if name not in v.rows.names or (question or name) not in v.verdicts:
        known = ", ".join(shorten(x, 30) for x in v.rows.names if x in v.verdicts)
        msg = f"`name` must be one of {known}; found {quoted(name)}."
        raise InvalidInputError(msg, "no-column")
    is_bias, t = question == "bias", v.tolerance
    within = (1 - t, t - 1) if is_bias else (1 / t, t)
    ax.axhspan(*within, color=GREY, alpha=0.3, linewidth=0)
    ax.axhline(0 if is_bias else 1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    drawn: list[Region] = []
    for found, look, side in _sets(v, after):
        regions = found.verdicts[question or name].regions
        regions = tuple(x for x in regions if question is None or x.column == name)
        _regions(ax, found.rows, name, regions, styled(style, look), side)
        drawn += regions
    ax.set_xlabel(variable(name))
    if not drawn:
        ax.text(0.5, 0.6, "too few rows", ha="center", transform=ax.transAxes)
    if is_bias:
        ax.set_ylabel("bias in units of u")
    else:
        ax.set_ylabel("widths should be multiplied by" if question else _FACTOR)
        values = [x for each in drawn for x in (each.estimate, each.low, each.high)]
        near = [x for x in values if 1 / FARTHEST < x < FARTHEST]
        low, high = min(0.75, 0.9 / t, *near), max(1.33, 1.1 * t, *near)
        factor_ticks(ax, "y", low / 1.05, high * 1.05)
    if after is not None:
        legend_above(ax)
    return ax


def _regions(
    ax: Axes,
    rows: Predictions,
    name: str,
    regions: tuple[Region, ...],
    look: Look,
    side: int,
) -> None:
    """Draw estimates and limits of regions along a variable."""
    if not regions:
        return
    numbers = ("estimate", "low", "high")
    found = np.array([[getattr(x, each) for each in numbers] for x in regions])
    estimate, low, high = np.clip(found, -1e3, 1e3).T
    if rows.is_labelled(name):
        x = np.arange(len(regions)) + 0.12 * side
        name_ticks(ax, [each.low_value for each in regions])
    else:
        column = rows.columns[rows.position(name)]
        first, last = float(column.min()), float(column.max())
        left, right = (
            np.array([end if value is None else value for value in values], dtype=float)
            for end, values in (
                (first, [each.low_value for each in regions]),
                (last, [each.high_value for each in regions]),
            )
        )
        is_log = log_helps(column)
        x = np.sqrt(left * right) if is_log else (left + right) / 2
        ax.hlines(estimate, left, right, color=look["color"], linewidth=1)
        if is_log:
            log_ticks(ax, "x", first, last)
    ax.vlines(x, low, high, color=look["color"], linewidth=3, alpha=0.4, zorder=2)
    label = look.pop("label", None)
    marks = {"kept": look["marker"], "open": look["marker"], "broken": "X"}
    for state, marker in marks.items():
        own = np.array([each.state == state for each in regions], dtype=bool)
        face = "none" if state == "open" else look["color"]
        mark = look | {"linestyle": "none", "markersize": 5, "zorder": 4}
        mark |= {"marker": marker, "markerfacecolor": face}
        if own.any():
            ax.plot(x[own], estimate[own], label=label, **mark)
            label = None  # one entry in the legend


def comparison(
    found: Comparison, score: str | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot paired differences of a score to the first, with intervals.

    Left of the line is better. What is surely worse has another colour and marker; an
    open mark cannot be told.

    Parameters
    ----------
    found : Comparison
        What :func:`sigmascale.compare` returns.
    score : str, optional
        "crps", "nll", "interval_score" or "energy_score"; by default that by which one
        is better.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure, as high as there are rows.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> wide = p.with_y_std(2 * p.y_std)
    >>> ax = ss.plots.comparison(ss.compare({"raw": p, "wide": wide}))
    >>> ax.get_xlabel()
    'CRPS minus that of raw'
    """
    ax = axes_for(ax, found, Comparison, lambda c: 0.63 + 0.27 * len(c.names))
    score = found.main if score is None else score
    names = list(found.differences)
    n = len(names)
    if score not in found.differences[names[0]]:
        msg = f"`score` must be one of {', '.join(found.differences[names[0]])}."
        raise InvalidInputError(msg)
    ax.axvline(0, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    for row, name in enumerate(names):
        each = found.differences[name][score]
        look: Look = {"color": BLUE, "marker": "o"}
        if each.low > 0:
            look = {"color": VERMILION, "marker": "X"}
        elif each.high >= 0:
            look = {"color": SOFT, "marker": "o", "markerfacecolor": "none"}
        ax.plot([each.low, each.high], [row, row], color=look["color"], linewidth=1.6)
        ax.plot([each.value], [row], linestyle="none", markersize=5.5, zorder=3, **look)
    ax.set_yticks(range(n), [literal(name, 24) for name in names])
    ax.locator_params(axis="x", nbins=6)
    ax.set(ylim=(n - 0.4, -0.6))
    first = literal(found.names[0], 20)
    ax.set_xlabel(f"{TITLES[score]} minus that of {first}")
    ax.tick_params(axis="y", length=0)
    return ax


def monitor(watched: Monitor, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot the evidence for each kind of change over the rows of a stream.

    The alarm is raised where a line reaches the dashed one, 1 / (1 − confidence). A
    grey area reaches from the most likely start of the change to the alarm.

    Parameters
    ----------
    watched : Monitor
        One that has seen rows.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of all lines, Matplotlib lines.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.monitor(ss.Monitor(p).update(p)).get_ylabel()
    'evidence for a change'
    """
    ax = axes_for(ax, watched, Monitor)
    rows, logs = watched.history[:, 0], watched.history[:, 2:]
    looks: list[Look] = [
        {"color": VERMILION},
        {"color": BLUE},
        {"color": INK, "linestyle": "--"},
        {"color": INK, "linestyle": ":"},
        {"color": SOFT, "linestyle": "-."},
    ]
    for column, (name, look) in enumerate(zip(COLUMNS, looks, strict=True)):
        if logs[:, column].any():
            line = {"linewidth": 1.3, "label": name, **look}
            # a logarithm of 0 is what nothing is known of yet
            known = np.where(logs[:, column] == 0, np.nan, logs[:, column])
            ax.plot(rows, 10**known, **styled(style, line))
    ax.axhline(watched.state.limit, color=SOFT, linewidth=1, linestyle="--", zorder=1)
    ax.set_yscale("log")
    if watched.alarm is not None:
        ends = watched.alarm.since, watched.alarm.row
        ax.axvspan(*ends, color=GREY, alpha=0.3, linewidth=0, label="change")
    ax.set(xlabel="rows", ylabel="evidence for a change")
    legend_above(ax)
    return ax
