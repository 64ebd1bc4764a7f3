"""How long large sets take on a GPU, beside what copying or sorting them takes.

    PYTHONPATH=src python benchmarks/gpu.py --out docs/studies/gpu.md

It needs PyTorch with CUDA, and ends with a word where there is none. Times are medians
of several runs by CUDA events, after two that do not count; memory is the peak during a
run, results and temporary arrays, as a multiple of the input. The last table compares
the building blocks that were chosen with those that were not.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

RUNS, WARM_UP = 9, 2
BUDGET = 300.0  # seconds; what is left out is named


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    milliseconds: float
    bound: float | None
    limit: str
    limit_milliseconds: float
    memory: float


def median_ms(torch: Any, run: Callable[[], Any], runs: int = RUNS) -> float:
    """Return the median time of a run."""
    times = []
    for i in range(WARM_UP + runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def peak(torch: Any, run: Callable[[], Any]) -> int:
    """Return the bytes that a run holds at most, beyond what was held before."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = run()
    torch.cuda.synchronize()
    del result
    return int(torch.cuda.max_memory_allocated() - before)


def boosted(n_trees: int) -> Any:
    """Return a booster with so many trees, those of a fit again and again."""
    import sigmascale as ss
    from sigmascale.maps import Clip, Constant, Exponential, Product, Trees, in_order
    from sigmascale.scaling.linear import LinearLaw

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(0, 0.5, 20_000), rng.normal(size=(20_000, 2))])
    error = rng.normal(scale=X[:, 0] * np.exp(np.sin(3 * X[:, 1]) + X[:, 2] / 2))
    scaler = ss.BoostedScaling(max_trees=100).fit(X, error)
    trees = next(node for node in in_order(scaler.map_) if isinstance(node, Trees))
    which = np.arange(n_trees) % trees.feature.shape[0]
    more = replace(
        trees,
        feature=trees.feature[which],
        left=trees.left[which],
        value=trees.value[which],
        divisor=trees.divisor * n_trees / trees.feature.shape[0],
    )
    factor = Exponential(Product((Constant(0.5), Clip(more, -9.0, 9.0))))
    scaler.map_ = Product((factor, LinearLaw(scaler.a_, scaler.b_, 0.0).map))
    return scaler


def measure(torch: Any, n_rows: int) -> tuple[list[Row], list[str]]:
    """Return the rows of the table, and what time did not suffice for."""
    import sigmascale as ss

    began = time.monotonic()
    device = torch.device("cuda")
    torch.manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, dtype=torch.float64, device=device)

    def table(n: int, n_columns: int) -> Any:
        X = normal(n, n_columns)
        X[:, 0] = torch.exp(0.5 * X[:, 0])
        return X

    rows: list[Row] = []
    left_out: list[str] = []

    def add(
        what: str,
        bound: float | None,
        inputs: list[Any],
        limit: tuple[str, Callable[[], Any]],
        run: Callable[[], Any],
    ) -> None:
        if time.monotonic() - began > BUDGET:
            left_out.append(what)
            return
        size = sum(each.numel() * each.element_size() for each in inputs)
        run()
        memory = peak(torch, run) / size
        took = median_ms(torch, run)
        row = Row(what, took, bound, limit[0], median_ms(torch, limit[1]), memory)
        rows.append(row)
        print(row, flush=True)

    u = torch.exp(0.5 * normal(n_rows))
    error = normal(n_rows) * u**1.5
    count = f"{n_rows:.0e} rows".replace("e+0", "e")
    both = [error, u]
    copy = ("copy of the input", lambda: [each.clone() for each in both])
    add(f"`zms`, {count}", 3.0, both, copy, lambda: ss.zms(error, u))
    add(f"`nll`, {count}", None, both, copy, lambda: ss.nll(error, u))
    sort = ("sort of u", lambda: torch.sort(u))
    add(
        f"`BinwiseScaling(40).fit`, {count}",
        60.0,
        both,
        sort,
        lambda: ss.BinwiseScaling(40).fit(u, error),
    )
    small = 200_000
    binwise = ss.BinwiseScaling(40).fit(u[:small], error[:small])
    copy_u = ("copy of the input", lambda: u.clone())
    add(f"`predict`, 40 bins, {count}", 8.0, [u], copy_u, lambda: binwise.predict(u))
    features = normal(n_rows, 2)
    sorts = (
        "sort of u and of each feature",
        lambda: [torch.sort(each) for each in (u, *features.T)],
    )
    add(
        f"`scorecard` with u and two features, {count}",
        250.0,
        [*both, features],
        sorts,
        lambda: ss.scorecard(error, u, features),
    )
    add(
        f"`IsotonicScaling().fit`, {count}",
        None,
        both,
        sort,
        lambda: ss.IsotonicScaling().fit(u, error),
    )
    X = torch.cat([u[:, None], features], dim=1)
    add(
        f"`RakedScaling().fit`, three columns, {count}",
        None,
        [X, error],
        ("copy of the input", lambda: [X.clone(), error.clone()]),
        lambda: ss.RakedScaling().fit(X, error),
    )
    raked = ss.RakedScaling().fit(X[:small], error[:small])
    copy_x = ("copy of the input", lambda: X.clone())
    add(
        f"`predict`, raked, three columns, {count}",
        30.0,
        [X],
        copy_x,
        lambda: raked.predict(X),
    )
    fewer = n_rows // 10
    X10 = table(fewer, 3)
    trees = boosted(2500)
    add(
        f"`predict`, 500 trees × 5, {fewer:.0e} rows".replace("e+0", "e"),
        1000.0,
        [X10],
        ("copy of the input", lambda: X10.clone()),
        lambda: trees.predict(X10),
    )
    return rows, left_out


def building_blocks(torch: Any, n_rows: int) -> list[tuple[str, float]]:
    """Return the times of what was chosen, and of what was not."""
    u = torch.exp(0.5 * torch.randn(n_rows, dtype=torch.float64, device="cuda"))
    codes = torch.randint(0, 40, (n_rows,), dtype=torch.int32, device="cuda")
    cells = torch.randint(0, 2**16, (n_rows,), dtype=torch.int64, device="cuda")
    limits = torch.linspace(0.2, 4.0, 39, dtype=torch.float64, device="cuda")
    order = torch.argsort(codes.to(torch.uint8), stable=True)
    runs = {
        "smallest and largest (`aminmax`)": lambda: u.aminmax(),
        "sum of squares by `@`": lambda: u @ u,
        "sum of squares by `*` and `sum`": lambda: (u * u).sum(),
        "order of 40 codes, as uint8": lambda: torch.argsort(
            codes.to(torch.uint8), stable=True
        ),
        "rows in that order (`index_select`)": lambda: torch.index_select(u, 0, order),
        "sums by 40 codes, in place (`bincount`)": lambda: torch.bincount(codes, u, 40),
        "counts of 65,536 cells (`bincount`)": lambda: torch.bincount(cells),
        "bins among 39 limits (`searchsorted`)": lambda: torch.searchsorted(
            limits, u, side="right"
        ),
        "sort": lambda: torch.sort(u),
    }
    return [(name, median_ms(torch, run, 7)) for name, run in runs.items()]


def main() -> None:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed.")
        return
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU.")
        return
    rows, left_out = measure(torch, int(options.rows))
    torch.cuda.empty_cache()
    blocks = building_blocks(torch, int(options.rows))
    lines = [
        f"Measured on one {torch.cuda.get_device_name()} with PyTorch "
        f"{torch.__version__}: float64 rows that are on the device, medians of {RUNS} "
        "runs by CUDA events. Memory is the peak beside the input, as a multiple of it."
        " `make bench-gpu` makes these tables.",
        "",
        "| what | ms | wanted | memory | limit | ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        bound = "" if row.bound is None else f"{row.bound:g}"
        lines.append(
            f"| {row.what} | {row.milliseconds:.2f} | {bound} | {row.memory:.1f} | "
            f"{row.limit} | {row.limit_milliseconds:.2f} |"
        )
    lines += [f"| {what} | not measured: no time left | | | | |" for what in left_out]
    lines += [
        "",
        f"The building blocks, {options.rows:.0e} rows:".replace("e+0", "e"),
        "",
        "| what | ms |",
        "| --- | --- |",
        *(f"| {name} | {took:.2f} |" for name, took in blocks),
    ]
    page = "\n".join(lines) + "\n"
    print(page)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
