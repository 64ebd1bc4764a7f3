"""``sigmascale demo``: a complete example on synthetic data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .._support.progress import working
from .._support.text import WIDTH
from .check import found
from .options import PASSED, Command, CommandResult, option, refuse, wrapped

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions

LEAST_MOLECULES = 1000


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Run a complete example on synthetic molecules, with a report."""

    examples = ("sigmascale demo",)

    out: str = option("folder to write to", "FOLDER", "demo-output", common=True)
    rows: int = option("molecules to make up", "N", 20_000, common=True)
    seed: int = option("seed of all random numbers", "N", 0, common=True)

    def run(self) -> CommandResult:
        """Make data, recalibrate one half by the other, and test it."""
        from .._support.notices import quiet
        from ..predictions.schema import Schema
        from ..recalibration.persistence import save
        from ..recalibration.recalibrator import Recalibrator
        from ..report import write_report
        from ..validation.advice import validate

        if self.rows < LEAST_MOLECULES:
            refuse(f"--rows must be at least {LEAST_MOLECULES}; found {self.rows}.")

        # the files, which are told in this order
        folder = Path(self.out)
        folder.mkdir(parents=True, exist_ok=True)  # or fail now, not at the end
        names = ("calibration.csv", "test.csv", "recalibrator.json", "report.html")
        files = [str(folder / name) for name in names]
        calibration_file, test_file, json_file, report = files

        # a recalibrator of one half, tested on the other
        calibration, test = self._halves(calibration_file, test_file)
        with quiet():
            recalibrator = Recalibrator(random_state=self.seed).fit(calibration)
            after = recalibrator.apply(test)
        v = validate(after, before=test, rng=self.seed)
        schema = Schema("u", numbers=("mass", "hetero"), error=("E",))
        save(recalibrator, json_file, {"schema": schema.to_dict()})
        check = ["check", test_file, "--all-features"]
        with working("writing the report"):
            how: dict[str, Any] = {"title": "Synthetic molecules, recalibrated"}
            how["steps"] = [f"test another table: sigmascale {' '.join(check)}"]
            write_report(report, v, recalibrator=recalibrator, **how)

        told = {"files": files, **found(v)}
        assert v.before is not None
        half = len(test)
        words = [
            f"{self.rows:,} synthetic molecules (seed {self.seed}): "
            f"{self.rows - half:,} to calibrate, {half:,} to test.",
            "",
            *labelled("Before", v.before.headline),
            *labelled("After", v.outcome),
            *labelled("", v.headline),
            "",
            wrapped(f"Wrote {folder}/: {', '.join(names)}"),
            f"{'Next':<8}open {report}",
            f"{'':<8}sigmascale {' '.join(check)}",
        ]
        return CommandResult(told, "\n".join(words), PASSED, v, recalibrator)

    def _halves(
        self, first_file: str, second_file: str
    ) -> tuple[Predictions, Predictions]:
        """Write two halves; return their predictions."""
        import numpy as np
        import polars as pl

        from ..predictions.datasets import make_molecules
        from ..predictions.predictions import Predictions
        from .file_formats import write

        # tables as people have them: errors, u, features, and which kind a molecule is
        data = make_molecules(self.rows, seed=self.seed)
        p = data.predictions
        half = self.rows // 2
        features = dict(zip(("mass", "hetero"), p.features.values(), strict=True))
        columns = {"E": p.error, "u": p.y_std, **features, "OxNy": data.group}
        table = pl.DataFrame(columns)
        write(table[:half].lazy(), first_file)
        write(table[half:].lazy(), second_file)

        # the same as rows
        p = Predictions(y_std=p.y_std, error=p.error, features=features)
        first = p.take(np.arange(half))
        second = p.take(np.arange(half, self.rows))
        return first, second


def labelled(label: str, words: str) -> list[str]:
    """Return lines that begin with a label."""
    lines = fill(words, WIDTH - 8).split("\n")
    return [f"{label if i == 0 else '':<8}{line}" for i, line in enumerate(lines)]
