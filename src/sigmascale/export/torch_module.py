"""The PyTorch module that runs a map, with its constants in buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .._support.checks import LARGEST, SMALLEST
from .._support.labels import Label
from ..bins.partitions import LabelBins
from ..maps import Code, Column, Lookup, in_order
from ..maps.prediction import Program
from .learned import Learned


class _Functions:
    """PyTorch's functions by the names that the array API standard has for them.

    They do without array-api-compat, which compilers of PyTorch do not look into.
    """

    int64 = torch.int64
    arange = staticmethod(torch.arange)
    clip = staticmethod(torch.clamp)
    exp = staticmethod(torch.exp)
    hypot = staticmethod(torch.hypot)
    isnan = staticmethod(torch.isnan)
    reshape = staticmethod(torch.reshape)
    searchsorted = staticmethod(torch.searchsorted)
    sqrt = staticmethod(torch.sqrt)
    stack = staticmethod(torch.stack)
    where = staticmethod(torch.where)

    @staticmethod
    def take(x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.index_select(x, axis, indices)


class Recalibration(torch.nn.Module):
    """Recalibrated uncertainties of a conditioning table; see `to_torch`.

    Attributes
    ----------
    names : tuple of str
        The columns of the table.
    labels : dict of str to list
        Of columns and categories of text, the labels; a tensor has positions.
    """

    def __init__(self, learned: Learned) -> None:
        super().__init__()
        self.names = learned.names
        self.labels: dict[str, list[Label]] = {}
        self._smallest = learned.smallest
        self._columns = [(each.position, each.kind) for each in learned.columns]
        self._program = Program(learned.root, labels_as="positions")
        self._n_constants = len(self._program.constants)
        for i, constant in enumerate(self._program.constants):
            self.register_buffer(f"constant{i}", torch.from_numpy(np.array(constant)))
        for node in in_order(learned.root):
            if isinstance(node, Code) and isinstance(node.x, Column):
                self._note_labels(learned.names[node.x.position], node.partition)
        self._categories: Program | None = None
        self._has_limits = learned.limits is not None
        if learned.limits is not None:
            self.register_buffer("limits", torch.from_numpy(np.array(learned.limits)))
        if learned.categories is not None:
            self._note_labels("by_category", learned.categories)
            # the code of a category is what a table of codes has at its code
            code = Code(Column(0, "label"), learned.categories)
            n_codes = learned.categories.n_codes
            table = np.roll(np.arange(float(n_codes)), 1)
            self._categories = Program(Lookup((code,), table), labels_as="positions")
            for i, constant in enumerate(self._categories.constants):
                self.register_buffer(
                    f"category{i}", torch.from_numpy(np.array(constant))
                )

    def _note_labels(self, name: str, partition: Any) -> None:
        if isinstance(partition, LabelBins) and partition.are_text:
            self.labels[name] = list(partition.labels)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move with the model, but stay in the precision of what was learned."""
        for name, buffer in self._buffers.items():
            if buffer is not None:
                moved = fn(buffer)
                same = buffer.dtype == moved.dtype
                self._buffers[name] = moved if same else buffer.to(moved.device)
        return self

    def forward(self, X: torch.Tensor, by_category: torch.Tensor | None = None) -> Any:
        """Return recalibrated uncertainties, and limits of errors if there are any."""
        given = [X] if X.ndim == 1 else list(X.unbind(1))
        columns = [each.to(torch.float64).contiguous() for each in given]
        u = columns[0]
        good = torch.isfinite(u) & (u >= 0)
        for position, kind in self._columns:
            if kind == "number":
                good = good & torch.isfinite(columns[position])
            elif kind == "optional":
                good = good & ~torch.isinf(columns[position])
        u = torch.where(u == 0, self._smallest, u)
        columns[0] = torch.clamp(u, SMALLEST, LARGEST)
        constants = [getattr(self, f"constant{i}") for i in range(self._n_constants)]
        dtype = X.dtype if X.dtype.is_floating_point else torch.float64
        bounds = torch.finfo(dtype)
        found = self._program(_Functions, constants, columns)
        found = torch.clamp(found, bounds.smallest_normal, bounds.max)
        found = torch.where(good, found, torch.nan)
        if not self._has_limits:
            return found.to(dtype)
        category = torch.zeros_like(u)
        if self._categories is not None:
            if by_category is None:
                msg = "`by_category` must be given: conformalize was called with it."
                raise ValueError(msg)
            constants = [
                getattr(self, f"category{i}")
                for i in range(len(self._categories.constants))
            ]
            labels = by_category.to(torch.float64).contiguous()
            category = self._categories(_Functions, constants, [labels])
        limits = self.limits[category.to(torch.int64)] * found[:, None]
        return found.to(dtype), limits.to(dtype)
