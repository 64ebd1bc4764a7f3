"""Reproduce the paper: ``python -m sigmascale.paper --data DIR --out DIR``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from .._support.checks import check_count
from .._support.files import whole_file, write_text
from ..datasets import fetch_qm9
from ..exceptions import InvalidInputError
from ..judging.scan import BinScan, scan_bins
from . import beyond, deviations, figures, tables
from .study import StudyData, lexicographic_rank, run_tables

EPILOG = """\
example:
  python -m sigmascale.paper --data qm9 --out paper-output
"""


def isotonic_of_the_paper(scan: BinScan, data: StudyData, seed: int) -> BinScan:
    """Take the isotonic reference from the data's authors rather than from our fit."""
    import numpy as np

    from ..judging.local import local_zms_by_variable
    from ..judging.scores import scorecard

    test = data.test
    ties = lexicographic_rank(data.isotonic, np.arange(test.u.size))
    rows = (test.error, data.isotonic, test.features)
    local = local_zms_by_variable(*rows, ties=ties, rng=seed)
    return replace(
        scan,
        isotonic=scorecard(*rows, ties=ties),
        isotonic_valid={name: each.fraction_valid for name, each in local.items()},
    )


def run(
    data: StudyData, out: Path, *, seed: int, n_draws: int, step: int
) -> list[Path]:
    """Compute everything and write it; return the paths in the order of reading."""
    out.mkdir(parents=True, exist_ok=True)  # or fail now, not minutes later
    print("Tables I to III: 24 fits, 18 of them optimised ...", flush=True)
    study = run_tables(data, seed=seed, n_draws=n_draws)
    print("Beyond the paper: joint recalibrators ...", flush=True)
    joint = beyond.run_beyond(data, seed=seed)
    written = []
    for name, text in (
        ("tables.md", tables.to_markdown(study)),
        ("tables.tex", tables.to_latex(study)),
        ("tables.csv", tables.to_csv(study)),
        ("deviations.md", deviations.to_markdown(study)),
        ("beyond.md", beyond.to_markdown(joint)),
        ("beyond.csv", beyond.to_csv(joint)),
    ):
        write_text(out / name, text)
        written.append(out / name)
    print(f"Figures: bin scan, {n_draws} simulated sets a point ...", flush=True)
    scan = scan_bins(
        (data.training.frame, data.training.error),
        (data.test.frame, data.test.error),
        n_bins=range(2, 100, step),
        n_draws=n_draws,
        rng=seed,
    )
    scan = isotonic_of_the_paper(scan, data, seed)
    for name, figure in (
        ("figure1", figures.figure1(data, seed=seed)),
        ("figure2", figures.figure2(scan)),
        ("figure3", beyond.figure3(joint)),
    ):
        for ending in ("png", "pdf"):
            path = out / f"{name}.{ending}"
            with whole_file(path) as part:
                # no date in the file, so that the same run gives the same bytes
                metadata = {"CreationDate": None} if ending == "pdf" else None
                figure.savefig(part, dpi=200, metadata=metadata)
            written.append(path)
    return written


def reproduce(
    folder: Path | None,
    *,
    download: bool,
    out: Path,
    seed: int,
    n_draws: int,
    step: int,
) -> None:
    """Run the study on QM9 or, without it, on built-in molecules; tell what it does."""
    check_count(step, "--step")
    check_count(n_draws, "--draws")
    if folder is not None or download:
        data = StudyData.qm9(fetch_qm9(folder=folder))
    else:
        data = StudyData.synthetic(seed)
        print("No --data given: this runs on built-in synthetic molecules, not QM9.")
    print(f"Data: {data.name}. This takes a few minutes.", flush=True)
    written = run(data, out, seed=seed, n_draws=n_draws, step=step)
    print("Written:")
    for path in written:
        print(f"  {path}")


def main(argv: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(
        prog="python -m sigmascale.paper",
        description="Tables I to III and Figures 1 and 2 of arXiv:2310.11978, with our "
        "values beside the published ones.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the QM9 files; else built-in molecules"
    )
    parser.add_argument("--download", action="store_true", help="fetch the QM9 files")
    parser.add_argument("--out", type=Path, default=Path("paper-output"))
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--draws", type=int, default=1000, help="simulated sets (default: %(default)s)"
    )
    parser.add_argument(
        "--step",
        type=int,
        default=1,
        help="step of the bin scan (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    try:
        reproduce(
            options.data,
            download=options.download,
            out=options.out,
            seed=options.seed,
            n_draws=options.draws,
            step=options.step,
        )
    except (InvalidInputError, OSError, ImportError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
