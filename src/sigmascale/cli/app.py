"""The application that the commands belong to: its exit codes, warnings and errors."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from .._support.terminal import visible
from ..exceptions import InvalidInputError
from .printing import as_dict, collected

# What the process ends with; 2 is what Typer has for wrong options, too.
PASSED, FAILED, BAD_INPUT, DEFECT, CANNOT_TELL = 0, 1, 2, 3, 4


class Commands(TyperGroup):
    """The commands; what is said of wrong options holds nothing invisible."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read what stands before a command."""
        return _told_visibly(super().make_context, *arguments, **options)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Read the options of a command, and run it."""
        return _told_visibly(super().invoke, *arguments, **options)


def _told_visibly(run: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return run(*arguments, **options)
    except Exception as problem:
        message = getattr(problem, "message", None)
        if isinstance(message, str):
            problem.message = visible(message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=Commands,
    help="Honest error bars for regression: check, recalibrate and compare them.",
    epilog="The examples in the help of each command use the files that "
    "`sigmascale demo` writes.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from .._support.version import __version__

        print(f"sigmascale {__version__}")
        raise typer.Exit(PASSED)


@app.callback()
def sigmascale(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


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


def result_of(arguments: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Run a command in this process; return its exit code, and what `--json` prints.

    Parameters
    ----------
    arguments : list of str
        A command that has `--json`, its files and options.

    Returns
    -------
    code : int
        0, or what else is told to a pipeline.
    result : dict
        What is told to machines.

    Raises
    ------
    InvalidInputError
        Where the command line would print one; also if an option is wrong.
    """
    code, found = run(arguments)
    return code, as_dict(found)


def run(arguments: Sequence[str]) -> tuple[int, Any]:
    """Run a command in this process; return its exit code, and what it has found.

    That is what `--json` would print, or an object whose `to_dict` returns that.
    """
    with collected() as results:
        try:
            code = app([*arguments, "--json"], standalone_mode=False)
        except Exception as problem:  # Typer has its own, by version
            if not hasattr(problem, "format_message"):
                raise
            raise InvalidInputError(problem.format_message()) from problem
    return code or PASSED, results[-1] if results else {}


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
