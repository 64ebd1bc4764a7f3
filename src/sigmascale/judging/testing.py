"""All questions that shuffled sets answer, put to a set at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats
from .._support.rows import Rows
from .joint import Learned, learn_jointly
from .multiplicity import Tests
from .resampling import shuffled_rows
from .scans import (
    ScannedRows,
    ScannedVariable,
    shift_scan,
    variance_scan,
)

SIMULATED_ROWS = 50_000  # of shuffled sets: beyond, statistics do not change any more
KEPT = 200  # shuffled sets whose sums are kept, to see what would be found
BIAS, JOINT, COVERAGE = "bias", "joint", "coverage"


@dataclass(frozen=True, eq=False)
class Shuffled:
    """What a set and its shuffled copies have shown.

    Attributes
    ----------
    tests : Tests
        Statistics of the questions: variables by name, "bias", "coverage", "joint".
    variables : tuple of ScannedVariable
        Variables in fine bins.
    sums : dict of str to list of array
        Sums of z², z and errors outside the limits, by variable, as they are.
    kept : dict of str to array of shape (n_kept, n_bins)
        Sums of z² of some shuffled sets, by variable, over their mean.
    kept_sizes : dict of str to array
        Rows of the bins of these sets.
    learned : Learned or None
        What u and the features together say about z².
    reach : float
        The multiple of u that holds 95 % of the errors.
    """

    tests: Tests
    variables: tuple[ScannedVariable, ...]
    sums: dict[str, list[Floats]]
    kept: dict[str, ScannedSums]
    learned: Learned | None
    reach: float


@dataclass(frozen=True, eq=False)
class ScannedSums:
    """Sums of z² of shuffled sets by the fine bins of a variable."""

    variable: ScannedVariable
    sums: Floats


def shuffle_and_test(
    rows: Rows, n_draws: int, rng: np.random.Generator, *, joint: bool
) -> Shuffled:
    """Compute the statistics of all questions, of a set and of shuffled ones."""
    variables = tuple(
        ScannedVariable.of(name, x)
        for name, x in zip(rows.names, rows.columns, strict=True)
    )
    asked = [variable for variable in variables if variable.n_bins > 1]
    learned = learn_jointly(rows, rng) if joint else None
    whole = ScannedRows(rows, variables)
    z2, z, outside = (
        whole.sums(values[:, None]) for values in (whole.z2, whole.z, whole.outside)
    )
    observed = _statistics(whole, asked, z2, z, outside)
    if learned is not None:
        ratio = whole.z2[learned.rows] / whole.z2.mean()
        observed[JOINT] = float(learned.gain(ratio[:, None])[0])
    simulated, kept_rows = rows, np.arange(rows.n_rows)
    if rows.n_rows > SIMULATED_ROWS:
        kept_rows = _some_rows(rows, SIMULATED_ROWS, rng)
        simulated = rows.take(kept_rows)
        part = [
            ScannedVariable.of(name, x)
            for name, x in zip(simulated.names, simulated.columns, strict=True)
        ]
        copies = ScannedRows(simulated, part)
    else:
        part, copies = list(variables), whole
    part_asked = [each for each in part if each.name in {v.name for v in asked}]
    draw = shuffled_rows(simulated.n_rows, simulated.groups, rng)
    draws: dict[str, list[Floats]] = {name: [] for name in observed}
    kept: dict[str, list[Floats]] = {each.name: [] for each in part}
    weights = None
    if learned is not None:
        inside = np.isin(kept_rows, learned.rows)
        factor = np.zeros(rows.n_rows)
        factor[learned.rows] = learned.log_factor
        weights = np.where(inside, -np.expm1(-factor[kept_rows]), 0.0)
        offset = float(np.where(inside, factor[kept_rows], 0.0).sum())
        scale = learned.rows.size / max(1, int(inside.sum()))
    n_kept = 0
    mean = float(copies.z2.mean()) or 1.0
    for sources in copies.shuffled(draw, n_draws):
        drawn = copies.z2[sources]
        sums = copies.sums(drawn)
        found = {
            variable.name: variance_scan(variable, each)
            for variable, each in zip(part, sums, strict=True)
            if variable.name in draws
        }
        found |= _shifts(copies, part_asked, part, sources)
        if weights is not None:
            gain = (weights @ (drawn / mean) - offset) * scale
            found[JOINT] = gain
        for name, values in found.items():
            draws[name].append(values)
        if n_kept < KEPT:
            n_kept += sources.shape[1]
            for variable, each in zip(part, sums, strict=True):
                kept[variable.name].append(each / mean)
    if learned is not None and scale != 1.0:
        # fewer rows spread less: a gain of many grows with them, its noise with the root
        values = np.concatenate(draws[JOINT])
        draws[JOINT] = [values.mean() + (values - values.mean()) / np.sqrt(scale)]
    return Shuffled(
        Tests(observed, {name: np.concatenate(each) for name, each in draws.items()}),
        variables,
        {
            variable.name: [each[0] for each in (a, b, c)]
            for variable, a, b, c in zip(variables, z2, z, outside, strict=True)
        },
        {
            variable.name: ScannedSums(variable, np.concatenate(kept[variable.name]))
            for variable in part
        },
        learned,
        whole.reach,
    )


def _statistics(
    scanned: ScannedRows,
    asked: list[ScannedVariable],
    z2: list[Floats],
    z: list[Floats],
    outside: list[Floats],
) -> dict[str, float]:
    """Return the statistics of the set as it is."""
    names = {variable.name for variable in asked}
    every = list(zip(scanned.variables, z2, z, outside, strict=True))
    found = {
        variable.name: float(variance_scan(variable, sums)[0])
        for variable, sums, _, _ in every
        if variable.name in names
    }
    for question, values, sums in (
        (BIAS, scanned.z, z),
        (COVERAGE, scanned.outside, outside),
    ):
        variance = float(values.var())
        largest = [
            float(shift_scan(variable, each, variance)[0])
            for variable, each in zip(scanned.variables, sums, strict=True)
            if variable.name in names
        ]
        if largest:
            found[question] = max(largest)
    return found


def _shifts(
    scanned: ScannedRows,
    asked: list[ScannedVariable],
    variables: list[ScannedVariable],
    sources: Floats,
) -> dict[str, Floats]:
    """Return the largest shifts of z and of coverage over all variables."""
    if not asked:
        return {}
    names = {variable.name for variable in asked}
    found = {}
    for question, values in ((BIAS, scanned.z), (COVERAGE, scanned.outside)):
        sums = scanned.sums(values[sources])
        variance = float(values.var())
        found[question] = np.max(
            [
                shift_scan(variable, each, variance)
                for variable, each in zip(variables, sums, strict=True)
                if variable.name in names
            ],
            axis=0,
        )
    return found


def _some_rows(rows: Rows, most: int, rng: np.random.Generator) -> Floats:
    """Return some of the rows, whole groups of them."""
    if rows.groups is None:
        return np.sort(rng.choice(rows.n_rows, most, replace=False))
    labels, codes, counts = np.unique(
        rows.groups, return_inverse=True, return_counts=True
    )
    order = rng.permutation(labels.size)
    chosen = np.zeros(labels.size, dtype=bool)
    chosen[order[np.cumsum(counts[order]) <= most]] = True
    return np.flatnonzero(chosen[codes])
