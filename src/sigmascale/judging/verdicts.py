"""Validation: verdicts on uncertainties that a referee would sign.

:func:`validate` checks the rows, measures them, asks what perfectly calibrated sets
would show, and puts the questions. These share one error rate: a part of it belongs to
the average, whose interval is shown, and a small one to the average bias; the rest to
all tests that shuffled sets answer, by step-down maxima, so that the number of features
dilutes neither. Each answer is yes, no, or cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from .._support.checks import Floats, check_count, check_fraction, rng_from
from .._support.notices import about_subject, noted, warn
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
    Average,
    IntervalMethod,
    average_of,
    interval_of_all,
)
from .local import check_settings, check_tolerance, measure, refuse_one
from .references import ZDistribution, attainable_fractions, simulate_scores
from .regions import off_by
from .scan import (
    Shuffled,
    describe_region,
    shuffle_and_test,
    smallest_seen,
    worst_region,
)
from .validation import (
    AVERAGE,
    BIAS,
    COVERAGE,
    JOINT,
    UNCERTAINTY,
    Answer,
    Validation,
    Validations,
    Verdict,
)

DRAWS = 400  # shuffled sets, or what the confidence needs
FEWEST = 20  # rows, or groups, below which nothing can be told
DOMINATED = 50  # rows from which no error should outweigh all others
REFERENCE_DRAWS = 200  # simulated sets behind what is attainable
# how the error rate is shared out; a reserve is left for what heavy tails hide from
# the interval of the average
AVERAGE_SHARE, BIAS_SHARE, TESTS_SHARE = 0.2, 0.05, 0.6
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

    "No": the test rejects, or the interval shown for the average excludes 1. The test
    of a variable looks for the worst run of neighbouring values (or set of labels), at
    all scales, relative to the average, so that the variable at fault is named. How
    large such differences are by chance is told by shuffled sets, in which any row
    could have had the z-score of any other; rows of one group stay together.
    "Cannot tell": even a failure as large as the tolerance could hide. "Yes" comes with
    the smallest failure that would have been seen.

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
        The failure that must not hide: a factor of u, for a tenth of the rows.
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
            rows, measured.bins, z_scores, REFERENCE_DRAWS, generator
        )
    attainable = attainable_fractions(rows, measured.local, settings, generator)

    average = average_of(rows, 1 - plan.level(AVERAGE_SHARE), generator)
    shuffled = None
    if number_of_units(rows) >= FEWEST and average.zms > 0:
        shuffled = shuffle_and_test(rows, plan.n_draws, generator, joint=joint)
    verdicts = Answers(rows, plan, average, shuffled, generator).all(joint=joint)
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
        reach=quantile_of(np.abs(rows.z), 0.95, rows.weights),
        rows=rows,
        n_draws=0 if shuffled is None else plan.n_draws,
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


def _warn_of_dominant(rows: Predictions) -> None:
    z2 = rows.z2
    parts = z2 if rows.weights is None else rows.weights * z2
    row, total = int(np.argmax(parts)), float(parts.sum())
    if z2.size >= DOMINATED and parts[row] > 0.5 * total:
        place = row if rows.places is None else int(rows.places[row])
        warn(
            f"One error of {z2.size} (row {place}, z = {np.sqrt(z2[row]):.3g}) makes "
            f"up {parts[row] / total:.0%} of the sum of z²: verdicts say little of the "
            "others. Look at that row, and drop it if it is a blunder.",
            DominantErrorWarning,
            stacklevel=3,
        )


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


def number_of_units(rows: Predictions) -> float:
    """Return how many rows, or groups, are independent; of weighted ones, in effect."""
    codes = rows.group_codes
    if codes is None:
        return rows.n_rows
    if rows.weights is None:
        return int(codes.max()) + 1
    return effective_number(rows.weights, codes)


class Answers:
    """Answers the questions from what was computed."""

    def __init__(
        self,
        rows: Predictions,
        plan: Plan,
        average: Average,
        shuffled: Shuffled | None,
        rng: np.random.Generator,
    ) -> None:
        self._rows, self._plan, self._rng = rows, plan, rng
        self._average, self._shuffled = average, shuffled
        self._p: dict[str, float] = {}
        self._adjusted: dict[str, float] = {}
        self._seen_by_sizes: dict[Any, float] = {}
        if shuffled is not None:
            self._p = shuffled.compared.p_values()
            # in terms of the whole error rate, of which tests have a share
            self._adjusted = {
                name: min(1.0, p / TESTS_SHARE)
                for name, p in shuffled.compared.adjusted().items()
            }

    def all(self, *, joint: bool) -> dict[str, Verdict]:
        """Answer all questions, by name."""
        verdicts = [self.bias(), self.average(), *map(self.variable, self._rows.names)]
        verdicts += [self.joint(), self.coverage()] if joint else [self.coverage()]
        return {verdict.name: verdict for verdict in verdicts}

    def _rejects(self, name: str) -> bool:
        return self._adjusted.get(name, 1.0) <= 1 - self._plan.confidence

    def _verdict(
        self, name: str, answer: Answer, sentence: str, **more: Any
    ) -> Verdict:
        return Verdict(
            name,
            answer,
            sentence,
            p_value=self._p.get(name),
            p_adjusted=self._adjusted.get(name),
            **more,
        )

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
        return self._verdict(name, "cannot tell", f"{words}.", **more)

    def average(self) -> Verdict:
        """Answer whether <Z²> is 1."""
        found, limit = self._average, self._plan.tolerance**2
        seen = math.sqrt(max(found.high, 1 / max(found.low, 1e-300)))
        more = {
            "interval": (found.zms, found.low, found.high),
            "seen": seen if math.isfinite(seen) else None,
        }
        if found.is_off and (self._shuffled is not None or found.zms == 0):
            words = f"uncertainties are {off_by(found.zms)} on average, {found}"
            return self._verdict(AVERAGE, "no", f"Not calibrated: {words}.", **more)
        if self._shuffled is None:
            return self._nothing_to_go_by(AVERAGE, "calibrated", **more)
        if found.low < 1 / limit or found.high > limit:
            why = (
                "tails are so heavy that the mean of z² says little"
                if found.nu_low < 4
                else "there are too few rows"
            )
            words = f"Cannot tell whether calibrated on average: {found}; {why}."
            return self._verdict(AVERAGE, "cannot tell", words, **more)
        words = f"Calibrated on average: {found}."
        return self._verdict(AVERAGE, "yes", words, **more)

    def variable(self, name: str) -> Verdict:
        """Answer whether <Z²> is the same for all values of a variable."""
        right = "consistent" if name == UNCERTAINTY else f"adaptive for {name}"
        if self._shuffled is None:
            return self._nothing_to_go_by(name, right)
        variable = self._shuffled.whole.variables[name]
        if variable.n_bins < 2:
            if name == UNCERTAINTY:
                words = "All uncertainties are equal: there is no level to be right at."
                return self._verdict(name, "cannot tell", words)
            words = f"{name} has one value: what holds on average holds for it."
            return self._verdict(name, "yes", words)
        level = self._plan.level(TESTS_SHARE)
        critical = self._shuffled.compared.critical(name, level)
        if self._rejects(name):
            sums = self._shuffled.sums["z2"][name][0]
            region = worst_region(variable, sums, critical)
            where = "" if region is None else f": {region.sentence}"
            return self._verdict(name, "no", f"Not {right}{where}.", region=region)
        seen = self._seen(name, critical)
        how = "ordered" if variable.labels is None else "grouped"
        tenth = f"tenth of the rows, {how} by {name},"
        if seen > self._plan.tolerance:
            words = (
                f"Cannot tell whether {right}: u of a {tenth} could be too small by a "
                f"factor of {self._plan.tolerance:g} unseen."
            )
            return self._verdict(name, "cannot tell", words, seen=seen)
        words = (
            f"{right[0].upper()}{right[1:]}: u of no {tenth} is too small by more than "
            f"a factor of {seen:.3g}."
        )
        return self._verdict(name, "yes", words, seen=seen)

    def _seen(self, name: str, critical: float) -> float:
        """Return the smallest failure that would be found; alike variables share it."""
        assert self._shuffled is not None
        variable, sums = (
            self._shuffled.copied.variables[name],
            self._shuffled.kept[name],
        )
        key = (variable.labels is not None, *sorted(variable.sizes.tolist()))
        if key not in self._seen_by_sizes:
            self._seen_by_sizes[key] = smallest_seen(
                variable, sums, critical, self._rng
            )
        return self._seen_by_sizes[key]

    def bias(self) -> Verdict:
        """Answer whether the mean of z is 0, everywhere."""
        rows = self._rows
        mean, level = rows.mean(rows.z), 1 - self._plan.level(BIAS_SHARE)
        low, high, _ = interval_of_all(rows.z, rows.group_codes, level, rows.weights)
        evidence = f"<Z> = {mean:.2f} [{low:.2f}, {high:.2f}]"
        more = {"interval": (mean, low, high)}
        remedy = "Correct the predictions before uncertainties are recalibrated."
        if self._shuffled is None:
            return self._nothing_to_go_by(BIAS, "unbiased", **more)
        if not low <= 0 <= high:
            words = (
                f"Biased: errors are {abs(mean):.2g} u "
                f"{'above' if mean > 0 else 'below'} 0 on average, {evidence}. {remedy}"
            )
            return self._verdict(BIAS, "no", words, **more)
        if self._rejects(BIAS):
            where, there = self._where_shifted("z", rows.z)
            words = f"Biased for {where}: the mean of z is {there:+.2g} there. {remedy}"
            return self._verdict(BIAS, "no", words, **more)
        rms = math.sqrt(rows.mean(rows.z2))
        if max(-low, high) > math.sqrt(self._plan.tolerance**2 - 1) * rms:
            words = f"Cannot tell whether unbiased: {evidence}."
            return self._verdict(BIAS, "cannot tell", words, **more)
        return self._verdict(BIAS, "yes", f"Unbiased: {evidence}.", **more)

    def _where_shifted(self, what: str, values: Floats) -> tuple[str, float]:
        """Return the region where a mean differs most from the rest, and that mean."""
        assert self._shuffled is not None
        variance = float(values.var())
        best: tuple[float, str, float] = (-1.0, "", 0.0)
        for name, variable in self._shuffled.whole.variables.items():
            if variable.n_bins < 2:
                continue
            sums = self._shuffled.sums[what][name]
            ratios = variable.shift_ratios(sums, variance)
            inside = variable.most_different(ratios, sums[0])
            if inside is not None and float(ratios.max()) > best[0]:
                there = inside[variable.codes]
                mean = self._rows.take(there).mean(values[there])
                best = (float(ratios.max()), variable.words(inside)[0], mean)
        return best[1:]

    def joint(self) -> Verdict:
        """Answer whether u and the features together cannot predict z²."""
        found = self._shuffled
        if found is None or found.learned is None:
            return self._nothing_to_go_by(JOINT, "jointly right")
        if not self._rejects(JOINT):
            words = (
                "Jointly right: nothing learned from u and the features predicts z²."
            )
            return self._verdict(JOINT, "yes", words)
        where, ratio = describe_region(found.copied.rows, found.learned)
        words = f"uncertainties are {off_by(ratio * self._average.zms)} for {where}"
        return self._verdict(JOINT, "no", f"Not jointly right: {words}.")

    def coverage(self) -> Verdict:
        """Answer whether the same multiple of u holds 95 % of the errors everywhere."""
        if self._shuffled is None:
            return self._nothing_to_go_by(COVERAGE, "intervals hold")
        reach = self._shuffled.whole.reach
        if self._rejects(COVERAGE):
            outside = (np.abs(self._rows.z) > reach).astype(np.float64)
            where, share = self._where_shifted("outside", outside)
            words = (
                f"Intervals do not hold everywhere: ±{reach:.3g} u hold 95 % of all "
                f"errors, but {100 * (1 - share):.0f} % for {where}."
            )
            return self._verdict(COVERAGE, "no", words)
        words = f"Intervals hold: ±{reach:.3g} u hold 95 % of the errors everywhere."
        return self._verdict(COVERAGE, "yes", words)
