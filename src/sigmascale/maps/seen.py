"""What a calibration set looked like, and whether new rows look like it.

A recalibrator keeps a few numbers of each column that it was fitted on, and the hashes
of a few rows. New rows far outside of what it has seen are told, and so are rows to
judge it by that it was fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.labels import Categories
from .._support.telling import warn
from ..bins.quantiles import order_statistics
from ..exceptions import ExtrapolationWarning, MissingFeatureWarning
from ..predictions import Predictions

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)  # of the rows, below each quantile
N_HASHES = 256  # of rows that are kept
DISTINCT = 0.9  # share of rows that differ, without which equal ones mean nothing
# Of new rows from the same source, 2 of n + 1 are expected outside the range of n, and
# hardly any far outside: as far again from the median as the end of the range.
FAR, OUTSIDE = 10, 20  # of n + 1 rows, so many more than expected that it is told
LEAST_SHARE, LEAST_ROWS = 0.05, 10  # outside, however many there were in the fit

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What is kept of a calibration set.

    Attributes
    ----------
    positions : array of int, shape (n_numbers,)
        The columns of numbers; 0 is the uncertainty.
    quantiles : array of shape (n_numbers, n_quantiles)
        Their smallest and largest values, and quantiles in between if they are known.
    missing : array of int, shape (n_numbers,)
        Rows in which they are missing.
    hashes : array of int
        The smallest hashes of rows, features and errors, in ascending order; none if
        many rows are the same.
    """

    positions: Ints
    quantiles: Floats
    missing: Ints
    hashes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, rows: Predictions) -> Seen:
        """Return what is kept of checked rows with errors."""
        positions, quantiles, missing = [], [], []
        for position, column in enumerate(rows.columns):
            if column.dtype != np.float64:
                continue
            known = column
            if np.isnan(column.min()):
                known = column[~np.isnan(column)]
            if known.size and np.isfinite(known).all():
                ranks = np.round(np.multiply(SHARES, known.size - 1)).astype(np.int64)
                positions.append(position)
                quantiles.append(order_statistics(known, ranks))
                missing.append(column.size - known.size)
        return cls(
            np.array(positions, dtype=np.int64),
            np.array(quantiles),
            np.array(missing, dtype=np.int64),
            _some_hashes(rows),
        )

    @classmethod
    def of_range(cls, smallest: float, largest: float) -> Seen:
        """Return what is kept where only the range of the uncertainty is known."""
        zero = np.zeros(1, dtype=np.int64)
        return cls(zero, np.array([[smallest, largest]]), zero)

    def plus(self, other: Seen, n_rows: int, n_other: int) -> Seen:
        """Return what is kept of both sets of rows, of these sizes.

        Ranges, missing values and hashes are those of all rows; quantiles in between
        are means of both, and so roughly right.
        """
        ends = self.quantiles.shape[1] != other.quantiles.shape[1]
        tables = [
            dict(zip(each.positions.tolist(), each.quantiles, strict=True))
            for each in (self, other)
        ]
        missing = [
            dict(zip(each.positions.tolist(), each.missing.tolist(), strict=True))
            for each in (self, other)
        ]
        positions = sorted({*tables[0], *tables[1]})
        quantiles = []
        for position in positions:
            found = [table[position] for table in tables if position in table]
            middle = found[0]
            if len(found) == 2:
                middle = np.average(found, axis=0, weights=[n_rows, n_other])
                middle[0] = min(each[0] for each in found)
                middle[-1] = max(each[-1] for each in found)
            quantiles.append(middle[[0, -1]] if ends else middle)
        hashes = np.empty(0, dtype=np.int64)
        if self.hashes.size and other.hashes.size:
            hashes = np.union1d(self.hashes, other.hashes)[:N_HASHES]
        return Seen(
            np.array(positions, dtype=np.int64),
            np.array(quantiles),
            np.array(
                [sum(each.get(p, 0) for each in missing) for p in positions],
                dtype=np.int64,
            ),
            hashes,
        )

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together, for those that come from a file."""
        parts: dict[str, Any] = dict(vars(self))
        if not all(isinstance(each, np.ndarray) for each in parts.values()):
            return False
        n = self.positions.size
        return bool(
            all(
                parts[name].dtype.kind == "i" and parts[name].ndim == 1
                for name in ("positions", "missing", "hashes")
            )
            and self.missing.size == n > 0
            and self.quantiles.ndim == 2
            and self.quantiles.shape[0] == n
            and self.quantiles.shape[1] >= 2
            and self.quantiles.dtype == np.float64
            and np.isfinite(self.quantiles).all()
            and (np.diff(self.quantiles, axis=1) >= 0).all()
            and self.positions[0] == 0 < self.quantiles[0, 0]
            and (np.diff(self.positions) > 0).all()
            and (self.missing >= 0).all()
        )

    def warn_of_others(
        self, rows: Predictions, n_fit: int, kinds: Mapping[int, str]
    ) -> None:
        """Warn of rows far outside, and of gaps in columns that had none.

        Parameters
        ----------
        rows : Predictions
            New rows.
        n_fit : int
            Rows of the calibration set.
        kinds : dict of int to str
            What the map takes each of its columns for. Values of an "optional" one may
            be missing; a "label" is no number, even if it looks like one.
        """
        for position, quantiles, missing in zip(
            self.positions.tolist(), self.quantiles, self.missing, strict=True
        ):
            column = rows.columns[position]
            if column.dtype != np.float64 or kinds.get(position) == "label":
                continue
            name, size = rows.names[position], column.size
            low, high = column.min(), column.max()
            if np.isnan(low):
                column = column[~np.isnan(column)]
                if kinds.get(position) == "optional" and not missing:
                    warn(
                        f"{size - column.size} of {size} rows have no {name!r}, which "
                        "was never missing in fit: their uncertainties are a guess. "
                        "Fill it in, or leave these rows out.",
                        MissingFeatureWarning,
                        stacklevel=4,
                    )
                if not column.size:
                    continue
                low, high = column.min(), column.max()
            if low >= quantiles[0] and high <= quantiles[-1]:
                continue
            told = _outside(column, quantiles, n_fit, ratios=position == 0)
            if told:
                warn(
                    f"{told} of {size} rows ({told / size:.0%}) lie outside the "
                    f"{name!r} that was seen in fit: {_range(low, high)} here, "
                    f"{_range(quantiles[0], quantiles[-1])} there{_most(quantiles)}. "
                    "Are units and population the same? What was learned does not "
                    "reach that far.",
                    ExtrapolationWarning,
                    stacklevel=4,
                )

    def shared(self, rows: Predictions) -> float:
        """Return which share of the calibration set is among rows with errors."""
        if not self.hashes.size:
            return 0.0
        return float(np.isin(self.hashes.view(np.uint64), hashes_of(rows)).mean())


def _outside(x: Floats, quantiles: Floats, n_fit: int, *, ratios: bool) -> int:
    """Return how many rows are outside a range, if that is worth telling; or else 0."""
    low, high = quantiles[0], quantiles[-1]
    outside = (x < low) | (x > high)
    n_outside = int(np.count_nonzero(outside))
    median = quantiles[quantiles.size // 2] if quantiles.size > 2 else None
    values = x[outside]
    if ratios:  # uncertainties differ by factors
        low, high, values = np.log(low), np.log(high), np.log(values)
        median = None if median is None else np.log(median)
    if median is None:
        median = low / 2 + high / 2
    with np.errstate(over="ignore", invalid="ignore"):  # near the largest numbers
        far = (values > 2 * high - median) | (values < 2 * low - median)
    n_far = np.count_nonzero(far)
    expected = x.size / (n_fit + 1)
    least = max(OUTSIDE * expected, LEAST_SHARE * x.size, LEAST_ROWS)
    return n_outside if n_far > FAR * expected or n_outside > least else 0


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _most(quantiles: Floats) -> str:
    if quantiles.size != len(SHARES):
        return ""
    return f" (90 % of them {_range(quantiles[1], quantiles[-2])})"


def _some_hashes(rows: Predictions) -> Ints:
    """Return the smallest hashes, which are as good as random rows."""
    hashes = hashes_of(rows)
    n = min(4 * N_HASHES, hashes.size)
    smallest = np.partition(hashes, n - 1)[:n]
    distinct = np.unique(smallest)  # of rows that are the same, all are among these
    kept = distinct[:N_HASHES] if distinct.size > DISTINCT * n else distinct[:0]
    return kept.view(np.int64)


def hashes_of(rows: Predictions) -> Hashes:
    """Return a hash of each row: of its uncertainty, features and error."""
    result = np.zeros(rows.n_rows, dtype=np.uint64)
    for position, column in enumerate(rows.columns):
        labelled = rows.is_labelled(position)
        bits = _label_bits(rows.labels(position)) if labelled else _bits(column)
        result = _mixed(result ^ bits)
    result = _mixed(result ^ _bits(rows.errors))
    return result >> np.uint64(1)  # 63 bits, which signed integers have


def _bits(column: Floats) -> Hashes:
    values = column + 0.0  # which makes 0 of -0
    return values.view(np.uint64)


def _label_bits(labels: Categories) -> Hashes:
    from hashlib import blake2b

    digests = [
        blake2b(repr(each).encode(errors="surrogatepass"), digest_size=8).digest()
        for each in labels.labels
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[labels.codes]


def _mixed(x: Hashes) -> Hashes:
    """Return other bits for each number: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
