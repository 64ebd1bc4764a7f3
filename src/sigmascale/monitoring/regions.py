"""Evidence for changes in parts of the rows: runs of a feature's values, or labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._support.checks import Floats, Ints, Labels
from .evidence import Evidence
from .reference import N_BETS, Payment, Reference

N_TENTHS = 10
MOST_LABELS = 20  # the most frequent ones are watched
SIZES = (0.5, 0.5)  # the stakes of the two factors that are bet on in a region
LEAST = 20  # rows of a calibration set in a part; with fewer nothing is bet on it


class OwnPayment(NamedTuple):
    """What rows pay, each relative to what is normal in its own part.

    `parts` has the payments of each part that is bet on, and which rows are its own.
    """

    ratios: Floats
    parts: dict[int, tuple[Ints, Payment]]


@dataclass
class Regions:
    """The regions of one feature: tenths and pairs of neighbours, or labels.

    Attributes
    ----------
    feature : str
        Its name.
    limits : array of float, or None
        Numbers between the parts of a feature of numbers.
    labels : list of str, or None
        The labels of one of labels.
    evidence : Evidence
        That of each region, for uncertainties that are too small, and then for those
        that are too large.
    normal : dict of int to Reference
        What is normal in each part, if the calibration set has the feature; otherwise
        it is what is normal for all rows.
    """

    feature: str
    limits: Floats | None
    labels: list[str] | None
    evidence: Evidence
    normal: dict[int, Reference] = field(default_factory=dict)

    @classmethod
    def learn(
        cls, feature: str, values: Labels, share: float, row: int
    ) -> Regions | None:
        """Return the regions of a feature, or None if it has but one value.

        Parameters
        ----------
        feature : str
            Its name.
        values : array
            Its values in some rows.
        share : float
            What is staked on all of its regions.
        row : int
            The row from which on they are watched.
        """
        limits, labels = None, None
        if values.dtype.kind == "f":
            tenths = np.quantile(values, np.arange(1, N_TENTHS) / N_TENTHS)
            limits = np.unique(tenths)
            limits = limits[limits > values.min()]
            n_parts = limits.size + 1
        else:
            found, counts = np.unique(values.astype(str), return_counts=True)
            labels = found[np.argsort(-counts, kind="stable")][:MOST_LABELS].tolist()
            n_parts = len(labels)
        if n_parts < 2:
            return None
        n_regions = _members(n_parts, pairs=limits is not None).shape[1]
        shares = np.full(2 * n_regions, share / (2 * n_regions))
        return cls(feature, limits, labels, Evidence.begin(shares, row, SIZES))

    @property
    def n_parts(self) -> int:
        """How many parts the values are sorted into."""
        if self.limits is not None:
            return self.limits.size + 1
        return len(self.labels or [])

    @property
    def members(self) -> Floats:
        """Which parts (rows) belong to which regions (columns): 1, or else 0."""
        return _members(self.n_parts, pairs=self.limits is not None)

    def parts(self, values: Labels) -> Ints:
        """Return the part of each value; those of unknown labels have the last number.

        This number is one more than there are parts.
        """
        if self.limits is not None:
            return np.searchsorted(self.limits, values, side="right")
        place = {label: i for i, label in enumerate(self.labels or [])}
        return np.array([place.get(str(each), len(place)) for each in values])

    def learn_normal(self, z: Floats, values: Labels, rng: np.random.Generator) -> None:
        """Learn what is normal in each part from the rows of a calibration set."""
        codes = self.parts(values)
        for part in range(self.n_parts):
            own = z[codes == part]
            if own.size >= LEAST and own.any():
                self.normal[part] = Reference.of(own, rng)

    def pay(
        self, z: Floats, codes: Ints, rng: np.random.Generator
    ) -> OwnPayment | None:
        """Return what rows pay relative to their own parts, if these are known."""
        if not self.normal:
            return None
        ratios, parts = np.ones((z.size, N_BETS)), {}
        for part, reference in self.normal.items():
            rows = np.flatnonzero(codes == part)
            if rows.size:
                payment = reference.pay(z[rows], rng)
                parts[part] = rows, payment
                ratios[rows] = payment.ratios
        return OwnPayment(ratios, parts)

    def keep(self, paid: OwnPayment, n: int) -> None:
        """Remember the first n rows of those that have paid."""
        for part, (rows, payment) in paid.parts.items():
            kept = int(np.searchsorted(rows, n))
            if kept:
                self.normal[part].keep(payment, kept)

    def mean_size(self, kind: int) -> float | None:
        """Return the usual mean of abs(z) in the region of a kind, if it is known."""
        members = np.flatnonzero(self.members[:, kind % self.members.shape[1]])
        known = [self.normal[part] for part in members.tolist() if part in self.normal]
        sizes = [each.size.n_values for each in known]
        means = [each.mean_size for each in known]
        return float(np.average(means, weights=sizes)) if known else None

    def totals(self, codes: Ints, blocks: Ints, values: Floats) -> Floats:
        """Return sums of columns of values by block and region, shape (b, r, c)."""
        n_blocks, n_codes = int(blocks[-1]) + 1, self.n_parts + 1
        cell = blocks * n_codes + codes
        sums = [
            np.bincount(cell, each, n_blocks * n_codes).reshape(n_blocks, n_codes)
            for each in values.T
        ]
        by_part = np.stack(sums, axis=1)[:, :, :-1]  # without unknown labels
        return np.moveaxis(by_part @ self.members, 1, 2)

    def words(self, kind: int) -> str:
        """Return which rows belong to the region of a kind."""
        parts = np.flatnonzero(self.members[:, kind % self.members.shape[1]])
        if self.limits is None:
            return f"{self.feature} = {(self.labels or [])[parts[0]]}"
        low, high = parts[0] - 1, parts[-1]
        if low < 0:
            return f"{self.feature} < {self.limits[high]:.4g}"
        if high >= self.limits.size:
            return f"{self.feature} ≥ {self.limits[low]:.4g}"
        return f"{self.limits[low]:.4g} ≤ {self.feature} < {self.limits[high]:.4g}"

    @property
    def is_sound(self) -> bool:
        """Whether limits ascend, with evidence of each region; for those from files."""
        ascends = self.limits is None or bool((np.diff(self.limits) > 0).all())
        wanted = 2 * self.members.shape[1], len(SIZES)
        return ascends and self.evidence.stakes.shape == wanted


def _members(n_parts: int, *, pairs: bool) -> Floats:
    single = np.eye(n_parts)
    return np.hstack([single, single[:, :-1] + single[:, 1:]]) if pairs else single
