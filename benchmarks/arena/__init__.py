"""Recalibrators in competition: ours, and those of others as their makers show them."""
