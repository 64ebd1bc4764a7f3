"""Validation: verdicts on uncertainties, against what is attainable."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._support.checks import Floats, check_count, rng_from
from .._support.render import TableFormat, as_table, html_table, shorten
from .._support.rows import Rows, judged_rows
from ..bins.partitions import feasible_bins
from ..exceptions import DominantErrorWarning, FewerBinsWarning, ZeroErrorBinWarning
from .attainable import attainable_fractions
from .binning import check_ties
from .confidence_intervals import MIN_ROWS, IntervalMethod
from .local import BinSettings, LocalZMS, check_settings, measure, refuse_one_row
from .references import ReferenceScores, ZDistribution, simulate_scores
from .regions import Region, off_by, worst_region
from .scores import Scorecard

DOMINATED = 50  # rows from which no error should outweigh all others
Z_SCORES = 200_000_000  # drawn at most for the reference, but at least 200 sets


@dataclass(frozen=True)
class Verdict:
    """The verdict on one question, with its evidence.

    Attributes
    ----------
    name : str
        "average", "u", or the name of a feature.
    passed : bool
        Whether `p_adjusted` is at least 1 - confidence.
    score, target, target_sd : float
        S_cal or S_x, and its mean and spread in perfectly calibrated sets with the
        z-distribution of this one.
    p_value, p_adjusted : float
        The share of those sets that score as high, and the same after Holm's
        correction for the number of questions.
    sentence : str
        The verdict in plain words.
    local : LocalZMS or None
        <Z²> of each bin; None for the average.
    attainable : float or None
        The fraction of valid bins that a perfectly calibrated set with this
        z-distribution attains; nominally it is `confidence`.
    region : Region or None
        The worst region of a variable that failed.
    """

    name: str
    passed: bool
    score: float
    target: float
    target_sd: float
    p_value: float
    p_adjusted: float
    sentence: str
    local: LocalZMS | None = field(repr=False)
    attainable: float | None
    region: Region | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, nested ones too."""
        return {
            **vars(self),
            "local": None if self.local is None else self.local.to_dict(),
            "region": None if self.region is None else vars(self.region),
        }


@dataclass(frozen=True)
class Validation:
    """Verdicts on one set: calibrated, consistent, and adaptive for which features.

    Attributes
    ----------
    verdicts : dict of str to Verdict
        By question: "average", "u" and the features.
    confidence : float
        One minus the chance that a perfect set fails any of them.
    scores : Scorecard
        All scores of the set.
    reference : ReferenceScores
        The same scores of perfectly calibrated sets: what is attainable.
    rows : Rows or None
        The rows that were judged; None if they stayed in a lazy frame.
    seed : int or None
        The seed of bootstrap and simulation, if it was a number.
    n_resamples : int or None
        Bootstrap draws behind the intervals; None if these need none.
    notes : tuple of str
        What `validate` warned about bins: those that are fewer than asked for, or left
        out, or without any error.
    """

    verdicts: dict[str, Verdict] = field(repr=False)
    confidence: float
    scores: Scorecard = field(repr=False)
    reference: ReferenceScores = field(repr=False)
    rows: Rows | None = field(default=None, repr=False, compare=False)
    seed: int | None = field(default=None, repr=False)
    n_resamples: int | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def calibrated(self) -> bool:
        """Whether uncertainties are right on average."""
        return self.verdicts["average"].passed

    @property
    def consistent(self) -> bool:
        """Whether they are right at every level of uncertainty."""
        return self.verdicts["u"].passed

    @property
    def adaptive(self) -> dict[str, bool]:
        """Whether they are right for every value of each feature."""
        return {
            name: verdict.passed
            for name, verdict in self.verdicts.items()
            if name not in ("average", "u")
        }

    @property
    def passed(self) -> bool:
        """Whether every verdict is positive."""
        return all(verdict.passed for verdict in self.verdicts.values())

    @property
    def local(self) -> dict[str, LocalZMS]:
        """The local <Z²> of u and each feature."""
        found = {name: verdict.local for name, verdict in self.verdicts.items()}
        return {name: local for name, local in found.items() if local is not None}

    @property
    def summary(self) -> str:
        """All verdicts in plain words."""
        return " ".join(verdict.sentence for verdict in self.verdicts.values())

    def to_dict(self) -> dict[str, Any]:
        """Return verdicts and what they rest on."""
        return {
            "passed": self.passed,
            "summary": self.summary,
            "confidence": self.confidence,
            "verdicts": {name: v.to_dict() for name, v in self.verdicts.items()},
        }

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for name, verdict in self.verdicts.items():
            valid = "-"
            if verdict.local is not None:
                low, high = verdict.local.fraction_interval
                share = verdict.local.fraction_valid
                valid = f"{share:.2f} [{low:.2f}, {high:.2f}]"
            rows.append(
                (
                    shorten(name, 11),
                    f"{verdict.score:.3f}",
                    f"{verdict.target:.3f} ± {verdict.target_sd:.3f}",
                    f"{verdict.p_adjusted:.3f}",
                    valid,
                    "-" if verdict.attainable is None else f"{verdict.attainable:.2f}",
                    "yes" if verdict.passed else "no",
                )
            )
        return rows

    def to_table(self, format: TableFormat = "text") -> str:
        """Return the evidence as a table of text, Markdown or LaTeX.

        Parameters
        ----------
        format : {"text", "markdown", "latex"}, default "text"
            LaTeX needs the package booktabs.
        """
        return as_table(_HEADER, self._rows(), format)

    def __str__(self) -> str:
        """Return the verdicts in words, and the evidence as a table."""
        table = self.to_table()
        bins = self.local["u"].n.size
        note = f"S and valid bins: from {bins} bins of u, and as many of each number."
        sentences = [verdict.sentence for verdict in self.verdicts.values()]
        return "\n".join([*sentences, "", table, note])

    def _repr_html_(self) -> str:
        return html_table(_HEADER, self._rows())


_HEADER = ("", "S", "attainable S", "p Holm", "valid bins", "attainable", "passed")


def validate(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Validation:
    """Return verdicts: calibrated, consistent, adaptive and for which features.

    Each score (S_cal for the average, S_x for u and every feature) is compared with
    its distribution over perfectly calibrated sets of the same size whose z-scores
    come from this set: what is attainable, rather than what normal errors would give.
    p-values are corrected for the number of questions (Holm).

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ...
    n_bins : int, optional
        Number of bins of each numeric variable; labels make one bin each. By default
        the square root of n, up to 100, and no more than leave 5 rows in each.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How the intervals of the bins are made, see :func:`local_zms`.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
    confidence : float, default 0.95
        Coverage of the intervals, and one minus the level of the tests.
    n_resamples : int, default 1500
        Bootstrap draws of "bca" and "bootstrap-t".
    n_draws : int, optional
        Simulated sets; by default 1000, and fewer, down to 200, for large sets.
    rng : int, Generator or None, default 0
        Seed of bootstrap and simulation: the same data get the same verdict.

    Returns
    -------
    Validation

    References
    ----------
    P. Pernot, arXiv:2309.06240 (2023); S. Holm, Scand. J. Statist. 6, 65 (1979).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> u, x = rng.uniform(1, 2, 5000), rng.uniform(0, 100, 5000)
    >>> error = rng.normal(scale=u * np.where(x > 70, 1.5, 1.0))
    >>> verdicts = validate(error, u, {"x": x})
    >>> verdicts.passed
    False
    >>> print(verdicts.verdicts["x"].sentence)
    Not adaptive for x: uncertainties are 34 % too small (multiply by 1.5) for x above
    69.99.
    """
    rows = judged_rows(error, uncertainty, features)
    order = check_ties(ties, rows.errors)
    if n_bins is None:
        n_bins = default_bins(rows.n_rows)
    settings = check_settings(n_bins, method, confidence, n_resamples)
    refuse_one_row(rows.n_rows)
    if n_draws is None:
        n_draws = int(np.clip(Z_SCORES // rows.n_rows, 200, 1000))
    n_draws = check_count(n_draws, "n_draws", least=20)
    generator = rng_from(rng)

    z2 = (rows.errors / rows.uncertainty) ** 2
    with _noted() as notes:
        _warn_of_dominant(z2)
        feasible = feasible_bins(rows.n_rows, settings.n_bins, min_size=MIN_ROWS)
        settings = replace(settings, n_bins=feasible)
        # scores, intervals and reference from the same bins, of which each has rows
        measured = measure(rows, settings, generator, ties=order)
        # errors that are all 0 have no distribution of their own
        z_scores = ZDistribution.of(
            "empirical" if np.any(rows.errors) else "normal", rows
        )
        reference = simulate_scores(rows, measured.bins, z_scores, n_draws, generator)
    attainable = attainable_fractions(z2, measured.local, settings, generator)
    judged = judge(measured.scores, reference, measured.local, attainable, settings)
    return replace(
        judged,
        rows=rows,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        notes=tuple(notes),
    )


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Take notes of what is warned about bins, and warn all the same."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    for each in caught:
        if issubclass(each.category, (FewerBinsWarning, ZeroErrorBinWarning)):
            notes.append(str(each.message))
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _warn_of_dominant(z2: Floats) -> None:
    row, total = int(np.argmax(z2)), float(z2.sum())
    if z2.size >= DOMINATED and z2[row] > 0.5 * total:
        warnings.warn(
            f"One error of {z2.size} (row {row}, z = {np.sqrt(z2[row]):.3g}) makes up "
            f"{z2[row] / total:.0%} of the sum of z²: verdicts say little about the "
            "others. Look at that row, and drop it if it is a blunder.",
            DominantErrorWarning,
            stacklevel=3,
        )


def default_bins(n_rows: int) -> int:
    """Return how many bins verdicts are based on, if nobody says it.

    >>> default_bins(400), default_bins(10**6), default_bins(12)
    (20, 100, 2)
    """
    return max(1, min(100, round(math.sqrt(n_rows)), n_rows // MIN_ROWS))


def judge(
    card: Scorecard,
    reference: ReferenceScores,
    local: dict[str, LocalZMS],
    attainable: dict[str, float],
    settings: BinSettings,
) -> Validation:
    """Return the verdicts that scores, set against their reference, amount to."""
    scores = {"average": "S_cal", **{name: f"S_{name}" for name in local}}
    values = card.to_dict()
    mean, sd = reference.mean, reference.sd
    p = {name: reference.p_value(s, values[s]) for name, s in scores.items()}
    adjusted = _holm(p)
    verdicts = {}
    for name, score in scores.items():
        passed = adjusted[name] >= 1 - settings.confidence
        region = None if passed or name == "average" else worst_region(local[name])
        verdicts[name] = Verdict(
            name=name,
            passed=bool(passed),
            score=values[score],
            target=mean[score],
            target_sd=sd[score],
            p_value=p[name],
            p_adjusted=adjusted[name],
            sentence=_sentence(name, bool(passed), local["u"].overall, region),
            local=local.get(name),
            attainable=attainable.get(name),
            region=region,
        )
    return Validation(
        verdicts,
        settings.confidence,
        card,
        reference,
        n_resamples=settings.n_resamples if settings.is_resampled else None,
    )


def _sentence(
    name: str,
    passed: bool,
    overall: tuple[float, float, float],
    region: Region | None,
) -> str:
    if name == "average":
        value, low, high = overall
        evidence = f"<Z²> = {value:.2f} [{low:.2f}, {high:.2f}]"
        if passed and low <= 1 <= high:
            return f"Calibrated on average: {evidence}."
        if passed:
            return f"Not clearly off on average: {evidence}."
        return (
            f"Not calibrated: uncertainties are {off_by(value)} on average, {evidence}."
        )
    question = "onsistent" if name == "u" else f"daptive for {name}"
    if passed:
        return ("C" if name == "u" else "A") + question + "."
    found = "" if region is None else f": {region.sentence}"
    return "Not " + ("c" if name == "u" else "a") + question + found + "."


def _holm(p_values: dict[str, float]) -> dict[str, float]:
    """Return p-values corrected for their number by Holm's method.

    >>> _holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = largest
    return adjusted
