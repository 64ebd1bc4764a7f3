"""What leaves: the map, and what else is asked for as maps of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.labels import Label
from ..bins.partitions import LabelBins
from ..exceptions import InvalidInputError
from ..maps import Code, Column, Constant, Lookup, Node, in_order
from ..maps.distributions import check_coverage, check_levels
from ..maps.laws import NORMAL, EmpiricalLaw, Law
from ..maps.nodes import columns_of
from ..persistence import SavedMap
from ..persistence.files import saved_map

SCALE, CATEGORY = Column(0), Column(1, "label")  # what multiples are maps of


@dataclass(frozen=True)
class Learned:
    """What a recalibrator has learned, from a fit or from a file.

    Attributes
    ----------
    saved : SavedMap
        The map, and what is known of it.
    shift : Node or None
        The shift, if anything that is asked for needs it.
    shifted : bool
        Whether shifted predictions are asked for.
    limits, quantiles : list of Node
        Multiples of the scale, as maps of the scale and, if limits have a guarantee by
        category, of the category.
    levels : list of float
        The levels of quantiles.
    coverage : float or None
        The coverage of limits.
    categories : LabelBins or None
        The categories, if limits depend on them.
    """

    saved: SavedMap
    shift: Node | None
    shifted: bool
    limits: Sequence[Node]
    quantiles: Sequence[Node]
    levels: Sequence[float]
    coverage: float | None
    categories: LabelBins | None

    @classmethod
    def of(
        cls,
        scaler: Any,
        coverage: float | None,
        quantiles: Sequence[float],
        *,
        asymmetric: bool,
        shift: bool,
    ) -> Learned:
        """Return what a fitted recalibrator, or a file's map, has learned."""
        saved = scaler if isinstance(scaler, SavedMap) else _saved(scaler)
        if shift and saved.shift is None:
            msg = (
                "`shift` must not be asked for: no shift was learned. Fit with "
                'Recalibrator(shift="auto"), which learns one if unseen rows gain.'
            )
            raise InvalidInputError(msg)
        law: Law = saved.law or NORMAL
        levels = np.atleast_1d(check_levels(quantiles)) if len(quantiles) else ()
        multiples = _multiples(law, levels)
        limits: list[Node] = []
        conformal = None if coverage is None else saved.conformal
        categories = None if conformal is None else conformal.categories
        if coverage is not None:
            coverage = check_coverage(coverage)
            if conformal is None:
                limits = _multiples(law, [(1 - coverage) / 2, (1 + coverage) / 2])
            else:
                # labels never seen are the first by code, and the last of these
                limits = [
                    Constant(float(each[0]))
                    if categories is None
                    else Lookup((Code(CATEGORY, categories),), np.roll(each, 1))
                    for each in conformal.limits(coverage, asymmetric=asymmetric).T
                ]
        moved = saved.shift if shift or limits or multiples else None
        found = (saved, moved, shift, limits, multiples, list(levels), coverage)
        return cls(*found, categories)

    @property
    def roots(self) -> list[Node]:
        """The maps of the columns: the scale, and the shift if there is one."""
        return (
            [self.saved.root] if self.shift is None else [self.saved.root, self.shift]
        )

    @property
    def columns(self) -> list[tuple[int, str]]:
        """The columns that are read, and as what; the uncertainty is always one."""
        read = (column for root in self.roots for column in columns_of(root))
        return sorted({(0, "number"), *((each.position, each.kind) for each in read)})

    @property
    def text_labels(self) -> dict[int, list[Label]]:
        """The labels of columns that are text, by position."""
        return {
            node.x.position: list(node.partition.labels)
            for root in self.roots
            for node in in_order(root)
            if isinstance(node, Code)
            and isinstance(node.x, Column)
            and isinstance(node.partition, LabelBins)
            and node.partition.are_text
        }


def _saved(scaler: Any) -> SavedMap:
    """Return what a file would say of a fitted recalibrator."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(scaler)
    if not isinstance(getattr(scaler, "map_", None), Node):
        msg = (
            f"`scaler` must be a recalibrator; found {type(scaler).__name__}. "
            "Of a recalibrated regressor, export its recalibrator."
        )
        raise InvalidInputError(msg)
    return saved_map(scaler)


def _multiples(law: Law, levels: Any) -> list[Node]:
    """Return quantiles of z as maps of the scale: of one law, or by bins of it."""
    if not len(levels):
        return []
    p = np.asarray(levels, dtype=np.float64)
    if isinstance(law, EmpiricalLaw) and law.bins.n_bins > 1:
        code, codes = Code(SCALE, law.bins), np.arange(law.bins.n_bins)
        tables = law.quantiles(p, codes).T
        return [Lookup((code,), np.append(np.nan, table)) for table in tables]
    z = law.quantiles(p, np.zeros(1, dtype=np.int64))[0]
    return [Constant(float(each)) for each in z]
