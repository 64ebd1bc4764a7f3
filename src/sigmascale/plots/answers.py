"""Figures of answers: verdicts, comparisons, and evidence over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparison import TITLES, Comparison
from ..exceptions import InvalidInputError
from ..judging.validation import Validation
from ..judging.verdicts import Region
from ..monitoring.monitor import COLUMNS, Monitor
from ..predictions import Predictions
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

MARKS = {"yes": "✓", "no": "✗", "cannot tell": "?"}
_FARTHEST = 8.0  # factors beyond it are drawn as arrows
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
    names = list(v.verdicts)
    height = 1.0 + (0.27 if after is None else 0.36) * len(names)
    ax = axes_for(ax, v, Validation, (4.5, height))
    sets = [v] if after is None else [v, after]
    looks = [AFTER | {"label": None}] if after is None else [BEFORE, AFTER]
    most = max(_reach(each) for each in sets)
    ax.axvspan(1 / v.tolerance, v.tolerance, color=GREY, alpha=0.3, linewidth=0)
    ax.axvline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    for k, (found, look) in enumerate(zip(sets, looks, strict=True)):
        offset = 0.0 if after is None else 0.34 * k - 0.17
        for row, name in enumerate(names):
            if name in found.verdicts:
                _verdict(ax, found, name, row + offset, most, look)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=_FACTOR)
    labels = [_ROWS.get(name, literal(name, 18)) for name in names]
    ax.set_yticks(range(len(names)), labels)
    ax.tick_params(axis="y", length=0)
    factor_ticks(ax, "x", 1 / most, most)
    if "bias" in v.verdicts:
        _bias_axis(ax, v.tolerance)
    if after is not None:
        _legend_of_sets(ax)
    return ax


def _reach(v: Validation) -> float:
    """Return how far the axis reaches: to estimates and most limits, 1.6 at least."""
    ends = [1.6, 1.3 * v.tolerance]
    for name, verdict in v.verdicts.items():
        if verdict.worst is not None:
            limits = verdict.limits or ()
            values = [verdict.worst.estimate, *limits]
            ends += [_as_factor(x, name, v.tolerance) for x in values]
    far = [max(x, 1 / x) for x in ends if x > 0]
    estimates = [x for x in far if x < _FARTHEST] or [_FARTHEST]
    return 1.08 * max(estimates)


def _as_factor(value: float, name: str, tolerance: float) -> float:
    """Return where a value lies; a bias at its tolerance where a factor at its own."""
    if name != "bias":
        return value
    most = 2 * math.log(_FARTHEST)
    at = value / (tolerance - 1) * math.log(tolerance)
    return math.exp(min(max(at, -most), most))


def _bias_axis(ax: Axes, tolerance: float) -> None:
    """Add the axis of the bias above, in units of u."""
    unit = (tolerance - 1) / math.log(tolerance)
    above = ax.secondary_xaxis(
        "top", functions=(lambda f: unit * np.log(f), lambda b: np.exp(b / unit))
    )
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
    verdict = v.verdicts[name]
    colour = look["color"]
    text: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
    ax.text(1.015, y, MARKS[verdict.answer], color=colour, fontweight="bold", **text)
    worst, limits = verdict.worst, verdict.limits
    if worst is None:
        return
    spans = [((worst.low, worst.high), 4.0, 0.45)]
    if limits is not None:
        spans.append((limits, 1.2, 1.0))
    for (low, high), width, alpha in spans:
        ends = [_as_factor(x, name, v.tolerance) for x in (low, high)]
        shown = [min(max(x, 1 / most), most) for x in ends]
        line: Look = {"color": colour, "linewidth": width, "alpha": alpha, "zorder": 2}
        ax.plot(shown, [y, y], solid_capstyle="butt", **line)
        for end, at, arrow in zip(ends, shown, "<>", strict=True):
            if not math.isclose(end, at) and width < 2:
                ax.plot([at], [y], arrow, color=colour, markersize=4, clip_on=False)
    at = _as_factor(worst.estimate, name, v.tolerance)
    at = min(max(at, 1 / most), most)
    mark: Look = {"linestyle": "none", "markersize": 5.5, "zorder": 4}
    ax.plot([at], [y], **mark, **look, markeredgecolor=colour)


def _legend_of_sets(ax: Axes) -> None:
    """Add a legend of before and after beside the label of the axis."""
    handles, names = ax.get_legend_handles_labels()
    entries = dict(zip(names, handles, strict=True))
    ax.set_xlabel(_FACTOR, loc="left")
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
        known = ", ".join(x for x in v.rows.names if x in v.verdicts)
        msg = f"`name` must be one of {known}; found {name!r}."
        raise InvalidInputError(msg, "no-column")
    sets = [(v, AFTER | {"label": None})]
    if after is not None:
        sets = [(v, BEFORE), (after, AFTER)]
    neutral = 0.0 if question == "bias" else 1.0
    reach = v.tolerance - 1
    ends = (-reach, reach) if question == "bias" else (1 / v.tolerance, v.tolerance)
    ax.axhspan(*ends, color=GREY, alpha=0.3, linewidth=0)
    ax.axhline(neutral, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    drawn = []
    for k, (found, look) in enumerate(sets):
        regions = [
            each
            for each in found.verdicts[question or name].regions
            if question is None or each.column == name
        ]
        drawn += regions
        shift = 0.0 if after is None else 0.24 * k - 0.12
        _regions(ax, found.rows, name, regions, styled(style, look), shift)
    if question == "bias":
        ax.set_ylabel("bias in units of u")
    else:
        ax.set_ylabel("intervals should be × by" if question else _FACTOR)
        _factor_range(ax, v.tolerance, drawn)
    ax.set_xlabel(variable(name))
    if after is not None:
        legend_above(ax)
    return ax


def _factor_range(ax: Axes, tolerance: float, regions: list[Region]) -> None:
    """Give an axis of factors a range: to estimates and most limits."""
    limits = [x for each in regions for x in (each.low, each.high)]
    estimates = [each.estimate for each in regions]
    near = [x for x in limits if 1 / _FARTHEST < x < _FARTHEST]
    low = min([0.75, 0.9 / tolerance, *near, *estimates])
    high = max([1.33, 1.1 * tolerance, *near, *estimates])
    factor_ticks(ax, "y", max(low / 1.05, 0.01), min(high * 1.05, 100.0))


def _regions(
    ax: Axes,
    rows: Predictions,
    name: str,
    regions: list[Region],
    look: Look,
    shift: float,
) -> None:
    """Draw estimates and limits of regions along a variable."""
    column = rows.columns[rows.position(name)]
    labelled = isinstance(regions[0].low_value, str) if regions else False
    estimate, low, high = (
        np.array([getattr(each, x) for each in regions])
        for x in ("estimate", "low", "high")
    )
    if labelled:
        x = np.arange(len(regions)) + shift
        name_ticks(ax, [each.low_value for each in regions])
    else:
        ends = [float(column.min()), float(column.max())]
        left = np.array(
            [ends[0] if r.low_value is None else r.low_value for r in regions]
        )
        right = np.array(
            [ends[1] if r.high_value is None else r.high_value for r in regions]
        )
        on_log = log_helps(column)
        x = np.sqrt(left * right) if on_log else (left + right) / 2
        for k in range(len(regions)):  # over which values each reaches
            ax.plot(
                [left[k], right[k]], [estimate[k]] * 2, color=look["color"], linewidth=1
            )
        if on_log:
            log_ticks(ax, "x", *ends)
    ax.vlines(x, low, high, color=look["color"], linewidth=3, alpha=0.4, zorder=2)
    label = look.pop("label", None)
    for state, marker, face in (
        ("kept", look["marker"], look["color"]),
        ("open", look["marker"], "none"),
        ("broken", "X", look["color"]),
    ):
        own = np.array([each.state == state for each in regions], dtype=bool)
        mark = {"linestyle": "none", "markersize": 5, "zorder": 4, **look}
        mark |= {"marker": marker, "markerfacecolor": face}
        if own.any():
            ax.plot(x[own], estimate[own], label=label, **mark)
            label = None


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
    >>> wide = p.changed(y_std=2 * p.y_std)
    >>> ax = ss.plots.comparison(ss.compare({"raw": p, "wide": wide}))
    >>> ax.get_xlabel()
    'CRPS minus that of raw'
    """
    n = len(found.names) - 1 if isinstance(found, Comparison) else 1
    ax = axes_for(ax, found, Comparison, (4.5, 0.9 + 0.27 * n))
    score = found.main if score is None else score
    names = list(found.differences)
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
            ax.plot(rows, 10 ** logs[:, column], **styled(style, line))
    ax.axhline(watched.state.limit, color=SOFT, linewidth=1, linestyle="--", zorder=1)
    ax.set_yscale("log")
    if watched.alarm is not None:
        ends = watched.alarm.since, watched.alarm.row
        ax.axvspan(*ends, color=GREY, alpha=0.3, linewidth=0, label="change")
    ax.set(xlabel="rows", ylabel="evidence for a change")
    legend_above(ax)
    return ax
