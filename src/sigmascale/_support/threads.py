"""Work that NumPy does without Python's lock, on several cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

LARGE = 100_000  # rows, below which threads take longer than they save
Item = TypeVar("Item")
Done = TypeVar("Done")


def in_threads(
    work: Callable[[Item], Done], items: Sequence[Item], n_rows: int
) -> list[Done]:
    """Return what work makes of each item, in order; of many rows, on all cores.

    Results do not depend on how many cores there are.
    """
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # those that this process may use
        n_cores = len(os.sched_getaffinity(0))
    n_threads = min(len(items), n_cores)
    if n_rows < LARGE or n_threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, items))
