"""What the study writes: its tables, the page of deviations, and what is beyond.

Tables have our numbers above those that were published. Deviations are where text, code
and data of the paper disagree, each with both numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from sigmascale.scores import zms

from .study import (
    BIN_NUMBERS,
    MIN_GROUP,
    SCORES,
    VALID,
    Beyond,
    Study,
    StudyRow,
    Values,
    exceeds,
    valid_compositions,
)

FRACTIONS = ("u", "X1", "X2")
SEED = "bootstrap"
HEADER = (
    *("binning", "dataset", "scaling", "source"),
    *SCORES,
    *(f"f_v,{x}" for x in FRACTIONS),
    "why",
)
INTRODUCTION = """\
Scores and validation metrics of {name}. A star marks a value of ours that differs from
the published one in its printed digits; *why* names the reason, which the page of
deviations explains. *slip kept* is what comes out when a slip of the published code is
followed. Random numbers: seed {seed}. The order of ties alone moves S_X1 and S_X2 by
about 0.006 and S_tot by about 0.01 on QM9: smaller differences rank nothing.
"""
_SOURCES = {"ours": "ours", "as_published": "slip kept", "published": "published"}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; a bar within a cell is escaped."""
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *rows)]
    lines.insert(1, ["---"] * len(header))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sources_of(row: StudyRow) -> list[tuple[str, Values, str]]:
    """Return where the numbers of a row come from, these, and why ours differ."""
    return [
        (title, values, explain(row) if source == "ours" else "")
        for source, title in _SOURCES.items()
        if (values := getattr(row, source)) is not None
    ]


def explain(row: StudyRow) -> str:
    """Return the name of the deviation that explains a row, if it needs one."""
    if any(row.differs(name) for name in SCORES):
        return row.deviation or "unexplained"
    return SEED if any(row.differs(name) for name in row.ours) else ""


def _score(values: Values, name: str) -> str:
    # + 0.0 turns a rounded -0.00 into 0.00
    return f"{round(values[name], 2) + 0.0:.2f}" if name in values else "-"


def _fraction(values: Values, x: str) -> str:
    return f"[{values[f'fv_{x}_lo']:.2f}, {values[f'fv_{x}_hi']:.2f}]"


def tables_page(study: Study) -> str:
    """Return the three tables as Markdown; a star marks values of ours that differ."""
    parts = ["# Tables I to III\n"]
    parts.append(INTRODUCTION.format(name=study.data.name, seed=study.seed))
    for number, n_bins in zip(("I", "II", "III"), BIN_NUMBERS, strict=True):
        lines = []
        above: tuple[str, ...] = ("", "", "")
        for row in study.rows:
            if row.key[0] != n_bins:
                continue
            for source, values, why in sources_of(row):
                star = "\\*" if source == "ours" else ""
                cells = [
                    _score(values, name) + star * row.differs(name) for name in SCORES
                ]
                for x in FRACTIONS:
                    differs = any(row.differs(f"fv_{x}_{end}") for end in ("lo", "hi"))
                    cells.append(_fraction(values, x) + star * differs)
                # binning, dataset and scaling, empty where they repeat those above
                here = row.key[1:]
                same = [here[: i + 1] == above[: i + 1] for i in range(3)]
                titles = [
                    "" if repeats else text
                    for text, repeats in zip(here, same, strict=True)
                ]
                lines.append([*titles, source, *cells, why])
                above = here
        title = f"## Table {number}. {n_bins} bins\n"
        parts += [title, markdown_table(HEADER, lines)]
    return "\n".join(parts)


def tables_csv(study: Study) -> str:
    """Return all lines at full precision, one per row and source."""
    found = {name for row in study.rows for name in row.ours}
    names = [*SCORES, *sorted(found - set(SCORES))]
    keys = ("n_bins", "binning", "dataset", "scaling")
    lines: list[Sequence[object]] = [(*keys, "source", *names, "differs", "why")]
    for row in study.rows:
        for source, values, why in sources_of(row):
            ours = source == _SOURCES["ours"]
            differing = [name for name in names if row.differs(name)] if ours else []
            numbers = [repr(float(values[n])) if n in values else "" for n in names]
            lines.append((*row.key, source, *numbers, " ".join(differing), why))
    return _csv(lines)


def _csv(lines: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


# -- deviations ------------------------------------------------------------------------


def deviations_page(study: Study) -> str:
    """Return the page of deviations: numbers in the words of ``deviations.md``."""
    text = (Path(__file__).parent / "deviations.md").read_text("utf-8")
    others = (
        "These are not the paper's data: *published* numbers are left out, and what "
        "follows shows the size of each effect on the built-in molecules.\n\n"
    )
    return text.format(
        name=study.data.name,
        others="" if study.data.published else others,
        sign=_lines(_sign(study)),
        mapping=_lines(
            (
                str(n_bins),
                f"{study.moved[n_bins]:.0%}",
                *_sources(study[n_bins, "X1", "test", "NLL"], "S_tot"),
            )
            for n_bins in BIN_NUMBERS
        ),
        optimiser=_lines(_optimiser(study)),
        one_draw=_lines(_one_draw(study)),
        n_draws=study.simulated.draws["S_u"].size,
        groups=_lines(
            (dataset, *_sources(study[20, "OxNy", dataset, "NLL"], "S_tot"))
            for dataset in ("training", "test")
        ),
        **_groups(study),
        bootstrap=_bootstrap(study),
        seeds=_lines(_seeds(study)),
    )


def _lines(rows: Iterable[Sequence[str]]) -> str:
    """Return the lines of a table without its head."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _sources(row: StudyRow, name: str) -> tuple[str, ...]:
    return tuple(
        _score(values or {}, name)
        for values in (row.published, row.as_published, row.ours)
    )


def _sign(study: Study) -> Iterator[Sequence[str]]:
    training = study.data.training
    factor = float(np.sqrt(zms(training)))
    for text, s in (
        ("s = v^(-1/2), the text", 1 / factor),
        ("s = v^(+1/2), the code and ours", factor),
    ):
        scaled = zms(training.with_y_std(s * training.y_std))
        yield text, f"{s:.3f}", f"{scaled:.3f}"


def _optimiser(study: Study) -> Iterator[Sequence[str]]:
    losses = {
        "S_con": ("S_cal", "S_u"),
        "S_ada": ("S_cal", "S_X1", "S_X2"),
        "S_tot": ("S_tot",),
    }
    for n_bins, by, loss in product(BIN_NUMBERS, ("u", "X1"), losses):
        row = study[n_bins, by, "training", loss]
        start = study[n_bins, by, "training", "NLL"]
        tabled = [
            "-" if values is None else f"{sum(values[p] for p in losses[loss]):.3f}"
            for values in (start.ours, row.published, row.ours)
        ]
        tabled[1] = tabled[1][:-1] if row.published else "-"  # has two decimals
        yield str(n_bins), by, loss, *tabled


def _one_draw(study: Study) -> Iterator[Sequence[str]]:
    row = study[20, "none", "test", "simulated"]
    for name in SCORES[1:]:
        ours = f"{row.ours[name]:.3f} ± {study.simulated.sd[name]:.3f}"
        yield name, _score(row.published or {}, name), ours


def _groups(study: Study) -> dict[str, int]:
    """Return how many groups there are, and the rows that the published code loses."""
    groups, of_test = study.data.groups
    labels, lost = valid_compositions(groups)
    small = ~exceeds(groups, of_test) & ~np.isin(groups, labels)
    return {
        "n_groups": len(labels),
        "least": MIN_GROUP,
        "lost": int(np.isin(groups, lost).sum()),
        "small": int(small.sum()),
    }


def _seeds(study: Study) -> Iterator[Sequence[str]]:
    """Yield the fractions of valid bins over seeds of the bootstrap."""
    keys = {
        "unscaled": (40, "none", "test", "none"),
        "isotonic": (40, "none", "test", "isotonic"),
        "40 bins of u": (40, "u", "test", "NLL"),
    }
    for (name, x), fractions in study.seeds.items():
        published = study[keys[name]].published or {}
        printed = _fraction(published, x) if published else "-"
        lowest, mean, highest = fractions.min(), fractions.mean(), fractions.max()
        yield name, x, f"{lowest:.2f}", f"{mean:.3f}", f"{highest:.2f}", printed


def _bootstrap(study: Study) -> str:
    """Return how far fractions of valid bins are from the published ones, if any."""
    gaps = [
        abs((row.as_published or row.ours)[end] - row.published[end])
        for row in study.rows
        if row.published is not None
        and row.key[3] != "simulated"
        and row.deviation != "optimiser"
        for end in VALID
    ]
    if not gaps:
        return ""
    return (
        f" In rows with analytic factors, the largest difference of a printed limit is "
        f"{max(gaps):.2f} and the mean {np.mean(gaps):.3f}."
    )


# -- beyond the paper ------------------------------------------------------------------


def beyond_page(beyond: Beyond) -> str:
    """Return the scores of the joint recalibrators, and what `validate` finds."""
    rows = [
        [
            name,
            *(_score(values, score) for score in SCORES),
            *(_fraction(values, x) for x in FRACTIONS),
        ]
        for name, values in beyond.table.items()
    ]
    lines = [
        "# Beyond the paper\n",
        f"Test set of {beyond.data.name}, fitted on the training set with default "
        "settings. Ties are broken by the unscaled u in every row, so that isotonic "
        "regression may differ from Table I in the last digit. No setting was chosen "
        "by looking at the test set.\n",
        markdown_table(("method", *HEADER[4:-1]), rows),
        "## What `validate` finds\n",
    ]
    lines += [f"- **{name}**: {words}" for name, words in beyond.results.items()]
    return "\n".join(lines) + "\n"


def beyond_csv(beyond: Beyond) -> str:
    """Return the same at full precision."""
    names = (*SCORES, *VALID)
    lines = [
        [name, *(repr(float(values[key])) for key in names), beyond.results[name]]
        for name, values in beyond.table.items()
    ]
    return _csv([["method", *names, "result"], *lines])
