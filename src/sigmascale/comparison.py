"""Many recalibrators, or models, one table; which is better, with an interval."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import fill
from typing import Any, Literal

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ._support.checks import Floats, check_pair, rng_from
from ._support.notebook import chart, page, ticks_of
from ._support.progress import track
from ._support.render import WIDTH, Cells, Result, html_table, shorten, text_table
from .bins.partitions import bins_of
from .exceptions import InvalidInputError
from .judging.intervals import Estimate, IntervalMethod, interval_of_all
from .judging.local import BinSettings, LocalZMS, Measured, check_settings, measure
from .judging.scores import Scorecard
from .maps.distributions import distributions_of, with_law
from .predictions import Data, Predictions, read_pair
from .recalibrator import Recalibrator
from .regression.sources import some_rows
from .scaling import VarianceScaler

UNSCALED = "none"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ComparisonRow:
    """One recalibrator's scores and valid fractions on both sets.

    Models that are compared as they are have no calibration set.

    Attributes
    ----------
    differences : dict of str to Estimate
        How much larger the mean CRPS ("crps") and the mean normal NLL ("nll") of the
        test set are than those of the first line of the table, row by row, with
        intervals of 95 % that count rows, or groups. Below 0 is better.
    """

    name: str
    calibration: Scorecard | None
    test: Scorecard
    calibration_local: dict[str, LocalZMS] = field(repr=False)
    test_local: dict[str, LocalZMS] = field(repr=False)
    fit_seconds: float
    differences: dict[str, Estimate] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every number under a flat name."""
        flat: dict[str, Any] = {"method": self.name}
        for which, card, local in (
            ("calibration", self.calibration, self.calibration_local),
            ("test", self.test, self.test_local),
        ):
            if card is None:
                continue
            flat |= {f"{which} {name}": v for name, v in card.to_dict().items()}
            for name, result in local.items():
                low, high = result.fraction_interval
                flat[f"{which} valid_{name}"] = result.fraction_valid
                flat[f"{which} valid_{name} low"] = low
                flat[f"{which} valid_{name} high"] = high
        for name, found in self.differences.items():
            flat[f"test {name} difference"] = found.value
            flat[f"test {name} difference low"] = found.low
            flat[f"test {name} difference high"] = found.high
        return flat | {"fit seconds": self.fit_seconds}


@dataclass(frozen=True)
class Comparison(Result):
    """A table with one row a recalibrator, or model; ``str()`` shows the test set.

    "valid %" lists the percentage of valid bins of u and each feature, in the order of
    the S columns.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        In the order of the recalibrators; "none" are the uncertainties as they came.
    best : str
        The one with the lowest mean CRPS of the test set.
    alike : tuple of str
        Those that cannot be told from the best: their paired differences may be 0, with
        an error rate of 5 % over all of them together.
    units : str
        What intervals of differences count: "rows" or "groups".
    """

    rows: tuple[ComparisonRow, ...]
    best: str
    alike: tuple[str, ...]
    units: str

    @property
    def sentence(self) -> str:
        """Which is better, as far as that can be told."""
        if len(self.alike) == len(self.rows) - 1:
            words = "By CRPS, it cannot be told which is better"
            return f"{words}: {self.best} has the lowest, perhaps by chance."
        words = f"By CRPS, {self.best} is best"
        if self.alike:
            words += f"; it cannot be told from {', '.join(self.alike)}"
        return f"{words}."

    def _paired(self) -> Cells:
        """Return the differences to the first, as a table."""
        rows = []
        for row in self.rows[1:]:
            found = row.differences["crps"]
            better, worse = found.high < 0, found.low > 0
            answer = "better" if better else "worse" if worse else "cannot tell"
            cells = [each.signed for each in row.differences.values()]
            rows.append([row.name, *cells, answer])
        against = f"against {shorten(self.rows[0].name, 20)}"
        return [against, "CRPS", "NLL", "by CRPS"], rows

    def __str__(self) -> str:
        """Return the table of the test set, and what can be told from differences."""
        words = f"Paired differences, with intervals of 95 % that count {self.units}:"
        paired = f"{words}\n{text_table(*self._paired())}\n"
        return f"{super().__str__()}\n\n{paired}{fill(self.sentence, WIDTH)}"

    def __getitem__(self, name: str) -> ComparisonRow:
        """Return the row of one recalibrator."""
        return {row.name: row for row in self.rows}[name]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table as columns."""
        flat = [row.to_dict() for row in self.rows]
        return {name: [row[name] for row in flat] for name in flat[0]}

    def to_frame(
        self, backend: Literal["polars", "pandas", "pyarrow"] = "polars"
    ) -> Any:
        """Return the table as a data frame of "polars", "pandas" or "pyarrow"."""
        return nw.from_dict(self.to_dict(), backend=backend).to_native()

    def _cells(self, which: str = "test") -> Cells:
        variables = list(self.rows[0].test.s)
        short = {name: shorten(name) for name in variables}
        header = ["method", "NLL", "CRPS", "in 90%", "S_cal"]
        header += [f"S_{short[name]}" for name in variables]
        header += ["S_tot", "valid %"]
        rows = []
        for row in self.rows:
            card: Scorecard = getattr(row, which)
            local: dict[str, LocalZMS] = getattr(row, f"{which}_local")
            numbers = [card.nll, card.s_cal, *card.s.values(), card.s_tot]
            valid = " ".join(
                f"{100 * local[name].fraction_valid:3.0f}" for name in variables
            )
            found = card.distribution
            crps, held = "-", "-"
            if found is not None:
                crps, held = f"{found.crps:.3g}", f"{100 * found.coverage[0.9]:.0f}"
            shown = [f"{value:.2f}" for value in numbers]
            rows.append([row.name, shown[0], crps, held, *shown[1:], valid])
        return header, rows

    def __repr__(self) -> str:
        """Return which is best, in words."""
        return self.sentence

    def _repr_html_(self) -> str:
        found = [row.differences["crps"] for row in self.rows]
        names = {-float(i): shorten(row.name, 24) for i, row in enumerate(self.rows)}
        value, low, high = (
            np.array([getattr(each, end) for each in found])
            for end in ("value", "low", "high")
        )
        figure = chart(
            value,
            np.array([*names]),
            labels=(f"CRPS of the test set, minus that of {names[0]}", ""),
            ticks=(ticks_of(np.concatenate([low, high])), names),
            bars=(low, high),
            wrong=low > 0,
            lines=[(np.zeros(2), np.array([0.5, 0.5 - len(names)]))],
            flat=True,
        )
        tables = {"Paired differences": html_table(*self._paired())}
        for which in ("test", "calibration"):
            if getattr(self.rows[0], which) is not None:
                cells = html_table(*self._cells(which))
                tables[f"{which.capitalize()} set"] = cells
        return page([escape(self.sentence)], figure, tables)


def name_of(scaler: Any) -> str:
    """Return a short name: the class without "Scaling", and what is not default.

    >>> import sigmascale as ss
    >>> name_of(ss.BinwiseScaling(20, by=(0, 1)))
    'Binwise(by=(0, 1), n_bins=20)'
    """
    if not isinstance(scaler, VarianceScaler):
        return type(scaler).__name__
    defaults = type(scaler)().get_params()
    changed = [
        f"{key}={value!r}"
        for key, value in scaler.get_params().items()
        if value != defaults[key]
    ]
    name = type(scaler).__name__.removesuffix("Scaling")
    return f"{name}({', '.join(changed)})" if changed else name


def _named(scalers: Any) -> dict[str, Any]:
    if isinstance(scalers, Mapping):
        each: Sequence[Any] = list(scalers.values())
    else:
        each = scalers if isinstance(scalers, Sequence) else [scalers]
    for scaler in each:
        if not hasattr(scaler, "fit") or not hasattr(scaler, "predict"):
            msg = (
                f"`scalers` must be recalibrators, a list or a dict of them; found "
                f"{scaler!r}."
            )
            raise InvalidInputError(msg)
    if isinstance(scalers, Mapping):
        return {str(name): scaler for name, scaler in scalers.items()}
    named = {name_of(scaler): scaler for scaler in each}
    if len(named) < len(each):
        msg = "`scalers` must not repeat one; pass a dict to name them yourself."
        raise InvalidInputError(msg)
    return named


def compare(
    scalers: Any,
    calibration: Data | None = None,
    test: Data | None = None,
    *,
    features: Sequence[int | str] | None = None,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    rng: int = 0,
) -> Comparison:
    """Fit each recalibrator on one set, score it on both, and tabulate.

    Or score predictions of several models as they are, on the same rows. Which is
    better is told from differences of CRPS, row by row.

    Parameters
    ----------
    scalers : list or dict of recalibrators, or dict of Predictions
        They are cloned, not changed. A dict gives them names. Predictions of models, by
        name, of the same rows with known errors, are compared with the first of them.
        Groups and weights are those of the first.
    calibration, test : Predictions, (X, y), (X, y, groups) or with sample_weight, too
        The set to fit on and the set to judge by: Predictions with errors, or the
        conditioning table (uncertainty first, then features) and errors. Groups are
        labels of rows that belong together, as repeats of one sample do: fits keep them
        together, and intervals count groups rather than rows. Weights are those of
        rows, at least 0; groups may be None.
    features : list of int or str, optional
        Columns of X to score adaptivity for; by default all but the first.
    n_bins : int, optional
        Number of bins of the local scores and of the valid fractions. By default they
        have 30 rows or more, and there are at most 100. Fewer, with a warning, where a
        bin would have under 5 rows, or rows of under 5 groups.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How intervals of the local <Z²> are made.
    rng : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(4000, seed=0)
    >>> calibration, test = (
    ...     (data.X[:2000], data.error[:2000]),
    ...     (data.X[2000:], data.error[2000:]),
    ... )
    >>> scalers = [ss.TemperatureScaling(), ss.IsotonicScaling()]
    >>> table = compare(scalers, calibration, test)
    >>> [row.name for row in table.rows]
    ['none', 'Temperature', 'Isotonic']
    >>> table["Isotonic"].differences["crps"].high < 0  # better than none
    True

    Of two models:

    >>> p = ss.Predictions(error=data.error, y_std=data.X[:, 0])
    >>> q = ss.Predictions(error=data.error, y_std=1.1 * data.X[:, 0])
    >>> compare({"p": p, "q": q}).best
    'p'
    """
    if calibration is None and test is None:
        return _compare_models(scalers, features, n_bins, method, rng)
    named = _named(scalers)
    if UNSCALED in named:
        msg = (
            f'`scalers` must not have one named "{UNSCALED}", the row of the '
            "uncertainties as they came. Rename it."
        )
        raise InvalidInputError(msg)
    sets = [
        _Set.read(calibration, "calibration", features),
        _Set.read(test, "test", features),
    ]
    settings = [
        check_settings(bins_of(n_bins, each.rows.total), method) for each in sets
    ]
    rows, outcomes = [], []
    everything = {UNSCALED: None, **named}
    for name, scaler in track(everything.items(), "comparing", len(everything)):
        started = time.perf_counter()
        if scaler is None:
            seconds, outputs = 0.0, [each.judged for each in sets]
        else:
            fitted = sets[0].fit(clone(scaler))
            seconds = time.perf_counter() - started
            outputs = [each.recalibrated(fitted) for each in sets]
        learned, judged = (
            each.measure(rows, how, rng)
            for each, rows, how in zip(sets, outputs, settings, strict=True)
        )
        outcomes.append(outputs[1])
        rows.append((name, judged, learned, seconds))
    return _tabulate(rows, outcomes)


def _compare_models(
    models: Any,
    features: Sequence[int | str] | None,
    n_bins: int | None,
    method: IntervalMethod,
    rng: int,
) -> Comparison:
    """Score predictions of several models on the same rows."""
    each = list(models.values()) if isinstance(models, Mapping) else []
    if len(each) < 2 or not all(isinstance(x, Predictions) for x in each):
        msg = (
            "Without a `calibration` and a `test` set, pass a dict of Predictions of "
            "two models or more, by their names; with them, recalibrators."
        )
        raise InvalidInputError(msg)
    found = {
        str(name): read_pair(rows, str(name)).with_features(features).to_be_judged()
        for name, rows in models.items()
    }
    first, rows, outcomes = next(iter(found.values())), [], []
    for name, one in found.items():
        if len(one) != len(first):
            msg = (
                f"Models are compared on the same rows: {next(iter(found))} has "
                f"{len(first)} of them, and {name} has {len(one)}."
            )
            raise InvalidInputError(msg)
        one = one.changed(groups=first.groups, weights=first.weights)
        settings = check_settings(bins_of(n_bins, one.total), method)
        outcomes.append(one)
        rows.append((name, measure(one, settings, rng_from(rng)), None, 0.0))
    return _tabulate(rows, outcomes)


def _tabulate(
    measured: Sequence[tuple[str, Measured, Measured | None, float]],
    outcomes: list[Predictions],
) -> Comparison:
    """Put what was measured of the outcomes, the same rows in each, into a table."""
    losses: dict[str, list[Floats]] = {"crps": [], "nll": []}
    for rows in outcomes:
        losses["crps"].append(distributions_of(rows).crps(rows.truth))
        losses["nll"].append(rows.z2 / 2 + np.log(rows.uncertainty))  # and a constant
    units = outcomes[0]

    def difference(loss: str, i: int, j: int, level: float) -> Estimate:
        values = losses[loss][i] - losses[loss][j]
        low, high, _ = interval_of_all(
            values, units.group_codes, level, units.weights, skewed=False
        )
        return Estimate(units.mean(values), low, high, level)

    names = [name for name, *_ in measured]
    best = int(np.argmin([units.mean(each) for each in losses["crps"]]))
    together = 1 - (1 - CONFIDENCE) / max(1, len(names) - 1)
    alike = tuple(
        name
        for i, name in enumerate(names)
        if i != best and difference("crps", i, best, together).low <= 0
    )
    table = tuple(
        ComparisonRow(
            name=name,
            calibration=None if learned is None else learned.scores,
            test=judged.scores,
            calibration_local={} if learned is None else learned.local,
            test_local=judged.local,
            fit_seconds=seconds,
            differences={loss: difference(loss, i, 0, CONFIDENCE) for loss in losses},
        )
        for i, (name, judged, learned, seconds) in enumerate(measured)
    )
    counted = "rows" if units.groups is None else "groups"
    return Comparison(table, names[best], alike, counted)


@dataclass(frozen=True)
class _Set:
    """One set: rows to learn from, those that are judged, and what others take.

    The judged ones have the features to score adaptivity for.
    """

    rows: Predictions
    judged: Predictions
    X: Any

    @classmethod
    def read(cls, data: Data, name: str, features: Sequence[int | str] | None) -> _Set:
        """Check Predictions, or a pair (X, y)."""
        rows = read_pair(data, name, weighted=True)
        if isinstance(data, Predictions):
            X = np.column_stack(
                [
                    rows.labels(i).values() if rows.is_labelled(i) else column
                    for i, column in enumerate(rows.columns)
                ]
            )
        else:
            X = data[0] if rows.places is None else some_rows(data[0], rows.places)
        return cls(rows, rows.with_features(features).to_be_judged(), X)

    def fit(self, scaler: Any) -> Any:
        """Fit a recalibrator; one of another library need not know of groups."""
        if isinstance(scaler, VarianceScaler):
            return scaler.fit(self.rows)
        known = {"groups": self.rows.groups, "sample_weight": self.rows.weights}
        given = {name: each for name, each in known.items() if each is not None}
        return scaler.fit(self.X, self.rows.errors, **given)

    def recalibrated(self, scaler: Any) -> Predictions:
        """Return what a recalibrator makes of the rows that are judged."""
        if isinstance(scaler, FrozenEstimator):
            scaler = scaler.estimator
        if isinstance(scaler, Recalibrator):
            new = scaler.apply(self.rows)
            judged = self.judged.with_uncertainty(new.uncertainty)
            return with_law(judged.changed(error=new.error), scaler.law_)
        table = self.rows if isinstance(scaler, VarianceScaler) else self.X
        u = check_pair(self.rows.errors, scaler.predict(table))[1]
        return self.judged.with_uncertainty(u)

    def measure(self, rows: Predictions, settings: BinSettings, rng: int) -> Measured:
        """Measure rows that were recalibrated."""
        # Ties in a feature are broken by the uncertainty before recalibration, so that
        # all methods are scored on the same bins of the features.
        return measure(rows, settings, rng_from(rng), ties=self.judged.uncertainty)
