"""Several uncertainties of the same rows: which is better, with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from .._support.checks import Floats, check_fraction
from .._support.notices import quiet
from .._support.render import Cells, Result, html_table, text_table
from .._support.text import WIDTH, listed, quoted, shorten
from ..exceptions import InvalidInputError
from ..predictions import Predictions, check_predictions
from .intervals import Estimate, mean_interval
from .losses import energy_scores, interval_scores, is_held, normal_nll

SCORED_COVERAGE = 0.95  # of the intervals that are scored
TITLES = {
    "crps": "CRPS",
    "energy_score": "energy score",
    "nll": "NLL",
    "interval_score": "interval score",
    "coverage": "95 % hold",
}
_SAME = 1e-9  # relative, by which truths and scores may differ and be the same


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Scores of several predictions of the same rows, and paired differences.

    Attributes
    ----------
    scores : dict of str to dict of str to float
        By name: the mean "crps" (of vectors "energy_score"), the mean "nll" of normal
        errors, the mean "interval_score" of 95 % intervals, all of which are better the
        lower they are, and "coverage", the share of truths that these intervals hold.
        Of vectors, the intervals are balls, and have no score.
    differences : dict of str to dict of str to Estimate
        How much larger each score is than that of the first, row by row, with its
        interval. Below 0 is better.
    best : str
        The one with the lowest mean CRPS, or energy score.
    alike : tuple of str
        Those that cannot be told from the best: their paired differences may be 0, with
        one error rate for all of them together.
    confidence : float
        That of intervals.
    units : str
        What intervals count: "rows" or "groups".
    """

    scores: dict[str, dict[str, float]]
    differences: dict[str, dict[str, Estimate]]
    best: str
    alike: tuple[str, ...]
    confidence: float
    units: str

    @property
    def names(self) -> tuple[str, ...]:
        """What is compared; the first is what others are compared with."""
        return tuple(self.scores)

    @property
    def main(self) -> str:
        """The score by which one is better: "crps", or "energy_score" of vectors."""
        return next(iter(self.scores[self.names[0]]))

    @property
    def sentence(self) -> str:
        """Which is better, as far as that can be told."""
        by, best = TITLES[self.main], shorten(self.best, 40)
        if len(self.alike) == len(self.names) - 1:
            return (
                f"By {by}, it cannot be told which is better: {best} has the lowest, "
                "perhaps by chance."
            )
        others = listed(shorten(name, 40) for name in self.alike)
        but = f"; it cannot be told from {others}" if self.alike else ""
        return f"By {by}, {best} is best{but}."

    def answer(self, name: str) -> str:
        """Whether one is "better" or "worse" than the first, or "cannot tell"."""
        found = self.differences[name][self.main]
        return (
            "better" if found.high < 0 else "worse" if found.low > 0 else "cannot tell"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the answer of each and the sentence."""
        answers = {name: self.answer(name) for name in self.differences}
        return super().to_dict() | {"answers": answers, "sentence": self.sentence}

    def _cells(self) -> Cells:
        names = list(self.scores[self.names[0]])
        rows = []
        for name, scores in self.scores.items():
            numbers = [f"{scores[each]:.4g}" for each in names[:-1]]
            rows.append(
                [shorten(name, 30), *numbers, f"{100 * scores['coverage']:.1f}"]
            )
        return ["", *(TITLES[each] for each in names)], rows

    def _paired(self) -> Cells:
        """Return the differences to the first, as a table."""
        rows = []
        for name, found in self.differences.items():
            cells = [each.signed for each in list(found.values())[:2]]
            rows.append([shorten(name, 30), *cells, self.answer(name)])
        first = shorten(self.names[0], 20)
        by = TITLES[self.main]
        return [f"against {first}", by, TITLES["nll"], f"by {by}"], rows

    @property
    def _intervals(self) -> str:
        share = f"{100 * self.confidence:g} %"
        return f"Paired differences, with {share} intervals that count {self.units}:"

    def __str__(self) -> str:
        """Return scores, paired differences, and what can be told from them."""
        paired = f"{self._intervals}\n{text_table(*self._paired())}"
        return f"{super().__str__()}\n\n{paired}\n\n{fill(self.sentence, WIDTH)}"

    def _repr_html_(self) -> str:
        return (
            f"<p>{escape(self.sentence)}</p>{html_table(*self._cells())}"
            f"<p>{escape(self._intervals)}</p>{html_table(*self._paired())}"
        )


def compare(
    predictions: Mapping[str, Predictions], *, confidence: float = 0.95
) -> Comparison:
    """Return scores of several predictions of the same rows, and paired differences.

    They may be those of several models, or of one model before and after
    recalibrators. Which is better is told from differences of the CRPS, row by row.

    Parameters
    ----------
    predictions : dict of str to Predictions
        Two or more, by name, of the same rows in the same order, with errors. All
        others are compared with the first. Their distributions are scored where they
        have any, and normal ones else. Groups and weights, where given, are the same.
    confidence : float, default 0.95
        That of intervals.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_diabetes()
    >>> sets = {"raw": data.test}
    >>> for name, scaling in {"one factor": ss.TemperatureScaling()}.items():
    ...     r = ss.Recalibrator(scaling).fit(data.calibration)
    ...     sets[name] = r.apply(data.test)
    >>> found = ss.compare(sets)
    >>> found.best, found.answer("one factor")
    ('one factor', 'cannot tell')
    """
    level = check_fraction(confidence, "confidence")
    rows = _same_rows(predictions)
    first = next(iter(rows.values()))
    with quiet():
        losses = {name: _losses(each) for name, each in rows.items()}
    groups, weights = first.groups, first.weights

    def difference(score: str, one: str, other: str, level: float) -> Estimate:
        values = losses[one][score] - losses[other][score]
        # those of equal models differ by rounding alone
        values[np.abs(values) <= _SAME * np.abs(losses[other][score])] = 0
        return mean_interval(values, confidence=level, groups=groups, weights=weights)

    names = list(rows)
    # intervals may be infinite, if too few rows were held out: these have no score
    finite = [
        score
        for score in losses[names[0]]
        if all(np.isfinite(each[score]).all() for each in losses.values())
    ]
    scored = [each for each in finite if each != "coverage"]
    scores = {
        name: {score: first.mean(each[score]) for score in finite}
        for name, each in losses.items()
    }
    best = min(names, key=lambda name: scores[name][scored[0]])
    # one error rate for all comparisons with the best
    together = 1 - (1 - level) / (len(names) - 1)
    others = [name for name in names if name != best]
    return Comparison(
        scores=scores,
        differences={
            name: {each: difference(each, name, names[0], level) for each in scored}
            for name in names[1:]
        },
        best=best,
        alike=tuple(
            name
            for name in others
            if difference(scored[0], name, best, together).low <= 0
        ),
        confidence=level,
        units="rows" if groups is None else "groups",
    )


def _losses(p: Predictions) -> dict[str, Floats]:
    """Return the scores of each row."""
    losses = {
        "energy_score" if p.is_vector else "crps": energy_scores(p),
        "nll": normal_nll(p),
    }
    if not p.is_vector:
        losses["interval_score"] = interval_scores(p, SCORED_COVERAGE)
    losses["coverage"] = is_held(p, SCORED_COVERAGE).astype(np.float64)
    return losses


def _same_rows(predictions: Any) -> dict[str, Predictions]:
    """Return predictions by name, with the same groups and weights, if they are."""
    if not isinstance(predictions, Mapping) or len(predictions) < 2:
        msg = (
            "Pass a dict of two or more Predictions of the same rows, such as "
            '{"raw": p, "recalibrated": r.apply(p)}; found '
            f"{quoted(predictions)}."
        )
        raise InvalidInputError(msg, "no-predictions")
    rows = {str(name): check_predictions(each) for name, each in predictions.items()}
    (one, first), *others = rows.items()
    for name, p in others:
        wrong = _difference(first, p)
        if wrong:
            msg = (
                f"All predictions must be of the same rows; {quoted(one)} and "
                f"{quoted(name)} have different {wrong}. Bring them into one order."
            )
            raise InvalidInputError(msg, "other-rows", names=[one, name])
    known: dict[str, Any] = {}
    for field in ("groups", "weights"):
        given = [getattr(p, field) for p in rows.values()]
        known[field] = next((each for each in given if each is not None), None)
    return {name: p._with(**known) for name, p in rows.items()}


def _difference(first: Predictions, p: Predictions) -> str:
    """Return in what rows differ that cannot be the same ones; nothing if they may."""
    if p.errors.shape != first.errors.shape:
        return f"shapes, {first.errors.shape} and {p.errors.shape}"
    if p.y_pred is not None and first.y_pred is not None:
        near = _SAME * float(np.abs(first.target).max())
        if np.abs(p.target - first.target).max() > near:
            return "true values"
    for field in ("groups", "weights"):
        one, other = getattr(first, field), getattr(p, field)
        if one is not None and other is not None and not np.allclose(one, other):
            return field
    return ""
