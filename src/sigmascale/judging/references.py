"""Reference scores: what a perfectly calibrated set of the same shape would score.

Simulated sets have z-scores of a law, of the rows' own distribution, or of shuffled
rows: in a calibrated set the z-scores know nothing of the uncertainty and the features,
so that any row could have had the z-score of any other. Rows that belong together are
the exception: their z-scores resemble each other, and stay together when they move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse, special

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_uncertainty,
    rng_from,
)
from .._support.notices import warn
from .._support.render import Cells, Result
from ..bins.partitions import bins_of
from ..bins.sums import nll_from
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from ..predictions import (
    Predictions,
    as_predictions,
    group_codes,
    refuse_beside,
    with_named_features,
)
from .binning import VariableBins, bin_variables, check_ties
from .intervals import GroupSums, within_groups
from .local import BinSettings, LocalZMS
from .scores import named_scores
from .student import StudentLaw

Distribution = Literal["normal", "student_t", "empirical", "normal_inverse_gamma"]
Sources = npt.NDArray[np.uint32]  # which row's z-score each row gets

ENOUGH_GROUPS = 20  # of one size, to be exchanged among themselves only
SIMILAR = 2  # times as large, up to which groups are exchanged where these are few
SIMULATED_ROWS = 1_000_000  # behind the attainable fraction of valid bins
SIMULATED_BINS = 1000

_BLOCK = 2**20  # z-scores drawn at a time, whatever the number of draws
_QUANTILES = 2**17  # z-scores that stand for a distribution, where rows come in groups
_LEAST_DF, _MOST_DF = 2.05, 1000.0  # of Student's t that is fitted to z-scores
_EQUAL_DF = 1e6  # of the law of u²: with more, uncertainties hardly differ


@dataclass(frozen=True)
class ReferenceScores(Result):
    """Scores of simulated, perfectly calibrated sets.

    Attributes
    ----------
    distribution : str
        What the z-scores were drawn from.
    df : float or None
        Degrees of freedom of Student's t, given or fitted; of "normal_inverse_gamma",
        those of the law of u².
    draws : dict of str to array of shape (n_draws,)
        Each simulated score, under the names of :class:`~judging.scores.Scorecard`.
    """

    distribution: str
    df: float | None
    draws: dict[str, Floats] = field(repr=False)

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each score: its target."""
        return {name: float(values.mean()) for name, values in self.draws.items()}

    @property
    def sd(self) -> dict[str, float]:
        """The standard deviation of each score from set to set."""
        return {
            name: float(v.std(ddof=min(1, v.size - 1)))
            if np.isfinite(v).all()
            else np.inf
            for name, v in self.draws.items()
        }

    def p_value(self, name: str, score: float) -> float:
        """Return the share of perfect sets that score as high as `score`, or higher."""
        values = self.draws[name]
        return float((1 + np.count_nonzero(values >= score)) / (1 + values.size))

    def to_dict(self) -> dict[str, Any]:
        """Return the mean and standard deviation of each score."""
        return {
            "distribution": self.distribution,
            "df": self.df,
            "mean": self.mean,
            "sd": self.sd,
        }

    def _cells(self) -> Cells:
        sd = self.sd
        rows = [(name, f"{v:.4g}", f"{sd[name]:.2g}") for name, v in self.mean.items()]
        return ("score", "target", "sd"), rows


@dataclass(frozen=True, eq=False)
class ZDistribution:
    """Where simulated z-scores of unit variance come from.

    Attributes
    ----------
    name : str
        "normal", "student_t", "empirical" or "normal_inverse_gamma".
    pool : array or None
        The squares that "empirical" ones are drawn from, of unit mean.
    df : float or None
        Degrees of freedom of Student's t.
    weights : array or None
        How likely each of the pool is drawn, if not all are alike.
    """

    name: Distribution
    pool: Floats | None = None
    df: float | None = None
    weights: Floats | None = None

    @classmethod
    def of(
        cls, name: Distribution, rows: Predictions, df: float | None = None
    ) -> ZDistribution:
        """Return a distribution, with what it needs of the rows' own z-scores."""
        if name in ("normal", "normal_inverse_gamma"):
            return cls(name)
        if name == "student_t" and df is not None:
            real = isinstance(df, (int, float, np.integer, np.floating))
            if not real or not 2 < df < np.inf:
                msg = f"`df` must be above 2, for a finite variance; found {df!r}."
                raise InvalidInputError(msg)
            return cls(name, df=float(df))
        if rows.error is None:
            msg = (
                f'distribution="{name}" needs the z-scores of the set: pass `error` as '
                "well."
            )
            raise InvalidInputError(msg)
        mean = rows.mean(rows.z2)
        if mean == 0:
            msg = (
                "`error` must not be 0 in every row: the z-scores have no distribution."
            )
            raise InvalidInputError(msg)
        if name == "empirical":
            return cls(name, pool=rows.z2 / mean, weights=rows.weights)
        # with less than 2 there is no variance, and from 1000 on z is normal
        df = StudentLaw.learn(rows.z, rows.weights).df
        return cls(name, df=float(np.clip(df, _LEAST_DF, _MOST_DF)))

    def draw_squares(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Draw squared z-scores of unit mean."""
        if self.pool is not None and self.weights is not None:
            ends = np.cumsum(self.weights)
            drawn = np.searchsorted(ends[:-1], ends[-1] * rng.random(shape), "right")
            squares: Floats = self.pool[drawn]
            return squares
        if self.pool is not None:
            return self.pool[rng.integers(self.pool.size, size=shape)]
        if self.df is None:
            z = rng.standard_normal(shape)
            return np.multiply(z, z, out=z)
        z = rng.standard_t(self.df, shape)
        return np.multiply(z, z, out=z) * ((self.df - 2) / self.df)


def reference_scores(
    uncertainty: Any,
    features: Any = None,
    *,
    n_draws: int = 1000,
    distribution: Distribution = "normal",
    error: Any = None,
    df: float | None = None,
    groups: Any = None,
    n_bins: int | None = None,
    ties: Any = None,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> ReferenceScores:
    """Return the scores that perfectly calibrated errors would have: the targets.

    Errors are simulated as u times z-scores of unit variance and scored like real
    ones; rows are sorted once for all draws.

    Parameters
    ----------
    uncertainty : array-like of shape (n,), or Predictions
        Standard uncertainties, strictly positive; or Predictions, which hold all of the
        rows.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ...
    n_draws : int, default 1000
        Number of simulated sets.
    distribution : {"normal", "student_t", "empirical", "normal_inverse_gamma"}
        Where z-scores come from: the normal distribution, the default; Student's t
        scaled to unit variance; or the set's own z-scores, resampled and rescaled to
        <Z²> = 1, the target that a set with heavy tails can attain. The last draws
        normal z-scores and new uncertainties, too: u² from the inverse gamma law that
        suits those of the set, each in the place of the old one of its rank. Scores in
        which u appears (NLL, ENCE, UCE) then vary as from one whole set to another.
    error : array-like of shape (n,), optional
        Errors; needed for "empirical", and for "student_t" when `df` is not given.
    df : float, optional
        Degrees of freedom of Student's t, above 2; by default fitted to the z-scores.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        Whole groups are then resampled, or z-scores drawn that are as alike within
        groups as those of `error`, which is needed.
    n_bins : int, optional
        Number of equal-size bins of each numeric variable. By default they have 30
        rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
    rng : int, Generator or None, default 0
        Seed of the simulation.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Simulated sets are
        scored with the same weights, and so vary as sets of fewer rows do.

    Returns
    -------
    ReferenceScores

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023); of "normal_inverse_gamma": arXiv:2402.10043.

    Examples
    --------
    >>> import numpy as np
    >>> u = np.random.default_rng(0).uniform(1, 2, 5000)
    >>> targets = reference_scores(u, n_draws=200)
    >>> round(targets.mean["S_u"], 2)
    0.16
    """
    if isinstance(uncertainty, Predictions):
        refuse_beside(uncertainty, (error, features, groups, sample_weight))
        rows = uncertainty.to_be_judged()
    elif error is None:
        u = check_uncertainty(uncertainty)
        rows = with_named_features(Predictions.of((u,), ("u",)), features)
        rows = rows.changed(groups=group_codes(groups, u, "uncertainty"))
        rows = rows.weighted(sample_weight, "uncertainty").to_be_judged()
    else:
        rows = as_predictions(error, uncertainty, features, groups, sample_weight)
    order = check_ties(ties, rows)
    count, n_draws = bins_of(n_bins, rows.total), check_count(n_draws, "n_draws")
    check_choice(distribution, "distribution", get_args(Distribution))
    z_scores = ZDistribution.of(distribution, rows, df)
    bins = bin_variables(rows, count, ties=order)
    if distribution == "normal_inverse_gamma":
        return _simulate_sets(rows, bins, n_draws, rng_from(rng))
    return simulate_scores(rows, bins, z_scores, n_draws, rng_from(rng))


def _simulate_sets(
    rows: Predictions,
    bins: Mapping[str, VariableBins],
    n_draws: int,
    rng: np.random.Generator,
) -> ReferenceScores:
    """Return the scores of sets whose uncertainties are drawn as well as the errors."""
    law, normal = InverseGamma.fit(rows.uncertainty), ZDistribution("normal")
    sets = [
        simulate_scores(
            rows.with_uncertainty(law.draw_like(rows.uncertainty, rng)),
            bins,
            normal,
            1,
            rng,
        ).draws
        for _ in range(n_draws)
    ]
    draws = {name: np.concatenate([each[name] for each in sets]) for name in sets[0]}
    return ReferenceScores("normal_inverse_gamma", df=law.df, draws=draws)


def simulate_scores(
    rows: Predictions,
    bins: Mapping[str, VariableBins],
    z_scores: ZDistribution,
    n_draws: int,
    rng: np.random.Generator,
) -> ReferenceScores:
    """Return the scores of simulated errors of checked rows, in the bins they have."""
    u, variables = rows.uncertainty, list(bins.values())
    # One sparse product sums z² and u² z² over the bins of all variables at once.
    gather = _gathering(u, variables)
    sizes, sum_u2 = np.split(gather @ np.ones(u.size), 2)
    variances = (sum_u2 / sizes)[:, None]
    log_u2 = 2 * rows.mean(np.log(u))
    cuts = np.cumsum([each.n_bins for each in variables])[:-1]
    block = max(1, min(64, _BLOCK // u.size))
    draw = simulated_squares(rows, z_scores, rng)
    parts, silent = [], 0
    for first in range(0, n_draws, block):
        # a row of numbers per draw, so that block sizes do not matter
        drawn = draw(min(block, n_draws - first))
        local, mse = np.split(gather @ drawn.T, 2)
        local /= sizes[:, None]
        mse /= sizes[:, None]
        zms = np.array([rows.mean(each) for each in drawn])
        silent += int(np.count_nonzero((local == 0).any(axis=0)))
        with np.errstate(divide="ignore"):
            s_cal, of_bins = np.abs(np.log(zms)), [np.abs(np.log(local))]
        of_bins += [np.abs(1 - np.sqrt(mse / variances)), np.abs(variances - mse)]
        # scores at once: there may be as many bins as rows, and many draws
        by_variable = [
            {
                name: x.mean(axis=0)
                for name, x in zip(bins, np.split(each, cuts), strict=True)
            }
            for each in of_bins
        ]
        parts.append(named_scores(nll_from(zms + log_u2), zms, s_cal, *by_variable))
    if silent:
        warn(
            f"{silent} of {n_draws} simulated sets have a bin in which all "
            "errors are exactly 0: their scores S are infinite. Use fewer bins.",
            ZeroErrorBinWarning,
            stacklevel=3,
        )
    draws = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    return ReferenceScores(distribution=z_scores.name, df=z_scores.df, draws=draws)


def simulated_squares(
    rows: Predictions, z_scores: ZDistribution, rng: np.random.Generator
) -> Callable[[int], Floats]:
    """Return what draws the squared z-scores of several sets, a set a row."""
    if rows.groups is None:
        return lambda count: z_scores.draw_squares(rng, (count, rows.n_rows))
    if rows.error is None:
        msg = (
            "`groups` need the z-scores of the set, which tell how alike those of a "
            "group are: pass `error` as well."
        )
        raise InvalidInputError(msg)
    pool = z_scores.pool
    if pool is not None:
        sources = shuffled_rows(rows.n_rows, rows.groups, rng, replace=True)
        return lambda count: np.stack([pool[sources()] for _ in range(count)])
    independent = z_scores.draw_squares(rng, (1, _QUANTILES))[0]
    own = rows.z2 / (rows.mean(rows.z2) or 1.0)
    one = correlated_squares(own, rows.groups, independent, rng)
    return lambda count: np.stack([one() for _ in range(count)])


def _gathering(u: Floats, variables: Sequence[VariableBins]) -> sparse.csc_array:
    """Return the matrix that sums z², and then u² z², over the bins of variables."""
    ends = np.cumsum([each.n_bins for each in variables])
    bins = [
        (each.codes + end - each.n_bins).astype(np.int32)
        for each, end in zip(variables, ends, strict=True)
    ]
    shape = 2 * int(ends[-1]), u.size
    if variables[0].weights is None:
        # a row of all bins for each row of the set
        places = np.column_stack([*bins, *(each + ends[-1] for each in bins)]).ravel()
        entries = np.repeat(np.column_stack([np.ones(u.size), u * u]), len(bins), 1)
        first = np.arange(0, places.size + 1, 2 * len(bins))
        return sparse.csc_array((entries.ravel(), places, first), shape)
    rows = np.concatenate([each.rows.order for each in variables])  # pieces of them
    weights = np.concatenate([each.weights for each in variables])
    entries = np.concatenate([weights, weights * u[rows] ** 2])
    of_bins = np.concatenate([*bins, *(each + ends[-1] for each in bins)])
    return sparse.csc_array((entries, (of_bins, np.append(rows, rows))), shape)


@dataclass(frozen=True)
class InverseGamma:
    """The law of squared uncertainties: u² / scale² follows InvGamma(df / 2, df / 2).

    Attributes
    ----------
    df : float
        Degrees of freedom: normal errors of these u follow Student's t with as many.
    scale : float
        In the unit of u.
    """

    df: float
    scale: float

    @classmethod
    def fit(cls, u: Floats) -> InverseGamma:
        """Return the law of maximum likelihood.

        1 / u² follows a gamma law, whose shape a solves ln a − ψ(a) = ln <x> − <ln x>.
        """
        unit = float(np.exp(np.mean(np.log(u))))
        x = (unit / u) ** 2
        mean = float(x.mean())
        spread = float(np.log(mean) - np.log(x).mean())

        def excess(log_shape: float) -> float:
            return float(log_shape - special.digamma(np.exp(log_shape)) - spread)

        most = np.log(_EQUAL_DF / 2)
        # its left side falls from infinity to about 1 / (2 a)
        if excess(most) >= 0:
            shape = _EQUAL_DF / 2
        else:
            shape = float(np.exp(optimize.brentq(excess, -20, most, xtol=1e-13)))
        return cls(2 * shape, unit / float(np.sqrt(mean)))

    def draw_like(self, u: Floats, rng: np.random.Generator) -> Floats:
        """Draw as many uncertainties as in `u`, each in the place of its rank."""
        x = rng.gamma(self.df / 2, 2 / self.df, u.size)
        drawn = np.empty(u.size)
        drawn[np.argsort(u, kind="stable")] = np.sort(self.scale / np.sqrt(x))
        return drawn


def shuffled_rows(
    n_rows: int,
    groups: Ints | None,
    rng: np.random.Generator,
    *,
    replace: bool = False,
) -> Callable[[], Sources]:
    """Return a function whose every call tells which row's z-score each row gets.

    Without groups an answer is a random permutation of the rows. With groups, the
    z-scores of whole groups change places: those of a group go to another group of the
    same size or, where fewer than 20 groups have that size, of a similar one (up to
    twice as large); they are cut, or start over again, where the sizes differ. A group
    without any of a similar size keeps its own z-scores. Within a group the z-scores
    move on by a random number of rows, the last ones to the front: neighbours stay
    neighbours, while a z-score is not bound to the first or the last row of groups.

    Parameters
    ----------
    n_rows : int
        Number of rows, below 2**32.
    groups : array of shape (n_rows,) or None
        Labels; rows with the same label belong together.
    rng : Generator
        Where the random numbers come from.
    replace : bool, default False
        Whether the z-scores of a row, or of a group, may go to several: a bootstrap
        rather than a permutation, whose mean differs from draw to draw.

    Returns
    -------
    callable
        Without arguments; returns a new array of uint32 and of shape (n_rows,).

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array(["a", "a", "b", "b", "c", "c"])
    >>> draw = shuffled_rows(6, groups, np.random.default_rng(1))
    >>> draw()
    array([0, 1, 3, 2, 4, 5], dtype=uint32)
    """
    if groups is not None:
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        if sizes.max() > 1:
            return _shuffled_groups(codes, sizes, rng, replace)
    if replace:
        return lambda: rng.integers(n_rows, size=n_rows, dtype=np.uint32)
    every = np.arange(n_rows, dtype=np.uint32)
    return lambda: rng.permutation(every)


def _shuffled_groups(
    codes: Ints, sizes: Ints, rng: np.random.Generator, replace: bool
) -> Callable[[], Sources]:
    """Return the draws of :func:`shuffled_rows` for numbered groups."""
    # Groups are laid out one after the other, the smallest first; those of a pool are
    # neighbours then, and exchange their z-scores.
    by_size = np.argsort(sizes, kind="stable")
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(by_size.size)
    members = np.argsort(rank[codes], kind="stable").astype(np.uint32)
    sizes = sizes[by_size]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(members.size) - np.repeat(starts, sizes)
    pools = _pools(sizes)

    def sources(first: int, last: int) -> Ints:
        if replace:
            return rng.integers(first, last, size=last - first)
        return first + rng.permutation(last - first)

    def draw() -> Sources:
        source = np.concatenate([sources(*pool) for pool in pools])
        lengths = sizes[source]
        offset = (rng.random(source.size) * lengths).astype(np.int64)
        place = np.repeat(offset, sizes)
        place += within
        place %= np.repeat(lengths, sizes)
        place += np.repeat(starts[source], sizes)
        drawn = np.empty_like(members)
        drawn[members] = members[place]
        return drawn

    return draw


def _pools(sizes: Ints) -> list[tuple[int, int]]:
    """Return the first group of each pool, and the one after its last.

    `sizes` ascend. A pool holds all groups of a size. It takes in the next size while
    it has too few groups itself, or where the next size has too few, if the two are
    similar.
    """
    values, counts = np.unique(sizes, return_counts=True)
    pools: list[tuple[int, int]] = []
    smallest = 0  # size of the last pool
    end = 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        begin, end = end, end + count
        few = pools and min(count, pools[-1][1] - pools[-1][0]) < ENOUGH_GROUPS
        if few and value <= SIMILAR * smallest:
            pools[-1] = (pools[-1][0], end)
        else:
            pools.append((begin, end))
            smallest = value
    return pools


def correlated_squares(
    own: Floats, groups: Ints, independent: Floats, rng: np.random.Generator
) -> Callable[[], Floats]:
    """Return a function whose every call draws squared z-scores, alike within groups.

    Each square is the quantile, of a distribution, that a normal number has in its own
    distribution; the normal numbers of a group are correlated. Their correlation is
    that which the normal numbers behind the rows' own squares have.

    Parameters
    ----------
    own : array of shape (n,)
        The squares of the rows' own z-scores, of unit mean.
    groups : array of shape (n,)
        Labels; rows with the same label belong together.
    independent : array
        Many squares drawn from the distribution, which stand for it.
    rng : Generator
        Where the random numbers come from.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    ordered = np.sort(independent / independent.mean())
    levels = (np.arange(ordered.size) + 0.5) / ordered.size
    # |x| of a normal number x at the level p has the square chi2(p)
    squares = special.chdtri(1, 1 - np.interp(own, ordered, levels))
    # numbers with the correlation r have squares with the correlation r²
    r = np.sqrt(within_groups(squares - squares.mean(), codes))
    n_groups = int(codes.max()) + 1

    def draw() -> Floats:
        x = np.sqrt(r) * rng.standard_normal(n_groups)[codes]
        x += np.sqrt(1 - r) * rng.standard_normal(codes.size)
        drawn: Floats = np.interp(2 * special.ndtr(np.abs(x)) - 1, levels, ordered)
        return drawn

    return draw


def attainable_fractions(
    rows: Predictions,
    local: Mapping[str, LocalZMS],
    settings: BinSettings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the fraction of bins that would be valid if z² were the same everywhere.

    It depends on the sizes of the bins alone, so variables with the same sizes share
    one simulation. Where rows come in groups, a group counts as one row, of their mean.
    Weighted rows count with their effective number.
    """
    z2, groups, weights = rows.z2, rows.group_codes, rows.weights
    if groups is not None:
        weighted = z2 if weights is None else weights * z2
        z2 = np.bincount(groups, weighted) / np.bincount(groups, weights)
    mean = float(z2.mean())
    pool = z2 / mean if mean > 0 else np.ones(1)
    by_sizes: dict[tuple[int, ...], float] = {}
    fractions = {}
    for name, result in local.items():
        n = result.n if result.n_groups is None else result.n_groups
        if result.n_effective is not None:
            n = np.maximum(2, np.round(result.n_effective)).astype(np.int64)
        sizes = tuple(sorted(n.tolist()))
        if sizes not in by_sizes:
            each = SIMULATED_ROWS * n.size // max(1, int(n.sum()))
            repeated = np.resize(n, max(1, min(SIMULATED_BINS, max(n.size, each))))
            drawn = pool[rng.integers(pool.size, size=int(repeated.sum()))]
            low, high = settings.interval(GroupSums.of_rows(drawn, repeated), rng)
            by_sizes[sizes] = float(np.mean((low <= 1) & (high >= 1)))
        fractions[name] = by_sizes[sizes]
    return fractions
