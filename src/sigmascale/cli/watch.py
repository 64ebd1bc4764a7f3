"""``sigmascale watch``: say whether a recalibrator still fits what arrives."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..predictions.roles import Roles
from .options import (
    FAILED,
    INCONCLUSIVE,
    PASSED,
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
    from ..predictions.schema import Schema
    from ..recalibration.recalibrator import Recalibrator

CODES = {"yes": FAILED, "no": PASSED, "inconclusive": INCONCLUSIVE}


@dataclass(frozen=True, kw_only=True)
class Watch(Roles, Reading):
    """Watch whether uncertainties still fit the errors that arrive.

    Rows are taken in the order of the files. However many come, in one run or in
    many with --state, false alarms are as rare as --confidence says.
    Ends with 0 without an alarm, 1 with one, 4 if rows are too few to know.
    With --follow intervals are widened or narrowed instead, row by row, so that
    they cover their share of what arrives; it ends with 0.
    """

    examples = (
        "sigmascale watch r.json demo-output/test.csv",
        "sigmascale watch r.json demo-output/test.csv --state monitor.json",
        "sigmascale watch r.json demo-output/test.csv --follow 0.9 --state f.json",
    )

    recalibrator: str = saved()
    files: tuple[str, ...] = tables()
    calibration: str | None = option(
        "rows that show what is normal, not those fitted", "FILE", common=True
    )
    state: str | None = option(
        "go on from this file, and write it in the end",
        "JSON",
        common=True,
        endings=(".json",),
    )
    confidence: float | None = option(
        "1 minus the chance of a false alarm [0.95]", "SHARE", common=True
    )
    plot: str | None = option(
        "draw the evidence over time",
        "PICTURE",
        common=True,
        endings=(".png", ".svg", ".pdf"),
    )
    follow: float | None = option(
        "follow with intervals of this coverage, such as 0.9", "SHARE", common=True
    )

    def run(self) -> CommandResult:
        """Let a monitor look for a change in the rows, or let intervals follow them."""
        from .._support.notices import quiet
        from ..recalibration.persistence import save
        from .input_table import InputTable, load_fitted

        self.check_outputs()
        if self.follow is not None:
            for name in ("calibration", "confidence", "plot"):
                if getattr(self, name) is not None:
                    refuse(f"--{name} is for alarms, and --follow raises none.")

        # what goes on, or begins
        recalibrator, was = load_fitted(self.recalibrator)
        watching, begun = self._known_state() or self._new_state(recalibrator, was)

        # the rows in turn; a caution is told in the end
        table = InputTable.open(self.files, self, was)
        for batch in table.batches():
            rows = batch.predictions()
            with batch.naming_rows(), quiet():
                watching.update(rows)

        # what they tell, in files and in words
        if self.state is not None:
            save(watching, self.state, {"begun": begun})
        if self.plot is not None:
            _draw(watching, self.plot)
        if self.follow is None:
            found = watching.state
            code = CODES[found.answer]
        else:
            found = watching
            code = PASSED
        told = {"data": table.to_dict(), **found.to_dict()}
        words = f"{table.about_columns()}\n\n{wrapped(found.words)}"
        return CommandResult(told, words, code, recalibrator=recalibrator)

    def _known_state(self) -> tuple[Any, dict[str, Any]] | None:
        """Return what the file of --state holds, and what it was begun with."""
        from ..monitoring import Follower, Monitor
        from ..recalibration.persistence import load_with_extra

        if self.state is None or not Path(self.state).exists():
            return None
        saved_state, extra = load_with_extra(self.state, object)
        was_begun = extra.get("begun", {})
        kind = Monitor if self.follow is None else Follower
        is_same = isinstance(saved_state, kind) and isinstance(was_begun, dict)
        for name, value in self._begun().items():
            is_same = is_same and value in (None, was_begun.get(name))
        if not is_same:
            refuse(
                f"{self.state}: was begun with another recalibrator, --calibration, "
                "--groups, --confidence or --follow, and evidence from both does not "
                "add up. Name another file for a new state."
            )
        return saved_state, was_begun

    def _new_state(
        self, recalibrator: Recalibrator, was: Schema
    ) -> tuple[Any, dict[str, Any]]:
        """Return a new monitor or follower, and what it is begun with."""
        from ..monitoring import Follower, Monitor
        from .input_table import InputTable

        begun = self._begun()
        if self.follow is not None:
            return Follower(recalibrator, self.follow), begun
        reference = None
        if self.calibration is not None:
            reference = InputTable.open([self.calibration], self, was).predictions()
        begun["confidence"] = self.confidence or 0.95
        how = {"reference": reference, "confidence": begun["confidence"]}
        return Monitor(recalibrator, **how), begun

    def _begun(self) -> dict[str, Any]:
        """Return what a state belongs to; None is what may be as it was."""

        def checksum(file: str | None) -> str | None:
            return None if file is None else sha256(Path(file).read_bytes()).hexdigest()

        return {
            "recalibrator": checksum(self.recalibrator),
            "calibration": checksum(self.calibration),
            "groups": self.groups or "",
            "confidence": self.confidence,
            "follow": self.follow,
        }


def _draw(monitor: Monitor, path: str) -> None:
    """Write a picture of the evidence to a file."""
    from .. import plots
    from .._support.files import whole_file

    figure: Any = plots.monitor(monitor).figure
    with whole_file(Path(path)) as part:
        figure.savefig(part, dpi=150)
