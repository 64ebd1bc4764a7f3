"""The page of the arena: tables of results, within words that stand in page.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from .audit import with_audit
from .real import REAL
from .scoring import LOSSES
from .standings import Duel, Standings

OURS = {"kept": "sigmascale", "corrected": 'sigmascale, bias="auto"'}
LEAGUES = {
    "kept": "Predictions stay as they are",
    "corrected": "Predictions may be corrected",
}
UNSEEN = [name for name, each in REAL.items() if each.tier == "unseen"]
SEEN_LATE = f"On the {len(UNSEEN)} that nobody looked at before our rules stood, it"
KINDS = {
    "On real sets it": pl.col("kind") != "world",
    SEEN_LATE: pl.col("set").is_in(UNSEEN),
    "In worlds, whose truth is known, it": pl.col("kind") == "world",
}
TITLES = {
    "crps": "CRPS",
    "nll": "NLL",
    "interval_score": "interval score",
    "slab_gap": "worst slab",
    "ert": "ERT",
}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_results(table: pl.DataFrame, rivals: list[dict], folder: Path) -> None:
    """Write every score, their means over halvings, and who took part."""
    (folder / "arena").mkdir(parents=True, exist_ok=True)
    table.write_csv(folder / "arena" / "results.csv")
    by_set = table.group_by("set", "rival", maintain_order=True)
    means = by_set.agg(pl.col(pl.Float64).mean().round_sig_figs(4))
    means.write_csv(folder / "arena" / "means.csv")
    pl.DataFrame(rivals).write_csv(folder / "arena" / "rivals.csv")


def write_page(folder: Path) -> Path:
    """Write the page from the tables beside it."""
    table = pl.read_csv(folder / "arena" / "results.csv", infer_schema_length=None)
    rivals = pl.read_csv(folder / "arena" / "rivals.csv")
    table = table.with_columns(problem=pl.col("problem").fill_null(""))
    text = Path(__file__).with_name("page.md").read_text("utf-8")
    there = rivals.filter(pl.col("rival").is_in(table["rival"].unique().to_list()))
    parts = {"size": _size(table), "rivals": _rivals(there), "failed": _failed(table)}
    absent = [each for each in rivals["rival"] if each not in there["rival"].to_list()]
    parts["absent"] = ", ".join(absent) or "nobody"
    for league, ours in OURS.items():
        names = rivals.filter(pl.col("league") == league)["rival"].to_list()
        said = []
        for intro, of_kind in KINDS.items():
            rows = table.filter(of_kind, pl.col("rival").is_in(names))
            if ours in rows["rival"].to_list():
                standings = Standings.of(rows)
                duels = standings.all_duels(ours)
                own = standings.means("slab_gap")[standings.rivals.index(ours)]
                said += [intro, _answer(duels), _gap(own, duels)]
                if intro != SEEN_LATE:
                    said.append(_league(standings, duels))
        parts[league] = "\n\n".join(said)
    for name, words in parts.items():
        text = text.replace(f"<!-- {name} -->", words)
    if (folder / "arena" / "audit.csv").exists():
        text = with_audit(text, folder / "arena")
    page = folder / "arena.md"
    page.write_text(text, "utf-8")
    return page


def _size(table: pl.DataFrame) -> str:
    n_sets = table.filter(pl.col("kind") != "world")["set"].n_unique()
    n_worlds = table.filter(pl.col("kind") == "world")["set"].n_unique()
    halvings, rows = table["halving"].max() + 1, table["rows"].max()
    return (
        f"{table['rival'].n_unique()} rivals, {n_sets} real sets, {n_worlds} worlds, "
        f"{halvings} halvings or draws each, at most {rows:,} rows to learn from."
    )


def _answer(duels: list[Duel]) -> str:
    """Return whom ours beats, ties with and loses to, the losses first."""
    lines = []
    for score in LOSSES:
        by = {"loss": [], "tie": [], "win": []}
        for duel in duels:
            if duel.score == score:
                by[duel.verdict].append(f"{duel.rival} ({_p(duel.p)})")
        if any(by.values()):
            words = [
                f"{title} {', '.join(names) if names else 'nobody'}"
                for title, names in zip(
                    ("loses to", "ties with", "beats"), by.values(), strict=True
                )
            ]
            lines.append(f"- **{TITLES[score]}**: {'; '.join(words)}.")
    return "\n".join(lines)


def _gap(own: np.ndarray, duels: list[Duel]) -> str:
    """Return how far our worst slab is from 90 %, and whose is nearer."""
    error = own.std(ddof=1) / np.sqrt(own.size)
    said = [
        f"Our worst slab holds {100 * own.mean():.1f} ± {100 * error:.1f} points less "
        "than 90 %, in the mean over sets."
    ]
    of = {(duel.rival, duel.score): duel for duel in duels}
    for duel in duels:
        if duel.score == "slab_gap" and duel.mean > duel.error:
            width = of[duel.rival, "interval_score"]
            said.append(
                f"That of {duel.rival} is nearer by {100 * duel.mean:.1f} ± "
                f"{100 * duel.error:.1f} points ({_p(duel.p)}); our interval score "
                f"differs from its by {100 * width.mean:+.1f} ± "
                f"{100 * width.error:.1f} % ({_p(width.p)})."
            )
    if len(said) == 1:
        said.append("No other is nearer by more than one standard error.")
    return " ".join(said)


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _league(standings: Standings, duels: list[Duel]) -> str:
    """Return one line a rival: ranks, differences to ours, coverage."""
    header = ["", *(f"{TITLES[x]}: rank, ours − theirs" for x in LOSSES)]
    header += ["coverage of 90 %", "seconds"]
    ranks = {score: standings.mean_ranks(score) for score in LOSSES}
    of = {(duel.rival, duel.score): duel for duel in duels}
    lines = []
    for i, rival in enumerate(standings.rivals):
        cells = [rival]
        for score in LOSSES:
            rank, duel = ranks[score][i], of.get((rival, score))
            cell = "–" if rank != rank else f"{rank:.1f}"
            if duel is not None:
                mark = {"win": "", "tie": "", "loss": " **loss**"}[duel.verdict]
                percent = score in ("crps", "interval_score")
                unit, times = ("%", 100) if percent else ("", 1)
                digits = 1 if percent else 3
                mean, error = times * duel.mean, times * duel.error
                cell += (
                    f"; {mean:+.{digits}f} ± {error:.{digits}f}{unit} "
                    f"({duel.better}:{duel.worse}){mark}"
                )
            cells.append(cell)
        coverage = standings.means("coverage")[i]
        seconds = standings.means("seconds")[i]
        cells += [f"{_mean(coverage):.3f}", f"{_mean(seconds):.2g}"]
        lines.append((ranks["crps"][i], cells))
    lines.sort(key=lambda line: (line[0] != line[0], line[0]))
    return markdown(header, [cells for _, cells in lines])


def _mean(values) -> float:
    known = [x for x in values if x == x]
    return sum(known) / max(1, len(known))


def _rivals(rivals: pl.DataFrame) -> str:
    rows = [
        [each["rival"], LEAGUES[each["league"]].lower(), each["package"], each["what"]]
        for each in rivals.iter_rows(named=True)
    ]
    return markdown(["rival", "league", "package", "how"], rows)


def _failed(table: pl.DataFrame) -> str:
    bad = table.filter(pl.col("problem") != "")
    found = bad.group_by("rival", "problem").len().sort("len", descending=True)
    lines = [
        f"- {each['rival']}: {each['problem']} ({each['len']} halvings)"
        for each in found.head(12).iter_rows(named=True)
    ]
    return "\n".join(lines) or "Nobody failed."
