"""The tables of the page of the benchmark, from the files in docs/arena."""

import csv
from pathlib import Path

import numpy as np

ARENA = Path(__file__).parents[1] / "arena"
OURS = {"kept": "sigmascale", "corrected": 'sigmascale, bias="auto"'}
SCORES = {
    "crps": "CRPS (%)",
    "interval_score": "interval score (%)",
    "slab_gap": "worst slab (points)",
}
WHEN = ("published", "recalibrated")
NO_BREAK = "\N{NO-BREAK SPACE}"


def read(name):
    """Return the lines of a file."""
    with (ARENA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def size():
    """Return how many methods and sets took part; bias="auto" is no other method."""
    n_rivals = len({row["rival"] for row in read("rivals.csv")}) - 1
    sets = {row["set"] for row in read("means.csv")}
    n_worlds = sum(name.endswith("_500") for name in sets)
    n_real = len(sets) - n_worlds
    return f"{n_rivals} methods, {n_real} real sets and {n_worlds} simulated worlds"


def markdown(header, rows, *, left=1):
    """Return a table, whose first columns are text and the others numbers."""
    marks = ["---"] * left + ["---:"] * (len(header) - left)
    lines = [header, marks]
    for row in rows:
        numbers = [cell.replace(" ", NO_BREAK) for cell in row[left:]]
        lines.append([*row[:left], *numbers])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def audit():
    """Return RMS z, coverage and results of published tables, before and after."""

    def rms_z(value):
        return f"{float(value):.2f}" if float(value) < 10 else f"{float(value):.0f}"

    def percent(value):
        return f"{100 * float(value):.0f}"

    def result(value):
        return "?" if value == "inconclusive" else value

    lines = []
    for row in read("audit.csv"):
        source = row["repository"]
        name = f"[{source.split('/')[1]}](https://github.com/{source}): {row['what']}"
        cells = [name, row["u"], f"{int(row['rows']):,}"]
        for key, text in (("rms_z", rms_z), ("coverage", percent), ("result", result)):
            cells.append(" → ".join(text(row[f"{key}_{when}"]) for when in WHEN))
        lines.append(cells)
    header = [
        "set",
        "what u is",
        "rows",
        "RMS z",
        "coverage (%)",
        "result (?: inconclusive)",
    ]
    return markdown(header, lines, left=2)


def audit_losses():
    """Return in how many published tables recalibration did not help."""
    rows = read("audit.csv")

    def farther(key, distance):
        values = (
            [abs(distance(float(row[f"{key}_{when}"]))) for when in WHEN]
            for row in rows
        )
        return sum(before < after for before, after in values)

    failed = [sum(row[f"result_{when}"] == "FAIL" for row in rows) for when in WHEN]
    return (
        f"Losses first: after recalibration {failed[1]} of {len(rows)} sets still fail "
        f"({failed[0]} as published). RMS z is farther from 1 than before in "
        f"{farther('rms_z', np.log)}, and coverage farther from 95 % in "
        f"{farther('coverage', lambda x: x - 0.95)}."
    )


def league(name):
    """Return ours less every rival of a league, on real sets."""
    rivals = {}
    for row in read("standings.csv"):
        if row["league"] == name and row["sets"] == "real":
            rivals.setdefault(row["rival"], {})[row["score"]] = row
    lines = []
    for rival, scores in rivals.items():
        cells = [rival]
        for score in SCORES:
            row = scores.get(score, {})
            if row.get("difference"):
                mean, error = 100 * float(row["difference"]), 100 * float(row["error"])
                cell = f"{mean:+.1f} ± {error:.1f} ({row['better']}:{row['worse']})"
                is_lost = mean > 0 and float(row["p"]) < 0.05
                cells.append(f"**{cell}**" if is_lost else cell.replace("-", "−"))
            else:
                cells.append("" if rival == OURS[name] else "–")
        cells.append(f"{100 * float(scores['coverage']['mean']):.1f}")
        difference = scores["interval_score"]["difference"] or "-inf"
        lines.append((-float(difference), cells))
    lines.sort(key=lambda line: line[0])
    header = ["ours less …", *SCORES.values(), "their coverage of 90 %"]
    return markdown(header, [cells for _, cells in lines])


def league_losses(name):
    """Return the scores and kinds of sets in which ours is behind, with p."""
    behind, ties = [], []
    for row in read("standings.csv"):
        is_behind = row["difference"] and float(row["difference"]) > 0
        if row["league"] == name and is_behind and row["p"]:
            score = row["score"].replace("slab_gap", "worst slab")
            p = float(row["p"])
            text = f"{score} of {row['rival']} ({row['sets']} sets, p = {p:.2g})"
            (behind if p < 0.05 else ties).append(text)
    return (
        f"Significantly behind in: {'; '.join(behind) or 'nothing'}. "
        f"Behind, not significantly: {'; '.join(ties) or 'nothing'}."
    )
