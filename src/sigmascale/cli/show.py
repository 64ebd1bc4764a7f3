"""``sigmascale show``, ``export`` and ``app``: a saved recalibrator, and the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .options import Command, CommandResult, argument, option, refuse, saved, wrapped


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """Describe a saved recalibrator, and which columns it needs."""

    examples = ("sigmascale show r.json",)

    recalibrator: str = saved()

    def run(self) -> CommandResult:
        """Describe it."""
        from ..predictions.schema import Schema
        from ..recalibration.persistence import load_with_extra
        from ..recalibration.recalibrator import Recalibrator

        recalibrator, extra = load_with_extra(self.recalibrator, Recalibrator)
        features = list(recalibrator.names_[1:])
        told: dict[str, Any] = {
            "file": self.recalibrator,
            "kind": type(recalibrator).__name__,
            "words": recalibrator.describe(),
            "rows": recalibrator.n_rows_,
            "features": features,
            "schema": extra.get("schema"),
        }
        if told["schema"] is not None:
            columns = str(Schema.from_dict(told["schema"]))
        else:  # it was not fitted to a table
            columns = ", ".join(["u", *features])
        words = wrapped(f"{self.recalibrator}: {told['words']}", f"Columns: {columns}.")
        return CommandResult(told, words, recalibrator=recalibrator)


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a saved recalibrator for other programs: an ONNX file."""

    examples = ("sigmascale export r.json -o r.onnx --quantiles 0.05,0.95",)

    recalibrator: str = saved()
    output: str | None = option(
        "file to write; JSON with another ending if not given",
        "ONNX",
        short="-o",
        common=True,
        endings=(".onnx",),
    )
    coverage: float | None = option(
        "add limits of intervals with this nominal coverage", "SHARE", common=True
    )
    quantiles: tuple[float, ...] = option(
        "add quantiles at these levels: 0.05,0.5,0.95", "LEVELS", (), common=True
    )

    def run(self) -> CommandResult:
        """Write it."""
        from ..integrations.export import to_onnx
        from ..recalibration.persistence import load

        output = self.output or str(Path(self.recalibrator).with_suffix(".onnx"))
        replace(self, output=output).check_outputs()
        recalibrator = load(self.recalibrator)
        to_onnx(recalibrator, output, quantiles=self.quantiles, coverage=self.coverage)
        told = {"output": output, "columns": list(recalibrator.names_)}
        words = f"Written: {output} (inputs: {', '.join(recalibrator.names_)})."
        return CommandResult(told, wrapped(words), recalibrator=recalibrator)


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

    def run(self) -> CommandResult:
        """Serve the page until it is closed."""
        if not 0 <= self.port <= 65_535 or self.largest < 1:
            refuse("--port must be 0 to 65535, and --largest at least 1.")
        from ..app.server import serve

        file = None if self.file is None else Path(self.file)
        address: dict[str, Any] = {"host": self.host, "port": self.port}
        largest = self.largest * 2**20  # bytes
        serve(file, open_browser=not self.no_browser, largest=largest, **address)
        return CommandResult({})
