"""The commands, each from options to what is printed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._progress import working
from ..exceptions import InvalidInputError
from .methods import make_scaler
from .options import (
    AsJson,
    By,
    CalFile,
    DropMissing,
    File,
    Loss,
    Method,
    Report,
    Seed,
    Separator,
    TestFile,
    column_option,
    example,
    with_columns,
)
from .show import show_json, show_verdicts, tell_guesses, tell_written

if TYPE_CHECKING:
    from ..loading import LoadedSet

PASSED, FAILED = 0, 1
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
    from ..loading import LoadedSet, about
    from ..validation import validate

    data = LoadedSet.read(
        file, choice, drop_missing=drop_missing, separator=separator, positive=True
    )
    with about(file), working("judging the uncertainties"):
        found = validate(
            data.error, data.uncertainty, data.features, n_bins=bins, rng=seed
        )
    if report is not None:
        from ..report import write_report

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
    from ..loading import LoadedSet, about
    from ..persistence import dumps, save
    from ..scaling import SelectedScaling

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
        str | None, column_option("Uncertainties, if named otherwise than in fit.")
    ] = None,
    variance: Annotated[
        str | None, column_option("Variances, if named otherwise than in fit.")
    ] = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    as_json: AsJson = False,
) -> None:
    """Add recalibrated uncertainties to a table; all its columns are kept.

    Where the recalibrator was fitted with variances, the new column is a variance.
    """
    from ..tablefiles import format_of, read_table, write_table

    as_text = format_of(output) in ("csv", "tsv")  # nothing else is changed then
    with (
        working("recalibrating"),
        ThreadPoolExecutor(1) as reader,  # reads while other libraries are loaded
    ):
        reading = reader.submit(read_table, new, separator=separator, as_text=as_text)
        from .._table import check_table
        from ..columns import Choice, Columns, find_uncertainty, take_rows
        from ..loading import about
        from ..persistence import load_with_source

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

    from ..comparison import compare as compare_scalers
    from ..loading import about, read_pair
    from ..scaling import SelectedScaling
    from ..validation import validate

    training, testing = read_pair(
        cal, test, choice, drop_missing=drop_missing, separator=separator
    )
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
        from ..report import write_report

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
    from ..binscan import choose_n_bins, scan_bins
    from ..loading import read_pair

    training, testing = read_pair(
        cal,
        test,
        choice,
        by=[by] if by else [],
        drop_missing=drop_missing,
        separator=separator,
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
    from ..paper.__main__ import reproduce

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
    from ..demo import run

    run(out, rows=rows, seed=seed)


def score_bins(*sets: LoadedSet) -> int:
    """Return how many bins the scores of some sets have, if nobody says it."""
    from ..intervals import MIN_ROWS

    return max(1, min(SCORE_BINS, *(data.X.height // MIN_ROWS for data in sets)))
