"""``sigmascale watch``: say whether a recalibrator still fits what arrives."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import (
    CANNOT_TELL,
    FAILED,
    PASSED,
    Columns,
    CommandResult,
    Reading,
    option,
    refuse,
    saved,
    tables,
    wrapped,
)

if TYPE_CHECKING:
    from ..monitoring import Monitor

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, kw_only=True)
class Watch(Columns, Reading):
    """Watch whether uncertainties still fit the errors that arrive.

    Rows are taken in the order of the files. However many come, in one run or in
    many with --state, false alarms are as rare as --confidence says.
    Ends with 0 without an alarm, 1 with one, 4 if rows are too few to know.
    """

    examples = (
        "sigmascale watch r.json demo-output/test.csv",
        "sigmascale watch r.json demo-output/test.csv --state monitor.json",
    )

    recalibrator: str = saved()
    files: tuple[str, ...] = tables()
    calibration: str | None = option(
        "rows that show what is normal, not those fitted", "FILE", common=True
    )
    state: str | None = option(
        "go on from this file, and write it in the end", "JSON", common=True
    )
    confidence: float | None = option(
        "1 minus the chance of a false alarm [0.95]", "SHARE", common=True
    )
    plot: str | None = option("draw the evidence over time", "PICTURE", common=True)

    def run(self) -> CommandResult:
        """Take the rows in turn."""
        from .._support.notices import quiet
        from ..monitoring import Monitor
        from ..persistence import load_with_extra, save
        from .table import InputTable, load_fitted
        from .tables import refuse_input

        for output, endings in ((self.state, (".json",)), (self.plot, PICTURES)):
            if output is not None:
                refuse_input(output, (*self.files, self.recalibrator), *endings)
        recalibrator, was = load_fitted(self.recalibrator)
        begun = self._begun()
        if self.state is not None and Path(self.state).exists():
            monitor, extra = load_with_extra(self.state)
            had = extra.get("begun", {})
            same = isinstance(monitor, Monitor) and isinstance(had, dict)
            if not same or any(begun[x] not in (None, had.get(x)) for x in begun):
                refuse(
                    f"{self.state}: was begun with another recalibrator, "
                    "--calibration, --groups or --confidence, and evidence from both "
                    "does not add up. Name another file for a new state."
                )
            begun = had
        else:
            reference = None
            if self.calibration is not None:
                reference = InputTable.open([self.calibration], self, was).predictions()
            begun["confidence"] = begun["confidence"] or 0.95
            share = begun["confidence"]
            monitor = Monitor(recalibrator, reference=reference, confidence=share)
        table = InputTable.open(self.files, self, was)
        for batch in table.batches():
            p = batch.predictions()
            with batch.told(), quiet():  # a caution is told in the end
                monitor.update(p)
        if self.state is not None:
            save(monitor, self.state, {"begun": begun})
        if self.plot is not None:
            _draw(monitor, self.plot)
        state = monitor.state
        told = {"data": table.to_dict(), **state.to_dict()}
        words = f"{wrapped(str(table))}\n\n{wrapped(*state.words.splitlines())}"
        code = {"yes": FAILED, "no": PASSED, "cannot tell": CANNOT_TELL}[state.answer]
        return CommandResult(told, words, code, recalibrator=recalibrator)

    def _begun(self) -> dict[str, Any]:
        """Return what a state belongs to; None is what may be as it was."""

        def checksum(file: str | None) -> str | None:
            return None if file is None else sha256(Path(file).read_bytes()).hexdigest()

        return {
            "recalibrator": checksum(self.recalibrator),
            "calibration": checksum(self.calibration),
            "groups": self.groups or "",
            "confidence": self.confidence,
        }


def _draw(monitor: Monitor, path: str) -> None:
    from .. import plots
    from .._support.files import whole_file

    figure: Any = plots.monitor(monitor).figure
    with whole_file(Path(path)) as part:
        figure.savefig(part, dpi=150)
