"""Verdicts on several targets, which share one error rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import check_fraction, check_pair
from .._support.render import TableFormat, as_table, html_table, shorten, text_table
from ..exceptions import InvalidInputError
from ..judging.scores import Scorecard
from ..judging.validation import AVERAGE, Answer, Validation
from ..judging.verdicts import FEWEST, validate
from ..predictions import Predictions, check_labels, group_codes, with_named_features
from .tables import (
    TargetRows,
    check_infinite,
    check_names,
    paired,
    read_columns,
    split_targets,
    weights_of,
)


@dataclass(frozen=True)
class TargetsValidation:
    """Verdicts on several targets.

    Attributes
    ----------
    targets : dict of str to Validation
        The verdicts on each, by its name.
    confidence : float
        One minus the chance that perfect targets get a "no" to anything.
    tolerance : float
        The factor by which u of a tenth of the rows may be too small unseen.
    """

    targets: dict[str, Validation] = field(repr=False)
    confidence: float
    tolerance: float

    @property
    def answer(self) -> Answer:
        """The worst answer: "no" before "cannot tell" before "yes"."""
        answers = {each.answer for each in self.targets.values()}
        return next(each for each in ("no", "cannot tell", "yes") if each in answers)

    @property
    def passed(self) -> bool:
        """Whether every answer is "yes"."""
        return self.answer == "yes"

    @property
    def scores(self) -> dict[str, Scorecard]:
        """The scorecard of each target."""
        return {name: each.scores for name, each in self.targets.items()}

    @property
    def failures(self) -> dict[str, list[str]]:
        """The questions that were answered by "no", of each target that has some."""
        found = {
            name: [v.name for v in each.verdicts.values() if v.answer == "no"]
            for name, each in self.targets.items()
        }
        return {name: questions for name, questions in found.items() if questions}

    @property
    def summary(self) -> str:
        """What was found, in plain words: how many targets pass, and what fails."""
        counts = {
            answer: sum(each.answer == answer for each in self.targets.values())
            for answer in ("yes", "no", "cannot tell")
        }
        words = [
            f"{len(self.targets)} targets: {counts['yes']} right, {counts['no']} not "
            f"right, {counts['cannot tell']} of which one cannot tell."
        ]
        for name, questions in self.failures.items():
            verdicts = self.targets[name].verdicts
            words += [f"{name}: {verdicts[each].sentence}" for each in questions]
        return "\n".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts on all targets, and what they rest on."""
        return {
            "answer": self.answer,
            "passed": self.passed,
            "summary": self.summary,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "targets": {
                name: each.to_dict() | {"scores": each.scores.to_dict()}
                for name, each in self.targets.items()
            },
        }

    def to_table(self, format: TableFormat = "text") -> str:
        """Return the targets as a table of text, Markdown or LaTeX.

        Parameters
        ----------
        format : {"text", "markdown", "latex"}, default "text"
            How the table is written.

        Returns
        -------
        str
        """
        return as_table(_HEADER, self._lines(), format)

    def _lines(self) -> list[tuple[str, ...]]:
        lines: list[tuple[str, ...]] = []
        for name, each in self.targets.items():
            interval = each.verdicts[AVERAGE].interval
            assert interval is not None
            zms, low, high = interval
            fails = ", ".join(self.failures.get(name, ["-"]))
            lines.append(
                (
                    shorten(name, 24),
                    str(each.scores.n_rows),
                    f"{zms:.2f} [{low:.2f}, {high:.2f}]",
                    f"{each.scores.nll:.3f}",
                    each.answer,
                    shorten(fails, 24),
                )
            )
        return lines

    def __str__(self) -> str:
        """Return the table of targets, and what fails in words."""
        return f"{text_table(_HEADER, self._lines())}\n\n{self.summary}"

    def _repr_html_(self) -> str:
        return html_table(_HEADER, self._lines())


_HEADER = ("target", "rows", "<Z²>", "NLL", "answer", "fails")


def validate_targets(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    labels: Any = None,
    names: list[str] | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    tolerance: float = 2.0,
    joint: bool = True,
    n_bins: int | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> TargetsValidation:
    """Return verdicts on several targets, which share one error rate.

    Each target is judged by :func:`validate`, with its part of the error rate: all of
    it divided by the number of targets that have enough rows to be judged (Bonferroni).
    So the chance that any of them gets a "no", if all are right, is that of one. This
    holds however much targets have in common, such as the components of a force. Rows
    that belong together, such as the atoms of a structure, must be in one of `groups`.

    Parameters
    ----------
    error : array-like or data frame of shape (n, n_targets)
        Errors, reference minus prediction; entries that are missing (NaN) are left out.
    uncertainty : array-like or data frame of shape (n, n_targets)
        Standard uncertainties, strictly positive where there is an error.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features, which all targets share.
    labels : array-like of shape (n,), optional
        The targets of a long table: error and uncertainty are one column then.
    names : list of str, optional
        The names of the targets; by default the columns of `error`, or y0, y1, ...
    groups : array-like of shape (n,), optional
        Labels of rows that belong together: atoms of a structure, repeats of a sample.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0.
    tolerance : float, default 2
        The failure that must not hide: a factor of u, for a tenth of the rows.
    joint : bool, default True
        Whether to ask what u and the features together say about z².
    n_bins : int, optional
        Number of bins of each numeric variable, for scores and local intervals.
    confidence : float, default 0.95
        One minus the error rate of all targets and questions together.
    rng : int, Generator or None, default 0
        Seed of bootstrap and simulation.

    Returns
    -------
    TargetsValidation

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, (1000, 2))
    >>> error = rng.normal(scale=u * [1.0, 1.3])
    >>> verdicts = validate_targets(error, u, names=["gap", "dipole"])
    >>> print(verdicts.to_table())
    target  rows               <Z²>    NLL  answer    fails
    -------------------------------------------------------
    gap     1000  1.01 [0.90, 1.16]  1.815     yes        -
    dipole  1000  1.65 [1.46, 1.89]  2.123      no  average
    """
    level = check_fraction(confidence, "confidence")
    targets = _targets(
        error, uncertainty, features, labels, names, groups, sample_weight
    )
    for target in targets:
        if target.rows.n_rows < 2:
            msg = (
                f"target {target.name!r} has {target.rows.n_rows} known error(s); at "
                "least 2 are needed. Leave it out."
            )
            raise InvalidInputError(msg)
    # those that are too few get no "no", and need no part of the error rate
    judged = sum(_n_units(each.rows) >= FEWEST for each in targets)
    of_each = 1 - (1 - level) / max(1, judged)
    found = {}
    for target in targets:
        rows = target.rows
        with target.told():
            e, u = check_pair(rows.errors, rows.uncertainty)
            weights, rows = rows.weights, rows.changed(error=e, weights=None)
            rows = rows.with_uncertainty(u).weighted(weights, "error")
            found[target.name] = validate(
                rows,
                tolerance=tolerance,
                joint=joint,
                n_bins=n_bins,
                confidence=of_each,
                rng=rng,
            )
    return TargetsValidation(found, level, float(tolerance))


def _targets(
    error: Any,
    uncertainty: Any,
    features: Any,
    labels: Any,
    names: Any,
    groups: Any,
    sample_weight: Any,
) -> list[TargetRows]:
    """Return the rows of each target that are to be judged."""
    errors, found = read_columns(error, "error")
    u, called = read_columns(uncertainty, "uncertainty")
    if u.shape != errors.shape:
        msg = (
            "`error` and `uncertainty` must have the same shape, a column for each "
            f"target; found {errors.shape} and {u.shape}."
        )
        raise InvalidInputError(msg)
    n_rows, n_targets = errors.shape
    together = group_codes(groups, errors, "error")
    table = Predictions.of(list(u.T), ["u"] * n_targets)
    table = with_named_features(table, features)
    by, order, known = None, None, None
    if labels is not None:
        if n_targets != 1 or names is not None:
            msg = (
                "`labels` are for long tables, whose errors are one column: leave "
                "`names` out."
            )
            raise InvalidInputError(msg)
        by, told = len(table.columns), check_labels(labels, errors, "labels")
        table = table.changed(
            columns=(*table.columns, told.codes),
            names=(*table.names, "labels"),
            categories=(*table.categories, told.labels),
        )
    else:
        known = check_names(names, found or called, n_targets)
        if found and called:
            order = paired(found, called, "uncertainty")
    check_infinite(errors, known or ("error",), n_rows)
    return split_targets(
        table,
        known,
        by=by,
        order=order,
        errors=errors,
        groups=together,
        weights=weights_of(sample_weight, n_rows, "error"),
    )


def _n_units(rows: Predictions) -> int:
    """Return the number of rows, or of groups, that are independent of each other."""
    return rows.n_rows if rows.groups is None else np.unique(rows.groups).size
