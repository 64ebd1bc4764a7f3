"""Figures of rows and of scores; what is drawn was computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import check_count, check_fraction
from .._support.labels import label_text
from ..distributions import Distributions
from ..exceptions import InvalidInputError
from ..predictions import Predictions, check_predictions
from ..scores import (
    CalibrationCurve,
    ConfidenceCurve,
    LocalZMS,
    PITHistogram,
    ReliabilityDiagram,
)
from .canvas import (
    BLUE,
    GREY,
    INK,
    SOFT,
    TEXT,
    VERMILION,
    Look,
    axes_for,
    band,
    diagonal,
    legend_above,
    log_helps,
    log_ticks,
    name_ticks,
    notes_of,
    styled,
    variable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS: Look = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}


def _some(n: int, most: int) -> Any:
    """Return the rows that are drawn: all, or a random part with a fixed seed."""
    most = check_count(most, "max_points")
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def errors(
    p: Predictions, *, ax: Axes | None = None, max_points: int = 2000, **style: Any
) -> Axes:
    """Plot errors against uncertainties, with lines at ±2u.

    If errors are normal and u is right, 4.6 % of the errors lie beyond the lines, at
    every u. Of vectors, the root mean square of the components is drawn. The axes leave
    out far outliers; the legend counts them.

    Parameters
    ----------
    p : Predictions
        With errors.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    max_points : int, default 2000
        Of more rows than this, a random part is drawn, and the legend says so.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_diabetes()
    >>> ss.plots.errors(data.test).get_ylabel()
    'error E'
    """
    ax = axes_for(ax, p, Predictions)
    u, e = check_predictions(p).y_std, p.signed_error
    # wide enough for nearly all rows and, unless u is far too large, for the lines
    small, large = np.quantile(u, (0.005, 0.995))
    left, right = 0.95 * max(u.min(), small / 3), 1.05 * min(u.max(), 3 * large)
    most = 1.2 * float(np.quantile(np.abs(e), 0.995))
    lines = 2.2 * float(np.quantile(u, 0.9))
    reach = max(most, min(lines, 4 * most or lines))
    rows = _some(e.size, max_points)
    inside = rows[(np.abs(e[rows]) <= reach) & (u[rows] >= left) & (u[rows] <= right)]
    look = {**_DOTS, "color": BLUE, "markersize": 2.2, "label": "E"}
    look["alpha"] = 0.8 if rows.size < 500 else 0.45
    ax.plot(u[inside], e[inside], **styled(style, look))
    grid = np.geomspace(left, max(left, min(right, reach / 2)), 100)
    for sign in (2,) if p.is_vector else (2, -2):
        label = "2u" if p.is_vector else "±2u" if sign > 0 else None
        ax.plot(grid, sign * grid, color=VERMILION, linewidth=1.3, label=label)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    if log_helps(u):
        log_ticks(ax, "x", left, right)
    ax.set(xlim=(left, right), ylim=(0 if p.is_vector else -reach, reach))
    ax.set(xlabel="uncertainty u", ylabel="size of E" if p.is_vector else "error E")
    notes = [f"{100 * p.mean(p.abs_z > 2):.3g} % beyond 2u"]
    if rows.size < e.size:
        notes.append(f"{rows.size:,} of {e.size:,} rows shown")
    if inside.size < rows.size:
        notes.append(f"{rows.size - inside.size} outside the axes")
    for handle in legend_above(ax, *notes).get_lines():
        handle.set(alpha=1, markersize=4)
    return ax


def intervals(
    p: Predictions,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
    max_points: int = 200,
    **style: Any,
) -> Axes:
    """Plot predictions with their intervals against true values.

    Intervals that miss the truth have another colour and marker; best is a share of
    1 − coverage of them.

    Parameters
    ----------
    p : Predictions
        With `y_pred` and errors that are numbers. Intervals are those of its
        distributions, or of normal ones.
    coverage : float, default 0.9
        What the intervals claim to hold.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    max_points : int, default 200
        Of more rows than this, a random part is drawn; the legend counts all.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label` are
        those of intervals that hold the truth.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.intervals(ss.datasets.load_diabetes().test).get_xlabel()
    'true value'
    """
    ax = axes_for(ax, p, Predictions)
    check_predictions(p, vectors=False)
    if p.y_pred is None:
        msg = "Pass Predictions with `y_pred` and `y_true`; found errors alone."
        raise InvalidInputError(msg, "no-predictions")
    distributions = p.distributions or Distributions.normal(p)
    low, high = distributions.interval(check_fraction(coverage, "coverage")).T
    truth = p.target
    held = (low <= truth) & (truth <= high)
    rows = _some(p.n_rows, max_points)
    good = styled(style, {**_DOTS, "color": BLUE, "markersize": 3, "label": "holds"})
    bad = good | {"color": VERMILION, "marker": "X", "label": "misses"}
    bad["markersize"] *= 1.5
    for which, look in ((held, good), (~held, bad)):
        own = rows[which[rows]]
        if own.size:
            (points,) = ax.plot(truth[own], p.y_pred[own], zorder=3, **look)
            bars = ax.vlines(truth[own], low[own], high[own], linewidth=0.7)
            bars.set(color=points.get_color(), alpha=0.5)
    diagonal(ax, float(truth[rows].min()), float(truth[rows].max()))
    ax.set(xlabel="true value", ylabel="prediction")
    notes = [f"{100 * coverage:g} % intervals hold {100 * p.mean(held):.1f} %"]
    if rows.size < p.n_rows:
        notes.append(f"{rows.size:,} of {p.n_rows:,} rows shown")
    legend_above(ax, *notes)
    return ax


def reliability(
    diagram: ReliabilityDiagram, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot RMSE against root mean variance of bins; best is the diagonal.

    Above the diagonal, uncertainties are too small (overconfident). The grey band is
    where bins of calibrated uncertainties would lie.

    Parameters
    ----------
    diagram : ReliabilityDiagram
        What :func:`sigmascale.scores.reliability_diagram` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Diagrams drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.reliability(ss.scores.reliability_diagram(p)).get_ylabel()
    'RMSE'
    """
    ax = axes_for(ax, diagram, ReliabilityDiagram)
    x = diagram.rmv
    band(ax, x, diagram.attainable_low, diagram.attainable_high, "calibrated")
    look = {**_DOTS, "color": BLUE, "markersize": 4, "zorder": 3, "label": "bins"}
    (points,) = ax.plot(x, diagram.rmse, **styled(style, look))
    bars = ax.vlines(x, diagram.low, diagram.high, linewidth=1, zorder=2)
    bars.set(color=points.get_color(), alpha=points.get_alpha())
    # all diagrams of these axes count, not only this one
    (left, bottom), (right, top) = ax.dataLim.min, ax.dataLim.max
    left = max(left, ax.dataLim.minposx)  # which is 0 at times in Matplotlib 3.8
    if log_helps(np.array([left, *x, right])) or ax.get_xscale() == "log":
        # limits may reach down to 0; the points must not be squashed for it
        some = diagram.rmse[diagram.rmse > 0].min(initial=top)
        bottom = max(bottom, ax.dataLim.minposy, some / 10)
        for which, ends in (("x", (left, right)), ("y", (bottom, top))):
            log_ticks(ax, which, *ends)
        bounds = left / 1.05, right * 1.05, bottom / 1.05, top * 1.05
    else:
        pad = 0.04 * (top - bottom)
        bounds = left - pad, right + pad, max(0, bottom - pad), top + pad
    diagonal(ax, max(bounds[0], bounds[2]), min(bounds[1], bounds[3]))
    ax.set(xlim=bounds[:2], ylim=bounds[2:])
    ax.set(xlabel="root mean variance (RMV)", ylabel="RMSE")
    score = f"ENCE {diagram.ence:.2f} ({diagram.attainable_ence:.2f} if calibrated)"
    legend_above(ax, *notes_of(ax, style, score))
    return ax


def calibration(
    curve: CalibrationCurve, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot observed against nominal coverage; best is the diagonal.

    The grey band holds the whole curve of a calibrated set. Below it, intervals hold
    less than they claim: uncertainties are too small (overconfident).

    Parameters
    ----------
    curve : CalibrationCurve
        What :func:`sigmascale.scores.calibration_curve` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.calibration(ss.scores.calibration_curve(p)).get_xlabel()
    'nominal coverage'
    """
    ax = axes_for(ax, curve, CalibrationCurve)
    if _is_first(ax):
        band(ax, curve.level, curve.low, curve.high, "calibrated")
    line = {"color": BLUE, "linewidth": 1.8, "zorder": 3, "label": "observed"}
    ax.plot(curve.level, curve.observed, **styled(style, line))
    diagonal(ax, 0, 1)
    name = "coverage" if curve.kind == "interval" else "fraction below quantile"
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set(xlabel=f"nominal {name}", ylabel=f"observed {name}")
    if curve.kind == "interval" and len(ax.texts) == 0:
        words: Look = {"fontsize": TEXT, "color": SOFT, "style": "italic"}
        ax.text(0.97, 0.04, "overconfident", ha="right", **words)
        ax.text(0.03, 0.96, "underconfident", va="top", **words)
    area = f"miscalibration area {curve.area:.3f}"
    legend_above(ax, *notes_of(ax, style, area))
    return ax


def pit(histogram: PITHistogram, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot the histogram of the probability integral transform; best is flat.

    A U says that uncertainties are too small (overconfident), a hill that they are too
    large, a slope that predictions are biased. All bins of a calibrated set lie in the
    grey band.

    Parameters
    ----------
    histogram : PITHistogram
        What :func:`sigmascale.scores.pit_histogram` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Histograms drawn in the same axes
        share one legend: give each a `label` and a `color`.
    **style
        Properties of the histogram, a Matplotlib patch; ``fill=False`` draws its
        outline.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.pit(ss.scores.pit_histogram(p)).get_ylabel()
    'density'
    """
    ax = axes_for(ax, histogram, PITHistogram)
    look: Look = {"fill": True, "alpha": 0.5, "label": "PIT"} | style
    if not look["fill"]:
        look |= {"alpha": style.get("alpha", 1), "linewidth": 1.6, "zorder": 3}
    look |= {} if "color" in style else {"facecolor": BLUE}
    if _is_first(ax):
        band(ax, [0, 1], histogram.low, histogram.high, "calibrated")
        ax.axhline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    ax.stairs(histogram.density, histogram.edges, **styled({}, look, patch=True))
    ax.set(xlim=(0, 1), ylim=(0, 1.04 * max(ax.dataLim.y1, histogram.high)))
    ax.set(ylabel="density", xlabel="probability integral transform (PIT)")
    legend_above(ax)
    return ax


def _is_first(ax: Axes) -> bool:
    """Whether the band of calibrated sets is not yet drawn."""
    return "calibrated" not in ax.get_legend_handles_labels()[1]


def confidence_curve(
    curve: ConfidenceCurve, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot a confidence curve with its oracle and its probabilistic reference.

    The curve of honest uncertainties stays in the grey band of the reference, if the
    errors are normal; heavy tails take it out of the band, too.

    Parameters
    ----------
    curve : ConfidenceCurve
        What :func:`sigmascale.scores.confidence_curve` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.confidence_curve(ss.scores.confidence_curve(p)).get_ylabel()
    'RMSE of the rows left'
    """
    ax = axes_for(ax, curve, ConfidenceCurve)
    x = curve.pruned
    band(ax, x, curve.reference_low, curve.reference_high, "calibrated")
    line = {"color": BLUE, "linewidth": 1.8, "label": "data", "zorder": 3}
    ax.plot(x, curve.error, **styled(style, line))
    ax.plot(x, curve.reference, ":", color=SOFT, linewidth=1)
    ax.plot(x, curve.oracle, "--", color=INK, linewidth=1, label="oracle")
    name = curve.statistic.upper()
    ax.set(xlim=(0, 1), ylim=(0, 1.03 * ax.dataLim.y1 or 1))
    ax.set(xlabel="fraction of rows removed", ylabel=f"{name} of the rows left")
    legend_above(ax)
    return ax


def local_zms(result: LocalZMS, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot <Z²> of each bin with its interval against the variable; the target is 1.

    Bins whose interval misses 1 have another colour and marker. The average over all
    rows stands in the right margin. A triangle at the bottom is a bin whose <Z²> is 0.

    Parameters
    ----------
    result : LocalZMS
        What :func:`sigmascale.scores.local_zms` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label`
        are those of the valid bins alone.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.plots.local_zms(ss.scores.local_zms(p, n_bins=9)).get_yscale()
    'log'
    """
    ax = axes_for(ax, result, LocalZMS)
    # an interval may reach down to 0; the points must not be squashed for it
    floor = result.zms.min(where=result.zms > 0, initial=1) / 4
    low = max(floor, min(result.low.min(), result.overall[1]))
    high = max(result.high.max(), result.overall[2])
    bottom, top = min(0.8, float(low / 1.1)), max(1.25, float(high * 1.1))
    x = np.arange(result.zms.size) if result.is_labelled else result.x
    ax.axhline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    size = 4.5 if x.size <= 40 else 3.5 if x.size <= 120 else 2.5
    good = styled(style, {**_DOTS, "color": BLUE, "label": "valid", "markersize": size})
    bad = good | {"color": VERMILION, "marker": "X", "label": "not valid"}
    bad["markersize"] *= 1.3
    for which, look in ((result.valid, good), (~result.valid, bad)):
        if which.any():
            (points,) = ax.plot(x[which], result.zms[which], **look)
            bars = ax.vlines(x[which], result.low[which], result.high[which])
            bars.set(color=points.get_color(), alpha=points.get_alpha(), linewidth=0.8)
    if (zero := result.zms <= 0).any():
        at = np.full(zero.sum(), 0.03)
        ax.plot(x[zero], at, "v", color=VERMILION, transform=ax.get_xaxis_transform())
    beside: Look = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    beside["color"] = BLUE if result.overall[1] <= 1 <= result.overall[2] else VERMILION
    value, *limits = np.maximum(result.overall, bottom)
    ax.plot([1.035, 1.035], limits, linewidth=1.5, **beside)
    ax.plot([1.035], [value], "s", markersize=4, label="all rows", **beside)
    if result.is_labelled:
        name_ticks(ax, map(label_text, result.x))
    elif log_helps(result.x):
        log_ticks(ax, "x", result.x.min(), result.x.max())
    ax.set(ylim=(bottom, top), xlabel=variable(result.name), ylabel="local ⟨Z²⟩")
    log_ticks(ax, "y", bottom, top)
    lower, upper = result.fraction_interval
    legend_above(
        ax, f"valid bins: {result.fraction_valid:.2f} [{lower:.2f}, {upper:.2f}]"
    )
    return ax


def share_range(axes: Iterable[Axes]) -> None:
    """Give plots the same range of y, so that they can be compared.

    Parameters
    ----------
    axes : iterable of matplotlib Axes
        What was drawn on.
    """
    axes = list(axes)
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))
        if ax.get_yscale() == "log":
            log_ticks(ax, "y", min(lows), max(highs))
