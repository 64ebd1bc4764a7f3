"""The scorecard: all scores of one set, and what calibrated rows would score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._support.notices import quiet
from .._support.numerals import number
from .._support.render import Cells, Result
from ..paper.references import (
    Distribution,
    ReferenceScores,
    Squares,
    named_scores,
    simulate_scores,
    stream_from,
)
from ..paper.valid_bins import valid_fractions
from ..predictions.bins import Bins, bins_of, check_ties, cut
from ..predictions.predictions import Predictions, check_predictions
from .intervals import Estimate
from .losses_by_row import COVERAGES, energy_scores, is_held, normal_nll
from .scoring_rules import LocalScores

MOST_DRAWN_TARGETS = 200  # of the targets of a scorecard
DRAWN_ROWS = 5_000_000  # of them, in all draws


@dataclass(frozen=True)
class Scorecard(Result):
    """All scores of one set; ``card["S_tot"]`` and ``card.to_dict()`` name them.

    Attributes
    ----------
    n_rows, n_bins : int
        Size of the set, and the number of bins asked for.
    nll, zms : float
        Average scores.
    s, ence, uce : dict of str to float
        Local scores by variable; "u" is the uncertainty.
    crps : float
        The mean CRPS of the distributions; of vectors, the energy score.
    coverage : dict of float to float
        The share of true values within central intervals, by nominal coverage.
    valid : dict of str to Estimate
        f_v by variable: the share of bins whose 95 % interval of <Z²> holds 1, with its
        binomial interval. Intervals of bins are those of the closed form; those of the
        bootstrap are in :func:`local_statistics`. Even if all is right, f_v is 0.95
        only where errors are normal: with heavy tails intervals cover less than
        nominally, and the share to expect is that of `own_reference`.
    """

    n_rows: int
    n_bins: int
    nll: float
    zms: float
    s: dict[str, float]
    ence: dict[str, float]
    uce: dict[str, float]
    crps: float
    coverage: dict[float, float]
    valid: dict[str, Estimate]
    _judged: tuple[Predictions, dict[str, Bins]]

    @cached_property
    def reference(self) -> ReferenceScores:
        """What perfectly calibrated normal errors would score: the targets."""
        return self._simulated("normal")

    @cached_property
    def own_reference(self) -> ReferenceScores | None:
        """What z-scores of the set's own shape would score; None if all are 0."""
        return self._simulated("empirical") if self.zms > 0 else None

    def _simulated(self, distribution: Distribution) -> ReferenceScores:
        """Return the scores of simulated sets, in the same bins."""
        p, bins = self._judged
        n_draws = int(np.clip(DRAWN_ROWS // p.n_rows, 10, MOST_DRAWN_TARGETS))
        squares = Squares.of(distribution, p)
        with quiet():  # the scores themselves have said what is odd
            return simulate_scores(p, bins, squares, n_draws, stream_from(0))

    def to_dict(self) -> dict[str, float]:
        """Return every score by its name; S_ada only where there are features."""
        named = named_scores(self.nll, self.zms, self.s, self.ence, self.uce)
        named["CRPS"] = self.crps
        named |= {f"within_{100 * c:g}": share for c, share in self.coverage.items()}
        for name, fraction in self.valid.items():
            named[f"f_v_{name}"] = fraction.value
            named[f"f_v_{name}_low"] = fraction.low
            named[f"f_v_{name}_high"] = fraction.high
        return {name: float(value) for name, value in named.items()}

    def __getitem__(self, name: str) -> float:
        """Return one score by its name."""
        return self.to_dict()[name]

    def _cells(self) -> Cells:
        claimed = {f"within_{100 * c:g}": number(c, 4) for c in self.coverage}
        valid = {f"f_v_{name}": fraction for name, fraction in self.valid.items()}
        # limits of valid fractions stand next to these
        ends = {f"{name}_low" for name in valid} | {f"{name}_high" for name in valid}
        rows = []
        for name, value in self.to_dict().items():
            if name in ends:
                continue
            shown = str(valid[name]) if name in valid else number(value, 4)
            target = _target(self.reference, name)
            own_target = _target(self.own_reference, name)
            if name in claimed:
                target = own_target = claimed[name]
            rows.append((name, shown, target, own_target))
        return ("score", "value", "if right and normal", "if right, same tails"), rows


def _target(reference: ReferenceScores | None, name: str) -> str:
    """Return the mean of a simulated score and its SD from set to set."""
    if reference is None or name not in reference.draws:
        return ""
    return f"{number(reference.mean[name], 4)} ± {number(reference.sd[name], 2)}"


def scorecard(
    p: Predictions, *, n_bins: int | None = None, ties: Any = None
) -> Scorecard:
    """Return NLL, S_cal, CRPS, and S_x, ENCE_x, UCE_x, f_v_x for u and every feature.

    Scores are numbers without intervals. They are the same whether rows belong together
    or not; what such scores should be depends on it, see :func:`reference_scores`. The
    table shows, next to each score, what errors with right u would score: normal ones,
    and ones with the tails of this set (mean ± SD from set to set).

    Parameters
    ----------
    p : Predictions
        Rows with known errors, without missing features. A column of labels is scored
        by label.
    n_bins : int, optional
        Number of equal-size bins of each numeric variable. By default they have 30
        rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
        The order of ties alone can move a score as much as many a ranking's margin.

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u, mass = rng.uniform(1, 2, 10_000), rng.uniform(size=10_000)
    >>> error = rng.normal(scale=u)
    >>> p = ss.Predictions(y_std=u, error=error, features={"mass": mass})
    >>> card = ss.scores.scorecard(p)
    >>> round(card["S_mass"], 2), round(card["S_tot"], 2)
    (0.11, 0.22)
    """
    p = check_predictions(p, complete=True)
    count = bins_of(n_bins, p.n_effective)
    return scorecard_of(p, cut(p, count, ties=check_ties(ties, p)), count)


def scorecard_of(p: Predictions, bins: dict[str, Bins], n_bins: int) -> Scorecard:
    """Return the scores of checked rows from bins, of which `n_bins` were asked."""
    s = {}
    ence = {}
    uce = {}
    for name, of_variable in bins.items():
        local = LocalScores.of(p, of_variable)
        s[name] = local.s
        ence[name] = local.ence
        uce[name] = local.uce
    return Scorecard(
        n_rows=p.n_rows,
        n_bins=n_bins,
        nll=p.mean(normal_nll(p)),
        zms=p.mean(p.z2),
        s=s,
        ence=ence,
        uce=uce,
        crps=p.mean(energy_scores(p)),
        coverage={level: p.mean(is_held(p, level)) for level in COVERAGES},
        valid=valid_fractions(p, bins),
        _judged=(p, bins),
        _origin=p.origin,
    )
