"""What the options of the commands are called, and what they mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer


class Method(StrEnum):
    """The recalibrators by the names that the command line has for them."""

    auto = "auto"
    temperature = "temperature"
    linear = "linear"
    isotonic = "isotonic"
    binwise = "binwise"
    group = "group"
    raked = "raked"
    boosted = "boosted"


class Engine(StrEnum):
    """What does the work: this process in memory, or queries of lazy frames."""

    memory = "memory"
    polars = "polars"
    duckdb = "duckdb"
    dask = "dask"
    spark = "spark"


class Loss(StrEnum):
    """What bin-wise factors minimise."""

    nll = "nll"
    consistency = "consistency"
    adaptivity = "adaptivity"
    total = "total"


def column_option(words: str, *names: str) -> Any:
    """Return an option that names a column."""
    return typer.Option(*names, help=words, metavar="COLUMN", rich_help_panel="Columns")


COLUMN_OPTIONS: dict[str, tuple[Any, Any]] = {
    "error": (
        Annotated[str | None, column_option("Errors: reference minus prediction.")],
        None,
    ),
    "reference": (Annotated[str | None, column_option("True values.")], None),
    "prediction": (Annotated[str | None, column_option("Predicted values.")], None),
    "uncertainty": (
        Annotated[str | None, column_option("Uncertainties: standard deviations.")],
        None,
    ),
    "variance": (
        Annotated[str | None, column_option("Or their squares, variances.")],
        None,
    ),
    "features": (
        Annotated[list[str], column_option("A feature; can be repeated.", "--feature")],
        (),
    ),
    "all_features": (
        Annotated[
            bool,
            typer.Option(
                "--all-features",
                help="All other columns of numbers are features, but no true values "
                "and no errors.",
                rich_help_panel="Columns",
            ),
        ],
        False,
    ),
    "formula": (
        Annotated[
            str | None,
            column_option(
                "Chemical formulas: give mass, heteroatom_fraction and OxNy."
            ),
        ],
        None,
    ),
    "groups": (
        Annotated[
            list[str],
            column_option("A feature made of labels; can be repeated.", "--group"),
        ],
        (),
    ),
}

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Table, in one file or more; - is stdin."),
]
CalFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="CAL...",
        help="Calibration set, with known errors, in one file or more.",
    ),
]
EngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        help=f"{', '.join(Engine)}: all but memory query Parquet files without reading "
        "them whole, as is done with large ones if nothing is said.",
        metavar="ENGINE",
        rich_help_panel="Large data",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Of a running Dask or Spark cluster.",
        metavar="ADDRESS",
        rich_help_panel="Large data",
    ),
]
CalFile = Annotated[
    str, typer.Argument(metavar="CAL", help="Calibration set, with known errors.")
]
TestFile = Annotated[
    str, typer.Argument(metavar="TEST", help="Set to judge by, with known errors.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between columns of text files.", metavar="CHARACTER"),
]
Seed = Annotated[
    int, typer.Option(help="Seed of all random numbers.", min=0, metavar="N")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Report = Annotated[
    Path | None, typer.Option(help="Write a report to this HTML file.", metavar="HTML")
]
By = Annotated[
    list[str],
    typer.Option(
        help="Column to bin by; the uncertainty if not given. Two make cells.",
        metavar="COLUMN",
    ),
]


def with_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which column is which, as its `choice`."""

    @wraps(command)
    def wrapped(**options: Any) -> None:
        from .tables.columns import Choice

        named = {name: options.pop(name) for name in COLUMN_OPTIONS}
        command(choice=Choice(**named), **options)

    signature = inspect.signature(command, eval_str=True)
    own = [each for name, each in signature.parameters.items() if name != "choice"]
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in COLUMN_OPTIONS.items()
    ]
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    wrapped.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in [*own, *shared]}
    return wrapped


def example(*lines: str) -> str:
    """Return examples for the end of a help page, one a line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])
