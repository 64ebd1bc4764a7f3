"""The recalibrators; :mod:`lazy_loader` imports each where it is first used."""

from .base import VarianceScaler
from .binwise import BinwiseScaling
from .boosted import BoostedScaling
from .category import CategoryScaling
from .component import ComponentScaling
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .raked import RakedScaling
from .registry import methods, register, scaler_of, scalers, unregister
from .selected import SelectedScaling
from .temperature import NoScaling, TemperatureScaling

__all__ = [
    "BinwiseScaling",
    "BoostedScaling",
    "CategoryScaling",
    "ComponentScaling",
    "IsotonicScaling",
    "LinearScaling",
    "NoScaling",
    "RakedScaling",
    "SelectedScaling",
    "TemperatureScaling",
    "VarianceScaler",
    "methods",
    "register",
    "scaler_of",
    "scalers",
    "unregister",
]
