"""Recalibrators for where a model runs: a PyTorch module, or a file for ONNX Runtime.

Both read the map that a fit has learned, and know no recalibrator by its name. The
public names stand in ``__init__.pyi``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
