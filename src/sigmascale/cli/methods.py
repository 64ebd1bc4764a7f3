"""A recalibrator from the options of `fit`, or from the file that it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..exceptions import InvalidInputError
from .options import Loss, Method

if TYPE_CHECKING:
    from ..scaling import VarianceScaler
    from .tables.columns import Columns

# bins of one column, of each of two, and of each column that is raked
DEFAULT_BINS, DEFAULT_CELLS, DEFAULT_RAKED = 40, 10, 20


def make_scaler(
    method: Method,
    known: Columns,
    *,
    bins: int | None = None,
    by: list[str] | None = None,
    loss: Loss = Loss.nll,
    seed: int = 0,
) -> VarianceScaler:
    """Return the recalibrator that the options describe, not fitted."""
    from .. import scaling

    for option, given, methods in (
        ("--bins", bins is not None, (Method.binwise, Method.raked)),
        ("--by", bool(by), (Method.binwise, Method.group)),
        ("--loss", loss != Loss.nll, (Method.binwise,)),
    ):
        if given and method not in methods:
            only = " or ".join(f"--method {each.value}" for each in methods)
            msg = f"{option} is for {only}; here the method is {method.value}."
            raise InvalidInputError(msg)
    columns = by or []
    if method == Method.group and not columns:
        columns = list(known.labels)
        if known.formula is not None:
            columns = columns or ["OxNy"]
    if len(columns) != 1 and method == Method.group:
        found = f"; found {', '.join(columns)}" if columns else ""
        msg = f"--method group needs one column of labels: --group COLUMN{found}."
        raise InvalidInputError(msg)
    if len(columns) > 2:
        msg = f"--by takes one column, or two for cells; found {', '.join(columns)}."
        raise InvalidInputError(msg)
    if method == Method.auto:
        return scaling.SelectedScaling(random_state=seed)
    if method == Method.temperature:
        return scaling.TemperatureScaling()
    if method == Method.linear:
        return scaling.LinearScaling()
    if method == Method.isotonic:
        return scaling.IsotonicScaling()
    if method == Method.group:
        return scaling.GroupScaling(by=columns[0])
    if method == Method.raked:
        return scaling.RakedScaling(bins or DEFAULT_RAKED, random_state=seed)
    if method == Method.boosted:
        return scaling.BoostedScaling(random_state=seed)
    where: str | int | tuple[str, str]
    if len(columns) == 2:
        bins, where = bins or DEFAULT_CELLS, (columns[0], columns[1])
    else:
        bins, where = bins or DEFAULT_BINS, columns[0] if columns else 0
    return scaling.BinwiseScaling(bins, by=where, loss=loss.value, random_state=seed)


def load_recalibrator(file: str) -> tuple[VarianceScaler, Columns]:
    """Return a saved recalibrator, and the columns that it needs."""
    from ..persistence import load_with_source
    from .tables.columns import Columns
    from .tables.loading import about

    scaler, source = load_with_source(file)
    with about(file):
        return scaler, Columns.from_dict(source)
