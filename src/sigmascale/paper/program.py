"""The whole study: compute every table and figure of the paper, and write them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .._support.checks import check_count
from .._support.files import whole_file, write_text
from ..datasets import fetch_qm9
from ..judging.bin_numbers import BinScan, scan_bins
from . import figures, pages
from .study import (
    StudyData,
    in_file_order,
    in_notation,
    measure_set,
    run_beyond,
    run_tables,
)


def isotonic_of_the_paper(scan: BinScan, data: StudyData, seed: int) -> BinScan:
    """Take the isotonic reference from the data's authors rather than from our fit."""
    u = data.isotonic
    found = measure_set(in_notation(data.test), seed, u=u, ties=in_file_order(u))
    return replace(
        scan,
        isotonic=found.scores,
        isotonic_valid={x: each.fraction_valid for x, each in found.local.items()},
    )


def run(
    data: StudyData, out: Path, *, seed: int, n_draws: int, step: int
) -> list[Path]:
    """Compute everything and write it; return the paths in the order of reading."""
    out.mkdir(parents=True, exist_ok=True)  # or fail now, not minutes later
    print("Tables I to III: 24 fits, 18 of them optimised ...", flush=True)
    study = run_tables(data, seed=seed, n_draws=n_draws)
    print("Beyond the paper: joint recalibrators ...", flush=True)
    joint = run_beyond(data, seed=seed)
    written = []
    for name, text in (
        ("tables.md", pages.tables_page(study)),
        ("tables.tex", pages.tables_latex(study)),
        ("tables.csv", pages.tables_csv(study)),
        ("deviations.md", pages.deviations_page(study)),
        ("beyond.md", pages.beyond_page(joint)),
        ("beyond.csv", pages.beyond_csv(joint)),
    ):
        write_text(out / name, text)
        written.append(out / name)
    print(f"Figures: bin scan, {n_draws} simulated sets a point ...", flush=True)
    scan = scan_bins(
        (data.training.X, data.training.error),
        (data.test.X, data.test.error),
        n_bins=range(2, 100, step),
        n_draws=n_draws,
        rng=seed,
    )
    scan = isotonic_of_the_paper(scan, data, seed)
    for name, figure in (
        ("figure1", figures.figure1(data, seed=seed)),
        ("figure2", figures.figure2(scan)),
        ("figure3", figures.figure3(joint)),
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
) -> list[Path]:
    """Run the study on QM9 or, without it, on built-in molecules; tell what it does.

    Return what was written.
    """
    check_count(step, "step")
    check_count(n_draws, "n_draws")
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
    return written
