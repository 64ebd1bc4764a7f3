"""The uncertainties of several models, in columns of one file, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._support.render import TableFormat, as_table, shorten
from ..exceptions import InvalidInputError
from ..judging.validation import Validation
from ..roles import Choice
from .tables.filesets import named
from .tables.memory import MemoryTable
from .tables.reading import Reading
from .tables.taken import read_raw


@dataclass(frozen=True)
class SideBySide:
    """Verdicts on several columns of uncertainties, for the same rows.

    Attributes
    ----------
    first : MemoryTable
        What was read for the first column.
    validations : dict of str to Validation
        By the name of the column.
    """

    first: MemoryTable
    validations: dict[str, Validation]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        cards = {name: found.scores for name, found in self.validations.items()}
        variables = list(next(iter(cards.values())).s)
        header = ["uncertainty", "NLL", "S_cal"]
        header += [f"S_{shorten(name)}" for name in variables]
        rows = []
        for name, card in cards.items():
            numbers = [card.nll, card.s_cal, *card.s.values(), card.s_tot]
            answer = self.validations[name].answer
            rows.append([name, *(f"{value:.3f}" for value in numbers), answer])
        return [*header, "S_tot", "answer"], rows

    def to_table(self, format: TableFormat = "text") -> str:
        """Return the scores as a table of text, Markdown or LaTeX."""
        return as_table(*self._cells(), format)

    def __str__(self) -> str:
        """Return the scores, one line a column."""
        return self.to_table()

    def to_dict(self) -> dict[str, Any]:
        """Return scores and verdicts by column."""
        return {
            "data": self.first.to_dict(),
            "uncertainties": {
                name: {"scores": found.scores.to_dict(), **found.to_dict()}
                for name, found in self.validations.items()
            },
        }


def judge_columns(
    file: str,
    choices: Sequence[Choice],
    reading: Reading,
    groups: str | None,
    n_bins: int | None,
    seed: int,
) -> SideBySide:
    """Judge the uncertainties of each choice on the rows that all of them have.

    A column that is judged is no feature of another.
    """
    columns = [str(each.uncertainty or each.variance) for each in choices]
    if len(set(columns)) < len(columns):
        msg = f"{named([file])}: a column of uncertainties is given twice."
        raise InvalidInputError(msg)
    raw = read_raw([file], reading)
    alone = [_others_left_out(each, columns) for each in choices]
    tables = [MemoryTable.take([file], reading, raw, each, columns) for each in alone]
    return SideBySide(
        tables[0],
        {
            name: table.validate(n_bins, seed, groups=groups)
            for name, table in zip(columns, tables, strict=True)
        },
    )


def _others_left_out(choice: Choice, columns: Sequence[str]) -> Choice:
    if not choice.all_features:
        return choice
    return replace(choice, exclude=(*choice.exclude, *columns))
