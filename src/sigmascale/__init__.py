"""Honest error bars for machine-learned regression, and the proof of it.

The public names stand in ``__init__.pyi``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
