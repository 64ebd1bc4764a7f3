"""What a fit has learned: an expression of a few kinds of nodes, as plain data.

Every recalibrator has its map in ``map_`` after `fit`. Predicting is evaluating it:
:func:`evaluate` does so with NumPy, :mod:`sigmascale.frames` in the batches of lazy
frames, and :func:`sigmascale.save` writes it to a file, node by node.
"""

from .nodes import (
    UNCERTAINTY,
    Clip,
    Code,
    Column,
    Constant,
    Exponential,
    FactorTable,
    Hypotenuse,
    Interpolation,
    Lookup,
    Node,
    Product,
    Root,
    Sum,
    factor_tables,
    in_order,
    multiplied,
    scaled,
)
from .prediction import evaluate
from .trees import Trees

__all__ = [
    "UNCERTAINTY",
    "Clip",
    "Code",
    "Column",
    "Constant",
    "Exponential",
    "FactorTable",
    "Hypotenuse",
    "Interpolation",
    "Lookup",
    "Node",
    "Product",
    "Root",
    "Sum",
    "Trees",
    "evaluate",
    "factor_tables",
    "in_order",
    "multiplied",
    "scaled",
]

KINDS: dict[str, type[Node]] = {
    kind.__name__: kind
    for kind in (
        Column,
        Constant,
        Sum,
        Product,
        Hypotenuse,
        Root,
        Exponential,
        Clip,
        Code,
        Lookup,
        Interpolation,
        Trees,
    )
}
