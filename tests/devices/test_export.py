"""Exported recalibrators give what `predict` gives, also where nothing of us is."""

import copy
import io
import json
import pickle
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.scaling import scalers

quiet = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.ExtrapolationWarning",
    "ignore::sigmascale.exceptions.MissingFeatureWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",
    "ignore::sigmascale.exceptions.InfiniteIntervalWarning",
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
)
NAMES = ("u", "X1", "X2", "X3")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def run_onnx():
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")

    def run(path, columns):
        session = onnxruntime.InferenceSession(str(path))
        needed = {
            each.name: np.ascontiguousarray(columns[each.name])
            for each in session.get_inputs()
        }
        names = [each.name for each in session.get_outputs()]
        return dict(zip(names, session.run(None, needed), strict=True))

    return run


@pytest.fixture(
    scope="module",
    params=[50_000, pytest.param(1_000_000, marks=pytest.mark.slow)],
)
def new_rows(data_of, request):
    X, _ = data_of(request.param, 1, new=True)
    X[::1000, 0] = 0.0
    return X


@quiet
def test_every_module_agrees_with_predict_on_a_million_rows(torch, fitted, new_rows):
    assert set(scalers()) <= set(fitted)
    there, there32 = torch.from_numpy(new_rows), torch.from_numpy(new_rows).float()
    for scaler in fitted.values():
        module = ss.export.to_torch(scaler)
        found = module(there)
        np.testing.assert_allclose(found.numpy(), scaler.predict(new_rows), rtol=1e-12)
        found = module(there32)
        assert found.dtype == torch.float32
        wanted = scaler.predict(there32.numpy())
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


@quiet
def test_every_onnx_file_agrees_with_predict_on_a_million_rows(
    fitted, new_rows, run_onnx, tmp_path
):
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-6)):
        X = new_rows.astype(dtype)
        for name, scaler in fitted.items():
            path = tmp_path / f"{name}.onnx"
            ss.export.to_onnx(scaler, path, dtype=dtype)
            found = run_onnx(path, dict(zip(NAMES, X.T, strict=True)))["uncertainty"]
            assert found.dtype == X.dtype
            np.testing.assert_allclose(found, scaler.predict(X), rtol=tolerance)


def bad_rows(data_of):
    """Rows that `predict` refuses, each for its own reason, and a good one."""
    X, _ = data_of(7, 2)
    X[:, 3] = 1.0
    X[1, 0], X[2, 0], X[3, 0], X[4, 3] = -1.0, np.nan, np.inf, np.inf
    return X, np.array([0, 1, 1, 1, 1, 0, 0], dtype=bool)


def test_rows_that_predict_refuses_become_nan(
    torch, fitted, data_of, run_onnx, tmp_path
):
    X, bad = bad_rows(data_of)
    ss.export.to_onnx(fitted["raked"], tmp_path / "raked.onnx")
    columns = dict(zip(NAMES, X.T, strict=True))
    onnx = run_onnx(tmp_path / "raked.onnx", columns)["uncertainty"]
    module = ss.export.to_torch(fitted["raked"])(torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(np.isnan(onnx), bad)
    np.testing.assert_array_equal(np.isnan(module), bad)
    wanted = fitted["raked"].predict(X[~bad])
    np.testing.assert_allclose(onnx[~bad], wanted, rtol=1e-12)
    np.testing.assert_allclose(module[~bad], wanted, rtol=1e-12)


@pytest.fixture(scope="module")
def with_text(data_of):
    """A recalibrator of a column of text, conformalized by groups of text."""
    X, error = data_of(3000, 3)
    phase = np.array(["gas", "liquid", "solid", "glass"])[X[:, 2].astype(int)]
    table = pd.DataFrame({"u": X[:, 0], "phase": phase})
    scaler = ss.Recalibrator(ss.CategoryScaling("phase")).fit(table, error)
    return scaler.conformalize(table, error, phase), table


@quiet
def test_text_labels_are_strings_in_onnx_and_positions_in_pytorch(
    torch, with_text, run_onnx, tmp_path
):
    scaler, table = with_text
    table = table.copy()
    table.loc[::10, "phase"] = "plasma"
    wanted = scaler.predict(table)
    ss.export.to_onnx(scaler, tmp_path / "s.onnx")
    columns = {
        "u": table["u"].to_numpy(),
        "phase": table["phase"].to_numpy(dtype=object),
    }
    found = run_onnx(tmp_path / "s.onnx", columns)["uncertainty"]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)

    module = ss.export.to_torch(scaler)
    places = {label: i for i, label in enumerate(module.labels["phase"])}
    codes = table["phase"].map(places).fillna(-1).to_numpy(dtype=float)
    tensor = torch.from_numpy(np.column_stack([table["u"], codes]))
    np.testing.assert_allclose(module(tensor).numpy(), wanted, rtol=1e-12)


@quiet
@pytest.mark.parametrize("asymmetric", [False, True])
def test_limits_are_those_of_predict_interval(
    torch, with_text, data_of, run_onnx, tmp_path, asymmetric
):
    how = {"coverage": 0.9, "asymmetric": asymmetric}
    X, error = data_of(2000, 4)
    scaler = ss.Recalibrator(ss.BinwiseScaling(40)).fit(X, error).conformalize(X, error)
    wanted = scaler.predict_interval(X, **how)
    u, limits = ss.export.to_torch(scaler, **how)(torch.from_numpy(X))
    np.testing.assert_allclose(u.numpy(), scaler.predict(X), rtol=1e-12)
    np.testing.assert_allclose(limits.numpy(), wanted, rtol=1e-12)
    ss.export.to_onnx(scaler, tmp_path / "s.onnx", **how)
    found = run_onnx(tmp_path / "s.onnx", {"u": X[:, 0]})
    np.testing.assert_allclose(found["low"], wanted[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found["high"], wanted[:, 1], rtol=1e-12)

    scaler, table = with_text
    groups = table["phase"].to_numpy(dtype=object).copy()
    groups[::50] = "plasma"
    wanted = scaler.predict_interval(table, by_category=groups, **how)
    ss.export.to_onnx(scaler, tmp_path / "g.onnx", **how)
    columns = {
        "u": table["u"].to_numpy(),
        "phase": table["phase"].to_numpy(dtype=object),
        "by_category": groups,
    }
    found = run_onnx(tmp_path / "g.onnx", columns)
    np.testing.assert_allclose(found["low"], wanted[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found["high"], wanted[:, 1], rtol=1e-12)
    module = ss.export.to_torch(scaler, **how)
    places = {label: i for i, label in enumerate(module.labels["phase"])}
    codes = table["phase"].map(places).to_numpy(dtype=float)
    of_groups = pd.Series(groups).map(places).fillna(-1).to_numpy(dtype=float)
    tensor = torch.from_numpy(np.column_stack([table["u"], codes]))
    _, limits = module(tensor, torch.from_numpy(of_groups.copy()))
    np.testing.assert_allclose(limits.numpy(), wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="`by_category` must be given"):
        module(tensor)


@quiet
@pytest.mark.parametrize("conformal", [False, True])
def test_limits_are_shifted_and_without_held_out_rows_those_of_the_law(
    torch, data_of, run_onnx, tmp_path, conformal
):
    X, error = data_of(900, 4)
    r = ss.Recalibrator(ss.LinearScaling(), shift="constant").fit(X, error + X[:, 0])
    if conformal:
        r.conformalize(X, error + X[:, 0])
    wanted = r.predict_interval(X, 0.8)
    ss.export.to_onnx(r, tmp_path / "r.onnx", coverage=0.8, shift=True)
    found = run_onnx(tmp_path / "r.onnx", dict(zip(NAMES, X.T, strict=True)))
    limits = np.column_stack([found["low"], found["high"]])
    np.testing.assert_allclose(limits, wanted, rtol=1e-10)
    np.testing.assert_allclose(found["shifted"], r.predict_shift(X), rtol=1e-10)
    module = ss.export.to_torch(r, coverage=0.8, shift=True)
    _, shift, limits = module(torch.from_numpy(X))
    np.testing.assert_allclose(limits.numpy(), wanted, rtol=1e-10)
    np.testing.assert_allclose(shift.numpy(), r.predict_shift(X), rtol=1e-10)


CLASHES = ["uncertainty", "low", "constant_0", "", "q0.05", "cast_0", "_", "__cast_0"]


def test_columns_may_be_called_as_what_is_in_the_graph(data_of, tmp_path):
    pytest.importorskip("onnx")
    _, error = data_of(600, 4)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.uniform(1, 2, 600) for name in CLASHES})
    table["prediction"] = rng.normal(size=600)
    r = ss.Recalibrator(ss.RakedScaling(), shift="constant").fit(table, error)
    how = {"coverage": 0.8, "quantiles": [0.05, 0.95], "shift": True}
    ss.export.to_onnx(r, tmp_path / "r.onnx", prediction="prediction", **how)
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "r.onnx")
    inputs = [each.name for each in session.get_inputs()]
    assert inputs == [name or "__" for name in CLASHES] + ["prediction"]
    outputs = ["uncertainty_", "shifted", "low_", "high", "q0.05_", "q0.95"]
    assert [each.name for each in session.get_outputs()] == outputs
    given = dict(zip(inputs, table.to_numpy().T.copy(), strict=True))
    u, shifted, *limits = session.run(None, given)
    value = table["prediction"].to_numpy()
    np.testing.assert_allclose(u, r.predict(table), rtol=1e-12)
    np.testing.assert_allclose(shifted, value + r.predict_shift(table), rtol=1e-12)
    wanted = [r.predict_interval(table, 0.8), r.predict_quantiles(table, [0.05, 0.95])]
    wanted = np.column_stack(wanted) + value[:, None]
    np.testing.assert_allclose(np.column_stack(limits), wanted, rtol=1e-10)


@quiet
def test_a_module_travels_with_the_model_it_is_a_part_of(torch, fitted, data_of):
    X, _ = data_of(100, 5)
    tensor = torch.from_numpy(X)

    class Model(torch.nn.Module):
        def __init__(self, scaler):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)
            self.recalibrate = ss.export.to_torch(scaler)

        def forward(self, x):
            return self.recalibrate(x)

    for scaler in fitted.values():
        model = Model(scaler)
        wanted = model(tensor)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        blank = Model(scaler)
        for buffer in blank.buffers():
            buffer.zero_()
        blank.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(blank(tensor), wanted)
        assert torch.equal(copy.deepcopy(model)(tensor), wanted)
        again = pickle.loads(pickle.dumps(model.recalibrate))
        assert torch.equal(again(tensor), wanted)
        half = copy.deepcopy(model).half()
        assert half.inner.weight.dtype == torch.float16
        assert torch.equal(half(tensor), wanted)  # its limits keep their bits
        moved = copy.deepcopy(model).to("meta")
        assert moved(tensor.to("meta")).shape == wanted.shape


def in_a_process_without_sigmascale(program, *arguments):
    code = 'import sys; sys.modules["sigmascale"] = None\n' + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@quiet
@pytest.mark.parametrize("name", ["raked", "boosted", "isotonic", "binwise with ties"])
def test_an_exported_program_needs_no_sigmascale(
    torch, fitted, data_of, tmp_path, name
):
    X, _ = data_of(50, 6)
    module = ss.export.to_torch(fitted[name])
    rows = torch.export.Dim("rows", min=2)
    shapes = {"X": {0: rows, 1: torch.export.Dim.STATIC}}
    example = torch.from_numpy(X[:9].copy())
    program = torch.export.export(module, (example,), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "program.pt2")
    traced = torch.jit.trace(module, example)
    torch.jit.save(traced, tmp_path / "traced.pt")
    np.save(tmp_path / "X.npy", X)
    found = in_a_process_without_sigmascale(
        """
        import json, numpy as np, torch
        X = torch.from_numpy(np.load(sys.argv[1] + "/X.npy"))
        program = torch.export.load(sys.argv[1] + "/program.pt2").module()
        traced = torch.jit.load(sys.argv[1] + "/traced.pt")
        print(json.dumps([program(X).tolist(), traced(X).tolist()]))
        """,
        tmp_path,
    )
    for values in found:
        np.testing.assert_allclose(values, fitted[name].predict(X), rtol=1e-12)


@quiet
def test_an_onnx_file_needs_no_sigmascale(fitted, data_of, run_onnx, tmp_path):
    X, _ = data_of(50, 7)
    ss.export.to_onnx(fitted["boosted"], tmp_path / "s.onnx")
    np.save(tmp_path / "X.npy", X)
    found = in_a_process_without_sigmascale(
        """
        import json, numpy as np, onnxruntime
        for name in ("torch", "onnx", "sklearn"):
            sys.modules[name] = None
        X = np.load(sys.argv[1] + "/X.npy")
        session = onnxruntime.InferenceSession(sys.argv[1] + "/s.onnx")
        columns = dict(zip(("u", "X1", "X2", "X3"), X.T.copy()))
        needed = {each.name: columns[each.name] for each in session.get_inputs()}
        print(json.dumps(session.run(None, needed)[0].tolist()))
        """,
        tmp_path,
    )
    np.testing.assert_allclose(found, fitted["boosted"].predict(X), rtol=1e-12)


@quiet
def test_a_compiled_module_agrees(torch, fitted, data_of):
    X, _ = data_of(500, 8)
    module = ss.export.to_torch(fitted["isotonic"])
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    found = compiled(torch.from_numpy(X))
    np.testing.assert_allclose(found.numpy(), fitted["isotonic"].predict(X), 1e-12)


def test_an_onnx_file_tells_what_it_is(fitted, tmp_path):
    onnx = pytest.importorskip("onnx")
    ss.export.to_onnx(fitted["raked"], tmp_path / "s.onnx")
    model = onnx.load(tmp_path / "s.onnx")
    onnx.checker.check_model(model, full_check=True)
    told = {each.key: each.value for each in model.metadata_props}
    assert told == {
        "sigmascale": ss.__version__,
        "method": "RakedScaling",
        "columns": '["u", "X1", "X2", "X3"]',
    }
    domains = {each.domain for each in model.graph.node}
    assert domains == {""}


def test_what_cannot_be_exported_is_refused(fitted, tmp_path):
    with pytest.raises(InvalidInputError, match="no shift was learned"):
        ss.export.to_onnx(fitted["none"], tmp_path / "s.onnx", shift=True)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        ss.export.to_onnx(fitted["none"], tmp_path / "s.onnx", quantiles=[0.5, 5])
    with pytest.raises(InvalidInputError, match="`dtype` must be one of"):
        ss.export.to_onnx(fitted["none"], tmp_path / "s.onnx", dtype="int8")
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="must be a recalibrator; found Lin"):
        ss.export.to_torch(model)
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_an_onnx_file(sigmascale, fitted, data_of, tmp_path):
    pytest.importorskip("onnx")
    scaler = tmp_path / "scaler.json"
    ss.save(fitted["raked"], scaler)
    done = sigmascale("export", scaler, "--to", "onnx")
    assert done.code == 0, done.err
    assert done.out.split("(")[1].strip() == "inputs: u, X1, X2, X3)."
    assert (tmp_path / "scaler.onnx").exists()
    done = sigmascale("export", scaler, "-o", tmp_path / "b.onnx", "--json")
    assert json.loads(done.out)["columns"] == list(NAMES)
    done = sigmascale("export", scaler, "-o", tmp_path / "b.txt")
    assert (done.code, done.err) == (
        2,
        f"error: {tmp_path}/b.txt: is written as ONNX. Name it *.onnx.\n",
    )
    for option in (["--shift"], ["--quantiles", "5,95"], ["--prediction", "y"]):
        done = sigmascale("export", scaler, *option)
        assert done.code == 2
        assert option[0] in done.err


@quiet
def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    page = Path(__file__).parents[2] / "docs" / "devices.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)
    assert len(blocks) == 4
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), scope)
    printed = capsys.readouterr().out.splitlines()
    assert float(printed[0]) > 1
    assert printed[-1].startswith("100000 ")
    assert (tmp_path / "scaler.onnx").exists()


@quiet
def test_the_example_of_the_gallery_makes_an_ensemble_honest(monkeypatch):
    pytest.importorskip("torch")
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    example = Path(__file__).parents[2] / "docs" / "gallery" / "plot_torch_ensemble.py"
    scope = runpy.run_path(str(example))
    error = scope["error"]
    assert ss.zms(error, scope["u"]) > 2
    assert ss.zms(error, scope["honest"]) == pytest.approx(1, abs=0.2)


def test_labels_that_float64_takes_for_the_same_are_no_onnx_file(tmp_path):
    pytest.importorskip("onnx")
    X = pd.DataFrame({"u": [1.0] * 40, "k": [2**60, 2**60 + 1] * 20})
    scaler = ss.CategoryScaling().fit(X, [1.0, -2.0, -1.0, 2.0] * 10)
    with pytest.raises(InvalidInputError, match="numbers that float64 tells apart"):
        ss.export.to_onnx(scaler, tmp_path / "a.onnx")
