"""What leaves: the map, the names of its columns, and limits for intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._support.checks import Floats
from .._support.version import __version__
from ..bins.partitions import LabelBins
from ..exceptions import InvalidInputError
from ..maps import Column, Node
from ..maps.conformal import ConformalScores
from ..maps.distributions import check_coverage
from ..maps.nodes import columns_of
from ..persistence import SavedMap
from ..predictions import fitted_names


@dataclass(frozen=True)
class Learned:
    """What a recalibrator has learned, from a fit or from a file.

    Attributes
    ----------
    root : Node
        The map.
    names : tuple of str
        The columns of the conditioning table.
    smallest : float
        What stands for uncertainties of 0.
    method : str
        The name of the recalibrator's class.
    library : str
        The version of sigmascale that it was fitted with.
    limits : array of shape (n_categories + 1, 2) or None
        Limits of z by category, the last ones for categories never seen; if asked for.
    categories : LabelBins or None
        The categories, if limits depend on them.
    coverage : float or None
        The coverage of the limits.
    """

    root: Node
    names: tuple[str, ...]
    smallest: float
    method: str
    library: str
    limits: Floats | None = None
    categories: LabelBins | None = None
    coverage: float | None = None

    @classmethod
    def of(cls, scaler: Any, coverage: float | None, *, asymmetric: bool) -> Learned:
        """Return what a fitted recalibrator, or a file's map, has learned."""
        conformal: ConformalScores | None
        if isinstance(scaler, SavedMap):
            found = cls(
                scaler.root,
                scaler.names,
                scaler.smallest_uncertainty,
                scaler.method,
                scaler.library,
            )
            conformal, shift = scaler.conformal, scaler.shift
        else:
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(scaler)
            if not isinstance(getattr(scaler, "map_", None), Node):
                msg = (
                    f"`scaler` must be a recalibrator; found {type(scaler).__name__}. "
                    "Of a recalibrated regressor, export its recalibrator."
                )
                raise InvalidInputError(msg)
            found = cls(
                scaler.map_,
                fitted_names(scaler),
                scaler.min_uncertainty_,
                type(scaler).__name__,
                __version__,
            )
            conformal = getattr(scaler, "conformal_", None)
            shift = getattr(scaler, "shift_", None)
        if coverage is None:
            return found
        if conformal is None:
            msg = (
                "`coverage` needs rows that were held out for intervals: call "
                "conformalize(X, error) first."
            )
            raise InvalidInputError(msg)
        if shift is not None:
            msg = (
                "`coverage` must not be given: limits of a recalibrator with a shift "
                "cannot be exported. Fit it with shift=None, or export the uncertainty "
                "alone."
            )
            raise InvalidInputError(msg)
        limits = conformal.limits(check_coverage(coverage), asymmetric=asymmetric)
        return replace(
            found,
            limits=limits,
            categories=conformal.categories,
            coverage=float(coverage),
        )

    @property
    def columns(self) -> list[Column]:
        """The columns that are read, each once; the uncertainty is always one."""
        found = {column.position: column for column in columns_of(self.root)}
        found.setdefault(0, Column(0))
        return [found[position] for position in sorted(found)]
