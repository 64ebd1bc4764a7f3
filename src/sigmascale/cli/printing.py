"""Results on the screen, for people and for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .._support.terminal import INVISIBLE, visible
from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from ..judging.validation import Validation
    from ..roles import Choice
    from .lazy_table import LazyTable
    from .options import TableFormat
    from .table import Table

WIDTH = 79
_results: ContextVar[list[Any] | None] = ContextVar("results", default=None)
NARROWEST = 20  # characters in a line, however narrow the terminal says that it is


def check_format(format: TableFormat | None, as_json: bool) -> None:
    """Refuse two kinds of output at once."""
    if as_json and format is not None:
        msg = "Pass --json or --format, but not both."
        raise InvalidInputError(msg)


def say(words: Any = "") -> None:
    """Print words, with whatever a terminal would act upon made visible."""
    print(visible(str(words)))


def show_json(result: Any, *, to_stderr: bool = False) -> None:
    """Print a result for machines, or keep it for those who asked for it.

    It is a dict, or has `to_dict`.
    """
    kept = _results.get()
    if kept is not None:
        kept.append(result)
        return
    text = json.dumps(as_dict(result), indent=1, ensure_ascii=False)
    # what JSON leaves of control characters, and bytes that are no text
    safe = INVISIBLE.sub(lambda found: _escaped(found[0]), text)
    print(safe, file=sys.stderr if to_stderr else sys.stdout)


@contextmanager
def collected() -> Iterator[list[Any]]:
    """Keep results for machines in a list instead of printing them."""
    results: list[Any] = []
    token = _results.set(results)
    try:
        yield results
    finally:
        _results.reset(token)


def _escaped(mark: str) -> str:
    return mark if mark == "\n" else f"\\u{ord(mark):04x}"


def show_table(result: Any, format: TableFormat) -> None:
    """Print the table of a result alone, so that it can be pasted."""
    say(result.to_table(format.value).rstrip("\n"))


def show_words(*paragraphs: str) -> None:
    """Print paragraphs that fit a terminal."""
    for words in paragraphs:
        say(fill(words, WIDTH))


def tell_written(report: Path | None) -> None:
    """Print where the report is."""
    if report is not None:
        say(f"\nReport: {report}")


def as_dict(result: Any) -> dict[str, Any]:
    """Return a result as JSON can hold it."""
    found: dict[str, Any] = finite(
        result if isinstance(result, dict) else result.to_dict()
    )
    return found


def finite(value: Any) -> Any:
    """Return a value that JSON can hold: it knows no infinite numbers."""
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value.item() if hasattr(value, "item") else value


MARKS = {"yes": ("✓", "green"), "no": ("✗", "red"), "cannot tell": ("?", "yellow")}


def show_verdicts(validation: Validation, title: str = "") -> None:
    """Print verdicts with a mark each, in colour where there is any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.width = max(NARROWEST, console.width)  # or nothing would be shown
    if title:
        console.print(Text(visible(title, keep=""), style="bold"))
    for verdict in validation.verdicts.values():
        mark, style = MARKS[verdict.answer]
        sentence = visible(f"  {verdict.sentence}", keep="")
        words = fill(sentence, console.width - 1, subsequent_indent="  ")
        console.print(Text(mark, style=style) + Text(words[1:]), soft_wrap=True)


def tell_guesses(choice: Choice, data: Table | LazyTable) -> None:
    """Print what was taken from a file, and which columns nobody named."""
    show_words(str(data))
    if data.is_several:
        return
    roles = data.first
    guessed = [] if any(choice.error_names) else list(roles.error)
    if choice.uncertainty is None and choice.variance is None:
        guessed.append(roles.uncertainty)
    if guessed:
        say(f"Guessed from their names: {', '.join(guessed)}.")
    if roles.left_out:
        names = ", ".join(roles.left_out)
        show_words(f"Left out, as their names say that they are no features: {names}.")
    if not roles.features:
        say("No features: --feature COLUMN or --all-features would use some.")
