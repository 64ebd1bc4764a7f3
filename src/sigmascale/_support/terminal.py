"""Text for terminals, which act upon some characters rather than show them."""

from __future__ import annotations

import re

# Control characters, those that turn the direction of text, and bytes that are no text.
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, keep: str = "\n") -> str:
    r"""Return text with escapes for what a terminal would act upon rather than show.

    Names of columns, labels and files may hold anything.

    >>> print(visible("mass\x1b[2J"))
    mass\x1b[2J
    """

    def escaped(found: re.Match[str]) -> str:
        mark = found[0]
        return mark if mark in keep else mark.encode("unicode_escape").decode()

    return INVISIBLE.sub(escaped, text)
