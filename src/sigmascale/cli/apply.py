"""``sigmascale apply``: add recalibrated uncertainties and intervals to a table."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from .options import Reading, Result, Uncertain, argument, option


@dataclass(frozen=True, kw_only=True)
class Apply(Uncertain, Reading):
    """Add recalibrated uncertainties and intervals to a table.

    All its columns are kept. Rows whose values are missing get empty cells.
    """

    examples = (
        "sigmascale apply r.json demo-output/test.csv -o new.csv",
        "sigmascale apply r.json new.xlsx -o out.xlsx --quantiles 0.05,0.5,0.95",
    )

    recalibrator: str = argument("file made by `sigmascale fit`", "JSON")
    files: tuple[str, ...] = argument(
        "a table, in one file or more; - is stdin", "FILE"
    )
    output: str = option("table to write; - is stdout", "FILE", MISSING, short="-o")
    coverage: float = option(
        "share of true values that intervals hold", "SHARE", 0.95, common=True
    )
    quantiles: tuple[float, ...] = option(
        "add quantiles at these levels: 0.05,0.5,0.95", "LEVELS", (), common=True
    )
    name: str | None = option(
        "the new column, and how others begin", "COLUMN", common=True
    )

    def run(self) -> Result:
        """Write the table with new columns."""
        raise NotImplementedError
