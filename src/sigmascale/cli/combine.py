"""``sigmascale combine``: sums, means and differences of rows, with uncertainties."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from .._support.progress import working
from ..predictions.roles import Roles
from .options import CommandResult, Reading, option, refuse, saved, tables, wrapped


@dataclass(frozen=True, kw_only=True)
class Combine(Roles, Reading):
    """Add up rows, or subtract them, with recalibrated uncertainties.

    Errors of rows of one group are correlated as those of the fitted groups were;
    --rho says otherwise.
    """

    examples = (
        "sigmascale combine r.json table.csv --by batch -o totals.csv",
        "sigmascale combine r.json table.csv --terms reactions.csv -o totals.csv",
    )

    recalibrator: str = saved()
    files: tuple[str, ...] = tables()
    output: str = option(
        "table to write; - is stdout", "FILE", MISSING, short="-o", endings=()
    )
    by: str | None = option(
        "one sum for each label of this feature, or of groups", "COLUMN", common=True
    )
    terms: str | None = option(
        "or a table of combination, row (from 0) and coefficient", "FILE", common=True
    )
    mean: bool = option("means in place of sums", default=False, common=True)
    rho: float | None = option(
        "correlation in groups: 0 adds squares, 1 adds u [learned]", "NUMBER"
    )
    coverage: float = option("of the intervals that are written", "SHARE", 0.95)

    def run(self) -> CommandResult:
        """Write a row for each combination."""
        import polars as pl

        from .._support.render import as_plain
        from ..predictions.combinations import as_matrix, combined, matrix_by
        from ..predictions.predictions import Predictions
        from .file_formats import called, write, written_kind
        from .input_table import InputTable, load_fitted

        self.check_outputs()
        written_kind(self.output)  # is checked before anything is read
        if (self.by is None) == (self.terms is None):
            refuse("say what is combined: --by COLUMN, or --terms FILE; one of them.")

        # the rows, recalibrated
        recalibrator, was = load_fitted(self.recalibrator)
        rho: Any = recalibrator.group_correlation_ if self.rho is None else self.rho
        if rho is None:
            refuse(
                "whether errors of rows are correlated is not known: pass --rho 0, "
                "which adds squares, --rho 1, which adds u, or fit with --groups."
            )
        terms = None if self.terms is None else self._terms(self.terms)
        table = InputTable.open(self.files, self, was, errors=False)
        if table.is_large:
            refuse(f"rows of combinations must be in memory; there are {table.n_rows}.")
        with table.naming_rows(), working("combining rows"):
            rows = recalibrator.apply(table.predictions())
            if terms is not None:
                matrix, names = as_matrix(terms, rows.n_rows)
            else:
                matrix, names = matrix_by(rows, str(self.by), self.mean)
            totals = Predictions(**combined(rows, matrix, rho))
        low, high = totals.distributions.interval(self.coverage).T
        columns: dict[str, Any] = {"combination": [str(name) for name in names]}
        if totals.y_pred is not None:
            columns["value"] = totals.y_pred
        columns |= {"u": totals.y_std, "low": low, "high": high}
        write(pl.LazyFrame(columns), self.output, self.separator, self.decimal)

        told = {"combinations": totals.n_rows, "output": self.output}
        told |= {"columns": list(columns), "rho": as_plain(rho)}
        words = f"Wrote {called(self.output, 'standard output')}: {totals.n_rows:,} "
        words = wrapped(f"{words}combinations of {rows.n_rows:,} rows.")
        if self.rho is None:
            words = f"{words}\n\n{rho}"
        return CommandResult(told, words)

    def _terms(self, path: str) -> Any:
        """Return a table of combination, row and coefficient."""
        import polars as pl

        from .file_formats import PLACE, about, read

        table = read((path,), self.separator, self.most)[0].drop(PLACE).collect()
        numbers = table.columns[1:]
        cast = table.with_columns(pl.col(numbers).cast(pl.Float64, strict=False))
        with about([path]):
            if table.width != 3:
                refuse(
                    "must have three columns: combination, row and coefficient; it has "
                    f"{table.width}."
                )
            for name in numbers:
                if n_bad := cast[name].null_count():
                    refuse(f"{name} must hold numbers; {n_bad} rows do not.")
        return cast
