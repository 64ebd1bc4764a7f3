"""Reference scores: what a perfectly calibrated set of the same shape would score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy import optimize, sparse, stats

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_uncertainty,
    rng_from,
)
from .._support.render import html_table, text_table
from .._support.telling import warn
from .._support.weights import mean_of
from ..bins.partitions import bins_of
from ..bins.sums import nll_from
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from ..predictions import Predictions, as_predictions, group_codes, with_named_features
from .binning import VariableBins, bin_variables, check_ties
from .inverse_gamma import InverseGamma
from .resampling import correlated_squares, shuffled_rows
from .scores import combined_scores

Distribution = Literal["normal", "student_t", "empirical", "normal_inverse_gamma"]

_BLOCK = 2**20  # z-scores drawn at a time, whatever the number of draws
_QUANTILES = 2**17  # z-scores that stand for a distribution, where rows come in groups


@dataclass(frozen=True)
class ReferenceScores:
    """Scores of simulated, perfectly calibrated sets.

    Attributes
    ----------
    distribution : str
        What the z-scores were drawn from.
    df : float or None
        Degrees of freedom of Student's t, given or fitted; of "normal_inverse_gamma",
        those of the law of u².
    draws : dict of str to array of shape (n_draws,)
        Each simulated score, under the names of :class:`Scorecard`.
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
        return {name: _standard_deviation(v) for name, v in self.draws.items()}

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

    def _rows(self) -> list[tuple[str, str, str]]:
        sd = self.sd
        return [(name, f"{v:.4g}", f"{sd[name]:.2g}") for name, v in self.mean.items()]

    def __str__(self) -> str:
        """Return one line a score."""
        return text_table(("score", "target", "sd"), self._rows())

    def _repr_html_(self) -> str:
        return html_table(("score", "target", "sd"), self._rows())


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
        z = rows.error / rows.uncertainty
        mean = rows.mean(z**2)
        if mean == 0:
            msg = (
                "`error` must not be 0 in every row: the z-scores have no distribution."
            )
            raise InvalidInputError(msg)
        if name == "empirical":
            return cls(name, pool=z**2 / mean, weights=rows.weights)
        return cls(name, df=_fit_df(z / np.sqrt(mean), rows.weights))

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
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
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
    if error is None:
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
    block = max(1, min(64, _BLOCK // u.size))
    draw = _draws(rows, z_scores, rng)
    parts, n_silent = [], 0
    for first in range(0, n_draws, block):
        # a row of numbers per draw, so that block sizes do not matter
        z2 = draw(min(block, n_draws - first)).T
        means = gather @ z2
        means /= np.concatenate([sizes, sizes])[:, None]
        # scores at once: there may be as many bins as rows, and many draws
        local, mse = np.split(means, 2)
        n_silent += int(np.count_nonzero((local == 0).any(axis=0)))
        zms = _column_means(z2, rows.weights)
        parts.append(_scores_of_draws(rows, variables, zms, local, mse, sum_u2 / sizes))
    _warn_of_silent(n_silent, n_draws)
    draws = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    return ReferenceScores(distribution=z_scores.name, df=z_scores.df, draws=draws)


def _draws(
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
    z2 = (rows.error / rows.uncertainty) ** 2
    independent = z_scores.draw_squares(rng, (1, _QUANTILES))[0]
    own = z2 / (rows.mean(z2) or 1.0)
    one = correlated_squares(own, rows.groups, independent, rng)
    return lambda count: np.stack([one() for _ in range(count)])


def _column_means(values: Floats, weights: Floats | None) -> Floats:
    """Return the mean of each column."""
    means = values.mean(axis=0) if weights is None else weights @ values / weights.sum()
    return np.asarray(means)


def _gathering(u: Floats, variables: Sequence[VariableBins]) -> sparse.csc_array:
    """Return the matrix that sums z², and then u² z², over the bins of variables."""
    n_of_variable = [each.n_bins for each in variables]
    ends = np.cumsum(n_of_variable)
    if variables[0].weights is not None:
        return _weighted_gathering(u, variables, ends)
    # entries are in the order of the rows, for the sake of the cache
    shape = (u.size, 2, len(variables))
    bins = np.empty(shape, dtype=np.int32 if np.prod(shape) < 2**31 else np.int64)
    weights = np.ones(shape)
    for position, first in enumerate(ends - n_of_variable):
        bins[:, 0, position] = variables[position].codes + first
    bins[:, 1] = bins[:, 0] + ends[-1]
    weights[:, 1] = (u * u)[:, None]
    starts = bins[0].size * np.arange(u.size + 1, dtype=bins.dtype)
    return sparse.csc_array(
        (weights.ravel(), bins.ravel(), starts), shape=(2 * ends[-1], u.size)
    )


def _weighted_gathering(
    u: Floats, variables: Sequence[VariableBins], ends: Ints
) -> sparse.csc_array:
    """Return the same matrix for pieces of weighted rows."""
    row = np.concatenate([each.rows.order for each in variables])
    first = [end - each.n_bins for end, each in zip(ends, variables, strict=True)]
    code = np.concatenate(
        [each.codes + start for each, start in zip(variables, first, strict=True)]
    )
    weights = np.concatenate([each.weights for each in variables])
    entries = np.concatenate([weights, weights * u[row] ** 2])
    places = np.concatenate([code, code + ends[-1]]), np.concatenate([row, row])
    return sparse.csc_array((entries, places), shape=(2 * ends[-1], u.size))


def _scores_of_draws(
    rows: Predictions,
    variables: Sequence[VariableBins],
    zms: Floats,
    local: Floats,
    mse: Floats,
    mean_variance: Floats,
) -> dict[str, Floats]:
    """Return every score of each draw from the means of all rows and of each bin."""
    with np.errstate(divide="ignore"):
        s_cal, log_local = np.abs(np.log(zms)), np.abs(np.log(local))
    ence = np.abs(1 - np.sqrt(mse / mean_variance[:, None]))
    uce = np.abs(mean_variance[:, None] - mse)
    names = [each.name for each in variables]
    cuts = np.cumsum([each.n_bins for each in variables])[:-1]

    def by_variable(of_bins: Floats) -> dict[str, Floats]:
        parts = zip(names, np.split(of_bins, cuts), strict=True)
        return {name: part.mean(axis=0) for name, part in parts}

    s = by_variable(log_local)
    log_u2 = 2 * rows.mean(np.log(rows.uncertainty))
    draws = {"NLL": nll_from(zms + log_u2), "ZMS": zms, "S_cal": s_cal}
    draws |= {f"S_{name}": each for name, each in s.items()}
    draws |= combined_scores(s_cal, s)
    if len(names) == 1:
        del draws["S_ada"]
    draws |= {f"ENCE_{name}": each for name, each in by_variable(ence).items()}
    return draws | {f"UCE_{name}": each for name, each in by_variable(uce).items()}


def _warn_of_silent(silent: int, n_draws: int) -> None:
    if silent:
        warn(
            f"{silent} of {n_draws} simulated sets have a bin in which all "
            "errors are exactly 0: their scores S are infinite. Use fewer bins.",
            ZeroErrorBinWarning,
            stacklevel=4,
        )


def _standard_deviation(values: Floats) -> float:
    if not np.isfinite(values).all():
        return float("inf")
    return float(values.std(ddof=1)) if values.size > 1 else 0.0


def _fit_df(z: Floats, weights: Floats | None) -> float:
    """Return the degrees of freedom of unit-variance Student-t that suit z best."""

    def loss(log_excess: float) -> float:
        df = 2 + np.exp(log_excess)
        return -mean_of(stats.t.logpdf(z, df, scale=np.sqrt((df - 2) / df)), weights)

    best = optimize.minimize_scalar(loss, bounds=(-3, 7), method="bounded")
    return float(2 + np.exp(best.x))
