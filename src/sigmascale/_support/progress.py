"""Signs of life where something takes longer than two seconds, if a person watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from threading import Timer
from typing import TypeVar

Item = TypeVar("Item")
_silent: ContextVar[bool] = ContextVar("silent", default=False)
SECONDS_OF_PATIENCE = 2.0  # seconds before anything appears
CLEAR_LINE = "\r\x1b[2K"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done, after a while, on a terminal or in a notebook.

    What is done for it says nothing of its own.
    """
    terminal = sys.stderr
    in_notebook = type(terminal).__module__.startswith("ipykernel")
    if _silent.get() or not (terminal.isatty() or in_notebook):
        yield
        return
    take_away: list[Callable[[], object]] = []

    def tell() -> None:
        words = f"{what} ..."
        if in_notebook:  # which knows no sign that clears a line
            display = import_module("IPython.display").display
            shown = display({"text/plain": words}, raw=True, display_id=True)
            take_away.append(lambda: shown.update({"text/plain": ""}, raw=True))
        else:
            print(f"\r{words}", end="", file=terminal, flush=True)
            take_away.append(
                lambda: print(CLEAR_LINE, end="", file=terminal, flush=True)
            )

    timer = Timer(SECONDS_OF_PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        with silence():
            yield
    finally:  # also when it is left by an error or Ctrl-C
        timer.cancel()
        timer.join()  # or it might still write
        for clear in take_away:
            clear()


def track(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield `items`, and say what is being done with them."""
    with working(what):
        yield from items


@contextmanager
def silence() -> Iterator[None]:
    """Show no words and no progress; what is asked for is printed all the same."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)
