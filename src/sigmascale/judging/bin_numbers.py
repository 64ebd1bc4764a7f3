"""How many bins there should be: a scan to look at, and a choice to trust."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import (
    Floats,
    Ints,
    check_count,
    check_counts,
    check_pair,
    rng_from,
)
from .._support.progress import track
from .._support.render import Cells, Result, shorten
from ..bins.partitions import bins_of
from ..bins.sums import nll_from
from ..exceptions import InvalidInputError
from ..oddities import warn_of_repeats
from ..predictions import Data, Predictions, read_pair
from ..scaling import BinwiseScaling, IsotonicScaling, VarianceScaler
from ..scaling.crossfit import canonical_order, make_folds, predict_unseen, rank
from .intervals import IntervalMethod
from .local import LocalZMS, Measured, check_settings, measure
from .references import ZDistribution, simulate_scores
from .scores import Scorecard


@dataclass(frozen=True)
class BinScan(Result):
    """Scores on the test set against the number of bins of the recalibrator.

    Attributes
    ----------
    n_bins : array of shape (n_points,)
        Numbers of bins.
    scores : dict of str to array of shape (n_points,)
        Each score, under the names of :class:`~judging.scores.Scorecard`.
    valid, valid_low, valid_high : dict of str to array of shape (n_points,)
        Fraction of valid bins of each variable, with its interval.
    isotonic : Scorecard
        Scores of isotonic regression, for reference.
    isotonic_valid : dict of str to float
        Its fractions of valid bins.
    simulated_mean, simulated_sd : dict of str to array of shape (n_points,)
        Scores that perfectly calibrated normal errors with the same uncertainties
        would have.
    """

    n_bins: Ints
    scores: dict[str, Floats] = field(repr=False)
    valid: dict[str, Floats] = field(repr=False)
    valid_low: dict[str, Floats] = field(repr=False)
    valid_high: dict[str, Floats] = field(repr=False)
    isotonic: Scorecard = field(repr=False)
    isotonic_valid: dict[str, float] = field(repr=False)
    simulated_mean: dict[str, Floats] = field(repr=False)
    simulated_sd: dict[str, Floats] = field(repr=False)

    def to_dict(self) -> dict[str, list[float]]:
        """Return the scan as columns."""
        columns: dict[str, Any] = {"n_bins": self.n_bins}
        columns |= self.scores
        columns |= {f"valid_{name}": v for name, v in self.valid.items()}
        columns |= {f"valid_{name} low": v for name, v in self.valid_low.items()}
        columns |= {f"valid_{name} high": v for name, v in self.valid_high.items()}
        columns |= {f"simulated {name}": v for name, v in self.simulated_mean.items()}
        columns |= {f"simulated {name} sd": v for name, v in self.simulated_sd.items()}
        return {name: values.tolist() for name, values in columns.items()}

    def _cells(self) -> Cells:
        names = ["NLL", "S_cal", *(f"S_{name}" for name in self.valid), "S_tot"]
        rows = [
            (str(n), *(f"{self.scores[name][i]:.3f}" for name in names))
            for i, n in enumerate(self.n_bins)
        ]
        card = self.isotonic.to_dict()
        rows.append(("isotonic", *(f"{card[name]:.3f}" for name in names)))
        short = {f"S_{name}": f"S_{shorten(name)}" for name in self.valid}
        return ("bins", *(short.get(name, name) for name in names)), rows


def scan_bins(
    calibration: Data,
    test: Data,
    *,
    n_bins: Iterable[int] = range(2, 100),
    by: int | str = 0,
    score_bins: int | None = None,
    method: IntervalMethod = "bca",
    n_draws: int = 1000,
    rng: int = 0,
) -> BinScan:
    """Return test scores of bin-wise scaling against its number of bins.

    The scan shows what the number of bins does. It looks at the test set: to choose a
    number, use :func:`choose_n_bins`, which does not.

    Parameters
    ----------
    calibration, test : (X, y) or (X, y, groups)
        Conditioning table and errors of the set to fit on, and of the set to score;
        groups are labels of rows that belong together.
    n_bins : iterable of int, default range(2, 100)
        Numbers of bins to try.
    by : int or str, default 0
        The column of X that is binned; 0 is the uncertainty.
    score_bins : int, optional
        Number of bins of the local scores. By default they have 30 rows or more, and
        there are at most 100.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How intervals of the local <Z²> are made.
    n_draws : int, default 1000
        Simulated sets behind each point of the reference.
    rng : int, default 0
        Seed of the bootstrap and of the simulations.

    Returns
    -------
    BinScan

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(4000, seed=0)
    >>> calibration, test = (
    ...     (data.X[:2000], data.error[:2000]),
    ...     (data.X[2000:], data.error[2000:]),
    ... )
    >>> quick = {"n_draws": 20, "method": "moments", "score_bins": 20}
    >>> scan = scan_bins(calibration, test, n_bins=(2, 20), **quick)
    >>> bool(scan.scores["S_u"][1] < scan.scores["S_u"][0])
    True
    """
    learned_from, judged = (
        read_pair(calibration, "calibration"),
        read_pair(test, "test"),
    )
    check_pair(judged.errors, judged.uncertainty)
    judged = judged.to_be_judged()
    numbers = check_counts(n_bins, "n_bins")
    count = bins_of(score_bins, judged.n_rows, "score_bins")
    settings = check_settings(count, method)
    n_draws = check_count(n_draws, "n_draws")

    def predict(scaler: VarianceScaler) -> Predictions:
        fitted = scaler.fit(calibration[0], learned_from.errors, learned_from.groups)
        u = fitted.predict(test[0])
        return judged.with_uncertainty(check_pair(judged.errors, u)[1])

    def measure_rows(rows: Predictions) -> Measured:
        # ties are told apart as before scaling, so that bins of features stay the same
        return measure(rows, settings, rng_from(rng), ties=judged.uncertainty)

    measured, references, normal = [], [], ZDistribution("normal")
    for n in track(numbers, "scanning bin numbers", len(numbers)):
        rows = predict(BinwiseScaling(n, by=by, least_rows=0))
        measured.append(measure_rows(rows))
        references.append(
            simulate_scores(rows, measured[-1].bins, normal, n_draws, rng_from(rng))
        )
    isotonic = measure_rows(predict(IsotonicScaling()))
    local = [each.local for each in measured]
    return BinScan(
        n_bins=np.array(numbers),
        scores=_columns([each.scores.to_dict() for each in measured]),
        valid=_fractions(local, lambda each: each.fraction_valid),
        valid_low=_fractions(local, lambda each: each.fraction_interval[0]),
        valid_high=_fractions(local, lambda each: each.fraction_interval[1]),
        isotonic=isotonic.scores,
        isotonic_valid={n: each.fraction_valid for n, each in isotonic.local.items()},
        simulated_mean=_columns([each.mean for each in references]),
        simulated_sd=_columns([each.sd for each in references]),
    )


def _columns(points: list[dict[str, float]]) -> dict[str, Floats]:
    """Return the numbers of all points by name."""
    return {name: np.array([each[name] for each in points]) for name in points[0]}


def _fractions(
    points: list[dict[str, LocalZMS]], number: Callable[[LocalZMS], float]
) -> dict[str, Floats]:
    """Return a number of the local results of all points, by variable."""
    return _columns(
        [{name: number(each) for name, each in point.items()} for point in points]
    )


@dataclass(frozen=True)
class BinChoice(Result):
    """The number of bins that cross-validation on the calibration set prefers.

    Attributes
    ----------
    n_bins : int
        The choice: the fewest bins within one standard error of the best.
    best : int
        The number with the lowest cross-validated negative log-likelihood.
    candidates : array of int
        Numbers that were tried.
    nll, standard_error : array of float
        Cross-validated NLL of each, and the standard error of its difference to the
        best one.
    """

    n_bins: int
    best: int
    candidates: Ints = field(repr=False)
    nll: Floats = field(repr=False)
    standard_error: Floats = field(repr=False)

    def _cells(self) -> Cells:
        numbers = zip(self.candidates, self.nll, self.standard_error, strict=True)
        rows = [(f"{n}", f"{nll:.4f}", f"{error:.4f}") for n, nll, error in numbers]
        return ("bins", "NLL", "standard error"), rows


def choose_n_bins(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    n_bins: Iterable[int] = (1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100),
    by: int | str = 0,
    cv: int = 5,
    rng: int = 0,
) -> BinChoice:
    """Choose the number of bins by cross-validation on the calibration set alone.

    Parameters
    ----------
    X : array-like or data frame of shape (n, n_columns)
        Conditioning table of the calibration set.
    y : array-like of shape (n,)
        Its errors.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        They stay together in cross-validation, and standard errors count groups.
    n_bins : iterable of int
        Numbers of bins to try.
    by : int or str, default 0
        The column of X that is binned; 0 is the uncertainty.
    cv : int, default 5
        Number of folds.
    rng : int, default 0
        Seed of the folds.

    Returns
    -------
    BinChoice

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(4000, seed=0)
    >>> choice = choose_n_bins(data.X, data.error)
    >>> 2 <= choice.n_bins <= 40
    True
    """
    rows = read_pair((X, y, groups), "data")
    warn_of_repeats(rows)
    numbers = sorted(set(check_counts(n_bins, "n_bins")))
    cv = check_count(cv, "cv", least=2)
    counted = "rows" if rows.groups is None else "groups"
    found = rows.n_rows if rows.groups is None else np.unique(rows.groups).size
    if found < cv:
        msg = (
            f"`cv` must not exceed the number of {counted}; found {cv} for {found} "
            f"{counted}."
        )
        raise InvalidInputError(msg)
    rows.numbers(by)  # or refuse it now
    rows = rows.with_features([] if rows.position(by) == 0 else [by])
    rows = rows.take(canonical_order(rows.columns, rows.errors))
    size = np.abs(rows.errors) / rows.uncertainty
    fold = make_folds(size, cv, rng_from(rng), rows.groups)
    losses = {}
    for n in track(numbers, "choosing the bin number", len(numbers)):
        # of one column or two, the last is the one that is binned
        u = predict_unseen(BinwiseScaling(n, by=-1, least_rows=0), rows, fold)
        losses[str(n)] = nll_from((rows.errors / u) ** 2 + 2 * np.log(u))
    ranking = rank(losses, rows.groups)
    return BinChoice(
        n_bins=next(n for n in numbers if ranking.is_as_good(str(n))),
        best=int(ranking.best),
        candidates=np.array(numbers),
        nll=np.array([loss.mean() for loss in losses.values()]),
        standard_error=np.array(list(ranking.standard_error.values())),
    )
