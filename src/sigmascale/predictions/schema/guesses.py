"""What nobody has named: told by names, or asked for with what could be meant.

A guess is made only where one set of columns is plainly better than all others; else
the error lists the best sets, or what columns say an uncertainty together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ..._support.text import listed, quoted
from ...exceptions import ColumnError
from .choice import Choice, said_of
from .families import Family, families, is_no_deviation
from .names import (
    ColumnSet,
    NamedColumn,
    best_sets,
    is_plain,
    likeness,
    read_name,
    read_names,
    sounds_like_u,
)
from .read import Schema

MOST_SETS = 8  # of columns that fit alike, in an error
MOST_OFFERS = 3  # of columns that say an uncertainty together
_BLANKS = {"interval_coverage": "SHARE"}  # for what only the user knows; else COLUMN
_PAIR: tuple[str, ...] = ("reference", "prediction", "uncertainty")
_WITHOUT_ERRORS: tuple[tuple[str, ...], ...] = (
    ("prediction", "uncertainty"),
    ("uncertainty",),
)


def guessed(
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

    # columns that have no part yet; those that say an uncertainty together get none
    numeric = set(numeric)
    no_part = {*choice.features, *choice.labels, *choice.exclude, *said.made_of}
    no_part.update(filter(None, (said.groups, said.weight, said.time)))
    no_part.update(filter(None, named.values()))
    open_names = [name for name in names if name not in no_part]
    free_names = [name for name in open_names if name in numeric]
    together = families(open_names, free_names)
    no_part.update(name for family in together for name in family.columns)
    free = read_names(name for name in free_names if name not in no_part)

    # columns that may play each part
    may: dict[str, list[NamedColumn]] = {part: [] for part in named}
    for column in free:
        if column.part in may:
            may[column.part].append(column)
    variances = [column for column in free if column.part == "variance"]
    may["uncertainty"] = _deviations([*may["uncertainty"], *variances])
    for part, name in named.items():
        if name:
            stem = frozenset[str]() if name in said.made else read_name(name).stem
            may[part] = [NamedColumn(name, part, stem, named=True)]

    # ways of knowing errors, of which the first is taken that names tell plainly
    ways = [_PAIR, ("error", "uncertainty")]
    if not errors:
        ways += _WITHOUT_ERRORS
    given = {part for part, name in named.items() if name}
    ways = [way for way in ways if given.issubset(way)]

    is_asked = not said.uncertainty
    sure = [family for family in together if family.is_sure and is_asked]
    if not sure:
        for way in ways:
            plain = [columns for columns in best_sets(way, may) if is_plain(columns)]
            if len(plain) == 1:
                return _with_set(said, plain[0])
    if is_asked and (sure or (together and not may["uncertainty"])):
        raise _offered(sure or together, choice, names, numeric, errors=errors)
    raise _unclear(ways, may, free, choice, names)


def _offered(
    together: list[Family],
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    *,
    errors: bool,
) -> ColumnError:
    """Return the error that columns say an uncertainty, but not as one column does."""
    sentences = []
    offers = []
    for family in together[:MOST_OFFERS]:
        offer = family.choice | _lacking(family, choice, names, numeric, errors=errors)
        shown = dict(offer)
        for part, value in offer.items():
            if value is None:
                shown[part] = _BLANKS.get(part, "COLUMN")
        columns = listed(map(quoted, family.columns), 3)
        example = choice.example(shown)
        sentences.append(f"{columns} {family.words}: pass {example}.")
        offers.append(offer)
    msg = (
        f"No column is plainly the uncertainty. {' '.join(sentences)} The columns are: "
        f"{listed(map(quoted, names), 12)}."
    )
    return ColumnError(msg, "uncertainty", together[0].columns, offers=offers)


def _lacking(
    family: Family,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    *,
    errors: bool,
) -> dict[str, str | None]:
    """Return what else is to be named if columns are taken for what they look like.

    A part that several columns may play is None.
    """
    taken: dict[str, Any] = dict(family.choice)
    if "interval" in taken and taken["interval_coverage"] is None:
        taken["interval_coverage"] = 0.5  # any will do to find the other columns
    wanted = replace(choice, **taken)
    try:
        guessed(said_of(wanted, names), wanted, names, numeric, errors=errors)
    except ColumnError as problem:
        return _agreed(problem.fields["sets"]) or {"reference": None}
    return {}


def _agreed(sets: Sequence[dict[str, str]]) -> dict[str, str | None]:
    """Return the column of each part, None where sets of columns differ."""
    agreed: dict[str, str | None] = {}
    for part in sets[0] if sets else {}:
        names = {columns.get(part) for columns in sets}
        agreed[part] = names.pop() if len(names) == 1 else None
    return agreed


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
    way = _first_possible(ways, may)
    order = ("uncertainty", "reference", "prediction", "error")
    lacking = [part for part in order if part in way and not may[part]]

    # where no name tells the part, columns of like names may play it
    hints = dict(may)
    if "uncertainty" in lacking:
        # which z_err may be, too, and E may not
        errors = [column for column in may["error"] if not column.weak]
        hints["uncertainty"] = _deviations(errors)
    told: list[NamedColumn] = []
    for part in way:
        told += hints[part]

    def likeness_to_told(column: NamedColumn) -> float:
        return likeness(column, told)

    nearest = sorted(free, key=likeness_to_told, reverse=True)[:MOST_SETS]
    near = _deviations([column for column in free if column in nearest])
    if not hints["uncertainty"]:  # but no column without anything of one
        hints["uncertainty"] = [column for column in near if sounds_like_u(column)]
    hinted = [part for part in way if part != "uncertainty" or hints[part]]

    # the sets that these columns make, if any name tells something
    could_play = {part: hints[part] or near for part in hinted}
    if "reference" in could_play and not hints["reference"]:
        # a prediction is no true value, be it beside others that are taken
        no_predictions = [column for column in near if column.part != "prediction"]
        could_play["reference"] = no_predictions
    sets = best_sets(hinted, could_play) if told else []
    best = sets[0] if sets else {}

    # the part to ask for: one that is lacking, that differs, or that fits worst
    candidates = {part: _candidates(part, sets) for part in hinted}
    differ = [part for part in hinted if len(candidates[part]) > 1]
    odd = sorted(best, key=lambda part: likeness(best[part], best.values()))
    part = (*lacking, *differ, *odd, "uncertainty")[0]
    rivals = _candidates(part, sets)

    # what to pass, for example, with another part that would do as well
    asked = [part for part in way if not (may[part] and may[part][0].named)]
    could = f"; it could be {listed(map(quoted, rivals))}" if rivals else ""
    instead = {"uncertainty": "variance", "reference": "error"}.get(part)
    hint = f" (or {choice.called(instead, 'COLUMN')})" if instead else ""
    shown = [_as_said(columns, asked) for columns in sets[:MOST_SETS]]
    named = dict.fromkeys(asked, "COLUMN") | (shown[0] if shown else {})
    if "variance" in named:
        named.pop("uncertainty", None)
    # beside nothing like an uncertainty, one of several columns is no example
    if "uncertainty" not in hinted:
        named |= dict.fromkeys(differ, "COLUMN")
    msg = (
        f"No column is plainly the {part}{could}. Name it{hint}, for example: "
        f"{choice.example(named)}. The columns are: {listed(map(quoted, names), 12)}."
    )
    return ColumnError(msg, part, tuple(rivals), sets=shown)


def _as_said(columns: ColumnSet, asked: Sequence[str]) -> dict[str, str]:
    """Return a set of columns as a user would name it: a variance is called one."""
    said = {}
    for part in asked:
        if part in columns:
            is_variance = columns[part].part == "variance"
            said["variance" if is_variance else part] = columns[part].name
    return said


def _first_possible(
    ways: list[tuple[str, ...]], may: dict[str, list[NamedColumn]]
) -> tuple[str, ...]:
    """Return the first way whose parts all have a column; the first if none has."""
    for way in ways:
        if all(may[part] for part in way):
            return way
    return ways[0]


def _deviations(columns: Sequence[NamedColumn]) -> list[NamedColumn]:
    """Return the columns whose names do not say that they are no uncertainties."""
    return [column for column in columns if not is_no_deviation(column.name)]


def _candidates(part: str, sets: Sequence[ColumnSet]) -> list[str]:
    """Return the columns that play a part in sets, each once."""
    names = [columns[part].name for columns in sets if part in columns]
    return list(dict.fromkeys(names))
