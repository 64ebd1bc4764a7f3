"""Sums, means and differences of predictions, whose errors are correlated in groups.

Of rows with coefficients c, standard uncertainties u and groups g,

    u² = (1 − ρ) Σ (c u)² + ρ Σ_g (Σ c u)²

is the uncertainty of Σ c y if z-scores of two rows of a group have the correlation ρ
and all others none. ρ = 0 is a sum in quadrature, ρ = 1 adds uncertainties up. By the
method of moments,

    ρ = Σ_g [(Σ z)² − Σ z²] / Σ_g [n (n − 1)],

with z scaled to a mean square of 1, which is what the square of a sum needs: no
likelihood, and no normal errors. Its limits come of drawing groups again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, sparse
from scipy.sparse import csgraph

from .._support import numerals
from .._support.checks import (
    Floats,
    Ints,
    as_frame,
    check_fraction,
    check_numbers,
    is_real,
    need,
)
from .._support.notices import warn
from .._support.numerals import factor, lower, upper
from .._support.render import Cells, Result
from .._support.text import quoted
from .._support.weighting import pair_products
from ..exceptions import FewRowsWarning, InvalidInputError
from .predictions import Predictions, check_predictions

# Below 30 groups, limits of ρ hold in 0.73 to 0.87 of simulated sets in place of 0.95
# (12 groups, normal and t(4), equal and unequal scales); from 50 on in 0.83 to 0.99.
FEW_GROUPS = 30
MANY_GROUPS = 2000  # whose estimate is normal
N_DRAWS = 1000  # of groups with replacement: limits move by 0.01 from draw to draw
N_FITS = 200  # of totals drawn again, each of which is a fit
LEAST_VARIANCE = 1e-4  # of that in quadrature: what ρ = 1 would cancel to 0


@dataclass(frozen=True, repr=False)
class GroupCorrelation(Result):
    """The correlation of z-scores within groups, with limits.

    Attributes
    ----------
    rho, low, high : float
        The estimate and its limits, from 0 to 1.
    factor : float
        What uncertainties of single rows are multiplied by, too: not 1 where both were
        learned from totals alone.
    n_groups : int
        Groups, or independent totals, that it was learned from.
    confidence : float
        Of the limits.
    """

    rho: float
    low: float
    high: float
    factor: float
    n_groups: int
    confidence: float

    @classmethod
    def of(
        cls,
        rho: float,
        low: float,
        high: float,
        factor: float,
        n_groups: float,
        confidence: float,
    ) -> GroupCorrelation:
        """Return what a file holds, if it is a correlation."""
        is_right = 0 <= low <= rho <= high <= 1 and factor > 0 <= n_groups
        need(is_right, "group_correlation", "lie between its limits", rho)
        return cls(rho, low, high, factor, int(n_groups), confidence)

    def _cells(self) -> Cells:
        head = f"estimate [{numerals.level(self.confidence)} limits]"
        rows = [
            (
                f"correlation of z within {self.n_groups:,} groups",
                numerals.interval(self.rho, self.low, self.high),
            )
        ]
        if self.factor != 1:
            rows.append(("factor of u", numerals.factor(self.factor)))
        return ("", head), rows


def group_correlation(
    p: Predictions,
    C: Any = None,
    *,
    y_true: Any = None,
    error: Any = None,
    confidence: float = 0.95,
    rng: int = 0,
) -> GroupCorrelation:
    """Return the correlation of z-scores within groups; 0 if they are independent.

    Parameters
    ----------
    p : Predictions
        Rows with groups and known errors that no fit has seen, such as
        ``r.out_of_fold_``. With `C`, errors of single rows are not needed.
    C : as in :meth:`Predictions.combined`, optional
        Combinations of which the errors are known while those of rows are not, such as
        reactions of molecules: ρ and one factor of u are then learned from these, by
        the likelihood of normal totals that are taken as independent.
    y_true, error : array-like of shape (m,), optional
        The true values of the combinations, or their errors.
    confidence : float, default 0.95
        Of the limits.
    rng : int, default 0
        The seed of the groups that are drawn again.

    Returns
    -------
    GroupCorrelation

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(200), 5)
    >>> z = np.sqrt(0.3) * rng.normal(size=200)[groups] + np.sqrt(0.7) * rng.normal(
    ...     size=1000
    ... )
    >>> p = ss.Predictions(y_std=np.ones(1000), error=z, groups=groups)
    >>> round(ss.scores.group_correlation(p).rho, 2)
    0.29
    """
    p = check_predictions(p, errors=C is None)
    confidence = check_fraction(confidence, "confidence")
    if p.groups is None:
        msg = (
            "`groups` must be given to learn a correlation within them: pass "
            "Predictions(..., groups=...), or rho=0 for a sum in quadrature."
        )
        raise InvalidInputError(msg, "no-groups")
    generator = np.random.default_rng(rng)
    if C is not None:
        return _of_totals(p, C, y_true, error, confidence, generator)

    return correlation_of(p.errors, p.y_std, p.groups, p.weights, confidence, generator)


def correlation_of(
    error: Floats,
    u: Floats,
    groups: Ints,
    weights: Floats | None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> GroupCorrelation:
    """Return the correlation within groups of what is known to be right."""
    # sums of z in each group, with mean square 1; of vectors, of each component
    z = error.reshape(u.size, -1).T / u  # z[component, row]
    w = np.ones(u.size) if weights is None else weights
    mean_square = float((w * z**2).sum() / (w.sum() * len(z)))
    if not mean_square:
        msg = "All errors are 0, so that nothing is known of their correlation."
        raise InvalidInputError(msg, "no-errors")
    of_components = [pair_products(x, groups, weights) for x in z]
    pairs = of_components[0][1]
    products = np.sum([of_one for of_one, _ in of_components], axis=0)
    products = products / (mean_square * len(z))
    has_pairs = np.bincount(groups) > 1
    if not has_pairs.any():
        msg = (
            "`groups` must have more than one row: of single rows nothing is known of "
            "a correlation. Pass rho=0 for a sum in quadrature."
        )
        raise InvalidInputError(msg, "no-groups")

    # ρ, and what it would be in groups drawn again; of many, by their variance
    products, pairs = products[has_pairs], pairs[has_pairs]
    rho = float(products.sum() / pairs.sum())
    generator = np.random.default_rng(0) if rng is None else rng
    n_groups = len(pairs)
    if n_groups > MANY_GROUPS:
        noise = np.sqrt(((products - rho * pairs) ** 2).sum()) / pairs.sum()
        drawn = rho + noise * generator.normal(size=N_DRAWS)
    else:
        share = np.full(n_groups, 1 / n_groups)
        counts = generator.multinomial(n_groups, share, N_DRAWS)
        drawn = (counts @ products) / (counts @ pairs)
    return _limited(rho, drawn, 1.0, n_groups, confidence)


def _limited(
    rho: float, drawn: Floats, factor: float, n_groups: int, confidence: float
) -> GroupCorrelation:
    """Return an estimate with limits of what was drawn, all within 0 and 1."""
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    rho = min(max(rho, 0.0), 1.0)
    low, high = np.clip(np.quantile(drawn, tails), 0, 1)
    low, high = min(float(low), rho), max(float(high), rho)
    return GroupCorrelation(rho, low, high, factor, n_groups, confidence)


def _of_totals(
    p: Predictions,
    C: Any,
    y_true: Any,
    error: Any,
    confidence: float,
    generator: np.random.Generator,
) -> GroupCorrelation:
    """Return ρ and a factor of u by the likelihood of normal totals."""
    matrix, _ = as_matrix(C, p.n_rows)
    if (error is None) == (y_true is None):
        msg = "With `C`, pass `y_true` or `error` of the combinations; one of them."
        raise InvalidInputError(msg)
    if error is None:
        assert p.y_pred is not None
        e = check_numbers(y_true, "y_true") - matrix @ p.y_pred
    else:
        e = check_numbers(error, "error")
    if len(e) != matrix.shape[0]:
        msg = (
            f"`y_true` or `error` must have a value for each of {matrix.shape[0]} "
            f"combinations; found {len(e)}."
        )
        raise InvalidInputError(msg)
    squares = np.atleast_2d(e.T**2).mean(axis=0)
    quadrature, together = _variances(matrix, p.y_std, p.groups)

    def fitted(rows: Ints) -> tuple[float, float]:
        """Return ρ and the factor that maximise the likelihood of some totals."""

        def loss(rho: float) -> float:
            v = _between(quadrature[rows], together[rows], rho)
            # the factor of the largest likelihood for this ρ is the RMS of e / √v
            return float(np.log(v).mean() + np.log((squares[rows] / v).mean()))

        rho = optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded").x
        v = _between(quadrature[rows], together[rows], rho)
        return float(rho), float(np.sqrt((squares[rows] / v).mean()))

    n_totals = matrix.shape[0]
    rho, factor = fitted(np.arange(n_totals))
    draws = generator.integers(0, n_totals, (N_FITS, n_totals))
    drawn = np.array([fitted(rows)[0] for rows in draws])
    return _limited(rho, drawn, factor, n_totals, confidence)


def _variances(matrix: Any, u: Floats, groups: Ints | None) -> tuple[Floats, Floats]:
    """Return the variances of combinations for ρ = 0 and ρ = 1."""
    scaled = matrix.multiply(u[None, :]).tocsr()
    quadrature = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
    if groups is None:
        return quadrature, quadrature
    of_group = sparse.csr_matrix((np.ones(u.size), (np.arange(u.size), groups)))
    sums = scaled @ of_group
    return quadrature, np.asarray(sums.multiply(sums).sum(axis=1)).ravel()


def _between(quadrature: Floats, together: Floats, rho: Any) -> Floats:
    """Return the variances of combinations for a correlation between 0 and 1."""
    variance: Floats = (1 - rho) * quadrature + rho * together
    return np.maximum(variance, LEAST_VARIANCE * quadrature)


# -- combinations ----------------------------------------------------------------------


def as_matrix(C: Any, n_rows: int) -> tuple[Any, list[Any]]:
    """Return coefficients as a sparse matrix (m, n), and the names of combinations.

    `C` is a matrix, or a frame of (combination, row, coefficient), whose rows count
    from 0. Combinations of a frame come in the order in which they first appear.
    """
    is_matrix = sparse.issparse(C) or isinstance(C, (np.ndarray, list, tuple))
    frame = None if is_matrix else as_frame(C, "C")
    if frame is None:
        matrix = sparse.csr_matrix(C if sparse.issparse(C) else np.atleast_2d(C))
        names: list[Any] = list(range(matrix.shape[0]))
    else:
        if len(frame.columns) != 3:
            msg = (
                "`C` must have three columns: combination, row and coefficient, in "
                f"this order; found {len(frame.columns)}."
            )
            raise InvalidInputError(msg)
        combination, row, coefficient = (
            frame[name].to_numpy() for name in frame.columns
        )
        row_number = check_numbers(row, str(frame.columns[1])).astype(np.int64)
        is_row = (row_number == row) & (row_number >= 0) & (row_number < n_rows)
        if not is_row.all():
            first = int(np.argmin(is_row))
            msg = (
                f"`C` must name rows by number, 0 to {n_rows - 1}; row {first} of the "
                f"frame has {quoted(row[first])}."
            )
            raise InvalidInputError(msg, "no-row")
        number_of: dict[Any, int] = {}
        numbers = [number_of.setdefault(name, len(number_of)) for name in combination]
        names = list(number_of)
        values = check_numbers(coefficient, str(frame.columns[2]))
        shape = (len(names), n_rows)
        matrix = sparse.csr_matrix((values, (numbers, row_number)), shape=shape)
    if matrix.shape[1] != n_rows:
        msg = (
            f"`C` must have a column for each of {n_rows} rows; found shape "
            f"{matrix.shape}."
        )
        raise InvalidInputError(msg)
    if not np.isfinite(matrix.data).all():
        msg = "`C` must hold finite coefficients."
        raise InvalidInputError(msg)
    matrix.eliminate_zeros()
    n_terms = np.diff(matrix.indptr)
    if not n_terms.all():
        empty = names[int(np.argmin(n_terms))]
        msg = f"`C` must have a coefficient in each combination; {quoted(empty)} has 0."
        raise InvalidInputError(msg)
    return matrix, names


def matrix_by(p: Predictions, by: str, mean: bool) -> tuple[Any, list[Any]]:
    """Return a sum, or the mean, of the rows of each group or label."""
    if by == "groups" and p.groups is not None and by not in p.names:
        codes = p.groups
        names: list[Any] = list(range(int(codes.max()) + 1))
    else:
        labels = p.labels(p.position(by))
        codes = labels.codes
        names = list(labels.labels)
    used, codes = np.unique(codes, return_inverse=True)
    if None in (names[code] for code in used):
        msg = f"`{by}` must be known in every row. Drop rows where it is missing."
        raise InvalidInputError(msg, "missing-values")
    sizes = np.bincount(codes)
    coefficients = 1 / sizes[codes] if mean else np.ones(p.n_rows)
    matrix = sparse.csr_matrix((coefficients, (codes, np.arange(p.n_rows))))
    return matrix, [names[code] for code in used]


def combined(
    p: Predictions,
    matrix: Any,
    rho: float | GroupCorrelation | Predictions | None,
    y_true: Any = None,
) -> dict[str, Any]:
    """Return the arguments of the Predictions of combinations."""
    correlation = _correlation(p, rho)
    y_pred, u = p.y_pred, p.y_std
    if p.shape is not None:  # whose median is not what adds up
        y_pred, u = p.distributions.mean, p.distributions.std
    quadrature, together = _variances(matrix, u, p.groups)

    # below 30 groups the limit of ρ that makes each uncertainty larger
    at = np.full(len(quadrature), correlation.rho)
    if correlation.n_groups < FEW_GROUPS and correlation.low < correlation.high:
        at = np.where(together > quadrature, correlation.high, correlation.low)
        warn(
            f"The correlation within groups is learned from {correlation.n_groups} "
            f"groups: {factor(correlation.rho)} [{lower(correlation.low)}, "
            f"{upper(correlation.high)}]. The limit that makes u larger is used.",
            FewRowsWarning,
            stacklevel=4,
        )
    variance = _between(quadrature, together, at)
    fields: dict[str, Any] = {"y_std": correlation.factor * np.sqrt(variance)}
    if y_pred is not None:
        fields["y_pred"] = matrix @ y_pred
        if y_true is not None:
            fields["y_true"] = y_true
        elif p.error is not None:
            fields["y_true"] = matrix @ p.target
    elif p.error is not None:
        fields["error"] = matrix @ p.error

    # combinations that share rows count once: they are connected
    shared = (abs(matrix) @ abs(matrix).T).tocsr()
    n_parts, part = csgraph.connected_components(shared, directed=False)
    if n_parts < matrix.shape[0]:
        fields["groups"] = part
    return fields


def _correlation(p: Predictions, rho: Any) -> GroupCorrelation:
    """Return what is said of ρ: a number, what was learned, or rows to learn from."""
    if rho is None and p.groups is None:
        msg = (
            "`rho` must be given, or `groups`: whether errors of rows are correlated "
            "is not known. Pass rho=0 for a sum in quadrature, rho=1 to add u up, or "
            "rows with groups and known errors, such as rho=r.out_of_fold_."
        )
        raise InvalidInputError(msg, "no-groups")
    if rho is None:
        if p.error is None:
            msg = (
                "`rho` must be given where errors are not known: pass "
                "rho=r.group_correlation_ of a recalibrator that was fitted with "
                "groups, or a number from 0 (quadrature) to 1 (adding up)."
            )
            raise InvalidInputError(msg, "no-errors")
        return group_correlation(p)
    if isinstance(rho, GroupCorrelation):
        learned = rho
    elif is_real(rho) and 0 <= rho <= 1:
        learned = GroupCorrelation(float(rho), float(rho), float(rho), 1.0, 0, 1.0)
    elif isinstance(rho, Predictions):
        learned = group_correlation(rho)
    else:
        msg = (
            "`rho` must be a number from 0 to 1, Predictions with groups and known "
            f"errors, or a GroupCorrelation; found {quoted(rho)}."
        )
        raise InvalidInputError(msg)
    if learned.rho and p.groups is None:
        msg = (
            "`groups` must be given to these rows, too: the correlation is of rows of "
            "one group. Pass Predictions(..., groups=...), or rho=0."
        )
        raise InvalidInputError(msg, "no-groups")
    return learned
