"""What the arena writes: scores, standings, and who took part, as CSV files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from .real import REAL
from .scoring import LOSSES
from .standings import Standings

OURS = {"kept": "sigmascale", "corrected": 'sigmascale, bias="auto"'}
UNSEEN = [name for name, each in REAL.items() if each.tier == "unseen"]
KINDS = {
    "real": pl.col("kind") != "world",
    "unseen": pl.col("set").is_in(UNSEEN),  # the real sets that nobody looked at before
    "worlds": pl.col("kind") == "world",
}


def write_results(table: pl.DataFrame, rivals: list[dict], folder: Path) -> Path:
    """Write every score, their means over halvings, standings, and who took part."""
    out = folder / "arena"
    out.mkdir(parents=True, exist_ok=True)
    table.write_csv(out / "results.csv")
    by_set = table.group_by("set", "rival", maintain_order=True)
    means = by_set.agg(pl.col(pl.Float64).mean().round_sig_figs(4))
    means.write_csv(out / "means.csv")
    pl.DataFrame(rivals).write_csv(out / "rivals.csv")
    standings(table, rivals).write_csv(out / "standings.csv")
    return out


def standings(table: pl.DataFrame, rivals: list[dict]) -> pl.DataFrame:
    """Return a line for each league, kind of sets, score and rival.

    Differences are ours less theirs, those of CRPS and interval score in parts of
    theirs; `better` and `worse` count sets in which ours differs at 5 %.
    """
    table = table.with_columns(problem=pl.col("problem").fill_null(""))
    lines = []
    for league, ours in OURS.items():
        names = [each["rival"] for each in rivals if each["league"] == league]
        for kind, of_kind in KINDS.items():
            rows = table.filter(of_kind, pl.col("rival").is_in(names))
            if ours not in rows["rival"].to_list():
                continue
            found = Standings.of(rows)
            duels = {(duel.rival, duel.score): duel for duel in found.all_duels(ours)}
            for score in (*LOSSES, "coverage", "seconds"):
                means = found.means(score)
                ranks = found.mean_ranks(score)
                for rival, mean, rank in zip(found.rivals, means, ranks, strict=True):
                    if np.isnan(mean).all():
                        continue
                    line = {"league": league, "sets": kind, "rival": rival}
                    line |= {"score": score, "mean": float(np.nanmean(mean))}
                    line["rank"] = float(rank) if score in LOSSES else None
                    duel = duels.get((rival, score))
                    line |= {
                        "difference": duel and duel.mean,
                        "error": duel and duel.error,
                        "better": duel and duel.better,
                        "worse": duel and duel.worse,
                        "p": duel and duel.p,
                    }
                    lines.append(line)
    return pl.DataFrame(lines, infer_schema_length=None).with_columns(
        pl.col(pl.Float64).round_sig_figs(3)
    )
