"""What nobody has named: told by names, or asked for.

A guess is made only where one set of columns is plainly better than all others; else
the error names the role that is open, and says what other columns look like.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from ..._support.text import listed, quoted
from ...exceptions import ColumnError
from .choice import Choice
from .lookalikes import is_misleading, is_no_deviation, looks, numbered
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
from .schema import Schema

MOST_LOOKS = 3  # of columns that look like an uncertainty together
MOST_SETS = 8  # of columns that fit alike, in an error
_IN_ORDER = ("uncertainty", "reference", "prediction", "error")  # that are asked for
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
    """Return a schema with the roles that nobody has named, if they can be told."""
    named = {
        "error": choice.error,
        "reference": choice.reference,
        "prediction": said.prediction,
        "uncertainty": said.uncertainty,
    }

    # columns that may play each role; those that count are features, or members
    no_role = {*choice.features, *choice.labels, *choice.exclude, *said.made_of}
    no_role.update(said.of_rows.values())
    no_role.update(filter(None, named.values()))
    numeric = set(numeric)
    open_names = [name for name in names if name in numeric and name not in no_role]
    counted = set(numbered(open_names))
    free = read_names(name for name in open_names if name not in counted)
    may: dict[str, list[NamedColumn]] = {}
    for role, name in named.items():
        may[role] = [column for column in free if column.role == role]
        if name:
            stem = frozenset[str]() if name in said.made else read_name(name).stem
            may[role] = [NamedColumn(name, role, stem, named=True)]
        elif role == "uncertainty":
            may[role] = [column for column in free if _may_be_u(column, names)]

    # ways of knowing errors, of which the first is taken that names tell plainly
    ways = [_PAIR, ("error", "uncertainty"), *(() if errors else _WITHOUT_ERRORS)]
    given = {role for role, name in named.items() if name}
    ways = [way for way in ways if given.issubset(way)]
    for way in ways:
        plain = [columns for columns in best_sets(way, may) if is_plain(columns)]
        if len(plain) == 1:
            return _with_set(said, plain[0])
    raise _unclear(ways, may, free, open_names, choice, names)


def _may_be_u(column: NamedColumn, names: Sequence[str]) -> bool:
    """Return whether a column may hold uncertainties, or variances."""
    is_called_so = column.role in ("uncertainty", "variance")
    is_other = is_no_deviation(column.name) or is_misleading(column.name, names)
    return is_called_so and not is_other


def _sounds_like_u(column: NamedColumn) -> bool:
    """Return whether a name is a little like an uncertainty: scale, or t2m_err."""
    is_free = column.role in ("", "error") and not is_no_deviation(column.name)
    return is_free and sounds_like_u(column)


def _with_set(said: Schema, columns: ColumnSet) -> Schema:
    """Return a schema whose errors, prediction and uncertainty are a set of columns."""
    roles = {role: column.name for role, column in columns.items()}
    error: tuple[str, ...] = ()
    if "error" in roles:
        error = (roles["error"],)
    elif "reference" in roles:
        error = roles["reference"], roles["prediction"]
    is_variance = columns["uncertainty"].role == "variance"
    guessed = [column.name for column in columns.values() if not column.named]
    return replace(
        said,
        uncertainty=roles["uncertainty"],
        is_variance=said.is_variance or is_variance,
        error=error,
        prediction=roles.get("prediction", said.prediction),
        guessed=tuple(guessed),
    )


def _unclear(
    ways: list[tuple[str, ...]],
    may: dict[str, list[NamedColumn]],
    free: list[NamedColumn],
    open_names: Sequence[str],
    choice: Choice,
    names: Sequence[str],
) -> ColumnError:
    """Return the error that no column is plainly what is needed."""
    way = next((way for way in ways if all(may[role] for role in way)), ways[0])
    lacking = [role for role in _IN_ORDER if role in way and not may[role]]
    hinted = dict(may)
    if not may["uncertainty"]:  # names with something of one
        hinted["uncertainty"] = [column for column in free if _sounds_like_u(column)]

    # the sets of columns that fit best, and the role to ask for: one that no column
    # plays, or that several may, or that fits worst
    sets = best_sets([role for role in way if hinted[role]], hinted)[:MOST_SETS]
    columns_of = {role: _candidates(role, sets) for role in ("uncertainty", *way)}
    differ = [role for role in way if len(columns_of[role]) > 1]
    best = sets[0] if sets else {}
    odd = sorted(best, key=lambda role: likeness(best[role], best.values()))
    role = (*lacking, *differ, *odd, "uncertainty")[0]

    # what to pass, where names do not tell that some columns say it together
    asked = [role for role in way if not (may[role] and may[role][0].named)]
    shown = [_as_said(columns, asked) for columns in sets]
    example = dict.fromkeys(asked, "COLUMN") | (shown[0] if shown else {})
    if "variance" in example:
        example.pop("uncertainty", None)
    if not columns_of["uncertainty"]:  # one of several columns is no example
        example |= dict.fromkeys(differ, "COLUMN")
    sentences = []
    if role == "uncertainty" and not may[role]:
        for words, roles in islice(looks(open_names, names), MOST_LOOKS):
            others = {other: example[other] for other in example if other != role}
            is_blank = others.get("prediction") == "COLUMN"
            if is_blank or not {"interval", "variance"} & roles.keys():
                others.pop("prediction", None)  # it is the middle of these columns
            sentences.append(f"{words}: pass {choice.example(others | roles)}.")
    could = ""
    if not sentences:  # then a single column is asked for
        if columns_of[role]:
            could = f"; it could be {listed(map(quoted, columns_of[role]))}"
        instead = {"uncertainty": "variance", "reference": "error"}.get(role)
        hint = f" (or {choice.called(instead, 'COLUMN')})" if instead else ""
        sentences.append(f"Name it{hint}, for example: {choice.example(example)}.")
    msg = (
        f"No column is plainly the {role}{could}. "
        f"{' '.join(sentences)} The columns are: {listed(map(quoted, names), 12)}."
    )
    return ColumnError(msg, role, tuple(columns_of[role]), sets=shown)


def _as_said(columns: ColumnSet, asked: Sequence[str]) -> dict[str, str]:
    """Return a set of columns as a user would name it: a variance is called one."""
    said = {}
    for role in asked:
        if role in columns:
            is_variance = columns[role].role == "variance"
            said["variance" if is_variance else role] = columns[role].name
    return said


def _candidates(role: str, sets: Sequence[ColumnSet]) -> list[str]:
    """Return the columns that play a role in sets, each once."""
    names = [columns[role].name for columns in sets if role in columns]
    return list(dict.fromkeys(names))
