"""What the options of the commands are called, and what they mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from .._support.progress import silence
from ..exceptions import InvalidInputError
from ..scaling.registry import methods

if TYPE_CHECKING:
    from ..persistence import SavedMap, SavedTargets

MORE = "More"  # the group of options that few people use


class Engine(StrEnum):
    """What does the work: this process in memory, or queries of lazy frames."""

    memory = "memory"
    polars = "polars"
    duckdb = "duckdb"
    dask = "dask"
    spark = "spark"


@dataclass(frozen=True)
class Reading:
    """What a user says of how tables are read; None stands for what is not said.

    Attributes
    ----------
    where : str or None
        Conditions on rows; the others are left out.
    drop_missing : bool
        Whether rows with missing values are left out.
    separator, decimal : str or None
        What stands between the columns of text files, and the decimal mark.
    engine, scheduler : Engine, str or None
        What does the work, and where.
    """

    where: str | None = None
    drop_missing: bool = False
    separator: str | None = None
    decimal: str | None = None
    engine: Engine | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no decimal mark, and what is no separator."""
        if self.decimal not in (None, ".", ","):
            msg = f"--decimal must be a point or a comma; found {self.decimal!r}."
            raise InvalidInputError(msg)
        mark = self.separator
        if mark is not None and (
            len(mark) != 1 or not mark.isascii() or mark in '"\r\n'
        ):
            msg = f"--separator must be one character; found {mark!r}."
            raise InvalidInputError(msg)


@dataclass(frozen=True)
class Wanted:
    """What is wanted of distributions, beside uncertainties.

    Attributes
    ----------
    coverage : float or None
        Of limits.
    quantiles : tuple of float
        Levels of quantiles.
    shift : bool
        Whether shifted predictions are wanted.
    """

    coverage: float | None = None
    quantiles: tuple[float, ...] = ()
    shift: bool = False

    @classmethod
    def of(
        cls,
        coverage: float | None,
        quantiles: str | None,
        *,
        shift: bool,
        prediction: str | None,
    ) -> Self:
        """Return what options ask for, which is checked before anything is read."""
        from ..maps.distributions import check_coverage, check_levels

        levels: tuple[float, ...] = ()
        if quantiles is not None:
            try:
                levels = tuple(float(each) for each in quantiles.split(","))
                check_levels(levels)
            except ValueError as problem:
                msg = (
                    "--quantiles takes levels between 0 and 1, such as 0.05,0.5,0.95; "
                    f"found {quantiles!r}."
                )
                raise InvalidInputError(msg) from problem
        if coverage is not None:
            coverage = check_coverage(coverage)
        found = cls(coverage, levels, shift)
        if prediction is not None and not found.endings:
            msg = (
                "--prediction is for --coverage, --quantiles and --shift, which are "
                "about predictions."
            )
            raise InvalidInputError(msg)
        return found

    def refuse_unlearned(self, file: str, saved: SavedMap | SavedTargets) -> None:
        """Refuse a shift that was not learned."""
        if self.shift and all(each.shift is None for each in saved.maps.values()):
            msg = (
                f"{file}: no shift was learned. Leave out --shift, or fit with --shift "
                "auto, which learns one if unseen rows gain."
            )
            raise InvalidInputError(msg)

    @property
    def ends(self) -> list[float]:
        """The levels of both limits."""
        assert self.coverage is not None
        return [(1 - self.coverage) / 2, (1 + self.coverage) / 2]

    @property
    def endings(self) -> list[str]:
        """What the names of new columns end in."""
        from ..roles import LIMITS

        limits = [] if self.coverage is None else list(LIMITS)
        shifted = ["_shifted"] if self.shift else []
        return [*shifted, *limits, *(f"_q{level:g}" for level in self.quantiles)]


class Loss(StrEnum):
    """What bin-wise factors minimise."""

    nll = "nll"
    consistency = "consistency"
    adaptivity = "adaptivity"
    total = "total"


class TableFormat(StrEnum):
    """How tables are printed."""

    text = "text"
    markdown = "markdown"
    latex = "latex"


@dataclass(frozen=True)
class Group:
    """Options that belong together, and what is made of them.

    Attributes
    ----------
    make : callable
        Takes the options by name.
    options : dict of str to pair
        The annotation and the default of each.
    """

    make: Callable[..., Any]
    options: dict[str, tuple[Any, Any]]

    def without(self, *names: str) -> Group:
        """Return the group with fewer options."""
        rest = {k: v for k, v in self.options.items() if k not in names}
        return Group(self.make, rest)


QUIET = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print no words: files and the exit code tell.",
        rich_help_panel=MORE,
    ),
]


def gather(**groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of groups, each as one argument of that name.

    It also gets `--quiet`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(*, quiet: bool, **options: Any) -> None:
            made = {
                name: group.make(**{each: options.pop(each) for each in group.options})
                for name, group in groups.items()
            }
            with silence() if quiet else nullcontext():
                command(**made, **options)

        signature = inspect.signature(command, eval_str=True)
        own = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, each in signature.parameters.items()
            if name not in groups
        ]
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=annotation,
            )
            for group in groups.values()
            for name, (annotation, default) in group.options.items()
        ]
        quiet = inspect.Parameter(
            "quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QUIET
        )
        everything = [*own, *shared, quiet]
        wrapped.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {each.name: each.annotation for each in everything}
        return wrapped

    return decorate


def column_option(words: str, *names: str, first: bool = False) -> Any:
    """Return an option that names a column, one of those that come `first` or not."""
    group = None if first else "Columns"
    return typer.Option(*names, help=words, metavar="COLUMN", rich_help_panel=group)


def make_choice(
    uncertainty: Sequence[str] = (), variance: Sequence[str] = (), **options: Any
) -> Any:
    """Return what options say of the columns; uncertainties can be several."""
    from ..roles import Choice

    several = [*uncertainty, *variance]
    return Choice(
        options=True,
        uncertainty=next(iter(uncertainty), None),
        variance=next(iter(variance), None),
        components=tuple(several) if len(several) > 1 else (),
        **options,
    )


def _column(
    kind: Any, default: Any, words: str, *names: str, first: bool = False
) -> tuple[Any, Any]:
    return Annotated[kind, column_option(words, *names, first=first)], default


def _form(kind: Any, words: str, metavar: str) -> tuple[Any, Any]:
    option = typer.Option(help=words, metavar=metavar, rich_help_panel="Columns")
    return Annotated[kind | None, option], None


FORMS = {
    "members": _form(str, "Or members of an ensemble: 'm_*', or a list.", "COLUMNS"),
    "quantile_columns": _form(
        str,
        "Or quantiles: q05=0.05,q95=0.95, or a pattern with the level in the name: "
        "'q*'.",
        "COLUMNS",
    ),
    "interval": _form(str, "Or limits of intervals: low,high.", "COLUMNS"),
    "interval_coverage": _form(
        float, "The share that these claim to hold, such as 0.9.", "SHARE"
    ),
    "minimum": _form(
        float, "Lift smaller uncertainties, such as 0, to this.", "NUMBER"
    ),
}

COLUMNS = Group(
    make_choice,
    {
        "error": _column(
            str | None,
            None,
            "Errors: reference minus prediction; 'E_*' for several targets.",
            first=True,
        ),
        "uncertainty": _column(
            list[str],
            (),
            "Uncertainties: standard deviations; repeat it for parts that add up.",
            first=True,
        ),
        "features": _column(
            list[str], (), "A feature; can be repeated.", "--feature", first=True
        ),
        "all_features": (
            Annotated[
                bool,
                typer.Option(
                    "--all-features", help="All other columns of numbers are features."
                ),
            ],
            False,
        ),
        "exclude": _column(
            list[str], (), "Not this one of all features; can be repeated."
        ),
        "labels": _column(
            list[str], (), "A feature made of labels; can be repeated.", "--label"
        ),
        "formula": _column(
            str | None,
            None,
            "Chemical formulas: give mass, heteroatom_fraction and OxNy.",
        ),
        "reference": _column(str | None, None, "True values, instead of errors."),
        "prediction": _column(str | None, None, "Predictions; can be a feature, too."),
        "variance": _column(list[str], (), "Squares, instead of uncertainties."),
        **FORMS,
        "weight": _column(str | None, None, "Weights of the rows; 0 leaves a row out."),
    },
)
WITHOUT_WEIGHTS = COLUMNS.without("weight")


# Features are those that a recalibrator was fitted on.
OF_ERRORS = WITHOUT_WEIGHTS.without(
    "features", "all_features", "exclude", "formula", "labels"
)


# Columns of new rows, if they are named otherwise than those of fit.
OF_NEW = Group(
    make_choice,
    {
        "uncertainty": _column(
            list[str], (), "If named otherwise than in fit.", first=True
        ),
        "prediction": _column(
            str | None,
            None,
            "What to put limits and quantiles around.",
            first=True,
        ),
        "variance": _column(list[str], (), "If named otherwise than in fit."),
        **FORMS,
    },
)


def _reading(
    kind: Any, default: Any, words: str, metavar: str | None, *names: str
) -> tuple[Any, Any]:
    option = typer.Option(
        *names, help=words, metavar=metavar, rich_help_panel="Reading"
    )
    return Annotated[kind, option], default


READING = Group(
    Reading,
    {
        "where": _reading(
            str | None,
            None,
            "Only rows that meet a condition in SQL: \"split = 'test' AND mass < "
            '120".',
            "CONDITION",
        ),
        "drop_missing": _reading(
            bool, False, "Leave out rows with missing values.", None, "--drop-missing"
        ),
        "separator": _reading(
            str | None, None, "Between columns of text files.", "CHARACTER"
        ),
        "decimal": _reading(
            str | None, None, "Decimal mark of text files: . or a comma.", "MARK"
        ),
        "engine": _reading(
            Engine | None,
            None,
            f"{', '.join(Engine)}; all but memory query Parquet files, as is done "
            "with large ones.",
            "ENGINE",
        ),
        "scheduler": _reading(
            str | None, None, "Of a running Dask or Spark cluster.", "ADDRESS"
        ),
    },
)
IN_MEMORY = READING.without("engine", "scheduler")

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Table, in one file or more; - is stdin."),
]
MaybeFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE...", help="Table, in one file or more; - is stdin."),
]
CalibrationFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="CALIBRATION...",
        help="Calibration set, with known errors, in one file or more.",
    ),
]
CalibrationFile = Annotated[
    str,
    typer.Argument(metavar="CALIBRATION", help="Calibration set, with known errors."),
]
TestFile = Annotated[
    str, typer.Argument(metavar="TEST", help="Set to judge by, with known errors.")
]
SavedScaler = Annotated[
    str, typer.Argument(metavar="SCALER", help="File made by `sigmascale fit`.")
]
Seed = Annotated[
    int,
    typer.Option(
        help="Seed of all random numbers.",
        min=0,
        metavar="N",
        rich_help_panel=MORE,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, for machines.", rich_help_panel=MORE),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Add limits, low and high, that hold this share, such as 0.9; with a "
        "guarantee after fit --conformal-share.",
        metavar="SHARE",
    ),
]
Quantiles = Annotated[
    str | None,
    typer.Option(
        help="Add quantiles at these levels: 0.05,0.5,0.95.",
        metavar="LEVELS",
    ),
]
Shifted = Annotated[
    bool,
    typer.Option(
        "--shift",
        help="Add predictions with the shift that fit has learned.",
        rich_help_panel=MORE,
    ),
]
FormatOption = Annotated[
    TableFormat | None,
    typer.Option(
        "--format",
        help="text; or the table alone: markdown, latex.",
        metavar="FORMAT",
        rich_help_panel=MORE,
    ),
]
Groups = Annotated[
    str | None, column_option("Rows with equal values of it belong together.")
]
SampleSize = Annotated[
    int | None,
    typer.Option(
        "--sample",
        help="Rows drawn of files that are queried; 1,000,000 if not given.",
        min=100,
        metavar="N",
        rich_help_panel="Reading",
    ),
]
Report = Annotated[
    Path | None, typer.Option(help="Write a report to this HTML file.", metavar="HTML")
]
Parts = Annotated[
    Path | None,
    typer.Option(
        help="The report's pictures and methods, to a folder.",
        metavar="FOLDER",
        rich_help_panel=MORE,
    ),
]
By = Annotated[
    list[str],
    typer.Option(
        help="Column to bin by, or u; two make cells.",
        metavar="COLUMN",
        rich_help_panel=MORE,
    ),
]


def _known_method(method: str | None) -> str | None:
    if method is not None and method not in methods():
        msg = f"{method!r} is not one of {', '.join(methods())}."
        raise typer.BadParameter(msg)
    return method


MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help=f"{', '.join(methods())}; if not given, boosted, or linear for several "
        "targets.",
        metavar="METHOD",
        callback=_known_method,
    ),
]


def refuse_for_several(**options: Any) -> None:
    """Refuse options that are for one target."""
    for name, value in options.items():
        if value is not None:
            msg = (
                f"--{name.replace('_', '-')} is for one target. Name its columns "
                "without a star."
            )
            raise InvalidInputError(msg)


def example(*lines: str) -> str:
    """Return examples for the end of a help page, one a line."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])
