"""Answers to the questions that verdicts are about: yes, no, or cannot tell.

Questions share one error rate. A part of it belongs to the average, whose interval is
shown, and a small one to the average bias; the rest to all tests that shuffled sets
answer, by step-down maxima, so that the number of features dilutes neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, check_count, check_fraction
from .._support.weights import effective_number
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .average import Average, mean_interval_of
from .detectability import smallest_seen
from .joint import describe_region
from .regions import most_different, off_by, words_of, worst_region
from .scans import shift_ratios
from .shuffled import Shuffled
from .validation import (
    AVERAGE,
    BIAS,
    COVERAGE,
    JOINT,
    UNCERTAINTY,
    Answer,
    Verdict,
)

DRAWS = 400  # shuffled sets, or what the confidence needs
FEWEST = 20  # rows, or groups, below which nothing can be told
# how the error rate is shared out; a reserve is left for what heavy tails hide from
# the interval of the average
AVERAGE_SHARE, BIAS_SHARE, TESTS_SHARE = 0.2, 0.05, 0.6


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
        real = isinstance(tolerance, (int, float, np.integer, np.floating))
        if not real or not 1 < tolerance < np.inf:
            msg = (
                "`tolerance` must be a factor of the uncertainty above 1; found "
                f"{tolerance!r}."
            )
            raise InvalidInputError(msg)
        needed = math.ceil(1 / (TESTS_SHARE * (1 - level)))
        if n_draws is None:
            return cls(level, float(tolerance), max(DRAWS, 2 * needed))
        count = check_count(n_draws, "n_draws")
        if count < needed:
            msg = (
                f"`n_draws` must be at least {needed} for confidence={level:g}: fewer "
                f"shuffled sets cannot tell so small a chance; found {count}."
            )
            raise InvalidInputError(msg)
        return cls(level, float(tolerance), count)

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
        self._level = plan.level(TESTS_SHARE)
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

    @property
    def _too_few(self) -> str:
        """What is said where there is nothing to go by."""
        rows = self._rows
        if self._average.zms == 0:
            return "all errors are 0"
        if rows.weights is not None and rows.n_rows >= FEWEST:
            found = f"weights that leave {number_of_units(rows):.0f} rows in effect"
        elif rows.groups is not None and rows.n_rows >= FEWEST:
            found = f"{np.unique(rows.groups).size} groups"
        else:
            found = f"{rows.n_rows} rows"
        return f"{found} are too few"

    def average_verdict(self) -> Verdict:
        """Answer whether <Z²> is 1."""
        found = self._average
        evidence = f"<Z²> = {found.zms:.2f} [{found.low:.2f}, {found.high:.2f}]"
        interval = (found.zms, found.low, found.high)
        limit = self._plan.tolerance**2
        seen = math.sqrt(max(found.high, 1 / max(found.low, 1e-300)))
        more = {"interval": interval, "seen": seen if math.isfinite(seen) else None}
        if found.is_off and (self._shuffled is not None or found.zms == 0):
            words = f"uncertainties are {off_by(found.zms)} on average, {evidence}"
            return self._verdict(AVERAGE, "no", f"Not calibrated: {words}.", **more)
        if self._shuffled is None:
            words = f"Cannot tell whether calibrated: {self._too_few}; {evidence}."
            return self._verdict(AVERAGE, "cannot tell", words, **more)
        if found.low < 1 / limit or found.high > limit:
            why = (
                "tails are so heavy that the mean of z² says little"
                if found.nu_low < 4
                else "there are too few rows"
            )
            words = f"Cannot tell whether calibrated on average: {evidence}; {why}."
            return self._verdict(AVERAGE, "cannot tell", words, **more)
        return self._verdict(
            AVERAGE, "yes", f"Calibrated on average: {evidence}.", **more
        )

    def variable(self, name: str) -> Verdict:
        """Answer whether <Z²> is the same for all values of a variable."""
        right = "consistent" if name == UNCERTAINTY else f"adaptive for {name}"
        if self._shuffled is None:
            words = f"Cannot tell whether {right}: {self._too_few}."
            return self._verdict(name, "cannot tell", words)
        variable = self._shuffled.variables[name]
        if variable.n_bins < 2:
            if name == UNCERTAINTY:
                words = "All uncertainties are equal: there is no level to be right at."
                return self._verdict(name, "cannot tell", words)
            words = f"{name} has one value: what holds on average holds for it."
            return self._verdict(name, "yes", words)
        critical = self._shuffled.compared.critical(name, self._level)
        if self._rejects(name):
            sums = self._shuffled.sums[name]["z2"]
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
        variable, sums = self._shuffled.kept[name]
        key = (variable.labels is not None, *sorted(variable.sizes.tolist()))
        if key not in self._seen_by_sizes:
            self._seen_by_sizes[key] = smallest_seen(
                variable, sums, critical, self._rng
            )
        return self._seen_by_sizes[key]

    def bias(self) -> Verdict:
        """Answer whether the mean of z is 0, everywhere."""
        z = self._rows.errors / self._rows.uncertainty
        mean, rms = self._rows.mean(z), float(np.sqrt(self._rows.mean(z * z)))
        level = 1 - self._plan.level(BIAS_SHARE)
        low, high, _ = mean_interval_of(z, self._rows.groups, level, self._rows.weights)
        evidence = f"<Z> = {mean:.2f} [{low:.2f}, {high:.2f}]"
        more = {"interval": (mean, low, high)}
        remedy = "Correct the predictions before uncertainties are recalibrated."
        if self._shuffled is None:
            words = f"Cannot tell whether unbiased: {self._too_few}."
            return self._verdict(BIAS, "cannot tell", words, **more)
        if not low <= 0 <= high:
            words = (
                f"Biased: errors are {abs(mean):.2g} u "
                f"{'above' if mean > 0 else 'below'} 0 on average, {evidence}. {remedy}"
            )
            return self._verdict(BIAS, "no", words, **more)
        if self._rejects(BIAS):
            where, there = self._where_shifted("z", z)
            words = f"Biased for {where}: the mean of z is {there:+.2g} there. {remedy}"
            return self._verdict(BIAS, "no", words, **more)
        limit = math.sqrt(self._plan.tolerance**2 - 1) * rms
        if max(-low, high) > limit:
            words = f"Cannot tell whether unbiased: {evidence}."
            return self._verdict(BIAS, "cannot tell", words, **more)
        return self._verdict(BIAS, "yes", f"Unbiased: {evidence}.", **more)

    def _where_shifted(self, what: str, values: Floats) -> tuple[str, float]:
        """Return the region where a mean differs most from the rest, and that mean."""
        assert self._shuffled is not None
        centred = values - values.mean()
        best: tuple[float, str, float] = (-1.0, "", 0.0)
        for name, variable in self._shuffled.variables.items():
            if variable.n_bins < 2:
                continue
            sums = self._shuffled.sums[name][what]
            ratios = shift_ratios(variable, sums[None], float(centred.var()))
            inside = most_different(variable, ratios, sums)
            if inside is not None and float(ratios.max()) > best[0]:
                there = inside[variable.codes]
                mean = self._rows.take(there).mean(values[there])
                best = (float(ratios.max()), words_of(variable, inside)[0], mean)
        return best[1:]

    def joint(self) -> Verdict:
        """Answer whether u and the features together cannot predict z²."""
        if self._shuffled is None or self._shuffled.learned is None:
            words = f"Cannot tell whether jointly right: {self._too_few}."
            return self._verdict(JOINT, "cannot tell", words)
        if not self._rejects(JOINT):
            words = (
                "Jointly right: nothing learned from u and the features predicts z²."
            )
            return self._verdict(JOINT, "yes", words)
        found = describe_region(self._shuffled.some_rows, self._shuffled.learned)
        where = ""
        if found is not None:
            region, ratio, _ = found
            zms = ratio * self._average.zms
            where = f": uncertainties are {off_by(zms)} for {region}"
        return self._verdict(JOINT, "no", f"Not jointly right{where}.")

    def coverage(self) -> Verdict:
        """Answer whether the same multiple of u holds 95 % of the errors everywhere."""
        if self._shuffled is None:
            words = f"Cannot tell whether intervals hold: {self._too_few}."
            return self._verdict(COVERAGE, "cannot tell", words)
        reach = self._shuffled.reach
        if self._rejects(COVERAGE):
            size = np.abs(self._rows.errors / self._rows.uncertainty)
            outside = (size > reach).astype(np.float64)
            where, share = self._where_shifted("outside", outside)
            words = (
                f"Intervals do not hold everywhere: ±{reach:.3g} u hold 95 % of all "
                f"errors, but {100 * (1 - share):.0f} % for {where}."
            )
            return self._verdict(COVERAGE, "no", words)
        words = f"Intervals hold: ±{reach:.3g} u hold 95 % of the errors everywhere."
        return self._verdict(COVERAGE, "yes", words)
