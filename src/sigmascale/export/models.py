"""Recalibrators as models of other runtimes: an ONNX file, a PyTorch module."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._support.checks import LARGEST, SMALLEST, check_choice
from .._support.files import whole_file
from .learned import Learned


def to_onnx(
    scaler: Any,
    path: str | Path,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    coverage: float | None = None,
    asymmetric: bool = False,
) -> None:
    """Write a fitted recalibrator as an ONNX file.

    The model has an input for each column that is needed, named as in `fit` ("u", "X1",
    "X2", ... for arrays), of shape (n,): numbers, or strings where labels are text. Its
    output ``uncertainty`` has shape (n,), as have ``low`` and ``high``, the limits of
    the error, if `coverage` is given. Everything is computed in float64.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one.
    path : str or Path
        The file.
    dtype : {"float64", "float32"}, default "float64"
        The type of all numbers that go in and come out.
    coverage : float, optional
        The probability with which limits hold an error; needs `conformalize`. Groups
        are an input named ``by_category``.
    asymmetric : bool, default False
        Whether the limits are quantiles of their own.

    Notes
    -----
    Only standard operators are used, and for boosted trees ``TreeEnsemble`` of
    ai.onnx.ml 5, which ONNX Runtime has since version 1.21. A model raises no errors:
    where the uncertainty is negative, or a number that is needed is missing or
    infinite, the result is NaN. The metadata have the version of sigmascale and all
    columns.

    Examples
    --------
    >>> import sigmascale as ss
    >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
    >>> ss.export.to_onnx(scaler, "scaler.onnx")  # doctest: +SKIP
    >>> import onnxruntime  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession("scaler.onnx")  # doctest: +SKIP
    >>> session.run(None, {"u": np.array([1.0, 3.0])})  # doctest: +SKIP
    [array([2., 6.])]
    """
    check_choice(dtype, "dtype", ("float64", "float32"))
    learned = Learned.of(scaler, coverage, asymmetric=asymmetric)
    try:
        import onnx
    except ImportError as problem:
        msg = "An ONNX file needs the package onnx: pip install onnx."
        raise ImportError(msg, name="onnx") from problem
    from .onnx_graph import Graph

    graph = Graph(dtype)
    values: dict[int, str] = {}
    good = []
    for column in learned.columns:
        name = learned.names[column.position]
        if column.kind == "label" and graph.has_text_labels(learned.root, column):
            values[column.position] = graph.text_input(name)
            continue
        x = values[column.position] = graph.number_input(name)
        if column.kind == "number":
            good.append(graph.is_finite(x))
        elif column.kind == "optional":
            good.append(graph.node("Not", graph.node("IsInf", x)))
    u, zero = values[0], graph.constant(0.0)
    good.append(graph.node("GreaterOrEqual", u, zero))
    raised = graph.constant(learned.smallest)
    values[0] = graph.clip(
        graph.node("Where", graph.node("Equal", u, zero), raised, u), SMALLEST, LARGEST
    )
    bounds = np.finfo(dtype)
    found = graph.clip(
        graph.value(learned.root, values), float(bounds.tiny), float(bounds.max)
    )
    all_good = reduce(lambda a, b: graph.node("And", a, b), good)
    found = graph.node("Where", all_good, found, graph.constant(np.nan))
    graph.output("uncertainty", found)
    if learned.limits is not None:
        code = None
        if learned.categories is not None:
            is_text = learned.categories.are_text
            add = graph.text_input if is_text else graph.number_input
            code = graph.label_code(add("by_category"), learned.categories)
        # labels never seen are the first by code, and the last of the limits
        limits = np.roll(learned.limits, 1, axis=0)
        for name, each in zip(("low", "high"), limits.T, strict=True):
            z = (
                graph.constant(float(each[1]))
                if code is None
                else graph.node("Gather", graph.constant(each), code)
            )
            graph.output(name, graph.node("Mul", z, found))
    told = {
        "sigmascale": learned.library,
        "method": learned.method,
        "columns": json.dumps(learned.names),
    }
    if learned.coverage is not None:
        told["coverage"] = repr(learned.coverage)
    model = graph.model(told)
    onnx.checker.check_model(model, full_check=True)
    with whole_file(Path(path)) as part:
        part.write_bytes(model.SerializeToString())


def to_torch(
    scaler: Any, *, coverage: float | None = None, asymmetric: bool = False
) -> Any:
    """Return a fitted recalibrator as a PyTorch module.

    The module maps the conditioning table, a tensor of shape (n, n_columns) with the
    uncertainty first, or of shape (n,), to recalibrated uncertainties of the same dtype
    and device. All that was learned is in buffers: it moves with ``.to(device)`` and is
    saved with the ``state_dict`` of the model that it is a part of. Buffers stay in
    float64, in which everything is computed, when the model is cast to less.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one.
    coverage : float, optional
        Return limits of the errors, too, which hold with this probability; needs
        `conformalize`.
    asymmetric : bool, default False
        Whether the limits are quantiles of their own.

    Returns
    -------
    torch.nn.Module
        ``module(X)`` gives uncertainties or, if `coverage` is given, uncertainties and
        limits of shape (n, 2). ``module(X, by_category)`` is for limits by category.

    Notes
    -----
    A module raises no errors and no warnings: where the uncertainty is negative, or a
    number that is needed is missing or infinite, the result is NaN. Labels that were
    text are given by their position in ``module.labels[name]``; other numbers count as
    unknown, and take the average factor.

    The gradient is that of the arithmetic and of interpolation. A step, from one bin to
    the next, has the gradient 0: of a bin-wise factor s(u) u it is s.

    The module can be exported (``torch.export``), compiled and traced; it cannot be
    scripted (``torch.jit.script``), because it runs a program of Python functions.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> import sigmascale as ss
    >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
    >>> ss.export.to_torch(scaler)(torch.tensor([1.0, 3.0]))  # doctest: +SKIP
    tensor([2., 6.])
    """
    learned = Learned.of(scaler, coverage, asymmetric=asymmetric)
    try:
        from .torch_module import Recalibration
    except ImportError as problem:
        if problem.name != "torch":
            raise
        msg = "A PyTorch module needs PyTorch: pip install torch."
        raise ImportError(msg, name="torch") from problem
    return Recalibration(learned)
