"""``sigmascale app``: the same in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .options import example


@app.command(
    "app",
    epilog=example("sigmascale app", "sigmascale app demo-output/test.csv --port 0"),
)
def browse(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Table to begin with.", show_default=False),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            help="Where to listen; 0 is any that is free.",
            min=0,
            max=65535,
            metavar="N",
        ),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, open nothing.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Another address of this machine to listen on. Whoever can reach it "
            "and knows the token can use it.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    largest: Annotated[
        int, typer.Option(help="The largest file, in MiB.", min=1, metavar="N")
    ] = 2048,
) -> None:
    """Open a page that checks and recalibrates, on this machine alone.

    The address is the first line that is printed. Files stay on this machine, in a
    private folder that is removed at the end.
    """
    try:
        from ..app.server import serve
    except ModuleNotFoundError as problem:
        if problem.name not in ("starlette", "uvicorn"):
            raise
        msg = 'The app needs more packages: pip install ".[app]" in a checkout.'
        raise ImportError(msg) from problem
    serve(
        file, host=host, port=port, largest=largest * 2**20, open_browser=not no_browser
    )
