"""Local <Z²> of lazy frames whose rows come in groups: sums by bin and group."""

from __future__ import annotations

from dataclasses import dataclass

import narwhals as nw
import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels
from .._support.labels import Categories
from ..bins.fine_bins import FineBins, equal_size_bins, equal_size_ranks
from ..bins.partitions import EqualSizeBins, feasible_bins, sum_by_code
from ..exceptions import InvalidInputError
from ..judging.binning import LEFT_OUT, warn_of_few_groups, with_enough_groups
from ..judging.intervals import MIN_ROWS, GroupSums
from ..judging.local import BinSettings, LocalZMS, overall_interval
from .fine_bins import SCORE_BITS, Survey
from .lazy_rows import Arrays, LazyRows, collect, is_missing, is_text, with_terms
from .lookups import pick_by_limits, pick_by_pairs


@dataclass(frozen=True)
class _Sums:
    """Sums by bin and group, sorted by these."""

    bins: Ints
    groups: Ints
    z2: Floats
    n: Ints
    low: Labels
    high: Labels

    def merged(self, size: int) -> _Sums:
        """Return the sums of bins that consist of `size` neighbours each."""
        bins = self.bins // size
        order = np.lexsort((self.groups, bins))
        bins, groups = bins[order], self.groups[order]
        new = np.append(True, (np.diff(bins) != 0) | (np.diff(groups) != 0))
        starts = np.flatnonzero(new)
        return _Sums(
            bins[starts],
            groups[starts],
            np.add.reduceat(self.z2[order], starts),
            np.add.reduceat(self.n[order], starts),
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
        )

    def of(self, which: npt.NDArray[np.bool_]) -> _Sums:
        """Return those of some bins, by their numbers."""
        mine = which[self.bins]
        number = np.cumsum(which) - 1
        return _Sums(
            number[self.bins[mine]],
            self.groups[mine],
            self.z2[mine],
            self.n[mine],
            self.low[mine],
            self.high[mine],
        )

    @property
    def n_groups(self) -> Ints:
        """Groups in each bin."""
        return np.bincount(self.bins)

    @property
    def by_bin(self) -> GroupSums:
        """What intervals of bins are made from."""
        return GroupSums(self.z2, self.n.astype(np.float64), self.n_groups)

    @property
    def together(self) -> GroupSums:
        """The same of all rows, in one bin."""
        n_groups = int(self.groups.max()) + 1
        z2, n = (
            sum_by_code(self.groups, values.astype(np.float64), n_groups)
            for values in (self.z2, self.n)
        )
        return GroupSums(z2, n, np.array([n_groups]))


def local_zms_of_groups(
    rows: LazyRows, column: str, group: str, settings: BinSettings
) -> LocalZMS:
    """Return the local <Z²> of rows in groups, in the bins of a column."""
    _refuse_missing(rows, group)
    name = "u" if column == "u" else "by"
    if column in rows.labelled:
        found = _query(rows, column, group, nw.col(column))
        labels = Categories.of(found["bin"])
        names = labels.values()
        sums = _sorted(found, group, labels.codes, (names, names))
        kept = sums.of(with_enough_groups(sums.n_groups, name))
        x_min = x = x_max = kept.low[_starts(kept)]
    else:
        fine, codes = _equal_bins(rows, column, settings.n_bins)
        found = _query(rows, column, group, codes)
        bins = found["bin"].astype(np.int64)
        sums = _carrying(_sorted(found, group, bins, (found["low"], found["high"])))
        enough = with_enough_groups(sums.n_groups, name)
        ends = np.cumsum(np.bincount(sums.bins, sums.n).astype(np.int64))
        middles = ends - (np.diff(ends, prepend=0) + 1) // 2
        kept = sums.of(enough)
        x = fine.values_at(middles)[enough]
        x_min = np.minimum.reduceat(kept.low, _starts(kept))
        x_max = np.maximum.reduceat(kept.high, _starts(kept))
        x = np.clip(x, x_min, x_max)
    together = sums.together
    if together.sizes[0] < 2:
        msg = (
            "`groups` must have at least 2 labels, for an interval; found 1. Leave it "
            "out if rows are independent."
        )
        raise InvalidInputError(msg)
    by_bin = kept.by_bin
    return LocalZMS.judged(
        settings.interval(by_bin, np.random.default_rng(0)),
        (x_min, x, x_max),
        wanted=1.0,
        name=name,
        n=by_bin.n.astype(np.int64),
        zms=by_bin.mean,
        overall=overall_interval(together, settings.confidence),
        confidence=settings.confidence,
        method=settings.method,
        n_groups=by_bin.sizes,
    )


def _starts(sums: _Sums) -> Ints:
    return np.cumsum(sums.n_groups) - sums.n_groups


def _equal_bins(rows: LazyRows, column: str, n_bins: int) -> tuple[FineBins, nw.Expr]:
    """Return the fine bins of a column, and the equal-size bin of each row."""
    ties = column != "u"
    survey = Survey(("z2",), SCORE_BITS, ties=ties)
    ranks = equal_size_ranks(n_bins, MIN_ROWS)
    fine = survey.take(rows, {column: ranks})[column]
    n_bins = feasible_bins(fine.n_rows, n_bins, MIN_ROWS)
    bins: EqualSizeBins = equal_size_bins(fine, n_bins, ties=ties)[0]
    x, codes = nw.col(column), range(bins.n_bins)
    if bins.tie_limits is None:
        return fine, pick_by_limits(x, bins.limits, codes)
    return fine, pick_by_pairs(x, nw.col("u"), bins.limits, bins.tie_limits, codes)


def _query(rows: LazyRows, column: str, group: str, codes: nw.Expr) -> Arrays:
    """Return sums by bin and group."""
    x = nw.col(column)
    found = collect(
        with_terms(rows.frame, ("z2",))
        .with_columns(bin=codes)
        .group_by("bin", group)
        .agg(
            z2=nw.col("z2").sum(),
            n=nw.len(),
            usable=nw.col("u").count(),
            low=x.min(),
            high=x.max(),
        )
    )
    if not np.array_equal(found["usable"], found["n"]) or not found["n"].size:
        rows.refuse()
    return found


def _sorted(
    found: Arrays,
    group: str,
    bins: Ints,
    values: tuple[Labels, Labels],
) -> _Sums:
    groups = Categories.of(found[group]).codes
    order = np.lexsort((groups, bins))
    # some engines count in unsigned numbers
    n = found["n"].astype(np.int64)
    z2 = found["z2"].astype(np.float64)
    low, high = values
    return _Sums(
        bins[order], groups[order], z2[order], n[order], low[order], high[order]
    )


def _carrying(sums: _Sums) -> _Sums:
    """Merge neighbouring bins until nearly all have enough groups."""
    n_bins = sums.n_groups.size
    found = sums
    for size in range(2, n_bins + 1):
        if np.mean(found.n_groups < MIN_ROWS) <= LEFT_OUT:
            break
        found = sums.merged(size)
    if found.n_groups.size < n_bins:
        warn_of_few_groups(n_bins, found.n_groups.size, MIN_ROWS)
    return found


def _refuse_missing(rows: LazyRows, group: str) -> None:
    """Refuse groups without a label: as labels, they would all be the same."""
    name = rows.name(group)
    x = nw.col(name)
    text = is_text(rows.source.collect_schema()[name])
    missing = x.is_null() if text else is_missing(x.cast(nw.Float64))
    count = nw.when(missing).then(1).otherwise(0).sum()
    found = int(collect(rows.source.select(count.alias("missing")))["missing"][0] or 0)
    if found:
        msg = (
            f"`groups` must have a label for every row; {found} of {name!r} are "
            "missing. Give a row that belongs to no other a label of its own."
        )
        raise InvalidInputError(msg)
