"""The application that the commands belong to, and its exit codes."""

import typer

# What the process ends with; 2 is what Typer has for wrong options, too.
PASSED, FAILED, BAD_INPUT, DEFECT = 0, 1, 2, 3

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
