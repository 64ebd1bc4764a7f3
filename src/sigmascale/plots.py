"""Plots of results; what is drawn was computed elsewhere.

Every function returns the Matplotlib Axes it drew on, shows nothing and changes no
global setting: ``plot_local_zms(result).figure.savefig("zms.png")``. Without `ax`
it makes a figure of its own that pyplot does not know, so no display is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._support.checks import Floats, Labels, check_count, check_fraction, rng_from
from ._support.drawing import (
    BLACK,
    BLUE,
    DARK,
    GREY,
    TEXT,
    VERMILION,
    Look,
    axes_for,
    legend_above,
    literal,
    log_helps,
    log_ticks,
    name_ticks,
    new_figure,
    styled,
    variable_label,
)
from ._support.labels import label_text
from .bins.partitions import LabelBins
from .exceptions import InvalidInputError
from .judging.confidence_curves import ConfidenceCurve
from .judging.coverage import LocalCoverage
from .judging.local import LocalZMS
from .judging.reliability import (
    CalibrationCurve,
    PITHistogram,
    ReliabilityDiagram,
    calibration_curve,
    error_quantiles,
    interval_of,
    pit_histogram,
    reliability_diagram,
)
from .judging.validation import Verdict
from .maps import FactorTable, factor_tables
from .monitoring.monitor import Monitor
from .predictions import Predictions, as_predictions, fitted_names

__all__ = [
    "plot_adaptivity",
    "plot_calibration_curve",
    "plot_confidence_curve",
    "plot_errors",
    "plot_factors",
    "plot_local_coverage",
    "plot_local_zms",
    "plot_monitor",
    "plot_pit_histogram",
    "plot_predictions",
    "plot_reliability_diagram",
    "share_zms_range",
    "summary",
]

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How curves of one set stand out from those of another in the same axes.
BEFORE_AFTER: dict[str, Look] = {
    "before": {"color": VERMILION, "label": "before"},
    "after": {"color": BLUE, "label": "after"},
}


def plot_confidence_curve(
    curve: ConfidenceCurve, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot a confidence curve with its oracle and its probabilistic reference.

    The curve of honest uncertainties stays in the grey band of the reference, if the
    errors are normal; heavy tails take it out of the band, too.

    Parameters
    ----------
    curve : ConfidenceCurve
        What :func:`confidence_curve` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> from sigmascale import confidence_curve
    >>> curve = confidence_curve([0.1, -0.3, 0.2], [0.1, 0.2, 0.1])
    >>> plot_confidence_curve(curve).get_ylabel()
    'RMSE of the rows left'
    """
    ax = axes_for(ax, curve, ConfidenceCurve, "curve")
    x, low, high = curve.pruned, curve.reference_low, curve.reference_high
    line: Look = {"color": BLUE, "linewidth": 1.8, "label": "data", "zorder": 3}
    ax.plot(x, curve.error, **styled(style, line))
    ax.fill_between(x, low, high, color=GREY, alpha=0.35, linewidth=0)
    ax.plot(x, curve.reference, ":", color=DARK, linewidth=1, label="reference")
    ax.plot(x, curve.oracle, "--", color=BLACK, linewidth=1, label="oracle")
    known = curve.statistic in {"rmse", "mae"}
    name = curve.statistic.upper() if known else literal(curve.statistic, 24)
    ax.set(xlim=(0, 1), xlabel="fraction of rows removed")
    ax.set_ylabel(f"{name} of the rows left")
    # All curves of these axes count, not only this one.
    bottom, top = min(0.0, ax.dataLim.y0), ax.dataLim.y1
    legend_above(ax, bottom, top + (0.03 * (top - bottom) or 1))
    return ax


def plot_reliability_diagram(
    diagram: ReliabilityDiagram, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot RMSE against root mean variance of bins; best is the diagonal.

    Above the diagonal, uncertainties are too small (overconfident). The grey band is
    where bins of calibrated uncertainties would lie.

    Parameters
    ----------
    diagram : ReliabilityDiagram
        What :func:`reliability_diagram` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Diagrams drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> from sigmascale import datasets, reliability_diagram
    >>> diagram = reliability_diagram(datasets.load_health().test)
    >>> plot_reliability_diagram(diagram).get_ylabel()
    'RMSE'
    """
    ax = axes_for(ax, diagram, ReliabilityDiagram, "diagram")
    x, low, high = diagram.rmv, diagram.attainable_low, diagram.attainable_high
    score = f"ENCE {diagram.ence:.2f} (attainable {diagram.attainable_ence:.2f})"
    look: Look = {"color": BLUE, "marker": "o", "linestyle": "none", "markersize": 4}
    look |= {"markeredgewidth": 0, "zorder": 3, "label": "bins"}
    band = ax.fill_between(x, low, high, color=GREY, alpha=0.35, linewidth=0)
    band.set_label("attainable")
    (points,) = ax.plot(x, diagram.rmse, **styled(style, look))
    bars = ax.vlines(x, diagram.low, diagram.high, linewidth=1, zorder=2)
    bars.set(color=points.get_color(), alpha=points.get_alpha())
    # All diagrams of these axes count, not only this one.
    (left, bottom), (right, top) = ax.dataLim.min, ax.dataLim.max
    if log_helps(np.array([left, *x, right])) or ax.get_xscale() == "log":
        for which, ends in (("x", (left, right)), ("y", (bottom, top))):
            log_ticks(ax, which, *ends)
        pad = 1.05
        bounds = left / pad, right * pad, bottom / pad, top * pad
    else:
        pad = 0.04 * (top - bottom)
        bounds = left - pad, right + pad, max(0, bottom - pad), top + pad
    _diagonal(ax, max(bounds[0], bounds[2]), min(bounds[1], bounds[3]))
    ax.set(xlim=bounds[:2], xlabel="root mean variance (RMV)", ylabel="RMSE")
    legend_above(ax, *bounds[2:], *_notes(ax, style, score))
    return ax


def plot_calibration_curve(
    curve: CalibrationCurve, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot observed against nominal coverage; best is the diagonal.

    The grey band holds the whole curve of a calibrated set. Below it, intervals hold
    less than they claim: uncertainties are too small (overconfident).

    Parameters
    ----------
    curve : CalibrationCurve
        What :func:`calibration_curve` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> from sigmascale import calibration_curve, datasets
    >>> curve = calibration_curve(datasets.load_health().test)
    >>> plot_calibration_curve(curve).get_xlabel()
    'nominal coverage'
    """
    ax = axes_for(ax, curve, CalibrationCurve, "curve")
    line: Look = {"color": BLUE, "linewidth": 1.8, "zorder": 3, "label": "observed"}
    if _is_first(ax):
        limits = curve.low, curve.high
        band = ax.fill_between(curve.level, *limits, color=GREY, alpha=0.35)
        band.set(linewidth=0, label="calibrated")
    ax.plot(curve.level, curve.observed, **styled(style, line))
    _diagonal(ax, 0, 1)
    name = "coverage" if curve.kind == "interval" else "fraction below quantile"
    ax.set(xlim=(0, 1), xlabel=f"nominal {name}", ylabel=f"observed {name}")
    if curve.kind == "interval":
        words: Look = {"fontsize": TEXT, "color": DARK, "style": "italic"}
        ax.text(0.97, 0.04, "overconfident", ha="right", **words)
        ax.text(0.03, 0.96, "underconfident", va="top", **words)
    area = f"miscalibration area {curve.area:.3f}"
    legend_above(ax, 0, 1, *_notes(ax, style, area))
    ax.set_yticks(np.linspace(0, 1, 6))
    return ax


def plot_pit_histogram(
    histogram: PITHistogram, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the histogram of the probability integral transform; best is flat.

    A U says that uncertainties are too small (overconfident), a hill that they are too
    large, a slope that predictions are biased. All bins of a calibrated set lie in the
    grey band.

    Parameters
    ----------
    histogram : PITHistogram
        What :func:`pit_histogram` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Histograms drawn in the same axes
        share one legend: give each a `label` and a `color`.
    **style
        Properties of the histogram, a Matplotlib patch; ``fill=False`` draws its
        outline.

    Examples
    --------
    >>> from sigmascale import datasets, pit_histogram
    >>> histogram = pit_histogram(datasets.load_health().test)
    >>> plot_pit_histogram(histogram).get_ylabel()
    'density'
    """
    ax = axes_for(ax, histogram, PITHistogram, "histogram")
    look: Look = {"fill": True, "alpha": 0.5, "label": "PIT"} | style
    if not look["fill"]:
        look |= {"alpha": style.get("alpha", 1), "linewidth": 1.6, "zorder": 3}
    look |= {} if "color" in style else {"facecolor": BLUE}
    ax.stairs(histogram.density, histogram.edges, **styled({}, look, patch=True))
    if _is_first(ax):
        band = ax.axhspan(histogram.low, histogram.high, color=GREY, alpha=0.35)
        band.set(linewidth=0, label="calibrated", zorder=0)
        ax.axhline(1, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    ax.set(xlim=(0, 1), ylabel="density")
    ax.set_xlabel("probability integral transform (PIT)")
    legend_above(ax, 0, 1.03 * max(ax.dataLim.y1, histogram.high))
    return ax


def _is_first(ax: Axes) -> bool:
    """Whether the band of calibrated sets is not yet drawn."""
    return "calibrated" not in ax.get_legend_handles_labels()[1]


def _diagonal(ax: Axes, low: float, high: float) -> None:
    """Draw the diagonal, anew if a shorter one is there."""
    for line in [line for line in ax.lines if line.get_gid() == "diagonal"]:
        line.remove()
    look: Look = {"color": BLACK, "linewidth": 0.8, "linestyle": "--", "zorder": 1}
    ax.plot([low, high], [low, high], gid="diagonal", **look)


def _notes(ax: Axes, style: Look, note: str) -> list[str]:
    """Return a note, with its name if it has one, after those that are there."""
    legend = ax.get_legend()
    there = "" if legend is None else legend.get_title().get_text()
    name = f"{style['label']}: " if "label" in style else ""
    return [*there.splitlines(), name + note]


def plot_local_zms(
    result: LocalZMS,
    *,
    ax: Axes | None = None,
    tolerance: float | None = None,
    **style: Any,
) -> Axes:
    """Plot <Z²> of each bin with its interval against the variable; the target is 1.

    Bins whose interval misses 1 have another colour and marker. The average over all
    rows stands in the right margin. A triangle at the bottom is a bin whose <Z²> is 0.

    Parameters
    ----------
    result : LocalZMS
        What :func:`local_zms` returns, or an entry of ``validate(...).local``.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    tolerance : float, optional
        A factor of u above 1. Bins that could be off by it both ways are grey: their
        interval holds 1 / tolerance² and tolerance², so that they say nothing.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label`
        are those of the valid bins alone.

    Examples
    --------
    >>> from sigmascale import datasets, local_zms
    >>> data = datasets.make_molecules(500)
    >>> plot_local_zms(local_zms(data.error, data.uncertainty, n_bins=9)).get_yscale()
    'log'
    """
    ax = axes_for(ax, result, LocalZMS, "result")
    bottom, top = _zms_range(result)
    ax.set_yscale("log")
    # What is not clipped must not lie below the axis.
    overall = np.maximum(result.overall, bottom)
    unknown = None if tolerance is None else result.says_nothing(tolerance)
    x = _plot_bins(ax, result, result.zms, 1, overall, style, unknown)
    if (zero := result.zms <= 0).any():
        look: Look = {"color": VERMILION, "transform": ax.get_xaxis_transform()}
        ax.plot(x[zero], np.full(zero.sum(), 0.03), "v", **look)
    ax.set_ylabel("local ⟨Z²⟩")
    legend_above(ax, bottom, top, _valid_bins(result))
    log_ticks(ax, "y", *ax.get_ylim())
    return ax


def plot_adaptivity(
    verdict: Verdict,
    *,
    ax: Axes | None = None,
    tolerance: float | None = None,
    **style: Any,
) -> Axes:
    """Plot <Z²> along a feature, or u, with the band of a verdict; the target is 1.

    This is conditional calibration: on a feature (adaptivity), or on u (consistency).
    Above 1, uncertainties are too small (overconfident). To what
    :func:`plot_local_zms` draws comes a grey band that holds the <Z²> of every tenth of
    the rows, or of every label, all at once: where it leaves out the average,
    uncertainties are wrong there.

    Parameters
    ----------
    verdict : Verdict
        On a feature or on u, such as ``validate(p).verdicts["mass"]``.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    tolerance : float, optional
        As in :func:`plot_local_zms`.
    **style
        Properties of the points, as in :func:`plot_local_zms`.

    Examples
    --------
    >>> from sigmascale import datasets, validate
    >>> found = validate(datasets.load_diabetes().test)
    >>> plot_adaptivity(found.verdicts["u"]).get_xlabel()
    'uncertainty u'
    """
    ax = axes_for(ax, verdict, Verdict, "verdict")
    local, band = verdict.local, verdict.band
    if local is None:
        msg = f"`verdict` must be on u or a feature; found that on {verdict.name!r}."
        raise InvalidInputError(msg)
    plot_local_zms(local, ax=ax, tolerance=tolerance, **style)
    if band is None:
        return ax
    look: Look = {"color": GREY, "alpha": 0.25, "zorder": 0, "label": "band"}
    low, high = (local.overall[0] * each**2 for each in (band.low, band.high))
    if local.is_grouped:
        places = {label: at for at, label in enumerate(local.x)}
        known = np.array([label in places for label in band.x_min])  # not rare ones
        at = [places[label] for label in band.x_min[known]]
        ax.vlines(at, low[known], high[known], linewidth=10, **look)
    else:
        middle = (band.x_min + band.x_max) / 2
        ax.fill_between(middle, low, high, linewidth=0, **look)
    return ax


def plot_local_coverage(
    result: LocalCoverage, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the coverage of each bin with its interval against the variable.

    The dashed line is the coverage that the intervals were made for. Bins whose
    confidence interval misses it have another colour and marker. The coverage of all
    rows stands in the right margin.

    Parameters
    ----------
    result : LocalCoverage
        What :func:`local_coverage` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label`
        are those of the valid bins alone.

    Examples
    --------
    >>> from sigmascale import datasets, local_coverage, normal_interval
    >>> data = datasets.make_molecules(500)
    >>> interval = normal_interval(data.uncertainty, 0.9)
    >>> result = local_coverage(data.error, data.uncertainty, interval, n_bins=9)
    >>> plot_local_coverage(result).get_ylabel()
    'local coverage (target 0.9)'
    """
    ax = axes_for(ax, result, LocalCoverage, "result")
    _plot_bins(ax, result, result.coverage, result.target, result.overall, style)
    ax.set_ylabel(f"local coverage (target {result.target:g})")
    lowest = min(result.low.min(), result.overall[1], result.target)
    bottom = float(lowest - 0.05 * (1 - lowest))
    legend_above(ax, bottom, 1.01, _valid_bins(result))
    # the space of the legend is not of possible values
    ax.set_yticks([tick for tick in ax.get_yticks() if max(bottom, 0) <= tick <= 1])
    return ax


def plot_factors(
    scaler: Any, variable: str | None = None, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the factors of the bins, or labels, of one variable; 1 is no change.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one that has factors for the bins of single variables, such as
        `RakedScaling`, `CategoryScaling` and `BinwiseScaling`, but not for cells.
    variable : str, optional
        The column whose factors are drawn, if there are several; "u" is the first. If
        there is only one, the label of the axis.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the line.

    Examples
    --------
    >>> from sigmascale import RakedScaling, datasets
    >>> data = datasets.make_molecules(500)
    >>> scaler = RakedScaling(n_bins=5).fit(data.X, data.error)
    >>> plot_factors(scaler, "u").get_ylabel()
    'factor'
    """
    ax = axes_for(ax)
    name, table = _table_of(scaler, variable)
    draw_factors(ax, table, **style)
    ax.set_xlabel(variable_label(name))
    return ax


def draw_factors(ax: Axes, table: FactorTable, **style: Any) -> None:
    """Draw the factors of the bins of one variable on axes that get no label of it."""
    look: Look = {"color": BLUE, "linewidth": 1.5}
    ax.axhline(1, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    factors = table.factors[1:]  # the first is for what is missing or unknown
    if isinstance(table.partition, LabelBins):
        labels = table.partition.labels
        look |= {"linestyle": "none", "marker": "o"}
        ax.plot(np.arange(len(labels)), factors, **styled(style, look))
        name_ticks(ax, map(label_text, labels))
    else:
        edges = _edges(table.partition.limits)
        ax.plot(np.repeat(edges, 2)[1:-1], np.repeat(factors, 2), **styled(style, look))
        if _is_log(table.partition.limits):
            log_ticks(ax, "x", edges[0], edges[-1])
    ax.set_ylabel("factor")


def _is_log(limits: Floats) -> bool:
    return limits.size > 1 and log_helps(limits)


def _edges(limits: Floats) -> Floats:
    """Return limits with ends for the open bins, as wide as their neighbours."""
    if not limits.size:
        return np.array([0.0, 1.0])
    if _is_log(limits):
        ends = (limits[:1] ** 2 / limits[1:2], limits[-1:] ** 2 / limits[-2:-1])
    else:
        steps = np.diff(limits) if limits.size > 1 else np.ones(1)
        ends = (limits[:1] - steps[:1], limits[-1:] + steps[-1:])
    return np.concatenate([ends[0], limits, ends[1]])


def _table_of(scaler: Any, variable: str | None) -> tuple[str, FactorTable]:
    """Return the factors of one variable, and what to call it."""
    learned = getattr(scaler, "map_", None)
    if learned is None:
        msg = (
            "`scaler` must be a fitted recalibrator with factors for bins; found "
            f"{type(scaler).__name__}."
        )
        raise InvalidInputError(msg)
    columns = fitted_names(scaler)
    tables = {columns[each.position]: each for each in factor_tables(learned)}
    if not tables:
        msg = (
            "`scaler` must have factors for the bins of one variable; found "
            f"{scaler!r}, which has none."
        )
        raise InvalidInputError(msg)
    if variable == "u" and columns[0] in tables:
        return "u", tables[columns[0]]
    if variable in tables:
        return variable, tables[variable]
    if len(tables) > 1:
        known = ", ".join(tables)
        msg = f"`variable` must be one of {known}; found {variable!r}."
        raise InvalidInputError(msg)
    ((name, table),) = tables.items()
    return variable or ("u" if name == columns[0] else name), table


def plot_monitor(monitor: Monitor, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot the evidence for each kind of change over the rows of a stream.

    The alarm is raised where a line reaches the dashed one, 1 / (1 − confidence). A
    grey area reaches from the most likely start of the change to the alarm.

    Parameters
    ----------
    monitor : Monitor
        One that has seen rows.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. If all times are numbers, they are
        its x axis, and numbers of rows otherwise.
    **style
        Properties of all lines, Matplotlib lines.

    Examples
    --------
    >>> import numpy as np
    >>> from sigmascale import Monitor
    >>> rng = np.random.default_rng(1)
    >>> monitor = Monitor(rng.normal(size=500)).update(
    ...     rng.normal(size=500), np.ones(500)
    ... )
    >>> plot_monitor(monitor).get_ylabel()
    'evidence for a change'
    """
    ax = axes_for(ax, monitor, Monitor, "monitor")
    history, alarm = monitor.history, monitor.alarm
    by_time = bool(history.times) and all(
        isinstance(time, float) for time in history.times
    )
    x: Any = history.times if by_time else history.rows
    looks: dict[str, Look] = {
        "too small": {"color": VERMILION},
        "too large": {"color": BLUE},
        "biased up": {"color": BLACK, "linestyle": "--"},
        "biased down": {"color": BLACK, "linestyle": ":"},
        "region": {"color": DARK, "linestyle": "-."},
    }
    for column, (name, look) in enumerate(looks.items()):
        points = [point[column] for point in history.evidence]
        y = [math.nan if each is None else 10**each for each in points]
        if not all(map(math.isnan, y)):
            label = "most in a region" if name == "region" else name
            ax.plot(x, y, **styled(style, {"linewidth": 1.3, "label": label, **look}))
    limit = 1 / (1 - monitor.confidence)
    ax.axhline(limit, color=GREY, linewidth=1, linestyle="--", zorder=1)
    ax.set_yscale("log")
    if alarm is not None:
        since, until = float(alarm.since), float(alarm.row)
        if isinstance(alarm.since_time, float) and isinstance(alarm.time, float):
            since, until = (alarm.since_time, alarm.time) if by_time else (since, until)
        ax.axvspan(since, until, color=GREY, alpha=0.3, linewidth=0, label="change")
    ax.set_xlabel("time" if by_time else "rows")
    ax.set_ylabel("evidence for a change")
    ax.legend(fontsize="small", loc="upper left")
    return ax


def plot_errors(
    error: Any,
    uncertainty: Any = None,
    *,
    ax: Axes | None = None,
    max_points: int = 5000,
    rng: int | np.random.Generator | None = 0,
    **style: Any,
) -> Axes:
    """Plot errors against uncertainties, with lines at ±2u and quantiles.

    About 5 % of normal errors lie beyond the lines, at every u. Dashed lines are the
    quantiles at 2.5 and 97.5 % of the errors in bins of u, if there are 200 rows or
    more: where they leave the lines at ±2u, uncertainties are wrong. The axes leave
    out far outliers; the legend counts them.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive; not beside Predictions.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    max_points : int, default 5000
        Of more rows than this, a random subset is drawn, and the legend says so.
    rng : int, Generator or None, default 0
        Seed of the subset.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> plot_errors([0.1, -0.3, 0.2], [0.1, 0.2, 0.1]).get_ylabel()
    'error E'
    """
    predictions = as_predictions(error, uncertainty)
    e, u = predictions.errors, predictions.uncertainty
    max_points, generator = check_count(max_points, "max_points"), rng_from(rng)
    ax = axes_for(ax)
    # Wide enough for nearly all rows and, unless u is far too large, for the lines.
    small, large = np.quantile(u, (0.005, 0.995))
    left, right = 0.95 * max(u.min(), small / 3), 1.05 * min(u.max(), 3 * large)
    most = 1.2 * float(np.quantile(np.abs(e), 0.995))
    lines = 2.2 * float(np.quantile(u, 0.9))
    reach = max(most, min(lines, 4 * most or lines))
    rows, notes = np.arange(e.size), []
    if e.size > max_points:
        rows = np.sort(generator.choice(e.size, max_points, replace=False))
        notes.append(f"{max_points} of {e.size} rows shown")
    inside = (np.abs(e[rows]) <= reach) & (u[rows] >= left) & (u[rows] <= right)
    if not inside.all():
        notes.append(f"{np.count_nonzero(~inside)} outside the axes")
        rows = rows[inside]
    look: Look = {"color": BLUE, "marker": "o", "linestyle": "none", "label": "E"}
    look |= {"markersize": 1.8, "markeredgewidth": 0, "rasterized": True}
    look |= {"alpha": 0.8 if rows.size < 500 else 0.4}
    ax.plot(u[rows], e[rows], **styled(style, look))
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    middle, *quantiles = error_quantiles(predictions, (0.025, 0.975))
    if middle.size > 1:
        for each, label in zip(quantiles, (None, "95 % of errors"), strict=True):
            ax.plot(middle, each, "--", color=BLACK, linewidth=1.3, label=label)
    # The lines end where the errors do, below the legend.
    grid = np.geomspace(left, max(left, min(right, reach / 2)), 200)
    for sign, label in ((2, "±2u"), (-2, None)):
        ax.plot(grid, sign * grid, color=VERMILION, linewidth=1.3, label=label)
    if log_helps(u):
        log_ticks(ax, "x", left, right)
    ax.set(xlim=(left, right), xlabel="uncertainty u", ylabel="error E")
    for handle in legend_above(ax, -reach, reach, *notes).get_lines():
        handle.set(alpha=1, markersize=4)
    return ax


def plot_predictions(
    predictions: Predictions,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
    max_points: int = 200,
    rng: int | np.random.Generator | None = 0,
    **style: Any,
) -> Axes:
    """Plot predictions with their intervals against true values.

    Intervals that miss the truth have another colour and marker; best is a share of
    1 − coverage of them.

    Parameters
    ----------
    predictions : Predictions
        With `y_pred` and `y_true`.
    coverage : float, default 0.9
        Nominal coverage of the intervals.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    max_points : int, default 200
        Of more rows than this, a random subset is drawn; the legend counts all.
    rng : int, Generator or None, default 0
        Seed of the subset.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label` are
        those of intervals that hold the truth.

    Examples
    --------
    >>> from sigmascale import datasets
    >>> plot_predictions(datasets.load_health().test).get_xlabel()
    'true value'
    """
    p = as_predictions(predictions)
    if p.y_pred is None:
        msg = "`predictions` must have `y_pred` and `y_true`; found errors alone."
        raise InvalidInputError(msg)
    limits = interval_of(p, check_fraction(coverage, "coverage"))
    max_points, generator = check_count(max_points, "max_points"), rng_from(rng)
    ax = axes_for(ax)
    held = (limits[:, 0] <= p.errors) & (p.errors <= limits[:, 1])
    notes = [f"{100 * coverage:g} % intervals hold {100 * p.mean(held):.1f} %"]
    shown = np.arange(p.n_rows)
    if p.n_rows > max_points:
        shown = np.sort(generator.choice(p.n_rows, max_points, replace=False))
        notes.append(f"{max_points} of {p.n_rows} rows shown")
    truth = p.y_pred + p.errors
    low, high = p.y_pred + limits.T
    good: Look = {"color": BLUE, "marker": "o", "label": "holds"}
    good |= {"linestyle": "none", "markeredgewidth": 0, "markersize": 3}
    good = styled(style, good)
    bad = good | {"color": VERMILION, "marker": "X", "label": "misses"}
    bad["markersize"] *= 1.4
    for which, look in ((held, good), (~held, bad)):
        rows = shown[which[shown]]
        if rows.size:
            (points,) = ax.plot(truth[rows], p.y_pred[rows], zorder=3, **look)
            bars = ax.vlines(truth[rows], low[rows], high[rows], linewidth=0.7)
            bars.set(color=points.get_color(), alpha=0.5)
    x = truth[shown]
    _diagonal(ax, float(x.min()), float(x.max()))
    ax.set(xlabel="true value", ylabel="prediction")
    bottom, top = ax.dataLim.y0, ax.dataLim.y1
    pad = 0.03 * (top - bottom) or 1
    legend_above(ax, bottom - pad, top + pad, *notes)
    return ax


def summary(
    p: Predictions,
    recalibrated: Predictions | None = None,
    *,
    figure: Figure | None = None,
) -> Figure:
    """Draw the four figures that a paper on uncertainty prints.

    They are (a) the reliability diagram, (b) the calibration curve, (c) the histogram
    of the probability integral transform, and (d) errors against uncertainties.

    Parameters
    ----------
    p : Predictions
        With errors.
    recalibrated : Predictions, optional
        The same rows with other uncertainties, drawn over the first.
    figure : matplotlib Figure, optional
        An empty one to draw on; by default a new one, as wide as a page.

    Returns
    -------
    matplotlib Figure
        To be saved: ``summary(p).savefig("summary.pdf")``.

    Examples
    --------
    >>> from sigmascale import datasets, plots
    >>> figure = plots.summary(datasets.load_health().test)
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['a', 'b', 'c', 'd']
    """
    sets = [as_predictions(each) for each in (p, recalibrated) if each is not None]
    axes_for(None)  # which says so if Matplotlib is missing
    figure = new_figure((7.2, 6)) if figure is None else figure
    panels = figure.subplots(2, 2).ravel()
    looks: list[Look] = [{}] if len(sets) == 1 else [*BEFORE_AFTER.values()]
    reliability, coverage, pit, errors = panels
    for rows, look in zip(sets, looks, strict=True):
        plot_reliability_diagram(reliability_diagram(rows), ax=reliability, **look)
        plot_calibration_curve(calibration_curve(rows), ax=coverage, **look)
        outlined = look | {"fill": look.get("label") != "before"}
        plot_pit_histogram(pit_histogram(rows), ax=pit, **outlined)
    plot_errors(sets[-1], ax=errors, **looks[-1])
    for letter, ax in zip("abcd", panels, strict=True):
        ax.set_title(letter, loc="left", fontweight="bold")
    return figure


def _plot_bins(
    ax: Axes,
    result: LocalZMS | LocalCoverage,
    values: Floats,
    target: float,
    overall: Any,
    style: Look,
    unknown: npt.NDArray[np.bool_] | None = None,
) -> Labels:
    """Plot values of bins with intervals, that of all rows beside; return their x.

    Bins that are unknown say nothing, and are grey.
    """
    x: Labels = np.arange(values.size) if result.is_grouped else result.x
    ax.axhline(target, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    size = 4.5 if x.size <= 40 else 3.5 if x.size <= 120 else 2.5
    good: Look = {"color": BLUE, "marker": "o", "label": "valid", "markersize": size}
    good = styled(style, good | {"linestyle": "none", "markeredgewidth": 0})
    bad = good | {"color": VERMILION, "marker": "X", "label": "not valid"}
    bad["markersize"] *= 1.3
    bad = {k: v for k, v in bad.items() if not k.endswith(("facecolor", "edgecolor"))}
    if unknown is None:
        unknown = np.zeros(values.size, dtype=np.bool_)
    vague = bad | {"color": GREY, "marker": "o", "label": "cannot tell"}
    vague["markersize"] = good["markersize"]
    kinds = (
        (unknown, vague),
        (result.valid & ~unknown, good),
        (~result.valid & ~unknown, bad),
    )
    for rows, look in kinds:
        if rows.any():
            (points,) = ax.plot(x[rows], values[rows], **look)
            bars = ax.vlines(x[rows], result.low[rows], result.high[rows])
            bars.set(color=points.get_color(), alpha=points.get_alpha(), linewidth=0.8)
    look = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    _, low, high = result.overall
    look["color"] = BLUE if low <= target <= high else VERMILION
    value, *limits = overall
    ax.plot([1.035, 1.035], limits, linewidth=1.5, **look)
    ax.plot([1.035], [value], "s", markersize=4, label="all rows", **look)
    if result.is_grouped:
        ax.set_xlim(-0.6, x.size - 0.4)
        name_ticks(ax, result.x)
    elif log_helps(result.x):
        log_ticks(ax, "x", result.x.min(), result.x.max())
    ax.set_xlabel(variable_label(result.name))
    return x


def _valid_bins(result: LocalZMS | LocalCoverage) -> str:
    lower, upper = result.fraction_interval
    return f"valid bins: {result.fraction_valid:.2f} [{lower:.2f}, {upper:.2f}]"


def _zms_range(result: LocalZMS) -> tuple[float, float]:
    """Return limits of a logarithmic axis for <Z²>, the target among them."""
    # An interval may reach down to 0; the points must not be squashed for it.
    floor = result.zms.min(where=result.zms > 0, initial=1) / 4
    low = max(floor, min(result.low.min(), result.overall[1]))
    high = max(result.high.max(), result.overall[2])
    return min(0.8, float(low / 1.1)), max(1.25, float(high * 1.1))


def share_zms_range(axes: Iterable[Axes]) -> None:
    """Give plots of local <Z²> the same range, so that they can be compared.

    Parameters
    ----------
    axes : iterable of matplotlib Axes
        What :func:`plot_local_zms` drew on.

    Examples
    --------
    >>> from sigmascale import datasets, local_zms
    >>> data = datasets.make_molecules(500)
    >>> before, after = (
    ...     plot_local_zms(local_zms(data.error, u, n_bins=9))
    ...     for u in (data.uncertainty, data.true_sigma)
    ... )
    >>> share_zms_range([before, after])
    >>> before.get_ylim() == after.get_ylim()
    True
    """
    axes = list(axes)
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))
        log_ticks(ax, "y", min(lows), max(highs))
