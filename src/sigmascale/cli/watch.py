"""``sigmascale watch``: say whether a recalibrator still fits what arrives."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Columns, Reading, Result, argument, option


@dataclass(frozen=True, kw_only=True)
class Watch(Columns, Reading):
    """Watch whether uncertainties still fit the errors that arrive.

    Rows are taken in the order of the files. However many come, in one run or in many
    with --state, false alarms are as rare as --confidence says.
    Ends with 0 without an alarm, 1 with one, 4 if rows are too few to know.
    """

    examples = (
        "sigmascale watch r.json demo-output/test.csv",
        "sigmascale watch r.json demo-output/test.csv --state monitor.json",
    )

    recalibrator: str = argument("file made by `sigmascale fit`", "JSON")
    files: tuple[str, ...] = argument(
        "a table, in one file or more; - is stdin", "FILE"
    )
    calibration: str | None = option(
        "rows that show what is normal, not those fitted", "FILE", common=True
    )
    state: str | None = option(
        "go on from this file, and write it in the end", "JSON", common=True
    )
    confidence: float | None = option(
        "1 minus the chance of a false alarm [0.95]", "SHARE", common=True
    )
    plot: str | None = option("draw the evidence over time", "PICTURE", common=True)

    def run(self) -> Result:
        """Take the rows in turn."""
        raise NotImplementedError
