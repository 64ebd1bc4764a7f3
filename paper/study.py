"""Every row of the paper's three tables beside what was published, and what is beyond.

P. Pernot, "Can bin-wise scaling improve consistency and adaptivity of prediction
uncertainty for machine learning regression?", arXiv:2310.11978 (2023).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import sigmascale as ss
from sigmascale import scores
from sigmascale.predictions.datasets import QM9, Molecules, make_molecules

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BIN_NUMBERS = (20, 40, 80)
LOSSES: dict[str, Any] = {
    "NLL": "nll",
    "S_tot": "total",
    "S_con": "consistency",
    "S_ada": "adaptivity",
}
SCORES = ("NLL", "S_cal", "S_u", "S_X1", "S_X2", "S_tot")
VALID = tuple(f"fv_{x}_{end}" for x in ("u", "X1", "X2") for end in ("lo", "hi"))
MIN_GROUP = 10
SCORE_BINS = 100
N_RESAMPLES = 1500  # of the BCa bootstrap
SEEDS = 20  # of it, for the spread of the fractions of valid bins
ISOTONIC, BINNED, JOINT = "isotonic", "40 bins of u", "boosted"

Values = dict[str, float]
Key = tuple[int, str, str, str]
Fit = tuple[int, str, str]


def in_notation(data: Molecules) -> ss.Predictions:
    """Return rows in the paper's notation: X1 is the mass, X2 the hetero-atom fraction.

    The paper has errors alone, in the order of the file.
    """
    p = data.predictions
    features = dict(zip(("X1", "X2"), p.features.values(), strict=True))
    return ss.Predictions(y_std=p.y_std, error=p.error, features=features)


@dataclass(frozen=True)
class StudyData:
    """The two sets of the study, and the test set as isotonic regression leaves it.

    `groups` are the compositions OxNy of both sets.
    """

    name: str
    training: ss.Predictions
    test: ss.Predictions
    groups: tuple[Any, Any]
    isotonic: Floats
    published: bool

    @classmethod
    def qm9(cls, data: QM9) -> StudyData:
        """Take the paper's data, with the isotonic uncertainties of their authors."""
        isotonic = data.isotonic_test.predictions.y_std
        training, test = data.calibration, data.test
        groups = training.group, test.group
        rows = in_notation(training), in_notation(test)
        return cls("QM9", rows[0], rows[1], groups, isotonic, published=True)

    @classmethod
    def synthetic(cls, seed: int, n_rows: int = 20_000) -> StudyData:
        """Make built-in molecules, for those who do not have the paper's data."""
        whole = make_molecules(n_rows, seed=seed)
        first, second = np.split(np.arange(n_rows), 2)
        training, test = (in_notation(whole).take(half) for half in (first, second))
        isotonic = ss.IsotonicScaling().learn(training).map.of_rows(test)
        groups = whole.group[first], whole.group[second]
        name = f"synthetic molecules (seed {seed})"
        return cls(name, training, test, groups, isotonic, published=False)

    @property
    def sets(self) -> list[tuple[str, ss.Predictions, Any]]:
        """The name, the rows and the compositions of both sets."""
        names, rows = ("training", "test"), (self.training, self.test)
        return list(zip(names, rows, self.groups, strict=True))


@dataclass(frozen=True)
class StudyRow:
    """One row of a table.

    Attributes
    ----------
    key : tuple
        (number of bins, binning, dataset, scaling), as in the published tables.
    ours : dict
        What this library computes.
    as_published : dict or None
        What comes out when a slip of the published code is followed; None where
        there is none.
    deviation : str or None
        The name of the reason why `ours` may differ from `published`.
    published : dict or None
        The printed values; None when the data are not the paper's.
    """

    key: Key
    ours: Values
    as_published: Values | None = None
    deviation: str | None = None
    published: Values | None = None

    def differs(self, name: str) -> bool:
        """Whether our value, printed to two decimals, is not the published one."""
        ours, published = self.ours, self.published or {}
        if name not in published or name not in ours:
            return False
        return abs(ours[name] - published[name]) > 0.005 + 1e-9


@dataclass(frozen=True)
class Study:
    """All rows, and what the page of deviations needs beside them.

    `moved` is the share of test rows that get another bin if only X1 is looked at;
    `seeds` has the fractions of valid bins of some sets and variables over seeds.
    """

    data: StudyData
    rows: tuple[StudyRow, ...]
    simulated: scores.ReferenceScores
    moved: dict[int, float]
    seeds: dict[tuple[str, str], Floats]
    seed: int

    def __getitem__(self, key: Key) -> StudyRow:
        """Return one row."""
        return {row.key: row for row in self.rows}[key]


def published_rows() -> dict[Key, Values]:
    """Return the printed values of Tables I to III."""
    text = (Path(__file__).parent / "published_tables.csv").read_text("utf-8")
    rows = {}
    for line in csv.DictReader(text.splitlines()):
        key = (int(line["n_bins"]), line["binning"], line["dataset"], line["scaling"])
        rows[key] = {n: float(line[n]) for n in (*SCORES, *VALID) if line[n]}
    return rows


def lexicographic_rank(first: Floats, second: Floats | Ints) -> Floats:
    """Return the position of each row when sorted by `first`, then `second`."""
    rank = np.empty(first.size)
    rank[np.lexsort((second, first))] = np.arange(first.size)
    return rank


def in_file_order(u: Floats) -> Floats:
    """Return what leaves equal u in the order of the file, as the paper does.

    Isotonic uncertainties have many ties.
    """
    return lexicographic_rank(u, np.arange(u.size))


def local_zms(
    p: ss.Predictions, seed: int, *, ties: Floats | None = None
) -> dict[str, scores.LocalStatistics]:
    """Return the local <Z²> along every variable, in as many bins as the paper."""
    how: dict[str, Any] = {"n_bins": SCORE_BINS, "ties": ties, "rng": seed}
    how["n_resamples"] = N_RESAMPLES
    return {x: scores.local_statistics(p, by=x, **how) for x in p.names}


def evaluate(p: ss.Predictions, u: Floats, ties: Floats, seed: int) -> Values:
    """Return the scores and valid fractions of one row of a table."""
    rows = p.with_y_std(u)
    card = scores.scorecard(rows, n_bins=SCORE_BINS, ties=ties)
    values = {name: card[name] for name in SCORES}
    for name, local in local_zms(rows, seed, ties=ties).items():
        values[f"fv_{name}_lo"], values[f"fv_{name}_hi"] = local.fraction_interval
    return values


def valid_over_seeds(data: StudyData) -> dict[tuple[str, str], Floats]:
    """Return the fractions of valid bins of three sets over seeds of the bootstrap."""
    test, ties = data.test, in_file_order(data.isotonic)
    factors = ss.BinwiseScaling(40, prior_rows=0).learn(data.training).map
    sets = {
        "unscaled": (test, test.y_std),
        "isotonic": (test.with_y_std(data.isotonic), ties),
        "40 bins of u": (test.with_y_std(factors.of_rows(test)), test.y_std),
    }
    fractions = {}
    for name, (rows, order) in sets.items():
        over_seeds = [local_zms(rows, seed, ties=order) for seed in range(SEEDS)]
        for x in rows.names:
            found = [local[x].fraction_valid for local in over_seeds]
            fractions[name, x] = np.array(found)
    return fractions


def run_tables(data: StudyData, *, seed: int = 0, n_draws: int = 1000) -> Study:
    """Compute every row of Tables I to III."""
    simulated = scores.reference_scores(
        data.test, n_draws=n_draws, n_bins=SCORE_BINS, rng=seed
    )
    moved: dict[int, float] = {}
    rows = [*_unscaled(data, simulated, seed), *_cells(data, seed)]
    rows += _compositions(data, seed)
    for fit in product(BIN_NUMBERS, ("u", "X1"), LOSSES):
        print("Fitting", *fit, flush=True)
        rows += _binwise(data, fit, seed, moved)
    order = published_rows()
    printed = order if data.published else {}
    found = {r.key: replace(r, published=printed.get(r.key)) for r in rows}
    ordered = tuple(found[key] for key in order)
    return Study(data, ordered, simulated, moved, valid_over_seeds(data), seed)


def _unscaled(
    data: StudyData, simulated: scores.ReferenceScores, seed: int
) -> Iterator[StudyRow]:
    """Return the rows that all three tables have."""
    values = {
        ("none", name, "none"): evaluate(p, p.y_std, p.y_std, seed)
        for name, p, _ in data.sets
    }
    ties = in_file_order(data.isotonic)
    values["none", "test", "isotonic"] = evaluate(data.test, data.isotonic, ties, seed)
    values["none", "test", "simulated"] = _perfect(simulated)
    for n_bins, (key, each) in product(BIN_NUMBERS, values.items()):
        deviation = "one draw" if key[2] == "simulated" else None
        yield StudyRow((n_bins, *key), each, None, deviation)


def _perfect(simulated: scores.ReferenceScores) -> Values:
    """Return mean scores of simulated sets, and intervals of mean valid fractions."""
    values = {name: simulated.mean[name] for name in SCORES if name != "NLL"}
    for x in ("u", "X1", "X2"):
        n_valid = round(SCORE_BINS * simulated.mean[f"f_v_{x}"])
        ends = stats.binomtest(n_valid, SCORE_BINS).proportion_ci(0.95, "wilsoncc")
        values[f"fv_{x}_lo"], values[f"fv_{x}_hi"] = float(ends.low), float(ends.high)
    return values


def _cells(data: StudyData, seed: int) -> Iterator[StudyRow]:
    """Yield the rows of two-dimensional cells, which the paper has for 20 bins."""
    scaling = ss.BinwiseScaling(20, by=("u", "X1"), prior_rows=0)
    scale = scaling.learn(data.training).map
    for name, p, _ in data.sets:
        ties = lexicographic_rank(p.features["X1"], p.y_std)
        values = evaluate(p, scale.of_rows(p), ties, seed)
        yield StudyRow((20, "u&X1", name, "NLL"), values)


def _compositions(data: StudyData, seed: int) -> Iterator[StudyRow]:
    """Yield the rows of equal compositions, which the table of 20 bins has."""
    labels, lost = valid_compositions(data.groups[0])
    train = data.training
    factors = {
        label: np.sqrt(np.mean(train.z2[data.groups[0] == label])) for label in labels
    }
    for name, p, groups in data.sets:
        in_file = np.arange(p.n_rows, dtype=float)
        factor = np.array([factors.get(label, 1.0) for label in groups])
        known = np.isin(groups, labels)
        rows = p.take(known)
        ours = evaluate(rows, (factor * p.y_std)[known], in_file[known], seed)
        # The published code drops the last valid group of each number of O atoms, and
        # leaves the groups that are too small unscaled.
        # It also removes compositions beyond the range of the test set.
        kept = ~np.isin(groups, lost) & ~exceeds(groups, data.groups[1])
        rows = p.take(kept)
        theirs = evaluate(rows, (factor * p.y_std)[kept], in_file[kept], seed)
        yield StudyRow((20, "OxNy", name, "NLL"), ours, theirs, "groups lost")


def _oxygen_nitrogen(labels: Any) -> Ints:
    return np.array([[int(n) for n in label[1:].split("N")] for label in labels])


def valid_compositions(groups: Any) -> tuple[list[str], list[str]]:
    """Return compositions of enough rows, and those that the published code loses.

    These have most N atoms for their number of O atoms.
    """
    found, counts = np.unique(groups, return_counts=True)
    labels = found[counts >= MIN_GROUP]
    last: dict[int, tuple[int, str]] = {}
    for label, (oxygen, nitrogen) in zip(labels, _oxygen_nitrogen(labels), strict=True):
        last[oxygen] = max(last.get(oxygen, (-1, "")), (int(nitrogen), str(label)))
    return labels.tolist(), [label for _, label in last.values()]


def exceeds(labels: Any, others: Any) -> Any:
    """Return which labels have more O or N atoms than any of the others."""
    most = _oxygen_nitrogen(np.unique(others)).max(axis=0)
    distinct, inverse = np.unique(labels, return_inverse=True)
    return (_oxygen_nitrogen(distinct) > most).any(axis=1)[inverse]


def _binwise(
    data: StudyData, fit: Fit, seed: int, moved: dict[int, float]
) -> Iterator[StudyRow]:
    """Yield the rows of a bin-wise scaling; optimised ones have the paper's ties."""
    n_bins, by, loss = fit
    scaling = ss.BinwiseScaling(
        n_bins,
        by=by,
        prior_rows=0,  # the paper takes every bin's own factor, however few its rows
        loss=LOSSES[loss],
        n_score_bins=SCORE_BINS,
        ties="u" if by == "u" else ("X1", "u"),
    )
    scale = scaling.learn(data.training).map
    optimised = "optimiser" if loss != "NLL" else None
    for name, p, _ in data.sets:
        ties = p.y_std if by == "u" else lexicographic_rank(p.features["X1"], p.y_std)
        ours = evaluate(p, scale.of_rows(p), ties, seed)
        theirs, deviation = None, optimised
        if by == "X1" and name == "test":
            deviation = optimised or "mapping"
            # The published code finds the bin of a new row from X1 alone.
            blind = replace(scale, axes=(replace(scale.axes[0], ties=None),))
            theirs = evaluate(p, blind.of_rows(p), ties, seed)
            codes = (each.axes[0].codes(p.columns) for each in (scale, blind))
            moved[n_bins] = float(np.mean(np.not_equal(*codes)))
        yield StudyRow((n_bins, by, name, loss), ours, theirs, deviation)


@dataclass(frozen=True)
class Beyond:
    """Scores on the test set, its uncertainties and results, by method."""

    data: StudyData
    table: dict[str, Values]
    uncertainties: dict[str, Floats]
    results: dict[str, str]
    seed: int


def run_beyond(data: StudyData, *, seed: int = 0) -> Beyond:
    """Fit each method on the training set with its defaults, and score the test set."""
    scalings: dict[str, ss.Scaling] = {
        "one factor": ss.TemperatureScaling(),
        BINNED: ss.BinwiseScaling(40, by="u"),
        "40 bins of X1": ss.BinwiseScaling(40, by="X1"),
        "20 by 20 cells": ss.BinwiseScaling(20, by=("u", "X1")),
        "raked": ss.RakedScaling(random_state=seed),
        JOINT: ss.BoostedScaling(random_state=seed),
    }
    before = data.test.y_std
    uncertainties = {"none": before, ISOTONIC: data.isotonic}
    for name, scaling in scalings.items():
        uncertainties[name] = scaling.learn(data.training).map.of_rows(data.test)
    table = {
        name: evaluate(data.test, u, before, seed) for name, u in uncertainties.items()
    }
    results = {}
    for name, u in uncertainties.items():
        p = data.test.with_y_std(u)
        largest = p.take(np.argsort(u)[-p.n_rows // 50 :])
        covered = scores.coverage(largest, coverage=0.95)
        results[name] = (
            f"{ss.validate(p, rng=seed).headline}. Where u is largest, in 2 % of the "
            f"rows, 95 % intervals (±1.96 u) cover {100 * covered:.0f} %."
        )
    return Beyond(data, table, uncertainties, results, seed)
