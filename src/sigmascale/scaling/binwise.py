"""One factor per bin: bin-wise variance scaling."""

from __future__ import annotations

import warnings

import numpy as np

from .._support.checks import Floats, Ints, Labels, check_choice, check_count
from .._support.tables import Table
from ..bins.partitions import Cells, EqualSizeBins
from ..bins.sums import BinSums
from ..exceptions import DegenerateFitWarning, InvalidInputError
from .base import VarianceScaler
from .losses import LOSSES, ScaledLoss
from .optimize import minimise

Column = int | str


class BinwiseScaling(VarianceScaler):
    """Multiply the uncertainties of each bin by the bin's own factor, sqrt(<Z²>).

    Parameters
    ----------
    n_bins : int or pair of int, default 40
        Number of equal-size bins; for two columns, of each (a pair, or one number for
        both). Fewer, with a warning, if rows or distinct values do not suffice.
    by : int, str or pair of these, default 0
        The column of X that is binned: 0 is the uncertainty and targets consistency, a
        feature targets adaptivity. A pair makes two-dimensional cells; those without
        rows take the average factor.
    loss : {"nll", "consistency", "adaptivity", "total"}, default "nll"
        What the factors minimise on the calibration set. "nll" has a closed solution;
        the others are found by optimisation from it (needs the package cma, and
        seconds): S_cal + S_u, S_cal + the sum of S_x over the features of X, and
        S_cal + S_u + that sum, with 100 score bins.
    max_evaluations : int, default 15000
        How often the loss may be evaluated.
    random_state : int, default 0
        Seed of the optimisation.

    Attributes
    ----------
    factors_ : array of shape (n_bins,)
        The factor of each bin; of a pair, row-major cells.
    partition_ : EqualSizeBins or Cells
        The limits of the bins. Equal values of a feature are told apart by u.
    sums_ : BinSums
        Summary of the calibration set.
    loss_, start_loss_ : float
        The loss of the factors on the calibration set, and that of the closed solution
        for "nll"; the latter is kept if nothing better is found.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543;
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> error = rng.normal(scale=u**2)
    >>> scaler = BinwiseScaling(n_bins=5).fit(u, error)
    >>> scaler.factors_.round(1)
    array([1.1, 1.3, 1.5, 1.7, 1.9])
    """

    def __init__(
        self,
        n_bins: int | tuple[int, int] = 40,
        *,
        by: Column | tuple[Column, Column] = 0,
        loss: str = "nll",
        max_evaluations: int = 15_000,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.by = by
        self.loss = loss
        self.max_evaluations = max_evaluations
        self.random_state = random_state

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        check_choice(self.loss, "loss", LOSSES)
        self.partition_ = self._partition(table, uncertainty)
        codes = self._codes(table, uncertainty)
        n_bins = self.partition_.n_bins
        self.sums_ = BinSums.from_codes(codes, n_bins, error, uncertainty)
        self._learn_factors()
        if self.loss != "nll":
            self._optimise(table, uncertainty, error, codes)

    def _learn_factors(self) -> None:
        """Learn the factors of the log-likelihood from the sums."""
        self.factors_ = self.sums_.scaling_factors()
        z2 = self.sums_.z2 / self.factors_**2
        log_u2 = self.sums_.log_u2 + 2 * self.sums_.n * np.log(self.factors_)
        mean = (z2.sum() + log_u2.sum()) / self.sums_.n.sum()
        self.loss_ = self.start_loss_ = float(0.5 * (mean + np.log(2 * np.pi)))

    def _optimise(
        self, table: Table, uncertainty: Floats, error: Floats, codes: Ints
    ) -> None:
        features = [table.variable(i) for i in range(1, len(table.columns))]
        if self.loss == "adaptivity" and not features:
            msg = (
                'loss="adaptivity" needs features: X has 1 feature(s), '
                'the uncertainty. Add columns, or use loss="consistency".'
            )
            raise InvalidInputError(msg)
        # cells without rows keep the average factor: no loss would hold them
        filled = self.sums_.n > 0
        loss = ScaledLoss(
            error,
            uncertainty,
            (np.cumsum(filled) - 1)[codes],
            int(np.count_nonzero(filled)),
            [] if self.loss == "consistency" else features,
            by_uncertainty=self.loss != "adaptivity",
        )
        found = minimise(
            loss,
            np.log(self.factors_[filled]),
            seed=check_count(self.random_state, "random_state", least=0),
            max_evaluations=check_count(self.max_evaluations, "max_evaluations"),
        )
        if not np.isfinite(found.start_loss):
            warnings.warn(
                f'loss="{self.loss}" is infinite because all errors of a score bin are '
                'exactly 0; the factors are those of loss="nll".',
                DegenerateFitWarning,
                stacklevel=4,
            )
        self.factors_[filled] = np.exp(found.x)
        self.loss_, self.start_loss_ = found.loss, found.start_loss

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        rescaled = self.factors_[self._codes(table, uncertainty)]
        rescaled *= uncertainty
        return rescaled

    def _partition(self, table: Table, uncertainty: Floats) -> EqualSizeBins | Cells:
        columns = self._columns(table, uncertainty)
        n_bins = self._plan(table)[1]
        if len(columns) == 2:
            return Cells.learn(columns[0], columns[1], (n_bins[0], n_bins[1]))
        if columns[0] is uncertainty:
            return EqualSizeBins.learn(uncertainty, n_bins[0])
        return EqualSizeBins.learn(columns[0], n_bins[0], ties=uncertainty)

    def _codes(self, table: Table, uncertainty: Floats) -> Ints:
        columns = self._columns(table, uncertainty)
        if isinstance(self.partition_, Cells):
            return self.partition_.codes(*columns)
        return self.partition_.codes(columns[0], uncertainty)

    def _columns(self, table: Table, uncertainty: Floats) -> list[Floats]:
        # the first column as repaired, with no zeros
        return [
            uncertainty if p == 0 else table.numbers(p) for p in self._plan(table)[0]
        ]

    def _plan(self, table: Table) -> tuple[list[int], list[int]]:
        """Return the positions of the columns to be binned, and their bins' number."""
        keys = self.by if isinstance(self.by, (tuple, list)) else (self.by,)
        if len(keys) not in (1, 2):
            msg = f"`by` must be a column or a pair of columns; found {self.by!r}."
            raise InvalidInputError(msg)
        positions = [table.position(key) for key in keys]
        if len(positions) != len(set(positions)):
            msg = f"`by` must be two different columns; found {self.by!r}."
            raise InvalidInputError(msg)
        counts = (
            self.n_bins if isinstance(self.n_bins, (tuple, list)) else [self.n_bins]
        )
        n_bins = [check_count(count, "n_bins") for count in counts]
        if not 0 < len(n_bins) <= len(positions):
            msg = (
                f"`n_bins` must be a number, or one for each of {len(positions)} "
                f"column(s) of `by`; found {self.n_bins!r}."
            )
            raise InvalidInputError(msg)
        return positions, (n_bins * 2)[: len(positions)]
