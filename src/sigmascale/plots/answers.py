"""Figures of results: checks, comparisons, and evidence over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._support import numerals
from .._support.text import quoted, shorten
from ..exceptions import InvalidInputError
from ..monitoring.detector import COLUMNS
from ..monitoring.monitor import Monitor, over_time
from ..predictions.predictions import Predictions
from ..scores.comparison import TITLES, Comparison, compare
from ..scores.intervals import Estimate
from ..validation import words
from ..validation.advice import validate
from ..validation.results import Check, Subgroup
from ..validation.validation import Validation
from .canvas import (
    BAND,
    BLUE,
    GREEN,
    IDEAL,
    INK,
    ORANGE,
    SOFT,
    VERMILION,
    Look,
    axes_for,
    explain,
    factor_ticks,
    label_axes,
    letter,
    literal,
    log_helps,
    log_ticks,
    looks_of,
    name_rows,
    name_ticks,
    panels,
    results_of,
    styled,
    variable,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CHECKS = 14  # rows of a figure of checks
FARTHEST = 8.0  # factors beyond it are at the edge of figures


def _stages(before: Any, after: Any) -> list[Validation]:
    """Return what is drawn of one set, or of two; a result may have both."""
    if isinstance(before, Validation) and before.before and after is None:
        return [before.before, before]
    return results_of(before, after, Validation, validate)


def factors(
    before: Predictions | Validation,
    after: Predictions | Validation | None = None,
    *,
    by: str | None = None,
    check: Literal["coverage", "bias"] | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot RMS z with its limits in subgroups of u and of a feature, before and after.

    Marks are tenths of the rows (or coarser subgroups, of few rows), values or labels,
    with limits that hold for all of them at once. The band is the accepted range. A bar
    is the subgroup that decides, where the check does not pass: the number that the
    printed result has.

    Parameters
    ----------
    before : Predictions or Validation
        Rows with errors, or what :func:`sigmascale.validate` returns; with its own
        `before`, both are drawn.
    after : Predictions or Validation, optional
        Of the same rows after recalibration.
    by : str, optional
        One column, "u" or a feature; by default u and the feature with the worst
        result, side by side.
    check : {"coverage", "bias"}, optional
        What else is drawn: the coverage of intervals, or mean z.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. For two columns it is divided, and
        becomes the left half.
    **style
        Properties of the marks, Matplotlib lines.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ax = ss.plots.factors(ss.datasets.load_diabetes().test, by="bmi")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('bmi', 'RMS z')
    """
    stages = _stages(before, after)
    columns = [by] if by is not None else ["u", *words.ranked_features(stages)[:1]]
    drawn = [_checks_along(stages, column, check) for column in columns]
    first = next(x for x in drawn[0] if x is not None)

    axes = panels(ax, columns)
    looks = looks_of(stages)
    low, high = first.accepted
    accepted = f"accepted: {words.accepted(first)}"
    for panel, column, checks in zip(axes, columns, drawn, strict=True):
        panel.axhspan(low, high, label=accepted, **BAND)
        panel.axhline(first.ideal, **IDEAL)
        for v, x, look in zip(stages, checks, looks, strict=True):
            if x is not None:
                _draw_check(panel, v, x, column, styled(style, look))
        _set_axis(panel, stages, column)
        label_axes([panel], variable(column, 40 if len(axes) == 1 else 24), "")

    # one axis for all panels, which contains what is not absurd
    if first.unit == "":
        reach = [0.75, 1.33, 0.9 * low, 1.1 * high]
        for x in (x for checks in drawn for x in checks if x is not None):
            for s in (*x.subgroups, *([] if x.subgroup is None else [x.subgroup])):
                reach += [s.estimate, *(end for end in (s.low, s.high) if end > 0.1)]
        limits = max(min(reach) / 1.1, 0.1), min(max(reach) * 1.1, numerals.LARGEST)
        for panel in axes:
            factor_ticks(panel, "y", *limits)
    elif first.unit == "share":
        for panel in axes:
            panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes[0].set_ylabel(first.statistic)
    explain(axes)
    return axes[0]


def _checks_along(
    stages: Sequence[Validation], column: str, check: str | None
) -> list[Check | None]:
    """Return the check of each stage that is drawn along a column; refuse others."""
    found: list[Check | None] = []
    for v in stages:
        checks = [x for x in v.checks.values() if x.column == column]
        if check is not None:
            checks = [v.checks[check]] if check in v.checks else []
        found.append(checks[0] if checks and column in v.columns else None)
    if not any(found):
        names = dict.fromkeys(name for v in stages for name in v.columns)
        listed = ", ".join(shorten(name, 30) for name in names)
        msg = f"`by` must be one of {listed}, and tested; found {quoted(column)}."
        raise InvalidInputError(msg, "no-column")
    return found


def _draw_check(ax: Axes, v: Validation, check: Check, column: str, look: Look) -> None:
    """Draw the subgroups of a check along a column, and the one that decides."""
    subgroups = [s for s in check.subgroups if s.column == column]
    if not subgroups:
        ax.text(0.5, 0.6, "too few rows", ha="center", transform=ax.transAxes)
        return
    values = _values(v, column)
    places = _places(values, subgroups)
    middles = places.mean(axis=0) if values is None else _middles(values, places)
    numbers = np.array([(s.estimate, s.low, s.high) for s in subgroups])
    estimate, low, high = np.clip(numbers, -1e3, 1e3).T
    ax.vlines(middles, low, high, color=look["color"], linewidth=1.2, zorder=2)
    mark: Look = {"markersize": 5, "linewidth": 1.2, "zorder": 4}
    if values is None:
        mark["linestyle"] = "none"
        name_ticks(ax, [s.conditions[0].labels[0] for s in subgroups])
    ax.plot(middles, estimate, **(mark | look))

    # the subgroup that decides: the number that the printed result has
    s = check.subgroup
    if s is None or s.column != column or check.result == "pass":
        return
    if words.is_same(v, check):
        return
    if values is None:
        of_labels = [x.conditions[0].labels for x in subgroups]
        if s.conditions[0].labels not in of_labels:
            return
        place = of_labels.index(s.conditions[0].labels)
        ends = np.array([place - 0.3, place + 0.3])
    else:
        ends = _places(values, [s])[:, 0]
    bar: Look = {"color": look["color"], "linewidth": 5, "alpha": 0.35, "zorder": 3}
    bar |= {"solid_capstyle": "butt", "label": "subgroup that decides"}
    if ends[0] == ends[1]:  # of one value
        bar |= {"marker": "_", "markersize": 10, "markeredgewidth": 5}
    ax.plot(ends, [s.estimate, s.estimate], **bar)


def _values(v: Validation, column: str) -> Any:
    """Return the values of a column; None of labels."""
    if column not in v.rows.names:
        return v.rows.time
    is_of_labels = v.rows.is_labelled(column)
    return None if is_of_labels else v.rows.columns[v.rows.position(column)]


def _places(values: Any, subgroups: Sequence[Subgroup]) -> Any:
    """Return where subgroups begin and end: [begin or end, subgroup]."""
    if values is None:  # labels stand side by side
        return np.tile(np.arange(len(subgroups), dtype=np.float64), (2, 1))
    begins = []
    ends = []
    for s in subgroups:
        condition = s.conditions[0]
        begins.append(values.min() if condition.low is None else condition.low)
        ends.append(values.max() if condition.high is None else condition.high)
    kind = "datetime64[us]" if values.dtype.kind == "M" else "float64"
    return np.array([begins, ends], dtype=kind)


def _middles(values: Any, places: Any) -> Any:
    """Return the middles of subgroups on the axis that suits their column."""
    begins, ends = places
    if values.dtype.kind == "M":
        return begins + (ends - begins) // 2
    return np.sqrt(begins * ends) if log_helps(values) else (begins + ends) / 2


def _set_axis(ax: Axes, stages: Sequence[Validation], column: str) -> None:
    """Make the axis of a column logarithmic if that helps, and slant dates."""
    found = [_values(v, column) for v in stages]
    if found[0] is None:
        return
    if found[0].dtype.kind == "M":
        ax.tick_params(axis="x", rotation=20)
    elif log_helps(found[0]) and all(values.min() > 0 for values in found):
        low, high = min(x.min() for x in found), max(x.max() for x in found)
        log_ticks(ax, "x", float(low), float(high))


def checks(
    before: Predictions | Validation,
    after: Predictions | Validation | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot all checks: the subgroup that decides each, with its limits.

    The axis is that of RMS z. Coverage stands where normal errors of that coverage have
    their RMS z, and mean z where it is as near to its accepted limit. The band is the
    accepted range: inside is a pass, outside a FAIL, across an end inconclusive.

    Parameters
    ----------
    before : Predictions or Validation
        Rows with errors, or what :func:`sigmascale.validate` returns; with its own
        `before`, both are drawn.
    after : Predictions or Validation, optional
        Of the same rows after recalibration, drawn below each.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure, as high as there are rows.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.checks(ss.datasets.load_diabetes().test).get_xlabel()
    'RMS z'
    """
    stages = _stages(before, after)
    names = words.ranked_checks(stages)[:MOST_CHECKS]
    ax = axes_for(ax, 0.8 + (0.27 if len(stages) == 1 else 0.42) * len(names))
    tolerance = stages[0].tolerance
    accepted = f"{numerals.factor(1 / tolerance)} to {numerals.factor(tolerance)}"
    ax.axvspan(1 / tolerance, tolerance, label=f"accepted: {accepted}", **BAND)
    ax.axvline(1, **IDEAL)

    # each check of each set; of two, one above the middle of a row, and one below
    found = [v.checks[name] for v in stages for name in names if name in v.checks]
    ends = [e for x in found if x.subgroup is not None for e in x.subgroup.factors]
    reach = [max(e, 1 / e) for e in ends if 1 / FARTHEST < e < FARTHEST]
    farthest = 1.08 * max([1.6, 1.3 * tolerance, *reach])
    offsets = (0.0,) if len(stages) == 1 else (-0.2, 0.2)
    text: Look = {"transform": ax.get_yaxis_transform(), "va": "center"}
    for v, look, offset in zip(stages, looks_of(stages), offsets, strict=True):
        mark: Look = {"linestyle": "none", "markersize": 5}
        mark |= {"label": "subgroup that decides"} | look
        for row, name in enumerate(names):
            check = v.checks.get(name)
            if check is None or check.subgroup is None:
                continue
            y = row + offset
            place, *limits = np.clip(check.subgroup.factors, 1 / farthest, farthest)
            line: Look = {"color": look["color"], "linewidth": 2, "alpha": 0.6}
            ax.plot(limits, [y, y], zorder=2, **line)
            ax.plot([place], [y], zorder=4, clip_on=False, **mark)
            mark.pop("label", None)
            is_own = not words.is_same(v, check)
            sign = words.MARKS.get(check.result, words.NONE) if is_own else words.NONE
            ax.text(1.015, y, sign, color=look["color"], **text)

    beside = name_rows(ax, [literal(name, 30) for name in names])
    ax.set_xlabel("RMS z")
    factor_ticks(ax, "x", 1 / farthest, farthest)
    explain([ax], beside=beside)
    return ax


def comparison(
    compared: Comparison | Mapping[str, Predictions],
    *,
    score: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot paired differences of a score to the first, with intervals.

    Left of the line is better. What is significantly worse has an X; an open mark is
    inconclusive.

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
    ax.axvline(0, **IDEAL)
    plain: Look = {"color": BLUE, "linestyle": "none", "markersize": 5.5, "zorder": 3}
    for row, name in enumerate(names):
        difference = paired.differences[name][score]
        limits = [difference.low, difference.high]
        ax.plot(limits, [row, row], color=BLUE, linewidth=1.6)
        ax.plot([difference.value], [row], **plain | _mark_of(difference))

    # names beside the rows, which take half of the width at most
    most_letters = max(8, int(width_of(ax) / (2 * letter())))
    beside = name_rows(ax, [literal(name, most_letters) for name in names])
    ax.xaxis.set_major_formatter(lambda x, _: numerals.number(x, signed=True))
    ax.locator_params(axis="x", nbins=max(2, int(width_of(ax) / (9 * letter()))))
    first = literal(paired.names[0], 20)
    label_axes([ax], f"{TITLES[score]} minus that of {first}", "")
    explain([ax], beside=beside)
    return ax


def _mark_of(difference: Estimate) -> Look:
    """Return how a difference is marked: better, worse or inconclusive."""
    if difference.high < 0:
        return {"marker": "o", "label": "better"}
    if difference.low > 0:
        return {"marker": "X", "label": "worse"}
    return {"marker": "o", "markerfacecolor": "none", "label": "inconclusive"}


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
        change = watched.alarm.since, watched.alarm.row
        ax.axvspan(*change, label="from change to alarm", **BAND)
    label_axes([ax], "rows", "evidence for a change")
    explain([ax])
    return ax
