"""The application that the commands belong to, and its exit codes."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._support.terminal import visible

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
