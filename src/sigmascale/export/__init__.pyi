"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from .onnx_file import to_onnx
from .pytorch import to_torch

__all__ = ["to_onnx", "to_torch"]
