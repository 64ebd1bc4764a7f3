"""The table of the page of the paper that says how well the numbers agree."""

import csv
from collections import Counter
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "paper" / "results" / "tables.csv"
SCORES = ("NLL", "S_cal", "S_u", "S_X1", "S_X2", "S_tot")
VALID = ("u", "X1", "X2")
MEANING = {
    "none of the scores differs": "of f_v: another seed of the bootstrap",
    "optimiser": "our factors have another, lower loss than the published ones",
    "mapping": "test rows were given the factor of another bin",
    "one draw": "one simulated set was printed, not the mean of many",
    "groups lost": "some groups were dropped by mistake",
}


def key_of(row):
    """Return what identifies a row of the tables."""
    return tuple(row[k] for k in ("n_bins", "binning", "dataset", "scaling"))


def agreement():
    """Return how many cells agree with the published ones, and why others do not."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    published = {key_of(row) for row in rows if row["source"] == "published"}
    number, cells, agree, same = Counter(), Counter(), Counter(), Counter()
    for row in rows:
        if row["source"] != "ours" or key_of(row) not in published:
            continue
        differs = set(row["differs"].split())
        reason = row["why"] if differs & set(SCORES) else "none of the scores differs"
        present = [name for name in SCORES if row[name]]
        number[reason] += 1
        cells[reason] += len(present)
        agree[reason] += sum(name not in differs for name in present)
        same[reason] += sum(not {f"fv_{x}_lo", f"fv_{x}_hi"} & differs for x in VALID)
    header = (
        "| rows of the tables | number | scores that agree "
        "| intervals of f_v that agree | why the others do not |"
    )
    lines = [header, "| --- | ---: | ---: | ---: | --- |"]
    lines += [
        f"| {reason} | {n} | {agree[reason]} of {cells[reason]} "
        f"| {same[reason]} of {len(VALID) * n} | {MEANING.get(reason, reason)} |"
        for reason, n in number.most_common()
    ]
    lines.append(
        f"| all | {number.total()} | {agree.total()} of {cells.total()} "
        f"| {same.total()} of {len(VALID) * number.total()} | |"
    )
    return "\n".join(lines)
