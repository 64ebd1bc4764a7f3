"""Recalibrators side by side, on every set of a folder; see README.md."""
