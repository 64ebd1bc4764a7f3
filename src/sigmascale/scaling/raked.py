"""Bin-wise factors for u and every feature at once."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from .._support.checks import Floats, Ints, Labels, check_count
from .._support.tables import Table
from ..bins.partitions import most_bins
from ..exceptions import InvalidInputError
from .base import VarianceScaler
from .crossfit import canonical_order, largest_ratio, make_folds
from .raking import CellSums, Raking, rake
from .trees import Columns, LabelCodes, NumberCodes

GRID = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 1000.0, np.inf)
N_FOLDS = 5
MAX_LABELS = 1000
TOLERANCE = 1e-10
LEAST_ROWS = 10  # of a bin


class RakedScaling(VarianceScaler):
    """Multiply uncertainties by a factor for their bin of u and of every feature.

    Factors are found by raking (iterative proportional fitting): cycle over the
    variables, multiply the variance of each bin by its current <Z²>, until no bin
    moves. At the end every bin of every variable is calibrated at once, but for the
    shrinkage of thin bins and a cap on enormous errors. It needs only the sums of z²
    over joint cells, see :meth:`fit_cells`.

    Parameters
    ----------
    n_bins : int or dict of int or str to int, default 20
        Number of equal-size bins of each numeric column of X; a dict says it for some
        columns. Each label of a text column is a bin, as is a missing value.
    pairs : list of pairs of int or str, optional
        Pairs of columns whose joint bins get factors of their own as well.
    shrinkage : float or "auto", default "auto"
        Pseudo-rows with <Z²> = 1 that each bin gets, so that thin bins stay near a
        factor of 1. "auto" chooses them by cross-validation, for each variable.
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
        pairs: list[tuple[int | str, int | str]] | None = None,
        shrinkage: float | Literal["auto"] = "auto",
        categorical: list[int | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.pairs = pairs
        self.shrinkage = shrinkage
        self.categorical = categorical
        self.random_state = random_state

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        seed = check_count(self.random_state, "random_state", least=0)
        self._prepare(table, uncertainty)
        values = self._values(table, uncertainty)
        order = canonical_order(tuple(values), error)
        codes = self._codes(values)[order]
        z2 = (error[order] / uncertainty[order]) ** 2
        rng = np.random.default_rng(seed)
        folds = None if groups is None else groups[order]
        fold = make_folds(z2, N_FOLDS, rng, folds)
        cap = largest_ratio(z2) * z2.mean()
        self.fit_cells(CellSums.from_rows(codes, fold, z2, cap))

    def _prepare(self, table: Table, uncertainty: Floats) -> None:
        """Learn the bins of every column, and which pairs to join."""
        wanted = self._bins_of(table)
        columns: Columns = []
        for j, x in enumerate(self._values(table, uncertainty)):
            if x.dtype.kind == "f" and j not in self.categorical_:
                n_bins = most_bins(x.size, wanted[j], LEAST_ROWS)
                columns.append(NumberCodes.learn(x, n_bins))
            else:
                columns.append(LabelCodes.learn(x, MAX_LABELS))
        self._set_bins(table, columns)

    def _bins_of(self, table: Table) -> list[int]:
        """Return how many bins each column shall have; learn which hold labels."""
        named = self.n_bins if isinstance(self.n_bins, dict) else {}
        default = 20 if isinstance(self.n_bins, dict) else self.n_bins
        numbers = {table.position(key, "n_bins"): n for key, n in named.items()}
        self.categorical_ = set(table.positions(self.categorical, "categorical"))
        return [
            check_count(numbers.get(j, default), "n_bins")
            for j in range(len(table.columns))
        ]

    def _set_bins(self, table: Table, columns: Columns) -> None:
        """Set the bins of every column, and join those of pairs."""
        self.names_ = list(table.names)
        self.columns_ = columns
        pairs: Any = self.pairs or []
        if not isinstance(pairs, (list, tuple)):
            msg = f"`pairs` must be a list of pairs of columns; found {pairs!r}."
            raise InvalidInputError(msg)
        self.pairs_ = [self._positions(table, pair) for pair in pairs]
        self.n_codes_ = [column.n_codes for column in self.columns_]
        for first, second in self.pairs_:
            self.names_.append(f"{table.names[first]} & {table.names[second]}")
            self.n_codes_.append(self.n_codes_[first] * self.n_codes_[second])

    def _positions(self, table: Table, pair: Any) -> tuple[int, int]:
        positions = table.positions(pair, "pairs")
        if len(set(positions)) != 2:
            msg = f"`pairs` must hold pairs of different columns; found {pair!r}."
            raise InvalidInputError(msg)
        return positions[0], positions[1]

    def fit_cells(self, cells: CellSums) -> RakedScaling:
        """Learn the factors from sums over joint cells and folds.

        This is all that `fit` does once rows are summed: tables of parts of the data
        add up, so that the data need not be in memory at once. The bins must be known:
        `fit` on some rows learns them.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "n_codes_")
        pseudo = self._choose(cells)
        raking = rake(cells, self.n_codes_, pseudo, tolerance=TOLERANCE)
        self.n_iter_ = raking.n_sweeps
        self.converged_ = raking.change < TOLERANCE
        if not self.converged_:
            warnings.warn(
                f"Raking moved a factor by {raking.change:.1g} in its last of "
                f"{raking.n_sweeps} cycles. Use fewer bins or more shrinkage.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.scale_ = float(np.sqrt(self._out_of_fold(cells, pseudo)[1]))
        self.log_factors_ = raking.log_factors
        self.shrinkage_ = dict(zip(self.names_, pseudo, strict=True))
        factors = [np.exp(0.5 * f) for f in raking.log_factors]
        for k, (first, second) in enumerate(self.pairs_, start=len(self.columns_)):
            factors[k] = factors[k].reshape(self.n_codes_[first], self.n_codes_[second])
        self.factors_ = dict(zip(self.names_, factors, strict=True))
        self.limits_ = {
            name: c.limits if isinstance(c, NumberCodes) else c.groups.labels
            for name, c in zip(self.names_, self.columns_, strict=False)
        }
        return self

    def _choose(self, cells: CellSums) -> tuple[float, ...]:
        """Return the pseudo-rows of each variable."""
        p = len(self.n_codes_)
        if self.shrinkage != "auto":
            if not _is_number(self.shrinkage) or not self.shrinkage >= 0:
                msg = (
                    '`shrinkage` must be a number of at least 0 or "auto"; found '
                    f"{self.shrinkage!r}."
                )
                raise InvalidInputError(msg)
            return (float(self.shrinkage),) * p
        tried: dict[tuple[float, ...], float] = {}

        def loss(pseudo: tuple[float, ...]) -> float:
            if pseudo not in tried:
                tried[pseudo] = self._out_of_fold(cells, pseudo)[0]
            return tried[pseudo]

        # of equals, min takes the first: the one that shrinks most
        best = min([(k,) * p for k in reversed(GRID)], key=loss)
        k = best[0]
        if not np.isfinite(k):
            return best
        for j in range(p):
            for other in (np.inf, 4 * k if k else 20.0, k / 4):
                best = min(best, (*best[:j], other, *best[j + 1 :]), key=loss)
        return best

    def _out_of_fold(
        self, cells: CellSums, pseudo: tuple[float, ...]
    ) -> tuple[float, float]:
        """Return the deviance of unseen rows, and their mean z² over the factors."""
        n_rows = float(cells.n.sum())
        folds = np.unique(cells.fold)
        if folds.size < 2:  # nothing is unseen
            seen = rake(cells, self.n_codes_, pseudo, tolerance=TOLERANCE)
            return 0.0, float(np.exp(seen.log_mean))
        z2 = capped = level = 0.0
        for k in folds:
            rest, unseen = cells.rows(cells.fold != k), cells.rows(cells.fold == k)
            raking = rake(rest, self.n_codes_, pseudo, tolerance=1e-4, max_sweeps=100)
            f = raking.log_variance_factor(unseen.codes) - raking.log_mean
            z2 += float(np.sum(unseen.z2 * np.exp(-f))) / n_rows
            capped += float(np.sum(unseen.capped * np.exp(-f))) / n_rows
            level += float(np.sum(unseen.n * f)) / n_rows
        return float(np.log(capped) + level), z2

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        codes = self._codes(self._values(table, uncertainty))
        log_factor = Raking(self.log_factors_, 0.0, 0, 0.0).log_variance_factor(codes)
        return self.scale_ * np.exp(0.5 * log_factor) * uncertainty

    def _values(self, table: Table, uncertainty: Floats) -> list[Any]:
        return [uncertainty, *table.features(self.categorical_)]

    def _codes(self, values: list[Any]) -> Ints:
        columns = zip(self.columns_, values, strict=True)
        codes = [column.codes(x) for column, x in columns]
        for first, second in self.pairs_:
            codes.append(codes[first] * self.n_codes_[second] + codes[second])
        return np.column_stack(codes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
