"""Validation: verdicts on uncertainties, against what is attainable."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._support.checks import (
    Floats,
    check_count,
    check_features,
    check_pair,
    for_frames,
    refuse_for_frames,
    rng_from,
)
from .._support.render import TableFormat, as_table, html_table, shorten
from ..bins.partitions import feasible_bins
from ..exceptions import DominantErrorWarning
from .confidence_intervals import MIN_ROWS, IntervalMethod, mean_interval
from .local import (
    LocalZMS,
    Settings,
    check_settings,
    local_zms,
    local_zms_of,
    refuse_one_row,
)
from .references import ReferenceScores, reference_scores
from .regions import Region, off_by, worst_region
from .scores import Scorecard, check_ties, scorecard

__all__ = ["LocalZMS", "Validation", "Verdict", "local_zms", "validate"]

SIMULATED_ROWS = 1_000_000  # behind the attainable fraction of valid bins
SIMULATED_BINS = 2000
LARGE_BIN = 1000  # rows from which the closed form replaces the bootstrap
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
    """

    verdicts: dict[str, Verdict] = field(repr=False)
    confidence: float
    scores: Scorecard = field(repr=False)
    reference: ReferenceScores = field(repr=False)

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
    data: Any = None,
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
    data : data frame or lazy frame, optional
        The frame whose columns `error`, `uncertainty` and `features` name; see
        `sigmascale.frames`.

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
    if data is not None:
        refuse_for_frames(ties=ties, method=method)
        of_frame: Validation = for_frames().validate(
            data,
            error=error,
            uncertainty=uncertainty,
            features=() if features is None else features,
            n_bins=n_bins,
            confidence=confidence,
            n_draws=1000 if n_draws is None else n_draws,
            rng=rng,
        )
        return of_frame
    e, u = check_pair(error, uncertainty)
    columns = check_features(features, e)
    order = check_ties(ties, e)
    if n_bins is None:
        n_bins = default_bins(e.size)
    settings = check_settings(n_bins, method, confidence, n_resamples)
    refuse_one_row(e.size)
    # scores and intervals from the same bins, of which each has some rows
    settings = replace(
        settings, n_bins=feasible_bins(e.size, settings.n_bins, min_size=MIN_ROWS)
    )
    _warn_of_dominant((e / u) ** 2)
    if n_draws is None:
        n_draws = int(np.clip(Z_SCORES // e.size, 200, 1000))
    n_draws = check_count(n_draws, "n_draws", least=20)
    generator = rng_from(rng)

    local = local_zms_of(
        e, u, {"u": None, **columns}, settings, ties=order, rng=generator
    )
    card = scorecard(e, u, columns, n_bins=settings.n_bins, ties=order)
    reference = reference_scores(
        u,
        columns,
        # errors that are all 0 have no distribution of their own
        distribution="empirical" if np.any(e) else "normal",
        error=e,
        n_draws=n_draws,
        n_bins=settings.n_bins,
        ties=order,
        rng=generator,
    )
    attainable = attainable_fractions((e / u) ** 2, local, settings, generator)
    return judge(card, reference, local, attainable, settings)


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
    settings: Settings,
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
    return Validation(verdicts, settings.confidence, card, reference)


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


def attainable_fractions(
    z2: Floats,
    local: dict[str, LocalZMS],
    settings: Settings,
    rng: np.random.Generator,
    *,
    largest_bin: int | None = None,
) -> dict[str, float]:
    """Return the fraction of bins that would be valid if z2 were the same everywhere.

    It depends on the sizes of the bins alone, so variables with the same sizes share
    one simulation. Bins are simulated with up to `largest_bin` rows.
    """
    mean = float(z2.mean())
    pool = z2 / mean if mean > 0 else np.ones(1)
    by_sizes: dict[tuple[int, ...], float] = {}
    fractions = {}
    for name, result in local.items():
        n = result.n if largest_bin is None else np.minimum(result.n, largest_bin)
        sizes = tuple(sorted(n.tolist()))
        if sizes not in by_sizes:
            by_sizes[sizes] = _valid_fraction(pool, n, settings, rng)
        fractions[name] = by_sizes[sizes]
    return fractions


def _valid_fraction(
    pool: Floats, sizes: Any, settings: Settings, rng: np.random.Generator
) -> float:
    wanted = min(
        SIMULATED_BINS, max(sizes.size, SIMULATED_ROWS * sizes.size // sum(sizes))
    )
    repeated = np.resize(sizes, max(1, wanted))
    drawn = pool[rng.integers(pool.size, size=int(repeated.sum()))]
    low, high = mean_interval(
        "moments" if sizes.max() > LARGE_BIN else settings.method,
        drawn,
        repeated,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=rng,
    )
    return float(np.mean((low <= 1) & (high >= 1)))
