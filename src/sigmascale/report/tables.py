"""The tables of a report: numbers as text, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..comparison import Comparison
from ..judging.intervals import Estimate
from ..judging.tails import (
    NORMAL_BEYOND,
    SKEWED_E2,
    SKEWED_U2,
    SKEWED_Z2,
    TailStatistics,
)
from ..judging.validation import Validation
from .evidence import Evidence
from .text import number, percent, scaled, short, with_spread

MANY_FEATURES = 4  # more columns than this do not fit on paper
LONGEST_HEAD = 20  # of a column


@dataclass(frozen=True)
class Cell:
    """A number or prose in a table; the chosen one of several has a tick."""

    text: str
    chosen: bool = False
    prose: bool = False


@dataclass(frozen=True)
class TableView:
    """A table as text; the first cell of a row names it, with a note below."""

    header: list[str]
    rows: list[tuple[str, str, list[Cell]]]


def tabulate_scores(
    evidence: Evidence, prefixes: tuple[str, ...], *, wanted: bool
) -> TableView:
    """Return scores beside what is attainable, with or without those of a kind."""
    header = ["score"]
    for stage in evidence.stages:
        header += [stage.name, "attainable"]
    rows = []
    for name in evidence.final.validation.scores.to_dict():
        if name.startswith(prefixes) == wanted:
            cells = [
                c
                for stage in evidence.stages
                for c in score_cells(stage.validation, name)
            ]
            rows.append((short(name), meaning_of(name), cells))
    if not wanted:
        for name in evidence.final.validation.local:
            cells = [
                c
                for stage in evidence.stages
                for c in valid_cells(stage.validation, name)
            ]
            rows.append((f"valid bins of {short(name)}", "", cells))
    return TableView(header, rows)


def score_cells(validation: Validation, name: str) -> list[Cell]:
    """Return a score, and what is attainable."""
    mean, sd = validation.reference.mean[name], validation.reference.sd[name]
    if name.startswith("UCE_"):  # in the unit of the squared error
        return [Cell(scaled(validation.scores[name])), Cell(scaled(mean, sd))]
    return [Cell(number(validation.scores[name])), Cell(with_spread(mean, sd))]


def valid_cells(validation: Validation, name: str) -> list[Cell]:
    """Return the share of valid bins of a variable, and what is attainable."""
    local = validation.local[name]
    attainable = validation.verdicts[name].attainable
    low, high = local.fraction_interval
    share = f"{percent(local.fraction_valid)} [{100 * low:.0f}, {100 * high:.0f}]"
    return [Cell(share), Cell("" if attainable is None else percent(attainable))]


def meaning_of(name: str) -> str:
    """Return what a score means, in a few words."""
    fixed = {
        "NLL": "negative log-likelihood; lower is better",
        "ZMS": "⟨Z²⟩ of all rows; 1 is right",
        "S_cal": "|ln ⟨Z²⟩|, average calibration",
        "S_u": "consistency",
        "S_con": "S_cal + S_u",
        "S_ada": "S_cal + those of the features",
        "S_tot": "S_cal + S_u + those of the features",
    }
    if name in fixed:
        return fixed[name]
    return "adaptivity" if name.startswith("S_") else ""


def tabulate_tails(evidence: Evidence) -> TableView | None:
    """Return the tails of each stage; None where there are too few rows for them.

    The means of z and z² are not among them: verdicts have these, with intervals that
    know of heavy tails.
    """
    found = [stage.tails for stage in evidence.stages if stage.tails is not None]
    if not found:
        return None

    def row(
        name: str, note: str, tell: Callable[[TailStatistics], str], wanted: str
    ) -> tuple[str, str, list[Cell]]:
        return name, note, [*(Cell(tell(each)) for each in found), Cell(wanted)]

    rows = [
        row(
            "errors beyond 3u",
            "share of the rows",
            lambda each: percent(each.beyond, 2),
            f"{percent(NORMAL_BEYOND, 2)} if normal",
        ),
        row(
            "errors within 1.96u",
            "share of the rows, with its interval",
            lambda each: (
                f"{percent(each.coverage.picp, 1)} [{100 * each.coverage.low:.1f}, "
                f"{100 * each.coverage.high:.1f}]"
            ),
            percent(0.95),
        ),
        row(
            "degrees of freedom",
            "of the Student's t that suits z; the fewer, the heavier the tails",
            lambda each: (
                f"{each.shape.df:.3g}" if math.isfinite(each.shape.df) else "∞"
            ),
            "above 4",
        ),
        row(
            "skewness of z²",
            "if larger, a few rows decide on ⟨Z²⟩",
            lambda each: number(each.skewness_z2),
            f"at most {SKEWED_Z2:g}",
        ),
        row(
            "skewness of u²",
            "if larger, a few rows decide on RCE",
            lambda each: number(each.skewness_u2),
            f"at most {SKEWED_U2:g}",
        ),
        row(
            "skewness of E²",
            "if larger, a few rows decide on RCE",
            lambda each: number(each.skewness_e2),
            f"at most {SKEWED_E2:g}",
        ),
        row(
            "RCE",
            "relative difference of the root mean squares of u and E",
            lambda each: (
                f"{number(each.rce.value)} [{number(each.rce.low)}, "
                f"{number(each.rce.high)}]"
            ),
            "0",
        ),
        row(
            "rank correlation of |E| and u",
            "in parentheses: with normal errors and right u",
            lambda each: _beside(
                each.rank_correlation, each.rank_correlation_reference
            ),
            "as in parentheses",
        ),
        row(
            "area to the oracle",
            "of the confidence curve; in parentheses: as above",
            lambda each: _beside(each.area_to_oracle, each.area_to_oracle_reference),
            "as in parentheses",
        ),
    ]
    return TableView(["", *(s.name for s in evidence.stages), "right"], rows)


def _beside(value: float, reference: Estimate) -> str:
    return f"{value:.3f} ({reference.low:.3f} to {reference.high:.3f})"


def tabulate_selection(evidence: Evidence) -> TableView:
    """Return the candidates of a selection, with the reason of the choice."""
    assert evidence.selection is not None
    chosen = getattr(evidence.scaler, "name_", None)
    return tabulate_candidates(evidence.selection, chosen)


def tabulate_candidates(results: dict[str, list[Any]], chosen: str | None) -> TableView:
    """Return candidates as a selection keeps them, with a tick at the chosen one."""
    columns = ("candidate", "verdict", "loss", "nll", "difference", "standard_error")
    rows = []
    for name, verdict, loss, nll, worse, error in zip(
        *(results[column] for column in columns), strict=True
    ):
        cells = [
            Cell("–" if loss is None else f"{loss:.4f}"),
            Cell("–" if loss is None else f"{worse:.4f} ± {error:.4f}"),
            Cell("–" if nll is None else f"{nll:.4f}"),
            Cell(verdict, name == chosen, prose=True),
        ]
        rows.append((str(name), "", cells))
    header = ["candidate", "loss", "difference", "NLL of unseen rows", "verdict"]
    return TableView(header, rows)


def tabulate_comparison(comparison: Comparison) -> TableView:
    """Return the scores of each method; of many features, the worst."""
    variables = list(comparison.rows[0].test.s)
    many = len(variables) > MANY_FEATURES + 1
    each = variables[:1] if many else variables
    header = [
        "method",
        "NLL",
        "S_cal",
        *(f"S_{short(name, LONGEST_HEAD)}" for name in each),
    ]
    header += ["S_ada"] * many + ["S_tot"]
    header += [f"valid {short(name, LONGEST_HEAD)}" for name in each] + [
        "least valid"
    ] * many
    rows = []
    for row in comparison.rows:
        card, local = row.test, row.test_local
        numbers = [card.nll, card.s_cal, *(card.s[name] for name in each)]
        numbers += [card.s_ada] * many + [card.s_tot]
        shares = [local[name].fraction_valid for name in each]
        shares += [min(r.fraction_valid for r in local.values())] * many
        cells = [Cell(number(v)) for v in numbers] + [Cell(percent(v)) for v in shares]
        rows.append((row.name, "", cells))
    return TableView(header, rows)
