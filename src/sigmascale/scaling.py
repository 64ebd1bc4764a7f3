"""Scalings: what learns the scale of errors, each in the same form of plain data.

A scaling has a method `learn`, which takes Predictions with errors and returns what was
learned as an :class:`sigmascale.additive.Additive`. One of your own needs nothing else:
:class:`sigmascale.Recalibrator` applies, saves and exports what it has learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from ._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_fraction,
    check_nonnegative,
    rounded,
)
from ._support.notices import warn
from ._support.text import quoted
from .additive import (
    Additive,
    Axis,
    Base,
    Table,
    between,
    merged,
    quantile_edges,
    trimmed,
)
from .boosting import Boosted, boost
from .exceptions import DegenerateFitWarning, FewerBinsWarning, InvalidInputError
from .folds import (
    N_FOLDS,
    canonical_order,
    largest_counted,
    largest_ratio,
    make_folds,
    mean,
    some,
)
from .predictions import Predictions

Key = int | str
CHUNK = 2**16  # rows at a time
FLOOR = 0.01  # share of the mean z² that each row has at least: no factor is 0
LABEL_PRIOR = 50.0  # rows, times the variance of z², by which factors of labels shrink


@dataclass(frozen=True, eq=False)
class Learned:
    """What a scaling has learned.

    Attributes
    ----------
    map : Additive
        The scale as a map.
    out_of_fold : array of shape (n,) or None
        The scale of each row by a fit that has not seen it, at the average of the map;
        for scalings that cross-fit anyway.
    """

    map: Additive
    out_of_fold: Floats | None = None


class Scaling(BaseEstimator):
    """What learns the scale of errors. One of your own has `learn`, and nothing else.

    Examples
    --------
    A scaling that multiplies all uncertainties by the median size of z, over 0.6745:

    >>> import numpy as np
    >>> import sigmascale as ss
    >>> from sigmascale.additive import Additive
    >>> from sigmascale.scaling import Learned
    >>> class MedianScaling(ss.Scaling):
    ...     def learn(self, rows):
    ...         return Learned(
    ...             Additive(constant=float(np.log(np.median(rows.size) / 0.6745)))
    ...         )
    >>> p = ss.datasets.make_molecules(300, seed=1).predictions
    >>> ss.Recalibrator(MedianScaling()).fit(p).predict(p).shape
    (300,)
    """

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows.

        Parameters
        ----------
        rows : Predictions
            Rows with errors, not all of which are 0. `rows.z2` are the squares of the
            z-scores, for vectors, too; `rows.columns` the uncertainty and the features.
        """
        raise NotImplementedError


# -- one factor for each bin -----------------------------------------------------------


class BinwiseScaling(Scaling):
    """Multiply the uncertainties of each bin by the bin's own factor, sqrt(<Z²>).

    Parameters
    ----------
    n_bins : int or pair of int, default 40
        Number of equal-size bins of numbers. Fewer, with a warning, if rows or distinct
        values do not suffice.
    by : "u", name of a feature, pair of these, or None, default "u"
        What is binned. The uncertainty targets consistency, a feature adaptivity. Each
        label of a category is a bin (stratified scaling); a pair makes joint cells;
        None is one bin.
    prior_rows : int, default 30
        A bin with fewer rows is filled up to this number by rows of the average <Z²>: a
        factor from a handful of rows is mostly noise. 0 gives every bin its own factor.

    Notes
    -----
    A bin of n < m = `prior_rows` rows gets the factor sqrt(<Z²>') with <Z²>' =
    (n <Z²> + (m − n) <Z²>_all) / m. A bin without rows, and what is missing or unknown,
    gets the average factor.

    Bins are cut at the smallest value of the next bin, as in the paper, and not halfway
    between values as those of other scalings are: a row at an edge whose last bits
    differ falls into the next bin. Equal values of a feature are parted by u.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543;
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u**2))
    >>> learned = ss.BinwiseScaling(5).learn(p)
    >>> np.exp(learned.map.tables[0].values[1:]).round(1)
    array([1.1, 1.3, 1.5, 1.7, 1.9])
    """

    def __init__(
        self,
        n_bins: int | tuple[int, int] = 40,
        *,
        by: Key | tuple[Key, Key] | None = "u",
        prior_rows: int = 30,
    ) -> None:
        self.n_bins = n_bins
        self.by = by
        self.prior_rows = prior_rows

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        least = check_count(self.prior_rows, "prior_rows", least=0)
        axes = self._axes(rows)
        n, z2, shape = _sums(rows, axes)
        average = z2.sum() / n.sum()
        if not axes:
            return Learned(Additive(constant=0.5 * float(np.log(average))))
        if rows.total < least / 2 * np.count_nonzero(n):
            warn(
                f"{rows.n_rows} rows in {n.size - 1} bins are fewer than {least / 2:g} "
                "a bin: the average factor outweighs that of a bin's own rows. Use at "
                f"most {max(1, int(rows.total // least))} bins, or prior_rows=0 to "
                "give every bin its own factor.",
                FewerBinsWarning,
                stacklevel=4,
            )
        # errors that are all 0 say nothing of a factor
        own = np.divide(z2, n, out=np.full(n.shape, average), where=z2 > 0)
        added = np.maximum(0, least - n)
        filled = np.full(n.shape, average)
        np.divide(n * own + added * average, n + added, out=filled, where=n > 0)
        table = Table.of(range(len(axes)), 0.5 * np.log(filled).reshape(shape))
        return Learned(Additive(axes=tuple(axes), tables=(table,)))

    def _axes(self, rows: Predictions) -> list[Axis]:
        """Return the axes of the columns to be binned."""
        keys: Any = self.by if isinstance(self.by, (tuple, list)) else (self.by,)
        keys = () if self.by is None else keys
        counts: Any = self.n_bins
        counts = counts if isinstance(counts, (tuple, list)) else [counts] * len(keys)
        columns = [rows.position(key) for key in keys]
        if len(columns) > 2 or len(set(columns)) < len(columns):
            msg = (
                "`by` must be a column, a pair of different columns, or None; found "
                f"{quoted(self.by)}."
            )
            raise InvalidInputError(msg)
        if len(counts) != len(columns):
            msg = (
                f"`n_bins` must be a number, or one for each of {len(columns)} "
                f"column(s) of `by`; found {quoted(self.n_bins)}."
            )
            raise InvalidInputError(msg)
        return [
            _equal_size_axis(rows, j, check_count(n, "n_bins"), parted=len(keys) == 1)
            for j, n in zip(columns, counts, strict=True)
        ]


class TemperatureScaling(Scaling):
    """Multiply all uncertainties by one factor, sqrt(<Z²>).

    References
    ----------
    M.-H. Laves et al., MIDL (2020), arXiv:2104.12376.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 2.0], error=[2.0, 4.0])
    >>> float(np.exp(ss.TemperatureScaling().learn(p).map.constant))
    2.0
    """

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        return Learned(Additive(constant=0.5 * float(np.log(rows.mean(rows.z2)))))


def _equal_size_axis(
    rows: Predictions, column: int, n_bins: int, *, parted: bool
) -> Axis:
    """Return equal-size bins of a column; of a feature, u parts equal values."""
    if rows.is_labelled(column):
        return Axis(column, labels=rows.labels(column).compact().labels)
    x, w, total = rows.numbers(column), rows.weights, rows.total
    n_made = max(1, min(n_bins, int(total)))
    # floor(k n / N + 1/2), in whole numbers without weights
    cuts: Any = (2 * np.arange(1, n_made) * total + n_made) // (2 * n_made)
    ties = None
    if w is None and (column == 0 or not parted):
        values = np.partition(x, cuts)[cuts] if cuts.size else x[:0]
        edges = np.unique(values)
        edges = edges[edges > x.min()]  # the first bin is open
    else:
        order = np.lexsort((rows.y_std, x))
        if w is not None:  # a cut that is the end of a row but for rounding is that
            ends = np.cumsum(w[order])
            wanted = cuts + 1e-6 * float(total)
            cuts = np.minimum(np.searchsorted(ends, wanted, side="right"), x.size - 1)
        pairs = np.column_stack([x, rows.y_std])[order]
        found, first = np.unique(pairs[cuts.astype(np.int64)], axis=0), pairs[0]
        if column == 0 or not parted:
            edges = np.unique(found[:, 0])
            edges = edges[edges > first[0]]
        else:
            found = found[(found != first).any(axis=1)]
            edges, ties = found[:, 0].copy(), found[:, 1].copy()
    if edges.size + 1 < n_bins:
        warn(
            f"{n_bins} bins of {quoted(rows.names[column])} were asked for, but its "
            f"values make {edges.size + 1}; these are used.",
            FewerBinsWarning,
            stacklevel=5,
        )
    return Axis(column, edges, ties)


def _sums(
    rows: Predictions, axes: Sequence[Axis]
) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Return the rows and the sum of z² of each joint code, and how many there are."""
    shape = tuple(axis.n_codes for axis in axes)
    sums = np.zeros((2, int(np.prod(shape))))
    rows = rows.changed(groups=None, distributions=None)
    for start in range(0, rows.n_rows, CHUNK):  # in the cache
        part = rows.take(slice(start, start + CHUNK))
        code: Any = np.zeros(part.n_rows, dtype=np.int64)
        for axis, found in zip(axes, codes_of(axes, part), strict=True):
            code = code * axis.n_codes + found
        w = np.ones(part.n_rows) if part.weights is None else part.weights
        for k, values in enumerate((w, w * part.z2)):
            sums[k] += np.bincount(code, values, sums.shape[1])
    return sums[0], sums[1], shape


def codes_of(axes: Sequence[Axis], rows: Predictions) -> list[Ints]:
    """Return the codes of each axis."""
    columns: list[Any] = list(rows.columns)
    for axis in axes:
        if axis.labels is not None:
            columns[axis.column] = rows.labels(axis.column)
    return [axis.codes(columns) for axis in axes]


# -- functions of u --------------------------------------------------------------------

SMALL = 0.05  # share of the uncertainties that count as small
LEAST_SHARE = 0.25  # of a² u², for a small u, that is left where b² is subtracted
PER_DECADE, N_NEGATIVE = 4, 24  # values of b² that are tried
MANY = 4096  # rows beyond which means of neighbours show where to look
BETTER = 1e-12  # by which a loss must be lower
CLEARLY = 2.0  # by which the log-likelihood must be higher if b² is subtracted


class LinearScaling(Scaling):
    """Rescale u to sqrt(a² u² ± b²), with a and b of maximum likelihood.

    The factor `a` mends a wrong scale, and `b` uncertainties that are too small where
    they are smallest. Where these are plainly too large, because u has a part that
    errors do not have, b² is subtracted; what is left of the smallest uncertainties is
    bounded from below. Two numbers can be learned from a few dozen rows.

    Parameters
    ----------
    subtract : bool, default True
        Whether b² may be subtracted.

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(0, 1, 20_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=np.hypot(2 * u, 0.5)))
    >>> base = ss.LinearScaling().learn(p).map.base
    >>> round(base.a, 1), round(base.b, 1)
    (2.0, 0.5)
    """

    def __init__(self, *, subtract: bool = True) -> None:
        self.subtract = subtract

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        return Learned(Additive(linear_base(rows, subtract=self.subtract)))


def linear_base(rows: Predictions, *, subtract: bool) -> Base:
    """Return sqrt(a² u² ± b²) of maximum likelihood.

    For v = s (u² + c) the best s is that of one factor, <E² / (u² + c)>. So one number
    is searched: the best of many values of c, and the root of the slope next to it.
    """
    u2, e2, w = rows.y_std**2, rows.e2, rows.weights
    u_unit, e_unit = mean(u2, w), mean(e2, w)
    u2, e2 = u2 / u_unit, e2 / e_unit
    profile = _Profile(u2, e2, w, LEAST_SHARE * _small(u2, w))
    means = profile.of_neighbours() if u2.size > MANY else profile
    low, high = float(u2.min()) / 10, float(u2.max()) * 1e4
    n_tried = 2 + int(PER_DECADE * np.log10(high / low))
    searched = [np.append(0.0, np.geomspace(low, high, n_tried))]
    if subtract:
        most = (1 / LEAST_SHARE - 1) * profile.least
        searched.append(-most * np.linspace(1, 1 / N_NEGATIVE, N_NEGATIVE))
    # A factor alone comes first, then a value alone: what is searched must beat them.
    best, best_loss = 0.0, profile.loss(0.0)
    for c in (np.inf, *(_lowest(profile, means, tried) for tried in searched)):
        loss = profile.loss(c)
        better = BETTER * max(1, abs(best_loss)) if c >= 0 else 2 * CLEARLY / rows.total
        if loss < best_loss - better:
            best, best_loss = c, loss
    if best == np.inf:
        return Base(0.0, float(np.sqrt(e_unit)))
    a = float(np.sqrt(profile.slope_for(best) * (e_unit / u_unit)))
    b = float(np.sign(best) * np.sqrt(abs(best) * u_unit) * a)
    return Base(a, b, float(np.sqrt(profile.least * u_unit) * a) if best < 0 else 0.0)


@dataclass(frozen=True)
class _Profile:
    """The likelihood of v = s (u² + c) with the best s, as a function of c.

    Both u² and e² have unit mean, and each is that of one row, or of n. Where c is
    negative, u² + c is at least `least`.
    """

    u2: Floats
    e2: Floats
    n: Floats | None
    least: float

    def _shape(self, c: float) -> Floats:
        shape: Floats = self.u2 + c
        return np.maximum(shape, self.least, out=shape) if c < 0 else shape

    def slope_for(self, c: float) -> float:
        """Return the best s."""
        return mean(self.e2 / self._shape(c), self.n)

    def loss(self, c: float) -> float:
        """Return the lowest <ln v + e²/v> - 1; that of a constant v for c = inf."""
        if c == np.inf:
            return 0.0
        shape = self._shape(c)
        return float(np.log(mean(self.e2 / shape, self.n))) + mean(
            np.log(shape), self.n
        )

    def gradient(self, c: float) -> float:
        """Return the derivative of the loss, up to a positive factor."""
        shape = self._shape(c)
        pull = shape.min() / shape  # no square of it overflows
        ratio = self.e2 * pull
        if c < 0:
            pull[shape <= self.least] = 0.0
        both = mean(pull, self.n) * mean(ratio, self.n)
        return both - mean(ratio * pull, self.n)

    def of_neighbours(self) -> _Profile:
        """Return that of the means of rows of nearly equal u."""
        log = np.log(self.u2)
        low, width = float(log.min()), float(np.ptp(log)) / MANY or 1.0
        code = ((log - low) / width).astype(np.int64)
        ones = np.ones(self.u2.size) if self.n is None else self.n
        n: Any = np.bincount(code, ones)
        u2, e2 = (np.bincount(code, ones * x) for x in (self.u2, self.e2))
        there = n > 0
        n = n[there]
        return _Profile(u2[there] / n, e2[there] / n, n, self.least)


def _lowest(rows: _Profile, means: _Profile, tried: Floats) -> float:
    """Return the best of ascending values, or of those between it and the next."""
    from scipy import optimize

    at = int(np.argmin([means.loss(float(c)) for c in tried]))
    best = float(tried[at])
    slope = rows.gradient(best)
    next_to = at - int(np.sign(slope))
    if not slope or not 0 <= next_to < tried.size:
        return best
    end = float(tried[next_to])
    if rows.gradient(end) * slope >= 0:
        return best
    # where sizes differ absurdly it may not converge, and is near enough all the same
    between_both: float = optimize.brentq(
        rows.gradient, best, end, xtol=1e-15 * abs(best - end), disp=False
    )
    return between_both


def _small(u2: Floats, weights: Floats | None) -> float:
    """Return the u² that 5 % of the rows are below."""
    if weights is None:
        rank = int(SMALL * (u2.size - 1))
        return float(np.partition(u2, rank)[rank])
    order = np.argsort(u2, kind="stable")
    ends = np.cumsum(weights[order])
    at = np.searchsorted(ends, SMALL * ends[-1], side="right")
    return float(u2[order[min(at, u2.size - 1)]])


class IsotonicScaling(Scaling):
    """Replace u² by the isotonic (non-decreasing) fit of the squared errors.

    The fit alone gives its first steps, often of one or two rows, whatever variance
    these rows happen to have, and new rows there can have enormous z-scores. Every step
    is therefore shrunk towards the line of :class:`LinearScaling`, as if it had more
    rows that follow that line.

    Parameters
    ----------
    prior_rows : float, default 12
        How many rows of the line each step gets. 0 is the isotonic fit alone, in which
        steps of only zero errors are raised to the next one.

    Notes
    -----
    A step of n rows with the mean squared error m, at whose rows the line has the mean
    variance l, gets (n m + k l) / (n + k), with k prior rows. Steps that are then out
    of order are pooled again. Between steps, the variance is linear in u².

    With errors from N(0, 1.5 u) and 200 sets of 200 rows to learn from, <Z²> of new
    rows is, in the mean over the sets and in the worst of them:

    =========  ============  ============
    u          k = 0         k = 12
    =========  ============  ============
    lognormal  4.57 (531)    1.08 (1.41)
    uniform    1.54 (34.7)   1.08 (1.44)
    gamma      1.85 (99.2)   1.10 (1.38)
    =========  ============  ============

    References
    ----------
    J. Busk et al., Mach. Learn.: Sci. Technol. 3, 015012 (2022),
    doi:10.1088/2632-2153/ac3eb3

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 2.0, 3.0, 4.0], error=[2.0, 1.0, 3.0, 3.0])
    >>> ss.IsotonicScaling(prior_rows=0).learn(p).map.of_rows(p)[[0, -1]].round(2)
    array([1.58, 3.  ])
    >>> ss.IsotonicScaling().learn(p).map.of_rows(p)[[0, -1]].round(2)
    array([1.86, 2.81])
    """

    N_POINTS = 500  # means that the line is fitted to: it has but two parameters

    def __init__(self, *, prior_rows: float = 12.0) -> None:
        self.prior_rows = prior_rows

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        from sklearn.isotonic import isotonic_regression

        k = check_nonnegative(self.prior_rows, "prior_rows")
        u2, code = np.unique(rounded(rows.y_std**2), return_inverse=True)
        w = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        n: Any = np.bincount(code, w)
        e2 = np.bincount(code, w * rows.e2) / n
        out = isotonic_regression(e2, sample_weight=n)
        if k:
            # equal shares of the rows, so that many rows take no more time than a few
            share = (np.cumsum(n) - 1) * self.N_POINTS // n.sum()
            slope, floor = _scored_line(*_means(_runs(share), n, u2, e2))
            step = _runs(out)
            own, line, size = _means(step, n, out, slope * u2 + floor)
            shrunk = (size * own + k * line) / (size + k)
            # where thin steps follow the line more than thick ones, order is restored
            out = isotonic_regression(shrunk, sample_weight=size + k)[step]
        change = np.diff(out) != 0
        ends = np.append(True, change) | np.append(change, True)
        values = np.maximum(out[ends], out[out > 0].min())
        return Learned(Additive(Base(knots=u2[ends], values=values)))


def _runs(values: Floats) -> Ints:
    """Return the number of the run of equal neighbours that each value belongs to."""
    number: Ints = np.cumsum(np.diff(values, prepend=values[0]) != 0)
    return number


def _means(
    code: Ints, n: Floats, first: Floats, second: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return means of two quantities over each code, and the rows it has."""
    size: Any = np.bincount(code, n)
    sums = (np.bincount(code, n * each) for each in (first, second))
    a, b = (each / size for each in sums)
    return a, b, size


def _scored_line(u2: Floats, e2: Floats, n: Floats) -> tuple[float, float]:
    """Return the slope and floor of the variance, by a few steps of Fisher scoring.

    It is the line of `LinearScaling` to a few digits, in a hundredth of the time: for
    those who need it as a guide only.
    """
    # in units in which both have the mean 1, so that no square overflows
    u_unit, e_unit = float(np.average(u2, weights=n)), float(np.average(e2, weights=n))
    u2, e2 = u2 / u_unit, e2 / e_unit
    alone = float(np.average(e2 / np.maximum(u2, 1e-12), weights=n))
    slope, floor = 1.0, 0.0
    for _ in range(12):
        v = slope * u2 + floor
        w = n / np.maximum(v, 1e-12 * v.max()) ** 2
        # the normal equations of e² = slope u² + floor with these weights
        sw, x, xx, y, xy = w.sum(), w @ u2, w @ u2**2, w @ e2, w @ (u2 * e2)
        determinant = sw * xx - x * x
        if determinant <= 1e-12 * sw * xx:  # all uncertainties are equal
            break
        slope, floor = (sw * xy - x * y) / determinant, (xx * y - x * xy) / determinant
        if slope < 0:  # of one kind only, by maximum likelihood
            slope, floor = 0.0, 1.0
        elif floor < 0:
            slope, floor = alone, 0.0
    return float(slope * e_unit / u_unit), float(floor * e_unit)


# -- factors of all columns ------------------------------------------------------------


def quantile_axes(
    rows: Predictions,
    n_bins: int,
    *,
    least_rows: int,
    most_labels: int,
    by_group: bool = False,
) -> list[Axis]:
    """Return bins of all columns: at quantiles, or of the most frequent labels.

    If that is asked for, values of each group count once, and a bin has two at least:
    a column that tells groups apart does not give each a bin of its own.
    """
    axes = []
    for j, x in enumerate(rows.columns):
        w, total = rows.weights, rows.total
        if rows.is_labelled(j):
            labels = rows.labels(j).compact()
            count = np.bincount(labels.codes, w)
            kept = np.sort(np.argsort(-count, kind="stable")[:most_labels])
            axes.append(Axis(j, labels=tuple(labels.labels[i] for i in kept)))
            continue
        known = np.flatnonzero(~np.isnan(x))
        x, w = rounded(x[known]), some(w, known)  # one ulp parts no rows
        most = min(n_bins, int(total // least_rows))
        if by_group and rows.groups is not None:
            pairs = np.unique(np.stack([rows.groups[known], x]), axis=1)
            x, w, most = pairs[1], None, min(most, pairs.shape[1] // 2)
        values = np.unique(x)
        if values.size <= most:
            axes.append(Axis(j, between(values, values[1:])))
        else:
            axes.append(Axis(j, quantile_edges(x, w, max(1, most))))
    return axes


class RakedScaling(Scaling):
    """Multiply uncertainties by a factor for their bin of u and of every feature.

    Factors are found by raking (iterative proportional fitting): cycle over the
    variables, multiply the variance of each bin by its current <Z²>, until no bin
    moves. At the end every bin of every variable is calibrated at once, but for the
    shrinkage of thin bins and a cap on enormous errors.

    Parameters
    ----------
    n_bins : int, default 20
        Number of equal-size bins of each column of numbers. Each label of a category is
        a bin, as is a missing value.
    base : {"u", "linear"}, default "u"
        What the factors multiply: u as it is, or that of :class:`LinearScaling`, which
        is safer where some u are much too small.
    prior_rows : float, optional
        Rows with <Z²> = 1 that each bin gets, so that thin bins stay near a factor of
        1; by default the number that rows out of fold gain most from.
    random_state : int, default 0
        Seed of the folds.

    References
    ----------
    W. E. Deming and F. F. Stephan, Ann. Math. Statist. 11, 427 (1940),
    doi:10.1214/aoms/1177731829

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 10_000), rng.integers(0, 2, 10_000)
    >>> error = rng.normal(scale=u**2 * np.where(x == 1, 3.0, 1.0))
    >>> p = ss.Predictions(y_std=u, error=error, features={"x": x})
    >>> f = ss.RakedScaling(n_bins=4).learn(p).map.tables[1].values
    >>> float(np.exp(f[2] - f[1]).round(1))
    2.9
    """

    GRID = (np.inf, 1000.0, 320.0, 160.0, 80.0, 40.0, 20.0, 10.0, 5.0, 0.0)
    MOST_ROWS = 20_000  # that shrinkage is chosen by; the factors are learned from all
    MOST_VARIABLES = 20  # that are raked; of more, those that tell most

    def __init__(
        self,
        n_bins: int = 20,
        *,
        base: Literal["u", "linear"] = "u",
        prior_rows: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.base = base
        self.prior_rows = prior_rows
        self.random_state = random_state

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        n_bins = check_count(self.n_bins, "n_bins")
        seed = check_count(self.random_state, "random_state", least=0)
        on_line = check_choice(self.base, "base", ("u", "linear")) == "linear"
        order = canonical_order(rows)
        rows = rows.take(order)
        w = rows.weights
        base = linear_base(rows, subtract=False) if on_line else Base()
        start = base(rows.y_std)
        z2 = (np.sqrt(rows.e2) / start) ** 2
        cap = largest_counted(z2, w) if on_line else largest_ratio(z2, w) * mean(z2, w)
        axes = quantile_axes(rows, n_bins, least_rows=10, most_labels=1000)
        n = np.ones(z2.size) if w is None else w
        cells = _Cells(
            np.column_stack(codes_of(axes, rows)),
            [axis.n_codes for axis in axes],
            n,
            n * np.minimum(z2, cap),
        )
        folds = _RakedFolds(cells, make_folds(z2, rows, seed))
        chosen, of_folds = self._choose(folds)
        _, log = folds.judge(of_folds)
        level = 0.5 * float(np.log(mean(z2 * np.exp(-log), w)))
        factors = cells.rake(chosen, tolerance=1e-10, max_sweeps=1000)
        tables = [Table.of((j,), 0.5 * f) for j, f in enumerate(factors)]
        out_of_fold = np.empty(rows.n_rows)
        out_of_fold[order] = start * np.exp(level + 0.5 * log)
        used, kept = trimmed(axes, tables)
        return Learned(Additive(base, level, used, kept), out_of_fold)

    def _choose(self, folds: _RakedFolds) -> tuple[float, list[float]]:
        """Return the prior rows of all rows, and those without each of the folds.

        Rows of a fold are judged with those that are best for the others, or choosing
        would flatter them.
        """
        n_folds = len(folds.numbers)
        if self.prior_rows is not None:
            given = check_nonnegative(self.prior_rows, "prior_rows")
            return given, [given] * n_folds
        if n_folds == 1:  # nothing is out of fold
            return np.inf, [np.inf]
        tried, few = {}, folds.some(self.MOST_ROWS)
        for k in self.GRID:  # each starts where the one before it has ended
            tried[k], _ = few.judge([k] * n_folds)

        def deviance(k: float, without: int | None = None) -> float:
            part = tried[k][np.arange(n_folds) != without].sum(axis=0)
            return float(np.log(part[0] / part[2]) + part[1] / part[2])

        # of equals, min takes the first: the one that shrinks most
        return min(tried, key=deviance), [
            min(tried, key=lambda k, i=i: deviance(k, i))  # type: ignore[misc]
            for i in range(n_folds)
        ]


@dataclass(frozen=True)
class _Cells:
    """Rows by their codes, with what counts of their z²."""

    codes: Ints
    sizes: list[int]
    n: Floats
    z2: Floats

    def take(self, which: Any) -> _Cells:
        """Return some of the rows."""
        return _Cells(self.codes[which], self.sizes, self.n[which], self.z2[which])

    def told(self, log_factors: list[Floats]) -> Floats:
        """Return the logarithm of the variance factor of each row."""
        total = np.zeros(self.n.size)
        for factors, code in zip(log_factors, self.codes.T, strict=True):
            total += factors[code]
        return total

    def active(self) -> list[int]:
        """Return which variables are raked: of very many, those that tell most."""
        every = list(range(len(self.sizes)))
        if len(every) <= RakedScaling.MOST_VARIABLES or not self.z2.any():
            return every
        level, k, gains = self.z2.sum() / self.n.sum(), 20.0, []
        for j, size in enumerate(self.sizes):
            n = np.bincount(self.codes[:, j], self.n, size)
            v = np.bincount(self.codes[:, j], self.z2, size) / level
            log = np.log((v + k) / (n + k))
            gains.append(-float(np.sum(v * np.expm1(-log) + n * log)))
        least = np.sort(gains)[-RakedScaling.MOST_VARIABLES]
        return [j for j in every if gains[j] >= least]

    def rake(
        self,
        prior_rows: float,
        start: list[Floats] | None = None,
        *,
        tolerance: float = 1e-4,
        max_sweeps: int = 100,
    ) -> list[Floats]:
        """Cycle over the variables; multiply each bin's variance by its current <Z²>.

        With k prior rows of <Z²> = 1, a bin of n rows and sum S gets (S + k) / (n + k):
        infinite k leaves all as it is. k = 0 is raking proper, the maximum-likelihood
        gamma model with log link that is additive in the bins; with k > 0 it is
        penalised, and the limit is unique. It is reached sooner from factors that are
        nearly right, the `start`.
        """
        factors = [np.zeros(size) for size in self.sizes]
        if np.isinf(prior_rows) or not self.z2.any():
            return factors
        active, total = self.active(), self.n.sum()
        if start is not None:
            factors = [f.copy() if j in active else 0 * f for j, f in enumerate(start)]
        counts = {
            j: np.bincount(self.codes[:, j], self.n, self.sizes[j]) for j in active
        }
        current = self.z2 * np.exp(-self.told(factors))
        for _ in range(max_sweeps):
            change = 0.0
            for j in active:
                code, count = self.codes[:, j], counts[j]
                sums = np.bincount(code, current, self.sizes[j])
                level = sums.sum() / total
                # of the other variables' factors alone
                sums = np.maximum(sums * np.exp(factors[j]) / level, FLOOR * count)
                filled = count > 0
                new = np.zeros(self.sizes[j])
                new[filled] = np.log(
                    (sums[filled] + prior_rows) / (count[filled] + prior_rows)
                )
                # the overall level lives in the mean
                new[filled] -= np.average(new[filled], weights=count[filled])
                change = max(change, float(np.abs(new - factors[j]).max()))
                current *= np.exp(factors[j] - new)[code]
                factors[j] = new
            if change < tolerance:
                return factors
        if tolerance < 1e-6:
            warn(
                f"Raking still moved a factor by {change:.1g} in its last of "
                f"{max_sweeps} cycles. Use fewer bins, or more `prior_rows`.",
                DegenerateFitWarning,
                stacklevel=5,
            )
        return factors


class _RakedFolds:
    """Raking of all folds but one, judged by the rows of that one, for each fold."""

    def __init__(self, cells: _Cells, fold: Ints) -> None:
        self.cells, self.fold = cells, fold
        self.numbers = np.unique(fold).tolist()
        self._starts: list[list[Floats] | None] = [None] * len(self.numbers)

    def some(self, most: int) -> _RakedFolds:
        """Return so many of the rows at most, chosen at random."""
        if self.fold.size <= most:
            return _RakedFolds(self.cells, self.fold)
        which = np.random.default_rng(0).permutation(self.fold.size) < most
        return _RakedFolds(self.cells.take(which), self.fold[which])

    def judge(self, prior_rows: list[float]) -> tuple[Floats, Floats]:
        """Return sums that rows out of fold say, by fold, and the log-factor of each.

        The sums are those of capped z² over its factor, of the log-factor, and of rows.
        """
        found, log = [], np.zeros(self.fold.size)
        for i, k in enumerate(self.numbers):
            out = self.fold == k
            seen = self.cells if len(self.numbers) == 1 else self.cells.take(~out)
            self._starts[i] = factors = seen.rake(prior_rows[i], self._starts[i])
            own = self.cells.take(out)
            log[out] = own.told(factors)
            z2 = own.z2 @ np.exp(-log[out])
            found.append((z2, own.n @ log[out], own.n.sum()))
        return np.array(found), log


class BoostedScaling(Scaling):
    """Multiply uncertainties by a smooth learned factor s(u, features).

    What :class:`LinearScaling` leaves of the squared z-scores is boosted with small
    trees under the gamma deviance (log link), by scikit-learn's histogram trees. Five
    boosters each learn from all folds but one. Their number of trees minimises the loss
    on the rows they have not seen, the factor is the geometric mean of theirs, and the
    average is set on rows out of fold.

    Labels and missing values of features are handled. An enormous error counts only up
    to a cap, an error of exactly 0 as a small one, and factors stay within the range of
    those out of fold.

    Parameters
    ----------
    max_trees : int, default 500
        Most trees a booster may have.
    learning_rate : float, default 0.1
        Share of the best step that each tree takes.
    depth : int, default 3
        Levels of splits of a tree, at most 3: so many columns can interact.
    n_bins : int, default 32
        Bins of each column of numbers, between which trees may split.
    prior_rows : float, default 20
        Rows with <Z²> = 1 that every leaf gets: thin leaves change little.
    random_state : int, default 0
        Seed of the folds.

    References
    ----------
    J. H. Friedman, Ann. Statist. 29, 1189 (2001), doi:10.1214/aos/1013203451

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 4000), rng.uniform(-1, 1, 4000)
    >>> error = rng.normal(scale=u * np.exp(x))
    >>> p = ss.Predictions(y_std=u, error=error, features={"x": x})
    >>> new = ss.Predictions(y_std=[1.5, 1.5], features={"x": [-0.9, 0.9]})
    >>> ss.BoostedScaling().learn(p).map.of_rows(new).round(1)
    array([0.6, 3.8])
    """

    MOST_LABELS = 254  # that trees tell apart

    def __init__(
        self,
        *,
        max_trees: int = 500,
        learning_rate: float = 0.1,
        depth: int = 3,
        n_bins: int = 32,
        prior_rows: float = 20.0,
        random_state: int = 0,
    ) -> None:
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.n_bins = n_bins
        self.prior_rows = prior_rows
        self.random_state = random_state

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        options: dict[str, Any] = {
            "max_trees": check_count(self.max_trees, "max_trees", least=0),
            "learning_rate": check_fraction(self.learning_rate, "learning_rate"),
            "depth": check_count(self.depth, "depth"),
            "prior_rows": check_nonnegative(self.prior_rows, "prior_rows"),
            "random_state": check_count(self.random_state, "random_state", least=0),
        }
        n_bins = check_count(self.n_bins, "n_bins")
        if options["depth"] > 3 or n_bins > self.MOST_LABELS:
            msg = (
                f"`depth` must be at most 3, and `n_bins` at most {self.MOST_LABELS}; "
                f"found {options['depth']} and {n_bins}."
            )
            raise InvalidInputError(msg)
        order = canonical_order(rows)
        rows = rows.take(order)
        base, w = linear_base(rows, subtract=False), rows.weights
        start = base(rows.y_std)
        z2 = (np.sqrt(rows.e2) / start) ** 2
        ratio = (z2 / mean(z2, w) + FLOOR) / (1 + FLOOR)
        most = self.MOST_LABELS
        axes = quantile_axes(rows, n_bins, least_rows=1, most_labels=most)
        codes = np.column_stack(codes_of(axes, rows))
        fold = make_folds(ratio, rows, options["random_state"], N_FOLDS)
        cap = largest_counted(ratio, w)
        found = boost(axes, codes, ratio, fold, w, loss="gamma", cap=cap, **options)
        if found.tables:
            found = _right_for_labels(found, axes, codes, ratio, fold, w, cap)
        # the plain mean: a capped one would leave heavy-tailed errors uncovered
        level = 0.5 * float(np.log(mean(z2 * np.exp(-found.out_of_fold), w)))
        out_of_fold = np.empty(rows.n_rows)
        out_of_fold[order] = start * np.exp(level + 0.5 * found.out_of_fold)
        return Learned(
            boosted_map(base, level, axes, found.tables, found, 0.5), out_of_fold
        )


def _right_for_labels(
    found: Boosted,
    axes: Sequence[Axis],
    codes: Ints,
    ratio: Floats,
    fold: Ints,
    weights: Floats | None,
    cap: float,
) -> Boosted:
    """Return boosters whose average is right for every label of a column, too.

    They stop before they have learned all of the factor of a rare label. What rows out
    of fold still want is one more table, shrunk by as many rows as tell <Z²> to 14 %.
    """
    out, tables = found.out_of_fold, list(found.tables)
    w = np.ones(ratio.size) if weights is None else weights
    for j, axis in enumerate(axes):
        if axis.labels is None:
            continue
        left = ratio * np.exp(-out)
        left = np.minimum(left / mean(np.minimum(left, cap), w), cap)
        prior = LABEL_PRIOR * mean((left - mean(left, w)) ** 2, w)
        # of each fold and label; those of a fold count for the others
        of_fold = fold * axis.n_codes + codes[:, j]
        shape = (int(fold.max()) + 1, axis.n_codes)
        n, total = (
            np.bincount(of_fold, x, shape[0] * shape[1]).reshape(shape)
            for x in (w, w * left)
        )
        others = (total.sum(axis=0) - total + prior) / (n.sum(axis=0) - n + prior)
        out = out + np.log(others)[fold, codes[:, j]]
        whole = (total.sum(axis=0) + prior) / (n.sum(axis=0) + prior)
        tables.append(Table.of((j,), np.log(whole)))
    tables = [each.simplified() for each in merged(tables)]
    return Boosted(tuple(tables), found.constant, out, found.n_trees)


def boosted_map(
    base: Base,
    constant: float,
    axes: Sequence[Axis],
    tables: Sequence[Table],
    found: Any,
    factor: float,
    *,
    log: bool = True,
) -> Additive:
    """Return boosters as a map, whose tables stay in the range of rows out of fold."""
    if not tables:
        return Additive(base, constant, log=log)
    scaled = [Table(each.axes, each.classes, factor * each.values) for each in tables]
    used, kept = trimmed(axes, scaled)
    ends = (float(found.out_of_fold.min()), float(found.out_of_fold.max()))
    low, high = (factor * (end - found.constant) for end in ends)
    constant += factor * found.constant
    return Additive(base, constant, used, kept, (low, high), log)


SCALINGS: dict[str, type[Scaling]] = {
    "boosted": BoostedScaling,
    "raked": RakedScaling,
    "linear": LinearScaling,
    "isotonic": IsotonicScaling,
    "binwise": BinwiseScaling,
    "temperature": TemperatureScaling,
}
"""All scalings by the names that the command line and files have for them."""
