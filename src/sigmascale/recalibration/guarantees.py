"""The parts in which intervals shall have nominal coverage: labels, and bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import rounded
from .._support.labels import label_text
from .._support.notices import warn
from .._support.numerals import number, percent
from .._support.text import listed, quoted
from .._support.weighting import weights_of
from ..exceptions import FewRowsWarning, InvalidInputError, ManyPartsWarning
from ..predictions.predictions import Predictions
from .additive import Axis, quantile_edges
from .distributions import Parts, rows_needed_for

MOST_PARTS = 5  # of a column of numbers
ROWS_A_BIN = 40  # that tell a bin of numbers, twice as many as 95 % need
MANY_COLUMNS = 3  # more make intervals much wider
WARNED_COVERAGE = 0.9  # that a part without rows enough is warned of


def check_parts(names: Any, rows: Predictions) -> tuple[int, ...]:
    """Return the columns that make parts; refuse names that no column has."""
    if names is None:
        return ()
    if isinstance(names, str) or not isinstance(names, (list, tuple)) or not names:
        msg = (
            '`parts` must be a list of columns, such as ["phase", "u"]; found '
            f"{quoted(names)}."
        )
        raise InvalidInputError(msg)
    columns = tuple(dict.fromkeys(rows.position(name, "parts") for name in names))
    if len(columns) > MANY_COLUMNS:
        warn(
            f"Parts of {len(columns)} columns: each row takes the widest interval of "
            f"{len(columns)} parts. On 23 real sets two or three columns made the "
            "interval score 2 ± 2 % worse, all columns 27 ± 20 %. Name those that "
            "matter.",
            ManyPartsWarning,
            stacklevel=5,
        )
    return columns


def axes_of_parts(
    rows: Predictions, columns: tuple[int, ...], n_told: float
) -> tuple[Axis, ...]:
    """Return how columns are cut: at labels, or into fifths of the fitted rows.

    Parameters
    ----------
    rows : Predictions
        The rows that the scale was learned from: of rows held out, nothing but their
        number matters to the edges.
    columns : tuple of int
        The columns.
    n_told : float
        The rows that will tell how far intervals must reach. Where they are fewer than
        200, bins of numbers are fewer than five.
    """
    n_bins = int(np.clip(n_told // ROWS_A_BIN, 1, MOST_PARTS))
    axes = []
    for column in columns:
        if rows.is_labelled(column):
            axes.append(Axis(column, labels=rows.labels(column).compact().labels))
            continue
        known = np.flatnonzero(~np.isnan(rows.columns[column]))
        values = rounded(rows.columns[column][known])
        weights = weights_of(rows.weights, known)
        axes.append(Axis(column, quantile_edges(values, weights, n_bins)))
    return tuple(axes)


def warn_of_small_parts(parts: Parts, names: tuple[str, ...]) -> None:
    """Say which parts have too few rows for intervals of 90 %."""
    needed = rows_needed_for(WARNED_COVERAGE)
    small = []
    for axis, of_axis in zip(parts.axes, parts.parts, strict=True):
        for code, part in enumerate(of_axis):
            # code 0 is what is missing or unknown, of which no rows are expected
            if part.n_rows < needed and (code or part.n_rows):
                where = part_words(axis, code, names[axis.column])
                small.append(f"{where} ({part.n_rows})")
    if not small:
        return

    # what that does, and the remedy
    rows = "rows"
    effect = "there they reach as far as the largest error that was seen"
    remedy = "fit with more rows"
    if parts.held_out:
        rows = "rows held out"
        effect = "there they are infinite"
        remedy = "hold out more rows"
    warn(
        f"Intervals of {percent(WARNED_COVERAGE)} need {needed} {rows} in each part, "
        f"and of 95 % {rows_needed_for(0.95)}. Fewer are in {listed(small)}: {effect}. "
        f"Name fewer parts, or {remedy}.",
        FewRowsWarning,
        stacklevel=5,
    )


def part_words(axis: Axis, code: int, name: str) -> str:
    """Return which rows a part is made of."""
    if not code:
        return f"{name} missing or unknown"
    if axis.labels is not None:
        return f"{name} = {label_text(axis.labels[code - 1])}"
    assert axis.edges is not None
    edges = axis.edges
    if not edges.size:
        return f"all {name}"
    if code == 1:
        return f"{name} below {number(edges[0])}"
    if code == edges.size + 1:
        return f"{name} from {number(edges[-1])} on"
    return f"{name} from {number(edges[code - 2])} to {number(edges[code - 1])}"


def parts_words(parts: Parts, names: tuple[str, ...]) -> str:
    """Return in which parts intervals have nominal coverage, in a sentence."""
    columns = listed([names[axis.column] for axis in parts.axes])
    sizes: list[int] = []
    for of_axis in parts.parts:
        sizes += [part.n_rows for part in of_axis[1:]]
    rows = "held-out" if parts.held_out else "cross-validated"
    return (
        f"Intervals have nominal coverage in each of {len(sizes)} parts, by {columns}, "
        f"with {min(sizes, default=0)} {rows} rows or more in each."
    )
