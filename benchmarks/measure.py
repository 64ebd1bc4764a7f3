"""How things are measured: shortest times, taken in turn, and a table with bounds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Task = Callable[[], object]
TURN = 0.02  # seconds that a task is run for, at least, when it is its turn


@dataclass(frozen=True)
class Row:
    """One line of the table: a number, and what it is to be at most."""

    name: str
    value: float
    at_most: float | None = None
    words: str = ""

    @property
    def met(self) -> bool:
        """Whether the number keeps its bound."""
        return self.at_most is None or self.value <= self.at_most


def seconds(task: Task, clock: Callable[[], float] = time.process_time) -> float:
    """Return the shortest time of one turn of a task.

    The clock counts the processor's time, which other work disturbs less; for tasks of
    several threads, take `time.perf_counter`.
    """
    gc.collect()
    best, turn = float("inf"), clock()
    while best == float("inf") or clock() - turn < TURN:
        begin = clock()
        task()
        best = min(best, clock() - begin)
    return best


def best_seconds(tasks: dict[str, Task], rounds: int = 3) -> dict[str, float]:
    """Return the shortest time of each task, run in turn so that noise hits all."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            best[name] = min(best[name], seconds(task))
    return best


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table of Markdown."""
    lines = ["| what | measured | at most | |", "| --- | --- | --- | --- |"]
    for row in rows:
        bound = "" if row.at_most is None else f"{row.at_most:g}"
        words = row.words + ("" if row.met else " **not met**")
        lines.append(f"| {row.name} | {row.value:.3g} | {bound} | {words.strip()} |")
    return "\n".join(lines)
