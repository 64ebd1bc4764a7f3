"""``sigmascale fit`` and ``apply``: learn how to recalibrate, and do it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._support.progress import working
from ..exceptions import InvalidInputError
from .app import app
from .large import LazySet, apply_lazily, stays_lazy
from .methods import load_recalibrator, make_scaler
from .options import (
    AsJson,
    By,
    CalFiles,
    DropMissing,
    Engine,
    EngineOption,
    Files,
    Loss,
    Method,
    Scheduler,
    Seed,
    Separator,
    column_option,
    example,
    with_columns,
)
from .outputs import check_output, refuse_input
from .show import show_json, tell_guesses

if TYPE_CHECKING:
    from .._support.checks import Floats
    from .tables.loading import LoadedSet


@app.command(
    epilog=example(
        "sigmascale fit demo-output/cal.csv --all-features -o scaler.json",
        "sigmascale fit demo-output/cal.csv --method binwise --bins 20 -o scaler.json",
        "sigmascale fit demo-output/cal.csv --method group --group OxNy -o scaler.json",
    )
)
@with_columns
def fit(
    files: CalFiles,
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
    engine: EngineOption = None,
    scheduler: Scheduler = None,
) -> None:
    """Learn from known errors how to recalibrate, and save what was learned."""
    from ..persistence import dumps, save
    from ..scaling import SelectedScaling

    check_output(output, (".json",), files)
    data: LazySet | LoadedSet
    factors: dict[str, float] = {}
    if stays_lazy(files, engine, scheduler):
        if method == Method.auto or together is not None:
            msg = (
                "--method auto and --together need rows in memory. Name another method,"
                " such as raked, or pass --engine memory."
            )
            raise InvalidInputError(msg)
        data = LazySet.open(
            files, choice, engine, scheduler, by=by, drop_missing=drop_missing
        )
        scaler = make_scaler(
            method, data.columns, bins=bins, by=by, loss=loss, seed=seed
        )
        data.fit(scaler)
        data = replace(data, n_rows=scaler.n_samples_fit_)
    else:
        from .tables.loading import LoadedSet, about

        data = LoadedSet.read(
            files, choice, by=by, drop_missing=drop_missing, separator=separator
        )
        scaler = make_scaler(
            method, data.columns, bins=bins, by=by, loss=loss, seed=seed
        )
        groups = None if together is None else data.labels(together, "--together")
        with about(data.file), working("fitting"):
            scaler.fit(data.X, data.error, groups=groups)
            factors = _factors(scaler.predict(data.X), data.uncertainty)
    if output == "-":
        print(dumps(scaler, data.columns.to_dict()), end="")
        return
    save(scaler, output, source=data.columns.to_dict())
    if as_json:
        told = {"data": data.to_dict(), "method": method.value, "output": output}
        told |= {"factors": factors} if factors else {}
        if isinstance(scaler, SelectedScaling):
            told |= {"chosen": scaler.name_, "candidates": scaler.cv_results_}
        show_json(told)
        return
    tell_guesses(choice, data)
    if isinstance(scaler, SelectedScaling):
        print(f"\nChosen by cross-validation: {scaler.name_}.\n\n{scaler.explain()}")
    if factors:
        least, low, median, high, most = (f"{v:.3g}" for v in factors.values())
        words = f"All uncertainties are multiplied by {median}."
        if least != most:
            words = (
                f"Uncertainties are multiplied by {least} to {most}: 90 % of them by "
                f"{low} to {high}, by {median} in the median."
            )
        print(f"\n{fill(words, 79)}")
    print(f"\nSaved: {output}. Judge it on other rows than these:")
    print(f"  sigmascale apply {output} NEW.csv -o OUT.csv")


def _factors(new: Floats, old: Floats) -> dict[str, float]:
    """Return the range of what uncertainties are multiplied by, if they are not 0."""
    import numpy as np

    factors = new[old > 0] / old[old > 0]
    shares = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}
    if not factors.size:
        return {}
    values = np.quantile(factors, list(shares.values())).tolist()
    return dict(zip(shares, values, strict=True))


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
    files: Files,
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
    engine: EngineOption = None,
    scheduler: Scheduler = None,
) -> None:
    """Add recalibrated uncertainties to a table; all its columns are kept.

    Where the recalibrator was fitted with variances, the new column is a variance.
    Where files are queried without reading them whole, values that cannot be used,
    such as missing ones, give an empty one instead of an error.
    """
    asked = {"uncertainty": uncertainty, "variance": variance}
    if engine is None and "://" in output:  # memory is written to files only
        engine = Engine.polars
    if stays_lazy(files, engine, scheduler):
        told = apply_lazily(
            *(scaler, files, asked, name, output, engine, scheduler),
            drop_missing=drop_missing,
        )
    else:
        told = apply_in_memory(
            scaler, files, asked, name, output, drop_missing, separator
        )
    if as_json:
        show_json(told, to_stderr=output == "-")
    elif output != "-":
        facts = [f"{told['rows']} rows"] if "rows" in told else []
        if told.get("dropped"):
            facts.append(f"{told['dropped']} with missing values left out")
        facts.append(f"column {told['column']}")
        print(f"Written: {output} ({'; '.join(facts)}).")


def apply_in_memory(
    scaler: str,
    files: Sequence[str],
    asked: dict[str, Any],
    name: str | None,
    output: str,
    drop_missing: bool,
    separator: str | None,
) -> dict[str, Any]:
    """Read a table, add the column, and write it; return what was done.

    `asked` is what a `Choice` is made of, which is imported as the table is read.
    """
    # first of all, or it would take turns with what is loaded while the table is read
    import polars  # noqa: F401

    from .tables.files import format_of, write_table
    from .tables.filesets import named, read_tables

    if len(files) > 1 or not Path(files[0]).is_file():
        refuse_input(output, files)
    as_text = format_of(output) in ("csv", "tsv")  # nothing else is changed then
    with working("recalibrating"), ThreadPoolExecutor(1) as reader:
        reading = reader.submit(
            read_tables, files, separator=separator, as_text=as_text
        )
        from .._support.tables import check_table
        from .tables.columns import Choice, free_name, renamed, take_rows
        from .tables.loading import about

        recalibrator, saved = load_recalibrator(scaler)
        frame = reading.result()
    with about(named(files)):
        columns = renamed(saved, Choice(**asked), frame.columns)
        rows = take_rows(frame, columns, drop_missing=drop_missing, least=1)
        name = free_name(name, columns, frame.columns)
        X = rows.X.rename({columns.uncertainty: saved.uncertainty})
        values = recalibrator._predict_table(check_table(X))
        values = values**2 if columns.is_variance else values
    new = rows.frame.with_columns(**{name: values})
    write_table(new, output, separator=separator)
    return {
        "rows": rows.frame.height,
        "dropped": rows.dropped,
        "column": name,
        "output": output,
    }
