"""Verdicts with advice: the public `validate`, what to do next, and rows to plan for.

What judges rows fits nothing; what is advised may take fits that show what it gains,
and these are made when next steps are asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import check_count, check_fraction, rng_from
from .._support.notices import quiet, row_number, warn
from .._support.text import shorten
from ..exceptions import SharedRowsWarning
from ..predictions.diagnostics import repeats_found, warn_of_dominant, warn_of_oddities
from ..predictions.ordering import in_canonical_order
from ..predictions.predictions import Predictions, check_predictions
from ..recalibration.folds import divided
from ..scores import crps
from .answers import Answered, Judged, judge, rows_of_trees
from .headline import (
    bias_is_cause,
    column_of_intervals,
    columns_at_fault,
    is_size_blamed,
    worst_verdict,
)
from .parts import ASKED
from .search import by_unit, shuffles
from .validation import (
    Step,
    Validation,
    check_claim,
    check_confidence,
    check_tolerance,
    judged_rows,
)
from .words import Words, percent, times

if TYPE_CHECKING:
    from ..recalibration.bias import BiasKind
    from .certificate import Claim

MOST_NEXT_STEPS = 2
LATEST = Step(
    "u changes over time: fit a recalibrator to the latest rows, and watch those to "
    "come",
    "Recalibrator().fit(latest)",
)
INTERVALS = "Recalibrator().fit(p).apply(new).distributions.interval({level:g})"
WORTH = 0.005  # a gain in CRPS that is worth words
MOST_TRIED = 5000  # rows that tell it
FITTED_SHARE = 0.5  # of rows that were fitted, from which it is worth a warning
PLANNED = (100, 200_000)  # rows of simulated sets, from and to
PLANNED_SHARE = 2 / 3  # of the sets, that get a yes
SIMULATED_SETS = (1, 3)  # one after the other, each with the rows found before
NORMAL_ROWS = 60  # that a yes takes at a tolerance of e, about


def validate(
    p: Predictions,
    *,
    tolerance: float = 1.25,
    confidence: float = 0.95,
    level: float = 0.95,
    claim: Claim = "both",
    rng: int | np.random.Generator | None = 0,
) -> Validation:
    """Return a certificate and verdicts: how right uncertainties are, how finely.

    Questions are whether predictions are unbiased ("bias"), whether u is right on
    average ("average"), at every level of u ("u"), for every value of each feature and
    over time, for every combination of these ("joint"), and whether intervals hold what
    they claim, on average and everywhere ("coverage"). Each answer is "yes", "no" or
    "cannot tell".

    T is the tolerance that the rows prove: no fifth of them, by any question, is off by
    more than T times, with that confidence. "Yes": T lies within the tolerance, and no
    run of neighbouring values or label, alone, lies beyond it by its own limit. "No": a
    run or label lies beyond the tolerance by limits that hold for all of them at once.
    Between them T is said all the same, and what is suspected. More rows turn "cannot
    tell" into "yes" or "no".

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Their distributions are judged where they have any, and
        normal ones else.
    tolerance : float, default 1.25
        The factor that u, or the width of intervals, may be off by; a bias may be 4/3
        (`tolerance` − 1) times u, which costs about as much.
    confidence : float, default 0.95
        The level of T, and one minus the chance of a wrong "no" on each side.
    level : float, default 0.95
        The coverage of the intervals that are judged.
    claim : {"both", "u", "intervals"}, default "both"
        What is judged: that u is right ("u": all questions but coverage), that
        intervals hold what they claim ("intervals": bias and coverage), or both.
    rng : int, Generator or None, default 0
        Seed of the shuffled sets: the same rows, in any order, get the same verdicts.

    Returns
    -------
    Validation

    Notes
    -----
    T needs no correction for the number of parts: it is too small only if the limit of
    the worst part is (an intersection-union test). How far differences reach by chance
    in the search is told by sets in which z-scores are shuffled over the rows, groups
    together. Weights stay where they are.

    :func:`sigmascale.scores.tails` has Pernot's intervals of RCE and <Z²>: each alone,
    made of the rows as they are, and compared with the one best value rather than with
    a tolerance. With many rows they exclude 1 where u is 3 % off, which is a yes here;
    with few rows and heavy tails they exclude 1 too often, where this cannot tell.

    References
    ----------
    R. L. Berger, Technometrics 24, 295 (1982), doi:10.1080/00401706.1982.10487790;
    P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993);
    P. Pernot, arXiv:2309.06240 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(1)
    >>> u, x = rng.uniform(1, 2, 5000), rng.uniform(0, 100, 5000)
    >>> error = rng.normal(scale=u * np.where(x > 70, 1.5, 1.0))
    >>> v = ss.validate(ss.Predictions(error=error, y_std=u, features={"x": x}))
    >>> v.answer
    'no'
    >>> v.verdicts["x"].worst.where
    'x above 70.9'
    """
    p = check_predictions(p, complete=True)
    options: dict[str, Any] = {
        "tolerance": check_tolerance(tolerance),
        "confidence": check_confidence(confidence),
        "level": check_fraction(level, "level"),
        "claim": check_claim(claim),
        "rng": rng_from(rng),
    }
    repeats = "" if p.groups is not None else repeats_found(p)
    _warn(p, repeats)
    rows = in_canonical_order(p)
    return judged_rows(p, rows, **options, repeats=repeats, advise=next_steps)


def _warn(p: Predictions, repeats: str) -> None:
    """Warn of what is odd about rows, and of rows that were fitted."""
    warn_of_oddities(p, learning=False, repeats=repeats, stacklevel=3)
    warn_of_dominant(p, stacklevel=3)
    share = 0.0 if p.distributions is None else p.distributions.fitted_share
    if share > FITTED_SHARE:
        warn(
            f"About {share:.0%} of these rows are among those that the recalibrator "
            "was fitted on, where it looks better than it is: judge it by others.",
            SharedRowsWarning,
            stacklevel=3,
        )


# -- what to do next -------------------------------------------------------------------


def next_steps(v: Validation) -> tuple[Step, ...]:
    """Return what to do about a fault, or what is suspected, in at most two lines."""
    judged = v.judged
    if judged.search is None:
        return ()
    if judged.repeats:
        what = "Judge again with groups, a label that rows which belong together share"
        return (Step(what, "ss.Predictions(..., groups=g)"),)

    blamed: dict[str, Answered] = {}
    for name, answered in judged.answers.items():
        if answered.fault is not None or answered.suspect is not None:
            blamed[name] = answered

    # a bias that is the cause of all else is all there is to mend
    steps: list[Step] = []
    if "bias" in blamed and v.answer != "yes":
        worst = worst_verdict(v.verdicts)
        is_cause = blamed["bias"].fault is not None and bias_is_cause(judged, worst)
        steps += _of_bias(v, blamed["bias"], is_cause)
        if is_cause:
            return tuple(steps)

    outliers = judged.outliers if "average" in blamed else None
    if outliers is not None:
        steps.append(_outliers(v, outliers))
    if v.rows.distributions is None:
        steps += _by_columns(v, blamed, outliers)
    else:
        steps_of_parts = _parts(v)
        steps += steps_of_parts
        if not steps_of_parts or is_size_blamed(judged):
            steps += _after_recalibration(v, blamed)
    return tuple(steps[:MOST_NEXT_STEPS])


def _of_bias(v: Validation, bias: Answered, is_cause: bool) -> list[Step]:
    """Return the step that corrects a bias, if it is the cause or worth correcting."""
    finding = bias.fault or bias.suspect
    assert finding is not None
    kind: BiasKind = "auto" if finding.contrast > 0 else "constant"
    of_bias, of_all = gains_of_bias(v.judged.rows, kind)
    if of_bias < WORTH and not is_cause:
        return []
    what = "Correct the bias"
    if v.rows.distributions is not None:
        what = "Fit again, with the bias corrected"
    elif of_all >= WORTH:
        what += f", which lowers CRPS by {100 * of_all:.2g} % (out of fold)"
    return [Step(what, f'Recalibrator(bias="{kind}").fit(p)', {"bias": kind})]


def _outliers(v: Validation, share: float) -> Step:
    """Return the step that looks at the largest errors."""
    rows = v.judged.rows
    assert rows.places is not None
    largest = rows.places[np.argsort(-rows.abs_z)[:2]]
    one, other = (row_number(place) for place in largest)
    beyond = times(float(np.quantile(rows.abs_z, 1 - share)))
    what = (
        f"{percent(share)} of the errors are beyond {beyond} u and decide: look at "
        f"rows {one} and {other}, or use intervals"
    )
    if v.rows.distributions is not None:
        return Step(what.replace("use intervals", "rely on the intervals"))
    return Step(what, INTERVALS.format(level=v.level), {})


def _by_columns(
    v: Validation, blamed: dict[str, Answered], outliers: float | None
) -> list[Step]:
    """Return what to fit to rows that no recalibrator has seen."""
    columns = columns_at_fault(v.judged, Words(v.judged))
    features = [shorten(name, 30) for name in columns if name not in ("u", "joint")]
    if features == ["time"]:
        return [LATEST]
    if columns:
        what = "Fit a recalibrator, which learns factors by u"
        if features or "u" not in columns:
            named = " and ".join(features[:2]) or "all features"
            what = f"Fit a recalibrator that knows {named}"
        return [Step(what, "Recalibrator().fit(p)", {})]

    # no column is at fault: the average, or intervals alone
    average = blamed.get("average")
    if average is not None and outliers is None:
        finding = average.fault or average.suspect
        assert finding is not None
        what = f"One factor mends it, {math.exp(finding.off):.3g}"
        python = "Recalibrator(TemperatureScaling()).fit(p)"
        return [Step(what, python, {"scaling": "temperature"})]
    if "coverage" in blamed:
        return [Step("Use learned intervals", INTERVALS.format(level=v.level), {})]
    return []


def _parts(v: Validation) -> list[Step]:
    """Return the step that lets intervals hold in the parts of the column at fault."""
    name = column_of_intervals(v.judged)
    if name is None:
        return []
    part = "label" if v.rows.is_labelled(name) else "fifth"
    what = f"Let intervals hold what they claim in each {part} of {shorten(name, 30)}"
    python = f"Recalibrator(parts=[{name!r}]).fit(p)".replace("'", '"')
    return [Step(what, python, {"parts": (name,)})]


def _after_recalibration(v: Validation, blamed: dict[str, Answered]) -> list[Step]:
    """Return what to do where a recalibrator was not enough: never the same again."""
    # u is blamed, intervals are not, and T of these is clearly better
    coverage = v.verdicts.get("coverage")
    is_u_blamed = bool(set(blamed) - {"bias", "coverage"})
    if coverage is not None and is_u_blamed and "coverage" not in blamed:
        is_better = max(v.tolerance, 0.8 * v.T) >= coverage.T
        if is_better:
            what = "Rely on the intervals, which need no ⟨Z²⟩"
            return [Step(what, f"distributions.interval({v.level:g})")]

    columns = columns_at_fault(v.judged, Words(v.judged))
    if columns == ["time"]:
        return [LATEST]
    if columns:
        along = " and ".join(shorten(name, 30) for name in columns[:2])
        return [Step(f"Fit with more rows: too few tell what is left along {along}")]
    if "average" in blamed:
        return [Step("Fit again on rows that are like these: their average differs")]
    return []


def gains_of_bias(rows: Predictions, kind: BiasKind) -> tuple[float, float]:
    """Return the shares by which CRPS of rows out of fold falls if a bias is corrected.

    The first is against a recalibrator that leaves the bias alone, the second against
    the rows as they are.
    """
    from ..recalibration.recalibrator import Recalibrator

    # few enough rows to fit in no time, groups together
    chance = by_unit(rows.groups, rows.n_rows, np.random.default_rng(0))
    rows = rows.take(np.flatnonzero(chance < MOST_TRIED / rows.n_rows))

    # each half is tested by what the other has learned
    one, other = divided(rows, 0.5, 0)
    as_it_is = 0.0
    biased = 0.0
    corrected = 0.0
    with quiet():
        for learned, tested in ((one, other), (other, one)):
            fit = rows.take(learned)
            test = rows.take(tested)
            as_it_is += crps(test)
            biased += crps(Recalibrator(bias=None).fit(fit).apply(test))
            corrected += crps(Recalibrator(bias=kind).fit(fit).apply(test))
    return float(1 - corrected / biased), float(1 - corrected / as_it_is)


# -- planning --------------------------------------------------------------------------


def rows_needed(
    p: Predictions | None = None,
    *,
    tolerance: float = 1.25,
    n_features: int = 3,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> int:
    """Return about how many rows :func:`validate` needs for a "yes" to everything.

    Sets whose uncertainties are right are simulated, and judged: how large T is tells
    how many rows bring it within the tolerance. With so many, about two of three such
    sets get a "yes"; some more rows make it nearly certain.

    Parameters
    ----------
    p : Predictions, optional
        A set whose z-scores tell how heavy tails are, shuffled over its rows. By
        default errors are normal. If its rows belong together, groups are counted.
    tolerance : float, default 1.25
        The factor that u of no fifth of the rows may be off by.
    n_features : int, default 3
        Number of features, beside u, where no set is given.
    confidence : float, default 0.95
        That of the verdicts.
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

    # each round judges sets of as many rows as the round before has found
    needed = NORMAL_ROWS / math.log(factor) ** 2
    for n_sets in SIMULATED_SETS:
        n_rows = int(np.clip(needed, *PLANNED))
        counts = []
        for _ in range(n_sets):
            if p is None:
                rows = _normal(n_rows, n_features, generator)
            else:
                rows = _right(p, generator)
            judged = judge(
                rows,
                tolerance=factor,
                confidence=confidence,
                level=0.95,
                claim="both",
                rng=generator,
            )
            counts.append(_rows_of(judged))
        needed = float(np.quantile(counts, PLANNED_SHARE))
    return int(float(f"{needed:.2g}"))  # to two digits


def _rows_of(judged: Judged) -> float:
    """Return how many rows would bring T of all questions within the tolerance.

    ln T falls as one over the root of the rows.
    """
    n_units = judged.values.n_units
    times_as_many = [0.2]
    for answered in judged.answers.values():
        far = answered.worst[ASKED].far
        times_as_many.append(100.0 if math.isinf(far) else (far / answered.bound) ** 2)
        if answered.name == "joint":
            times_as_many.append(rows_of_trees(judged.tolerance) / n_units)
    return n_units * max(times_as_many)


def _normal(n: int, n_features: int, rng: np.random.Generator) -> Predictions:
    """Return rows with normal errors, whose uncertainties are right."""
    u = rng.lognormal(sigma=0.5, size=n)
    features = {f"x{i}": rng.standard_normal(n) for i in range(n_features)}
    error = u * rng.standard_normal(n)
    return Predictions(error=error, y_std=u, features=features or None)


def _right(p: Predictions, rng: np.random.Generator) -> Predictions:
    """Return the rows with each other's z-scores, right on average and everywhere."""
    # z-scores of mean 0 and mean square 1, of vectors over their components
    z = (p.errors.T / p.y_std).T
    z = z - np.average(z, axis=0, weights=p.weights)
    z2 = z**2 if z.ndim == 1 else (z**2).mean(1)
    mean = np.average(z2, weights=p.weights)
    source = shuffles(p.n_rows, p.groups, 1, rng)[:, 0]
    shuffled = z[source] / math.sqrt(max(mean, 1e-300))
    error = (shuffled.T * p.y_std).T
    unknown = dict.fromkeys(("y_true", "y_pred", "distributions", "shape"))
    return p._with(error=error, **unknown)
