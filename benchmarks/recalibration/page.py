"""The results as a page of the documentation: tables, a picture, and words."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from .methods import DEFAULT, ONE_FACTOR, RAW
from .scoring import SCORES, Outcome
from .standings import Interval, Standings

MARGIN = 0.02  # of NLL, below which nobody cares


def write_csv(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write every score of every method on every set."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["set", "method", *SCORES, "seconds", "problem"])
        for each in outcomes:
            numbers = [f"{each.scores[name]:.6g}" for name in SCORES]
            seconds = f"{each.seconds:.3g}"
            table.writerow([each.set, each.method, *numbers, seconds, each.problem])


def write_wins(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write how often each method beats each other, by each proper score."""
    found = Standings.of(outcomes)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["score", "method", "against", "wins", "low", "high"])
        for score in ("nll", "crps", "interval"):
            for one, other in permutations(found.methods, 2):
                wins = [f"{x:.3f}" for x in found.wins(one, other, score)]
                table.writerow([score, one, other, *wins])


def write_page(
    outcomes: Sequence[Outcome], skipped: dict[str, str], command: str, path: Path
) -> None:
    """Write the tables and words as Markdown, to be included in a page."""
    found = Standings.of(outcomes)
    parts = [
        f"Written by `{command}`: "
        f"{len(found.sets)} sets, {len(found.methods)} methods.",
        _standing(found),
        _against_raw(found),
        *_against_default(found),
        _lost(found),
        "### NLL of each set",
        _by_set(found),
        _failures(outcomes, skipped),
    ]
    path.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")


def _standing(found: Standings) -> str:
    """Return the table of all methods, the best first."""
    ranks = found.mean_ranks()
    header = ["method", "mean rank", "calibration", "consistency", "adaptivity"]
    header += ["NLL", "CRPS", "interval score", "fits, s"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for i in np.argsort([rank[0] for rank in ranks], kind="stable"):
        name = found.methods[i]
        medians = [
            _median(found.losses[score][i])
            for score in ("calibration", "consistency", "adaptivity")
        ]
        cells = [name, _interval(ranks[i], 1), *medians]
        if ONE_FACTOR in found.methods:
            one = found.methods.index(ONE_FACTOR)
            cells.append(_median(found.losses["nll"][i] - found.losses["nll"][one]))
            cells += [
                f"{found.ratio(name, ONE_FACTOR, score):.3f}"
                for score in ("crps", "interval")
            ]
        else:
            cells += ["", "", ""]
        lines.append([*cells, f"{found.seconds[i]:.1f}"])
    return _table(lines)


def _against_raw(found: Standings) -> str:
    """Return the CRPS of all methods relative to uncertainties as they came."""
    if RAW not in found.methods:
        return ""
    raw = found.losses["crps"][found.methods.index(RAW)]
    header = ["method", "CRPS / raw, geometric mean", "sets better", "worse by > 5 %"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for i, name in enumerate(found.methods):
        ratio = found.losses["crps"][i] / raw
        logs = np.log(ratio[np.isfinite(ratio) & (ratio > 0)])
        error = logs.std() / np.sqrt(max(1, logs.size))
        mean = np.exp(logs.mean()) if logs.size else np.nan
        counts = [str(np.count_nonzero(ratio < 1)), str(np.count_nonzero(ratio > 1.05))]
        lines.append([name, f"{mean:.3f} ± {mean * error:.3f}", *counts])
    return "### CRPS against raw uncertainties\n\n" + _table(lines)


def _against_default(found: Standings) -> list[str]:
    """Return how the default fares against each other method."""
    if DEFAULT not in found.methods:
        return []
    header = ["against", f"better by > {MARGIN} NLL", "worse", "wins, NLL"]
    header += ["wins, CRPS", "wins, interval score"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for other in found.methods:
        if other == DEFAULT:
            continue
        better, worse = found.by_more_than(MARGIN, DEFAULT, other)
        wins = [found.wins(DEFAULT, other, s) for s in ("nll", "crps", "interval")]
        shares = [_interval(each, 2) for each in wins]
        lines.append([other, str(better), str(worse), *shares])
    return [f"### `{DEFAULT}`, the default, against each of the others", _table(lines)]


def _lost(found: Standings) -> str:
    """Return where the default loses."""
    if DEFAULT not in found.methods:
        return ""
    losses = found.losses["nll"]
    mine = losses[found.methods.index(DEFAULT)]
    best = np.nanmin(losses, axis=0)
    lines = []
    for j in np.argsort(best - mine, kind="stable"):
        if not mine[j] > best[j] + MARGIN:
            continue
        winner = found.methods[int(np.nanargmin(losses[:, j]))]
        lines.append(
            f"- `{found.sets[j]}`: NLL {mine[j]:.3f}, where {winner} has {best[j]:.3f}"
        )
    words = (
        f"### Where the default loses\n\nIn {len(lines)} of {len(found.sets)} sets "
        f"another method is better by more than {MARGIN}"
    )
    clipped = np.minimum(mine - best, 5)
    words += f" (mean regret {np.nanmean(clipped):.3f}, each clipped at 5)."
    return "\n\n".join([words, "\n".join(lines)]) if lines else words


def _by_set(found: Standings) -> str:
    """Return the NLL of every method on every set; the best is bold."""
    lines = [["set", *found.methods], ["---", *["---:"] * len(found.methods)]]
    for j, name in enumerate(found.sets):
        column = found.losses["nll"][:, j]
        best = np.nanmin(column)
        cells = [
            "failed" if np.isnan(x) else f"**{_short(x)}**" if x == best else _short(x)
            for x in column
        ]
        lines.append([f"`{name}`", *cells])
    return _table(lines)


def _failures(outcomes: Sequence[Outcome], skipped: dict[str, str]) -> str:
    lines = [f"- {name}: {words}" for name, words in skipped.items()]
    lines += [
        f"- {each.method} on `{each.set}`: {each.problem}"
        for each in outcomes
        if each.problem
    ]
    return "### Skipped and failed\n\n" + "\n".join(lines) if lines else ""


def draw_ranks(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw mean ranks with their intervals, and bars over what cannot be told apart."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    found = Standings.of(outcomes)
    ranks = found.mean_ranks()
    order = np.argsort([rank[0] for rank in ranks], kind="stable")
    place = {int(i): k for k, i in enumerate(order)}
    cliques = found.cliques()
    figure, ax = plt.subplots(
        figsize=(8, 0.38 * len(order) + 1.4), layout="constrained"
    )
    for i, (mean, low, high) in enumerate(ranks):
        y = place[i]
        ax.plot([low, high], [y, y], color="#0072B2", lw=2, solid_capstyle="butt")
        ax.plot(mean, y, "o", color="#0072B2", ms=6)
        weight = "bold" if found.methods[i] == DEFAULT else "normal"
        ax.annotate(
            f"{mean:.1f}",
            (mean, y),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            fontweight=weight,
        )
    right = max(high for _, _, high in ranks)
    for k, run in enumerate(cliques):
        x = right + 0.25 + 0.22 * k
        ends = [min(place[i] for i in run), max(place[i] for i in run)]
        ax.plot(
            [x, x],
            [ends[0] - 0.25, ends[1] + 0.25],
            color="#333333",
            lw=3,
            solid_capstyle="butt",
        )
    ax.set_yticks(range(len(order)), [found.methods[i] for i in order])
    for label in ax.get_yticklabels():
        if label.get_text() == DEFAULT:
            label.set_fontweight("bold")
    ax.invert_yaxis()
    ax.set_xlabel(
        f"mean rank by NLL over {len(found.sets)} sets (1 is best), 95 % intervals; "
        "bars: not told apart"
    )
    ax.grid(axis="x", alpha=0.3)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _median(values: np.ndarray) -> str:
    return "" if np.isnan(values).all() else f"{np.nanmedian(values):.3f}"


def _short(x: float) -> str:
    return f"{x:.3f}" if abs(x) < 1000 else f"{x:.2g}"


def _interval(found: Interval, digits: int) -> str:
    value, low, high = found
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _table(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
