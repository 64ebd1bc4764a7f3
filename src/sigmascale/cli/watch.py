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
    from ..monitoring import Follower, Monitor
    from .input_table import InputTable


@dataclass(frozen=True, kw_only=True)
class Watch(Roles, Reading):
    """Watch whether uncertainties still fit the errors that arrive.

    Rows are taken in the order of the files. However many come, in one run or in
    many with --state, false alarms are as rare as --confidence says.
    Ends with 0 without an alarm, 1 with one, 4 if rows are too few to know.
    With --follow intervals are widened or narrowed instead, row by row, so that
    they hold their share of what arrives; it ends with 0.
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
        """Take the rows in turn."""
        self.check_outputs()
        return self._watch() if self.follow is None else self._follow()

    def _watch(self) -> CommandResult:
        """Let a monitor look for a change."""
        from ..monitoring import Monitor
        from ..recalibration.persistence import save
        from .input_table import InputTable, load_fitted

        # a monitor that goes on, or a new one
        recalibrator, was = load_fitted(self.recalibrator)
        begun = self._begun()
        known = self._known_state(Monitor, begun)
        if known is not None:
            monitor, begun = known
        else:
            reference = None
            if self.calibration is not None:
                reference = InputTable.open([self.calibration], self, was).predictions()
            confidence = begun["confidence"] or 0.95
            begun["confidence"] = confidence
            monitor = Monitor(recalibrator, reference=reference, confidence=confidence)

        # what the rows tell, in a file, in a picture and in words
        table = InputTable.open(self.files, self, was)
        self._update(monitor, table)
        if self.state is not None:
            save(monitor, self.state, {"begun": begun})
        if self.plot is not None:
            _draw(monitor, self.plot)

        state = monitor.state
        told = {"data": table.to_dict(), **state.to_dict()}
        words = f"{table.about_columns()}\n\n{wrapped(*state.words.splitlines())}"
        code = {"yes": FAILED, "no": PASSED, "inconclusive": INCONCLUSIVE}[state.answer]
        return CommandResult(told, words, code, recalibrator=recalibrator)

    def _follow(self) -> CommandResult:
        """Let intervals follow the rows."""
        from ..monitoring import Follower
        from ..recalibration.persistence import save
        from .input_table import InputTable, load_fitted

        for name in ("calibration", "confidence", "plot"):
            if getattr(self, name) is not None:
                refuse(f"--{name} is for alarms, and --follow raises none.")

        # a follower that goes on, or a new one
        assert self.follow is not None
        recalibrator, was = load_fitted(self.recalibrator)
        begun = {name: self._begun()[name] for name in ("recalibrator", "groups")}
        begun["follow"] = self.follow
        known = self._known_state(Follower, begun)
        if known is not None:
            follower, _ = known
        else:
            follower = Follower(recalibrator, self.follow)

        # what the rows make of it, in a file and in words
        table = InputTable.open(self.files, self, was)
        self._update(follower, table)
        if self.state is not None:
            save(follower, self.state, {"begun": begun})
        told = {"data": table.to_dict(), **follower.to_dict()}
        words = f"{table.about_columns()}\n\n{wrapped(follower.words)}"
        return CommandResult(told, words, recalibrator=recalibrator)

    def _known_state(
        self, kind: type[Any], begun: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]] | None:
        """Return what the file of --state holds, and what it was begun with."""
        from ..recalibration.persistence import load_with_extra

        if self.state is None or not Path(self.state).exists():
            return None
        saved_state, extra = load_with_extra(self.state)
        was_begun = extra.get("begun", {})
        is_same = isinstance(saved_state, kind) and isinstance(was_begun, dict)
        for name, value in begun.items():
            is_same = is_same and value in (None, was_begun.get(name))
        if not is_same:
            refuse(
                f"{self.state}: was begun with another recalibrator, --calibration, "
                "--groups, --confidence or --follow, and evidence from both does not "
                "add up. Name another file for a new state."
            )
        return saved_state, was_begun

    @staticmethod
    def _update(watching: Monitor | Follower, table: InputTable) -> None:
        """Take the rows of a table, batch by batch."""
        from .._support.notices import quiet

        for batch in table.batches():
            rows = batch.predictions()
            with batch.naming_rows(), quiet():  # a caution is told in the end
                watching.update(rows)

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
    """Write a picture of the evidence to a file."""
    from .. import plots
    from .._support.files import whole_file

    figure: Any = plots.monitor(monitor).figure
    with whole_file(Path(path)) as part:
        figure.savefig(part, dpi=150)
