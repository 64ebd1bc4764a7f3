"""Bin sums: the mergeable summary from which nearly every statistic is computed.

Rows may be arrays of any library: they are summed where they are, and only sums come
here. Sums over the joint cells of several variables are what raking learns from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.notices import warn
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from .libraries import Array, library_of
from .partitions import BinnedRows, sum_by_code

TERMS = ("z2", "z4", "z6", "e2", "u2", "log_u2", "x_min", "x_max")
_MERGED = {"x_min": np.minimum, "x_max": np.maximum}  # all else is added up


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
        if not all(each.shape == (n.size,) for each in (n, *sums)):
            return False
        filled = n > 0
        return bool(
            n.dtype in (np.int64, np.float64)
            and (np.isfinite(n) & (n >= 0)).all()
            and all((np.isfinite(each) & (each >= 0)).all() for each in totals)
            and np.isfinite(log_u2).all()
            and np.isfinite(np.append(x_min[filled], x_max[filled])).all()
            and (x_min <= x_max)[filled].all()
        )

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
        return cls._of_runs(binned.sizes, e, u, values, weights, TERMS)

    @classmethod
    def from_codes(
        cls,
        codes: Array,
        n_bins: int,
        error: Array,
        uncertainty: Array,
        weights: Floats | None = None,
        terms: tuple[str, ...] = TERMS,
    ) -> BinSums:
        """Sum the rows of each code; the range is that of u.

        Terms that are not asked for are NaN. Rows are gathered by code some at a time:
        chunks add up.
        """
        library = library_of(codes)
        columns = [codes, error, uncertainty, *([] if weights is None else [weights])]
        kind = cls._gathered if n_bins <= library.few_codes else cls._added
        size = library.gathered if n_bins <= library.few_codes else library.chunk
        chunks = library.chunks(codes.shape[0], max(size, n_bins))
        parts = (kind(n_bins, terms, *(x[rows] for x in columns)) for rows in chunks)
        return reduce(add, parts)

    @classmethod
    def _gathered(
        cls,
        n_codes: int,
        terms: tuple[str, ...],
        codes: Array,
        *columns: Array,
    ) -> BinSums:
        """Sum rows that are brought into the order of their codes first."""
        library = library_of(codes)
        order = library.order_of(codes, n_codes)
        e, u, *weights = (
            library.floats(library.xp.take(x, order, axis=0)) for x in columns
        )
        del order  # which takes as much memory as a column
        sizes = library.counts(codes, n_codes)
        return cls._of_runs(sizes, e, u, u, weights[0] if weights else None, terms)

    @classmethod
    def _added(
        cls, n_codes: int, terms: tuple[str, ...], codes: Array, error: Array, u: Array
    ) -> BinSums:
        """Sum rows that stay where they are."""
        library = library_of(codes)
        e, u = library.floats(error), library.floats(u)
        found = {
            name: library.sums_by_code(
                codes, n_codes, left if right is None else left * right
            )
            for name, left, right in _products(library.xp, e, u, terms)
        }
        if "x_min" in terms:
            found["x_min"], found["x_max"] = library.range_by_code(codes, n_codes, u)
        sums = {name: library.to_host(each) for name, each in found.items()}
        return cls(**_complete(library.counts(codes, n_codes), sums))

    @classmethod
    def of_all(
        cls,
        error: Array,
        uncertainty: Array,
        weights: Floats | None = None,
        terms: tuple[str, ...] = TERMS,
    ) -> BinSums:
        """Sum all rows; terms that are not asked for are NaN."""
        library = library_of(error)
        parts = []
        for rows in library.chunks(error.shape[0]):
            e, u = library.floats(error[rows]), library.floats(uncertainty[rows])
            some = None if weights is None else weights[rows]
            sizes = np.array([e.shape[0]])
            parts.append(cls._of_runs(sizes, e, u, u, some, terms))
        return reduce(add, parts)

    @classmethod
    def _of_runs(
        cls,
        sizes: Ints,
        e: Array,
        u: Array,
        x: Array,
        weights: Floats | None,
        terms: tuple[str, ...],
    ) -> BinSums:
        """Sum runs of neighbouring rows."""
        library = library_of(e)
        products = _products(library.xp, e, u, terms, weights)
        x = x if "x_min" in terms else None
        return cls(**_complete(sizes, library.sums_of_runs(sizes, products, x)))

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
                name: _MERGED.get(name, np.add)(values, getattr(other, name))
                for name, values in vars(self).items()
            }
        )

    @property
    def total(self) -> BinSums:
        """The summary of all rows in one bin."""
        return BinSums(
            **{
                name: _MERGED.get(name, np.add).reduce(values, keepdims=True)
                for name, values in vars(self).items()
            }
        )

    def regrouped(self, codes: Ints, n_bins: int) -> BinSums:
        """Return the summary of larger bins; bin i becomes a part of ``codes[i]``."""
        merged = {}
        for name, values in vars(self).items():
            empty = {"x_min": np.inf, "x_max": -np.inf}.get(name, 0)
            merged[name] = np.full(n_bins, empty, dtype=values.dtype)
            _MERGED.get(name, np.add).at(merged[name], codes, values)
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


def nll_from(mean: Any) -> Any:
    """Return the negative log-likelihood of normal errors from z² + ln u².

    It is that of a row, or the mean over rows if z² + ln u² is.
    """
    return 0.5 * (mean + np.log(2 * np.pi))


def _products(
    xp: Any,
    e: Array,
    u: Array,
    terms: tuple[str, ...],
    weights: Floats | None = None,
) -> Iterator[tuple[str, Array, Array | None]]:
    """Yield the terms that are asked for, as products of two arrays.

    A sum of products needs no array of them. Instead of ln u² there is ln u, alone.
    """
    if weights is not None:
        yield "n", weights, None
        for name, left, right in _products(xp, e, u, terms):
            yield name, left, weights if right is None else right * weights
        return
    if {"z2", "z4", "z6"} & set(terms):
        z = e / u
        yield "z2", z, z
        if {"z4", "z6"} & set(terms):
            z2 = z * z
            yield "z4", z2, z2
            z = z2 * z
            yield "z6", z, z
            del z2
        del z
    if "e2" in terms:
        yield "e2", e, e
    if "u2" in terms:
        yield "u2", u, u
    if "log_u2" in terms:
        yield "log_u2", xp.log(u), None


def _complete(n: Ints, sums: dict[str, Floats]) -> dict[str, Any]:
    """Return the sums that there are, and NaN for the others."""
    if "log_u2" in sums:
        sums["log_u2"] = 2 * sums["log_u2"]
    unknown = {name: np.full(n.size, np.nan) for name in TERMS if name not in sums}
    return {"n": n} | unknown | sums


@dataclass(frozen=True)
class CellSums:
    """Sums over joint cells; the tables of disjoint rows add up.

    Attributes
    ----------
    codes : array of int, shape (n_cells, n_variables)
        The bin of each variable that makes a cell.
    fold : array of int, shape (n_cells,)
        The fold of cross-validation.
    n, z2, capped : array of shape (n_cells,)
        Number (or weight) of rows, sum of z², and sum of z² with each counted up to a
        cap.
    """

    codes: Ints
    fold: Ints
    n: Floats
    z2: Floats
    capped: Floats

    @classmethod
    def from_rows(
        cls,
        codes: Ints,
        fold: Ints,
        z2: Floats,
        cap: float,
        weights: Floats | None = None,
    ) -> CellSums:
        """Sum the rows of each cell and fold."""
        one, capped = np.ones(z2.size), np.minimum(z2, cap)
        if weights is not None:
            one, z2, capped = weights, weights * z2, weights * capped
        return cls(codes, fold, one, z2, capped).compact()

    def __add__(self, other: CellSums) -> CellSums:
        """Return the table of both sets of rows, which must not share any."""
        if self.codes.shape[1] != other.codes.shape[1]:
            msg = "Only tables over the same variables add up."
            raise InvalidInputError(msg)
        both = {
            name: np.concatenate([values, getattr(other, name)])
            for name, values in vars(self).items()
        }
        return CellSums(**both).compact()

    def compact(self) -> CellSums:
        """Add up the lines of each cell and fold, and sort them."""
        key = np.zeros(self.fold.size, dtype=np.int64)
        size = 1  # of the numbers of cells so far
        for code in (*self.codes.T, self.fold):
            n_codes = 1 + int(code.max(initial=0))
            if size * n_codes > 2**62:  # count only the cells that there are
                found, key = np.unique(key, return_inverse=True)
                size = found.size
            key = key * n_codes + code
            size *= n_codes
        _, first, where = np.unique(key, return_index=True, return_inverse=True)
        sums = [
            sum_by_code(where, values, first.size)
            for values in (self.n, self.z2, self.capped)
        ]
        return CellSums(np.asfortranarray(self.codes[first]), self.fold[first], *sums)

    def rows(self, which: Any) -> CellSums:
        """Return some of the cells."""
        return CellSums(**{name: values[which] for name, values in vars(self).items()})

    def with_pairs(
        self, pairs: Sequence[tuple[int, int]], n_codes: Sequence[int]
    ) -> CellSums:
        """Return the same cells, with the joint codes of pairs of variables as more."""
        return replace(self, codes=with_joint_codes(self.codes, pairs, n_codes))


def with_joint_codes(
    codes: Ints, pairs: Sequence[tuple[int, int]], n_codes: Sequence[int]
) -> Ints:
    """Return codes of variables and of pairs; `n_codes` says how many each has."""
    if not pairs:
        return codes
    wide = codes.astype(np.int64)
    joint = [wide[:, a] * n_codes[b] + wide[:, b] for a, b in pairs]
    return np.asfortranarray(np.column_stack([wide, *joint]))
