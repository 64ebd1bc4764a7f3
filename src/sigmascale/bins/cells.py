"""Sums over the joint cells of several variables: what raking learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from ..exceptions import InvalidInputError
from .partitions import sum_by_code


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
