"""How many rows would pass: of rows that were tested, and of those to be collected."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from .._support.checks import Floats, check_count, rng_from
from ..predictions.predictions import Predictions, check_predictions
from .arguments import check_confidence, check_tolerance
from .checks import Tested, test_rows

POWER = 0.8  # the probability of a pass that rows are planned for
WELL_INSIDE = 0.7  # of the way to an end of the accepted range
HOPELESS = 100.0  # times as many rows: nobody knows how many
PLANNED = (400, 200_000)  # rows of simulated sets, from and to
NORMAL_ROWS = 60  # that a pass takes at a tolerance of e, about


def rows_to_pass(tested: Tested) -> int | None:
    """Return how many rows, or groups, would pass all checks, if the estimates stand.

    Estimates of parts are shrunk by the noise that they have, and half widths of their
    limits fall as one over the root of the rows. None where an estimate lies near an
    end of the accepted range or beyond, where as many rows pass more often than not,
    and where nothing is known.
    """
    counted = [check for check in tested.checks.values() if check.counts]
    if tested.regions is None or any(check.note for check in counted):
        return None
    estimate, off, half = _parts_of(tested)
    if (estimate > WELL_INSIDE).any():
        return None
    times = _times_to_pass(off, half, tested.confidence)
    if times is None or times <= 1:  # as many do not, by chance
        return None
    return _to_two_digits(tested.values.n_units * times)


def _parts_of(tested: Tested) -> tuple[Floats, Floats, Floats]:
    """Return how far off parts are, in units of bounds, and half widths of limits.

    The first are the estimates, the second are these without what is noise.
    """
    regions = tested.regions
    assert regions is not None
    quantile = float(special.ndtri(tested.confidence))
    estimates: list[Floats] = []
    offs: list[Floats] = []
    halves: list[Floats] = []
    for limits in tested.limits:
        bound = limits.question.bound(tested.tolerance)
        whole = limits.question.all_rows(tested.confidence)
        half_of_all = float(np.maximum(whole.down, whole.up))
        offs.append(np.array([abs(whole.off) / bound]))
        estimates.append(offs[-1])
        halves.append(np.array([half_of_all / bound]))
        for i in range(len(tested.columns)):
            mine = (regions.owner == i) & regions.is_part & regions.is_usable
            if mine.any():
                se = limits.estimates.se[mine]
                d = limits.estimates.difference[mine]
                estimates.append(np.abs(whole.off + d) / bound)
                offs.append(np.abs(whole.off + _shrunk(d, se)) / bound)
                halves.append(np.hypot(quantile * se, half_of_all) / bound)
    return np.concatenate(estimates), np.concatenate(offs), np.concatenate(halves)


def _shrunk(d: Floats, se: Floats) -> Floats:
    """Return differences from all rows without what is noise.

    Of differences d with errors se, the share τ² / (τ² + se²) is kept, with τ² = ⟨d² −
    se²⟩, 0 at least (James and Stein).
    """
    tau2 = max(0.0, float(np.mean(d * d - se * se)))
    return np.asarray(d * tau2 / (tau2 + se * se))


def _times_to_pass(off: Floats, half: Floats, confidence: float) -> float | None:
    """Return how many times as many rows pass all parts with the probability `POWER`.

    A part whose limits are ±h around an estimate, of which h is q standard errors,
    passes with the probability Φ(q (1 − |off| − h) / h); parts are independent.
    """
    if not np.isfinite(half).all():
        return None
    q = float(special.ndtri(confidence))
    for times in np.geomspace(1 / HOPELESS, HOPELESS, 400).tolist():
        h = half / math.sqrt(times)
        if special.ndtr(q * (1 - off - h) / h).prod() >= POWER:
            return float(times)
    return None


def _to_two_digits(n: float) -> int:
    """Return a number of rows with two digits, rounded up."""
    digit = 10 ** max(0, math.floor(math.log10(max(n, 1))) - 1)
    return int(digit * math.ceil(n / digit))


# -- planning --------------------------------------------------------------------------


def rows_needed(
    p: Predictions | None = None,
    *,
    tolerance: float = 1.25,
    n_features: int = 3,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> int:
    """Return about how many rows :func:`validate` needs to pass a right u.

    A set whose uncertainties are right is simulated, and tested: how wide the limits of
    its subgroups are tells with how many rows four of five such sets pass.

    Parameters
    ----------
    p : Predictions, optional
        A set whose rows are drawn, with each other's z-scores. By default errors are
        normal. If its rows belong together, groups are drawn, and counted.
    tolerance : float, default 1.25
        The factor that RMS z of a subgroup may be off by.
    n_features : int, default 3
        Number of features, beside u, where no set is given.
    confidence : float, default 0.95
        The level of one-sided limits.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    int
        Rows, or groups, to two digits.

    Examples
    --------
    >>> rows_needed(tolerance=2.0, n_features=1) < 1000
    True
    """
    factor = check_tolerance(tolerance)
    confidence = check_confidence(confidence)
    n_features = check_count(n_features, "n_features", least=0)
    generator = rng_from(rng)
    if p is not None:
        p = check_predictions(p, complete=True)

    # the second set has as many rows as the first has found
    needed = NORMAL_ROWS / math.log(factor) ** 2
    for _ in range(2):
        n = int(np.clip(needed, *PLANNED))
        rows = (
            _normal(n, n_features, generator) if p is None else _right(p, n, generator)
        )
        tested = test_rows(
            rows,
            tolerance=factor,
            confidence=confidence,
            coverage=0.95,
            scope="both",
            doubt="",
            rng=generator,
        )
        times = None
        if tested.regions is not None:
            _, off, half = _parts_of(tested)
            times = _times_to_pass(0 * off, half, confidence)
        needed = n * (HOPELESS if times is None else times)
    return int(float(f"{needed:.2g}"))


def _normal(n: int, n_features: int, rng: np.random.Generator) -> Predictions:
    """Return rows with normal errors, whose uncertainties are right."""
    u = rng.lognormal(sigma=0.5, size=n)
    features = {f"x{i}": rng.standard_normal(n) for i in range(n_features)}
    error = u * rng.standard_normal(n)
    return Predictions(error=error, y_std=u, features=features or None)


def _right(p: Predictions, n: int, rng: np.random.Generator) -> Predictions:
    """Return n drawn rows, or groups, whose z have the mean square 1.

    Rows that are independent get each other's z-scores.
    """
    unit = np.arange(p.n_rows) if p.groups is None else p.groups
    order = np.argsort(unit, kind="stable")
    first = np.searchsorted(unit[order], np.arange(int(unit.max()) + 2))
    drawn = rng.integers(int(unit.max()) + 1, size=n)
    sizes = np.diff(first)[drawn]
    group = np.repeat(np.arange(n), sizes)
    within = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = p.take(order[np.repeat(first[drawn], sizes) + within])
    z = (rows.errors.T / rows.y_std) / math.sqrt(max(rows.mean(rows.z2), 1e-300))
    if p.groups is None:
        z = z[..., rng.permutation(rows.n_rows)]
    error = (z * rows.y_std).T
    groups = None if p.groups is None else group
    unknown = dict.fromkeys(("y_true", "y_pred", "distributions", "shape"))
    return rows._with(error=error, groups=groups, **unknown)
