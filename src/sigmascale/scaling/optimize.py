"""Seeded minimisation of a rugged loss: a global search, then a local one.

Wherever two rows of different bins change places across the limit of a score bin, the
loss jumps a little, and local optima are everywhere. CMA-ES with a population larger
than its default averages over them and finds the valley. It is poor at the last
digits, which a walk along the coordinates is good at: a factor hardly disturbs
distant bins. `benchmarks/optimisers.py` compares this with other optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from .._support.checks import Floats
from .._support.progress import track

GLOBAL_SHARE = 2 / 3  # of the evaluations go to the global search
INITIAL_STEP = 0.1  # of CMA-ES, in ln s
POPULATION = 40
REFINEMENT_STEP = 0.03  # first step along a coordinate, in ln s
TOLERANCE = 1e-5  # in ln s: smaller steps are not worth an evaluation


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
            'pip install "sigmascale[optimize]"'
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
