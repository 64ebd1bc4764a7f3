"""The bin study: what the number of bins of bin-wise scaling does to other rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints, check_count
from .._support.notices import quiet
from .._support.numerals import number
from .._support.progress import track
from .._support.render import Cells, Result
from ..exceptions import InvalidInputError
from ..predictions.bins import bins_of, check_ties, cut
from ..predictions.predictions import Predictions, check_predictions
from ..recalibration.scalings import BinwiseScaling, IsotonicScaling
from ..recalibration.scalings.binwise import Loss
from ..scores.scorecard import scorecard_of
from .references import Squares, simulate_scores, stream_from

NUMBERS_SHOWN = ("NLL", "S_cal", "S_u", "S_tot", "f_v_u")  # in the table
MOST_NUMBERS = 100  # 2 to 99, as in the paper


@dataclass(frozen=True, kw_only=True)
class BinStudy(Result):
    """Scores of test rows against the number of bins of bin-wise scaling.

    Attributes
    ----------
    by : str
        The column that was binned.
    n_bins : array of shape (n_points,)
        Numbers of bins.
    scores : dict of str to array of shape (n_points,)
        Each score, under the names of :func:`scorecard`, f_v and its limits included.
    target, spread : dict of str to array of shape (n_points,)
        What perfectly calibrated normal errors with the same uncertainties would score,
        and the standard deviation from set to set.
    rival : dict of str to float
        The scores of the same rows with other uncertainties: isotonic regression.
    """

    by: str
    n_bins: Ints
    scores: dict[str, Floats]
    target: dict[str, Floats]
    spread: dict[str, Floats]
    rival: dict[str, float]

    @property
    def words(self) -> str:
        """Where more bins stop helping, in a sentence or two."""
        # where S_tot is lowest, and from where it is as low but for chance
        s_tot = self.scores["S_tot"]
        lowest = int(np.argmin(s_tot))
        spread = float(self.spread["S_tot"][lowest])
        enough = int(np.argmax(s_tot <= s_tot[lowest] + spread))

        target = float(self.target["S_tot"][lowest])
        bins = f"{self.n_bins[lowest]} bins of {self.by}"
        words = f"S_tot is lowest, {number(s_tot[lowest])}, with {bins}"
        if enough != lowest:
            words += (
                f", but from {self.n_bins[enough]} bins on more of them help by less "
                f"than {number(spread, 2)}, by which perfectly calibrated sets differ"
            )
        return (
            f"{words}. Perfect ones would have {number(target)}, and the rival has "
            f"{number(self.rival['S_tot'])}. These are the test rows: they show how "
            "much the number matters, and cannot choose it."
        )

    def __str__(self) -> str:
        """Return the table and the sentence."""
        return f"{super().__str__()}\n{self.words}"

    def _columns(self) -> dict[str, Any]:
        return {"n_bins": self.n_bins, **self.scores}

    def _cells(self) -> Cells:
        names = [name for name in NUMBERS_SHOWN if name in self.scores]
        rows = [
            (f"{n}", *(number(self.scores[name][i], 4) for name in names))
            for i, n in enumerate(self.n_bins)
        ]
        rival = tuple(number(self.rival[name], 4) for name in names)
        return ("bins", *names), [*rows, ("rival", *rival)]


def bin_study(
    calibration: Predictions,
    test: Predictions,
    *,
    numbers: Iterable[int] = range(2, MOST_NUMBERS),
    by: str | int = "u",
    loss: Loss = "nll",
    prior_rows: int = 0,
    n_score_bins: int | None = None,
    ties: Any = None,
    rival: Predictions | None = None,
    n_draws: int = 100,
    rng: int | np.random.Generator | None = 0,
) -> BinStudy:
    """Return scores of test rows over numbers of bins of bin-wise scaling.

    For each number, factors are learned of the calibration rows and the test rows are
    scored: Figure 2 of the paper, for any data.

    Parameters
    ----------
    calibration, test : Predictions
        Rows with known errors and the same columns, without missing features.
    numbers : iterable of int, default 2 to 99
        Numbers of bins.
    by : str or int, default "u"
        The column of numbers that is binned.
    loss : {"nll", "consistency", "adaptivity", "total"}, default "nll"
        What factors minimise; see :class:`sigmascale.BinwiseScaling`.
    prior_rows : int, default 0
        A bin with fewer rows is filled up by rows of the average; 0 as in the paper.
    n_score_bins : int, optional
        Number of score bins of each numeric variable. By default they have 30 rows or
        more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the test rows with equal values of a variable. By default u before
        scaling, so that score bins of features stay the same.
    rival : Predictions, optional
        The test rows with other uncertainties, to compare with. By default those of
        isotonic regression.
    n_draws : int, default 100
        Number of simulated sets for each number of bins.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    BinStudy

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023)

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(4000, seed=1).predictions
    >>> halves = p.take(range(2000)), p.take(range(2000, 4000))
    >>> study = ss.scores.bin_study(*halves, numbers=(2, 8, 32), n_draws=20)
    >>> study.scores["S_u"].round(2)
    array([0.29, 0.32, 0.31])
    """
    calibration = check_predictions(calibration, complete=True)
    test = check_predictions(test, complete=True)
    n_draws = check_count(n_draws, "n_draws")
    n_bins = bins_of(n_score_bins, test.n_effective, "n_score_bins")
    order = check_ties(ties, test)
    if order is None:
        order = test.y_std
    numbers = [check_count(n, "numbers") for n in numbers]
    if not numbers or sorted(set(numbers)) != numbers:
        msg = f"`numbers` must ascend, and have one number at least; found {numbers}."
        raise InvalidInputError(msg)

    # scores of each number of bins, and those of calibrated sets in the same bins
    scores = []
    targets = []
    spreads = []
    normal = Squares("normal", test.dim)
    for n in track(numbers, "studying numbers of bins"):
        scaling = BinwiseScaling(n, by=by, prior_rows=prior_rows, loss=loss)
        with quiet():  # that bins are few, or thin, is what is studied
            scale = scaling.learn(calibration).map
        rows = test.with_y_std(scale.of_rows(test))
        bins = cut(rows, n_bins, ties=order)
        scores.append(scorecard_of(rows, bins, n_bins).to_dict())
        simulated = simulate_scores(rows, bins, normal, n_draws, stream_from(rng))
        targets.append(simulated.mean)
        spreads.append(simulated.sd)

    if rival is None:
        isotonic = IsotonicScaling().learn(calibration).map
        rival = test.with_y_std(isotonic.of_rows(test))
    bins = cut(rival, n_bins, ties=order)
    return BinStudy(
        by=test.names[test.position(by)],
        n_bins=np.array(numbers),
        scores=_columns(scores),
        target=_columns(targets),
        spread=_columns(spreads),
        rival=scorecard_of(rival, bins, n_bins).to_dict(),
        _origin=test.origin,
    )


def _columns(points: list[dict[str, float]]) -> dict[str, Floats]:
    """Return the numbers of all points by name."""
    return {name: np.array([point[name] for point in points]) for name in points[0]}
