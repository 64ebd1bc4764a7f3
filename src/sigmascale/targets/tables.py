"""Tables of several targets: wide ones, with a column each, and long ones with labels.

Entries may be missing. What is made of either kind of table are the rows of each
target, and the places that they have in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    Ints,
    as_array,
    as_floats,
    as_frame,
    from_series,
    refuse_lazy,
)
from .._support.telling import telling_of
from .._support.weights import check_weights
from ..exceptions import InvalidInputError
from ..predictions import Predictions


@dataclass(frozen=True, eq=False)
class TargetRows:
    """The known entries of one target.

    Attributes
    ----------
    name : str
        The target.
    rows : Predictions
        Its uncertainties and the features, with errors and groups where they are known.
    places : array of int
        Which rows of the table these are.
    n_table : int
        How many rows the table has.
    """

    name: str
    rows: Predictions
    places: Ints
    n_table: int

    @contextmanager
    def told(self) -> Iterator[None]:
        """Name the target in warnings and errors."""
        some = " (known entries)" if self.places.size < self.n_table else ""
        with telling_of(f"target {self.name!r}{some}"):
            yield


def read_columns(values: Any, name: str) -> tuple[Floats, tuple[str, ...] | None]:
    """Return a table of numbers, of which some may be missing (NaN), and its names."""
    frame = as_frame(values, name)
    names = None
    if frame is not None:
        names = tuple(str(each) for each in frame.columns)
        columns = [
            as_floats(np.asarray(from_series(each.to_native())), name)
            for each in frame.iter_columns()
        ]
        table = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    else:
        refuse_lazy(values, name)
        table = as_array(values, name)
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2:
            msg = f"`{name}` must be a table of targets; found shape {table.shape}."
            raise InvalidInputError(msg)
        table = as_floats(table, name)
    if not table.size:
        msg = f"`{name}` must have rows and columns; found shape {table.shape}."
        raise InvalidInputError(msg)
    return table, names


def is_column(values: Any) -> bool:
    """Return whether values are one column rather than a table of them."""
    return as_frame(values, "y") is None and as_array(values, "y").ndim == 1


def check_names(
    given: Any, found: Sequence[str] | None, n_targets: int
) -> tuple[str, ...]:
    """Return the names of the targets: given, those of columns, or y0, y1, ..."""
    if given is None:
        return tuple(found or (f"y{i}" for i in range(n_targets)))
    names = (
        () if isinstance(given, str) else tuple(str(each) for each in _listed(given))
    )
    if len(names) != n_targets or len(set(names)) < n_targets:
        msg = (
            f"`names` must be a list of {n_targets} different names, one for each "
            f"target; found {given!r}."
        )
        raise InvalidInputError(msg)
    return names


def _listed(given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        return []


def wide_targets(
    table: Predictions,
    names: Sequence[str],
    errors: Floats | None = None,
    groups: Ints | None = None,
    weights: Floats | None = None,
) -> list[TargetRows]:
    """Return the rows of each target of a table that begins with their uncertainties.

    Known are entries with an error; or, where errors are none of the matter, those with
    an uncertainty; and none whose weight is 0.
    """
    n_targets = len(names)
    if len(table.columns) < n_targets:
        msg = (
            f"X must begin with a column of uncertainties for each of {n_targets} "
            f"targets; found {len(table.columns)} column(s)."
        )
        raise InvalidInputError(msg)
    found = []
    for k, name in enumerate(names):
        u = as_floats(table.columns[k], f"X[:, {table.names[k]}]")
        known = ~np.isnan(u if errors is None else errors[:, k]) & _counts(weights)
        _check_uncertainties(u, known, name)
        rows = Predictions.of(
            (u, *table.columns[n_targets:]),
            (table.names[k], *table.names[n_targets:]),
            None if errors is None else errors[:, k],
            groups,
            weights,
            (None, *table.categories[n_targets:]),
        )
        places = np.flatnonzero(known)
        if places.size < table.n_rows:
            rows = rows.take(places)
        found.append(TargetRows(name, rows, places, table.n_rows))
    return found


def long_targets(
    table: Predictions,
    by: Any,
    names: Sequence[str] | None = None,
    errors: Floats | None = None,
    groups: Ints | None = None,
    weights: Floats | None = None,
) -> list[TargetRows]:
    """Return the rows of each target of a table with a column of their labels.

    Where `names` are given, there must be no others.
    """
    position = table.position(by)
    if position == 0:
        msg = "`by` must be a column of labels; found column 0, the uncertainty."
        raise InvalidInputError(msg)
    labels = table.labels(position).compact()
    codes = labels.codes
    found = [_name(label) for label in labels.labels]
    wanted = found if names is None else names
    if unknown := sorted(set(found).difference(wanted)):
        msg = (
            f"column {table.names[position]!r} names a target that was not seen in "
            f"fit: {unknown[0]!r}. Leave these rows out."
        )
        raise InvalidInputError(msg)
    u = as_floats(table.columns[0], f"X[:, {table.names[0]}]")
    known = ~np.isnan(u if errors is None else errors) & _counts(weights)
    kept = [i for i in range(len(table.columns)) if i != position]
    rows = Predictions.of(
        tuple(u if i == 0 else table.columns[i] for i in kept),
        tuple(table.names[i] for i in kept),
        errors,
        groups,
        weights,
        [table.categories[i] for i in kept],
    )
    targets = []
    for code, name in enumerate(found):
        here = known & (codes == code)
        _check_uncertainties(u, here, name)
        places = np.flatnonzero(here)
        targets.append(TargetRows(name, rows.take(places), places, table.n_rows))
    return targets


def _counts(weights: Floats | None) -> Any:
    """Return whether rows have a weight."""
    return True if weights is None else weights > 0


def weights_of(sample_weight: Any, n_rows: int, rows_name: str = "X") -> Floats | None:
    """Return the weights of a table's rows, in a unit in which they count rows."""
    kept, weights = check_weights(sample_weight, np.empty(n_rows), rows_name)
    if kept is None:
        return weights
    all_weights = np.zeros(n_rows)
    all_weights[kept] = 1.0 if weights is None else weights
    return all_weights


def _name(label: Any) -> str:
    """Return a label as text; numbers that are whole have no point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _check_uncertainties(u: Floats, known: npt.NDArray[np.bool_], name: str) -> None:
    """Refuse uncertainties of known entries that are none; those of 0 are allowed."""
    bad = known & ~(np.isfinite(u) & (u >= 0))
    if bad.any():
        row, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
        more = "" if count == 1 else f" So are {count - 1} more of this target."
        msg = (
            f"target {name!r}, row {row}: the uncertainty is {u[row]:g}, and must be a "
            f"finite positive number.{more} Repair it; or leave the entry out, with an "
            "error that is missing (NaN)."
        )
        raise InvalidInputError(msg)


def check_infinite(errors: Floats, names: Sequence[str], n_rows: int) -> None:
    """Refuse errors that are infinite, or as many as there are no rows for."""
    if errors.shape[0] != n_rows:
        msg = (
            f"X and y must have the same number of rows; found {n_rows} and "
            f"{errors.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)
    infinite = np.isinf(errors)
    if infinite.any():
        # the first sentence is the one that scikit-learn's own checks look for
        row, k = (int(each) for each in np.argwhere(infinite)[0])
        msg = (
            "Input y contains infinity or a value too large for dtype('float64'). "
            f"Errors must be finite, or NaN where they are missing: that of target "
            f"{names[k]!r} at row {row} is {errors[row, k]:g}."
        )
        raise InvalidInputError(msg)


def predict_targets(
    targets: Sequence[TargetRows],
    predict: Mapping[str, Callable[[Predictions], Floats]],
    *,
    wide: bool,
) -> Floats:
    """Return what each target's recalibrator makes of it, at its place in the table."""
    n_table = targets[0].n_table
    found = np.full((n_table, len(targets) if wide else 1), np.nan)
    for k, target in enumerate(targets):
        if target.rows.n_rows:
            with target.told():
                values = predict[target.name](target.rows)
            found[target.places, k if wide else 0] = values
    return found
