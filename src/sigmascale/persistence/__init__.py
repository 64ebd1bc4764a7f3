"""Recalibrators to and from JSON: text that runs no code when it is loaded."""

from .documents import SavedMap, dumps, load, load_map, loads, save

__all__ = ["SavedMap", "dumps", "load", "load_map", "loads", "save"]
