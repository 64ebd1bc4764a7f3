"""Recalibrators as models of other runtimes: an ONNX file, a PyTorch module."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
    quantiles: Sequence[float] = (),
    shift: bool = False,
    prediction: str | None = None,
) -> None:
    """Write a fitted recalibrator as an ONNX file.

    The model has an input for each column that is needed, named as in `fit` ("u", "X1",
    "X2", ... for arrays), of shape (n,): numbers, or strings where labels are text. Its
    outputs have shape (n,), too: ``uncertainty``, and what is asked for of ``shifted``,
    ``low`` and ``high``, ``q0.05`` and so on. Everything is computed in float64. An
    output that would be called as an input gets an underscore, ``uncertainty_``, and a
    column without a name is the input ``_``.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one.
    path : str or Path
        The file.
    dtype : {"float64", "float32"}, default "float64"
        The type of all numbers that go in and come out.
    coverage : float, optional
        The probability with which limits hold the error, as those of
        `predict_interval`. After `conformalize` with categories, these are an input
        named ``by_category``.
    asymmetric : bool, default False
        Whether the limits of `conformalize` are quantiles of their own.
    quantiles : list of float, optional
        Levels of quantiles of the error, as those of `predict_quantiles`.
    shift : bool, default False
        Whether to give what predictions are off by on average, ``shifted``.
    prediction : str, optional
        The name of an input of predictions. Limits and quantiles are then those of the
        truth, and ``shifted`` is the shifted prediction.

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
    learned = Learned.of(
        scaler, coverage, quantiles, asymmetric=asymmetric, shift=shift
    )
    try:
        import onnx
    except ImportError as problem:
        msg = "An ONNX file needs the package onnx: pip install onnx."
        raise ImportError(msg, name="onnx") from problem
    from .onnx_graph import Graph, free_name

    saved, text = learned.saved, learned.text_labels
    names = {i: saved.names[i] for i, _ in learned.columns}
    taken = {name for name in names.values() if name}
    names = {i: name or free_name("", taken) for i, name in names.items()}
    by_name = {saved.names[i]: i for i in names if i not in text}
    if learned.categories is not None:
        category = free_name("by_category", taken)
    if prediction is not None and prediction not in by_name:
        prediction = free_name(prediction, taken)
    graph = Graph(dtype, taken)
    given = {
        position: (graph.text_input if position in text else graph.number_input)(name)
        for position, name in names.items()
    }
    good = [graph.node("GreaterOrEqual", given[0], graph.constant(0.0))]
    for position, kind in learned.columns:
        if kind == "number":
            good.append(graph.is_finite(given[position]))
        elif kind == "optional":
            good.append(graph.node("Not", graph.node("IsInf", given[position])))
    all_good = reduce(lambda a, b: graph.node("And", a, b), good)
    is_zero = graph.node("Equal", given[0], graph.constant(0.0))
    raised = graph.constant(saved.smallest_uncertainty)
    u = graph.node("Where", is_zero, raised, given[0])
    values = given | {0: graph.clip(u, SMALLEST, LARGEST)}
    bounds = np.finfo(dtype)
    found = graph.clip(
        graph.value(saved.root, values), float(bounds.tiny), float(bounds.max)
    )
    scale = graph.node("Where", all_good, found, graph.constant(np.nan))
    graph.output("uncertainty", scale)
    location = None if learned.shift is None else graph.value(learned.shift, values)
    if prediction is not None:
        at = by_name.get(prediction)
        value = graph.number_input(prediction) if at is None else given[at]
        location = value if location is None else graph.node("Add", value, location)
    if learned.shifted:
        assert location is not None
        nan = graph.constant(np.nan)
        graph.output("shifted", graph.node("Where", all_good, location, nan))
    of_scale = {0: scale}
    if learned.categories is not None:
        is_text = learned.categories.are_text
        add = graph.text_input if is_text else graph.number_input
        of_scale[1] = add(category)
    multiples = [*zip(("low", "high"), learned.limits, strict=False)]
    for level, node in zip(learned.levels, learned.quantiles, strict=True):
        multiples.append((f"q{level:g}", node))
    for name, node in multiples:
        value = graph.node("Mul", graph.value(node, of_scale), scale)
        if location is not None:
            value = graph.node("Add", location, value)
        graph.output(name, value)
    told = {
        "sigmascale": saved.library,
        "method": saved.method,
        "columns": json.dumps(saved.names),
    }
    if learned.coverage is not None:
        told["coverage"] = repr(learned.coverage)
    model = graph.model(told)
    onnx.checker.check_model(model, full_check=True)
    with whole_file(Path(path)) as part:
        part.write_bytes(model.SerializeToString())


def to_torch(
    scaler: Any,
    *,
    coverage: float | None = None,
    asymmetric: bool = False,
    quantiles: Sequence[float] = (),
    shift: bool = False,
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
        Return limits of the error, too, as those of `predict_interval`.
    asymmetric : bool, default False
        Whether the limits of `conformalize` are quantiles of their own.
    quantiles : list of float, optional
        Levels of quantiles of the error, as those of `predict_quantiles`.
    shift : bool, default False
        Whether to return what predictions are off by on average.

    Returns
    -------
    torch.nn.Module
        ``module(X)`` gives uncertainties; or a tuple of these and of what is asked for,
        in this order: shifts of shape (n,), limits of shape (n, 2), quantiles of shape
        (n, n_levels). With ``module(X, prediction=...)``, a tensor of shape (n,), these
        are shifted predictions, and limits and quantiles of the truth.
        ``module(X, by_category=...)`` is for limits by category.

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
    learned = Learned.of(
        scaler, coverage, quantiles, asymmetric=asymmetric, shift=shift
    )
    try:
        from .torch_module import Recalibration
    except ImportError as problem:
        if problem.name != "torch":
            raise
        msg = "A PyTorch module needs PyTorch: pip install torch."
        raise ImportError(msg, name="torch") from problem
    return Recalibration(learned)
