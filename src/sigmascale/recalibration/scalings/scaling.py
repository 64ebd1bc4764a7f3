"""What a scaling is: a class with `learn`, which hands back a map as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from ..._support.checks import Floats
from ..._support.parameters import Parametrised
from ...predictions.predictions import Predictions
from ..additive import Additive


@dataclass(frozen=True, eq=False)
class Learned:
    """What a scaling has learned.

    Attributes
    ----------
    map : Additive
        The scale as a map.
    out_of_fold : array of shape (n,) or None
        The scale of each row by a fit that has not seen it, at the average of the map;
        for scalings that cross-fit anyway.
    """

    map: Additive
    out_of_fold: Floats | None = None


class Scaling(Parametrised):
    """What learns the scale of errors. One of your own has `learn`, and nothing else.

    Examples
    --------
    A scaling that multiplies all uncertainties by the median size of z, over 0.6745:

    >>> import numpy as np
    >>> import sigmascale as ss
    >>> from sigmascale.recalibration.additive import Additive
    >>> from sigmascale.recalibration.scalings import Learned
    >>> class MedianScaling(ss.Scaling):
    ...     def learn(self, rows):
    ...         return Learned(
    ...             Additive(constant=float(np.log(np.median(rows.abs_z) / 0.6745)))
    ...         )
    >>> p = ss.datasets.make_molecules(300, seed=1).predictions
    >>> ss.Recalibrator(MedianScaling()).fit(p).predict(p).shape
    (300,)
    """

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows.

        Parameters
        ----------
        rows : Predictions
            Rows with errors, not all of which are 0. `rows.z2` are the squares of the
            z-scores, for vectors, too; `rows.columns` the uncertainty and the features.
        """
        raise NotImplementedError
