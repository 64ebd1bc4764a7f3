"""Labels as codes: a column of labels is factorised once, where it comes in.

A label is text, a number, or None where there is none. Numbers come before text, and
what is missing comes last. Whole numbers stay exact, and text is never copied into
arrays of fixed width, whose longest entry would set the size of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import Floats, Ints

Label = str | int | float | None


@dataclass(frozen=True, eq=False)
class Categories:
    """The labels of some rows.

    Attributes
    ----------
    codes : array of int, shape (n,)
        Which of the labels each row has.
    labels : tuple
        Distinct labels, in order; some may be those of other rows.
    """

    codes: Ints
    labels: tuple[Label, ...]

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Categories:
        """Return the labels of a column of numbers, text or objects.

        >>> Categories.of(np.array(["b", None, "a", "b"], dtype=object))
        Categories(codes=array([1, 2, 0, 1]), labels=('a', 'b', None))
        """
        if values.dtype.kind == "b":
            values = values.astype(np.float64)
        if values.dtype.kind in "fiu":
            distinct, codes = np.unique(values, return_inverse=True)
            return cls(codes, tuple(map(_label, distinct.tolist())))
        rows = values.tolist()
        place: dict[Any, int] = {}  # of each value, in the order of appearance
        try:
            found = [place.setdefault(value, len(place)) for value in rows]
        except TypeError:  # what cannot be looked up, such as a list
            place.clear()
            found = [place.setdefault(str(value), len(place)) for value in rows]
        named = [_label(value) for value in place]
        labels = in_label_order(dict.fromkeys(named))
        rank = {label: i for i, label in enumerate(labels)}
        ranks = np.array([rank[label] for label in named], dtype=np.int64)
        return cls(ranks[np.array(found, dtype=np.int64)], labels)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.codes.size

    def __getitem__(self, which: Any) -> Categories:
        """Return the labels of some of the rows."""
        return Categories(self.codes[which], self.labels)

    def values(self) -> npt.NDArray[Any]:
        """Return the label of each row."""
        return label_array(self.labels)[self.codes]

    def compact(self) -> Categories:
        """Return the same with none but the labels that rows have."""
        present, codes = np.unique(self.codes, return_inverse=True)
        return Categories(codes, tuple(self.labels[i] for i in present))


def _label(value: Any) -> Label:
    """Return a label that sorts and compares; of a missing value it is None."""
    if type(value) is str or type(value) is int:
        return value
    if type(value) is float:
        return None if value != value else value
    text = str(value)
    return None if text in {"None", "nan", "<NA>", "NaT"} else text


def in_label_order(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return labels in order: numbers, text, and None.

    >>> in_label_order(["b", None, 10, "a", 9])
    (9, 10, 'a', 'b', None)
    """
    return tuple(sorted(labels, key=_order))


def _order(label: Any) -> tuple[Any, ...]:
    return (2,) if label is None else (int(isinstance(label, str)), label)


def are_ordered_labels(labels: tuple[Label, ...]) -> bool:
    """Return whether labels are distinct and in order, as a file should have them."""
    keys = [_order(label) for label in labels]
    return all(a < b for a, b in itertools.pairwise(keys))


def label_array(labels: Iterable[Label]) -> npt.NDArray[Any]:
    """Return labels as an array of objects."""
    listed = list(labels)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def label_text(label: Label) -> str:
    """Return a label as people read it.

    >>> label_text("gas"), label_text(2.0), label_text(None)
    ('gas', '2', '(missing)')
    """
    if label is None:
        return "(missing)"
    return f"{label:.15g}" if isinstance(label, float) else str(label)


def numbers_of(labels: Iterable[Any]) -> Floats:
    """Return labels that are numbers as such, NaN where one is missing."""
    return np.array([np.nan if x is None else x for x in labels], dtype=np.float64)
