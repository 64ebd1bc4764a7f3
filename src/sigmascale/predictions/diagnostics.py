"""One look at rows, where they come in: what is odd about them, told in a sentence.

No check of single values finds what is meant here: rows that repeat each other, errors
that are targets, uncertainties that are variances or in another unit. Of many values, a
sample is looked at for repeats. It is chosen by the values themselves, so that those
which are the same are in it together, in whatever order they come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from .._support.checks import Floats, Ints
from .._support.hashing import hash_of_rows
from .._support.notices import remedy, row_number, warn
from .._support.numerals import fixed, number, percent
from ..exceptions import (
    AbsoluteErrorsWarning,
    ConstantUncertaintyWarning,
    DegenerateFitWarning,
    DominantErrorWarning,
    RepeatedRowsWarning,
    TargetsNotErrorsWarning,
    UnitsWarning,
    VarianceNotUncertaintyWarning,
)
from .predictions import Predictions

SAMPLE = 10_000  # values to look at; of more, those that fall into a share
ROWS_TO_TELL = 100  # fewer show nothing
DOMINATED = 20  # rows, of which one may outweigh all others

Slip = tuple[str, type[Warning]]  # a sentence, and its kind


def warn_of_oddities(
    p: Predictions,
    *,
    learning: bool = True,
    repeats: str | None = None,
    stacklevel: int = 2,
) -> None:
    """Warn of rows that are odd, each kind by a class of its own.

    A constant uncertainty is only worth a word where something is `learning` from it.
    What looks like `repeats` is found here unless it is known.
    """
    if repeats is None:
        repeats = "" if p.groups is not None else repeats_found(p)
    if repeats:
        warn(
            f"Rows look like repeats: {repeats}. Repeated measurements are not "
            "independent. Pass `groups`, a label for each row, equal for rows of the "
            "same sample; or silence this "
            "warning (RepeatedRowsWarning) if they are independent.",
            RepeatedRowsWarning,
            stacklevel=stacklevel + 1,
        )
    for message, kind in slips_found(p):
        if learning or kind is not ConstantUncertaintyWarning:
            warn(message, kind, stacklevel=stacklevel + 1)


def warn_of_dominant(p: Predictions, stacklevel: int = 2) -> None:
    """Warn if one error outweighs all others together."""
    addends = p.z2 if p.weights is None else p.weights * p.z2
    row = int(np.argmax(addends))
    total = float(addends.sum())
    if p.n_rows >= DOMINATED and addends[row] > 0.5 * total:
        place = row_number(row if p.places is None else p.places[row])
        warn(
            f"One error of {p.n_rows} (row {place}, {number(p.abs_z[row])} u) makes up "
            f"{percent(addends[row] / total)} of the sum of z², and "
            "decides the results. Check that row, and drop it if it is wrong.",
            DominantErrorWarning,
            stacklevel=stacklevel + 1,
        )


def informative(p: Predictions) -> Predictions:
    """Return rows to learn from: errors that are all 0 are told, and replaced by u."""
    if float(p.squared_error.max()) > 0:
        return p
    warn(
        f"All {p.n_rows} errors are 0: nothing can be fitted to them, and "
        "uncertainties stay as they are.",
        DegenerateFitWarning,
        stacklevel=5,
    )
    return p._with(error=np.broadcast_to(p.y_std, p.errors.T.shape).T)


# -- slips -----------------------------------------------------------------------------

MANY_U = 3  # uncertainties that the median error is off by
MANY_WIDTHS = 0.5  # half-widths of the middle of the errors that it is off by
OTHER_UNIT = 50.0  # factor by which all of u is off if its unit is another
ABOUT_RIGHT = 1.05  # factor that is not worth a number
MEDIAN_ABS_Z = 0.6745  # half of normal |z| are below it


def slips_found(p: Predictions) -> list[Slip]:
    """Return what looks like something else than errors and uncertainties."""
    if p.n_rows < ROWS_TO_TELL or not p.squared_error.any():
        return []
    # uncertainties are only worth a word if errors are what they should be
    slip = _slip_of_errors(p) or _slip_of_uncertainties(p)
    slips = [] if slip is None else [slip]
    if p.y_std.min() == p.y_std.max():
        words = (
            f"All uncertainties are {number(p.y_std[0])}: is `y_std` the uncertainty? "
            "A constant one does not rank the errors."
        )
        slips.append((words, ConstantUncertaintyWarning))
    return slips


def _slip_of_errors(p: Predictions) -> Slip | None:
    """Return that errors look like targets or have lost their sign, if they do."""
    if p.is_vector:
        return None
    typical_u = float(np.median(p.y_std))
    lower, median, upper = np.quantile(p.errors, [0.25, 0.5, 0.75])
    if abs(median) > max(MANY_U * typical_u, MANY_WIDTHS * (upper - lower)):
        words = (
            f"The median error is {number(median)}, "
            f"{number(abs(median) / typical_u, 2)} times the median uncertainty. Are "
            "these targets or predictions rather than errors, true value minus "
            "prediction? If they are errors, the model is biased: correct that first."
        )
        return words, TargetsNotErrorsWarning
    if p.errors.min() >= 0:
        words = (
            f"None of {p.n_rows} errors is negative. Are they absolute errors? "
            "Pass true value minus prediction, with its sign: bias and intervals "
            "need it."
        )
        return words, AbsoluteErrorsWarning
    return None


def _slip_of_uncertainties(p: Predictions) -> Slip | None:
    """Return that u looks like a variance, or has another unit than errors, if so."""
    as_variance = _read_as_variance(p.squared_error, p.y_std)
    if as_variance is not None:
        as_std, as_root = map(_off_by, as_variance)
        words = (
            "The uncertainties look like variances: as they are, they are typically "
            f"{as_std} for the errors, their roots {as_root}. "
        )
        words += remedy(
            VarianceNotUncertaintyWarning,
            "If they are, pass their square root, or `variance` to from_frame.",
        )
        return words, VarianceNotUncertaintyWarning

    # where many errors are 0, the mean of z² tells by how much u is off
    by_median = float(np.median(p.abs_z)) / MEDIAN_ABS_Z
    by_mean = float(np.sqrt(p.z2.mean()))
    is_far_too_small = min(by_median, by_mean) > OTHER_UNIT
    is_far_too_large = max(by_median, by_mean) < 1 / OTHER_UNIT
    if is_far_too_small or is_far_too_large:
        words = (
            f"Uncertainties are typically {_off_by(by_median or by_mean)} for the "
            "errors. Are both in the same unit, as eV and meV are not?"
        )
        return words, UnitsWarning
    return None


def _off_by(factor: float) -> str:
    """Return in words how much errors are larger than uncertainties say.

    >>> _off_by(2.0), _off_by(0.25), _off_by(1.01)
    ('2 times too small', '4 times too large', 'about right')
    """
    if max(factor, 1 / factor) < ABOUT_RIGHT:
        return "about right"
    size = "small" if factor > 1 else "large"
    return f"{number(max(factor, 1 / factor))} times too {size}"


# -- variances in place of uncertainties -----------------------------------------------
#
# Two readings of a column are compared: errors follow s·u, or they follow s·√u, with a
# floor under both and heavy tails. The likelihood of each, and how plausible its factor
# s is, add up; the column is called a variance if that reading wins by far.

DEGREES = 4.0  # of freedom of Student's t: the tails of real errors
COUNTED = 150  # what any number of rows counts at most: no reading is quite right
MOST_READ = 2000  # rows that are looked at
FLOORS = np.append(0.0, np.geomspace(1e-3, 10, 9))  # in medians of the reading
AGAINST = 3.0  # nats: a variance is rarer than a standard deviation
MARGIN_NATS = 1.0  # by which it must win all the same, and by which errors may object
CLEAR_NATS = 3.0  # by which errors alone speak for it
# plausible factors of its root; smaller ones if errors clearly speak for it
LEAST_S = 0.2
LEAST_CLEAR_S = 0.08
MOST_S = 12.0
ITERATIONS = 12  # of the fixed point for the scale of t
MEDIAN_T2 = 0.55  # about the median of the square of such a t


def _read_as_variance(squared_error: Floats, u: Floats) -> tuple[float, float] | None:
    """Return the factors s of u and of its root, if it looks like a variance."""
    is_wrong = squared_error > 0  # errors of exactly 0 fit every reading
    e2 = squared_error[is_wrong]
    u = u[is_wrong]
    if e2.size < ROWS_TO_TELL // 2:
        return None
    if e2.size > MOST_READ:  # chosen by their values, in whatever order they come
        hashes = hash_of_rows([u, e2])
        largest = np.partition(hashes, MOST_READ - 1)[MOST_READ - 1]
        rows = np.flatnonzero(hashes <= largest)
        rows = rows[np.argsort(hashes[rows])][:MOST_READ]
        e2 = e2[rows]
        u = u[rows]

    # by how many nats errors speak for √u, and how plausible its factor is
    s_of_u = _factor(e2, u**2)
    s_of_root = _factor(e2, u)
    gain = _log_likelihood(e2, u) - _log_likelihood(e2, u**2)
    nats = min(e2.size, COUNTED) * gain
    plausible = _log_plausibility(s_of_root) - _log_plausibility(s_of_u) - AGAINST

    wins = nats + plausible > MARGIN_NATS and nats > -MARGIN_NATS
    least_s = LEAST_CLEAR_S if nats > CLEAR_NATS else LEAST_S
    if wins and least_s < s_of_root < MOST_S:
        return s_of_u, s_of_root
    return None


def _log_likelihood(e2: Floats, g2: Floats) -> float:
    """Return the mean log-likelihood of a t with the scale s √(g² + floor²), at best.

    Its s² is the fixed point of s² = ⟨(ν + 1) r / (ν + r / s²)⟩ with r = e² / g².
    """
    best = -np.inf
    for floor in FLOORS:
        v = g2 + floor**2 * float(np.median(np.sqrt(g2))) ** 2
        r = e2 / v
        s2 = float(np.median(r)) / MEDIAN_T2
        for _ in range(ITERATIONS):
            s2 = float(np.mean((DEGREES + 1) * r / (DEGREES + r / s2)))
        # ln L = −½ ⟨ln s² v + (ν + 1) ln(1 + r / (ν s²))⟩, but for a constant
        tails = (DEGREES + 1) * np.log1p(r / (DEGREES * s2))
        best = max(best, -0.5 * float(np.mean(np.log(s2 * v) + tails)))
    return best


def _factor(e2: Floats, g2: Floats) -> float:
    """Return the factor by which errors are larger than a reading, in the median."""
    return float(np.sqrt(np.median(e2 / g2))) / MEDIAN_ABS_Z


def _log_plausibility(s: float) -> float:
    """Return how plausible a factor is: rather too small a u, by up to 100 times."""
    # a Student's t of ln s with 2 degrees of freedom, around u 1.5 times too small
    distance = np.log(s) - 0.4
    too_large = min(0.0, distance + 1.0)
    return float(-1.5 * np.log1p((distance / 1.2) ** 2 / 2) - too_large**2)


# -- repeats ---------------------------------------------------------------------------
#
# Values of a continuous variable hardly ever meet by chance. Where nearly all of them
# do, and about equally often, rows repeat what they belong to: a sample that was
# measured again, the conformers of a molecule, the frames of a trajectory. Ties of
# rounded numbers and of steps mean nothing, nor do those of isomers and the like, of
# which some values have many rows and most have few.

LEAST_DISTINCT = 20  # values or rows, below which there are but few
# rows of a value, beyond which it is rather a level
MOST_ROWS_OF_U = 10
MOST_ROWS_OF_A_FEATURE = 30
UNEVEN = 0.35  # squared coefficient of variation of the rows a value
ROWS_SEARCHED = 100_000  # rows that are compared with each other
DUPLICATES = 0.1  # share of rows that are the same as another
DIGITS = 4  # a number with more of them was not rounded for people to read
FINE = 0.8  # share of values that have more digits
ON_A_GRID = 8  # the median gap of neighbours in units of the smallest, at most


def repeats_found(p: Predictions) -> str:
    """Return what looks like repeats, in words, or nothing."""
    numbers = {}
    for name, column in zip(p.names, p.columns, strict=True):
        if column.dtype.kind == "f":
            numbers[name] = column
    if p.error is not None:
        share = _share_of_duplicates(p, list(numbers.values()))
        if share is not None:
            return f"{percent(share)} have the error and all numbers of another row"
    for name, values in numbers.items():
        rows_a_value = _rows_a_value(name, values)
        if rows_a_value is not None:
            return (
                f"`{name}` has about {fixed(p.n_rows / rows_a_value, 0)} different "
                f"values in {p.n_rows} rows, each in {number(rows_a_value)} of them on "
                "average and about equally often"
            )
    return ""


def _share_of_duplicates(p: Predictions, numbers: list[Floats]) -> float | None:
    """Return the share of rows that have all numbers of another; None if few do."""
    # rows that are the same have the same key, and are looked at together
    keys = hash_of_rows([*numbers, p.squared_error])
    is_searched = keys <= _largest_key(ROWS_SEARCHED, keys.size)
    is_searched &= p.squared_error > 0
    keys = keys[is_searched]

    counts = np.unique(keys, return_counts=True)[1]
    n_same = int(counts[counts > 1].sum())
    if n_same < max(LEAST_DISTINCT, DUPLICATES * keys.size):
        return None
    if not _is_continuous(p.squared_error[is_searched]):
        return None
    return n_same / keys.size


def _rows_a_value(name: str, values: Floats) -> float | None:
    """Return the rows that each value has, about equally many; None if it is not so."""
    # all rows of some of the values
    sample = values[hash_of_rows([values]) <= _largest_key(SAMPLE, values.size)]
    distinct, counts = np.unique(sample[~np.isnan(sample)], return_counts=True)
    if not counts.size:
        return None
    mean = float(counts.mean())
    most = MOST_ROWS_OF_U if name == "u" else MOST_ROWS_OF_A_FEATURE
    is_even = 2 <= mean <= most and counts.var() <= UNEVEN * mean**2
    return mean if is_even and _is_continuous(distinct) else None


def _largest_key(most: int, n_rows: int) -> np.uint64:
    """Return the hash below which there are about so many of all rows, at most."""
    share = most / n_rows
    return np.uint64(2**64 - 1 if share >= 1 else int(share * 2**64))


def _is_continuous(values: npt.NDArray[np.float64]) -> bool:
    """Return whether numbers have many values, unrounded and not on a grid."""
    distinct = np.unique(values)
    if distinct.size < LEAST_DISTINCT:
        return False

    # numbers whose first digits, as a whole number, leave something are unrounded
    size = np.abs(distinct[distinct != 0])
    digits = size / 10.0 ** (np.floor(np.log10(size)) - DIGITS + 1)
    if np.mean(np.abs(digits - np.round(digits)) > 1e-6) < FINE:
        return False

    # on a grid all gaps are small multiples of the smallest
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 1e-9 * (distinct[-1] - distinct[0])]
    return bool(np.median(gaps) > ON_A_GRID * gaps.min())


# -- rows that look learned ------------------------------------------------------------

LEAST_KNOWN = 50  # errors that are not 0, without which nothing is looked at
SMALLEST_ERRORS = 10.0 ** -np.arange(1.5, 12.01, 0.25)  # in units of the median
STEEPNESS = (
    0.1  # share of the errors below 100 t that lie below 10 t, if density is even
)
CHANCE = 1 / 3000  # of an even density, below which it is a heap
LEAST_LEAKED = 5  # rows; fewer may be small by chance


def leaked_rows(p: Predictions) -> Ints:
    """Return the rows whose errors are smaller by orders of magnitude than the others'.

    A model knows rows that it was trained on, whose errors then are a heap of their own
    far below the others. Of errors with a smooth density, about a tenth of those below
    100 t lie below 10 t, and a hundredth below t; where the density rises towards 0,
    the first share s is larger, and the second is s². A second share that is larger
    beyond chance is a heap. Errors count by their size relative to the others' and to
    their own uncertainty, whichever is more; those that are exactly 0 are not looked
    at.
    """
    size = np.sqrt(p.squared_error)
    known = np.flatnonzero(size > 0)
    if known.size < LEAST_KNOWN:
        return known[:0]
    size = size[known]
    z = p.abs_z[known]
    relative = np.maximum(size / np.median(size), z / np.median(z))
    ascending = np.sort(relative)

    # a heap has more of n(100 t) below t than chance, whose share is a share of a share
    is_heap = False
    top_of_heap = 0.0
    sharpest_edge = 1.0
    for t in SMALLEST_ERRORS:
        below, below_10, below_100 = np.searchsorted(ascending, [t, 10 * t, 100 * t])
        if below < LEAST_LEAKED:
            break
        steepness = (below_10 - below) / max(below_100 - below, 1)
        share = min(max(STEEPNESS, steepness), 1 - 1e-9)
        is_heap |= special.bdtrc(below - 1, below_100, share**2) < CHANCE
        # its top is where rows become rarest, which the rows below 10 t tell best
        edge = special.bdtrc(below - 1, below_10, share)
        if edge < sharpest_edge:
            top_of_heap = t
            sharpest_edge = edge
    if not is_heap:
        return known[:0]
    return np.asarray(known[relative < top_of_heap])
