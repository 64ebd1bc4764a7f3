"""The public `validate`: one door, and what is odd about rows told at it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from .._support.checks import check_choice, check_fraction, rng_from
from .._support.notices import warn
from .._support.progress import working
from ..exceptions import InvalidInputError, SharedRowsWarning
from ..predictions.diagnostics import repeats_found, warn_of_dominant, warn_of_oddities
from ..predictions.ordering import in_canonical_order
from ..predictions.predictions import Predictions, check_predictions
from .arguments import Scope, check_confidence, check_tolerance
from .change import change_of
from .checks import test_rows
from .results import Doubt
from .validation import DOUBTED, Validation, leaked_of
from .variation import largest_variation

FITTED_SHARE = 0.5  # of rows that were fitted, from which nothing can be told


def validate(
    p: Predictions | npt.ArrayLike,
    y_std: npt.ArrayLike | None = None,
    y_true: npt.ArrayLike | None = None,
    *,
    features: Any = None,
    before: Predictions | Validation | None = None,
    tolerance: float = 1.25,
    confidence: float = 0.95,
    coverage: float = 0.95,
    scope: Scope = "both",
    cost: bool = False,
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
    p : Predictions, or array-like of shape (n,)
        Rows with known errors. Their distributions are tested where they have any, and
        normal ones else. Or predictions, with the next three.
    y_std, y_true, features : array-like of shape (n,), data frame, optional
        Standard uncertainties, true values and features, where `p` are predictions.
    before : Predictions or Validation, optional
        The same rows before they were recalibrated: the first line is then what has
        changed, by the paired difference of the CRPS.
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
    cost : bool, default False
        Whether what is printed tells what recalibration would gain in CRPS. That takes
        five fits.
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
    p = _as_rows(p, y_std, y_true, features)
    options: dict[str, Any] = {
        "tolerance": check_tolerance(tolerance),
        "confidence": check_confidence(confidence),
        "coverage": check_fraction(coverage, "coverage"),
        "scope": check_choice(scope, "scope", get_args(Scope)),
    }
    generator = rng_from(rng)
    if before is None:
        return replace(_validated(p, options, generator), with_cost=bool(cost))

    # both by the same options, and the change; other rows are refused
    rows = before.rows if isinstance(before, Validation) else before
    rows = check_predictions(rows, complete=True)
    change = change_of(rows, p, options["confidence"])
    first = _validated(rows, options, rng_from(rng))
    return replace(_validated(p, options, generator), before=first, change=change)


def _as_rows(p: Any, y_std: Any, y_true: Any, features: Any) -> Predictions:
    """Return the rows that were given, or those of three arrays."""
    if isinstance(p, Predictions) or (y_std is None and y_true is None):
        if features is not None:
            msg = (
                "`features` go with arrays; found Predictions. Pass them where these "
                "are made: Predictions(..., features=X)."
            )
            raise InvalidInputError(msg)
        return check_predictions(p, complete=True)
    if y_std is None or y_true is None:
        msg = (
            "`y_std` and `y_true` must both be given: the uncertainty and the true "
            "value of each prediction, validate(y_pred, y_std, y_true)."
        )
        raise InvalidInputError(msg)
    return check_predictions(
        Predictions(p, y_std, y_true=y_true, features=features), complete=True
    )


def _validated(
    p: Predictions, options: dict[str, Any], rng: np.random.Generator
) -> Validation:
    """Return the checks of rows; warn of what is odd about them."""
    repeats = "" if p.groups is not None else repeats_found(p)
    fitted_share = p.distributions.fitted_share
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
    doubt: Doubt = ""
    if repeats:
        doubt = "repeats"
    elif fitted_share > FITTED_SHARE:
        doubt = "fitted"
    elif leaked_of(p).size > DOUBTED * p.n_rows:
        doubt = "leaked"
    rows = in_canonical_order(p)
    with working("testing the uncertainties"):
        tested = test_rows(rows, **options, doubt=doubt, rng=rng)
    return Validation(
        checks=tested.checks,
        variation=largest_variation(tested),
        **options,
        doubt=doubt,
        repeats=repeats,
        rows=p,
        tested=tested,
        _origin=p.origin,
    )
