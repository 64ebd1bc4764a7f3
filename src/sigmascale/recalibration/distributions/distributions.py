"""Predictive distributions of true values, or of errors, row by row.

Each is a place and a scale times z, with bounds and without; of vectors, directions are
uniform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from scipy import special

from ..._support.checks import (
    Bools,
    Floats,
    Ints,
    check_count,
    check_fraction,
    check_numbers,
    check_same_length,
    rng_from,
)
from ..._support.numerals import number
from ..._support.origin import Origin, columns_of, make_frame
from ..._support.render import html_table
from ..._support.text import quoted
from ...exceptions import InvalidInputError
from .quantile_tables import ZDistribution

if TYPE_CHECKING:
    from ...predictions.predictions import Predictions
    from ...predictions.shapes import Shapes

N_RADII = 256  # radii that stand for the distribution of them, in the energy score
# Of rows with shapes, quantiles that stand for CRPS and moments: CRPS is off by 0.02 %.
LEVELS = (np.arange(100) + 0.5) / 100
ROWS_AT_A_TIME = 2**13  # of which so many quantiles stay in the cache
Bounds = tuple[float | None, float | None]


class Distributions:
    """Predictive distributions of several rows: location + scale × z.

    They are the `distributions` of :class:`sigmascale.Predictions`; of those that
    :meth:`sigmascale.Recalibrator.apply` returns, the recalibrated ones. They are
    distributions of true values, or of errors where predictions are not known. Of
    vectors they are those of points about the prediction, in all directions alike.

    Parameters
    ----------
    location : array-like of shape (n,) or (n, d)
        Predictions, with their bias corrected.
    scale : array-like of shape (n,)
        Recalibrated standard uncertainties, positive.
    z : ZDistribution, optional
        The distribution of (true value − location) / scale; normal if not given.
    bounds : pair of float or None, default (None, None)
        What true values cannot be below, and above. Quantiles, intervals and draws stay
        within; CRPS and PIT are those of the censored distribution, which has the
        probability of what lies beyond a bound at the bound.

    Notes
    -----
    `mean` and `std` are those of the distribution. An empirical distribution may be
    skewed, so that its mean is not the prediction; the standard uncertainty of
    `predict` is the root mean square of the error about the prediction. Of rows held
    out, quantiles beyond the outermost level are infinite, while CRPS, mean and std use
    the range that was observed.

    Of predictions with a shape (:meth:`sigmascale.Predictions.from_quantiles`) location
    + scale × z is an error that the shape makes a value of; their CRPS, mean and std
    are those of 100 quantiles.

    Examples
    --------
    >>> import sigmascale as ss
    >>> d = ss.Distributions([1.0, 2.0], [0.1, 0.2])
    >>> d.interval(0.9).round(2)
    array([[0.84, 1.16],
           [1.67, 2.33]])
    >>> d[1].crps([2.1]).round(4)
    array([0.0663])
    """

    def __init__(
        self,
        location: Any,
        scale: Any,
        z: ZDistribution | None = None,
        *,
        bounds: Bounds = (None, None),
    ) -> None:
        self.location: Floats = check_numbers(location, "location")
        self.scale: Floats = check_numbers(scale, "scale")
        check_same_length("location", self.location, "scale", self.scale)
        if self.scale.ndim != 1 or not (self.scale > 0).all():
            msg = "`scale` must be one positive number a row."
            raise InvalidInputError(msg)
        dim = self.location.shape[1] if self.location.ndim == 2 else None
        self.z = ZDistribution(dim=dim) if z is None else z
        self.bounds = check_bounds(bounds)
        self.fitted_share = 0.0
        self.shape: Shapes | None = None
        self.origin = Origin.of(location, scale)
        self.codes: Ints = self.z.codes(self.scale)  # which table is whose

    @classmethod
    def of(
        cls,
        location: Floats,
        scale: Floats,
        z: ZDistribution,
        bounds: Bounds = (None, None),
        fitted_share: float = 0.0,
        codes: Ints | None = None,
        shape: Shapes | None = None,
        origin: Origin | None = None,
    ) -> Distributions:
        """Return distributions of what is known to be right."""
        distributions = cls.__new__(cls)
        distributions.location = location
        distributions.scale = scale
        distributions.z = z
        distributions.bounds = bounds
        distributions.fitted_share = fitted_share
        distributions.codes = z.codes(scale) if codes is None else codes
        distributions.shape = shape
        distributions.origin = origin
        return distributions

    @classmethod
    def normal(cls, p: Predictions) -> Distributions:
        """Return what raw uncertainties say: normal errors, with u their spread.

        Parameters
        ----------
        p : Predictions
            Without predictions, distributions are those of errors, about 0. With
            shapes they are those of the quantiles that were given.
        """
        z = ZDistribution(dim=p.components)
        location = z.centre(p.n_rows) if p.y_pred is None else p.y_pred
        return cls.of(location, p.y_std, z, shape=p.shape, origin=p.origin)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.scale.size

    def __getitem__(self, rows: Any) -> Distributions:
        """Return the distributions of some rows."""
        which = np.atleast_1d(np.arange(len(self))[rows])  # of one row, too
        return Distributions.of(
            self.location[which],
            self.scale[which],
            self.z,
            self.bounds,
            self.fitted_share,
            self.codes[which],
            None if self.shape is None else self.shape[which],
            None if self.origin is None else self.origin[which],
        )

    @property
    def of_errors(self) -> Distributions:
        """Those of the errors of rows with shapes, which have been straightened."""
        return Distributions.of(
            np.zeros(len(self)),
            self.scale,
            self.z,
            codes=self.codes,
            origin=self.origin,
        )

    # -- in words ----------------------------------------------------------------------

    def __repr__(self) -> str:
        """Return what there is, in words."""
        kind = "" if self.z.dim is None else f" of {self.z.dim} components"
        if self.shape is not None:
            kind = " with shapes of their own"
        return f"Distributions of {len(self)} rows{kind}; z is {self.z.words}."

    def _repr_html_(self) -> str:
        # whole numbers
        rows = np.unique(np.linspace(0, len(self) - 1, min(len(self), 10)).astype(int))
        shown = self[rows]
        if self.z.dim is None:
            levels = (0.05, 0.25, 0.5, 0.75, 0.95)
            header = ["row", "mean", "std", *(f"{100 * p:g} %" for p in levels)]
            numbers = np.column_stack([shown.mean, shown.std, shown.quantile(levels)])
        else:
            header = ["row", "radius of 50 %", "90 %"]
            numbers = np.column_stack([shown.radius(0.5), shown.radius(0.9)])
        lines = []
        for row, of_row in zip(rows, numbers, strict=True):
            lines.append([str(row), *(number(x, 4) for x in of_row)])
        return f"<p>{self!r}</p>{html_table(header, lines)}"

    # -- as a data frame ---------------------------------------------------------------

    def to_frame(self, coverage: float = 0.9, *, levels: Sequence[float] = ()) -> Any:
        """Return a data frame of the library that the rows came from.

        Parameters
        ----------
        coverage : float, default 0.9
            The coverage of the intervals.
        levels : sequence of float, default ()
            Levels whose quantiles become columns.

        Returns
        -------
        data frame
            Of pandas with the index of the rows, Polars or PyArrow; of rows that came
            in arrays, of pandas, or of Polars where that is missing. Its columns are
            "mean", "std", "low" and "high", and quantiles such as "q0.05". Of vectors
            they are the components of the mean, "mean_1", and "std" and "radius".

        Examples
        --------
        >>> import pandas as pd
        >>> import sigmascale as ss
        >>> y_pred = pd.Series([1.0, 2.0], ["a", "b"])
        >>> ss.Predictions(y_pred, [0.1, 0.2]).distributions.to_frame(0.9).round(2)
           mean  std   low  high
        a   1.0  0.1  0.84  1.16
        b   2.0  0.2  1.67  2.33
        """
        mean, std = self._moments()
        columns = columns_of("mean", mean) | {"std": std} | self._limits(coverage)
        if len(levels):
            quantiles = self.quantile(np.atleast_1d(levels))
            for level, column in zip(levels, quantiles.T, strict=True):
                columns[f"q{level:g}"] = column
        return make_frame(columns, self.origin, by_row=True)

    def _limits(self, coverage: float) -> dict[str, Floats]:
        """Return the columns of intervals, or of the radii of balls."""
        if self.z.dim is not None:
            return {"radius": self.radius(coverage)}
        low, high = self.interval(coverage).T
        return {"low": low, "high": high}

    # -- numbers -----------------------------------------------------------------------

    @property
    def mean(self) -> Floats:
        """The mean of each distribution; of vectors the prediction."""
        if self.z.dim is not None:
            return self.location
        return self._moments()[0]

    @property
    def std(self) -> Floats:
        """The standard deviation of each distribution, about its mean.

        Of vectors it is the root of the mean variance of components.
        """
        return self._moments()[1]

    def _moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of each row, within bounds."""
        if self.z.dim is not None and not self.z.tables:
            return self.location, self.scale
        means = np.array([table.mean for table in self.z.parts])
        squares = np.array([table.second_moment for table in self.z.parts])
        mean = means[self.codes]
        square = squares[self.codes]
        if self.z.dim is not None:
            return self.location, self.scale * np.sqrt(square)
        if self.shape is not None:
            of_levels = [(q.mean(axis=1), q.std(axis=1)) for _, q in self._levels()]
            mean, std = np.concatenate(of_levels, axis=1)
            return mean, std
        for sign, bound in ((1.0, self.bounds[0]), (-1.0, self.bounds[1])):
            if bound is not None:  # of what lies beyond, all moves to the bound
                at = sign * self._standardised(np.full(len(self), bound))
                area, area_of_area, _ = self._integrals(at, sign)
                mean = mean + sign * area
                square = square + 2 * at * area - 2 * area_of_area
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return self.location + self.scale * mean, self.scale * spread

    def quantile(self, levels: Any) -> Floats:
        """Return quantiles.

        Parameters
        ----------
        levels : float or array-like of shape (k,)
            Probabilities between 0 and 1. Beyond what rows can tell, the outermost
            z-score is taken, with a warning; of rows held out, quantiles are infinite
            there.

        Returns
        -------
        array of shape (n,), or (n, k)
        """
        self._needs_sign("quantile", "radius")
        p = check_levels(levels)
        z = self.z.quantiles(np.atleast_1d(p))[self.codes]
        quantiles = self._values_of(z)
        return np.asarray(quantiles if p.ndim else quantiles[:, 0])

    def interval(self, coverage: float = 0.9) -> Floats:
        """Return central prediction intervals.

        Parameters
        ----------
        coverage : float, default 0.9
            The nominal coverage.

        Returns
        -------
        array of shape (n, 2)
        """
        self._needs_sign("interval", "radius")
        share = check_coverage(coverage)
        return self.quantile([(1 - share) / 2, (1 + share) / 2])

    def cdf(self, y: Any) -> Floats:
        """Return the probability of what is at most y.

        Parameters
        ----------
        y : float or array-like of shape (n,)
            A value of each row, or one for all.

        Returns
        -------
        array of shape (n,)
        """
        return self._cdf(self._values(y, "cdf", "contains"), "cdf")

    def sf(self, y: Any) -> Floats:
        """Return the probability of what is larger than y, such as a limit.

        Parameters
        ----------
        y : float or array-like of shape (n,)
            A value of each row, or one for all.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import sigmascale as ss
        >>> ss.Distributions([1.0, 2.0], [0.5, 0.5]).sf(2.0).round(3)
        array([0.023, 0.5  ])
        """
        return np.asarray(1 - self.cdf(y))

    def pit(self, y: Any) -> Floats:
        """Return the probability integral transform of true values; ideally uniform.

        Where a value has a probability of its own, as errors of exactly 0 or values at
        a bound have, it is the middle of the step. Of vectors it is the probability of
        the ball that reaches the true value.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, d)
            The true value of each row.

        Returns
        -------
        array of shape (n,)
        """
        if self.z.dim is not None:
            r = self._distance(y) / self.scale
            if not self.z.tables:
                return np.asarray(special.gammainc(self.z.dim / 2, r**2 / 2))
            r = r / np.sqrt(self.z.dim)
            up_to = self._by_table("cdf", r)
            below = self._by_table("below", r)
            return np.asarray((up_to + below) / 2)
        values = self._values(y, "pit", "contains")
        up_to = self._cdf(values, "cdf")
        below = self._cdf(values, "below")
        return np.asarray((up_to + below) / 2)

    def crps(self, y: Any) -> Floats:
        """Return the continuous ranked probability score of each row; less is better.

        It is exact, for tables and with bounds, too; of shapes that of 100 quantiles.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true value of each row.

        Returns
        -------
        array of shape (n,)
        """
        values = self._values(y, "crps", "energy_score")
        if self.shape is not None:
            return self.crps_of_levels(values)
        if not any_bound(self.bounds):
            return self.scale * self._by_table("crps", self._standardised(values))
        inside = np.clip(values, *self.bounds)
        score = self._by_table("crps", self._standardised(inside))
        for sign, bound in ((1.0, self.bounds[0]), (-1.0, self.bounds[1])):
            if bound is not None:  # what lies beyond the bound is no longer missed
                at = sign * self._standardised(np.full(len(self), bound))
                score = score - self._integrals(at, sign)[2]
        return self.scale * score + np.abs(values - inside)

    def sample(self, n: int, *, rng: Any = 0) -> Floats:
        """Return random draws.

        Parameters
        ----------
        n : int
            How many of each row.
        rng : int or Generator, default 0
            Seed.

        Returns
        -------
        array of shape (n_rows, n), or (n_rows, n, d) of vectors
        """
        generator = rng_from(rng)
        count = check_count(n, "n")
        p = generator.random((len(self), count))
        if self.z.dim is not None:
            directions = generator.normal(size=(len(self), count, self.z.dim))
            if self.z.tables:
                directions /= np.linalg.norm(directions, axis=2, keepdims=True)
                radii = np.sqrt(self.z.dim) * self._by_table("within", p)
                directions *= radii[:, :, None]
            return self.location[:, None] + self.scale[:, None, None] * directions
        return self._values_of(self._by_table("within", p))

    # -- vectors -----------------------------------------------------------------------

    def radius(self, coverage: float = 0.9) -> Floats:
        """Return the radii of prediction balls.

        Parameters
        ----------
        coverage : float, default 0.9
            The nominal coverage.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import sigmascale as ss
        >>> d = ss.Distributions([[0.0, 0.0, 0.0]], [1.0])
        >>> d.radius(0.9).round(2)
        array([2.5])
        """
        dim = self._needs_vectors("radius", "interval")
        share = check_coverage(coverage)
        radii = self.z.quantiles(np.array([share]))[self.codes, 0]
        return np.asarray(self.scale * np.sqrt(dim) * radii)

    def contains(self, y: Any, coverage: float = 0.9) -> Bools:
        """Return whether prediction balls contain the true values.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The true value of each row.
        coverage : float, default 0.9
            The nominal coverage of the balls.

        Returns
        -------
        array of bool, shape (n,)
        """
        radii = self.radius(coverage)
        return np.asarray(self._distance(y) <= radii)

    def energy_score(self, y: Any) -> Floats:
        """Return the energy score of each row; less is better.

        It is E‖X − y‖ − E‖X − X'‖ / 2, for independent draws X and X'.
        Of normal distributions it is exact. Of a table the mean over directions is
        exact, and that over radii is one over 256 quantiles.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The true value of each row.

        Returns
        -------
        array of shape (n,)

        References
        ----------
        T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102, 359 (2007),
        doi:10.1198/016214506000001437
        """
        dim = self._needs_vectors("energy_score", "crps")
        r = self._distance(y) / self.scale
        if not self.z.tables:
            # of the normal distribution of d components, by its moments
            size = np.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2))
            apart = np.sqrt(2) * size * special.hyp1f1(-0.5, dim / 2, -(r**2) / 2)
            return np.asarray(self.scale * (apart - size))
        levels = (np.arange(N_RADII) + 0.5) / N_RADII
        score = np.empty(len(self))
        for table, rows_of_table in self.z.of_rows(self.codes):
            radii = np.sqrt(dim) * table.within(levels)
            between_draws = _mean_distance(radii[:, None], radii, dim).mean()
            n_blocks = max(1, rows_of_table.size // 2**12)
            for rows in np.array_split(rows_of_table, n_blocks):
                apart = _mean_distance(r[rows, None], radii, dim).mean(axis=1)
                score[rows] = apart - between_draws / 2
        return self.scale * score

    # -- parts -------------------------------------------------------------------------

    def _values_of(self, z: Floats) -> Floats:
        """Return the values of z-scores, several a row, within bounds."""
        if self.shape is None:
            values = self.location[:, None] + self.scale[:, None] * z
        else:
            values = self.shape.values(self.scale[:, None] * z)
        return np.clip(values, *self.bounds) if any_bound(self.bounds) else values

    def crps_of_levels(self, y: Floats) -> Floats:
        """Return the CRPS of 100 quantiles: twice the mean of their pinball losses."""
        score = np.empty(len(self))
        for rows, quantiles in self._levels():
            off = y[rows, None] - quantiles
            score[rows] = 2 * np.maximum(LEVELS * off, (LEVELS - 1) * off).mean(axis=1)
        return score

    def _levels(self) -> Iterator[tuple[slice, Floats]]:
        """Yield rows, some at a time, with quantiles at :data:`LEVELS`."""
        z = np.array([table.within(LEVELS) for table in self.z.parts])
        for start in range(0, len(self), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            some = self[rows]
            yield rows, some._values_of(z[some.codes])

    def _by_table(self, name: str, values: Floats) -> Floats:
        """Return what a method of each row's own table says of a value of the row."""
        return self.z.by_table(name, self.codes, values)

    def _integrals(self, at: Floats, sign: float) -> tuple[Floats, Floats, Floats]:
        """Return integrals of the cdf of z, or of −z, up to a number of each row."""
        integrals = np.empty((3, len(self)))
        for table, rows in self.z.of_rows(self.codes):
            of_sign = table if sign > 0 else table.reflected()
            integrals[:, rows] = of_sign.integrals(at[rows])
        return integrals[0], integrals[1], integrals[2]

    def _cdf(self, y: Floats, name: str) -> Floats:
        """Return the probability of what is at most y, or below it, within bounds."""
        side: Literal["left", "right"] = "right" if name == "cdf" else "left"
        share = self._by_table(name, self._standardised(y, side))
        low, high = self.bounds
        # at a bound, all that lies beyond it
        if low is not None:
            share = np.where(y < low if name == "cdf" else y <= low, 0.0, share)
        if high is not None:
            share = np.where(y >= high if name == "cdf" else y > high, 1.0, share)
        return share

    def _standardised(
        self, y: Floats, side: Literal["left", "right"] = "right"
    ) -> Floats:
        """Return z = (y − location) / scale; of shapes, at one end of an atom."""
        if self.shape is not None:
            return self.shape.errors(y, side) / self.scale
        return np.asarray((y - self.location) / self.scale)

    def _values(self, y: Any, name: str, instead: str) -> Floats:
        """Return one number a row, for a method that needs a sign."""
        self._needs_sign(name, instead)
        given = np.asarray(y)
        if given.ndim == 0:  # one number for all rows
            given = np.full(len(self), given)
        values = check_numbers(given, "y")
        check_same_length("location", self.location, "y", values)
        if values.ndim != 1:
            msg = f"`y` must have one number a row; found shape {values.shape}."
            raise InvalidInputError(msg)
        return values

    def _distance(self, y: Any) -> Floats:
        """Return the distance of true values from predictions."""
        values = check_numbers(y, "y")
        if values.shape != self.location.shape:
            msg = (
                f"`y` must have the shape {self.location.shape} of the predictions; "
                f"found {values.shape}."
            )
            raise InvalidInputError(msg)
        return np.asarray(np.linalg.norm(values - self.location, axis=1))

    def _needs_sign(self, name: str, instead: str) -> None:
        """Refuse vectors, and name the method for them."""
        if self.z.dim is not None:
            _refuse(f"`{name}` needs numbers, as vectors have no sign. Use {instead}.")

    def _needs_vectors(self, name: str, instead: str) -> int:
        """Return the number of components; refuse numbers."""
        if self.z.dim is None:
            _refuse(f"`{name}` is for vectors. Of numbers, use {instead}.")
        return self.z.dim


def _mean_distance(r: Floats, radius: Floats, dim: int) -> Floats:
    """Return the mean distance of a point at r from those on a sphere about 0."""
    near = np.minimum(r, radius)
    far = np.maximum(r, radius)
    share = np.divide(near, far, out=np.zeros(far.shape), where=far > 0)
    if dim == 3:
        return far * (1 + share**2 / 3)
    return np.asarray(far * special.hyp2f1(-0.5, -(dim - 1) / 2, dim / 2, share**2))


def _refuse(words: str) -> NoReturn:
    """Refuse a method that numbers, or vectors, do not have."""
    raise InvalidInputError(words, "vectors")


def any_bound(bounds: Bounds) -> bool:
    """Return whether there is a bound."""
    return bounds[0] is not None or bounds[1] is not None


def check_bounds(bounds: Any) -> Bounds:
    """Return what true values cannot be below and above; None without a bound."""
    if bounds is None:
        return None, None
    pair = tuple(bounds) if isinstance(bounds, (tuple, list)) else ()
    given = [bound for bound in pair if bound is not None]
    are_right = len(pair) == 2
    for bound in given:
        is_number = isinstance(bound, (int, float, np.number))
        are_right = are_right and is_number and bool(np.isfinite(bound))
    if not are_right or sorted(given) != given:
        msg = (
            "`bounds` must be a pair such as (0, None): the lowest and the highest "
            f"true value, None without one; found {quoted(bounds)}."
        )
        raise InvalidInputError(msg)
    low, high = (None if bound is None else float(bound) for bound in pair)
    return low, high


def check_levels(levels: Any) -> Floats:
    """Return probabilities between 0 and 1, one or several."""
    p = np.asarray(levels, dtype=np.float64)
    if p.ndim > 1 or not p.size or not ((p > 0) & (p < 1)).all():
        msg = f"`levels` must lie between 0 and 1; found {quoted(levels)}."
        raise InvalidInputError(msg)
    return p


def check_coverage(coverage: Any) -> float:
    """Return a share between 0 and 1, as it was written.

    >>> check_coverage(np.float32(0.9))
    0.9
    """
    check_fraction(coverage, "coverage")
    share = float(str(coverage))
    if not 1e-7 <= share <= 1 - 1e-7:  # no set of rows supports less
        msg = (
            "`coverage` must lie between 0 and 1, such as 0.9; found "
            f"{quoted(coverage)}."
        )
        raise InvalidInputError(msg)
    return share
