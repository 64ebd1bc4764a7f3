"""A table in memory: its checked rows, and what the commands do with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.checks import Floats
from ..._support.progress import working
from ...exceptions import InvalidInputError
from ...predictions import read_table
from ...roles import FROM_FORMULA, Choice, Expected, Roles, free_names
from .filesets import about, named
from .reading import Reading
from .taken import (
    LEAST_ROWS,
    TakenTable,
    complete_rows,
    read_raw,
    refuse_few,
    where_asked,
)
from .values import RawTable

if TYPE_CHECKING:
    import polars as pl

    from ...judging.validation import Validation
    from ...persistence import SavedMap
    from ...scaling import VarianceScaler

EXACT = 2.0**53  # up to this float64 holds all whole numbers
SHARES = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}


@dataclass(frozen=True, kw_only=True)
class MemoryTable(TakenTable):
    """The checked rows of a file, or of several as one table.

    Attributes
    ----------
    roles : Roles
        Which of its columns are used.
    error, prediction, weights : array of shape (n,) or None
        Errors and predictions, if they are needed, and weights, if there are any.
    """

    roles: Roles
    error: Floats | None
    prediction: Floats | None
    weights: Floats | None = None

    @classmethod
    def open(
        cls, files: Sequence[str], reading: Reading, choice: Choice | Expected
    ) -> MemoryTable:
        """Read and check a file, or several as one table."""
        return cls.take(files, reading, read_raw(files, reading), choice)

    @classmethod
    def take(
        cls,
        files: Sequence[str],
        reading: Reading,
        table: RawTable,
        choice: Choice | Expected,
        complete: Iterable[str] = (),
    ) -> MemoryTable:
        """Check what was read from files.

        `complete` are further columns of numbers that must have all values.
        """
        n_read = table.frame.height
        with about(named(files)):
            table = where_asked(table, reading)
            roles = choice.find(table)
            values = table.values([*roles.of_numbers, *complete], roles.of_labels)
            rows, values, dropped = complete_rows(table, values, reading)
            least = LEAST_ROWS if roles.error else 1
            if isinstance(choice, Expected) and choice.least_rows is not None:
                least = choice.least_rows
            refuse_few(rows, least)
            return cls(
                files=tuple(files),
                reading=reading,
                roles=roles,
                rows=rows,
                X=conditioning_table(rows, roles, values),
                error=errors_of(rows, roles, values),
                prediction=None
                if roles.prediction is None
                else values[roles.prediction].to_numpy(),
                n_read=n_read,
                dropped=dropped,
                weights=weights_of(rows, roles, values),
            )

    @property
    def uncertainty(self) -> Floats:
        """The uncertainties."""
        u: Floats = self.X[self.roles.uncertainty].to_numpy()
        return u

    @property
    def features(self) -> pl.DataFrame | None:
        """The features, if there are any."""
        return self.X.drop(self.roles.uncertainty) if self.X.width > 1 else None

    def require_memory(self, what: str, remedy: str = "") -> None:
        """Do nothing: rows are in memory."""

    def times(self, name: str) -> Any:
        """Return the column of --time: numbers, or else text."""
        text = self.labels(name, "--time")
        is_number = self.rows.is_numeric(name)
        return self.rows.numbers(name).to_numpy() if is_number else text

    def refuse_zeros(self) -> None:
        """Refuse uncertainties of 0, with which nothing can be judged."""
        import polars as pl

        u = pl.Series(self.roles.uncertainty, self.uncertainty)
        what = "a variance" if self.roles.is_variance else "an uncertainty"
        with about(self.file):
            self.rows.refuse(u == 0, u, f"is no positive number, as {what} must be")

    def hold_back(
        self, share: float, groups: str | None, seed: int
    ) -> tuple[MemoryTable, MemoryTable]:
        """Return the other rows, and a random share of them; groups stay whole."""
        if not 0 < share < 1:
            msg = f"--conformal-share must lie between 0 and 1; found {share:g}."
            raise InvalidInputError(msg)
        if groups is None:
            codes = np.arange(self.n_rows)
        else:
            codes = np.unique(self.labels(groups, "--groups"), return_inverse=True)[1]
        n_groups = int(codes.max()) + 1
        order = np.random.default_rng(seed).permutation(n_groups)
        rows_so_far = np.cumsum(np.bincount(codes)[order])
        n_held = 1 + int(np.searchsorted(rows_so_far, share * self.n_rows - 0.5))
        is_held = np.isin(codes, order[:n_held])
        if self.n_rows - np.count_nonzero(is_held) < LEAST_ROWS:
            msg = (
                f"{self.file}: --conformal-share {share:g} leaves too few rows to fit: "
                f"at least {LEAST_ROWS} are needed. Hold less back."
            )
            raise InvalidInputError(msg)
        return self._take(~is_held), self._take(is_held)

    def _take(self, which: Any) -> MemoryTable:
        """Return some of the rows."""
        import polars as pl

        mask = pl.Series(which)
        return replace(
            self,
            rows=self.rows.filter(mask),
            X=self.X.filter(mask),
            error=None if self.error is None else self.error[which],
            prediction=None if self.prediction is None else self.prediction[which],
            weights=None if self.weights is None else self.weights[which],
        )

    def fit(self, scaler: VarianceScaler, groups: str | None = None) -> None:
        """Fit a recalibrator; rows with equal values of `groups` stay together."""
        labels = self.groups(groups)
        with about(self.file), working("fitting"):
            scaler.fit(self.X, self.error, groups=labels, sample_weight=self.weights)

    def conformalize(self, scaler: VarianceScaler) -> None:
        """Give a recalibrator what intervals need, from rows it was not fitted on."""
        scaler.conformalize(self.X, self.error, sample_weight=self.weights)

    def factors(self, scaler: VarianceScaler) -> dict[str, float]:
        """Return the range of what uncertainties are multiplied by, if not all are 0.

        These are quantiles by name.
        """
        old = self.uncertainty
        factors = scaler.predict(self.X)[old > 0] / old[old > 0]
        if not factors.size:
            return {}
        values = np.quantile(factors, list(SHARES.values())).tolist()
        return dict(zip(SHARES, values, strict=True))

    def validate(
        self,
        n_bins: int | None,
        seed: int,
        *,
        groups: str | None = None,
        **options: Any,
    ) -> Validation:
        """Judge the uncertainties; rows with equal `groups` belong together."""
        from ...judging.verdicts import validate

        self.refuse_zeros()
        labels = self.groups(groups)
        with about(self.file), working("judging the uncertainties"):
            return validate(
                self.error,
                self.uncertainty,
                self.features,
                groups=labels,
                n_bins=n_bins,
                rng=seed,
                sample_weight=self.weights,
                **options,
            )

    def recalibrate(
        self, saved: SavedMap, name: str | None, coverage: float | None
    ) -> MemoryTable:
        """Return the table with new columns: uncertainties, and limits if asked for."""
        import polars as pl

        names = self.rows.frame.columns
        with about(self.file), working("recalibrating"):
            new = free_names(name, self.roles, names, with_limits=coverage is not None)
            u = saved.predict(read_table(self.X))
            columns = [u**2 if self.roles.is_variance else u]
            if coverage is not None and saved.conformal is not None:
                limits = saved.conformal.interval(
                    u, coverage, asymmetric=False, labels=None
                )
                value = 0.0 if self.prediction is None else self.prediction
                columns += [value + limits[:, 0], value + limits[:, 1]]
        added = map(pl.Series, new, columns)
        frame = self.rows.frame.with_columns(added)
        return replace(self, rows=replace(self.rows, frame=frame), new=tuple(new))

    def write(self, output: str, fitted: Roles) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them.

        `fitted` are the roles of the table that the recalibrator was fitted on.
        """
        numbers = [*self.roles.of_numbers, *fitted.of_numbers, *fitted.left_out]
        return self._write(output, numbers, fitted.labels)

    def __str__(self) -> str:
        """Return what was taken from the file, in words."""
        return self.counted(self.n_rows, self.n_read, self.dropped)

    def counted(self, n_rows: int, n_read: int, dropped: int) -> str:
        """Return in words what was taken from a file of which this may be a part."""
        return self._counted(str(self.roles), n_rows, n_read, dropped)

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, for machines."""
        return self._facts() | self.roles.to_dict()


def conditioning_table(
    rows: RawTable, roles: Roles, values: dict[str, pl.Series]
) -> pl.DataFrame:
    """Return the table that recalibrators take: uncertainty first, then features."""
    import polars as pl

    what = "a variance" if roles.is_variance else "an uncertainty"
    parts = []
    for name in roles.of_uncertainty:
        u = values[name]
        rows.refuse(u < 0, u, f"is negative, and {what} cannot be")
        parts.append(u.sqrt() if roles.is_variance else u)
    if roles.components:
        total = pl.DataFrame([part**2 for part in parts]).sum_horizontal().sqrt()
        parts = [total.alias(roles.uncertainty), *parts]
    features = [values[name] for name in (*roles.numbers, *roles.labels)]
    X = pl.DataFrame([*parts, *features])
    if roles.formula is not None:
        from ...chemistry import describe_formulas

        table = describe_formulas(values[roles.formula])
        derived = zip(FROM_FORMULA, table.to_dict().values(), strict=True)
        X = X.with_columns(pl.Series(name, column) for name, column in derived)
    return X


def weights_of(
    rows: RawTable, roles: Roles, values: dict[str, pl.Series]
) -> Floats | None:
    """Return the weights, if there are any: none is negative, and not all are 0."""
    if roles.weight is None:
        return None
    column = values[roles.weight]
    rows.refuse(column < 0, column, "is negative, and a weight cannot be")
    weights: Floats = column.to_numpy()
    if not weights.any():
        msg = f"all weights, in column {roles.weight!r}, are 0: no row is left."
        raise InvalidInputError(msg)
    return weights


def errors_of(
    rows: RawTable, roles: Roles, values: dict[str, pl.Series]
) -> Floats | None:
    """Return the errors: a column of them, or reference minus prediction."""
    if not roles.error:
        return None
    if len(roles.error) == 1:
        error: Floats = values[roles.error[0]].to_numpy()
        return error
    reference, prediction = (values[name].to_numpy() for name in roles.error)
    error = reference - prediction
    large = np.maximum(np.abs(reference), np.abs(prediction)) >= EXACT
    if large.any():  # where float64 cannot hold all whole numbers
        exact = [rows.exact(name, np.flatnonzero(large)) for name in roles.error]
        error[large] = [float(r - v) for r, v in zip(*exact, strict=True)]
    return error
