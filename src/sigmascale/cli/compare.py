"""``sigmascale compare``: uncertainties, or recalibrators, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Columns, Reading, Result, argument, option


@dataclass(frozen=True, kw_only=True)
class Compare(Columns, Reading):
    """Compare uncertainties of several models, or recalibrators, on the same rows.

    Differences are paired: their intervals tell which are more than chance.
    """

    examples = (
        "sigmascale compare demo-output/test.csv --recalibrator r.json",
        "sigmascale compare demo-output/test.csv --calibration "
        "demo-output/calibration.csv",
        "sigmascale compare new.csv --uncertainty u --versus u_recalibrated",
    )

    files: tuple[str, ...] = argument(
        "a table, in one file or more; - is stdin", "FILE"
    )
    versus: tuple[str, ...] = option(
        "another column of uncertainties; repeat it", "COLUMN", (), common=True
    )
    recalibrators: tuple[str, ...] = option(
        "what this makes of them; repeat it for more",
        *("JSON", ()),
        name="recalibrator",
        common=True,
    )
    calibration: str | None = option(
        "fit every recalibrator on this table first", "FILE", common=True
    )
    confidence: float = option("of the intervals of differences", "SHARE", 0.95)
    seed: int = option("seed of all random numbers", "N", 0)

    def run(self) -> Result:
        """Compare what the options name."""
        raise NotImplementedError
