"""NumPy archives: one-dimensional arrays of one length as columns."""

from __future__ import annotations

import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...exceptions import InvalidInputError
from ...roles import listed
from .sources import Source, opened

if TYPE_CHECKING:
    import polars as pl

ENDING = ".npy"
EXACT = 2**53  # larger whole numbers are not exact as real ones


def read_npz(path: str, source: Source) -> pl.DataFrame:
    """Return the arrays of an archive as columns."""
    import polars as pl

    try:
        with opened(source) as file, zipfile.ZipFile(file) as archive:
            found = {
                entry.filename.removesuffix(ENDING): _read_array(archive, entry)
                for entry in archive.infolist()
            }
            shapes = {name: shape for name, (shape, _) in found.items()}
            if len(set(shapes.values())) == 1 and len(shapes.popitem()[1] or ()) == 1:
                arrays = {name: _known(array) for name, (_, array) in found.items()}
                return pl.DataFrame([pl.Series(*each) for each in arrays.items()])
    except MemoryError:
        raise
    except Exception as problem:  # zipfile, zlib and NumPy have many for broken bytes
        msg = (
            f"{path}: cannot be read as NPZ. It must be a whole file, made by "
            "numpy.savez from arrays of numbers or text, not of objects."
        )
        raise InvalidInputError(msg) from problem
    words = [f"{name} {shape or '?'}" for name, (shape, _) in found.items()]
    msg = (
        f"{path}: must hold columns, one-dimensional arrays of one length; found "
        f"{listed(words) or 'nothing'}."
    )
    raise InvalidInputError(msg)


def _read_array(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[tuple[int, ...] | None, npt.NDArray[Any]]:
    """Return the shape of an array, and its values if it has one dimension.

    There is no shape if it is no array. No more memory is asked for than there are
    bytes in the archive, whatever shape is claimed.
    """
    nothing = np.empty(0)
    if not entry.filename.endswith(ENDING):
        return None, nothing
    with archive.open(entry) as file:
        shape, dtype = _header(file)
        if len(shape) != 1:
            return shape, nothing
        content = file.read()
    if dtype.hasobject or len(content) != shape[0] * dtype.itemsize:
        msg = f"{shape[0]} of {dtype} in {len(content)} bytes"
        raise ValueError(msg)
    if dtype.itemsize == 0:  # empty texts
        return shape, np.zeros(shape, dtype)
    return shape, np.frombuffer(content, dtype)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, dtype


def _known(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array whose type Polars knows, too."""
    if array.dtype.kind in "mM":
        unit, _ = np.datetime_data(array.dtype)
        if unit not in ("ns", "us", "ms") and array.dtype.str[1:] != "M8[D]":
            finer = array.astype(f"{array.dtype.kind}8[ms]")
            again = finer.astype(array.dtype)
            inexact = array.dtype.kind == "m" and unit in ("Y", "M", "generic")
            if inexact or not np.array_equal(again.view("i8"), array.view("i8")):
                msg = f"{array.dtype} is not exact in any type that is known here"
                raise ValueError(msg)
            return finer
    if array.dtype == np.longdouble:
        return array.astype(np.float64)
    return array


def write_npz(frame: pl.DataFrame, file: Any) -> None:
    """Write columns as the arrays of an archive; missing text is empty text."""
    # not by numpy.savez, whose own arguments cannot be names of columns
    with zipfile.ZipFile(file, "w") as archive:
        for column in frame:
            values = column.to_numpy()
            if values.dtype.kind == "O":
                values = np.array(["" if c is None else str(c) for c in column])
            if (
                values.dtype.kind == "f"
                and column.dtype.is_integer()
                and not column.is_between(-EXACT, EXACT).all()
            ):
                msg = (
                    f"cannot be written as NPZ: column {column.name!r} has missing "
                    "values among whole numbers that are too large to be real ones"
                )
                raise InvalidInputError(msg)
            # without the time, so that the same table gives the same bytes
            entry = zipfile.ZipInfo(f"{column.name}{ENDING}")
            with archive.open(entry, "w", force_zip64=True) as target:
                np.lib.format.write_array(target, values, allow_pickle=False)
