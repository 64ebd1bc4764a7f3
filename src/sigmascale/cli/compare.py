"""``sigmascale compare``: uncertainties, or recalibrators, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.progress import track, working
from ..predictions.roles import Roles
from .options import CommandResult, Reading, option, refuse, tables

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions
    from ..predictions.schema import Schema
    from ..recalibration.recalibrator import Recalibrator
    from .input_table import InputTable


@dataclass(frozen=True, kw_only=True)
class Compare(Roles, Reading):
    """Compare uncertainties, or recalibrators, on the same rows.

    Changes are paired differences, with their intervals.
    """

    examples = (
        "sigmascale compare demo-output/test.csv --recalibrator r.json",
        "sigmascale compare demo-output/test.csv --calibration other.csv",
        "sigmascale compare new.csv --uncertainty u --versus u_recalibrated",
    )

    files: tuple[str, ...] = tables()
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

    def run(self) -> CommandResult:
        """Compare what the options name."""
        from ..scores.comparison import compare
        from .input_table import InputTable, load_fitted

        if not (self.versus or self.recalibrators or self.calibration):
            refuse(
                "nothing to compare with: name --versus COLUMN, --recalibrator JSON or "
                "--calibration FILE."
            )

        # recalibrators, by name, and the columns that they know
        was = None
        fitted = {}
        stems = [Path(file).stem for file in self.recalibrators]
        are_unique = len(set(stems)) == len(stems) and "original" not in stems
        for file, stem in zip(self.recalibrators, stems, strict=True):
            name = stem if are_unique else file
            fitted[name], schema = load_fitted(file)
            was = schema if was is None else _union(was, schema, file)
        if self.calibration is not None:
            calibration = InputTable.open([self.calibration], self, was)
            was = calibration.schema
            fitted |= self._every(calibration)

        # the table; other uncertainties in it are no features
        said: dict[str, Any] = {}
        if self.calibration is not None:  # features are those of that table
            said = {"features": (), "labels": (), "exclude": (), "all_features": False}
        elif self.all_features:
            said = {"exclude": (*self.exclude, *self.versus)}
        table = InputTable.open(self.files, self, was, also=self.versus, **said)
        if table.is_large and self.versus:
            refuse(f"--versus needs all rows in memory: pass --most {table.n_rows}.")

        # its rows with each uncertainty, and as each recalibrator makes them
        p = table.predictions()
        models = {"original" if fitted else table.schema.uncertainty: p}
        for name in self.versus:
            schema = replace(table.schema, uncertainty=name, made_of=(), levels=())
            models[name] = replace(table, schema=schema).predictions()
        with table.naming_rows(), working("comparing"):
            for name, recalibrator in fitted.items():
                models[name] = recalibrator.apply(p)
            comparison = compare(models, confidence=self.confidence)
            variation = self._variation(models)
        told = {"data": table.to_dict(), "comparison": comparison.to_dict()}
        told["variation"] = variation
        column = {"RMS z varies by": variation}
        words = [table.about_columns(), "", comparison.text(column)]
        return CommandResult(told, "\n".join(words))

    def _variation(self, models: dict[str, Predictions]) -> dict[str, str]:
        """Return by how much RMS z varies, and along which column, of each."""
        from .._support.notices import quiet
        from ..validation.advice import validate

        with quiet():
            found = {
                x: validate(p, scope="u", rng=self.seed) for x, p in models.items()
            }
        return {name: v.varies for name, v in found.items()}

    def _every(self, calibration: InputTable) -> dict[str, Recalibrator]:
        """Return every recalibrator, fitted on a table."""
        from ..recalibration.recalibrator import Recalibrator
        from ..recalibration.scalings import SCALINGS

        p = calibration.predictions()
        fitted = {}
        with calibration.naming_rows():
            for name, scaling in track(SCALINGS.items(), "fitting"):
                recalibrator = Recalibrator(scaling(), random_state=self.seed)
                fitted[name] = recalibrator.fit(p)
        return fitted


def _union(known: Schema, schema: Schema, file: str) -> Schema:
    """Return the columns that all recalibrators need so far; refuse another u."""
    for name in ("uncertainty", "is_variance", "made_of", "levels", "min_std"):
        if getattr(known, name) != getattr(schema, name):
            refuse(f"{file}: was fitted on another uncertainty, {schema.uncertainty}.")
    numbers = dict.fromkeys((*known.numbers, *schema.numbers))
    labels = dict.fromkeys((*known.labels, *schema.labels))
    union: Schema = replace(known, numbers=tuple(numbers), labels=tuple(labels))
    return union
