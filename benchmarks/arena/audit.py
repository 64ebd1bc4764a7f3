"""The audit: published uncertainties, before and after recalibration.

    python -m benchmarks.arena.audit --sets FOLDER --out docs

It needs nothing but sigmascale and Polars. A set is a line of audit.csv and a file
NAME.csv, .csv.gz or .parquet of the folder, with the columns of the arena (E, u, X1,
..., G1, ..., group), and `split`: "cal" or "test"; without it, halves are drawn. Rows
of "test" are tested, as published and after `Recalibrator()` was fitted to "cal".
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import sigmascale as ss

from .parts import files_of, halves, part_of, read_table

LIST = Path(__file__).with_suffix(".csv")


def audited(folder: Path) -> pl.DataFrame:
    """Return a line a set: RMS z, coverage, bound and result, before and after."""
    files, lines = files_of(folder), []
    for line in pl.read_csv(LIST).iter_rows(named=True):
        name = line["set"]
        if name not in files:
            msg = f"{folder}: there is no file of {name}, which {LIST.name} lists."
            raise SystemExit(msg)
        known, new = calibration_and_test(files[name])
        after = ss.Recalibrator().fit(known).apply(new)
        found = {"set": name, "what": line["what"], "u": line["u"]}
        found |= {"repository": line["repository"], "rows": new.n_rows}
        for when, rows in (("published", new), ("recalibrated", after)):
            v = ss.validate(rows)
            found[f"rms_z_{when}"] = float(np.sqrt(rows.mean(rows.z2)))
            found[f"coverage_{when}"] = ss.scores.coverage(rows)
            found[f"bound_{when}"] = v.bound
            found[f"result_{when}"] = v.result
        lines.append(found)
    return pl.DataFrame(lines).with_columns(pl.col(pl.Float64).round_sig_figs(4))


def calibration_and_test(path: Path) -> tuple[ss.Predictions, ss.Predictions]:
    """Return the rows of a set to fit to, and those to test."""
    table = read_table(path)
    part = part_of(table, str(path))
    if "split" not in table.columns:
        known, new = halves(part, 0, len(part))
    else:
        known, new = (
            part.take((table["split"] == name).to_numpy()) for name in ("cal", "test")
        )
    return known.predictions, new.predictions


def write_audit(sets: Path, out: Path) -> None:
    """Test all sets, and write audit.csv into the folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = audited(sets)
    (out / "arena").mkdir(parents=True, exist_ok=True)
    table.write_csv(out / "arena" / "audit.csv")


def main() -> None:
    """Read the options, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena.audit")
    parser.add_argument("--sets", type=Path, required=True, help="folder of the files")
    parser.add_argument("--out", type=Path, required=True, help="folder of arena/")
    options = parser.parse_args()
    write_audit(options.sets, options.out)


if __name__ == "__main__":
    main()
