"""A table of files: its columns, its checked rows, and what the commands do with them.

One target is a table of one: whatever is kept by target has one entry then, whose name
is empty. Files that are too large stay where they are, see :mod:`.lazy_table`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .._support.checks import EXACT, NOT_FINITE, Floats
from .._support.notices import rows_at
from .._support.progress import working
from ..exceptions import InvalidInputError
from ..maps.distributions import Distributions, with_law
from ..maps.laws import NORMAL
from ..predictions import Predictions, as_predictions, lifted, read_table
from ..roles import (
    FROM_FORMULA,
    MADE,
    Choice,
    Expected,
    Form,
    Roles,
    known,
    listed,
    new_names,
    source_of,
)
from .files import (
    UNTYPED,
    about,
    first_line,
    format_of,
    matching,
    named,
    read_files,
    refuse_input,
    write_table,
)
from .options import Engine, Reading

if TYPE_CHECKING:
    from ..judging.validation import Validations
    from ..persistence import SavedMap
    from .options import Wanted

LEAST_ROWS = 5  # fewer cannot show anything
ADVISED = 20_000  # rows that advice on a shift is made from
LARGE = 2**29  # bytes of Parquet files, beyond which they are not read into memory
REMEDY = "(leave such rows out with --where, or lift them with --minimum)"
MISSING_TEXTS = ("", "na", "nan", "n/a", "null", "none", "-")
_WITH_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.+Z-]*$"
SHARES = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}


def stays_lazy(
    files: Sequence[str], engine: Engine | None, scheduler: str | None = None
) -> bool:
    """Return whether files are left where they are, and only queried."""
    if engine is not None:
        lazy = engine != Engine.memory
    elif any("://" in file for file in files):
        lazy = True
    else:
        there = [Path(file) for file in matching(files)]
        lazy = all(path.suffix.lower() in (".parquet", ".pq") for path in there)
        lazy &= sum(path.stat().st_size for path in there if path.is_file()) > LARGE
    if not lazy and scheduler is not None:
        msg = "--scheduler is for --engine dask or spark."
        raise InvalidInputError(msg)
    return lazy


def read_columns(files: Sequence[str], reading: Reading) -> Columns:
    """Read a file, or several as one table; nothing in it is checked."""
    with working("reading the table"):
        frame, untyped = read_files(files, reading.separator)
    return Columns(frame, reading.decimal or ".", untyped)


def read_pair(
    calibration: str, test: str, choice: Choice, reading: Reading
) -> tuple[Table, Table]:
    """Read a calibration set, and a test set with the same columns."""
    learned_from = Table.open([calibration], reading, choice)
    expected = Expected(learned_from.roles, choice, with_error=True)
    return learned_from, Table.open([test], reading, expected)


@dataclass(kw_only=True)
class Opened:
    """A file, or several as one table, of which we know what its columns are.

    Attributes
    ----------
    files : tuple of str
        Its name, or those of several.
    reading : Reading
        How it is read.
    roles : dict of str to Roles
        Which of its columns are used, by target; features are the same for all.
    new : tuple of str
        Columns that were added, the recalibrated uncertainties first.
    missing : dict of str to int
        In how many rows a feature is missing, if these are kept.
    """

    files: tuple[str, ...]
    reading: Reading
    roles: dict[str, Roles]
    new: tuple[str, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def _gaps(self) -> str:
        """How often features are missing, in words."""
        return "".join(
            f"; {name} is missing in {count} rows, which are kept"
            for name, count in self.missing.items()
        )

    @property
    def file(self) -> str:
        """What to call the file, or all of them."""
        return named(self.files)

    @property
    def is_several(self) -> bool:
        """Whether there are several targets."""
        return list(self.roles) != [""]

    @property
    def first(self) -> Roles:
        """The roles of the one target, or of the first."""
        return next(iter(self.roles.values()))


@dataclass(kw_only=True)
class Table(Opened):
    """The checked rows of a file, or of several as one table.

    Attributes
    ----------
    columns : Columns
        The rows with all columns of the file, as they were read.
    X : DataFrame
        The conditioning table: uncertainties of all targets, then the features.
    errors : array of shape (n, n_targets) or None
        Errors, if they are needed. NaN where they are missing, which can be if there
        are several targets.
    prediction, weights : array of shape (n,) or None
        Predictions of one target, if they are needed, and weights of the rows.
    n_read : int
        Rows of the file, with those that `--where` left out.
    dropped : int
        Rows left out because of missing values.
    """

    columns: Columns
    X: pl.DataFrame
    errors: Floats | None
    prediction: Floats | None
    weights: Floats | None
    n_read: int
    dropped: int = 0

    @classmethod
    def open(
        cls, files: Sequence[str], reading: Reading, choice: Choice | Expected
    ) -> Table:
        """Read and check a file, or several as one table."""
        return cls.take(files, reading, read_columns(files, reading), choice)

    @classmethod
    def take(
        cls,
        files: Sequence[str],
        reading: Reading,
        columns: Columns,
        choice: Choice | Expected,
        complete: Iterable[str] = (),
    ) -> Table:
        """Check what was read from files.

        `complete` are further columns of numbers that must have all values.
        """
        n_read = columns.frame.height
        with about(named(files)):
            if (form := choice.form_in(columns.names)) is not None:
                columns = columns.with_form(form)
            if reading.where is not None:
                columns = columns.where(reading.where)
            roles = choice.find_targets(columns)
            first = next(iter(roles.values()))  # features and weights are those of all
            several = list(roles) != [""]
            used = [*first.of_numbers, *complete]
            if several:  # of which errors may be missing
                weight = [] if first.weight is None else [first.weight]
                used = [*first.numbers, *weight]
            values = columns.values(used, first.of_labels)
            for name in first.numbers:
                columns.refuse_rounded(name, values[name])
            optional = first.optional if choice.gaps else ()
            columns, values, dropped = _complete_rows(
                columns, values, reading, optional
            )
            gaps = {name: values[name].null_count() for name in optional}
            least = LEAST_ROWS if first.error else 1
            if isinstance(choice, Expected) and choice.least_rows is not None:
                least = choice.least_rows
            _refuse_few(columns, least)
            tables, errors = [], []
            weights = _weights_of(columns, first, values)
            for each in roles.values():
                own = [name for name in each.of_numbers if name not in values]
                taken = values | columns.values(own, ())
                with rows_at(columns.rows_read, first=1):
                    tables.append(_conditioning_table(columns, each, taken))
                if each.error:
                    errors.append(_errors_of(columns, each, taken))
                    judged = ~np.isnan(errors[-1])
                    if weights is not None:
                        judged &= weights > 0
                    _refuse_zeros(columns, each, tables[-1].to_series(0), judged)
            uncertainties = [one.to_series(0) for one in tables]
            return cls(
                files=tuple(files),
                reading=reading,
                roles=roles,
                columns=columns,
                X=_as_named([*uncertainties, *tables[0].get_columns()[1:]]),
                errors=np.column_stack(errors) if errors else None,
                prediction=None
                if several or first.prediction is None
                else values[first.prediction].to_numpy(),
                weights=weights,
                n_read=n_read,
                dropped=dropped,
                missing={name: count for name, count in gaps.items() if count},
            )

    # -- what is in it --------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.height

    @property
    def error(self) -> Floats:
        """The errors: of one target, or a column for each of several."""
        assert self.errors is not None
        return self.errors if self.is_several else self.errors[:, 0]

    @property
    def uncertainty(self) -> Floats:
        """The uncertainties: of one target, or a column for each of several."""
        u: Floats = self.X[:, : len(self.roles)].to_numpy()
        return u if self.is_several else u[:, 0]

    @property
    def features(self) -> pl.DataFrame | None:
        """The features, if there are any."""
        rest = self.X[:, len(self.roles) :]
        return rest if rest.width else None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Name the file in errors, and count rows as it has them in all messages."""
        with about(self.file), rows_at(self.columns.rows_read, first=1):
            yield

    def groups(self, name: str | None) -> Any:
        """Return the column of `--groups` as labels, if there is one."""
        if name is None:
            return None
        with about(self.file):
            return self.columns.groups(name).to_numpy()

    def times(self, name: str) -> Any:
        """Return the column of `--time`: numbers, or else text."""
        with about(self.file):
            text = self.columns.groups(name, "--time")
            if self.columns.is_numeric(name):
                return self.columns.numbers(name).to_numpy()
        return text.to_numpy()

    def require_memory(self, what: str, remedy: str = "") -> None:
        """Do nothing: rows are in memory."""

    # -- learning -------------------------------------------------------------------

    def hold_back(
        self, share: float, groups: str | None, seed: int
    ) -> tuple[Table, Table]:
        """Return the other rows, and a random share of them; groups stay whole."""
        is_held = random_rows(
            self.n_rows, self.groups(groups), share, seed, "--conformal-share"
        )
        if self.n_rows - np.count_nonzero(is_held) < LEAST_ROWS:
            msg = (
                f"{self.file}: --conformal-share {share:g} leaves too few rows to fit: "
                f"at least {LEAST_ROWS} are needed. Hold less back."
            )
            raise InvalidInputError(msg)
        return self._take(~is_held), self._take(is_held)

    def _take(self, which: Any) -> Table:
        """Return some of the rows."""
        mask = pl.Series(which)
        return replace(
            self,
            columns=self.columns.filter(mask),
            X=self.X.filter(mask),
            errors=None if self.errors is None else self.errors[which],
            prediction=None if self.prediction is None else self.prediction[which],
            weights=None if self.weights is None else self.weights[which],
        )

    def fit(self, scaler: Any, groups: str | None = None) -> None:
        """Fit a recalibrator; rows with equal values of `groups` stay together."""
        labels = self.groups(groups)
        with self.told(), working("fitting"), self._few_can():
            scaler.fit(self.X, self.error, groups=labels, sample_weight=self.weights)

    @contextmanager
    def _few_can(self) -> Iterator[None]:
        """Say that a method takes no missing values, where that is the matter."""
        try:
            yield
        except InvalidInputError as problem:
            if not self.missing or problem.code != NOT_FINITE:
                raise
            counts = ", ".join(f"{name!r} {n}" for name, n in self.missing.items())
            msg = (
                f"features are missing, in so many of {self.n_rows} rows: {counts}. "
                "This method cannot learn from such rows, or recalibrate them: fill "
                "them in, leave them out with --drop-missing, or fit with --method "
                "boosted."
            )
            raise InvalidInputError(msg, "missing-values") from problem

    def conformalize(self, scaler: Any, groups: str | None = None) -> None:
        """Give a recalibrator what intervals need, from rows it was not fitted on."""
        labels = self.groups(groups)
        with self.told():
            scaler.conformalize(
                self.X, self.error, groups=labels, sample_weight=self.weights
            )

    def shift_advice(self, groups: str | None = None, seed: int = 0) -> str:
        """Return that a shift is worth while, if it is; for one target.

        Of very many rows, some tell as much.
        """
        from ..predictions import learned_rows
        from ..scaling.shift import LEAST_FOR_SHIFT, learn_shift

        if self.is_several:
            return ""
        with self.told(), working("looking for a shift"):
            rows = learned_rows(
                self.X, self.error, self.groups(groups), self.weights, "fit"
            )
            if rows.n_rows > ADVISED:
                rng = np.random.default_rng(seed)
                which = rng.choice(rows.n_rows, ADVISED, replace=False)
                rows = rows.take(np.sort(which))
            if rows.total < LEAST_FOR_SHIFT or not rows.errors.any():
                return ""
            found = learn_shift(rows, "auto", set(), seed)
        if found.kind == "none":
            return ""
        return (
            "Predictions are off on average, in a way that can be learned: a shift "
            f"would lower squared errors of unseen rows by {100 * found.gain:.2g} ± "
            f"{100 * found.standard_error:.1g} % (fit with --shift auto)."
        )

    def factors(self, scaler: Any) -> dict[str, float]:
        """Return quantiles, by name, of what uncertainties are multiplied by."""
        factors = scaler.predict(self.X) / self.uncertainty
        values = np.quantile(factors, list(SHARES.values())).tolist()
        return dict(zip(SHARES, values, strict=True))

    # -- judging --------------------------------------------------------------------

    def judged_rows(
        self, maps: Mapping[str, SavedMap] | None = None, groups: str | None = None
    ) -> dict[str, Predictions]:
        """Return the rows of each target whose errors are known, to be judged.

        They are as the table has them, or what recalibrators make of them. Rows with
        equal `groups` belong together.
        """
        assert self.errors is not None
        u = self.uncertainty if maps is None else self.recalibrated(maps)
        u, labels = u.reshape(self.n_rows, -1), self.groups(groups)
        found = {}
        for k, target in enumerate(self.roles):
            there = ~np.isnan(self.errors[:, k])
            errors, law = self.errors[there, k], None
            if maps is not None:
                table = self._of_target(k).filter(pl.Series(there))
                errors = errors - maps[target].shift_of(read_table(table))
                law = maps[target].law
            rows = as_predictions(
                errors,
                u[there, k],
                self.X.filter(pl.Series(there))[:, len(self.roles) :],
                None if labels is None else labels[there],
                None if self.weights is None else self.weights[there],
            )
            if not there.all():
                kept = slice(None) if rows.places is None else rows.places
                rows = rows.changed(places=np.flatnonzero(there)[kept])
            found[target] = with_law(rows, law)
        return found

    def validate(
        self,
        maps: Mapping[str, SavedMap] | None = None,
        *,
        groups: str | None = None,
        **options: Any,
    ) -> Validations:
        """Judge uncertainties: those of the table, or what recalibrators make."""
        from ..judging.verdicts import validate

        with self.told(), working("judging the uncertainties"):
            if maps is not None:
                # rows that a recalibrator makes equal stay in the order of u
                before = self.judged_rows()
                options["ties"] = {name: p.uncertainty for name, p in before.items()}
            rows = self.judged_rows(maps, groups)
            found: Validations = validate(rows, **options)
        return found

    # -- recalibrating --------------------------------------------------------------

    def recalibrated(self, maps: Mapping[str, SavedMap]) -> Floats:
        """Return what recalibrators make of the uncertainties, as these are given.

        Columns may have other names than in `fit`; what is missing stays so.
        """
        found = np.full((self.n_rows, len(self.roles)), np.nan)
        with self.told(), working("recalibrating"), self._few_can():
            for k, target in enumerate(self.roles):
                X = self._of_target(k)
                there = X.to_series(0).is_not_null()
                if there.all():
                    found[:, k] = maps[target].predict(read_table(X))
                elif there.any():
                    rows = read_table(X.filter(there))
                    found[there.to_numpy(), k] = maps[target].predict(rows)
        return found if self.is_several else found[:, 0]

    def left_errors(self, maps: Mapping[str, SavedMap]) -> Floats:
        """Return the errors of one target that its shift leaves."""
        return np.asarray(self.error - maps[""].shift_of(read_table(self.X)))

    def _of_target(self, number: int) -> pl.DataFrame:
        """Return the conditioning table of one target."""
        n = len(self.roles)
        return self.X if n == 1 else self.X[:, [number, *range(n, self.X.width)]]

    def shared(self, maps: Mapping[str, SavedMap]) -> float:
        """Return which share of a calibration set is among the rows, at most."""
        assert self.errors is not None
        shares = [0.0]
        for k, target in enumerate(self.roles):
            error, seen = self.errors[:, k], maps[target].seen
            there = ~np.isnan(error)
            if seen is not None and there.any():
                rows = read_table(self._of_target(k).filter(pl.Series(there)))
                shares.append(seen.shared(rows.changed(error=error[there])))
        return max(shares)

    def recalibrate(
        self, maps: Mapping[str, SavedMap], name: str | None, wanted: Wanted
    ) -> Table:
        """Return the table with new columns: uncertainties, and what else is wanted."""
        frame = self.columns.frame
        with about(self.file):
            new = new_names(name, self.roles, frame.columns, wanted.endings)
        found = self.recalibrated(maps).reshape(self.n_rows, -1).T
        columns = [
            u**2 if roles.is_variance else u
            for u, roles in zip(found, self.roles.values(), strict=True)
        ]
        if wanted.endings:
            columns += self._distribution(maps[""], found[0], wanted)
        added = [
            pl.Series(each, values).fill_nan(None)
            for each, values in zip(new, columns, strict=True)
        ]
        changed = replace(self.columns, frame=frame.with_columns(added))
        return replace(self, columns=changed, new=tuple(new))

    def _distribution(self, saved: SavedMap, u: Floats, wanted: Wanted) -> list[Floats]:
        """Return shifted predictions, limits and quantiles, as far as they are wanted.

        They are those of the values, or of errors where there are no predictions.
        """
        value = 0.0 if self.prediction is None else self.prediction
        location = value + saved.shift_of(read_table(self.X))
        found = Distributions.of(location, u, saved.law or NORMAL)
        columns: list[Floats] = [location] if wanted.shift else []
        if wanted.coverage is not None:
            held = saved.z_limits(wanted.coverage)
            limits = (
                found.interval(wanted.coverage)
                if held is None
                else location[:, None] + u[:, None] * held
            )
            columns += [limits[:, 0], limits[:, 1]]
        if wanted.quantiles:
            columns += list(found.quantile(wanted.quantiles).T)
        return columns

    def write(self, output: str, fitted: dict[str, Roles]) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them.

        `fitted` are the roles of the table that the recalibrator was fitted on. A
        format that knows types gets columns as they were used.
        """
        if len(self.files) > 1 or not Path(self.files[0]).is_file():
            refuse_input(output, self.files)
        made = () if self.first.form is None else self.first.form.made
        frame = self.columns.frame.drop(made)
        if self.columns.untyped and format_of(output) not in UNTYPED:
            numbers = [n for each in self.roles.values() for n in each.of_numbers]
            for each in fitted.values():
                numbers += [*each.of_numbers, *each.left_out]
            labels = [n for each in fitted.values() for n in each.labels]
            frame = self.columns.with_types(dict.fromkeys(numbers), labels).drop(made)
        style = self.reading
        write_table(frame, output, separator=style.separator, decimal=style.decimal)
        return {"rows": self.n_rows, "dropped": self.dropped}

    # -- words -----------------------------------------------------------------------

    def __str__(self) -> str:
        """Return what was taken from the file, in words."""
        return self.counted(self.n_rows, self.n_read, self.dropped)

    def counted(self, n_rows: int, n_read: int, dropped: int) -> str:
        """Return in words what was taken from a file of which this may be a part."""
        what = str(self.first)
        if self.is_several:
            features = ", ".join(self.first.features) or "none"
            targets = f"{len(self.roles)} targets: {', '.join(self.roles)}"
            what = f"{targets}; features: {features}"
        kept = ""
        if self.reading.where is not None:
            kept = f" of {n_read}, where {self.reading.where}"
        left_out = f"; {dropped} rows with missing values left out" if dropped else ""
        return f"{self.file}: {n_rows} rows{kept}; {what}{left_out}{self._gaps}."

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, for machines."""
        several = len(self.files) > 1
        return {
            **({"files": list(self.files)} if several else {"file": self.file}),
            "rows": self.n_rows,
            "rows_read": self.n_read,
            "where": self.reading.where,
            "dropped": self.dropped,
            **({"missing": self.missing} if self.missing else {}),
            **source_of(self.roles),
        }


def random_rows(
    n_rows: int, groups: Any, share: float, seed: int, option: str
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each row is among a random share of them; groups stay whole."""
    if not 0 < share < 1:
        msg = f"{option} must lie between 0 and 1; found {share:g}."
        raise InvalidInputError(msg)
    codes = np.arange(n_rows)
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(sizes.size)
    # whole groups, until the share is reached as nearly as it can be
    n_taken = 1 + int(np.searchsorted(np.cumsum(sizes[order]), share * n_rows - 0.5))
    return np.isin(codes, order[:n_taken])


def _complete_rows(
    columns: Columns,
    values: dict[str, pl.Series],
    reading: Reading,
    optional: Collection[str] = (),
) -> tuple[Columns, dict[str, pl.Series], int]:
    """Return the rows in which no value is missing, these values, and how many are not.

    They are left out if the user has said so, or else refused, unless what is missing
    is `optional`.
    """
    needed = set(values).difference(() if reading.drop_missing else optional)
    missing = {name: x.is_null() for name, x in values.items() if name in needed}
    if not missing:
        return columns, values, 0
    anywhere = pl.DataFrame(list(missing.values())).select(pl.any_horizontal("*"))
    lost = anywhere.to_series()
    dropped = int(lost.sum())
    if dropped and not reading.drop_missing:
        counts = ", ".join(
            f"{name!r} {each.sum()}"
            for name, each in missing.items()
            if each.any() and name not in MADE
        )
        msg = (
            f"{dropped} of {columns.frame.height} rows have missing values, by column: "
            f"{counts}. Fill them in, or leave these rows out with --drop-missing."
        )
        by_column = {name: int(each.sum()) for name, each in missing.items()}
        raise InvalidInputError(msg, "missing-values", rows=dropped, columns=by_column)
    if dropped:
        columns = columns.filter(~lost)
        values = {name: series.filter(~lost) for name, series in values.items()}
    return columns, values, dropped


def _refuse_few(columns: Columns, least: int) -> None:
    count = columns.frame.height
    if count < least:
        found = "1 row" if count == 1 else f"{count} rows"
        msg = f"{found} with all values: too few. At least {least} are needed."
        raise InvalidInputError(msg, "few-rows", rows=count, least=least)


def _as_named(columns: Sequence[pl.Series]) -> pl.DataFrame:
    """Return columns as a frame; Polars would call one without a name otherwise."""
    frame = pl.DataFrame(columns)
    frame.columns = [each.name for each in columns]
    return frame


def _conditioning_table(
    columns: Columns, roles: Roles, values: dict[str, pl.Series]
) -> pl.DataFrame:
    """Return the table that recalibrators take: uncertainty first, then features."""
    what = "a variance" if roles.is_variance else "an uncertainty"
    parts = []
    for name in roles.of_uncertainty:
        u = values[name]
        if roles.minimum is None or roles.is_variance or roles.components:
            columns.refuse(u < 0, u, f"is negative, and {what} cannot be {REMEDY}")
        parts.append(u.sqrt() if roles.is_variance else u)
    if roles.components:
        total = pl.DataFrame([part**2 for part in parts]).sum_horizontal().sqrt()
        parts = [total.alias(roles.uncertainty), *parts]
    if roles.minimum is not None:
        u = parts[0]
        parts[0] = pl.Series(u.name, lifted(u.to_numpy(), roles.minimum)).fill_nan(None)
    features = [values[name] for name in (*roles.numbers, *roles.labels)]
    X = _as_named([*parts, *features])
    if roles.formula is not None:
        from ..chemistry import describe_formulas

        table = describe_formulas(values[roles.formula])
        derived = zip(FROM_FORMULA, table.to_dict().values(), strict=True)
        X = X.with_columns(pl.Series(name, column) for name, column in derived)
    return X


def _refuse_zeros(columns: Columns, roles: Roles, u: pl.Series, judged: Any) -> None:
    """Refuse uncertainties of 0 in rows that are judged, or learned from."""
    what = "a variance" if roles.is_variance else "an uncertainty"
    words = f"is no positive number, as {what} must be {REMEDY}"
    columns.refuse((u <= 0) & pl.Series(judged), u.alias(roles.uncertainty), words)


def _weights_of(
    columns: Columns, roles: Roles, values: dict[str, pl.Series]
) -> Floats | None:
    """Return the weights, if there are any: none is negative, and not all are 0."""
    if roles.weight is None:
        return None
    column = values[roles.weight]
    columns.refuse(column < 0, column, "is negative, and a weight cannot be")
    weights: Floats = column.to_numpy()
    if not weights.any():
        msg = f"all weights, in column {roles.weight!r}, are 0: no row is left."
        raise InvalidInputError(msg)
    return weights


def _errors_of(columns: Columns, roles: Roles, values: dict[str, pl.Series]) -> Floats:
    """Return the errors: a column of them, or reference minus prediction."""
    error = values[roles.error[0]]
    if len(roles.error) == 2:
        pair = [values[name] for name in roles.error]
        if any(bool((x.abs() >= EXACT).any()) for x in pair):
            # whole numbers that float64 cannot hold
            whole = [columns.frame[x.name].cast(pl.Int128, strict=False) for x in pair]
            if [x.null_count() for x in whole] == [x.null_count() for x in pair]:
                pair = whole
        error = (pair[0] - pair[1]).cast(pl.Float64)
    u = values[roles.of_uncertainty[0]]
    unknown = u.is_null() & error.is_not_null()
    columns.refuse(unknown, u, "is missing, and the error of the row is not")
    found: Floats = error.to_numpy()
    return found


# -- columns -----------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """The columns of a file; those of a text file are what it says, letter by letter.

    Attributes
    ----------
    frame : DataFrame
        The columns.
    decimal : str
        The decimal mark of numbers that are text, a point or a comma.
    untyped : bool
        Whether the columns are text because the file says no types.
    places : Series or None
        Which rows of the file these are, if some were left out.
    """

    frame: pl.DataFrame
    decimal: str = "."
    untyped: bool = False
    places: pl.Series | None = None

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return self.frame.columns

    @property
    def rows_read(self) -> Any:
        """Which rows of the file these are."""
        return range(self.frame.height) if self.places is None else self.places

    def filter(self, kept: pl.Series) -> Columns:
        """Return some of the rows; messages still tell their place in the file."""
        places = kept.arg_true() if self.places is None else self.places.filter(kept)
        return replace(self, frame=self.frame.filter(kept), places=places)

    def with_form(self, form: Form) -> Columns:
        """Return the columns with prediction and uncertainty, made of others."""
        refuse_made(form, self.names)
        table = pl.DataFrame([self.numbers(name) for name in form.columns]).to_numpy()
        there = ~np.isnan(table).any(axis=1)
        made = np.full((2, len(table)), np.nan)
        some = table[there] if there.any() else np.zeros_like(table[:1])
        made[:, there] = form.values(some)
        added = zip(form.made, made, strict=True)
        frame = self.frame.with_columns(pl.Series(*x).fill_nan(None) for x in added)
        return replace(self, frame=frame)

    def where(self, text: str, option: str = "--where") -> Columns:
        """Return the rows that meet a condition in SQL; missing values meet none."""
        condition = read_condition(text, self.names, option)
        used = dict.fromkeys(condition.meta.root_names())
        failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError)
        try:
            met = self._met(condition, map(self._comparable, used))
        except failures:
            try:  # text that could be numbers is compared with text
                met = self._met(condition, ())
            except failures as problem:
                raise bad_condition(text, self.names, option, problem) from problem
        kept = self.filter(met)
        if not kept.frame.height:
            msg = f"{option} {text!r} keeps none of {self.frame.height} rows."
            raise InvalidInputError(msg)
        return kept

    def _met(self, condition: pl.Expr, columns: Iterable[pl.Series]) -> pl.Series:
        frame = self.frame.with_columns(*columns)
        series = frame.select(condition).to_series()
        if series.dtype != pl.Boolean:
            msg = f"it is {series.dtype}, and neither true nor false"
            raise TypeError(msg)
        if series.len() != frame.height:  # of all rows together
            series = pl.repeat(bool(series[0]), frame.height, eager=True)
        return series.fill_null(False)

    def _comparable(self, name: str) -> pl.Series:
        """Return a column as numbers, if it holds any."""
        column = self.frame[name]
        if column.dtype == pl.String and self.is_numeric(name):
            return self._parsed(column).fill_nan(None)
        return column.fill_nan(None) if column.dtype.is_float() else column

    def numbers(self, name: str) -> pl.Series:
        """Return a column as finite numbers; what is missing is null."""
        column = self.frame[name]
        if column.dtype == pl.String:
            values = self._parsed(column)
        elif column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
            values = column.cast(pl.Float64)
        else:
            msg = f"column {name!r} must hold numbers; it holds {column.dtype}."
            raise InvalidInputError(msg)
        values = values.fill_nan(None)
        infinite = "is infinite; a number must be finite"
        self.refuse(values.is_infinite(), values, infinite)
        return values.rechunk()  # into one array, as it will be used

    def refuse_rounded(self, name: str, numbers: pl.Series) -> None:
        """Refuse whole numbers that float64 does not tell apart."""
        if (numbers.abs() > EXACT).any():
            whole = self.frame[name].cast(pl.Int128, strict=False)
            what = "is a whole number that would be rounded (is it a --label?)"
            self.refuse(numbers.cast(pl.Int128, strict=False) != whole, whole, what)

    def labels(self, name: str) -> pl.Series:
        """Return a column as text; what is missing is null."""
        text = self._text(name)
        what = "is a date with a time, which formats write in different ways"
        remedy = "(as a label, store the day, or any other text)"
        self.refuse(text.str.contains(_WITH_TIME), text, f"{what} {remedy}")
        return text

    def _text(self, name: str) -> pl.Series:
        column = self.frame[name]
        kind = column.dtype
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
            msg = f"column {name!r} must hold labels or numbers; it holds {kind}."
            raise InvalidInputError(msg)
        return column.cast(pl.String)

    def values(
        self, numbers: Iterable[str], labels: Iterable[str]
    ) -> dict[str, pl.Series]:
        """Return some columns as numbers, and others as labels."""
        found = {name: self.numbers(name) for name in dict.fromkeys(numbers)}
        return found | {name: self.labels(name) for name in labels}

    def groups(self, name: str, option: str = "--groups") -> pl.Series:
        """Return a column of labels, of which none is missing."""
        column = self._text(known(name, self.names, option))
        if column.has_nulls():
            msg = f"{option} needs a label in each row; column {name!r} lacks some."
            raise InvalidInputError(msg)
        return column

    def with_types(
        self, numbers: Collection[str], labels: Collection[str]
    ) -> pl.DataFrame:
        """Return the columns of a text file with types, for a format that has them.

        `numbers` are columns that are known to be numbers. Any other but `labels`
        becomes one of numbers where these would be written letter by letter as they
        are: "01" and "1.50" stay text.
        """
        schema = self.frame.schema
        found = {name: self._typed(name) for name in schema if name not in labels}
        for name in set(numbers).intersection(found):
            if found[name].dtype == schema[name]:
                with suppress(InvalidInputError):  # where it is not used
                    found[name] = self.numbers(name)
        return self.frame.with_columns(found.values())

    def _typed(self, name: str) -> pl.Series:
        column = self.frame[name]
        if column.dtype != pl.String:  # which was added
            return column
        text = self._with_points(column)
        if text.null_count() > column.null_count():
            return column
        for kind in (pl.Int64, pl.Float64):
            values = text.cast(kind, strict=False)
            if values.cast(pl.String).equals(text) and not values.is_null().all():
                return values
        return column

    def counts_rows(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""
        column = self.frame[name].cast(pl.Int64, strict=False)
        if len(column) < 3 or column.is_null().any() or column[0] not in (0, 1):
            return False
        return bool((column.diff().drop_nulls() == 1).all())

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        dtype = self.frame[name].dtype  # a schema would be made of all columns
        if dtype != pl.String:
            return bool(dtype.is_numeric())
        try:
            return not self._parsed(self.frame[name]).is_null().all()
        except InvalidInputError:
            return False

    def refuse(
        self, bad: pl.Series, column: pl.Series, what: str, code: str = "value"
    ) -> None:
        """Refuse a column in which some values are bad; show the first of them."""
        count = int(bad.sum() or 0)
        if count:
            row = int(np.argmax(bad.fill_null(False).to_numpy()))
            place = int(self.rows_read[row])
            more = "" if count == 1 else f" So are {count - 1} more."
            msg = (
                f"column {column.name!r}, row {place + 1} (not counting the header): "
                f"{column[row]!r} {what}.{more}"
            )
            raise InvalidInputError(
                msg, code, column=column.name, row=place + 1, count=count
            )

    def _parsed(self, column: pl.Series) -> pl.Series:
        values = self.parse(column)
        odd = values.is_null() & column.is_not_null()
        if odd.any():
            text = column.str.strip_chars()
            values = self.parse(text)
            bad = values.is_null() & text.is_not_null()
            bad &= ~text.str.to_lowercase().is_in(MISSING_TEXTS)
            self.refuse(bad, column, *self._hint(column.filter(bad)))
        return values

    def parse(self, text: pl.Series) -> pl.Series:
        """Return text as numbers, and null where it is no number."""
        return self._with_points(text).cast(pl.Float64, strict=False)

    def _with_points(self, text: pl.Series) -> pl.Series:
        """Return text with decimal points, and null where it would have others."""
        if self.decimal == ".":
            return text
        # a point would stand between thousands, or for another decimal mark
        pointed = text.str.contains(".", literal=True)
        return text.set(pointed, None).str.replace(",", ".", literal=True)

    def _hint(self, bad: pl.Series) -> tuple[str, str]:
        """Return what is wrong with texts that are no numbers, and a code for it."""
        first = str(bad[0]) if bad.len() else ""
        if self.decimal == "." and "," in first:
            hint = "(is the comma a decimal point? Pass --decimal ,)"
            return f"is not a number {hint}", "decimal-comma"
        if self.decimal == "," and "." in first:
            mark = "--decimal , says that commas are the decimal mark"
            return f"has a point, and {mark}", "decimal-point"
        return "is not a number", "no-number"


def refuse_made(form: Form, names: Sequence[str]) -> None:
    """Refuse columns with the names of those that are made."""
    if taken := [name for name in form.made if name in names]:
        msg = f"there is a column {taken[0]!r} already, which is made. Rename it."
        raise InvalidInputError(msg)


def read_condition(text: str, names: list[str], option: str) -> pl.Expr:
    """Return a condition in SQL as Polars has it, of columns that are there."""
    failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    try:
        condition = pl.sql_expr(text)
        used = condition.meta.root_names()
    except (*failures, UnicodeError) as problem:
        raise bad_condition(text, names, option, problem) from problem
    for name in used:
        known(name, names, f"{option} {text!r}")
    return condition


def bad_condition(
    text: str, names: list[str], option: str, problem: Any
) -> InvalidInputError:
    """Return what is said of a condition that an engine cannot read."""
    return InvalidInputError(
        f"{option} {text!r} cannot be used: {first_line(problem)}. It is a condition "
        "such as \"split = 'test' AND mass < 120\": numbers are compared with numbers, "
        "text in single quotes with text, and odd names of columns stand in double "
        f"ones. The columns are: {listed(names)}.",
        "condition",
        columns=names,
    )
