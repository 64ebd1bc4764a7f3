"""``python -m paper``: compute every table and figure of the paper, and write them."""

from __future__ import annotations

import argparse
from pathlib import Path

from sigmascale._support.files import whole_file, write_text
from sigmascale.predictions.datasets import fetch_qm9

from . import figures, pages
from .study import StudyData, run_beyond, run_tables


def run(
    data: StudyData,
    out: Path,
    *,
    seed: int = 0,
    n_draws: int = 1000,
    step: int = 1,
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
        ("tables.csv", pages.tables_csv(study)),
        ("deviations.md", pages.deviations_page(study)),
        ("beyond.md", pages.beyond_page(joint)),
        ("beyond.csv", pages.beyond_csv(joint)),
    ):
        write_text(out / name, text)
        written.append(out / name)
    print("Figures: the study of bin numbers ...", flush=True)
    for name, figure in (
        ("figure1", figures.figure1(data, seed=seed)),
        ("figure2", figures.figure2(data, seed=seed, step=step)),
        ("figure3", figures.figure3(joint)),
    ):
        for ending in ("png", "pdf"):
            path = out / f"{name}.{ending}"
            with whole_file(path) as part:
                # no date in the file, so that the same run gives the same bytes
                metadata = {"CreationDate": None} if ending == "pdf" else None
                figure.savefig(part, format=ending, dpi=200, metadata=metadata)
            written.append(path)
    return written


def main(arguments: list[str] | None = None) -> None:
    """Run the study on QM9 or, without it, on built-in molecules."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the QM9 files")
    parser.add_argument("--out", type=Path, default=Path("paper/results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=1000, help="simulated sets")
    parser.add_argument("--step", type=int, default=1, help="between numbers of bins")
    chosen = parser.parse_args(arguments)
    if chosen.data is not None:
        data = StudyData.qm9(fetch_qm9(folder=chosen.data))
    else:
        data = StudyData.synthetic(chosen.seed)
        print("No --data given: this runs on built-in synthetic molecules, not QM9.")
    print(f"Data: {data.name}. This takes a few minutes.", flush=True)
    written = run(
        data, chosen.out, seed=chosen.seed, n_draws=chosen.draws, step=chosen.step
    )
    print("Written:", *written, sep="\n  ")


if __name__ == "__main__":
    main()
