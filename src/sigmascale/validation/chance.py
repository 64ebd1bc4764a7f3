"""How far the estimates of all regions deviate by chance: the multiplier bootstrap.

Estimates are asymptotically linear: the deviation of a region from all rows is a sum of
influences over independent units. So the estimates of all regions are a Gaussian vector
with the covariance of these influences, which is drawn by giving each unit a normal
multiplier (Chernozhukov, Chetverikov and Kato, Ann. Stat. 41, 2786 (2013),
doi:10.1214/13-AOS1161).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.checks import Bools, Floats, Ints
from .columns import FEWEST
from .regions import Regions, cumulative

Singles = npt.NDArray[np.float32]
N_DRAWS = 600
MOST_UNITS = 4000  # that tell correlations


def critical_values(
    regions: Regions,
    influences: Mapping[int, Floats],
    families: Mapping[tuple[int, int], Bools],
    error_rate: float,
    rng: np.random.Generator,
) -> dict[tuple[int, int], float]:
    """Return how many standard errors deviations of each family reach by chance.

    All deviations of all families stay within them at once, but for the error rate,
    which families share evenly: largest deviations are taken in units of the spread
    that they have in their family, so that many regions of one column cost others
    nothing (balance: R. Beran, J. Am. Stat. Assoc. 83, 679 (1988)).

    Parameters
    ----------
    regions : Regions
        All regions.
    influences : dict of int to array of shape (n,)
        The score of each row, by question.
    families : dict of pairs of int to array of bool
        Which regions share a part of the error rate: those of a question, which is the
        first of the pair, and of one column, of trees, of pairs, or of short runs.
    error_rate : float
        The chance that any deviation is farther, on either side.
    rng : Generator
        Draws the units and their multipliers.
    """
    draws = _Draws(regions, rng)
    largest = {}
    for key, is_of_family in families.items():
        keep = np.flatnonzero(regions.is_usable & is_of_family)
        if keep.size:
            deviations = draws.deviations(influences[key[0]], keep)
            largest[key] = np.abs(deviations).max(axis=0)
    if not largest:
        return {}
    centre = {key: float(x.mean()) for key, x in largest.items()}
    spread = {key: max(float(x.std()), 1e-9) for key, x in largest.items()}
    scaled = [(x - centre[key]) / spread[key] for key, x in largest.items()]
    reached = float(np.quantile(np.max(scaled, axis=0), 1 - error_rate))
    return {key: centre[key] + spread[key] * reached for key in largest}


class _Draws:
    """Normal multipliers of some units, and sums of influences with them."""

    def __init__(self, regions: Regions, rng: np.random.Generator) -> None:
        values = regions.values
        unit = values.unit
        chosen = rng.permutation(int(unit.max()) + 1) < MOST_UNITS
        self.regions = regions
        self.rng = rng
        self.rows = np.flatnonzero(chosen[unit])
        multipliers = rng.standard_normal(
            (np.count_nonzero(chosen), N_DRAWS), dtype=np.float32
        )
        self.of_row = multipliers[(np.cumsum(chosen) - 1)[unit[self.rows]]]
        self.w = values.w[self.rows].astype(np.float32)

        # which cell of which column each of these rows has
        place = np.full(values.rows.n_rows, -1)
        place[self.rows] = np.arange(self.rows.size)
        cells = []
        rows = []
        for first, column in zip(regions.first_cell, regions.columns, strict=False):
            row = column.of_rows(place)
            cells.append(column.code[row >= 0] + first)
            rows.append(row[row >= 0])
        self.cell = np.concatenate(cells)
        self.row = np.concatenate(rows)
        self.n = regions.added(self._by_cell(np.ones_like(self.w)))
        self.weight = regions.added(self._by_cell(self.w))
        self.drawn_weight = self._drawn(self.w)
        self._of: dict[int, tuple[Floats, Floats, Singles]] = {}

    def _by_cell(self, x: Singles) -> Floats:
        """Return the cumulative sums of x by cell."""
        n_cells = int(self.regions.first_cell[-1])
        sums = np.bincount(self.cell, x[self.row], n_cells)
        return np.asarray(cumulative(sums))

    def _drawn(self, x: Singles) -> Floats:
        """Return the cumulative sums of x times multipliers, [cell, draw]."""
        shape = int(self.regions.first_cell[-1]), self.rows.size
        values = x[self.row].astype(np.float32)
        cells = sparse.csr_matrix((values, (self.cell, self.row)), shape)
        return np.asarray(cumulative(cells @ self.of_row))

    def deviations(self, score: Floats, keep: Ints) -> Floats:
        """Return drawn deviations of regions from all rows, in units of their spread.

        The influence of a row is [1_R (ψ − ⟨ψ⟩_R) / share − (ψ − ⟨ψ⟩)] w. Regions with
        few of the units are drawn as independent, which is on the safe side.
        """
        if id(score) not in self._of:
            psi = score[self.rows]
            psi = psi - np.average(psi, weights=self.w)
            psi /= max(float(np.abs(psi).max()), 1e-300)  # of any unit
            wx = (self.w * psi).astype(np.float32)
            all_rows = (wx @ self.of_row) / self.w.sum()
            self._of[id(score)] = self._by_cell(wx), self._drawn(wx), all_rows
        sums, drawn, all_rows = self._of[id(score)]

        added = self.regions.added
        weight = np.maximum(self.weight[keep], 1e-9)[:, None]
        mean = added(sums, keep)[:, None] / weight
        deviations = added(drawn, keep) - mean * added(self.drawn_weight, keep)
        deviations /= weight
        deviations -= all_rows
        spread = deviations.std(axis=1)
        few = (self.n[keep] < FEWEST) | (spread < 1e-12)
        deviations /= np.maximum(spread, 1e-12)[:, None]
        shape = (int(np.count_nonzero(few)), N_DRAWS)
        deviations[few] = self.rng.standard_normal(shape)
        return np.asarray(deviations)
