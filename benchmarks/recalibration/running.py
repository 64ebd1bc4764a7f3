"""One method on one set, by names, which other processes understand."""

from __future__ import annotations

from pathlib import Path

from .methods import METHODS, Method, from_file
from .scoring import Outcome, measure
from .sets import built_in, read_set


def known_methods(files: list[Path]) -> dict[str, type[Method]]:
    """Return all methods by name, with those that files define."""
    found = [*METHODS, *(method for file in files for method in from_file(file))]
    return {method.name: method for method in found}


def work(name: str, path: Path | None, method: str, files: list[Path]) -> Outcome:
    """Try one method on one set, in a process of its own."""
    data = built_in(name) if path is None else read_set(name, path)
    return measure(data, known_methods(files)[method])
