"""The results as a page of the documentation: pictures, tables and words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from .real import REAL
from .standings import Interval, Standings, drawn
from .worlds import WORLDS

OURS, SHIFTED, ONE_FACTOR = "sigmascale", "sigmascale, shifted", "one factor"
MARGIN = {"crps": 0.01, "nll": 0.02}  # a share of the CRPS; a difference of the NLL
BLUE, GREY = "#0072B2", "#555555"
KINDS = {"real": "real sets", "folder": "sets of a folder", "world": "worlds"}


def write_results(table: pl.DataFrame, told: list[dict[str, str]], out: Path) -> None:
    """Write results and who took part to OUT/arena."""
    folder = out / "arena"
    folder.mkdir(parents=True, exist_ok=True)
    table.write_csv(folder / "results.csv")
    pl.DataFrame(told).write_csv(folder / "methods.csv")


def write_page(out: Path) -> Path:
    """Write the page OUT/arena.md, and its pictures, from the files of OUT/arena."""
    path = out / "arena.md"
    path.write_text(page_of(out / "arena"), encoding="utf-8")
    for kind, each in _standings(_results(out / "arena")).items():
        if kind == "world":
            _draw_worlds(each, out / "arena" / "worlds.png")
        else:
            _draw_differences(each, out / "arena" / f"losses_{kind}.png")
            _draw_ranks(each, out / "arena" / f"ranks_{kind}.png")
    return path


def page_of(folder: Path) -> str:
    """Return the page of the results in a folder."""
    table = _results(folder)
    told = pl.read_csv(folder / "methods.csv").fill_null("").to_dicts()
    found = _standings(table)
    ranked = {kind: each for kind, each in found.items() if kind != "world"}
    parts = {
        "size": _size(table, found),
        "answer": _answer(found),
        "lost": "\n\n".join(_lost(*each, told) for each in ranked.items()),
        "worlds": _worlds(found["world"])
        if "world" in found
        else "None were asked for.",
        "ranks": "\n\n".join(_ranks(*each) for each in ranked.items()),
        "tiers": _tiers(table),
        "wins": "\n\n".join(_wins(*each) for each in ranked.items()),
        "methods": _table(
            ["method", "package", "features", "what it is"],
            [
                [each["method"], each["package"], each["features"], each["what"]]
                for each in told
                if not each["skipped"]
            ],
        ),
        "skipped": _skipped(table, told),
        "documented": _documented(folder),
        "sets": _sets(table),
    }
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    for name, words in parts.items():
        text = text.replace(f"<!-- {name} -->", words)
    return text


def _results(folder: Path) -> pl.DataFrame:
    table = pl.read_csv(folder / "results.csv", infer_schema_length=None)
    return table.with_columns(pl.col("problem").fill_null(""))


def _standings(table: pl.DataFrame) -> dict[str, Standings]:
    """Return who is how good on each kind of sets."""
    kinds = {kind: table.filter(pl.col("kind") == kind) for kind in KINDS}
    return {
        kind: Standings.of(rows) for kind, rows in kinds.items() if not rows.is_empty()
    }


def _size(table: pl.DataFrame, found: dict[str, Standings]) -> str:
    counts = [f"{len(each.sets)} {KINDS[kind]}" for kind, each in found.items()]
    return (
        f"{', '.join(counts)}; {table['method'].n_unique()} methods; "
        f"{table['halving'].max() + 1} halvings of each set, or draws of each world; "
        f"{table['seconds'].sum() / 60:.0f} minutes of one processor."
    )


def _answer(found: dict[str, Standings]) -> str:
    """Return in sentences who is best, and how far we are from the best."""
    lines = []
    for kind, each in found.items():
        if kind == "world":
            lines.append(_regrets(each))
            continue
        ranks = each.ranks("crps").mean(axis=1)
        order = [each.methods[i] for i in np.argsort(ranks, kind="stable")]
        place = order.index(OURS) + 1
        best = _range(each.mean_rank(order[0], "crps"), 1)
        own = _range(each.mean_rank(OURS, "crps"), 1)
        words = f"**{order[0]}** has the best mean rank in CRPS, {best}"
        if order[0] == SHIFTED:
            words += ": it is ours, and shifts predictions where unseen rows gain"
        if place > 1:
            words += f"; **{OURS}** is number {place} of {len(order)}, {own}"
        rival = next((name for name in order if name not in (OURS, SHIFTED)), "")
        rank = _range(each.mean_rank(rival, "crps"), 1)
        words += f"; the best opponent is {rival}, {rank}"
        lines.append(
            f"- **{KINDS[kind].capitalize()}**: {words}. Ranks that differ by "
            f"less than {each.critical_difference():.1f} are not told apart (Nemenyi)."
        )
    return "\n".join(lines)


def _regrets(found: Standings) -> str:
    """Return in a sentence how far we are from the best opponent of each world."""
    regret = _regret(found)
    sizes = np.array([name.rpartition("_")[2] for name in found.sets])
    means = [
        f"{_range(drawn(regret[sizes == size]), 3)} with {size} rows"
        for size in dict.fromkeys(sizes.tolist())
    ]
    worst = [
        f"`{found.sets[j]}` ({regret[j]:.3f})"
        for j in np.argsort(-regret, kind="stable")
        if regret[j] > MARGIN["nll"]
    ]
    return (
        f"- **Worlds**: the mean regret of our normal NLL to the best opponent of each "
        f"world is {' and '.join(means)}. It is larger than {MARGIN['nll']} in "
        f"{', '.join(worst) or 'none'}."
    )


def _regret(found: Standings) -> np.ndarray:
    """Return by how much our NLL exceeds that of the best opponent, at least 0."""
    means = found.means("nll")
    others = [i for i, name in enumerate(found.methods) if name not in (OURS, SHIFTED)]
    best = means[others].min(axis=0)
    return np.maximum(means[found.methods.index(OURS)] - best, 0)


def _lost(kind: str, found: Standings, told: list[dict[str, str]]) -> str:
    """Return where an opponent is better than our default, beyond noise, and why."""
    with_features = {each["method"] for each in told if each["features"] == "yes"}
    lines, counts = [], []
    for score, margin in MARGIN.items():
        rivals = found.best_other(score, (OURS, SHIFTED))
        sure = 0
        for j, rival in enumerate(rivals):
            gap, error = (x[j] for x in found.difference(OURS, rival, score))
            mine = found.means(score)[found.methods.index(OURS), j]
            if not gap > margin * (mine if score == "crps" else 1):
                continue
            reason = "within two standard errors"
            if not gap < 2 * error:
                sure += 1
                reason = _reason(found, j, rival, score, rival in with_features)
            cells = [f"`{found.sets[j]}`", score.upper(), f"{mine:.4g}", rival]
            lines.append([*cells, f"{gap:.2g} ± {error:.1g}", reason])
        lost = sum(line[1] == score.upper() for line in lines)
        size = f"{margin:.0%}" if score == "crps" else f"{margin}"
        counts.append(f"in {score.upper()} by more than {size} in {lost} ({sure})")
    words = (
        f"### On {KINDS[kind]}\n\n![{KINDS[kind]}: difference to the best opponent]"
        f"(arena/losses_{kind}.png)\n\nOf {len(found.sets)} sets, the best of all "
        f"opponents is better {', and '.join(counts)}; in brackets, how many of these "
        f"by more than two standard errors."
    )
    lines.sort(key=lambda line: line[-1].startswith("within"))
    header = ["set", "score", "ours", "best opponent", "better by", "why"]
    return words + ("\n\n" + _table(header, lines) if lines else "")


def _reason(
    found: Standings, j: int, rival: str, score: str, has_features: bool
) -> str:
    mean = dict(zip(found.methods, found.means(score)[:, j], strict=True))
    if SHIFTED in mean and mean[OURS] - mean[SHIFTED] > (mean[OURS] - mean[rival]) / 2:
        return f'errors have a mean; with `shift="auto"` ours is {mean[SHIFTED]:.4g}'
    if not has_features:
        return "u alone tells all that there is; features add noise"
    nll = dict(zip(found.methods, found.means("nll")[:, j], strict=True))
    if score == "crps" and nll[OURS] <= nll[rival] + MARGIN["nll"]:
        return "the scale is as good, but the shape of the law depends on features"
    if rival.startswith("splines"):
        return "smooth in features: trees need more rows for that"
    return "a scale of features that it finds, and ours does not"


def _worlds(found: Standings) -> str:
    """Return the picture and table of regrets in the simulated worlds."""
    regret = _regret(found)
    rivals = found.best_other("nll", (OURS, SHIFTED))
    lines = []
    for j in np.argsort(-regret, kind="stable"):
        gap, error = (x[j] for x in found.difference(OURS, rivals[j], "nll"))
        name = found.sets[j].rpartition("_")
        what = (WORLDS[name[0]].__doc__ or "").strip().rstrip(".")
        lines.append([what, name[2], rivals[j], f"{gap:+.3f} ± {error:.3f}"])
    header = ["world", "rows", "best opponent", "our NLL minus its"]
    return "![Regret in worlds](arena/worlds.png)\n\n" + _table(header, lines)


def _ranks(kind: str, found: Standings) -> str:
    """Return picture and table of all methods, the best first."""
    name = f"ranks_{kind}.png"
    header = ["method", "rank, CRPS", "rank, NLL", "CRPS", "NLL", "coverage", "width"]
    header += ["local, u", "local, features", "s a fit", "absurd rows", "failed sets"]
    lines = []
    order = np.argsort(found.ranks("crps").mean(axis=1), kind="stable")
    for method in (found.methods[i] for i in order):
        ranks = [_range(found.mean_rank(method, s), 1) for s in ("crps", "nll")]
        row = {s: found.rows_of(method, s).mean(axis=1) for s in found.values}
        base = row
        if ONE_FACTOR in found.methods:
            base = {s: found.rows_of(ONE_FACTOR, s).mean(axis=1) for s in found.values}
        cells = [_ratio(row["crps"] / base["crps"]), _median(row["nll"] - base["nll"])]
        cells += [_mean(row["coverage"]), _ratio(row["width"] / base["width"])]
        cells += [_mean(row[s], 2) for s in ("local_u", "local_x", "seconds")]
        absurd = np.nansum(found.rows_of(method, "absurd"))
        failed = np.isnan(row["crps"]).sum()
        lines.append([method, *ranks, *cells, f"{absurd:.0f}", str(failed)])
    title = f"### On {KINDS[kind]}\n\n![Mean ranks](arena/{name})\n\n"
    return title + _table(header, lines)


def _tiers(table: pl.DataFrame) -> str:
    """Return the mean rank of our default by tier of sets."""
    lines = []
    for tier in ("developed", "open", "unseen"):
        rows = table.filter((pl.col("kind") == "real") & (pl.col("tier") == tier))
        if rows.is_empty():
            continue
        found = Standings.of(rows)
        best = [
            found.methods[int(found.ranks(s).mean(axis=1).argmin())]
            for s in ("crps", "nll")
        ]
        own = [_range(found.mean_rank(OURS, s), 1) for s in ("crps", "nll")]
        lines.append([tier, str(len(found.sets)), own[0], best[0], own[1], best[1]])
    header = ["tier", "sets", "our rank, CRPS", "best", "our rank, NLL", "best"]
    return _table(header, lines) if lines else "No real sets were asked for."


def _wins(kind: str, found: Standings) -> str:
    """Return how our default fares against each other method."""
    lines = []
    for other in found.methods:
        if other == OURS:
            continue
        wins = [_range(found.wins(OURS, other, s), 2) for s in ("crps", "nll")]
        counts = []
        for score in ("crps", "nll"):
            gap, error = found.difference(OURS, other, score)
            counts += [str(np.sum(gap < -2 * error)), str(np.sum(gap > 2 * error))]
        lines.append([other, wins[0], *counts[:2], wins[1], *counts[2:]])
    header = ["against", "wins, CRPS", "surely", "surely lost"]
    header += ["wins, NLL", "surely", "surely lost"]
    return f"### On {KINDS[kind]}\n\n" + _table(header, lines)


def _skipped(table: pl.DataFrame, told: list[dict[str, str]]) -> str:
    lines = [
        f"- {each['method']}: {each['skipped']}" for each in told if each["skipped"]
    ]
    failed = table.filter(pl.col("problem") != "")
    for (method, name), rows in failed.group_by(["method", "set"], maintain_order=True):
        lines.append(
            f"- {method} on `{name}`, {rows.height} times: {rows['problem'][0]}"
        )
    return "\n".join(lines) or "None."


def _documented(folder: Path) -> str:
    path = folder / "documented.csv"
    if not path.exists():
        return "Not compared in this run."
    rows = pl.read_csv(path)
    lines = [[str(cell) for cell in row] for row in rows.iter_rows()]
    return _table(list(rows.columns), lines)


def _sets(table: pl.DataFrame) -> str:
    """Return where each set comes from, and how our default and the best fared."""
    lines = []
    rows = table.filter(pl.col("kind") != "world")
    for kind in rows["kind"].unique(maintain_order=True):
        found = Standings.of(rows.filter(pl.col("kind") == kind))
        best = found.best_other("crps", (OURS, SHIFTED))
        for j, name in enumerate(found.sets):
            one = rows.filter(pl.col("set") == name).row(0, named=True)
            spec = REAL.get(name)
            where = f"{spec.source}, {spec.target}" if spec else "folder"
            model = (spec.model.__name__ if spec else "").replace("_", " ")
            cells = [f"`{name}`", one["tier"], where, model, str(one["rows"])]
            for method in (OURS, best[j]):
                if method not in found.methods:
                    cells.append("")
                    continue
                values = found.rows_of(method, "crps")[j]
                cells.append(f"{values.mean():.4g} ± {found.error(values):.1g}")
            lines.append([*cells, best[j]])
    header = ["set", "tier", "data", "model", "rows to learn from"]
    return _table([*header, "our CRPS", "best opponent's", "which is"], lines)


def _draw_differences(found: Standings, path: Path) -> None:
    """Draw our difference to the best opponent in each set, losses first."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 0.24 * len(found.sets) + 1.3), layout="constrained"
    )
    for ax, score in zip(axes, MARGIN, strict=True):
        rivals = found.best_other(score, (OURS, SHIFTED))
        gaps = np.empty((2, len(rivals)))
        for j, rival in enumerate(rivals):
            gap, error = (x[j] for x in found.difference(OURS, rival, score))
            mine = found.means(score)[found.methods.index(OURS), j]
            unit = mine / 100 if score == "crps" else 1.0
            gaps[:, j] = gap / unit, 2 * error / unit
        order = np.argsort(-gaps[0], kind="stable")
        y = np.arange(len(order))
        ax.axvline(0, color=GREY, lw=1)
        ax.errorbar(gaps[0, order], y, xerr=gaps[1, order], fmt="o", color=BLUE, ms=4)
        ax.set_yticks(y, [found.sets[j] for j in order], fontsize=7)
        ax.invert_yaxis()
        ax.set_xscale("symlog", linthresh=5 if score == "crps" else 0.1)
        low, high = ax.get_xlim()
        ticks = np.array([-50, -20, -5, 0, 5, 20, 50]) / (1 if score == "crps" else 50)
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        ax.set_xticks(ticks, [f"{x:g}" for x in ticks], minor=False)
        ax.minorticks_off()
        unit = "CRPS, %" if score == "crps" else "NLL"
        ax.set_xlabel(f"{unit}: ours minus the best of all opponents\n(right: we lose)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_ranks(found: Standings, path: Path) -> None:
    """Draw mean ranks with intervals, and the critical difference of Nemenyi."""
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 0.27 * len(found.methods) + 1.2), layout="constrained"
    )
    critical = found.critical_difference()
    for ax, score in zip(axes, ("crps", "nll"), strict=True):
        ranks = [found.mean_rank(method, score) for method in found.methods]
        order = np.argsort([rank[0] for rank in ranks], kind="stable")
        for y, i in enumerate(order):
            mean, low, high = ranks[i]
            color = BLUE if found.methods[i] in (OURS, SHIFTED) else GREY
            ax.plot([low, high], [y, y], color=color, lw=2)
            ax.plot(mean, y, "o", color=color, ms=5)
        best = ranks[order[0]][0]
        ax.axvspan(best, best + critical, color="#E69F00", alpha=0.15, lw=0)
        ax.set_yticks(range(len(order)), [found.methods[i] for i in order], fontsize=7)
        ax.invert_yaxis()
        ax.set_xlabel(f"mean rank, {score.upper()}; shaded: not told from the best")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_worlds(found: Standings, path: Path) -> None:
    """Draw regrets in worlds, by the number of rows."""
    plt = _pyplot()
    rivals = found.best_other("nll", (OURS, SHIFTED))
    names = [name.rpartition("_") for name in found.sets]
    worlds = list(dict.fromkeys(name[0] for name in names))
    sizes = list(dict.fromkeys(name[2] for name in names))
    figure, ax = plt.subplots(
        figsize=(7, 0.3 * len(worlds) + 1.2), layout="constrained"
    )
    for k, (size, color) in enumerate(zip(sizes, (BLUE, "#D55E00"), strict=False)):
        for j, name in enumerate(names):
            if name[2] == size:
                gap, error = (x[j] for x in found.difference(OURS, rivals[j], "nll"))
                y = worlds.index(name[0]) + 0.2 * k
                label = f"{size} rows" if name[0] == worlds[0] else None
                bars = {"fmt": "o", "color": color, "ms": 4, "label": label}
                ax.errorbar(gap, y, xerr=2 * error, **bars)
    ax.axvline(0, color=GREY, lw=1)
    ax.set_yticks(range(len(worlds)), worlds)
    ax.invert_yaxis()
    ax.set_xlabel("normal NLL, ours minus the best opponent's (right: we lose)")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _error(values: np.ndarray, digits: int) -> str:
    """Return the standard error of a mean over sets; nothing of one set."""
    if values.size < 2:
        return ""
    return f" ± {np.std(values, ddof=1) / np.sqrt(values.size):.{digits}f}"


def _mean(values: np.ndarray, digits: int = 3) -> str:
    values = values[np.isfinite(values)]
    if not values.size:
        return ""
    return f"{values.mean():.{digits}f}{_error(values, digits)}"


def _median(values: np.ndarray) -> str:
    """Return the median over sets, with the standard error of sets drawn again."""
    values = values[np.isfinite(values)]
    if not values.size:
        return ""
    rng = np.random.default_rng(0)
    draws = np.median(values[rng.integers(0, values.size, (1000, values.size))], axis=1)
    return f"{np.median(values):+.3f} ± {draws.std():.3f}"


def _ratio(values: np.ndarray) -> str:
    """Return the geometric mean over sets, with its standard error."""
    logs = np.log(values[np.isfinite(values) & (values > 0)])
    if not logs.size:
        return ""
    mean = np.exp(logs.mean())
    return f"{mean:.3f}{_error(mean * logs, 3)}"


def _range(found: Interval, digits: int) -> str:
    value, low, high = found
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
