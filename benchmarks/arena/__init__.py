"""The arena: recalibrators side by side, on every set; see docs/arena.md."""
