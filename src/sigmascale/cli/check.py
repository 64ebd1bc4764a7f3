"""``sigmascale check``: judge the uncertainties of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .options import Columns, Reading, Result, argument, option


@dataclass(frozen=True, kw_only=True)
class Check(Columns, Reading):
    """Judge uncertainties: on average, at every level, for every kind of input.

    Ends with 0 if all answers are yes, 1 if one is no, 4 if one cannot be told.
    """

    examples = ("sigmascale check demo-output/test.csv --all-features --report r.html",)

    files: tuple[str, ...] = argument(
        "a table, in one file or more; - is stdin", "FILE"
    )
    recalibrator: str | None = option(
        "judge also what this recalibrator makes of it", "JSON", common=True
    )
    report: str | None = option("write a report to this file", "HTML", common=True)
    tolerance: float = option(
        "factor that is small enough for a yes", "FACTOR", 1.25, common=True
    )
    confidence: float = option("1 minus the chance of a wrong no", "SHARE", 0.95)
    tolerate: Literal["cannot-tell", "no"] | None = option(
        "end with 0 also for this answer: cannot-tell, or no", "ANSWER"
    )
    seed: int = option("seed of all random numbers", "N", 0)

    def run(self) -> Result:
        """Judge a table, and what a recalibrator makes of it."""
        raise NotImplementedError
