"""Forms of uncertainty: members of an ensemble, quantiles and intervals.

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
    as_frame,
    check_column,
    check_count,
    check_fraction,
)
from .notices import row_number, warn

FEW_MEMBERS = 10  # of an ensemble: their spread is off by a quarter
EQUAL = 1e-9  # of two levels


def of_members(members: Any, ddof: int = 1) -> tuple[Floats, Floats]:
    """Return the mean and the spread of an ensemble's members."""
    table = _finite_table(members, "members")
    n_members, lost = table.shape[1], check_count(ddof, "ddof", least=0)
    if n_members < max(2, lost + 1):
        msg = (
            f"`members` must have at least {max(2, lost + 1)} columns, one for each "
            f"member; found shape {table.shape}."
        )
        raise InvalidInputError(msg)
    if n_members < FEW_MEMBERS:
        off = 100 / np.sqrt(2 * max(1, n_members - 1))
        warn(
            f"The spread of {n_members} members is off by some {off:.0f} % by chance, "
            "row by row, and what they share it does not show at all: recalibrate it.",
            FewMembersWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        apart = table - table[:, :1]  # so that equal members have a spread of exactly 0
        return table.mean(axis=1), apart.std(axis=1, ddof=lost)


def of_quantiles(levels: Any, quantiles: Any) -> tuple[Floats, Floats]:
    """Return the middle of quantiles, and their width in units of a normal one."""
    p = check_column(levels, "levels")
    table = _finite_table(quantiles, "quantiles")
    if not ((p > 0) & (p < 1)).all() or not (np.diff(p) > 0).all():
        found = ", ".join(f"{each:g}" for each in p)
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
            f"{', '.join(f'{each:g}' for each in p)}."
        )
        raise InvalidInputError(msg)
    high, low = max(pairs)
    # the median, or the quantiles on both sides of it
    after = int(p.searchsorted(0.5 - EQUAL))
    before = after if abs(p[after] - 0.5) < EQUAL else after - 1
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        width = table[:, high] - table[:, low]
        u = width / (2 * _normal_quantile(p[high]))
        return table[:, [before, after]].mean(axis=1), u


def ends_of(coverage: Any) -> tuple[float, float]:
    """Return the levels of the limits of central intervals."""
    share = check_fraction(coverage, "coverage")
    return (1 - share) / 2, (1 + share) / 2


def _finite_table(values: Any, name: str) -> Floats:
    """Return a table of numbers, all of which are there."""
    frame = as_frame(values, name)
    table = as_array(values if frame is None else frame.to_numpy(), name)
    if table.ndim != 2 or not table.size:
        msg = f"`{name}` must be a table of rows; found shape {table.shape}."
        raise InvalidInputError(msg)
    found: Floats = as_floats(table, name)
    bad = ~np.isfinite(found)
    if bad.any():
        rows = bad.any(axis=1)
        msg = (
            f"`{name}` must be numbers in all columns; {np.count_nonzero(rows)} of "
            f"{rows.size} rows lack some (first at row "
            f"{row_number(np.argmax(rows))}). Drop these rows."
        )
        raise InvalidInputError(msg)
    return found


def _normal_quantile(level: float) -> float:
    from scipy import special

    return float(special.ndtri(level))
