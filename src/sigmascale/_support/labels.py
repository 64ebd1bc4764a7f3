"""Labels as codes: a column of labels is factorised once, where it comes in.

A label is text, or None where there is none. Numbers, booleans and days that are taken
as labels become text, 1 and 1.0 the same. Text that is written as programs write a
number or a truth value is that: "1.0" is 1, and "true" is True, but "01" and "1.50" are
themselves. So every table, file and engine agrees on labels, typed or not. Labels that
look like whole numbers come first, in their order; then other text; what is missing
comes last.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Label = str | None
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})", re.ASCII)
_REAL = re.compile(r"-?[0-9]+\.[0-9]+(e-[0-9]+)?", re.ASCII)
_TRUTH = {"true": "True", "false": "False"}
_MISSING = frozenset({"None", "nan", "NaN", "<NA>", "NaT"})


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
        """Return the labels of a column of text, numbers or objects.

        >>> Categories.of(np.array(["b", None, "a", "b"], dtype=object))
        Categories(codes=array([1, 2, 0, 1]), labels=('a', 'b', None))
        """
        # the labels as they come, and which of them each row has
        if values.dtype.kind in "bfiumM":
            distinct, codes = np.unique(values, return_inverse=True)
            cells = distinct if values.dtype.kind in "mM" else distinct.tolist()
            unsorted = [label_of(cell) for cell in cells]
        else:
            unsorted, codes = _factorised(values.tolist())

        # the same in order; numbers such as 1 and 1.0 have one label
        labels = in_label_order(dict.fromkeys(unsorted))
        rank = {label: i for i, label in enumerate(labels)}
        ranks = np.array([rank[label] for label in unsorted], dtype=np.int64)
        return cls(ranks[codes], labels)

    def __getitem__(self, which: Any) -> Categories:
        """Return the labels of some of the rows."""
        return Categories(self.codes[which], self.labels)

    def values(self) -> npt.NDArray[Any]:
        """Return the label of each row."""
        return object_array(self.labels)[self.codes]

    def compact(self) -> Categories:
        """Return the same with none but the labels that rows have."""
        present, codes = np.unique(self.codes, return_inverse=True)
        return Categories(codes, tuple(self.labels[i] for i in present))


def _factorised(cells: list[Any]) -> tuple[list[Label], Ints]:
    """Return the labels of text or objects as they appear, and the place of each row's.

    Columns of text have few labels in many rows: each text is looked at once.
    """
    place: dict[Label, int] = {}
    labels_of_text: dict[str, Label] = {}
    codes = []
    for cell in cells:
        if type(cell) is not str:
            label = label_of(cell)
        elif cell in labels_of_text:
            label = labels_of_text[cell]
        else:
            label = labels_of_text[cell] = label_of(cell)
        codes.append(place.setdefault(label, len(place)))
    return list(place), np.array(codes, dtype=np.int64)


def label_of(value: Any) -> Label:
    """Return a value as a label; one that is missing has none.

    >>> label_of("gas"), label_of(2.0), label_of(True), label_of(np.nan)
    ('gas', '2', 'True', None)
    >>> label_of("2.0"), label_of("true"), label_of("02"), label_of("2.50")
    ('2', 'True', '02', '2.50')
    """
    if type(value) is str:
        return _label_of_text(value)
    text = str(value)
    if text in _MISSING:
        return None
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value)


def _label_of_text(text: str) -> Label:
    """Return text as a label: that of a number, or of a truth value, if it is one."""
    if _REAL.fullmatch(text) and repr(float(text)) == text:
        return label_of(float(text))
    return _TRUTH.get(text.lower(), text) if len(text) < 6 else text


def in_label_order(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return labels in order: whole numbers, text, and None.

    >>> in_label_order(["b", None, "10", "a", "9"])
    ('9', '10', 'a', 'b', None)
    """
    return tuple(sorted(labels, key=_order))


def _order(label: Label) -> tuple[Any, ...]:
    """Return what a label is sorted by."""
    if label is None:
        return (2,)
    if _WHOLE.fullmatch(label):
        return (0, int(label), label)
    return (1, label)


def object_array(values: Iterable[Any]) -> npt.NDArray[Any]:
    """Return values as a one-dimensional array of objects."""
    cells = list(values)
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def label_text(label: Label) -> str:
    """Return a label as people read it.

    >>> label_text("gas"), label_text(None)
    ('gas', '(missing)')
    """
    return "(missing)" if label is None else label
