"""The conditioning table of a model: its uncertainties beside columns of its input."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, as_frame
from ..exceptions import InvalidInputError

Features = Iterable[int | str] | Callable[[Any], Any] | None


def some_rows(X: Any, rows: npt.NDArray[Any]) -> Any:
    """Return some rows of an array, a sparse matrix, a list or any data frame."""
    from sklearn.utils import _safe_indexing

    frame = as_frame(X, "X")
    return _safe_indexing(X, rows) if frame is None else frame[rows].to_native()


def conditioning_table(
    u: Floats, X: Any, features: Features, names: list[str], n_columns: int
) -> Any:
    """Return uncertainties beside some columns of a model's input X.

    `features` names or counts these columns, or is a function of X that returns them;
    `names` and `n_columns` say what the columns of X were in `fit`.
    """
    if features is None:
        return u
    if callable(features):
        part = features(X)
    else:
        part = _some_columns(X, _positions(features, names, n_columns))
    frame = as_frame(part, "features")
    if frame is None:
        return np.column_stack([u, part])
    columns: dict[str, Any] = {str(c.name): c for c in frame.iter_columns()}
    if len(columns) < len(frame.columns):
        msg = (
            "`features` must be columns whose names differ as text; found "
            f"{', '.join(map(repr, frame.columns))}. Rename them."
        )
        raise InvalidInputError(msg)
    free = (f"uncertainty{'_' * n}" for n in itertools.count())
    name = next(each for each in itertools.chain(["u"], free) if each not in columns)
    columns = {name: u, **columns}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _positions(features: Any, names: list[str], n_columns: int) -> list[int]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        msg = f"`features` must be a list of columns or a callable; found {features!r}."
        raise InvalidInputError(msg)
    positions: list[int] = []
    for key in features:
        if isinstance(key, str) and key in names:
            positions.append(names.index(key))
        elif isinstance(key, (int, np.integer)) and 0 <= key < n_columns:
            positions.append(int(key))
        else:
            known = ", ".join(names) if names else "none"
            msg = (
                f"`features` must hold names or numbers of columns of X, which has "
                f"{n_columns} (named: {known}); found {key!r}."
            )
            raise InvalidInputError(msg)
    return positions


def _some_columns(X: Any, positions: list[int]) -> Any:
    from scipy.sparse import issparse

    frame = as_frame(X, "X")
    if frame is not None:
        return frame[:, positions].to_native()
    return X[:, positions].toarray() if issparse(X) else np.asarray(X)[:, positions]
