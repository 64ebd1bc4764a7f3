"""Numbers and names as text, the same way everywhere in a report."""

from __future__ import annotations

import math
import re

from .._support.drawing import printable
from .._support.render import shorten_middle

NO_BREAK = "\u00a0"  # a space at which no line breaks
_SPACES = f" \n\t{NO_BREAK}"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"
_RUN = re.compile(rf"{_RIGHT_TO_LEFT}(?: {_RIGHT_TO_LEFT})*")


def clean(text: str) -> str:
    """Return text that every encoding can carry and that keeps its direction to itself.

    What cannot be printed is replaced, and words written from right to left are
    isolated: they must not turn around the words beside them.
    """
    shown = "".join(c if c in _SPACES else printable(c) for c in text)
    return _RUN.sub("\u2068\\g<0>\u2069", shown)


def number(value: float) -> str:
    """Return a number that has no unit, such as a score.

    >>> number(0.12345), number(2e-16), number(12345.6), number(float("inf"))
    ('0.123', '0.000', '1.23e+04', '∞')
    """
    if not math.isfinite(value):
        return f"{value}".replace("inf", "∞")
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.2e}"


def with_spread(value: float, spread: float) -> str:
    """Return such a number and its standard deviation.

    >>> with_spread(0.161, 0.012)
    '0.161 ± 0.012'
    """
    return f"{number(value)} ± {number(spread)}"


def scaled(value: float, spread: float | None = None) -> str:
    """Return a number in some unit, which may be large or small, and its spread.

    >>> scaled(1.423e-4), scaled(1.423e-4, 2.1e-5), scaled(0.5, 0.1)
    ('1.42e-04', '(1.42 ± 0.21)e-04', '0.500 ± 0.100')
    """
    if value == 0 or 0.01 <= abs(value) < 1000 or not math.isfinite(value):
        return number(value) if spread is None else with_spread(value, spread)
    if spread is None:
        return f"{value:.2e}"
    exponent = math.floor(math.log10(abs(value)))
    unit = 10.0**exponent
    return f"({value / unit:.2f} ± {spread / unit:.2f})e{exponent:+03d}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent.

    >>> percent(0.1234).replace(NO_BREAK, " "), percent(0.0111, 1).split(NO_BREAK)
    ('12 %', ['1.1', '%'])
    """
    return f"{100 * share:.{digits}f}{NO_BREAK}%"


def short(name: str, longest: int = 60) -> str:
    """Return a name that fits a table or a sentence."""
    return shorten_middle(name, longest)


def variable(name: str) -> str:
    """Return what a variable is called in a sentence."""
    return "uncertainty u" if name == "u" else short(name)
