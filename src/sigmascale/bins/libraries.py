"""The libraries that arrays come from: NumPy, PyTorch, CuPy, JAX and their like.

Kernels are written once, with the functions of the array API standard, which
array-api-compat completes where a library falls short of it. What the standard lacks
is here, in one table: sums by code, the bits of numbers, how many rows are best taken
at a time, the way to the host, and 64-bit numbers in JAX. No library is imported but
NumPy: an array brings its own.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints

Array = Any  # of whatever library
Products = Iterable[tuple[str, Array, Array | None]]  # named ones of two arrays, or one

_CLASSES = {"torch": "Tensor", "cupy": "ndarray"}  # which lack __array_namespace__


def is_device_array(values: Any) -> bool:
    """Return whether values are an array of another library than NumPy."""
    if isinstance(values, (np.ndarray, np.generic)):
        return False
    return hasattr(values, "__array_namespace__") or any(
        _CLASSES.get(each.__module__.partition(".")[0]) == each.__name__
        for each in type(values).__mro__
    )


def on_device(*arguments: Any) -> bool:
    """Return whether some of the arguments, or columns in them, are device arrays."""
    for each in arguments:
        columns = each.values() if isinstance(each, Mapping) else [each]
        if not isinstance(each, np.ndarray) and any(map(is_device_array, columns)):
            return True
    return False


def to_numpy(values: Any) -> Any:
    """Return a device array as NumPy, in float64; leave the rest alone."""
    if not is_device_array(values):
        return values
    library = library_of(values)
    with library.in_64_bits():
        return library.to_host(library.floats(library.detached(values)))


class _Functions:
    """The functions of a library, of which some are replaced."""

    def __init__(self, xp: Any, **replaced: Any) -> None:
        self._xp, self.__name__ = xp, xp.__name__
        vars(self).update(replaced)

    def __getattr__(self, function: str) -> Any:
        """Return any other function, and keep it at hand."""
        found = getattr(self._xp, function)
        setattr(self, function, found)
        return found


@dataclass(frozen=True)
class Library:
    """The library of some arrays, and the device that they are on.

    It has the standard's functions and some of NumPy's own, as most have.

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

    # Rows at a time: so many that starting the work takes no time, and so few that what
    # is computed on the way takes little memory.
    chunk: ClassVar[int] = 2**24
    few: ClassVar[int] = 2**16  # rows that are as well sorted as counted
    # If there are few codes, rows are brought into their order before they are summed:
    # where they are, rows would wait for each other to be added to few sums.
    few_codes: ClassVar[float] = 512
    gathered: ClassVar[int] = 2**27  # rows at a time, where that is done

    def __str__(self) -> str:
        """Return what it is called, and the device."""
        return f"{self.name} ({self.device})"

    def chunks(self, n_rows: int, least: int = 1) -> Iterator[slice]:
        """Yield slices of all rows, of at least `least` rows but for the last."""
        size = max(self.chunk, least)
        starts = range(0, n_rows, size)
        return (slice(start, min(start + size, n_rows)) for start in starts)

    def by_chunks(self, function: Callable[..., Array], *columns: Array) -> Array:
        """Return a function of columns, computed for some rows at a time."""
        parts = [
            function(*(column[rows] for column in columns))
            for rows in self.chunks(columns[0].shape[0])
        ]
        return parts[0] if len(parts) == 1 else self.xp.concat(parts)

    def in_64_bits(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which 64-bit numbers are what they should be."""
        return contextlib.nullcontext()

    def has_kind(self, array: Array, *kinds: str) -> bool:
        """Return whether the numbers of an array are of some kinds of the standard."""
        return bool(self.xp.isdtype(array.dtype, kinds))

    def floats(self, array: Array) -> Array:
        """Return an array as float64, one number beside the other."""
        return self.xp.astype(array, self.xp.float64, copy=False)

    def codes(self, array: Array) -> Array:
        """Return integers in as few bytes as the library counts by fast."""
        return self.xp.astype(array, self.xp.int32, copy=False)

    def detached(self, array: Array) -> Array:
        """Return an array without what computes gradients."""
        return array

    def here(self, values: Any) -> Array:
        """Return a NumPy array on the device."""
        # a copy, since PyTorch warns of arrays that may not be written to
        return self.xp.asarray(np.array(values), device=self.device)

    def ready(self, constants: Iterable[Any], n_rows: int) -> list[Any]:
        """Return arrays, and limits to search among, as they are used for rows."""
        return [self.here(each) for each in constants]

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """Return an array as NumPy: the one way that anything leaves the device."""
        return np.asarray(array)

    def numbers(self, *scalars: Array) -> list[float]:
        """Return some 0-dimensional arrays as Python numbers, in one go."""
        stacked = self.xp.stack([self.floats(each) for each in scalars])
        found: list[float] = self.to_host(stacked).tolist()
        return found

    def bits(self, x: Array) -> Array:
        """Return the bits of float64 as integers; None if they are hidden."""
        return x.view(self.xp.int64)

    def extremes(self, x: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest number; NaN if there is one."""
        return self.xp.min(x), self.xp.max(x)

    def range_of(self, x: Array) -> tuple[float, float]:
        """Return the smallest and the largest number as Python numbers."""
        low, high = self.numbers(*self.extremes(x))
        return low, high

    def lexsort(self, keys: list[Array]) -> Array:
        """Return the order of rows by the last key, and by those before if it ties."""
        xp = self.xp
        order = xp.argsort(keys[0], stable=True)
        for key in keys[1:]:
            by_key = xp.argsort(xp.take(key, order, axis=0), stable=True)
            order = xp.take(order, by_key, axis=0)
        return order

    def order_of(self, codes: Array, n_codes: int) -> Array:
        """Return the order of rows by their codes; it keeps that of equal ones."""
        small = self.xp.uint8 if n_codes <= 2**8 else self.xp.int32  # which sort fast
        return self.xp.argsort(self.xp.astype(codes, small), stable=True)

    def replaced(self, array: Array, which: Array, values: Array) -> Array:
        """Return an array with other values, one after another, where `which` says."""
        xp = self.xp
        place = xp.cumulative_sum(xp.astype(which, xp.int64)) - 1
        place = xp.where(which, place, 0 * place)
        return xp.where(which, xp.take(values, place, axis=0), array)

    def counts(self, codes: Array, n_codes: int) -> Ints:
        """Return how many rows have each code."""
        found = self.xp.bincount(codes, minlength=n_codes)
        return self.to_host(found).astype(np.int64, copy=False)

    def sums_by_code(self, codes: Array, n_codes: int, values: Array) -> Array:
        """Return the sum of the values of each code."""
        return self.xp.bincount(codes, values, n_codes)

    def range_by_code(
        self, codes: Array, n_codes: int, values: Array
    ) -> tuple[Array, Array]:
        """Return the smallest and the largest value of each code."""
        order, sizes = self.lexsort([values, codes]), self.counts(codes, n_codes)
        ends = np.cumsum(sizes)
        found = []
        for place, none in ((ends - sizes, np.inf), (ends - 1, -np.inf)):
            at = self.here(np.clip(place, 0, codes.shape[0] - 1))
            at = self.xp.take(order, at, axis=0)
            value = self.xp.take(values, at, axis=0)
            found.append(self.xp.where(self.here(sizes > 0), value, self.here(none)))
        return found[0], found[1]

    def sums_of_runs(
        self, sizes: Ints, products: Products, x: Array | None = None
    ) -> dict[str, Floats]:
        """Return sums of products, or of numbers, in runs of so many rows, by name.

        With `x`, there are its smallest and largest number in each run, too.
        """
        xp, ends = self.xp, np.cumsum(sizes).tolist()
        runs = [
            slice(end - n, end) for n, end in zip(sizes.tolist(), ends, strict=True)
        ]
        found = {
            name: xp.stack(
                [
                    xp.sum(left[run]) if right is None else left[run] @ right[run]
                    for run in runs
                ]
            )
            for name, left, right in products
        }
        if x is not None:
            none = self.here(np.inf)
            ranges = [
                self.extremes(x[run]) if run.stop > run.start else (none, -none)
                for run in runs
            ]
            low, high = zip(*ranges, strict=True)
            found |= {"x_min": xp.stack(list(low)), "x_max": xp.stack(list(high))}
        return dict(
            zip(found, self.to_host(xp.stack(list(found.values()))), strict=True)
        )


def reduce_runs(
    how: np.ufunc, values: Floats, sizes: Ints, empty: float = 0.0
) -> Floats:
    """Reduce runs of so many of NumPy's rows to one number each."""
    filled = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[filled]
    result = np.full(sizes.size, empty)
    result[filled] = how.reduceat(values, starts)
    return result


class _NumPy(Library):
    # so few rows that intermediate results stay in the cache, and so small that the
    # allocator keeps their memory: fresh pages from the system take longer than work
    chunk, few = 10_000, 2**8
    few_codes, gathered = math.inf, 10_000

    def by_chunks(self, function: Callable[..., Array], *columns: Array) -> Array:
        n_rows = columns[0].shape[0]
        if n_rows <= self.chunk:
            return function(*columns)
        result = None
        for rows in self.chunks(n_rows):
            part = function(*(column[rows] for column in columns))
            if result is None:
                result = np.empty(n_rows, dtype=part.dtype)
            result[rows] = part
        return result

    def floats(self, array: Array) -> Array:
        return array.astype(np.float64, copy=False)

    def codes(self, array: Array) -> Array:
        return array

    def counts(self, codes: Array, n_codes: int) -> Ints:
        return np.bincount(codes, minlength=n_codes)

    def here(self, values: Any) -> Array:
        return np.asarray(values)

    def ready(self, constants: Iterable[Any], n_rows: int) -> list[Any]:
        return [
            each if isinstance(each, np.ndarray) else each.prepared(n_rows)
            for each in constants
        ]

    def lexsort(self, keys: list[Array]) -> Array:
        return np.lexsort(keys)

    def order_of(self, codes: Array, n_codes: int) -> Array:
        small = np.uint16 if n_codes <= 2**16 else np.int64  # the former sorts fast
        return np.argsort(codes.astype(small, copy=False), kind="stable")

    def replaced(self, array: Array, which: Array, values: Array) -> Array:
        array[which] = values
        return array

    def range_of(self, x: Array) -> tuple[float, float]:
        return float(x.min()), float(x.max())

    def sums_of_runs(
        self, sizes: Ints, products: Products, x: Array | None = None
    ) -> dict[str, Floats]:
        found = {
            name: reduce_runs(np.add, left if right is None else left * right, sizes)
            for name, left, right in products
        }
        if x is not None:
            found["x_min"] = reduce_runs(np.minimum, x, sizes, np.inf)
            found["x_max"] = reduce_runs(np.maximum, x, sizes, -np.inf)
        return found


class _Torch(Library):
    def floats(self, array: Array) -> Array:
        return array.to(self.xp.float64).contiguous()

    def detached(self, array: Array) -> Array:
        return array.detach()

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        return np.asarray(array.detach().cpu())

    def extremes(self, x: Array) -> tuple[Array, Array]:
        low, high = x.aminmax()  # in one pass
        return low, high


class _CuPy(Library):
    def to_host(self, array: Array) -> npt.NDArray[Any]:
        return np.asarray(array.get())


class _JAX(Library):
    few_codes = 0

    def in_64_bits(self) -> contextlib.AbstractContextManager[Any]:
        jax = sys.modules["jax"]  # which has 32 bits unless it is told otherwise
        if not hasattr(jax, "enable_x64"):  # where it was before version 0.8
            from jax.experimental import enable_x64

            return enable_x64()  # type: ignore[no-any-return]
        return jax.enable_x64(True)  # type: ignore[no-any-return]

    def bits(self, x: Array) -> Array:
        return sys.modules["jax"].lax.bitcast_convert_type(x, self.xp.int64)

    def counts(self, codes: Array, n_codes: int) -> Ints:
        found = self.xp.bincount(codes, length=n_codes)  # which needs no look at codes
        return self.to_host(found).astype(np.int64)

    def sums_by_code(self, codes: Array, n_codes: int, values: Array) -> Array:
        return self.xp.bincount(codes, values, length=n_codes)


class _Standard(Library):
    """A library that has the functions of the standard alone."""

    few_codes = math.inf

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))

    def bits(self, x: Array) -> Array:
        return None

    def counts(self, codes: Array, n_codes: int) -> Ints:
        every = self.xp.arange(n_codes, dtype=codes.dtype, device=self.device)
        ends = self.xp.searchsorted(self.xp.sort(codes), every, side="right")
        return np.diff(self.to_host(ends), prepend=0)

    def sums_by_code(self, codes: Array, n_codes: int, values: Array) -> Array:
        order = self.xp.argsort(codes, stable=True)
        n, ordered = self.counts(codes, n_codes), self.xp.take(values, order, axis=0)
        return self.here(self.sums_of_runs(n, [("", ordered, None)])[""])


_KINDS = {"torch": _Torch, "cupy": _CuPy, "jax": _JAX}


@functools.cache
def _numpy() -> Library:
    from array_api_compat import numpy as xp

    # NumPy's own are quicker: the standard's sort, for one, is stable
    own = {"clip": np.clip, "take": np.take, "sort": np.sort}
    return _NumPy(_Functions(xp, **own), "cpu", "numpy")


@functools.cache
def _functions(xp: Any, name: str) -> Any:
    """Return the functions of a library; those that are made slow, as they are.

    array-api-compat allows for negative indices and for limits that are arrays, which
    do not occur here, with several passes over the rows.
    """
    own = sys.modules[name]
    if name == "torch":

        def take(x: Array, indices: Array, *, axis: int) -> Array:
            return own.index_select(x, axis, indices)

        return _Functions(xp, clip=own.clamp, take=take)
    return _Functions(xp, clip=own.clip)


def library_of(array: Array) -> Library:
    """Return the library of an array."""
    if isinstance(array, np.ndarray):
        return _numpy()
    import array_api_compat as compat

    xp = compat.array_namespace(array)
    name = next((each for each in _KINDS if each in xp.__name__), xp.__name__)
    if name in ("torch", "cupy"):
        xp = _functions(xp, name)
    return _KINDS.get(name, _Standard)(xp, compat.device(array), name)
