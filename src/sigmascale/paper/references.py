"""Reference scores: what a perfectly calibrated set of the same shape would score.

In a calibrated set the z-scores know nothing of the uncertainty and the features, so
that simulated ones of one distribution show what finite bins leave of perfection. Rows
that belong together are the exception: z-scores within groups resemble each other, and
simulated ones do so as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse, special

from .._support.checks import (
    Floats,
    check_choice,
    check_count,
    rng_from,
)
from .._support.notices import warn
from .._support.numerals import number
from .._support.render import Cells, Result
from .._support.weighting import ones_if_none
from ..exceptions import InvalidInputError, ZeroErrorBinWarning
from ..predictions.bins import Bins, bins_of, check_ties, cut
from ..predictions.predictions import Predictions, check_predictions
from ..scores.intervals import abc_limits, within_groups
from .valid_bins import CLOSED_FORM, MIN_ROWS, normal_quantile

Distribution = Literal["normal", "empirical"]

_BLOCK = 2**20  # z-scores drawn at a time, whatever the number of draws
_QUANTILES = 2**17  # z-scores that stand for a distribution, where rows come in groups


def named_scores(
    nll: Any,
    zms: Any,
    s: Mapping[str, Any],
    ence: Mapping[str, Any],
    uce: Mapping[str, Any],
) -> dict[str, Any]:
    """Return every score by its name; S_ada only where there are features.

    Scores are numbers of one set, or arrays of many; local ones are by variable.
    """
    with np.errstate(divide="ignore"):
        s_cal = np.abs(np.log(zms))
    named = {"NLL": nll, "ZMS": zms, "S_cal": s_cal}
    named |= {f"S_{name}": value for name, value in s.items()}
    named["S_con"] = s_cal + s["u"]
    if len(s) > 1:
        named["S_ada"] = s_cal + sum(value for name, value in s.items() if name != "u")
    named["S_tot"] = s_cal + sum(s.values())
    named |= {f"ENCE_{name}": value for name, value in ence.items()}
    return named | {f"UCE_{name}": value for name, value in uce.items()}


def nll_of(z2: Any, log_u2: Any, dim: int) -> Any:
    """Return the negative log-likelihood of normal errors in `dim` dimensions."""
    return 0.5 * dim * (z2 + log_u2 + np.log(2 * np.pi))


@dataclass(frozen=True)
class ReferenceScores(Result):
    """Scores of simulated, perfectly calibrated sets.

    Attributes
    ----------
    distribution : str
        What the z-scores were drawn from.
    draws : dict of str to array of shape (n_draws,)
        Each simulated score, under the names of :func:`scorecard`.
    """

    distribution: str
    draws: dict[str, Floats]

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

    def to_dict(self) -> dict[str, Any]:
        """Return the mean and standard deviation of each score."""
        means = {"mean": self.mean, "sd": self.sd}
        return {"distribution": self.distribution, **means}

    def _columns(self) -> dict[str, Any]:
        mean, sd = self.mean, self.sd
        return {"score": [*mean], "mean": [*mean.values()], "sd": [*sd.values()]}

    def _cells(self) -> Cells:
        sd = self.sd
        rows = [
            (name, number(v, 4), number(sd[name], 2)) for name, v in self.mean.items()
        ]
        return ("score", "target", "sd"), rows


def reference_scores(
    p: Predictions,
    *,
    n_draws: int = 1000,
    distribution: Distribution = "normal",
    n_bins: int | None = None,
    ties: Any = None,
    rng: int | np.random.Generator | None = 0,
) -> ReferenceScores:
    """Return the scores that perfectly calibrated errors would have: the targets.

    Errors are simulated as u times z-scores of unit variance and scored like real
    ones; rows are sorted once for all draws.

    Parameters
    ----------
    p : Predictions
        Rows; errors need not be known for "normal" without groups. Simulated sets are
        scored with the same weights, and are as alike within groups as the rows are.
    n_draws : int, default 1000
        Number of simulated sets.
    distribution : {"normal", "empirical"}, default "normal"
        Where z-scores come from: the normal distribution, or the set's own z-scores,
        resampled and rescaled to <Z²> = 1, the target that a set with heavy tails can
        attain.
    n_bins : int, optional
        Number of equal-size bins of each numeric variable. By default they have 30
        rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    ReferenceScores

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023)

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> u = np.random.default_rng(0).uniform(1, 2, 5000)
    >>> targets = ss.scores.reference_scores(ss.Predictions(y_std=u), n_draws=200)
    >>> round(targets.mean["S_u"], 2)
    0.16
    """
    p = check_predictions(p, errors=False, complete=True)
    n_bins = bins_of(n_bins, p.n_effective)
    n_draws = check_count(n_draws, "n_draws")
    check_choice(distribution, "distribution", get_args(Distribution))
    bins = cut(p, n_bins, ties=check_ties(ties, p))
    squares = Squares.of(distribution, p)
    return simulate_scores(p, bins, squares, n_draws, stream_from(rng))


@dataclass(frozen=True, eq=False)
class Squares:
    """Where simulated z² of unit mean come from.

    Attributes
    ----------
    name : str
        "normal" or "empirical".
    dim : int
        The dimension of vectors, of whose components z² is the mean.
    pool : array or None
        The squares that "empirical" ones are drawn from, of unit mean.
    weights : array or None
        How likely each of the pool is drawn, if not all are alike.
    """

    name: Distribution
    dim: int = 1
    pool: Floats | None = None
    weights: Floats | None = None

    @classmethod
    def of(cls, name: Distribution, p: Predictions) -> Squares:
        """Return a distribution, with what it needs of the rows' own z-scores."""
        if name == "normal":
            return cls(name, p.dim)
        check_predictions(p)  # errors must be known
        if not (mean := p.mean(p.z2)) > 0:
            msg = "Errors must not be 0 in every row: z-scores have no distribution."
            raise InvalidInputError(msg)
        return cls(name, p.dim, pool=p.z2 / mean, weights=p.weights)

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Draw independent z², of unit mean."""
        if self.pool is not None and self.weights is not None:
            ends = np.cumsum(self.weights)
            # levels
            drawn = np.searchsorted(ends[:-1], ends[-1] * rng.random(shape), "right")
            return np.asarray(self.pool[drawn])
        if self.pool is not None:
            return self.pool[rng.integers(self.pool.size, size=shape)]
        z = rng.standard_normal((*shape, self.dim))
        return np.asarray(np.multiply(z, z, out=z).mean(axis=-1))


def stream_from(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator whose numbers are not those that a user draws from the seed.

    Who makes data with the seed 0, and leaves it here, would get the same z-scores.
    """
    return rng_from(rng).spawn(1)[0]


def simulated_squares(
    p: Predictions, squares: Squares, rng: np.random.Generator
) -> Callable[[int], Floats]:
    """Return what draws the z² of several sets, a set a row.

    With groups, each z² is the quantile, of its distribution, that a normal number has
    in its own; the normal numbers of a group are correlated as much as those behind the
    rows' own z² are.
    """
    if p.groups is None:
        return lambda count: squares.draw(rng, (count, p.n_rows))
    check_predictions(p)  # errors tell how alike rows of a group are
    groups = p.groups
    n_groups = int(groups.max()) + 1

    # the quantile function of z², and the level of each row's own in it
    quantiles = np.sort(squares.draw(rng, (1, _QUANTILES))[0])
    levels = (np.arange(quantiles.size) + 0.5) / quantiles.size
    own_level = np.interp(p.z2 / (p.mean(p.z2) or 1.0), quantiles, levels)

    # |x| of a normal number x at the level p has the square chi2(p); numbers with the
    # correlation r have squares with the correlation r²
    own_square = special.chdtri(1, 1 - own_level)
    r = np.sqrt(within_groups(own_square - own_square.mean(), groups))

    def one_set() -> Floats:
        # x = √r g + √(1 − r) e with normal g of each group and e of each row
        x = np.sqrt(r) * rng.standard_normal(n_groups)[groups]
        x += np.sqrt(1 - r) * rng.standard_normal(groups.size)
        level = 2 * special.ndtr(np.abs(x)) - 1
        return np.asarray(np.interp(level, levels, quantiles))

    return lambda count: np.stack([one_set() for _ in range(count)])


def simulate_scores(
    p: Predictions,
    bins: Mapping[str, Bins],
    squares: Squares,
    n_draws: int,
    rng: np.random.Generator,
) -> ReferenceScores:
    """Return the scores of simulated errors of checked rows, in the bins they have."""
    # one sparse product sums z² and u² z² over the bins of all variables at once
    u = p.y_std
    gather = _gathering(u, list(bins.values()))
    sizes, sum_u2 = np.split(gather @ np.ones(u.size), 2)
    variances = (sum_u2 / sizes)[:, None]
    log_u2 = 2 * p.mean(np.log(u))

    # intervals of bins have a closed form, of rows that count alike
    is_plain = p.groups is None and p.weights is None
    by_bin = None
    if is_plain and sizes.min() >= MIN_ROWS:
        by_bin = gather.tocsr()[: sizes.size]

    n_at_once = max(1, min(64, _BLOCK // u.size))
    draw = simulated_squares(p, squares, rng)
    blocks = []
    n_with_zeros = 0
    for start in range(0, n_draws, n_at_once):
        # a row of numbers per draw, so that block sizes do not matter
        z2 = draw(min(n_at_once, n_draws - start))
        zms = np.array([p.mean(of_draw) for of_draw in z2])

        # <Z²> and <E²> of each bin (a row) in each draw (a column)
        sum_z2, sum_e2 = np.split(gather @ z2.T, 2)
        local = sum_z2 / sizes[:, None]
        mse = sum_e2 / sizes[:, None]
        n_with_zeros += int(np.count_nonzero((local == 0).any(axis=0)))

        # scores at once: there may be as many bins as rows, and many draws
        with np.errstate(divide="ignore"):
            s = _by_variable(bins, np.abs(np.log(local)))
        ence = _by_variable(bins, np.abs(1 - np.sqrt(mse / variances)))
        uce = _by_variable(bins, np.abs(variances - mse))
        scores = named_scores(nll_of(zms, log_u2, p.dim), zms, s, ence, uce)
        if by_bin is not None:
            is_valid = _are_valid(by_bin, sizes[:, None], local, z2.T)
            for name, share in _by_variable(bins, is_valid).items():
                scores[f"f_v_{name}"] = share
        blocks.append(scores)
    if n_with_zeros:
        warn(
            f"{n_with_zeros} of {n_draws} simulated sets have a bin in which all "
            "errors are exactly 0: their scores S are infinite. Use fewer bins.",
            ZeroErrorBinWarning,
            stacklevel=3,
        )
    draws = {}
    for name in blocks[0]:
        draws[name] = np.concatenate([scores[name] for scores in blocks])
    return ReferenceScores(squares.name, draws, _origin=p.origin)


def _by_variable(bins: Mapping[str, Bins], of_bins: Floats) -> dict[str, Floats]:
    """Return the means over the bins of each variable, of each draw."""
    means = {}
    start = 0
    for name, of_variable in bins.items():
        stop = start + of_variable.sizes.size
        means[name] = of_bins[start:stop].mean(axis=0)
        start = stop
    return means


def _are_valid(by_bin: Any, n: Floats, mean: Floats, z2: Floats) -> Any:
    """Return whether the interval of <Z²> of each bin, in each draw, holds 1.

    With m = <z²>, the sums of (z² − m)² and (z² − m)³ follow from those of z⁴ and z⁶:
    Σz⁴ − n m² and Σz⁶ − 3 m Σz⁴ + 2 n m³. `by_bin` is the matrix that sums over bins,
    `n` and `mean` are those of bins, and `z2` has a draw a column.
    """
    sum_z4 = by_bin @ z2**2
    sum_z6 = by_bin @ z2**3
    second = np.maximum(sum_z4 - n * mean**2, 0)
    third = sum_z6 - 3 * mean * sum_z4 + 2 * n * mean**3
    quantile = normal_quantile(CLOSED_FORM.confidence)
    low, high = abc_limits(n, mean, second, third, quantile)
    return (low <= 1) & (high >= 1)


def _gathering(u: Floats, variables: Sequence[Bins]) -> sparse.csc_array:
    """Return the matrix that sums z², and then u² z², over the bins of variables."""
    # the rows of all pieces, their bins, counted on from variable to variable, and
    # their weights
    rows = []
    bins = []
    weights = []
    n_bins = 0
    for of_variable in variables:
        rows.append(of_variable.order)
        bins.append(of_variable.codes + n_bins)
        weights.append(ones_if_none(of_variable.weights, of_variable.order.size))
        n_bins += of_variable.sizes.size
    row = np.concatenate(rows)
    bin_of_row = np.concatenate(bins)
    weight = np.concatenate(weights)

    entries = np.concatenate([weight, weight * u[row] ** 2])
    places = np.append(bin_of_row, bin_of_row + n_bins), np.append(row, row)
    return sparse.csc_array((entries, places), (2 * n_bins, u.size))
