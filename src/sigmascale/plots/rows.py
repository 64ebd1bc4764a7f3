"""Figures of rows: errors, and their prediction intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

from .._support.checks import Floats, Ints, check_choice, check_count, check_fraction
from .._support.numerals import level, number
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from .canvas import (
    GREY,
    INK,
    Look,
    explain,
    label_axes,
    log_helps,
    log_ticks,
    looks_of,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS: Look = {"linestyle": "none", "markeredgewidth": 0}
MISSES: Look = {"color": INK, "marker": "X", "linestyle": "none", "markeredgewidth": 0}


def share_of(share: float, expected: float | None) -> str:
    """Return a share in per cent, and the one that is expected, if that is known."""
    wanted = "" if expected is None else f"; {number(100 * expected)} % expected"
    return f"{number(100 * share)} %{wanted}"


def errors(
    before: Predictions,
    after: Predictions | None = None,
    *,
    ax: Axes | None = None,
    max_points: int = 2000,
    **style: Any,
) -> Axes:
    """Plot errors against uncertainties, with lines at ±2u.

    The title says how many errors lie beyond the lines, and how many are expected:
    4.55 % if errors are normal, else what the distributions of the predictions say. Of
    vectors, the root mean square of the components is drawn. The axes leave out far
    outliers; their label counts them.

    Parameters
    ----------
    before : Predictions
        With errors.
    after : Predictions, optional
        The same rows recalibrated, drawn next to them.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half.
    max_points : int, default 2000
        Of more rows than this, a random sample is drawn, and the label of u says so.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_diabetes()
    >>> ss.plots.errors(data.test).get_ylabel()
    'error E'
    """
    sets = [check_predictions(p) for p in (before, after) if p is not None]
    reach = max(map(_reach, sets))
    axes = panels(ax, sets)
    most = check_count(max_points, "max_points")
    looks = looks_of(sets)
    hidden = ""
    for p, look, panel in zip(sets, looks, axes, strict=True):
        hidden = _draw_errors(panel, p, look, reach, most, style)
    y_label = "size of E" if sets[0].is_vector else "error E"
    label_axes(axes, f"uncertainty u{hidden}", y_label)
    legend = explain(axes, looks, [f"beyond 2u: {_share_beyond(p)}" for p in sets])
    for handle in legend.get_lines():  # larger than in the cloud
        handle.set(alpha=1, markersize=4)
    return axes[0]


def _reach(p: Predictions) -> float:
    """Return an error that leaves out few rows and, if it can, no line at 2u."""
    most = 1.2 * float(np.quantile(np.abs(p.signed_error), 0.995))
    lines = 2.2 * float(np.quantile(p.y_std, 0.9))
    return max(most, min(lines, 4 * most or lines))


def _draw_errors(
    ax: Axes, p: Predictions, look: Look, reach: float, most: int, style: Look
) -> str:
    """Draw the errors of one set with ±2u, and say how many rows are not shown."""
    u = p.y_std
    error = p.signed_error

    # the range of u, without far outliers, and the rows within it
    small, large = np.quantile(u, (0.005, 0.995))
    left = 0.95 * max(u.min(), small / 3)
    right = 1.05 * min(u.max(), 3 * large)
    rows = _drawn_rows(error.size, most)
    is_inside = (u >= left) & (u <= right) & (np.abs(error) <= reach)
    inside = rows[is_inside[rows]]

    # a cloud of many rows is made of small, translucent dots
    alpha = 0.8 if rows.size < 500 else 0.45
    dots = {**DOTS, "color": look["color"], "marker": "o", "markersize": 2.2}
    dots |= {"alpha": alpha, "label": "size of E" if p.is_vector else "errors E"}
    ax.plot(u[inside], error[inside], **styled(style, dots))

    # 2u, and of errors that have a sign −2u, as far as the axes reach
    grid = np.geomspace(left, max(left, min(right, reach / 2)), 100)
    line: Look = {"color": INK, "linewidth": 1.2}
    if p.is_vector:
        ax.plot(grid, 2 * grid, label="2u", **line)
    else:
        ax.plot(grid, 2 * grid, label="±2u", **line)
        ax.plot(grid, -2 * grid, **line)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)

    # the axes
    if log_helps(u):
        log_ticks(ax, "x", left, right)
    ax.set(xlim=(left, right), ylim=(0 if p.is_vector else -reach, reach))

    # the rows that are not shown
    hidden = []
    if rows.size < error.size:
        hidden.append(f"{rows.size:,} of {error.size:,} rows")
    if inside.size < rows.size:
        hidden.append(f"{rows.size - inside.size} outside")
    return f" ({', '.join(hidden)})" if hidden else ""


def _share_beyond(p: Predictions) -> str:
    """Return the share of errors beyond 2u, and what it should be, if that is known."""
    expected: float | None = None
    if p.recalibrated is None:
        # of normal errors, d z² has a chi-squared distribution with d components
        expected = float(special.chdtrc(p.dim, 4 * p.dim))
    elif not p.is_vector:
        distributions = (
            p.distributions if p.shape is None else p.distributions.of_errors
        )
        two_u = 2 * distributions.scale
        below = distributions.cdf(distributions.location - two_u)
        above = 1 - distributions.cdf(distributions.location + two_u)
        expected = p.mean(above + below)
    return share_of(p.mean(p.abs_z > 2), expected)


def _drawn_rows(n: int, most: int) -> Ints:
    """Return the rows that are drawn: all, or a random sample with a fixed seed."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def intervals(
    before: Predictions,
    after: Predictions | None = None,
    *,
    coverage: float = 0.9,
    by: Literal["u", "prediction"] = "u",
    ax: Axes | None = None,
    max_points: int = 150,
    **style: Any,
) -> Axes:
    """Plot errors (true − predicted) within their prediction intervals.

    Rows stand in the order of their uncertainty, or of their prediction. Errors that
    their intervals miss have a mark of their own, and the title has their share, and
    the one that is expected.

    Parameters
    ----------
    before : Predictions
        With errors that are numbers. Intervals are those of its distributions, or of
        normal ones.
    after : Predictions, optional
        The same rows recalibrated, drawn next to them.
    coverage : float, default 0.9
        The nominal coverage of the intervals.
    by : {"u", "prediction"}, default "u"
        The order of the rows.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half.
    max_points : int, default 150
        Of more rows than this, a random sample is drawn; the title counts all.
    **style
        Properties of the errors that are covered, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.intervals(ss.datasets.load_diabetes().test).get_ylabel()
    'error E'
    """
    given = [p for p in (before, after) if p is not None]
    sets = [check_predictions(p, vectors=False) for p in given]
    check_choice(by, "by", ("u", "prediction"))
    if by == "prediction" and any(p.y_pred is None for p in sets):
        msg = "Pass Predictions with `y_pred` and `y_true`; found errors alone."
        raise InvalidInputError(msg, "no-predictions")
    coverage = check_fraction(coverage, "coverage")
    most = check_count(max_points, "max_points")
    axes = panels(ax, sets)
    looks = looks_of(sets)
    rows = _drawn_rows(sets[0].n_rows, most)

    # the rows of each set in their order, and what its intervals miss of all rows
    reach = 0.0  # of the axes: to all errors, and to nearly all intervals
    notes = []
    for p, look, panel in zip(sets, looks, axes, strict=True):
        limits = p.distributions.interval(coverage).T - (p.target - p.residual)
        order: Any = p.y_std if by == "u" else p.y_pred
        shown = rows[np.argsort(order[rows], kind="stable")]
        is_covered = (limits[0] <= p.residual) & (p.residual <= limits[1])
        area = {"color": look["color"], "label": f"{level(coverage)} intervals"}
        drawn = p.residual[shown], limits[:, shown], is_covered[shown]
        _draw_intervals(panel, *drawn, area, style)
        notes.append(f"missed: {share_of(1 - p.mean(is_covered), 1 - coverage)}")
        ends = np.abs(limits[:, rows])
        finite = ends[np.isfinite(ends)]
        wide = float(np.quantile(finite, 0.98)) if finite.size else 0.0
        reach = max(reach, 1.05 * wide, 1.05 * float(np.abs(p.residual[rows]).max()))

    for panel in axes:
        panel.set(ylim=(-reach or -1, reach or 1))
    n_shown, n = rows.size, sets[0].n_rows
    counted = f"{n:,} rows" if n_shown == n else f"{n_shown:,} of {n:,} rows"
    label_axes(axes, f"{counted}, {_IN_ORDER[by]}", "error E")
    explain(axes, looks, notes)
    return axes[0]


_IN_ORDER = {"u": "from small u to large", "prediction": "from low predictions to high"}


def _draw_intervals(
    ax: Axes, errors: Floats, limits: Floats, is_covered: Any, area: Look, style: Look
) -> None:
    """Draw intervals [low or high, row], the errors that they cover, and the others."""
    # a step for each row; Matplotlib draws no infinite ones
    places = np.arange(errors.size)
    edges = np.append(places - 0.5, places.size - 0.5)
    bottom, top = np.clip(limits, -1e300, 1e300)
    ax.stairs(top, edges, baseline=bottom, alpha=0.25, linewidth=0, fill=True, **area)
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)

    # errors within their steps, and those outside
    dots = {**DOTS, "color": area["color"], "marker": "o", "markersize": 3.0}
    dots |= {"label": "errors covered", "zorder": 3}
    ax.plot(places[is_covered], errors[is_covered], **styled(style, dots))
    marks = {**MISSES, "markersize": 4.5, "zorder": 4, "label": "errors missed"}
    ax.plot(places[~is_covered], errors[~is_covered], **marks)
    ax.set(xlim=(-1, places.size), xticks=[])
