"""Many recalibrators, one table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import narwhals as nw
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ._support.checks import check_pair, rng_from
from ._support.notebook import chart, page, ticks_of
from ._support.progress import track
from ._support.render import Cells, Result, html_table, shorten
from .bins.partitions import bins_of
from .exceptions import InvalidInputError
from .judging.intervals import IntervalMethod
from .judging.local import BinSettings, LocalZMS, Measured, check_settings, measure
from .judging.scores import Scorecard
from .maps.distributions import with_law
from .predictions import Data, Predictions, read_pair
from .recalibrator import Recalibrator
from .regression.sources import some_rows
from .scaling import VarianceScaler

UNSCALED = "none"


@dataclass(frozen=True)
class ComparisonRow:
    """One recalibrator's scores and valid fractions on both sets."""

    name: str
    calibration: Scorecard
    test: Scorecard
    calibration_local: dict[str, LocalZMS] = field(repr=False)
    test_local: dict[str, LocalZMS] = field(repr=False)
    fit_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return every number under a flat name."""
        flat: dict[str, Any] = {"method": self.name}
        for which, card, local in (
            ("calibration", self.calibration, self.calibration_local),
            ("test", self.test, self.test_local),
        ):
            flat |= {f"{which} {name}": v for name, v in card.to_dict().items()}
            for name, result in local.items():
                low, high = result.fraction_interval
                flat[f"{which} valid_{name}"] = result.fraction_valid
                flat[f"{which} valid_{name} low"] = low
                flat[f"{which} valid_{name} high"] = high
        return flat | {"fit seconds": self.fit_seconds}


@dataclass(frozen=True)
class Comparison(Result):
    """A table with one row a recalibrator; ``str()`` shows the test set.

    "valid %" lists the percentage of valid bins of u and each feature, in the order of
    the S columns.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        In the order of the recalibrators; "none" are the uncertainties as they came.
    """

    rows: tuple[ComparisonRow, ...]

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
        """Return the table of the test set."""
        return str(self)

    def _repr_html_(self) -> str:
        best = min(self.rows, key=lambda row: row.test.nll)
        words = f"{best.name} has the lowest NLL of the test set: {best.test.nll:.3f}"
        if (raw := self.rows[0]) is not best:
            words += f"; of {raw.name} it is {raw.test.nll:.3f}"
        nll = np.array([row.test.nll for row in self.rows])
        names = {-float(i): shorten(row.name, 24) for i, row in enumerate(self.rows)}
        figure = chart(
            nll,
            np.array([*names]),
            labels=("NLL of the test set", ""),
            ticks=(ticks_of(nll), names),
        )
        tables = {
            f"{which.capitalize()} set": html_table(*self._cells(which))
            for which in ("test", "calibration")
        }
        return page([escape(f"{words}.")], figure, tables)


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
        return {str(name): scaler for name, scaler in scalers.items()}
    each = scalers if isinstance(scalers, Sequence) else [scalers]
    for scaler in each:
        if not hasattr(scaler, "fit") or not hasattr(scaler, "predict"):
            msg = (
                f"`scalers` must be recalibrators, a list or a dict of them; found "
                f"{scaler!r}."
            )
            raise InvalidInputError(msg)
    named = {name_of(scaler): scaler for scaler in each}
    if len(named) < len(each):
        msg = "`scalers` must not repeat one; pass a dict to name them yourself."
        raise InvalidInputError(msg)
    return named


def compare(
    scalers: Any,
    calibration: Data,
    test: Data,
    *,
    features: Sequence[int | str] | None = None,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    rng: int = 0,
) -> Comparison:
    """Fit each recalibrator on one set, score it on both, and tabulate.

    Parameters
    ----------
    scalers : list or dict of recalibrators
        They are cloned, not changed. A dict gives them names.
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
    >>> table["Isotonic"].test.nll < table["none"].test.nll
    True
    """
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
    rows = []
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
        rows.append(
            ComparisonRow(
                name=name,
                calibration=learned.scores,
                test=judged.scores,
                calibration_local=learned.local,
                test_local=judged.local,
                fit_seconds=seconds,
            )
        )
    return Comparison(tuple(rows))


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
