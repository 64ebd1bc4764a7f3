"""Warnings and row numbers: one way to give them, and to keep quiet about them.

`warnings.catch_warnings` changes the filters of the whole process. Threads that use it
at the same time restore each other's filters, and may leave all warnings switched off.
What is set here belongs to one thread, or one task, alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
_gathered: ContextVar[list[tuple[str, type[Warning]]] | None]
_gathered = ContextVar("gathered", default=None)
_remedies: ContextVar[Mapping[type[Warning], str]] = ContextVar(
    "remedies", default=MappingProxyType({})
)
_place: ContextVar[Callable[[Any], int]] = ContextVar("place", default=int)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Warn as `warnings.warn` does, unless this thread keeps quiet or gathers."""
    if _is_quiet.get():
        return
    gathering = _gathered.get()
    if gathering is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        gathering.append((message, category))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep this library's warnings to itself, and those of NumPy's arithmetic.

    >>> with quiet():
    ...     warn("nobody hears this", UserWarning)
    """
    token = _is_quiet.set(True)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _is_quiet.reset(token)


@contextmanager
def gathered() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Gather this library's warnings in place of giving them.

    >>> with gathered() as told:
    ...     warn("this is kept", UserWarning)
    >>> told
    [('this is kept', <class 'UserWarning'>)]
    """
    told: list[tuple[str, type[Warning]]] = []
    token = _gathered.set(told)
    try:
        yield told
    finally:
        _gathered.reset(token)


def remedy(category: type[Warning], words: str) -> str:
    """Return what to do about a warning, in the words of the door that was taken.

    >>> with remedies({UserWarning: "Pass --variance u."}):
    ...     remedy(UserWarning, "Pass `variance`.")
    'Pass --variance u.'
    """
    return _remedies.get().get(category, words)


@contextmanager
def remedies(words: Mapping[type[Warning], str]) -> Iterator[None]:
    """Say how a door words what to do about warnings."""
    token = _remedies.set({**_remedies.get(), **words})
    try:
        yield
    finally:
        _remedies.reset(token)


def row_number(row: Any) -> int:
    """Return a row as the user counts it: from 0 in arrays, and from 1 in files.

    >>> row_number(0)
    0
    """
    return _place.get()(row)


@contextmanager
def rows_at(places: Any) -> Iterator[None]:
    """Say where rows were, for messages that name one; None is where they are.

    >>> with rows_at([3, 7]):
    ...     row_number(1)
    7
    """
    outer = _place.get()

    def place(row: Any) -> int:
        return outer(places[int(row)])

    token = _place.set(outer if places is None else place)
    try:
        yield
    finally:
        _place.reset(token)
