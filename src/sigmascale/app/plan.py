"""How a table is recalibrated, and the files that come of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ..exceptions import InvalidInputError
from .settings import TableSettings

KINDS = ("random", "column", "file")
ENDING = re.compile(
    r"(\.(csv|tsv|tab|parquet|pq|feather|arrow|ipc|jsonl|ndjson|xlsx)(\.gz)?)$", re.I
)


@dataclass(frozen=True)
class Plan:
    """How rows are divided, and what is fitted.

    Attributes
    ----------
    table : TableSettings
        The table.
    kind : str
        How to divide it: "random", "column" or "file".
    known : TableSettings or None
        The second file, for "file".
    share : float
        Rows to learn from, for "random".
    column, value : str
        Rows to learn from have this value in this column, for "column".
    numeric : bool
        Whether that value is a number.
    together : bool
        Whether rows of one group stay together.
    method : str
        The recalibrator.
    bins : int or None
        Its number of bins.
    seed : int
        The seed of all random numbers.
    """

    table: TableSettings
    kind: str
    known: TableSettings | None
    share: float
    column: str
    value: str
    numeric: bool
    together: bool
    method: str
    bins: int | None
    seed: int

    @classmethod
    def parse(
        cls, table: TableSettings, known: TableSettings | None, found: Any
    ) -> Plan:
        """Check what the page has sent."""
        from ..scaling.registry import methods

        found = found if isinstance(found, dict) else {}
        kind, method = found.get("kind", "random"), found.get("method", "auto")
        if kind not in KINDS or method not in methods():
            msg = f"Rows are divided by {', '.join(KINDS)}; methods are {methods()}."
            raise InvalidInputError(msg)
        if kind == "file" and known is None:
            msg = "There is no second file yet. Drop one, or divide the table."
            raise InvalidInputError(msg)
        if kind == "column" and not found.get("column"):
            msg = "Name the column that says which rows to learn from."
            raise InvalidInputError(msg)
        share, bins, seed = (found.get(name) for name in ("share", "bins", "seed"))
        share = 0.5 if share is None else share
        if not isinstance(share, (int, float)) or not 0 < share < 1:
            msg = "The share of the rows to learn from must lie between 0 and 1."
            raise InvalidInputError(msg)
        for what, value in (("number of bins", bins), ("seed", seed)):
            if value is not None and (type(value) is not int or not 0 <= value < 2**31):
                msg = f"The {what} must be a whole number."
                raise InvalidInputError(msg)
        value = str(found.get("value", ""))
        return cls(
            table=table,
            kind=kind,
            known=known if kind == "file" else None,
            share=float(share),
            column=str(found.get("column", "")),
            value=value,
            numeric=found.get("numeric") is True and _is_number(value),
            together=bool(found.get("together")) and table.groups is not None,
            method=method,
            bins=bins or None,
            seed=seed or 0,
        )

    @property
    def condition(self) -> str:
        """The rows to learn from, as `--first-where` takes them."""
        column, text = self.column.replace('"', '""'), self.value.replace("'", "''")
        return f'"{column}" = ' + (self.value if self.numeric else f"'{text}'")

    @property
    def calibration(self) -> str:
        """The file to learn from."""
        return self.known.file if self.known else self._beside("calibration")

    @property
    def test(self) -> str:
        """The file to judge by."""
        return self.table.file if self.known else self._beside("test")

    @property
    def learned(self) -> TableSettings:
        """What is said of the columns of the file to learn from."""
        return self.known or self.table

    @property
    def is_comparable(self) -> bool:
        """Whether both files are read alike, so that the report can compare them."""
        if self.known is None:
            return True
        told = [(each.errors(), each.how_read()) for each in (self.known, self.table)]
        return told[0] == told[1]

    @property
    def recalibrated(self) -> str:
        """The table with new uncertainties."""
        return self._beside("recalibrated")

    @property
    def scaler(self) -> str:
        """The recalibrator."""
        return f"{stem(self.table.file)}_scaler.json"

    @property
    def onnx(self) -> str:
        """The recalibrator for ONNX Runtime."""
        return f"{stem(self.table.file)}_scaler.onnx"

    @property
    def report(self) -> str:
        """The report."""
        return f"{stem(self.table.file)}_recalibrated.html"

    @property
    def parts(self) -> str:
        """The folder of pictures."""
        return f"{stem(self.table.file)}_recalibrated_parts"

    def _beside(self, what: str) -> str:
        return f"{stem(self.table.file)}_{what}{ending(self.table.file)}"


def stem(file: str) -> str:
    """Return the name of a file without what tells its format.

    >>> stem("a.b.csv.gz"), stem("table.json"), stem("plain")
    ('a.b', 'table', 'plain')
    """
    return ENDING.sub("", file) if ENDING.search(file) else PurePath(file).stem


def ending(file: str) -> str:
    """Return the ending of a table that is written in the format of another.

    >>> ending("a.CSV"), ending("a.tsv.gz"), ending("a.json"), ending("a.txt")
    ('.CSV', '.tsv.gz', '.jsonl', '.csv')
    """
    found = ENDING.search(file)
    if found and found[2].lower() != "xlsx":  # which is only read
        return found[1]
    return ".jsonl" if file.lower().endswith(".json") else ".csv"


def verdict_files(file: str) -> tuple[str, str]:
    """Return the report on a table as it is, and the folder of its pictures."""
    return f"{stem(file)}_verdict.html", f"{stem(file)}_verdict_parts"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
