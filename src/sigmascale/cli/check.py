"""``sigmascale check``: judge the uncertainties of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._support.progress import working
from ..exceptions import InvalidInputError
from .app import FAILED, PASSED, app
from .large import LazySet, stays_lazy
from .options import (
    AsJson,
    DropMissing,
    EngineOption,
    Files,
    Report,
    Scheduler,
    Seed,
    Separator,
    example,
    with_columns,
)
from .outputs import HTML, check_output
from .show import show_json, show_verdicts, tell_doubts, tell_guesses, tell_written

if TYPE_CHECKING:
    from .tables.loading import LoadedSet


@app.command(
    epilog=example(
        "sigmascale check demo-output/test.csv --all-features",
        "sigmascale check demo-output/test.csv --feature mass --report check.html",
    )
)
@with_columns
def check(
    files: Files,
    choice: Any,
    bins: Annotated[
        int | None, typer.Option(help="Bins of each variable.", min=1, metavar="N")
    ] = None,
    report: Report = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    engine: EngineOption = None,
    scheduler: Scheduler = None,
) -> None:
    """Judge uncertainties as they are: on average, at every level, for every input.

    Exit code: 0 they pass, 1 they do not, 2 bad input.
    """
    if report is not None:
        check_output(report, HTML, files)
    data: LazySet | LoadedSet
    if stays_lazy(files, engine, scheduler):
        if report is not None:
            msg = (
                "--report needs rows in memory: report on some of them, or pass "
                "--engine memory."
            )
            raise InvalidInputError(msg)
        data = LazySet.open(files, choice, engine, scheduler, drop_missing=drop_missing)
        found = data.validate(bins, seed)
        data = replace(data, n_rows=found.scores.n_rows)
    else:
        from ..judging.verdicts import validate
        from .tables.loading import LoadedSet, about

        data = LoadedSet.read(
            files, choice, drop_missing=drop_missing, separator=separator, positive=True
        )
        with about(data.file), working("judging the uncertainties"):
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
                    title=f"Uncertainties of {data.file}",
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
        if not isinstance(data, LazySet):
            tell_doubts(data)
        print("\nPassed." if found.passed else "\nNot passed.")
        tell_written(report)
    raise typer.Exit(PASSED if found.passed else FAILED)
