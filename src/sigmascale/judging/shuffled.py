"""All questions that shuffled sets answer, put to a set at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints
from ..predictions import Predictions
from .joint import Learned, learn_jointly
from .multiplicity import Compared
from .resampling import shuffled_rows
from .scans import ScannedRows, ScannedVariable, shift_scan, variance_scan
from .validation import BIAS, COVERAGE, JOINT

SHUFFLED_ROWS = 50_000  # of shuffled sets: beyond, statistics do not change any more
KEPT = 200  # shuffled sets whose sums are kept, to see what would be found


@dataclass(frozen=True, eq=False)
class Shuffled:
    """What a set and its shuffled copies have shown.

    Attributes
    ----------
    compared : Compared
        Statistics of the questions: variables by name, "bias", "coverage", "joint".
    variables : dict of str to ScannedVariable
        Variables in fine bins; those of one value are not tested.
    sums : dict of str to dict of str to array
        Sums of "z2", "z" and "outside" by the fine bins of each variable.
    kept : dict of str to (ScannedVariable, array of shape (n_kept, n_bins))
        Sums of z² of some shuffled sets, over the mean of z², by variable.
    some_rows : Predictions
        The rows that were shuffled, and jointly learned from.
    learned : Learned or None
        What u and the features together say about the z² of these.
    reach : float
        The multiple of u that holds 95 % of the errors.
    """

    compared: Compared
    variables: dict[str, ScannedVariable]
    sums: dict[str, dict[str, Floats]]
    kept: dict[str, tuple[ScannedVariable, Floats]]
    some_rows: Predictions
    learned: Learned | None
    reach: float


def shuffle_and_test(
    rows: Predictions, n_draws: int, rng: np.random.Generator, *, joint: bool
) -> Shuffled:
    """Compute the statistics of all questions, of a set and of shuffled ones."""
    whole = ScannedRows(rows, _scanned(rows))
    some_rows = rows
    if rows.n_rows > SHUFFLED_ROWS:
        some_rows = rows.take(_some_rows(rows, SHUFFLED_ROWS, rng))
    copies = whole
    if some_rows is not rows:
        copies = ScannedRows(some_rows, _scanned(some_rows))
    learned = learn_jointly(some_rows, rng) if joint else None

    sums = {
        name: [each[0] for each in whole.sums(values[:, None])]
        for name, values in whole.values.items()
    }
    observed = {
        name: float(values[0])
        for name, values in _statistics(
            whole, {n: [v[None] for v in each] for n, each in sums.items()}
        ).items()
    }
    if learned is not None:
        z2 = copies.values["z2"]
        observed[JOINT] = float(learned.gain(z2 / copies.means(z2)))
    draws: dict[str, list[Floats]] = {name: [] for name in observed}
    kept: list[list[Floats]] = []
    draw = shuffled_rows(some_rows.n_rows, some_rows.groups, rng)
    for sources in copies.shuffled(draw, n_draws):
        shuffled = {name: x[sources] for name, x in copies.values.items()}
        of_bins = {name: copies.sums(x) for name, x in shuffled.items()}
        found = _statistics(copies, of_bins)
        mean = copies.means(shuffled["z2"])
        if learned is not None:
            found[JOINT] = learned.gain(shuffled["z2"] / mean)
        for name in draws:
            draws[name].append(found[name])
        if len(kept) * sources.shape[1] < KEPT:
            of_sets = np.reshape(mean, (-1, 1))
            kept.append([each / of_sets for each in of_bins["z2"]])
    return Shuffled(
        compared=Compared(
            observed, {n: np.concatenate(each) for n, each in draws.items()}
        ),
        variables={variable.name: variable for variable in whole.variables},
        sums={
            variable.name: {name: sums[name][i] for name in sums}
            for i, variable in enumerate(whole.variables)
        },
        kept={
            variable.name: (variable, np.concatenate([each[i] for each in kept]))
            for i, variable in enumerate(copies.variables)
        },
        some_rows=some_rows,
        learned=learned,
        reach=whole.reach,
    )


def _scanned(rows: Predictions) -> list[ScannedVariable]:
    return [
        ScannedVariable.of(
            name, rows.labels(name) if rows.is_labelled(name) else x, rows.weights
        )
        for name, x in zip(rows.names, rows.columns, strict=True)
    ]


def _statistics(
    scanned: ScannedRows, sums: dict[str, list[Floats]]
) -> dict[str, Floats]:
    """Return the statistics of sets from their sums by bin, one set a row."""
    tested = [i for i, each in enumerate(scanned.variables) if each.n_bins > 1]
    found = {
        scanned.variables[i].name: variance_scan(scanned.variables[i], sums["z2"][i])
        for i in tested
    }
    for question, name in ((BIAS, "z"), (COVERAGE, "outside")):
        variance = float(scanned.values[name].var())
        by_variable = [
            shift_scan(scanned.variables[i], sums[name][i], variance) for i in tested
        ]
        if by_variable:
            found[question] = np.max(by_variable, axis=0)
    return found


def _some_rows(rows: Predictions, most: int, rng: np.random.Generator) -> Ints:
    """Return some of the rows, whole groups of them."""
    if rows.groups is None:
        return np.sort(rng.choice(rows.n_rows, most, replace=False))
    labels, codes, counts = np.unique(
        rows.groups, return_inverse=True, return_counts=True
    )
    order = rng.permutation(labels.size)
    chosen = np.zeros(labels.size, dtype=np.bool_)
    chosen[order[np.cumsum(counts[order]) <= most]] = True
    return np.flatnonzero(chosen[codes])
