"""A table of several targets in memory, of which entries may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.checks import Floats
from ..._support.progress import working
from ...exceptions import DamagedFileError, InvalidInputError
from ...predictions import read_table
from ...roles import Choice, Roles, free_names, known
from ...targets.tables import split_targets
from .filesets import about, named
from .memory import conditioning_table, errors_of, weights_of
from .patterns import ERRORS, STAR, UNCERTAINTIES, choices_of, patterns_of
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

    from ...persistence import SavedTargets
    from ...targets.recalibrated import RecalibratedTargets
    from ...targets.validation import TargetsValidation


@dataclass(frozen=True)
class ChosenTargets:
    """Patterns that a user has for the columns of several targets.

    Attributes
    ----------
    choice : Choice
        The patterns, and what else is said of the columns.
    """

    choice: Choice

    def find(self, table: RawTable) -> dict[str, Roles]:
        """Return the roles of the columns of each target."""
        choices = choices_of(self.choice, table.frame.columns)
        return {target: each.find(table) for target, each in choices.items()}


@dataclass(frozen=True)
class ExpectedTargets:
    """The targets of another table, and what a user says of this one.

    Attributes
    ----------
    roles : dict of str to Roles
        Those of the table that the recalibrators were fitted on.
    choice : Choice
        Patterns of other names, if columns have others here.
    with_error : bool
        Whether errors are needed.
    """

    roles: dict[str, Roles]
    choice: Choice
    with_error: bool = False

    def find(self, table: RawTable) -> dict[str, Roles]:
        """Return the roles of the columns of each target, which must be there."""
        return self.find_names(table.frame.columns)

    def find_names(self, names: list[str]) -> dict[str, Roles]:
        """Return the same, of the names of a table's columns."""
        patterns = patterns_of(self.choice)
        return {target: self._one(target, names, patterns) for target in self.roles}

    def _one(self, target: str, names: list[str], patterns: dict[str, str]) -> Roles:
        choice = self.choice
        roles = replace(
            self.roles[target], left_out=(), prediction=None, weight=choice.weight
        )
        called = {role: each.replace(STAR, target) for role, each in patterns.items()}
        for role in UNCERTAINTIES:
            if role in called:
                is_variance = role == "variance"
                roles = replace(
                    roles, uncertainty=called[role], is_variance=is_variance
                )
        error = tuple(called[role] for role in ERRORS if role in called)
        roles = replace(roles, error=(error or roles.error) * self.with_error)
        for name in (*roles.of_numbers, *roles.labels):
            known(name, names, f"target {target!r}")
        if roles.formula is not None:
            known(roles.formula, names, "--formula")
        return roles


@dataclass(frozen=True, kw_only=True)
class TargetsTable(TakenTable):
    """The checked rows of a file with several targets.

    Attributes
    ----------
    roles : dict of str to Roles
        Which of its columns are used, by target; features are the same for all.
    errors : array of shape (n, n_targets) or None
        Errors, if they are needed; NaN where they are missing.
    weights : array of shape (n,) or None
        Weights of the rows, if there are any.
    """

    roles: dict[str, Roles]
    errors: Floats | None
    weights: Floats | None

    @classmethod
    def open(
        cls,
        files: Sequence[str],
        reading: Reading,
        choice: ChosenTargets | ExpectedTargets,
    ) -> TargetsTable:
        """Read and check a file, or several as one table."""
        table = read_raw(files, reading)
        n_read = table.frame.height
        with about(named(files)):
            table = where_asked(table, reading)
            roles = choice.find(table)
            first = next(iter(roles.values()))  # features and weights are those of all
            weight = [] if first.weight is None else [first.weight]
            values = table.values([*first.numbers, *weight], first.of_labels)
            rows, values, dropped = complete_rows(table, values, reading)
            X, errors = _values(rows, roles)
            refuse_few(rows, 1 if errors is None else LEAST_ROWS)
            return cls(
                files=tuple(files),
                reading=reading,
                roles=roles,
                rows=rows,
                X=X,
                errors=errors,
                weights=weights_of(rows, first, values),
                n_read=n_read,
                dropped=dropped,
            )

    @property
    def features(self) -> pl.DataFrame | None:
        """The features, if there are any."""
        rest = self.X[:, len(self.roles) :]
        return rest if rest.width else None

    def fit(self, targets: RecalibratedTargets, groups: str | None) -> None:
        """Fit all targets; rows with equal values of `groups` stay together."""
        labels = self.groups(groups)
        with about(self.file):
            targets.fit(self.X, self.errors, labels, self.weights)

    def validate(
        self, uncertainty: Any, seed: int, *, groups: str | None, **options: Any
    ) -> TargetsValidation:
        """Judge uncertainties of all targets: those of the table, or others."""
        from ...targets.validation import validate_targets

        labels = self.groups(groups)
        with about(self.file), working("judging the uncertainties"):
            return validate_targets(
                self.errors,
                uncertainty,
                self.features,
                names=list(self.roles),
                groups=labels,
                sample_weight=self.weights,
                rng=seed,
                **options,
            )

    @property
    def uncertainties(self) -> Floats:
        """The uncertainties of all targets; NaN where they are missing."""
        u: Floats = self.X[:, : len(self.roles)].to_numpy()
        return u

    def recalibrated(self, saved: SavedTargets) -> Floats:
        """Return what recalibrators make of the uncertainties."""
        with about(self.file), working("recalibrating"):
            found = saved.predict(read_table(self.X))
        return found.reshape(self.n_rows, -1)

    def shared(self, saved: SavedTargets) -> float:
        """Return which share of a calibration set is among the rows, at most."""
        names = list(self.roles)
        targets = split_targets(read_table(self.X), names, errors=self.errors)
        shares = [
            seen.shared(each.rows)
            for each in targets
            if each.rows.n_rows and (seen := saved.maps[each.name].seen) is not None
        ]
        return max(shares, default=0.0)

    def recalibrate(self, saved: SavedTargets, name: str | None) -> TargetsTable:
        """Return the table with a new column for each target."""
        import polars as pl

        found = self.recalibrated(saved)
        with about(self.file):
            new = new_names(name, self.roles, self.rows.frame.columns)
        columns = []
        for k, roles in enumerate(self.roles.values()):
            values = found[:, k] ** 2 if roles.is_variance else found[:, k]
            columns.append(pl.Series(new[k], values).fill_nan(None))
        frame = self.rows.frame.with_columns(columns)
        return replace(self, rows=replace(self.rows, frame=frame), new=tuple(new))

    def write(self, output: str) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them."""
        used = [name for each in self.roles.values() for name in each.of_numbers]
        return self._write(output, used, next(iter(self.roles.values())).labels)

    def __str__(self) -> str:
        """Return what was taken from the file, in words."""
        features = ", ".join(next(iter(self.roles.values())).features) or "none"
        targets = f"{len(self.roles)} targets: {', '.join(self.roles)}"
        what = f"{targets}; features: {features}"
        return self._counted(what, self.n_rows, self.n_read, self.dropped)

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, for machines."""
        return self._facts() | source_of(self.roles)


def source_of(roles: dict[str, Roles]) -> dict[str, Any]:
    """Return what a file of recalibrators says of the columns of all targets."""
    return {"targets": {name: each.to_dict() for name, each in roles.items()}}


def roles_from(saved: SavedTargets) -> dict[str, Roles]:
    """Return the columns that a file of recalibrators names; refuse anything else."""
    source = saved.source
    if source is None:
        Roles.from_dict(None)  # says that it was not made from a file
    found = source.get("targets") if isinstance(source, dict) else None
    if not isinstance(found, dict) or list(found) != list(saved.maps):
        msg = "the names of targets in the recalibrators' file are damaged."
        raise DamagedFileError(msg)
    roles = {name: Roles.from_dict(each) for name, each in found.items()}
    for name, each in roles.items():
        if saved.maps[name].names != (each.uncertainty, *each.features):
            msg = "the names of columns do not fit the recalibrators; it is damaged."
            raise DamagedFileError(msg)
    return roles


def new_names(name: str | None, roles: dict[str, Roles], names: list[str]) -> list[str]:
    """Return the names of the new columns, which must not be taken."""
    if name is not None and name.count(STAR) != 1:
        msg = (
            f"--name {name!r} must have one star, for the names of {len(roles)} "
            "targets: --name 'new_*'."
        )
        raise InvalidInputError(msg)
    found: list[str] = []
    for target, each in roles.items():
        called = None if name is None else name.replace(STAR, target)
        found += free_names(called, each, [*names, *found], with_limits=False)
    return found


def _values(
    rows: RawTable, roles: dict[str, Roles]
) -> tuple[pl.DataFrame, Floats | None]:
    """Return the conditioning table and the errors of all targets."""
    import polars as pl

    columns, errors = [], []
    for each in roles.values():
        values = rows.values(each.of_numbers, each.of_labels)
        one = conditioning_table(rows, each, values)
        error = errors_of(rows, each, values)
        if error is not None:
            u = values[each.uncertainty]
            unknown = u.is_null() & pl.Series(~np.isnan(error))
            rows.refuse(unknown, u, "is missing, and the error of the row is not")
            errors.append(error)
        columns.append(one)
    uncertainties = [one.to_series(0) for one in columns]
    X = pl.DataFrame([*uncertainties, *columns[0].get_columns()[1:]])
    return X, np.column_stack(errors) if errors else None
