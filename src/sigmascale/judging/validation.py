"""Validation: all verdicts on some rows, the headline, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import check_count, check_fraction, is_real, rng_from
from .._support.notices import quiet, row_number, warn
from .._support.render import WIDTH, Cells, Result, html_table
from .._support.text import quoted, shorten
from ..diagnostics import warn_of_dominant, warn_of_oddities
from ..exceptions import InvalidInputError, SharedRowsWarning
from ..folds import divided
from ..ordering import in_canonical_order
from ..predictions import Predictions, check_predictions
from .judge import Judge
from .scan import by_unit, shuffles
from .variables import number
from .verdicts import (
    WITH_WHOLE,
    Answer,
    Answers,
    Region,
    Verdict,
    as_factor,
    at_most,
    off_by,
    times,
)

if TYPE_CHECKING:
    from ..recalibrator import BiasKind
    from ..scores import Scorecard

MARKS = {"yes": "✓", "no": "✗", "cannot tell": "?"}
BAR = 60  # characters of a picture in a line
FARTHEST = 8.0  # factors beyond it are at the edge of pictures
INTERVALS = "Recalibrator().fit(p).apply(new).distributions.interval(0.95)"
WORTH, MOST_TRIED = 0.005, 5000  # a gain in CRPS worth words, and rows that tell it
FITTED = 0.5  # share of the rows that were fitted, from which it is worth a warning
PLANNED, PLANNED_SHARE = (100, 200_000), 2 / 3  # rows of simulated sets, and a yes
SIMULATED_SETS = (1, 3)  # one after the other, each with the rows found before
NORMAL_ROWS = 300  # that a yes takes at a tolerance of e, about


class Step(str):
    """What to do next: a sentence with a line of Python, and its parts for others.

    Attributes
    ----------
    what, python : str
        What to do, and the line that does it.
    how : dict
        Options of a recalibrator that does it, as `sigmascale fit` has them, such as
        ``{"bias": "auto"}``.
    """

    what: str
    python: str
    how: dict[str, Any]

    def __new__(cls, what: str, python: str, **how: Any) -> Step:
        """Join what to do and the line of Python."""
        new = super().__new__(cls, f"{what}: {python}")
        new.what, new.python, new.how = what, python, how
        return new


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Result):
    """Verdicts on some rows: are their uncertainties right, on average and everywhere.

    Attributes
    ----------
    headline : str
        The worst fault, where it is, and the average, in one line.
    verdicts : dict of str to Verdict
        By question: "bias" (of numbers), "average", "u", the features, "joint" (with
        features) and "coverage".
    tolerance : float
        The factor that u of no tenth of the rows may be off by.
    confidence : float
        One minus the chance that limits of any region do not hold.
    next_steps : tuple of Step
        What to do about it, at most two lines; none where nothing is wrong.
    closing : str
        How many rows there are, and how many would answer everything.
    rows : Predictions
        The rows that were judged.
    """

    headline: str
    verdicts: dict[str, Verdict]
    tolerance: float
    confidence: float
    next_steps: tuple[Step, ...]
    closing: str
    rows: Predictions = field(compare=False)

    @property
    def answer(self) -> Answer:
        """The worst answer: "no" before "cannot tell" before "yes"."""
        found = {verdict.answer for verdict in self.verdicts.values()}
        answers: tuple[Answer, ...] = ("no", "cannot tell", "yes")
        return next(each for each in answers if each in found)

    @property
    def passed(self) -> bool:
        """Whether every answer is "yes"."""
        return self.answer == "yes"

    @cached_property
    def scores(self) -> Scorecard:
        """All scores of the rows; see :func:`sigmascale.scores.scorecard`."""
        from ..scores import scorecard

        with quiet():
            return scorecard(self.rows)

    @property
    def worst(self) -> Region | None:
        """The region that the headline is about; None where no answer is "no"."""
        found = _worst_verdict(self.verdicts)
        return None if found is None else found.worst

    def compared_with(self, before: Validation) -> str:
        """Return what recalibration has changed, in one line.

        Parameters
        ----------
        before : Validation
            The same rows, as they were.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.datasets.make_molecules(1000).predictions
        >>> wide = p.with_y_std(2 * p.y_std)
        >>> ss.validate(wide).compared_with(ss.validate(p)).split(",")[0]
        'Worst fault 2.8 → 5.6 times'
        """
        from ..scores import coverage, crps, energy_score

        faults = [times(_largest_fault(each)) for each in (before, self)]
        score, name, what = crps, "CRPS", "intervals"
        if self.rows.is_vector:
            score, name, what = energy_score, "energy score", "balls"
        with quiet():
            scores = [f"{score(each.rows):.3g}" for each in (before, self)]
            held = 100 * coverage(self.rows)
        return (
            f"Worst fault {faults[0]} → {faults[1]} times, {name} {scores[0]} → "
            f"{scores[1]}, 95 % {what} hold {held:.3g} %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts and what they rest on, as plain values."""
        return {
            "headline": self.headline,
            "answer": self.answer,
            "passed": self.passed,
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "n_rows": self.rows.n_rows,
            "next_steps": list(self.next_steps),
            "closing": self.closing,
            "verdicts": {name: v.to_dict() for name, v in self.verdicts.items()},
        }

    def _cells(self) -> Cells:
        rows = [
            (shorten(name, 16), v.answer, v.sentence)
            for name, v in self.verdicts.items()
        ]
        return ("question", "answer", ""), rows

    @property
    def reach(self) -> float:
        """How far an axis of factors reaches: to estimates and most limits."""
        values = [1.6, 1.3 * self.tolerance]
        for name, verdict in self.verdicts.items():
            if verdict.worst is not None:
                found = [verdict.worst.estimate, *(verdict.limits or ())]
                values += [as_factor(x, name, self.tolerance) for x in found]
        far = [max(x, 1 / x) for x in values]
        return 1.08 * max(x for x in far if x < FARTHEST)

    def __str__(self) -> str:
        """Return the headline, the picture, a sentence a question, and what to do."""
        width = min(12, max(len(name) for name in self.verdicts))
        lines = [fill(self.headline, WIDTH), ""]
        if picture := self._picture(width):
            lines += [*picture, ""]
        for name, v in self.verdicts.items():
            start = f"{MARKS[v.answer]} {shorten(name, width):<{width}}  "
            indent = " " * len(start)
            lines.append(
                fill(v.sentence, WIDTH, initial_indent=start, subsequent_indent=indent)
            )
        if self.next_steps:
            lines.append("")
        for step in self.next_steps:
            lines.append(fill(step, WIDTH, initial_indent="→ ", subsequent_indent="  "))
        if self.closing:
            lines += ["", fill(self.closing, WIDTH)]
        return "\n".join(lines)

    def _picture(self, width: int) -> list[str]:
        """Return verdicts as lines of characters, as `plots.verdicts` draws them.

        They are the tolerance ░, the limits of all regions ─, and those of the region
        that the sentence is about ━, with its estimate ●.
        """
        lines = [
            f"{MARKS[v.answer]} {shorten(name, width):<{width}}  {self._bar(name)}"
            for name, v in self.verdicts.items()
            if v.worst is not None
        ]
        return [f"{'u times':<{width + 4}}{self._axis()}", *lines] if lines else []

    def _place(self, factor: float) -> int:
        """Return the character of a line at which a factor stands."""
        at = math.log(factor) / math.log(self.reach)
        return round((min(max(at, -1.0), 1.0) + 1) / 2 * (BAR - 1))

    def _axis(self) -> str:
        """Return factors in words at their places."""
        line, t = " " * BAR, self.tolerance
        for factor in (1, t, 1 / t, 2, 0.5, 4, 0.25):
            words = number(factor)
            first = self._place(factor) - len(words) // 2
            last = first + len(words)
            if first > 0 and last < BAR and not line[first - 1 : last + 1].strip():
                line = line[:first] + words + line[last:]
        return line.rstrip()

    def _bar(self, name: str) -> str:
        """Return a verdict as a line of characters."""
        v, line = self.verdicts[name], [" "] * BAR
        assert v.worst is not None

        def at(*values: float) -> tuple[int, ...]:
            return tuple(
                self._place(as_factor(x, name, self.tolerance)) for x in values
            )

        low, high = self._place(1 / self.tolerance), self._place(self.tolerance)
        drawn: list[tuple[Any, ...]] = [("░", low, high)]
        drawn += [("─", *at(*v.limits))] if v.limits is not None else []
        drawn += [("━", *at(v.worst.low, v.worst.high))]
        drawn += [("┊", low, low), ("┊", high, high)]  # whatever reaches beyond
        drawn += [("●", *at(v.worst.estimate, v.worst.estimate))]
        for mark, first, last in drawn:
            line[first : last + 1] = mark * (last + 1 - first)
        return "".join(line).rstrip()

    def _repr_html_(self) -> str:
        lines = [f"<p><strong>{escape(self.headline)}</strong></p>"]
        if picture := self._picture(12):
            lines.append(f"<pre>{escape(chr(10).join(picture))}</pre>")
        rows = [
            (MARKS[v.answer], shorten(name, 30), v.sentence)
            for name, v in self.verdicts.items()
        ]
        lines.append(html_table(("", "question", ""), rows))
        lines += [f"<p>→ {escape(step)}</p>" for step in self.next_steps]
        return "".join([*lines, f"<p>{escape(self.closing)}</p>"])


def validate(
    p: Predictions,
    *,
    tolerance: float = 1.25,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> Validation:
    """Return verdicts: are uncertainties right, on average and everywhere.

    Questions are whether predictions are unbiased ("bias"), whether u is right on
    average ("average"), at every level of u ("u"), for every value of each feature, for
    every combination of these ("joint"), and whether 95 % intervals hold 95 %, on
    average and everywhere ("coverage"). Each answer is "yes", "no" or "cannot tell".

    Each region, a run of neighbouring values or a label, has limits of the factor that
    its u should be multiplied by; the limits of all regions of all questions hold at
    once. It is *kept* if both lie within the tolerance, *broken* if they do not, and
    both lie on one side beyond the root of the tolerance, and *open* else. "No": a
    region is broken. "Yes": every tenth of the rows, and every label or value of 5 % of
    them, is kept. More rows turn "cannot tell" into "yes" or "no".

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Their distributions are judged where they have any, and
        normal ones else.
    tolerance : float, default 1.25
        The factor that u may be off by; a bias may be `tolerance` − 1 times u.
    confidence : float, default 0.95
        The chance that all limits hold.
    rng : int, Generator or None, default 0
        Seed of the shuffled sets: the same rows, in any order, get the same verdicts.

    Returns
    -------
    Validation

    Notes
    -----
    How far differences reach by chance is told by sets in which z-scores are shuffled
    over the rows, groups together. Weights stay where they are.

    :func:`sigmascale.scores.tails` has Pernot's intervals of RCE and <Z²>: each alone,
    made of the rows as they are, and compared with the one best value rather than with
    a tolerance. With many rows they exclude 1 where u is 3 % off, which is a yes here;
    with few rows and heavy tails they exclude 1 too often, where this cannot tell.

    References
    ----------
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
    factor, level = check_tolerance(tolerance), check_fraction(confidence, "confidence")
    generator = rng_from(rng)
    _warn(p)
    answers = Answers(Judge(in_canonical_order(p), factor, level, generator))
    verdicts = answers.all()
    return Validation(
        headline=headline_of(verdicts, answers),
        verdicts=verdicts,
        tolerance=factor,
        confidence=level,
        next_steps=next_steps_of(verdicts, answers),
        closing=closing_of(verdicts, answers),
        rows=p,
    )


def check_tolerance(tolerance: Any) -> float:
    """Return a factor that is larger than 1."""
    if not is_real(tolerance) or not 1 < tolerance < math.inf:
        msg = (
            "`tolerance` must be a factor larger than 1, such as 1.25; found "
            f"{quoted(tolerance)}."
        )
        raise InvalidInputError(msg)
    return float(tolerance)


def _warn(p: Predictions) -> None:
    """Warn of what is odd about rows, and of rows that were fitted."""
    warn_of_oddities(p, learning=False, stacklevel=3)
    warn_of_dominant(p, stacklevel=3)
    share = 0.0 if p.distributions is None else p.distributions.fitted_share
    if share > FITTED:
        warn(
            f"About {share:.0%} of these rows are among those that the recalibrator "
            "was fitted on, where it looks better than it is: judge it by others.",
            SharedRowsWarning,
            stacklevel=3,
        )


# -- headlines -------------------------------------------------------------------------


def _worst_verdict(verdicts: dict[str, Verdict]) -> Verdict | None:
    """Return the verdict of the worst fault of size; one column before several."""
    wrong = {
        name: v
        for name, v in verdicts.items()
        if v.answer == "no" and v.worst is not None and name != "bias"
    }
    intervals, joint = wrong.pop("coverage", None), wrong.pop("joint", None)
    if not wrong:
        return joint or intervals

    def size(v: Verdict) -> float:
        assert v.worst is not None
        return abs(math.log(max(v.worst.estimate, 1e-300)))

    best = max(wrong.values(), key=size)
    if joint is None or joint.worst is None or best.worst is None:
        return best
    # several columns are at fault if their rows are surely worse than those of one
    factor, there = best.worst.estimate, joint.worst
    is_worse = there.low > max(factor, 1) or there.high < min(factor, 1)
    return joint if is_worse and there.column is None else best


def headline_of(verdicts: dict[str, Verdict], answers: Answers) -> str:
    """Return the worst fault, where it is, and the average, in one line."""
    judge, count = answers.judge, f"{answers.rows.n_rows:,} rows"
    average, bias = verdicts["average"], verdicts.get("bias")
    if not judge.enough:
        return f"{average.sentence}."
    worst = _worst_verdict(verdicts)
    if bias is not None and bias.answer == "no" and _is_bias(worst, bias, answers):
        return f"{bias.sentence}."
    if worst is not None and worst.worst is not None:
        return f"{_fault(worst, worst.worst, average)}."
    unsure = [name for name, v in verdicts.items() if v.answer == "cannot tell"]
    sizes = [v.limits for name, v in verdicts.items() if v.limits and name != "bias"]
    if not unsure:
        most = max(map(at_most, sizes))
        return f"Right everywhere to within {times(most)} times ({count})."
    sizes = [v.limits for n, v in verdicts.items() if v.limits and n not in WITH_WHOLE]
    most = max(map(at_most, [*sizes, average.limits or (0.0, math.inf)]))
    if judge.is_heavy and most > judge.tolerance:
        return f"No fault found, but rare large errors cannot be excluded ({count})."
    if most > 100:
        return f"No fault found, but {count} are too few to exclude one."
    up_to = f"{times(most)} times"
    if most > judge.tolerance:
        return f"No fault found, but up to {up_to} cannot be excluded ({count})."
    what = {
        "bias": "a local bias",
        "coverage": "wrong intervals",
        "joint": "combinations",
    }
    rest = " and ".join(what.get(n, f"faults of {shorten(n, 20)}") for n in unsure[:2])
    return (
        f"Right to within {times(most)} times, but {rest} cannot be excluded ({count})."
    )


def _fault(worst: Verdict, region: Region, average: Verdict) -> str:
    """Return the worst fault, and the average if that is something else."""
    if worst.name == "coverage":
        u_is = "" if average.answer == "cannot tell" else "u is "
        return f"{worst.sentence}; {u_is}{_on_average(average)}"
    if region.where == "all rows":
        return average.sentence if average.answer == "no" else worst.sentence
    fault = f"u is up to {off_by(region.estimate)} ({region.where})"
    return f"{fault}; {_on_average(average)}"


def _is_bias(worst: Verdict | None, bias: Verdict, answers: Answers) -> bool:
    """Return whether it is a bias that makes u look too small."""
    if worst is None or worst.worst is None or bias.worst is None:
        return True
    if worst.worst.estimate < 1:
        return False
    z, w = answers.rows.z, answers.judge.w
    # without the bias of that region, is the fault gone?
    z2 = np.where(answers.inside("bias"), z - bias.worst.estimate, z) ** 2
    there = answers.inside(worst.name)
    left = math.log(max(np.average(z2[there], weights=w[there]), 1e-300))
    return left < math.log(worst.worst.estimate)


def _on_average(average: Verdict) -> str:
    if average.answer == "yes" or average.worst is None:
        return "right on average"
    if average.answer == "no":
        return f"{off_by(average.worst.estimate)} on average"
    most = at_most(average.limits or (0.0, math.inf))
    if most > 2:
        return "the average cannot be told"
    return f"on average off by at most {times(most)} times"


def next_steps_of(verdicts: dict[str, Verdict], answers: Answers) -> tuple[Step, ...]:
    """Return what to do after a no, in at most two lines."""
    wrong = {name: v for name, v in verdicts.items() if v.answer == "no"}
    steps: list[Step] = []
    if "bias" in wrong:
        kind: BiasKind = "auto" if answers.blamed["bias"].contrast > 0 else "constant"
        of_bias, of_all = gains_of_bias(answers.rows, kind)
        is_cause = _is_bias(_worst_verdict(verdicts), wrong["bias"], answers)
        if of_bias >= WORTH or is_cause:
            what = "Correct the bias"
            if of_all >= WORTH:
                what += f", which lowers CRPS by {100 * of_all:.2g} % (out of fold)"
            steps.append(Step(what, f'Recalibrator(bias="{kind}").fit(p)', bias=kind))
        if is_cause:
            return tuple(steps)
    outliers = answers.outliers if "average" in wrong else None
    if outliers is not None:
        size, places = np.sqrt(answers.judge.z2), answers.rows.places
        assert places is not None
        first, second = (row_number(places[i]) for i in np.argsort(-size)[:2])
        beyond = times(float(np.quantile(size, 1 - outliers)))
        what = (
            f"{100 * outliers:.2g} % of the errors are beyond {beyond} u and decide: "
            f"look at rows {first} and {second}, or use intervals"
        )
        steps.append(Step(what, INTERVALS))
    sizes = {n: x for n, x in answers.blamed.items() if n not in WITH_WHOLE}
    guilty = [n for n, x in sizes.items() if x.contrast > 0]
    guilty = guilty or [n for n, x in sizes.items() if x.local is not None]
    columns = dict.fromkeys([*guilty, *answers.blamed_jointly])
    named = [shorten(name, 30) for name in columns if name not in ("u", "joint")]
    if guilty:
        what = "Fit a recalibrator, which learns factors by u"
        if named or "u" not in columns:
            known = " and ".join(named[:2]) or "all features"
            what = f"Fit a recalibrator that knows {known}"
        steps.append(Step(what, "Recalibrator().fit(p)"))
    elif "average" in wrong and outliers is None:
        factor = wrong["average"].worst
        assert factor is not None
        what = f"One factor mends it, {factor.estimate:.3g}"
        python = "Recalibrator(TemperatureScaling()).fit(p)"
        steps.append(Step(what, python, scaling="temperature"))
    elif wrong and not steps:
        steps.append(Step("Use learned intervals", INTERVALS))
    return tuple(steps[:2])


def gains_of_bias(rows: Predictions, kind: BiasKind) -> tuple[float, float]:
    """Return the shares by which CRPS of rows out of fold falls if a bias is corrected.

    The first is against a recalibrator that leaves the bias alone, the second against
    the rows as they are.
    """
    from ..recalibrator import Recalibrator
    from ..scores import crps

    some = by_unit(rows.groups, rows.n_rows, np.random.default_rng(0))
    rows = rows.take(np.flatnonzero(some < MOST_TRIED / rows.n_rows))
    halves = divided(rows, 0.5, 0)
    sums = np.zeros(3)
    with quiet():
        for fitted, others in (halves, halves[::-1]):
            fit, test = rows.take(fitted), rows.take(others)
            models = [Recalibrator(bias=each).fit(fit) for each in (None, kind)]
            sums += [crps(test), *(crps(model.apply(test)) for model in models)]
    return float(1 - sums[2] / sums[1]), float(1 - sums[2] / sums[0])


def closing_of(verdicts: dict[str, Verdict], answers: Answers) -> str:
    """Return how many rows there are, and how many would answer everything."""
    unsure = [v for v in verdicts.values() if v.answer == "cannot tell"]
    needed = [v.rows_needed for v in unsure if v.rows_needed is not None]
    count, groups = answers.rows.n_rows, answers.judge.groups
    if groups is not None:
        count = int(groups.max()) + 1
    if not needed:
        return ""
    what = "everything" if len(needed) == len(unsure) else "more questions"
    unit = answers.unit
    return (
        f"You have {count:,} {unit}; about {max(needed):,} in all would answer {what}."
    )


def _largest_fault(v: Validation) -> float:
    """Return the largest factor by which any region, shown or named, is off."""
    regions: Iterable[Region] = (
        region
        for name, verdict in v.verdicts.items()
        if name not in ("bias", "coverage")
        for region in (*verdict.regions, *filter(None, [verdict.worst]))
    )
    off = [abs(math.log(max(each.estimate, 1e-9))) for each in regions]
    return math.exp(max(off, default=0.0))


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

    Sets whose uncertainties are right are simulated, and judged: how wide their limits
    are tells how many rows bring them within the tolerance. With so many, about two of
    three such sets get a "yes"; some more rows make it nearly certain.

    Parameters
    ----------
    p : Predictions, optional
        A set whose z-scores tell how heavy tails are, shuffled over its rows. By
        default errors are normal. If its rows belong together, groups are counted.
    tolerance : float, default 1.25
        The factor that u of no tenth of the rows may be off by.
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
    >>> rows_needed(tolerance=2.0, n_features=1) < 10_000
    True
    """
    factor, level = check_tolerance(tolerance), check_fraction(confidence, "confidence")
    n_features = check_count(n_features, "n_features", least=0)
    generator = rng_from(rng)
    p = None if p is None else check_predictions(p, complete=True)
    needed = NORMAL_ROWS / math.log(factor) ** 2
    for n_sets in SIMULATED_SETS:
        found = []
        for _ in range(n_sets):
            n = int(np.clip(needed, *PLANNED))
            rows = (
                _normal(n, n_features, generator) if p is None else _right(p, generator)
            )
            answers = Answers(Judge(rows, factor, level, generator))
            told = [v for v in answers.all().values() if v.answer == "cannot tell"]
            units = answers.judge.units
            found.append(
                max((v.rows_needed or 10 * units for v in told), default=units)
            )
        needed = float(np.quantile(found, PLANNED_SHARE))
    return int(float(f"{needed:.2g}"))


def _normal(n: int, n_features: int, rng: np.random.Generator) -> Predictions:
    """Return rows with normal errors, whose uncertainties are right."""
    u = rng.lognormal(sigma=0.5, size=n)
    features = {f"x{i}": rng.standard_normal(n) for i in range(n_features)}
    error = u * rng.standard_normal(n)
    return Predictions(error=error, y_std=u, features=features or None)


def _right(p: Predictions, rng: np.random.Generator) -> Predictions:
    """Return the rows with each other's z-scores, right on average and everywhere."""
    z = (p.errors.T / p.y_std).T
    z = z - np.average(z, axis=0, weights=p.weights)
    mean = np.average(z**2 if z.ndim == 1 else (z**2).mean(1), weights=p.weights)
    z = z[shuffles(p.n_rows, p.groups, 1, rng)[:, 0]] / math.sqrt(max(mean, 1e-300))
    return p._with(
        error=(z.T * p.y_std).T, y_true=None, y_pred=None, distributions=None
    )
