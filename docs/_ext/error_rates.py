"""The tables of error rates, from the study that benchmarks/verdicts.py has written."""

import re
from pathlib import Path

STUDY = Path(__file__).parents[2] / "benchmarks" / "studies" / "verdicts.md"
SIZES = ("1,000", "3,000", "10,000")
LAWS = ("normal", "t(4)", "groups of 5")


def section(name):
    """Return the lines of a section of the study, and the sentence that sums it up."""
    text = STUDY.read_text(encoding="utf-8").split(f"## {name}\n")[1].split("\n## ")[0]
    header, _, *rows = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    names = header.split(" | ")
    lines = [dict(zip(names, row.split(" | "), strict=True)) for row in rows]
    summary = re.search(r"^All: (.*)$", text, re.MULTILINE)
    return lines, summary[1] if summary else ""


def share(line, column):
    """Return a share with two decimals, and its standard error."""
    p = float(line[column])
    error = (p * (1 - p) / int(line["sets"])) ** 0.5
    return f"{p:.2f} ± {error:.2f}" if error else f"{p:.2f}"


def wrong():
    """Return how often results are wrong where u is right, or off by the tolerance."""
    _, right = section("U is right")
    lines, boundary = section("U is off by just the tolerance")
    # the worst law of errors, whatever the number of rows
    found = {}
    for line in lines:
        sets = int(line["sets"])
        passed, n = found.get((line["errors"], line["u"]), (0.0, 0))
        found[line["errors"], line["u"]] = (
            passed + sets * float(line["its pass"]),
            n + sets,
        )
    (law, fault), (passed, n) = max(
        found.items(), key=lambda item: item[1][0] / item[1][1]
    )
    p = passed / n
    error = (p * (1 - p) / n) ** 0.5
    return (
        f"**Wrong results.** Where u is right: {right}\n\nWhere it is off by exactly "
        f"the tolerance, in a fifth or everywhere: {boundary} Most often for "
        f"{law}, {fault}: pass {p:.3f} ± {error:.3f} of {n}."
    )


def passes():
    """Return how often a right u passes, by the law of errors and the rows."""
    lines, _ = section("U is right")
    lines = [line for line in lines if line["u"] == "nothing"]
    rows = ["| law of errors | " + " | ".join(f"{n} rows" for n in SIZES) + " |"]
    rows.append("| --- |" + " ---: |" * len(SIZES))
    for law in dict.fromkeys(line["errors"] for line in lines):
        found = {x["rows"]: share(x, "pass") for x in lines if x["errors"] == law}
        rows.append(f"| {law} | " + " | ".join(found[n] for n in SIZES) + " |")
    return "\n".join(rows)


def faults():
    """Return how often a fault fails, by its kind, the rows and the law of errors."""
    lines, _ = section("U is off by more")
    found = {}
    for line in lines:
        place = found.setdefault((line["u"], line["rows"]), {})
        place[line["errors"]] = share(line, "FAIL")
    rows = ["| fault | rows | " + " | ".join(LAWS) + " |"]
    rows.append("| --- | ---: |" + " ---: |" * len(LAWS))
    for (fault, n), place in sorted(found.items(), key=lambda x: x[0][0]):
        cells = " | ".join(place.get(law, "") for law in LAWS)
        rows.append(f"| {fault} | {n} | {cells} |")
    return "\n".join(rows)
