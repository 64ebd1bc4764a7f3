"""One rival on one set, by names, which other processes understand; and the cache."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

import sigmascale as ss

from . import real, worlds
from .parts import LEVELS, Part, files_of, halves, part_of, read_part
from .scoring import SCORES, score

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Set:
    """A set by its name: "real", of a "folder" or of a "world"."""

    name: str
    kind: str
    path: Path | None = None
    rows: int = 0


def all_sets(folder: Path | None) -> list[Set]:
    """Return all sets: real ones, simulated ones, and those of a folder."""
    found = [Set(name, "real") for name in real.REAL]
    found += [
        Set(f"{name}_{n}", "world", rows=n)
        for name in worlds.WORLDS
        for n in worlds.SIZES
    ]
    for name, path in (files_of(folder) if folder else {}).items():
        found.append(Set(name, "folder", path))
    return found


@lru_cache(20)  # halvings of a set, which rivals take in turn
def parts(each: Set, cache: Path, seed: int, most: int) -> tuple[Part, Part]:
    """Return rows to learn from and to judge by: the halving, or draw, of a seed."""
    if each.kind == "world":
        table, n = worlds.make(each.name.removesuffix(f"_{each.rows}"), each.rows, seed)
        part = part_of(table)
        return part.take(slice(None, n)), part.take(slice(n, None))
    path = each.path or cache / "sets" / f"{each.name}.parquet"
    return halves(read_part(path), seed, most)


def build(each: Set, cache: Path) -> None:
    """Predict a real set with our model, unless that was done before."""
    path = cache / "sets" / f"{each.name}.parquet"
    if each.kind == "real" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real.build(each.name).write_parquet(path)


def load_rival(path: Path) -> ModuleType:
    """Return a rival: a file with the functions `fit` and `predict_quantiles`."""
    spec = importlib.util.spec_from_file_location(f"arena_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        msg = f"{path}: there is no such file of Python."
        raise SystemExit(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("fit", "predict_quantiles"):
        if not callable(getattr(module, name, None)):
            msg = f"{path}: there is no function {name}."
            raise SystemExit(msg)
    return module


def described(path: Path) -> dict[str, str]:
    """Return what a rival says of itself, and why it cannot take part if so."""
    tree = ast.parse(path.read_bytes())
    said = {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in tree.body
        if isinstance(line, ast.Assign)
        and isinstance(line.targets[0], ast.Name)
        and line.targets[0].id in ("NAME", "PACKAGE", "LEAGUE")
    }
    summary, _, more = (ast.get_docstring(tree) or "").partition("\n\n")
    package, skipped, version = said.get("PACKAGE"), "", ""
    try:
        load_rival(path)
        version = importlib.metadata.version(package) if package else ""
    except ImportError:
        skipped = " ".join(more.split()) or f"pip install {package}"
    return {
        "rival": said.get("NAME", path.stem),
        "league": said.get("LEAGUE", "corrected"),
        "package": f"{package} {version}".strip() if package else "own code",
        "what": " ".join(summary.split()),
        "skipped": skipped,
    }


def key_of(each: Set, rival: Path, most: int) -> str:
    """Return what results depend on, as a hash: rows, rival, arena and packages."""
    shared = [rival, FOLDER / "parts.py", FOLDER / "scoring.py"]
    if rival.stem.startswith("ours"):
        package = Path(ss.__file__).parent
        shared += [FOLDER / "rivals" / "ours.py", *sorted(package.glob("*.py"))]
    if each.kind == "world":
        shared.append(FOLDER / "worlds.py")
    found = hashlib.sha256(f"{described(rival)['package']} {most}".encode())
    for path in shared:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def work(
    each: Set, rival: Path, cache: Path, halvings: int, most: int
) -> list[dict[str, Any]]:
    """Try one rival on all halvings of one set, but those that were tried before."""
    key = key_of(each, rival, most)
    path = cache / "results" / f"{each.name}__{rival.stem}.json"
    rows = []
    if path.exists() and (known := json.loads(path.read_text()))["key"] == key:
        rows = known["rows"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(len(rows), halvings):
            rows.append(_tried(each, rival, cache, seed, most))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "rows": rows}))
    return rows[:halvings]


def _tried(each: Set, rival: Path, cache: Path, seed: int, most: int) -> dict[str, Any]:
    train, test = parts(each, cache, seed, most)
    row = {"set": each.name, "kind": each.kind, "rows": len(train), "halving": seed}
    row |= {"rival": described(rival)["rival"], "problem": ""}
    start = time.process_time()
    try:
        module, new = load_rival(rival), test.unlabelled()
        start = time.process_time()
        state = module.fit(train)
        quantiles = np.asarray(module.predict_quantiles(state, new, LEVELS))
        row["seconds"] = time.process_time() - start
        density = None
        if hasattr(module, "log_density"):
            density = module.log_density(state, new, test.error)
        row |= score(test, quantiles, density)
    except Exception as problem:
        row["seconds"] = time.process_time() - start
        row["problem"] = f"{type(problem).__name__}: {problem}".splitlines()[0][:150]
    return row


def table_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return results as a table; what failed has no scores."""
    schema = {"set": pl.String, "kind": pl.String, "rows": pl.Int64}
    schema |= {"halving": pl.Int64, "rival": pl.String}
    schema |= dict.fromkeys((*SCORES, "seconds"), pl.Float64) | {"problem": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.with_columns(pl.col(pl.Float64).round_sig_figs(6))
