"""The pictures of a report; what is drawn was computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats, Labels
from .._support.drawing import (
    BLACK,
    BLUE,
    Look,
    log_helps,
    log_ticks,
    name_ticks,
    variable_label,
)
from .._support.progress import track
from ..judging.confidence_curves import ConfidenceCurve
from ..judging.local import LocalZMS
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
    draw_factors,
    plot_confidence_curve,
    plot_errors,
    plot_local_zms,
    plot_monitor,
    plot_z_histogram,
    share_zms_range,
)
from .evidence import Evidence, Stage
from .questions import attainable_score
from .svg import drawing, inline_svg
from .text import number, percent, variable

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


@dataclass(frozen=True)
class Plan:
    """A row of pictures still to be drawn: the caption and the drawing of each."""

    heading: str
    parts: tuple[tuple[str, Callable[..., object]], ...]
    then: Callable[[list[Axes]], object] = list  # does something to all of them


Save = Callable[[str, "Figure", str], None]  # section and heading; caption


def draw_all(
    sections: dict[str, list[Plan]], save: Save | None = None
) -> dict[str, list[Row]]:
    """Draw what was planned, by section; `save` is called on each figure."""
    plans = [(section, plan) for section in sections for plan in sections[section]]
    drawn: dict[str, list[Row]] = {section: [] for section in sections}
    with drawing() as new_figure:
        for number, (section, plan) in enumerate(track(plans, "drawing", len(plans))):
            pictures = _draw(plan, new_figure, section, f"p{number}", save)
            drawn[section].append(Row(plan.heading, tuple(pictures)))
    return drawn


def _draw(
    plan: Plan,
    new_figure: Callable[[], Figure],
    section: str,
    key: str,
    save: Save | None,
) -> Iterator[Picture]:
    figures = [new_figure() for _ in plan.parts]
    axes = [figure.subplots() for figure in figures]
    for ax, (_, paint) in zip(axes, plan.parts, strict=True):
        paint(ax=ax)
    plan.then(axes)
    title = f"{section}: {plan.heading}" if plan.heading else section
    for i, (figure, (caption, _)) in enumerate(zip(figures, plan.parts, strict=True)):
        if save is not None:
            save(title, figure, caption)
        yield Picture(inline_svg(figure, f"{key}-{i}", title, caption), caption)


def plan_local(evidence: Evidence) -> list[Plan]:
    """Local <Z²> of u and of every feature."""
    return [
        Plan(
            "uncertainty u" if name == "u" else name,
            tuple(
                (
                    _local_caption(stage, name),
                    partial(
                        _local,
                        stage.validation.local[name],
                        stage.validation.tolerance,
                    ),
                )
                for stage in evidence.stages
            ),
            share_zms_range,
        )
        for name in evidence.final.validation.local
    ]


def plan_time(evidence: Evidence) -> list[Plan]:
    """<Z²> and bias over time, and the evidence for a change."""
    found = evidence.over_time
    if found is None:
        return []
    periods = (
        f"{found.local.n.size} periods of about {round(found.local.n.mean()):,} rows"
    )
    parts: list[tuple[str, Callable[..., object]]] = [
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


def plan_curves(evidence: Evidence) -> list[Plan]:
    """Confidence curves, with the same range."""
    parts = tuple(
        (
            _curve_caption(stage.name, stage.curve),
            partial(plot_confidence_curve, stage.curve),
        )
        for stage in evidence.stages
    )
    return [Plan("", parts, _share_range)]


def plan_z_scores(evidence: Evidence) -> list[Plan]:
    """Distributions of z."""
    parts = tuple(
        (
            f"{stage.name.capitalize()}: mean {stage.z.mean:+.2f}, root mean square "
            f"{stage.z.rms:.2f}; {percent(stage.z.beyond, 2)} of the rows are beyond "
            f"three times that, against {percent(0.0027, 2)} of normal ones.",
            partial(plot_z_histogram, evidence.error, stage.uncertainty),
        )
        for stage in evidence.stages
    )
    return [Plan("", parts)]


def plan_errors(evidence: Evidence) -> list[Plan]:
    """Errors against uncertainties."""
    parts = tuple(
        (
            f"{stage.name.capitalize()}{_thinned(evidence.error.size)}.",
            partial(
                plot_errors,
                evidence.error,
                stage.uncertainty,
                max_points=POINTS,
                rasterized=False,
            ),
        )
        for stage in evidence.stages
    )
    return [Plan("", parts)]


def plan_factors(evidence: Evidence) -> list[Plan]:
    """Factors, as they were learned or as they come out for the judged rows."""
    learned = getattr(evidence.fitted, "map_", None)
    if not evidence.recalibrated or _is_one_factor(learned):
        return []
    tables = [] if learned is None else factor_tables(learned)
    if tables:
        # another set than the one fitted on may have been given, with fewer columns
        known = dict(enumerate(("u", *evidence.columns[1:])))
        return _in_pairs(
            [
                _factor_picture(each, known.get(each.position, f"X{each.position}"))
                for each in tables
            ]
        )
    before, after = (stage.uncertainty for stage in evidence.stages)
    return _in_pairs(
        [
            (
                f"Recalibrated uncertainty divided by u against {variable(name)}"
                f"{_thinned(before.size)}.",
                partial(_ratios, after / before, x, name),
            )
            for name, x in {"u": before, **evidence.features}.items()
        ]
    )


def _local_caption(stage: Stage, name: str) -> str:
    verdict, local = stage.validation.verdicts[name], stage.validation.local[name]
    parts = []
    if verdict.score is not None:
        parts.append(
            f"S = {number(verdict.score)}, attainable {attainable_score(verdict)}"
        )
    valid = f"{percent(local.fraction_valid)} of {local.n.size} bins are valid"
    if verdict.attainable is not None:
        valid += f", attainable {percent(verdict.attainable)}"
    parts.append(valid)
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


def _factor_picture(table: FactorTable, name: str) -> tuple[str, Callable[..., object]]:
    idle = " (none: not worth it)" if np.all(table.factors == 1) else ""
    caption = f"Factors of the bins of {variable(name)}{idle}."
    return caption, partial(_factors, table, name)


def _in_pairs(parts: list[tuple[str, Callable[..., object]]]) -> list[Plan]:
    return [Plan("", tuple(parts[i : i + 2])) for i in range(0, len(parts), 2)]


def _share_range(axes: list[Axes]) -> None:
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)


def _label(ax: Axes, name: str) -> None:
    ax.set_xlabel(variable_label(name, LONGEST_LABEL))


def _local(local: LocalZMS, tolerance: float, ax: Axes) -> None:
    plot_local_zms(local, ax=ax, tolerance=tolerance)
    _label(ax, local.name)


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


def _factors(table: FactorTable, name: str, ax: Axes) -> None:
    draw_factors(ax, table)
    _label(ax, name)


def _ratios(ratio: Floats, x: Labels, name: str, ax: Axes) -> None:
    """Draw ratios of uncertainties against a variable."""
    rng = np.random.default_rng(0)
    rows = np.arange(ratio.size)
    if rows.size > POINTS:
        rows = np.sort(rng.choice(rows, POINTS, replace=False))
    ax.axhline(1, color=BLACK, linewidth=0.8, linestyle="--", zorder=1)
    values = x
    if x.dtype.kind != "f":
        labels, codes = np.unique(x, return_inverse=True)
        values = codes + rng.uniform(-0.25, 0.25, codes.size)  # side by side
    look: Look = {"color": BLUE, "alpha": 0.4, "markersize": 2.5, "markeredgewidth": 0}
    ax.plot(values[rows], ratio[rows], "o", **look)
    if x.dtype.kind != "f":
        name_ticks(ax, labels)
    elif log_helps(x):
        log_ticks(ax, "x", x.min(), x.max())
    if log_helps(ratio):
        log_ticks(ax, "y", ratio.min(), ratio.max())
    ax.set_ylabel("recalibrated / u")
    _label(ax, name)
