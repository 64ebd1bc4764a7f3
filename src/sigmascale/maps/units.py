"""A map in another unit: for uncertainties that are multiples of something else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from .._support.checks import LARGEST, SMALLEST
from .nodes import Clip, Column, Constant, Node, Product, in_order, multiplied


def in_unit(root: Node, unit: float) -> Node:
    """Return the map that does in another unit what a map does.

    Parameters
    ----------
    root : Node
        A map from u to a number in the same unit.
    unit : float
        What one unit of `root` is, in the new one.

    Returns
    -------
    Node
        ``unit * root(u / unit)``. Columns other than the uncertainty stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sigmascale.maps import UNCERTAINTY, Hypotenuse, evaluate
    >>> root = in_unit(Hypotenuse(UNCERTAINTY, Constant(3.0)), 10.0)
    >>> evaluate(root, [np.array([40.0])], 1)
    array([50.])
    """
    inner = Clip(Product((Constant(1 / unit), Column(0))), SMALLEST, LARGEST)
    new: dict[int, Node] = {}
    for node in in_order(root):
        if isinstance(node, Column) and node.position == 0:
            new[id(node)] = inner
            continue
        inputs = {
            each.name: _renewed(getattr(node, each.name), new)
            for each in fields(node)  # type: ignore[arg-type]
            if each.name in node.input_fields
        }
        new[id(node)] = replace(node, **inputs) if inputs else node  # type: ignore[type-var]
    return multiplied(new[id(root)], unit)


def _renewed(value: Any, new: dict[int, Node]) -> Any:
    """Return what replaces an input, or each of several."""
    if isinstance(value, tuple):
        return tuple(new[id(each)] for each in value)
    return None if value is None else new[id(value)]
