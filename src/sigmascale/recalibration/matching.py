"""New rows, brought into the form of the fitted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import Floats, check_column, refuse_values
from .._support.notices import warn
from .._support.text import listed
from ..exceptions import (
    InvalidInputError,
    ZeroUncertaintyWarning,
)
from ..predictions.predictions import Predictions
from .additive import Additive

# -- rows ------------------------------------------------------------------------------


def with_columns_of_fit(rows: Predictions, names: tuple[str, ...]) -> Predictions:
    """Return rows with the features of `fit`, in its order."""
    if rows.names == names:
        return rows
    # features of an array have numbers for names: X1, X2, ...
    numbered = ("u", *(f"X{j}" for j in range(1, len(names))))
    if rows.names == numbered:
        return rows._with(names=names)
    if set(names) <= set(rows.names):
        return rows.with_features(names[1:])
    needed = names[1:]
    given = listed(rows.names[1:]) if len(rows.names) > 1 else "none"
    msg = f"Predictions must have the features of fit: {listed(needed)}; found {given}."
    raise InvalidInputError(msg, "features", columns=list(needed))


def check_components(rows: Predictions, fitted: int | None) -> None:
    """Refuse numbers where vectors were fitted, and the other way round."""
    if rows.y_pred is None and rows.error is None:  # neither is known
        return
    given = rows.components
    if given != fitted:
        msg = (
            f"The recalibrator was fitted to {_kind_words(fitted)}; found "
            f"{_kind_words(given)}."
        )
        raise InvalidInputError(msg, "vectors")


def check_shapes(rows: Predictions, kept: float | None) -> None:
    """Refuse rows without shapes, where shapes were fitted and are kept."""
    if kept and rows.shape is None:
        msg = (
            "The recalibrator was fitted to rows with shapes, which it keeps; these "
            "rows have none. Make them as those of the fit were made, such as by "
            "Predictions.from_quantiles, or fit with shape=False."
        )
        raise InvalidInputError(msg, "shapes-of-rows")


def _kind_words(n_components: int | None) -> str:
    """Return what errors are: numbers, or vectors."""
    if n_components is None:
        return "numbers"
    return f"vectors of {n_components} components"


# -- arrays ----------------------------------------------------------------------------


def checked_array(
    X: Any, names: tuple[str, ...], scale: Additive, smallest: float
) -> Any:
    """Return an array with as many columns as `fit` had, and positive u.

    In an array of NumPy, uncertainties of exactly 0 are lifted to the smallest one seen
    in fit; those of other libraries are lifted where they are evaluated.
    """
    n_columns = len(names)
    n_given = 1 if X.ndim == 1 else X.shape[-1]
    if X.ndim not in (1, 2) or n_given != n_columns:
        msg = (
            f"An array must have {n_columns} columns, u first: "
            f"{listed(names)}; found shape {tuple(X.shape)}."
        )
        raise InvalidInputError(msg)
    if scale.labelled:
        labelled = [names[j] for j in sorted(scale.labelled)]
        msg = f"Columns of labels ({listed(labelled)}) need Predictions, not an array."
        raise InvalidInputError(msg)
    if isinstance(X, np.ndarray):
        return _lifted_numpy(X.reshape(len(X), n_columns), smallest)
    return X  # of another library, whose values are not read


def _lifted_numpy(X: Any, smallest: float) -> Floats:
    """Return a table whose zeros of u are lifted, with a warning."""
    table: Floats = X.astype(np.float64)
    u = check_column(table[:, 0], "u")
    remedy = "Drop or repair these rows."
    refuse_values(u < 0, u, "u", "positive", remedy, "not-positive")
    n_zeros = int(np.count_nonzero(u == 0))
    if n_zeros:
        warn(
            f"{n_zeros} of {u.size} uncertainties are exactly 0; they were lifted "
            f"to {smallest:g}, the smallest one seen in fit.",
            ZeroUncertaintyWarning,
            stacklevel=4,
        )
        table[:, 0] = np.where(u == 0, smallest, u)
    return table
