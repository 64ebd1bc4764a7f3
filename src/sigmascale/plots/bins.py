"""The picture of a bin study: what the number of bins does to the scores of a set."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scores import BinStudy
from .canvas import (
    BAND,
    BLUE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    SOFT,
    VERMILION,
    axes_for,
    explain,
    grid_in_place_of,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, VERMILION, GREEN, ORANGE)  # of u and the features
# inches that panels take: one below the other, or two side by side
ONE_PANEL = 4.0
TWO_PANELS = 6.6
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
    panels = _four_panels(ax)
    nll, ence, s, valid = panels

    # the scores of each variable in its colour, and those of all in grey
    names = []
    for score in study.scores:
        if score.startswith("ENCE_"):
            names.append(score.removeprefix("ENCE_"))
    _draw(nll, study, "NLL", SOFT, "bin-wise scaling")
    for label, line_style in {"rival": DASHES, "simulated": ":"}.items():
        nll.plot([], [], color=SOFT, linestyle=line_style, label=label)
    for name, colour in zip(names, cycle(COLOURS), strict=False):
        _draw(ence, study, f"ENCE_{name}", colour, name)
        _draw(s, study, f"S_{name}", colour, name)
        _draw_valid(valid, study, name, colour)
    _draw(s, study, "S_cal", GREY, "cal")
    _draw(s, study, "S_tot", SOFT, "tot / 2", factor=0.5)
    _draw_target_of_valid(valid, study, names)

    # what the panels are
    quantities = ("NLL", "ENCE", "S", "fraction of valid bins")
    for panel, letter, quantity in zip(panels, "abcd", quantities, strict=True):
        panel.set(xlabel=f"number of bins of {study.by}", ylabel=quantity)
        panel.margins(x=0)
        explain([panel], notes=[f"({letter})"])
    for panel in (ence, s):
        panel.set_ylim(bottom=0)
    return panels


def _four_panels(ax: Axes | None) -> list[Axes]:
    """Return four axes in the place of one."""
    if ax is None:
        figure: Any = new_figure(None, HEIGHT)
        width = figure.get_figwidth()
        if width < ONE_PANEL:  # one below the other
            figure.set_figheight(1.7 * HEIGHT)
            return list(figure.subplots(4, 1))
        if width < TWO_PANELS:  # no width was asked for
            figure.set_figwidth(TWO_PANELS)
        return list(figure.subplots(2, 2).flat)
    ax = axes_for(ax)
    figure = ax.figure
    grid = grid_in_place_of(ax, 2, 2)
    ax.remove()
    return [figure.add_subplot(cell) for cell in grid]


def _draw(
    ax: Axes, study: BinStudy, score: str, colour: str, label: str, factor: float = 1
) -> None:
    """Draw a score, that of the rival, and the target with its band."""
    n_bins = study.n_bins
    scores = factor * study.scores[score]
    ax.plot(n_bins, scores, color=colour, label=label, linewidth=1.3)
    rival = factor * study.rival[score]
    ax.axhline(rival, color=colour, linestyle=DASHES, linewidth=1)

    mean, sd = study.target[score], study.spread[score]
    ax.plot(n_bins, factor * mean, ":", color=colour, linewidth=1.3)
    low = factor * (mean - 2 * sd)
    high = factor * (mean + 2 * sd)
    ax.fill_between(n_bins, low, high, color=colour, alpha=0.12, linewidth=0)


def _draw_valid(ax: Axes, study: BinStudy, name: str, colour: str) -> None:
    """Draw the fraction of valid bins of a variable with its interval."""
    score = f"f_v_{name}"
    if score not in study.scores:  # bins are too small for intervals
        return
    n_bins = study.n_bins
    low = study.scores[f"{score}_low"]
    high = study.scores[f"{score}_high"]
    ax.fill_between(n_bins, low, high, color=colour, alpha=0.12, linewidth=0)
    ax.plot(n_bins, study.scores[score], color=colour, label=name, linewidth=1.3)
    ax.axhline(study.rival[score], color=colour, linestyle=DASHES, linewidth=1)


def _draw_target_of_valid(ax: Axes, study: BinStudy, names: list[str]) -> None:
    """Draw the target from simulated sets: the mean over variables, with a band."""
    scores = [f"f_v_{name}" for name in names if f"f_v_{name}" in study.target]
    if not scores:
        return
    mean = np.mean([study.target[score] for score in scores], axis=0)
    sd = np.mean([study.spread[score] for score in scores], axis=0)
    ax.plot(study.n_bins, mean, ":", color=SOFT, linewidth=1.3)
    ax.fill_between(study.n_bins, mean - 2 * sd, mean + 2 * sd, **BAND)
    ax.set_ylim(0, 1.02)
