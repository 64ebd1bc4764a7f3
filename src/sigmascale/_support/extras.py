"""Packages that an installation may lack: one sentence says how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# The extra that a package comes with; others are installed by their own name.
EXTRAS = {
    "ase": "atoms",
    "jinja2": "cli",
    "matplotlib": "cli",
    "ndonnx": "onnx",
    "openpyxl": "cli",
    "polars": "cli",
    "starlette": "app",
    "uvicorn": "app",
}


@contextmanager
def needed_for(what: str, otherwise: str = "") -> Iterator[None]:
    """Say what to install, or do `otherwise`, where an import of a package fails.

    pip takes the packages of an extra from an installation that is there: the line is
    the same for one of a wheel, of a checkout and of an index.

    >>> with needed_for("a picture"):
    ...     raise ModuleNotFoundError(name="matplotlib.figure")
    Traceback (most recent call last):
    ImportError: a picture needs matplotlib: pip install "sigmascale[cli]"
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        package = str(problem.name or "sigmascale").partition(".")[0]
        if package == "sigmascale":  # ours, or said already
            raise
        line = f'"sigmascale[{EXTRAS[package]}]"' if package in EXTRAS else package
        msg = f"{what} needs {package}: pip install {line}{otherwise}"
        raise ImportError(msg) from problem
