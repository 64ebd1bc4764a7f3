"""Recalibrate a model: its uncertainties, and its errors on unseen rows."""
