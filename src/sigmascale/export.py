"""Recalibrators as files for ONNX Runtime, which programs in any language can run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._support.files import whole_file
from .distributions import any_bound, check_bounds, check_coverage, check_levels
from .exceptions import InvalidInputError
from .recalibrator import Recalibrator

Y_PRED = "y_pred"  # the input of predictions


def to_onnx(
    recalibrator: Recalibrator,
    path: str | Path,
    *,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
) -> None:
    """Write a recalibrator as an ONNX model.

    It has an input for each column that is needed, of shape (n,): "u", features by
    their names, and "y_pred" where predictions matter. Numbers are float64, missing
    ones NaN; labels are strings, missing ones empty. Outputs have the names that
    :func:`sigmascale.frames.apply` gives to columns: "u_recalibrated";
    "y_pred_recalibrated", if the recalibrator knows a bias; "u_recalibrated_q0.05" and
    so on for quantiles of the truth; "u_recalibrated_low" and "u_recalibrated_high" for
    an interval, or for vectors "u_recalibrated_radius". The graph is what the
    evaluator does with arrays of ndonnx, which has to be installed.

    Parameters
    ----------
    recalibrator : Recalibrator
        A fitted one.
    path : str or Path
        Where to write. A file there is replaced once the new one is whole.
    quantiles : list of float, optional
        Levels of quantiles.
    interval : float, optional
        Coverage of a central interval; of vectors, of a ball.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(300).predictions
    >>> r = ss.Recalibrator(ss.LinearScaling()).fit(p)
    >>> path = Path(tempfile.mkdtemp()) / "r.onnx"
    >>> ss.export.to_onnx(r, path, quantiles=[0.05, 0.95])
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(path)
    >>> [each.name for each in session.get_inputs()]
    ['u', 'y_pred']
    >>> inputs = {"u": p.y_std, "y_pred": np.zeros(300)}
    >>> u, low, high = session.run(None, inputs)
    >>> bool(np.allclose(u, r.predict(p)))
    True
    """
    try:
        import ndonnx as ndx
    except ImportError as problem:
        msg = "to_onnx needs the package ndonnx: pip install ndonnx"
        raise ImportError(msg) from problem
    check_is_fitted(recalibrator)
    scale_map, bias_map = recalibrator.scale_, recalibrator.bias_
    maps = [scale_map] if bias_map is None else [scale_map, bias_map]
    names = recalibrator.names_
    if Y_PRED in names:
        msg = f'No feature can be named "{Y_PRED}", as predictions are. Rename it.'
        raise InvalidInputError(msg)
    columns: list[Any] = [None] * len(names)  # arguments of the graph, if needed
    for k in sorted(set().union(*(each.columns for each in maps))):
        text = any(k in each.labelled for each in maps)
        columns[k] = ndx.argument(shape=("n",), dtype=ndx.utf8 if text else ndx.float64)
    inputs = {names[k]: x for k, x in enumerate(columns) if x is not None}

    scale = scale_map.evaluate(columns, ndx, ndx.asarray)
    new = f"{names[0]}_recalibrated"
    outputs = {new: scale}
    z = recalibrator.distribution_
    levels = {f"{new}_q{p:g}": p for p in check_levels(quantiles)} if quantiles else {}
    if interval is not None and z.dim is None:
        share = check_coverage(interval)
        levels |= {f"{new}_low": (1 - share) / 2, f"{new}_high": (1 + share) / 2}
    if levels and z.dim is not None:
        msg = "`quantiles` need numbers, as vectors have no sign. Pass `interval`."
        raise InvalidInputError(msg, "vectors")
    if levels or bias_map is not None:
        centre = inputs[Y_PRED] = ndx.argument(shape=("n",), dtype=ndx.float64)
        if bias_map is not None:
            centre = centre + bias_map.evaluate(columns, ndx, ndx.asarray)
            outputs[f"{Y_PRED}_recalibrated"] = centre
    # which table of the distribution is whose, and what it says
    code = ndx.searchsorted(ndx.asarray(z.edges), scale, side="right")
    bounds = check_bounds(recalibrator.bounds)
    for name, level in levels.items():
        by_table = z.quantiles(np.array([level]))[:, 0]
        found = centre + scale * ndx.take(ndx.asarray(by_table), code, axis=0)
        outputs[name] = ndx.clip(found, *bounds) if any_bound(bounds) else found
    if interval is not None and z.dim is not None:
        radii = np.sqrt(z.dim) * z.quantiles(np.array([check_coverage(interval)]))[:, 0]
        radius = scale * ndx.take(ndx.asarray(radii), code, axis=0)
        outputs[f"{new}_radius"] = radius
    model = ndx.build(inputs, outputs)
    with whole_file(Path(path)) as part:
        part.write_bytes(model.SerializeToString())
