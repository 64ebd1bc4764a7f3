"""The pictures of a report; what is drawn was computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats
from .._support.drawing import (
    BLACK,
    BLUE,
    Look,
    log_helps,
    log_ticks,
    name_ticks,
    variable_label,
)
from .._support.labels import label_text
from .._support.progress import track
from ..judging.confidence_curves import ConfidenceCurve
from ..judging.validation import Validation
from ..maps import (
    UNCERTAINTY,
    Column,
    Constant,
    FactorTable,
    Node,
    Product,
    factor_tables,
)
from ..monitoring.over_time import OverTime
from ..plots import (
    BEFORE_AFTER,
    draw_factors,
    plot_adaptivity,
    plot_calibration_curve,
    plot_confidence_curve,
    plot_errors,
    plot_local_zms,
    plot_monitor,
    plot_pit_histogram,
    plot_predictions,
    plot_reliability_diagram,
    share_zms_range,
)
from ..predictions import Predictions
from .results import Results, Stage
from .svg import drawing, inline_svg
from .text import percent, score_words, variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST_LABEL = 34  # characters that fit beside an axis
POINTS = 2000  # of a cloud; more would only make the file larger


@dataclass(frozen=True)
class Picture:
    """One picture: SVG for the inside of a page, and what stands below it."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Row:
    """Pictures to be compared, and what they are of."""

    heading: str
    pictures: tuple[Picture, ...]


Painter = Callable[..., object]  # draws on the axes `ax`
Save = Callable[[str, "Figure", str, str], None]  # title, caption, the figure as SVG


@dataclass(frozen=True)
class Sketch:
    """A row of pictures still to be drawn: the caption and the painter of each."""

    heading: str
    parts: Sequence[tuple[str, Painter]]
    then: Callable[[list[Axes]], object] = list  # does something to all of them


def sketches(results: Results) -> dict[str, list[Sketch]]:
    """Return what is to be drawn, by section."""
    return {
        "Reliability": _in_pairs(_reliability(results)),
        "Local calibration": _local_calibration(results),
        "Over time": over_time(results.over_time),
        "Confidence curve": [Sketch("", _curves(results), _share_range)],
        "Errors against uncertainties": [Sketch("", _errors(results))],
        "Factors": _factors(results),
    }


def draw(
    sections: dict[str, list[Sketch]], save: Save | None = None
) -> dict[str, list[Row]]:
    """Draw sketches, by section; `save` is called on each figure."""
    every = [(section, sketch) for section in sections for sketch in sections[section]]
    drawn: dict[str, list[Row]] = {section: [] for section in sections}
    with drawing() as new_figure:
        for number, (section, sketch) in enumerate(track(every, "drawing", len(every))):
            figures = [new_figure() for _ in sketch.parts]
            axes = [figure.subplots() for figure in figures]
            for ax, (_, paint) in zip(axes, sketch.parts, strict=True):
                paint(ax=ax)
            sketch.then(axes)
            title = f"{section}: {sketch.heading}" if sketch.heading else section
            pictures = []
            for i, (figure, (caption, _)) in enumerate(
                zip(figures, sketch.parts, strict=True)
            ):
                svg = inline_svg(figure, f"p{number}-{i}", title, caption)
                if save is not None:
                    save(title, figure, caption, svg)
                pictures.append(Picture(svg, caption))
            drawn[section].append(Row(sketch.heading, tuple(pictures)))
    return drawn


def _reliability(results: Results) -> list[tuple[str, Painter]]:
    """Sketch what papers on uncertainty print, before and after in one picture."""
    stages = results.stages
    parts: list[tuple[str, Painter]] = []
    if (diagram := stages[-1].reliability) is not None:
        ence = _each(stages, lambda stage: f"{stage.reliability.ence:.2f}")
        caption = (
            f"Reliability diagram: RMSE against root mean variance in {diagram.n.size} "
            f"bins of u; ENCE {ence}. Above the diagonal, u is too small "
            "(overconfident)."
        )
        paint = partial(_together, stages, "reliability", plot_reliability_diagram)
        parts.append((caption, paint))
    area = _each(stages, lambda stage: f"{stage.coverage.area:.3f}")
    caption = (
        "Calibration curve: what intervals hold against what they claim; "
        f"miscalibration area {area}. Below the diagonal is overconfident."
    )
    paint = partial(_together, stages, "coverage", plot_calibration_curve)
    parts.append((caption, paint))
    flat = _each(stages, lambda stage: "yes" if stage.pit.is_within else "no")
    caption = (
        "PIT histogram: where truths lie in their predicted distributions. A U is "
        f"overconfident, a slope biased. All bins in the band: {flat}."
    )
    parts.append((caption, partial(_together, stages, "pit", plot_pit_histogram)))
    final = stages[-1]
    if final.rows.y_pred is not None:
        caption = f"{final.name.capitalize()}: predictions with intervals of 90 %."
        parts.append((caption, partial(plot_predictions, final.rows)))
    return parts


def _each(stages: Sequence[Stage], words: Callable[[Any], str]) -> str:
    """Return what is said of each stage, by its name if there are several."""
    if len(stages) == 1:
        return words(stages[0])
    return ", ".join(f"{words(stage)} {stage.name}" for stage in stages)


def _together(stages: Sequence[Stage], field: str, plot: Painter, ax: Axes) -> None:
    """Draw a result of every stage in the same axes."""
    for stage in stages:
        look = BEFORE_AFTER.get(stage.name, {})
        if field == "pit":
            look = look | {"fill": stage.name != "before"}
        plot(getattr(stage, field), ax=ax, **look)


def _local_calibration(results: Results) -> list[Sketch]:
    """Local <Z²> of u and of every feature."""
    return [
        Sketch(
            "uncertainty u" if name == "u" else name,
            [
                (_local_caption(stage, name), partial(_local, stage.validation, name))
                for stage in results.stages
            ],
            share_zms_range,
        )
        for name in results.final.validation.local
    ]


def over_time(found: OverTime | None) -> list[Sketch]:
    """<Z²> and bias over time, and the evidence for a change."""
    if found is None:
        return []
    periods = (
        f"{found.local.n.size} periods of about {round(found.local.n.mean()):,} rows"
    )
    parts: list[tuple[str, Painter]] = [
        (f"⟨Z²⟩ of {periods}; 1 is right.", partial(_over_time, found)),
        (f"Mean of z of {periods}; 0 is right.", partial(_bias_over_time, found)),
    ]
    if found.monitor is not None:
        caption = (
            "What rows say for each kind of change; at the dashed line, one is certain "
            f"at {percent(found.monitor.confidence)}."
        )
        parts.append((caption, partial(_evidence_over_time, found)))
    return _in_pairs(parts)


def _curves(results: Results) -> list[tuple[str, Painter]]:
    """Confidence curves, with the same range."""
    return [
        (
            _curve_caption(stage.name, stage.curve),
            partial(plot_confidence_curve, stage.curve),
        )
        for stage in results.stages
    ]


def _errors(results: Results) -> list[tuple[str, Painter]]:
    """Errors against uncertainties."""
    return [
        (
            f"{stage.name.capitalize()}{_thinned(stage.rows.n_rows)}.",
            partial(plot_errors, stage.rows, max_points=POINTS, rasterized=False),
        )
        for stage in results.stages
    ]


def _factors(results: Results) -> list[Sketch]:
    """Factors, as they were learned or as they come out for the judged rows."""
    learned = getattr(results.fitted, "map_", None)
    if not results.recalibrated or _is_one_factor(learned):
        return []
    tables = [] if learned is None else factor_tables(learned)
    if tables:
        # another set than the one fitted on may have been given, with fewer columns
        known = dict(enumerate(("u", *results.columns[1:])))
        return _in_pairs(
            [
                _factor_part(each, known.get(each.position, f"X{each.position}"))
                for each in tables
            ]
        )
    before, after = (stage.rows for stage in results.stages)
    ratio = after.uncertainty / before.uncertainty
    return _in_pairs(
        [
            (
                f"Recalibrated uncertainty divided by u against {variable(name)}"
                f"{_thinned(ratio.size)}.",
                partial(_ratios, ratio, before, name),
            )
            for name in before.names
        ]
    )


def _local_caption(stage: Stage, name: str) -> str:
    verdict, local = stage.validation.verdicts[name], stage.validation.local[name]
    parts = []
    if verdict.score is not None:
        parts.append(score_words(verdict, verdict.score))
    valid = f"{percent(local.fraction_valid)} of {local.n.size} bins are valid"
    if verdict.attainable is not None:
        valid += f", attainable {percent(verdict.attainable)}"
    parts.append(valid)
    if verdict.band is not None:
        each = "label" if local.is_grouped else "tenth of the rows"
        parts.append(f"the band holds ⟨Z²⟩ of every {each}, all at once")
    grey = int(np.count_nonzero(local.says_nothing(stage.validation.tolerance)))
    if grey:
        bins = "1 grey bin has" if grey == 1 else f"{grey} grey bins have"
        parts.append(f"{bins} too few rows to tell")
    return f"{stage.name.capitalize()}: {'; '.join(parts)}."


def _curve_caption(stage: str, curve: ConfidenceCurve) -> str:
    half = int(np.searchsorted(curve.pruned, 0.5))
    half = min(half, curve.pruned.size - 1)
    return (
        f"{stage.capitalize()}: the RMSE of {curve.error[0]:.3g} falls to "
        f"{curve.error[half]:.3g} as {percent(curve.pruned[half])} of the rows are "
        f"removed; the oracle's to {curve.oracle[half]:.3g}."
    )


def _thinned(n_rows: int) -> str:
    return f"; {POINTS:,} of {n_rows:,} rows are drawn" if n_rows > POINTS else ""


def _is_one_factor(learned: Node | None) -> bool:
    """Return whether a map only multiplies u by numbers: there is nothing to draw."""
    parts = learned.factors if isinstance(learned, Product) else (learned,)
    return all(
        isinstance(part, Constant)
        or (isinstance(part, Column) and part.position == UNCERTAINTY.position)
        for part in parts
    )


def _factor_part(table: FactorTable, name: str) -> tuple[str, Painter]:
    idle = " (none: not worth it)" if np.all(table.factors == 1) else ""
    caption = f"Factors of the bins of {variable(name)}{idle}."
    return caption, partial(_factor_table, table, name)


def _in_pairs(parts: list[tuple[str, Painter]]) -> list[Sketch]:
    return [Sketch("", parts[i : i + 2]) for i in range(0, len(parts), 2)]


def _share_range(axes: list[Axes]) -> None:
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)


def _label(ax: Axes, name: str) -> None:
    ax.set_xlabel(variable_label(name, LONGEST_LABEL))


def _local(validation: Validation, name: str, ax: Axes) -> None:
    plot_adaptivity(validation.verdicts[name], ax=ax, tolerance=validation.tolerance)
    _label(ax, name)


def _over_time(found: OverTime, ax: Axes) -> None:
    plot_local_zms(found.local, ax=ax)
    _time_axis(ax, found)


def _bias_over_time(found: OverTime, ax: Axes) -> None:
    """Draw the mean of z of each period, with its interval."""
    ax.axhline(0, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    look: Look = {"color": BLUE, "linewidth": 0.8, "markersize": 4}
    ax.errorbar(found.local.x, found.bias, found.spread, fmt="o", **look)
    ax.set_ylabel("mean of z")
    _time_axis(ax, found)


def _evidence_over_time(found: OverTime, ax: Axes) -> None:
    assert found.monitor is not None
    plot_monitor(found.monitor, ax=ax)
    _time_axis(ax, found)


def _time_axis(ax: Axes, found: OverTime) -> None:
    ax.set_xscale("linear")
    if found.is_dated:
        from matplotlib import dates

        made: Any = dates  # without types
        locator = made.AutoDateLocator(maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(made.ConciseDateFormatter(locator))
    first, last = found.local.x_min[0], found.local.x_max[-1]
    if first < last:
        ax.set_xlim(first, last)
    ax.set_xlabel("time")


def _factor_table(table: FactorTable, name: str, ax: Axes) -> None:
    draw_factors(ax, table)
    _label(ax, name)


def _ratios(ratio: Floats, before: Predictions, name: str, ax: Axes) -> None:
    """Draw ratios of uncertainties against a variable."""
    rng = np.random.default_rng(0)
    rows = np.arange(ratio.size)
    if rows.size > POINTS:
        rows = np.sort(rng.choice(rows, POINTS, replace=False))
    ax.axhline(1, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    x = before.columns[before.position(name)]
    labelled = before.is_labelled(name)
    values = x + rng.uniform(-0.25, 0.25, x.size) if labelled else x  # side by side
    look: Look = {"color": BLUE, "alpha": 0.4, "markersize": 2.5, "markeredgewidth": 0}
    ax.plot(values[rows], ratio[rows], "o", **look)
    if labelled:
        name_ticks(ax, map(label_text, before.labels(name).labels))
    elif log_helps(x):
        log_ticks(ax, "x", x.min(), x.max())
    if log_helps(ratio):
        log_ticks(ax, "y", ratio.min(), ratio.max())
    ax.set_ylabel("recalibrated / u")
    _label(ax, name)
