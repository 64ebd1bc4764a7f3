"""Who is how good, and how sure that is: paired over sets, and within each set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import rankdata, t, wilcoxon

from .scoring import LOSSES, SCORES

RELATIVE = ("crps", "interval_score")  # compared as ratios, the others as differences


@dataclass(frozen=True)
class Duel:
    """Ours against one rival in one score.

    Attributes
    ----------
    rival, score : str
        Who, in what.
    mean, error : float
        Our mean over sets less theirs, of CRPS and interval score in parts of theirs,
        and its standard error over sets; below 0 we are better.
    p : float
        Of Wilcoxon's signed ranks over sets, after Holm's correction for all rivals of
        the league and score.
    better, worse, sets : int
        Sets in which we are better or worse by Student's t at 5 %, and all.
    """

    rival: str
    score: str
    mean: float
    error: float
    p: float
    better: int
    worse: int
    sets: int

    @property
    def verdict(self) -> str:
        """Whether ours wins, ties or loses at 5 %."""
        if self.p >= 0.05:
            return "tie"
        return "win" if self.mean < 0 else "loss"


@dataclass(frozen=True)
class Standings:
    """Scores by rival, set and halving; NaN where a rival failed or has none."""

    rivals: tuple[str, ...]
    sets: tuple[str, ...]
    values: dict[str, np.ndarray]
    are_worlds: bool

    @classmethod
    def of(cls, table: pl.DataFrame) -> Standings:
        """Gather results of one kind of sets and one league."""
        rivals = tuple(table["rival"].unique(maintain_order=True))
        sets = tuple(table["set"].unique(maintain_order=True))
        shape = len(rivals), len(sets), table["halving"].max() + 1
        values = {name: np.full(shape, np.nan) for name in (*SCORES, "seconds")}
        for row in table.iter_rows(named=True):
            place = rivals.index(row["rival"]), sets.index(row["set"]), row["halving"]
            for name, found in values.items():
                if not row["problem"] and row[name] is not None:
                    found[place] = row[name]
        return cls(rivals, sets, values, (table["kind"] == "world").all())

    def means(self, score: str) -> np.ndarray:
        """Return the mean over halvings, by rival and set."""
        return self.values[score].mean(axis=2)

    def mean_ranks(self, score: str) -> np.ndarray:
        """Return mean ranks over sets: 1 is best, failures are last. Not tested."""
        found = self.means(score)
        ranks = rankdata(np.where(np.isnan(found), np.inf, found), axis=0)
        return np.where(np.isnan(found).all(axis=1), np.nan, ranks.mean(axis=1))

    def duels(self, ours: str, score: str) -> list[Duel]:
        """Return ours against each rival; p after Holm's correction."""
        mine = self.values[score][self.rivals.index(ours)]
        found = []
        for rival, theirs in zip(self.rivals, self.values[score], strict=True):
            off = mine - theirs
            off = off / theirs if score in RELATIVE else off
            off = off[~np.isnan(off).any(axis=1)]
            if rival == ours or len(off) < 5:
                continue
            by_set = off.mean(axis=1)
            p = 1.0 if not by_set.any() else float(wilcoxon(by_set).pvalue)
            n = off.shape[1]
            # halves of the same rows overlap: Nadeau and Bengio 2003
            scale = 1 / n + (0 if self.are_worlds else 1)
            spread = np.sqrt(off.var(axis=1, ddof=1) * scale) + 1e-300
            reach = t.ppf(0.975, n - 1)
            sure = by_set / spread
            found.append(
                Duel(
                    rival,
                    score,
                    float(by_set.mean()),
                    float(by_set.std(ddof=1) / np.sqrt(len(by_set))),
                    p,
                    int(np.count_nonzero(sure < -reach)),
                    int(np.count_nonzero(sure > reach)),
                    len(by_set),
                )
            )
        return _holm(found)

    def all_duels(self, ours: str) -> list[Duel]:
        """Return the duels of all scores in which less is better."""
        return [duel for score in LOSSES for duel in self.duels(ours, score)]


def _holm(duels: list[Duel]) -> list[Duel]:
    """Return duels with p-values that hold for all of them at once."""
    order = np.argsort([duel.p for duel in duels])
    least, found = 0.0, list(duels)
    for k, i in enumerate(order):
        least = max(least, min(1.0, (len(duels) - k) * duels[i].p))
        found[i] = Duel(**{**vars(duels[i]), "p": least})
    return found
