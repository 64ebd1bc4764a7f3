"""What is computed alike with arrays of NumPy, PyTorch, CuPy, JAX and ndonnx.

Most of it are functions of the array API standard. The few steps in which libraries
have something quicker, or something missing, are methods of one class each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .places import Places

Array = Any  # of any library that speaks the array API standard


class Library:
    """The functions of the array API standard, and constants where the arrays are.

    Parameters
    ----------
    xp : namespace
        The functions.
    options : dict
        What `asarray` needs to put a constant where the arrays are.
    floats : dtype, optional
        The numbers to compute with; by default those of NumPy.
    """

    has_few_rows = False  # at a time, so that what is computed may be kept

    def __init__(self, xp: Any, options: dict[str, Any], floats: Any = None) -> None:
        self.xp = xp
        self._options = options
        self._floats = floats

    def constant(self, value: Any) -> Array:
        """Return whole numbers, or text, where the arrays are."""
        return self.xp.asarray(value, **self._options)

    def numbers(self, value: Any) -> Array:
        """Return numbers where the arrays are."""
        return self.xp.asarray(value, dtype=self._floats, **self._options)

    def count(self, places: Places, x: Array, *, side: str = "right") -> Array:
        """Return how many edges lie below each number, or at it."""
        return self.xp.searchsorted(self.numbers(places.edges), x, side=side)

    def look_up(self, values: Any, at: Array) -> Array:
        """Return the numbers at some places of a constant."""
        return self.xp.take(self.numbers(values), at, axis=0)

    def look_up_places(self, places: Any, at: Array) -> Array:
        """Return the whole numbers at some places of a constant."""
        return self.xp.take(self.constant(places), at, axis=0)

    def zero_where_missing(self, codes: Array, x: Array) -> Array:
        """Return codes, and 0 where x is NaN."""
        zero = self.xp.astype(self.constant(np.int64(0)), codes.dtype)
        return self.xp.where(self.xp.isnan(x), zero, codes)

    def may_hold_zeros(self, x: Array) -> bool:
        """Return whether some number may be 0; it is true of traced arrays."""
        return True


class NumPy(Library):
    """Arrays of NumPy, for which a table takes the place of the binary search."""

    has_few_rows = True

    def __init__(self) -> None:
        super().__init__(np, {})

    def count(self, places: Places, x: Array, *, side: str = "right") -> Array:
        """Return how many edges lie below each number, or at it."""
        return places.of(x, side=side)

    def look_up(self, values: Any, at: Array) -> Array:
        """Return the numbers at some places of a constant."""
        return values.take(at, mode="wrap")  # none lies beyond: no check is needed

    def look_up_places(self, places: Any, at: Array) -> Array:
        """Return the whole numbers at some places of a constant."""
        return places.take(at, mode="wrap")

    def zero_where_missing(self, codes: Array, x: Array) -> Array:
        """Return codes, and 0 where x is NaN."""
        if x.size and np.isnan(x.max()):  # most columns have no gaps
            codes[np.isnan(x)] = 0
        return codes


class Torch(Library):
    """Tensors of PyTorch, whose codes need 32 bits only, and never count from the end.

    The standard asks for 64 bits, and for negative places: three more passes.
    """

    def count(self, places: Places, x: Array, *, side: str = "right") -> Array:
        """Return how many edges lie below each number, or at it."""
        edges = self.numbers(places.edges)
        return self.xp.bucketize(x, edges, right=side == "right", out_int32=True)

    def look_up(self, values: Any, at: Array) -> Array:
        """Return the numbers at some places of a constant."""
        return self.xp.index_select(self.numbers(values), 0, at)

    def look_up_places(self, places: Any, at: Array) -> Array:
        """Return the whole numbers at some places of a constant."""
        in_32_bits = places.astype(np.int32)
        return self.xp.index_select(self.constant(in_32_bits), 0, at)

    def may_hold_zeros(self, x: Array) -> bool:
        """Return whether some number may be 0; it is true of traced arrays."""
        return self.xp.compiler.is_compiling() or not bool(x.all())


NUMPY = NumPy()


def library_of(X: Array) -> tuple[Library, Any]:
    """Return the library of an array, and its widest floating-point numbers."""
    import array_api_compat as api

    xp = api.array_namespace(X)
    dtypes = xp.__array_namespace_info__().dtypes(kind="real floating")
    wide = dtypes.get("float64", X.dtype)  # JAX has none unless it is told to
    kind = Torch if api.is_torch_array(X) else Library
    return kind(xp, {"device": api.device(X)}, wide), wide
