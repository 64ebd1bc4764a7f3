"""Figures of answers: verdicts, comparisons, and evidence over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.text import quoted, shorten
from ..advice import validate
from ..exceptions import InvalidInputError
from ..judging import Region, Validation
from ..judging.questions import Bias
from ..judging.validation import FARTHEST
from ..judging.verdicts import MARKS, as_factor
from ..monitoring.monitor import COLUMNS, Monitor, over_time
from ..predictions import Predictions
from ..scores.comparison import TITLES, Comparison, compare
from ..scores.intervals import Estimate
from .canvas import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SOFT,
    VERMILION,
    Look,
    axes_for,
    explain,
    factor_ticks,
    in_lines,
    label_axes,
    letter,
    literal,
    log_helps,
    log_ticks,
    looks_of,
    name_ticks,
    panels,
    raise_legend,
    results_of,
    styled,
    text_size,
    variable,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = {
    **{"bias": "bias", "average": "on average", "u": "at every u"},
    **{"joint": "jointly", "coverage": "95 % intervals"},
}
_FACTOR = "u should be multiplied by"
_TICK: Look = {"color": INK, "marker": "|", "markersize": 9, "markeredgewidth": 2}


def verdicts(
    before: Predictions | Validation,
    after: Predictions | Validation | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot all verdicts: a row a question, with the factor that u should have.

    The band is the tolerance, and a bar the range in which all parts lie: inside the
    band is a yes. The mark is the estimate of the part that may be off by most, or of
    what is at fault; a tick is the limit of a fault, which is at least so far off.
    Arrows stand where the axis ends. A bias has the axis above, in units of u. Marks at
    the right are the answers: yes ✓, no ✗, cannot tell ?.

    Parameters
    ----------
    before : Predictions or Validation
        Rows with errors, or what :func:`sigmascale.validate` returns.
    after : Predictions or Validation, optional
        Of the same rows after recalibration, drawn below each.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure, as high as there are rows.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ax = ss.plots.verdicts(ss.datasets.load_diabetes().test)
    >>> ax.get_xlabel()
    'u should be multiplied by'
    """
    found = results_of(before, after, Validation, validate)
    first, names = found[0], list(found[0].verdicts)
    step = 0.27 if len(found) == 1 else 0.42  # inches
    ax = axes_for(ax, 1.5 + step * len(names))
    most, tolerance = max(v.reach for v in found), first.tolerance
    right: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0}
    right["label"] = f"good enough: {1 / tolerance:.2g} to {tolerance:.4g}"
    ax.axvspan(1 / tolerance, tolerance, **right)
    ax.axvline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    for v, look, side in zip(found, looks_of(found), _sides(found), strict=True):
        for row, name in enumerate(names):
            if name in v.verdicts:
                _verdict(ax, v, name, row + 0.2 * side, most, look)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=in_lines(_FACTOR, width_of(ax)))
    ax.set_yticks(range(len(names)), [_ROWS.get(x, literal(x, 18)) for x in names])
    ax.tick_params(axis="y", length=0)
    factor_ticks(ax, "x", 1 / most, most)
    if "bias" in first.verdicts:
        _bias_axis(ax, tolerance)
    if any(x.answer == "no" for v in found for x in v.verdicts.values()):
        ax.plot([], [], linestyle="none", label="a fault is off by at least", **_TICK)
    longest = max(len(label.get_text()) for label in ax.get_yticklabels())
    _explain_limits(ax, letter() * longest)
    return ax


def _sides(found: list[Validation]) -> tuple[int, ...]:
    """Return on which side of the middle of its row each set is drawn."""
    return (-1, 1) if len(found) > 1 else (0,)


def _explain_limits(ax: Axes, beside: float) -> None:
    """Put a legend of marks and lines above the axes, and above an axis of the bias."""
    ax.plot([], [], color=SOFT, linewidth=4, alpha=0.45, label="all parts")
    legend = explain([ax], beside=beside)
    if ax.child_axes:  # of ticks, their numbers and their label
        raise_legend(legend, ax, 2.4 * text_size() + 14)


def _bias_axis(ax: Axes, tolerance: float) -> None:
    """Add the axis of the bias above, in units of u."""
    unit = Bias().bound(tolerance) / math.log(tolerance)
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
    above.set_xlabel("bias in units of u", fontsize=text_size())
    above.tick_params(labelsize=text_size())


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

    # the range in which all parts lie: inside the band is yes
    line: Look = {"color": colour, "solid_capstyle": "butt", "zorder": 2}
    if limits is not None:
        ends = [shown(x) for x in limits]
        ax.plot(ends, [y, y], linewidth=4, alpha=0.45, **line)
        for end, edge, arrow in zip(ends, (1 / most, most), "<>", strict=True):
            if end == edge:  # or beyond
                ax.plot([end], [y], arrow, color=colour, markersize=4, clip_on=False)
    # a fault is at least as far off as its limit
    if verdict.answer == "no":
        right = 0.0 if name == "bias" else 1.0
        near = worst.low if worst.low > right else worst.high
        ax.plot([shown(near)], [y], zorder=5, **_TICK)
    at = shown(worst.estimate)
    mark: Look = {"linestyle": "none", "markersize": 5.5, "zorder": 4}
    mark = {"label": "worst part", **mark, **look}
    if at in (1 / most, most):
        mark["marker"] = "<" if at < 1 else ">"
    ax.plot([at], [y], clip_on=False, **mark)


def local(
    before: Predictions | Validation,
    after: Predictions | Validation | None = None,
    *,
    by: str = "u",
    question: str | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot the factor that u should have along a variable, with its limits.

    Each tenth of the rows (or coarser parts, of few rows), or label, has an estimate
    and limits that hold at once for all of them. The grey band is the tolerance;
    regions beyond it have an X, and those that cannot be told an open mark.

    Parameters
    ----------
    before : Predictions or Validation
        Rows with errors, or what :func:`sigmascale.validate` returns.
    after : Predictions or Validation, optional
        Of the same rows after recalibration, drawn beside.
    by : str, default "u"
        The variable: "u", or a feature.
    question : {"bias", "coverage"}, optional
        What else is to be drawn along the variable: the bias in units of u, or the
        factor for the width of intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half.
    **style
        Properties of the marks, Matplotlib lines.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.local(ss.datasets.load_diabetes().test, by="bmi").get_xlabel()
    'bmi'
    """
    found = results_of(before, after, Validation, validate)
    first, tolerance = found[0], found[0].tolerance
    names = [*first.rows.names, *(["time"] if "time" in first.verdicts else [])]
    if by not in names or (question or by) not in first.verdicts:
        known = ", ".join(shorten(x, 30) for x in names if x in first.verdicts)
        msg = f"`by` must be one of {known}; found {quoted(by)}."
        raise InvalidInputError(msg, "no-column")

    is_bias = question == "bias"
    bound = Bias().bound(tolerance)
    within = (-bound, bound) if is_bias else (1 / tolerance, tolerance)
    drawn: list[Region] = []
    axes = panels(ax, found)
    for v, look, own in zip(found, looks_of(found), axes, strict=True):
        band: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0}
        own.axhspan(*within, **band, label="good enough")
        line: Look = {"color": INK, "linewidth": 0.8, "linestyle": "--", "zorder": 1}
        own.axhline(0 if is_bias else 1, **line)
        regions = v.verdicts[question or by].regions
        regions = tuple(x for x in regions if question is None or x.column == by)
        _regions(own, v.rows, by, regions, styled(style, look))
        drawn += regions
        if not regions:
            own.text(0.5, 0.6, "too few rows", ha="center", transform=own.transAxes)
    if not is_bias:
        values = [x for each in drawn for x in (each.estimate, each.low, each.high)]
        near = [x for x in values if 1 / FARTHEST < x < FARTHEST]
        low, high = min(0.75, 0.9 / tolerance, *near), max(1.33, 1.1 * tolerance, *near)
        for own in axes:
            factor_ticks(own, "y", low / 1.05, high * 1.05)
    wide = "widths should be multiplied by" if question else _FACTOR
    label_axes(
        axes,
        variable(by, 40 if len(axes) == 1 else 24),
        "bias in units of u" if is_bias else wide,
    )
    explain(axes, looks_of(found))
    return axes[0]


def _regions(
    ax: Axes,
    rows: Predictions,
    name: str,
    regions: tuple[Region, ...],
    look: Look,
) -> None:
    """Draw estimates and limits of regions along a variable."""
    if not regions:
        return
    numbers = ("estimate", "low", "high")
    found = np.array([[getattr(x, each) for each in numbers] for x in regions])
    estimate, low, high = np.clip(found, -1e3, 1e3).T
    is_time = name not in rows.names
    if is_time and rows.time is not None and rows.time.dtype.kind == "M":
        x = _dates(ax, rows, regions, estimate, look)
    elif not is_time and rows.is_labelled(name):
        x = np.arange(len(regions))
        name_ticks(ax, [each.low_value for each in regions])
    else:
        column = rows.time if is_time else rows.columns[rows.position(name)]
        assert column is not None
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
    bars: Look = {"color": look["color"], "linewidth": 3, "alpha": 0.4, "zorder": 2}
    ax.vlines(x, low, high, **bars, label="limits of all at once")
    marks = {"kept": "o", "open": "o", "broken": "X"}
    for state, marker in marks.items():
        own = np.array([each.state == state for each in regions], dtype=bool)
        face = "none" if state == "open" else look["color"]
        mark = look | {"linestyle": "none", "markersize": 5, "zorder": 4}
        mark |= {"marker": marker, "markerfacecolor": face, "label": _STATES[state]}
        if own.any():
            ax.plot(x[own], estimate[own], **mark)


def _dates(
    ax: Axes,
    rows: Predictions,
    regions: tuple[Region, ...],
    estimate: Any,
    look: Look,
) -> Any:
    """Draw ranges of dates; return their middles."""
    assert rows.time is not None
    first, last = rows.time.min(), rows.time.max()
    left, right = (
        np.array([end if x is None else x for x in values], "datetime64[us]")
        for end, values in (
            (first, [x.low_value for x in regions]),
            (last, [x.high_value for x in regions]),
        )
    )
    ax.hlines(estimate, left, right, color=look["color"], linewidth=1)
    ax.tick_params(axis="x", rotation=20)
    return left + (right - left) // 2


_STATES = {"kept": "right", "open": "cannot tell", "broken": "wrong"}


def comparison(
    compared: Comparison | Mapping[str, Predictions],
    *,
    score: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot paired differences of a score to the first, with intervals.

    Left of the line is better. What is surely worse has an X; an open mark cannot be
    told.

    Parameters
    ----------
    compared : Comparison, or dict of str to Predictions
        What :func:`sigmascale.compare` returns, or takes.
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
    >>> ax = ss.plots.comparison({"raw": p, "wide": wide})
    >>> ax.get_xlabel()
    'CRPS minus that of raw'
    """
    found: Any = compare(compared) if isinstance(compared, Mapping) else compared
    if not isinstance(found, Comparison):
        msg = (
            f"Pass a dict of Predictions or a Comparison; found {type(found).__name__}."
        )
        raise InvalidInputError(msg, "kind")
    score = found.main if score is None else score
    names = list(found.differences)
    if score not in found.differences[names[0]]:
        msg = f"`score` must be one of {', '.join(found.differences[names[0]])}."
        raise InvalidInputError(msg)
    ax = axes_for(ax, 0.9 + 0.27 * len(names))
    ax.axvline(0, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    for row, name in enumerate(names):
        difference = found.differences[name][score]
        mark: Look = {
            "color": BLUE,
            "linestyle": "none",
            "markersize": 5.5,
            "zorder": 3,
        }
        mark |= _mark_of(difference)
        limits = [difference.low, difference.high]
        ax.plot(limits, [row, row], color=BLUE, linewidth=1.6)
        ax.plot([difference.value], [row], **mark)
    longest = max(8, int(width_of(ax) / (2 * letter())))
    ax.set_yticks(range(len(names)), [literal(name, longest) for name in names])
    ax.set(ylim=(len(names) - 0.4, -0.6))
    ax.xaxis.set_major_formatter(_signed)
    ax.locator_params(axis="x", nbins=max(2, int(width_of(ax) / (9 * letter()))))
    first = literal(found.names[0], 20)
    label_axes([ax], f"{TITLES[score]} minus that of {first}", "")
    ax.tick_params(axis="y", length=0)
    longest = max(len(label.get_text()) for label in ax.get_yticklabels())
    explain([ax], beside=letter() * longest)
    return ax


def _mark_of(difference: Estimate) -> Look:
    """Return how a difference is marked: better, worse, or not to be told."""
    if difference.high < 0:
        return {"marker": "o", "label": "better"}
    if difference.low > 0:
        return {"marker": "X", "label": "worse"}
    return {"marker": "o", "markerfacecolor": "none", "label": "cannot tell"}


def _signed(value: float, _: Any) -> str:
    """Return a tick of a difference."""
    return f"{value:+.3g}".replace("-", "−") if value else "0"


def monitor(
    stream: Predictions | Monitor, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the evidence for each kind of change over the rows of a stream.

    The alarm is raised where a line reaches the dashed one, 1 / (1 − confidence). A
    grey area reaches from the most likely start of the change to the alarm.

    Parameters
    ----------
    stream : Monitor or Predictions
        One that has seen rows; or rows with errors and times, of which the first
        quarter, 200 at least, are taken to be normal.
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
    watched: Monitor = results_of(stream, None, Monitor, over_time)[0]
    ax = axes_for(ax)
    rows, logs = watched.history[:, 0], watched.history[:, 2:]
    # colours of their own: none of these is a set
    looks: list[Look] = [
        {"color": ORANGE},
        {"color": GREEN},
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
    limit: Look = {"color": VERMILION, "linewidth": 1, "linestyle": "--", "zorder": 1}
    ax.axhline(
        watched.state.limit, **limit, label=f"alarm at {watched.state.limit:.3g}"
    )
    ax.set_yscale("log")
    if watched.alarm is not None:
        ends = watched.alarm.since, watched.alarm.row
        ax.axvspan(
            *ends, color=GREY, alpha=0.3, linewidth=0, label="from change to alarm"
        )
    label_axes([ax], "rows", "evidence for a change")
    explain([ax])
    return ax
