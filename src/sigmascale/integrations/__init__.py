"""Recalibrators as parts of other libraries; each is imported by its own name."""
