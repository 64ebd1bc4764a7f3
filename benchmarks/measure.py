"""How things are measured: times in turn, peak memory, growth with size."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Task = Callable[[], object]

TURN = 0.02  # seconds that a task is run for, at least, when it is its turn


@dataclass(frozen=True)
class Row:
    """One line of the table: a number, and what it should be.

    `at_most` and `at_least` are bounds; `measured` is what the number was computed
    from, for the JSON file.
    """

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    measured: dict[str, object] = field(default_factory=dict)

    @property
    def required(self) -> str:
        """The bound, in words."""
        if self.at_most is not None:
            return f"at most {self.at_most:.3g}"
        return "" if self.at_least is None else f"at least {self.at_least:.3g}"

    @property
    def met(self) -> bool:
        """Whether the number keeps its bound."""
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    def to_dict(self) -> dict[str, object]:
        """Return all that is known, for JSON."""
        return {
            "name": self.name,
            "value": self.value,
            "required": self.required,
            "met": self.met,
            "measured": self.measured,
        }


def best_seconds(
    tasks: dict[str, Task],
    *,
    budget: float,
    least: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the shortest time of each task.

    Tasks are run in turn, so that other work on the machine hits all of them, for
    `budget` seconds but at least `least` times each; short ones several times in a
    turn. The clock counts the processor's time, which other work disturbs less; for
    tasks of several threads, take `time.perf_counter`.
    """
    best = dict.fromkeys(tasks, float("inf"))
    rounds, started = 0, time.perf_counter()
    while rounds < least or time.perf_counter() - started < budget:
        for name, task in tasks.items():
            gc.collect()
            turn = clock()
            while clock() - turn < TURN:
                begin = clock()
                task()
                best[name] = min(best[name], clock() - begin)
        rounds += 1
    return best


def peak_bytes(task: Task) -> int:
    """Return how much memory a task takes at most, beyond its input."""
    gc.collect()
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent p of the power law values ~ sizes^p."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'':<{width}}  {'measured':>9}  required"]
    lines += [
        f"{row.name:<{width}}  {row.value:>9.3g}  {row.required:<14}"
        f"{'' if row.met else ' NOT MET'}".rstrip()
        for row in rows
    ]
    return "\n".join(lines)
