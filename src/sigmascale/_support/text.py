"""Text for people: values that messages quote, and characters that terminals show."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

TOPIC = 11  # characters that name what a printed line is about
WIDTH = 80  # characters in a line of a terminal
LONGEST_QUOTE = 80  # characters of a cell, name or value that a message quotes
# Control characters, those that turn the direction of text, and bytes that are no text.
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shorten(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Shorten text in the middle: what tells names apart may stand at either end.

    >>> shorten("temperature", 7)
    'tem…ure'
    """
    if len(text) <= longest:
        return text
    head = longest // 2
    tail = longest - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :]}"


def quoted(value: Any) -> str:
    """Return a value as a message quotes it, cut at 80 characters.

    >>> quoted("gas"), quoted(2.5)
    ("'gas'", '2.5')
    """
    numpy = sys.modules.get("numpy")  # a value of it has imported it
    if numpy and isinstance(value, numpy.generic) and value.dtype.kind not in "mM":
        value = value.item()
    if isinstance(value, str) and len(value) > 2 * LONGEST_QUOTE:
        # what lies between is cut anyway
        value = value[:LONGEST_QUOTE] + value[-LONGEST_QUOTE:]
    try:
        return shorten(repr(value))
    except Exception:  # of a class of the user's, whose repr fails
        return f"<{type(value).__name__}>"


def listed(names: Any, most: int = 8) -> str:
    """Return names with commas between them, the first few of many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    names = [shorten(str(name)) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def unused(name: str, others: Iterable[str]) -> str:
    """Return a name for what is ours that none of the others has, or has in it.

    >>> unused("hash", ["u", "Hash of mine"])
    'hash_'
    """
    small = [other.lower() for other in others]  # as names are in SQL
    while any(name.lower() in other for other in small):
        name += "_"
    return name


def visible(text: str, *, keep: str = "\n") -> str:
    r"""Return text with escapes for what a terminal would act upon rather than show.

    Names of columns, labels and files may hold anything.

    >>> print(visible("mass\x1b[2J"))
    mass\x1b[2J
    """

    def escaped(match: re.Match[str]) -> str:
        mark = match[0]
        return mark if mark in keep else mark.encode("unicode_escape").decode()

    return INVISIBLE.sub(escaped, text)
