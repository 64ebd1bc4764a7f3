"""Bin-wise factors that minimise the losses of the paper, and the search for them.

Losses are evaluated without sorting afresh. Every row belongs to one *factor bin*; its
uncertainty is multiplied by the bin's positive factor. Factors change the order of the
rows, on which the local scores of the scaled set depend, but:

* They never change the order *inside* a factor bin. With rows kept by (factor bin, u),
  scaled uncertainties are a handful of ascending runs, which a stable sort merges.
* From the order by scaled u, that by (X, scaled u) follows by one stable distribution
  of the rows over the values of X. Values that no limit of a score bin cuts through
  need no order and are lumped together; the few that remain are sorted by counting.
  When no value is cut (a feature without ties), a matrix product is left.

The search is seeded, a global one first and then a local one. Wherever two rows of
different bins change places across the limit of a score bin, the loss jumps a little,
and local optima are everywhere. CMA-ES with a population larger than its default
averages over them and finds the valley. It is poor at the last digits, which a walk
along the coordinates is good at: a factor hardly disturbs distant bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from sigmascale import Predictions
from sigmascale._support.checks import Floats, Ints
from sigmascale._support.progress import track
from sigmascale.additive import Table
from sigmascale.bins import bins_of, cut_positions, rank_order
from sigmascale.scaling import BinwiseScaling, Learned, Scaling
from sigmascale.scores import nll

LOSSES = ("nll", "consistency", "adaptivity", "total")
GLOBAL_SHARE = 2 / 3  # of the evaluations go to the global search
INITIAL_STEP = 0.1  # of CMA-ES, in ln s
POPULATION = 40
REFINEMENT_STEP = 0.03  # first step along a coordinate, in ln s
TOLERANCE = 1e-5  # in ln s: smaller steps are not worth an evaluation


class OptimisedScaling(Scaling):
    """Multiply the uncertainties of each bin by a factor that minimises a loss.

    Parameters
    ----------
    by : str or int, default "u"
        The column that is binned.
    n_bins : int, default 40
        Number of equal-size bins.
    loss : {"nll", "consistency", "adaptivity", "total"}, default "nll"
        "nll" has a closed solution, sqrt(<Z²>) of each bin, from which the others are
        found: S_cal + S_u, S_cal + the sum of S_x over the features, and S_cal + S_u +
        that sum, with as many score bins as a scorecard has.
    max_evaluations : int, default 15000
        How often the loss may be evaluated.
    random_state : int, default 0
        Seed of the optimisation.

    Attributes
    ----------
    start_loss_, loss_ : float
        The loss of the closed solution on the calibration set, and of what was found;
        of "nll", the negative log-likelihood.
    """

    def __init__(
        self,
        by: str | int = "u",
        n_bins: int = 40,
        *,
        loss: str = "nll",
        max_evaluations: int = 15_000,
        random_state: int = 0,
    ) -> None:
        self.by = by
        self.n_bins = n_bins
        self.loss = loss
        self.max_evaluations = max_evaluations
        self.random_state = random_state

    def learn(self, rows: Predictions) -> Learned:
        """Learn the closed solution, and go on from it."""
        # the paper takes every bin's own factor, however few its rows
        learned = BinwiseScaling(self.n_bins, by=self.by, prior_rows=0).learn(rows)
        scale = learned.map
        if self.loss == "nll":
            self.loss_ = self.start_loss_ = nll(rows.with_y_std(scale.of_rows(rows)))
            return learned
        (table,) = scale.tables
        codes = scale.axes[0].codes(rows.columns)
        present = np.unique(codes)  # 0 stands for what is missing
        features = [] if self.loss == "consistency" else rows.columns[1:]
        loss = ScaledLoss(
            rows,
            np.asarray(np.searchsorted(present, codes)),
            present.size,
            features,
            by_uncertainty=self.loss != "adaptivity",
        )
        values = table.values[table.classes[0]]  # of each code
        found = minimise(
            loss,
            values[present],
            seed=self.random_state,
            max_evaluations=self.max_evaluations,
        )
        self.loss_, self.start_loss_ = found.loss, found.start_loss
        values[present] = found.x
        tables = (Table.of((0,), values),)
        return replace(learned, map=replace(scale, tables=tables))


class _FixedBins:
    """Score bins of a feature whose values no limit cuts: <Z²> is linear in 1/s²."""

    def __init__(self, means: Floats) -> None:
        self._means = means

    def zms(self, weights: Floats, order: Ints, z2: Floats) -> Floats:
        return self._means @ weights


class _CutBins:
    """Score bins of a feature with ties: rows in the order of (group, scaled u)."""

    def __init__(self, groups: Ints, starts: Ints, sizes: Ints) -> None:
        # NumPy's stable sort of small unsigned integers counts instead of comparing
        self._groups = groups.astype(np.min_scalar_type(int(groups.max())))
        self._starts, self._sizes = starts, sizes

    def zms(self, weights: Floats, order: Ints, z2: Floats) -> Floats:
        by_group = np.argsort(self._groups.take(order), kind="stable")
        return np.add.reduceat(z2.take(by_group), self._starts) / self._sizes


class ScaledLoss:
    """The loss of the logarithms of bin-wise factors: S_cal plus S_u and S_X terms.

    Parameters
    ----------
    rows : Predictions
        Errors, and uncertainties before scaling.
    codes : array of int, shape (n,)
        Factor bin of each row.
    n_factors : int
        Number of factor bins.
    features : sequence of arrays of shape (n,)
        One S_X term for each, of numbers; with none this is "consistency".
    by_uncertainty : bool
        Whether S_u is a term; without it this is "adaptivity", with it "total".
    n_score_bins : int, optional
        Number of score bins; by default as many as :func:`scorecard` has.

    Notes
    -----
    A score bin whose errors are all 0 makes the loss infinite, whatever the factors.
    """

    def __init__(
        self,
        rows: Predictions,
        codes: Ints,
        n_factors: int,
        features: Sequence[Floats] = (),
        *,
        by_uncertainty: bool = True,
        n_score_bins: int | None = None,
    ) -> None:
        # Rows by (factor bin, u), the order that scaling keeps. Equal u are shuffled by
        # their errors, so that the order in which rows came does not matter.
        u = rows.y_std
        order = rank_order(u, None, rows.squared_error, u)
        order = order[np.argsort(codes[order], kind="stable")]
        codes = codes[order]
        self.n_factors = n_factors
        self._log_u = np.log(u[order])
        self._in_order = bool(np.all(np.diff(self._log_u) >= 0))  # factor bins of u
        self._z2 = rows.z2[order]
        self._counts = np.bincount(codes, minlength=n_factors)
        self._mean_z2 = np.bincount(codes, self._z2, minlength=n_factors) / u.size
        n_score_bins = min(bins_of(n_score_bins, u.size), u.size)
        self._starts = cut_positions(u.size, n_score_bins)
        self._sizes = np.diff(self._starts, append=u.size)
        self._by_uncertainty = by_uncertainty
        self._features = [self._score_bins(x[order], codes) for x in features]
        self._needs_order = by_uncertainty or any(
            isinstance(bins, _CutBins) for bins in self._features
        )

    def _score_bins(self, x: Floats, codes: Ints) -> _FixedBins | _CutBins:
        """Prepare the score bins of a feature, rows being by (factor bin, u)."""
        _, value, count = np.unique(x, return_inverse=True, return_counts=True)
        last = np.cumsum(count) - 1
        first_bin = np.searchsorted(self._starts, last - count + 1, side="right") - 1
        last_bin = np.searchsorted(self._starts, last, side="right") - 1
        cut = first_bin != last_bin
        if not cut.any():
            sums = np.zeros((self._starts.size, self.n_factors))
            np.add.at(sums, (first_bin[value], codes), self._z2)
            return _FixedBins(sums / self._sizes[:, None])
        # A group is a value that is cut, or a run of uncut values in one score bin.
        new = cut[1:] | cut[:-1] | (first_bin[1:] != last_bin[:-1])
        groups = np.concatenate([[0], np.cumsum(new)])[value]
        return _CutBins(groups, self._starts, self._sizes)

    def __call__(self, log_factors: Floats) -> float:
        """Return the loss for the factors exp(`log_factors`)."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            weights = np.exp(-2 * log_factors)
            loss = abs(float(np.log(self._mean_z2 @ weights)))
            order, z2 = np.empty(0, dtype=np.intp), np.empty(0)
            if self._needs_order:
                order = self._order(log_factors)
                z2 = (self._z2 * np.repeat(weights, self._counts)).take(order)
            if self._by_uncertainty:
                loss += _score(np.add.reduceat(z2, self._starts) / self._sizes)
            for bins in self._features:
                loss += _score(bins.zms(weights, order, z2))
        return loss if np.isfinite(loss) else float("inf")

    def _order(self, log_factors: Floats) -> Ints:
        """Return the rows in the order of the scaled uncertainty."""
        scaled = self._log_u + np.repeat(log_factors, self._counts)
        if self._in_order:  # runs of neighbouring bins hardly overlap: merge them
            return np.argsort(scaled, kind="stable")
        # Else a rough order by counting leaves short runs, which merging then mends.
        low, high = scaled.min(), scaled.max()
        key = (scaled - low) * (65535 / max(high - low, 1e-300))
        rough = np.argsort(key.astype(np.uint16), kind="stable")
        return rough.take(np.argsort(scaled.take(rough), kind="stable"))


def _score(zms: Floats) -> float:
    return float(np.abs(np.log(zms)).sum()) / zms.size


@dataclass(frozen=True)
class Minimum:
    """What was found: the best point (the start if nothing was better) and its loss."""

    x: Floats
    loss: float
    start_loss: float
    n_evaluations: int


class _Best:
    """Counts evaluations and remembers the best."""

    def __init__(self, loss: Callable[[Floats], float], start: Floats) -> None:
        self._loss = loss
        self.x = start
        self.value = float("inf")
        self.count = 0

    def __call__(self, x: Floats) -> float:
        value = self._loss(x)
        self.count += 1
        if value < self.value:
            self.x, self.value = np.array(x), value
        return value


def minimise(
    loss: Callable[[Floats], float], start: Floats, *, seed: int, max_evaluations: int
) -> Minimum:
    """Minimise a rugged loss from a good start.

    Parameters
    ----------
    loss : callable
        Takes parameters of order 1, for which changes of 0.1 matter, such as
        logarithms of factors; infinite where it is not defined.
    start : array
        Where to start; returned if nothing is better or its loss is not finite.
    seed : int
        Same seed, same result. NumPy's global generator is not touched.
    max_evaluations : int
        Never exceeded; fewer are used when the steps become tiny.
    """
    best = _Best(loss, start)
    start_loss = best(start)
    if np.isfinite(start_loss):
        rng = np.random.default_rng(seed)
        rounds = _search(best, rng, max_evaluations)
        # threads only cost time in matrices this small
        with threadpool_limits(limits=1, user_api="blas"):
            for _ in track(rounds, "optimising factors"):
                pass
    return Minimum(best.x, best.value, start_loss, best.count)


def _search(best: _Best, rng: np.random.Generator, limit: int) -> Iterator[None]:
    if best.x.size > 1:
        yield from _global_search(best, rng, int(GLOBAL_SHARE * limit))
    yield from _refine(best, rng, limit)


def _global_search(best: _Best, rng: np.random.Generator, limit: int) -> Iterator[None]:
    """CMA-ES from the best point so far, until `limit` evaluations in all."""
    try:
        import cma
    except ImportError as problem:
        msg = "The optimised rows of the paper need the package cma: pip install cma"
        raise ImportError(msg) from problem
    options: dict[str, Any] = {
        # our own generator: with an integer seed, cma would reseed NumPy's global one
        "seed": np.nan,
        "randn": lambda *shape: rng.standard_normal(shape),
        "popsize": max(POPULATION, 4 + int(3 * np.log(best.x.size))),
        "tolx": TOLERANCE,
        # flat generations are normal on a rugged loss and no reason to stop
        "tolfun": 0,
        "tolfunhist": 0,
        "tolstagnation": limit,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(best.x, INITIAL_STEP, options)
    while best.count + strategy.popsize <= limit and not strategy.stop():
        candidates = strategy.ask()
        strategy.tell(candidates, [best(x) for x in candidates])
        yield


def _refine(best: _Best, rng: np.random.Generator, limit: int) -> Iterator[None]:
    """Walk along random coordinates, both ways; each learns the length of its step."""
    steps = np.full(best.x.size, REFINEMENT_STEP)
    while best.count < limit and steps.max() > TOLERANCE:
        for i in rng.permutation(best.x.size):
            # a random length: a fixed grid of steps gets stuck between two jumps
            move = steps[i] * np.exp(0.5 * rng.standard_normal())
            before = best.value
            for signed in (move, -move) if rng.random() < 0.5 else (-move, move):
                if best.count < limit and best.value == before:
                    x = best.x.copy()
                    x[i] += signed
                    best(x)
            steps[i] *= 2.0 if best.value < before else 0.7
        yield
