"""Several uncertainties of the same rows: which is better, with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from .._support import numerals
from .._support.checks import Floats, check_fraction
from .._support.notices import quiet
from .._support.progress import working
from .._support.render import Cells, Result, html_table, text_table
from .._support.text import WIDTH, listed, quoted, shorten
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from .intervals import Estimate, mean_interval
from .losses_by_row import energy_scores, interval_scores, is_held, normal_nll

SCORED_COVERAGE = 0.95  # of the intervals that are scored
TITLES = {
    "crps": "CRPS",
    "energy_score": "energy score",
    "nll": "NLL",
    "interval_score": "interval score",
    "coverage": "95 % cover",
}
_SAME = 1e-9  # relative, by which true values and scores may differ and be the same


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Scores of several predictions of the same rows, and paired differences.

    Attributes
    ----------
    scores : dict of str to dict of str to float
        By name: the mean "crps" (of vectors "energy_score"), the mean "nll" of normal
        errors, the mean "interval_score" of 95 % intervals, all of which are better the
        lower they are, and "coverage", the share of true values that these cover.
        Of vectors, the intervals are balls, and have no score.
    differences : dict of str to dict of str to Estimate
        How much larger each score is than that of the first, row by row, with its
        interval. Below 0 is better.
    best : str
        The one with the lowest mean CRPS, or energy score.
    alike : tuple of str
        Those not significantly worse than the best: their paired differences may be 0,
        with one error rate for all of them together.
    confidence : float
        That of intervals.
    units : str
        What intervals count: "rows" or "groups".

    Notes
    -----
    `to_frame` has a row for each, with its scores and the relative change of the main
    one against the first, between "change_low" and "change_high".
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
        """Which is best, and which are not significantly worse."""
        by = TITLES[self.main]
        best = shorten(self.best, 40)
        if not self.alike:
            return f"Best by {by}: {best}."
        if len(self.alike) == len(self.names) - 1:
            return f"No significant difference by {by}; {best} has the lowest."
        alike = listed(shorten(name, 40) for name in self.alike)
        return f"Best by {by}: {best}, not significantly better than {alike}."

    def answer(self, name: str) -> str:
        """Whether one is "better" or "worse" than the first, or "inconclusive"."""
        difference = self.differences[name][self.main]
        if difference.high < 0:
            return "better"
        return "worse" if difference.low > 0 else "inconclusive"

    def change(self, name: str) -> Estimate:
        """Return the relative change of the main score against the first."""
        x = self.differences[name][self.main]
        unit = self.scores[self.names[0]][self.main] or 1.0
        return Estimate(x.value / unit, x.low / unit, x.high / unit, x.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the answer of each and the sentence."""
        answers = {name: self.answer(name) for name in self.differences}
        return super().to_dict() | {"answers": answers, "sentence": self.sentence}

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"name": [*self.scores]}
        for score in self.scores[self.names[0]]:
            columns[score] = [scores[score] for scores in self.scores.values()]
        changes = [self.change(name) for name in self.differences]
        for end in ("value", "low", "high"):
            name = "change" if end == "value" else f"change_{end}"
            columns[name] = [math.nan, *(getattr(x, end) for x in changes)]
        return columns

    def _cells(self, **columns: Mapping[str, str]) -> Cells:
        scored = self.scores[self.names[0]]
        others = [score for score in ("coverage", "interval_score") if score in scored]
        level = numerals.level(self.confidence)
        header = [f"{TITLES[self.main]} change [{level} limits]"]
        header += [TITLES[score] for score in others]
        rows = []
        for name, scores in self.scores.items():
            cells = [""]
            if name in self.differences:
                x = self.change(name)
                cells = [numerals.change(x.value, x.low, x.high)]
            for score in others:
                words = numerals.percent(scores[score], 1)
                if score != "coverage":
                    words = numerals.number(scores[score])
                cells.append(words)
            cells += [column.get(name, "") for column in columns.values()]
            rows.append([shorten(name, 30), *cells])
        return ["", *header, *columns], rows

    @property
    def _head(self) -> str:
        """What stands over the table."""
        first = self.names[0]
        score = numerals.number(self.scores[first][self.main])
        return (
            f"{TITLES[self.main]} of {shorten(first, 30)}: {score}; lower is better. "
            f"Changes are paired, by {self.units}."
        )

    def text(self, columns: Mapping[str, Mapping[str, str]] | None = None) -> str:
        """Return what is printed, with further columns.

        Parameters
        ----------
        columns : dict of str to dict of str to str, optional
            Cells by the head of the column, and by name.
        """
        table = text_table(*self._cells(**(columns or {})))
        head = fill(self._head, WIDTH)
        return f"{head}\n\n{table}\n\n{fill(self.sentence, WIDTH)}"

    def __str__(self) -> str:
        """Return scores, paired changes, and which is best."""
        return self.text()

    def _repr_html_(self) -> str:
        head = f"<p>{escape(self._head)}</p>"
        return f"{head}{html_table(*self._cells())}<p>{escape(self.sentence)}</p>"


@working("comparing")
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
    ('one factor', 'inconclusive')
    """
    level = check_fraction(confidence, "confidence")
    rows = _same_rows(predictions)
    names = list(rows)
    baseline = rows[names[0]]
    with quiet():
        losses = {name: _losses(of_name) for name, of_name in rows.items()}

    def difference(score: str, one: str, other: str, level: float) -> Estimate:
        values = losses[one][score] - losses[other][score]
        # those of equal models differ by rounding alone
        values[np.abs(values) <= _SAME * np.abs(losses[other][score])] = 0
        return mean_interval(
            values,
            confidence=level,
            groups=baseline.groups,
            weights=baseline.weights,
        )

    # the mean of each score that is finite for all: intervals may be infinite, if too
    # few rows were held out
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    for score in losses[names[0]]:
        if all(np.isfinite(losses[name][score]).all() for name in names):
            for name in names:
                scores[name][score] = baseline.mean(losses[name][score])

    # how all others differ from the first
    compared = [score for score in scores[names[0]] if score != "coverage"]
    differences = {}
    for name in names[1:]:
        differences[name] = {
            score: difference(score, name, names[0], level) for score in compared
        }

    # which are not significantly worse than the best, with one error rate for all
    main = compared[0]
    best = min(names, key=lambda name: scores[name][main])
    together = 1 - (1 - level) / (len(names) - 1)
    alike = []
    for name in names:
        if name != best and difference(main, name, best, together).low <= 0:
            alike.append(name)
    return Comparison(
        scores=scores,
        differences=differences,
        best=best,
        alike=tuple(alike),
        confidence=level,
        units="rows" if baseline.groups is None else "groups",
        _origin=baseline.origin,
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
    rows = {str(name): check_predictions(p) for name, p in predictions.items()}
    baseline, *others = rows
    for name in others:
        what = _difference(rows[baseline], rows[name])
        if what:
            msg = (
                f"All predictions must be of the same rows; {quoted(baseline)} and "
                f"{quoted(name)} have different {what}. Bring them into one order."
            )
            raise InvalidInputError(msg, "other-rows", names=[baseline, name])

    # groups and weights are those that any of them has
    shared: dict[str, Any] = {"groups": None, "weights": None}
    for p in reversed(rows.values()):
        if p.groups is not None:
            shared["groups"] = p.groups
        if p.weights is not None:
            shared["weights"] = p.weights
    return {name: p._with(**shared) for name, p in rows.items()}


def _difference(one: Predictions, other: Predictions) -> str:
    """Return in what rows differ that cannot be the same ones; nothing if they may."""
    if other.errors.shape != one.errors.shape:
        return f"shapes, {one.errors.shape} and {other.errors.shape}"
    if other.y_pred is not None and one.y_pred is not None:
        rounding = _SAME * float(np.abs(one.target).max())
        if np.abs(other.target - one.target).max() > rounding:
            return "true values"
    for field in ("groups", "weights"):
        of_one = getattr(one, field)
        of_other = getattr(other, field)
        if of_one is None or of_other is None:
            continue
        if not np.allclose(of_one, of_other):
            return field
    return ""
