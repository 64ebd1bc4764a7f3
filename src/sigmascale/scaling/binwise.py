"""One factor per bin: bin-wise variance scaling."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints, check_choice, check_count
from .._support.citations import FRENKEL, SCORES
from .._support.notices import warn
from ..bins.partitions import Cells, EqualSizeBins
from ..bins.sums import nll_from
from ..exceptions import DegenerateFitWarning, InvalidInputError, ThinBinsWarning
from ..maps import UNCERTAINTY, Code, Column, Lookup, Node, scaled
from ..predictions import Columns, Predictions, fitted_names
from .base import VarianceScaler
from .losses import LOSSES, ScaledLoss, minimise
from .summaries import Summaries
from .updating import KeptSums

Key = int | str

LEAST_ROWS = 30  # fewer do not determine a factor; larger bins are left alone


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
    least_rows : int, default 30
        A bin with fewer rows is filled up to this number by rows of the average <Z²>,
        with a warning where bins do not even have half of it: a factor from a handful
        of rows is mostly noise. 0 gives every bin its own factor.
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
        Summary of the calibration set, to which `update` adds.
    loss_, start_loss_ : float
        The loss of the factors on the calibration set, and that of the closed solution
        for "nll"; the latter is kept if nothing better is found.

    Notes
    -----
    A bin of n < m = `least_rows` rows gets the factor sqrt(<Z²>') with <Z²>' =
    (n <Z²> + (m − n) <Z²>_all) / m. With errors from N(0, 1.5 u) of lognormal u, 40
    bins and 200 sets of each size, <Z²> of new rows is, in the mean over the sets:

    ====  ===============  ================
    rows  `least_rows` 0   `least_rows` 30
    ====  ===============  ================
    100   5.85             1.02
    200   1.66             1.02
    400   1.26             1.03
    ====  ===============  ================

    ``benchmarks/small_sets.py`` makes this table, for other laws of u as well.

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
        by: Key | tuple[Key, Key] = 0,
        loss: str = "nll",
        least_rows: int = LEAST_ROWS,
        max_evaluations: int = 15_000,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.by = by
        self.loss = loss
        self.least_rows = least_rows
        self.max_evaluations = max_evaluations
        self.random_state = random_state

    does = "uncertainties are multiplied by a factor for their bin"
    references = (FRENKEL, SCORES)

    def _learn_from_sums(self, data: Summaries) -> Node:
        check_choice(self.loss, "loss", LOSSES)
        positions, n_bins = self._plan(data)
        self.partition_: EqualSizeBins | Cells
        if len(positions) == 2:
            both = (positions[0], positions[1]), (n_bins[0], n_bins[1])
            self.partition_, self.sums_ = data.by_cells(*both)
        else:
            self.partition_, self.sums_ = data.by_bins(positions[0], n_bins[0])
        self.factors_ = self._filled_up()
        z2 = self.sums_.z2 / self.factors_**2
        log_u2 = self.sums_.log_u2 + 2 * self.sums_.n * np.log(self.factors_)
        mean = (z2.sum() + log_u2.sum()) / self.sums_.n.sum()
        self.loss_ = self.start_loss_ = float(nll_from(mean))
        if self.loss != "nll":
            rows = data.rows_for(f'loss="{self.loss}"')
            columns = [rows.numbers(position) for position in positions]
            if not isinstance(self.partition_, Cells):
                columns.append(rows.uncertainty)  # by which ties are told apart
            self._optimise(rows, self.partition_.codes(*columns))
        return scaled(self._lookup(positions))

    @property
    def _needs_rows(self) -> bool:
        """Whether sums do not do: they give the log-likelihood alone."""
        return self.loss != "nll"

    @property
    def is_updatable(self) -> bool:
        """Whether `update` and `merge` can go on from a fit: for "nll" alone."""
        return super().is_updatable and self.loss == "nll"

    def _why_not_updatable(self) -> str:
        if self.loss != "nll":
            return f'loss="{self.loss}" is minimised over all rows, not their sums'
        return super()._why_not_updatable()

    def _kept(self) -> KeptSums:
        positions, _ = self._plan(Columns(fitted_names(self)))
        return KeptSums(self.partition_, tuple(positions), self.sums_)

    def _filled_up(self) -> Floats:
        """Return the factors, those of thin bins shrunk towards the average one."""
        least = check_count(self.least_rows, "least_rows", least=0)
        factors, n = self.sums_.scaling_factors(), self.sums_.n
        rows, bins = int(n.sum()), n.size
        if rows < least / 2 * bins:
            warn(
                f"{rows} rows in {bins} bins are fewer than {least / 2:g} a bin: the "
                "average factor outweighs that of a bin's own rows. Use at most "
                f"{max(1, rows // least)} bins, or least_rows=0 to give every bin its "
                "own factor.",
                ThinBinsWarning,
                stacklevel=5,
            )
        average = self.sums_.total.zms[0] or 1.0
        missing = np.maximum(0, least - n)
        # the sum of z² of a bin that says nothing is that of as many average rows
        filled = np.sqrt((n * factors**2 + missing * average) / max(1, least))
        return np.where(missing > 0, filled, factors)

    def _lookup(self, positions: list[int]) -> Lookup:
        """Return the factor of a row's bin, as a part of the map."""
        columns = [UNCERTAINTY if p == 0 else Column(p) for p in positions]
        average = float(np.sqrt(self.sums_.total.zms[0] or 1.0))
        if isinstance(self.partition_, Cells):
            bins = (self.partition_.first, self.partition_.second)
            codes = tuple(Code(x, each) for x, each in zip(columns, bins, strict=True))
            table = self.factors_.reshape([each.n_bins for each in bins])
        else:
            ties = None if self.partition_.tie_limits is None else UNCERTAINTY
            codes = (Code(columns[0], self.partition_, ties),)
            table = self.factors_
        # before the first bin there is a place for what is missing
        first = [(1, 0)] * table.ndim
        return Lookup(codes, np.pad(table, first, constant_values=average))

    def _learned_words(self) -> str:
        low, high = self.factors_.min(), self.factors_.max()
        return (
            f"The factors of {self.factors_.size} bins lie between {low:.3g} and "
            f"{high:.3g}."
        )

    def _optimise(self, rows: Predictions, codes: Ints) -> None:
        """Replace the factors by those that minimise another loss."""
        features = [rows.variable(i) for i in range(1, len(rows.columns))]
        if self.loss == "adaptivity" and not features:
            msg = (
                'loss="adaptivity" needs features: X has 1 feature(s), '
                'the uncertainty. Add columns, or use loss="consistency".'
            )
            raise InvalidInputError(msg)
        # cells without rows keep the average factor: no loss would hold them
        filled = self.sums_.n > 0
        loss = ScaledLoss(
            rows.errors,
            rows.uncertainty,
            (np.cumsum(filled) - 1)[codes],
            int(np.count_nonzero(filled)),
            [] if self.loss == "consistency" else features,
            by_uncertainty=self.loss != "adaptivity",
            weights=rows.weights,
        )
        found = minimise(
            loss,
            np.log(self.factors_[filled]),
            seed=check_count(self.random_state, "random_state", least=0),
            max_evaluations=check_count(self.max_evaluations, "max_evaluations"),
        )
        if not np.isfinite(found.start_loss):
            warn(
                f'loss="{self.loss}" is infinite because all errors of a score bin are '
                'exactly 0; the factors are those of loss="nll".',
                DegenerateFitWarning,
                stacklevel=4,
            )
        self.factors_[filled] = np.exp(found.x)
        self.loss_, self.start_loss_ = found.loss, found.start_loss

    def _plan(self, data: Summaries | Columns) -> tuple[list[int], list[int]]:
        """Return the positions of the columns to be binned, and their bins' number."""
        keys = self.by if isinstance(self.by, (tuple, list)) else (self.by,)
        if len(keys) not in (1, 2):
            msg = f"`by` must be a column or a pair of columns; found {self.by!r}."
            raise InvalidInputError(msg)
        positions = [data.position(key) for key in keys]
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
