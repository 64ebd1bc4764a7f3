"""Evidence for changes in parts of the rows: runs of a feature's values, or labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints, Labels
from .evidence import Evidence

N_TENTHS = 10
MOST_LABELS = 20  # the most frequent ones are watched
SIZES = (0.5, 0.5)  # the stakes of the two factors that are bet on in a region


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
    """

    feature: str
    limits: Floats | None
    labels: list[str] | None
    evidence: Evidence

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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, text and lists."""
        return {
            "feature": self.feature,
            "limits": None if self.limits is None else self.limits.tolist(),
            "labels": self.labels,
            "evidence": self.evidence.to_dict(),
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Regions:
        """Return what :meth:`to_dict` wrote."""
        limits, labels = found["limits"], found["labels"]
        regions = cls(
            str(found["feature"]),
            None if limits is None else np.array(limits, dtype=float),
            None if labels is None else [str(each) for each in labels],
            Evidence.from_dict(found["evidence"]),
        )
        wanted = 2 * regions.members.shape[1], len(SIZES)
        if regions.evidence.stakes.shape != wanted or (
            regions.limits is not None and not (np.diff(regions.limits) > 0).all()
        ):
            msg = f"the regions of {regions.feature!r} are damaged."
            raise ValueError(msg)
        return regions


def _members(n_parts: int, *, pairs: bool) -> Floats:
    single = np.eye(n_parts)
    return np.hstack([single, single[:, :-1] + single[:, 1:]]) if pairs else single
