"""Bin sums: the mergeable summary from which nearly every statistic is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.telling import warn
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from .partitions import BinnedRows
from .quantiles import chunks


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums over the rows of each bin; two summaries of disjoint rows add up.

    Attributes
    ----------
    n : array of int, shape (n_bins,)
        Number of rows; where rows are weighted or older ones count less, the sum of the
        weights, and a float. All other sums are weighted, too.
    z2, z4, z6 : array of shape (n_bins,)
        Sums of the second, fourth and sixth powers of z = error / uncertainty.
    e2, u2, log_u2 : array of shape (n_bins,)
        Sums of squared errors, squared uncertainties and ln u².
    x_min, x_max : array of shape (n_bins,)
        Range of the binning variable; (inf, -inf) in an empty bin.

    Examples
    --------
    >>> import numpy as np
    >>> from sigmascale.bins.partitions import BinnedRows
    >>> error, u = np.array([1.0, -2.0, 3.0]), np.ones(3)
    >>> binned = BinnedRows.from_codes(np.array([0, 0, 1]), n_bins=2)
    >>> sums = BinSums.from_rows(binned, error, u)
    >>> sums.zms
    array([2.5, 9. ])
    >>> (sums + sums).n
    array([4, 2])
    """

    n: npt.NDArray[Any]
    z2: Floats
    z4: Floats
    z6: Floats
    e2: Floats
    u2: Floats
    log_u2: Floats
    x_min: Floats
    x_max: Floats

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together, for those that come from a file."""
        n, *sums = (getattr(self, each.name) for each in fields(self))
        *totals, log_u2, x_min, x_max = sums
        if not all(
            isinstance(each, np.ndarray) and each.shape == (n.size,)
            for each in (n, *sums)
        ):
            return False
        filled = n > 0
        return bool(
            n.dtype in (np.int64, np.float64)
            and all(each.dtype == float for each in sums)
            and (np.isfinite(n) & (n >= 0)).all()
            and all((np.isfinite(each) & (each >= 0)).all() for each in totals)
            and np.isfinite(log_u2).all()
            and np.isfinite(np.append(x_min[filled], x_max[filled])).all()
            and (x_min <= x_max)[filled].all()
        )

    def __post_init__(self) -> None:
        for each in fields(self):
            view = getattr(self, each.name).view()
            view.flags.writeable = False
            object.__setattr__(self, each.name, view)

    @classmethod
    def from_rows(
        cls,
        binned: BinnedRows,
        error: Floats,
        uncertainty: Floats,
        x: Floats | None = None,
        weights: Floats | None = None,
    ) -> BinSums:
        """Sum the rows of each bin; `x` is the binning variable, by default u.

        Weights are those of the rows in the order of `binned`, which may have a row
        several times, each with a part of its weight.
        """
        e, u = error[binned.order], uncertainty[binned.order]
        values = u if x is None else x[binned.order]
        z2 = (e / u) ** 2
        z4 = z2 * z2

        def total(each: Floats) -> Floats:
            return binned.reduce(np.add, each if weights is None else weights * each)

        return cls(
            n=binned.sizes if weights is None else binned.reduce(np.add, weights),
            z2=total(z2),
            z4=total(z4),
            z6=total(z4 * z2),
            e2=total(e * e),
            u2=total(u * u),
            log_u2=total(2 * np.log(u)),
            x_min=binned.reduce(np.minimum, values, np.inf),
            x_max=binned.reduce(np.maximum, values, -np.inf),
        )

    @classmethod
    def from_codes(
        cls,
        codes: Ints,
        n_bins: int,
        error: Floats,
        uncertainty: Floats,
        weights: Floats | None = None,
    ) -> BinSums:
        """Sum the rows of each code; the range is that of u.

        Rows are gathered by code a chunk at a time, in the cache: chunks add up.
        """
        parts: Iterable[BinSums] = (
            cls._of_chunk(
                BinnedRows.from_codes(codes[rows], n_bins),
                error[rows],
                uncertainty[rows],
                None if weights is None else weights[rows],
            )
            for rows in chunks(codes.size, n_bins)
        )
        return reduce(add, parts)

    @classmethod
    def _of_chunk(
        cls, binned: BinnedRows, error: Floats, u: Floats, weights: Floats | None
    ) -> BinSums:
        in_order = None if weights is None else weights[binned.order]
        return cls.from_rows(binned, error, u, weights=in_order)

    @classmethod
    def of_all(
        cls, error: Floats, uncertainty: Floats, weights: Floats | None = None
    ) -> BinSums:
        """Sum all rows."""
        codes = np.zeros(error.size, dtype=np.int64)
        return cls.from_codes(codes, 1, error, uncertainty, weights)

    def __add__(self, other: BinSums) -> BinSums:
        """Return the summary of both sets of rows, which must not share any."""
        if not isinstance(other, BinSums):
            return NotImplemented
        if self.n.size != other.n.size:
            msg = (
                "Only summaries over the same bins add up; found "
                f"{self.n.size} and {other.n.size} bins."
            )
            raise InvalidInputError(msg)
        return BinSums(
            **{
                field.name: _merge(field.name)(
                    getattr(self, field.name), getattr(other, field.name)
                )
                for field in fields(self)
            }
        )

    @property
    def total(self) -> BinSums:
        """The summary of all rows in one bin."""
        return BinSums(
            **{
                field.name: _merge(field.name).reduce(
                    getattr(self, field.name), keepdims=True
                )
                for field in fields(self)
            }
        )

    def regrouped(self, codes: Ints, n_bins: int) -> BinSums:
        """Return the summary of larger bins; bin i becomes a part of ``codes[i]``."""
        merged = {}
        for field in fields(self):
            values = getattr(self, field.name)
            how = _merge(field.name)
            empty = {"x_min": np.inf, "x_max": -np.inf}.get(field.name, 0)
            merged[field.name] = np.full(n_bins, empty, dtype=values.dtype)
            how.at(merged[field.name], codes, values)
        return BinSums(**merged)

    @property
    def zms(self) -> Floats:
        """The mean of z² in each bin, 1 where there are no rows; best is 1."""
        ones = np.ones(self.n.size)
        means: Floats = np.divide(self.z2, self.n, out=ones, where=self.n > 0)
        return means

    def scaling_factors(self) -> Floats:
        """Return the factors sqrt(<z²>) that minimise the negative log-likelihood.

        Bins that say nothing (no rows, or all errors exactly 0) take the factor of
        all rows together; 1 where that says nothing either.
        """
        average = self.total.zms[0] or 1.0
        informative = (self.n > 0) & (self.z2 > 0)
        return np.sqrt(np.where(informative, self.zms, average))

    def local_calibration_error(self) -> float:
        """Return S_x, the mean of abs(ln <z²>) over the bins that have rows."""
        filled = self.n > 0
        silent = int(np.count_nonzero(filled & (self.z2 == 0)))
        if silent:
            warn(
                f"All errors are exactly 0 in {silent} of {filled.sum()} bins: their "
                "|ln <Z²>|, and so the score, is infinite. Use fewer bins.",
                ZeroErrorBinWarning,
                stacklevel=3,
            )
            return float("inf")
        return float(np.mean(np.abs(np.log(self.zms[filled]))))

    def ence(self) -> float:
        """Return the expected normalised calibration error."""
        filled = self.n > 0
        return float(np.mean(np.abs(1 - np.sqrt(self.e2[filled] / self.u2[filled]))))

    def uce(self) -> float:
        """Return the uncertainty calibration error, in squared units of the error."""
        filled = self.n > 0
        return float(np.mean(np.abs(self.u2 - self.e2)[filled] / self.n[filled]))

    def nll(self) -> float:
        """Return the mean negative log-likelihood of normal errors."""
        mean = (np.sum(self.z2) + np.sum(self.log_u2)) / np.sum(self.n)
        return float(nll_from(mean))


def _merge(name: str) -> np.ufunc:
    return {"x_min": np.minimum, "x_max": np.maximum}.get(name, np.add)


def nll_from(mean: Any) -> Any:
    """Return the negative log-likelihood of normal errors from z² + ln u².

    It is that of a row, or the mean over rows if z² + ln u² is.
    """
    return 0.5 * (mean + np.log(2 * np.pi))
