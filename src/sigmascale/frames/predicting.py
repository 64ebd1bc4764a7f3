"""Recalibrated uncertainties as a new column of a lazy frame: a map, turned into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from .._support.checks import LARGEST, SMALLEST
from ..exceptions import InvalidInputError
from ..maps import Node
from .expressions import Expressions
from .lazy_rows import Frame, as_lazy, is_finite, number
from .polars_batches import with_column

if TYPE_CHECKING:
    from ..persistence import SavedMap, SavedTargets
    from ..scaling import VarianceScaler
    from ..targets.recalibrated import RecalibratedTargets

RECALIBRATED = "_recalibrated"  # what the name of the uncertainty gets
STAR = "*"  # in the name of new columns, for that of a target


def predict(
    scaler: VarianceScaler | RecalibratedTargets | SavedMap | SavedTargets,
    frame: Any,
    *,
    uncertainty: str | list[str] | None = None,
    features: list[str] | None = None,
    name: str | None = None,
) -> Any:
    """Return the lazy frame with a new column of recalibrated uncertainties.

    Nothing is read until the result is: values that cannot be used (an uncertainty or
    a feature that is missing, infinite or negative) give a null rather than an error.

    Parameters
    ----------
    scaler : recalibrator, or RecalibratedTargets
        A fitted one, from a frame or from arrays; or several targets, of a wide frame,
        each of which gets a new column. Trees are no short expression, and
        only Polars can apply BoostedScaling, batch by batch.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    uncertainty : str, or list of str, optional
        The column of uncertainties; by default the one it was fitted on, or the first.
        For several targets, a column of each.
    features : list of str, optional
        The columns of features in the order of `fit`; by default those it was fitted
        on, or those after the first.
    name : str, optional
        The name of the new column; by default that of the uncertainty with
        "_recalibrated". For several targets it has a star, which stands for the name
        of each.

    Returns
    -------
    lazy frame
        Of the library of `frame`.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0, 2.0], [2.0, -2.0, 4.0])
    >>> frame = pl.LazyFrame({"u": [1.0, 3.0]})
    >>> ss.frames.predict(scaler, frame).collect().to_dict(as_series=False)
    {'u': [1.0, 3.0], 'u_recalibrated': [2.0, 6.0]}
    """
    targets = _targets_of(scaler)
    lazy = as_lazy(frame)
    if targets is None:
        if not isinstance(uncertainty, str | None):
            msg = "`uncertainty` must be one column; lists are for several targets."
            raise InvalidInputError(msg)
        return _with_new(lazy, scaler, uncertainty, features, name).to_native()
    if name is not None and STAR not in name:
        msg = f"`name` must have a star for the names of targets; found {name!r}."
        raise InvalidInputError(msg)
    for target, columns in _wide_columns(lazy, targets, uncertainty, features).items():
        called = None if name is None else name.replace(STAR, target)
        lazy = _with_new(lazy, targets[target], *columns, called)
    return lazy.to_native()


def _with_new(
    lazy: Frame,
    scaler: Any,
    uncertainty: str | None,
    features: list[str] | None,
    name: str | None,
) -> Frame:
    """Return the frame with a new column of one recalibrator."""
    root, smallest, n_columns, fitted = _learned(scaler)
    schema = lazy.collect_schema()
    names = _names(list(schema), n_columns, fitted, uncertainty, features)
    new = f"{names[0]}{RECALIBRATED}" if name is None else name
    if name is None and new in schema:
        msg = f"`frame` already has a column {new!r}. Pass `name`, or drop it."
        raise InvalidInputError(msg)
    return with_prediction(lazy, root, names, smallest, new)


def _targets_of(scaler: Any) -> dict[str, Any] | None:
    """Return the recalibrators of several targets by name; None if it is but one."""
    targets: dict[str, Any] | None = getattr(
        scaler, "scalers_", getattr(scaler, "maps", None)
    )
    if targets is not None and scaler.by is not None:
        msg = (
            "Several targets of a long table are recalibrated in memory. Collect it, "
            "or make it wide."
        )
        raise InvalidInputError(msg)
    return targets


def _wide_columns(
    lazy: Frame,
    targets: dict[str, Any],
    uncertainty: Any,
    features: list[str] | None,
) -> dict[str, tuple[str | None, list[str] | None]]:
    """Return the columns of each target: its uncertainty, and the features of all."""
    if uncertainty is None:
        _, _, n_columns, fitted = _learned(next(iter(targets.values())))
        if fitted is not None:
            return dict.fromkeys(targets, (None, features))
        # as in `fit`: uncertainties come first
        known = list(lazy.collect_schema())
        uncertainty = known[: len(targets)]
        rest = known[len(targets) : len(targets) + n_columns - 1]
        features = rest if features is None else features
    if isinstance(uncertainty, str) or len(uncertainty) != len(targets):
        msg = (
            f"`uncertainty` must be a list of {len(targets)} columns, one for each "
            f"target: {', '.join(targets)}; found {uncertainty!r}."
        )
        raise InvalidInputError(msg)
    return {
        target: (each, features)
        for target, each in zip(targets, uncertainty, strict=True)
    }


def with_prediction(
    lazy: Frame, root: Node, names: Sequence[str], smallest: float, new: str
) -> Frame:
    """Return the frame with the values of a map as a new column.

    `names` are those of the columns that it reads, the uncertainty first.
    """
    if lazy.implementation.is_polars():
        return with_column(lazy, new, root, names, smallest)
    schema = lazy.collect_schema()
    given = number(schema, names[0])
    u = nw.when(given == 0).then(nw.lit(smallest)).otherwise(given)
    u = u.clip(SMALLEST, LARGEST)
    expressions = Expressions(schema, names, u)
    value = expressions.of(root)
    usable = is_finite(given) & (given >= 0)
    for x in expressions.needed.values():
        usable = usable & is_finite(x)
    return lazy.with_columns(nw.when(usable).then(value).alias(new))


def _learned(scaler: Any) -> tuple[Node, float, int, tuple[str, ...] | None]:
    """Return the map, the smallest uncertainty, and the columns that were fitted."""
    if hasattr(scaler, "root"):  # what a file says of a recalibrator
        names = scaler.names if scaler.named else None
        return scaler.root, scaler.smallest_uncertainty, len(scaler.names), names
    if not hasattr(scaler, "map_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(scaler)  # says so
    fitted = getattr(scaler, "feature_names_in_", None)
    names = None if fitted is None else tuple(str(each) for each in fitted)
    return scaler.map_, scaler.min_uncertainty_, int(scaler.n_features_in_), names


def _names(
    known: list[str],
    n_columns: int,
    fitted: tuple[str, ...] | None,
    uncertainty: str | None,
    features: list[str] | None,
) -> list[str]:
    """Return the columns of the frame that the map reads, in the order of `fit`."""
    names = known[:n_columns] if fitted is None else list(fitted)
    if uncertainty is not None:
        names = [uncertainty, *names[1:]]
    if features is not None:
        names = [*names[:1], *features]
    missing = [each for each in names if each not in known]
    if missing or len(names) != n_columns:
        wanted = f"{n_columns} column(s)" if not missing else ", ".join(missing)
        msg = (
            f"`frame` must have the columns that the recalibrator was fitted on: "
            f"{wanted} not found. Its columns are: {', '.join(known)}. Pass "
            "`uncertainty` and `features` if they have other names."
        )
        raise InvalidInputError(msg)
    return names
