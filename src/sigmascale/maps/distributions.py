"""Predictive distributions: what a truth, or an error, is likely to be, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    as_array,
    check_column,
    check_count,
    check_fraction,
    check_same_length,
    check_uncertainty,
    rng_from,
)
from .._support.notebook import chart, page, ticks_of
from .._support.render import html_table
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .laws import NORMAL, Law

if TYPE_CHECKING:
    import polars as pl


def check_levels(levels: Any) -> Floats:
    """Return probabilities between 0 and 1, one or several."""
    p = np.asarray(levels, dtype=np.float64)
    if p.ndim > 1 or not p.size or not ((p > 0) & (p < 1)).all():
        msg = f"`levels` must lie between 0 and 1; found {levels!r}."
        raise InvalidInputError(msg)
    return p


def check_coverage(coverage: Any) -> float:
    """Return a share between 0 and 1, as it was written.

    >>> check_coverage(np.float32(0.9))
    0.9
    """
    check_fraction(coverage, "coverage")
    share = float(str(coverage))
    if not 1e-7 <= share <= 1 - 1e-7:  # no set of rows tells less
        msg = f"`coverage` must lie between 0 and 1, such as 0.9; found {coverage!r}."
        raise InvalidInputError(msg)
    return share


def distributions_of(rows: Predictions) -> Distributions:
    """Return the distributions that rows carry; or normal ones."""
    carried: Distributions | None = rows.distributions
    if carried is not None:
        return carried
    return Distributions.of(_location(rows), rows.uncertainty, NORMAL)


def with_law(rows: Predictions, law: Law | None) -> Predictions:
    """Return rows that carry the distributions of a law; none if it is not known."""
    if law is None:
        return rows
    found = Distributions.of(_location(rows), rows.uncertainty, law)
    return rows.changed(distributions=found)


def _location(rows: Predictions) -> Floats:
    """Return what distributions are about: predictions, or 0 of errors."""
    return np.zeros(rows.n_rows) if rows.y_pred is None else rows.y_pred


class Distributions:
    """Predictive distributions of several rows: location + scale × law.

    :meth:`sigmascale.Recalibrator.predict_distribution` returns them. They are
    distributions of the truth, or of the error where predictions are not known.

    Parameters
    ----------
    location : array-like of shape (n,)
        Predictions, with their shift.
    scale : array-like of shape (n,)
        Recalibrated standard uncertainties, positive.
    law : NormalLaw or EmpiricalLaw, optional
        The distribution of (truth − location) / scale; normal if not given.

    Notes
    -----
    `mean` and `std` are those of the distribution. An empirical law may be skewed, so
    that its mean is not the prediction; the standard uncertainty of `predict` is the
    root mean square of the error about the prediction, and larger than `std` by as much
    as the mean is off. By bins of the scale, `std` is that of the rows of the bin.

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

    def __init__(self, location: Any, scale: Any, law: Law = NORMAL) -> None:
        self.location: Floats = check_column(location, "location")
        self.scale: Floats = check_uncertainty(scale, "scale")
        check_same_length("location", self.location, "scale", self.scale)
        self.law = law
        self._codes = law.codes(self.scale)

    @classmethod
    def of(cls, location: Floats, scale: Floats, law: Law) -> Distributions:
        """Return distributions of columns that are known to be right."""
        new = cls.__new__(cls)
        new.location, new.scale, new.law = location, scale, law
        new._codes = law.codes(scale)
        return new

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.scale.size

    def __getitem__(self, rows: Any) -> Distributions:
        """Return the distributions of some rows."""
        location, scale = (np.atleast_1d(x[rows]) for x in (self.location, self.scale))
        return Distributions.of(location, scale, self.law)

    def __repr__(self) -> str:
        """Return what there is, in words."""
        return "\n".join(self._sentences())

    def _sentences(self) -> list[str]:
        words = [f"Distributions of {len(self)} rows; the law is {self.law.words}."]
        if len(self):
            width = np.median(np.diff(self.interval(0.9)))
            low, middle, high = np.quantile(self.location, (0, 0.5, 1))
            words.append(
                f"Locations between {low:.4g} and {high:.4g}, median {middle:.4g}; "
                f"intervals of 90 % are {width:.4g} wide in the median."
            )
        return words

    def _repr_html_(self) -> str:
        words = [escape(each) for each in self._sentences()]
        rows = np.unique(np.linspace(0, len(self) - 1, min(len(self), 40)).astype(int))
        if not rows.size:
            return page(words, "", {})
        levels = (0.05, 0.25, 0.5, 0.75, 0.95)
        some = self[rows]
        quantiles = some.quantile(levels)
        figure = chart(
            rows.astype(np.float64),
            quantiles[:, 2],
            labels=("row", "median, and interval of 90 %"),
            ticks=(ticks_of(rows.astype(np.float64)), ticks_of(quantiles)),
            bars=(quantiles[:, 0], quantiles[:, -1]),
        )
        header = ("row", "mean", "std", *(f"{100 * each:g} %" for each in levels))
        numbers = np.column_stack([some.mean, some.std, quantiles])
        lines = [
            (str(row), *(f"{x:.4g}" for x in line))
            for row, line in zip(rows, numbers, strict=True)
        ]
        return page(words, figure, {"Some rows": html_table(header, lines)})

    @property
    def mean(self) -> Floats:
        """The mean of each distribution."""
        return np.asarray(self.location + self.scale * self.law.mean(self._codes))

    @property
    def std(self) -> Floats:
        """The standard deviation of each distribution, about its mean."""
        return np.asarray(self.scale * self.law.std(self._codes))

    def quantile(self, levels: Any) -> Floats:
        """Return quantiles.

        Parameters
        ----------
        levels : float or array-like of shape (k,)
            Probabilities between 0 and 1. Beyond what the rows of an empirical law can
            tell, the outermost z-score is taken, with a warning.

        Returns
        -------
        array of shape (n,), or (n, k)
        """
        p = check_levels(levels)
        z = self.law.quantiles(np.atleast_1d(p), self._codes)
        found = self.location[:, None] + self.scale[:, None] * z
        return np.asarray(found if p.ndim else found[:, 0])

    def interval(self, coverage: float = 0.9) -> Floats:
        """Return the central limits that hold the truth with some probability.

        Parameters
        ----------
        coverage : float, default 0.9
            The probability.

        Returns
        -------
        array of shape (n, 2)
        """
        share = check_coverage(coverage)
        return self.quantile([(1 - share) / 2, (1 + share) / 2])

    def cdf(self, y: Any) -> Floats:
        """Return the probability of what is at most y.

        Parameters
        ----------
        y : array-like of shape (n,)
            A value of each row.

        Returns
        -------
        array of shape (n,)
        """
        return self.law.cdf(self._z(y), self._codes)

    def pit(self, y: Any) -> Floats:
        """Return the probability integral transform of truths: uniform, if all is well.

        Where a value has a probability of its own, as errors of exactly 0 have, it is
        the middle of the step.

        Parameters
        ----------
        y : array-like of shape (n,)
            The truth of each row.

        Returns
        -------
        array of shape (n,)
        """
        z = self._z(y)
        both = self.law.cdf(z, self._codes) + self.law.below(z, self._codes)
        return np.asarray(both / 2)

    def crps(self, y: Any) -> Floats:
        """Return the continuous ranked probability score of each row; less is better.

        It is exact, for the table of an empirical law, too.

        Parameters
        ----------
        y : array-like of shape (n,)
            The truth of each row.

        Returns
        -------
        array of shape (n,)
        """
        scores = self.law.ranked_scores(self._z(y), self._codes)
        return np.asarray(self.scale * scores)

    def sample(self, n_draws: int, *, random_state: Any = 0) -> Floats:
        """Return random draws.

        Parameters
        ----------
        n_draws : int
            How many of each row.
        random_state : int or Generator, default 0
            Seed.

        Returns
        -------
        array of shape (n, n_draws)
        """
        count = check_count(n_draws, "n_draws")
        p = rng_from(random_state).random((len(self), count))
        return self.location[:, None] + self.scale[:, None] * self.law.draws(
            p, self._codes
        )

    def to_frame(
        self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> pl.DataFrame:
        """Return mean, standard deviation and quantiles as a Polars data frame.

        Parameters
        ----------
        levels : list of float
            The levels of the quantiles.

        Returns
        -------
        polars.DataFrame
            Columns "mean", "std", and "q0.05", ... by level.
        """
        import polars as pl

        p = np.atleast_1d(check_levels(levels))
        quantiles = self.quantile(p)
        columns = {f"q{level:g}": quantiles[:, i] for i, level in enumerate(p)}
        return pl.DataFrame({"mean": self.mean, "std": self.std, **columns})

    def _z(self, y: Any) -> Floats:
        """Return values in units of the scale."""
        values = as_array(y, "y")
        column: npt.NDArray[Any] = check_column(np.atleast_1d(values), "y")
        check_same_length("location", self.location, "y", column)
        return np.asarray((column - self.location) / self.scale)
