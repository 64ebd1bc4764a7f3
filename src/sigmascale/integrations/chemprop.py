"""Recalibrators for chemprop 2: importing this module registers ``"sigmascale"``."""

from __future__ import annotations

from typing import Any, Self

import torch
from chemprop.uncertainty.calibrator import (
    RegressionCalibrator,
    UncertaintyCalibratorRegistry,
)
from sklearn.base import clone

from ..exceptions import InvalidInputError
from ..scaling import SelectedScaling


@UncertaintyCalibratorRegistry.register("sigmascale")
class SigmascaleCalibrator(RegressionCalibrator):
    """Recalibrate chemprop's regression uncertainties, which are variances.

    Parameters
    ----------
    scaler : recalibrator, optional
        Any of sigmascale's; each task gets one of its own. By default
        :class:`~sigmascale.SelectedScaling`, which chooses by cross-validation.

    Attributes
    ----------
    scalers : list
        The fitted recalibrator of each task.
    """

    def __init__(self, scaler: Any = None) -> None:
        super().__init__()
        self.scaler = SelectedScaling() if scaler is None else scaler
        self.scalers: list[Any] = []

    def fit(
        self, preds: Any, uncs: Any, targets: Any, mask: Any, features: Any = None
    ) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        preds, uncs, targets : Tensor of shape (n, n_tasks)
            Predictions, their variances, and what was measured.
        mask : Tensor of bool, shape (n, n_tasks)
            Which values count.
        features : Tensor of shape (n, n_features), optional
            Features of the molecules, such as those that the batch has in ``X_d``.

        Returns
        -------
        self
        """
        self.scalers = []
        for j in range(uncs.shape[1]):
            rows = mask[:, j]
            table = self._table(uncs[:, j], features)[rows]
            error = (targets[:, j] - preds[:, j]).detach()[rows]
            self.scalers.append(clone(self.scaler).fit(table, error.to(table.dtype)))
        return self

    def apply(self, uncs: Any, features: Any = None) -> Any:
        """Return recalibrated variances.

        Parameters
        ----------
        uncs : Tensor of shape (n, n_tasks)
            Variances.
        features : Tensor of shape (n, n_features), optional
            Features, if there were some in `fit`.

        Returns
        -------
        Tensor of shape (n, n_tasks)
        """
        if len(self.scalers) != uncs.shape[1]:
            msg = (
                f"`uncs` must have a column for each of {len(self.scalers)} tasks seen "
                f"in fit; found {uncs.shape[1]}."
            )
            raise InvalidInputError(msg)
        columns = [
            scaler.predict(self._table(uncs[:, j], features)) ** 2
            for j, scaler in enumerate(self.scalers)
        ]
        return torch.stack(columns, dim=1).to(uncs.dtype)

    @staticmethod
    def _table(variance: Any, features: Any) -> Any:
        u = torch.sqrt(variance.detach().to(torch.float64))
        columns = [u[:, None]]
        if features is not None:
            columns.append(features.detach().to(u))
        return torch.cat(columns, dim=1)
