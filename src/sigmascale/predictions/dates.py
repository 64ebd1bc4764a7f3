"""Whether rows seem to lie in the order of time though nobody said when they came."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._support.checks import as_array
from .._support.columns import TypedColumn
from .._support.labels import Categories, Label
from .._support.text import quoted

# 2024-05-01, 2024-05-01T12:00 and 20240501
_DATE = re.compile(r"(1[89]|2[01])\d\d(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])\b.*")
_NAME_OF_TIME = re.compile(r"(?i).*(date|time|stamp|year|day|epoch)")
LOOKED_AT = 1000  # rows whose groups are looked at
LEAST_DISTINCT = 10  # values of a column that lies in order by more than chance


def words_of_time(groups: Any, features: dict[str, TypedColumn]) -> str | None:
    """Return why rows seem to be ordered by time, or None.

    >>> words_of_time(["2024-05-01", "2024-05-02"], {})
    'groups look like dates'
    >>> words_of_time(None, {"year": (np.arange(1980.0, 2000.0), None)})
    "rows lie in the order of 'year'"
    """
    if groups is not None:
        some = as_array(groups, "groups")[:LOOKED_AT]
        if _are_dates(Categories.of(some).labels):
            return "groups look like dates"
    for name, (column, labels) in features.items():
        is_time = _NAME_OF_TIME.match(name) if labels is None else _are_dates(labels)
        if not is_time or (np.diff(column) < 0).any():  # codes of dates are in order
            continue
        if np.unique(column).size >= LEAST_DISTINCT:
            return f"rows lie in the order of {quoted(name)}"
    return None


def _are_dates(labels: Iterable[Label]) -> bool:
    """Return whether all labels begin as dates, and are several."""
    texts = list(labels)
    return len(texts) > 1 and all(_DATE.match(text or "") for text in texts)
