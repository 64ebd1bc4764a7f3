"""Figures of scores that are curves: they are computed elsewhere, and drawn here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.labels import label_text
from ..predictions import Predictions
from ..scores import (
    CalibrationCurve,
    ConfidenceCurve,
    LocalStatistics,
    PITHistogram,
    ReliabilityDiagram,
    calibration_curve,
    pit_histogram,
    reliability_diagram,
)
from ..scores import (
    confidence_curve as compute_confidence_curve,
)
from ..scores import (
    local_statistics as compute_local_statistics,
)
from ..scores.local import Statistic
from .canvas import (
    DASHES,
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
    diagrams = results_of(before, after, ReliabilityDiagram, reliability_diagram)
    ax = axes_for(ax)
    for diagram, look in zip(diagrams, looks_of(diagrams), strict=True):
        name = _name(look, style, "bins")
        score = f"ENCE {diagram.ence:.2f}; {diagram.attainable_ence:.2f} expected"
        x = diagram.rmv
        # Matplotlib 3.10 knows what has been drawn by linear axes alone
        is_log = ax.get_xscale() == "log"
        ax.set(xscale="linear", yscale="linear")
        band(ax, x, diagram.attainable_low, diagram.attainable_high, _CALIBRATED)
        dots = {**DOTS, **look, "markersize": 4, "zorder": 3}
        dots = styled(style, dots) | {"label": f"{name}: {score}"}
        (points,) = ax.plot(x, diagram.rmse, **dots)
        bars = ax.vlines(x, diagram.low, diagram.high, linewidth=1, zorder=2)
        bars.set(color=points.get_color(), alpha=points.get_alpha())
        bars.set_label(f"{100 * diagram.confidence:g} % limits")
        _fit_axes(ax, diagram, is_log=is_log)
    label_axes([ax], "root mean variance (RMV)", "RMSE")
    explain([ax])
    return ax


def _fit_axes(ax: Axes, diagram: ReliabilityDiagram, *, is_log: bool) -> None:
    """Give the axes a range that holds all diagrams in them, not only this one."""
    (left, bottom), (right, top) = ax.dataLim.min, ax.dataLim.max
    if is_log or log_helps(np.array([left, *diagram.rmv, right])):
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


def calibration(
    before: Predictions | CalibrationCurve,
    after: Predictions | CalibrationCurve | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot observed against nominal coverage; best is the diagonal.

    The grey band holds the whole curve of a calibrated set. Below it, intervals hold
    less than they claim: uncertainties are too small (overconfident).

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
    curves = results_of(before, after, CalibrationCurve, calibration_curve)
    ax = axes_for(ax)
    for curve, look in zip(curves, looks_of(curves), strict=True):
        if _is_first(ax):
            band(ax, curve.level, curve.low, curve.high, _CALIBRATED)
        line = _line(look, style)
        line["label"] = f"{_name(look, style, 'observed')}: area {curve.area:.3f}"
        ax.plot(curve.level, curve.observed, **line)
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
    for text in [each for each in ax.texts if each.get_gid() == _SIDE]:
        text.remove()
    words: Look = {"fontsize": text_size(), "color": SOFT, "style": "italic"}
    words["gid"] = _SIDE
    curves = [np.asarray(line.get_xydata()) for line in ax.lines]
    below = min(curve[curve[:, 0] >= 0.45, 1].min() for curve in curves)
    above = max(curve[curve[:, 0] <= 0.55, 1].max() for curve in curves)
    if below > 0.15:
        ax.text(0.97, 0.03, "overconfident", ha="right", **words)
    if above < 0.85:
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
        The same recalibrated, drawn beside.
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
    histograms = results_of(before, after, PITHistogram, pit_histogram)
    axes = panels(ax, histograms)
    for histogram, look, own in zip(
        histograms, looks_of(histograms), axes, strict=True
    ):
        bars: Look = {"fill": True, "alpha": 0.5, "label": "share of truths"} | style
        if not bars["fill"]:
            bars |= {"alpha": style.get("alpha", 1), "linewidth": 1.6, "zorder": 3}
        bars |= {} if "color" in style else {"facecolor": look["color"]}
        if _is_first(own):
            band(own, [0, 1], histogram.low, histogram.high, _CALIBRATED)
            own.axhline(1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
        own.stairs(histogram.density, histogram.edges, **styled({}, bars, patch=True))
        own.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    label_axes(axes, "probability integral transform (PIT)", "density")
    explain(axes, looks_of(histograms))
    highest = max(own.dataLim.y1 for own in axes)
    axes[0].set_ylim(0, 1.04 * max(highest, *(each.high for each in histograms)))
    return axes[0]


def confidence_curve(
    before: Predictions | ConfidenceCurve,
    after: Predictions | ConfidenceCurve | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot a confidence curve with its oracle and its probabilistic reference.

    The most uncertain rows are removed first. The curve of honest uncertainties stays
    in the grey band about its expectation, if the errors are normal; heavy tails take
    it out of the band, too. The oracle removes the largest errors first.

    Parameters
    ----------
    before : Predictions or ConfidenceCurve
        Rows with errors, or what :func:`sigmascale.scores.confidence_curve` returns.
    after : Predictions or ConfidenceCurve, optional
        The same recalibrated, drawn beside.
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
    curves = results_of(before, after, ConfidenceCurve, compute_confidence_curve)
    axes = panels(ax, curves)
    for curve, look, own in zip(curves, looks_of(curves), axes, strict=True):
        x = curve.pruned
        band(own, x, curve.reference_low, curve.reference_high, _CALIBRATED)
        plain = {key: value for key, value in look.items() if key == "color"}
        line = _line(plain, style) | {
            "label": style.get("label", "by u, largest first")
        }
        own.plot(x, curve.error, **line)
        own.plot(x, curve.reference, ":", color=SOFT, linewidth=1, label="expected")
        oracle: Look = {"color": INK, "linewidth": 1, "label": "oracle, by the error"}
        own.plot(x, curve.oracle, "--", **oracle)
        own.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    statistic = curves[0].statistic.upper()
    label_axes(axes, "fraction of rows removed", f"{statistic} of the rows left")
    explain(axes, looks_of(curves))
    axes[0].set_ylim(0, 1.03 * max(own.dataLim.y1 for own in axes) or 1)
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
    interval misses the target have another mark, and the legend says how many there
    are, and how many are to be expected. The value of all rows stands in the right
    margin. A triangle at the bottom is a bin whose <Z²> is 0.

    Parameters
    ----------
    before : Predictions or LocalStatistics
        Rows with errors, or what :func:`sigmascale.scores.local_statistics` returns,
        which has a window that slides, too.
    after : Predictions or LocalStatistics, optional
        The same recalibrated, drawn beside.
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
    compute = partial(compute_local_statistics, by=by, statistic=statistic)
    results = results_of(before, after, LocalStatistics, compute)
    axes = panels(ax, results)
    ranges = [_range_of(result) for result in results]
    bottom, top = min(low for low, _ in ranges), max(high for _, high in ranges)
    for result, look, own in zip(results, looks_of(results), axes, strict=True):
        _draw_bins(own, result, look, style)
        _draw_overall(own, result, look, bottom)
        if result.is_labelled:
            name_ticks(own, map(label_text, result.x))
        elif log_helps(result.x):
            log_ticks(own, "x", result.x.min(), result.x.max())
        own.set(ylim=(bottom, top))
        if result.statistic == "zms":
            log_ticks(own, "y", bottom, top)
    notes = [_missed(result) for result in results]
    label_axes(axes, variable(results[0].name), f"local {results[0].words}")
    explain(axes, looks_of(results), notes)
    return axes[0]


def _missed(result: LocalStatistics) -> str:
    """Return how many bins miss the target, and how many are to be expected."""
    n_bins, n_missed = result.valid.size, int((~result.valid).sum())
    expected = (1 - result.confidence) * n_bins
    return (
        f"{n_missed} of {n_bins} bins miss {result.target:g}; {expected:.2g} expected"
    )


def _range_of(result: LocalStatistics) -> tuple[float, float]:
    """Return the range of an axis; of <Z²>, which limits down to 0 do not stretch."""
    low = min(result.low.min(), result.overall[1])
    high = max(result.high.max(), result.overall[2])
    if result.statistic == "zms":
        floor = result.value.min(where=result.value > 0, initial=1) / 4
        return min(0.8, float(max(floor, low) / 1.1)), max(1.25, float(high * 1.1))
    low, high = min(low, result.target), max(high, result.target)
    margin = 0.05 * (high - low) or 0.05
    return float(low - margin), float(high + margin)


def _draw_bins(ax: Axes, result: LocalStatistics, look: Look, style: Look) -> None:
    """Draw the bins with their intervals, and mark those that miss the target."""
    x = np.arange(result.value.size) if result.is_labelled else result.x
    ax.axhline(result.target, color=INK, linewidth=0.8, linestyle="--", zorder=1)
    size = 4.5 if x.size <= 40 else 3.5 if x.size <= 120 else 2.5
    dots = {**DOTS, "color": look["color"], "marker": "o", "markersize": size}
    good = styled(style, dots | {"label": _bins_with(result.confidence)})
    bad = {**MISSES, "markersize": 1.5 * size, "zorder": 4}
    bad["label"] = f"that miss {result.target:g}"
    for which, marks in ((result.valid, good), (~result.valid, bad)):
        if which.any():
            (points,) = ax.plot(x[which], result.value[which], **marks)
            bars = ax.vlines(x[which], result.low[which], result.high[which])
            bars.set(color=good["color"], alpha=points.get_alpha(), linewidth=0.8)
    if result.statistic == "zms" and (zero := result.value <= 0).any():
        at = np.full(zero.sum(), 0.03)
        ax.plot(x[zero], at, "v", color=INK, transform=ax.get_xaxis_transform())


def _bins_with(confidence: float) -> str:
    return f"bins with {100 * confidence:g} % limits"


def _draw_overall(ax: Axes, result: LocalStatistics, look: Look, bottom: float) -> None:
    """Draw the average over all rows in the right margin."""
    beside: Look = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    beside["color"] = look["color"]
    value, *limits = np.maximum(result.overall, bottom)
    ax.plot([1.035, 1.035], limits, linewidth=1.5, **beside)
    ax.plot([1.035], [value], "s", markersize=4, label="all rows", **beside)
