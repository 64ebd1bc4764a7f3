"""``sigmascale paper``: the study that all began with."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from .app import app, show_json
from .options import AsJson, Seed, example

NEEDED = ("cma", "matplotlib")


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
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper arXiv:2310.11978, its tables and figures.

    Without --data and --download, on built-in synthetic molecules. Takes minutes.
    """
    from ..paper.program import reproduce

    _refuse_without_packages()
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        written = reproduce(
            data, download=download, out=out, seed=seed, n_draws=draws, step=step
        )
    if as_json:
        show_json({"files": [str(path) for path in written]})


def _refuse_without_packages() -> None:
    """Say what is missing before any work, which takes minutes."""
    missing = [each for each in NEEDED if find_spec(each) is None]
    if missing:
        msg = (
            f"The study needs the package {' and '.join(missing)}: in a checkout of "
            "sigmascale, pip install -e '.[cli,optimize]'; or pip install "
            f"{' '.join(missing)}."
        )
        raise ImportError(msg)
