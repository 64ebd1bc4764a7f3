"""What recalibration has changed: the paired difference of the score of whole rows."""

from __future__ import annotations

from dataclasses import dataclass

from .._support.render import Cells, Result
from ..predictions.predictions import Predictions
from ..scores.comparison import TITLES, compare
from ..scores.intervals import Estimate


@dataclass(frozen=True, repr=False)
class Change(Result):
    """The change of the CRPS of the same rows.

    Attributes
    ----------
    score : str
        "CRPS"; of vectors "energy score".
    before, after : float
        Its mean over the rows, in the unit of y.
    relative : Estimate
        The mean paired difference as a share of `before`, with its interval; below 0
        is a gain.
    n_rows, n_groups : int
        How many rows, and groups; 0 where there are none.
    fitted_share : float
        The share of the rows that the recalibrator was fitted on.
    """

    score: str
    before: float
    after: float
    relative: Estimate
    n_rows: int
    n_groups: int
    fitted_share: float

    @property
    def unit(self) -> str:
        """What is counted as independent."""
        return "groups" if self.n_groups else "rows"

    def _cells(self) -> Cells:
        x = self.relative
        cells = (self.before, self.after, x.value, x.low, x.high)
        header = ("", "before", "after", "change", "low", "high")
        return header, [(self.score, *(f"{value:.4g}" for value in cells))]


def change_of(before: Predictions, after: Predictions, confidence: float) -> Change:
    """Return the change of the score; refuse other rows."""
    compared = compare({"before": before, "after": after}, confidence=confidence)
    score = compared.main
    return Change(
        TITLES[score],
        compared.scores["before"][score],
        compared.scores["after"][score],
        compared.change("after"),
        n_rows=after.n_rows,
        n_groups=0 if after.groups is None else int(after.groups.max()) + 1,
        fitted_share=after.distributions.fitted_share,
    )
