"""What to be careful about after a fit, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import Floats
from .._support.notices import row_number, warn
from .._support.numerals import fixed, number
from .._support.places import Places
from .._support.text import listed, quoted
from ..exceptions import AbsurdScaleWarning, FewRowsWarning
from ..predictions.ordering import order_of
from ..predictions.predictions import Predictions

ABSURD = 3.0  # times the largest error: no uncertainty should be larger
DECISIVE = 0.5  # share of the sum of z² that a few rows have if they decide
ROWS_THAT_TELL_OUTLIERS = 100  # that tell whether outliers have raised u
NARROW = 1.3  # ±1.96 u cover 95 % of normal errors; if this does, outliers raised u
OUTLYING = 3.0  # times u, which the largest error then exceeds
MOST_CUT = 100_000  # rows that tell where tenths are cut, about
DECILES = np.arange(1, 10) / 10
WORTH_WORDS = 0.25  # of u: a bias that is worth a sentence
SURE = 5.0  # standard errors: a bias that is no chance
LEAST_EFFECTIVE = 100  # rows that weights should leave
CAPPED_Z = 5.0  # that counts in a mean of z


def warn_of_few_effective(rows: Predictions) -> None:
    """Say that weights leave few rows in effect, too few for nominal coverage."""
    n_effective = rows.n_effective
    if n_effective < min(LEAST_EFFECTIVE, rows.n_rows / 2):
        warn(
            f"With their weights, {rows.n_rows} rows count as {fixed(n_effective, 0)}. "
            f"With fewer than {LEAST_EFFECTIVE}, intervals of 90 % may cover as "
            "little as 80 %: weigh less sharply, or add rows like those that matter.",
            FewRowsWarning,
            stacklevel=4,
        )


def cautions_of_scale(rows: Predictions, scale: Floats) -> tuple[str, ...]:
    """Return what is odd about a scale, the recalibrated uncertainty of each row."""
    # uncertainties that are larger than any error
    size = np.sqrt(rows.squared_error)
    n_absurd = int(np.count_nonzero(scale > ABSURD * size.max()))
    if n_absurd:
        caution = _absurd(rows, n_absurd)
        warn(caution, AbsurdScaleWarning, stacklevel=5)
        return (caution,)

    # uncertainties that only few errors come near
    ratio = size / scale
    is_narrow = (
        rows.n_rows >= ROWS_THAT_TELL_OUTLIERS
        and float(np.quantile(ratio, 0.95)) < NARROW
    )
    if is_narrow and float(ratio.max()) > OUTLYING:
        return (_raised_by_outliers(rows, scale),)
    return ()


def _absurd(rows: Predictions, n_absurd: int) -> str:
    """Return which rows make uncertainties that are larger than any error."""
    # the fewest rows that make half of Σ z²
    z2 = rows.z2 if rows.weights is None else rows.weights * rows.z2
    largest_first = order_of(-z2)
    share = np.cumsum(z2[largest_first]) / z2.sum()
    count = 1 + int(np.searchsorted(share, DECISIVE))  # levels

    # by their numbers in the table
    places = largest_first if rows.places is None else rows.places[largest_first]
    numbers = listed([str(row_number(place)) for place in places[:count]], 5)
    return (
        f"{n_absurd} of {rows.n_rows} recalibrated uncertainties exceed {ABSURD:g} "
        f"times the largest error: {count} row{'s' if count > 1 else ''} (row "
        f"{numbers}) with a tiny uncertainty and a large error have half of the "
        "sum of z², which decides on the scale. Use quantiles and intervals, which do "
        "not depend on it, or check these rows."
    )


def _raised_by_outliers(rows: Predictions, scale: Floats) -> str:
    """Return by how much u was changed for the sake of a few large errors."""
    factor = float(np.exp(rows.mean(np.log(scale / rows.y_std))))
    width = float(np.quantile(rows.abs_z, 0.95))
    changed = "raised" if factor > 1 else "changed"
    return (
        f"A few large errors decide on u, which was {changed} {number(factor, 2)} "
        f"times for their sake, while ±{number(width, 2)} of the old u cover 95 % of "
        "the errors. Use intervals and quantiles, which have nominal coverage."
    )


def caution_of_bias(rows: Predictions, scale: Floats) -> tuple[str, ...]:
    """Return a sentence on the largest bias, which no scale corrects, if there is one.

    It is the mean of z in a tenth of a column, or of a label, if that is worth words
    and far from chance, groups together.
    """
    z = np.clip(rows.errors / scale, -CAPPED_Z, CAPPED_Z)
    largest = 0.0
    column_of_largest = ""
    for name, column in zip(rows.names, rows.columns, strict=True):
        bias = _largest_bias(rows, z, column)
        if abs(bias) > max(abs(largest), WORTH_WORDS):
            largest = bias
            column_of_largest = name
    if not column_of_largest:
        return ()
    direction = "low" if largest > 0 else "high"
    return (
        f"Predictions are too {direction} by up to "
        f"{number(abs(largest), 2)} of the new u along {quoted(column_of_largest)}, "
        "which no "
        'scale corrects: bias="auto" may, and validate says where.',
    )


def _largest_bias(rows: Predictions, z: Floats, column: Any) -> float:
    """Return the largest mean of z, of a tenth or a label, that is no chance; or 0."""
    # the tenth, or the label, of each row
    code = column  # of labels
    if column.dtype.kind == "f":
        # every so-many-th of very many rows, which are in the order of their errors
        sampled = column[:: max(1, column.size // MOST_CUT)]
        code = Places(np.nanquantile(sampled, DECILES)).of(column)
        code[np.isnan(column)] = DECILES.size

    # sums of z, and of rows, in each
    n_codes = int(code.max()) + 1
    weighted_z = z if rows.weights is None else rows.weights * z
    sums = np.bincount(code, weighted_z, n_codes)
    n = np.bincount(code, rows.weights, n_codes)

    # the spread of a sum over independent units: rows, or the rows of a group
    units: Any = weighted_z
    code_of_unit = code
    if rows.groups is not None:
        # pairs of group and code that there are: few of all that could be
        # whole numbers
        pairs, unit = np.unique(rows.groups * n_codes + code, return_inverse=True)
        units = np.bincount(unit, weighted_z)
        code_of_unit = pairs % n_codes
    spread = np.sqrt(np.bincount(code_of_unit, units**2, n_codes))

    # means that are far from chance
    is_sure = np.abs(sums) > SURE * spread
    bias = np.where(is_sure, sums / np.maximum(n, 1e-300), 0.0)
    return float(bias[np.argmax(np.abs(bias))])
