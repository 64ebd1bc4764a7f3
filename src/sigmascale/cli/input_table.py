"""A table whose columns have roles: one lazy frame, in memory if its rows are few.

What is asked of its rows is an expression, so that rows in files and in memory are
read, filtered, checked and counted by the same code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .._support.notices import quiet, remedies, rows_at, warn
from .._support.progress import working
from .._support.text import WIDTH, listed, quoted
from ..exceptions import (
    ColumnError,
    MissingFeatureWarning,
    VarianceNotUncertaintyWarning,
)
from ..predictions.forms import outermost, warn_of_crossing
from ..predictions.predictions import Predictions, warn_of_lifted
from ..predictions.roles import OF_ROWS, UncertaintyRoles
from ..predictions.schema import (
    RECALIBRATED,
    TOO_MANY_LABELS,
    Choice,
    Schema,
    are_labels,
    counts,
    find,
    guess,
    known,
    remembered,
)
from .conditions import met
from .file_formats import (
    OF_A_FILE,
    PLACE,
    about,
    called,
    named,
    read,
    reading,
    row_of,
)
from .options import Reading, refuse

if TYPE_CHECKING:
    from ..recalibration.recalibrator import Recalibrator

MISSING_MARKS = ("", "na", "nan", "n/a", "null", "none", "-")
LEAST_ROWS = 5  # fewer cannot show anything
ROWS_LOOKED_AT = 1000  # rows that tell which columns may hold numbers
REMEDY = "(leave such rows out with --where, or raise them with --min-std)"


class TypedColumns:
    """A frame whose columns are numbers or text, as somebody asks for them."""

    def __init__(self, frame: pl.LazyFrame, decimal: str) -> None:
        self.frame = frame
        self.decimal = decimal

    @cached_property
    def schema(self) -> pl.Schema:
        """The types of its columns."""
        return self.frame.collect_schema()

    @cached_property
    def names(self) -> list[str]:
        """What its columns are called."""
        return [name for name in self.schema if name != PLACE]

    def number(self, name: str) -> pl.Expr:
        """Return a column as numbers; what is missing, or is none, is null."""
        kind = self.schema[name]
        if kind == pl.String:
            text = pl.col(name).str.strip_chars()
            if self.decimal == ",":  # a point would stand between thousands
                pointed = text.str.contains(".", literal=True)
                text = pl.when(~pointed).then(text.str.replace(",", ".", literal=True))
            return text.cast(pl.Float64, strict=False).fill_nan(None)
        if not (kind.is_numeric() or kind == pl.Null):
            refuse(f"column {quoted(name)} must hold numbers; it holds {kind}.")
        return pl.col(name).cast(pl.Float64).fill_nan(None)

    def no_number(self, name: str) -> pl.Expr:
        """Return where a text is neither a number nor stands for a missing one."""
        text = pl.col(name).str.strip_chars().str.to_lowercase()
        return self.number(name).is_null() & ~text.is_in(MISSING_MARKS)

    def label(self, name: str) -> pl.Expr:
        """Return a column as labels, which become text with all others."""
        kind = self.schema[name]
        odd = kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration, pl.Time)
        if odd or kind == pl.Datetime:
            refuse(
                f"column {quoted(name)} must hold labels or numbers; it holds {kind}. "
                "Store text, or days."
            )
        return pl.col(name)

    def kinds(self, names: Collection[str]) -> dict[str, str]:
        """Return what columns hold: "number" alone, something "mixed", or "text"."""
        kinds = {}
        for name in names:
            kinds[name] = "number" if self.schema[name].is_numeric() else "text"
        open_names = [name for name in kinds if self.schema[name] == pl.String]
        if not open_names:
            return kinds
        # the first rows tell of most columns; all rows are looked at for the others
        for rows in (self.frame.head(ROWS_LOOKED_AT), self.frame):
            asked = {}
            for i, name in enumerate(open_names):
                asked[f"text {i}"] = self.no_number(name).any()
                asked[f"number {i}"] = self.number(name).is_not_null().any()
            answers = rows.select(pl.len(), **asked).collect(engine="streaming")
            has = answers.row(0, named=True)
            for i, name in enumerate(open_names):
                if not has[f"number {i}"]:
                    kinds[name] = "text"
                else:
                    kinds[name] = "mixed" if has[f"text {i}"] else "number"
            if has["len"] < ROWS_LOOKED_AT:
                break
            open_names = [
                name for i, name in enumerate(open_names) if not has[f"text {i}"]
            ]
        return kinds

    def find(self, choice: Choice) -> Schema:
        """Return which columns are what.

        One with text among its numbers is what it is said to be, or what its name says:
        then the text is found.
        """
        kinds = self.kinds(self.names)

        # the columns of errors and uncertainties, which may be mixed
        plain = replace(choice, features=(), labels=(), exclude=(), all_features=False)
        may_be_numbers = {name for name, kind in kinds.items() if kind != "text"}
        try:
            chosen_columns = find(plain, self.names, may_be_numbers).columns
        except ColumnError as problem:
            try:  # by names alone: then it is told that a column holds no numbers
                chosen_columns = find(plain, self.names, self.names).columns
            except ColumnError:
                raise problem from None

        # all columns, of which these, plain numbers and named features are numbers
        numbers = {name for name, kind in kinds.items() if kind == "number"}
        numbers.update(chosen_columns)
        numbers.update(name for name in choice.features if kinds.get(name) == "mixed")
        if not choice.all_features:
            return find(choice, self.names, numbers, [], [])
        texts = [name for name, kind in kinds.items() if kind == "text"]
        labelled = self.labelled(texts)
        return find(choice, self.names, numbers, self.counting(), labelled)

    def typed(self, names: Sequence[str], schema: Schema) -> list[pl.Expr]:
        """Return columns for a format that has types.

        Text becomes numbers where these would be written letter by letter as it is, or
        where they are known to be numbers; "01" and "1.50" stay text.
        """
        numbers = {schema.uncertainty, *schema.numbers, schema.prediction}
        kinds: dict[str, Any] = {"whole": pl.Int64, "real": pl.Float64}

        # whether text that becomes a number, and text again, is the same
        texts = {}
        is_the_same = {}
        for name in names:
            if self.schema[name] != pl.String or name in schema.labels:
                continue
            text = pl.col(name).str.replace(self.decimal, ".", literal=True)
            texts[name] = text
            for kind, dtype in kinds.items():
                same = text == text.cast(dtype, strict=False).cast(pl.String)
                # null where the column has no value at all
                is_the_same[f"{kind} {name}"] = pl.when(same.any()).then(same.all())
        answers = self.frame.select(**is_the_same).collect(engine="streaming")
        fits = answers.row(0, named=True)

        columns = []
        for name in names:
            column = pl.col(name)
            if name in texts and fits[f"whole {name}"]:
                column = texts[name].cast(kinds["whole"])
            elif name in texts and fits[f"real {name}"]:
                column = texts[name].cast(kinds["real"])
            elif name in texts and name in numbers:
                column = self.number(name)
            columns.append(column.alias(name))
        return columns

    def counting(self) -> list[str]:
        """Return columns that begin as numbers of rows do: 0, 1, 2 or 1, 2, 3."""
        head = self.frame.head(ROWS_LOOKED_AT).collect()
        names = []
        for column in head:
            if column.dtype == pl.String or column.dtype.is_integer():
                whole = column.cast(pl.Int64, strict=False)
                if counts(whole) and column.name != PLACE:
                    names.append(column.name)
        return names

    def labelled(self, names: Sequence[str]) -> list[str]:
        """Return columns of text that are features where all columns are."""
        kinds = (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
        texts = [name for name in names if self.schema[name].base_type() in kinds]
        n_labels = [pl.col(name).n_unique().alias(f"labels {name}") for name in texts]
        counted = self.frame.select(pl.len(), *n_labels).collect(engine="streaming")
        n_rows, *numbers_of_labels = counted.row(0)
        pairs = zip(texts, numbers_of_labels, strict=True)
        return [name for name, n in pairs if are_labels(n, n_rows)]

    def where(self, condition: str) -> pl.LazyFrame:
        """Return the rows that meet a condition; a missing value meets none."""
        lazy = self.frame.filter(met(condition, self))
        if not lazy.select(pl.len()).collect(engine="streaming").item():
            refuse(f"--where {quoted(condition)} keeps no row.")
        return lazy


@dataclass(frozen=True, kw_only=True)
class InputTable:
    """Files as one table, what its columns are, and how many rows can be used."""

    files: tuple[str, ...]
    command: Reading
    rows: TypedColumns
    schema: Schema
    kinds: set[str]
    n_read: int = 0
    n_rows: int = 0
    dropped: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # further columns of uncertainties

    @classmethod
    def open(
        cls,
        files: Sequence[str],
        command: Reading,
        was: Schema | None = None,
        *,
        errors: bool = True,
        gaps: Collection[str] | None = (),
        also: Sequence[str] = (),
        **changed: Any,
    ) -> InputTable:
        """Read files, find their columns, or those that `was` says, and check rows.

        Features of `gaps`, or all of them if that is None, may be missing. There may
        `also` be other uncertainties.
        """
        files = tuple(files)
        with reading(files), working("reading the table"):
            frame, kinds = read(files, command.separator, command.most)
            rows = TypedColumns(frame, command.decimal)

            # which columns are what, and those that are made of others
            choice = Choice.of_command(command, **changed)
            if was is None:
                schema = rows.find(choice)
            else:
                schema = remembered(was, choice, rows.names, errors=errors)
            for name in also:
                known(name, rows.names, "--versus")
            rows = _with_made(rows, schema)

            # the rows that were asked for, and whether their values can be used
            n_read = 0
            if command.where is not None:
                n_read = frame.select(pl.len()).collect(engine="streaming").item()
                rows = TypedColumns(rows.where(command.where), command.decimal)
            table = cls(
                files=files,
                command=command,
                rows=rows,
                schema=schema,
                kinds=kinds,
                n_read=n_read,
                also=tuple(also),
            )
            return table._checked(gaps)

    # -- columns as expressions --------------------------------------------------------

    @cached_property
    def uncertainty(self) -> pl.Expr:
        """The uncertainty, which is at least --min-std; of variances, the root."""
        u = self._uncertainty
        least = self.schema.min_std
        return u if least is None else u.clip(least)

    @property
    def _uncertainty(self) -> pl.Expr:
        """The uncertainty as it is, also where it is too small."""
        u = self.rows.number(self.schema.uncertainty)
        return u.sqrt() if self.schema.is_variance else u

    def inputs(self) -> dict[str, pl.Expr]:
        """Return the uncertainty and the features, by name: numbers, or labels."""
        columns = {self.schema.uncertainty: self.uncertainty}
        columns |= {name: self.rows.number(name) for name in self.schema.numbers}
        return columns | {name: self.rows.label(name) for name in self.schema.labels}

    def _used(self) -> dict[str, pl.Expr]:
        """Return all columns that rows are made of, as numbers or as they are."""
        schema = self.schema
        columns = self.inputs()
        for name in (*schema.error, schema.prediction, *self.also):
            if name and name not in columns:
                columns[name] = self.rows.number(name)
        for role, name in schema.of_rows.items():
            kind = OF_ROWS[role]
            if kind == "time":  # dates stay as they are
                kind = self.rows.kinds([name])[name]
            if name not in columns:
                as_kind = {"number": self.rows.number, "label": self.rows.label}
                columns[name] = as_kind.get(kind, pl.col)(name)
        return columns

    # -- checks ------------------------------------------------------------------------

    def _checked(self, gaps: Collection[str] | None) -> InputTable:
        """Refuse values that cannot be used, and missing ones, or leave these out."""
        schema = self.schema
        is_tested = bool(schema.error)
        drop = self.command.drop_missing

        # where values are missing, the uncertainty first; some features may lack them,
        # and a label that is missing is one more label
        used = self._used()
        missing = {}
        for name in (*(schema.made_of or (schema.uncertainty,)), *used):
            if name in self.rows.names:
                column = used[name] if name in used else self.rows.number(name)
                missing[name] = column.is_null()
        optional: set[str] = set()
        if not drop:
            optional = set(schema.features) - {*schema.error, str(schema.prediction)}
            if gaps is not None:
                optional &= {*gaps, *schema.labels}
        needed = [gap for name, gap in missing.items() if name not in optional]
        is_lost = pl.any_horizontal(needed)

        # one pass over the rows counts all of it
        bad = self._bad()
        counts = {"lost": is_lost.sum()}
        for i, (_, _, where) in enumerate(bad):
            counts[f"bad {i}"] = where.sum()
        for i, gap in enumerate(missing.values()):
            counts[f"gap {i}"] = gap.sum()
        counted = self.rows.frame.select(pl.len(), **counts).collect(engine="streaming")
        number_of = counted.row(0, named=True)
        n_rows = number_of["len"]
        n_lost = number_of["lost"]

        # bad values are refused first, and then those that are missing
        for i, (name, words, where) in enumerate(bad):
            if number_of[f"bad {i}"]:
                self._refuse(name, words, where, number_of[f"bad {i}"])
        n_missing = {name: number_of[f"gap {i}"] for i, name in enumerate(missing)}
        by_column = ", ".join(
            f"{quoted(name)} {n}"
            for name, n in n_missing.items()
            if n and name not in optional
        )
        if n_lost and not drop and (is_tested or n_lost == n_rows):
            remedy = ""
            if is_tested:
                remedy = ", or leave these rows out with --drop-missing"
            refuse(
                f"{n_lost} of {n_rows} rows have missing values, by column: "
                f"{by_column}. Fill them in{remedy}.",
                "missing-values",
                rows=n_lost,
                columns=n_missing,
            )

        # the rows that are left
        dropped = n_lost if drop else 0
        n_left = n_rows - dropped
        least = LEAST_ROWS if is_tested else 1
        if n_left < least:
            left = "1 row" if n_left == 1 else f"{n_left} rows"
            refuse(
                f"{left} with all values: too few. At least {least} are needed.",
                "few-rows",
                rows=n_left,
                least=least,
            )
        if n_lost and not dropped:
            warn(
                f"{n_lost} of {n_rows} rows get empty cells: values are missing, by "
                f"column: {by_column}.",
                MissingFeatureWarning,
            )
        rows = self.rows
        if dropped:
            rows = TypedColumns(rows.frame.filter(~is_lost), rows.decimal)
        complete = replace(
            self,
            rows=rows,
            n_read=self.n_read or n_rows,
            n_rows=n_left,
            dropped=dropped,
            gaps={name: n for name, n in n_missing.items() if n and name in optional},
        )
        complete._warn_of_changed()
        return complete

    def _bad(self) -> list[tuple[str, str, pl.Expr]]:
        """Return columns, what may be wrong with them, and where it is."""
        schema = self.schema
        rows = self.rows
        bad = []

        # numbers must be finite ones
        sources = schema.made_of or (schema.uncertainty,)
        others = (schema.prediction, schema.weight, *self.also)
        for name in dict.fromkeys([*sources, *schema.numbers, *schema.error, *others]):
            if not name or name in schema.made:
                continue
            if rows.schema[name] == pl.String:
                bad.append((name, "is not a number", rows.no_number(name)))
            infinite = rows.number(name).is_infinite()
            bad.append((name, "is infinite; a number must be finite", infinite))

        # weights must not be negative; rows without weight are not judged
        is_judged = pl.lit(True)
        if schema.weight:
            weight = rows.number(schema.weight)
            is_judged = weight > 0
            words = "is negative, and a weight cannot be"
            bad.append((schema.weight, words, weight < 0))

        # uncertainties must be positive, those of rows to apply to may be 0
        if schema.min_std is not None:
            return bad
        what = "a variance" if schema.is_variance else "an uncertainty"
        for name in (schema.uncertainty, *self.also):
            u = rows.number(name)
            bad.append((name, f"is negative, and {what} cannot be {REMEDY}", u < 0))
            if schema.error:
                words = f"is no positive number, as {what} must be {REMEDY}"
                bad.append((name, words, (u == 0) & is_judged))
        return bad

    def _refuse(self, name: str, words: str, where: pl.Expr, count: int) -> None:
        """Refuse a column in which some values are bad; show the first of them."""
        first = self.rows.frame.filter(where).select(PLACE, name).head(1).collect()
        place, value = first.row(0)

        # text among numbers: what else it may be
        is_text = words.endswith("a number")
        decimal = self.command.decimal
        code = "value"
        if is_text and decimal == "." and "," in str(value):
            code = "decimal-comma"
            words = f"{words} (a decimal comma? Pass --decimal ,)"
        elif is_text and decimal == "," and "." in str(value):
            code = "decimal-point"
            words = "has a point, and --decimal , was passed"
        elif is_text and name in self.schema.numbers:
            label = Choice(options=True).called("labels", name)
            words = f"{words} (a label? Pass {label})"

        more = "" if count == 1 else f" So are {count - 1} more."
        counted = "of the sheet" if "excel" in self.kinds else "not counting the header"
        refuse(
            f"column {quoted(name)}, {row_of(place, self.files)} ({counted}): "
            f"{quoted(value)} {words}.{more}",
            code,
            column=name,
            row=place % OF_A_FILE,
            count=count,
        )

    def _warn_of_changed(self) -> None:
        """Warn of values that are changed where they are read, once for all rows.

        Rows are read in batches, and a batch knows neither the others nor its place.
        """
        schema = self.schema
        if schema.made_of:
            # an ensemble, or levels, that tell no uncertainty are refused
            schema.made_values(np.zeros((1, len(schema.made_of))))
        least = schema.min_std
        if least is not None and not 0 < least < np.inf:
            refuse(f"--min-std must be a positive number; found {least:g}.")
        n_low = pl.lit(0) if least is None else (self._uncertainty < least).sum()
        crosses = exchanged = pl.lit(False)
        if schema.levels:
            quantiles = [self.rows.number(name) for name in schema.made_of]
            low, high = outermost(schema.levels)
            is_known = pl.all_horizontal(column.is_not_null() for column in quantiles)
            descents = [upper < lower for lower, upper in pairwise(quantiles)]
            crosses = is_known & pl.any_horizontal(descents)
            exchanged = is_known & (quantiles[high] < quantiles[low])
        elif least is None:
            return
        counts = self.rows.frame.select(
            low=n_low,
            crossing=crosses.sum(),
            exchanged=exchanged.sum(),
            first=pl.col(PLACE).filter(crosses).first(),
        )
        told = counts.collect(engine="streaming").row(0, named=True)
        if told["exchanged"] > self.n_rows / 2:
            refuse(
                "quantiles must be in the order of their levels; in "
                f"{told['exchanged']} of {self.n_rows} rows they are not. Are columns, "
                "or limits, exchanged?",
                "crossing",
            )
        if told["crossing"]:
            first = row_of(told["first"], self.files)
            warn_of_crossing(told["crossing"], self.n_rows, first)
        if least is not None:
            warn_of_lifted(told["low"], self.n_rows, least)

    # -- rows --------------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        """Whether rows stay in files, of which a sample is drawn."""
        return self.n_rows > self.command.most

    def predictions(self) -> Predictions:
        """Return the rows, or a sample of very many, as everything takes them."""
        # what is made of others, and roots of variances, are there already
        schema = replace(self.schema, is_variance=False, min_std=None)
        used = self._used()
        if schema.has_shape:
            used |= {name: self.rows.number(name) for name in schema.made_of}
        else:
            schema = replace(schema, made_of=(), levels=())
        columns = [column.alias(name) for name, column in used.items()]
        frame = self.rows.frame.select(columns)
        with self.naming_rows(), reading(self.files):
            if not self.is_large:
                p = schema.read(frame.collect())
                has_places = p.places is not None  # of rows without weight
                return p if has_places else p._with(places=np.arange(len(p)))
            import narwhals as nw

            from ..integrations.frames import draw

            seed = getattr(self.command, "seed", 0)
            place = (pl.col(PLACE) % OF_A_FILE).alias(PLACE)
            frame = self.rows.frame.select(*columns, place)
            return draw(nw.from_native(frame), schema, self.command.most, seed, PLACE)

    def batches(self) -> Iterator[InputTable]:
        """Yield tables that memory holds, in the order of the rows."""
        most = self.command.most
        if self.is_large and self.schema.groups is not None:
            refuse(f"--groups needs all rows in memory: pass --most {self.n_rows}.")
        for start in range(0, self.n_rows, most):
            batch = self.rows.frame.slice(start, most)
            rows = TypedColumns(batch, self.command.decimal)
            yield replace(self, rows=rows, n_rows=min(most, self.n_rows - start))

    @cached_property
    def _places(self) -> Any:
        """The number of each row in its file."""
        places = self.rows.frame.select(PLACE).collect()[PLACE].to_numpy()
        return places % OF_A_FILE

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Name the files, and rows as these have them, in what the library says."""
        name = Choice(options=True).called("variance", self.schema.uncertainty)
        words: dict[type[Warning], str] = {
            VarianceNotUncertaintyWarning: f"If they are, pass {name}."
        }
        places = None if self.is_large else self._places
        with about(self.files), rows_at(places), remedies(words):
            yield

    # -- words -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the files, for machines."""
        names = [called(file) for file in self.files]
        told: dict[str, Any] = (
            {"files": names} if len(names) > 1 else {"file": names[0]}
        )
        told |= {
            "rows": self.n_rows,
            "rows_read": self.n_read,
            "where": self.command.where,
            "dropped": self.dropped,
        }
        if self.gaps:
            told["missing"] = self.gaps
        return told | self.schema.to_dict()

    def about_columns(self) -> str:
        """Return what was taken from the files: a line for each role of columns."""
        schema = self.schema
        count = f"{self.n_rows:,} rows"
        if self.command.where is not None:
            count += f" of {self.n_read:,}, where {self.command.where}"
        if self.is_large:
            count += f", of which a sample of about {self.command.most:,} is taken"
        if self.dropped:
            count += f"; {self.dropped:,} with missing values excluded"
        roles = schema.in_words()
        if schema.features:
            roles["features"] = listed(schema.features)
        elif isinstance(self.command, UncertaintyRoles):
            roles["features"] = "none (--feature COLUMN or --all-features)"
        if schema.guessed:
            roles["guessed"] = f"{listed(schema.guessed)}, from their names"
        if schema.left_out:
            roles["not used"] = f"{listed(schema.left_out)} (--feature NAME)"
        if schema.texts_left_out:
            roles["no labels"] = f"{listed(schema.texts_left_out)}: {TOO_MANY_LABELS}"
        for name, n in self.gaps.items():
            roles["missing"] = f"{n:,} values of {name}"
        recalibrated = f"{schema.uncertainty}{RECALIBRATED}"
        if recalibrated in self.rows.names and schema.uncertainty in schema.guessed:
            name = Choice(options=True).called("uncertainty", recalibrated)
            roles["note"] = f"{name} would take what was recalibrated"
        lines = [f"{named(self.files)}: {count}"]
        for role, words in roles.items():
            start = f"  {role:<13}"
            lines.append(fill(f"{start}{words}", WIDTH, subsequent_indent=" " * 15))
        return "\n".join(lines)


def _with_made(rows: TypedColumns, schema: Schema) -> TypedColumns:
    """Return rows with prediction and uncertainty, where these are made of others."""
    if not schema.made_of:
        return rows
    if taken := [name for name in schema.made if name in rows.names]:
        refuse(f"there is a column {quoted(taken[0])}, which is made. Rename it.")

    def values(batch: pl.Series) -> pl.Series:
        """Return both of a batch of rows; of incomplete ones, they are missing."""
        table = batch.struct.unnest().to_numpy().astype(float)
        if schema.levels:
            table.sort(axis=1)  # of which `_warn_of_changed` warns
        is_complete = np.isfinite(table).all(axis=1)
        columns = np.full((2, len(table)), np.nan)
        if is_complete.any():
            # of rows with truths, what is odd is told when all are read
            with quiet():
                columns[:, is_complete] = schema.made_values(table[is_complete])
        made = dict(zip(schema.made, columns, strict=True))
        return pl.DataFrame(made, nan_to_null=True).to_struct()

    sources = pl.struct([rows.number(name).alias(name) for name in schema.made_of])
    kind = pl.Struct(dict.fromkeys(schema.made, pl.Float64))
    both = sources.map_batches(values, kind, is_elementwise=True)
    made = [both.struct.field(name) for name in schema.made]
    return TypedColumns(rows.frame.with_columns(made), rows.decimal)


def load_fitted(file: str) -> tuple[Recalibrator, Schema]:
    """Return a saved recalibrator, and the columns that it was fitted on."""
    from ..recalibration.persistence import load_with_extra
    from ..recalibration.recalibrator import Recalibrator

    saved, extra = load_with_extra(file, Recalibrator)
    with about([file]):
        if "schema" not in extra:
            refuse(
                "the recalibrator does not know the columns of files: it was not made "
                "by `sigmascale fit`."
            )
        return saved, Schema.from_dict(extra["schema"])


def preview(files: Sequence[str], command: Reading, n_rows: int = 8) -> dict[str, Any]:
    """Return what is in files, for people who choose columns: rows, kinds, guesses."""
    with reading(files), working("reading the table"):
        frame, _ = read(files, command.separator, command.most)
        rows = TypedColumns(frame, command.decimal)
        names = rows.names

        # what columns hold, and what they seem to be
        kinds = rows.kinds(names)
        numeric = {name for name, kind in kinds.items() if kind == "number"}
        labelled = rows.labelled([name for name in names if kinds[name] == "text"])
        role_of, unclear = guess(names, numeric, rows.counting(), labelled)

        # how many values are missing, and the first rows
        gaps = {}
        for i, name in enumerate(names):
            column = rows.number(name) if name in numeric else pl.col(name)
            gaps[f"gap {i}"] = column.is_null().sum()
        counted = frame.select(pl.len(), **gaps).collect(engine="streaming")
        number_of = counted.row(0, named=True)
        head = frame.head(n_rows).collect()

    columns = []
    for i, name in enumerate(names):
        cells = ["" if value is None else str(value) for value in head[name]]
        about_column = {
            "name": name,
            "kind": "number" if name in numeric else "text",
            "role": role_of[name] or ("label" if name in labelled else None),
            "missing": number_of[f"gap {i}"],
            "first": cells,
        }
        columns.append(about_column)
    problem = None
    if unclear is not None:
        problem = {"message": str(unclear), "code": "column", "fields": {}}
    return {"rows": number_of["len"], "columns": columns, "problem": problem}
