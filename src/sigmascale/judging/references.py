"""Reference scores: what a perfectly calibrated set of the same shape would score."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy import optimize, sparse, stats

from .._support.checks import (
    Floats,
    check_choice,
    check_count,
    check_features,
    check_pair,
    check_uncertainty,
    rng_from,
)
from .._support.render import html_table, text_table
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from .scores import check_ties, codes_for_scores

Distribution = Literal["normal", "student_t", "empirical"]

_BLOCK = 2**20  # z-scores drawn at a time, whatever the number of draws


@dataclass(frozen=True)
class ReferenceScores:
    """Scores of simulated, perfectly calibrated sets.

    Attributes
    ----------
    distribution : str
        What the z-scores were drawn from.
    df : float or None
        Degrees of freedom of Student's t, given or fitted.
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


def reference_scores(
    uncertainty: Any,
    features: Any = None,
    *,
    n_draws: int = 1000,
    distribution: Distribution = "normal",
    error: Any = None,
    df: float | None = None,
    n_bins: int = 100,
    ties: Any = None,
    rng: int | np.random.Generator | None = 0,
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
    distribution : {"normal", "student_t", "empirical"}, default "normal"
        Where z-scores come from: the normal distribution, Student's t scaled to unit
        variance, or the set's own z-scores, resampled and rescaled to <Z²> = 1. The
        last is the target that a set with heavy tails can attain.
    error : array-like of shape (n,), optional
        Errors; needed for "empirical", and for "student_t" when `df` is not given.
    df : float, optional
        Degrees of freedom of Student's t, above 2; by default fitted to the z-scores.
    n_bins : int, default 100
        Number of equal-size bins of each numeric variable.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    ReferenceScores

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> u = np.random.default_rng(0).uniform(1, 2, 5000)
    >>> targets = reference_scores(u, n_draws=200)
    >>> round(targets.mean["S_u"], 2)
    0.16
    """
    u = check_uncertainty(uncertainty)
    e = None
    if error is not None:
        e, u = check_pair(error, u)
    columns = check_features(features, u)
    order = check_ties(ties, u)
    n_bins, n_draws = check_count(n_bins, "n_bins"), check_count(n_draws, "n_draws")
    check_choice(distribution, "distribution", get_args(Distribution))
    pool, df = _z_distribution(distribution, None if e is None else e / u, df)

    names = ["u", *columns]
    codes, n_of_variable = zip(
        *(
            codes_for_scores(u if e is None else e, u, x, n_bins, order)
            for x in (None, *columns.values())
        ),
        strict=True,
    )
    # One sparse product sums z² and u² z² over the bins of all variables at once; its
    # entries are in the order of the rows, for the sake of the cache.
    ends = np.cumsum(n_of_variable)
    shape = (u.size, 2, len(names))
    bins = np.empty(shape, dtype=np.int32 if np.prod(shape) < 2**31 else np.int64)
    weights = np.ones(shape)
    for variable, first in enumerate(ends - n_of_variable):
        bins[:, 0, variable] = codes[variable] + first
    bins[:, 1] = bins[:, 0] + ends[-1]
    weights[:, 1] = (u * u)[:, None]
    gather = sparse.csc_array(
        (
            weights.ravel(),
            bins.ravel(),
            bins[0].size * np.arange(u.size + 1, dtype=bins.dtype),
        ),
        shape=(2 * ends[-1], u.size),
    )
    sizes, sum_u2 = np.split(gather @ np.ones(u.size), 2)
    mean_variance = sum_u2 / sizes
    generator = rng_from(rng)
    block = max(1, min(64, _BLOCK // u.size))
    parts = []
    for first in range(0, n_draws, block):
        # a row of numbers per draw, so that block sizes do not matter
        z2 = _draw_squares(generator, (min(block, n_draws - first), u.size), pool, df).T
        sums = gather @ z2 / np.concatenate([sizes, sizes])[:, None]
        parts.append((z2.mean(axis=0), sums[: sizes.size], sums[sizes.size :]))
    zms = np.concatenate([part[0] for part in parts])
    local = np.concatenate([part[1] for part in parts], axis=1)
    mse = np.concatenate([part[2] for part in parts], axis=1)

    log_u2 = 2 * np.log(u).mean()
    with np.errstate(divide="ignore"):
        s_cal, log_local = np.abs(np.log(zms)), np.abs(np.log(local))
    silent = int(np.count_nonzero(np.isinf(log_local).any(axis=0)))
    if silent:
        warnings.warn(
            f"{silent} of {n_draws} simulated sets have a bin in which all errors are "
            "exactly 0: their scores S are infinite. Use fewer bins.",
            ZeroErrorBinWarning,
            stacklevel=2,
        )
    ence = np.abs(1 - np.sqrt(mse / mean_variance[:, None]))
    uce = np.abs(mean_variance[:, None] - mse)
    draws = {"NLL": 0.5 * (zms + log_u2 + np.log(2 * np.pi)), "ZMS": zms}
    draws["S_cal"] = s_cal
    for prefix, values in (("S", log_local), ("ENCE", ence), ("UCE", uce)):
        for name, part in zip(names, np.split(values, ends[:-1]), strict=True):
            draws[f"{prefix}_{name}"] = part.mean(axis=0)
        if prefix == "S":
            of_features = sum(
                (draws[f"S_{name}"] for name in columns), np.zeros(n_draws)
            )
            draws["S_con"] = s_cal + draws["S_u"]
            if columns:
                draws["S_ada"] = s_cal + of_features
            draws["S_tot"] = draws["S_con"] + of_features
    return ReferenceScores(distribution=distribution, df=df, draws=draws)


def _standard_deviation(values: Floats) -> float:
    if not np.isfinite(values).all():
        return float("inf")
    return float(values.std(ddof=1)) if values.size > 1 else 0.0


def _z_distribution(
    distribution: Distribution, z: Floats | None, df: float | None
) -> tuple[Floats | None, float | None]:
    """Return the pool of z² to draw from, or the degrees of freedom, or neither."""
    if distribution == "normal":
        return None, None
    if distribution == "student_t" and df is not None:
        real = isinstance(df, (int, float, np.integer, np.floating))
        if not real or not 2 < df < np.inf:
            msg = f"`df` must be above 2, for a finite variance; found {df!r}."
            raise InvalidInputError(msg)
        return None, float(df)
    if z is None:
        msg = (
            f'distribution="{distribution}" needs the z-scores of the set: pass '
            "`error` as well."
        )
        raise InvalidInputError(msg)
    mean = float(np.mean(z**2))
    if mean == 0:
        msg = "`error` must not be 0 in every row: the z-scores have no distribution."
        raise InvalidInputError(msg)
    if distribution == "empirical":
        return z**2 / mean, None
    return None, _fit_df(z / np.sqrt(mean))


def _fit_df(z: Floats) -> float:
    """Return the degrees of freedom of unit-variance Student-t that suit z best."""

    def loss(log_excess: float) -> float:
        df = 2 + np.exp(log_excess)
        return -float(stats.t.logpdf(z, df, scale=np.sqrt((df - 2) / df)).mean())

    best = optimize.minimize_scalar(loss, bounds=(-3, 7), method="bounded")
    return float(2 + np.exp(best.x))


def _draw_squares(
    rng: np.random.Generator,
    shape: tuple[int, int],
    pool: Floats | None,
    df: float | None,
) -> Floats:
    """Draw squared z-scores of unit mean."""
    if pool is not None:
        return pool[rng.integers(pool.size, size=shape)]
    z = rng.standard_normal(shape) if df is None else rng.standard_t(df, shape)
    np.multiply(z, z, out=z)
    return z if df is None else z * ((df - 2) / df)
