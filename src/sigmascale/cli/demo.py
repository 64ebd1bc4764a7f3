"""``sigmascale demo``: the whole story on built-in data."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Command, Result, option


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Tell the whole story on built-in data, with files and a report."""

    examples = ("sigmascale demo",)

    out: str = option("folder to write to", "FOLDER", "demo-output", common=True)
    rows: int = option("molecules to make up", "N", 20_000, common=True)
    seed: int = option("seed of all random numbers", "N", 0, common=True)

    def run(self) -> Result:
        """Make data, recalibrate them in every way, and judge it."""
        raise NotImplementedError
