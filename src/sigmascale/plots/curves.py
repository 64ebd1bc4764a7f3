"""Figures of scores that are curves: they are computed elsewhere, and drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import scores
from .._support.labels import label_text
from .._support.numerals import fixed, level, number
from ..paper.valid_bins import Statistic
from ..predictions.predictions import Predictions
from ..scores import (
    CalibrationCurve,
    ConfidenceCurve,
    LocalStatistics,
    PITHistogram,
    ReliabilityDiagram,
)
from .canvas import (
    DASHES,
    IDEAL,
    INK,
    SOFT,
    Look,
    axes_for,
    band,
    diagonal,
    explain,
    label_axes,
    log_helps,
    log_ticks,
    looks_of,
    name_ticks,
    panels,
    remove_drawn,
    results_of,
    styled,
    text_size,
    variable,
)
from .rows import DOTS, MISSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CALIBRATED = "if calibrated"  # the name of the grey band


def _name(look: Look, style: Look, alone: str) -> str:
    """Return what a set is called in the legend: the user's name, or ours."""
    return str(style.get("label", look.get("label", alone)))


def reliability(
    before: Predictions | ReliabilityDiagram,
    after: Predictions | ReliabilityDiagram | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot RMSE against root mean variance of bins; best is the diagonal.

    Above the diagonal, uncertainties are too small (overconfident). The grey band is
    where bins of calibrated uncertainties would lie; the legend has the ENCE, and that
    of calibrated sets.

    Parameters
    ----------
    before : Predictions or ReliabilityDiagram
        Rows with errors, or what :func:`sigmascale.scores.reliability_diagram` returns.
    after : Predictions or ReliabilityDiagram, optional
        The same recalibrated, drawn in the same axes.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Diagrams drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.reliability(ss.datasets.load_diabetes().test).get_ylabel()
    'RMSE'
    """
    diagrams = results_of(before, after, ReliabilityDiagram, scores.reliability_diagram)
    ax = axes_for(ax)
    # Matplotlib 3.10 knows what has been drawn by linear axes alone
    is_log = ax.get_xscale() == "log"
    ax.set(xscale="linear", yscale="linear")
    for diagram, look in zip(diagrams, looks_of(diagrams), strict=True):
        rmv = diagram.rmv
        band(ax, rmv, diagram.attainable_low, diagram.attainable_high, _CALIBRATED)

        # the bins, with their score in the legend
        expected = fixed(diagram.attainable_ence, 2)
        score = f"ENCE {fixed(diagram.ence, 2)}; {expected} expected"
        dots = {**DOTS, **look, "markersize": 4, "zorder": 3}
        dots = styled(style, dots) | {"label": f"{_name(look, style, 'bins')}: {score}"}
        (points,) = ax.plot(rmv, diagram.rmse, **dots)

        # their limits, which look like the points; they are the last in the legend
        bars = ax.vlines(rmv, diagram.low, diagram.high, linewidth=1, zorder=2)
        bars.set(color=points.get_color(), alpha=points.get_alpha())
        if diagram is diagrams[-1]:
            bars.set_label(f"{level(diagram.confidence)} limits")
    _fit_axes(ax, diagrams, is_log=is_log)
    label_axes([ax], "root mean variance (RMV)", "RMSE")
    explain([ax])
    return ax


def _fit_axes(
    ax: Axes, diagrams: Sequence[ReliabilityDiagram], *, is_log: bool
) -> None:
    """Give the axes a range that contains all diagrams in them, not only these."""
    left, bottom = ax.dataLim.min
    right, top = ax.dataLim.max
    rmv = np.concatenate([diagram.rmv for diagram in diagrams])
    rmse = np.concatenate([diagram.rmse for diagram in diagrams])
    if is_log or log_helps(np.array([left, *rmv, right])):
        # limits may reach down to 0; the points must not be squashed for it
        smallest = rmse[rmse > 0].min(initial=top)
        bottom = max(bottom, ax.dataLim.minposy, smallest / 10)
        log_ticks(ax, "x", left, right)
        log_ticks(ax, "y", bottom, top)
        x_range = (left / 1.05, right * 1.05)
        y_range = (bottom / 1.05, top * 1.05)
    else:
        pad = 0.04 * (top - bottom)
        x_range = (left - pad, right + pad)
        y_range = (max(0, bottom - pad), top + pad)

    # the diagonal, as far as both axes reach
    diagonal(ax, max(x_range[0], y_range[0]), min(x_range[1], y_range[1]))
    ax.set(xlim=x_range, ylim=y_range)


def calibration(
    before: Predictions | CalibrationCurve,
    after: Predictions | CalibrationCurve | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot observed against nominal coverage; best is the diagonal.

    The grey band is that of the curves of calibrated sets. Below it, intervals cover
    too few true values: uncertainties are too small (overconfident).

    Parameters
    ----------
    before : Predictions or CalibrationCurve
        Rows with errors, or what :func:`sigmascale.scores.calibration_curve` returns.
    after : Predictions or CalibrationCurve, optional
        The same recalibrated, drawn in the same axes.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.calibration(ss.datasets.load_diabetes().test).get_xlabel()
    'nominal coverage'
    """
    curves = results_of(before, after, CalibrationCurve, scores.calibration_curve)
    ax = axes_for(ax)
    for curve, look in zip(curves, looks_of(curves), strict=True):
        if _is_first(ax):
            band(ax, curve.coverage, curve.low, curve.high, _CALIBRATED)
        line = _line(look, style)
        line["label"] = f"{_name(look, style, 'observed')}: area {fixed(curve.area, 3)}"
        ax.plot(curve.coverage, curve.observed, **line)
    diagonal(ax, 0, 1)
    is_interval = curves[0].kind == "interval"
    name = "coverage" if is_interval else "fraction below quantile"
    ax.set(xlim=(0, 1), ylim=(0, 1))
    label_axes([ax], f"nominal {name}", f"observed {name}")
    if is_interval:
        _name_the_sides(ax)
    explain([ax])
    return ax


def _line(look: Look, style: Look) -> Look:
    """Return how the curve of a set is drawn: with dashes, what was before."""
    dashed = look.get("label") == "before"
    line: Look = {"color": look["color"], "linewidth": 1.8, "zorder": 3}
    return styled(style, line | {"linestyle": DASHES if dashed else "-"})


def _name_the_sides(ax: Axes) -> None:
    """Say what it means to lie above or below, where no curve is in the way."""
    remove_drawn(ax.texts, _SIDE)  # of curves that were drawn before
    lowest, highest = 1.0, 0.0
    for line in ax.lines:
        level, observed = np.asarray(line.get_xydata()).T
        lowest = min(lowest, observed[level >= 0.45].min())
        highest = max(highest, observed[level <= 0.55].max())
    words: Look = {"fontsize": text_size(), "color": SOFT, "style": "italic"}
    words["gid"] = _SIDE
    if lowest > 0.15:
        ax.text(0.97, 0.03, "overconfident", ha="right", **words)
    if highest < 0.85:
        ax.text(0.03, 0.97, "underconfident", va="top", **words)


_SIDE = "side of the diagonal"


def _is_first(ax: Axes) -> bool:
    """Whether the band of calibrated sets is not yet drawn."""
    return _CALIBRATED not in ax.get_legend_handles_labels()[1]


def pit(
    before: Predictions | PITHistogram,
    after: Predictions | PITHistogram | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot the histogram of the probability integral transform; best is flat.

    A U says that uncertainties are too small (overconfident), a hill that they are too
    large, a slope that predictions are biased. All bins of a calibrated set lie in the
    grey band.

    Parameters
    ----------
    before : Predictions or PITHistogram
        Rows with errors, or what :func:`sigmascale.scores.pit_histogram` returns.
    after : Predictions or PITHistogram, optional
        The same recalibrated, drawn next to it.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half. Histograms drawn in the same axes share one
        legend: give each a `label` and a `color`.
    **style
        Properties of the histogram, a Matplotlib patch; ``fill=False`` draws its
        outline.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.pit(ss.datasets.load_diabetes().test).get_ylabel()
    'density'
    """
    histograms = results_of(before, after, PITHistogram, scores.pit_histogram)
    axes = panels(ax, histograms)
    looks = looks_of(histograms)
    for histogram, look, panel in zip(histograms, looks, axes, strict=True):
        if _is_first(panel):
            band(panel, [0, 1], histogram.low, histogram.high, _CALIBRATED)
            panel.axhline(1, **IDEAL)
        panel.stairs(histogram.density, histogram.edges, **_bars(look, style))
        panel.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    label_axes(axes, "probability integral transform (PIT)", "density")
    explain(axes, looks)

    # with room for the highest bar, and for the whole band
    heights = [panel.dataLim.y1 for panel in axes]
    heights += [histogram.high for histogram in histograms]
    axes[0].set_ylim(0, 1.04 * max(heights))
    return axes[0]


def _bars(look: Look, style: Look) -> Look:
    """Return how a histogram is drawn: filled, or as an outline that is opaque."""
    bars: Look = {"fill": True, "alpha": 0.5, "label": "share of true values"} | style
    if not bars["fill"]:
        bars |= {"alpha": style.get("alpha", 1), "linewidth": 1.6, "zorder": 3}
    if "color" not in style:
        bars["facecolor"] = look["color"]
    return bars


def confidence_curve(
    before: Predictions | ConfidenceCurve,
    after: Predictions | ConfidenceCurve | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot a confidence curve with its oracle and its probabilistic reference.

    The most uncertain rows are removed first. The curve of calibrated uncertainties
    stays in the grey band about its expectation, if the errors are normal; heavy tails
    take it out of the band, too. The oracle removes the largest errors first.

    Parameters
    ----------
    before : Predictions or ConfidenceCurve
        Rows with errors, or what :func:`sigmascale.scores.confidence_curve` returns.
    after : Predictions or ConfidenceCurve, optional
        The same recalibrated, drawn next to it.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half. Curves drawn in the same axes share one
        legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.confidence_curve(ss.datasets.load_diabetes().test).get_ylabel()
    'RMSE of the rows left'
    """
    curves = results_of(before, after, ConfidenceCurve, scores.confidence_curve)
    axes = panels(ax, curves)
    looks = looks_of(curves)
    expected: Look = {"color": SOFT, "linewidth": 1, "label": "expected"}
    oracle: Look = {"color": INK, "linewidth": 1, "label": "oracle, by the error"}
    for curve, look, panel in zip(curves, looks, axes, strict=True):
        removed = curve.pruned
        low, high = curve.reference_low, curve.reference_high
        band(panel, removed, low, high, _CALIBRATED)
        line = _line({"color": look["color"]}, style)
        line["label"] = style.get("label", "by u, largest first")
        panel.plot(removed, curve.error, **line)
        panel.plot(removed, curve.reference, ":", **expected)
        panel.plot(removed, curve.oracle, "--", **oracle)
        panel.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    statistic = curves[0].statistic.upper()
    label_axes(axes, "fraction of rows removed", f"{statistic} of the rows left")
    explain(axes, looks)
    highest = max(panel.dataLim.y1 for panel in axes)
    axes[0].set_ylim(0, 1.03 * highest or 1)  # errors may all be 0
    return axes[0]


def local_statistics(
    before: Predictions | LocalStatistics,
    after: Predictions | LocalStatistics | None = None,
    *,
    by: str | int = "u",
    statistic: Statistic = "zms",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot a statistic of each bin with its interval against the variable.

    It is <Z²>, whose target is 1, unless `statistic` says otherwise. Bins whose
    interval misses the target have another mark, and the title says how many there
    are, and how many are expected. The value of all rows stands in the right
    margin. A triangle at the bottom is a bin whose <Z²> is 0.

    Parameters
    ----------
    before : Predictions or LocalStatistics
        Rows with errors, or what :func:`sigmascale.scores.local_statistics` returns,
        which has a window that slides, too.
    after : Predictions or LocalStatistics, optional
        The same recalibrated, drawn next to it.
    by : str or int, default "u"
        The column to bin Predictions by.
    statistic : {"zms", "mean_z", "coverage", "rce"}, default "zms"
        What is drawn of Predictions.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Where there is an `after`, it is
        divided, and becomes the left half.
    **style
        Properties of the points, a Matplotlib line; `marker` and `label` are those of
        the valid bins alone.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.local_statistics(ss.datasets.load_diabetes().test).get_yscale()
    'log'
    """
    compute = partial(scores.local_statistics, by=by, statistic=statistic)
    results = results_of(before, after, LocalStatistics, compute)
    axes = panels(ax, results)
    looks = looks_of(results)
    lows, highs = zip(*map(_range_of, results), strict=True)
    bottom, top = min(lows), max(highs)
    for result, look, panel in zip(results, looks, axes, strict=True):
        _draw_bins(panel, result, look, style)
        _draw_overall(panel, result, look, bottom)
        if result.is_labelled:
            name_ticks(panel, map(label_text, result.x))
        elif log_helps(result.x):
            log_ticks(panel, "x", result.x.min(), result.x.max())
        panel.set(ylim=(bottom, top))
        if result.statistic == "zms":
            log_ticks(panel, "y", bottom, top)
    label_axes(axes, variable(results[0].name), f"local {results[0].words}")
    explain(axes, looks, [_missed(result) for result in results])
    return axes[0]


def _missed(result: LocalStatistics) -> str:
    """Return how many bins miss the target, and how many are expected to."""
    n_bins = result.valid.size
    n_missed = int((~result.valid).sum())
    missed = f"{n_missed} of {n_bins} bins miss {result.target:g}"
    return f"{missed}; {number((1 - result.confidence) * n_bins, 2)} expected"


def _range_of(result: LocalStatistics) -> tuple[float, float]:
    """Return the range of an axis that contains all limits, with a margin."""
    _, overall_low, overall_high = result.overall
    low = float(min(result.low.min(), overall_low))
    high = float(max(result.high.max(), overall_high))
    if result.statistic == "zms":
        # on a logarithmic axis: limits near 0 must not squash the values
        floor = float(result.value.min(where=result.value > 0, initial=1)) / 4
        return min(0.8, max(floor, low) / 1.1), max(1.25, high * 1.1)
    low, high = min(low, result.target), max(high, result.target)
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def _draw_bins(ax: Axes, result: LocalStatistics, look: Look, style: Look) -> None:
    """Draw the bins with their intervals, and mark those that miss the target."""
    places = np.arange(result.value.size) if result.is_labelled else result.x
    ax.axhline(result.target, **IDEAL)

    # many bins have small marks; bins that miss the target have larger ones
    size = 4.5 if places.size <= 40 else 3.5 if places.size <= 120 else 2.5
    good: Look = {**DOTS, "color": look["color"], "marker": "o", "markersize": size}
    good["label"] = f"bins with {level(result.confidence)} limits"
    good = styled(style, good)
    bad: Look = {**MISSES, "markersize": 1.5 * size, "zorder": 4}
    bad["label"] = f"that miss {result.target:g}"
    for chosen, marks in ((result.valid, good), (~result.valid, bad)):
        if chosen.any():
            (points,) = ax.plot(places[chosen], result.value[chosen], **marks)
            bars = ax.vlines(places[chosen], result.low[chosen], result.high[chosen])
            bars.set(color=good["color"], alpha=points.get_alpha(), linewidth=0.8)

    # what a logarithmic axis cannot show stands at its bottom
    zero = result.value <= 0
    if result.statistic == "zms" and zero.any():
        heights = np.full(zero.sum(), 0.03)
        below: Look = {"color": INK, "transform": ax.get_xaxis_transform()}
        ax.plot(places[zero], heights, "v", **below)


def _draw_overall(ax: Axes, result: LocalStatistics, look: Look, bottom: float) -> None:
    """Draw the average over all rows in the right margin."""
    margin: Look = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    margin["color"] = look["color"]
    value, *limits = np.maximum(result.overall, bottom)
    ax.plot([1.035, 1.035], limits, linewidth=1.5, **margin)
    ax.plot([1.035], [value], "s", markersize=4, label="all rows", **margin)
