"""The paper's two figures, and a third of what is beyond it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sigmascale import plots, scores
from sigmascale.judging.intervals import wilson_limits

from .study import ISOTONIC, JOINT, Beyond, StudyData, in_file_order, measure_set

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe-Ito colours, told apart by all readers
COLOURS = {"u": "#0072B2", "X1": "#D55E00", "X2": "#009E73"}
DARK = "#222222"
LABELS = {"u": "$u$", "X1": "$X_1$", "X2": "$X_2$"}
WORDS = {
    "u": "uncertainty $u$",
    "X1": "molecular mass $X_1$",
    "X2": "fraction of hetero-atoms $X_2$",
}


def _letter(ax: Axes, letter: str) -> None:
    ax.set_title(f"({letter})", loc="left", fontsize=9, fontweight="bold")


def _figure() -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.0, 5.8), layout="constrained")
    axes = figure.subplots(2, 2)
    for ax in axes.flat:
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_size(9)
        ax.yaxis.label.set_size(9)
    return figure, axes


def figure1(data: StudyData, *, seed: int = 0) -> Figure:
    """Draw the unscaled sets: confidence curves, and local ZMS of the training set."""
    figure, axes = _figure()
    ax = axes[0, 0]
    styles = ((COLOURS["u"], "-"), (COLOURS["X1"], "--"))
    for (name, p, _), (colour, line) in zip(data.sets, styles, strict=True):
        curve = scores.confidence_curve(p, n_draws=1, rng=seed)
        ax.plot(100 * curve.pruned, curve.relative, line, color=colour, label=name)
    ax.set(xlabel="rows pruned, most uncertain first / %", ylabel="RMSE / RMSE of all")
    ax.set(xlim=(0, 100), ylim=(0, 1.02))
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=8)
    _letter(ax, "a")
    local = measure_set(data.training, seed).local
    for ax, letter, result in zip(axes.flat[1:], "bcd", local.values(), strict=True):
        plots.local_zms(result, ax=ax)
        ax.set_xlabel(LABELS[result.name])
        _letter(ax, letter)
    return figure


def scan_of(data: StudyData, *, seed: int, n_draws: int, step: int) -> scores.BinScan:
    """Return the scan of bin numbers, with the isotonic reference of the data."""
    scan = scores.scan_bins(
        data.training,
        data.test,
        n_bins=range(2, 100, step),
        n_draws=n_draws,
        rng=seed,
    )
    u = data.isotonic
    found = measure_set(data.test, seed, u=u, ties=in_file_order(u))
    valid = {x: each.fraction_valid for x, each in found.local.items()}
    return replace(scan, isotonic=found.scores, isotonic_valid=valid)


def figure2(scan: scores.BinScan) -> Figure:
    """Draw the scores on the test set against the number of bins.

    Isotonic regression is dashed. Simulated, perfectly calibrated sets are dotted,
    with a band of two standard deviations; in (d), the interval of a fraction.
    """
    figure, axes = _figure()
    n = scan.n_bins
    isotonic = scan.isotonic.to_dict()

    def draw(ax: Axes, score: str, colour: str, label: str, factor: float = 1) -> None:
        mean, sd = scan.simulated_mean[score], scan.simulated_sd[score]
        ax.plot(n, factor * scan.scores[score], color=colour, label=label, lw=1.3)
        ax.axhline(factor * isotonic[score], color=colour, ls="--", lw=1)
        ax.plot(n, factor * mean, ":", color=colour, lw=1.3)
        low, high = factor * (mean - 2 * sd), factor * (mean + 2 * sd)
        ax.fill_between(n, low, high, color=colour, alpha=0.12, lw=0)

    draw(axes[0, 0], "NLL", DARK, "NLL")
    for x in COLOURS:
        draw(axes[0, 1], f"ENCE_{x}", COLOURS[x], LABELS[x])
        draw(axes[1, 0], f"S_{x}", COLOURS[x], f"$S_{{{LABELS[x].strip('$')}}}$")
    draw(axes[1, 0], "S_cal", "#E69F00", "$S_{cal}$")
    draw(axes[1, 0], "S_tot", DARK, "$S_{tot}/2$", 0.5)
    ax = axes[1, 1]
    low, high = wilson_limits(95, 100)  # when 95 of 100 bins are valid
    ax.axhspan(low, high, color="0.85", lw=0)
    ax.axhline(0.95, color=DARK, ls=":", lw=1.3)
    for x, colour in COLOURS.items():
        ax.fill_between(
            n, scan.valid_low[x], scan.valid_high[x], color=colour, alpha=0.15
        )
        ax.plot(n, scan.valid[x], color=colour, label=LABELS[x], lw=1.3)
        ax.axhline(scan.isotonic_valid[x], color=colour, ls="--", lw=1)
    names = ("NLL", "$ENCE_x$", "$S_x$", "$f_{v,x}$")
    for ax, letter, name in zip(axes.flat, "abcd", names, strict=True):
        ax.set(xlabel="number of bins $N_B$", ylabel=name, xlim=(n.min(), n.max()))
        ax.grid(alpha=0.3)
        _letter(ax, letter)
    axes[1, 1].set_ylim(0, 1.02)
    axes[1, 0].set_ylim(bottom=0)
    axes[0, 1].set_ylim(bottom=0)
    for ax in (axes[0, 1], axes[1, 0], axes[1, 1]):
        ax.legend(frameon=False, fontsize=8, ncols=3, loc="best")
    styles = (("-", "bin-wise scaling"), ("--", "isotonic"), (":", "simulated"))
    lines = [Line2D([], [], color=DARK, ls=style, label=name) for style, name in styles]
    axes[0, 0].legend(handles=lines, frameon=False, fontsize=8, loc="upper right")
    return figure


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
            plots.local_zms(result, ax=ax)
            if (legend := ax.get_legend()) is not None:
                legend.remove()  # the text below the figure says what the colours are
            title = f"{100 * result.fraction_valid:.0f} % of bins valid"
            ax.set_title(title, loc="left", fontsize=9)
            ax.set(xlabel=WORDS[x] if name == JOINT else "", ylabel="")
            drawn += [*result.zms, *result.high]
        row[0].set_ylabel(f"{name}\nlocal ⟨Z²⟩")
    axes[0, 0].set_ylim(0.8 * min(drawn), 1.2 * max(drawn))
    return figure
