"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from .models import to_onnx, to_torch

__all__ = ["to_onnx", "to_torch"]
