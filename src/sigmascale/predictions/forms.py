"""Other forms of uncertainty: members, quantiles, structures; as mean and spread.

Arrays of structures are looked for where files and calculators leave them:
`atoms.arrays` has one row an atom, `atoms.info` and the results of a calculator have
members first, as MACE's `forces_comm` of shape (m, n, 3).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._support import numerals
from .._support.checks import (
    Floats,
    as_array,
    as_floats,
    check_column,
    check_count,
    check_numbers,
    need,
    refuse_values,
    rounded,
)
from .._support.notices import row_number, warn
from .._support.numerals import fixed
from .._support.text import listed, quoted
from ..exceptions import (
    CrossingQuantilesWarning,
    FewMembersWarning,
    InvalidInputError,
    NormOrRootMeanSquareWarning,
    SquareMembersWarning,
)

NumpyArray = npt.NDArray[Any]
FEW_MEMBERS = 10  # of an ensemble: their spread is off by a quarter
EQUAL = 1e-9  # of two levels
N_LEVELS = 33  # of quantiles that stand for a distribution
ROUNDING = 1e-4  # of the width of a normal distribution, in single precision

# What objects call their spread, and whether it is a variance.
SPREADS = {
    "stddev": False,
    "standard_deviation": False,
    "std": False,
    "variance": True,
    "var": True,
}

# -- members --------------------------------------------------------------------------


def upright(members: Any, y_true: Any, members_axis: int | None) -> Any:
    """Return members with a row for each row, and a column for each member.

    Those that only fit the true values if they are transposed are refused; of square
    ones nobody can tell, and a warning says what both readings amount to.
    """
    # as the caller says, or as nothing says otherwise
    if members_axis not in (None, 0, 1):
        need(False, "members_axis", "be 0 or 1", members_axis)
    if members_axis == 0:
        return as_array(members, "members", (2, 3)).swapaxes(0, 1)
    if members_axis == 1 or y_true is None:
        return members

    # as true values tell
    table = check_numbers(members, "members", (2, 3))
    n_rows, n_members = table.shape[:2]
    truth = check_numbers(y_true, "y_true")
    if truth.shape[1:] == (1,):  # a column of numbers
        truth = truth.ravel()
    if n_rows != len(truth) == n_members:
        msg = (
            f"`members` must have a row for each of {len(truth)} true values and a "
            f"column for each member; found {n_rows} rows and {n_members} columns, "
            f"which would be {n_rows} members in rows. Transpose them, or pass "
            "members_axis=0."
        )
        raise InvalidInputError(msg, "transposed")
    if n_rows == len(truth) == n_members:
        by_row = _typical_error(table, truth, axis=1)
        by_column = _typical_error(table, truth, axis=0)
        warn(
            f"`members` are square: read as a column for each of {n_members} members, "
            f"their means miss true values by typically {numerals.number(by_row)}; "
            f"transposed, as a row for each, by {numerals.number(by_column)}. Pass "
            "members_axis=1 or 0 to say which it is; 1 was taken.",
            SquareMembersWarning,
            stacklevel=3,
        )
    return table


def _typical_error(table: Floats, truth: Floats, axis: int) -> float:
    """Return the median size of errors, if members lie along an axis."""
    return float(np.median(np.abs(truth - table.mean(axis=axis))))


def of_members(members: Any, ddof: int = 1) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of an ensemble's members."""
    table = check_numbers(members, "members", (2, 3))
    n_members = table.shape[1]
    n_lost = check_count(ddof, "ddof", least=0)
    least = max(2, n_lost + 1)
    must = f"have at least {least} columns, one a member"
    need(n_members >= least, "members", must, n_members)
    if n_members < FEW_MEMBERS:
        # a standard deviation of m normal values varies by 1 / sqrt(2 (m − 1))
        percent = 100 / np.sqrt(2 * max(1, n_members - 1))
        warn(
            f"A standard deviation of {n_members} members has a sampling error of some "
            f"{fixed(percent, 0)} %, and cannot show errors that the members share. "
            "Recalibrate it.",
            FewMembersWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        from_first = table - table[:, :1]  # equal members have a spread of exactly 0
        spread = from_first.std(axis=1, ddof=n_lost)
        if spread.ndim == 2:
            spread = rounded(np.sqrt((spread**2).mean(axis=1)))
        return table.mean(axis=1), spread


# -- quantiles, and objects that know them ---------------------------------------------


class Quantiles(NamedTuple):
    """Quantiles of rows.

    Attributes
    ----------
    levels : array of shape (k,)
        Probabilities, ascending.
    values : array of shape (n, k)
        The quantiles, in order.
    middle : array of shape (n,)
        The median, or the middle of the quantiles on both sides of it.
    width : array of shape (n,)
        With quantiles q of the levels p and 1 − p, the outermost pair, it is
        (q_p − q_(1−p)) / (2 Φ⁻¹(p)), that in units of a standard normal.
    """

    levels: Floats
    values: Floats
    middle: Floats
    width: Floats


def read_quantiles(levels: Any, quantiles: Any) -> Quantiles:
    """Return quantiles with their middle and width, if they have such."""
    from scipy.special import ndtri

    # levels that ascend, with a column for each
    p = check_column(levels, "levels")
    table = check_numbers(quantiles, "quantiles", (2,))
    ascends = bool(((p > 0) & (p < 1)).all() and (np.diff(p) > 0).all())
    need(ascends, "levels", "ascend, between 0 and 1", p.tolist())
    must = f"have a column for each of {p.size} levels"
    need(table.shape[1] == p.size, "quantiles", must, table.shape[1])

    low, high = outermost(p)
    table = _sorted_quantiles(table, (low, high))

    # the median, or the quantiles on both sides of it
    after = int(p.searchsorted(0.5 - EQUAL))
    before = after if abs(p[after] - 0.5) < EQUAL else after - 1
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        u = (table[:, high] - table[:, low]) / (2 * ndtri(p[high]))
        return Quantiles(p, table, table[:, [before, after]].mean(axis=1), u)


def outermost(levels: Any) -> tuple[int, int]:
    """Return the positions of the levels 1 − p and p that lie farthest apart."""
    pairs = []
    for high, p in enumerate(levels):
        for low in range(high):
            if abs(p + levels[low] - 1) < EQUAL:
                pairs.append((high, low))
    must = "have a symmetric pair, such as 0.05 and 0.95"
    need(bool(pairs), "levels", must, [float(p) for p in levels])
    high, low = max(pairs)
    return low, high


def _sorted_quantiles(table: Floats, outer: tuple[int, int]) -> Floats:
    """Return quantiles that ascend in every row; warn of rows where they did not."""
    n_rows = len(table)
    descending = table[:, outer[0]] > table[:, outer[1]]
    if descending.sum() > n_rows / 2:
        must = "in the order of their levels"
        remedy = "Are columns, or limits, exchanged?"
        refuse_values(descending, table, "quantiles", must, remedy, "crossing")
    crossing = (np.diff(table, axis=1) < 0).any(axis=1)
    n_crossing = int(crossing.sum())
    if not n_crossing:
        return table
    first = row_number(int(np.argmax(crossing)))
    warn_of_crossing(n_crossing, n_rows, f"row {first}", stacklevel=4)
    return np.sort(table, axis=1)


def warn_of_crossing(
    n_crossing: int, n_rows: int, first: str, stacklevel: int = 2
) -> None:
    """Warn of rows in which quantiles do not ascend."""
    warn(
        f"Quantiles cross in {n_crossing} of {n_rows} rows (first at {first}), and "
        "were sorted.",
        CrossingQuantilesWarning,
        stacklevel=stacklevel + 1,
    )


def quantiles_of_distribution(d: Any) -> Quantiles | None:
    """Return quantiles that an object knows; None if it knows none, or is normal."""
    from scipy.special import ndtri

    quantile = _quantile_of(d)
    if quantile is None:
        return None
    levels = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
    columns = []
    try:
        for level in levels.tolist():
            column = check_numbers(quantile(level), "d")
            columns.append(column.reshape(len(column)))
    except Exception:  # of any library: mean and spread may do
        if getattr(d, "mean", None) is None:
            raise
        return None
    q = read_quantiles(levels, np.column_stack(columns))
    normal = q.middle[:, None] + q.width[:, None] * ndtri(levels)
    off = np.abs(q.values - normal).max(axis=1)
    return None if (off <= ROUNDING * q.width).all() else q


def _quantile_of(d: Any) -> Callable[[float], Any] | None:
    """Return what tells a quantile of each row, if an object has such a method."""
    if isinstance(d, Mapping) and {"criterion", "logits"} <= set(d):  # of TabPFN
        return lambda level: d["criterion"].icdf(d["logits"], level)
    for name in ("ppf", "quantile", "icdf"):
        method = getattr(d, name, None)
        if callable(method):
            break
    else:
        return None

    def quantile(level: float) -> Any:
        try:
            return method(level)
        except (TypeError, ValueError, AttributeError):  # tensors want tensors
            return method(0 * _value_of(d, "mean") + level)

    return quantile


def of_distribution(d: Any) -> tuple[Any, Any]:
    """Return the mean and the standard deviation that an object has."""
    # NGBoost's have None for what they lack
    spreads = [name for name in SPREADS if getattr(d, name, None) is not None]
    if not spreads or getattr(d, "mean", None) is None:
        msg = (
            "`d` must have a `mean`, and a standard deviation or variance called "
            f"{', '.join(SPREADS)}; found {type(d).__name__}. Pass "
            "Predictions(y_pred, y_std)."
        )
        raise InvalidInputError(msg, "no-distribution")
    mean = _value_of(d, "mean")
    name = spreads[0]
    spread = _value_of(d, name)
    is_variance = SPREADS[name]
    if is_variance:
        variance = check_column(spread, f"d.{name}")
        must = "at least 0, as variances are"
        remedy = "Drop or repair these rows."
        refuse_values(variance < 0, variance, f"d.{name}", must, remedy, "negative")
        spread = np.sqrt(variance)
    return mean, spread


def _value_of(d: Any, name: str) -> Any:
    """Return an attribute, or what a method of this name returns."""
    value = getattr(d, name)
    return value() if callable(value) else value


# -- structures ----------------------------------------------------------------------


def read_atoms(
    structures: Any,
    *,
    reference: str | None,
    prediction: str | None,
    members: Any,
    uncertainty: str | None,
    energies: bool,
    norm: bool | None,
) -> dict[str, Any]:
    """Return the arguments of :class:`~sigmascale.Predictions`, for all atoms."""
    if isinstance(structures, (str, os.PathLike)):
        from ase.io import iread

        structures = iread(structures, index=":")
    elif hasattr(structures, "arrays"):
        structures = [structures]
    if isinstance(members, str):
        members = [members]
    given = {"y_true": reference, "y_pred": prediction, "y_std": uncertainty}
    names = {argument: name for argument, name in given.items() if name is not None}

    # arrays of all structures, one after the other
    arrays: dict[str, list[NumpyArray]] = {argument: [] for argument in names}
    committee: list[NumpyArray] = []
    sizes = []
    species = []
    for number, atoms in enumerate(structures):
        sizes.append(len(atoms))
        species += atoms.get_chemical_symbols()
        for argument, name in names.items():
            arrays[argument].append(_values(atoms, number, name, energies))
        if members is not None:
            committee.append(_members(atoms, number, members, energies))
    if not sizes:
        msg = "`structures` must hold at least 1 structure; found 0."
        raise InvalidInputError(msg, "empty")

    # what is named goes before what members say
    arguments: dict[str, Any] = {}
    if members is not None:
        mean, spread = of_members(np.concatenate(committee))
        arguments = {"y_pred": mean, "y_std": spread}
    for argument, of_structures in arrays.items():
        arguments[argument] = np.concatenate(of_structures)

    # rows are structures, with their energies an atom, or atoms, in groups
    n_atoms = np.array(sizes)
    if energies:
        per_atom = {name: values / n_atoms for name, values in arguments.items()}
        return per_atom | {"features": {"n_atoms": n_atoms}}
    if "y_std" in names and arguments["y_std"].ndim == 1:
        arguments["y_std"] = _of_components(arguments["y_std"], names["y_std"], norm)
    groups = np.repeat(np.arange(n_atoms.size), n_atoms)
    return arguments | {"features": {"species": np.array(species)}, "groups": groups}


def _of_components(y_std: NumpyArray, name: str, norm: bool | None) -> NumpyArray:
    """Return the root mean square over components, of that or of a norm."""
    if norm is None:
        warn(
            f"{quoted(name)} has one number an atom: it is read as the root mean "
            "square of the uncertainties of three components. If it is their norm, "
            "which is √3 times larger, pass norm=True; norm=False says that it is not.",
            NormOrRootMeanSquareWarning,
            stacklevel=4,
        )
    return y_std / np.sqrt(3) if norm else y_std


def _array_of(atoms: Any, number: int, name: str) -> tuple[str, NumpyArray]:
    """Return where an array of a structure lies, and the array."""
    results = getattr(atoms.calc, "results", None) or {}
    places = {"arrays": atoms.arrays, "info": atoms.info, "results": results}
    for place, values in places.items():
        if name in values:
            return place, as_floats(np.asarray(values[name]), name)
    known = sorted(set().union(*places.values()))
    msg = (
        f"Structure {number} has no array {quoted(name)}. It has: {listed(known, 12)}."
    )
    raise InvalidInputError(msg, "no-column", columns=known)


def _values(atoms: Any, number: int, name: str, energies: bool) -> NumpyArray:
    """Return the energy of a structure, or the vectors or numbers of its atoms."""
    _, array = _array_of(atoms, number, name)
    if energies:
        return array.reshape(1)
    if array.shape[:1] != (len(atoms),):
        msg = (
            f"{quoted(name)} must have a row for each of {len(atoms)} atoms; structure "
            f"{number} has shape {array.shape}."
        )
        raise InvalidInputError(msg, "shapes")
    return array


def _members(atoms: Any, number: int, names: Any, energies: bool) -> NumpyArray:
    """Return what members say of a structure: (1, m) energies, or (n, m, 3) forces."""
    # an array for each member
    if len(names) > 1:
        by_member = [_values(atoms, number, name, energies) for name in names]
        return np.stack(by_member, axis=1)

    # one array for all of them
    place, array = _array_of(atoms, number, names[0])
    if energies:
        return array.reshape(1, -1)
    if array.ndim == 3 and place != "arrays":  # members come first
        array = array.swapaxes(0, 1)
    n = len(atoms)
    if array.shape[:1] != (n,) or array.size % (3 * n):
        msg = (
            f"{quoted(names[0])} must hold the forces of all members, of shape "
            f"(m, {n}, 3), or ({n}, 3 m) in `atoms.arrays`; structure {number} has "
            f"shape {array.shape}."
        )
        raise InvalidInputError(msg, "shapes")
    return array.reshape(n, -1, 3)
