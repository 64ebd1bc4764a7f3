"""Signs of life where something takes longer than two seconds, if a person watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Timer
from typing import TypeVar

Item = TypeVar("Item")
_silent: ContextVar[bool] = ContextVar("silent", default=False)
PATIENCE = 2.0  # seconds before anything appears
CLEAR = "\r\x1b[2K"


def track(
    items: Iterable[Item],
    what: str,
    total: int,
    *,
    done: Callable[[], int] | None = None,
) -> Iterator[Item]:
    """Yield `items`; show a bar after a while if a person is watching.

    `done` says how much of `total` is done; by default, items are counted.
    """
    if not _is_watched():
        yield from items
        return
    started = time.monotonic()
    shown = False
    try:
        for number, item in enumerate(items):
            taken = time.monotonic() - started
            if taken > PATIENCE:
                share = min(1.0, (number if done is None else done()) / max(1, total))
                bar = "#" * round(30 * share)
                left = _left(taken * (1 / share - 1)) if 0 < share < 1 else ""
                # spaces cover the rest of a longer estimate before
                sys.stderr.write(f"\r{what} [{bar:<30}] {share:4.0%}{left:<15}")
                sys.stderr.flush()
                shown = True
            yield item
    finally:  # also when the loop is left by an error or Ctrl-C
        if shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


def _is_watched() -> bool:
    """Return whether a person sees what is written: on a terminal, or in a notebook."""
    if is_silent():
        return False
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")


def _left(seconds: float) -> str:
    """Return in words how long it takes still, if all goes on as before."""
    if seconds < 100:
        return f", {seconds:.0f} s left"
    if seconds < 6000:
        return f", {seconds / 60:.0f} min left"
    return f", {seconds / 3600:.0f} h left"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say what is being done, after a while, if a person is watching.

    For what cannot be counted; a bar within it takes its place.
    """
    terminal = sys.stderr
    if not _is_watched():
        yield
        return

    told = Event()

    def tell() -> None:
        told.set()
        terminal.write(f"\r{what} ...")
        terminal.flush()

    timer = Timer(PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # or it might still write
        if told.is_set():
            terminal.write(CLEAR)
            terminal.flush()


@contextmanager
def silence() -> Iterator[None]:
    """Show no words and no progress; what is asked for is printed all the same."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def is_silent() -> bool:
    """Return whether words and progress are not wanted."""
    return _silent.get()
