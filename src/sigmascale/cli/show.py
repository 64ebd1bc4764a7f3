"""``sigmascale show``, ``export`` and ``app``: a saved recalibrator, and the page."""

from __future__ import annotations

from dataclasses import dataclass

from .options import Command, Result, argument, option


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """Tell what a saved recalibrator does, and which columns it needs."""

    examples = ("sigmascale show r.json",)

    recalibrator: str = argument("file made by `sigmascale fit`", "JSON")

    def run(self) -> Result:
        """Describe it."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a saved recalibrator for other programs: an ONNX file."""

    examples = ("sigmascale export r.json -o r.onnx --quantiles 0.05,0.95",)

    recalibrator: str = argument("file made by `sigmascale fit`", "JSON")
    output: str | None = option(
        "file to write; JSON with another ending if not given",
        "ONNX",
        short="-o",
        common=True,
    )
    coverage: float | None = option(
        "add limits that hold this share", "SHARE", common=True
    )
    quantiles: tuple[float, ...] = option(
        "add quantiles at these levels: 0.05,0.5,0.95", "LEVELS", (), common=True
    )

    def run(self) -> Result:
        """Write it."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class App(Command):
    """Open a page that checks and recalibrates, on this machine alone.

    Files stay on this machine, in a private folder that is removed at the end.
    """

    examples = ("sigmascale app", "sigmascale app demo-output/test.csv --port 8000")

    file: str | None = argument("table to begin with", "FILE", None)
    port: int = option("where to listen; 0 is any that is free", "N", 0, common=True)
    no_browser: bool = option(
        "print the address, open nothing", default=False, common=True
    )
    host: str = option(
        "another address of this machine to listen on", "ADDRESS", "127.0.0.1"
    )
    largest: int = option("largest file, in MiB", "N", 2048)

    def run(self) -> Result:
        """Serve the page until it is closed."""
        raise NotImplementedError
