"""Fine bins of the columns of a lazy frame, counted and summed by its engine.

Rows are grouped by their value rounded to a few bits. What comes back is small,
whatever the number of rows. Where a limit falls into a fine bin with too many rows, a
second pass looks into such fine bins only.

An engine that hands out arrays (Polars) has its rows summed by a `Tally`; the others
group them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ..bins.fine_bins import FineBins, Ranks, Tally, round_to
from .lazy import Arrays, Frame, LazyRows, collect, sums_of, with_terms

EXACT_ROWS = 2_000_000  # up to here, every limit gets its exact rank
SHARE = 2e-4  # of all rows, beyond: a fine bin with a limit at its nearer edge
FIT_BITS, SCORE_BITS, TIE_BITS = 13, 10, 9
MORE_BITS = 13  # gained by looking into a fine bin
FEW_ROWS = 2**18  # so many rows are grouped by their very values


@dataclass(frozen=True)
class Survey:
    """What is asked of the fine bins of several columns.

    Attributes
    ----------
    terms : tuple of str
        The terms to be summed.
    bits : int
        Bits of the first pass.
    share : float
        The share of rows that a fine bin with a limit may have in a large frame.
    ties : bool
        Whether rows of equal x are told apart by u.
    missing_allowed : bool
        Whether rows may have no x.
    u_range : bool
        Whether the range of u is wanted, too; for one column only.
    lean : bool
        Whether the range of x is not wanted.
    feature_terms : tuple of str, optional
        Those of the terms that are to be summed by features, too; by default all.
    """

    terms: tuple[str, ...]
    bits: int = FIT_BITS
    share: float = SHARE
    ties: bool = False
    missing_allowed: bool = False
    u_range: bool = True
    lean: bool = False
    feature_terms: tuple[str, ...] | None = None

    def take(self, rows: LazyRows, columns: dict[str, Ranks]) -> dict[str, FineBins]:
        """Return the fine bins of each column: one pass, and a second where needed.

        For each column, `columns` says which rank its limits should have.
        """
        found = self._first_pass(rows, list(columns))
        taken = {}
        for column, ranks in columns.items():
            mine = found[column]
            missing = np.isnan(mine["key"].astype(np.float64))
            fine = self._fine_bins(mine, column, ~missing)
            if missing.any() or not fine.n.size:
                # an unusable error or uncertainty makes u missing
                rows.refuse(missing_allowed=self.missing_allowed)
            taken[column] = self._resolve(rows, column, fine, ranks)
        return taken

    def _first_pass(self, rows: LazyRows, columns: list[str]) -> dict[str, Arrays]:
        """Return the sums of the fine bins of all columns."""
        wanted = {column: self._terms_of(column) for column in columns}
        u_range = self.u_range and columns != ["u"]
        if rows.frame.implementation.is_polars() and not u_range:
            frame = rows.unchecked.select("e", *{"u": 0, **wanted})
            total = _tallied(frame, Tally(wanted, self.bits, x_range=not self.lean))
            if total.ok:
                return total.fine_bins()
        return {
            column: self._grouped(
                rows.frame,
                column,
                {"key": round_to(nw.col(column), self.bits)},
                x_range=not self.lean,
            )
            for column in columns
        }

    def _terms_of(self, column: str) -> tuple[str, ...]:
        """Return the terms that are summed by a column."""
        all_of_them = column == "u" or self.feature_terms is None
        return self.terms if all_of_them else self.feature_terms or ()

    def _grouped(
        self,
        frame: Frame,
        column: str,
        keys: dict[str, nw.Expr],
        *,
        x_range: bool = True,
        u_range: bool = False,
    ) -> Arrays:
        """Return sums of rows, and the ranges of x and u, by some keys."""
        terms, x, u = self._terms_of(column), nw.col(column), nw.col("u")
        wanted = sums_of(terms)
        if x_range:
            wanted |= {"low": x.min(), "high": x.max()}
        if column != "u" and (self.u_range or u_range):
            wanted |= {"u_min": u.min(), "u_max": u.max()}
        keyed = with_terms(frame, terms).with_columns(**keys)
        return collect(keyed.group_by(*keys).agg(**wanted))

    def _fine_bins(self, found: Arrays, column: str, which: Any) -> FineBins:
        order = np.flatnonzero(which)
        lows = found["low"] if "low" in found else found["key"]
        order = order[np.argsort(lows[order], kind="stable")]
        low = np.asarray(lows[order], dtype=np.float64)
        # a fine bin of unknown range counts as one of several values
        high = found["high"][order] if "high" in found else np.nextafter(low, np.inf)
        sums = {
            name: np.asarray(found[name][order], dtype=np.float64)
            for name in self.terms
            if name in found
        }
        if column == "u":
            sums |= {"u_min": low, "u_max": high}
        elif "u_min" in found:
            sums |= {name: found[name][order] for name in ("u_min", "u_max")}
        return FineBins.of(low, high, found["n"][order].astype(np.int64), sums)

    def _open(self, fine: FineBins, ranks_of: Ranks) -> npt.NDArray[np.bool_]:
        """Return which fine bins a limit falls into that have too many rows."""
        n_rows = fine.n_rows
        ranks = ranks_of(n_rows)
        allowed = 1 if n_rows <= EXACT_ROWS else self.share * n_rows
        at = fine.holding(ranks)
        inside = at[(np.cumsum(fine.n) - fine.n)[at] < ranks]
        result = np.zeros(fine.n.size, dtype=bool)
        result[inside] = fine.n[inside] > allowed
        if fine.n.size <= ranks.size + 1:  # few values: each may have its own bin
            result |= ~fine.single
        apart = self.ties & (fine.tie_low < fine.tie_high)
        return result & (~fine.single | apart)

    def _resolve(
        self, rows: LazyRows, column: str, fine: FineBins, ranks: Ranks
    ) -> FineBins:
        """Look into fine bins that have a limit and too many rows."""
        bits, tie_bits = self.bits, 0
        while True:
            open_ = self._open(fine, ranks)
            if not open_.any():
                return fine
            wide = open_ & ~fine.single
            if wide.any():
                few = int(fine.n[wide].sum()) <= FEW_ROWS
                finer_bits = 53 if few else min(53, bits + MORE_BITS)
                finer = self._look_into(rows, column, fine, wide, bits, finer_bits)
                fine, bits = fine.replaced(wide, finer), finer_bits
                continue
            few = int(fine.n[open_].sum()) <= FEW_ROWS
            more_bits = tie_bits + MORE_BITS if tie_bits else TIE_BITS
            finer_bits = 53 if few else min(53, more_bits)
            finer = self._tell_apart(rows, column, fine, open_, tie_bits, finer_bits)
            fine, tie_bits = fine.replaced(open_, finer), finer_bits

    def _look_into(
        self,
        rows: LazyRows,
        column: str,
        fine: FineBins,
        which: npt.NDArray[np.bool_],
        bits: int,
        finer_bits: int,
    ) -> FineBins:
        """Group the rows of some fine bins by more bits of x."""
        parents, x = round_to(fine.low[which], bits).tolist(), nw.col(column)
        inside = rows.frame.filter(round_to(x, bits).is_in(parents))
        found = self._grouped(inside, column, {"key": round_to(x, finer_bits)})
        return self._fine_bins(found, column, found["n"] > 0)

    def _tell_apart(
        self,
        rows: LazyRows,
        column: str,
        fine: FineBins,
        which: npt.NDArray[np.bool_],
        bits: int,
        finer_bits: int,
    ) -> FineBins:
        """Group the rows of equal x, in some fine bins, by more bits of u."""
        x, u = nw.col(column), nw.col("u")
        frame = rows.frame.filter(x.is_in(np.unique(fine.low[which]).tolist()))
        if bits:
            ties = round_to(fine.tie_low[which], bits)
            frame = frame.filter(round_to(u, bits).is_in(np.unique(ties).tolist()))
        keys = {"key": x, "tie": round_to(u, finer_bits)}
        found = self._grouped(frame, column, keys, u_range=True)
        mine = np.ones(found["n"].size, dtype=bool)
        if bits:  # the filters let more than these pairs of x and u pass
            pairs = set(zip(fine.low[which].tolist(), ties.tolist(), strict=True))
            theirs = round_to(found["u_min"], bits).tolist()
            found_pairs = zip(found["low"].tolist(), theirs, strict=True)
            mine = np.array([pair in pairs for pair in found_pairs], dtype=bool)
        finer = self._fine_bins(found, column, mine)
        u_range = finer.sums["u_min"], finer.sums["u_max"]
        return replace(finer, tie_low=u_range[0], tie_high=u_range[1])


def _tallied(frame: Frame, total: Tally) -> Tally:
    """Add the rows of a Polars frame to a tally as they stream by, in its threads.

    If a row cannot be used, or a column spans too many powers of 2, the tally is not
    ok: grouping then takes what it can, and says what is wrong.
    """
    # by thread; not threading.local, which a thread of Polars loses with every call
    tallies: dict[int, Tally] = {}

    def add(batch: Any) -> Any:
        thread = threading.get_ident()
        if thread not in tallies:
            tallies[thread] = total.empty()
        if all(tally.ok for tally in list(tallies.values())):
            tallies[thread].add(
                {name: batch[name].to_numpy() for name in batch.columns}
            )
        return batch.clear()

    frame.to_native().map_batches(add, streamable=True).collect(engine="streaming")
    for tally in tallies.values():
        total.merge(tally)
    return total
