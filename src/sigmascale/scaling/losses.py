"""Losses of bin-wise factors on a calibration set, and a search for the best factors.

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
`benchmarks/optimisers.py` compares this with other optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from .._support.checks import Floats, Ints
from .._support.progress import track
from .._support.weights import total_of
from ..bins.partitions import bins_of, cut_positions, in_pieces, rank_bins

LOSSES = ("nll", "consistency", "adaptivity", "total")
GLOBAL_SHARE = 2 / 3  # of the evaluations go to the global search
INITIAL_STEP = 0.1  # of CMA-ES, in ln s
POPULATION = 40
REFINEMENT_STEP = 0.03  # first step along a coordinate, in ln s
TOLERANCE = 1e-5  # in ln s: smaller steps are not worth an evaluation


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


class _WeighedBins:
    """Score bins of equal weight, of rows in the order of (group, scaled u)."""

    def __init__(self, weights: Floats, n_bins: int, groups: Ints | None) -> None:
        self._weights, self._groups = weights, groups
        total = float(weights.sum())
        self._cuts = np.append(cut_positions(total, n_bins), total)

    def zms(self, weights: Floats, order: Ints, z2: Floats) -> Floats:
        w = self._weights.take(order)
        if self._groups is not None:
            by_group = np.argsort(self._groups.take(order), kind="stable")
            w, z2 = w.take(by_group), z2.take(by_group)
        # a limit parts the row that it falls into
        ends, sums = (np.append(0.0, np.cumsum(x)) for x in (w, z2))
        means: Floats = np.diff(np.interp(self._cuts, ends, sums)) / np.diff(self._cuts)
        return means


class ScaledLoss:
    """The loss of the logarithms of bin-wise factors: S_cal plus S_u and S_X terms.

    Parameters
    ----------
    error, uncertainty : array of shape (n,)
        Errors, and uncertainties before scaling.
    codes : array of int, shape (n,)
        Factor bin of each row.
    n_factors : int
        Number of factor bins.
    features : sequence of arrays of shape (n,)
        One S_X term for each; with none, and `by_uncertainty`, this is "consistency".
        Labels make one score bin each, as in :func:`scorecard`.
    by_uncertainty : bool
        Whether S_u is a term; without it this is "adaptivity", with it "total".
    n_score_bins : int, optional
        Number of score bins; by default as many as :func:`scorecard` has. As many as
        rows when there are fewer rows.
    weights : array of shape (n,), optional
        Weights of the rows; score bins then have equal weights.

    Notes
    -----
    A score bin whose errors are all 0 makes the loss infinite, whatever the factors.
    """

    def __init__(
        self,
        error: Floats,
        uncertainty: Floats,
        codes: Ints,
        n_factors: int,
        features: Sequence[npt.NDArray[np.generic]] = (),
        *,
        by_uncertainty: bool = True,
        n_score_bins: int | None = None,
        weights: Floats | None = None,
    ) -> None:
        if weights is not None:
            # pieces of a weight of at most 1, so that whole weights count repeats
            pieces, weights = in_pieces(weights)
            error, uncertainty = error[pieces], uncertainty[pieces]
            codes, features = codes[pieces], [x[pieces] for x in features]
            if (weights == 1).all():
                weights = None
        n_rows = uncertainty.size
        # Rows by (factor bin, u), the order that scaling keeps. Equal u are shuffled by
        # their errors, so that the order in which rows came does not matter.
        rows = rank_bins(uncertainty, 1, error=error).order
        rows = rows[np.argsort(codes[rows], kind="stable")]
        codes = codes[rows]
        self.n_factors = n_factors
        self._log_u = np.log(uncertainty[rows])
        self._in_order = bool(np.all(np.diff(self._log_u) >= 0))  # factor bins of u
        self._z2 = (error[rows] / uncertainty[rows]) ** 2
        self._counts = np.bincount(codes, minlength=n_factors)
        self._weights = None if weights is None else weights[rows]
        if self._weights is not None:
            self._z2 *= self._weights
        total = total_of(n_rows, weights)
        self._mean_z2 = np.bincount(codes, self._z2, minlength=n_factors) / total
        n_score_bins = min(bins_of(n_score_bins, total), max(1, int(total)))
        self._n_score_bins = n_score_bins
        self._starts = cut_positions(n_rows, n_score_bins)
        self._sizes = np.diff(self._starts, append=n_rows)
        self._by_uncertainty = by_uncertainty
        self._features = [self._score_bins(x[rows], codes) for x in features]
        self._needs_order = by_uncertainty or any(
            not isinstance(bins, _FixedBins) for bins in self._features
        )

    def _score_bins(
        self, x: npt.NDArray[np.generic], codes: Ints
    ) -> _FixedBins | _CutBins | _WeighedBins:
        """Prepare the score bins of a feature, rows being by (factor bin, u)."""
        _, value, count = np.unique(x, return_inverse=True, return_counts=True)
        if self._weights is not None:
            if x.dtype.kind == "f":
                return _WeighedBins(self._weights, self._n_score_bins, value)
            sums = np.zeros((count.size, self.n_factors))
            np.add.at(sums, (value, codes), self._z2)
            return _FixedBins(sums / np.bincount(value, self._weights)[:, None])
        last = np.cumsum(count) - 1
        first = last - count + 1
        labels = x.dtype.kind != "f"  # these make one score bin each
        starts, sizes = (first, count) if labels else (self._starts, self._sizes)
        first_bin = np.searchsorted(starts, first, side="right") - 1
        last_bin = np.searchsorted(starts, last, side="right") - 1
        cut = first_bin != last_bin
        if not cut.any():
            sums = np.zeros((starts.size, self.n_factors))
            np.add.at(sums, (first_bin[value], codes), self._z2)
            return _FixedBins(sums / sizes[:, None])
        # A group is a value that is cut, or a run of uncut values in one score bin.
        new = cut[1:] | cut[:-1] | (first_bin[1:] != last_bin[:-1])
        groups = np.concatenate([[0], np.cumsum(new)])[value]
        return _CutBins(groups, starts, sizes)

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
                loss += _score(self._zms_by_uncertainty(weights, order, z2))
            for bins in self._features:
                loss += _score(bins.zms(weights, order, z2))
        return loss if np.isfinite(loss) else float("inf")

    def _zms_by_uncertainty(self, weights: Floats, order: Ints, z2: Floats) -> Floats:
        if self._weights is not None:
            bins = _WeighedBins(self._weights, self._n_score_bins, None)
            return bins.zms(weights, order, z2)
        means: Floats = np.add.reduceat(z2, self._starts) / self._sizes
        return means

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
            for _ in track(
                rounds, "optimising factors", max_evaluations, done=lambda: best.count
            ):
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
        msg = (
            'Factors for a loss other than "nll" are found with the package cma: '
            'pip install ".[optimize]" in a checkout'
        )
        raise ImportError(msg) from problem
    options = {
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
