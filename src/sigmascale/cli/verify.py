"""``sigmascale verify``: compute again what a card says of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..predictions.roles import Roles
from .options import (
    FAILED,
    OF_READING,
    PASSED,
    Command,
    CommandResult,
    Reading,
    argument,
    option,
    refuse,
    tables,
    wrapped,
)


@dataclass(frozen=True, kw_only=True)
class Verify(Roles, Reading):
    """Compute what a card says again from its data; tell what differs.

    Ends with 0 if none does, and 1 if one does. Columns are read as the card says;
    for a card made in Python, they are guessed, or named here.
    """

    examples = ("sigmascale verify card.html demo-output/test.csv",)

    card: str = argument("a card made by `sigmascale check --card`", "CARD")
    files: tuple[str, ...] = tables()
    recalibrator: str | None = option(
        "what recalibrated them, if the card says so", "JSON", common=True
    )

    def run(self) -> CommandResult:
        """Test the table as the card says, and compare."""
        from .._support.version import __version__
        from ..report import read_card, verify_card
        from ..validation.advice import validate
        from .check import TESTING
        from .input_table import InputTable, load_fitted

        card = read_card(self.card)
        if card.get("recalibrator") and self.recalibrator is None:
            refuse(
                "The card is of recalibrated rows: name what recalibrated them by "
                "--recalibrator.",
                "no-recalibrator",
            )
        recalibrator = was = None
        if self.recalibrator is not None:
            recalibrator, was = load_fitted(self.recalibrator)

        # the rows, read and tested as the card says
        reading = self._as_the_card_says(card)
        table = InputTable.open(self.files, reading, was)
        testing = {name: getattr(reading, name) for name in TESTING}
        p = table.predictions()
        with table.naming_rows():
            rows = p if recalibrator is None else recalibrator.apply(p)
            before = None if recalibrator is None else p
            v = validate(rows, before=before, rng=reading.seed, **testing)
            differ = verify_card(self.card, v, recalibrator=recalibrator)

        version = card.get("version")
        if differ:
            words = ["The card differs from the data.", *differ]
        else:
            words = [
                f"The card agrees with the data: {len(p):,} rows, all numbers equal."
            ]
        if version != __version__:
            words.append(
                f"It was made by sigmascale {version!s:.40}; this is {__version__}."
            )
        told = {"verified": not differ, "differences": list(differ), "version": version}
        code = FAILED if differ else PASSED
        return CommandResult(told, wrapped(*words), code)

    def _as_the_card_says(self, card: dict[str, Any]) -> Any:
        """Return the command that tests the table as the card says.

        Options of the card are checked like those of the page: unknown ones are
        refused, and no file that it names is read or written.
        """
        from .check import Check, testing_options

        said = {"command": "check", "files": list(self.files)}
        options = card.get("options")
        if isinstance(options, dict):
            asked = Command.from_json({**options, **said})
            said |= testing_options(asked)  # type: ignore[arg-type]
        else:
            said |= _of_python(card)

        # columns that are named here take the place of those of the card
        for name, value in self.to_json().items():
            if name in OF_READING:
                said[name] = value
        said |= {"command": "check", "files": list(self.files)}
        check = Command.from_json(said)
        assert isinstance(check, Check)
        return check


def _of_python(card: dict[str, Any]) -> dict[str, Any]:
    """Return how the rows of a card that no command has made were tested."""
    tested = card.get("results")
    data = card.get("data")
    if not isinstance(tested, dict) or not isinstance(data, dict):
        return {}
    from .check import TESTING

    said = {name: tested[name] for name in TESTING if name in tested}
    columns = data.get("columns")
    features = columns[1:] if isinstance(columns, list) else []
    return said | {"features": features, "seed": card.get("seed", 0)}
