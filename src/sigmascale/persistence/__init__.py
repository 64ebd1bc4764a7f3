"""Recalibrators to and from JSON: text that runs no code when it is loaded."""

from .documents import SavedMap, dumps, load, load_map, load_maps, loads, save
from .several import SavedTargets

__all__ = [
    "SavedMap",
    "SavedTargets",
    "dumps",
    "load",
    "load_map",
    "load_maps",
    "loads",
    "save",
]
