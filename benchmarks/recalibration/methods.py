"""The methods that are compared; one of your own is a class like these."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale.scaling import VarianceScaler

DEFAULT = "default"
RAW = "none"
ONE_FACTOR = "one factor"


class Method:
    """A way to recalibrate.

    A class of your own, in a file that `--method FILE` names, derives from this. `name`
    is what it is called, `requires` a package without which it is skipped.
    """

    name: ClassVar[str]
    requires: ClassVar[str | None] = None

    def fit(
        self, X: pl.DataFrame, error: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Learn from a calibration set: u in the first column of X, then features.

        Rows with the same value of `groups` belong together, if it is not None.
        """
        raise NotImplementedError

    def predict(self, X: pl.DataFrame) -> np.ndarray:
        """Return recalibrated uncertainties, which are positive."""
        raise NotImplementedError

    def distributions(self, X: pl.DataFrame) -> ss.Distributions:
        """Return distributions of the error; normal ones if it knows no other."""
        return ss.Distributions(np.zeros(X.height), self.predict(X))


class _Ours(Method):
    """A recalibrator of sigmascale."""

    scaler: ClassVar[VarianceScaler]

    def fit(
        self, X: pl.DataFrame, error: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Fit a copy of it."""
        from sklearn.base import clone

        self.fitted = clone(self.scaler).fit(X, error, groups=groups)

    def predict(self, X: pl.DataFrame) -> np.ndarray:
        """Return what it predicts."""
        return self.fitted.predict(X)

    def distributions(self, X: pl.DataFrame) -> ss.Distributions:
        """Return distributions of the error, with the law that was learned."""
        if isinstance(self.fitted, ss.Recalibrator):
            return self.fitted.predict_distribution(X)
        return super().distributions(X)


def _ours(name: str, scaler: VarianceScaler) -> type[Method]:
    return type(name, (_Ours,), {"name": name, "scaler": scaler})


class _UncertaintyToolbox(Method):
    """The factor of u for which the calibration curve is nearest to the diagonal."""

    name = "uncertainty-toolbox"
    requires = "uncertainty_toolbox"

    def fit(
        self, X: pl.DataFrame, error: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Recalibrate as its documentation does."""
        from uncertainty_toolbox.recalibration import get_std_recalibrator

        # predictions of 0, so that the truth is the error
        self.recalibrate = get_std_recalibrator(
            np.zeros(error.size), X["u"].to_numpy(), error
        )

    def predict(self, X: pl.DataFrame) -> np.ndarray:
        """Return the uncertainties times the factor."""
        return self.recalibrate(X["u"].to_numpy())


class _MastMl(Method):
    """a u + b of maximum likelihood by Nelder and Mead's method from a = 1, b = 0.

    As in MAST-ML (G. Palmer et al., npj Comput. Mater. 8, 115 (2022),
    doi:10.1038/s41524-022-00794-8).
    """

    name = "a u + b (MAST-ML)"

    def fit(
        self, X: pl.DataFrame, error: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Minimise the negative log-likelihood."""
        from scipy.optimize import minimize

        u = X["u"].to_numpy()

        def loss(parameters: np.ndarray) -> float:
            sigma = np.abs(parameters[0] * u + parameters[1])
            if not sigma.all():
                return np.inf
            return float(np.sum(np.log(sigma) + 0.5 * (error / sigma) ** 2))

        self.a, self.b = minimize(loss, [1.0, 0.0], method="Nelder-Mead").x

    def predict(self, X: pl.DataFrame) -> np.ndarray:
        """Return the line."""
        return np.abs(self.a * X["u"].to_numpy() + self.b)


class _LightGbm(Method):
    """Gamma boosting of z² on u and all features, with LightGBM's own defaults."""

    name = "LightGBM, gamma"
    requires = "lightgbm"

    def fit(
        self, X: pl.DataFrame, error: np.ndarray, groups: np.ndarray | None
    ) -> None:
        """Boost z²; those of 0, which the gamma law does not know, count as tiny."""
        from lightgbm import LGBMRegressor

        self.labels = {
            column.name: column.unique().sort()
            for column in X
            if column.dtype == pl.String
        }
        z2 = np.maximum((error / X["u"].to_numpy()) ** 2, 1e-12)
        self.model = LGBMRegressor(objective="gamma", n_jobs=1, verbose=-1)
        places = [i for i, name in enumerate(X.columns) if name in self.labels]
        self.model.fit(self._numbers(X), z2, categorical_feature=places or "auto")

    def _numbers(self, X: pl.DataFrame) -> np.ndarray:
        """Return features as numbers; labels by their place, unknown ones missing."""
        columns = []
        for column in X:
            if column.name in self.labels:
                known = {label: i for i, label in enumerate(self.labels[column.name])}
                columns.append([known.get(label, np.nan) for label in column])
            else:
                columns.append(column.to_numpy())
        return np.column_stack(columns).astype(float)

    def predict(self, X: pl.DataFrame) -> np.ndarray:
        """Return u times the root of what the trees predict of z²."""
        return X["u"].to_numpy() * np.sqrt(self.model.predict(self._numbers(X)))


METHODS: tuple[type[Method], ...] = (
    _ours(RAW, ss.NoScaling()),
    _ours(ONE_FACTOR, ss.TemperatureScaling()),
    _ours("linear", ss.LinearScaling()),
    _ours("isotonic", ss.IsotonicScaling()),
    _ours("bins", ss.BinwiseScaling(20)),
    _ours("raked", ss.RakedScaling()),
    _ours("boosted", ss.BoostedScaling()),
    _ours("selected", ss.SelectedScaling()),
    _ours(DEFAULT, ss.Recalibrator()),
    _ours("default, shifted", ss.Recalibrator(shift="auto")),
    _UncertaintyToolbox,
    _MastMl,
    _LightGbm,
)


def from_file(path: Path) -> list[type[Method]]:
    """Return the methods that a file of Python defines."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        msg = f"{path}: there is no such file of Python."
        raise SystemExit(msg)
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Method) and each is not Method
    ]
    if not found:
        msg = f"{path}: no class there derives from Method."
        raise SystemExit(msg)
    return found


def without_missing(
    methods: Iterable[type[Method]],
) -> tuple[list[type[Method]], dict[str, str]]:
    """Return methods whose package is there, and why the others are skipped."""
    usable, skipped = [], {}
    for method in methods:
        if method.requires is None or importlib.util.find_spec(method.requires):
            usable.append(method)
        else:
            package = method.requires.replace("_", "-")
            skipped[method.name] = f"skipped: pip install {package}"
    return usable, skipped
