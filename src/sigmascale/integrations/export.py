"""Recalibrators as files for ONNX Runtime, which programs in any language can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._support.extras import needed_for
from .._support.files import whole_file
from .._support.libraries import Array, Library
from .._support.parameters import check_is_fitted
from ..exceptions import InvalidInputError
from ..recalibration.distributions import (
    Parts,
    ZDistribution,
    any_bound,
    check_bounds,
    check_coverage,
    check_levels,
)
from ..recalibration.distributions.stretched import Lookup
from ..recalibration.recalibrator import Recalibrator

Y_PRED = "y_pred"  # the input of predictions


def to_onnx(
    recalibrator: Recalibrator,
    path: str | Path,
    *,
    quantiles: Sequence[float] = (),
    coverage: float | None = None,
) -> None:
    """Write a recalibrator as an ONNX model.

    It has an input for each column that is needed, of shape (n,): "u", features by
    their names, and "y_pred" where predictions matter. Numbers are float64, missing
    ones NaN; labels are strings, missing ones empty. Outputs have the names that
    :func:`sigmascale.frames.apply` gives to columns: "u_recalibrated";
    "y_pred_recalibrated", if the recalibrator knows a bias; "u_recalibrated_q0.05" and
    so on for quantiles of true values; "u_recalibrated_low" and "u_recalibrated_high"
    for an interval, or for vectors "u_recalibrated_radius". The graph is what the
    evaluator does with arrays of ndonnx, which has to be installed.

    Parameters
    ----------
    recalibrator : Recalibrator
        A fitted one.
    path : str or Path
        Where to write. A file there is replaced once the new one is whole.
    quantiles : list of float, optional
        Levels of quantiles.
    coverage : float, optional
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
    >>> [column.name for column in session.get_inputs()]
    ['u', 'y_pred']
    >>> inputs = {"u": p.y_std, "y_pred": np.zeros(300)}
    >>> u, low, high = session.run(None, inputs)
    >>> bool(np.allclose(u, r.predict(p)))
    True
    """
    with needed_for("to_onnx"):
        import ndonnx as ndx
    check_is_fitted(recalibrator)
    names = recalibrator.names_
    if Y_PRED in names:
        msg = f'No feature can be named "{Y_PRED}", as predictions are. Rename it.'
        raise InvalidInputError(msg)

    # inputs: the columns that something depends on
    inputs: dict[str, Any] = {}
    columns: list[Any] = [None] * len(names)
    for position in sorted(recalibrator.columns_):
        is_labelled = position in recalibrator.labelled_
        dtype = ndx.utf8 if is_labelled else ndx.float64
        columns[position] = ndx.argument(shape=("n",), dtype=dtype)
        inputs[names[position]] = columns[position]

    # the recalibrated uncertainty
    library = Library(ndx, {})
    xp = library.xp
    scale = recalibrator.scale_.evaluate(columns, library)
    name_of_u = f"{names[0]}_recalibrated"
    outputs = {name_of_u: scale}

    # levels of quantiles, by the names of their outputs
    z = recalibrator.distribution_
    is_vector = z.dim is not None
    levels: dict[str, float] = {}
    if quantiles:
        levels = {f"{name_of_u}_q{p:g}": float(p) for p in check_levels(quantiles)}
    if coverage is not None:
        coverage = check_coverage(coverage)
    if coverage is not None and not is_vector:
        levels[f"{name_of_u}_low"] = (1 - coverage) / 2
        levels[f"{name_of_u}_high"] = (1 + coverage) / 2
    if levels and is_vector:
        msg = "`quantiles` need numbers, as vectors have no sign. Pass `coverage`."
        raise InvalidInputError(msg, "vectors")

    # what distributions are about: predictions, with their bias corrected
    bias = recalibrator.bias_
    if recalibrator.shape_kept_:
        if levels:
            msg = (
                "`quantiles` and `coverage` need the shapes of rows, which an ONNX "
                "graph does not have. Export uncertainties alone, and take limits from "
                "`apply`, or fit with shape=False."
            )
            raise InvalidInputError(msg, "shapes-of-rows")
        bias = None  # which moves rows along their shapes
    if levels or bias is not None:
        centre = ndx.argument(shape=("n",), dtype=ndx.float64)
        inputs[Y_PRED] = centre
    if bias is not None:
        centre = centre + bias.evaluate(columns, library)
        outputs[f"{Y_PRED}_recalibrated"] = centre

    # quantiles of true values, and the radius of a ball
    parts = recalibrator.parts_
    graph_of_z = _GraphOfZ(
        z=z,
        parts=parts,
        table=xp.searchsorted(xp.asarray(z.edges), scale, side="right"),
        codes=[]
        if parts is None
        else [axis.codes(columns, library) for axis in parts.axes],
        library=library,
    )
    bounds = check_bounds(recalibrator.bounds)
    for name, level in levels.items():
        quantile = centre + scale * graph_of_z.quantile(level)
        is_bounded = any_bound(bounds)
        outputs[name] = ndx.clip(quantile, *bounds) if is_bounded else quantile
    if coverage is not None and z.dim is not None:
        radius = graph_of_z.quantile(coverage)
        outputs[f"{name_of_u}_radius"] = scale * float(np.sqrt(z.dim)) * radius

    model = ndx.build(inputs, outputs)
    with whole_file(Path(path)) as part:
        part.write_bytes(model.SerializeToString())


@dataclass(frozen=True)
class _GraphOfZ:
    """The distribution of z as a graph, which looks quantiles up for each row.

    Attributes
    ----------
    z : ZDistribution
        The distribution.
    parts : Parts or None
        How far it is stretched in each part.
    table : array of ndonnx, shape (n,)
        Which table of the distribution is whose.
    codes : list of arrays of ndonnx, shape (n,)
        Of each axis of the parts, which part a row is in.
    library : Library
        The library of these arrays.
    """

    z: ZDistribution
    parts: Parts | None
    table: Array
    codes: list[Array]
    library: Library

    def quantile(self, level: float) -> Array:
        """Return a quantile of z, or of radii, for each row.

        Where parts stretch it, it is a sum of lookups: Σ share · (median ± reach).
        """
        if self.parts is None:
            quantile_of_tables = self.z.quantiles(np.array([level]))[:, 0]
            return self.library.look_up(quantile_of_tables, self.table)
        total: Array = None
        for lookup in self.parts.lookups(self.z, level):
            median = self.library.look_up(lookup.median, self.table)
            quantile = median + lookup.sign * self._reach(lookup)
            if lookup.share != 1:
                quantile = lookup.share * quantile
            total = quantile if total is None else total + quantile
        return total

    def _reach(self, lookup: Lookup) -> Array:
        """Return the largest reach of all parts that a row is in."""
        where = self.library.xp.where
        largest: Array = None
        for reaches, code in zip(lookup.reaches, self.codes, strict=True):
            n_codes = reaches.shape[1]
            at = self.table * n_codes + code
            reach = self.library.look_up(np.ravel(reaches), at)
            if largest is not None:
                reach = where(reach > largest, reach, largest)
            largest = reach
        return largest
