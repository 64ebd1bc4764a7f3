"""Run every method over every set: ``python -m benchmarks.recalibration``."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from .methods import METHODS, without_missing
from .page import draw_ranks, write_csv, write_page, write_wins
from .running import known_methods, work
from .scoring import Outcome
from .sets import BUILT_IN, files_of

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")


def main() -> None:
    """Read the options, run everything, and write what came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recalibration")
    add = parser.add_argument
    folder = os.environ.get("RECALIBRATION_SETS")
    add(
        "--sets",
        type=Path,
        default=folder and Path(folder),
        help="folder of sets; RECALIBRATION_SETS if not given, built-in ones if that "
        "is not set",
    )
    add("--method", type=Path, action="append", default=[], help="file with your own")
    add("--only", action="append", help="run this method only; can be repeated")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    add("--out", type=Path, default=Path("bench-output"), help="folder for results")
    options = parser.parse_args()

    methods, skipped = without_missing(known_methods(options.method).values())
    if options.only:
        methods = [each for each in methods if each.name in options.only]
    if not methods:
        parser.error(f"no such method; there are: {', '.join(m.name for m in METHODS)}")
    paths: dict[str, Path | None] = (
        dict.fromkeys(BUILT_IN) if options.sets is None else {**files_of(options.sets)}
    )
    for name, reason in skipped.items():
        print(f"{name}: {reason}", file=sys.stderr)

    os.environ.update(dict.fromkeys(THREADS, "1"))  # which the processes inherit
    found: dict[tuple[str, str], Outcome] = {}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        running: list[Future[Outcome]] = [
            pool.submit(work, name, path, method.name, options.method)
            for name, path in paths.items()
            for method in methods
        ]
        for count, each in enumerate(as_completed(running), start=1):
            outcome = each.result()
            found[outcome.set, outcome.method] = outcome
            if sys.stderr.isatty():
                print(f"\r{count} of {len(running)} ", end="", file=sys.stderr)
    outcomes = [found[name, method.name] for name in paths for method in methods]

    options.out.mkdir(parents=True, exist_ok=True)
    base = options.out / "recalibration"
    command = "python -m benchmarks.recalibration"
    if options.sets is not None:
        command = f"RECALIBRATION_SETS=FOLDER {command}"
    write_csv(outcomes, base.with_suffix(".csv"))
    write_wins(outcomes, options.out / "recalibration_wins.csv")
    write_page(outcomes, skipped, command, base.with_suffix(".md"))
    draw_ranks(outcomes, base.with_suffix(".png"))
    print(base.with_suffix(".md").read_text(encoding="utf-8"))
    print(f"Written: {base}.md, .csv and .png", file=sys.stderr)


if __name__ == "__main__":
    main()
