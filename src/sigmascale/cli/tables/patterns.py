"""Columns of several targets, named by patterns such as ``E_*`` and ``u_*``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...exceptions import InvalidInputError
from ...roles import RECALIBRATED, Choice, listed

STAR = "*"
ROLES = ("error", "reference", "prediction", "uncertainty", "variance")
ERRORS, UNCERTAINTIES = ROLES[:3], ROLES[3:]


def names_several(choice: Choice) -> bool:
    """Return whether columns of several targets are named."""
    given = [getattr(choice, role) for role in ROLES]
    return any(STAR in name for name in (*given, *choice.components) if name)


def patterns_of(choice: Choice) -> dict[str, str]:
    """Return the patterns by the roles that they are for; each must have a star."""
    if choice.components:
        msg = (
            "--uncertainty or --variance is given once if it is a pattern; found "
            f"{listed(list(choice.components))}."
        )
        raise InvalidInputError(msg)
    patterns = {
        role: getattr(choice, role)
        for role in ROLES
        if getattr(choice, role) is not None
    }
    for role, pattern in patterns.items():
        if pattern.count(STAR) != 1:
            msg = (
                f"--{role} {pattern!r} must have one star, as there are several "
                "targets: --error 'E_*' --uncertainty 'u_*'."
            )
            raise InvalidInputError(msg)
    return patterns


def matching_columns(choice: Choice, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each target by their roles.

    What the star stands for is the name of a target: patterns of all roles must have
    the same. Targets come in the order of their columns.
    """
    patterns = patterns_of(choice)
    found: dict[str, dict[str, str]] = {}
    for role, pattern in patterns.items():
        found[role] = matches(pattern, names)
        if not found[role]:
            msg = (
                f"--{role} {pattern!r} matches no column. The columns are: "
                f"{listed(list(names))}."
            )
            raise InvalidInputError(msg)
    first, *others = found
    for role in others:
        _refuse_unpaired(first, patterns[first], role, patterns[role], found)
    return {
        target: {role: found[role][target] for role in found} for target in found[first]
    }


def matches(pattern: str, names: Sequence[str]) -> dict[str, str]:
    """Return the columns that match a pattern, by what its star stands for.

    What `apply` has made of a column that matches, too, is left out.

    >>> matches("u_*", ["E_a", "u_a", "u_b", "u_b_recalibrated"])
    {'a': 'u_a', 'b': 'u_b'}
    """
    before, after = map(re.escape, pattern.split(STAR))
    compiled = re.compile(f"{before}(.+){after}", re.DOTALL)
    found = {name: hit[1] for name in names if (hit := compiled.fullmatch(name))}
    made = {f"{name}{RECALIBRATED}" for name in found}
    return {target: name for name, target in found.items() if name not in made}


def _refuse_unpaired(
    first: str,
    pattern: str,
    second: str,
    other: str,
    found: dict[str, dict[str, str]],
) -> None:
    alone = [
        f"{column!r} has no {role} ({wanted.replace(STAR, target)!r})"
        for columns, others, role, wanted in (
            (found[first], found[second], second, other),
            (found[second], found[first], first, pattern),
        )
        for target, column in columns.items()
        if target not in others
    ]
    if alone:
        more = f", and {len(alone) - 3} more" if len(alone) > 3 else ""
        msg = (
            f"--{first} {pattern!r} and --{second} {other!r} must stand for the same "
            f"targets: {', '.join(alone[:3])}{more}."
        )
        raise InvalidInputError(msg)


def choices_of(choice: Choice, names: Sequence[str]) -> dict[str, Choice]:
    """Return what is said of the columns of each target.

    Of all features, columns of other targets are none.
    """
    given = set(patterns_of(choice))
    if not given & set(ERRORS) or not given & set(UNCERTAINTIES):
        msg = (
            "Several targets need patterns of both their errors and uncertainties: "
            "--error 'E_*' --uncertainty 'u_*'; or --reference 'R_*' --prediction "
            "'V_*' for the errors, and --variance 's2_*'."
        )
        raise InvalidInputError(msg)
    found = matching_columns(choice, names)
    if choice.all_features:
        taken = {column for columns in found.values() for column in columns.values()}
        taken |= {f"{column}{RECALIBRATED}" for column in taken}
        others = tuple(name for name in names if name in taken)
        choice = replace(choice, exclude=(*choice.exclude, *others))
    choices = {}
    for target, columns in found.items():
        named: dict[str, Any] = {**columns}
        choices[target] = replace(choice, **named)
    return choices
