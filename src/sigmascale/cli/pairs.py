"""A calibration set and a test set, for the commands that need both."""

from __future__ import annotations

from ..roles import Choice, Expected
from .tables.memory import MemoryTable
from .tables.reading import Reading


def read_pair(
    calibration: str, test: str, choice: Choice, reading: Reading
) -> tuple[MemoryTable, MemoryTable]:
    """Read a calibration set, and a test set with the same columns."""
    learned_from = MemoryTable.open([calibration], reading, choice)
    expected = Expected(learned_from.roles, choice, with_error=True)
    judged = MemoryTable.open([test], reading, expected)
    for data in (learned_from, judged):
        data.refuse_zeros()
    return learned_from, judged
