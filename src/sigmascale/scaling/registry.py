"""The recalibrators by the names that the command line and saved files have for them.

One line here makes a recalibrator known everywhere: to the common tests, to `save` and
`load`, and as a method of the command line. Classes are imported when they are asked
for, so that a list of names costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from .base import VarianceScaler

# The module, beside this one, and the class; simple ones first.
_METHODS: dict[str, tuple[str, str]] = {
    "auto": ("selected", "SelectedScaling"),
    "none": ("temperature", "NoScaling"),
    "temperature": ("temperature", "TemperatureScaling"),
    "linear": ("linear", "LinearScaling"),
    "component": ("component", "ComponentScaling"),
    "isotonic": ("isotonic", "IsotonicScaling"),
    "binwise": ("binwise", "BinwiseScaling"),
    "category": ("category", "CategoryScaling"),
    "raked": ("raked", "RakedScaling"),
    "boosted": ("boosted", "BoostedScaling"),
}
_REGISTERED: dict[str, type[VarianceScaler]] = {}


def register(method: str, scaler: type[VarianceScaler]) -> None:
    """Make a recalibrator of your own known under the name of a method.

    Parameters
    ----------
    method : str
        What it is called on the command line.
    scaler : type
        A class that derives from `VarianceScaler`.
    """
    taken = {each.__name__ for each in scalers().values() if each is not scaler}
    if method in _METHODS or scaler.__name__ in taken:
        msg = f"`method` must be a new name; {method!r} or its class is known already."
        raise InvalidInputError(msg)
    _REGISTERED[method] = scaler


def unregister(method: str) -> None:
    """Forget a recalibrator that was registered."""
    del _REGISTERED[method]


def methods() -> list[str]:
    """Return the names of all methods; nothing is imported."""
    return [*_METHODS, *_REGISTERED]


def scaler_of(method: str) -> type[VarianceScaler]:
    """Return the recalibrator that a method stands for."""
    if method in _REGISTERED:
        return _REGISTERED[method]
    return _imported(*_METHODS[method])


def _imported(module: str, name: str) -> type[VarianceScaler]:
    found: type[VarianceScaler] = getattr(
        importlib.import_module(f".{module}", __package__), name
    )
    return found


def scaler_named(name: str) -> type[VarianceScaler] | None:
    """Return the recalibrator whose class has that name, if it is known."""
    for method, (_, known) in _METHODS.items():
        if known == name:
            return scaler_of(method)
    return {each.__name__: each for each in _REGISTERED.values()}.get(name)


def scalers() -> dict[str, type[VarianceScaler]]:
    """Return all recalibrators by method."""
    return {method: scaler_of(method) for method in methods()}
