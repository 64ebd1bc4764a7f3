"""A monotonic law for the variance."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints, check_nonnegative
from .._support.citations import BUSK
from ..maps import UNCERTAINTY, Interpolation, Node, Product, Root
from .base import VarianceScaler
from .linear import scored_law
from .summaries import Levels, Summaries

PSEUDO_ROWS = 12.0  # rows of the linear law that every step gets: thin steps follow it
LAW_POINTS = 500  # means that the linear law is fitted to: it has but two parameters


class IsotonicScaling(VarianceScaler):
    """Replace u² by the isotonic (non-decreasing) fit of the squared errors.

    The fit alone gives its first steps, often of one or two rows, whatever variance
    these rows happen to have, and new rows there can have enormous z-scores. Every step
    is therefore shrunk towards the law of :class:`LinearScaling`, as if it had more
    rows that follow that law.

    Parameters
    ----------
    pseudo_rows : float, default 12
        How many rows of the linear law each step gets. 0 is the isotonic fit alone, in
        which steps of only zero errors are raised to the next one.

    Attributes
    ----------
    variances_in_, variances_out_ : array of shape (n_knots,)
        The fitted step function, u² to variance; linear in between and constant
        outside.

    Notes
    -----
    A step of n rows with the mean squared error m, at whose rows the linear law has the
    mean variance l, gets (n m + k l) / (n + k), with k pseudo-rows. Steps that are then
    out of order are pooled again.

    With errors from N(0, 1.5 u) and 200 sets of 200 rows to learn from, <Z²> of new
    rows is, in the mean over the sets and in the worst of them:

    =========  ============  ============
    u          k = 0         k = 12
    =========  ============  ============
    lognormal  4.57 (531)    1.08 (1.41)
    uniform    1.54 (34.7)   1.08 (1.44)
    gamma      1.85 (99.2)   1.10 (1.38)
    =========  ============  ============

    ``benchmarks/small_sets.py`` makes this table.

    References
    ----------
    J. Busk et al., Mach. Learn.: Sci. Technol. 3, 015012 (2022),
    doi:10.1088/2632-2153/ac3eb3

    Examples
    --------
    >>> u, error = [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 3.0]
    >>> IsotonicScaling(pseudo_rows=0).fit(u, error).predict([1.0, 4.0]).round(2)
    array([1.58, 3.  ])
    >>> IsotonicScaling().fit(u, error).predict([1.0, 4.0]).round(2)
    array([1.86, 2.81])
    """

    def __init__(self, *, pseudo_rows: float = PSEUDO_ROWS) -> None:
        self.pseudo_rows = pseudo_rows

    does = "every u² is replaced by an isotonic fit of the squared errors"
    references = (BUSK,)

    def _learn_from_sums(self, data: Summaries) -> Node:
        from sklearn.isotonic import isotonic_regression

        k = check_nonnegative(self.pseudo_rows, "pseudo_rows")
        # not by IsotonicRegression, which takes u² less than 1e-15 apart for equal,
        # whatever their unit
        levels = data.levels()
        out = isotonic_regression(levels.e2, sample_weight=levels.n)
        if k:
            out = _shrink(out, levels, k)
        change = np.diff(out) != 0
        first, last = np.append(True, change), np.append(change, True)
        ends = np.concatenate([levels.low[first], levels.high[last]])
        self.variances_in_, which = np.unique(ends, return_index=True)
        steps = np.concatenate([out[first], out[last]])[which]
        self.variances_out_ = np.maximum(steps, out[out > 0].min())
        u2 = Product((UNCERTAINTY, UNCERTAINTY))
        return Root(Interpolation(u2, self.variances_in_, self.variances_out_))

    def _learned_words(self) -> str:
        return f"The fit has {self.variances_in_.size} knots."


def _shrink(out: Floats, levels: Levels, k: float) -> Floats:
    """Return the steps of an isotonic fit, shrunk towards the linear law."""
    from sklearn.isotonic import isotonic_regression

    u2 = levels.u2
    # equal shares of the rows, so that many rows take no more time than a few
    share = (np.cumsum(levels.n) - 1) * LAW_POINTS // levels.n.sum()
    slope, floor = scored_law(*_means(_runs(share), levels.n, u2, levels.e2))
    step = _runs(out)
    own, expected, n = _means(step, levels.n, out, slope * u2 + floor)
    shrunk = (n * own + k * expected) / (n + k)
    # where thin steps follow the law more than thick ones, order is to be restored
    ordered: Floats = isotonic_regression(shrunk, sample_weight=n + k)
    return ordered[step]


def _runs(values: Floats | Ints) -> Ints:
    """Return the number of the run of equal neighbours that each value belongs to."""
    number: Ints = np.cumsum(np.diff(values, prepend=values[0]) != 0)
    return number


def _means(
    code: Ints, n: Ints | Floats, first: Floats, second: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the means of two quantities over the rows of each code, and their number.

    Each value stands for n rows.
    """
    rows = np.bincount(code, n).astype(np.float64)
    sums = (np.bincount(code, n * each) for each in (first, second))
    means = [each / rows for each in sums]
    return means[0], means[1], rows
