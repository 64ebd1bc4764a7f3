"""Results as the page shows them: the words and numbers of the report, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..report.text import (
    MARKS,
    TableView,
    clean,
    meaning_of,
    meaning_of_answers,
    question_of,
    score_cells,
    short,
    small_print,
    tabulate_candidates,
    valid_cells,
)

if TYPE_CHECKING:
    from ..judging.local import LocalZMS
    from ..judging.validation import Validation, Verdict


def validation_view(found: Validation) -> dict[str, Any]:
    """Return verdicts, scores and local calibration of one set of uncertainties."""
    return {
        "answer": found.answer,
        "verdicts": [_verdict(each, found) for each in found.verdicts.values()],
        "meanings": meaning_of_answers(found),
        "marks": MARKS,
        "scores": _scores(found),
        "local": {
            name: local_view(each, found.tolerance)
            for name, each in found.local.items()
        },
        "notes": list(found.notes),
    }


def _verdict(verdict: Verdict, found: Validation) -> dict[str, Any]:
    region = verdict.region
    place = None
    if region is not None and verdict.local is not None:
        is_number = not verdict.local.is_grouped
        if is_number or region.low == region.high:
            place = {"variable": verdict.name, "low": region.low, "high": region.high}
            place |= {"where": region.where}
    return {
        "name": verdict.name,
        "answer": verdict.answer,
        "question": question_of(verdict.name),
        "sentence": verdict.sentence,
        "note": small_print(verdict, found.confidence),
        "region": place,
    }


def _scores(found: Validation) -> list[dict[str, str]]:
    rows = []
    for name in found.scores.to_dict():
        value, attainable = (cell.text for cell in score_cells(found, name))
        rows.append(
            {
                "name": short(name),
                "meaning": meaning_of(name),
                "value": value,
                "attainable": attainable,
            }
        )
    for name in found.local:
        value, attainable = (cell.text for cell in valid_cells(found, name))
        rows.append(
            {
                "name": f"valid bins of {short(name)}",
                "meaning": "",
                "value": value,
                "attainable": attainable,
            }
        )
    return rows


def local_view(local: LocalZMS, tolerance: float) -> dict[str, Any]:
    """Return the bins of a variable."""
    grey = local.says_nothing(tolerance)
    return local.to_dict() | {"grouped": local.is_grouped, "grey": grey.tolist()}


def candidates_view(told: dict[str, Any]) -> dict[str, Any] | None:
    """Return the candidates of a selection, with the reason of the choice."""
    if "candidates" not in told:
        return None
    return table_view(tabulate_candidates(told["candidates"], told["chosen"]))


def table_view(table: TableView) -> dict[str, Any]:
    """Return a table of the report."""
    return {
        "header": table.header,
        "rows": [
            [name, *(cell.text for cell in cells)] for name, _, cells in table.rows
        ],
        "chosen": [any(c.chosen for c in cells) for _, _, cells in table.rows],
    }


def text_of(value: Any) -> str:
    """Return a cell of a table as text."""
    return "" if value is None else clean(str(value))[:200]
