"""Every row of the paper's three tables beside what was published, and what is beyond.

P. Pernot, "Can bin-wise scaling improve consistency and adaptivity of prediction
uncertainty for machine learning regression?", arXiv:2310.11978 (2023).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints, rng_from
from .._support.labels import Categories
from .._support.progress import track
from ..bins.partitions import BinnedRows, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..datasets import QM9, Molecules, make_molecules
from ..judging.intervals import wilson_limits
from ..judging.local import Measured, check_settings, measure
from ..judging.references import ReferenceScores, reference_scores
from ..judging.verdicts import validate
from ..predictions import Predictions, as_predictions
from ..scaling import (
    BinwiseScaling,
    BoostedScaling,
    IsotonicScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
)

BIN_NUMBERS = (20, 40, 80)
LOSSES = {"NLL": "nll", "S_tot": "total", "S_con": "consistency", "S_ada": "adaptivity"}
SCORES = ("NLL", "S_cal", "S_u", "S_X1", "S_X2", "S_tot")
VALID = tuple(f"fv_{x}_{end}" for x in ("u", "X1", "X2") for end in ("lo", "hi"))
MIN_GROUP = 10
SCORE_BINS = 100
ISOTONIC, BINNED, JOINT = "isotonic", "40 bins of u", "boosted"

Values = dict[str, float]
Key = tuple[int, str, str, str]
Fit = tuple[int, str, str]


def in_notation(data: Molecules) -> Predictions:
    """Return rows in the paper's notation: X1 is the mass, X2 the hetero-atom fraction.

    A conditioning table ``data.X`` without names has the same columns.
    """
    features = {"X1": data.mass, "X2": data.heteroatom_fraction}
    return as_predictions(data.error, data.uncertainty, features)


@dataclass(frozen=True)
class StudyData:
    """The two sets of the study, and the test set as isotonic regression leaves it."""

    name: str
    training: Molecules
    test: Molecules
    isotonic: Floats
    published: bool

    @classmethod
    def qm9(cls, data: QM9) -> StudyData:
        """Take the paper's data, with the isotonic uncertainties of their authors."""
        isotonic = data.isotonic_test.uncertainty
        return cls("QM9", data.calibration, data.test, isotonic, True)

    @classmethod
    def synthetic(cls, seed: int, n_rows: int = 20_000) -> StudyData:
        """Make built-in molecules, for those who do not have the paper's data."""
        whole = make_molecules(n_rows, seed=seed)
        training, test = (
            replace(whole, **{name: each[rows] for name, each in vars(whole).items()})
            for rows in (slice(n_rows // 2), slice(n_rows // 2, None))
        )
        fitted = IsotonicScaling().fit(training.uncertainty, training.error)
        name = f"synthetic molecules (seed {seed})"
        return cls(name, training, test, fitted.predict(test.uncertainty), False)


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

    `losses` holds, for each fit, the loss of the closed solution and the one reached.
    """

    data: StudyData
    rows: tuple[StudyRow, ...]
    simulated: ReferenceScores
    losses: dict[Fit, tuple[float, float]] = field(repr=False)
    seed: int

    def __getitem__(self, key: Key) -> StudyRow:
        """Return one row."""
        return {row.key: row for row in self.rows}[key]


def published_rows() -> dict[Key, Values]:
    """Return the printed values of Tables I to III."""
    text = (files("sigmascale.paper") / "published_tables.csv").read_text("utf-8")
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


def measure_set(
    rows: Predictions, seed: int, *, u: Floats | None = None, ties: Floats | None = None
) -> Measured:
    """Measure rows, or the same with uncertainties u, in as many bins as the paper."""
    settings = check_settings(SCORE_BINS, "bca")
    judged = rows if u is None else rows.with_uncertainty(u)
    return measure(judged, settings, rng_from(seed), ties=ties)


def evaluate(rows: Predictions, u: Floats, ties: Floats, seed: int) -> Values:
    """Return the scores and valid fractions of one row of a table."""
    measured = measure_set(rows, seed, u=u, ties=ties)
    card = measured.scores.to_dict()
    values = {name: card[name] for name in SCORES}
    for name, result in measured.local.items():
        values[f"fv_{name}_lo"], values[f"fv_{name}_hi"] = result.fraction_interval
    return values


def run_tables(data: StudyData, *, seed: int = 0, n_draws: int = 1000) -> Study:
    """Compute every row of Tables I to III."""
    test = in_notation(data.test)
    simulated = reference_scores(
        test.uncertainty, test.features, n_draws=n_draws, rng=seed
    )
    losses: dict[Fit, tuple[float, float]] = {}
    rows = [*_unscaled(data, simulated, seed), *_fixed(data, seed)]
    fits = list(product(BIN_NUMBERS, ("u", "X1"), LOSSES))
    for fit in track(fits, "fitting bin-wise factors", len(fits)):
        rows += _binwise(data, fit, seed, losses)
    order = published_rows()
    printed = order if data.published else {}
    found = {r.key: replace(r, published=printed.get(r.key)) for r in rows}
    return Study(data, tuple(found[key] for key in order), simulated, losses, seed)


def _unscaled(
    data: StudyData, simulated: ReferenceScores, seed: int
) -> Iterator[StudyRow]:
    test = in_notation(data.test)
    for name, rows in (("training", in_notation(data.training)), ("test", test)):
        u = rows.uncertainty
        values = evaluate(rows, u, u, seed)
        yield from _repeated(("none", name, "none"), values)
    values = evaluate(test, data.isotonic, in_file_order(data.isotonic), seed)
    yield from _repeated(("none", "test", "isotonic"), values)
    mean = simulated.mean
    values = {name: mean[name] for name in SCORES if name != "NLL"}
    values |= _perfect_fractions(test, seed)
    yield from _repeated(("none", "test", "simulated"), values, "one draw")


def _repeated(
    key: tuple[str, str, str], values: Values, deviation: str | None = None
) -> Iterator[StudyRow]:
    """Return a row that all three tables have."""
    for n_bins in BIN_NUMBERS:
        yield StudyRow((n_bins, *key), values, None, deviation)


def _perfect_fractions(test: Predictions, seed: int, n_draws: int = 20) -> Values:
    """Return intervals of the valid fractions, averaged over simulated sets."""
    rng = np.random.default_rng(seed)
    valid = dict.fromkeys(test.names, 0.0)
    for _ in range(n_draws):
        error = rng.standard_normal(test.n_rows) * test.uncertainty
        local = measure_set(test.changed(error=error), seed).local
        for x, result in local.items():
            valid[x] += result.valid.sum() / n_draws
    n_bins = local["u"].valid.size
    values = {}
    for x, count in valid.items():
        ends = wilson_limits(round(count), n_bins)
        values[f"fv_{x}_lo"], values[f"fv_{x}_hi"] = ends
    return values


def _fixed(data: StudyData, seed: int) -> Iterator[StudyRow]:
    """Two-dimensional cells and groups, which the paper has for 20 bins only."""
    # the paper takes every cell's own factor, however few its rows
    cells = BinwiseScaling(20, by=(0, 1), least_rows=0)
    cells.fit(data.training.X, data.training.error)
    for which, name in ((data.training, "training"), (data.test, "test")):
        u = cells.predict(which.X)
        ties = lexicographic_rank(which.mass, which.uncertainty)
        values = evaluate(in_notation(which), u, ties, seed)
        yield StudyRow((20, "u&X1", name, "NLL"), values)
    groups = LabelBins.learn(Categories.of(data.training.group), min_size=MIN_GROUP)
    last = groups.n_bins - 1
    codes = groups.codes(Categories.of(data.training.group))
    factors = _factors(data.training, codes, groups.n_bins)
    lost = lost_groups(groups)
    for which, name in ((data.training, "training"), (data.test, "test")):
        rows, codes = in_notation(which), groups.codes(Categories.of(which.group))
        in_file = np.arange(codes.size, dtype=float)
        known = codes < last
        scaled = factors[codes] * rows.uncertainty
        ours = evaluate(rows.take(known), scaled[known], in_file[known], seed)
        # The published code drops the last valid group of each number of O atoms, and
        # leaves the groups that are too small unscaled.
        # It also removes compositions beyond the range of the test set.
        extreme = exceeds(which.group, data.test.group)
        kept = ~np.isin(codes, lost) & ~extreme
        partly = np.where(known, factors[codes], 1.0) * rows.uncertainty
        theirs = evaluate(rows.take(kept), partly[kept], in_file[kept], seed)
        yield StudyRow((20, "OxNy", name, "NLL"), ours, theirs, "groups lost")


def _oxygen_nitrogen(labels: Any) -> Ints:
    return np.array([[int(n) for n in label[1:].split("N")] for label in labels])


def lost_groups(groups: LabelBins) -> list[int]:
    """Return the codes of the groups with most N atoms for each number of O atoms."""
    last: dict[int, tuple[int, int]] = {}
    for code, (oxygen, nitrogen) in enumerate(_oxygen_nitrogen(groups.labels)):
        last[oxygen] = max(last.get(oxygen, (-1, -1)), (nitrogen, code))
    return [code for _, code in last.values()]


def exceeds(labels: Any, others: Any) -> Any:
    """Return which labels have more O or N atoms than any of the others."""
    most = _oxygen_nitrogen(np.unique(others)).max(axis=0)
    distinct, inverse = np.unique(labels, return_inverse=True)
    return (_oxygen_nitrogen(distinct) > most).any(axis=1)[inverse]


def _factors(data: Molecules, codes: Ints, n_bins: int) -> Floats:
    rows = BinnedRows.from_codes(codes, n_bins)
    return BinSums.from_rows(rows, data.error, data.uncertainty).scaling_factors()


def mapped_by_feature_alone(partition: EqualSizeBins, x: Floats) -> Ints:
    """Return the bins of new rows as the published code finds them."""
    codes: Ints = EqualSizeBins(partition.limits).codes(x)
    return codes


def _binwise(
    data: StudyData, fit: Fit, seed: int, losses: dict[Fit, tuple[float, float]]
) -> Iterator[StudyRow]:
    n_bins, by, scaling = fit
    column = {"u": 0, "X1": 1}[by]
    scaler = BinwiseScaling(
        n_bins, by=column, loss=LOSSES[scaling], least_rows=0, random_state=seed
    ).fit(data.training.X, data.training.error)
    losses[fit] = (scaler.start_loss_, scaler.loss_)
    optimised = "optimiser" if scaling != "NLL" else None
    for which, name in ((data.training, "training"), (data.test, "test")):
        rows, u = in_notation(which), which.uncertainty
        ties = u if by == "u" else lexicographic_rank(which.mass, u)
        ours = evaluate(rows, scaler.predict(which.X), ties, seed)
        theirs, deviation = None, optimised
        if by == "X1" and name == "test":
            deviation = optimised or "mapping"
            # The published code finds the bin of a new row from X1 alone.
            partition: Any = scaler.partition_
            codes = mapped_by_feature_alone(partition, which.mass)
            theirs = evaluate(rows, scaler.factors_[codes] * u, ties, seed)
        yield StudyRow((n_bins, by, name, scaling), ours, theirs, deviation)


@dataclass(frozen=True)
class Beyond:
    """Scores on the test set, its uncertainties and verdicts, by method."""

    data: StudyData
    scores: dict[str, Values]
    uncertainties: dict[str, Floats]
    verdicts: dict[str, str]
    chosen: str
    seed: int


def run_beyond(data: StudyData, *, seed: int = 0) -> Beyond:
    """Fit each method on the training set with its defaults, and score the test set."""
    selected = SelectedScaling(random_state=seed)
    scalers = {
        "one factor": TemperatureScaling(),
        BINNED: BinwiseScaling(40),
        "40 bins of X1": BinwiseScaling(40, by=1),
        "raked": RakedScaling(random_state=seed),
        JOINT: BoostedScaling(random_state=seed),
        "selected": selected,
    }
    training, test = data.training, in_notation(data.test)
    before = test.uncertainty
    uncertainties = {"none": before, ISOTONIC: data.isotonic}
    for name, scaler in track(scalers.items(), "beyond the paper", len(scalers)):
        fitted = scaler.fit(training.X, training.error)
        uncertainties[name] = fitted.predict(data.test.X)
    scores, verdicts = {}, {}
    for name, u in uncertainties.items():
        scores[name] = evaluate(test, u, before, seed)
        result = validate(test.with_uncertainty(u), ties=before, rng=seed)
        verdicts[name] = result.summary
    return Beyond(data, scores, uncertainties, verdicts, selected.name_, seed)
