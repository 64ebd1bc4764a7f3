"""What the reader of a report should not conclude from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._support.text import listed
from ..diagnostics import repeats_found
from ..judging import Validation
from .tables import percent

FEW_ROWS = 1000


def cautions(
    before: Validation, after: Validation | None, recalibrator: Any
) -> list[str]:
    """Return the cautions that apply, the gravest first, and one that always does."""
    return [*_about(before, after, recalibrator)]


def _about(
    before: Validation, after: Validation | None, recalibrator: Any
) -> Iterator[str]:
    last = after or before
    rows = last.rows
    if rows.distributions is not None and (share := rows.distributions.fitted_share):
        yield (
            f"That recalibration does as well on other rows: {percent(share)} of the "
            "judged rows were fitted, so that all that is said of “after” is too good."
        )
    elif after is not None and recalibrator is None:
        yield (
            "That recalibration does as well on other rows: this report was not told "
            "what was learned, and from which rows. If the judged rows are among them, "
            "all that is said of “after” is too good."
        )
    if rows.groups is None and (words := repeats_found(rows)):
        yield (
            f"That rows are independent: they look like repeats ({words}), and no "
            "groups were given, so that a “no” comes too easily. Judge again with "
            "groups."
        )
    if rows.n_rows < FEW_ROWS:
        yield f"That there is no fault where none was found in {rows.n_rows:,} rows."
    if after is not None and after.scores.nll > before.scores.nll:
        yield "That u became better: the likelihood is worse after recalibration."
    if len(rows.names) == 1:
        yield (
            "That u is right for every kind of input: no feature was looked at. Right "
            "at every level, u can be too small for some inputs and too large for "
            "others."
        )
    hidden = [x for x in getattr(recalibrator, "names_", ())[1:] if x not in rows.names]
    if hidden:
        yield (
            f"Anything about {listed(hidden)}: the recalibrator knows it, and it was "
            "not judged."
        )
    yield (
        "That a “yes” is a proof for features that nobody recorded, for data of "
        "another kind, or for methods that were chosen by these very rows. Nor is "
        "right useful: u can be right and large; CRPS tells."
    )
