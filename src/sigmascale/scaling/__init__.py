"""The recalibrators, one file each."""

from .base import VarianceScaler
from .binwise import BinwiseScaling
from .boosted import BoostedScaling
from .group import GroupScaling
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .none import NoScaling
from .raked import RakedScaling
from .selected import SelectedScaling
from .temperature import TemperatureScaling

SCALERS: tuple[type[VarianceScaler], ...] = (
    TemperatureScaling,
    LinearScaling,
    BinwiseScaling,
    GroupScaling,
    IsotonicScaling,
    RakedScaling,
    BoostedScaling,
    SelectedScaling,
    NoScaling,
)

__all__ = [
    "SCALERS",
    "BinwiseScaling",
    "BoostedScaling",
    "GroupScaling",
    "IsotonicScaling",
    "LinearScaling",
    "NoScaling",
    "RakedScaling",
    "SelectedScaling",
    "TemperatureScaling",
    "VarianceScaler",
]
