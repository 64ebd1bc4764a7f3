"""Tables of several targets: wide ones, with a column each, and long ones with labels.

Entries may be missing. What is made of either kind of table are the rows of each
target, and the places that they have in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    Ints,
    as_array,
    as_floats,
    as_frame,
    check_pair,
    from_series,
    refuse_lazy,
)
from .._support.labels import label_text
from .._support.notices import about_subject, row_number
from .._support.weights import check_weights
from ..exceptions import InvalidInputError
from ..predictions import Predictions, check_labels, group_codes, with_named_features


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
        with about_subject(f"target {self.name!r}{some}"):
            yield


def read_columns(values: Any, name: str) -> tuple[Floats, tuple[str, ...] | None]:
    """Return a table of numbers, of which some may be missing (NaN), and its names."""
    frame = as_frame(values, name)
    if frame is not None:
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
    return table, None if frame is None else tuple(map(str, frame.columns))


def check_names(
    given: Any, found: Sequence[str] | None, n_targets: int
) -> tuple[str, ...]:
    """Return the names of the targets: given, those of columns, or y0, y1, ..."""
    if given is None:
        return tuple(found or (f"y{i}" for i in range(n_targets)))
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    names = tuple(str(each) for each in given) if listed else ()
    if len(names) != n_targets or len(set(names)) < n_targets:
        msg = (
            f"`names` must be a list of {n_targets} different names, one for each "
            f"target; found {given!r}."
        )
        raise InvalidInputError(msg)
    if found and paired(names, found, "y") != list(range(n_targets)):
        msg = (
            f"`names` must be in the order of the columns, {', '.join(found)}; found "
            f"{', '.join(names)}. Leave `names` out."
        )
        raise InvalidInputError(msg)
    return names


def paired(targets: Sequence[str], columns: Sequence[str], name: str) -> list[int]:
    """Return which column belongs to each target, by their names.

    Names match if they are the same but for what all of them begin or end with. Those
    that do not match say nothing, and columns are in the order of the targets; but not
    if they name the targets in another order.

    >>> paired(["gap", "homo", "lumo"], ["u_lumo", "u_gap", "u_homo"], "X")
    [1, 2, 0]
    >>> paired(["gap", "homo"], ["first", "second"], "X")
    [0, 1]
    """
    wanted, found = _distinctive(targets), _distinctive(columns)
    if len(set(found)) == len(found) and set(found) == set(wanted):
        return [found.index(each) for each in wanted]
    words = [_words(each) for each in targets]
    own = [each.difference(*words[:k], *words[k + 1 :]) for k, each in enumerate(words)]
    for k, column in enumerate(columns):
        named = [bool(each & _words(column)) for each in own]
        if any(named) and not named[k]:
            msg = (
                f"The columns {', '.join(columns)} of `{name}` must be those of the "
                f"targets {', '.join(targets)}, in this order or with names that say "
                f"which is which; found {column!r} in the place of {targets[k]!r}. "
                f"Give them names that match, such as u_{targets[k]}."
            )
            raise InvalidInputError(msg)
    return list(range(len(targets)))


def _words(name: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", name.casefold()))


def _distinctive(names: Sequence[str]) -> list[str]:
    """Return names without what all of them begin and end with."""
    found = [each.casefold() for each in names]
    for _ in range(2):  # from the front, and then from the end
        letters = zip(*found, strict=False)
        common = takewhile(lambda several: len(set(several)) == 1, letters)
        n_common = len(list(common))
        found = [each[n_common:][::-1] for each in found]
    return found


def target_rows(
    table: Predictions,
    names: Sequence[str] | None,
    *,
    by: Any = None,
    order: Sequence[int] | None = None,
    errors: Floats | None = None,
    groups: Ints | None = None,
    weights: Floats | None = None,
) -> list[TargetRows]:
    """Return the rows of each target of a table.

    Known are entries with an error; or, where errors are none of the matter, those with
    an uncertainty; and none whose weight is 0.

    Parameters
    ----------
    table : Predictions
        A wide table begins with a column of uncertainties for each target; a long one
        has one such column, and one of labels.
    names : list of str or None
        The targets. Labels of a long table must be among them; None stands for all.
    by : int or str, optional
        The column of labels, of a long table.
    order : list of int, optional
        The column of the uncertainties of each target, of a wide table; by default
        these are in the order of the targets.
    errors : array of shape (n, n_targets), optional
        Errors; one column of a long table.
    groups, weights : array of shape (n,), optional
        The groups and weights of the rows.
    """
    position = None if by is None else table.position(by)
    if position == 0:
        msg = "`by` must be a column of labels; found column 0, the uncertainty."
        raise InvalidInputError(msg)
    if position is not None:
        labels = table.labels(position).compact()
        found = [label_text(label) for label in labels.labels]
        if unknown := sorted(set(found).difference(found if names is None else names)):
            msg = (
                f"column {table.names[position]!r} names a target that was not seen in "
                f"fit: {unknown[0]!r}. Leave these rows out."
            )
            raise InvalidInputError(msg)
        # its column of uncertainties, that of errors, and which rows are its own
        parts = [(name, 0, 0, labels.codes == k) for k, name in enumerate(found)]
        features = [i for i in range(1, len(table.columns)) if i != position]
    else:
        names = names or ()
        if len(table.columns) < len(names):
            msg = (
                f"X must begin with a column of uncertainties for each of {len(names)} "
                f"targets; found {len(table.columns)} column(s)."
            )
            raise InvalidInputError(msg)
        at = range(len(names)) if order is None else order
        all_rows = np.ones(table.n_rows, dtype=bool)
        parts = [(name, at[k], k, all_rows) for k, name in enumerate(names)]
        features = list(range(len(names), len(table.columns)))
    targets = []
    for name, first, k, own in parts:
        u = as_floats(table.columns[first], f"X[:, {table.names[first]}]")
        error = None if errors is None else errors[:, k]
        known = own & ~np.isnan(u if error is None else error)
        if weights is not None:
            known &= weights > 0
        _check_uncertainties(u, known, name)
        rows = Predictions.of(
            (u, *(table.columns[i] for i in features)),
            (table.names[first], *(table.names[i] for i in features)),
            error,
            groups,
            weights,
            (None, *(table.categories[i] for i in features)),
        )
        places = np.flatnonzero(known)
        if places.size < table.n_rows:
            rows = rows.take(places)
        targets.append(TargetRows(name, rows, places, table.n_rows))
    return targets


def split_targets(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    labels: Any = None,
    names: list[str] | None = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> dict[str, Predictions]:
    """Return the known entries of each target, to be judged by :func:`validate`.

    Parameters
    ----------
    error : array-like or data frame of shape (n, n_targets)
        Errors, reference minus prediction; entries that are missing (NaN) are left out.
    uncertainty : array-like or data frame of shape (n, n_targets)
        Standard uncertainties, strictly positive where there is an error.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features, which all targets share.
    labels : array-like of shape (n,), optional
        The targets of a long table: error and uncertainty are one column then.
    names : list of str, optional
        The names of the targets; by default the columns of `error`, or y0, y1, ...
    groups : array-like of shape (n,), optional
        Labels of rows that belong together: atoms of a structure, repeats of a sample.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0.

    Returns
    -------
    dict of str to Predictions

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, (1000, 2))
    >>> error = rng.normal(scale=u * [1.0, 1.3])
    >>> targets = split_targets(error, u, names=["gap", "dipole"])
    >>> print(ss.validate(targets).to_table())
    target  rows               <Z²>    NLL  answer    fails
    -------------------------------------------------------
    gap     1000  1.01 [0.89, 1.17]  1.815     yes        -
    dipole  1000  1.65 [1.45, 1.89]  2.123      no  average
    """
    errors, found = read_columns(error, "error")
    u, called = read_columns(uncertainty, "uncertainty")
    if u.shape != errors.shape:
        msg = (
            "`error` and `uncertainty` must have the same shape, a column for each "
            f"target; found {errors.shape} and {u.shape}."
        )
        raise InvalidInputError(msg)
    n_rows, n_targets = errors.shape
    # of each target: the columns of its errors and uncertainties, and its own rows
    parts: dict[str, tuple[int, int, Any]]
    if labels is None:
        titles = check_names(names, found or called, n_targets)
        order: Sequence[int] = range(n_targets)
        if found and called:
            order = paired(found, called, "uncertainty")
        parts = {x: (k, order[k], True) for k, x in enumerate(titles)}
    elif n_targets == 1 and names is None:
        told = check_labels(labels, errors, "labels").compact()
        texts = map(label_text, told.labels)
        parts = {x: (0, 0, told.codes == k) for k, x in enumerate(texts)}
    else:
        msg = (
            "`labels` are for long tables, whose errors are one column: leave `names` "
            "out."
        )
        raise InvalidInputError(msg)
    table = with_named_features(Predictions.of((u[:, 0],), ("u",)), features)
    table = table.changed(groups=group_codes(groups, errors, "error"))
    weights = weights_of(sample_weight, n_rows, "error")
    judged = {}
    for name, (k, j, own) in parts.items():
        known = own & ~np.isnan(errors[:, k])
        if weights is not None:
            known &= weights > 0
        _check_uncertainties(u[:, j], known, name)
        rows = table.take(np.flatnonzero(known))
        with TargetRows(name, rows, np.flatnonzero(known), n_rows).told():
            e, v = check_pair(errors[known, k], u[known, j])
        rows = rows.with_uncertainty(v).changed(error=e)
        judged[name] = rows.weighted(None if weights is None else weights[known])
    return judged


def weights_of(sample_weight: Any, n_rows: int, rows_name: str = "X") -> Floats | None:
    """Return the weights of a table's rows, in a unit in which they count rows."""
    kept, weights = check_weights(sample_weight, np.empty(n_rows), rows_name)
    if kept is None:
        return weights
    all_weights = np.zeros(n_rows)
    all_weights[kept] = 1.0 if weights is None else weights
    return all_weights


def _check_uncertainties(u: Floats, known: npt.NDArray[np.bool_], name: str) -> None:
    """Refuse uncertainties of known entries that are none; those of 0 are allowed."""
    bad = known & ~(np.isfinite(u) & (u >= 0))
    if bad.any():
        row, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
        more = "" if count == 1 else f" So are {count - 1} more of this target."
        msg = (
            f"target {name!r}, row {row_number(row)}: the uncertainty is {u[row]:g}, "
            f"and must be a finite positive number.{more} Repair it; or leave the "
            "entry out, with an error that is missing (NaN)."
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
            f"{names[k]!r} at row {row_number(row)} is {errors[row, k]:g}."
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
