"""The recalibrators, one file each."""

from .base import VarianceScaler
from .binwise import BinwiseScaling
from .group import GroupScaling
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .temperature import TemperatureScaling

SCALERS: tuple[type[VarianceScaler], ...] = (
    TemperatureScaling,
    LinearScaling,
    BinwiseScaling,
    GroupScaling,
    IsotonicScaling,
)

__all__ = [
    "SCALERS",
    "BinwiseScaling",
    "GroupScaling",
    "IsotonicScaling",
    "LinearScaling",
    "TemperatureScaling",
    "VarianceScaler",
]
