"""Who is how good, and how sure that is: halvings give errors, sets are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import rankdata, studentized_range

from .scoring import SCORES

DRAWS = 5000
Interval = tuple[float, float, float]  # the value, and its 95 % limits


@dataclass(frozen=True)
class Standings:
    """Methods and sets, and who is how good.

    Attributes
    ----------
    methods, sets : tuple of str
        Their names.
    values : dict of str to array of shape (n_methods, n_sets, n_halvings)
        By score; NaN in sets where a method failed.
    independent : bool
        Whether halvings share no rows, as draws of a world do not.
    """

    methods: tuple[str, ...]
    sets: tuple[str, ...]
    values: dict[str, np.ndarray]
    independent: bool

    @classmethod
    def of(cls, table: pl.DataFrame) -> Standings:
        """Gather results of one kind of sets."""
        methods = tuple(table["method"].unique(maintain_order=True))
        sets = tuple(table["set"].unique(maintain_order=True))
        shape = len(methods), len(sets), table["halving"].max() + 1
        values = {name: np.full(shape, np.nan) for name in (*SCORES, "seconds")}
        for row in table.iter_rows(named=True):
            place = methods.index(row["method"]), sets.index(row["set"]), row["halving"]
            for name, found in values.items():
                if not row["problem"] and row[name] is not None:
                    found[place] = row[name]
        failed = np.isnan(values["crps"]).any(axis=2)
        for found in values.values():
            found[failed] = np.nan
        return cls(methods, sets, values, (table["kind"] == "world").all())

    def rows_of(self, method: str, score: str) -> np.ndarray:
        """Return a score of a method, by set and halving."""
        return self.values[score][self.methods.index(method)]

    def error(self, values: np.ndarray) -> np.ndarray:
        """Return the standard error of means over halvings, along the last axis.

        Halves of the same rows overlap, which the correction of Nadeau and Bengio
        (doi:10.1023/A:1024068626366) allows for.
        """
        n = values.shape[-1]
        if n < 2:
            return np.full(values.shape[:-1], np.nan)
        variance = np.var(values, axis=-1, ddof=1)
        return np.sqrt(variance * (1 / n + (0 if self.independent else 1)))

    def means(self, score: str) -> np.ndarray:
        """Return the mean of each method in each set; infinite where it failed."""
        found = self.values[score].mean(axis=2)
        return np.where(np.isnan(found), np.inf, found)

    def ranks(self, score: str) -> np.ndarray:
        """Return the rank of each method in each set: 1 is best, failures are last."""
        found: np.ndarray = rankdata(self.means(score), axis=0)
        return found

    def mean_rank(self, method: str, score: str) -> Interval:
        """Return the mean rank, with its interval."""
        return drawn(self.ranks(score)[self.methods.index(method)])

    def critical_difference(self) -> float:
        """Return by how much mean ranks must differ, after Nemenyi, at 5 %."""
        k = len(self.methods)
        q = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * len(self.sets))))

    def wins(self, one: str, other: str, score: str) -> Interval:
        """Return the share of sets in which one beats the other; a tie is half."""
        a, b = (self.means(score)[self.methods.index(name)] for name in (one, other))
        return drawn(np.where(a < b, 1.0, np.where(a > b, 0.0, 0.5)))

    def difference(
        self, one: str, other: str, score: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much one is larger in each set, and the standard error."""
        by_halving = self.rows_of(one, score) - self.rows_of(other, score)
        return by_halving.mean(axis=1), self.error(by_halving)

    def best_other(self, score: str, ours: Sequence[str]) -> list[str]:
        """Return the best opponent in each set."""
        means = self.means(score)
        means[[i for i, name in enumerate(self.methods) if name in ours]] = np.inf
        return [self.methods[i] for i in means.argmin(axis=0)]


def drawn(values: np.ndarray) -> Interval:
    """Return a mean over sets, and 95 % limits from sets drawn again."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (DRAWS, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)
