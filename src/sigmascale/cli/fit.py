"""``sigmascale fit``: learn how to recalibrate, and save what was learned."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Literal

from .options import Columns, Reading, Result, argument, option


@dataclass(frozen=True, kw_only=True)
class Fit(Columns, Reading):
    """Learn from known errors how to recalibrate, and save it.

    With --test-share some rows are not fitted, but judged, before and after.
    """

    examples = (
        "sigmascale fit demo-output/calibration.csv --all-features -o r.json",
        "sigmascale fit demo-output/test.csv -o r.json --test-share 0.3",
    )

    files: tuple[str, ...] = argument(
        "a table, in one file or more; - is stdin", "FILE"
    )
    output: str = option(
        "file for the recalibrator; - is stdout", "JSON", MISSING, short="-o"
    )
    test_share: float | None = option(
        "judge by this share of the rows, such as 0.3", "SHARE", common=True
    )
    report: str | None = option(
        "write a report on these to this file", "HTML", common=True
    )
    scaling: str = option(
        "what learns the scale; --help all lists them", "NAME", "boosted", common=True
    )
    bias: Literal["constant", "auto"] | None = option(
        "correct predictions: constant; auto, where rows gain", "HOW", common=True
    )
    by: tuple[str, ...] = option("column to bin by, or u; for binwise", "COLUMN", ())
    bins: int | None = option("number of bins; for binwise", "N")
    distribution: Literal["empirical", "normal"] = option(
        "of the errors: empirical, or normal", "KIND", "empirical"
    )
    hold_out: float = option(
        "take it from this share, held out: split conformal", "SHARE", 0.0
    )
    seed: int = option("seed of all random numbers", "N", 0)

    def run(self) -> Result:
        """Fit a recalibrator to a table, and write it."""
        raise NotImplementedError
