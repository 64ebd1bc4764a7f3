"""Signs of life where something takes longer than two seconds, if a person watches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Timer
from typing import TypeVar

Item = TypeVar("Item")
_silent: ContextVar[bool] = ContextVar("silent", default=False)
SECONDS_OF_PATIENCE = 2.0  # seconds before anything appears
CLEAR_LINE = "\r\x1b[2K"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done, after a while, on a terminal or in a notebook."""
    terminal = sys.stderr
    told = Event()
    notebook = type(terminal).__module__.startswith("ipykernel")
    if _silent.get() or not (terminal.isatty() or notebook):
        yield
        return

    def tell() -> None:
        told.set()
        terminal.write(f"\r{what} ...")
        terminal.flush()

    timer = Timer(SECONDS_OF_PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:  # also when it is left by an error or Ctrl-C
        timer.cancel()
        timer.join()  # or it might still write
        if told.is_set():
            terminal.write(CLEAR_LINE)
            terminal.flush()


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
