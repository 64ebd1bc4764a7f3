"""A recalibrator from the options of `fit`, or from the file that it wrote."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..exceptions import DamagedFileError, InvalidInputError
from ..scaling.registry import methods, scaler_of

if TYPE_CHECKING:
    from ..persistence import SavedMap
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


@dataclass(frozen=True)
class Saved:
    """What a file says of recalibrators; one target is a table of one.

    Attributes
    ----------
    whole : SavedMap or SavedTargets
        All that it says.
    maps : dict of str to SavedMap
        What is done with the uncertainties of each target.
    roles : dict of str to Roles
        The columns that these were fitted with.
    """

    whole: Any
    maps: dict[str, SavedMap]
    roles: dict[str, Roles]

    @property
    def is_several(self) -> bool:
        """Whether these are several targets."""
        return list(self.maps) != [""]


def load_saved(file: str, *, needs_roles: bool = True) -> Saved:
    """Return what a file says of recalibrators, and the columns that they need.

    There need not be columns of files for those who do not need them.
    """
    from ..persistence import SavedTargets, load_maps
    from ..roles import Roles
    from .files import about

    whole: Any = load_maps(file)
    is_several = isinstance(whole, SavedTargets)
    maps = whole.maps if is_several else {"": whole}
    source = whole.source
    if source is None and not needs_roles:
        return Saved(whole, maps, {})
    with about(file):
        if is_several and source is not None:
            source = source.get("targets") if isinstance(source, dict) else None
            if not isinstance(source, dict) or list(source) != list(maps):
                msg = "the names of targets in the recalibrators' file are damaged."
                raise DamagedFileError(msg)
        else:
            source = {"": source}
        roles = {name: Roles.from_dict(each) for name, each in source.items()}
        for name, each in roles.items():
            if maps[name].names != (each.uncertainty, *each.features):
                msg = "the names of columns do not fit the recalibrator; it is damaged."
                raise DamagedFileError(msg)
    return Saved(whole, maps, roles)


def refuse_for_several(**options: Any) -> None:
    """Refuse options that are for one target."""
    for name, value in options.items():
        if value is not None:
            msg = (
                f"--{name.replace('_', '-')} is for one target. Name its columns "
                "without a star."
            )
            raise InvalidInputError(msg)


def refuse_file_of_several(file: str, saved: Saved) -> None:
    """Refuse a file of several targets, where there must be one."""
    if saved.is_several:
        msg = f"{file}: holds several targets; this is for a recalibrator of one."
        raise InvalidInputError(msg)


def source_of(roles: dict[str, Roles]) -> dict[str, Any]:
    """Return what is kept of the columns, by target unless there is one."""
    if list(roles) == [""]:
        return roles[""].to_dict()
    return {"targets": {name: each.to_dict() for name, each in roles.items()}}
