"""The command line as a process: ``sigmascale``, or ``python -m sigmascale``."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from typing import Any, NoReturn

from ._support.extras import needed_for
from ._support.files import remove_unfinished
from ._support.progress import silence
from ._support.text import INVISIBLE, visible
from .cli.options import BAD_INPUT, DEFECT, PASSED, Command, parse
from .exceptions import InvalidInputError

STOPPED = 128  # and the number of the signal that stopped it


def main() -> NoReturn:
    """Run the command line in a process of its own; see the exit codes in `options`."""
    _open_streams()
    stopped_by = _catch_signals()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _warn_once()
            code = _run(stopped_by)
    except (KeyboardInterrupt, SystemExit) as end:
        stopped = end.code if isinstance(end, SystemExit) else STOPPED + signal.SIGINT
        if isinstance(stopped, int) and stopped > STOPPED:
            remove_unfinished()
            print("error: interrupted.", file=sys.stderr, flush=True)
            os._exit(stopped)  # threads that still compute would make Python abort
        raise
    if hasattr(signal, "alarm"):
        signal.alarm(0)  # it is too late to stop
    sys.exit(code)


def _run(stopped_by: Sequence[int]) -> int:
    """Run what was typed; what a user can correct ends with a message and code 2.

    What happens after one of the signals `stopped_by` is its doing: a library that was
    interrupted may say so in an exception of its own.
    """
    command = None
    try:
        try:
            command = parse()
            with silence() if command.quiet else nullcontext():
                return _told(command)
        except SystemExit as end:
            if end.code:  # by a signal
                raise
            return PASSED  # help was asked for
        finally:
            _flush()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # panics of libraries in Rust are no exceptions
        if stopped_by:
            raise SystemExit(STOPPED + stopped_by[0]) from problem
        words = _words(problem)
        error = {"exit_code": BAD_INPUT, "code": getattr(problem, "code", "")}
        if not words:
            error = {"exit_code": DEFECT, "code": "defect"}
            words = "this is a defect of sigmascale, not of your data; please report it"
            print(visible(traceback.format_exc()), end="", file=sys.stderr)
        words = " ".join(words.split())
        print(f"error: {visible(words)}", file=sys.stderr)
        if "--json" in sys.argv if command is None else command.json:
            _print_json({"error": error | {"message": words}}, command)
        return int(error["exit_code"])


def _told(command: Command) -> int:
    """Run a command, print what it found, and return the exit code."""
    with needed_for(f"sigmascale {command.verb()}"):
        result = command.run()
    if command.json:
        _print_json(result.to_dict(), command)
    elif result.words and not command.quiet:
        print(visible(result.words), file=_stream(command))
    return result.code


def _stream(command: Command | None) -> Any:
    """Return where words go: aside where a table goes to standard output."""
    return sys.stderr if getattr(command, "output", "") == "-" else sys.stdout


def _print_json(told: dict[str, Any], command: Command | None) -> None:
    """Print what was found, or went wrong, for machines."""
    text = json.dumps(told, indent=1, ensure_ascii=False)
    # what JSON leaves of control characters, and bytes that are no text
    print(INVISIBLE.sub(_escaped, text), file=_stream(command))


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it; lines of JSON stay lines."""
    character = match[0]
    return character if character == "\n" else f"\\u{ord(character):04x}"


def _catch_signals() -> list[int]:
    """End in good order when the system says so; return the signals that came.

    The exception of a signal is lost where it meets a callback of a library or a
    finaliser: it is raised again, every second, until it is heard.
    """
    stopped_by: list[int] = []

    def stop(number: int, frame: Any) -> None:
        stopped_by.append(number)
        if hasattr(signal, "alarm"):
            signal.alarm(1)
        if number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        sys.exit(STOPPED + stopped_by[0])

    # so that nothing half-written is left; Windows has no terminal to hang up
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, stop)
    if hasattr(signal, "SIGPIPE"):  # end quietly when `| head` has seen enough
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return stopped_by


def _open_streams() -> None:
    """Open closed standard streams, which are None, or files would take their place."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers
        stream = getattr(sys, name)
        if stream is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="replace")  # a terminal may lack "²"


def _flush() -> None:
    """Write out what was printed: a full disk must not come to light later."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _words(problem: BaseException) -> str:
    """Return what a user is told of a problem that they can correct; else nothing."""
    if isinstance(problem, InvalidInputError):
        return str(problem)
    if isinstance(problem, MemoryError):
        return "the memory of this machine does not suffice."
    if isinstance(problem, OSError) and problem.strerror:
        file = f"{problem.filename}: " if problem.filename else ""
        return f"{file}{problem.strerror}"
    is_ours = str(getattr(problem, "name", "")).startswith(__package__)
    if isinstance(problem, ImportError) and not is_ours:
        return str(problem)
    return ""


def _warn_once() -> Callable[..., None]:
    """Return what takes the place of `warnings.showwarning`: each in one line, once."""
    printed: set[str] = set()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            print(f"warning: {visible(str(message))}", file=sys.stderr)

    return warn


if __name__ == "__main__":
    main()
