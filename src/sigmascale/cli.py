"""The command line. Results go to standard output, warnings and errors to the other.

Libraries that are slow to load are imported where they are used, so that help comes
at once.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ._progress import working
from .exceptions import InvalidInputError

if TYPE_CHECKING:
    from .columns import Choice
    from .loading import LoadedSet
    from .scaling import VarianceScaler
    from .validation import Validation

PASSED, FAILED, BAD_INPUT, DEFECT = 0, 1, 2, 3
# bins of one column, of each of two, and of each column that is raked
DEFAULT_BINS, DEFAULT_CELLS, DEFAULT_RAKED = 40, 10, 20
SCORE_BINS = 100
SIMULATED_SETS = 200  # behind each point of a scan; 1000 would take minutes

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


class Loss(StrEnum):
    """What bin-wise factors minimise."""

    nll = "nll"
    consistency = "consistency"
    adaptivity = "adaptivity"
    total = "total"


def _column(words: str, *names: str) -> Any:
    return typer.Option(*names, help=words, metavar="COLUMN", rich_help_panel="Columns")


COLUMN_OPTIONS: dict[str, tuple[Any, Any]] = {
    "error": (
        Annotated[str | None, _column("Errors: reference minus prediction.")],
        None,
    ),
    "reference": (Annotated[str | None, _column("True values.")], None),
    "prediction": (Annotated[str | None, _column("Predicted values.")], None),
    "uncertainty": (
        Annotated[str | None, _column("Uncertainties: standard deviations.")],
        None,
    ),
    "variance": (Annotated[str | None, _column("Or their squares, variances.")], None),
    "features": (
        Annotated[list[str], _column("A feature; can be repeated.", "--feature")],
        (),
    ),
    "all_features": (
        Annotated[
            bool,
            typer.Option(
                "--all-features",
                help="All other columns of numbers are features.",
                rich_help_panel="Columns",
            ),
        ],
        False,
    ),
    "formula": (
        Annotated[
            str | None,
            _column("Chemical formulas: give mass, heteroatom_fraction and OxNy."),
        ],
        None,
    ),
    "groups": (
        Annotated[list[str], _column("A feature made of labels.", "--group")],
        (),
    ),
}

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Table; - is standard input.")
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
        from .columns import Choice

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


def show_json(result: dict[str, Any], *, to_stderr: bool = False) -> None:
    """Print a result for machines."""
    text = json.dumps(_finite(result), indent=1, ensure_ascii=False)
    print(text, file=sys.stderr if to_stderr else sys.stdout)


def tell_written(report: Path | None) -> None:
    """Print where the report is."""
    if report is not None:
        print(f"\nReport: {report}")


def _finite(value: Any) -> Any:
    """Return a value that JSON can hold: it knows no infinite numbers."""
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value.item() if hasattr(value, "item") else value


def show_verdicts(validation: Validation, title: str = "") -> None:
    """Print verdicts with a mark each, in colour where there is any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if title:
        console.print(Text(title, style="bold"))
    for verdict in validation.verdicts.values():
        mark, style = ("✓", "green") if verdict.passed else ("✗", "red")
        words = fill(f"  {verdict.sentence}", console.width - 1, subsequent_indent="  ")
        console.print(Text(mark, style=style) + Text(words[1:]), soft_wrap=True)


def tell_guesses(choice: Choice, data: LoadedSet) -> None:
    """Print what was taken from a file, and which columns nobody named."""
    print(fill(str(data), 79))
    guessed = [] if any(choice.error_names) else list(data.error_columns)
    if choice.uncertainty is None and choice.variance is None:
        guessed.append(data.columns.uncertainty)
    if guessed:
        print(f"Guessed from their names: {', '.join(guessed)}.")
    if data.features is None:
        print("No features: --feature COLUMN or --all-features would use some.")


@app.command(
    epilog=example(
        "sigmascale check demo-output/test.csv --all-features",
        "sigmascale check demo-output/test.csv --feature mass --report check.html",
    )
)
@with_columns
def check(
    file: File,
    choice: Any,
    bins: Annotated[
        int | None, typer.Option(help="Bins of each variable.", min=1, metavar="N")
    ] = None,
    report: Report = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Judge uncertainties as they are: on average, at every level, for every input.

    Exit code: 0 they pass, 1 they do not, 2 bad input.
    """
    from .loading import LoadedSet, about
    from .validation import validate

    data = LoadedSet.read(
        file, choice, drop_missing=drop_missing, separator=separator, positive=True
    )
    with about(file), working("judging the uncertainties"):
        found = validate(
            data.error, data.uncertainty, data.features, n_bins=bins, rng=seed
        )
    if report is not None:
        from .report import write_report

        with working("writing the report"):
            write_report(
                report,
                data.error,
                data.uncertainty,
                data.features,
                title=f"Uncertainties of {file}",
                n_bins=bins,
                rng=seed,
            )
    if as_json:
        show_json({"data": data.to_dict(), **found.to_dict()})
    else:
        tell_guesses(choice, data)
        print()
        show_verdicts(found)
        print("\n" + str(found).split("\n\n", 1)[1])
        print("\nPassed." if found.passed else "\nNot passed.")
        tell_written(report)
    raise typer.Exit(PASSED if found.passed else FAILED)


@app.command(
    epilog=example(
        "sigmascale fit demo-output/cal.csv --all-features -o scaler.json",
        "sigmascale fit demo-output/cal.csv --method binwise --bins 20 -o scaler.json",
        "sigmascale fit demo-output/cal.csv --method group --group OxNy -o scaler.json",
    )
)
@with_columns
def fit(
    file: CalFile,
    choice: Any,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File for the recalibrator; - is standard output.",
            metavar="JSON",
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help=f"{', '.join(Method)}; auto picks by cross-validation.",
            metavar="METHOD",
        ),
    ] = Method.auto,
    bins: Annotated[
        int | None, typer.Option(help="Bins of binwise and raked.", min=1, metavar="N")
    ] = None,
    by: By = [],  # noqa: B006
    loss: Annotated[
        Loss,
        typer.Option(
            help=f"What factors of binwise minimise: {', '.join(Loss)}.", metavar="LOSS"
        ),
    ] = Loss.nll,
    together: Annotated[
        str | None,
        typer.Option(
            help="Rows with equal values of it stay together in cross-validation.",
            metavar="COLUMN",
        ),
    ] = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from known errors how to recalibrate, and save what was learned."""
    from .loading import LoadedSet, about
    from .persistence import dumps, save
    from .scaling import SelectedScaling

    data = LoadedSet.read(
        file, choice, by=by, drop_missing=drop_missing, separator=separator
    )
    scaler = make_scaler(method, data, bins=bins, by=by, loss=loss, seed=seed)
    groups = None if together is None else data.labels(together, "--together")
    with about(file), working("fitting"):
        scaler.fit(data.X, data.error, groups=groups)
    if output == "-":
        print(dumps(scaler, data.columns.to_dict()), end="")
        return
    save(scaler, output, source=data.columns.to_dict())
    if as_json:
        told = {"data": data.to_dict(), "method": method.value, "output": output}
        if isinstance(scaler, SelectedScaling):
            told |= {"chosen": scaler.name_, "candidates": scaler.cv_results_}
        show_json(told)
        return
    tell_guesses(choice, data)
    if isinstance(scaler, SelectedScaling):
        print(f"\nChosen by cross-validation: {scaler.name_}.\n\n{scaler.explain()}")
    print(f"\nSaved: {output}. Judge it on other rows than these:")
    print(f"  sigmascale apply {output} NEW.csv -o OUT.csv")


@app.command(
    epilog=example(
        "sigmascale fit demo-output/cal.csv --all-features -o scaler.json",
        "sigmascale apply scaler.json demo-output/test.csv -o recalibrated.csv",
    )
)
def apply(
    scaler: Annotated[
        str, typer.Argument(metavar="SCALER", help="File made by `sigmascale fit`.")
    ],
    new: File,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Table to write; - is standard output.",
            metavar="FILE",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The new column; UNCERTAINTY_recalibrated if not given.",
            metavar="COLUMN",
        ),
    ] = None,
    uncertainty: Annotated[
        str | None, _column("Uncertainties, if named otherwise than in fit.")
    ] = None,
    variance: Annotated[
        str | None, _column("Variances, if named otherwise than in fit.")
    ] = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    as_json: AsJson = False,
) -> None:
    """Add recalibrated uncertainties to a table; all its columns are kept.

    Where the recalibrator was fitted with variances, the new column is a variance.
    """
    from .tablefiles import format_of, read_table, write_table

    as_text = format_of(output) in ("csv", "tsv")  # nothing else is changed then
    with (
        working("recalibrating"),
        ThreadPoolExecutor(1) as reader,  # reads while other libraries are loaded
    ):
        reading = reader.submit(read_table, new, separator=separator, as_text=as_text)
        from ._table import check_table
        from .columns import Choice, Columns, find_uncertainty, take_rows
        from .loading import about
        from .persistence import load_with_source

        recalibrator, source = load_with_source(scaler)
        with about(scaler):
            columns = saved = Columns.from_dict(source)
        frame = reading.result()
    with about(new):
        if uncertainty is not None or variance is not None:
            choice = Choice(uncertainty=uncertainty, variance=variance)
            found, is_variance = find_uncertainty(choice, frame.columns)
            columns = replace(saved, uncertainty=found, is_variance=is_variance)
        rows = take_rows(frame, columns, drop_missing=drop_missing, least=1)
        name = name or f"{columns.uncertainty}_recalibrated"
        if name in frame.columns:
            msg = f"there is a column {name!r} already. Choose another with --name."
            raise InvalidInputError(msg)
        X = rows.X.rename({columns.uncertainty: saved.uncertainty})
        values = recalibrator._predict_table(check_table(X))
        values = values**2 if columns.is_variance else values
    write_table(rows.frame.with_columns(**{name: values}), output)
    told = {
        "rows": rows.frame.height,
        "dropped": rows.dropped,
        "column": name,
        "output": output,
    }
    if as_json:
        show_json(told, to_stderr=output == "-")
    elif output != "-":
        lost = f", {rows.dropped} with missing values left out" * bool(rows.dropped)
        print(f"Written: {output} ({rows.frame.height} rows{lost}; column {name}).")


@app.command(
    epilog=example(
        "sigmascale compare demo-output/cal.csv demo-output/test.csv --feature mass",
        "sigmascale compare demo-output/cal.csv demo-output/test.csv --report out.html",
    )
)
@with_columns
def compare(
    cal: CalFile,
    test: TestFile,
    choice: Any,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of the scores; 100, or what leaves 5 rows in each.",
            min=1,
            metavar="N",
        ),
    ] = None,
    report: Report = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit every recalibrator on one set, and judge all on another."""
    from sklearn.frozen import FrozenEstimator

    from .comparison import compare as compare_scalers
    from .loading import about
    from .scaling import SelectedScaling
    from .validation import validate

    training, testing = read_pair(cal, test, choice, drop_missing, separator)
    bins = bins or score_bins(training, testing)
    methods: dict[str, Any] = {
        each.value: make_scaler(each, training, seed=seed)
        for each in Method
        if each not in (Method.auto, Method.group)
    }
    with about(cal):
        chosen = SelectedScaling(random_state=seed).fit(training.X, training.error)
    methods["auto"] = FrozenEstimator(chosen)  # fitted once
    table = compare_scalers(
        methods,
        (training.X, training.error),
        (testing.X, testing.error),
        n_bins=bins,
        rng=seed,
    )
    recalibrated = chosen.predict(testing.X)
    if report is not None:
        from .report import write_report

        with working("writing the report"):
            write_report(
                report,
                testing.error,
                testing.uncertainty,
                testing.features,
                recalibrated=recalibrated,
                scaler=chosen,
                calibration=(training.X, training.error),
                comparison=table,
                title=f"Uncertainties of {test}, recalibrated with {cal}",
                rng=seed,
            )
    with about(test), working("judging the uncertainties"):
        verdicts = {
            what: validate(
                testing.error, u, testing.features, ties=testing.uncertainty, rng=seed
            )
            for what, u in (("before", testing.uncertainty), ("after", recalibrated))
        }
    if as_json:
        told = {"chosen": chosen.name_, "comparison": table.to_dict()}
        data = {"cal": training.to_dict(), "test": testing.to_dict()}
        show_json(data | told | {what: v.to_dict() for what, v in verdicts.items()})
        return
    tell_guesses(choice, training)
    print(f"\nScores on {test}, with {bins} bins:\n\n{table}")
    print("NLL and S: lower is better. Valid bins: 95 % is ideal.")
    print(f"\nauto is: {chosen.name_}, chosen by cross-validation on {cal}.")
    for what, found in verdicts.items():
        print()
        show_verdicts(found, "Before" if what == "before" else "After, with auto")
    tell_written(report)


@app.command(
    epilog=example("sigmascale bins demo-output/cal.csv demo-output/test.csv --by mass")
)
@with_columns
def bins(
    cal: CalFile,
    test: TestFile,
    choice: Any,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column to bin by; the uncertainty if not given.", metavar="COLUMN"
        ),
    ] = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show what the number of bins does, and which one cross-validation prefers."""
    from .binscan import choose_n_bins, scan_bins

    training, testing = read_pair(
        cal, test, choice, drop_missing, separator, by=[by] if by else []
    )
    column = by or 0
    best = choose_n_bins(training.X, training.error, by=column, rng=seed)
    scan = scan_bins(
        (training.X, training.error),
        (testing.X, testing.error),
        n_bins=[int(n) for n in best.candidates],
        by=column,
        score_bins=score_bins(training, testing),
        n_draws=SIMULATED_SETS,
        rng=seed,
    )
    if as_json:
        show_json({"choice": best.to_dict(), "scan": scan.to_dict()})
        return
    tell_guesses(choice, training)
    print(f"\nScores on {test} of bin-wise scaling, by its number of bins:\n")
    print(scan)
    plural = "" if best.n_bins == 1 else "s"
    print(f"\nCross-validation on {cal} alone prefers {best.n_bins} bin{plural}.")


@app.command(
    epilog=example(
        "sigmascale paper --out paper-output --step 20 --draws 100",
    )
)
def paper(
    data: Annotated[
        Path | None, typer.Option(help="Folder of the QM9 files.", metavar="FOLDER")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the QM9 files.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder to write to.", metavar="FOLDER")
    ] = Path("paper-output"),
    seed: Seed = 0,
    draws: Annotated[
        int, typer.Option(help="Simulated sets.", min=1, metavar="N")
    ] = 1000,
    step: Annotated[
        int, typer.Option(help="Step of the bin scan.", min=1, metavar="N")
    ] = 1,
) -> None:
    """Reproduce the paper arXiv:2310.11978: all its tables and figures.

    Without --data and --download, on built-in synthetic molecules. Takes minutes.
    """
    from .paper.__main__ import reproduce

    reproduce(data, download=download, out=out, seed=seed, n_draws=draws, step=step)


@app.command(epilog=example("sigmascale demo"))
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder to write to.", metavar="FOLDER")
    ] = Path("demo-output"),
    rows: Annotated[
        int, typer.Option(help="Molecules to make up.", min=1000, metavar="N")
    ] = 20_000,
    seed: Seed = 0,
) -> None:
    """Tell the whole story on built-in data: two CSV files, a table, a report."""
    from .demo import run

    run(out, rows=rows, seed=seed)


def read_pair(
    cal: str,
    test: str,
    choice: Choice,
    drop_missing: bool,
    separator: str | None,
    by: list[str] | None = None,
) -> tuple[LoadedSet, LoadedSet]:
    """Read a calibration set, and a test set with the same columns."""
    from .loading import LoadedSet

    training = LoadedSet.read(
        cal,
        choice,
        by=by or (),
        drop_missing=drop_missing,
        separator=separator,
        positive=True,
    )
    testing = LoadedSet.read(
        test,
        choice,
        columns=training.columns,
        drop_missing=drop_missing,
        separator=separator,
        positive=True,
    )
    return training, testing


def score_bins(*sets: LoadedSet) -> int:
    """Return how many bins the scores of some sets have, if nobody says it."""
    from .intervals import MIN_ROWS

    return max(1, min(SCORE_BINS, *(data.X.height // MIN_ROWS for data in sets)))


def make_scaler(
    method: Method,
    data: LoadedSet,
    *,
    bins: int | None = None,
    by: list[str] | None = None,
    loss: Loss = Loss.nll,
    seed: int = 0,
) -> VarianceScaler:
    """Return the recalibrator that the options describe, not fitted."""
    from . import scaling

    for option, given, methods in (
        ("--bins", bins is not None, (Method.binwise, Method.raked)),
        ("--by", bool(by), (Method.binwise, Method.group)),
        ("--loss", loss != Loss.nll, (Method.binwise,)),
    ):
        if given and method not in methods:
            only = " or ".join(f"--method {each.value}" for each in methods)
            msg = f"{option} is for {only}; here the method is {method.value}."
            raise InvalidInputError(msg)
    columns = by or []
    if method == Method.group and not columns:
        columns = list(data.columns.labels[:1])
        if data.columns.formula is not None:
            columns = columns or ["OxNy"]
    if len(columns) != 1 and method == Method.group:
        msg = "--method group needs one column of labels: --group COLUMN."
        raise InvalidInputError(msg)
    if len(columns) > 2:
        msg = f"--by takes one column, or two for cells; found {', '.join(columns)}."
        raise InvalidInputError(msg)
    if method == Method.auto:
        return scaling.SelectedScaling(random_state=seed)
    if method == Method.temperature:
        return scaling.TemperatureScaling()
    if method == Method.linear:
        return scaling.LinearScaling()
    if method == Method.isotonic:
        return scaling.IsotonicScaling()
    if method == Method.group:
        return scaling.GroupScaling(by=columns[0])
    if method == Method.raked:
        return scaling.RakedScaling(bins or DEFAULT_RAKED, random_state=seed)
    if method == Method.boosted:
        return scaling.BoostedScaling(random_state=seed)
    where: str | int | tuple[str, str]
    if len(columns) == 2:
        bins, where = bins or DEFAULT_CELLS, (columns[0], columns[1])
    else:
        bins, where = bins or DEFAULT_BINS, columns[0] if columns else 0
    return scaling.BinwiseScaling(bins, by=where, loss=loss.value, random_state=seed)


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
        except Exception:
            traceback.print_exc()
            _tell("this is a defect of sigmascale, not of your data: please report it.")
            sys.exit(DEFECT)
    sys.exit(PASSED)


def _warn_once() -> Callable[..., None]:
    told = set()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            print(f"warning: {message}", file=sys.stderr)

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
    print(f"error: {' '.join(words.split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
