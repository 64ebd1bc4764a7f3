"""The tables of a report: scores of results as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import scores
from .._support.text import shorten
from ..exceptions import InvalidInputError
from ..judging import Validation

MEANINGS = {
    "CRPS": "of whole distributions, in the unit of the error",
    "NLL": "of normal errors; lower is better",
    "ZMS": "⟨Z²⟩, the mean of z²",
    "S_cal": "|ln ⟨Z²⟩|: average",
    "S_u": "in bins of u: consistency",
    "S_tot": "S_cal + S_u + those of the features",
}


@dataclass(frozen=True)
class Row:
    """A line of a table: its name, a note below the name, and its cells."""

    name: str
    note: str
    cells: tuple[str, ...]


def number(value: float) -> str:
    """Return a score with three significant digits.

    >>> number(0.12345), number(0.0), number(12345.6), number(float("inf"))
    ('0.123', '0', '1.23e+04', '∞')
    """
    return f"{value:.3g}".replace("inf", "∞")


def percent(share: float) -> str:
    r"""Return a share in per cent, with a space at which no line breaks.

    >>> percent(0.9512)
    '95.1\xa0%'
    """
    return f"{100 * share:.3g}\u00a0%"


def score_rows(stages: Sequence[Validation]) -> list[Row]:
    """Return scores before and after, and what perfectly calibrated rows would have."""
    cards = [stage.scores for stage in stages]
    target, spread = cards[-1].reference.mean, cards[-1].reference.sd
    found = []
    for name in cards[-1].to_dict():
        values = [card[name] for card in cards]
        if name.startswith("within_"):
            level = float(name.removeprefix("within_")) / 100
            shown = f"held by intervals of {percent(level)}"
            cells = (*(percent(each) for each in values), percent(level))
            found.append(Row(shown, "", cells))
            continue
        right = ""
        if name in target and math.isfinite(target[name]):
            right = f"{number(target[name])} ± {spread[name]:.2g}"
        cells = (*(number(each) for each in values), right)
        found.append(Row(shorten(name, 60), MEANINGS.get(name, ""), cells))
    order = {"CRPS": 0, "held": 1, "NLL": 2}
    found.sort(key=lambda row: order.get(row.name.split()[0], 3))
    return found


def tail_rows(stages: Sequence[Validation]) -> list[Row]:
    """Return the statistics that heavy tails spoil, and how heavy they are.

    The share of errors within 1.96 u is not among them: the page says it, once.
    """
    try:
        found = [scores.tails(stage.rows) for stage in stages]
    except InvalidInputError:  # of vectors, few rows, or errors that are all 0
        return []

    def cells(tell: str) -> tuple[str, ...]:
        each = [getattr(x, tell) for x in found]
        return tuple(
            number(x)
            if isinstance(x, float)
            else f"{number(x.value)} [{number(x.low)}, {number(x.high)}]"
            for x in each
        )

    return [
        Row("RCE", "(RMV − RMSE) / RMV, with its interval", (*cells("rce"), "0")),
        Row("ZMS", "with its interval", (*cells("zms"), "1")),
        Row("ν", "degrees of freedom of Student's t for z", (*cells("nu"), "above 4")),
        Row(
            "skewness of z²",
            "above 0.8, a few rows decide",
            (*cells("skewness_z2"), ""),
        ),
    ]
