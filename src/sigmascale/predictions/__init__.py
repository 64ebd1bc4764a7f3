"""Predictions: the one kind of rows, the forms they come in, and data to try."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["datasets"])
