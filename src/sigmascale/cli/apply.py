"""``sigmascale apply``: add recalibrated uncertainties and intervals to a table."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any

from .._support import numerals
from .._support.progress import working
from .._support.text import quoted, unused
from ..predictions.roles import UncertaintyRoles
from .options import CommandResult, Reading, option, refuse, saved, tables

if TYPE_CHECKING:
    import polars as pl

    from ..recalibration.recalibrator import Recalibrator
    from .input_table import InputTable


@dataclass(frozen=True, kw_only=True)
class Apply(UncertaintyRoles, Reading):
    """Add recalibrated uncertainties and intervals to a table.

    All its columns are kept. Rows whose values are missing get empty cells. What is
    written is a standard deviation, whatever was read.
    """

    examples = (
        "sigmascale apply r.json demo-output/test.csv -o new.csv",
        "sigmascale apply r.json new.xlsx -o out.xlsx --quantiles 0.05,0.5,0.95",
    )

    recalibrator: str = saved()
    files: tuple[str, ...] = tables()
    output: str = option(
        "table to write; - is stdout", "FILE", MISSING, short="-o", endings=()
    )
    coverage: float = option(
        "nominal coverage of intervals", "SHARE", 0.95, common=True
    )
    quantiles: tuple[float, ...] = option(
        "add quantiles at these levels: 0.05,0.5,0.95", "LEVELS", (), common=True
    )
    explain: bool = option(
        "add why: the factors of u by column, and whether a row lies inside",
        default=False,
        common=True,
    )
    name: str | None = option(
        "the new column, and how others begin", "COLUMN", common=True
    )

    def run(self) -> CommandResult:
        """Write the table with new columns."""
        from ..integrations.clusters import told_at_the_end
        from .file_formats import called, write, written_kind
        from .input_table import InputTable, load_fitted

        self.check_outputs()
        written_kind(self.output)  # is checked before anything is read
        recalibrator, was = load_fitted(self.recalibrator)
        table = InputTable.open(self.files, self, was, errors=False, gaps=None)
        with table.naming_rows(), working("recalibrating"), told_at_the_end():
            lazy, new = self._recalibrated(table, recalibrator)
            write(lazy, self.output, self.separator, self.decimal)

        is_of_errors = table.schema.prediction is None
        told = {
            "rows": table.n_rows,
            "dropped": table.dropped,
            "output": self.output,
            "columns": new,
            "quantity": "standard deviation",
            "distribution_of": "error" if is_of_errors else "value",
        }
        u, low, high = new[:3]
        nominal = numerals.level(self.coverage)
        columns = {
            u: "standard uncertainty (standard deviation of the error)",
            low: f"lower limit of the {nominal} prediction interval",
            high: "upper limit",
        }
        if is_of_errors:
            columns[low] += ", of errors"
        count = f"{table.n_rows:,} rows, {len(new)} new columns"
        if table.dropped:
            count += f"; {table.dropped:,} with missing values excluded"
        words = [f"Wrote {called(self.output, 'standard output')}: {count}"]
        width = max(map(len, new)) + 2
        for name in new:
            words.append(f"  {name:<{width}}{columns.get(name, '')}".rstrip())
        return CommandResult(told, "\n".join(words), recalibrator=recalibrator)

    def _recalibrated(
        self, table: InputTable, recalibrator: Recalibrator
    ) -> tuple[pl.LazyFrame, list[str]]:
        """Return the frame with new columns, and their names."""
        import polars as pl

        from ..integrations import frames
        from ..predictions.schema import RECALIBRATED
        from .file_formats import PLACE, UNTYPED, written_kind

        schema = table.schema
        rows = table.rows
        made = schema.made if schema.made_of else ()
        old = [name for name in rows.names if name not in made]
        is_u = not made and not schema.is_variance
        u = self.name or f"{schema.uncertainty if is_u else 'u'}{RECALIBRATED}"

        # numbers stand beside the cells of the file, which are kept as they are
        mark = unused(PLACE, rows.names)
        typed = {f"{name} {mark}": column for name, column in table.inputs().items()}
        names = list(typed)

        # new columns, by the names that they will have
        endings = ("", "_low", "_high", *(f"_q{p:g}" for p in self.quantiles))
        if self.explain:
            in_fit = [
                recalibrator.names_[k] for k in sorted(recalibrator.scale_.columns)
            ]
            endings += ("_typical", *(f"_by_{column}" for column in in_fit), "_inside")
        new = [(f"{u}{ending}", f"{u}{ending}") for ending in endings]
        prediction = None
        if schema.prediction is not None:
            prediction = f"{schema.prediction} {mark}"
            typed[prediction] = rows.number(schema.prediction)
            if recalibrator.bias_ is not None:
                corrected = f"{'' if made else schema.prediction}{RECALIBRATED}"
                new.append((corrected.lstrip("_"), f"{prediction}{RECALIBRATED}"))
        new_names = [name for name, _ in new]
        if repeated := [name for name in new_names if new_names.count(name) > 1]:
            refuse(
                f"two new columns would be called {quoted(repeated[0])}. Pass other "
                "--quantiles, or another --name."
            )
        if taken := [name for name in new_names if name in old]:
            refuse(
                f"there is a column {quoted(taken[0])} already. Choose another with "
                "--name."
            )
        shape = {}
        if schema.has_shape:
            for name, level in zip(schema.made_of, schema.levels, strict=True):
                shape[f"{name} {PLACE}"] = level
                typed[f"{name} {PLACE}"] = rows.number(name)
        lazy = frames.apply(
            recalibrator,
            rows.frame.with_columns(**typed),
            y_std=names[0],
            features=names[1:],
            y_pred=prediction,
            shape=shape,
            quantiles=self.quantiles,
            coverage=self.coverage,
            explain=self.explain,
            name=u,
        )

        # the columns of the file, with types where the format has some, and the new
        added = [pl.col(column).alias(name) for name, column in new]
        kept: list[Any] = [pl.col(name) for name in old]
        if table.kinds & set(UNTYPED) and written_kind(self.output) not in UNTYPED:
            kept = rows.typed(old, table.schema)
        return lazy.select(*kept, *added), new_names
