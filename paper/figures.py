"""The paper's two figures, and a third of what is beyond it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sigmascale import plots, scores

from .study import ISOTONIC, JOINT, SCORE_BINS, Beyond, StudyData, local_zms

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
    local = local_zms(data.training, seed)
    for ax, result in zip(others, local.values(), strict=True):
        draw_local(ax, result)
        ax.set_xlabel(WORDS[result.name])
    others[0].legend(frameon=False, fontsize=8, loc="lower right")
    for ax, letter in zip((first, *others), "abcd", strict=True):
        ax.tick_params(labelsize=8)
        ax.set_title(f"({letter})", loc="left", fontsize=9, fontweight="bold")
    return figure


def draw_local(ax: Axes, result: scores.LocalStatistics) -> None:
    """Draw a local ZMS without what stands above it: a legend, its room, a note."""
    plots.local_statistics(result, ax=ax)
    ax.get_legend().remove()
    for room in list(ax.texts):
        room.remove()
    ax.set_title("", loc="left")
    title = f"{100 * result.fraction_valid:.0f} % of bins valid"
    ax.set_title(title, loc="right", fontsize=9)


def figure2(data: StudyData, *, seed: int, step: int, n_draws: int = 100) -> Figure:
    """Draw the scores on the test set against the number of bins.

    Isotonic regression is that of the data's authors, not our fit.
    """
    study = scores.bin_study(
        data.training,
        data.test,
        numbers=range(2, 100, step),
        n_score_bins=SCORE_BINS,
        rival=data.test.with_y_std(data.isotonic),
        n_draws=n_draws,
        rng=seed,
    )
    print(study.words, flush=True)
    figure = plots.bin_study(study)[0].figure
    assert isinstance(figure, Figure)
    return figure


def figure3(beyond: Beyond) -> Figure:
    """Draw the local ZMS of the test set: as it came, isotonic, and the best joint."""
    test = beyond.data.test
    figure = Figure(figsize=(10.0, 5.4), layout="constrained")
    axes = figure.subplots(3, 3, sharey=True)
    drawn: list[float] = []
    shown = {"before": "none", ISOTONIC: ISOTONIC, JOINT: JOINT}
    for row, (name, method) in zip(axes, shown.items(), strict=True):
        rows_of_method = test.with_y_std(beyond.uncertainties[method])
        local = local_zms(rows_of_method, beyond.seed, ties=test.y_std)
        for ax, (x, result) in zip(row, local.items(), strict=True):
            draw_local(ax, result)
            ax.set(xlabel=WORDS[x] if name == JOINT else "", ylabel="")
            drawn += [*result.value, *result.high]
        row[0].set_ylabel(f"{name}\nlocal ⟨Z²⟩")
    axes[0, 0].set_ylim(0.8 * min(drawn), 1.2 * max(drawn))
    return figure
