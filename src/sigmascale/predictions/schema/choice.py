"""What a user says of the columns, and how messages speak of it."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import numpy as np

from ..._support.checks import check_fraction
from ..._support.text import listed, quoted, shorten
from ...exceptions import ColumnError
from ..forms import read_quantiles
from ..roles import ARGUMENTS, OF_ROWS, OPTIONS, Roles
from .schema import Schema

_UNCERTAIN = ("uncertainty", "variance", "members", "quantile_columns", "interval")


@dataclass(frozen=True, kw_only=True)
class Choice(Roles):
    """What a user says of the columns; None, or nothing, is what is not said.

    Members, quantiles and intervals take the place of an uncertainty. Messages speak of
    `options` on the command line, and of arguments in Python.
    """

    options: bool = False

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> Choice:
        """Return what arguments of Python say: of :meth:`Predictions.from_frame`.

        >>> Choice.of_arguments({"y_std": "u", "features": "all"}).all_features
        True
        """
        said: dict[str, Any] = {}
        role_of = {argument: role for role, argument in ARGUMENTS.items()}
        for argument, value in arguments.items():
            said[role_of.get(argument, argument)] = value
        if isinstance(said.get("features"), str) and said["features"] == "all":
            said |= {"features": (), "all_features": True}
        if isinstance(said.get("members"), str):
            said["members"] = (said["members"],)
        levels = said.get("quantile_columns") or {}
        said["quantile_columns"] = [
            f"{name}={float(p)!r}" for name, p in levels.items()
        ]
        for field in fields(Roles):
            if field.default == ():
                said[field.name] = tuple(said.get(field.name, ()))
        return cls(**said)

    @classmethod
    def of_command(cls, command: Any, **changed: Any) -> Choice:
        """Return what the options of a command say of the columns."""
        roles = [field.name for field in fields(Roles) if hasattr(command, field.name)]
        said = {role: getattr(command, role) for role in roles}
        return cls(options=True, **said | changed)

    def called(self, role: str, value: str = "") -> str:
        """Return what a role is called where it is named, with what it is set to.

        >>> Choice().called("reference", "E"), Choice(options=True).called("error")
        ('y_true="E"', '--error')
        """
        value = shorten(value)
        if self.options:
            option = OPTIONS[role]
            return f"{option} {shlex.quote(value)}" if value else option
        argument = ARGUMENTS.get(role, role)
        return f'{argument}="{value}"' if value else f"`{argument}`"

    def example(self, roles: Mapping[str, Any]) -> str:
        """Return how roles are named, each with what it is set to.

        >>> Choice(options=True).example({"interval": ("lo", "hi"), "reference": "y"})
        '--interval lo --interval hi --reference y'
        >>> Choice().example({"interval": ("lo", "hi"), "interval_coverage": 0.9})
        'interval=["lo", "hi"], coverage=0.9'
        """
        if not self.options:
            return ", ".join(_in_python(role, value) for role, value in roles.items())
        words = []
        for role, value in roles.items():
            if isinstance(value, tuple):  # the option is repeated
                words += [self.called(role, str(item)) for item in value]
            else:
                words.append(self.called(role, str(value)))
        return " ".join(words)


def _in_python(role: str, value: Any) -> str:
    """Return a role as the argument of a function that takes it."""
    if role == "quantile_columns":
        pairs = [item.rpartition("=") for item in value]
        value = {name: float(level) for name, _, level in pairs}
    text = json.dumps(list(value) if isinstance(value, tuple) else value)
    return f"{ARGUMENTS.get(role, role)}={text}"


# -- what is said, as a schema ---------------------------------------------------------


def known(name: str | None, names: Sequence[str], asked_by: str) -> str | None:
    """Return a column's name if there is such a column; else suggest the nearest."""
    if name is None or name in names:
        return name
    by_small = {column.lower(): column for column in reversed(names)}
    near = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
    hint = f"Did you mean {quoted(by_small[near[0]])}? " if near else ""
    msg = (
        f"{asked_by} needs a column {quoted(name)}, and there is none. {hint}The "
        f"columns are: {listed(map(quoted, names), 12)}."
    )
    suggested = [by_small[small] for small in near]
    raise ColumnError(msg, "unknown", (name,), near=suggested)


def said_of(choice: Choice, names: Sequence[str]) -> Schema:
    """Return a schema with what is named; its uncertainty may be empty."""
    # single columns must be there
    main = ("error", "reference", "prediction", "uncertainty", "variance")
    for role in (*main, *OF_ROWS):
        known(getattr(choice, role), names, choice.called(role))

    # of some roles, one takes the place of the other
    rivals = [*combinations(_UNCERTAIN, 2)]
    rivals += [("error", "reference"), ("error", "prediction")]
    for role, rival in rivals:
        if getattr(choice, role) and getattr(choice, rival):
            msg = f"Pass {choice.called(role)} or {choice.called(rival)}, not both."
            raise ColumnError(msg, role)

    made_of, levels = _made_of(choice, names)
    said = Schema(
        choice.uncertainty or choice.variance or "",
        choice.variance is not None,
        error=(choice.error,) if choice.error else (),
        prediction=choice.prediction,
        made_of=made_of,
        levels=levels,
        min_std=choice.min_std,
        **{role: getattr(choice, role) for role in OF_ROWS},
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
        role = "members"
        columns = _matching(choice.members, names)
    elif choice.quantile_columns:
        role = "quantile_columns"
        columns, levels = _levelled(choice)
    elif choice.interval or choice.interval_coverage is not None:
        role = "interval"
        columns = list(choice.interval)
        called = choice.called("interval_coverage").strip("`")
        share = check_fraction(choice.interval_coverage, called)
        levels = [(1 - share) / 2, (1 + share) / 2]
    else:
        return (), ()

    for name in columns:
        known(name, names, choice.called(role))
    if len(columns) == 1 or (levels and len(columns) != len(levels)):
        msg = f"{choice.called(role)} must name two columns; found {len(columns)}."
        raise ColumnError(msg, role, tuple(columns))
    if levels:
        order = np.argsort(levels)
        columns = [columns[i] for i in order]
        levels = [levels[i] for i in order]
        read_quantiles(levels, [levels])  # refuses levels that tell no uncertainty
    return tuple(dict.fromkeys(columns)), tuple(levels)


def _matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that are named, or that a pattern such as m_* stands for."""
    columns = []
    for pattern in patterns:
        literal = pattern.replace("[", "[[]")  # which many names have
        like = [name for name in names if fnmatchcase(name, literal)]
        columns += [pattern] if pattern in names or not like else _counting(like)
    return columns


def _counting(like: list[str]) -> list[str]:
    """Return the columns that differ by numbers alone, if there are several.

    >>> _counting(["pred_1", "pred_2", "pred_mean", "pred_std"])
    ['pred_1', 'pred_2']
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in like:
        alike[re.sub(r"\d+", "#", name)].append(name)
    largest = max(alike.values(), key=len)
    return largest if len(largest) > 1 else like


def _levelled(choice: Choice) -> tuple[list[str], list[float]]:
    """Return the columns of quantiles, and their levels."""
    columns = []
    levels = []
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
