"""The application that the commands belong to, and its exit codes."""

from typing import Annotated

import typer

# What the process ends with; 2 is what Typer has for wrong options, too.
PASSED, FAILED, BAD_INPUT, DEFECT, CANNOT_TELL = 0, 1, 2, 3, 4

app = typer.Typer(
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
