"""One look at rows, where they come in: what is odd about them, told in a sentence.

No check of single values finds what is meant here: rows that repeat each other, errors
that are targets, uncertainties that are variances or in another unit, numbers that
stand for missing ones. Of many rows, a sample is looked at. It is chosen by the values
themselves, so that rows which are the same are in it together, in whatever order they
come. What a fit keeps of its rows, to compare others with, is learned from the same
look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._support.bits import label_bits, number_keys, row_bits, rows_below
from ._support.checks import LARGEST, LARGEST_Z, SMALLEST, Floats, Ints, largest_size
from ._support.labels import Categories, label_text
from ._support.notices import warn
from .exceptions import (
    AbsoluteErrorsWarning,
    ConstantUncertaintyWarning,
    DegenerateFitWarning,
    ExtrapolationWarning,
    LikelySlipWarning,
    MissingFeatureWarning,
    RepeatedRowsWarning,
    SentinelWarning,
    TargetsNotErrorsWarning,
    UnitsWarning,
    VarianceNotUncertaintyWarning,
)
from .predictions import Predictions

SAMPLE = 10_000  # rows to look at; of more, those whose values fall into a share
LEAST_ROWS = 100  # fewer show nothing

# -- the sample -----------------------------------------------------------------------


def sample_of(rows: Predictions) -> Predictions:
    """Return rows to look at: all, or those whose u, or error, fall into a share."""
    if rows.n_rows <= SAMPLE:
        return rows
    for column in (rows.uncertainty, rows.error):  # the former may have few values
        which = () if column is None else _share(column)
        if SAMPLE / 4 < len(which) < SAMPLE * 4:
            return rows.take(np.asarray(which))
    return rows.take(np.arange(0, rows.n_rows, rows.n_rows // SAMPLE))


def _share(x: npt.NDArray[Any]) -> Ints:
    """Return about as many rows as are wanted; all of some of the values."""
    return rows_below(x, 2**64 * SAMPLE // x.size)


# -- slips ----------------------------------------------------------------------------

MANY_U = 3  # uncertainties that the median error is off by
MANY_WIDTHS = 0.5  # half-widths of the middle of the errors that it is off by
OFF = 5.0  # factor by which <z²> is off, as that of variances in place of u is
RIGHT = 2.0  # factor within which it is about right
NATS = 10.0  # of likelihood by which errors follow the root of u rather than u
OTHER_UNIT = 50.0  # factor by which all of u is off if its unit is another
FAR_AWAY = 5.0  # ranges of all other values between them and a sentinel
MANY_LABELS = 20  # that are decimal numbers, as text of a quantity has
_DECIMAL = re.compile(r"[+-]?\d*[.]\d+(e[+-]?\d+)?", re.IGNORECASE)
_SENTINELS = (999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30)
_VARIANCE = re.compile(r"(^|[^a-z])(var|variance|variances)([^a-z]|$)|[a-z](\^2|²)$")


def warn_of_oddities(
    rows: Predictions, *, learning: bool = True, stacklevel: int = 2
) -> Predictions:
    """Warn of rows that are odd; return those that were looked at.

    A constant uncertainty is only worth a word where something is `learning` from it.
    """
    some = sample_of(rows)
    warn_of_repeats(rows, some, stacklevel=stacklevel + 1)
    for message, kind in slips_found(rows, some, learning=learning):
        warn(message, kind, stacklevel=stacklevel + 1)
    return some


def slips_found(
    rows: Predictions, some: Predictions, *, learning: bool = True
) -> list[tuple[str, type[Warning]]]:
    """Return what looks like something else than errors and uncertainties."""
    error, u = some.errors, some.uncertainty
    found: list[tuple[str, type[Warning]]] = []
    for name, labels in zip(rows.names, rows.categories, strict=True):
        texts = [label for label in labels or () if isinstance(label, str)]
        others = [text for text in texts if not _DECIMAL.fullmatch(text)]
        if len(texts) - len(others) > max(MANY_LABELS, len(others)):
            but = f", but {others[0]!r}" if others else ""
            words = (
                f"`{name}` is text, and each of {len(texts)} is a label of its own; "
                f"most look like numbers{but}. Convert it if it is a quantity."
            )
            found.append((words, LikelySlipWarning))
    # errors whose squares are 0 count as 0
    if some.n_rows < LEAST_ROWS or largest_size(error) < np.finfo(float).tiny ** 0.5:
        return found
    low, middle, high = np.quantile(error, [0.25, 0.5, 0.75])
    with np.errstate(over="ignore"):
        z = np.abs(error) / u
        typical, size = float(np.median(u)), float(np.sqrt(np.mean(z**2)))
    # half of normal |z| are below 0.6745; where many errors are 0, their mean decides
    factors = float(np.median(z)) / 0.6745, size
    if abs(middle) > max(MANY_U * typical, MANY_WIDTHS * (high - low)):
        words = (
            f"The median error is {middle:.3g}, {abs(middle) / typical:.2g} times the "
            "median uncertainty. Are these targets or predictions rather than errors, "
            "reference minus prediction? If they are errors, the model is biased: "
            "mend that first."
        )
        found.append((words, TargetsNotErrorsWarning))
    elif float(rows.errors.min()) >= 0:
        words = (
            f"None of {rows.n_rows} errors is negative. Are they absolute errors? Pass "
            "reference minus prediction, with its sign: bias and intervals need it."
        )
        found.append((words, AbsoluteErrorsWarning))
    elif min(factors) > OTHER_UNIT or max(factors) < 1 / OTHER_UNIT:
        factor = factors[0] or factors[1]
        off = f"{factor:.3g} times too small" if factor > 1 else ""
        off = off or f"{1 / factor:.3g} times too large"
        words = (
            f"Uncertainties are typically {off} for the errors. Are both in the same "
            "unit, as eV and meV are not?"
        )
        found.append((words, UnitsWarning))
    if u.min() == u.max():
        if learning:
            words = (
                f"All {rows.n_rows} uncertainties are {u[0]:.3g}. Is the first column "
                "of X the uncertainty? A constant one says nothing of which rows to "
                "trust."
            )
            found.append((words, ConstantUncertaintyWarning))
    elif _looks_like_a_variance(error, u, rows.names[0]):
        words = (
            f"The uncertainties, {rows.names[0]!r}, look like variances: pass their "
            "square root."
        )
        found.append((words, VarianceNotUncertaintyWarning))
    named = [*zip(rows.names, rows.columns, strict=True), ("error", rows.errors)]
    for name, column in named:
        if column.dtype.kind == "f" and (words := _sentinel(name, column)):
            found.append((words, SentinelWarning))
    return found


def _sentinel(name: str, x: Floats) -> str:
    """Return that an extreme value stands for a missing one, if it looks like that."""
    for value in (float(np.fmin.reduce(x)), float(np.fmax.reduce(x))):
        size = abs(value)
        # errors are the sentinel minus a prediction
        near = 0.05 * size if name == "error" else 1e-9 * size
        if size == np.inf or not any(abs(size - each) <= near for each in _SENTINELS):
            continue
        like = np.abs(x - value) <= near
        others = x[~like & np.isfinite(x)]
        count = int(np.count_nonzero(like))
        if not others.size or count > 0.2 * x.size:
            continue
        low, high = float(others.min()), float(others.max())
        if max(low - value, value - high) > FAR_AWAY * max(high - low, abs(high)):
            return (
                f"`{name}` is about {value:g} in {count} of {x.size} rows, and between "
                f"{low:.3g} and {high:.3g} in all others. Does that number stand for a "
                "missing one? Drop these rows."
            )
    return ""


def _looks_like_a_variance(error: Floats, u: Floats, name: str) -> bool:
    """Return whether u is a variance by its name, or by how errors follow it."""
    u = np.clip(u, SMALLEST, LARGEST)
    e2 = np.clip(error, -LARGEST, LARGEST) ** 2
    as_u, as_variance = float(np.mean(e2 / u**2)), float(np.mean(e2 / u))
    if 1 / RIGHT <= as_u <= RIGHT:
        return False
    if _VARIANCE.search(name.lower()):
        return True
    right = 1 / RIGHT <= as_variance <= RIGHT and not 1 / OFF <= as_u <= OFF
    # log-likelihoods of errors that follow the root of u, or nothing
    root = -np.log(as_variance) - float(np.mean(np.log(u))) - 1
    none = -np.log(float(np.mean(e2))) - 1
    enough = 2 * NATS / u.size
    return right and root - none > enough and root - _of_law(u**2, e2) > enough


def _of_law(u2: Floats, e2: Floats) -> float:
    """Return the log-likelihood of the best law s (u² + c), of u with a floor."""
    found = []
    for c in float(np.mean(u2)) * np.append(0.0, np.geomspace(1e-4, 1e2, 25)):
        shape = np.maximum(u2 + c, SMALLEST)
        slope = float(np.mean(e2 / shape)) or SMALLEST
        found.append(-np.log(slope) - float(np.mean(np.log(shape))) - 1)
    return float(max(found))


def informative(rows: Predictions, *, replaced: bool = True) -> Predictions:
    """Return rows whose errors can be squared and, unless they may be, are not all 0.

    Errors that are all 0 are told, and replaced by the uncertainties.
    """
    rows = squarable(rows)
    if rows.errors.any():
        return rows
    warn_of_zero_errors(rows.n_rows)
    return rows.changed(error=rows.uncertainty) if replaced else rows


def squarable(rows: Predictions) -> Predictions:
    """Return rows whose errors can be squared: beyond bounds, squares overflow."""
    error, u = rows.errors, rows.uncertainty
    largest = largest_size(error)
    if largest < SMALLEST:
        return rows.changed(error=np.zeros(error.size))
    if largest > min(LARGEST, LARGEST_Z * u.min()):
        bound = np.minimum(LARGEST, LARGEST_Z * u)
        return rows.changed(error=np.clip(error, -bound, bound))
    return rows


def warn_of_zero_errors(n_rows: int) -> None:
    """Say that errors which are all 0 teach nothing."""
    warn(
        f"All {n_rows} errors are 0: nothing can be learned from them, and "
        "uncertainties will be left as they are.",
        DegenerateFitWarning,
        stacklevel=4,
    )


# -- repeats --------------------------------------------------------------------------
#
# Values of a continuous variable hardly ever meet by chance. Where nearly all of them
# do, and about equally often, rows repeat what they belong to: a sample that was
# measured again, the conformers of a molecule, the frames of a trajectory. Three kinds
# of ties mean nothing and are told from it: those of rounded numbers, which lie on a
# grid; those of whole numbers and labels; and those of isomers and the like, of which
# some values have many rows and most have few.

LEAST_DISTINCT = 20  # values or rows, below which there are but few
MOST_ROWS = {"u": 10, "feature": 30}  # a value, beyond which it is rather a level
UNEVEN = 0.35  # squared coefficient of variation of the rows a value
DUPLICATES = 0.1  # share of rows that are the same as another
DIGITS = 4  # a number with more of them was not rounded for people to read
FINE = 0.8  # share of values that have more digits
ON_A_GRID = 8  # the median gap of neighbours in units of the smallest, at most


def warn_of_repeats(
    rows: Predictions, some: Predictions | None = None, stacklevel: int = 2
) -> None:
    """Warn if rows look like repeats and nothing says which of them belong together."""
    found = "" if rows.groups is not None else repeats_found(rows, some)
    if found:
        warn(
            f"Rows look like repeats: {found}. Rows that belong together are not "
            "independent, and count for more than they know. Pass `groups`, a label "
            "for each row, equal for those that belong together; or silence this "
            "warning (RepeatedRowsWarning) if they are independent.",
            RepeatedRowsWarning,
            stacklevel=stacklevel + 1,
        )


def repeats_found(rows: Predictions, some: Predictions | None = None) -> str:
    """Return what looks like repeats, in words, or nothing."""
    some = sample_of(rows) if some is None else some
    numbers = [i for i, x in enumerate(some.columns) if x.dtype.kind == "f"]
    features = [rows.columns[i] for i in numbers[1:]]
    distinct, counts = np.unique(some.uncertainty, return_counts=True)
    # rows that are the same have the same u, to begin with
    if some.error is not None and distinct.size < (1 - DUPLICATES / 2) * some.n_rows:
        wrong = some.error != 0
        key = row_bits([*(some.columns[i][wrong] for i in numbers), some.error[wrong]])
        _, repeated = np.unique(key, return_counts=True)
        same = int(repeated[repeated > 1].sum())
        many = same >= max(LEAST_DISTINCT, DUPLICATES * key.size)
        if many and _is_continuous(some.error):
            share = f"{same / key.size:.0%}"
            return f"{share} have the error and all numbers of another row"
    # of u, all rows of a value are in the sample
    if _is_even(counts, MOST_ROWS["u"]) and _is_continuous(distinct):
        return f"`{rows.names[0]}` has {_counted(counts, rows.n_rows)}"
    for i in numbers[1:]:
        distinct, counts = np.unique(_some(rows.columns[i]), return_counts=True)
        if _is_even(counts, MOST_ROWS["feature"]) and _is_continuous(distinct):
            return f"`{rows.names[i]}` has {_counted(counts, rows.n_rows)}"
    if len(features) > 1:
        _, counts = np.unique(_some(row_bits(features)), return_counts=True)
        if _is_even(counts, MOST_ROWS["feature"]) and any(
            _is_continuous(_some(x)) for x in features
        ):
            return f"the features have {_counted(counts, rows.n_rows)}"
    return ""


def _some(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the finite values of few rows: all those of a share of the values."""
    if x.size > SAMPLE:
        x = x[_share(x)]
    finite: npt.NDArray[Any] = x[np.isfinite(x)]
    return finite


def _counted(counts: Ints, n_rows: int) -> str:
    each = counts.mean()
    return (
        f"about {n_rows / each:.0f} different values in {n_rows} rows, each in "
        f"{each:.3g} of them on average and about equally often"
    )


def _is_even(counts: Ints, most: int) -> bool:
    """Return whether many values have several rows each, and about equally many."""
    if counts.size < LEAST_DISTINCT:
        return False
    each = counts.mean()
    return bool(2 <= each <= most and counts.var() <= UNEVEN * each**2)


def _is_continuous(values: npt.NDArray[Any]) -> bool:
    """Return whether numbers have many values, unrounded and not on a grid."""
    distinct = np.unique(values)
    if distinct.size < LEAST_DISTINCT:
        return False
    # more digits than rounded numbers have
    size = np.abs(distinct[distinct != 0])
    digits = size / 10.0 ** (np.floor(np.log10(size)) - DIGITS + 1)
    if np.mean(np.abs(digits - np.round(digits)) > 1e-6) < FINE:
        return False
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 1e-9 * (distinct[-1] - distinct[0])]
    return bool(np.median(gaps) > ON_A_GRID * gaps.min())


# -- what a fit keeps, to compare new rows with ----------------------------------------

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)  # of the rows, below each quantile
N_HASHES = 256  # of rows that are kept
_32, _33 = np.uint64(32), np.uint64(33)
DISTINCT = 0.9  # share of rows that differ, without which equal ones mean nothing
# Of new rows from the same source, 2 of n + 1 are expected outside the range of n, and
# hardly any far outside: as far again from the median as the end of the range.
FAR, OUTSIDE = 10, 20  # of n + 1 rows, so many more than expected that it is told
LEAST_SHARE, FEW = 0.05, 10  # outside, however many there were in the fit


@dataclass(frozen=True, eq=False)
class Profile:
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
    def of(cls, rows: Predictions, some: Predictions | None = None) -> Profile:
        """Return what is kept of rows with errors, of which `some` are a sample.

        Ranges and gaps are those of all rows; quantiles in between are the sample's.
        """
        some = sample_of(rows) if some is None else some
        positions, quantiles, missing = [], [], []
        for position, column in enumerate(rows.columns):
            if column.dtype.kind != "f":
                continue
            low, high = np.fmin.reduce(column), np.fmax.reduce(column)
            known, gaps = some.columns[position], 0
            if np.isnan(column.max()):
                gaps = int(np.count_nonzero(np.isnan(column)))
                known = known[~np.isnan(known)]
            if np.isfinite([low, high]).all() and known.size:
                middle = np.quantile(known, SHARES[1:-1], method="nearest")
                positions.append(position)
                quantiles.append([low, *middle, high])
                missing.append(gaps)
        hashes = _row_hashes(some)[: 4 * N_HASHES]  # as good as random rows
        kept = np.unique(hashes)  # of rows that are the same, all are among these
        return cls(
            np.array(positions, dtype=np.int64),
            np.array(quantiles),
            np.array(missing, dtype=np.int64),
            kept[:N_HASHES] if kept.size > DISTINCT * hashes.size else kept[:0],
        )

    @classmethod
    def of_range(cls, smallest: float, largest: float) -> Profile:
        """Return what is kept where only the range of the uncertainty is known."""
        zero = np.zeros(1, dtype=np.int64)
        return cls(zero, np.array([[smallest, largest]]), zero)

    def plus(self, other: Profile, n_rows: int, n_other: int) -> Profile:
        """Return what is kept of both sets of rows, of these sizes.

        Ranges, missing values and hashes are those of all rows; quantiles in between
        are means of both, and so roughly right. Columns must be known of both.
        """
        positions, mine, theirs = np.intersect1d(
            self.positions, other.positions, return_indices=True
        )
        a, b = self.quantiles[mine], other.quantiles[theirs]
        if a.shape != b.shape:  # of one, only ranges are known
            a, b = a[:, [0, -1]], b[:, [0, -1]]
        quantiles = (n_rows * a + n_other * b) / (n_rows + n_other)
        quantiles[:, 0] = np.minimum(a[:, 0], b[:, 0])
        quantiles[:, -1] = np.maximum(a[:, -1], b[:, -1])
        missing = self.missing[mine] + other.missing[theirs]
        hashes = np.empty(0, dtype=np.int64)
        if self.hashes.size and other.hashes.size:
            hashes = np.union1d(self.hashes, other.hashes)[:N_HASHES]
        return Profile(positions, quantiles, missing, hashes)

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together, for those that come from a file."""
        n, shape = self.positions.size, self.quantiles.shape
        return bool(
            self.positions.shape == self.missing.shape == (n,)
            and self.hashes.ndim == 1
            and len(shape) == 2
            and shape[0] == n > 0
            and shape[1] >= 2
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
                first, *middle, last = (f"{each:.3g}" for each in quantiles)
                most = f" (90 % of them {middle[0]} to {middle[-1]})" if middle else ""
                warn(
                    f"{told} of {size} rows ({told / size:.0%}) lie outside the "
                    f"{name!r} that was seen in fit: {low:.3g} to {high:.3g} here, "
                    f"{first} to {last} there{most}. Are units and population the "
                    "same? What was learned does not reach that far.",
                    ExtrapolationWarning,
                    stacklevel=4,
                )

    def shared(self, rows: Predictions) -> float:
        """Return which share of the calibration set is among rows with errors."""
        if not self.hashes.size:
            return 0.0
        # keys as large as the largest that is kept, and no larger ones
        bound = min(2**64 - 1, ((int(self.hashes[-1]) >> 32) + 1) << 33)
        near = rows.take(rows_below(rows.uncertainty, bound))
        return float(np.isin(self.hashes, _row_hashes(near)).mean())


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
    least = max(OUTSIDE * expected, LEAST_SHARE * x.size, FEW)
    return n_outside if n_far > FAR * expected or n_outside > least else 0


def _row_hashes(rows: Predictions) -> Ints:
    """Return hashes of rows, of uncertainty, features and error, in ascending order.

    The upper half is a key of the uncertainty alone, so that the smallest hashes are
    found without looking at all rows.
    """
    columns = [
        column if names is None else label_bits(Categories(column, names))
        for column, names in zip(rows.columns, rows.categories, strict=True)
    ]
    # 63 bits in all, as signed integers have
    upper = (number_keys(rows.uncertainty) >> _33) << _32
    return np.sort((upper | row_bits([*columns, rows.errors]) >> _32).view(np.int64))


# -- two sets, and the shape of z ------------------------------------------------------

DISTANCE = 0.1  # between two distributions; less changes hardly any conclusion
LEVEL = 0.001  # of a test for each variable, of which there may be many
FEW_OUTSIDE = 0.01  # share of rows outside what was seen that no one needs to know of
HEAVY = 2.0  # times the normal share of z-scores beyond three standard deviations


@dataclass(frozen=True)
class ZScores:
    """The shape of the z-scores of a set.

    Attributes
    ----------
    mean, rms : float
        Mean and root mean square of z; the best are 0 and 1.
    beyond : float
        Share of rows with abs(z) above 3 rms; 0.0027 of normal ones.
    k95 : float
        The multiple of u that holds 95 % of the errors; 1.96 of normal ones.
    heavy : bool
        Whether `beyond` is more than twice the normal share, and not by chance.
    biased : bool
        Whether `mean` is more than a tenth of `rms`, and not by chance.
    """

    mean: float
    rms: float
    beyond: float
    k95: float
    heavy: bool
    biased: bool


def z_scores(error: Any, uncertainty: Any) -> ZScores:
    """Return the shape of z = error / uncertainty: bias and tails.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_t(3, size=5000)
    >>> shape = z_scores(z, np.ones(5000))
    >>> shape.heavy, shape.biased
    (True, False)
    """
    z = np.asarray(error) / np.asarray(uncertainty)
    from scipy import stats

    mean, rms = float(z.mean()), float(np.sqrt(np.mean(z**2)))
    count = int(np.count_nonzero(np.abs(z) > 3 * rms))
    normal = 2 * stats.norm.sf(3)
    by_chance = stats.binom.sf(count - 1, z.size, normal)
    heavy = count > HEAVY * normal * z.size and by_chance < LEVEL
    noise = stats.norm.isf(LEVEL / 2) * float(z.std()) / np.sqrt(z.size)
    return ZScores(
        mean=mean,
        rms=rms,
        beyond=count / z.size,
        k95=float(np.quantile(np.abs(z), 0.95)),
        heavy=bool(heavy),
        biased=abs(mean) > max(0.1 * rms, float(noise)),
    )


@dataclass(frozen=True)
class Shift:
    """How the distribution of one variable differs between two sets.

    Attributes
    ----------
    name : str
        The variable.
    distance : float
        Largest difference of the cumulative distributions (Kolmogorov and Smirnov);
        for labels, half the sum of the differences of their shares. The best is 0.
    p_value : float
        Of the two-sample test of Kolmogorov and Smirnov; for labels, of chi-squared.
    outside : float
        Share of the new rows outside the range of the old ones, or with a label that
        these do not have.
    unseen : tuple of str
        Those labels.
    shifted : bool
        Whether `distance` is above 0.1 and not by chance, or more than 1 % of the new
        rows are outside.
    """

    name: str
    distance: float
    p_value: float
    outside: float
    unseen: tuple[str, ...]
    shifted: bool


def compare_distributions(
    name: str, old: Floats | Categories, new: Floats | Categories
) -> Shift:
    """Return how a variable's distribution in a new set differs from an old one.

    Parameters
    ----------
    name : str
        The variable.
    old, new : array of shape (n_old,) and (n_new,)
        Its values in both sets: numbers, or labels. Missing numbers do not count.

    Examples
    --------
    >>> x = np.linspace(0, 1, 500)
    >>> compare_distributions("x", x, x).shifted
    False
    >>> compare_distributions("x", x, x + 0.3).distance
    0.3
    """
    from scipy import stats

    unseen: tuple[str, ...] = ()
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        old, new = old[~np.isnan(old)], new[~np.isnan(new)]
        if not old.size or not new.size:
            return Shift(name, 0.0, 1.0, 0.0, (), False)
        test = stats.ks_2samp(old, new, method="asymp")
        distance, p_value = float(test.statistic), float(test.pvalue)
        outside = float(np.mean((new < old.min()) | (new > old.max())))
    else:
        values = [x if isinstance(x, np.ndarray) else x.values() for x in (old, new)]
        both = Categories.of(np.concatenate(values))
        parts = both.codes[: old.size], both.codes[old.size :]
        counts = np.array([np.bincount(x, minlength=len(both.labels)) for x in parts])
        shares = counts / counts.sum(axis=1, keepdims=True)
        distance = float(0.5 * np.abs(shares[0] - shares[1]).sum())
        several = len(both.labels) > 1
        p_value = float(stats.chi2_contingency(counts).pvalue) if several else 1.0
        new_ones = counts[0] == 0
        outside = float(shares[1][new_ones].sum())
        unseen = tuple(label_text(both.labels[i]) for i in np.flatnonzero(new_ones))
    # a few rows beyond the largest of a small set are no surprise
    by_chance = 10 / min(old.size, new.size)
    shifted = (distance > DISTANCE and p_value < LEVEL) or (
        outside > max(FEW_OUTSIDE, by_chance)
    )
    return Shift(name, distance, p_value, outside, unseen, shifted)


def count_shared_rows(old: Predictions, new: Predictions) -> int:
    """Return how many rows of a new set have error and uncertainty of an old row."""
    pairs = [each.errors + 1j * each.uncertainty for each in (old, new)]
    return int(np.count_nonzero(np.isin(pairs[1], pairs[0])))
