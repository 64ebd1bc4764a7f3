"""Recalibrators fitted from the sums of a lazy frame."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from .._support.checks import Ints, as_labels, check_choice, check_count
from .._support.tables import Table
from ..bins.partitions import Cells, Groups, most_bins
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..scaling import (
    BinwiseScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    TemperatureScaling,
    VarianceScaler,
)
from ..scaling.base import warn_of_zero_errors
from ..scaling.crossfit import largest_ratio_of
from ..scaling.losses import LOSSES
from ..scaling.raked import LEAST_ROWS, MAX_LABELS, N_FOLDS
from ..scaling.raking import CellSums
from ..scaling.trees import LabelCodes, NumberCodes
from .fine_bins import (
    Intervals,
    Ranks,
    Survey,
    equal_size_bins,
    equal_size_ranks,
)
from .lazy_rows import (
    TERMS,
    Columns,
    Rows,
    collect,
    read_rows,
    sums_of,
    with_terms,
)
from .lookups import pick_by_label, pick_by_limits

MAX_CELLS = 20_000_000  # joint cells of raking that may come into memory

Seen = tuple[int, float]  # the number of rows, and their smallest uncertainty
Scaler = TypeVar("Scaler", bound=VarianceScaler)


def fit(
    scaler: Scaler,
    frame: Any,
    *,
    error: str,
    uncertainty: str,
    features: Any = (),
) -> Scaler:
    """Fit a recalibrator to a lazy frame, in one or two passes over it.

    Parameters
    ----------
    scaler : recalibrator
        One that sums determine: NoScaling, TemperatureScaling, LinearScaling,
        BinwiseScaling (for the log-likelihood), GroupScaling, IsotonicScaling or
        RakedScaling.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str
        The columns of errors and uncertainties.
    features : list of str, optional
        The columns of features.

    Returns
    -------
    recalibrator
        The same one, fitted: it can be saved, and applied to frames and arrays.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> frame = pl.LazyFrame({"u": [1.0, 1.0, 2.0], "E": [2.0, -2.0, 4.0]})
    >>> scaler = ss.TemperatureScaling()
    >>> ss.frames.fit(scaler, frame, error="E", uncertainty="u").factor_
    2.0
    """
    names = (uncertainty, *features) if not isinstance(features, str) else features
    table = Table(tuple(np.empty(0) for _ in names), tuple(names))
    rows = read_rows(
        frame, error, uncertainty, features, categorical=_categorical(scaler, table)
    )
    match scaler:
        case NoScaling() | TemperatureScaling():
            found = _grouped(rows, {"all": nw.lit(0)})
            seen = _seen(found)
            if isinstance(scaler, TemperatureScaling):
                scaler.factor_ = float(np.sqrt(found["z2"].sum() / seen[0]))
        case BinwiseScaling():
            seen = _fit_bins(scaler, rows, table)
        case GroupScaling():
            seen = _fit_groups(scaler, rows, table)
        case IsotonicScaling() | LinearScaling():
            seen = _fit_law(scaler, rows)
        case RakedScaling():
            seen = _fit_raked(scaler, rows, table)
        case _:
            msg = (
                f"{type(scaler).__name__} cannot be fitted from sums, as a lazy frame "
                "needs. Collect a sample of the rows and fit it to that, or use "
                "RakedScaling."
            )
            raise InvalidInputError(msg)
    scaler._forget_intervals()
    scaler.n_samples_fit_, scaler.min_uncertainty_ = seen
    scaler.n_features_in_ = len(names)
    scaler.feature_names_in_ = np.array(names, dtype=object)
    return scaler


def _categorical(scaler: VarianceScaler, table: Table) -> list[str]:
    """Return the names of the columns whose numbers are labels."""
    match scaler:
        case GroupScaling():
            return [table.names[table.position(scaler.by)]]
        case RakedScaling():
            positions = table.positions(scaler.categorical, "categorical")
            return [table.names[position] for position in positions]
    return []


def _informative(n: Ints, sums: Columns) -> Columns:
    """Return sums from which something can be learned: errors are not all 0."""
    if sums["z2"].any():
        return sums
    warn_of_zero_errors(int(n.sum()))
    as_if = {"z2": n, "z4": n, "z6": n, "capped": n, "e2": sums.get("u2")}
    return sums | {
        name: np.asarray(as_if[name], dtype=np.float64)
        for name in sums.keys() & as_if.keys()
    }


def _no_ranks(n_rows: int) -> Ints:
    return np.empty(0, dtype=np.int64)


def _grouped(rows: Rows, keys: dict[str, nw.Expr]) -> Columns:
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
    return _informative(found["n"], found)


def _bin_sums(found: Columns, codes: Ints, n_bins: int) -> BinSums:
    """Return sums by code, of which several may be the same."""
    n = np.zeros(n_bins, dtype=np.int64)
    np.add.at(n, codes, found["n"].astype(np.int64))
    x_min, x_max = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(x_min, codes, found["x_min"])
    np.maximum.at(x_max, codes, found["x_max"])
    terms = {name: np.zeros(n_bins) for name in TERMS}
    for name, values in terms.items():
        np.add.at(values, codes, found[name])
    return BinSums(n=n, x_min=x_min, x_max=x_max, **terms)


def _seen(found: Columns) -> Seen:
    return int(found["n"].sum()), float(found["x_min"].min())


def _fit_bins(scaler: BinwiseScaling, rows: Rows, table: Table) -> Seen:
    if scaler.loss in LOSSES and scaler.loss != "nll":
        msg = f'loss="{scaler.loss}" needs rows in memory; a lazy frame has "nll" only.'
        raise InvalidInputError(msg)
    check_choice(scaler.loss, "loss", LOSSES)
    positions, n_bins = scaler._plan(table)
    columns = [_number_column(rows, position) for position in positions]
    ranks = [equal_size_ranks(n) for n in n_bins]
    if len(columns) == 2:
        survey = Survey(terms=(), u_range=False)
        taken = survey.take(rows, dict(zip(columns, ranks, strict=True)))
        bins = [
            equal_size_bins(taken[column], n)[0]
            for column, n in zip(columns, n_bins, strict=True)
        ]
        scaler.partition_ = Cells(bins[0], bins[1])
        found = _grouped(
            rows,
            {
                f"code{k}": pick_by_limits(
                    nw.col(column), each.limits, list(range(each.n_bins))
                )
                for k, (column, each) in enumerate(zip(columns, bins, strict=True))
            },
        )
        codes = found["code0"].astype(np.int64) * bins[1].n_bins + found["code1"]
        sums = _bin_sums(found, codes.astype(np.int64), scaler.partition_.n_bins)
    else:
        column, ties = columns[0], columns[0] != "u"
        survey = Survey(terms=TERMS, ties=ties)
        intervals = survey.take(rows, {column: ranks[0]})[column]
        intervals = replace(intervals, sums=_informative(intervals.n, intervals.sums))
        scaler.partition_, cuts = equal_size_bins(intervals, n_bins[0], ties=ties)
        sums = intervals.bin_sums(cuts)
    scaler.sums_ = sums
    scaler._learn_factors()
    return int(sums.n.sum()), float(sums.x_min.min())


def _number_column(rows: Rows, position: int) -> str:
    column = rows.columns[position]
    if column in rows.labelled:
        msg = (
            f"`by` must be a column of numbers; {rows.names[position]!r} holds text. "
            "GroupScaling gives each label a factor."
        )
        raise InvalidInputError(msg)
    return column


def _fit_groups(scaler: GroupScaling, rows: Rows, table: Table) -> Seen:
    column = rows.columns[scaler._position(table)]
    found = _grouped(rows, {"label": nw.col(column)})
    labels = as_labels(found["label"])
    distinct, code = np.unique(labels, return_inverse=True)
    n = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(n, code, found["n"].astype(np.int64))
    scaler.seen_ = Groups(distinct)
    scaler.groups_ = Groups(distinct[n >= check_count(scaler.min_size, "min_size")])
    codes = scaler.groups_.codes(labels)
    scaler.sums_ = _bin_sums(found, codes, scaler.groups_.n_bins)
    scaler._learn_factors()
    return _seen(found)


def _fit_law(scaler: IsotonicScaling | LinearScaling, rows: Rows) -> Seen:
    taken = Survey(terms=("z2", "e2", "u2")).take(rows, {"u": _no_ranks})["u"]
    sums = _informative(taken.n, taken.sums)
    n, e2 = taken.n, sums["e2"] / taken.n
    if isinstance(scaler, IsotonicScaling):
        scaler._fit_steps(taken.low**2, taken.high**2, e2, n)
    else:
        scaler._fit_variances(sums["u2"] / n, e2, n)
    return taken.n_rows, float(taken.low[0])


def _fit_raked(scaler: RakedScaling, rows: Rows, table: Table) -> Seen:
    seed = check_count(scaler.random_state, "random_state", least=0)
    n_bins = scaler._bins_of(table)
    numbers = [column for column in rows.columns if column not in rows.labelled]
    ranks = {
        column: _quantile_ranks(n_bins[rows.columns.index(column)])
        for column in numbers
    }
    terms = ("z2", "e2", "u2", "nonzero")
    survey = Survey(terms, missing_allowed=True, u_range=False, feature_terms=())
    taken = survey.take(rows, ranks)
    n_rows, sums = taken["u"].n_rows, _informative(taken["u"].n, taken["u"].sums)
    columns: list[NumberCodes | LabelCodes] = []
    for column, wanted in zip(rows.columns, n_bins, strict=True):
        if column in taken:
            columns.append(_number_codes(taken[column], wanted))
        else:
            columns.append(_label_codes(rows, column))
    scaler._set_bins(table, columns)
    n_cells = N_FOLDS * math.prod(column.n_codes for column in columns)
    if min(n_rows, n_cells) > MAX_CELLS:
        msg = (
            f"{len(columns)} columns make too many joint cells to rake from sums; "
            f"found up to {min(n_rows, n_cells)}. Use fewer bins or columns."
        )
        raise InvalidInputError(msg)
    z2 = float(sums["z2"].sum())
    nonzero = int(sums["nonzero"].sum()) or n_rows
    cap = largest_ratio_of(n_rows, nonzero) * z2 / n_rows
    keys = {
        f"code{k}": _code(nw.col(column), codes)
        for k, (column, codes) in enumerate(zip(rows.columns, columns, strict=True))
    }
    mean_e2, mean_u2 = (float(sums[name].sum()) / n_rows for name in ("e2", "u2"))
    keys["fold"] = pick_by_limits(
        uniform(mean_e2, mean_u2, seed),
        np.arange(1, N_FOLDS) / N_FOLDS,
        list(range(N_FOLDS)),
    )
    capped = nw.when(nw.col("z2") > cap).then(cap).otherwise(nw.col("z2"))
    frame = with_terms(rows.frame, ("z2",)).with_columns(**keys, capped=capped)
    found = collect(frame.group_by(*keys).agg(**sums_of(("z2", "capped"))))
    if not sums["nonzero"].any():
        found |= {"z2": found["n"], "capped": found["n"]}
    codes = [found[f"code{k}"].astype(np.int64) for k in range(len(columns))]
    for first, second in scaler.pairs_:
        codes.append(codes[first] * scaler.n_codes_[second] + codes[second])
    cells = CellSums(
        np.column_stack(codes),
        found["fold"].astype(np.int64),
        *(found[name].astype(np.float64) for name in ("n", "z2", "capped")),
    )
    scaler.fit_cells(cells.compact())
    return n_rows, float(taken["u"].low[0])


def _quantile_ranks(n_bins: int) -> Ranks:
    """Return the ranks of the limits that NumberCodes would learn."""

    def ranks(n_rows: int) -> Ints:
        feasible = most_bins(n_rows, n_bins, LEAST_ROWS)
        return np.ceil(np.arange(1, feasible) * n_rows / feasible).astype(np.int64) - 1

    return ranks


def _number_codes(intervals: Intervals, n_bins: int) -> NumberCodes:
    n_rows = intervals.n_rows
    ranks = _quantile_ranks(n_bins)(n_rows)
    if intervals.n.size <= ranks.size + 1:  # a bin for each value
        return NumberCodes(intervals.low[1:])
    return NumberCodes(intervals.low[intervals.cut(ranks)])


def _label_codes(rows: Rows, column: str) -> LabelCodes:
    found = collect(rows.frame.group_by(column).agg(nw.len().alias("n")))
    labels, code = np.unique(as_labels(found[column]), return_inverse=True)
    n = np.zeros(labels.size)
    np.add.at(n, code, found["n"])
    return LabelCodes.most_frequent(labels, n, MAX_LABELS)


def _code(x: nw.Expr, column: NumberCodes | LabelCodes) -> nw.Expr:
    """Return the code of each row; 0 is missing or unknown."""
    known = list(range(1, column.n_codes))
    if isinstance(column, LabelCodes):
        return pick_by_label(x, column.groups.labels, known, 0)
    found = pick_by_limits(x, column.limits, known)
    return nw.when(x.is_null()).then(nw.lit(0)).otherwise(found)


def uniform(e2: float, u2: float, seed: int = 0) -> nw.Expr:
    """Return a number in [0, 1) for each row, as good as random but always the same.

    It is the fractional part of multiples of E² and u², whose means are given. Units
    are powers of two, lest they depend on the order in which an engine adds up.
    """
    parts = [nw.lit(0.7548776662466927 * seed)]
    for name, mean, irrational in (
        ("e", e2, 0.6180339887498949),
        ("u", u2, 0.4142135623730951),
    ):
        unit = 2.0 ** -np.round(np.log2(max(mean, 1e-290)))
        parts.append(nw.col(name) * nw.col(name) * float(1e4 * irrational * unit))
    phase = parts[0] + parts[1] + parts[2]
    return phase - phase.floor()
