"""A recalibrator in chemprop's registry.

chemprop brings RDKit and Lightning, too much for every run of the tests: where it is
not installed, its base class and its registry are stood in for, as version 2.3 has
them. Where it is, these are the real ones.
"""

import importlib
import importlib.util
import sys
import types
from abc import ABC, abstractmethod

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

torch = pytest.importorskip("torch")


class _Registry(dict):
    def register(self, alias):
        def add(cls):
            self[alias] = cls
            return cls

        return add


class _RegressionCalibrator(ABC):
    @abstractmethod
    def fit(self, preds, uncs, targets, mask): ...

    @abstractmethod
    def apply(self, uncs): ...


@pytest.fixture(scope="module")
def registry():
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("chemprop") is None:
            names = ("chemprop", "chemprop.uncertainty")
            for name in (*names, "chemprop.uncertainty.calibrator"):
                module = types.ModuleType(name)
                patch.setitem(sys.modules, name, module)
            module.RegressionCalibrator = _RegressionCalibrator
            module.UncertaintyCalibratorRegistry = _Registry()
        # a failed import of the module, as of its doctests, may have left a part of it
        patch.delitem(sys.modules, "sigmascale.integrations.chemprop", raising=False)
        importlib.import_module("sigmascale.integrations.chemprop")
        calibrator = sys.modules["chemprop.uncertainty.calibrator"]
        yield calibrator.UncertaintyCalibratorRegistry
        patch.delitem(sys.modules, "sigmascale.integrations.chemprop")


@pytest.fixture
def batch():
    """Two tasks, the variance of the first too small by 4; some targets are missing."""
    generator = torch.Generator().manual_seed(0)
    n = 4000
    variance = torch.rand(n, 2, generator=generator) + 0.5
    preds = torch.randn(n, 2, generator=generator)
    noise = torch.randn(n, 2, generator=generator)
    factor = torch.tensor([2.0, 1.0])
    targets = preds + noise * variance.sqrt() * factor
    mask = torch.rand(n, 2, generator=generator) < 0.8
    targets = torch.where(mask, targets, torch.nan)
    return preds, variance, targets, mask


def test_every_task_is_recalibrated_by_itself(registry, batch):
    preds, variance, targets, mask = batch
    calibrator = registry["sigmascale"](ss.TemperatureScaling())
    found = calibrator.fit(preds, variance, targets, mask).apply(variance)
    assert found.dtype == variance.dtype
    ratio = (found / variance).mean(dim=0)
    assert ratio.tolist() == pytest.approx([4.0, 1.0], rel=0.1)
    rows = mask[:, 0]
    error = (targets - preds)[rows, 0].double().numpy()
    wanted = ss.zms(error, variance[rows, 0].double().sqrt().numpy())
    assert float(ratio[0]) == pytest.approx(wanted, rel=1e-6)


def test_features_of_the_batch_are_used(registry, batch):
    preds, variance, targets, mask = batch
    features = torch.randn(len(preds), 2, generator=torch.Generator().manual_seed(1))
    noise = torch.exp(features[:, :1])
    targets = preds + noise * (targets - preds)
    calibrator = registry["sigmascale"](ss.RakedScaling(10))
    calibrator.fit(preds, variance, targets, mask, features)
    found = calibrator.apply(variance, features)[:, 1] / variance[:, 1]
    correlation = np.corrcoef(np.log(found.numpy()), features[:, 0].numpy())[0, 1]
    assert correlation > 0.97


def test_the_default_chooses_by_itself_and_tasks_are_compared(registry, batch):
    preds, variance, targets, mask = (each[:400] for each in batch)
    calibrator = registry["sigmascale"]()
    assert isinstance(calibrator.scaler, ss.SelectedScaling)
    calibrator.scaler = ss.LinearScaling()
    calibrator.fit(preds, variance, targets, mask)
    with pytest.raises(InvalidInputError, match=r"each of 2 tasks.*found 1"):
        calibrator.apply(variance[:, :1])
