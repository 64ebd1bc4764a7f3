"""Shapes: what the quantiles of a row say beyond a middle and a width.

They are a monotone map g from z, a standard normal number, to values. A true value y is
*straightened* to the error e = w g⁻¹(y), which a normal row of the same middle and
width w would have made. Bias, scale, tables of z, parts and tests need w and e alone;
quantiles leave by g(e / w).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from .._support.checks import Bools, Floats, Ints

# Fixed on 19 sets of quantiles by seven kinds of models: slopes of the outermost of 99
# quantiles are noise, those over one unit of z are not; and with a tenth of the width,
# no z becomes enormous.
REACH = 1.0  # units of z over which the slope beyond the outermost quantiles is taken
LEAST_SLOPE = 0.1  # of the width, a unit of z
LEAST_SHARE = 0.005  # of an atom, at either of its ends, in which no z is drawn
HALVINGS = 52  # of a segment, which leave nothing but rounding
NUMBERS_AT_A_TIME = 2**18  # which stay in the cache
Segments = tuple[Floats, Floats, Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Monotone maps from errors to values, a row each.

    Between the given quantiles it is the cubic of Fritsch and Butland in z, which
    keeps their order; beyond the outermost ones, a line.

    Attributes
    ----------
    z : array of shape (k,)
        Standard normal quantiles of the levels.
    quantiles : array of shape (n, k)
        The quantiles of each row, in order.
    width : array of shape (n,)
        The error that z = 1 stands for, positive.
    offset : array of shape (n,)
        The error that has become the new 0, where a bias was corrected.

    References
    ----------
    F. N. Fritsch and J. Butland, SIAM J. Sci. Stat. Comput. 5, 300 (1984),
    doi:10.1137/0905021
    """

    z: Floats
    quantiles: Floats
    width: Floats
    offset: Floats

    @classmethod
    def of(cls, levels: Floats, quantiles: Floats, width: Floats) -> Shapes:
        """Return the shapes of rows with quantiles, in order, and a width."""
        from scipy.special import ndtri

        quantiles.flags.writeable = False
        return cls(ndtri(levels), quantiles, width, np.zeros(width.size))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.width.size

    def __getitem__(self, rows: Any) -> Self:
        """Return the shapes of some rows."""
        return replace(
            self,
            quantiles=self.quantiles[rows],
            width=self.width[rows],
            offset=self.offset[rows],
        )

    def moved(self, by: Floats) -> Self:
        """Return shapes whose error 0 is what has been the error `by`."""
        return replace(self, offset=self.offset + by)

    def blended(self, share: float) -> Self:
        """Return shapes of which a share is kept; the rest is that of normal rows."""
        errors = self.width[:, None] * self.z - self.offset[:, None]
        normal = self.middle[:, None] + errors
        return replace(self, quantiles=share * self.quantiles + (1 - share) * normal)

    # -- the map, and what it is made of -----------------------------------------------

    @property
    def middle(self) -> Floats:
        """The values of errors of 0: predictions."""
        return self.values(np.zeros(len(self)))

    @cached_property
    def _outer_slopes(self) -> tuple[Floats, Floats]:
        """The slopes of the lines below and above the given quantiles.

        They are those of chords of the curve from its ends, over one unit of z.
        """
        z = self.z
        reach = min(REACH, z[-1] - z[0])
        is_flat = self.quantiles[:, -1] == self.quantiles[:, 0]
        least = np.where(is_flat, 1.0, LEAST_SLOPE) * self.width
        slopes = []
        for end, inner in ((0, z[0] + reach), (-1, z[-1] - reach)):
            rise = self._curve(np.full(len(self), inner)) - self.quantiles[:, end]
            slopes.append(np.maximum(np.abs(rise) / reach, least))
        return slopes[0], slopes[1]

    @cached_property
    def _slopes(self) -> Floats:
        """The slopes at the given quantiles, 0 at those that equal their neighbour."""
        h = np.diff(self.z)
        d = np.diff(self.quantiles, axis=1) / h
        if h.size == 1:
            return np.repeat(d, 2, axis=1)
        slopes = np.zeros(self.quantiles.shape)

        # the harmonic mean of the slopes on both sides, weighted by their lengths
        before = 2 * h[1:] + h[:-1]
        after = h[1:] + 2 * h[:-1]
        with np.errstate(divide="ignore"):
            slopes[:, 1:-1] = (before + after) / (before / d[:, :-1] + after / d[:, 1:])

        # at the ends that of a parabola, upwards and no steeper than keeps the order
        for end, inner in ((0, 1), (-1, -2)):
            steps = h[end] + h[inner]
            slope = (h[end] + steps) * d[:, end] - h[end] * d[:, inner]
            slopes[:, end] = np.clip(slope / steps, 0, 3 * d[:, end])
        return slopes

    def _segments(self, i: Ints, rows: slice = slice(None)) -> Segments:
        """Return length, value, rise, and slopes at both ends, of segments of rows.

        `i[row]`, or `i[row, number]`, are the numbers of the segments.
        """
        at = i.reshape(len(i), -1)
        taken = []
        for table in (self.quantiles, self._slopes):
            for k in (at, at + 1):
                taken.append(np.take_along_axis(table[rows], k, 1).reshape(i.shape))
        h = self.z[i + 1] - self.z[i]
        q0, q1, s0, s1 = taken
        return h, q0, q1 - q0, h * s0, h * s1

    def _curve(self, z: Floats, rows: slice = slice(None)) -> Floats:
        """Return the values of z, one or several a row, between the given quantiles."""
        i = np.clip(np.searchsorted(self.z, z, "right") - 1, 0, self.z.size - 2)
        segments = self._segments(i, rows)
        return _cubic(np.clip((z - self.z[i]) / segments[0], 0, 1), segments)

    def values(self, errors: Floats) -> Floats:
        """Return the values of errors, one or several a row; infinite of infinite."""
        column = (slice(None), *[None] * (errors.ndim - 1))
        values = np.empty(errors.shape)
        n_at_a_time = max(1, NUMBERS_AT_A_TIME * len(self) // max(1, errors.size))
        for start in range(0, len(self), n_at_a_time):
            rows = slice(start, start + n_at_a_time)
            z = (self.offset[rows][column] + errors[rows]) / self.width[rows][column]
            low, high = (slope[rows][column] for slope in self._outer_slopes)
            values[rows] = (
                self._curve(z, rows)
                + np.minimum(z - self.z[0], 0) * low
                + np.maximum(z - self.z[-1], 0) * high
            )
        return values

    def errors(self, y: Floats, side: Literal["left", "right"] = "right") -> Floats:
        """Return the errors of values; of an atom, that of its lower or upper end."""
        first, last = self._equal(y)
        knot = first if side == "left" else last
        z = np.where(last >= first, self.z[knot], np.nan)
        low, high = self._outer_slopes
        z = np.where(first > last, self._inside(y, last), z)
        below = y < self.quantiles[:, 0]
        above = y > self.quantiles[:, -1]
        z = np.where(below, self.z[0] + (y - self.quantiles[:, 0]) / low, z)
        z = np.where(above, self.z[-1] + (y - self.quantiles[:, -1]) / high, z)
        return self.width * z - self.offset

    def _equal(self, y: Floats) -> tuple[Ints, Ints]:
        """Return the first and last quantile that a value equals; reversed if none."""
        first = (self.quantiles < y[:, None]).sum(axis=1)
        last = (self.quantiles <= y[:, None]).sum(axis=1) - 1
        return np.minimum(first, self.z.size - 1), last

    def _inside(self, y: Floats, before: Ints) -> Floats:
        """Return z of values between two quantiles, by halving their segment."""
        i = np.clip(before, 0, self.z.size - 2)
        segments = self._segments(i)
        share = np.zeros(y.size)
        step = 1.0
        for _ in range(HALVINGS):
            step /= 2
            share += np.where(_cubic(share + step, segments) <= y, step, 0.0)
        return np.asarray(self.z[i] + share * segments[0])

    # -- atoms: values that have a probability of their own ----------------------------

    def on_atom(self, y: Floats) -> Bools:
        """Return whether values are on several quantiles at once."""
        first, last = self._equal(y)
        return last > first

    def drawn(self, y: Floats, shares: Floats) -> Floats:
        """Return errors of values on atoms: at shares of the probability of these.

        An atom at an end goes on beyond it.
        """
        from scipy.special import ndtr, ndtri

        first, last = self._equal(y)
        low = np.where(first == 0, 0.0, ndtr(self.z[first]))
        high = np.where(last == self.z.size - 1, 1.0, ndtr(self.z[last]))
        share = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
        z: Floats = ndtri(low + share * (high - low))
        return self.width * z - self.offset


def _cubic(share: Floats, segments: Segments) -> Floats:
    """Return the values at shares of segments, of a cubic with slopes at both ends."""
    _, value, rise, before, after = segments
    rest = 1 - share
    bend = share * rest * (before * rest - after * share)
    return np.asarray(value + rise * share**2 * (3 - 2 * share) + bend)
