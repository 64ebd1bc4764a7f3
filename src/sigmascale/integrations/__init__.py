"""Other places: scikit-learn, ONNX files, lazy frames, clusters and ASE."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["export", "frames", "scorers"]
)
