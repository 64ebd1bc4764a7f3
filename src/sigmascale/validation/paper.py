"""Two sentences for a paper: what was judged, how, and what was found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._support.text import listed
from .._support.version import __version__

if TYPE_CHECKING:
    from .validation import Validation

NOT_COLUMNS = ("bias", "average", "joint", "coverage")
RIGHT = {
    "yes": "all questions are answered by yes",
    "no": "at least one question is answered by no",
    "cannot tell": "not all questions can be told",
}


def paper_words(validation: Validation) -> str:
    """Return what a referee asks of uncertainties, in two sentences."""
    v = validation
    rows = v.rows

    # what was judged, and how
    columns = [name for name in v.verdicts if name not in NOT_COLUMNS]
    if "joint" in v.verdicts and v.verdicts["joint"].counts:
        columns.append("their combinations")
    judged = f"{rows.n_rows:,} rows"
    if rows.groups is not None:
        judged += f" in {int(rows.groups.max()) + 1:,} independent groups"
    method = (
        f"Uncertainties of {judged} were judged with sigmascale: T, the largest "
        f"one-sided {100 * v.confidence:g} % limit of the factor by which u, or an "
        f"interval, is off in disjoint fifths of {listed(columns, 6) or 'all rows'} "
        f"(version {__version__}, tolerance {v.tolerance:g})."
    )

    # what was found: in fifths, on average, and by intervals
    on_average = "nothing"
    if 1 in v.certificate.curve:
        _, most, _ = v.certificate.curve[1]
        on_average = _proved(most)
    level = f"{v.level:g}" if f"{v.level:g}" in v.evidence.held else "0.95"
    share = v.evidence.held[level]
    held = f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    result = (
        f"They are right to within {_proved(v.T)} in every fifth and {on_average} on "
        f"average, intervals of {100 * float(level):g} % hold {held}, and "
        f"{RIGHT[v.answer]}."
    )
    return f"{method} {result}"


def _proved(T: float) -> str:
    """Return T in words, rounded up."""
    if not math.isfinite(T) or T >= 99:
        return "no factor that can be told"
    return f"{math.ceil(100 * T - 1e-6) / 100:.2f} times"
