"""``sigmascale export``: write a saved recalibrator for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .app import app, show_json
from .files import check_output
from .options import AsJson, SavedScaler, example


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
        ),
    ] = Numbers.float64,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add the outputs low and high, limits that hold this share of the "
            "errors, such as 0.9.",
            metavar="SHARE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a saved recalibrator for other programs: an ONNX file.

    Its inputs are named as the columns that it was fitted on. They are uncertainties,
    even if the recalibrator was fitted with variances.
    """
    from ..export import to_onnx
    from ..persistence import load_map

    if output is None:
        output = str(Path(scaler).with_suffix(".onnx"))
    check_output(output, (".onnx",), [scaler])
    saved = load_map(scaler)
    to_onnx(saved, output, dtype=dtype.value, coverage=coverage)
    if as_json:
        show_json({"file": output, "to": to.value, "columns": list(saved.names)})
    else:
        print(f"Written: {output} (inputs: {', '.join(saved.names)}).")
