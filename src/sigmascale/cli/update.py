"""``sigmascale update``: teach a saved recalibrator more rows, without the old ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app
from .methods import load_saved
from .options import (
    IN_MEMORY,
    OF_ERRORS,
    AsJson,
    Files,
    SavedScaler,
    example,
    gather,
)
from .outputs import check_output
from .printing import say, show_json, show_words

if TYPE_CHECKING:
    from ..scaling import VarianceScaler
    from .tables.memory import MemoryTable

SHARED = 0.02  # of the rows seen before: those that are the same by chance are rare


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --method temperature -o t.json",
        "sigmascale update t.json demo-output/test.csv -o newer.json",
        "sigmascale update t.json demo-output/test.csv --half-life 5000",
    )
)
@gather(choice=OF_ERRORS, reading=IN_MEMORY)
def update(
    scaler: SavedScaler,
    files: Files,
    choice: Any,
    reading: Any,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the new recalibrator; SCALER itself if not given, - is "
            "standard output.",
            metavar="JSON",
        ),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(
            help="Rows after which an old one counts one half; if not given, all count "
            "the same.",
            metavar="N",
        ),
    ] = None,
    forget: Annotated[
        float | None,
        typer.Option(
            help="Or the factor by which old rows fade with every new one, below 1.",
            metavar="FACTOR",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Teach a recalibrator more rows with known errors, without the old ones.

    The result is that of a fit to all rows, old and new, however they were divided;
    bins keep their limits. This works for what sums determine: --method temperature,
    binwise or group of fit, and none. Others say why not, and what to do.

    Exit code: 0 updated, 2 bad input or a recalibrator that cannot be updated, 3 a
    defect.
    """
    from ..persistence import dumps, load, save
    from ..roles import Expected
    from .tables.filesets import about
    from .tables.memory import MemoryTable
    from .tables.sources import standard_output

    output = scaler if output is None else output
    if output != "-":
        check_output(output, (".json",), files)
    saved, roles = load_saved(scaler)
    fitted = load(scaler)
    with about(scaler):
        fitted.refuse_if_not_updatable()
    expected = Expected(roles, choice, with_error=True, least_rows=1)
    data = MemoryTable.open(files, reading, expected)
    _warn_of_shared(scaler, fitted, data)
    # columns may be called otherwise than in fit
    names = dict(zip(data.X.columns, saved.names, strict=True))
    renamed = replace(data, X=data.X.rename(names), roles=roles)
    rows, before = fitted.n_samples_fit_, _factors(fitted, renamed)
    with about(data.file):
        fitted.update(
            renamed.X,
            data.error,
            forget=1.0 if forget is None else forget,
            half_life=half_life,
        )
    after = renamed.factors(fitted)
    if output == "-":
        standard_output().write(dumps(fitted, saved.source).encode())
        return
    save(fitted, output, source=saved.source)
    if as_json:
        show_json(
            {
                "data": data.to_dict(),
                "rows_before": rows,
                "rows": fitted.n_samples_fit_,
                "factors_before": before,
                "factors": after,
                "words": fitted.describe(),
                "output": output,
            }
        )
        return
    show_words(str(data))
    say()
    show_words(
        f"Learned from {data.n_rows} more rows, {fitted.n_samples_fit_} in all. "
        f"{_change_in_words(before, after)}",
        fitted.describe(),
    )
    say(f"\nSaved: {output}.")


def _change_in_words(before: dict[str, float], after: dict[str, float]) -> str:
    """Return what the uncertainties of new rows are multiplied by, before and now."""
    if not before or not after:  # all of them are 0
        return ""
    return (
        f"Their uncertainties were multiplied by {_range(before)} before, and are by "
        f"{_range(after)} now."
    )


def _range(factors: dict[str, float]) -> str:
    least, median, most = (f"{factors[n]:.4g}" for n in ("min", "median", "max"))
    return median if least == most else f"{least} to {most} ({median} in the median)"


def _factors(fitted: VarianceScaler, data: MemoryTable) -> dict[str, float]:
    """Return what new rows are multiplied by; new labels are no surprise."""
    from .._support.telling import noted, quiet, warn
    from ..exceptions import UnseenGroupWarning

    with quiet(), noted() as told:
        found = data.factors(fitted)
    for each in told:
        if not isinstance(each, UnseenGroupWarning):
            warn(str(each), type(each), stacklevel=2)
    return found


def _warn_of_shared(scaler: str, fitted: VarianceScaler, table: MemoryTable) -> None:
    """Warn if rows are among those that were learned from before."""
    from .._support.telling import warn
    from ..exceptions import SharedRowsWarning
    from ..predictions import read_table

    rows = read_table(table.X).changed(error=table.error)
    shared = fitted.seen_.shared(rows) if hasattr(fitted, "seen_") else 0.0
    if shared >= SHARED:
        warn(
            f"About {shared:.0%} of the rows that {scaler} was fitted on are among "
            "the new ones, and count twice. Pass rows that are new.",
            SharedRowsWarning,
            stacklevel=2,
        )
