"""Validation: verdicts on uncertainties that a referee would sign.

:func:`validate` checks the rows, measures them, asks what perfectly calibrated sets
would show, and puts the questions. These share one error rate: a part of it belongs to
the average, whose interval is shown, and small ones to the average bias and the share
of errors held; the rest to scans, by the largest difference of shuffled sets, so that
the number of features dilutes neither. From scans come intervals that hold at once;
from these, all answers: no, yes, or cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from .._support.checks import check_count, check_fraction, rng_from
from .._support.notices import about_subject, noted, quiet, row_number, warn
from .._support.weights import effective_number, quantile_of
from ..bins.partitions import bins_of, feasible_bins
from ..exceptions import (
    DominantErrorWarning,
    FewerBinsWarning,
    InvalidInputError,
    ZeroErrorBinWarning,
)
from ..oddities import warn_of_oddities
from ..predictions import Predictions, as_predictions
from .binning import check_ties
from .intervals import (
    MIN_ROWS,
    IntervalMethod,
    average_of,
    interval_of_all,
    wilson_limits,
)
from .local import check_settings, check_tolerance, measure, refuse_one
from .references import ZDistribution, attainable_fractions, simulate_scores
from .regions import Region, off_by
from .scan import Band, Scan, Some, Wrong, describe_region
from .validation import (
    AVERAGE,
    BIAS,
    COVERAGE,
    JOINT,
    MOST_OFF,
    UNCERTAINTY,
    Answer,
    Validation,
    Validations,
    Verdict,
    along,
    between,
    would_tell,
)

DRAWS = 400  # shuffled sets, or what the confidence needs
FEWEST = 20  # rows, or groups, below which nothing can be told
DOMINATED = 50  # rows from which no error should outweigh all others
REFERENCE_DRAWS, FEWEST_DRAWS = 200, 20  # simulated sets behind what is attainable
SIMULATED_ROWS = 4_000_000  # of all these sets
# how the error rate is shared out
AVERAGE_SHARE, BIAS_SHARE, LAW_SHARE, TESTS_SHARE = 0.15, 0.025, 0.025, 0.8
OWN_RATE = 0.05  # of the own intervals of all regions of a size, that must agree
MOST_LEARNED, TIMES_LEARNED = 25_000, 2  # rows of trees; times those that a yes takes
ENOUGH_FOR_TAILS = 100  # rows that tell whether tails are heavy
HOPELESS = 1e6  # times as many rows: nobody knows how many
LEARNED_RATIO = 12  # of likelihood ratio to critical value, where trees find an XOR
SHARES = (0.8, 0.95)  # of errors that given distributions should hold
NORMAL_ROWS = 300  # that a yes takes at a tolerance of e, about
PLANNED, PLANNED_SHARE = (100, 200_000), 2 / 3  # rows of simulated sets, and a yes
SIMULATED_SETS = (3, 7)  # one after the other, each with the rows found before
FEWEST_OUTSIDE = 5  # errors beyond limits, below which their share says little
_ABOUT_BINS = (FewerBinsWarning, ZeroErrorBinWarning)


@overload
def validate(error: Mapping[str, Predictions], **options: Any) -> Validations: ...


@overload
def validate(
    error: Any,
    uncertainty: Any = None,
    features: Any = None,
    *,
    groups: Any = None,
    tolerance: float = 2.0,
    joint: bool = True,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Validation: ...


def validate(  # type: ignore[misc]  # options of the first are those of the second
    error: Any,
    uncertainty: Any = None,
    features: Any = None,
    *,
    groups: Any = None,
    tolerance: float = 2.0,
    joint: bool = True,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Validation | Validations:
    """Return verdicts: are uncertainties right, on average and everywhere.

    Questions are whether errors are unbiased ("bias"), whether <Z²> is 1 ("average"),
    whether it is the same at every level of uncertainty ("u") and for every value of
    each feature, whether anything can be learned from all of these together ("joint"),
    and whether the same multiple of u holds 95 % of the errors everywhere
    ("coverage"). Each answer is "yes", "no" or "cannot tell".

    All answers come from intervals that hold at once, at all scales: of runs of
    neighbouring values (or sets of labels), relative to the average, so that the
    variable at fault is named. How large differences are by chance is told by shuffled
    sets, in which any row could have had the z-score of any other; rows of one group
    stay together. "No": an interval excludes what is right. Otherwise "yes", if those
    of every tenth of the rows, and of every label of 5 % of them, lie within the
    tolerance, in both directions; otherwise "cannot tell".

    Parameters
    ----------
    error : array-like of shape (n,), Predictions, or a dict of these
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
        A dict has the Predictions of each of several targets, by its name; see
        :func:`split_targets`.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ...
    groups : array-like of shape (n,), optional
        Labels of rows that belong together: repeats of a sample, frames of a
        trajectory.
    tolerance : float, default 2
        The factor that u of no tenth of the rows may be off by, for a "yes".
    joint : bool, default True
        Whether to ask what u and the features together say about z².
    n_bins : int, optional
        Number of bins of each numeric variable, for scores and local intervals; labels
        make one bin each. By default they have 30 rows or more, and there are at most
        100.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How the intervals of the bins are made, see :func:`local_zms`.
    ties : array-like of shape (n,), optional
        Orders rows with equal values of a variable, for scores and local intervals. By
        default the uncertainty. Verdicts never part equal values. Of several targets, a
        dict of these.
    confidence : float, default 0.95
        Coverage of the intervals, and one minus the error rate of all questions.
    n_resamples : int, default 1500
        Bootstrap draws of "bca" and "bootstrap-t".
    n_draws : int, optional
        Shuffled sets; by default 400, or as many as the confidence needs.
    rng : int, Generator or None, default 0
        Seed of bootstrap and simulation: the same data get the same verdict.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Verdicts are then on
        the population that the weights stand for. Weights stay where they are when
        z-scores are shuffled, and intervals are those of the rows in effect.

    Returns
    -------
    Validation
        Of several targets :class:`~sigmascale.judging.validation.Validations`, which
        share the error rate: each has all of it, divided by the number of targets that
        have enough rows to be judged (Bonferroni). So the chance that any of them gets
        a "no", if all are right, is that of one, however much they have in common, such
        as the components of a force.

    References
    ----------
    P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993);
    P. Pernot, arXiv:2309.06240 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> u, x = rng.uniform(1, 2, 5000), rng.uniform(0, 100, 5000)
    >>> error = rng.normal(scale=u * np.where(x > 70, 1.5, 1.0))
    >>> verdicts = validate(error, u, {"x": x})
    >>> verdicts.answer
    'no'
    >>> verdicts.verdicts["x"].region.where
    'x above 68.96'
    >>> verdicts.verdicts["average"].answer, verdicts.verdicts["u"].answer
    ('no', 'yes')
    """
    if isinstance(error, Mapping):
        options = {"joint": joint, "n_bins": n_bins, "method": method, "rng": rng}
        options |= {"n_resamples": n_resamples, "n_draws": n_draws}
        return _validate_each(error, ties or {}, confidence, tolerance, options)
    rows = as_predictions(error, uncertainty, features, groups, sample_weight)
    order = check_ties(ties, rows)
    count = bins_of(n_bins, rows.total)
    settings = check_settings(count, method, confidence, n_resamples)
    plan = Plan.of(confidence, tolerance, n_draws)
    refuse_one(rows)
    warn_of_oddities(rows, learning=False)
    generator = rng_from(rng)

    with noted() as notes:
        _warn_of_dominant(rows)
        feasible = feasible_bins(rows.total, settings.n_bins, min_size=MIN_ROWS)
        settings = replace(settings, n_bins=feasible)
        # scores, intervals and reference from the same bins, of which each has rows
        measured = measure(rows, settings, generator, ties=order)
        # errors that are all 0 have no distribution of their own
        z_scores = ZDistribution.of(
            "empirical" if np.any(rows.errors) else "normal", rows
        )
        reference = simulate_scores(
            rows, measured.bins, z_scores, _reference_draws(rows.n_rows), generator
        )
    attainable = attainable_fractions(rows, measured.local, settings, generator)

    answers = Answers(rows, plan, generator, joint=joint)
    verdicts = answers.all()
    scores, mean, sd = measured.scores.to_dict(), reference.mean, reference.sd
    for name, verdict in verdicts.items():
        score = "S_cal" if name == AVERAGE else f"S_{name}"
        if name == AVERAGE or name in measured.local:
            verdicts[name] = replace(
                verdict,
                score=scores[score],
                target=mean[score],
                target_sd=sd[score],
                local=measured.local.get(name),
                attainable=attainable.get(name),
            )
    return Validation(
        verdicts,
        plan.confidence,
        plan.tolerance,
        measured.scores,
        reference,
        reach=answers.reach,
        rows=rows,
        n_draws=plan.n_draws if answers.is_scanned else 0,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        n_resamples=settings.n_resamples if settings.is_resampled else None,
        notes=tuple(str(each) for each in notes if isinstance(each, _ABOUT_BINS)),
    )


def _validate_each(
    targets: Mapping[str, Predictions],
    ties: Mapping[str, Any],
    confidence: Any,
    tolerance: Any,
    options: dict[str, Any],
) -> Validations:
    """Judge several targets with one error rate; a table of one has an empty name."""
    plan = Plan.of(confidence, tolerance, None)
    if not targets or not all(isinstance(p, Predictions) for p in targets.values()):
        msg = (
            "`error` must be one-dimensional, or a dict with the Predictions of each "
            "target."
        )
        raise InvalidInputError(msg)
    # those that are too few get no "no", and need no part of the error rate
    judged = sum(number_of_units(rows) >= FEWEST for rows in targets.values())
    level = plan.confidence
    if judged > 1:
        level = 1 - (1 - level) / judged
    options |= {"confidence": level, "tolerance": plan.tolerance}
    found = {}
    for name, rows in targets.items():
        with about_subject(f"target {name!r}") if name else nullcontext():
            found[name] = validate(rows, ties=ties.get(name), **options)
    return Validations(found, plan.confidence, plan.tolerance)


def _reference_draws(n_rows: int) -> int:
    """Return how many sets are simulated: of many rows, all are alike."""
    return int(np.clip(SIMULATED_ROWS // n_rows, FEWEST_DRAWS, REFERENCE_DRAWS))


def _warn_of_dominant(rows: Predictions) -> None:
    z2 = rows.z2
    parts = z2 if rows.weights is None else rows.weights * z2
    row, total = int(np.argmax(parts)), float(parts.sum())
    if z2.size >= DOMINATED and parts[row] > 0.5 * total:
        place = row_number(row if rows.places is None else rows.places[row])
        warn(
            f"One error of {z2.size} (row {place}, z = {np.sqrt(z2[row]):.3g}) makes "
            f"up {parts[row] / total:.0%} of the sum of z²: verdicts say little of the "
            "others. Look at that row, and drop it if it is a blunder.",
            DominantErrorWarning,
            stacklevel=3,
        )


def rows_needed(
    tolerance: float = 2.0,
    n_features: int = 3,
    predictions: Predictions | None = None,
    *,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> int:
    """Return about how many rows :func:`validate` needs for a "yes" to everything.

    Sets whose uncertainties are right are simulated, and judged: how wide their
    intervals are tells how many rows bring them within the tolerance. With so many,
    about two of three such sets get a "yes"; some more rows make it nearly certain.

    Parameters
    ----------
    tolerance : float, default 2
        The factor that u of no tenth of the rows may be off by.
    n_features : int, default 3
        Number of features, beside u.
    predictions : Predictions, optional
        A set whose z-scores tell how heavy tails are, and whose features are counted.
        By default errors are normal. If its rows belong together, groups are counted;
        features are taken to be the same within a group.
    confidence : float, default 0.95
        That of the verdicts.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    int
        Rows, or groups, to two digits.

    Examples
    --------
    >>> rows_needed(2.0, n_features=1) < 1000
    True
    """
    plan = Plan.of(confidence, tolerance, None)
    if predictions is None:
        n_features = check_count(n_features, "n_features", least=0)
    else:
        predictions = as_predictions(predictions)
        n_features = len(predictions.names) - 1
    generator = rng_from(rng)
    needed = NORMAL_ROWS / math.log(plan.tolerance) ** 2
    for n_sets in SIMULATED_SETS:
        n, found = int(np.clip(needed, *PLANNED)), []
        for _ in range(n_sets):
            rows = _calibrated(predictions, n, n_features, generator)
            with quiet():
                answers = Answers(rows, plan, generator, joint=True).all()
            # a "no" is a false alarm, and says nothing of how many rows are needed
            told = [each for each in answers.values() if each.answer != "no"]
            found.append(max(each.rows_needed or 10 * n for each in told))
        needed = float(np.quantile(found, PLANNED_SHARE))
    return int(float(f"{needed:.2g}"))


def _calibrated(
    like: Predictions | None, n: int, n_features: int, rng: np.random.Generator
) -> Predictions:
    """Return n rows, or groups, whose uncertainties are right, with the z of others."""
    groups, of = None, np.arange(n)
    if like is None:
        z = rng.standard_normal(n)
    else:
        mean, codes = like.mean(like.z), like.group_codes
        known = (like.z - mean) / max(
            math.sqrt(like.mean((like.z - mean) ** 2)), 1e-300
        )
        if codes is None:
            p = None if like.weights is None else like.weights / like.weights.sum()
            z = rng.choice(known, n, p=p)
        else:
            order = np.argsort(codes, kind="stable")
            sizes = np.bincount(codes)
            chosen = rng.integers(sizes.size, size=n)
            groups = of = np.repeat(of, sizes[chosen])
            starts = np.repeat((np.cumsum(sizes) - sizes)[chosen], sizes[chosen])
            first = np.cumsum(sizes[chosen]) - sizes[chosen]
            z = known[order][
                starts + np.arange(of.size) - np.repeat(first, sizes[chosen])
            ]
    u = rng.lognormal(sigma=0.5, size=n)[of]
    X = rng.standard_normal((n, n_features))[of]
    return as_predictions(u * z, u, X if n_features else None, groups, None)


@dataclass(frozen=True)
class Plan:
    """How questions are put: their error rate, the tolerance, and the shuffled sets."""

    confidence: float
    tolerance: float
    n_draws: int

    @classmethod
    def of(cls, confidence: Any, tolerance: Any, n_draws: Any) -> Plan:
        """Check the arguments of `validate`; choose the number of draws."""
        level = check_fraction(confidence, "confidence")
        factor = check_tolerance(tolerance)
        needed = math.ceil(1 / (TESTS_SHARE * (1 - level)))
        if n_draws is None:
            return cls(level, factor, max(DRAWS, 2 * needed))
        count = check_count(n_draws, "n_draws")
        if count < needed:
            msg = (
                f"`n_draws` must be at least {needed} for confidence={level:g}: fewer "
                f"shuffled sets cannot tell so small a chance; found {count}."
            )
            raise InvalidInputError(msg)
        return cls(level, factor, count)

    def level(self, share: float) -> float:
        """Return a part of the error rate."""
        return share * (1 - self.confidence)

    @property
    def most_learned(self) -> int:
        """Of how many rows trees learn: a small tolerance asks for many."""
        for_a_yes = NORMAL_ROWS / math.log(self.tolerance) ** 2
        return max(MOST_LEARNED, int(TIMES_LEARNED * for_a_yes))


@dataclass(frozen=True, eq=False)
class Held:
    """Errors that lie within limits which claim to hold a share of them.

    Attributes
    ----------
    name : str
        The limits, in words.
    target : float
        The share that they claim to hold.
    inside : array of bool, shape (n,)
        Which errors lie within.
    bounds : tuple of float
        The shares within limits narrower, and wider, by the tolerance.
    """

    name: str
    target: float
    inside: Some
    bounds: tuple[float, float]

    @classmethod
    def all_of(cls, rows: Predictions, reach: float, tolerance: float) -> list[Held]:
        """Return what distributions hold; or the multiple of u that holds 95 % of all.

        `reach` is that multiple.
        """
        if rows.distributions is None:
            sizes = {(f"±{reach:.3g} u", 0.95): np.abs(rows.z) / (reach or 1.0)}
        else:
            sizes = {}
            for share in SHARES:
                with quiet():  # of levels beyond the rows
                    low, high = rows.distributions.interval(share).T
                off = np.abs(rows.truth - (low + high) / 2)
                sizes[f"intervals of {100 * share:g} %", share] = 2 * off / (high - low)
        return [
            cls(
                name,
                share,
                size <= 1,
                (rows.mean(size <= 1 / tolerance), rows.mean(size <= tolerance)),
            )
            for (name, share), size in sizes.items()
        ]


def number_of_units(rows: Predictions) -> float:
    """Return how many rows, or groups, are independent; of weighted ones, in effect."""
    codes = rows.group_codes
    if codes is None:
        return rows.n_rows
    if rows.weights is None:
        return int(codes.max()) + 1
    return effective_number(rows.weights, codes)


class Answers:
    """Answers the questions about a set, from its average and its scan."""

    def __init__(
        self, rows: Predictions, plan: Plan, rng: np.random.Generator, *, joint: bool
    ) -> None:
        self._rows, self._plan, self._rng, self._joint = rows, plan, rng, joint
        average = average_of(rows, 1 - plan.level(AVERAGE_SHARE), rng)
        is_told = number_of_units(rows) >= FEWEST
        if not is_told and average.zms > 0:  # too few rows exclude nothing
            low, high = min(average.low, 1.0), max(average.high, 1.0)
            average = replace(average, low=low, high=high)
        self.reach = quantile_of(np.abs(rows.z), 0.95, rows.weights)
        self._held = Held.all_of(rows, self.reach, plan.tolerance)
        self._scan: Scan | None = None
        if is_told and average.zms > 0:
            held = {each.name: each.inside for each in self._held}
            level, most = plan.level(TESTS_SHARE), plan.most_learned if joint else 0
            self._scan = Scan.of(rows, held, plan.n_draws, level, rng, most)
        self._average = average
        self._is_off = average.is_off and (self.is_scanned or average.zms == 0)
        self._than = ", relative to the average" if self._is_off else ""
        # in terms of the whole error rate, of which tests have a share
        found = {} if self._scan is None else self._scan.p
        self._p = {name: min(1.0, p / TESTS_SHARE) for name, p in found.items()}

    @property
    def is_scanned(self) -> bool:
        """Whether there were rows enough to compare."""
        return self._scan is not None

    def all(self) -> dict[str, Verdict]:
        """Answer all questions, by name."""
        verdicts = [self.bias(), self.average(), *map(self.variable, self._rows.names)]
        verdicts += [self.joint()] if self._joint else []
        return {verdict.name: verdict for verdict in (*verdicts, self.coverage())}

    def _bands(self, name: str) -> list[Band]:
        return [] if self._scan is None else self._scan.bands.get(name, [])

    def _rejects(self, name: str) -> bool:
        return self._p.get(name, 1.0) <= 1 - self._plan.confidence

    def _worst(self, name: str) -> tuple[Band, Wrong]:
        """Return the worst region of all variables."""
        found = [(band, each) for band in self._bands(name) for each in band.wrong(1)]
        return max(found, key=lambda each: each[1].excess)

    def _verdict(
        self, name: str, answer: Answer, sentence: str, **more: Any
    ) -> Verdict:
        low, high = more.get("limits") or (1.0, 1.0)
        if not math.isfinite(high - low) or (
            name != BIAS and not 1 / MOST_OFF <= low <= high <= MOST_OFF
        ):
            more["limits"] = None
        more = {"p_adjusted": self._p.get(name)} | more
        if answer == "cannot tell" and not sentence.startswith("Along"):
            sentence += would_tell(more.get("rows_needed"), self._unit)
        return Verdict(name, answer, sentence, **more)

    @property
    def _unit(self) -> str:
        return "rows" if self._rows.groups is None else "groups"

    def _nothing_to_go_by(self, name: str, whether: str, **more: Any) -> Verdict:
        """Return the verdict where there are too few rows, or no errors."""
        rows = self._rows
        if self._average.zms == 0:
            why = "all errors are 0"
        elif rows.n_rows < FEWEST or (rows.weights is None and rows.groups is None):
            why = f"{rows.n_rows} rows are too few"
        elif rows.weights is not None:
            in_effect = f"{number_of_units(rows):.0f} rows in effect"
            why = f"weights that leave {in_effect} are too few"
        else:
            why = f"{number_of_units(rows)} groups are too few"
        words = f"Cannot tell whether {whether}: {why}"
        if name == AVERAGE:
            words += f"; {self._average}"
        if self._average.zms > 0:
            more["rows_needed"] = self._needed(math.inf)
        return self._verdict(name, "cannot tell", f"{words}.", **more)

    def _needed(self, times: float) -> int | None:
        """Return about how many rows, or groups, tell: so many times those here.

        Where this cannot be known, it is what normal errors take, if that is more.
        """
        n = number_of_units(self._rows)
        if times == math.inf:
            times = NORMAL_ROWS / math.log(self._plan.tolerance) ** 2 / n
            return self._needed(times) if times > 1 else None
        if times >= HOPELESS:
            return None
        unit = int(10 ** max(0, math.floor(math.log10(max(n * times, 1))) - 1))
        return max(FEWEST, unit * math.ceil(n * times / unit * (1 + 1e-6)))

    def average(self) -> Verdict:
        """Answer whether <Z²> is 1."""
        found = self._average
        limits = math.sqrt(found.low), math.sqrt(found.high)
        more: dict[str, Any] = {"interval": (found.zms, found.low, found.high)}
        if self._is_off:
            words = f"uncertainties are {off_by(found.zms)} on average, {found}"
            words = f"Not calibrated: {words}."
            return self._verdict(AVERAGE, "no", words, limits=limits, **more)
        if self._scan is None:
            return self._nothing_to_go_by(AVERAGE, "calibrated", **more)
        times = self._times(limits)
        more |= {"limits": limits, "rows_needed": self._needed(times)}
        if times > 1:
            why = "there are too few rows"
            known = found.n_effective >= ENOUGH_FOR_TAILS
            if (known and found.nu < 4) or times == HOPELESS:
                why = "tails are so heavy that the mean of z² says little"
            words = f"Cannot tell whether calibrated on average: {found}; {why}."
            return self._verdict(AVERAGE, "cannot tell", words, **more)
        return self._verdict(AVERAGE, "yes", f"Calibrated on average: {found}.", **more)

    def _times(self, limits: tuple[float, float]) -> float:
        """Return how many times as many rows bring factors within the tolerance."""
        off = max(limits[1], 1 / limits[0] if limits[0] > 0 else math.inf)
        if math.isfinite(off) and off > MOST_OFF:
            return HOPELESS
        return (math.log(off) / math.log(self._plan.tolerance)) ** 2

    def variable(self, name: str) -> Verdict:
        """Answer whether <Z²> is the same for all values of a variable."""
        right = "consistent" if name == UNCERTAINTY else f"adaptive for {name}"
        if self._scan is None:
            return self._nothing_to_go_by(name, right)
        if not self._bands(name) and name == UNCERTAINTY:
            words = "All uncertainties are equal: there is no level to be right at."
            return self._verdict(name, "cannot tell", words)
        if not self._bands(name):
            words = f"{name} has one value: what holds on average holds for it."
            return self._verdict(name, "yes", words)
        [band] = self._bands(name)
        more: dict[str, Any] = {"limits": band.limits, "band": band.picture()}
        if self._rejects(name):
            return self._where(name, f"Not {right}", self._scan.rows, more)
        times = self._times(band.limits)
        needed = more["rows_needed"] = self._needed(times)
        answer: Answer = "yes" if times <= 1 else "cannot tell"
        told = would_tell(needed, self._unit)
        words = along([name], answer, band.limits, told, relative=self._is_off)
        return self._verdict(name, answer, words, **more)

    def _where(
        self, name: str, fault: str, rows: Predictions, more: dict[str, Any]
    ) -> Verdict:
        """Name the regions that are off; none if their own intervals do not agree."""
        [band] = self._bands(name)
        regions, wider, where = [], [], ""
        for inside, factor, low, high, _ in band.wrong():
            which = inside, ~inside, band.variable.sides(inside)
            there, *others = (rows.take(x[band.variable.codes]) for x in which)
            own = self._own_limits(_without_dominant(there), *others)
            low, high = min(low, own[0]), max(high, own[1])
            wider.append((low, high))
            words, first, last = band.variable.words(inside)
            if name == JOINT:
                words, first, last = self._in_words(factor), None, None
            where = where or words
            found = there.mean(there.z2), there.n_rows, factor, (low, high)
            if not low <= 1 <= high:
                regions.append(Region(words, first, last, *found))
        if not regions:
            words = (
                f"Cannot tell whether u is right along {name}: z has not one law. It "
                f"has another shape for {where}, but <Z²> may be right."
            )
            times, more["limits"] = self._times(wider[0]), wider[0]
            if times > 1:
                more["rows_needed"] = self._needed(times)
            return self._verdict(name, "cannot tell", words, **more)
        words = "; ".join(each.sentence for each in regions)
        more |= {"regions": tuple(regions), "limits": regions[0].interval}
        return self._verdict(name, "no", f"{fault}: {words}{self._than}.", **more)

    def _own_limits(
        self, here: Predictions, rest: Predictions, sides: Predictions
    ) -> tuple[float, float]:
        """Return limits of the factor of some rows that know what heavy tails hide.

        Those of the ratio θ of both means of z² come from the limits of each, whose
        distances, as logarithms, add up like errors (G. Y. Zou and A. Donner, Stat.
        Med. 27, 1693, 2008); relative to all rows, it is θ / (p θ + 1 − p).
        """
        share = here.total / (here.total + rest.total)
        level = 1 - OWN_RATE * share
        means = [here.mean(here.z2), rest.mean(rest.z2)]
        if 0 in means:
            return (0.0, 0.0) if means[0] == 0 else (1.0, math.inf)
        # what was chosen, and may hide something, is the smaller part
        few, many = (here, rest) if share <= 0.5 else (rest, here)
        chosen = average_of(few, level, self._rng, many, sides if few is here else None)
        others = interval_of_all(many.z2, many.group_codes, level, many.weights)
        limits = [(chosen.low, chosen.high), others[:2]]
        off = [
            (math.log(mean / max(low, 1e-300)), math.log(high / mean))
            for mean, (low, high) in zip(
                means, limits if few is here else limits[::-1], strict=True
            )
        ]
        ratio = means[0] / means[1]
        low = ratio / math.exp(math.hypot(off[0][0], off[1][1]))
        high = ratio * math.exp(math.hypot(off[0][1], off[1][0]))
        relative = [math.sqrt(x / (share * x + 1 - share)) for x in (low, high)]
        return relative[0], relative[1]

    def _in_words(self, factor: float) -> str:
        """Return for which rows trees expect a factor, in words."""
        assert self._scan is not None
        assert self._scan.log_factor is not None
        where = describe_region(self._scan.learned, self._scan.log_factor, factor)
        return f"rows that trees pick which learned from others, such as {where}"

    def bias(self) -> Verdict:
        """Answer whether the mean of z is 0, everywhere."""
        rows = self._rows
        mean, level = rows.mean(rows.z), 1 - self._plan.level(BIAS_SHARE)
        low, high, _ = interval_of_all(rows.z, rows.group_codes, level, rows.weights)
        evidence = f"<Z> = {mean:.2f} [{low:.2f}, {high:.2f}]"
        more: dict[str, Any] = {"interval": (mean, low, high)}
        remedy = "Correct the predictions before uncertainties are recalibrated."
        if self._scan is None:
            more["interval"] = mean, min(low, 0.0), max(high, 0.0)
            return self._nothing_to_go_by(BIAS, "unbiased", **more)
        if not low <= 0 <= high:
            words = (
                f"Biased: errors are {abs(mean):.2g} u "
                f"{'above' if mean > 0 else 'below'} 0 on average, {evidence}. {remedy}"
            )
            return self._verdict(BIAS, "no", words, p_adjusted=None, **more)
        local = [mean + x for band in self._bands(BIAS) for x in band.limits]
        if local:
            more["limits"] = min(local), max(local)
        if self._rejects(BIAS):
            return self._where_biased(remedy, more)
        if math.isfinite(sum(local)) and local:
            evidence += (
                f", and between {min(local):.2f} and {max(local):.2f} everywhere"
            )
        times = self._times_of_bias(low, high, *local)
        more["rows_needed"] = self._needed(times)
        if times > 1:
            words = f"Cannot tell whether unbiased: {evidence}."
            return self._verdict(BIAS, "cannot tell", words, **more)
        return self._verdict(BIAS, "yes", f"Unbiased: {evidence}.", **more)

    def _times_of_bias(self, *limits: float) -> float:
        """Return how many times as many rows bring a bias within the tolerance.

        A bias of so many u makes <Z²>, at its least, as large as the tolerance does.
        """
        size = max(self._average.low, 1e-300)
        allowed = math.sqrt((self._plan.tolerance**2 - 1) * size)
        off = max(map(abs, limits)) / allowed
        return HOPELESS if MOST_OFF < off < math.inf else off**2

    def _where_biased(self, remedy: str, more: dict[str, Any]) -> Verdict:
        """Name the region whose mean of z differs most, if its own interval agrees."""
        assert self._scan is not None
        rows, (band, worst) = self._scan.rows, self._worst(BIAS)
        there = rows.take(worst.inside[band.variable.codes])
        level = 1 - OWN_RATE * there.total / rows.total
        own = interval_of_all(there.z, there.group_codes, level, there.weights)
        low, high = (x - rows.mean(rows.z) for x in own[:2])
        low, high = min(low, worst.low), max(high, worst.high)
        where = band.variable.words(worst.inside)[0]
        differs = f"differs by {worst.value:+.2g} [{low:+.2g}, {high:+.2g}] there."
        more |= {"interval": (worst.value, low, high), "limits": (low, high)}
        if low <= 0 <= high:
            more["rows_needed"] = self._needed(self._times_of_bias(low, high))
            words = f"Cannot tell whether unbiased for {where}: z has not one law. Its "
            return self._verdict(BIAS, "cannot tell", f"{words}mean {differs}", **more)
        words = f"Biased for {where}: the mean of z {differs} {remedy}"
        return self._verdict(BIAS, "no", words, **more)

    def joint(self) -> Verdict:
        """Answer whether u and the features together cannot predict z²."""
        if self._scan is None or not self._bands(JOINT):
            return self._nothing_to_go_by(JOINT, "jointly right")
        [band], learned = self._bands(JOINT), self._scan.learned
        more: dict[str, Any] = {"limits": band.limits}
        if self._rejects(JOINT):
            return self._where(JOINT, "Not jointly right", learned, more)
        tolerance = self._plan.tolerance
        # the likelihood ratio, a row, of two halves that differ by the tolerance
        gain = math.log((tolerance**2 + tolerance**-2) / 2)
        critical = float(band.critical[np.isfinite(band.critical)].max(initial=0.0))
        needed = LEARNED_RATIO * critical / gain / learned.total
        times = max(needed, self._times(band.limits))
        more["rows_needed"] = self._needed(times * learned.total / self._rows.total)
        if times > 1:
            words = (
                f"Cannot tell whether jointly right: a factor of {tolerance:g} that "
                "depends on two variables at once could hide."
            )
            return self._verdict(JOINT, "cannot tell", words, **more)
        words = (
            "Jointly right: ordered by what trees learned from other rows, u is "
            f"{between(band.limits)} everywhere{self._than}."
        )
        return self._verdict(JOINT, "yes", words, **more)

    def coverage(self) -> Verdict:
        """Answer whether limits hold the share of errors they claim, everywhere."""
        if self._scan is None:
            return self._nothing_to_go_by(COVERAGE, "intervals hold")
        rows, times, found = self._rows, 0.0, (0.0, 0.0, 0.0)
        level = 1 - self._plan.level(LAW_SHARE) / len(self._held)
        for each in self._held:
            inside = each.inside.astype(np.float64)
            *_, n = interval_of_all(inside, rows.group_codes, level, rows.weights)
            share = rows.mean(inside)
            low, high = wilson_limits(share * n, n, level)
            found = share, low, high
            if not low <= each.target <= high:
                words = (
                    f"Intervals do not hold what they claim: {each.name} hold "
                    f"{_shares(found)} of all errors, not {100 * each.target:.0f} %."
                )
                return self._verdict(
                    COVERAGE, "no", words, p_adjusted=None, interval=found
                )
            off = (share - low, share - each.bounds[0])
            off = max(off, (high - share, each.bounds[1] - share), key=_ratio)
            times = max(
                times, FEWEST_OUTSIDE / (n * (1 - each.target)), _ratio(off) ** 2
            )
        names = " and ".join(each.name for each in self._held)
        claims = " and ".join(f"{100 * each.target:.0f} %" for each in self._held)
        if self._rejects(COVERAGE):
            band, worst = self._worst(COVERAGE)
            mean = float(band.sums.sum() / band.variable.sizes.sum())
            low, value, high = np.clip(
                mean + np.array([worst.low, worst.value, worst.high]), 0, 1
            )
            found = float(value), float(low), float(high)
            words = (
                f"Intervals do not hold everywhere: {band.what} hold "
                f"{100 * mean:.1f} % of all errors, but {_shares(found)} for "
                f"{band.variable.words(worst.inside)[0]}."
            )
            return self._verdict(COVERAGE, "no", words, interval=found)
        more = {"interval": found, "rows_needed": self._needed(times)}
        if times > 1:
            words = f"Cannot tell whether intervals hold: few lie beyond {names}."
            return self._verdict(COVERAGE, "cannot tell", words, **more)
        words = f"Intervals hold: {names} hold {claims} of the errors everywhere."
        if len(self._held) > 1:  # whose names are what they claim
            words = f"Intervals hold: those of {claims} do so everywhere."
        return self._verdict(COVERAGE, "yes", words, **more)


def _without_dominant(rows: Predictions) -> Predictions:
    """Leave out an error that outweighs all others: one error decides nothing."""
    parts = rows.z2 if rows.weights is None else rows.weights * rows.z2
    largest = parts == parts.max()
    if largest.sum() > 1 or rows.n_rows < 3 or parts.max() <= 0.5 * parts.sum():
        return rows
    return rows.take(~largest)


def _ratio(pair: tuple[float, float]) -> float:
    return pair[0] / pair[1] if pair[1] > 0 else math.inf


def _shares(found: tuple[float, float, float]) -> str:
    """Return a share and its limits, in per cent."""
    return "{:.1f} % [{:.1f}, {:.1f}]".format(*(100 * each for each in found))
