"""Output files that would be a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from glob import iglob
from itertools import takewhile
from pathlib import Path

from .._support.files import as_pattern
from ..exceptions import InvalidInputError

HTML = (".html", ".htm")


def check_output(
    output: str | Path, endings: tuple[str, ...], inputs: Sequence[str]
) -> None:
    """Refuse an output that is one of the inputs, or that has another's ending."""
    path = Path(output)
    if path.suffix.lower() not in endings:
        msg = (
            f"{output}: is written as {endings[0][1:].upper()}. Name it *{endings[0]}."
        )
        raise InvalidInputError(msg)
    refuse_input(output, inputs)


def refuse_input(output: str | Path, inputs: Sequence[str]) -> None:
    """Refuse an output that is one of the inputs, or would be the next time.

    An input may be a file, a folder of Parquet files, or a pattern.
    """
    if str(output) == "-":
        return
    path = Path(output).resolve()
    for file in inputs:
        if "://" not in file and _is_or_matches(path, file):
            msg = f"{output}: is what is read, {file}. Choose another name or folder."
            raise InvalidInputError(msg)


def _is_or_matches(path: Path, file: str) -> bool:
    pattern = Path(as_pattern(Path(file).resolve()))
    if path in (Path(found).resolve() for found in iglob(str(pattern), recursive=True)):
        return True
    # it would be read the next time; ** stands for any number of folders
    root = Path(*takewhile(lambda part: part != "**", pattern.parts))
    if root != pattern:
        return path.is_relative_to(root) and path.match(pattern.name)
    return path.match(str(pattern))
