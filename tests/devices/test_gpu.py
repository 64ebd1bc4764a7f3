"""On a GPU: what the other tests show on the CPU, and that no row leaves the device.

``make test-gpu`` runs these alone, with no more packages than they need.
"""

import warnings

import numpy as np
import pytest

import sigmascale as ss

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)

TorchDispatchMode = pytest.importorskip(
    "torch.utils._python_dispatch"
).TorchDispatchMode

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.ExtrapolationWarning",
    "ignore::sigmascale.exceptions.MissingFeatureWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
    "ignore::sigmascale.exceptions.FewerBinsWarning",
)


class NoRowsLeave(TorchDispatchMode):
    """Refuses copies to the host of more numbers than sums and limits have."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == "cpu":
            given = [each for each in args if isinstance(each, torch.Tensor)]
            if any(each.is_cuda for each in given):
                assert result.numel() <= 2**18, f"{func} copies {result.numel()}"
        return result


def cuda(values, dtype=torch.float64):
    return torch.from_numpy(np.array(values)).to("cuda", dtype)


def test_every_recalibrator_predicts_on_the_gpu_as_with_numpy(fitted, data_of):
    X, _ = data_of(1_000_000, 1, new=True)
    there = cuda(X)
    with NoRowsLeave():
        found = {name: scaler.predict(there) for name, scaler in fitted.items()}
    for name, scaler in fitted.items():
        assert found[name].device == there.device
        wanted = scaler.predict(X)
        np.testing.assert_allclose(found[name].cpu().numpy(), wanted, rtol=1e-12)


def test_modules_move_to_the_gpu_and_agree(fitted, data_of):
    X, _ = data_of(10_000, 2, new=True)
    for scaler in fitted.values():
        module = ss.export.to_torch(scaler).to("cuda")
        found = module(cuda(X))
        assert found.is_cuda
        np.testing.assert_allclose(found.cpu().numpy(), scaler.predict(X), rtol=1e-12)


def test_scores_on_the_gpu_are_those_of_numpy(data_of):
    X, error = data_of(1_000_000, 3)
    with NoRowsLeave():
        found = ss.scorecard(cuda(error), cuda(X[:, 0]), cuda(X[:, 1:3]))
        local = ss.local_zms(
            cuda(error), cuda(X[:, 0]), by=cuda(X[:, 1]), method="moments"
        )
    wanted = ss.scorecard(error, X[:, 0], X[:, 1:3])
    assert found.to_dict() == pytest.approx(wanted.to_dict(), rel=1e-9)
    wanted = ss.local_zms(error, X[:, 0], by=X[:, 1], method="moments")
    np.testing.assert_allclose(local.low, wanted.low, rtol=1e-9)


@pytest.mark.parametrize(
    ("scaler", "tolerance"),
    [
        (ss.TemperatureScaling(), 1e-12),
        (ss.BinwiseScaling(40), 1e-12),
        (ss.BinwiseScaling(40, by=1), 1e-12),
        (ss.BinwiseScaling((8, 5), by=(0, 1)), 1e-12),
        (ss.CategoryScaling(2), 1e-12),
        (ss.IsotonicScaling(), 1e-4),
        (ss.LinearScaling(), 1e-4),
        (ss.RakedScaling(8, shrinkage=9.0, categorical=[2]), 0.02),
    ],
    ids=lambda each: type(each).__name__,
)
def test_fits_on_the_gpu_are_those_of_numpy(data_of, scaler, tolerance):
    X, error = data_of(300_000, 4)
    with NoRowsLeave():
        there = scaler.fit(cuda(X), cuda(error)).map_
    wanted = scaler.fit(X, error).predict(X)
    scaler.map_ = there
    np.testing.assert_allclose(scaler.predict(X), wanted, rtol=tolerance)


def test_float32_scores_of_many_rows_are_those_of_float64():
    generator = torch.Generator("cuda").manual_seed(0)
    n_rows = 10**8
    u = torch.rand(n_rows, generator=generator, device="cuda") + 0.5
    error = torch.randn(n_rows, generator=generator, device="cuda") * u
    scores = (ss.zms, ss.nll, ss.local_calibration_error, ss.ence, ss.uce)
    found = [score(error, u) for score in scores]
    e64, u64 = error.cpu().numpy().astype(float), u.cpu().numpy().astype(float)
    for score, value in zip(scores[:2], found, strict=False):
        assert value == pytest.approx(score(e64, u64), rel=1e-6)
    del e64, u64
    wanted = [score(error.double(), u.double()) for score in scores]
    assert found == pytest.approx(wanted, rel=1e-6)


def test_tensors_on_two_devices_are_refused():
    with pytest.raises(ValueError, match="one device; found torch"):
        ss.zms(torch.ones(3, device="cuda"), torch.ones(3))


def _cupy():
    cupy = pytest.importorskip("cupy")
    return cupy.asarray, cupy.ndarray


def _jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "cpu":
        pytest.skip("JAX finds no GPU")

    def make(values):
        from sigmascale.bins.libraries import library_of

        with library_of(jax.numpy.zeros(1)).in_64_bits():
            return jax.numpy.asarray(values)

    return make, jax.Array


@pytest.mark.parametrize("library", [_cupy, _jax])
def test_cupy_and_jax_agree_with_numpy(library, fitted, data_of):
    from sigmascale.bins.libraries import to_numpy

    make, kind = library()
    X, error = data_of(100_000, 5, new=True)
    there = make(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scaler in fitted.values():
            found = scaler.predict(there)
            assert isinstance(found, kind)
            np.testing.assert_allclose(to_numpy(found), scaler.predict(X), rtol=1e-12)
        card = ss.scorecard(make(error), there[:, 0], there[:, 1:2]).to_dict()
    wanted = ss.scorecard(error, X[:, 0], X[:, 1:2]).to_dict()
    assert card == pytest.approx(wanted, rel=1e-9)
    scaler = ss.BinwiseScaling(20).fit(there[:, 0], make(error))
    wanted = ss.BinwiseScaling(20).fit(X[:, 0], error).factors_
    np.testing.assert_allclose(scaler.factors_, wanted, rtol=1e-12)


def test_an_onnx_file_agrees_on_this_machine(fitted, data_of, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    X, _ = data_of(10_000, 6, new=True)
    for name, scaler in fitted.items():
        path = tmp_path / f"{name}.onnx"
        ss.export.to_onnx(scaler, path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        columns = dict(zip(("u", "X1", "X2", "X3"), X.T, strict=True))
        needed = {each.name: columns[each.name].copy() for each in session.get_inputs()}
        found = session.run(None, needed)[0]
        np.testing.assert_allclose(found, scaler.predict(X), rtol=1e-12)
