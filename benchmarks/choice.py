"""How well the default chooses, and what it chooses by.

    python -m benchmarks.choice --sets FOLDER              halves of calibration parts
    python -m benchmarks.choice --sets FOLDER --test       calibration and test parts

Rules are developed on random halves of the calibration parts, one to learn from and one
to judge by, so that the test parts of the sets stay unseen until the rules stand. The
format of the sets is described in recalibration/README.md.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale.scaling.selected import default_candidates

from .recalibration.sets import Part, files_of, read_set

DIFFERENT = 0.02  # of the NLL, to be called better or worse
MUCH = 0.1  # of the log score, that Student's t gains
WORST = 5.0  # a set's regret counts up to this


def main() -> None:
    """Print a line a set, and how often the default is better or worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice")
    folder = os.environ.get("RECALIBRATION_SETS")
    parser.add_argument("--sets", type=Path, default=folder, required=not folder)
    parser.add_argument("--halves", type=int, default=3, help="random halvings a set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="judge by the test parts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of sets that are what warnings are about
    lines = []
    for name, path in files_of(Path(options.sets)).items():
        found = read_set(name, path)
        if options.test:
            lines.append(judge(name, found.calibration, found.test))
            continue
        for k in range(options.halves):
            rng = np.random.default_rng([options.seed, k])
            lines.append(judge(name, *halves(found.calibration, rng)))
    table = pl.DataFrame(lines)
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        float_precision=3,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
    ):
        print(table)
    rounds = 1 if options.test else options.halves
    nll = pl.col("nll")
    print(f"of {table.height // rounds} sets, on average over {rounds} rounds:")
    for words, share in {
        "better than isotonic": nll < pl.col("isotonic") - DIFFERENT,
        "worse than isotonic": nll > pl.col("isotonic") + DIFFERENT,
        "worse than one factor": nll > pl.col("one_factor") + DIFFERENT,
        f"Student's t better by {MUCH}": pl.col("student") < nll - MUCH,
        "Student's t worse": pl.col("student") > nll + DIFFERENT,
    }.items():
        count = table.select(share.sum()).item()
        print(f"  {words:30s} {count / rounds:6.1f}")
    regret = table.select((nll - pl.col("best")).clip(upper_bound=WORST).mean()).item()
    print(f"  {'mean regret':30s} {regret:6.3f}")


def halves(part: Part, rng: np.random.Generator) -> tuple[Part, Part]:
    """Return a part's rows in two random halves; groups stay together."""
    n = part.error.size
    labels = np.arange(n) if part.groups is None else part.groups
    group = np.unique(labels, return_inverse=True)[1]
    count = int(group.max()) + 1
    first = (rng.permutation(count) < count // 2)[group]
    return _taken(part, first), _taken(part, ~first)


def _taken(part: Part, rows: np.ndarray) -> Part:
    groups = None if part.groups is None else part.groups[rows]
    return Part(part.X.filter(rows), part.error[rows], groups)


def judge(name: str, known: Part, new: Part) -> dict[str, object]:
    """Return what the default and its candidates make of new rows."""
    chosen = ss.SelectedScaling().fit(known.X, known.error, groups=known.groups)
    student = ss.SelectedScaling(distribution="student")
    student.fit(known.X, known.error, groups=known.groups)
    nll = {
        each: ss.nll(
            new.error,
            scaler.fit(known.X, known.error, groups=known.groups).predict(new.X),
        )
        for each, scaler in default_candidates(None, 0).items()
    }
    return {
        "set": name,
        "chosen": chosen.name_,
        "nll": ss.nll(new.error, chosen.predict(new.X)),
        "one_factor": nll["temperature"],
        "isotonic": nll["isotonic"],
        "best": min(nll.values()),
        "student": -student.score(new.X, new.error),
    }


if __name__ == "__main__":
    main()
