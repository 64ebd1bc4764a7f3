"""Run every rival over every set: ``python -m benchmarks.arena``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
if __name__ == "__main__":  # before NumPy starts its threads; processes inherit it
    os.environ.update(dict.fromkeys(THREADS, "1"))

import polars as pl  # noqa: E402

from .audit import write_audit  # noqa: E402
from .results import OURS, write_results  # noqa: E402
from .running import FOLDER, all_sets, build, described, table_of, work  # noqa: E402

SMALL = (
    *("concrete_forest", "births_ridge", "diabetes_gp", "sacramento_knn", "cps_ridge"),
    "labels_500",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run everything, and write what came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena")
    add = parser.add_argument
    add("--rival", type=Path, action="append", default=[], help="file with your own")
    add("--only", action="append", help="name of a rival, if not all; repeatable")
    add("--without", action="append", default=[], help="name of one that stays away")
    add("--set", action="append", help="name of a set, if not all; repeatable")
    add("--sets", type=Path, help="folder with sets of yours, beside the built-in ones")
    add("--audit", type=Path, help="folder with the sets that audit.csv lists")
    add("--halvings", type=int, default=10, help="of each set, or draws of a world")
    add("--rows", type=int, default=1000, help="at most, to learn from and to judge by")
    add("--small", action="store_true", help="a few sets, two halvings; minutes")
    add("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    add("--cache", type=Path, default=Path("bench-output/arena"), help="folder")
    add("--out", type=Path, default=Path("bench-output"), help="folder of arena/*.csv")
    options = parser.parse_args(arguments)
    if options.small:
        options.set, options.halvings = options.set or list(SMALL), 2
        options.rows = min(options.rows, 500)

    known = sorted(x for x in FOLDER.glob("rivals/*.py") if x.stem != "__init__")
    told = {p: described(p) for p in [*known, *(x.resolve() for x in options.rival)]}
    usable = [
        path
        for path, words in told.items()
        if not words["skipped"] and words["rival"] not in options.without
    ]
    if options.only:  # beside ours, which all are compared with
        wanted = {*OURS.values(), *options.only}
        usable = [path for path in usable if told[path]["rival"] in wanted]
    sets = [
        each
        for each in all_sets(options.sets)
        if options.set is None or each.name in options.set
    ]
    if not sets or {told[path]["rival"] for path in usable} <= {*OURS.values()}:
        names = ", ".join(words["rival"] for words in told.values())
        parser.error(f"no such set, or no rival; rivals are: {names}")

    cache, rows, start = options.cache, [], time.perf_counter()
    list(_done(options.jobs, build, [(each, cache) for each in sets]))
    given = (cache, options.halvings, options.rows)
    tasks = [(each, path, *given) for each in sets for path in usable]
    for count, found in enumerate(_done(options.jobs, work, tasks), start=1):
        rows += found
        if sys.stderr.isatty() or count % 50 == 0 or count == len(tasks):
            minutes = (time.perf_counter() - start) / 60
            words = f"{count} of {len(tasks)} after {minutes:.1f} min"
            end = "" if sys.stderr.isatty() else "\n"
            print(f"\r{words} ", end=end, file=sys.stderr, flush=True)
    order = [words["rival"] for words in told.values()]
    places = {each.name: k for k, each in enumerate(sets)}
    rows.sort(
        key=lambda row: (places[row["set"]], order.index(row["rival"]), row["halving"])
    )
    table = table_of(rows)
    failed = table.filter(pl.col("problem") != "").group_by("rival", "problem").len()
    for rival, problem, halvings in failed.iter_rows():
        print(f"{rival} failed in {halvings} halvings: {problem}")
    if options.audit:
        write_audit(options.audit, options.out)
    print("Written:", write_results(table, list(told.values()), options.out))


def _done(jobs: int, task: Any, calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield what calls return, as they end; of several processes if there are."""
    if jobs == 1:
        yield from (task(*call) for call in calls)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for each in as_completed([pool.submit(task, *call) for call in calls]):
            yield each.result()


if __name__ == "__main__":
    main()
