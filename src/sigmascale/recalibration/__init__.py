"""Recalibration: bias, scale and distribution of errors, one after the other."""
