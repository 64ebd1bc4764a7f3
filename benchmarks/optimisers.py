"""Compare optimisers of bin-wise factors at an equal number of evaluations.

All start from the analytic factors and minimise the total loss of 20 bins of u on the
calibration set. NLopt takes part if it is installed.

    SIGMASCALE_QM9=folder python benchmarks/optimisers.py

Without SIGMASCALE_QM9, it runs on 10,000 synthetic molecules. Options choose another
problem, for example: --bins 80 --by 1 --loss consistency
"""

from __future__ import annotations

import argparse
import os
import time

import cma
import numpy as np
from scipy import optimize
from threadpoolctl import threadpool_limits

from sigmascale import BinwiseScaling
from sigmascale.datasets import fetch_qm9, make_molecules
from sigmascale.scaling.losses import ScaledLoss, minimise

SEED = 0
STEP = 0.05  # first step of those that ask for one, in ln s
BOX = 0.5  # half the width of the box of those that need one


class SpentError(Exception):
    """All evaluations are spent."""


class Budget:
    """Counts evaluations, remembers the best and stops when they are spent."""

    def __init__(self, loss, limit):
        self.loss, self.limit = loss, limit
        self.best, self.count = np.inf, 0

    def __call__(self, x, *_):
        """Evaluate the loss; NLopt and SciPy may pass more than the point."""
        if self.count >= self.limit:
            raise SpentError
        self.count += 1
        value = self.loss(np.asarray(x))
        self.best = min(self.best, value)
        return value


def plain_cma(loss, start, limit):
    """CMA-ES with its own settings, but for a rugged loss: only tiny steps end it."""
    rng = np.random.default_rng(SEED)
    options = {
        "seed": np.nan,
        "randn": lambda *shape: rng.standard_normal(shape),
        "tolx": 1e-6,
        "tolfun": 0,
        "tolfunhist": 0,
        "tolstagnation": limit,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(start, 0.1, options)
    while not strategy.stop():
        points = strategy.ask()
        strategy.tell(points, [loss(point) for point in points])


def scipy_local(method, **options):
    """Return a local optimiser of SciPy."""

    def run(loss, start, limit):
        given = {"maxfev": limit, **{k: v(start) for k, v in options.items()}}
        optimize.minimize(loss, start, method=method, options=given)

    return run


def differential_evolution(loss, start, limit):
    """SciPy's, without the polish that a rugged loss would mislead."""
    box = np.column_stack([start - BOX, start + BOX])
    optimize.differential_evolution(
        loss, box, x0=start, rng=SEED, maxiter=limit, popsize=3, tol=0, polish=False
    )


def dual_annealing(loss, start, limit):
    """SciPy's, with its local search."""
    box = np.column_stack([start - BOX, start + BOX])
    optimize.dual_annealing(loss, box, x0=start, rng=SEED, maxfun=limit)


def bobyqa(loss, start, limit):
    """NLopt's BOBYQA, the kind of optimiser that the paper used."""
    import nlopt

    problem = nlopt.opt(nlopt.LN_BOBYQA, start.size)
    problem.set_min_objective(loss)
    problem.set_maxeval(limit)
    problem.set_initial_step(STEP)
    problem.set_xtol_abs(1e-7)
    problem.set_lower_bounds(start - 3)
    problem.set_upper_bounds(start + 3)
    problem.optimize(start)


def ours(loss, start, limit):
    """CMA-ES with a larger population, then a walk along the coordinates."""
    minimise(loss, start, seed=SEED, max_evaluations=limit)


OPTIMISERS = {
    "ours: CMA-ES, coordinates": ours,
    "cma, default population": plain_cma,
    "SciPy dual_annealing": dual_annealing,
    "SciPy differential_evolution": differential_evolution,
    "SciPy Powell": scipy_local("Powell", direc=lambda x: STEP * np.eye(x.size)),
    "SciPy Nelder-Mead, adaptive": scipy_local(
        "Nelder-Mead",
        adaptive=lambda x: True,
        initial_simplex=lambda x: np.vstack([x, x + STEP * np.eye(x.size)]),
    ),
    "NLopt BOBYQA": bobyqa,
}


def main() -> None:
    """Print one line an optimiser."""
    parser = argparse.ArgumentParser(description="Compare optimisers of factors.")
    parser.add_argument("--bins", type=int, default=20)
    parser.add_argument("--by", type=int, default=0, help="column of X; 0 is u")
    parser.add_argument(
        "--loss", default="total", choices=("consistency", "adaptivity", "total")
    )
    parser.add_argument("--evaluations", type=int, default=15_000)
    options = parser.parse_args()
    if os.environ.get("SIGMASCALE_QM9"):
        name, data = "QM9", fetch_qm9().calibration
    else:
        name, data = "synthetic molecules", make_molecules(10_000)
    u, *features = data.X.T
    scaler = BinwiseScaling(options.bins, by=options.by).fit(data.X, data.error)
    codes = scaler.partition_.codes(data.X[:, options.by], u)
    loss = ScaledLoss(
        data.error,
        u,
        codes,
        scaler.partition_.n_bins,
        () if options.loss == "consistency" else features,
        by_uncertainty=options.loss != "adaptivity",
    )
    start = np.log(scaler.factors_)
    print(
        f"{options.loss}, {options.bins} bins of column {options.by}, {len(data)} rows "
        f"of {name}; start: {loss(start):.4f}"
    )
    print(f"{'optimiser':<30}{'loss':>8}{'evaluations':>13}{'time/ours':>11}")
    unit = None
    with threadpool_limits(limits=1):
        for label, run in OPTIMISERS.items():
            budget = Budget(loss, options.evaluations)
            started = time.perf_counter()
            try:
                run(budget, start.copy(), options.evaluations)
            except SpentError:
                pass
            except ImportError as problem:
                print(f"{label:<30}{'-':>8}  ({problem})")
                continue
            seconds = time.perf_counter() - started
            unit = unit or seconds
            print(
                f"{label:<30}{budget.best:>8.4f}{budget.count:>13}"
                f"{seconds / unit:>11.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
