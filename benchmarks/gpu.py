"""How long `predict` takes with many rows on a GPU, beside the least it could take.

    PYTHONPATH=src python benchmarks/gpu.py [--rows 1e8] [--out studies/gpu.md]

Rows are float64 and lie on the device; what is timed is `Recalibrator.predict`, as a
user calls it. Its limit is a copy of the rows; its peer are the bare operations that
someone would write by hand: a search among the edges, a look-up of factors, a product.
Times are medians of several runs, after two that do not count; memory is the most that
a run holds, as a multiple of its input. What comes out is compared with NumPy first.

It needs PyTorch, CuPy or JAX beside NumPy, SciPy, scikit-learn, narwhals,
array-api-compat and lazy-loader. Libraries that are not there, or find no GPU, are
named and left out. `--cpu` runs it without one, to see that it works.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss

RUNS, WARM_UP = 9, 2
N_LEARNED = 20_000
N_COMPARED = 100_000  # rows that are compared with NumPy
Run = Callable[[], Any]


class Torch:
    """Arrays and clocks of PyTorch."""

    name, module = "PyTorch", "torch"

    def __init__(self, *, cpu: bool) -> None:
        import torch

        self.torch = torch
        self.has_gpu = not cpu
        if cpu:
            self.device = "cpu"
            self.words = "the processor"
            return
        if not torch.cuda.is_available():
            msg = "it finds no GPU"
            raise RuntimeError(msg)
        self.device = "cuda"
        self.words = torch.cuda.get_device_name()

    def array(self, values: Any) -> Any:
        """Return an array of NumPy on the device."""
        return self.torch.asarray(values, device=self.device)

    def host(self, values: Any) -> Any:
        """Return an array of the device in NumPy."""
        return values.cpu().numpy()

    def copy(self, values: Any) -> Any:
        """Return a copy."""
        return values.clone()

    def bare(self, edges: Any, factors: Any) -> Callable[[Any], Any]:
        """Return the operations of bins of u, written by hand."""
        torch, cuts, table = self.torch, self.array(edges), self.array(factors)

        def rescale(u: Any) -> Any:
            code = torch.bucketize(u, cuts, right=True, out_int32=True)
            return torch.index_select(table, 0, code).mul_(u)

        return rescale

    def compiled(self, function: Any) -> Any:
        """Return a function compiled as a whole."""
        return self.torch.compile(function, fullgraph=True)

    def milliseconds(self, run: Run) -> float:
        """Return how long one run takes."""
        if not self.has_gpu:
            return _wall_milliseconds(run)
        cuda = self.torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        start.record()
        run()
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end))

    def peak(self, run: Run) -> float:
        """Return the bytes that a run holds at most, beyond what was held before."""
        if not self.has_gpu:
            return float("nan")
        cuda = self.torch.cuda
        cuda.synchronize()
        before = cuda.memory_allocated()
        cuda.reset_peak_memory_stats()
        run()
        cuda.synchronize()
        return float(cuda.max_memory_allocated() - before)


class CuPy:
    """Arrays and clocks of CuPy."""

    name, module = "CuPy", "cupy"

    def __init__(self, *, cpu: bool) -> None:
        import cupy

        if cpu or not cupy.is_available():
            msg = "it needs a GPU" if cpu else "it finds no GPU"
            raise RuntimeError(msg)
        self.cupy = cupy
        self.words = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def array(self, values: Any) -> Any:
        """Return an array of NumPy on the device."""
        return self.cupy.asarray(values)

    def host(self, values: Any) -> Any:
        """Return an array of the device in NumPy."""
        return values.get()

    def copy(self, values: Any) -> Any:
        """Return a copy."""
        return values.copy()

    def bare(self, edges: Any, factors: Any) -> Callable[[Any], Any]:
        """Return the operations of bins of u, written by hand."""
        cuts, table = self.array(edges), self.array(factors)

        def rescale(u: Any) -> Any:
            code = self.cupy.searchsorted(cuts, u, side="right")
            return table.take(code) * u

        return rescale

    compiled = None

    def milliseconds(self, run: Run) -> float:
        """Return how long one run takes."""
        cuda = self.cupy.cuda
        start, end = cuda.Event(), cuda.Event()
        cuda.Device().synchronize()
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(cuda.get_elapsed_time(start, end))

    def peak(self, run: Run) -> float:
        """Return the bytes that the pool of memory grows by."""
        pool = self.cupy.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        run()
        self.cupy.cuda.Device().synchronize()
        return float(pool.total_bytes() - before)


class JAX:
    """Arrays and clocks of JAX."""

    name, module = "JAX", "jax"

    def __init__(self, *, cpu: bool) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.device = jax.devices()[0]
        if not cpu and self.device.platform != "gpu":
            msg = "it finds no GPU"
            raise RuntimeError(msg)
        self.words = self.device.device_kind

    def array(self, values: Any) -> Any:
        """Return an array of NumPy on the device."""
        return self.jax.device_put(values, self.device)

    def host(self, values: Any) -> Any:
        """Return an array of the device in NumPy."""
        return np.asarray(values)

    def copy(self, values: Any) -> Any:
        """Return a copy."""
        return self.jax.numpy.copy(values)

    def bare(self, edges: Any, factors: Any) -> Callable[[Any], Any]:
        """Return the operations of bins of u, written by hand."""
        xp, cuts, table = self.jax.numpy, self.array(edges), self.array(factors)

        def rescale(u: Any) -> Any:
            return table[xp.searchsorted(cuts, u, side="right")] * u

        return self.jax.jit(rescale)

    def compiled(self, function: Any) -> Any:
        """Return a function compiled as a whole."""
        return self.jax.jit(function)

    def milliseconds(self, run: Run) -> float:
        """Return how long one run takes."""
        return _wall_milliseconds(lambda: self.jax.block_until_ready(run()))

    def peak(self, run: Run) -> float:
        """Return nothing: its memory is taken at once."""
        return float("nan")


def _wall_milliseconds(run: Run) -> float:
    began = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - began)


@dataclass(frozen=True)
class Task:
    """What is timed.

    Attributes
    ----------
    words : str
        What it is.
    fitted : Recalibrator
        What predicts.
    rows : array of NumPy
        The rows.
    at_most : tuple of float
        Milliseconds, memory and milliseconds compiled that are asked for on an H200.
    """

    words: str
    fitted: Any
    rows: Any
    at_most: tuple[float, float, float]


def made_up(n_rows: int, n_features: int, seed: int) -> tuple[Any, Any, Any]:
    """Return uncertainties, features and errors; pairs of features act together."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n_rows)
    X = rng.normal(size=(n_rows, n_features))
    log_factor = 0.5 * np.sin(3 * X[:, 0])
    for j in range(1, n_features):
        log_factor += 0.2 * X[:, j - 1] * X[:, j]
    return u, X, rng.normal(size=n_rows) * u * np.exp(log_factor)


def tasks(n_rows: int) -> list[Task]:
    """Return what is timed: 40 bins of u, and boosted and raked scalings."""
    u, X, error = made_up(N_LEARNED, 5, 0)
    alone = ss.Predictions(y_std=u, error=error)
    together = ss.Predictions(y_std=u, error=error, features=X)
    binwise = ss.Recalibrator(ss.BinwiseScaling(40)).fit(alone)
    boosted = ss.Recalibrator().fit(together)
    raked = ss.Recalibrator(ss.RakedScaling()).fit(together)

    many_u, *_ = made_up(n_rows, 1, 1)
    few_u, few_X, _ = made_up(n_rows // 10, 5, 2)
    table = np.column_stack([few_u, few_X])
    n_tables = len(boosted.scale_.tables)
    none = float("inf")
    return [
        Task(f"40 bins, {n_rows:.0e} × 1", binwise, many_u, (2.2, 1.6, 0.8)),
        Task(
            f"boosted, {n_tables} tables, {n_rows // 10:.0e} × 6",
            boosted,
            table,
            (30.0, none, none),
        ),
        Task(f"raked, {n_rows // 10:.0e} × 6", raked, table, (none, none, none)),
    ]


def median_milliseconds(library: Any, run: Run) -> float:
    """Return the median time of several runs."""
    took = [library.milliseconds(run) for _ in range(WARM_UP + RUNS)]
    return statistics.median(took[WARM_UP:])


def line(words: str, measured: list[float], at_most: tuple[float, float]) -> str:
    """Return a line of the table; what misses what was asked for is bold."""
    cells = [words]
    for value, most in zip(measured, (*at_most, np.inf), strict=True):
        if np.isnan(value):
            cells.append("")
            continue
        asked = "" if np.isinf(most) else f" (at most {most:g})"
        number = f"{value:.2f}{asked}"
        cells.append(f"**{number}**" if value > most else number)
    return "| " + " | ".join(cells) + " |"


def measured(library: Any, task: Task) -> list[str]:
    """Return lines for a task: predict, compiled, by hand, and a copy."""
    rows = library.array(task.rows)
    some = task.rows[:N_COMPARED]
    wanted = task.fitted.predict(some)
    functions = {f"{task.words}": (task.fitted.predict, task.at_most[:2])}
    if library.compiled is not None:
        compiled = library.compiled(task.fitted.predict)
        limits = (task.at_most[2], float("inf"))
        functions[f"{task.words}, compiled"] = compiled, limits
    scale = task.fitted.scale_
    if task.rows.ndim == 1:  # without zeros, which need not be lifted
        factors = np.exp(scale.tables[0].values[1:])
        by_hand = library.bare(scale.axes[0].edges, factors)
        functions[f"{task.words}, by hand"] = by_hand, task.at_most[:2]
    n_bytes = task.rows.nbytes

    def copied() -> float:
        return median_milliseconds(library, lambda: library.copy(rows))

    lines = []
    for words, (function, at_most) in functions.items():
        found = library.host(function(library.array(some)))
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
        took = median_milliseconds(library, lambda function=function: function(rows))
        memory = library.peak(lambda function=function: function(rows)) / n_bytes
        lines.append(line(words, [took, memory, copied()], at_most))
    return lines


def in_words(name: str, lines: list[str]) -> str:
    """Return a sentence on the bounds that a library keeps, or misses."""
    missed = [line.split(" | ")[0].removeprefix("| ") for line in lines if "**" in line]
    if not missed:
        return f"{name} keeps all bounds."
    return f"{name} misses bounds in {len(missed)} lines: {'; '.join(missed)}."


def main() -> None:
    """Measure with each library that is there, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--cpu", action="store_true", help="without a GPU")
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    to_measure = tasks(int(options.rows))
    page = ["# Predictions on a GPU", ""]
    page += [
        f"Medians of {RUNS} runs of `Recalibrator.predict`, float64, rows on the "
        "device; memory as a multiple of the input. What misses a bound is bold; lines "
        "*by hand* are the bare operations, without sigmascale. By `make bench-gpu`.",
    ]
    for kind in (Torch, CuPy, JAX):
        try:
            library = kind(cpu=options.cpu)
        except (ImportError, RuntimeError) as problem:
            page += ["", f"{kind.name} was left out: {problem}."]
            print(page[-1], flush=True)
            continue
        module = import_module(kind.module)
        page += ["", f"## {library.name} {module.__version__} on {library.words}", ""]
        page += ["| what | ms | memory | a copy, ms |", "| --- | --- | --- | --- |"]
        print("\n".join(page[-4:]), flush=True)
        of_library: list[str] = []
        for task in to_measure:
            try:
                lines = measured(library, task)
            except Exception as problem:  # of one library; others may do better
                words = " ".join(str(problem).split())[:300]
                lines = [f"| {task.words} | failed: {words} | | |"]
            of_library += lines
            print("\n".join(lines), flush=True)
        page += [*of_library, "", in_words(library.name, of_library)]
        print("\n".join(page[-2:]), flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
