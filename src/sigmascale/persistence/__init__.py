"""Recalibrators to and from JSON: text that runs no code when it is loaded."""

from .files import SavedMap, SavedTargets, dumps, load, load_map, load_maps, loads, save

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
