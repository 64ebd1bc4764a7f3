"""Learning from more rows without the old ones, where sums say all that is learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np

from .._support.checks import refuse_other_order
from .._support.telling import warn
from ..bins.devices import on_device
from ..bins.libraries import to_numpy
from ..exceptions import ForgottenIntervalsWarning, InvalidInputError
from ..maps import Node
from ..maps.prediction import in_range
from ..oddities import Profile, squarable, warn_of_oddities, warn_of_zero_errors
from ..predictions import (
    Predictions,
    check_nonnegative_uncertainty,
    fitted_names,
    with_target,
)
from .kept import KeptSummaries, KeptSums, fading
from .summaries import Summaries


class Updating(ABC):
    """The part of a recalibrator that learns from more rows, or from another fit."""

    map_: Node
    min_uncertainty_: float
    n_samples_fit_: int
    seen_: Profile
    distribution: str

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    @abstractmethod
    def _read(self, X: Any, *, fitting: bool) -> Predictions:
        """Return the rows of a table whose columns are those seen in `fit`."""

    @abstractmethod
    def _learn_from_sums(self, data: Summaries) -> Node:
        """Return the map that was learned from sums."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget what not every fit has."""

    @property
    def is_updatable(self) -> bool:
        """Whether `update` and `merge` can go on from a fit: sums say all of it."""
        keeps_sums = type(self)._kept is not Updating._kept
        return keeps_sums and self.distribution == "normal"

    def _kept(self) -> KeptSums:
        """Return the sums that determine what was learned, for `update`."""
        raise NotImplementedError

    def _why_not_updatable(self) -> str:
        """Return why sums do not do; a clause without a full stop."""
        if self.distribution == "student":
            return "the law of Student's t follows from all z-scores, not from sums"
        return "what it learns follows from all rows, not from sums by fixed bins"

    def update(
        self, X: Any, y: Any, *, forget: float = 1.0, half_life: float | None = None
    ) -> Self:
        """Learn from more rows, without those of `fit`.

        What was learned is that of a fit to all rows, however they were divided; the
        limits of bins stay those of the first fit. This needs a recalibrator that
        sums determine (see `is_updatable`); others say what to do instead.

        Intervals need `conformalize` again: what it learned was for the map before.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`, rows in the order in
            which they came.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        forget : float, default 1.0
            By which factor what was learned before a row fades with that row: 1
            forgets nothing.
        half_life : float, optional
            The same in other words: after so many rows, an old one counts one half.
            All rows before the first that fade count at most as much as an endless
            stream that fades does: as 1 / (1 − forget) rows, or 1.44 half-lives.

        Returns
        -------
        self

        Notes
        -----
        With a half-life, the factor follows a step in the size of errors. Three
        half-lives after it, 7/8 of <Z²> are those of new rows: where errors have
        grown, by however much, the factor is at most 6.5 % too small; where they have
        shrunk to one half it is 17 % too large, and 9 % after four half-lives.

        Examples
        --------
        >>> import sigmascale as ss
        >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
        >>> round(scaler.update([1.0, 1.0], [4.0, 4.0]).factor_, 3)
        3.162
        >>> round(scaler.update([1.0] * 30, [5.0] * 30, half_life=10).factor_, 2)
        4.94
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        fade = fading(forget, half_life)
        kept = self._kept_sums()
        refuse_other_order(X=X, y=y)
        if on_device(X, y):
            X, y = to_numpy(X), to_numpy(y)
        rows = self._read(X, fitting=False).changed(names=fitted_names(self))
        u = rows.numbers(0)
        smallest = float(np.min(u, where=u > 0, initial=self.min_uncertainty_))
        u = check_nonnegative_uncertainty(u, smallest=smallest)
        rows = with_target(rows, y, None, type(self).__name__).with_uncertainty(u)
        some = warn_of_oddities(rows)
        n = rows.n_rows
        learned = squarable(rows.with_uncertainty(in_range(u)))
        kept = kept.faded(fade, n).plus(kept.of_rows(learned, fade))
        self._learn_again(kept, Profile.of(rows, some), n, smallest)
        return self

    def merge(self, other: Any) -> Self:
        """Add what another fit has learned from other rows.

        Parameters
        ----------
        other : recalibrator
            One of the same kind, with the same parameters, columns and limits of bins
            (labels may differ), that was fitted to other rows. It is not changed.

        Returns
        -------
        self

        Examples
        --------
        >>> import sigmascale as ss
        >>> one = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
        >>> other = ss.TemperatureScaling().fit([1.0, 1.0], [4.0, 4.0])
        >>> round(one.merge(other).factor_, 3)
        3.162
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        kept = self._kept_sums()
        own = type(self).__name__
        if type(other) is not type(self) or not hasattr(other, "map_"):
            msg = (
                f"`other` must be a fitted {own}, as this is; found "
                f"{type(other).__name__}."
            )
            raise InvalidInputError(msg)
        added = other._kept_sums()
        mine, others = self.get_params(), other.get_params()
        for name in mine:
            if repr(mine[name]) != repr(others[name]):
                msg = (
                    f"`other` must have the same parameters; {name} is "
                    f"{mine[name]!r} here and {others[name]!r} there. Fit both alike."
                )
                raise InvalidInputError(msg)
        columns = [", ".join(fitted_names(each)) for each in (self, other)]
        if columns[0] != columns[1]:
            msg = (
                f"`other` must have the same columns; found {columns[0]} here and "
                f"{columns[1]} there. Fit both to the same ones."
            )
            raise InvalidInputError(msg)
        if not kept.has_limits_of(added):
            msg = (
                "`other` must have the same limits of bins, and each fit learns its "
                "own. Fit one of both, and update it with the rows of the other."
            )
            raise InvalidInputError(msg)
        smallest = min(self.min_uncertainty_, other.min_uncertainty_)
        seen = getattr(other, "seen_", None)
        self._learn_again(kept.plus(added), seen, other.n_samples_fit_, smallest)
        return self

    def refuse_if_not_updatable(self) -> None:
        """Say why it cannot be updated, and what to do, in an error, if that is so."""
        self._kept_sums()

    def _kept_sums(self) -> KeptSums:
        """Return the sums that determine what was learned, if there are such."""
        name = type(self).__name__
        if not self.is_updatable:
            msg = (
                f"This {name} cannot be updated: {self._why_not_updatable()}. Fit it "
                "again with old and new rows together, or use one that sums "
                "determine: TemperatureScaling, BinwiseScaling or GroupScaling."
            )
            raise InvalidInputError(msg)
        return self._kept()

    def _learn_again(
        self, kept: KeptSums, seen: Profile | None, n_new: int, smallest: float
    ) -> None:
        """Learn from sums of old and new rows together, and what else is known."""
        data: Any = KeptSummaries(fitted_names(self), kept)
        if not kept.sums.z2.any():
            warn_of_zero_errors(self.n_samples_fit_ + n_new)
        learned = copy(self)  # or what goes wrong would leave half of it
        learned.map_ = learned._learn_from_sums(data)
        self.__dict__.update(learned.__dict__)
        if hasattr(self, "conformal_"):
            warn(
                "Intervals are forgotten: what conformalize (fit --conformal-share) "
                "has learned was for the recalibrator before. Call it again with "
                "held-out rows.",
                ForgottenIntervalsWarning,
                stacklevel=3,
            )
        self._forget()
        if seen is None:
            self.__dict__.pop("seen_", None)
        elif hasattr(self, "seen_"):
            self.seen_ = self.seen_.plus(seen, self.n_samples_fit_, n_new)
        self.n_samples_fit_ += n_new
        self.min_uncertainty_ = smallest
