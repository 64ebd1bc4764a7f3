"""``sigmascale paper`` and ``demo``: whole stories, told by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .options import Seed, example


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
    from ..paper.program import reproduce

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
