"""Factors of cells that minimise a loss of the paper, and the search for them.

A *cell* is a bin, or a joint bin, whose rows share one factor e^s. The losses are means
of |ln <Z²>| over score bins, of which there are two kinds:

* Score bins of a feature do not depend on the factors, as ties are ordered by columns
  before scaling. <Z²> of each is a sum over cells of what they add, times e^(−2s).
  Linear programs, within a distance that is adapted, find the best factors.
* Score bins of u follow the scaled u. To move rows from bin to bin makes the loss jump
  a little, and local optima are everywhere. Linear programs are then only the start. A
  search goes on, along one factor at a time: the rows of its cell, which stay in the
  order of u, merge into the sorted rest, so that one sort serves many values. It takes
  a little worse ones, too, less and less so (simulated annealing).

Numbers depend on the rows alone: the search has a seed of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._support.checks import Bools, Floats, Ints
from ..._support.text import quoted
from ..._support.weighting import ones_if_none
from ...exceptions import InvalidInputError
from ...predictions.bins import Bins, bins_of, cut, cut_positions, rank_order
from ...predictions.ordering import canonical_order
from ...predictions.predictions import Predictions

# linear programs: how far each factor may move, in ln s, and when to stop
FIRST_RADIUS = 0.1
LEAST_RADIUS = 1e-4
MOST_PROGRAMS = 200
LEAST_GAIN = 1e-7

# the search along one factor at a time
MOVES = 4000  # of one factor each
VALUES = 8  # of a factor that are looked at in each move
STEP_SIZES = (1e-3, 0.5)  # the smallest and the largest, in ln s
FIRST_HEAT = 0.01  # by how much a taken move may be worse, on average
COOLING = 0.02  # what is left of it in the end
STEPS = 2.0**26  # in a unit of ln u: scaled u that are nearer are equal


def best_factors(
    rows: Predictions,
    codes: Ints,
    start: Floats,
    is_free: Bools,
    *,
    loss: str,
    n_score_bins: int | None,
    ties: str | int | Sequence[str | int],
) -> Floats:
    """Return logarithms of factors, one of each cell, that minimise a loss.

    Parameters
    ----------
    rows : Predictions
        Rows with known errors.
    codes : array of int, shape (n,)
        The cell of each row.
    start : array of shape (n_cells,)
        The logarithms to start from.
    is_free : array of bool, shape (n_cells,)
        Which factors are looked for; others stay, but for what all have in common.
    loss : {"consistency", "adaptivity", "total"}
        S_cal + S_u, S_cal + the sum of S_x over features, or S_cal + all of them.
    n_score_bins : int or None
        Number of score bins of numbers; None means as many as a scorecard has.
    ties : name, number, or sequence of these
        The columns that order rows with equal values of a feature.
    """
    # in an order of the data alone, as the search depends on it
    order = canonical_order(rows)
    rows = rows.take(order)
    codes = codes[order]
    minimised = FactorLoss.of(
        rows, codes, start.size, loss=loss, n_score_bins=n_score_bins, ties=ties
    )
    if not np.isfinite(minimised(start)):
        _refuse_silent("score bins of 'u'")

    factors = by_linear_programs(minimised, start, is_free)
    if minimised.scaled is None:
        return factors
    return by_annealing(minimised, minimised.scaled, factors, is_free)


@dataclass(frozen=True, eq=False)
class FactorLoss:
    """A loss of the paper as a function of the logarithms s of factors.

    Attributes
    ----------
    average : array of shape (n_cells,)
        What each cell adds to <Z²> of all rows, before it is scaled by e^(−2s).
    features : tuple of arrays of shape (n_score_bins, n_cells)
        The same of each score bin of each feature.
    scaled : ScaledUncertainties or None
        The score bins of u, if the loss has S_u.
    """

    average: Floats
    features: tuple[Floats, ...] = ()
    scaled: ScaledUncertainties | None = None

    @classmethod
    def of(
        cls,
        rows: Predictions,
        codes: Ints,
        n_cells: int,
        *,
        loss: str,
        n_score_bins: int | None,
        ties: str | int | Sequence[str | int],
    ) -> FactorLoss:
        """Return the loss of rows; refuse one that has no meaning for them."""
        n_features = len(rows.names) - 1
        if loss == "adaptivity" and not n_features:
            msg = (
                '`loss="adaptivity"` needs features to adapt to; found none. Pass '
                '`features`, or take `loss="consistency"`.'
            )
            raise InvalidInputError(msg)

        # what each cell adds to <Z²> of all rows, and of the score bins of features
        n_bins = bins_of(n_score_bins, rows.n_effective, "n_score_bins")
        weights = ones_if_none(rows.weights, rows.n_rows)
        average = np.bincount(codes, weights * rows.z2, n_cells) / weights.sum()
        features = []
        if loss != "consistency":
            order = _order_of_ties(rows, ties)
            for column in range(1, n_features + 1):
                added = _added_by_cells(rows, codes, n_cells, column, n_bins, order)
                features.append(added)

        # the score bins of u
        scaled = None
        if loss != "adaptivity":
            scaled = ScaledUncertainties.of(rows, codes, n_cells, n_bins)
        return cls(average, tuple(features), scaled)

    def residuals(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ln <Z²> of all score bins, the derivatives, and the weights.

        The loss is the weighted sum of their sizes. The score bins of u are those that
        these factors give; the derivatives take them as fixed.
        """
        blocks = [self.average[None], *self.features]
        if self.scaled is not None:
            blocks.append(self.scaled.added_by_cells(s))
        # <Z²> = Σ added, and its logarithm changes by −2 added / <Z²> with each s
        added = np.vstack(blocks) * np.exp(-2 * s)
        means = added.sum(axis=1)
        weights_of_blocks = [np.full(len(block), 1 / len(block)) for block in blocks]
        weights = np.concatenate(weights_of_blocks)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(means), -2 * added / means[:, None], weights

    def __call__(self, s: Floats) -> float:
        """Return the loss."""
        residuals, _, weights = self.residuals(s)
        return float(weights @ np.abs(residuals))

    def along(self, order: Ints, s: Floats, cell: int, values: Floats) -> Any:
        """Return the loss if one factor had other values, and ln <Z²> of all rows.

        All factors are multiplied so that <Z²> is 1, and S_cal 0: that changes no
        order.
        """
        assert self.scaled is not None
        factors_of_z2 = np.exp(-2 * s)
        change = np.exp(-2 * values) - factors_of_z2[cell]
        log_zms = np.log(self.average @ factors_of_z2 + self.average[cell] * change)
        by_bin = self.scaled.zms_along(order, s, cell, values)
        loss = _size_of_logs(by_bin, log_zms)
        for added in self.features:
            of_bins = added @ factors_of_z2
            moved = of_bins + change[:, None] * added[:, cell]
            loss += _size_of_logs(moved, log_zms)
        return loss, log_zms


def _size_of_logs(zms: Floats, log_of_all: Any) -> Any:
    """Return the mean of |ln <Z²> − that of all rows| over the last axis."""
    with np.errstate(divide="ignore"):
        return np.abs(np.log(zms) - np.asarray(log_of_all)[..., None]).mean(axis=-1)


def _order_of_ties(rows: Predictions, ties: str | int | Sequence[str | int]) -> Floats:
    """Return what orders rows with equal values of a feature: ranks by columns."""
    keys = [ties] if isinstance(ties, (str, int)) else list(ties)
    columns = [rows.columns[rows.position(key, "ties")] for key in keys]
    # as given
    _, rank = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return np.asarray(rank.ravel(), dtype=np.float64)


def _added_by_cells(
    rows: Predictions,
    codes: Ints,
    n_cells: int,
    column: int,
    n_bins: int,
    ties: Floats,
) -> Floats:
    """Return what each cell adds to <Z²> of the score bins of a feature."""
    # score bins of the rows in which the feature is known
    known = np.arange(rows.n_rows)
    if not rows.is_labelled(column):
        known = np.flatnonzero(~np.isnan(rows.columns[column]))
    known_rows = rows.take(known)
    n_bins = max(1, min(n_bins, int(known_rows.n_effective)))
    bins: Bins
    (bins,) = cut(known_rows, n_bins, by=column, ties=ties[known]).values()

    # sums of z² over the rows of each score bin that are in each cell
    weights = ones_if_none(bins.weights, bins.order.size)
    place = bins.codes * n_cells + codes[known[bins.order]]
    size = bins.sizes.size * n_cells
    sums = np.bincount(place, weights * known_rows.z2[bins.order], size)
    sums = sums.reshape(bins.sizes.size, n_cells)
    n_silent = int(np.count_nonzero(sums.sum(axis=1) == 0))
    if n_silent:
        name = quoted(rows.names[column])
        _refuse_silent(f"{n_silent} of {len(sums)} score bins of {name}")
    return np.asarray(sums / np.bincount(bins.codes, weights)[:, None])


def _refuse_silent(where: str) -> None:
    """Refuse score bins without any error: their |ln <Z²>| is infinite."""
    msg = (
        f"All errors are exactly 0 in {where}: the loss is infinite. Use fewer "
        '`n_score_bins`, or `loss="nll"`.'
    )
    raise InvalidInputError(msg)


@dataclass(frozen=True, eq=False)
class ScaledUncertainties:
    """Rows by cell and u, and the score bins that their scaled u make.

    Attributes
    ----------
    log_u, z2 : array of shape (n,)
        ln u, and z² times the weight, of rows by cell and u: an order that factors of
        cells do not change within a cell.
    cells : array of int, shape (n,)
        The cell of each row.
    starts : array of int, shape (n_cells + 1,)
        Where the rows of each cell begin.
    cuts : array of shape (n_bins + 1,)
        How many rows, or how much weight, lies before each limit of a score bin.
    weights : array of shape (n,), or None
        Weights of the rows.
    """

    log_u: Floats
    z2: Floats
    cells: Ints
    starts: Ints
    cuts: Any
    weights: Floats | None = None

    @classmethod
    def of(
        cls, rows: Predictions, codes: Ints, n_cells: int, n_bins: int
    ) -> ScaledUncertainties:
        """Return rows in that order; equal ones in an order of the data alone."""
        u = rows.y_std
        order = rank_order(u, None, rows.squared_error, u)
        order = order[np.argsort(codes[order], kind="stable")]  # whole numbers
        weights = None if rows.weights is None else rows.weights[order]
        total = rows.n_rows if weights is None else float(weights.sum())
        n_bins = max(1, min(n_bins, int(total)))
        return cls(
            log_u=np.log(u[order]),
            z2=rows.z2[order] * ones_if_none(weights, u.size),
            cells=codes[order],
            # whole numbers
            starts=np.searchsorted(codes[order], np.arange(n_cells + 1)),
            cuts=np.append(cut_positions(total, n_bins), total),
            weights=weights,
        )

    @property
    def sizes(self) -> Any:
        """How many rows, or how much weight, each score bin has."""
        return np.diff(self.cuts)

    def order(self, s: Floats) -> Ints:
        """Return the rows in the order of the scaled u."""
        # whole numbers
        return np.argsort(_steps(self.log_u + s[self.cells]), kind="stable")

    def added_by_cells(self, s: Floats) -> Floats:
        """Return what each cell adds to <Z²> of each score bin, before scaling."""
        order = self.order(s)
        ahead = self._ahead(order)
        cells = self.cells[order]
        added = np.empty((self.sizes.size, self.starts.size - 1))
        for cell in range(added.shape[1]):
            z2 = np.where(cells == cell, self.z2[order], 0.0)
            added[:, cell] = np.diff(self._up_to(self.cuts, ahead, z2)) / self.sizes
        return added

    def zms_along(self, order: Ints, s: Floats, cell: int, values: Floats) -> Floats:
        """Return <Z²> of each score bin (a column) for values of one factor (a row).

        `order` is that of the scaled u with the factors e^s.
        """
        # the rows of the cell, in the order of u, and all others, in that of scaled u
        mine = np.arange(self.starts[cell], self.starts[cell + 1])
        others = order[self.cells[order] != cell]
        s_of_others = s[self.cells[others]]
        ahead_of_mine = self._ahead(mine)
        ahead_of_others = self._ahead(others)

        # where the rows of the cell go, and what is then ahead of each
        log_u = _steps(self.log_u[mine] + values[:, None])
        log_u_of_others = _steps(self.log_u[others] + s_of_others)
        place = np.searchsorted(log_u_of_others, log_u)  # whole numbers
        before = ahead_of_others[place]
        ahead = before + ahead_of_mine[:-1]

        # what lies before each limit: of the cell's rows, of which one may be parted
        # levels
        n_before = np.array([np.searchsorted(line, self.cuts) for line in ahead])
        last = np.maximum(n_before - 1, 0)
        room = self.cuts - np.take_along_axis(before, last, axis=1)
        of_mine = np.clip(room, 0, ahead_of_mine[n_before])
        of_others = self.cuts - of_mine

        # sums of scaled z² up to each limit, and means between them
        z2_of_others = self.z2[others] * np.exp(-2 * s_of_others)
        sum_of_others = self._up_to(of_others, ahead_of_others, z2_of_others)
        sum_of_mine = self._up_to(of_mine, ahead_of_mine, self.z2[mine])
        sums = sum_of_others + np.exp(-2 * values)[:, None] * sum_of_mine
        return np.asarray(np.diff(sums, axis=1) / self.sizes)

    def _ahead(self, rows: Ints) -> Any:
        """Return how many rows, or how much weight, lies before each, and in all."""
        if self.weights is None:
            return np.arange(rows.size + 1)
        return np.append(0.0, np.cumsum(self.weights[rows]))

    def _up_to(self, amounts: Any, ahead: Any, z2: Floats) -> Floats:
        """Return sums of z² over the first rows, up to amounts of rows or weight."""
        sums = np.append(0.0, np.cumsum(z2))
        if self.weights is None:
            return np.asarray(sums[amounts])
        return np.asarray(np.interp(amounts, ahead, sums))


def _steps(logs: Floats) -> Floats:
    """Return logarithms in whole steps: what differs by rounding alone is the same."""
    return np.asarray(np.rint(logs * STEPS))


def by_linear_programs(loss: FactorLoss, start: Floats, is_free: Bools) -> Floats:
    """Return factors that linear programs, one after the other, find.

    Each minimises the sum of |r + J d| over steps d within a radius; the sizes are the
    sums of two variables, of what is above 0 and of what is below.
    """
    from scipy.optimize import linprog

    s = start.copy()
    radius = FIRST_RADIUS
    r, jacobian, weights = loss.residuals(s)
    lowest = weights @ np.abs(r)
    n_free = int(np.count_nonzero(is_free))
    # variables are d, above and below; the last two cost what they weigh
    costs = np.concatenate([np.zeros(n_free), weights, weights])
    one_each = sparse.eye_array(r.size)
    for _ in range(MOST_PROGRAMS):
        # the best step within the radius: r + J d = above − below
        j = sparse.csr_array(jacobian[:, is_free])
        equal = sparse.hstack([j, -one_each, one_each])
        within = [(-radius, radius)] * n_free + [(0.0, None)] * (2 * r.size)
        program = linprog(costs, A_eq=equal, b_eq=-r, bounds=within, method="highs")
        if program.x is None:
            break
        step = np.zeros(s.size)
        step[is_free] = program.x[:n_free]

        # it is taken if the loss, whose bins of u have moved, falls
        r_there, jacobian_there, weights_there = loss.residuals(s + step)
        loss_there = weights_there @ np.abs(r_there)
        if loss_there < lowest - LEAST_GAIN:
            s = s + step
            lowest = loss_there
            r = r_there
            jacobian = jacobian_there
            radius *= 1.5
        else:
            radius *= 0.4
        if radius < LEAST_RADIUS:
            break
    return s


def by_annealing(
    loss: FactorLoss, scaled: ScaledUncertainties, start: Floats, is_free: Bools
) -> Floats:
    """Return factors that simulated annealing finds, along one factor at a time.

    A move is taken if the loss rises by less than a random amount, of the mean `heat`.
    """
    rng = np.random.default_rng(0)
    free = np.flatnonzero(is_free)
    n_rounds = -(-MOVES // max(1, free.size))
    heats = FIRST_HEAT * np.geomspace(1, COOLING, n_rounds)
    smallest, largest = np.log(STEP_SIZES).tolist()

    best = start
    lowest = loss(start)
    s = start.copy()
    current = lowest
    order = scaled.order(s)
    for heat in heats:
        for cell in rng.permutation(free).tolist():
            # the best of a few values near that of the factor
            steps = np.exp(rng.uniform(smallest, largest, VALUES))
            values = s[cell] + steps * rng.choice([-1, 1], VALUES)
            losses, log_zms = loss.along(order, s, cell, values)
            k = int(np.argmin(losses))
            if losses[k] >= current + heat * rng.exponential():
                continue

            # the move, and all factors so that <Z²> is 1
            s[cell] = values[k]
            s += log_zms[k] / 2
            current = losses[k]
            order = scaled.order(s)
            if current < lowest:
                best = s.copy()
                lowest = current
    return best
