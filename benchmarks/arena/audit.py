"""The audit: how right published uncertainties are, as they came and recalibrated.

    python -m benchmarks.arena.audit --sets FOLDER --out docs

It needs nothing but sigmascale and Polars. A set is a line of audit.csv and a file
NAME.csv, .csv.gz or .parquet of the folder, with the columns of the arena (E, u, X1,
..., G1, ..., group), and `split`: "cal" or "test"; without it, halves are drawn. Rows
of "test" are judged, as they came and after `Recalibrator()` learned from "cal".
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import polars as pl

import sigmascale as ss
from sigmascale.predictions.diagnostics import leaked_rows
from sigmascale.validation.headline import worst_verdict
from sigmascale.validation.words import at_most, off_by, u_words

from .parts import files_of, halves, part_of, read_table

LIST = Path(__file__).with_suffix(".csv")
UNTOLD = 99.0  # times, from which T is no number to act on
BEGIN, END = "<!-- audit -->", "<!-- end of audit -->"  # of the table in a page


def audited(folder: Path) -> pl.DataFrame:
    """Return the table: a line a set, T before and after, and what is wrong."""
    files, lines = files_of(folder), []
    for line in pl.read_csv(LIST).iter_rows(named=True):
        name = line["set"]
        if name not in files:
            msg = f"{folder}: there is no file of {name}, which {LIST.name} lists."
            raise SystemExit(msg)
        learn, judge = learned_and_judged(files[name])
        after = ss.Recalibrator().fit(learn).apply(judge)
        found = {"set": name, "what": line["what"], "u": line["u"]}
        found |= {"repository": line["repository"], "rows": judge.n_rows}
        for claim, short in (("u", "size"), ("intervals", "intervals")):
            for when, rows in (("published", judge), ("recalibrated", after)):
                found[f"{short}_{when}"] = ss.validate(rows, claim=claim).T
        found["wrong"] = in_five_words(ss.validate(judge))
        lines.append(found)
    return pl.DataFrame(lines).with_columns(pl.col(pl.Float64).round_sig_figs(5))


def learned_and_judged(path: Path) -> tuple[ss.Predictions, ss.Predictions]:
    """Return the rows of a set to learn from, and those to judge."""
    table = read_table(path)
    part = part_of(table, str(path))
    if "split" not in table.columns:
        learn, judge = halves(part, 0, len(part))
    else:
        learn, judge = (
            part.take((table["split"] == name).to_numpy()) for name in ("cal", "test")
        )
    return learn.predictions, judge.predictions


def in_five_words(v: ss.Validation) -> str:
    """Return what is wrong with uncertainties: the gravest, in about five words."""
    if leaked := leaked_rows(v.rows).size:
        return f"{leaked:,} rows the model knew"
    average, bias = v.verdicts["average"], v.verdicts["bias"]
    if average.answer == "no" and average.worst is not None:
        return f"u {off_by(average.worst.estimate)}"
    worst = worst_verdict(v.verdicts)
    if worst is not None and worst.name == "coverage":
        return f"{100 * v.level:g} % intervals miss somewhere"
    if worst is not None:
        return "right on average, not locally"
    if bias.answer == "no" and bias.worst is not None:
        return f"predictions off by {u_words(bias.worst.estimate)}"
    if average.answer == "cannot tell" and v.rows.groups is not None:
        return f"{v.rows.groups.max() + 1:,} groups are too few"
    if average.answer == "cannot tell":
        return "rare errors hide the size"
    return "nothing" if v.passed else "nothing that rows show"


def markdown(table: pl.DataFrame) -> str:
    """Return the table as it stands in the page."""
    lines = [
        "| set | what u is | rows | u: T published | recalibrated | intervals: "
        "T published | recalibrated | what is wrong |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in table.iter_rows(named=True):
        T = [_T(row[f"{x}_published"]) for x in ("size", "intervals")]
        after = [_T(row[f"{x}_recalibrated"]) for x in ("size", "intervals")]
        source = row["repository"]
        name = f"[{source.split('/')[1]}](https://github.com/{source})"
        cells = [f"{name}: {row['what']}", row["u"], f"{row['rows']:,}"]
        cells += [T[0], after[0], T[1], after[1], row["wrong"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _T(value: float) -> str:
    return at_most(value) if value < UNTOLD else "?"


def with_audit(page: str, folder: Path) -> str:
    """Return a page with the audit of a folder's audit.csv in its place."""
    start, rest = page.split(BEGIN)
    _, end = rest.split(END)
    table = markdown(pl.read_csv(folder / "audit.csv"))
    return f"{start}{BEGIN}\n\n{table}\n\n{END}{end}"


def write_audit(sets: Path, out: Path) -> None:
    """Judge all sets, and write what was found into the folder of the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = audited(sets)
    (out / "arena").mkdir(parents=True, exist_ok=True)
    table.write_csv(out / "arena" / "audit.csv")


def main() -> None:
    """Read the options, judge, and put the table into the page that is there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena.audit")
    parser.add_argument("--sets", type=Path, required=True, help="folder of the files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page")
    options = parser.parse_args()
    write_audit(options.sets, options.out)
    page = options.out / "arena.md"
    if page.exists():
        text = with_audit(page.read_text("utf-8"), options.out / "arena")
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
