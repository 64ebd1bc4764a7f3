"""The picture of a bin study: what the number of bins does to the scores of a set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..scores import BinStudy
from .canvas import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    SOFT,
    VERMILION,
    axes_for,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, VERMILION, GREEN, ORANGE)  # of u and the features
BINS_WIDTH = 7.0  # inches
HEIGHT = 5.6


def bin_study(study: BinStudy, *, ax: Axes | None = None) -> list[Axes]:
    """Plot the scores of a bin study against the number of bins, in four panels.

    They are (a) NLL, (b) ENCE, (c) S of each variable, S_cal and half of S_tot, and (d)
    fractions of valid bins with their intervals. The rival, isotonic regression, is
    dashed. Simulated, calibrated sets are dotted, with a band of two standard
    deviations; in (d) the band is grey.

    Parameters
    ----------
    study : BinStudy
        What :func:`sigmascale.scores.bin_study` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. It gives way to the four panels.

    Returns
    -------
    list of matplotlib Axes

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(2000, seed=1).predictions
    >>> halves = p.take(range(1000)), p.take(range(1000, 2000))
    >>> study = ss.scores.bin_study(*halves, numbers=(2, 8), n_draws=9)
    >>> [ax.get_ylabel() for ax in ss.plots.bin_study(study)]
    ['NLL', 'ENCE', 'S', 'fraction of valid bins']
    """
    nll, ence, s, valid = _four_panels(ax)
    names = [x.removeprefix("ENCE_") for x in study.scores if x.startswith("ENCE_")]
    colours = {x: COLOURS[k % len(COLOURS)] for k, x in enumerate(names)}

    _draw(nll, study, "NLL", SOFT, "NLL")
    for name, colour in colours.items():
        _draw(ence, study, f"ENCE_{name}", colour, name)
        _draw(s, study, f"S_{name}", colour, name)
        _draw_valid(valid, study, name, colour)
    _draw(s, study, "S_cal", GREY, "cal")
    _draw(s, study, "S_tot", SOFT, "tot / 2", factor=0.5)
    _draw_target_of_valid(valid, study, names)

    panels = [nll, ence, s, valid]
    words = ("NLL", "ENCE", "S", "fraction of valid bins")
    for panel, letter, word in zip(panels, "abcd", words, strict=True):
        panel.set(xlabel=f"number of bins of {study.by}", ylabel=word)
        panel.set_title(f"({letter})", loc="left", fontweight="bold")
        panel.margins(x=0)
    for panel in (ence, s):
        panel.set_ylim(0, 1.25 * panel.get_ylim()[1])  # with room for the legend
    for panel in (ence, s, valid):
        panel.legend(frameon=False, ncols=2, columnspacing=1, handlelength=1.5)
    _explain_lines(nll)
    return panels


def _four_panels(ax: Axes | None) -> list[Axes]:
    """Return four axes in the place of one."""
    if ax is None:
        figure: Any = new_figure(None, HEIGHT)
        figure.set_figwidth(max(BINS_WIDTH, figure.get_figwidth()))
        return list(figure.subplots(2, 2).flat)
    ax = axes_for(ax)
    figure, place = ax.figure, ax.get_subplotspec()
    left, bottom, width, height = ax.get_position().bounds
    outer = {"left": left, "right": left + width, "bottom": bottom}
    grid: Any = place.subgridspec(2, 2) if place else None
    grid = grid or figure.add_gridspec(2, 2, top=bottom + height, **outer)
    ax.remove()
    return [figure.add_subplot(grid[k // 2, k % 2]) for k in range(4)]


def _draw(
    ax: Axes, study: BinStudy, score: str, colour: str, label: str, factor: float = 1
) -> None:
    """Draw a score, that of the rival, and the target with its band."""
    n, mean, sd = study.n_bins, study.target[score], study.spread[score]
    ax.plot(n, factor * study.scores[score], color=colour, label=label, linewidth=1.3)
    ax.axhline(factor * study.rival[score], color=colour, linestyle=DASHES, linewidth=1)
    ax.plot(n, factor * mean, ":", color=colour, linewidth=1.3)
    low, high = factor * (mean - 2 * sd), factor * (mean + 2 * sd)
    ax.fill_between(n, low, high, color=colour, alpha=0.12, linewidth=0)


def _draw_valid(ax: Axes, study: BinStudy, name: str, colour: str) -> None:
    """Draw the fraction of valid bins of a variable with its interval."""
    score = f"f_v_{name}"
    if score not in study.scores:  # bins are too small for intervals
        return
    n = study.n_bins
    low, high = (study.scores[f"{score}_{end}"] for end in ("low", "high"))
    ax.fill_between(n, low, high, color=colour, alpha=0.12, linewidth=0)
    ax.plot(n, study.scores[score], color=colour, label=name, linewidth=1.3)
    ax.axhline(study.rival[score], color=colour, linestyle=DASHES, linewidth=1)


def _draw_target_of_valid(ax: Axes, study: BinStudy, names: list[str]) -> None:
    """Draw what simulated sets have: the mean over variables, with a grey band."""
    scores = [f"f_v_{name}" for name in names if f"f_v_{name}" in study.target]
    if not scores:
        return
    mean = np.mean([study.target[score] for score in scores], axis=0)
    sd = np.mean([study.spread[score] for score in scores], axis=0)
    ax.plot(study.n_bins, mean, ":", color=SOFT, linewidth=1.3)
    ax.fill_between(
        study.n_bins, mean - 2 * sd, mean + 2 * sd, color=GREY, alpha=0.35, linewidth=0
    )
    ax.set_ylim(0, 1.02)


def _explain_lines(ax: Axes) -> None:
    """Say what solid, dashed and dotted lines are, within the axes."""
    styles: tuple[tuple[Any, str], ...] = (
        ("-", "bin-wise scaling"),
        (DASHES, "rival"),
        (":", "simulated"),
    )
    lines = [
        ax.plot([], [], color=SOFT, linestyle=style, label=label)[0]
        for style, label in styles
    ]
    ax.legend(handles=lines, frameon=False, loc="upper right")
