"""A recalibrator from the options of `fit`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ..exceptions import InvalidInputError
from ..scaling.registry import methods, scaler_of

if TYPE_CHECKING:
    from ..roles import Roles
    from ..scaling import VarianceScaler

AUTO, NONE, COMPONENT = "auto", "none", "component"
BINS_OF_CELLS = 10  # of each of two columns; a class has its own number for one
PARAMETERS = {
    "--bins": "n_bins",
    "--by": "by",
    "--loss": "loss",
}


def make_scaler(
    method: str,
    roles: Roles,
    *,
    bins: int | None = None,
    by: list[str] | None = None,
    loss: str | None = None,
    seed: int = 0,
) -> VarianceScaler:
    """Return the recalibrator that the options describe, not fitted.

    Options are parameters of its class; those that it does not have are refused.
    """
    parameters = parameters_of(method)
    given = {
        "--bins": bins,
        "--by": by or None,
        "--loss": loss,
    }
    for option, value in given.items():
        if value is not None and PARAMETERS[option] not in parameters:
            _refuse_option(option, method)
    options: dict[str, Any] = {
        PARAMETERS[option]: value for option, value in given.items() if value
    }
    if "by" in parameters:
        columns = _labels(method, by, roles) if takes_labels(method) else by or []
        options |= _binned_by(columns, bins)
    if method == COMPONENT and not roles.components:
        msg = (
            f"--method {COMPONENT} needs several columns of uncertainties: repeat "
            "--uncertainty, or --variance, for each."
        )
        raise InvalidInputError(msg)
    if "components" in parameters:
        options["components"] = list(roles.components) or None
    if "random_state" in parameters:
        options["random_state"] = seed
    return scaler_of(method)(**options)


def parameters_of(method: str) -> set[str]:
    """Return the names of the parameters that the class of a method has."""
    return set(inspect.signature(scaler_of(method)).parameters)


def takes_labels(method: str) -> bool:
    """Return whether a method sorts rows by labels: it sorts them, but has no bins."""
    parameters = parameters_of(method)
    return "by" in parameters and "n_bins" not in parameters


def _refuse_option(option: str, method: str) -> None:
    having = [m for m in methods() if PARAMETERS[option] in parameters_of(m)]
    only = " or ".join(f"--method {each}" for each in having)
    msg = f"{option} is for {only}; here the method is {method}."
    raise InvalidInputError(msg)


def _labels(method: str, by: list[str] | None, roles: Roles) -> list[str]:
    """Return the column of labels that a method sorts rows by."""
    derived = ["OxNy"] if roles.formula is not None else []
    columns = by or list(roles.labels) or derived
    if len(columns) != 1:
        found = f"; found {', '.join(columns)}" if columns else ""
        msg = f"--method {method} needs one column of labels: --label COLUMN{found}."
        raise InvalidInputError(msg)
    return columns


def _binned_by(columns: list[str], bins: int | None) -> dict[str, Any]:
    """Return the parameters for bins of one column, or for cells of two."""
    if len(columns) > 2:
        msg = f"--by takes one column, or two for cells; found {', '.join(columns)}."
        raise InvalidInputError(msg)
    if len(columns) == 2:
        return {"by": tuple(columns), "n_bins": bins or BINS_OF_CELLS}
    return {"by": columns[0]} if columns else {}
