"""Output files that would be a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..exceptions import InvalidInputError

HTML = (".html", ".htm")


def check_output(
    output: str | Path, endings: tuple[str, ...], inputs: Sequence[str]
) -> None:
    """Refuse an output that is one of the inputs, or that has another's ending.

    Standard output, ``-``, is neither.
    """
    path = Path(output)
    if str(output) == "-":
        return
    if path.suffix.lower() not in endings:
        msg = (
            f"{output}: is written as {endings[0][1:].upper()}. Name it *{endings[0]}."
        )
        raise InvalidInputError(msg)
    for file in map(Path, inputs):
        if path.exists() and file.exists() and path.samefile(file):
            msg = f"{output}: is what is read. Choose another name for the output."
            raise InvalidInputError(msg)
