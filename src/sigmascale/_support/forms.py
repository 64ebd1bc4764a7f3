"""Other forms of a prediction and its uncertainty: members, quantiles.

Each says a prediction and a standard uncertainty; what else it says is not kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import FewMembersWarning, InvalidInputError
from .checks import (
    Floats,
    as_array,
    as_floats,
    check_column,
    check_count,
    refuse_values,
    rounded,
)
from .notices import warn
from .text import listed

FEW_MEMBERS = 10  # of an ensemble: their spread is off by a quarter
EQUAL = 1e-9  # of two levels


def of_members(members: Any, ddof: int = 1) -> tuple[Floats, Floats]:
    """Return the mean and the spread of an ensemble's members."""
    table = _finite_table(members, "members", (2, 3))
    n_members, lost = table.shape[1], check_count(ddof, "ddof", least=0)
    if n_members < max(2, lost + 1):
        msg = (
            f"`members` must have at least {max(2, lost + 1)} columns, one a "
            f"member; found shape {table.shape}."
        )
        raise InvalidInputError(msg)
    if n_members < FEW_MEMBERS:
        off = 100 / np.sqrt(2 * max(1, n_members - 1))
        warn(
            f"The spread of {n_members} members is off by some {off:.0f} % by "
            "chance, row by row, and what they share it does not show at all: "
            "recalibrate it.",
            FewMembersWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        apart = table - table[:, :1]  # equal members have a spread of exactly 0
        spread = apart.std(axis=1, ddof=lost)
        if spread.ndim == 2:
            spread = rounded(np.sqrt((spread**2).mean(axis=1)))
        return table.mean(axis=1), spread


def of_quantiles(levels: Any, quantiles: Any) -> tuple[Floats, Floats]:
    """Return the middle of quantiles, and their width in units of a normal one."""
    from scipy.special import ndtri

    p = check_column(levels, "levels")
    table = _finite_table(quantiles, "quantiles", (2,))
    found = listed(f"{each:g}" for each in p)
    if not ((p > 0) & (p < 1)).all() or not (np.diff(p) > 0).all():
        msg = f"`levels` must ascend, between 0 and 1; found {found}."
        raise InvalidInputError(msg)
    if table.shape[1] != p.size:
        msg = (
            f"`quantiles` must have a column for each of {p.size} levels; found "
            f"shape {table.shape}."
        )
        raise InvalidInputError(msg)
    pairs = [
        (i, j) for i in range(p.size) for j in range(i) if abs(p[i] + p[j] - 1) < EQUAL
    ]
    if not pairs:
        msg = (
            "`levels` must have a symmetric pair, such as 0.05 and 0.95; found "
            f"{found}."
        )
        raise InvalidInputError(msg)
    high, low = max(pairs)
    # the median, or the quantiles on both sides of it
    after = int(p.searchsorted(0.5 - EQUAL))
    before = after if abs(p[after] - 0.5) < EQUAL else after - 1
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        u = (table[:, high] - table[:, low]) / (2 * ndtri(p[high]))
        return table[:, [before, after]].mean(axis=1), u


def _finite_table(values: Any, name: str, dimensions: tuple[int, ...]) -> Floats:
    """Return a table of numbers, all of which are there."""
    table = as_array(values, name)
    if table.ndim not in dimensions or not table.size:
        msg = f"`{name}` must be a table of rows; found shape {table.shape}."
        raise InvalidInputError(msg)
    found = as_floats(table, name)
    bad = np.any(~np.isfinite(found.reshape(len(found), -1)), axis=1)
    must, remedy = "finite in all columns", "Drop these rows."
    refuse_values(bad, found, name, must, remedy, "not-finite")
    return found
