"""Where rows came from: data frames leave as frames of that library, with its index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import narwhals as nw
import numpy as np


@dataclass(frozen=True, eq=False)
class Origin:
    """The library of the data frame that rows came in, and their index.

    Attributes
    ----------
    library : str or narwhals.Implementation
        Pandas, Polars or PyArrow, or one that is like pandas.
    index : index of pandas, or None
        That of the rows, where the library has one.
    """

    library: Any
    index: Any = None

    @classmethod
    def of(cls, *given: Any) -> Self | None:
        """Return that of the first data frame or series; None where there is none."""
        for values in given:
            if isinstance(values, Mapping):
                if found := cls.of(*values.values()):
                    return found
            elif values is not None and type(values) is not np.ndarray:
                table = nw.from_native(values, allow_series=True, pass_through=True)
                if isinstance(table, (nw.DataFrame, nw.Series)):
                    return cls(table.implementation, nw.maybe_get_index(table))
        return None

    def __getitem__(self, rows: Any) -> Origin:
        """Return that of some of the rows."""
        return self if self.index is None else Origin(self.library, self.index[rows])


def make_frame(
    columns: Mapping[str, Any], origin: Origin | None, *, by_row: bool
) -> Any:
    """Return a data frame of the library that rows came from, or else of pandas.

    Parameters
    ----------
    columns : dict of str to sequence
        The columns.
    origin : Origin or None
        That of the rows; without any it is pandas, or Polars where that is missing.
    by_row : bool
        Whether the frame has a line for each of the rows, and their index.
    """
    if origin is None:
        installed = [name for name in ("pandas", "polars") if find_spec(name)]
        if not installed:
            msg = "Data frames need pandas or Polars: pip install pandas."
            raise ImportError(msg)
        origin = Origin(installed[0])
    cells = {name: _as_cells(column) for name, column in columns.items()}
    frame = nw.from_dict(cells, backend=origin.library).to_native()
    if by_row and origin.index is not None:
        frame.index = origin.index
    return frame


def columns_of(name: str, values: Any) -> dict[str, Any]:
    """Return a column, or one for each component of vectors; none of what is None."""
    if values is None:
        return {}
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{k}": column for k, column in enumerate(values.T, start=1)}


def _as_cells(column: Any) -> Any:
    """Return a column as all libraries take it: no objects, no days."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind in "OU":
        return column.tolist()
    is_time = column.dtype.kind == "M"
    if is_time and np.datetime_data(column.dtype)[0] not in {"ms", "us", "ns"}:
        return column.astype("datetime64[us]")
    return column
