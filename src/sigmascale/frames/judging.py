"""Scores and verdicts on a lazy frame, from sums or from a sample of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import Labels, refuse_reserved
from .._support.labels import label_array
from ..bins.fine_bins import FineBins, equal_size_ranks
from ..bins.partitions import bins_of, cut_positions, feasible_bins
from ..bins.sums import BinSums
from ..judging.intervals import MIN_ROWS
from ..judging.local import LocalZMS, check_settings, local_zms_of_sums
from ..judging.local import local_zms as local_zms_of_rows
from ..judging.scores import Scorecard
from ..judging.scores import scorecard as score_rows
from ..judging.validation import Validation
from ..judging.verdicts import validate as validate_rows
from .fine_bins import SCORE_BITS, Survey
from .lazy import TERMS, LazyRows, collect, names_of, read_rows
from .sampling import SAMPLE, draw
from .summaries import LABEL, by_label, sums_by

SHARE = 2e-3  # of all rows in a fine bin, whose sums bins share evenly


@dataclass(frozen=True)
class _Binned:
    """The sums of the bins of a variable, and the range of the variable in each."""

    sums: BinSums
    low: Labels
    middle: Labels
    high: Labels


def scorecard(
    frame: Any,
    *,
    error: str,
    uncertainty: str,
    features: Any = (),
    n_bins: int | None = None,
    sample_weight: str | None = None,
    sample: int = SAMPLE,
) -> Scorecard:
    """Return the scores of a lazy frame, see :func:`sigmascale.scorecard`.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str
        The columns of errors and uncertainties.
    features : list of str, optional
        The columns of features; text is scored by group.
    n_bins : int, optional
        Number of equal-size bins of each numeric variable. By default they have 30
        rows or more, and there are at most 100.
    sample_weight : str, optional
        The column of weights, at least 0. Sums know none: scores are then those of a
        sample of rows.
    sample : int, default 1000000
        Rows of that sample; all of them if there are fewer.

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> frame = pl.LazyFrame({"u": [1.0, 1.0, 2.0, 2.0], "E": [1.0, -1.0, 2.0, 2.0]})
    >>> ss.frames.scorecard(frame, error="E", uncertainty="u", n_bins=2)["S_u"]
    0.0
    """
    names = names_of(features)
    refuse_reserved(names)
    if sample_weight is not None:
        drawn = draw(
            frame, error, uncertainty, names, most=sample, weight=sample_weight
        )
        return score_rows(drawn.rows, n_bins=n_bins)
    rows = read_rows(frame, error, uncertainty, names)
    count = _bins_of(n_bins, rows)
    terms = ("z2", "e2", "u2", "log_u2")
    binned = _bin(rows, rows.columns, count, terms, lean=True)
    sums = (each.sums for each in binned.values())
    return Scorecard.from_sums(dict(zip(["u", *names], sums, strict=True)), count)


def local_zms(
    frame: Any,
    *,
    error: str,
    uncertainty: str,
    by: str | None = None,
    groups: str | None = None,
    n_bins: int | None = None,
    confidence: float = 0.95,
    sample_weight: str | None = None,
    sample: int = SAMPLE,
) -> LocalZMS:
    """Return <Z²> of each bin of a lazy frame, see :func:`sigmascale.local_zms`.

    Intervals are those of the method "moments", the closed form.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str
        The columns of errors and uncertainties.
    by : str, optional
        The column to bin by; by default the uncertainty.
    groups : str, optional
        The column of labels that rows which belong together have in common. Intervals
        then count groups rather than rows, and the bins are those of a sample of whole
        groups.
    n_bins : int, optional
        Number of bins; groups ignore it. By default bins have 30 rows or more, and
        there are at most 100.
    confidence : float, default 0.95
        Coverage of the intervals.
    sample_weight : str, optional
        The column of weights, at least 0. Sums know none: the bins are then those of a
        sample of rows.
    sample : int, default 1000000
        Rows of that sample; all of them if there are fewer.

    Returns
    -------
    LocalZMS

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> frame = pl.LazyFrame({"u": [1.0] * 10, "E": [1.0, -1.0, 2.0, 0.0, 1.0] * 2})
    >>> ss.frames.local_zms(frame, error="E", uncertainty="u", n_bins=1).zms
    array([1.4])
    """
    features = [] if by is None or by == uncertainty else [by]
    name = "by" if features else "u"
    if groups is not None or sample_weight is not None:
        drawn = draw(
            frame,
            error,
            uncertainty,
            features,
            most=sample,
            groups=groups,
            weight=sample_weight,
        )
        return local_zms_of_rows(
            drawn.rows.changed(names=("u", "by")[: 1 + len(features)]),
            by=name,
            n_bins=n_bins,
            method="moments",
            confidence=confidence,
        )
    rows = read_rows(frame, error, uncertainty, features)
    settings = check_settings(_bins_of(n_bins, rows), "moments", confidence, 1500)
    column = rows.columns[-1]
    binned = _bin(rows, [column], settings.n_bins, TERMS, min_size=MIN_ROWS)[column]
    values = binned.low, binned.middle, binned.high
    return local_zms_of_sums(name, binned.sums, values, settings)


def validate(
    frame: Any,
    *,
    error: str,
    uncertainty: str,
    features: Any = (),
    groups: str | None = None,
    sample_weight: str | None = None,
    sample: int = SAMPLE,
    rng: int | np.random.Generator | None = 0,
    **options: Any,
) -> Validation:
    """Return verdicts on a lazy frame, see :func:`sigmascale.validate`.

    Up to `sample` rows are collected and judged in memory. Of a larger frame the engine
    draws that many, by a hash of their numbers, or whole groups; so many
    rows show all that matters. The scores are those of all rows.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str
        The columns of errors and uncertainties.
    features : list of str, optional
        The columns of features; text makes groups.
    groups : str, optional
        The column that says which rows belong together.
    sample_weight : str, optional
        The column of weights, at least 0. The scores, too, are then those of the rows
        that were drawn.
    sample : int, default 1000000
        Rows that are judged, at most, or about as many.
    rng : int, Generator or None, default 0
        Seed of the simulations.
    **options
        As for :func:`sigmascale.validate`.

    Returns
    -------
    Validation

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(1)
    >>> u = rng.uniform(1, 2, 5000)
    >>> frame = pl.LazyFrame({"u": u, "E": rng.normal(scale=u)})
    >>> ss.frames.validate(frame, error="E", uncertainty="u").answer
    'yes'
    """
    names = names_of(features)
    refuse_reserved(names)
    drawn = draw(
        frame,
        error,
        uncertainty,
        names,
        most=sample,
        groups=groups,
        weight=sample_weight,
    )
    judged = validate_rows(drawn.rows, rng=rng, **options)
    if drawn.outside is None or sample_weight is not None:
        return judged
    whole = scorecard(
        frame,
        error=error,
        uncertainty=uncertainty,
        features=names,
        n_bins=judged.scores.n_bins,
    )
    return replace(judged, scores=whole)


def _bins_of(n_bins: Any, rows: LazyRows) -> int:
    """Return the number of bins; rows are counted only if nobody asks for one."""
    n_rows = 0
    if n_bins is None:
        n_rows = int(collect(rows.frame.select(n=nw.len()))["n"][0])
    return bins_of(n_bins, n_rows)


def _bin(
    rows: LazyRows,
    columns: list[str],
    n_bins: int,
    terms: tuple[str, ...],
    *,
    min_size: int = 1,
    lean: bool = False,
) -> dict[str, _Binned]:
    """Return the sums of equal-size bins, or of groups, of every column."""
    survey = Survey(
        terms,
        SCORE_BITS,
        SHARE,
        ties=True,
        u_range=False,
        lean=lean,
        feature_terms=tuple(term for term in terms if term != "log_u2"),
    )
    ranks = equal_size_ranks(n_bins, min_size)
    numbers = [column for column in columns if column not in rows.labelled]
    taken = survey.take(rows, dict.fromkeys(numbers, ranks)) if numbers else {}
    binned = {}
    for column in columns:
        if column in rows.labelled:
            found, sums = by_label(sums_by(rows, {LABEL: nw.col(column)}))
            labels = label_array(found)
            binned[column] = _Binned(sums, labels, labels, labels)
        else:
            feasible = feasible_bins(taken[column].n_rows, n_bins, min_size)
            binned[column] = _equal_bins(taken[column], feasible)
    return binned


def _equal_bins(fine: FineBins, n_bins: int) -> _Binned:
    """Return the sums of equal-size bins, with the range and the middle of each."""
    ranks = cut_positions(fine.n_rows, n_bins)
    sums = fine.even_sums(ranks)
    middle = fine.values_at(ranks + sums.n - (sums.n + 1) // 2)
    return _Binned(sums, sums.x_min, middle, sums.x_max)
