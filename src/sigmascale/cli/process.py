"""The command line as a whole: its warnings, errors and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, NoReturn

from .._support.terminal import visible
from ..exceptions import InvalidInputError
from .app import BAD_INPUT, DEFECT, PASSED, app

# Help lists the commands in this order.
from . import check, divide, fit, apply, update, show, export, watch  # noqa: F401  # isort: skip
from . import compare, bins, browse, stories  # noqa: F401  # isort: skip


def main() -> NoReturn:
    """Run the command line; what a user can mend ends with a message and code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack "²"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn_once()
        try:
            try:
                app(prog_name="sigmascale")
            finally:
                _flush()
        except (InvalidInputError, OSError, ImportError, MemoryError) as problem:
            _tell(_words(problem))
            sys.exit(BAD_INPUT)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # panics of libraries in Rust are no exceptions
            print(visible(traceback.format_exc()), end="", file=sys.stderr)
            _tell("this is a defect of sigmascale, not of your data: please report it.")
            sys.exit(DEFECT)
    sys.exit(PASSED)


def _warn_once() -> Callable[..., None]:
    told = set()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            print(f"warning: {visible(str(message))}", file=sys.stderr)

    return warn


def _flush() -> None:
    """Write out what was printed: a full disk must not come to light later."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _words(problem: Exception) -> str:
    if isinstance(problem, MemoryError):
        return "the memory of this machine does not suffice."
    if isinstance(problem, OSError) and problem.strerror:
        return ": ".join(str(w) for w in (problem.filename, problem.strerror) if w)
    return str(problem)


def _tell(words: str) -> None:
    print(f"error: {visible(' '.join(words.split()))}", file=sys.stderr)
