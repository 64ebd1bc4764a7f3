"""Validation: verdicts on uncertainties that a referee would sign."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._support.checks import Floats, rng_from
from .._support.telling import noted, warn
from .._support.weights import quantile_of
from ..bins.partitions import bins_of, feasible_bins
from ..exceptions import DominantErrorWarning, FewerBinsWarning, ZeroErrorBinWarning
from ..oddities import warn_of_oddities
from ..predictions import Predictions, as_predictions
from .answers import AVERAGE_SHARE, FEWEST, Answers, Plan, number_of_units
from .attainable import attainable_fractions
from .average import average_of
from .binning import check_ties
from .confidence_intervals import MIN_ROWS, IntervalMethod
from .local import LocalZMS, check_settings, measure, refuse_one
from .references import ReferenceScores, ZDistribution, simulate_scores
from .scores import Scorecard
from .shuffled import shuffle_and_test
from .validation import AVERAGE, BIAS, COVERAGE, JOINT, Validation

DOMINATED = 50  # rows from which no error should outweigh all others
_ABOUT_BINS = (FewerBinsWarning, ZeroErrorBinWarning)
REFERENCE_DRAWS = 200  # simulated sets behind what is attainable


def validate(
    error: Any,
    uncertainty: Any = None,
    features: Any = None,
    *,
    groups: Any = None,
    tolerance: float = 2.0,
    joint: bool = True,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Validation:
    """Return verdicts: are uncertainties right, on average and everywhere.

    Questions are whether errors are unbiased ("bias"), whether <Z²> is 1 ("average"),
    whether it is the same at every level of uncertainty ("u") and for every value of
    each feature, whether anything can be learned from all of these together ("joint"),
    and whether the same multiple of u holds 95 % of the errors everywhere
    ("coverage"). Each answer is "yes", "no" or "cannot tell".

    "No": the test rejects, or the interval shown for the average excludes 1. The test
    of a variable looks for the worst run of neighbouring values (or set of labels), at
    all scales, relative to the average, so that the variable at fault is named. How
    large such differences are by chance is told by shuffled sets, in which any row
    could have had the z-score of any other; rows of one group stay together.
    "Cannot tell": even a failure as large as the tolerance could hide. "Yes" comes with
    the smallest failure that would have been seen.

    Parameters
    ----------
    error : Predictions, or array-like of shape (n,)
        Predictions with everything that is known of them, or errors, reference minus
        prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive, beside errors.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ...
    groups : array-like of shape (n,), optional
        Labels of rows that belong together: repeats of a sample, frames of a
        trajectory.
    tolerance : float, default 2
        The failure that must not hide: a factor of u, for a tenth of the rows.
    joint : bool, default True
        Whether to ask what u and the features together say about z².
    n_bins : int, optional
        Number of bins of each numeric variable, for scores and local intervals; labels
        make one bin each. By default they have 30 rows or more, and there are at most
        100.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How the intervals of the bins are made, see :func:`local_zms`.
    ties : array-like of shape (n,), optional
        Orders rows with equal values of a variable, for scores and local intervals. By
        default the uncertainty. Verdicts never part equal values.
    confidence : float, default 0.95
        Coverage of the intervals, and one minus the error rate of all questions.
    n_resamples : int, default 1500
        Bootstrap draws of "bca" and "bootstrap-t".
    n_draws : int, optional
        Shuffled sets; by default 400, or as many as the confidence needs.
    rng : int, Generator or None, default 0
        Seed of bootstrap and simulation: the same data get the same verdict.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Verdicts are then on
        the population that the weights stand for. Weights stay where they are when
        z-scores are shuffled, and intervals are those of the rows in effect.

    Returns
    -------
    Validation

    References
    ----------
    P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993);
    P. Pernot, arXiv:2309.06240 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> u, x = rng.uniform(1, 2, 5000), rng.uniform(0, 100, 5000)
    >>> error = rng.normal(scale=u * np.where(x > 70, 1.5, 1.0))
    >>> verdicts = validate(error, u, {"x": x})
    >>> verdicts.answer
    'no'
    >>> verdicts.verdicts["x"].region.where
    'x above 68.96'
    >>> verdicts.verdicts["average"].answer, verdicts.verdicts["u"].answer
    ('no', 'yes')
    """
    rows = as_predictions(error, uncertainty, features, groups, sample_weight)
    order = check_ties(ties, rows)
    count = bins_of(n_bins, rows.total)
    settings = check_settings(count, method, confidence, n_resamples)
    plan = Plan.of(confidence, tolerance, n_draws)
    refuse_one(rows)
    warn_of_oddities(rows, learning=False)
    generator = rng_from(rng)

    z2 = (rows.errors / rows.uncertainty) ** 2
    with noted() as notes:
        _warn_of_dominant(rows, z2)
        feasible = feasible_bins(rows.total, settings.n_bins, min_size=MIN_ROWS)
        settings = replace(settings, n_bins=feasible)
        # scores, intervals and reference from the same bins, of which each has rows
        measured = measure(rows, settings, generator, ties=order)
        # errors that are all 0 have no distribution of their own
        z_scores = ZDistribution.of(
            "empirical" if np.any(rows.errors) else "normal", rows
        )
        reference = simulate_scores(
            rows, measured.bins, z_scores, REFERENCE_DRAWS, generator
        )
    attainable = attainable_fractions(
        z2, measured.local, settings, generator, rows.group_codes, rows.weights
    )
    judged = judge(
        rows,
        plan,
        generator,
        scores=measured.scores,
        reference=reference,
        local=measured.local,
        attainable=attainable,
        joint=joint,
    )
    return replace(
        judged,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        n_resamples=settings.n_resamples if settings.is_resampled else None,
        notes=tuple(str(each) for each in notes if isinstance(each, _ABOUT_BINS)),
    )


def judge(
    rows: Predictions,
    plan: Plan,
    rng: np.random.Generator,
    *,
    scores: Scorecard,
    reference: ReferenceScores,
    local: dict[str, LocalZMS],
    attainable: dict[str, float],
    joint: bool,
) -> Validation:
    """Put all questions to checked rows, and answer them."""
    average = average_of(rows, 1 - plan.level(AVERAGE_SHARE), rng)
    shuffled = None
    n_units = number_of_units(rows)
    if n_units >= FEWEST and average.zms > 0:
        shuffled = shuffle_and_test(rows, plan.n_draws, rng, joint=joint)
    asked = Answers(rows, plan, average, shuffled, rng)
    verdicts = {BIAS: asked.bias(), AVERAGE: asked.average_verdict()}
    for name in rows.names:
        verdicts[name] = asked.variable(name)
    if joint:
        verdicts[JOINT] = asked.joint()
    verdicts[COVERAGE] = asked.coverage()
    mean, sd, values = reference.mean, reference.sd, scores.to_dict()
    for name, verdict in verdicts.items():
        score = "S_cal" if name == AVERAGE else f"S_{name}"
        if name == AVERAGE or name in local:
            verdicts[name] = replace(
                verdict,
                score=values[score],
                target=mean[score],
                target_sd=sd[score],
                local=local.get(name),
                attainable=attainable.get(name),
            )
    return Validation(
        verdicts,
        plan.confidence,
        plan.tolerance,
        scores,
        reference,
        reach=quantile_of(np.abs(rows.errors / rows.uncertainty), 0.95, rows.weights),
        rows=rows,
        n_draws=0 if shuffled is None else plan.n_draws,
    )


def _warn_of_dominant(rows: Predictions, z2: Floats) -> None:
    parts = z2 if rows.weights is None else rows.weights * z2
    row, total = int(np.argmax(parts)), float(parts.sum())
    if z2.size >= DOMINATED and parts[row] > 0.5 * total:
        place = row if rows.places is None else int(rows.places[row])
        warn(
            f"One error of {z2.size} (row {place}, z = {np.sqrt(z2[row]):.3g}) makes "
            f"up {parts[row] / total:.0%} of the sum of z²: verdicts say little of the "
            "others. Look at that row, and drop it if it is a blunder.",
            DominantErrorWarning,
            stacklevel=3,
        )
