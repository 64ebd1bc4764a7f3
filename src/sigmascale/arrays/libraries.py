"""What libraries of device arrays have in common, and where they differ.

Nearly all that is needed is in the array API standard, which array-api-compat completes
where a library falls short of it; scikit-learn brings a copy. What the standard lacks
is here: sums by code, the bits of numbers, and 64-bit numbers in JAX.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = Any  # of whatever library

_CLASSES = {"torch": "Tensor", "cupy": "ndarray"}  # which lack __array_namespace__


def is_device_array(values: Any) -> bool:
    """Return whether values are an array of another library than NumPy."""
    if isinstance(values, (np.ndarray, np.generic)):
        return False
    return hasattr(values, "__array_namespace__") or any(
        _CLASSES.get(each.__module__.partition(".")[0]) == each.__name__
        for each in type(values).__mro__
    )


def _compat() -> Any:
    try:
        from sklearn.externals import array_api_compat as compat
    except ImportError:  # before scikit-learn 1.7
        import array_api_compat as compat
    return compat


class _Direct:
    """The functions of a library; those that array-api-compat makes slow, as they are.

    It allows for negative indices and for limits that are arrays, which do not occur
    here, with several passes over the rows.
    """

    def __init__(self, xp: Any, name: str) -> None:
        self._xp, self.__name__ = xp, xp.__name__
        own = sys.modules[name]
        if name == "torch":
            self.clip = own.clamp
            self.take = lambda x, indices, *, axis: own.index_select(x, axis, indices)
        else:
            self.clip = own.clip

    def __getattr__(self, function: str) -> Any:
        """Return any other function."""
        return getattr(self._xp, function)


_direct = functools.cache(_Direct)


@dataclass(frozen=True)
class Library:
    """The library of some arrays, and the device that they are on.

    Attributes
    ----------
    xp : module
        The functions of the array API standard.
    device : Any
        The device.
    name : str
        What the library is called.
    """

    xp: Any
    device: Any
    name: str

    @classmethod
    def of(cls, array: Array) -> Library:
        """Return the library of an array."""
        compat = _compat()
        xp = compat.array_namespace(array)
        name = next(
            (each for each in ("torch", "cupy", "jax") if each in xp.__name__),
            xp.__name__,
        )
        if name in ("torch", "cupy"):
            xp = _direct(xp, name)
        return cls(xp, compat.device(array), name)

    def __str__(self) -> str:
        """Return what it is called, and the device."""
        return f"{self.name} ({self.device})"

    def in_64_bits(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which 64-bit numbers are what they should be."""
        if self.name == "jax":  # which has 32 bits unless it is told otherwise
            jax = sys.modules["jax"]
            if not hasattr(jax, "enable_x64"):  # where it was before version 0.8
                from jax.experimental import enable_x64

                return enable_x64()  # type: ignore[no-any-return]
            return jax.enable_x64(True)  # type: ignore[no-any-return]
        return contextlib.nullcontext()

    def is_real(self, array: Array) -> bool:
        """Return whether an array holds integers, booleans or real numbers."""
        dtype = array.dtype
        if self.name == "torch":
            return not dtype.is_complex
        if self.name == "jax":  # bfloat16 is in no standard
            return not self.xp.issubdtype(dtype, self.xp.complexfloating)
        return bool(self.xp.isdtype(dtype, ("bool", "integral", "real floating")))

    def is_floating(self, array: Array) -> bool:
        """Return whether an array holds floating-point numbers."""
        dtype = array.dtype
        if self.name == "torch":
            return bool(dtype.is_floating_point)
        if self.name == "jax":
            return bool(self.xp.issubdtype(dtype, self.xp.floating))
        return bool(self.xp.isdtype(dtype, "real floating"))

    def floats(self, array: Array) -> Array:
        """Return an array as float64, one number beside the other."""
        floats = self.xp.astype(array, self.xp.float64, copy=False)
        return floats.contiguous() if self.name == "torch" else floats

    def detached(self, array: Array) -> Array:
        """Return an array without what computes gradients."""
        return array.detach() if self.name == "torch" else array

    def here(self, values: npt.NDArray[Any]) -> Array:
        """Return a NumPy array on the device."""
        # a copy, since PyTorch warns of arrays that may not be written to
        return self.xp.asarray(np.array(values), device=self.device)

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """Return an array as NumPy: the one way that anything leaves the device."""
        if self.name == "torch":
            return np.asarray(array.detach().cpu())
        if self.name == "cupy":
            return np.asarray(array.get())
        if self.name == "array_api_strict":
            array = array.to_device(self.xp.Device("CPU_DEVICE"))
        return np.asarray(array)

    def numbers(self, *scalars: Array) -> list[float]:
        """Return some 0-dimensional arrays as Python numbers, in one go."""
        stacked = self.xp.stack([self.floats(each) for each in scalars])
        found: list[float] = self.to_host(stacked).tolist()
        return found

    def ordered_bits(self, x: Array) -> Array:
        """Return integers in the order of some float64; None if bits are hidden."""
        if self.name == "jax":
            bits = sys.modules["jax"].lax.bitcast_convert_type(x, self.xp.int64)
        elif self.name in ("torch", "cupy"):
            bits = x.view(self.xp.int64)
        else:
            return None
        return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)

    def extremes(self, x: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest number; NaN if there is one."""
        if self.name == "torch":  # in one pass
            low, high = x.aminmax()
            return low, high
        return self.xp.min(x), self.xp.max(x)

    def counts(self, codes: Array, n_codes: int) -> npt.NDArray[np.int64]:
        """Return how many rows have each code."""
        if self.name == "jax":
            found = self.xp.bincount(codes, length=n_codes)
        elif self.name in ("torch", "cupy"):
            found = self.xp.bincount(codes, minlength=n_codes)
        else:
            every = self.xp.arange(n_codes, dtype=codes.dtype, device=self.device)
            ends = self.xp.searchsorted(self.xp.sort(codes), every, side="right")
            return np.diff(self.to_host(ends), prepend=0)
        return self.to_host(found).astype(np.int64)

    def sums_by_code(self, codes: Array, n_codes: int, values: Array) -> Array | None:
        """Return the sum of the values of each code, if the library has such sums."""
        if self.name == "jax":
            return self.xp.bincount(codes, values, length=n_codes)
        if self.name in ("torch", "cupy"):
            return self.xp.bincount(codes, values, n_codes)
        return None

    def range_by_code(
        self, codes: Array, n_codes: int, values: Array
    ) -> tuple[Array, Array] | None:
        """Return the range of the values of each code, if the library has such."""
        if self.name == "torch":
            highest = self.xp.full((n_codes,), float("inf"), dtype=values.dtype)
            highest, at = highest.to(self.device), codes.long()
            return (
                highest.scatter_reduce(0, at, values, "amin"),
                (-highest).scatter_reduce(0, at, values, "amax"),
            )
        if self.name == "jax":
            highest = self.xp.full((n_codes,), float("inf"), dtype=values.dtype)
            return highest.at[codes].min(values), (-highest).at[codes].max(values)
        if self.name == "cupy":
            low = self.xp.full((n_codes,), float("inf"), dtype=values.dtype)
            high = -low
            self.xp.minimum.at(low, codes, values)
            self.xp.maximum.at(high, codes, values)
            return low, high
        return None


def to_numpy(values: Any) -> Any:
    """Return a device array as NumPy, in float64; leave the rest alone."""
    if not is_device_array(values):
        return values
    library = Library.of(values)
    with library.in_64_bits():
        return library.to_host(library.floats(library.detached(values)))
