"""Maps on device arrays give what NumPy gives, where the rows are."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import sigmascale as ss
from sigmascale.exceptions import (
    InfiniteIntervalWarning,
    InvalidInputError,
    UnseenCategoryWarning,
    ZeroUncertaintyWarning,
)
from sigmascale.maps import Clip, Constant, Interpolation, Product, evaluate
from sigmascale.scaling import scalers

quiet = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.ExtrapolationWarning",
    "ignore::sigmascale.exceptions.MissingFeatureWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",
)


@quiet
@pytest.mark.parametrize("n", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_recalibrator_predicts_as_with_numpy_on_a_million_rows(
    arrays, fitted, data_of, n
):
    assert set(scalers()) <= set(fitted)
    X, _ = data_of(n, 1, new=True)
    X[::1000, 0] = 0.0
    there, there32 = arrays(X), arrays(X, "float32")
    for scaler in fitted.values():
        wanted = scaler.predict(X)
        found = scaler.predict(there)
        assert type(found) is type(there)
        assert found.dtype == there.dtype
        np.testing.assert_allclose(arrays.back(found), wanted, rtol=1e-12)
        found32 = scaler.predict(there32)
        assert found32.dtype == there32.dtype
        wanted = scaler.predict(X.astype(np.float32))
        # everything is computed in float64: no row falls into another bin
        np.testing.assert_allclose(arrays.back(found32), wanted, rtol=1e-6)


@quiet
def test_predictions_leave_no_row_on_the_host(arrays, fitted, data_of, few_leave):
    X, _ = data_of(100_000, 2, new=True)
    there = arrays(X)
    for scaler in fitted.values():
        scaler.predict(there)
    assert few_leave
    assert max(few_leave) < 100


def test_what_is_odd_about_rows_is_said_as_with_numpy(arrays, fitted, data_of):
    X, _ = data_of(100, 3)
    X[0, 0], X[1, 2] = 0.0, 77.0
    scaler = fitted["category"]
    for table in (X, arrays(X)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            scaler.predict(table)
        assert [each.category for each in told] == [
            ZeroUncertaintyWarning,
            UnseenCategoryWarning,
        ]
        assert str(told[0].message).startswith("1 of 100 uncertainties are exactly 0")
        assert str(told[1].message).startswith("1 of 100 rows have a label in column")


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (7, 0, -1.0, r"`uncertainty` must be strictly positive.*1 of 50.*row 7: -1"),
        (3, 0, np.nan, r"X\[:, u\].*must be finite.*row 3: nan"),
        (4, 3, np.inf, r"X\[:, X3\].*finite or missing.*row 4: inf"),
    ],
)
def test_bad_numbers_are_named_with_their_row(
    arrays, fitted, data_of, row, column, value, message
):
    X, _ = data_of(50, 4)
    X[row, column] = value
    with pytest.raises(InvalidInputError, match=message):
        fitted["raked"].predict(arrays(X))


def test_tables_of_a_wrong_shape_are_refused(arrays, fitted, data_of):
    X, _ = data_of(50, 4)
    with pytest.raises(InvalidInputError, match="1 features, but"):
        fitted["raked"].predict(arrays(X[:, 0]))
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted["raked"].predict(arrays(X[:, :3]))
    with pytest.raises(InvalidInputError, match=r"shape=.0, 4."):
        fitted["raked"].predict(arrays(X[:0]))
    with pytest.raises(InvalidInputError, match=r"shape=.1, 50, 4."):
        fitted["raked"].predict(arrays(X[None]))


def test_integers_are_predicted_in_float64(arrays):
    scaler = ss.TemperatureScaling().fit([1.0, 2.0], [2.0, 4.0])
    found = scaler.predict(arrays([1, 2, 3], "int64"))
    np.testing.assert_array_equal(arrays.back(found), [2.0, 4.0, 6.0])
    assert "float64" in str(found.dtype)


@pytest.mark.parametrize("shift", [None, "constant"])
def test_intervals_are_those_of_numpy(arrays, shift, data_of):
    X, error = data_of(2000, 5)
    recalibrator = ss.Recalibrator(ss.BinwiseScaling(40), shift=shift).fit(X, error)
    for by_category in (None, X[:, 2]):
        scaler = recalibrator.conformalize(X, error, by_category)
        for asymmetric in (False, True):
            how = {"coverage": 0.8, "asymmetric": asymmetric}
            wanted = scaler.predict_interval(X, **how, by_category=by_category)
            groups = None if by_category is None else arrays(by_category)
            found = scaler.predict_interval(arrays(X), **how, by_category=groups)
            np.testing.assert_allclose(arrays.back(found), wanted, rtol=1e-12)
    unseen = np.full(10, 9.0)
    with pytest.warns(InfiniteIntervalWarning, match="10 of 10 rows"):
        found = scaler.predict_interval(arrays(X[:10]), by_category=arrays(unseen))
    assert np.isinf(arrays.back(found)).all()
    with pytest.raises(InvalidInputError, match="by_category"):
        scaler.predict_interval(arrays(X))
    again = recalibrator.conformalize(arrays(X), arrays(error))
    left = error - scaler.predict_shift(X)
    np.testing.assert_allclose(again.conformal_.z, np.sort(left / scaler.predict(X)))
    assert again.score(arrays(X), arrays(error)) == pytest.approx(
        scaler.score(X, error), rel=1e-12
    )


@pytest.mark.parametrize("shift", [None, "auto"])
def test_distributions_are_those_of_numpy(arrays, shift, data_of):
    X, error = data_of(500, 6)
    error = error + X[:, 0]
    r = ss.Recalibrator(ss.BinwiseScaling(10), shift=shift)
    wanted = clone(r).fit(X, error)
    found = clone(r).fit(arrays(X), arrays(error))
    levels = [0.1, 0.5, 0.9]
    expected = wanted.predict_quantiles(X, levels)
    for table in (X, arrays(X)):
        np.testing.assert_allclose(
            found.predict_quantiles(table, levels), expected, rtol=1e-9
        )
        d = found.predict_distribution(table)
        np.testing.assert_allclose(
            d.crps(error), wanted.predict_distribution(X).crps(error)
        )
        np.testing.assert_allclose(found.predict_shift(table), wanted.predict_shift(X))
    predicted = found.predict(arrays(X))
    assert type(predicted) is type(arrays(X))
    np.testing.assert_allclose(arrays.back(predicted), wanted.predict(X), rtol=1e-9)
    more = arrays(X[:50]), arrays(error[:50])
    found.update(*more)
    wanted.update(X[:50], error[:50])
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-9)


def test_a_hand_made_map_of_clips_and_one_knot_runs_too(arrays):
    from sigmascale.bins.devices import DeviceRows
    from sigmascale.maps import UNCERTAINTY
    from sigmascale.scaling.devices import recalibrate

    u = np.array([0.5, 1.0, 2.0, 7.0])
    two = Interpolation(UNCERTAINTY, np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    one = Interpolation(UNCERTAINTY, np.array([1.0]), np.array([3.0]))
    root = Product((Clip(two, 1.5, 4.0), one, Constant(2.0)))
    found = recalibrate(root, DeviceRows.table(arrays(u)), smallest=1.0)
    np.testing.assert_allclose(arrays.back(found), evaluate(root, [u], 4))


def test_gradients_are_those_of_arithmetic_and_steps_have_none(fitted):
    torch = pytest.importorskip("torch")
    u = torch.linspace(0.2, 4.0, 50, dtype=torch.float64, requires_grad=True)
    scaler = ss.LinearScaling().fit([1.0, 2.0, 3.0] * 9, [2.0, -3.0, 4.0] * 9)
    scaler.predict(u).sum().backward()
    wanted = (
        scaler.a_**2
        * u.detach()
        / torch.hypot(scaler.a_ * u.detach(), torch.tensor(scaler.b_))
    )
    torch.testing.assert_close(u.grad, wanted)

    rng = np.random.default_rng(0)
    values = rng.uniform(0.1, 5, 3000)
    error = rng.normal(scale=values**1.5)
    isotonic = ss.IsotonicScaling().fit(values, error)
    assert torch.autograd.gradcheck(
        isotonic.predict, u.detach()[10:12].requires_grad_()
    )

    steps = ss.BinwiseScaling(10).fit(values, error)
    u.grad = None
    steps.predict(u).sum().backward()
    torch.testing.assert_close(u.grad, (steps.predict(u) / u).detach())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_tensors_of_few_bits_come_back_as_they_were(dtype, fitted, data_of):
    torch = pytest.importorskip("torch")
    X, error = data_of(500, 6)
    tensor = torch.from_numpy(X).to(getattr(torch, dtype))
    numbers = tensor.to(torch.float64).numpy()
    found = fitted["raked"].predict(tensor)
    assert found.dtype == tensor.dtype
    wanted = torch.from_numpy(fitted["raked"].predict(numbers)).to(tensor.dtype)
    torch.testing.assert_close(found, wanted)
    errors = torch.from_numpy(error).to(tensor.dtype)
    assert ss.zms(errors, tensor[:, 0]) == pytest.approx(
        ss.zms(errors.to(torch.float64).numpy(), numbers[:, 0]), rel=1e-9
    )


def test_tensors_that_are_not_contiguous_or_need_gradients_are_scored():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    table = torch.from_numpy(rng.uniform(1, 2, (1000, 6))).requires_grad_()
    error, u, x = table[::2, 0], table[::2, 3], table[::2, 5]
    numbers = [each.detach().numpy() for each in (error, u, x)]
    assert ss.scorecard(error, u, {"x": x}).to_dict() == pytest.approx(
        ss.scorecard(numbers[0], numbers[1], {"x": numbers[2]}).to_dict(), rel=1e-9
    )


def test_arrays_of_two_kinds_or_devices_are_refused():
    torch = pytest.importorskip("torch")
    here, there = torch.ones(3), torch.ones(3, device="meta")
    numbers = np.ones(3)
    for error, u, match in (
        (here, there, r"one device; found torch \(cpu\) and torch \(meta\)"),
        (here, numbers, r"found torch \(cpu\) and numpy.ndarray"),
        (numbers, here, r"found torch \(cpu\) and numpy.ndarray"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            ss.zms(error, u)
    with pytest.raises(InvalidInputError, match="X and y must be arrays of one"):
        ss.TemperatureScaling().fit(numbers, here)
    with pytest.raises(InvalidInputError, match="`X` and `y` must be"):
        ss.TemperatureScaling().fit(here, numbers)
    with pytest.raises(InvalidInputError, match="real numbers; found torch"):
        ss.zms(here, torch.ones(3, dtype=torch.complex64))


def test_importing_sigmascale_imports_no_library_of_arrays():
    code = (
        "import sys, sigmascale as ss; ss.zms([1.0], [1.0]);"
        "ss.TemperatureScaling().fit([1.0], [1.0]).predict([1.0]); ss.export;"
        "print([m for m in ('torch', 'jax', 'cupy', 'onnx', 'array_api_strict')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
