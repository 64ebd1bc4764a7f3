"""What the number of bins of bin-wise scaling does to the scores of a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sigmascale import BinwiseScaling, IsotonicScaling, Predictions
from sigmascale._support.checks import Floats, Ints
from sigmascale._support.progress import track
from sigmascale.plots import BLUE, GREEN, ORANGE, SOFT, VERMILION
from sigmascale.scores.references import Squares, simulate_scores, stream_from

from .study import Measured, measure_set


@dataclass(frozen=True)
class BinScan:
    """Scores on the test set against the number of bins of the recalibrator.

    Attributes
    ----------
    n_bins : array of shape (n_points,)
        Numbers of bins.
    scores : dict of str to array of shape (n_points,)
        Each score, under the names of a scorecard.
    valid, valid_low, valid_high : dict of str to array of shape (n_points,)
        Fraction of valid bins of each variable, with its interval.
    isotonic : Measured
        Isotonic regression, for reference.
    simulated_mean, simulated_sd : dict of str to array of shape (n_points,)
        Scores that perfectly calibrated normal errors with the same uncertainties
        would have.
    """

    n_bins: Ints
    scores: dict[str, Floats]
    valid: dict[str, Floats]
    valid_low: dict[str, Floats]
    valid_high: dict[str, Floats]
    isotonic: Measured
    simulated_mean: dict[str, Floats]
    simulated_sd: dict[str, Floats]


def scan_bins(
    training: Predictions,
    test: Predictions,
    numbers: Sequence[int],
    *,
    seed: int,
    n_draws: int,
    by: str = "u",
) -> BinScan:
    """Return test scores of bin-wise scaling against its number of bins.

    It looks at the test set, so that it is no way to choose a number.
    """
    found, references = [], []
    for n in track(numbers, "scanning bin numbers"):
        u = BinwiseScaling(n, by=by, prior_rows=0).learn(training).map.of_rows(test)
        # ties are told apart as before scaling, so that bins of features stay the same
        each = measure_set(test, seed, u=u, ties=test.y_std)
        found.append(each)
        normal, rng = Squares("normal", test.dim), stream_from(seed)
        rows = test.with_y_std(u)
        references.append(simulate_scores(rows, each.bins, normal, n_draws, rng))
    u = IsotonicScaling().learn(training).map.of_rows(test)
    local = [each.local for each in found]
    low, high = (
        [{x: r.fraction_interval[end] for x, r in each.items()} for each in local]
        for end in (0, 1)
    )
    return BinScan(
        n_bins=np.array(numbers),
        scores=_columns([each.scores.to_dict() for each in found]),
        valid=_columns([each.valid for each in found]),
        valid_low=_columns(low),
        valid_high=_columns(high),
        isotonic=measure_set(test, seed, u=u, ties=test.y_std),
        simulated_mean=_columns([each.mean for each in references]),
        simulated_sd=_columns([each.sd for each in references]),
    )


def _columns(points: list[dict[str, float]]) -> dict[str, Floats]:
    """Return the numbers of all points by name."""
    return {name: np.array([each[name] for each in points]) for name in points[0]}


def draw_scan(found: BinScan) -> Figure:
    """Draw scores of bin-wise scaling against the number of bins, in four panels.

    They are (a) NLL, (b) ENCE, (c) S of each variable, S_cal and half of S_tot, and
    (d) fractions of valid bins. Isotonic regression is dashed; simulated, calibrated
    sets are dotted, with a band of two standard deviations.
    """
    figure = Figure(figsize=(7.0, 5.8), layout="constrained")
    panels, n = figure.subplots(2, 2), found.n_bins
    colours = dict(zip(found.valid, (BLUE, VERMILION, GREEN, ORANGE) * 9, strict=False))
    isotonic = found.isotonic.scores.to_dict()

    def draw(ax: Axes, score: str, colour: str, label: str, factor: float = 1) -> None:
        mean, sd = found.simulated_mean[score], found.simulated_sd[score]
        ax.plot(n, factor * found.scores[score], color=colour, label=label, lw=1.3)
        ax.axhline(factor * isotonic[score], color=colour, ls="--", lw=1)
        ax.plot(n, factor * mean, ":", color=colour, lw=1.3)
        low, high = factor * (mean - 2 * sd), factor * (mean + 2 * sd)
        ax.fill_between(n, low, high, color=colour, alpha=0.12, lw=0)

    draw(panels[0, 0], "NLL", SOFT, "NLL")
    valid = panels[1, 1]
    for name, colour in colours.items():
        label = name
        draw(panels[0, 1], f"ENCE_{name}", colour, label)
        draw(panels[1, 0], f"S_{name}", colour, label)
        low, high = found.valid_low[name], found.valid_high[name]
        valid.fill_between(n, low, high, color=colour, alpha=0.15, lw=0)
        valid.plot(n, found.valid[name], color=colour, label=label, lw=1.3)
        valid.axhline(found.isotonic.valid[name], color=colour, ls="--", lw=1)
    draw(panels[1, 0], "S_cal", ORANGE, "cal")
    draw(panels[1, 0], "S_tot", SOFT, "tot / 2", 0.5)
    valid.axhline(0.95, color=SOFT, ls=":", lw=1.3)
    valid.set_ylim(0, 1.02)
    names = ("NLL", "ENCE", "S", "fraction of valid bins")
    for ax, letter, name in zip(panels.flat, "abcd", names, strict=True):
        ax.set(xlabel="number of bins", ylabel=name, xlim=(n.min(), n.max()))
        ax.set_title(f"({letter})", loc="left", fontsize=9, fontweight="bold")
        ax.grid(alpha=0.3)
    for ax in (panels[0, 1], panels[1, 0]):
        ax.set_ylim(0, 1.25 * ax.get_ylim()[1])  # with room for the legend
    for ax in panels.flat[1:]:
        ax.legend(frameon=False, fontsize=8, ncols=2, columnspacing=1, handlelength=1.5)
    styles = (("-", "bin-wise scaling"), ("--", "isotonic"), (":", "simulated"))
    lines = [
        panels[0, 0].plot([], [], color=SOFT, ls=ls, label=x)[0] for ls, x in styles
    ]
    panels[0, 0].legend(handles=lines, frameon=False, fontsize=8, loc="upper right")
    return figure
