"""The public `validate`: one door, and what is odd about rows told at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import check_fraction, rng_from
from .._support.notices import warn
from ..exceptions import SharedRowsWarning
from ..predictions.diagnostics import repeats_found, warn_of_dominant, warn_of_oddities
from ..predictions.ordering import in_canonical_order
from ..predictions.predictions import Predictions, check_predictions
from .arguments import Scope, check_confidence, check_scope, check_tolerance
from .checks import test_rows
from .results import Doubt
from .validation import DOUBTED, Validation, leaked_of
from .variation import largest_variation

FITTED_SHARE = 0.5  # of rows that were fitted, from which nothing can be told


def validate(
    p: Predictions,
    *,
    tolerance: float = 1.25,
    confidence: float = 0.95,
    coverage: float = 0.95,
    scope: Scope = "both",
    rng: int | np.random.Generator | None = 0,
) -> Validation:
    """Test whether uncertainties are calibrated, overall and in subgroups.

    Checks are *calibration* (RMS z of all rows), *consistency* (of every subgroup of
    u), *adaptivity* (of every range or label of each feature, and of time),
    *combinations* of columns, *coverage* of prediction intervals, and *bias* (mean z).
    A check passes if the interval of the subgroup that decides lies within the accepted
    range, and fails if it lies outside; else it is inconclusive.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Their distributions are tested where they have any, and
        normal ones else.
    tolerance : float, default 1.25
        The factor that RMS z of any subgroup may be off by; mean z may be ±4/3
        (`tolerance` − 1), which costs about as much, and coverage what normal intervals
        have that are as much too narrow or too wide.
    confidence : float, default 0.95
        The level of one-sided limits of each subgroup, by which checks pass. Limits
        that hold for all subgroups at once, by which they fail, are one-sided, too.
    coverage : float, default 0.95
        The nominal coverage of the intervals that are tested.
    scope : {"both", "u", "intervals"}, default "both"
        What is tested: u (all checks but coverage), intervals (coverage and bias), or
        both.
    rng : int, Generator or None, default 0
        Seed of the multipliers: the same rows, in any order, get the same results.

    Returns
    -------
    Validation

    Notes
    -----
    :func:`sigmascale.scores.tails` has Pernot's intervals of RCE and ⟨z²⟩: each alone,
    made of the rows as they are, and compared with the one best value rather than with
    an accepted range.

    References
    ----------
    R. L. Berger, Technometrics 24, 295 (1982), doi:10.1080/00401706.1982.10487790;
    V. Chernozhukov, D. Chetverikov and K. Kato, Ann. Stat. 41, 2786 (2013),
    doi:10.1214/13-AOS1161; P. Pernot, arXiv:2309.06240 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(1)
    >>> u, x = rng.uniform(1, 2, 5000), rng.uniform(0, 100, 5000)
    >>> error = rng.normal(scale=u * np.where(x > 70, 1.5, 1.0))
    >>> v = ss.validate(ss.Predictions(error=error, y_std=u, features={"x": x}))
    >>> v.result
    'FAIL'
    >>> v.checks["adaptivity: x"].subgroup.conditions[0].low > 69
    True
    """
    p = check_predictions(p, complete=True)
    options: dict[str, Any] = {
        "tolerance": check_tolerance(tolerance),
        "confidence": check_confidence(confidence),
        "coverage": check_fraction(coverage, "coverage"),
        "scope": check_scope(scope),
    }
    generator = rng_from(rng)
    repeats = "" if p.groups is not None else repeats_found(p)
    fitted_share = 0.0 if p.distributions is None else p.distributions.fitted_share
    _warn(p, repeats, fitted_share)
    doubt: Doubt = ""
    if repeats:
        doubt = "repeats"
    elif fitted_share > FITTED_SHARE:
        doubt = "fitted"
    elif leaked_of(p).size > DOUBTED * p.n_rows:
        doubt = "leaked"
    rows = in_canonical_order(p)
    tested = test_rows(rows, **options, doubt=doubt, rng=generator)
    return Validation(
        checks=tested.checks,
        variation=largest_variation(tested),
        **options,
        doubt=doubt,
        repeats=repeats,
        rows=p,
        tested=tested,
    )


def _warn(p: Predictions, repeats: str, fitted_share: float) -> None:
    """Warn of what is odd about rows, and of rows that were fitted."""
    warn_of_oddities(p, learning=False, repeats=repeats, stacklevel=3)
    warn_of_dominant(p, stacklevel=3)
    if fitted_share > FITTED_SHARE:
        warn(
            f"About {fitted_share:.0%} of these rows are among those that the "
            "recalibrator was fitted on, where it looks better than it is: test it on "
            "others.",
            SharedRowsWarning,
            stacklevel=3,
        )
