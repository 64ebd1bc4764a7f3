"""Figures of answers: verdicts, comparisons, and evidence over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.text import quoted, shorten
from ..exceptions import InvalidInputError
from ..monitoring.detector import COLUMNS
from ..monitoring.monitor import Monitor, over_time
from ..predictions.predictions import Predictions
from ..scores.comparison import TITLES, Comparison, compare
from ..scores.intervals import Estimate
from ..validation.advice import validate
from ..validation.questions import Bias
from ..validation.validation import FARTHEST, Validation
from ..validation.verdicts import MARKS, Region, as_factor
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

_ROW_NAMES = {
    "bias": "bias",
    "average": "on average",
    "u": "at every u",
    "joint": "jointly",
    "coverage": "95 % intervals",
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
    stages = results_of(before, after, Validation, validate)
    first = stages[0]
    names = list(first.verdicts)
    inches_a_row = 0.27 if len(stages) == 1 else 0.42
    ax = axes_for(ax, 0.8 + inches_a_row * len(names))

    # the band of what is good enough, and 1
    tolerance = first.tolerance
    band: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0}
    band["label"] = f"good enough: {1 / tolerance:.2g} to {tolerance:.4g}"
    ax.axvspan(1 / tolerance, tolerance, **band)
    ax.axvline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)

    # the verdicts of each set; of two, one above the middle of a row, and one below
    reach = max(v.reach for v in stages)
    offsets = (0.0,) if len(stages) == 1 else (-0.2, 0.2)
    for v, look, offset in zip(stages, looks_of(stages), offsets, strict=True):
        for row, name in enumerate(names):
            if name in v.verdicts:
                _verdict(ax, v, name, row + offset, reach, look)

    # the axes: questions beside the rows, factors below, the bias above
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=in_lines(_FACTOR, width_of(ax)))
    row_names = [_ROW_NAMES.get(name, literal(name, 18)) for name in names]
    ax.set_yticks(range(len(names)), row_names)
    ax.tick_params(axis="y", length=0)
    factor_ticks(ax, "x", 1 / reach, reach)
    if "bias" in first.verdicts:
        _bias_axis(ax, tolerance)

    # the legend, which explains ticks where there are some
    answers: set[str] = set()
    for v in stages:
        answers.update(verdict.answer for verdict in v.verdicts.values())
    if "no" in answers:
        ax.plot([], [], linestyle="none", label="a fault is off by at least", **_TICK)
    longest = max(len(label.get_text()) for label in ax.get_yticklabels())
    _explain_limits(ax, letter() * longest)
    return ax


def _explain_limits(ax: Axes, beside: float) -> None:
    """Put a legend above the axes, and above the axis of the bias if there is one.

    Names of rows take `beside` points of its width.
    """
    ax.plot([], [], color=SOFT, linewidth=4, alpha=0.45, label="all parts")
    legend = explain([ax], beside=beside)
    if ax.child_axes:  # of ticks, their numbers and their label
        raise_legend(legend, ax, 2.4 * text_size() + 14)


def _bias_axis(ax: Axes, tolerance: float) -> None:
    """Add the axis of the bias above, in units of u.

    It is so scaled that a bias that is just good enough stands where the tolerance is.
    """
    # bias = unit · ln factor
    unit = Bias().bound(tolerance) / math.log(tolerance)
    to_bias: Any = lambda factor: unit * np.log(factor)  # noqa: E731
    to_factor: Any = lambda bias: np.exp(bias / unit)  # noqa: E731
    above = ax.secondary_xaxis("top", functions=(to_bias, to_factor))

    # ticks at multiples of the finest step that leaves at most three a side
    low, high = (unit * math.log(factor) for factor in ax.get_xlim())
    steps = (0.05, 0.1, 0.25, 0.5, 1, 2)
    step = next((step for step in steps if high / step <= 3.2), steps[-1])
    multiples = np.arange(math.ceil(low / step), math.floor(high / step) + 1)
    above.set_xscale("linear")
    above.set_xticks(multiples * step)
    above.xaxis.set_major_formatter(_signed)
    above.set_xlabel("bias in units of u", fontsize=text_size())
    above.tick_params(labelsize=text_size())


def _verdict(
    ax: Axes, v: Validation, name: str, y: float, reach: float, look: Look
) -> None:
    """Draw one verdict at the height `y`: limits, estimate and answer.

    The axis reaches from 1 / `reach` to `reach`; arrows stand for what lies beyond.
    """
    verdict = v.verdicts[name]
    worst = verdict.worst
    colour = look["color"]

    # the answer, beside the axes
    text: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
    ax.text(1.015, y, MARKS[verdict.answer], color=colour, fontweight="bold", **text)
    if worst is None:
        return

    def shown(value: float) -> float:
        return min(max(as_factor(value, name, v.tolerance), 1 / reach), reach)

    # the range in which all parts lie: inside the band is yes
    if verdict.limits is not None:
        ends = [shown(limit) for limit in verdict.limits]
        line: Look = {"color": colour, "solid_capstyle": "butt", "zorder": 2}
        ax.plot(ends, [y, y], linewidth=4, alpha=0.45, **line)
        for end, edge, arrow in zip(ends, (1 / reach, reach), "<>", strict=True):
            if end == edge:  # or beyond
                ax.plot([end], [y], arrow, color=colour, markersize=4, clip_on=False)

    # a fault is at least as far off as its limit
    if verdict.answer == "no":
        perfect = 0.0 if name == "bias" else 1.0
        near = worst.low if worst.low > perfect else worst.high
        ax.plot([shown(near)], [y], zorder=5, **_TICK)

    # the estimate of the worst part
    estimate = shown(worst.estimate)
    mark: Look = {"linestyle": "none", "markersize": 5.5, "zorder": 4}
    mark = {"label": "worst part", **mark, **look}
    if estimate in (1 / reach, reach):
        mark["marker"] = "<" if estimate < 1 else ">"
    ax.plot([estimate], [y], clip_on=False, **mark)


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
    stages = results_of(before, after, Validation, validate)
    first = stages[0]
    tolerance = first.tolerance
    names = list(first.rows.names)
    if "time" in first.verdicts:
        names.append("time")
    if by not in names or (question or by) not in first.verdicts:
        judged = [shorten(name, 30) for name in names if name in first.verdicts]
        msg = f"`by` must be one of {', '.join(judged)}; found {quoted(by)}."
        raise InvalidInputError(msg, "no-column")

    # what is drawn, where it is right, and where it is good enough
    if question == "bias":
        quantity = "bias in units of u"
        perfect = 0.0
        bound = Bias().bound(tolerance)
        good = (-bound, bound)
    else:
        quantity = "widths should be multiplied by" if question else _FACTOR
        perfect = 1.0
        good = (1 / tolerance, tolerance)
    band: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0, "label": "good enough"}
    line: Look = {"color": INK, "linewidth": 0.8, "linestyle": "--", "zorder": 1}

    # the regions of each set, in a panel of its own
    drawn: list[Region] = []
    axes = panels(ax, stages)
    looks = looks_of(stages)
    for v, look, panel in zip(stages, looks, axes, strict=True):
        panel.axhspan(*good, **band)
        panel.axhline(perfect, **line)
        regions = v.verdicts[question or by].regions
        if question is not None:  # which is asked of all columns
            regions = tuple(region for region in regions if region.column == by)
        if regions:
            _draw_regions(panel, v.rows, by, regions, styled(style, look))
        else:
            panel.text(0.5, 0.6, "too few rows", ha="center", transform=panel.transAxes)
        drawn += regions

    if question != "bias":
        low, high = _range_of_factors(drawn, tolerance)
        for panel in axes:
            factor_ticks(panel, "y", low, high)
    label_axes(axes, variable(by, 40 if len(axes) == 1 else 24), quantity)
    explain(axes, looks)
    return axes[0]


def _range_of_factors(regions: list[Region], tolerance: float) -> tuple[float, float]:
    """Return the range of an axis that holds regions, but for what is absurd."""
    low, high = min(0.75, 0.9 / tolerance), max(1.33, 1.1 * tolerance)
    for region in regions:
        for factor in (region.estimate, region.low, region.high):
            if 1 / FARTHEST < factor < FARTHEST:
                low, high = min(low, factor), max(high, factor)
    return low / 1.15, high * 1.15


def _draw_regions(
    ax: Axes,
    rows: Predictions,
    name: str,
    regions: tuple[Region, ...],
    look: Look,
) -> None:
    """Draw estimates and limits of regions along a variable."""
    numbers = np.array([(part.estimate, part.low, part.high) for part in regions])
    estimate, low, high = np.clip(numbers, -1e3, 1e3).T

    # where regions lie, and from where to where each reaches
    is_time = name not in rows.names
    if not is_time and rows.is_labelled(name):
        middle = np.arange(len(regions))
        name_ticks(ax, [region.low_value for region in regions])
    else:
        column: Any = rows.time if is_time else rows.columns[rows.position(name)]
        left, right = _ends_of(regions, column)
        ax.hlines(estimate, left, right, color=look["color"], linewidth=1)
        if column.dtype.kind == "M":
            middle = left + (right - left) // 2
            ax.tick_params(axis="x", rotation=20)
        elif log_helps(column):
            middle = np.sqrt(left * right)
            log_ticks(ax, "x", float(column.min()), float(column.max()))
        else:
            middle = (left + right) / 2

    bars: Look = {"color": look["color"], "linewidth": 3, "alpha": 0.4, "zorder": 2}
    ax.vlines(middle, low, high, **bars, label="limits of all at once")
    states = np.array([region.state for region in regions])
    for state, (words, marker) in _STATES.items():
        chosen = states == state
        face = "none" if state == "open" else look["color"]
        mark = look | {"linestyle": "none", "markersize": 5, "zorder": 4}
        mark |= {"marker": marker, "markerfacecolor": face, "label": words}
        if chosen.any():
            ax.plot(middle[chosen], estimate[chosen], **mark)


_STATES = {
    "kept": ("right", "o"),
    "open": ("cannot tell", "o"),
    "broken": ("wrong", "X"),
}


def _ends_of(regions: tuple[Region, ...], column: Any) -> tuple[Any, Any]:
    """Return where regions begin and end; those without limits, where the rows do."""
    first, last = column.min(), column.max()
    begins = []
    ends = []
    for region in regions:
        begins.append(first if region.low_value is None else region.low_value)
        ends.append(last if region.high_value is None else region.high_value)
    kind = "datetime64[us]" if column.dtype.kind == "M" else "float64"
    return np.array(begins, dtype=kind), np.array(ends, dtype=kind)


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
    paired: Any = compare(compared) if isinstance(compared, Mapping) else compared
    if not isinstance(paired, Comparison):
        kind = type(paired).__name__
        msg = f"Pass a dict of Predictions or a Comparison; found {kind}."
        raise InvalidInputError(msg, "kind")
    score = paired.main if score is None else score
    names = list(paired.differences)
    scores = paired.differences[names[0]]
    if score not in scores:
        msg = f"`score` must be one of {', '.join(scores)}."
        raise InvalidInputError(msg)

    # the difference of each set, and its interval
    ax = axes_for(ax, 0.9 + 0.27 * len(names))
    ax.axvline(0, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    plain: Look = {"color": BLUE, "linestyle": "none", "markersize": 5.5, "zorder": 3}
    for row, name in enumerate(names):
        difference = paired.differences[name][score]
        limits = [difference.low, difference.high]
        ax.plot(limits, [row, row], color=BLUE, linewidth=1.6)
        ax.plot([difference.value], [row], **plain | _mark_of(difference))

    # names beside the rows, which take half of the width at most
    most_letters = max(8, int(width_of(ax) / (2 * letter())))
    ax.set_yticks(range(len(names)), [literal(name, most_letters) for name in names])
    ax.set(ylim=(len(names) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(_signed)
    ax.locator_params(axis="x", nbins=max(2, int(width_of(ax) / (9 * letter()))))
    first = literal(paired.names[0], 20)
    label_axes([ax], f"{TITLES[score]} minus that of {first}", "")
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

    # the evidence of each kind, in colours of their own: none of these is a set
    looks: list[Look] = [
        {"color": ORANGE},
        {"color": GREEN},
        {"color": INK, "linestyle": "--"},
        {"color": INK, "linestyle": ":"},
        {"color": SOFT, "linestyle": "-."},
    ]
    n_rows = watched.history[:, 0]
    log_evidence = watched.history[:, 2:].T
    for name, look, logs in zip(COLUMNS, looks, log_evidence, strict=True):
        if logs.any():
            line = {"linewidth": 1.3, "label": name, **look}
            # a logarithm of 0 is what nothing is known of yet
            drawn = np.where(logs == 0, np.nan, logs)
            ax.plot(n_rows, 10**drawn, **styled(style, line))

    # the line at which an alarm is raised, and the range of the change
    line = {"color": VERMILION, "linewidth": 1, "linestyle": "--", "zorder": 1}
    limit = watched.state.limit
    ax.axhline(limit, **line, label=f"alarm at {limit:.3g}")
    ax.set_yscale("log")
    if watched.alarm is not None:
        area: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0}
        area["label"] = "from change to alarm"
        ax.axvspan(watched.alarm.since, watched.alarm.row, **area)
    label_axes([ax], "rows", "evidence for a change")
    explain([ax])
    return ax
