"""The sums of a lazy frame that recalibrators learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.labels import Categories, Label
from ..bins.fine_bins import FineBins, Ranks, equal_size_bins, equal_size_ranks
from ..bins.partitions import Cells, EqualSizeBins, LabelBins, most_bins
from ..bins.sums import BinSums, CellSums
from ..exceptions import InvalidInputError
from ..oddities import warn_of_zero_errors
from ..predictions import Columns
from ..scaling.crossfit import phase
from ..scaling.summaries import Cap, Levels, Partition, Variances
from .fine_bins import Survey
from .lazy import TERMS, Arrays, LazyRows, collect, sums_of, with_terms

LABEL = "label"  # the key of sums by label
MAX_CELLS = 20_000_000  # joint cells of raking that may come into memory


class LazySummaries(Columns):
    """What a lazy frame answers to those who learn from sums.

    It is a `Summaries`, see `scaling.summaries`, with a query for each answer.
    """

    def __init__(self, rows: LazyRows) -> None:
        self._rows = rows
        self.names = rows.names
        self._seen: tuple[int, float, float] | None = None

    def seen(self) -> tuple[int, float, float]:
        """Return the number of rows, the smallest and the largest uncertainty."""
        if self._seen is None:
            self.total()
        assert self._seen is not None
        return self._seen

    def rows_for(self, purpose: str) -> NoReturn:
        """Refuse what needs the rows themselves."""
        msg = (
            f"{purpose} needs rows in memory, and a lazy frame has sums only. Collect "
            "a sample of the rows and fit it to that."
        )
        raise InvalidInputError(msg)

    def total(self) -> BinSums:
        """Return the sums of all rows."""
        found = self._grouped(self._rows, {"all": nw.lit(0)})
        return _bin_sums(found)

    def by_bins(self, position: int, n_bins: int) -> tuple[EqualSizeBins, BinSums]:
        """Return equal-size bins and their sums; u tells equal features apart."""
        column, ties = self._number_column(position), position != 0
        survey = Survey(terms=TERMS, ties=ties)
        fine = survey.take(self._rows, {column: equal_size_ranks(n_bins)})[column]
        fine = replace(fine, sums=_informative(fine.n, fine.sums))
        bins, cuts = equal_size_bins(fine, n_bins, ties=ties)
        sums = fine.bin_sums(cuts)
        u_range = float(sums.x_min.min()), float(sums.x_max.max())
        self._seen = int(sums.n.sum()), *u_range
        return bins, sums

    def by_cells(
        self, positions: tuple[int, int], n_bins: tuple[int, int]
    ) -> tuple[Cells, BinSums]:
        """Return the cells of two columns, and their sums."""
        columns = [self._number_column(position) for position in positions]
        survey = Survey(terms=(), u_range=False)
        ranks = [equal_size_ranks(n) for n in n_bins]
        taken = survey.take(self._rows, dict(zip(columns, ranks, strict=True)))
        first, second = (
            equal_size_bins(taken[column], n)[0]
            for column, n in zip(columns, n_bins, strict=True)
        )
        keys = {
            f"code{k}": _bin_of(nw.col(x), each.limits)
            for k, (x, each) in enumerate(zip(columns, (first, second), strict=True))
        }
        found = self._grouped(self._rows, keys)
        code0, code1 = (found.pop(key).astype(np.int64) for key in keys)
        cells = Cells(first, second)
        sums = _bin_sums(found)
        return cells, sums.regrouped(code0 * second.n_bins + code1, cells.n_bins)

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the distinct labels of a column, sorted, and the sums of each."""
        rows = self._rows.with_labels([position])
        return by_label(self._grouped(rows, {LABEL: nw.col(rows.columns[position])}))

    def variances(self) -> Variances:
        """Return squared errors against squared uncertainties, means of fine bins."""
        fine, sums = self._by_uncertainty()
        return Variances(sums["u2"] / fine.n, sums["e2"] / fine.n, fine.n)

    def levels(self) -> Levels:
        """Return mean squared errors by fine bins of u."""
        fine, sums = self._by_uncertainty()
        return Levels(fine.low**2, fine.high**2, sums["e2"] / fine.n, fine.n)

    def _by_uncertainty(self) -> tuple[FineBins, dict[str, Floats]]:
        survey = Survey(terms=("z2", "e2", "u2"))
        fine = survey.take(self._rows, {"u": _no_ranks})["u"]
        self._seen = fine.n_rows, float(fine.low[0]), float(fine.high[-1])
        return fine, _informative(fine.n, fine.sums)

    def partitions(
        self,
        n_bins: Sequence[int],
        labelled: set[int],
        *,
        least_rows: int,
        max_labels: int,
    ) -> list[Partition]:
        """Return a partition of each column, by quantiles or by frequent labels."""
        self._rows = rows = self._rows.with_labels(labelled)
        ranks = {
            column: _quantile_ranks(wanted, least_rows)
            for column, wanted in zip(rows.columns, n_bins, strict=True)
            if column not in rows.labelled
        }
        terms = ("z2", "e2", "u2", "nonzero")
        survey = Survey(terms, missing_allowed=True, u_range=False, feature_terms=())
        taken = survey.take(rows, ranks)
        u = taken["u"]
        self._seen = u.n_rows, float(u.low[0]), float(u.high[-1])
        self._totals = {
            name: float(values.sum()) for name, values in taken["u"].sums.items()
        }
        if not self._totals["nonzero"]:
            warn_of_zero_errors(self._seen[0])
        return [
            _quantiles(taken[column], ranks[column])
            if column in taken
            else self._frequent_labels(column, max_labels)
            for column in rows.columns
        ]

    def _frequent_labels(self, column: str, most: int) -> LabelBins:
        found = collect(self._rows.frame.group_by(column).agg(nw.len().alias("n")))
        labels = Categories.of(found[column])
        n = np.bincount(labels.codes, found["n"])
        return LabelBins.most_frequent(labels.labels, n, most)

    def by_joint_cells(
        self, partitions: Sequence[Partition], n_folds: int, seed: int, cap: Cap
    ) -> CellSums:
        """Return sums over the joint cells of all columns, by fold.

        `partitions` must have been called before, for the totals that it found.
        """
        n_rows, totals = self.seen()[0], self._totals
        n_cells = n_folds * math.prod(partition.n_codes for partition in partitions)
        if min(n_rows, n_cells) > MAX_CELLS:
            msg = (
                f"{len(partitions)} columns make too many joint cells to rake from "
                f"sums; found up to {min(n_rows, n_cells)}. Use fewer bins or columns."
            )
            raise InvalidInputError(msg)
        columns = [nw.col(column) for column in self._rows.columns]
        keys = {
            f"code{k}": _key(x, partition)
            for k, (x, partition) in enumerate(zip(columns, partitions, strict=True))
        }
        keys["fold"] = _bin_of(
            uniform(totals["e2"] / n_rows, totals["u2"] / n_rows, seed),
            np.arange(1, n_folds) / n_folds,
        )
        silent = not totals["nonzero"]  # then every z² counts as 1
        nonzero = n_rows if silent else int(totals["nonzero"])
        most = cap(n_rows, nonzero, 1.0 if silent else totals["z2"] / n_rows)
        capped = nw.when(nw.col("z2") > most).then(most).otherwise(nw.col("z2"))
        frame = with_terms(self._rows.frame, ("z2",)).with_columns(
            **keys, capped=capped
        )
        found = collect(frame.group_by(*keys).agg(**sums_of(("z2", "capped"))))
        if silent:
            found |= {"z2": found["n"], "capped": found["n"]}
        codes = [_codes(found[f"code{k}"], each) for k, each in enumerate(partitions)]
        return CellSums(
            np.column_stack(codes),
            found["fold"].astype(np.int64),
            *(found[name].astype(np.float64) for name in ("n", "z2", "capped")),
        ).compact()

    def _number_column(self, position: int) -> str:
        column = self._rows.columns[position]
        if column in self._rows.labelled:
            msg = (
                f"`by` must be a column of numbers; {self.names[position]!r} holds "
                "text. CategoryScaling gives each label a factor."
            )
            raise InvalidInputError(msg)
        return column

    def _grouped(self, rows: LazyRows, keys: dict[str, nw.Expr]) -> Arrays:
        """Return sums by some keys that something can be learned from."""
        found = sums_by(rows, keys)
        u_range = float(found["x_min"].min()), float(found["x_max"].max())
        self._seen = int(found["n"].sum()), *u_range
        return _informative(found["n"], found)


def sums_by(rows: LazyRows, keys: dict[str, nw.Expr]) -> Arrays:
    """Return the sums of all terms, and the range of u, by some keys."""
    u = nw.col("u")
    found = collect(
        with_terms(rows.frame, TERMS)
        .with_columns(**keys)
        .group_by(*keys)
        .agg(**sums_of(TERMS), x_min=u.min(), x_max=u.max(), usable=u.count())
    )
    if not np.array_equal(found.pop("usable"), found["n"]) or not found["n"].size:
        rows.refuse()
    return found


def by_label(found: Arrays) -> tuple[tuple[Label, ...], BinSums]:
    """Return the distinct labels of sums by label, sorted, and the sums of each."""
    labels = Categories.of(found[LABEL])
    return labels.labels, _bin_sums(found).regrouped(labels.codes, len(labels.labels))


def _bin_sums(found: Arrays) -> BinSums:
    """Return the sums that a query found, one bin a row of its result."""
    floats = {
        name: found[name].astype(np.float64) for name in (*TERMS, "x_min", "x_max")
    }
    return BinSums(n=found["n"].astype(np.int64), **floats)


def _informative(n: Ints, sums: Arrays) -> Arrays:
    """Return sums from which something can be learned: errors are not all 0."""
    if sums["z2"].any():
        return sums
    warn_of_zero_errors(int(n.sum()))
    as_if = {"z2": n, "z4": n, "z6": n, "e2": sums.get("u2")}
    return sums | {
        name: np.asarray(as_if[name], dtype=np.float64)
        for name in sums.keys() & as_if.keys()
    }


def _no_ranks(n_rows: int) -> Ints:
    return np.empty(0, dtype=np.int64)


def _quantile_ranks(n_bins: int, least_rows: int) -> Ranks:
    """Return the ranks of the limits that `EqualSizeBins.quantiles` would learn."""

    def ranks(n_rows: int) -> Ints:
        feasible = most_bins(n_rows, n_bins, least_rows)
        return np.ceil(np.arange(1, feasible) * n_rows / feasible).astype(np.int64) - 1

    return ranks


def _quantiles(fine: FineBins, ranks_of: Ranks) -> EqualSizeBins:
    ranks = ranks_of(fine.n_rows)
    if fine.n.size <= ranks.size + 1:  # a bin for each value
        return EqualSizeBins(fine.low[1:])
    return EqualSizeBins(fine.low[fine.cut(ranks)])


def _bin_of(x: nw.Expr, limits: Floats) -> nw.Expr:
    """Return the bin of each row: i where limits[i - 1] <= x < limits[i].

    An engine evaluates all branches of a condition for all rows, so that n bins cost n
    comparisons a row, however they are nested; a balanced tree is shallow.
    """

    def among(first: int, last: int) -> nw.Expr:
        if first == last:
            return nw.lit(first)
        middle = (first + last) // 2
        below, above = among(first, middle), among(middle + 1, last)
        return nw.when(x < float(limits[middle])).then(below).otherwise(above)

    return among(0, len(limits))


def _key(x: nw.Expr, partition: Partition) -> nw.Expr:
    """Return what rows are grouped by: the bins of numbers, or labels as they are."""
    if not isinstance(partition, LabelBins):
        return nw.when(~x.is_null()).then(1 + _bin_of(x, partition.limits))
    if not partition.rare:
        return x
    # one of the rare labels stands for all of them
    own = x.is_in([label for label in partition.labels if label is not None])
    return nw.when(own | x.is_null()).then(x).otherwise(nw.lit(partition.rare[0]))


def _codes(keys: npt.NDArray[Any], partition: Partition) -> Ints:
    """Return the code of each key; 0 is missing or unknown."""
    if isinstance(partition, LabelBins):
        return partition.coded(Categories.of(keys))
    return np.nan_to_num(keys.astype(np.float64)).astype(np.int64)


def uniform(e2: float, u2: float, seed: int = 0) -> nw.Expr:
    """Return a number in [0, 1) for each row, as good as random but always the same."""
    found: nw.Expr = phase(nw.col("e"), nw.col("u"), e2, u2, seed)
    return found - found.floor()
