"""One column for each part: as the user says, as names tell, or as a fit remembers.

A guess is made only where one set of columns is plainly better than all others; else
the error lists the best sets.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import numpy as np

from .._support.checks import check_fraction
from .._support.notices import warn
from .._support.text import listed, quoted, shorten
from ..exceptions import ColumnError, IndexColumnWarning
from ..forms import of_quantiles
from .names import (
    ColumnSet,
    NamedColumn,
    best_sets,
    is_no_feature,
    is_plain,
    likeness,
    read_name,
    read_names,
)
from .read import Schema, as_table, counts

MOST_SETS = 8  # of columns that fit alike, in an error
PYTHON = {
    "reference": "y_true",
    "prediction": "y_pred",
    "uncertainty": "y_std",
    "weight": "weights",
}
_OPTIONS = {"features": "feature", "labels": "label"}
_UNCERTAIN = ("uncertainty", "variance", "members", "quantile_columns", "interval")
_PAIR: tuple[str, ...] = ("reference", "prediction", "uncertainty")
_WITHOUT_ERRORS: tuple[tuple[str, ...], ...] = (
    ("prediction", "uncertainty"),
    ("uncertainty",),
)


@dataclass(frozen=True)
class Choice:
    """What a user says of the columns; None, or nothing, is what is not said.

    Members, quantiles and intervals take the place of an uncertainty. Messages speak of
    `options` on the command line, and of arguments in Python.
    """

    error: str | None = None
    reference: str | None = None
    prediction: str | None = None
    uncertainty: str | None = None
    variance: str | None = None
    members: tuple[str, ...] = ()
    quantile_columns: tuple[str, ...] = ()
    interval: tuple[str, ...] = ()
    interval_coverage: float | None = None
    min_std: float | None = None
    features: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    all_features: bool = False
    groups: str | None = None
    weight: str | None = None
    time: str | None = None
    options: bool = False

    def called(self, part: str, value: str = "") -> str:
        """Return what a part is called where it is named, with what it is set to.

        >>> Choice().called("reference", "E"), Choice(options=True).called("error")
        ('y_true="E"', '--error')
        """
        value = shorten(value)
        if self.options:
            name = _OPTIONS.get(part, part).replace("_", "-")
            return f"--{name} {shlex.quote(value)}" if value else f"--{name}"
        part = PYTHON.get(part, part)
        return f'{part}="{value}"' if value else f"`{part}`"


# -- of a table that nobody has seen before --------------------------------------------


def find(
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str] = (),
    *,
    errors: bool = True,
) -> Schema:
    """Return which columns of a table are what.

    Parameters
    ----------
    choice : Choice
        What is said of the columns.
    names : sequence of str
        All columns.
    numeric, counting : collection of str
        Those that hold numbers, and those that only count rows.
    errors : bool, default True
        Whether errors must be known.

    Returns
    -------
    Schema
    """
    for part in ("features", "labels", "exclude"):
        for name in getattr(choice, part):
            known(name, names, choice.called(part))
    said = _said(choice, names)
    complete = _guessed(said, choice, names, numeric, errors=errors)
    return _with_features(complete, choice, names, numeric, counting)


def of_frame(frame: Any, choice: Choice) -> Schema:
    """Return which columns of a data frame are what; there need not be errors.

    An index among the columns is told in a warning where all features are taken.
    """
    table = as_table(frame)
    kinds = table.schema
    numeric = [name for name, kind in kinds.items() if kind.is_numeric()]
    whole = [name for name in numeric if kinds[name].is_integer()]
    counting = [name for name in whole if counts(table[name])]
    schema = find(choice, table.columns, numeric, counting, errors=False)
    if index := [name for name in schema.left_out if name in counting]:
        warn(
            f"Column {quoted(index[0])} only counts rows: it is taken for an index, "
            "and is no feature. Name it among `features` if it is one.",
            IndexColumnWarning,
            stacklevel=3,
        )
    return schema


def guess(
    names: Sequence[str], numeric: Collection[str], counting: Collection[str] = ()
) -> tuple[dict[str, str], list[ColumnError]]:
    """Return what each column seems to be, and what cannot be told.

    A column is "error", "reference", "prediction", "uncertainty", "variance" or
    "feature", or else "". Where several sets of columns fit, that is shown in which
    all of them agree.

    >>> guess(["E_true", "E_model", "sigma", "mass"], ["E_true", "E_model", "sigma"])[0]
    {'E_true': 'reference', 'E_model': 'prediction', 'sigma': 'uncertainty', 'mass': ''}
    """
    parts = dict.fromkeys(names, "")
    try:
        schema = find(Choice(all_features=True), names, numeric, counting)
    except ColumnError as problem:
        first, *others = problem.fields.get("sets") or [{}]
        for part, name in first.items():
            if all(other[part] == name for other in others):
                parts[name] = part
        return parts, [problem]
    parts |= dict.fromkeys(schema.numbers, "feature")
    pair = ("error",) if len(schema.error) == 1 else ("reference", "prediction")
    parts |= dict(zip(schema.error, pair, strict=True))
    parts[schema.uncertainty] = "variance" if schema.is_variance else "uncertainty"
    return parts, []


# -- of a table for a recalibrator that knows its columns ------------------------------


def remembered(
    schema: Schema, choice: Choice, names: Sequence[str], *, errors: bool
) -> Schema:
    """Return the columns of a table for a recalibrator that was fitted on another.

    Features are those of the fit. Other columns may be named anew.
    """
    if choice.features or choice.labels or choice.all_features or choice.exclude:
        msg = (
            "Features are those that the recalibrator was fitted on: "
            f"{listed(schema.features) or 'none'}. Name none."
        )
        raise ColumnError(msg, "features")

    # what is said anew replaces what is remembered
    said = _said(choice, names)
    anew = ["groups", "weight", "time"]
    if said.uncertainty:
        anew += ["uncertainty", "is_variance", "made_of", "levels"]
    if said.min_std is not None:
        anew.append("min_std")
    schema = replace(schema, **{part: getattr(said, part) for part in anew})

    # errors follow the prediction
    prediction = said.prediction
    if prediction is None and schema.made_of:
        prediction = schema.made[0]
    elif prediction is None and schema.prediction in names:
        prediction = schema.prediction
    error = said.error or schema.error
    if choice.reference or len(error) == 2:
        error = choice.reference or error[0], prediction or error[-1]
    schema = replace(schema, error=error if errors else (), prediction=prediction)
    for name in schema.columns:
        known(name, names, "The recalibrator")
    return schema


# -- what the user says ----------------------------------------------------------------


def known(name: str | None, names: Sequence[str], asked_by: str) -> str | None:
    """Return a column's name if there is such a column; else suggest the nearest."""
    if name is None or name in names:
        return name
    by_small = {each.lower(): each for each in reversed(names)}
    near = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
    hint = f"Did you mean {quoted(by_small[near[0]])}? " if near else ""
    msg = (
        f"{asked_by} needs a column {quoted(name)}, and there is none. {hint}The "
        f"columns are: {listed(map(quoted, names), 12)}."
    )
    suggested = [by_small[small] for small in near]
    raise ColumnError(msg, "unknown", (name,), near=suggested)


def _said(choice: Choice, names: Sequence[str]) -> Schema:
    """Return a schema with what is named; its uncertainty may be empty."""
    one = ("error", "reference", "prediction", "uncertainty", "variance")
    for part in (*one, "groups", "weight", "time"):
        known(getattr(choice, part), names, choice.called(part))
    exclusive = [*combinations(_UNCERTAIN, 2)]
    exclusive += [("error", "reference"), ("error", "prediction")]
    for first, second in exclusive:
        if getattr(choice, first) and getattr(choice, second):
            msg = f"Pass {choice.called(first)} or {choice.called(second)}, not both."
            raise ColumnError(msg, first)
    made_of, levels = _made_of(choice, names)
    said = Schema(
        choice.uncertainty or choice.variance or "",
        choice.variance is not None,
        error=(choice.error,) if choice.error else (),
        prediction=choice.prediction,
        groups=choice.groups,
        weight=choice.weight,
        time=choice.time,
        made_of=made_of,
        levels=levels,
        min_std=choice.min_std,
    )
    if not made_of:
        return said
    middle, spread = said.made
    return replace(said, uncertainty=spread, prediction=choice.prediction or middle)


def _made_of(
    choice: Choice, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return members, or quantiles and their levels; an interval is two of these."""
    levels = list[float]()
    if choice.members:
        part = "members"
        columns = _matching(choice.members, names)
    elif choice.quantile_columns:
        part = "quantile_columns"
        columns, levels = _levelled(choice)
    elif choice.interval or choice.interval_coverage is not None:
        part, columns = "interval", [*choice.interval]
        share = check_fraction(choice.interval_coverage, "interval_coverage")
        levels = [(1 - share) / 2, (1 + share) / 2]
    else:
        return (), ()

    for name in columns:
        known(name, names, choice.called(part))
    if len(columns) == 1 or (levels and len(columns) != len(levels)):
        msg = f"{choice.called(part)} must name two columns; found {len(columns)}."
        raise ColumnError(msg, part, tuple(columns))
    if levels:
        order = np.argsort(levels)
        columns = [columns[i] for i in order]
        levels = [levels[i] for i in order]
        of_quantiles(levels, [levels])  # refuses levels that tell no uncertainty
    return tuple(dict.fromkeys(columns)), tuple(levels)


def _matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that are named, or that a pattern such as m_* stands for."""
    columns = []
    for pattern in patterns:
        literal = pattern.replace("[", "[[]")  # which many names have
        like = [name for name in names if fnmatchcase(name, literal)]
        columns += [pattern] if pattern in names or not like else like
    return columns


def _levelled(choice: Choice) -> tuple[list[str], list[float]]:
    """Return the columns of quantiles, and their levels."""
    columns, levels = [], []
    for item in choice.quantile_columns:
        name, _, level = item.rpartition("=")
        columns.append(name)
        try:
            levels.append(float(level))
        except ValueError:
            called = choice.called("quantile_columns")
            msg = f"{called} must be COLUMN=LEVEL; found {quoted(item)}."
            raise ColumnError(msg, "quantile_columns") from None
    return columns, levels


# -- features --------------------------------------------------------------------------


def _with_features(
    schema: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str],
) -> Schema:
    """Return a schema with the features that are named, or with all there are."""
    if choice.exclude and not choice.all_features:
        both = choice.called("exclude"), choice.called("all_features")
        msg = "{} takes columns out of {}, and needs it.".format(*both)
        raise ColumnError(msg, "exclude")
    asked = (*choice.features, *choice.labels)
    used = {schema.uncertainty, *schema.error, *schema.made_of, schema.weight}
    if clash := used.difference({schema.prediction}).intersection(asked):
        msg = f"{quoted(min(clash, key=str))} has another part; it is no feature."
        raise ColumnError(msg, "features", tuple(map(str, clash)))

    # of all features, those whose name or content says that they are none are left out
    free, unfit = list[str](), list[str]()
    if choice.all_features:
        taken = used.union(asked, choice.exclude, {schema.groups, schema.time})
        free = [name for name in names if name in numeric and name not in taken]
        output = (*schema.error, schema.uncertainty)
        unfit = [x for x in free if is_no_feature(x, output) or x in counting]

    wanted = [*choice.features, *(name for name in free if name not in unfit)]
    numbers = [x for x in wanted if x in numeric and x not in choice.labels]
    labels = [x for x in (*wanted, *choice.labels) if x not in numbers]
    return replace(
        schema,
        numbers=tuple(dict.fromkeys(numbers)),
        labels=tuple(dict.fromkeys(labels)),
        left_out=tuple(unfit),
    )


# -- guesses ---------------------------------------------------------------------------


def _guessed(
    said: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    *,
    errors: bool,
) -> Schema:
    """Return a schema with the parts that nobody has named, if they can be told."""
    named = {
        "error": choice.error,
        "reference": choice.reference,
        "prediction": said.prediction,
        "uncertainty": said.uncertainty,
    }

    # columns that may play each part
    one_each = (said.groups, said.weight, said.time, *named.values())
    no_part = {*choice.features, *choice.labels, *choice.exclude, *said.made_of}
    no_part.update(name for name in one_each if name)
    free = read_names(x for x in names if x in numeric and x not in no_part)
    may = {part: [x for x in free if x.part == part] for part in named}
    may["uncertainty"] += [x for x in free if x.part == "variance"]
    for part, name in named.items():
        if name:
            stem = frozenset[str]() if name in said.made else read_name(name).stem
            may[part] = [NamedColumn(name, part, stem, named=True)]

    # the first way of knowing errors for which one set of columns is plainly the best
    ways = [_PAIR, ("error", "uncertainty")]
    if not errors:
        ways += _WITHOUT_ERRORS
    given = {part for part, name in named.items() if name}
    ways = [way for way in ways if given.issubset(way)]
    for way in ways:
        plain = [columns for columns in best_sets(way, may) if is_plain(columns)]
        if len(plain) == 1:
            return _with_set(said, plain[0])
    raise _unclear(ways, may, free, choice, names)


def _with_set(said: Schema, columns: ColumnSet) -> Schema:
    """Return a schema whose errors, prediction and uncertainty are a set of columns."""
    parts = {part: column.name for part, column in columns.items()}
    error: tuple[str, ...] = ()
    if "error" in parts:
        error = (parts["error"],)
    elif "reference" in parts:
        error = parts["reference"], parts["prediction"]
    is_variance = columns["uncertainty"].part == "variance"
    guessed = [column.name for column in columns.values() if not column.named]
    return replace(
        said,
        uncertainty=parts["uncertainty"],
        is_variance=said.is_variance or is_variance,
        error=error,
        prediction=parts.get("prediction", said.prediction),
        guessed=tuple(guessed),
    )


def _unclear(
    ways: list[tuple[str, ...]],
    may: dict[str, list[NamedColumn]],
    free: list[NamedColumn],
    choice: Choice,
    names: Sequence[str],
) -> ColumnError:
    """Return the error that no column is plainly what is needed, with candidates."""
    way = next((x for x in ways if all(may[part] for part in x)), ways[0])
    order = ("uncertainty", "reference", "prediction", "error")
    lacking = [part for part in order if part in way and not may[part]]

    # where no name tells the part, columns of like names may play it
    hints = dict(may)
    if "uncertainty" in lacking:
        hints["uncertainty"] = may["error"]  # which z_err may be, too
    told = [column for part in way for column in hints[part]]
    near = sorted(free, key=lambda x: likeness(x, told), reverse=True)[:MOST_SETS]
    near = [x for x in free if x in near]  # in the order of the table
    sets = list[ColumnSet]()
    if told:
        sets = best_sets(way, {part: hints[part] or near for part in way})
    best = sets[0] if sets else {}

    # the part to ask for: one that is lacking, that differs, or that fits worst
    differ = [part for part in way if len({each[part].name for each in sets}) > 1]
    odd = sorted(best, key=lambda part: likeness(best[part], best.values()))
    part = (*lacking, *differ, *odd, "uncertainty")[0]
    rivals = tuple(dict.fromkeys(each[part].name for each in sets))
    asked = [x for x in way if not (may[x] and may[x][0].named)]

    could = f"; it could be {listed(map(quoted, rivals))}" if rivals else ""
    instead = {"uncertainty": "variance", "reference": "error"}.get(part)
    hint = f" (or {choice.called(instead, 'COLUMN')})" if instead else ""
    named = {x: best[x].name if best else "COLUMN" for x in asked}
    example = " ".join(choice.called(x, name) for x, name in named.items())
    msg = (
        f"No column is plainly the {part}{could}. Name it{hint}, for example: "
        f"{example}. The columns are: {listed(map(quoted, names), 12)}."
    )
    shown = [{x: each[x].name for x in asked} for each in sets[:MOST_SETS]]
    return ColumnError(msg, part, rivals, sets=shown)
