"""How targets borrow strength: levels by empirical Bayes, shapes by unseen rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._support.checks import LARGEST, LARGEST_Z, SMALLEST, Floats
from .._support.notices import quiet
from ..maps import Constant, Hypotenuse, Node, Product, multiplied
from ..maps.nodes import in_unit
from ..maps.prediction import rescale
from ..predictions import Predictions
from ..scaling.base import VarianceScaler
from ..scaling.crossfit import canonical_order, capped, largest_ratio, make_folds, rank

FOLDS = 5
OWN_ROWS = 20  # fewer than these have no fit of their own
# Rows at which a target's own fit and what all share weigh the same; the first is
# what all share alone, which is the simplest.
HALF_WAYS = (np.inf, 3000.0, 1000.0, 300.0, 100.0, 30.0, 10.0)
POWERS = (-1.0, 3.0)  # of what all share, that a target may follow instead
STANDS_ALONE = 0.3  # the probability that a target is of another kind than the others
LEAST_SPREAD = 0.1  # variance of z² relative to its mean; 2 if errors are normal


@dataclass(frozen=True, eq=False)
class Leaning:
    """What was learned for one target.

    Attributes
    ----------
    shared : Node
        The map that all targets share, in the unit of this one, times its factor.
    own : Node or None
        Its own fit; None if there are too few rows.
    own_factor, factor : float
        The factor of the target: of its own rows, and as it is used.
    n_rows : float
        Rows of the target, or the sum of their weights.
    evidence : float
        How much more likely the errors of the target are by its own fit than by what
        all share, as the logarithm of a ratio.
    """

    shared: Node
    own: Node | None
    own_factor: float
    factor: float
    n_rows: float
    evidence: float

    def weight(self, half_way: float) -> float:
        """Return the weight of the own fit: how likely the target stands alone.

        Before its errors are looked at, this is 1/2 at so many rows, and at least
        `STANDS_ALONE`, so that few rows which plainly differ from the others do not
        suffer from these.
        """
        if self.own is None:
            return 0.0
        at_first = max(STANDS_ALONE, self.n_rows / (self.n_rows + half_way))
        odds = at_first / (1 - at_first) * np.exp(np.clip(self.evidence, -50, 50))
        return float(odds / (1 + odds))

    def root(self, half_way: float) -> Node:
        """Return the map: variances of both, weighted."""
        weight = self.weight(half_way)
        if self.own is None or weight == 0:
            return self.shared
        return Hypotenuse(
            Product((Constant(float(np.sqrt(1 - weight))), self.shared)),
            Product((Constant(float(np.sqrt(weight))), self.own)),
        )


def lean(targets: Sequence[Predictions], template: VarianceScaler) -> list[Leaning]:
    """Fit all targets together, and each one alone.

    The shared map is that of the template, fitted to all rows with u as a multiple of
    the typical one of its target, and errors divided by the factor of their target, so
    that neither units nor levels matter.
    """
    units = [float(np.exp(each.mean(np.log(each.uncertainty)))) for each in targets]
    scaled = [
        each.with_uncertainty(
            np.clip(each.uncertainty / unit, SMALLEST, LARGEST)
        ).changed(error=each.errors / unit)
        for each, unit in zip(targets, units, strict=True)
    ]
    zeros = np.zeros(len(targets))
    first = _levels([each.uncertainty for each in scaled], scaled, zeros)[1]
    levelled = [
        each.changed(error=each.errors * np.exp(-level / 2))
        for each, level in zip(scaled, first, strict=True)
    ]
    pooled = _fit(template, all_rows(levelled))
    own, shrunk = _levels([rescale(pooled, each) for each in levelled], levelled, first)
    found = []
    for rows, unit, of_own, level in zip(targets, units, own, shrunk, strict=True):
        factor = float(np.exp(level / 2))
        shared = multiplied(in_unit(pooled, unit), factor)
        alone, evidence = None, 0.0
        if rows.n_rows >= OWN_ROWS and len(targets) > 1 and rows.errors.any():
            alone = _fit(template, rows)
            evidence = _evidence(rows, rescale(shared, rows), rescale(alone, rows))
        of_rows = float(np.exp(of_own / 2))
        found.append(Leaning(shared, alone, of_rows, factor, rows.total, evidence))
    return found


def _evidence(rows: Predictions, shared: Floats, own: Floats) -> float:
    """Return how much more likely errors are by the own fit than by what all share.

    Levels do not matter here: each fit has that of the rows. These are what was fitted,
    which is too kind to a fit that can follow single rows: the best power of what all
    share, a law of one parameter, says how much is gained at most.
    """
    from scipy import optimize

    cap = largest_ratio(rows.errors, rows.weights)

    def loss(scale: Floats) -> float:
        levelled = scale * np.sqrt(rows.mean((rows.errors / scale) ** 2))
        return rows.mean(_loss(levelled, rows.errors, cap))

    log = np.log(shared / np.median(shared))
    best = optimize.minimize_scalar(
        lambda power: loss(np.exp(power * log)), bounds=POWERS, method="bounded"
    )
    n = rows.total if rows.groups is None else np.unique(rows.groups).size
    return (loss(shared) - max(loss(own), float(best.fun))) * n


def _loss(scale: Floats, errors: Floats, cap: float = np.inf) -> Floats:
    """Return the negative log-likelihood of each row, of which none decides alone."""
    v = np.maximum(scale, np.abs(errors) / LARGEST_Z)
    loss: Floats = np.log(v) + 0.5 * capped((errors / v) ** 2, cap)
    return loss


def choose_half_way(
    targets: Sequence[Predictions], template: VarianceScaler, seed: int
) -> tuple[float, list[Floats] | None]:
    """Return at how many rows a target's own fit shall weigh a half, and unseen scales.

    It is the largest number within one standard error of the best for rows that were
    not seen; infinity leaves own fits out. Groups, such as the entries of one row of a
    table, stay together. Unseen scales are what rows of each target get from fits that
    have not seen them; there are none where rows are too few to hold any back.
    """
    own_fits = any(each.n_rows >= OWN_ROWS for each in targets) and len(targets) > 1
    half_ways = HALF_WAYS if own_fits else HALF_WAYS[:1]
    together = all_rows(targets)
    errors, u = together.errors, together.uncertainty
    units = np.arange(u.size) if together.groups is None else together.groups
    n_folds = min(FOLDS, np.unique(units).size)
    if n_folds < 2:
        return half_ways[0], None
    # folds depend neither on units nor on the order of rows and targets
    weights, z = together.weights, errors / u
    order = canonical_order([z], z, weights)
    fold = np.empty(u.size, dtype=np.int64)
    fold[order] = make_folds(
        np.abs(z)[order],
        n_folds,
        np.random.default_rng(seed),
        units[order],
        None if weights is None else weights[order],
    )
    # of unseen rows: by what all share, by the own fit, and what this weighs
    shared, own, own_weight = u.copy(), u.copy(), np.zeros((len(half_ways), u.size))
    ends = np.cumsum([0, *(each.n_rows for each in targets)])
    for k in range(n_folds):
        parts = [fold[ends[i] : ends[i + 1]] != k for i in range(len(targets))]
        # a target that is in no other fold has nothing to learn from here
        kept = [i for i, part in enumerate(parts) if part.any()]
        found = lean([targets[i].take(parts[i]) for i in kept], template)
        for i, each in zip(kept, found, strict=True):
            held = np.flatnonzero(~parts[i])
            if not held.size:
                continue
            rows, places = targets[i].take(held), ends[i] + held
            shared[places] = rescale(each.shared, rows)
            if each.own is not None:
                own[places] = rescale(each.own, rows)
                own_weight[:, places] = [[each.weight(h)] for h in half_ways]
    cap = largest_ratio(errors, weights)
    losses, in_full, unseen = {}, {}, {}
    for half_way, weight in zip(half_ways, own_weight, strict=True):
        values = np.hypot(np.sqrt(1 - weight) * shared, np.sqrt(weight) * own)
        unseen[half_way] = values
        in_full[str(half_way)] = _loss(values, errors)
        losses[str(half_way)] = _loss(values, errors, cap)
    ranking = rank(losses, units, in_full, weights)
    chosen = next(h for h in half_ways if ranking.is_as_good(str(h)))
    return chosen, np.split(unseen[chosen], ends[1:-1])


def _fit(template: VarianceScaler, rows: Predictions) -> Node:
    """Return the map that a template learns."""
    scaler: VarianceScaler = clone(template)
    with quiet():
        scaler._fit_rows(rows)
    return scaler.map_


def all_rows(targets: Sequence[Predictions]) -> Predictions:
    """Return the rows of all targets as those of one."""
    columns = zip(*(each.columns for each in targets), strict=True)
    groups = [each.groups for each in targets if each.groups is not None]
    weights = [each.weights for each in targets if each.weights is not None]
    return Predictions.of(
        tuple(np.concatenate(each) for each in columns),
        targets[0].names,
        np.concatenate([each.errors for each in targets]),
        np.concatenate(groups) if groups else None,
        np.concatenate(weights) if weights else None,
        targets[0].categories,
    )


def _levels(
    predicted: Sequence[Floats], targets: Sequence[Predictions], added: Floats
) -> tuple[Floats, Floats]:
    """Return ln <Z²> of each target, and the same shrunk towards the others.

    `added` is what both are relative to. Rows of a group count as far as their z² do
    not rise and fall together.
    """
    z2 = [(each.errors / u) ** 2 for each, u in zip(targets, predicted, strict=True)]
    n = np.array([each.total for each in targets], dtype=np.float64)
    means = np.array([rows.mean(each) for rows, each in zip(targets, z2, strict=True)])
    if not means.all():  # errors of a target may all be 0: these say little
        least = float(means[means > 0].min()) if means.any() else 1.0
        means = np.where(means > 0, means, least / (1 + n))
    spreads = np.zeros(n.size)
    for k, (each, mean, rows) in enumerate(zip(z2, means, targets, strict=True)):
        sums = each / mean - 1
        if rows.weights is not None:
            sums = rows.weights * sums
        if (codes := rows.group_codes) is not None:
            sums = np.bincount(codes, sums)
        if sums.size > 1:
            size = n[k] * (1 - 1 / sums.size)
            spreads[k] = float(np.sum(sums**2)) / size
    # not the mean: one enormous error makes the spread of its own target enormous;
    # nor the median, which is too small, as those of few rows mostly are
    common = max(LEAST_SPREAD, float(np.quantile(spreads, 0.75)))
    logs = np.log(means) + added
    if n.size == 1:
        return logs, logs
    # such a target knows less of its level than others with as many rows
    excess = np.maximum(1.0, spreads / common)
    return logs, shrink_logs(logs, 2 * n / common, excess)


def shrink_logs(
    log_variance: Floats, freedom: Floats, excess: Floats | float = 1.0
) -> Floats:
    """Return logarithms of variances, shrunk towards their mean by empirical Bayes.

    Each is the logarithm of a mean of squares with so many degrees of freedom, that of
    a variance whose logarithm is normal around a common mean; its own variance is that
    of Paule and Mandel. What is returned is the logarithm of the expected variance,
    which is the one of the best expected log-likelihood.

    Parameters
    ----------
    log_variance : array of shape (n_targets,)
        Logarithms of means of squares.
    freedom : array of shape (n_targets,)
        Their degrees of freedom.
    excess : array of shape (n_targets,), default 1
        By how much the variance of each exceeds what these say.

    Returns
    -------
    array of shape (n_targets,)

    Examples
    --------
    >>> shrink_logs(np.array([0.1, -0.1]), np.array([1000.0, 10.0])).round(2)
    array([0.1, 0.1])
    """
    from scipy import special

    noise = special.polygamma(1, freedom / 2 / excess)
    # the logarithm of a mean of squares is too small on average
    y = log_variance - special.digamma(freedom / 2) + np.log(freedom / 2)
    between = _between(y, noise)
    weight = 1 / (noise + between)
    mean = float(np.sum(weight * y) / np.sum(weight))
    own = between * weight
    variance = own * noise + (1 - own) ** 2 / np.sum(weight)
    return np.asarray(own * y + (1 - own) * mean + variance / 2)


def _between(y: Floats, noise: Floats) -> float:
    """Return the variance between targets by which they scatter as they do."""

    def excess(between: float) -> float:
        weight = 1 / (noise + between)
        mean = np.sum(weight * y) / np.sum(weight)
        return float(np.sum(weight * (y - mean) ** 2)) - (y.size - 1)

    from scipy import optimize

    if y.size < 2 or excess(0.0) <= 0:
        return 0.0
    high = float(np.sum((y - y.mean()) ** 2))  # at which no target is far from others
    return float(optimize.brentq(excess, 0.0, max(high, 1e-12)))
