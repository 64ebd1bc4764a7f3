"""A factor for each of several uncertainties, such as aleatoric and epistemic ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._support.checks import LARGEST, Floats, refuse_values
from .._support.weights import mean_of
from ..exceptions import InvalidInputError
from ..maps import Clip, Column, Constant, Node, Product, Root, Sum
from ..predictions import Predictions
from .base import VarianceScaler

LEAST = 1e-2  # of the smallest variance seen, which new rows get at least
STEPS, HALVINGS = 200, 30
ROUGHLY, CONVERGED = 1e-3, 1e-14  # changes of the loss that are small

Loss = Callable[[Floats], float]


class ComponentScaling(VarianceScaler):
    """Rescale several uncertainties and add them up, by maximum likelihood.

    The variance is a₁² u₁² + a₂² u₂² + ... + b². Many models say how much of their
    uncertainty is of one kind or another, aleatoric and epistemic ones for example;
    there is no reason why all should be wrong by the same factor.

    Parameters
    ----------
    components : list of int or str, optional
        The columns of X that are uncertainties, each at least 0. By default the first
        alone, which always is one.

    Attributes
    ----------
    a_ : dict of str to float
        The factor of each component, by the name of its column; 0 where the errors do
        not show it.
    b_ : float
        The root of what is added to the variance, in the unit of the error.

    See Also
    --------
    LinearScaling : for one uncertainty, of which a part can be subtracted, too.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> aleatoric, epistemic = rng.uniform(0, 1, (2, 20_000))
    >>> error = rng.normal(scale=np.hypot(aleatoric, 3 * epistemic))
    >>> X = np.column_stack([aleatoric, epistemic])
    >>> scaler = ComponentScaling(components=[0, 1]).fit(X, error)
    >>> {name: round(a, 1) for name, a in scaler.a_.items()}
    {'u': 1.0, 'X1': 3.0}
    """

    def __init__(
        self,
        components: list[int | str] | None = None,
    ) -> None:
        self.components = components

    does = (
        "several uncertainties are each multiplied by a factor of their own, squared "
        "and added up, with a constant, by maximum likelihood"
    )

    def _learn(self, rows: Predictions) -> Node:
        positions = self._positions(rows)
        squares = [_checked(rows, position) ** 2 for position in positions]
        e2 = rows.errors**2
        # in units in which all have the mean 1, so that no square overflows
        units = [rows.mean(x) or 1.0 for x in squares]
        e_unit = rows.mean(e2)
        table = np.column_stack(
            [*(x / unit for x, unit in zip(squares, units, strict=True)), 0 * e2 + 1]
        )
        found = nonnegative_variance(table, e2 / e_unit, rows.weights)
        slopes = found[:-1] * e_unit / np.array(units)
        self.a_ = {
            rows.names[position]: float(np.sqrt(slope))
            for position, slope in zip(positions, slopes, strict=True)
        }
        self.b_ = float(np.sqrt(found[-1] * e_unit))
        scaled = [
            Clip(Product((Constant(a), Column(position))), 0.0, LARGEST)
            for position, a in zip(positions, self.a_.values(), strict=True)
        ]
        terms = [*(Product((each, each)) for each in scaled), Constant(self.b_**2)]
        least = LEAST * float((table @ found).min()) * e_unit
        return Root(Clip(Sum(tuple(terms)), least, float(np.finfo(np.float64).max)))

    def _positions(self, rows: Predictions) -> list[int]:
        if self.components is None:
            return [0]
        positions = rows.positions(self.components, "components")
        if not positions or len(set(positions)) < len(positions):
            msg = (
                "`components` must name different columns of uncertainties, at least "
                f"one; found {self.components!r}."
            )
            raise InvalidInputError(msg)
        return positions

    def _learned_words(self) -> str:
        factors = ", ".join(f"{a:.4g} for {name}" for name, a in self.a_.items())
        return f"The factors are {factors}; b = {self.b_:.4g}, in the error's unit."


def _checked(rows: Predictions, position: int) -> Any:
    """Return a component, no value of which is negative."""
    values = rows.numbers(position)
    name = f"X[:, {rows.names[position]}]"
    refuse_values(
        values < 0,
        values,
        name,
        "at least 0, as components of the uncertainty are|Drop these rows, or take "
        "this column for a feature.",
    )
    return values


def nonnegative_variance(
    table: Floats, e2: Floats, weights: Floats | None = None
) -> Floats:
    """Return s >= 0 that minimises <ln v + e²/v>, v = table @ s, of unit means.

    Steps are those of Fisher scoring: e² is fitted to the table by least squares with
    the weights 1/v² and no s below 0, and a step that does not lower the loss is
    halved. The likelihood can have several maxima, so that each column alone, and all
    alike, are where the search starts.
    """
    # a variance of 0 would be infinitely likely if the error is 0, too
    positive = table.sum(axis=1)
    positive = positive[positive > 0]
    floor = 1e-6 * float(positive.min())

    def loss(s: Floats) -> float:
        v = np.maximum(table @ s, floor)
        return mean_of(np.log(v) + e2 / v, weights)

    n_columns = table.shape[1]
    starts = [np.full(n_columns, 1 / n_columns)]
    starts += [0.98 * each + 0.02 / n_columns for each in np.eye(n_columns)]
    roots = None if weights is None else np.sqrt(weights / weights.sum())
    descend = partial(_descend, table, e2, roots, floor, loss)
    found = [descend(s, ROUGHLY) for s in starts]
    best = descend(min(found, key=loss), CONVERGED)
    for k in np.argsort(best):  # what is too small to be seen is 0
        without = np.where(np.arange(n_columns) == k, 0.0, best)
        if without.any() and loss(without) <= loss(best) + CONVERGED:
            best = without
    return best


def _descend(
    table: Floats,
    e2: Floats,
    roots: Floats | None,
    floor: float,
    loss: Loss,
    s: Floats,
    enough: float,
) -> Floats:
    """Take steps downhill until one changes the loss by less than is `enough`.

    `roots` are those of the weights of rows.
    """
    from scipy import optimize

    lowest = loss(s)
    for _ in range(STEPS):
        weight = (1 if roots is None else roots) / np.maximum(table @ s, floor)
        weighted = table * weight[:, None]
        # least squares by a triangle as small as the columns are few
        normal = weighted.T @ weighted
        normal += 1e-13 * normal.max() * np.eye(normal.shape[0])  # columns may be equal
        triangle = np.linalg.cholesky(normal)
        right = np.linalg.solve(triangle, weighted.T @ (e2 * weight))
        wanted, _ = optimize.nnls(triangle.T, right)
        step, before = 1.0, lowest
        for _ in range(HALVINGS):
            tried = s + step * (wanted - s)
            new = loss(tried)
            if new < lowest:
                s, lowest = tried, new
                break
            step /= 2
        if before - lowest <= enough * max(1, abs(lowest)):
            break
    return s
