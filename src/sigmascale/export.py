"""Recalibrators as files for ONNX Runtime, which programs in any language can run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._support.files import whole_file
from ._support.libraries import Library
from ._support.parameters import check_is_fitted
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
    parts = recalibrator.parts_
    names = recalibrator.names_
    if Y_PRED in names:
        msg = f'No feature can be named "{Y_PRED}", as predictions are. Rename it.'
        raise InvalidInputError(msg)
    columns: list[Any] = [None] * len(names)  # arguments of the graph, if needed
    for k in sorted(recalibrator.columns_):
        text = k in recalibrator.labelled_
        columns[k] = ndx.argument(shape=("n",), dtype=ndx.utf8 if text else ndx.float64)
    inputs = {names[k]: x for k, x in enumerate(columns) if x is not None}

    library = Library(ndx, {})
    scale = scale_map.evaluate(columns, library)
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
            centre = centre + bias_map.evaluate(columns, library)
            outputs[f"{Y_PRED}_recalibrated"] = centre
    # which table of the distribution is whose, and how far each part stretches it
    code = ndx.searchsorted(ndx.asarray(z.edges), scale, side="right")
    code_of_part = []
    if parts is not None:
        for axis in parts.axes:
            code_of_part.append(axis.codes(columns, library))

    def quantile_of_z(level: float) -> Any:
        if parts is None:
            by_table = z.quantiles(np.array([level]))[:, 0]
            return ndx.take(ndx.asarray(by_table), code, axis=0)
        total: Any = None
        for lookup in parts.lookups(z, level):
            reach: Any = None
            for by_code, of_row in zip(lookup.reaches, code_of_part, strict=True):
                at = code * by_code.shape[1] + of_row
                own = ndx.take(ndx.asarray(np.ravel(by_code)), at, axis=0)
                reach = own if reach is None else ndx.where(own > reach, own, reach)
            median = ndx.take(ndx.asarray(lookup.median), code, axis=0)
            found = median + lookup.sign * reach
            found = found if lookup.share == 1 else lookup.share * found
            total = found if total is None else total + found
        return total

    bounds = check_bounds(recalibrator.bounds)
    for name, level in levels.items():
        found = centre + scale * quantile_of_z(float(level))
        outputs[name] = ndx.clip(found, *bounds) if any_bound(bounds) else found
    if interval is not None and z.dim is not None:
        radius = quantile_of_z(check_coverage(interval))
        outputs[f"{new}_radius"] = scale * float(np.sqrt(z.dim)) * radius
    model = ndx.build(inputs, outputs)
    with whole_file(Path(path)) as part:
        part.write_bytes(model.SerializeToString())
