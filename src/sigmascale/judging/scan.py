"""Scans find where z differs along a variable, at any scale.

A variable is cut into fine bins, equal values together. Of a number, all runs of
neighbouring bins of many lengths are compared with the rest of the rows; of labels, all
sets that hold the labels with the smallest or the largest mean. The largest difference
is the statistic, whatever its place. How large it is by chance is told by shuffled
sets: in a calibrated set, any row could have had the z-score of any other.

Three things are compared: the mean of z² (uncertainties too small or too large, by the
likelihood ratio of the gamma law), the mean of z (bias), and the share of errors beyond
the limits that hold 95 % of all (coverage).

What u and the features say together, small trees learn on some folds, and are tested on
the others. If z² depends on nothing, what they have learned is worth nothing there.

References
----------
P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from .._support.checks import Floats, Ints
from .._support.labels import Categories, label_text
from .._support.weights import mean_of, quantile_of, total_of
from ..bins.partitions import EqualSizeBins, LabelBins
from ..predictions import Predictions
from ..scaling.crossfit import make_folds
from .references import shuffled_rows, summing
from .regions import Region, label_words, range_words
from .validation import BIAS, COVERAGE, JOINT

FINE_BINS, ROWS_OF_A_BIN = 50, 5  # of a number: at most, and at least
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)  # of runs, in bins
LEAST_SHARE, LEAST_ROWS = 0.08, 10  # of the rows that a run must have
RARE_ROWS, RARE_SHARE = 20, 0.005  # labels with fewer rows share a bin
AT_ONCE = 2**21  # numbers that are shuffled at a time
SHUFFLED_ROWS = 50_000  # of shuffled sets: beyond, statistics do not change any more
KEPT = 200  # shuffled sets whose sums are kept, to see what would be found
N_FOLDS, LEAST_LEARNED = 2, 60  # folds, and rows, to learn from jointly
N_TREES, N_LEAVES, RATE = 40, 8, 0.15
SMALLEST = 1e-3  # least <Z²> that is told from 0: beyond, all that counts is the rows
SHARE = 0.1  # of the rows that are made wrong, to see what would be found
POWER = 0.85  # of the sets in which they must be found
FACTORS = (1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 6.0)

Some = npt.NDArray[np.bool_]  # which of the bins


@dataclass(frozen=True, eq=False)
class ScannedVariable:
    """A variable in fine bins.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    codes : array of int, shape (n,)
        The bin of each row.
    sizes : array of shape (n_bins,)
        Rows of each bin, or their weight.
    low, high : array of shape (n_bins,), or None
        The smallest and the largest number of each bin.
    labels : tuple of str, or None
        What each bin of labels is called.
    """

    name: str
    codes: Ints
    sizes: npt.NDArray[Any]
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls, name: str, x: Floats | Categories, weights: Floats | None = None
    ) -> ScannedVariable:
        """Cut a variable into fine bins; equal values are never parted."""
        total = total_of(x.size, weights)
        if isinstance(x, np.ndarray):
            n_bins = int(np.clip(total // ROWS_OF_A_BIN, 2, FINE_BINS))
            limits = EqualSizeBins.quantiles(x, n_bins, weights).limits
            codes = np.searchsorted(limits, x, side="right")
            codes = np.unique(codes, return_inverse=True)[1]
            sizes = np.bincount(codes, weights)
            low, high = np.full(sizes.size, np.inf), np.full(sizes.size, -np.inf)
            np.minimum.at(low, codes, x)
            np.maximum.at(high, codes, x)
            return cls(name, codes, sizes, low, high)
        least = max(RARE_ROWS, int(RARE_SHARE * total))
        bins = LabelBins.learn(x, min_size=least, weights=weights)
        codes = bins.codes(x)
        found, codes = np.unique(codes, return_inverse=True)
        names = [*map(label_text, bins.labels), "rare labels"]
        return cls(
            name,
            codes,
            np.bincount(codes, weights),
            labels=tuple(names[code] for code in found),
        )

    @property
    def n_bins(self) -> int:
        """The number of fine bins."""
        return self.sizes.size

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """Where runs start and end that have enough rows, and leave enough."""
        ends = np.append(0, np.cumsum(self.sizes))
        n_rows = float(ends[-1])
        least = max(LEAST_ROWS, LEAST_SHARE * n_rows)
        starts, stops = [], []
        for length in LENGTHS:
            start = np.arange(max(0, self.n_bins - length + 1))
            rows = ends[start + length] - ends[start]
            fits = (rows >= least) & (n_rows - rows >= least)
            starts.append(start[fits])
            stops.append(start[fits] + length)
        return np.concatenate(starts), np.concatenate(stops)

    def _candidates(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return rows and sums of all regions, of sets in rows and bins in columns.

        Regions of labels are those with the smallest means of what is summed.
        """
        if self.labels is None:
            start, stop = self.runs
            ends = np.append(0, np.cumsum(self.sizes))
            total = np.concatenate(
                [np.zeros((sums.shape[0], 1)), np.cumsum(sums, axis=1)], axis=1
            )
            rows = (ends[stop] - ends[start]).astype(np.float64)
            return np.broadcast_to(rows, (sums.shape[0], rows.size)), (
                total[:, stop] - total[:, start]
            )
        order = np.argsort(sums / self.sizes, axis=1, kind="stable")[:, :-1]
        return (
            np.cumsum(self.sizes[order], axis=1).astype(np.float64),
            np.cumsum(np.take_along_axis(sums, order, 1), axis=1),
        )

    def variance_ratios(self, sums: Floats) -> Floats:
        """Return the likelihood ratio of every region and the rest, of every set.

        With m the mean z² of all n rows, m₁ of the n₁ rows of a region and m₂ of the
        rest, it is −n₁ ln(m₁/m) − n₂ ln(m₂/m): twice as much is chi-squared for
        exponential z², and about the same as chi-squared, with one degree of freedom,
        for normal z.
        """
        n1, s1 = self._candidates(sums)
        n, total = float(self.sizes.sum()), sums.sum(axis=1, keepdims=True)
        n2, s2 = n - n1, total - s1
        mean = total / n
        # a region without any error counts as one with half of an average z²
        m1 = np.maximum(s1 / n1 / mean, 0.5 / n1)
        m2 = np.maximum(s2 / n2 / mean, 0.5 / n2)
        result: Floats = -n1 * np.log(m1) - n2 * np.log(m2)
        return result

    def shift_ratios(self, sums: Floats, variance: float) -> Floats:
        """Return the squared difference of every region and the rest, of every set.

        It is in units of its variance by chance; of values that have the mean 0, or the
        same values of which each has lost the mean.
        """
        n1, s1 = self._candidates(sums)
        n = float(self.sizes.sum())
        # shuffled values of weighted rows have another mean than 0
        s1 = s1 - n1 * (sums.sum(axis=1, keepdims=True) / n)
        result: Floats = s1**2 / (max(variance, 1e-300) * n1 * (n - n1) / n)
        return result

    def most_different(self, ratios: Floats, sums: Floats) -> Some | None:
        """Return the bins of the region with the largest ratio, of one set."""
        if not ratios.shape[1]:
            return None
        best = int(np.argmax(ratios[0]))
        inside = np.zeros(self.n_bins, dtype=np.bool_)
        if self.labels is None:
            start, stop = self.runs
            inside[start[best] : stop[best]] = True
        else:
            order = np.argsort(sums / self.sizes, kind="stable")
            inside[order[: best + 1]] = True
        return inside

    def words(self, inside: Some) -> tuple[str, Any, Any]:
        """Return bins in words, and their limits."""
        at = np.flatnonzero(inside)
        if self.labels is not None:
            names = [self.labels[i] for i in at]
            return label_words(self.name, names), names[0], names[-1]
        assert self.low is not None
        assert self.high is not None
        low = float(self.low[at[0]]) if at[0] > 0 else None
        high = float(self.high[at[-1]]) if at[-1] < self.n_bins - 1 else None
        return range_words(self.name, low, high), low, high


def largest(ratios: Floats) -> Floats:
    """Return the statistic of each set: the ratio of the region that differs most."""
    found: Floats = ratios.max(axis=1, initial=0.0)
    return found


class ScannedRows:
    """All variables of a set, and sums by their bins, as they are or shuffled.

    Attributes
    ----------
    rows : Predictions
        The rows.
    variables : dict of str to ScannedVariable
        Their variables; those of one value are not tested.
    reach : float
        The multiple of u that holds 95 % of the errors.
    values : dict of str to array of shape (n,)
        What is compared: "z2", and "z" and "outside" of mean 0.
    """

    def __init__(self, rows: Predictions) -> None:
        self.rows = rows
        self.variables = {
            name: ScannedVariable.of(
                name, x if labels is None else Categories(x, labels), rows.weights
            )
            for name, x, labels in zip(
                rows.names, rows.columns, rows.categories, strict=True
            )
        }
        size = np.abs(rows.z)
        self.reach = quantile_of(size, 0.95, rows.weights)
        outside = (size > self.reach).astype(np.float64)
        self.values = {
            "z2": rows.z2,
            "z": rows.z - rows.mean(rows.z),
            "outside": outside - rows.mean(outside),
        }
        # one sparse product sums over the bins of all variables at once
        every = self.variables.values()
        self._ends = np.cumsum([each.n_bins for each in every])
        firsts = np.append(0, self._ends[:-1])
        bins = [each.codes + first for each, first in zip(every, firsts, strict=True)]
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        rows_of = np.tile(np.arange(rows.n_rows), len(every))
        shape = int(self._ends[-1]), rows.n_rows
        self._gather = summing(
            np.tile(weights, len(every)), np.concatenate(bins), rows_of, shape
        )

    def means(self, z2: Floats) -> Any:
        """Return the mean of z², of each set in columns if rows are weighted.

        Shuffling changes the mean of weighted rows only.
        """
        weights = self.rows.weights
        if weights is None:
            return float(self.values["z2"].mean()) or 1.0
        return np.maximum(weights @ z2 / weights.sum(), 1e-300)

    def sums(self, values: Floats) -> dict[str, Floats]:
        """Return sums by bin of each variable, of sets in columns of `values`."""
        parts = np.split(self._gather @ values, self._ends[:-1])
        return {name: x.T for name, x in zip(self.variables, parts, strict=True)}

    def statistics(self, sums: dict[str, dict[str, Floats]]) -> dict[str, Floats]:
        """Return the statistics of sets from their sums by bin, one set a row."""
        tested = {n: each for n, each in self.variables.items() if each.n_bins > 1}
        found = {
            name: largest(variable.variance_ratios(sums["z2"][name]))
            for name, variable in tested.items()
        }
        for question, what in ((BIAS, "z"), (COVERAGE, "outside")):
            variance = float(self.values[what].var())
            by_variable = [
                largest(variable.shift_ratios(sums[what][name], variance))
                for name, variable in tested.items()
            ]
            if by_variable:
                found[question] = np.max(by_variable, axis=0)
        return found


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned about rows that it was not learned from.

    Attributes
    ----------
    log_factor : array of shape (n_rows,)
        The logarithm of the expected z² of each, over the average.
    weights : array of shape (n_rows,), or None
        The weights of the rows.
    """

    log_factor: Floats
    weights: Floats | None = None

    def gain(self, ratio: Floats) -> Floats:
        """Return the gain in log-likelihood (gamma law), of sets in columns.

        It is the sum over rows of r (1 − e^−f) − f, with r the ratio of z² to its mean
        and f the logarithm of the factor that was predicted.
        """
        slope, f = -np.expm1(-self.log_factor), self.log_factor
        if self.weights is not None:
            slope, f = self.weights * slope, self.weights * f
        result: Floats = slope @ ratio - f.sum()
        return result


def learn_jointly(rows: Predictions, rng: np.random.Generator) -> Learned | None:
    """Predict the z² of unseen rows; None where there is nothing to learn from."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    table, categorical = numeric_table(rows)
    if rows.n_rows < LEAST_LEARNED or not table.shape[1]:
        return None
    if not rows.z2.any():
        return None
    z2 = rows.z2 / rows.mean(rows.z2)
    # one enormous error teaches nothing about other rows
    target = np.minimum(z2, quantile_of(z2, 0.99, rows.weights) + 1)
    fold = make_folds(z2, N_FOLDS, rng, rows.groups, rows.weights)
    log_factor = np.zeros(rows.n_rows)
    for k in range(N_FOLDS):
        seen, unseen = fold != k, fold == k
        if not seen.any() or not unseen.any() or not target[seen].any():
            continue
        learner = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=RATE,
            max_iter=N_TREES,
            max_leaf_nodes=N_LEAVES,
            min_samples_leaf=max(10, int(np.count_nonzero(seen)) // 50),
            l2_regularization=5.0,
            categorical_features=categorical,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1):  # threads that wait for each other cost more
            weights = None if rows.weights is None else rows.weights[seen]
            learner.fit(table[seen], target[seen], weights)
            predicted = learner.predict(table[unseen])
        mean = mean_of(learner.predict(table[seen]), weights)
        log_factor[unseen] = np.log(np.maximum(predicted / mean, 1e-3))
    return Learned(log_factor, rows.weights)


def numeric_table(rows: Predictions) -> tuple[Floats, list[int]]:
    """Return the columns as numbers, and which of them are codes of labels."""
    columns, categorical = [], []
    for column in rows.columns:
        if column.dtype.kind == "f":
            columns.append(column)
            continue
        labels, codes, counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        frequent = np.argsort(-counts, kind="stable")[:200]
        number = np.full(labels.size, np.nan)  # rare labels are as good as missing
        number[frequent] = np.arange(frequent.size)
        categorical.append(len(columns))
        columns.append(number[codes])
    useful = [i for i, x in enumerate(columns) if np.nanmin(x) < np.nanmax(x)]
    kept = [useful.index(i) for i in categorical if i in useful]
    return np.column_stack(
        [columns[i] for i in useful] or [np.empty((rows.n_rows, 0))]
    ), kept


class Compared:
    """Statistics of a set, and of shuffled sets: many questions, one error rate.

    All statistics of a set come from the same shuffle, so that their joint distribution
    is known, and with it that of the largest of them. A statistic is compared with the
    largest of all that are not more extreme than itself (step-down maxima): the chance
    that any question of a calibrated set is answered "no" is then the level, however
    many questions there are.

    Parameters
    ----------
    observed : dict of str to float
        The statistic of each question.
    draws : dict of str to array of shape (n_draws,)
        The same of shuffled sets.
    """

    def __init__(self, observed: dict[str, float], draws: dict[str, Floats]) -> None:
        self.observed, self.draws = observed, draws
        # statistics in units that all share: their spread by chance
        self._scales = {
            name: (float(drawn.mean()), max(float(drawn.std()), 1e-12))
            for name, drawn in draws.items()
        }
        self._standardised = {
            name: (draws[name] - centre) / spread
            for name, (centre, spread) in self._scales.items()
        }

    def p_values(self) -> dict[str, float]:
        """Return the share of shuffled sets with a statistic as large, one by one."""
        return {
            name: (1 + np.count_nonzero(drawn >= self.observed[name]))
            / (1 + drawn.size)
            for name, drawn in self.draws.items()
        }

    def adjusted(self) -> dict[str, float]:
        """Return p-values that are corrected for the number of questions."""
        observed = {
            name: (self.observed[name] - centre) / spread
            for name, (centre, spread) in self._scales.items()
        }
        names = sorted(observed, key=lambda name: observed[name])
        # the largest of each statistic and of all that are less extreme
        maxima = np.maximum.accumulate([self._standardised[n] for n in names], axis=0)
        found, p = {}, 0.0
        for name, drawn in zip(reversed(names), maxima[::-1], strict=True):
            count = np.count_nonzero(drawn >= observed[name])
            found[name] = p = max(p, (1 + count) / (1 + drawn.size))
        return found

    def critical(self, name: str, level: float) -> float:
        """Return the value that a statistic must exceed to be significant by itself.

        It is that of the largest of all statistics, brought to the scale of this one.
        """
        maxima = np.max(list(self._standardised.values()), axis=0)
        centre, spread = self._scales[name]
        return centre + spread * float(np.quantile(maxima, 1 - level))


@dataclass(frozen=True, eq=False)
class Shuffled:
    """What a set and its shuffled copies have shown.

    Attributes
    ----------
    compared : Compared
        Statistics of the questions: variables by name, "bias", "coverage", "joint".
    whole, copied : ScannedRows
        All rows, and those that were shuffled, and jointly learned from.
    sums : dict of str to dict of str to array of shape (1, n_bins)
        Sums of "z2", "z" and "outside" of all rows, by variable.
    kept : dict of str to array of shape (n_kept, n_bins)
        Sums of z² of some shuffled sets, over the mean of z², by variable.
    learned : Learned or None
        What u and the features together say about the z² of the shuffled rows.
    """

    compared: Compared
    whole: ScannedRows
    copied: ScannedRows
    sums: dict[str, dict[str, Floats]]
    kept: dict[str, Floats]
    learned: Learned | None


def shuffle_and_test(
    rows: Predictions, n_draws: int, rng: np.random.Generator, *, joint: bool
) -> Shuffled:
    """Compute the statistics of all questions, of a set and of shuffled ones."""
    whole = copied = ScannedRows(rows)
    if rows.n_rows > SHUFFLED_ROWS:
        copied = ScannedRows(rows.take(_some_rows(rows, SHUFFLED_ROWS, rng)))
    learned = learn_jointly(copied.rows, rng) if joint else None

    sums = {what: whole.sums(x[:, None]) for what, x in whole.values.items()}
    observed = {name: float(x[0]) for name, x in whole.statistics(sums).items()}
    if learned is not None:
        z2 = copied.values["z2"]
        observed[JOINT] = float(learned.gain(z2 / copied.means(z2)))
    draws: dict[str, list[Floats]] = {name: [] for name in observed}
    kept: list[dict[str, Floats]] = []
    draw = shuffled_rows(copied.rows.n_rows, copied.rows.groups, rng)
    block = int(np.clip(AT_ONCE // copied.rows.n_rows, 1, 64))
    for first in range(0, n_draws, block):
        count = min(block, n_draws - first)
        sources = np.column_stack([draw() for _ in range(count)])
        shuffled = {what: x[sources] for what, x in copied.values.items()}
        of_bins = {what: copied.sums(x) for what, x in shuffled.items()}
        found = copied.statistics(of_bins)
        mean = copied.means(shuffled["z2"])
        if learned is not None:
            found[JOINT] = learned.gain(shuffled["z2"] / mean)
        for name in draws:
            draws[name].append(found[name])
        if len(kept) * count < KEPT:
            of_sets = np.reshape(mean, (-1, 1))
            kept.append({name: x / of_sets for name, x in of_bins["z2"].items()})
    return Shuffled(
        Compared(observed, {n: np.concatenate(each) for n, each in draws.items()}),
        whole,
        copied,
        sums,
        {n: np.concatenate([each[n] for each in kept]) for n in copied.variables},
        learned,
    )


def _some_rows(rows: Predictions, most: int, rng: np.random.Generator) -> Ints:
    """Return some of the rows, whole groups of them."""
    if rows.groups is None:
        return np.sort(rng.choice(rows.n_rows, most, replace=False))
    labels, codes, counts = np.unique(
        rows.groups, return_inverse=True, return_counts=True
    )
    order = rng.permutation(labels.size)
    chosen = np.zeros(labels.size, dtype=np.bool_)
    chosen[order[np.cumsum(counts[order]) <= most]] = True
    return np.flatnonzero(chosen[codes])


def worst_region(
    variable: ScannedVariable, sums: Floats, critical: float
) -> Region | None:
    """Return the region of a variable that differs most from the rest of the rows.

    Parameters
    ----------
    variable : ScannedVariable
        The variable in fine bins.
    sums : array of shape (n_bins,)
        Sums of z² by bin.
    critical : float
        The likelihood ratio that the largest of all regions exceeds by chance at the
        level of the test: it makes the interval of the factor hold for all of them.
    """
    n = variable.sizes.astype(np.float64)
    inside = _most_deviant(variable, sums, float(np.median(sums / n)))
    if inside is None:
        return None
    # where the rest is further from right, it is the rest that is wrong
    if _distance(sums, n, ~inside) > _distance(sums, n, inside):
        if variable.labels is not None or _is_run(~inside):
            inside = ~inside
        else:
            inside = _most_deviant(variable, sums, 1.0)
            assert inside is not None
    mean = float(sums[inside].sum() / n[inside].sum())
    where, low, high = variable.words(inside)
    rows = int(n[inside].sum())
    return Region(where, low, high, mean, rows, _factors(mean, rows, critical))


def _distance(sums: Floats, n: Floats, inside: Some) -> float:
    """Return how far the <Z²> of some bins is from 1."""
    mean = float(sums[inside].sum() / max(n[inside].sum(), 1.0))
    return abs(float(np.log(max(mean, SMALLEST))))


def _most_deviant(variable: ScannedVariable, sums: Floats, usual: float) -> Some | None:
    """Return the bins of the region that deviates most from the usual <Z²>.

    All runs of bins count here, whatever their length, so that the limits are exact;
    deviation is the gamma deviance, n (r − 1 − ln r) with r = <Z²> over the usual one.
    """
    if variable.labels is not None:
        return variable.most_different(variable.variance_ratios(sums[None]), sums)
    rows, total = (
        np.concatenate([[0.0], np.cumsum(values)]) for values in (variable.sizes, sums)
    )
    count = rows[None, 1:] - rows[:-1, None]
    least = max(LEAST_ROWS, LEAST_SHARE * rows[-1])
    allowed = (count >= least) & (rows[-1] - count >= least)
    if not allowed.any():
        return None
    ratio = (total[None, 1:] - total[:-1, None]) / np.maximum(count, 1.0)
    ratio = np.maximum(ratio / max(usual, SMALLEST), SMALLEST)
    deviance = np.where(allowed, count * (ratio - 1 - np.log(ratio)), -1.0)
    first, last = np.unravel_index(int(np.argmax(deviance)), deviance.shape)
    inside = np.zeros(variable.n_bins, dtype=np.bool_)
    inside[first : last + 1] = True
    return inside


def _is_run(inside: Some) -> bool:
    """Return whether bins are neighbours."""
    at = np.flatnonzero(inside)
    return bool(at.size and at[-1] - at[0] == at.size - 1)


def _factors(zms: float, n: int, critical: float) -> tuple[float, float] | None:
    """Return the interval of the factor, from the likelihood ratio that is exceeded.

    The true mean μ is within it where n (r − 1 − ln r) ≤ `critical`, with r = <Z²>/μ.
    """
    if zms <= 0:
        return None

    def excess(log_ratio: float) -> float:
        return float(np.expm1(log_ratio) - log_ratio - critical / n)

    high = optimize.brentq(excess, 1e-9, 50.0) if excess(50.0) > 0 else 50.0
    low = optimize.brentq(excess, -1e6, -1e-9) if excess(-1e6) > 0 else -1e6
    limits = np.sqrt(zms) * np.exp(np.array([-high, -low]) / 2)
    return float(limits[0]), float(min(limits[1], 1e6))


def describe_region(rows: Predictions, learned: Learned) -> tuple[str, float]:
    """Return the worst region that a few splits find, and its <Z²> over that of all."""
    from sklearn.tree import DecisionTreeRegressor

    numbers = [i for i, labels in enumerate(rows.categories) if labels is None]
    table = np.column_stack([rows.columns[i] for i in numbers])
    least = max(10, rows.n_rows // 50)
    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=least, random_state=0)
    tree.fit(table, learned.log_factor, rows.weights)
    leaves = tree.apply(table)
    best = -1.0, 0, 1.0
    for leaf in np.unique(leaves).tolist():
        inside = rows.take(leaves == leaf)
        ratio = max(inside.mean(inside.z2) / rows.mean(rows.z2), 0.5 / inside.n_rows)
        deviance = inside.n_rows * (ratio - 1 - np.log(ratio))
        best = max(best, (deviance, leaf, ratio), key=lambda each: each[0])
    names = [rows.names[i] for i in numbers]
    return _path_words(tree.tree_, best[1], names), best[2]


def _path_words(tree: Any, leaf: int, names: list[str]) -> str:
    """Return the conditions that lead to a leaf, in words."""
    above: dict[str, float] = {}
    below: dict[str, float] = {}
    node = leaf
    while node:
        from_left = tree.children_left == node
        parent = int(np.argmax(from_left | (tree.children_right == node)))
        name, limit = names[tree.feature[parent]], float(tree.threshold[parent])
        if from_left[parent]:
            below[name] = min(below.get(name, np.inf), limit)
        else:
            above[name] = max(above.get(name, -np.inf), limit)
        node = parent
    parts = [
        range_words(name, above.get(name), below.get(name))
        for name in dict.fromkeys([*above, *below])
    ]
    return " and ".join(parts) or "all rows"


def smallest_seen(
    variable: ScannedVariable,
    sums: Floats,
    critical: float,
    rng: np.random.Generator,
) -> float:
    """Return the smallest factor that would be found; infinite if none of them is.

    In shuffled sets, which are calibrated, the uncertainties of a tenth of the rows,
    side by side along a variable, are made too small by a factor. The smallest factor
    that is found nearly always, wherever the tenth is, is what a "yes" is worth.
    (Uncertainties too large, the lesser evil, are harder to see: a few small errors
    prove little.)

    Parameters
    ----------
    variable : ScannedVariable
        The variable in fine bins.
    sums : array of shape (n_sets, n_bins)
        Sums of z² of shuffled sets.
    critical : float
        The statistic beyond which a set is found wrong.
    rng : Generator
        Where the tenths are.
    """
    tenth = _tenths(variable, sums.shape[0], rng)

    def is_seen(factor: float) -> bool:
        """Return whether uncertainties too small by a factor are found."""
        wrong = np.where(tenth, factor**2 * sums, sums)
        found = largest(variable.variance_ratios(wrong))
        return float(np.mean(found >= critical)) >= POWER

    # larger factors are found more often
    first = bisect.bisect_left(FACTORS, True, key=is_seen)
    return FACTORS[first] if first < len(FACTORS) else float("inf")


def _tenths(variable: ScannedVariable, n_sets: int, rng: np.random.Generator) -> Some:
    """Return the bins that are made wrong: a run of numbers, or some labels."""
    share = variable.sizes / variable.sizes.sum()
    chosen = np.zeros((n_sets, variable.n_bins), dtype=np.bool_)
    for each in chosen:
        if variable.labels is None:
            start = int(rng.integers(variable.n_bins))
            order = np.arange(start, variable.n_bins)
            if share[order].sum() < SHARE:  # too near the end: go the other way
                order = np.arange(variable.n_bins - 1, -1, -1)
        else:
            order = rng.permutation(variable.n_bins)
        enough = int(np.searchsorted(np.cumsum(share[order]), SHARE - 1e-9)) + 1
        each[order[:enough]] = True
    return chosen
