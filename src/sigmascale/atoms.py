"""Predictions of forces and energies, read from structures of ASE.

Arrays are looked for where files and calculators leave them: `atoms.arrays` has one row
an atom, `atoms.info` and the results of a calculator have members first, as MACE's
`forces_comm` of shape (m, n, 3).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from ._support.checks import as_floats
from ._support.columns import of_members
from ._support.text import listed, quoted
from .exceptions import InvalidInputError

Array = npt.NDArray[Any]


def read_atoms(
    structures: Any,
    *,
    reference: str | None,
    prediction: str | None,
    members: Any,
    uncertainty: str | None,
    energies: bool,
) -> dict[str, Any]:
    """Return the arguments of :class:`~sigmascale.Predictions`, for all atoms."""
    if isinstance(structures, (str, os.PathLike)):
        from ase.io import iread

        structures = iread(structures, index=":")
    elif hasattr(structures, "arrays"):
        structures = [structures]
    members = [members] if isinstance(members, str) else members
    every = {"y_true": reference, "y_pred": prediction, "y_std": uncertainty}
    names = {part: name for part, name in every.items() if name is not None}
    found: dict[str, list[Array]] = {part: [] for part in names}
    committee: list[Array] = []
    sizes, species = [], []
    for number, atoms in enumerate(structures):
        sizes.append(len(atoms))
        species += atoms.get_chemical_symbols()
        for part, parts in found.items():
            parts.append(_values(atoms, number, names[part], energies))
        if members is not None:
            committee.append(_members(atoms, number, members, energies))
    if not sizes:
        msg = "`structures` must hold at least 1 structure; found 0."
        raise InvalidInputError(msg, "empty")
    arguments: dict[str, Any] = {k: np.concatenate(v) for k, v in found.items()}
    if members is not None:
        mean, spread = of_members(np.concatenate(committee))
        arguments = {"y_pred": mean, "y_std": spread} | arguments
    n = np.array(sizes)
    if energies:
        per_atom = {k: v / n for k, v in arguments.items()}
        return per_atom | {"features": {"n_atoms": n}}
    groups = np.repeat(np.arange(n.size), n)
    return arguments | {"features": {"species": np.array(species)}, "groups": groups}


def _found(atoms: Any, number: int, name: str) -> tuple[str, Array]:
    """Return where an array of a structure lies, and the array."""
    results = getattr(atoms.calc, "results", None) or {}
    places = {"arrays": atoms.arrays, "info": atoms.info, "results": results}
    for place, values in places.items():
        if name in values:
            return place, as_floats(np.asarray(values[name]), name)
    known = sorted({key for values in places.values() for key in values})
    msg = (
        f"Structure {number} has no array {quoted(name)}. It has: {listed(known, 12)}."
    )
    raise InvalidInputError(msg, "no-column", columns=known)


def _values(atoms: Any, number: int, name: str, energies: bool) -> Array:
    """Return the energy of a structure, or the vectors or numbers of its atoms."""
    _, array = _found(atoms, number, name)
    if energies:
        return array.reshape(1)
    if array.shape[:1] != (len(atoms),):
        msg = (
            f"{quoted(name)} must have a row for each of {len(atoms)} atoms; structure "
            f"{number} has shape {array.shape}."
        )
        raise InvalidInputError(msg, "shapes")
    return array


def _members(atoms: Any, number: int, names: Any, energies: bool) -> Array:
    """Return what members say of a structure: (1, m) energies, or (n, m, 3) forces."""
    n = len(atoms)
    if len(names) > 1:
        parts = [_values(atoms, number, name, energies) for name in names]
        return np.stack(parts, axis=1)
    place, array = _found(atoms, number, names[0])
    if energies:
        return array.reshape(1, -1)
    if array.ndim == 3 and place != "arrays":
        array = array.swapaxes(0, 1)
    if array.shape[:1] != (n,) or array.size % (3 * n):
        msg = (
            f"{quoted(names[0])} must hold the forces of all members, of shape "
            f"(m, {n}, 3), or ({n}, 3 m) in `atoms.arrays`; structure {number} has "
            f"shape {array.shape}."
        )
        raise InvalidInputError(msg, "shapes")
    return array.reshape(n, -1, 3)
