"""``sigmascale update``: teach a saved recalibrator more rows, without the old ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app, say, show_json, show_words
from .check import warn_of_shared
from .files import about, check_output, load_saved, standard_output
from .options import (
    IN_MEMORY,
    OF_ERRORS,
    AsJson,
    Files,
    SavedScaler,
    example,
    gather,
)

if TYPE_CHECKING:
    from ..scaling import VarianceScaler
    from .table import Table


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
    """Teach a recalibrator more rows, without the old ones.

    The result is that of a fit to all rows, old and new; bins keep their limits. Runs
    that update one file at once wait for each other. This works for what sums
    determine: fit --method temperature, binwise, category and none. Others say why
    not, and what to do.
    """
    from .._support.files import locked
    from ..persistence import dumps, load, save
    from ..roles import Expected
    from .table import Table

    output = scaler if output is None else output
    if output != "-":
        check_output(output, (".json",), files)
    saved = load_saved(scaler, one=True)
    expected = Expected(saved.roles, choice, with_error=True, least_rows=1)
    data = Table.open(files, reading, expected)
    with locked(None if output == "-" else Path(output)):
        fitted = load(scaler)
        with about(scaler):
            getattr(fitted, "scaling_", fitted)._kept_sums()
        warn_of_shared(
            data.shared(saved.maps),
            scaler,
            "the new ones, and count twice. Pass rows that are new",
        )
        rows, before = fitted.n_samples_fit_, _factors(fitted, data)
        with data.told():
            fitted.update(
                data.X,
                data.error,
                forget=1.0 if forget is None else forget,
                half_life=half_life,
            )
        after = data.factors(fitted)
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
    return (
        f"Their uncertainties were multiplied by {_range(before)} before, and are by "
        f"{_range(after)} now."
    )


def _range(factors: dict[str, float]) -> str:
    least, median, most = (f"{factors[n]:.4g}" for n in ("min", "median", "max"))
    return median if least == most else f"{least} to {most} ({median} in the median)"


def _factors(fitted: VarianceScaler, data: Table) -> dict[str, float]:
    """Return what new rows are multiplied by; new labels are no surprise."""
    from .._support.notices import noted, quiet, warn
    from ..exceptions import UnseenCategoryWarning

    with quiet(), noted() as told:
        found = data.factors(fitted)
    for each in told:
        if not isinstance(each, UnseenCategoryWarning):
            warn(str(each), type(each), stacklevel=2)
    return found
