"""The paper's two figures, and a third of what is beyond it."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sigmascale import plots, scores

from .scan import draw_scan, scan_bins
from .study import ISOTONIC, JOINT, Beyond, StudyData, in_file_order, measure_set

WORDS = {
    "u": "uncertainty $u$",
    "X1": "molecular mass $X_1$",
    "X2": "fraction of hetero-atoms $X_2$",
}


def figure1(data: StudyData, *, seed: int = 0) -> Figure:
    """Draw the unscaled sets: confidence curves, and local ZMS of the training set."""
    figure = Figure(figsize=(7.0, 5.8), layout="constrained")
    first, *others = figure.subplots(2, 2).flat
    for (name, p, _), line in zip(data.sets, ("-", "--"), strict=True):
        curve = scores.confidence_curve(p, n_draws=1, rng=seed)
        first.plot(100 * curve.pruned, curve.relative, line, label=name)
    first.set(xlabel="rows pruned, most uncertain first / %", xlim=(0, 100))
    first.set(ylabel="RMSE / RMSE of all", ylim=(0, 1.02))
    first.grid(alpha=0.3)
    first.legend(frameon=False, fontsize=8)
    local = measure_set(data.training, seed).local
    for ax, result in zip(others, local.values(), strict=True):
        draw_local(ax, result)
        ax.set_xlabel(WORDS[result.name])
    for ax, letter in zip((first, *others), "abcd", strict=True):
        ax.tick_params(labelsize=8)
        ax.set_title(f"({letter})", loc="left", fontsize=9, fontweight="bold")
    return figure


def draw_local(ax: Axes, result: scores.LocalStatistics) -> None:
    """Draw a local ZMS; the text below the figure says what the colours are."""
    plots.local_statistics(result, ax=ax)
    if (legend := ax.get_legend()) is not None:
        legend.remove()
    title = f"{100 * result.fraction_valid:.0f} % of bins valid"
    ax.set_title(title, loc="right", fontsize=9)


def figure2(data: StudyData, *, seed: int, n_draws: int, step: int) -> Figure:
    """Draw the scores on the test set against the number of bins.

    Isotonic regression is that of the data's authors, not our fit.
    """
    numbers, u = range(2, 100, step), data.isotonic
    scan = scan_bins(data.training, data.test, numbers, seed=seed, n_draws=n_draws)
    found = measure_set(data.test, seed, u=u, ties=in_file_order(u))
    return draw_scan(replace(scan, isotonic=found))


def figure3(beyond: Beyond) -> Figure:
    """Draw the local ZMS of the test set: as it came, isotonic, and the best joint."""
    test = beyond.data.test
    figure = Figure(figsize=(10.0, 5.4), layout="constrained")
    axes = figure.subplots(3, 3, sharey=True)
    drawn: list[float] = []
    shown = {"before": "none", ISOTONIC: ISOTONIC, JOINT: JOINT}
    for row, (name, method) in zip(axes, shown.items(), strict=True):
        u = beyond.uncertainties[method]
        local = measure_set(test, beyond.seed, u=u, ties=test.y_std).local
        for ax, (x, result) in zip(row, local.items(), strict=True):
            draw_local(ax, result)
            ax.set(xlabel=WORDS[x] if name == JOINT else "", ylabel="")
            drawn += [*result.value, *result.high]
        row[0].set_ylabel(f"{name}\nlocal ⟨Z²⟩")
    axes[0, 0].set_ylim(0.8 * min(drawn), 1.2 * max(drawn))
    return figure
