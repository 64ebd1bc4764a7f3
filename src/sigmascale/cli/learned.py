"""What `fit` learns from a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..exceptions import InvalidInputError
from .methods import make_scaler

if TYPE_CHECKING:
    from ..judging.shift import ShiftWeights
    from ..roles import Choice
    from .tables.lazy import LazyTable
    from .tables.memory import MemoryTable


@dataclass(frozen=True)
class Learned:
    """A fitted recalibrator, and what it was fitted on.

    Attributes
    ----------
    data : MemoryTable or LazyTable
        The table.
    method : str
        What the recalibrator is called on the command line.
    scaler : recalibrator
        Fitted.
    n_held_back : int or None
        Rows that were held back for intervals.
    """

    data: MemoryTable | LazyTable
    method: str
    scaler: Any
    n_held_back: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned, for machines."""
        told: dict[str, Any] = {"method": self.method}
        if self.n_held_back is not None:
            told["held_back"] = self.n_held_back
        told |= {"data": self.data.to_dict(), "words": self.scaler.describe()}
        factors = self.data.factors(self.scaler)
        told |= {"factors": factors} if factors else {}
        if self.scaler.chosen is not self.scaler:
            told["chosen"] = self.scaler.name_
            told["candidates"] = self.scaler.cv_results_
        return told


def learn(
    data: MemoryTable | LazyTable,
    method: str,
    *,
    bins: int | None = None,
    by: list[str] | None = None,
    loss: str | None = None,
    distribution: str | None = None,
    groups: str | None = None,
    conformal_share: float | None = None,
    seed: int = 0,
) -> Learned:
    """Fit the recalibrator that the options describe."""
    scaler: Any = make_scaler(
        method,
        data.roles,
        bins=bins,
        by=by,
        loss=loss,
        distribution=distribution,
        seed=seed,
    )
    if conformal_share is None:
        data.fit(scaler, groups)
        return Learned(data, method, scaler, None)
    rest, held_back = data.hold_back(conformal_share, groups, seed)
    rest.fit(scaler, groups)
    held_back.conformalize(scaler)
    return Learned(data, method, scaler, held_back.n_rows)


def weigh_for(
    data: MemoryTable | LazyTable, file: str, choice: Choice, seed: int
) -> tuple[MemoryTable, ShiftWeights]:
    """Weigh a calibration set so that it stands for the rows of another file."""
    from ..judging.shift import shift_weights
    from ..roles import Expected
    from .tables.filesets import about
    from .tables.memory import MemoryTable

    data.require_memory("--shift-to")
    table: Any = data
    if table.weights is not None:
        msg = "--shift-to finds the weights itself: pass it without --weight."
        raise InvalidInputError(msg)
    new = MemoryTable.open([file], table.reading, Expected(table.roles, choice))
    with about(file):
        found = shift_weights(table.X, new.X, random_state=seed)
    return replace(table, weights=found.weights), found


def range_in_words(factors: dict[str, float]) -> str:
    """Return what uncertainties are multiplied by, in a sentence."""
    least, low, median, high, most = (f"{value:.3g}" for value in factors.values())
    if least == most:
        return f"All uncertainties are multiplied by {median}."
    return (
        f"Uncertainties are multiplied by {least} to {most}: 90 % of them by "
        f"{low} to {high}, by {median} in the median."
    )
