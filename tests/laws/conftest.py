"""What laws are stated of: rows as users have them, with all that they may have."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.recalibration.scalings import SCALINGS

LEVELS = np.array([0.02, 0.1, 0.5, 0.9, 0.98])


@dataclass(frozen=True)
class Columns:
    """Columns as a user has them, before they are Predictions."""

    u: np.ndarray
    error: np.ndarray
    mass: np.ndarray
    kind: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None

    def take(self, which):
        """Return some of the rows, or all in another order."""
        columns = {
            name: None if column is None else column[which]
            for name, column in vars(self).items()
        }
        return Columns(**columns)

    def in_unit(self, unit):
        """Return the same errors and uncertainties, measured in another unit."""
        return replace(self, u=unit * self.u, error=unit * self.error)

    def predictions(self):
        """Return them as Predictions."""
        return ss.Predictions(
            y_std=self.u,
            error=self.error,
            features={"mass": self.mass, "kind": self.kind},
            groups=self.groups,
            weights=self.weights,
        )


@st.composite
def columns(draw, least=45, most=260, numbers=False, complete=False):
    """Draw rows with ties, zeros, gaps, labels, vectors, groups and weights, or none.

    With `numbers` errors are numbers; `complete` rows miss no feature.
    """
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    df = draw(st.sampled_from([3, 6, 100]))
    u = rng.lognormal(0, draw(st.sampled_from([0.05, 0.5, 1.0])), n)
    mass = rng.normal(size=n)
    kind = rng.choice(["a", "b", "01", "rare"], n, p=[0.5, 0.3, 0.17, 0.03])
    factor = np.exp(0.4 * mass + 0.4 * (kind == "a"))
    error = u * factor * rng.standard_t(df, n)
    if draw(st.booleans(), label="biased"):
        error = error + 0.5 * u
    if draw(st.booleans(), label="ties"):
        u = np.round(u, 1) + 0.1
        mass = np.round(mass, 1)
        error = np.round(error, 1)
    if draw(st.booleans(), label="zeros"):
        error = error * (rng.random(n) < 0.7)
    if not complete and draw(st.booleans(), label="gaps"):
        mass = np.where(rng.random(n) < 0.1, np.nan, mass)
    if not numbers and draw(st.booleans(), label="vectors"):
        error = np.stack([error, rng.permutation(error)], axis=1)
    groups = weights = None
    if draw(st.booleans(), label="grouped"):
        groups = rng.integers(0, n // 4, n)
    if draw(st.booleans(), label="weighted"):
        weights = rng.uniform(0.3, 3, n)
    return Columns(u, error, mass, kind, groups, weights)


OF_COLUMNS = {
    "by a number": lambda: ss.BinwiseScaling(5, by="mass", prior_rows=5),
    "by a category": lambda: ss.BinwiseScaling(by="kind"),
    "by a pair": lambda: ss.BinwiseScaling((3, 2), by=("u", "mass"), prior_rows=5),
    "raked on a line": lambda: ss.RakedScaling(base="linear"),
}
EVERY = SCALINGS | OF_COLUMNS
WITHOUT_GAPS = {"by a number", "by a pair"}  # which refuse numbers that are missing


@st.composite
def cases(draw, **options):
    """Draw rows, and the name of a scaling that can learn from them."""
    name = draw(st.sampled_from(sorted(EVERY)))
    return draw(columns(**options, complete=name in WITHOUT_GAPS)), name


def fitted(name, p, **options):
    """Return a recalibrator that has learned from rows by a scaling."""
    return ss.Recalibrator(EVERY[name](), **options).fit(p)


def read_off(q):
    """Return what users read off recalibrated rows: u, and quantiles or a radius."""
    d = q.distributions
    limits = d.radius(0.9) if q.is_vector else d.quantile(LEVELS)
    return np.column_stack([q.y_std, limits])


@pytest.fixture(scope="session")
def one_folder(tmp_path_factory):
    """One folder for all the examples of a law."""
    return tmp_path_factory.mktemp("laws")
