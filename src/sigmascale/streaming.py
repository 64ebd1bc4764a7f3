"""Scores of rows that come piece by piece: from batches, devices and processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ._support.bits import ordered_bits
from ._support.checks import Floats, Ints, check_column
from .bins.devices import DeviceRows
from .bins.fine_bins import FineBins
from .bins.libraries import library_of, on_device
from .bins.partitions import EqualSizeBins, bins_of, cut_positions
from .bins.sums import BinSums
from .exceptions import InvalidInputError
from .judging.scores import Scorecard
from .predictions import as_predictions

_TERMS = ("z2", "e2", "u2", "log_u2")
_SHIFT = 42  # bits that numbers lose: 10 of the fraction are left, a thousandth


class RunningScores:
    """The scores of a set whose rows come piece by piece.

    Pieces may be arrays of NumPy or of a device, and be summed in any order and by
    several processes: their sums add up. With `limits`, rows are summed by fixed bins,
    and the scores are exact. Without, they are summed by fine intervals, a thousandth
    wide, of which equal-size bins are made in the end; the rows of an interval that a
    limit parts count in proportion on both sides, as for lazy frames.

    Parameters
    ----------
    limits : dict of str to array, optional
        The ascending limits between the bins of "u" and of every feature.
    n_bins : int, optional
        Number of equal-size bins, if there are no `limits`. By default as many of 30
        rows or more as there can be, up to 100.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = RunningScores(n_bins=20)
    >>> for _ in range(10):
    ...     u = rng.uniform(1, 2, 1000)
    ...     scores = scores.update(rng.normal(scale=u), u)
    >>> scores.n_rows
    10000
    >>> round(scores.scorecard().zms, 1)
    1.0
    """

    def __init__(
        self, *, limits: Mapping[str, Any] | None = None, n_bins: int | None = None
    ) -> None:
        bins_of(n_bins, 1)  # checks it
        self.n_bins = n_bins
        self.limits = None
        if limits is not None:
            if "u" not in limits:
                msg = "`limits` must have those of the uncertainty, under the name u."
                raise InvalidInputError(msg)
            self.limits = {
                str(name): _ascending(values, str(name))
                for name, values in limits.items()
            }
        self._sums: dict[str, tuple[Ints, BinSums]] = {}

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return int(self._sums["u"][1].n.sum()) if self._sums else 0

    def update(self, error: Any, uncertainty: Any, features: Any = None) -> Self:
        """Add the rows of a piece.

        Parameters
        ----------
        error : array-like of shape (n,)
            Errors, reference minus prediction.
        uncertainty : array-like of shape (n,)
            Standard uncertainties, strictly positive.
        features : dict or array of shape (n, n_features), optional
            Numeric features, the same in all pieces.

        Returns
        -------
        self
        """
        rows: Any
        if on_device(error, uncertainty, features):
            rows = DeviceRows.judged(error, uncertainty, features)
        else:
            rows = as_predictions(error, uncertainty, features)
        piece = {}
        with library_of(rows.uncertainty).in_64_bits():
            for name, x in zip(rows.names, rows.columns, strict=True):
                if isinstance(x, np.ndarray) and x.dtype.kind != "f":
                    msg = f"`features` must be numbers; {name!r} holds labels."
                    raise InvalidInputError(msg)
                piece[name] = self._summed(rows, name, x)
        return self._add(piece)

    def _bins(self, name: str) -> EqualSizeBins | None:
        if self.limits is None:
            return None
        if name not in self.limits:
            msg = (
                f"`limits` must have all variables; {name!r} is none of "
                f"{', '.join(self.limits)}."
            )
            raise InvalidInputError(msg)
        return EqualSizeBins(self.limits[name])

    def _summed(self, rows: Any, name: str, x: Any) -> tuple[Ints, BinSums]:
        """Return the sums of rows by bin or fine interval, and which these are."""
        library, bins = library_of(x), self._bins(name)
        if bins is not None:
            keys = bins.codes(x)
        else:
            bits = library.bits(library.floats(x))
            if bits is None:
                msg = (
                    f"`limits` must be given for arrays of {library.name}, which hides "
                    "the bits of its numbers."
                )
                raise InvalidInputError(msg)
            keys = ordered_bits(bits) >> _SHIFT
        found, codes = library.xp.unique_inverse(keys)
        sums = BinSums.from_codes(
            codes,
            int(found.shape[0]),
            rows.errors,
            rows.uncertainty,
            terms=(*_TERMS, "x_min"),
        )
        return library.to_host(found).astype(np.int64), sums

    def _add(self, piece: Mapping[str, tuple[Ints, BinSums]]) -> Self:
        if self._sums and set(piece) != set(self._sums):
            msg = (
                "`features` must be the same in all pieces; found "
                f"{', '.join(piece)} after {', '.join(self._sums)}."
            )
            raise InvalidInputError(msg)
        for name, (keys, sums) in piece.items():
            if name not in self._sums:
                self._sums[name] = keys, sums
                continue
            old_keys, old = self._sums[name]
            both = np.union1d(old_keys, keys)
            self._sums[name] = (
                both,
                old.regrouped(np.searchsorted(both, old_keys), both.size)
                + sums.regrouped(np.searchsorted(both, keys), both.size),
            )
        return self

    def merge(self, other: Any) -> Self:
        """Add what another one has summed, of other rows.

        Parameters
        ----------
        other : RunningScores
            One with the same limits.

        Returns
        -------
        self
        """
        if not isinstance(other, RunningScores) or not _same_limits(self, other):
            msg = "`other` must be RunningScores with the same limits and bins."
            raise InvalidInputError(msg)
        return self._add(other._sums)

    def scorecard(self) -> Scorecard:
        """Return the scores of all rows so far.

        Returns
        -------
        Scorecard
        """
        if not self._sums:
            msg = "There are no rows yet: call update first."
            raise InvalidInputError(msg)
        if self.limits is not None:
            n_bins = max(limits.size + 1 for limits in self.limits.values())
            sums = {name: sums for name, (_, sums) in self._sums.items()}
            return Scorecard.from_sums(sums, n_bins)
        n_bins = min(bins_of(self.n_bins, self.n_rows), self.n_rows)
        ranks = cut_positions(self.n_rows, n_bins)
        binned = {
            name: _fine_bins(keys, sums).even_sums(ranks)
            for name, (keys, sums) in self._sums.items()
        }
        return Scorecard.from_sums(binned, n_bins)


def _ascending(values: Any, name: str) -> Floats:
    limits = check_column(values, f"limits of {name}") if len(values) else np.empty(0)
    if (np.diff(limits) <= 0).any():
        msg = f"`limits` must ascend; those of {name!r} do not."
        raise InvalidInputError(msg)
    return limits


def _same_limits(one: RunningScores, other: RunningScores) -> bool:
    if one.limits is None or other.limits is None:
        return one.limits is other.limits and one.n_bins == other.n_bins
    return one.limits.keys() == other.limits.keys() and all(
        np.array_equal(limits, other.limits[name])
        for name, limits in one.limits.items()
    )


def _fine_bins(keys: Ints, sums: BinSums) -> FineBins:
    """Return fine intervals with the numbers that their keys stand for."""

    def number(ordered: Ints) -> Floats:
        numbers: Floats = ordered_bits(ordered).view(np.float64)
        return numbers

    low, high = number(keys << _SHIFT), number(((keys + 1) << _SHIFT) - 1)
    return FineBins.of(
        low, high, sums.n, {name: getattr(sums, name) for name in _TERMS}
    )
