"""``sigmascale export``: write a saved recalibrator for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app, show_json, show_words
from .files import check_output
from .options import (
    MORE,
    AsJson,
    Coverage,
    Quantiles,
    SavedScaler,
    Shifted,
    Wanted,
    column_option,
    example,
    gather,
)


class Target(StrEnum):
    """What a recalibrator can be written as."""

    onnx = "onnx"


class Numbers(StrEnum):
    """The type of the numbers that go in and come out."""

    float64 = "float64"
    float32 = "float32"


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --all-features -o scaler.json",
        "sigmascale export scaler.json --to onnx",
    )
)
@gather()
def export(
    scaler: SavedScaler,
    to: Annotated[
        Target, typer.Option("--to", help="onnx, for ONNX Runtime.", metavar="FORMAT")
    ] = Target.onnx,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; if not given, SCALER with another ending.",
            metavar="FILE",
        ),
    ] = None,
    dtype: Annotated[
        Numbers,
        typer.Option(
            help="float64 or float32, of numbers that go in and come out.",
            metavar="TYPE",
            rich_help_panel=MORE,
        ),
    ] = Numbers.float64,
    coverage: Coverage = None,
    quantiles: Quantiles = None,
    shift: Shifted = False,
    prediction: Annotated[
        str | None,
        column_option("If named otherwise than in fit.", first=True),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a saved recalibrator for other programs: an ONNX file.

    Its inputs are named as the columns that it was fitted on; they are uncertainties,
    even if it was fitted with variances. Limits and quantiles are about errors, if
    there were no predictions in the fit.
    """
    from ..export import to_onnx
    from ..persistence import load_map

    wanted = Wanted.of(coverage, quantiles, shift=shift, prediction=prediction)
    if output is None:
        output = str(Path(scaler).with_suffix(".onnx"))
    check_output(output, (".onnx",), [scaler])
    saved = load_map(scaler)
    wanted.refuse_unlearned(scaler, saved)
    asked: dict[str, Any] = {
        "coverage": coverage,
        "quantiles": wanted.quantiles,
        "shift": shift,
    }
    if wanted.endings:
        fitted = saved.roles[""].prediction if saved.source else None
        asked["prediction"] = prediction or fitted
    to_onnx(saved, output, dtype=dtype.value, **asked)
    names = [*saved.names]
    if asked.get("prediction"):
        names.append(asked["prediction"])
    if as_json:
        show_json({"file": output, "to": to.value, "columns": names})
    else:
        show_words(f"Written: {output} (inputs: {', '.join(names)}).")
