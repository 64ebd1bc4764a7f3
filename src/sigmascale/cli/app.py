"""The application of all commands: how it opens tables, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import TextIOWrapper
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType

from .._support.progress import is_silent
from .._support.terminal import INVISIBLE, visible
from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from ..judging.validation import Validation
    from ..roles import Choice, Expected
    from .lazy_table import LazyTable
    from .options import Reading, TableFormat
    from .table import Table

GROUPS = ("Columns", "Reading", "More")  # of options, after those that come first
WIDTH = 79
NARROWEST = 20  # characters in a line, however narrow the terminal says that it is
MARKS = {"yes": ("✓", "green"), "no": ("✗", "red"), "cannot tell": ("?", "yellow")}
_results: ContextVar[list[Any] | None] = ContextVar("results", default=None)
# What the process ends with; 2 is what Typer has for wrong options, too.
PASSED, FAILED, BAD_INPUT, DEFECT, CANNOT_TELL = 0, 1, 2, 3, 4


class Page:
    """Help as plain text: a line or two on each option, in groups."""

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Write usage, meaning, arguments, options by group, commands and the end."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        titles = ("Arguments", "Options", *GROUPS)
        groups: dict[str, list[tuple[str, str]]] = {each: [] for each in titles}
        for each in self.get_params(ctx):
            is_option = each.opts[0].startswith("-")
            group = "Options" if is_option else "Arguments"
            if "--help" in each.opts and groups["More"]:
                group = "More"
            groups[getattr(each, "rich_help_panel", None) or group].append(_row(each))
        groups["Commands"] = [
            (name, self.get_command(ctx, name).help.split("\n\n")[0])
            for name in (self.list_commands(ctx) if hasattr(self, "commands") else ())
        ]
        width = max(len(name) for rows in groups.values() for name, _ in rows)
        for title, rows in groups.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), w) for name, w in rows])
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


def _row(parameter: Any) -> tuple[str, str]:
    """Return what help says of an argument or option: its names, and what it does."""
    names, words = parameter.metavar or "", parameter.help or ""
    if parameter.opts[0].startswith("-"):
        names = f"{', '.join(sorted(parameter.opts, key=len))} {names}".rstrip()
        default = parameter.default
        if isinstance(default, int | float | str | Path) and default is not False:
            words += f" [default: {default}]"
        elif parameter.required:
            words += " [required]"
    return names, words


class Command(Page, TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what can be typed after the name of the command."""
        arguments = [x for x in self.params if not x.opts[0].startswith("-")]
        named = [x.metavar if x.required else f"[{x.metavar}]" for x in arguments]
        return ["[OPTIONS]", *map(str, named)]


class Commands(Page, TyperGroup):
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


class App(typer.Typer):
    """All commands, with pages of help of one kind."""

    def command(
        self, name: str | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Return a decorator that makes a command of a function."""
        return super().command(name, cls=Command, **options)


app = App(
    cls=Commands,
    help="Honest error bars for regression: check, recalibrate and compare them.",
    epilog="`sigmascale demo` writes the files of the examples that each --help ends "
    "with.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
    return code, _as_dict(found)


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


def open_table(
    files: Sequence[str],
    reading: Reading,
    choice: Choice | Expected,
    sample: int | None = None,
) -> Table | LazyTable:
    """Return files as one table whose columns have the roles that were chosen.

    `sample` is how many rows may be drawn, if they stay where they are.
    """
    from .table import Table, stays_lazy

    if stays_lazy(files, reading.engine, reading.scheduler):
        from .lazy_table import LazyTable

        return LazyTable.open(files, reading, choice, sample)
    if sample is not None:
        msg = (
            "--sample is for files that are not read into memory, such as with "
            "--engine polars; all rows of these are used."
        )
        raise InvalidInputError(msg)
    return Table.open(files, reading, choice)


# -- results on the screen, for people and for machines ----------------------------


def check_format(format: TableFormat | None, as_json: bool) -> None:
    """Refuse two kinds of output at once."""
    if as_json and format is not None:
        msg = "Pass --json or --format, but not both."
        raise InvalidInputError(msg)


def say(words: Any = "", *, asked: bool = False) -> None:
    """Print words, with whatever a terminal would act upon made visible.

    Those that are `asked` for are printed in any case.
    """
    if asked or not is_silent():
        print(visible(str(words)))


def show_json(result: Any, *, to_stderr: bool = False) -> None:
    """Print a result for machines, or keep it for those who asked for it.

    It is a dict, or has `to_dict`.
    """
    kept = _results.get()
    if kept is not None:
        kept.append(result)
        return
    text = json.dumps(_as_dict(result), indent=1, ensure_ascii=False)
    # what JSON leaves of control characters, and bytes that are no text
    safe = INVISIBLE.sub(lambda found: _escaped(found[0]), text)
    print(safe, file=sys.stderr if to_stderr else sys.stdout)


@contextmanager
def collected() -> Iterator[list[Any]]:
    """Keep results for machines in a list instead of printing them."""
    results: list[Any] = []
    token = _results.set(results)
    try:
        yield results
    finally:
        _results.reset(token)


def _escaped(mark: str) -> str:
    return mark if mark == "\n" else f"\\u{ord(mark):04x}"


def show_table(result: Any, format: TableFormat) -> None:
    """Print the table of a result alone, so that it can be pasted."""
    say(result.to_table(format.value).rstrip("\n"), asked=True)


def wrapped(words: str, width: int = WIDTH, indent: str = "") -> str:
    """Return words in lines; a number stays with what follows it: 95 %, 4 rows.

    >>> print(wrapped("intervals of 95 % hold", 15))
    intervals of
    95 % hold
    """
    tied = re.sub(r"(?<=\d) (?=[%u±])", "\xa0", words)
    return fill(tied, width, subsequent_indent=indent).replace("\xa0", " ")


def show_words(*paragraphs: str) -> None:
    """Print paragraphs that fit a terminal."""
    for words in paragraphs:
        say(wrapped(words))


def tell_written(report: Path | None) -> None:
    """Print where the report is."""
    if report is not None:
        say(f"\nReport: {report}")


def _as_dict(result: Any) -> Any:
    return finite(result if isinstance(result, dict) else result.to_dict())


def finite(value: Any) -> Any:
    """Return a value that JSON can hold: it knows no infinite numbers."""
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value.item() if hasattr(value, "item") else value


def show_verdicts(validation: Validation, title: str = "") -> None:
    """Print verdicts with a mark each, in colour where there is any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, quiet=is_silent())
    console.width = max(NARROWEST, console.width)  # or nothing would be shown
    if title:
        console.print(Text(visible(title, keep=""), style="bold"))
    for verdict in validation.verdicts.values():
        mark, style = MARKS[verdict.answer]
        sentence = visible(f"  {verdict.sentence}", keep="")
        words = wrapped(sentence, console.width - 1, "  ")
        console.print(Text(mark, style=style) + Text(words[1:]), soft_wrap=True)


def tell_guesses(choice: Choice, data: Table | LazyTable) -> None:
    """Print what was taken from a file, and which columns nobody named."""
    show_words(str(data))
    if data.is_several:
        return
    roles = data.first
    made = () if roles.form is None else roles.form.made
    guessed = [] if any(choice.error_names) else list(roles.error)
    guessed = [name for name in guessed if name not in made]
    if choice.uncertainty is None and choice.variance is None and not made:
        guessed.append(roles.uncertainty)
    if guessed:
        say(f"Guessed from their names: {', '.join(guessed)}.")
    if roles.left_out:
        names = ", ".join(roles.left_out)
        show_words(f"Left out, as their names say that they are no features: {names}.")
    if not roles.features:
        say("--feature COLUMN or --all-features would use some.")
