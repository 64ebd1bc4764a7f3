"""The PyTorch module that runs a map, with its constants in buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .._support.checks import LARGEST, SMALLEST
from ..maps import Node
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
        self.names, text = learned.saved.names, learned.text_labels
        self.labels = {self.names[position]: x for position, x in text.items()}
        self._smallest = learned.saved.smallest_uncertainty
        self._columns, self._shifted = learned.columns, learned.shifted
        self._n_limits, self._n_levels = len(learned.limits), len(learned.quantiles)
        self._programs: dict[str, Program] = {}
        self._add("scale", learned.saved.root)
        if learned.shift is not None:
            self._add("shift", learned.shift)
        for i, node in enumerate([*learned.limits, *learned.quantiles]):
            self._add(f"multiple{i}", node)
        self._by_category = learned.categories is not None
        if learned.categories is not None and learned.categories.are_text:
            self.labels["by_category"] = list(learned.categories.labels)

    def _add(self, name: str, root: Node) -> None:
        program = self._programs[name] = Program(root, labels_as="positions")
        for i, constant in enumerate(program.constants):
            tensor = torch.from_numpy(np.array(constant))
            self.register_buffer(f"{name}_{i}", tensor)

    def _run(self, name: str, columns: list[torch.Tensor]) -> torch.Tensor:
        program = self._programs[name]
        places = range(len(program.constants))
        constants = [getattr(self, f"{name}_{i}") for i in places]
        found: torch.Tensor = program(_Functions, constants, columns)
        return found

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move with the model, but stay in the precision of what was learned."""
        for name, buffer in self._buffers.items():
            if buffer is not None:
                moved = fn(buffer)
                same = buffer.dtype == moved.dtype
                self._buffers[name] = moved if same else buffer.to(moved.device)
        return self

    def forward(
        self,
        X: torch.Tensor,
        by_category: torch.Tensor | None = None,
        prediction: torch.Tensor | None = None,
    ) -> Any:
        """Return recalibrated uncertainties, and what else was asked for."""
        given = [X] if X.ndim == 1 else list(X.unbind(1))
        columns = [each.to(torch.float64).contiguous() for each in given]
        u = columns[0]
        good = u >= 0
        for position, kind in self._columns:
            if kind == "number":
                good = good & torch.isfinite(columns[position])
            elif kind == "optional":
                good = good & ~torch.isinf(columns[position])
        u = torch.where(u == 0, self._smallest, u)
        columns[0] = torch.clamp(u, SMALLEST, LARGEST)
        dtype = X.dtype if X.dtype.is_floating_point else torch.float64
        bounds = torch.finfo(dtype)
        scale = self._run("scale", columns)
        scale = torch.clamp(scale, bounds.smallest_normal, bounds.max)
        scale = torch.where(good, scale, torch.nan)
        if not (self._shifted or self._n_limits or self._n_levels):
            return scale.to(dtype)
        location = torch.zeros_like(scale)
        if "shift" in self._programs:
            location = torch.where(good, self._run("shift", columns), torch.nan)
        if prediction is not None:
            location = location + prediction.to(torch.float64)
        category = torch.zeros_like(scale)
        if self._by_category:
            if by_category is None:
                msg = "`by_category` must be given: conformalize was called with it."
                raise ValueError(msg)
            category = by_category.to(torch.float64).contiguous()
        found = [
            location + scale * self._run(f"multiple{i}", [scale, category])
            for i in range(self._n_limits + self._n_levels)
        ]
        returned = [scale, location] if self._shifted else [scale]
        for some in (found[: self._n_limits], found[self._n_limits :]):
            returned += [torch.stack(some, 1)] if some else []
        return tuple(each.to(dtype) for each in returned)
