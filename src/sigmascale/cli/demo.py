"""``sigmascale demo``: the whole story on built-in data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.files import whole_file
from .._support.progress import track, working
from .options import PASSED, Command, CommandResult, option, refuse, wrapped

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions

LEAST_MOLECULES = 1000
REPORTED = "boosted"  # which of the recalibrators the report is about


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Tell the whole story on built-in data, with files and a report."""

    examples = ("sigmascale demo",)

    out: str = option("folder to write to", "FOLDER", "demo-output", common=True)
    rows: int = option("molecules to make up", "N", 20_000, common=True)
    seed: int = option("seed of all random numbers", "N", 0, common=True)

    def run(self) -> CommandResult:
        """Make data, recalibrate them in every way, and judge it."""
        import numpy as np

        from .. import plots
        from .._support.notices import quiet
        from ..predictions.schema import Schema
        from ..recalibration.persistence import save
        from ..recalibration.recalibrator import Recalibrator
        from ..recalibration.scalings import SCALINGS
        from ..report import write_report
        from ..scores.comparison import compare
        from ..validation.advice import validate

        if self.rows < LEAST_MOLECULES:
            refuse(f"--rows must be at least {LEAST_MOLECULES}; found {self.rows}.")

        # the files, which are told in this order
        folder = Path(self.out)
        folder.mkdir(parents=True, exist_ok=True)  # or fail now, not at the end
        names = ("calibration.csv", "test.csv", "recalibrator.json", "verdicts.svg")
        files = [str(folder / name) for name in (*names, "report.html")]
        calibration_file, test_file, json_file, picture, report = files

        # one half as each recalibrator makes it that was fitted to the other
        calibration, test, truth = self._halves(calibration_file, test_file)
        models = {"raw": test}
        fitted = {}
        with quiet():
            for name, scaling in track(SCALINGS.items(), "fitting"):
                recalibrator = Recalibrator(scaling(), random_state=self.seed)
                fitted[name] = recalibrator.fit(calibration)
                models[name] = recalibrator.apply(test)

        # how right these are: by judging, and by the truth, which is known here
        with working("judging the uncertainties"):
            comparison = compare(models)
            before = validate(models["raw"], rng=self.seed)
            after = validate(models[REPORTED], rng=self.seed)
        distances = {}
        for name, p in models.items():
            log_ratio = np.log(p.y_std / truth)
            distances[name] = float(np.expm1(np.sqrt(np.mean(log_ratio**2))))

        # the recalibrator, the picture and the report
        recalibrator = fitted[REPORTED]
        schema = Schema("u", numbers=("mass", "hetero"), error=("E",))
        save(recalibrator, json_file, {"schema": schema.to_dict()})
        with working("writing the report"):
            with plots.drawing() as new_figure, whole_file(Path(picture)) as part:
                figure = new_figure((6.5, 1 + 0.36 * len(before.verdicts)))
                plots.verdicts(before, after, ax=figure.add_subplot())
                part.write_text(plots.svg(figure, alone=True), encoding="utf-8")
            how: dict[str, Any] = {"title": "Synthetic molecules, recalibrated"}
            write_report(report, before, after, recalibrator=recalibrator, **how)

        headline = after.compared_with(before)
        told = {
            "files": files,
            "comparison": comparison.to_dict(),
            "distances": distances,
            "before": before.to_dict(),
            "after": after.to_dict(),
        }
        words = [
            wrapped(
                f"{self.rows} synthetic molecules (seed {self.seed}). Their "
                "uncertainties are too large on average, wrong at both ends and blind "
                "to composition. Every recalibrator is fitted on one half and judged "
                "on the other."
            ),
            f"\n{comparison}\n",
            "How far u typically is from the truth, which is known here:",
            *(f"  {name:<12} {away:4.0%}" for name, away in distances.items()),
            f"\n{wrapped(f'Before: {before.headline}')}",
            f"\n{wrapped(f'After {REPORTED}: {headline}')}\n\n{after}",
            "\nWritten: both halves, the recalibrator, a picture and the report:",
            *(f"  {file}" for file in files),
        ]
        text = "\n".join(words)
        return CommandResult(told, text, PASSED, before, after, recalibrator)

    def _halves(
        self, first_file: str, second_file: str
    ) -> tuple[Predictions, Predictions, Any]:
        """Write two halves; return their predictions, and the truth of the second."""
        import numpy as np
        import polars as pl

        from ..predictions.datasets import make_molecules
        from ..predictions.predictions import Predictions
        from .tables import write

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
        return first, second, np.asarray(data.true_std)[half:]
