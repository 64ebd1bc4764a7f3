"""How long predictions of many rows take on a GPU, beside a copy of the rows.

    PYTHONPATH=src python benchmarks/gpu.py [--rows 1e8]

It needs PyTorch or CuPy with CUDA, and ends with a word where there is none. Rows are
float64 and lie on the device. Times are medians of several runs by CUDA events, after
two that do not count; memory is the peak during a run, as a multiple of the input.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

RUNS, WARM_UP = 9, 2
N_LEARNED = 20_000


class Torch:
    """Arrays and clocks of PyTorch."""

    name = "PyTorch"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError
        self.xp = torch
        self.device = torch.cuda.get_device_name()
        torch.manual_seed(0)

    def normal(self, *shape: int) -> Any:
        """Return normal numbers."""
        return self.xp.randn(*shape, dtype=self.xp.float64, device="cuda")

    def exp(self, x: Any) -> Any:
        """Return exponentials."""
        return self.xp.exp(x)

    def copy(self, x: Any) -> Any:
        """Return a copy."""
        return x.clone()

    def size(self, x: Any) -> int:
        """Return the number of bytes."""
        return int(x.numel() * x.element_size())

    def ms(self, run: Callable[[], Any]) -> float:
        """Return how long one run takes."""
        cuda = self.xp.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        cuda.synchronize()
        start.record()
        run()
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end))

    def peak(self, run: Callable[[], Any]) -> int:
        """Return the bytes that a run holds at most, beyond what was held before."""
        cuda = self.xp.cuda
        cuda.synchronize()
        before = cuda.memory_allocated()
        cuda.reset_peak_memory_stats()
        run()
        cuda.synchronize()
        return int(cuda.max_memory_allocated() - before)


class CuPy:
    """Arrays and clocks of CuPy."""

    name = "CuPy"

    def __init__(self) -> None:
        import cupy

        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as problem:
            raise ImportError from problem
        self.xp = cupy
        self.device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        self.rng = cupy.random.default_rng(0)

    def normal(self, *shape: int) -> Any:
        """Return normal numbers."""
        return self.rng.standard_normal(shape)

    def exp(self, x: Any) -> Any:
        """Return exponentials."""
        return self.xp.exp(x)

    def copy(self, x: Any) -> Any:
        """Return a copy."""
        return x.copy()

    def size(self, x: Any) -> int:
        """Return the number of bytes."""
        return int(x.nbytes)

    def ms(self, run: Callable[[], Any]) -> float:
        """Return how long one run takes."""
        cuda = self.xp.cuda
        start, end = cuda.Event(), cuda.Event()
        cuda.Device().synchronize()
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(cuda.get_elapsed_time(start, end))

    def peak(self, run: Callable[[], Any]) -> int:
        """Return the bytes that the pool of memory grows by."""
        pool = self.xp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        run()
        self.xp.cuda.Device().synchronize()
        return int(pool.total_bytes() - before)


def learned() -> tuple[Any, Any, Any]:
    """Return a recalibrator of 40 bins, a boosted and a raked one of three columns."""
    import sigmascale as ss

    rng = np.random.default_rng(0)
    u, X = rng.lognormal(0, 0.5, N_LEARNED), rng.normal(size=(N_LEARNED, 2))
    sigma = u * np.exp(np.sin(3 * X[:, 0]) / 2 + X[:, 1] / 4 + 0.2 * X[:, 0] * X[:, 1])
    error = rng.normal(scale=sigma)
    alone = ss.Predictions(y_std=u, error=error)
    both = ss.Predictions(y_std=u, error=error, features=X)
    binwise = ss.Recalibrator(ss.BinwiseScaling(n_bins=40)).fit(alone)
    boosted = ss.Recalibrator().fit(both)
    return binwise, boosted, ss.Recalibrator(ss.RakedScaling()).fit(both)


def measure(library: Any, n_rows: int) -> None:
    """Print a line for each task."""
    binwise, boosted, raked = learned()
    u = library.exp(0.5 * library.normal(n_rows))
    X = library.normal(n_rows // 10, 3)
    X[:, 0] = library.exp(0.5 * X[:, 0])
    tables = len(boosted.scale_.tables)
    tasks = [
        (f"predict, 40 bins, {n_rows:.0e} rows", binwise, u, 8.0),
        (f"predict, boosted, {tables} tables, {n_rows // 10:.0e} × 3", boosted, X, 100),
        (f"predict, raked, {n_rows // 10:.0e} × 3", raked, X, None),
    ]
    print(f"\n{library.name} on {library.device}, medians of {RUNS} runs\n")
    print("| what | ms | at most | copy, ms | memory, of the input |")
    print("| --- | --- | --- | --- | --- |")
    for what, fitted, rows, bound in tasks:
        some = fitted.predict(rows[:1000])  # compared with NumPy before it is timed
        host = some.get() if library.name == "CuPy" else some.cpu().numpy()
        given = rows[:1000]
        given = given.get() if library.name == "CuPy" else given.cpu().numpy()
        np.testing.assert_allclose(host, fitted.predict(given), rtol=1e-10)

        def run(fitted: Any = fitted, rows: Any = rows) -> Any:
            return fitted.predict(rows)

        def copy(rows: Any = rows) -> Any:
            return library.copy(rows)

        took, copied = (
            statistics.median([library.ms(each) for _ in range(RUNS + WARM_UP)][2:])
            for each in (run, copy)
        )
        memory = library.peak(run) / library.size(rows)
        limit = "" if bound is None else f"{bound:g}"
        print(f"| {what} | {took:.2f} | {limit} | {copied:.2f} | {memory:.1f} |")


def main() -> None:
    """Measure with each library that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e8)
    options = parser.parse_args()
    for kind in (Torch, CuPy):
        try:
            library = kind()
        except ImportError:
            print(f"skipped: {kind.name} is not installed, or finds no GPU.")
            continue
        measure(library, int(options.rows))


if __name__ == "__main__":
    main()
