"""Bin-wise factors for u and every feature at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._support.checks import Floats, Ints, check_count
from .._support.citations import RAKING
from .._support.notices import warn
from .._support.progress import track
from ..bins.partitions import EqualSizeBins, LabelBins, sum_by_code
from ..bins.sums import CellSums, with_joint_codes
from ..exceptions import InvalidInputError
from ..maps import (
    UNCERTAINTY,
    Code,
    Column,
    Constant,
    Exponential,
    Lookup,
    Node,
    Product,
    Sum,
)
from ..maps.prediction import rescale
from ..predictions import Predictions
from .base import VarianceScaler
from .crossfit import largest_counted, largest_ratio_of
from .linear import linear_law
from .summaries import Cap, RowSummaries, Summaries, coded

GRID = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 1000.0, np.inf)
N_FOLDS = 5
MAX_LABELS = 1000
TOLERANCE = 1e-10
LEAST_ROWS = 10  # of a bin
FLOOR = 0.01  # share of the mean z² that each row has at least: no factor is 0
MOST_VARIABLES = 20  # that are raked; of more, those that tell most
PSEUDO_ROWS = 20.0  # of each bin, when variables are compared
MOST_CELLS = 20_000  # that shrinkage is chosen by; the factors are learned from all


class RakedScaling(VarianceScaler):
    """Multiply uncertainties by a factor for their bin of u and of every feature.

    Factors are found by raking (iterative proportional fitting): cycle over the
    variables, multiply the variance of each bin by its current <Z²>, until no bin
    moves. At the end every bin of every variable is calibrated at once, but for the
    shrinkage of thin bins and a cap on enormous errors. It needs only the sums of z²
    over joint cells.

    Parameters
    ----------
    n_bins : int or dict of int or str to int, default 20
        Number of equal-size bins of each numeric column of X; a dict says it for some
        columns. Each label of a text column is a bin, as is a missing value.
    base : {"u", "linear"}, default "u"
        What the factors multiply: u as it is, or that of :class:`LinearScaling`, which
        is safer where some u are much too small.
    pairs : list of pairs of int or str, optional
        Pairs of columns whose joint bins get factors of their own as well.
    shrinkage : float or "auto", default "auto"
        Pseudo-rows with <Z²> = 1 that each bin gets, so that thin bins stay near a
        factor of 1. "auto" chooses their number by cross-validation.
    categorical : list of int or str, optional
        Numeric columns of X whose values are labels.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    factors_ : dict of str to array
        Factors of the uncertainty by variable, one a bin (missing or unknown first);
        a pair is named "a & b", and its array has two dimensions. Their product, with
        `scale_`, multiplies u.
    limits_ : dict of str to array
        The smallest value of the second, third, ... bin; for labels, the labels.
    shrinkage_ : dict of str to float
        Pseudo-rows of each variable; infinite where a variable is left out.
    scale_ : float
        The factor of all rows, set on rows unseen in cross-validation.
    n_iter_ : int
        Cycles until no bin moved.
    converged_ : bool
        Whether that happened.

    References
    ----------
    W. E. Deming and F. F. Stephan, Ann. Math. Statist. 11, 427 (1940),
    doi:10.1214/aoms/1177731829

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 10_000), rng.integers(0, 2, 10_000)
    >>> error = rng.normal(scale=u**2 * np.where(x == 1, 3.0, 1.0))
    >>> scaler = RakedScaling(n_bins=4).fit(np.column_stack([u, x]), error)
    >>> f = scaler.factors_["X1"]
    >>> float(round(f[2] / f[1], 1))
    2.9
    """

    def __init__(
        self,
        n_bins: int | dict[int | str, int] = 20,
        *,
        base: Literal["u", "linear"] = "u",
        pairs: list[tuple[int | str, int | str]] | None = None,
        shrinkage: float | Literal["auto"] = "auto",
        categorical: list[int | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.base = base
        self.pairs = pairs
        self.shrinkage = shrinkage
        self.categorical = categorical
        self.random_state = random_state

    does = (
        "uncertainties are multiplied by factors for their bin of u and of every "
        "feature, found by raking so that all bins are calibrated at once"
    )
    references = (RAKING,)

    @property
    def _needs_rows(self) -> bool:
        """Whether sums do not do: those of z² need another scale than u."""
        return self.base == "linear" or super()._needs_rows

    def _learn_unseen(self, rows: Predictions) -> tuple[Node, Floats]:
        return self._learn_in_folds(rows, None)

    def _learn_from_sums(self, data: Summaries) -> Node:
        cells = self._sum(data, _times_the_mean)
        return self._rake(cells, UNCERTAINTY)[0]

    def _sum(self, data: Summaries, cap: Cap) -> CellSums:
        """Return the sums of joint cells, in bins that are learned."""
        seed = check_count(self.random_state, "random_state", least=0)
        named = self.n_bins if isinstance(self.n_bins, dict) else {}
        default = 20 if isinstance(self.n_bins, dict) else self.n_bins
        numbers = {data.position(key, "n_bins"): n for key, n in named.items()}
        n_bins = [
            check_count(numbers.get(j, default), "n_bins")
            for j in range(len(data.names))
        ]
        labelled = set(data.positions(self.categorical, "categorical"))
        pairs: Any = self.pairs or []
        if not isinstance(pairs, (list, tuple)):
            msg = f"`pairs` must be a list of pairs of columns; found {pairs!r}."
            raise InvalidInputError(msg)
        self.pairs_ = [self._positions(data, pair) for pair in pairs]
        self.partitions_ = data.partitions(
            n_bins, labelled, least_rows=LEAST_ROWS, max_labels=MAX_LABELS
        )
        self.n_codes_ = [partition.n_codes for partition in self.partitions_]
        self.names_ = list(data.names)
        for first, second in self.pairs_:
            self.names_.append(f"{data.names[first]} & {data.names[second]}")
            self.n_codes_.append(self.n_codes_[first] * self.n_codes_[second])
        return data.by_joint_cells(self.partitions_, N_FOLDS, seed, cap)

    def _learn_in_folds(
        self, rows: Predictions, fold: Ints | None
    ) -> tuple[Node, Floats]:
        if self.base not in ("u", "linear"):
            msg = f'`base` must be "u" or "linear"; found {self.base!r}.'
            raise InvalidInputError(msg)
        base: Node = UNCERTAINTY
        start: Floats = rows.uncertainty
        cap: Cap = _times_the_mean
        if self.base == "linear":
            base = linear_law(RowSummaries(rows).variances(), subtract=False).map
            start = rescale(base, rows)
            most = largest_counted((rows.errors / start) ** 2, rows.weights)
            cap = partial(_always, most)
        data = RowSummaries(rows, fold, start)
        cells = self._sum(data, cap)
        fold = data.fold
        node, unseen = self._rake(cells, base)
        codes = coded(self.partitions_, data.coded_columns)
        codes = with_joint_codes(codes, self.pairs_, self.n_codes_)
        predicted = self.scale_ * start
        for k, raking in zip(unseen.folds, unseen.rakings, strict=True):
            out = np.flatnonzero(fold == k)
            f = raking.log_variance_factor(codes[out]) - raking.log_mean
            predicted[out] *= np.exp(0.5 * f)
        return node, predicted

    def _positions(self, data: Summaries, pair: Any) -> tuple[int, int]:
        positions = data.positions(pair, "pairs")
        if len(set(positions)) != 2:
            msg = f"`pairs` must hold pairs of different columns; found {pair!r}."
            raise InvalidInputError(msg)
        return positions[0], positions[1]

    def _rake(self, cells: CellSums, base: Node) -> tuple[Node, CrossRaking]:
        """Learn the factors; return the map, and the same without each of the folds."""
        cells = cells.with_pairs(self.pairs_, self.n_codes_)
        pseudo, pseudo_of_folds = self._choose(cells)
        active = active_variables(cells, self.n_codes_)
        pseudo = tuple(k if a else np.inf for k, a in zip(pseudo, active, strict=True))
        raking = rake(cells, self.n_codes_, pseudo, tolerance=TOLERANCE)
        self.n_iter_ = raking.n_sweeps
        self.converged_ = raking.change < TOLERANCE
        if not self.converged_:
            warn(
                f"Raking moved a factor by {raking.change:.1g} in its last of "
                f"{raking.n_sweeps} cycles. Use fewer bins or more shrinkage.",
                ConvergenceWarning,
                stacklevel=4,
            )
        unseen = CrossRaking(cells, self.n_codes_)
        self.scale_ = float(np.sqrt(unseen.judge(pseudo_of_folds).z2.sum()))
        self.shrinkage_ = dict(zip(self.names_, pseudo, strict=True))
        factors = [np.exp(0.5 * f) for f in raking.log_factors]
        for k, (first, second) in enumerate(self.pairs_, start=len(self.partitions_)):
            factors[k] = factors[k].reshape(self.n_codes_[first], self.n_codes_[second])
        self.factors_ = dict(zip(self.names_, factors, strict=True))
        self.limits_ = {
            name: each.labels if isinstance(each, LabelBins) else each.limits
            for name, each in zip(self.names_, self.partitions_, strict=False)
        }
        codes = [self._code(j, each) for j, each in enumerate(self.partitions_)]
        halves = [0.5 * f for f in raking.log_factors]  # of the variance's logarithm
        lookups = [
            Lookup((code,), half) for code, half in zip(codes, halves, strict=False)
        ]
        for (first, second), half in zip(
            self.pairs_, halves[len(codes) :], strict=True
        ):
            joint = codes[first], codes[second]
            shape = [code.n_codes for code in joint]
            lookups.append(Lookup(joint, half.reshape(shape)))
        joint_factor = Exponential(Sum(tuple(lookups)))
        return Product((Constant(self.scale_), joint_factor, base)), unseen

    def _code(self, position: int, partition: EqualSizeBins | LabelBins) -> Code:
        if position == 0:
            return Code(UNCERTAINTY, partition)
        labelled = isinstance(partition, LabelBins)
        return Code(Column(position, "label" if labelled else "optional"), partition)

    def _learned_words(self) -> str:
        pairs = [name for name in self.factors_ if name not in self.limits_]
        joint = f" Factors of joint bins: {', '.join(pairs)}." if pairs else ""
        return (
            "The factors of a row's bins multiply each other and an overall factor "
            f"of {self.scale_:.4g}.{joint}"
        )

    def _choose(
        self, cells: CellSums
    ) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
        """Return the pseudo-rows of each variable, and those without each fold.

        The first are best for unseen rows of all folds. Rows of a fold are judged
        with those that are best for the others, or choosing would flatter them.
        """
        p, n_folds = len(self.n_codes_), np.unique(cells.fold).size
        if self.shrinkage != "auto":
            if not _is_number(self.shrinkage) or not self.shrinkage >= 0:
                msg = (
                    '`shrinkage` must be a number of at least 0 or "auto"; found '
                    f"{self.shrinkage!r}."
                )
                raise InvalidInputError(msg)
            given = (float(self.shrinkage),) * p
            return given, [given] * n_folds
        if cells.n.size > MOST_CELLS:
            some = np.random.default_rng(0).permutation(cells.n.size)[:MOST_CELLS]
            cells = cells.rows(np.sort(some))
        unseen = CrossRaking(cells, self.n_codes_)
        if len(unseen.folds) < 2:  # nothing is unseen
            return (np.inf,) * p, [(np.inf,) * p]
        tried: dict[tuple[float, ...], UnseenSums] = {}

        def loss(pseudo: tuple[float, ...]) -> float:
            if pseudo not in tried:
                tried[pseudo] = unseen.judge([pseudo] * n_folds)
            return tried[pseudo].deviance()

        # of equals, min takes the first: the one that shrinks most
        for k in track(reversed(GRID), "raking", len(GRID)):
            loss((k,) * p)
        best = min(tried, key=loss)
        # Freedom for each variable, to be left out or to have a shrinkage of its own,
        # was tried: unseen rows seem to gain by it, and new ones lose.
        return best, [
            min(tried, key=lambda pseudo: tried[pseudo].deviance(without=fold))
            for fold in range(n_folds)
        ]


def _always(most: float, *_: float) -> float:
    """Return the same for all."""
    return most


def _times_the_mean(n_rows: float, n_nonzero: float, mean: float) -> float:
    """Return up to which z² counts, as far as sums can tell."""
    return largest_ratio_of(n_rows, n_nonzero) * mean


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Raking:
    """Factors of the variance, and how they converged.

    Attributes
    ----------
    log_factors : list of array
        Logarithm of the variance factor of each bin, by variable; their mean over rows
        is 0.
    log_mean : float
        Logarithm of the factor of all rows.
    n_sweeps : int
        Number of cycles over the variables.
    change : float
        Largest change of a log-factor in the last cycle.
    """

    log_factors: list[Floats]
    log_mean: float
    n_sweeps: int
    change: float

    def log_variance_factor(self, codes: Ints) -> Floats:
        """Return the logarithm of the variance factor of each row or cell."""
        total = np.full(codes.shape[0], self.log_mean)
        for j, factors in enumerate(self.log_factors):
            total += factors[codes[:, j]]
        return total


def rake(
    cells: CellSums,
    n_codes: Sequence[int],
    pseudo_rows: Sequence[float],
    *,
    start: Sequence[Floats] | None = None,
    tolerance: float = 1e-10,
    max_sweeps: int = 1000,
) -> Raking:
    """Cycle over the variables, multiplying each bin's variance by its current <Z²>.

    With k pseudo-rows of <Z²> = 1, a bin of n rows and sum S gets (S + k) / (n + k):
    thin bins are shrunk towards 1, and infinite k leaves a variable out. k = 0 is
    raking proper, the maximum-likelihood gamma model with log link that is additive in
    the bins; with k > 0 it is penalised, and the limit is unique. It is reached sooner
    from factors that are nearly right, which can be given as `start`.
    """
    if not cells.capped.any():  # a fold without an error says nothing
        return Raking([np.zeros(b) for b in n_codes], 0.0, 0, 0.0)
    counts = [sum_by_code(cells.codes[:, j], cells.n, b) for j, b in enumerate(n_codes)]
    n_rows = cells.n.sum()
    factors = [np.zeros(b) for b in n_codes]
    active = [j for j, k in enumerate(pseudo_rows) if np.isfinite(k)]
    # the sum of z² of a cell over the factors so far
    current = cells.capped.copy()
    if start is not None:
        for j in active:
            factors[j] = start[j].copy()
            current *= np.exp(-factors[j])[cells.codes[:, j]]
    change, n_sweeps = np.inf, 0
    while change >= tolerance and n_sweeps < max_sweeps:
        n_sweeps += 1
        change = 0.0
        for j in active:
            code, k = cells.codes[:, j], pseudo_rows[j]
            sums = sum_by_code(code, current, n_codes[j])
            level = sums.sum() / n_rows
            # of the other variables' factors alone
            sums = np.maximum(sums * np.exp(factors[j]) / level, FLOOR * counts[j])
            filled = counts[j] > 0
            new = np.zeros(n_codes[j])
            new[filled] = np.log((sums[filled] + k) / (counts[j][filled] + k))
            # the overall level lives in the mean
            new[filled] -= np.average(new[filled], weights=counts[j][filled])
            change = max(change, float(np.abs(new - factors[j]).max()))
            current *= np.exp(factors[j] - new)[code]
            factors[j] = new
    log_mean = float(np.log(current.sum() / n_rows))
    return Raking(factors, log_mean, n_sweeps, change)


class CrossRaking:
    """Raking of all folds but one, judged by the cells of that one, for each fold.

    Each raking starts where the one before it, with other shrinkage, has ended.
    """

    def __init__(self, cells: CellSums, n_codes: Sequence[int]) -> None:
        self.folds = [int(k) for k in np.unique(cells.fold)]
        self.rakings: list[Raking] = []
        self._n_rows = float(cells.n.sum())
        self._n_codes = n_codes
        if len(self.folds) > 1:
            self._parts = [
                (cells.rows(cells.fold != k), cells.rows(cells.fold == k))
                for k in self.folds
            ]
        else:  # nothing is unseen
            self._parts = [(cells, cells)]
        self._active = [active_variables(rest, n_codes) for rest, _ in self._parts]

    def judge(
        self,
        pseudo_rows: Sequence[Sequence[float]],
        *,
        tolerance: float = 1e-4,
        max_sweeps: int = 100,
    ) -> UnseenSums:
        """Rake with the pseudo-rows of each fold, and return what unseen rows say."""
        starts: list[list[Floats] | None] = [None] * len(self._parts)
        if self.rakings:
            starts = [each.log_factors for each in self.rakings]
        self.rakings = []
        found = []
        for (rest, unseen), active, start, pseudo in zip(
            self._parts, self._active, starts, pseudo_rows, strict=True
        ):
            raking = rake(
                rest,
                self._n_codes,
                [k if a else np.inf for k, a in zip(pseudo, active, strict=True)],
                start=start,
                tolerance=tolerance,
                max_sweeps=max_sweeps,
            )
            self.rakings.append(raking)
            f = raking.log_variance_factor(unseen.codes) - raking.log_mean
            weight = np.exp(-f)
            sums = (unseen.z2 @ weight, unseen.capped @ weight, unseen.n @ f)
            found.append([float(each) / self._n_rows for each in sums])
        return UnseenSums(*np.array(found).T)


@dataclass(frozen=True)
class UnseenSums:
    """What the unseen rows of each fold say, as parts of a mean over all rows.

    Attributes
    ----------
    z2, capped : array of shape (n_folds,)
        Of z² over its factor, in full and with each counted up to a cap.
    log_factor : array of shape (n_folds,)
        Of the logarithm of the factor.
    """

    z2: Floats
    capped: Floats
    log_factor: Floats

    def deviance(self, without: int | None = None) -> float:
        """Return the deviance of all folds, or of all but one."""
        folds = np.arange(self.z2.size) != without
        share = 1.0 if without is None else np.mean(folds)
        capped, log_factor = self.capped[folds].sum(), self.log_factor[folds].sum()
        return float(np.log(capped / share) + log_factor / share)


def active_variables(cells: CellSums, n_codes: Sequence[int]) -> list[bool]:
    """Return which variables are raked: of very many, those whose bins differ most."""
    if len(n_codes) <= MOST_VARIABLES:
        return [True] * len(n_codes)
    gains = np.zeros(len(n_codes))
    mean = cells.capped.sum() / cells.n.sum()
    for j, b in enumerate(n_codes):
        code = cells.codes[:, j]
        n = sum_by_code(code, cells.n, b)
        v = sum_by_code(code, cells.capped, b) / (mean or 1.0)
        log_factor = np.log((v + PSEUDO_ROWS) / (n + PSEUDO_ROWS))
        gains[j] = -np.sum(v * np.expm1(-log_factor) + n * log_factor)
    least = np.sort(gains)[-MOST_VARIABLES]
    return [bool(gain >= least) for gain in gains]
