"""Who wins how often, and how sure that is: sets are drawn again, with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from .scoring import Outcome

DRAWS = 5000
Interval = tuple[float, float, float]  # the value, and its 95 % limits


@dataclass(frozen=True)
class Standings:
    """Methods and sets, and who is how good.

    Attributes
    ----------
    methods, sets : tuple of str
        Their names.
    losses : dict of str to array of shape (n_methods, n_sets)
        By score; NaN where a method failed or a set has no such score.
    seconds : array of shape (n_methods,)
        Of all fits together.
    """

    methods: tuple[str, ...]
    sets: tuple[str, ...]
    losses: dict[str, np.ndarray]
    seconds: np.ndarray

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Standings:
        """Gather outcomes."""
        methods = tuple(dict.fromkeys(each.method for each in outcomes))
        sets = tuple(dict.fromkeys(each.set for each in outcomes))
        names = outcomes[0].scores
        losses = {name: np.full((len(methods), len(sets)), np.nan) for name in names}
        seconds = np.zeros(len(methods))
        for each in outcomes:
            place = methods.index(each.method), sets.index(each.set)
            for name, value in each.scores.items():
                losses[name][place] = value
            seconds[place[0]] += np.nan_to_num(each.seconds)
        return cls(methods, sets, losses, seconds)

    def ranks(self, score: str = "nll") -> np.ndarray:
        """Return the rank of each method in each set: 1 is best, failures are last."""
        losses = np.where(np.isnan(self.losses[score]), np.inf, self.losses[score])
        digits = np.array([[float(f"{x:.9g}") for x in row] for row in losses])
        found: np.ndarray = rankdata(digits, axis=0)
        return found

    def mean_ranks(self, score: str = "nll") -> list[Interval]:
        """Return the mean rank of each method, with its interval."""
        ranks = self.ranks(score)
        return [_with_interval(ranks[i], self._draws()) for i in range(len(ranks))]

    def wins(self, one: str, other: str, score: str = "nll") -> Interval:
        """Return the share of sets in which one beats the other; a tie is half."""
        ranks = self.ranks(score)
        a, b = ranks[self.methods.index(one)], ranks[self.methods.index(other)]
        won = np.where(a < b, 1.0, np.where(a > b, 0.0, 0.5))
        return _with_interval(won, self._draws())

    def by_more_than(
        self, margin: float, one: str, other: str, score: str = "nll"
    ) -> tuple[int, int]:
        """Return in how many sets one is better, and worse, by more than that."""
        losses = np.where(np.isnan(self.losses[score]), np.inf, self.losses[score])
        a, b = losses[self.methods.index(one)], losses[self.methods.index(other)]
        better = np.count_nonzero(a < b - margin)
        return better, np.count_nonzero(a > b + margin)

    def ratio(self, method: str, to: str, score: str) -> float:
        """Return the geometric mean over sets of a score, in units of another's."""
        a, b = (self.losses[score][self.methods.index(m)] for m in (method, to))
        usable = np.isfinite(a) & np.isfinite(b) & (b > 0) & (a > 0)
        if not usable.any():
            return np.nan
        return float(np.exp(np.mean(np.log(a[usable] / b[usable]))))

    def cliques(self, score: str = "nll") -> list[tuple[int, ...]]:
        """Return runs of methods, by mean rank, of which no two can be told apart.

        A pair is told apart if the interval of the difference of mean ranks excludes 0.
        """
        ranks = self.ranks(score)
        order = np.argsort(ranks.mean(axis=1), kind="stable")
        draws = self._draws()

        def alike(i: int, j: int) -> bool:
            _, low, high = _with_interval(ranks[i] - ranks[j], draws)
            return low <= 0 <= high

        found: list[tuple[int, ...]] = []
        for first in range(len(order)):
            last = first
            while last + 1 < len(order) and all(
                alike(order[k], order[last + 1]) for k in range(first, last + 1)
            ):
                last += 1
            run = tuple(int(i) for i in order[first : last + 1])
            if len(run) > 1 and not (found and set(run) <= set(found[-1])):
                found.append(run)
        return found

    def _draws(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        return rng.integers(0, len(self.sets), (DRAWS, len(self.sets)))


def _with_interval(values: np.ndarray, draws: np.ndarray) -> Interval:
    means = values[draws].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)
