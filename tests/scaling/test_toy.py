"""A recalibrator of one's own: one class that learns a map, and one registration."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.maps import UNCERTAINTY, Code, Lookup, Node, scaled
from sigmascale.scaling import VarianceScaler, methods, register, unregister

HERE = Path(__file__)


class ToyScaling(VarianceScaler):
    """One factor for the smaller half of the uncertainties, another for the larger."""

    does = "small and large uncertainties are multiplied by a factor each"

    def _learn_from_sums(self, data) -> Node:
        halves, sums = data.by_bins(0, 2)
        self.factors_ = sums.scaling_factors()
        code = Code(UNCERTAINTY, halves)
        return scaled(Lookup((code,), np.append(1.0, self.factors_)))

    def _learned_words(self) -> str:
        return f"The larger half is multiplied by {self.factors_[-1]:.3g}."


@pytest.fixture(scope="module")
def _registered():
    register("toy", ToyScaling)
    yield
    unregister("toy")


pytestmark = pytest.mark.usefixtures("_registered")


def make_data(seed):
    rng = np.random.default_rng(seed)
    u, mass = rng.uniform(1, 2, 2000), rng.uniform(10, 100, 2000)
    error = rng.normal(scale=u * np.where(u > 1.5, 3.0, 2.0))
    return pl.DataFrame({"E": error, "u": u, "mass": mass})


CALIBRATION, TEST = make_data(0), make_data(1)


@pytest.fixture
def fitted():
    return ToyScaling().fit(CALIBRATION.select("u", "mass"), CALIBRATION["E"])


def test_it_learns_from_arrays(fitted):
    assert fitted.factors_ == pytest.approx([2, 3], rel=0.1)
    u, middle = TEST["u"].to_numpy(), np.sort(CALIBRATION["u"])[1000]
    factor = np.where(u < middle, *fitted.factors_)
    found = fitted.predict(TEST.select("u", "mass"))
    np.testing.assert_allclose(found, factor * u, rtol=1e-12)


def test_it_learns_from_a_lazy_frame_and_becomes_a_column_of_one(fitted):
    lazy = CALIBRATION.lazy()
    names = {"error": "E", "uncertainty": "u", "features": ["mass"]}
    from_sums = ss.frames.fit(ToyScaling(), lazy, **names)
    np.testing.assert_allclose(from_sums.factors_, fitted.factors_, rtol=1e-12)
    new = ss.frames.predict(from_sums, TEST.lazy()).collect()["u_recalibrated"]
    np.testing.assert_allclose(new, fitted.predict(TEST.select("u", "mass")))


def test_it_is_saved_loaded_and_applied_by_the_command_line(
    fitted, tmp_path, sigmascale
):
    CALIBRATION.write_csv(tmp_path / "calibration.csv")
    TEST.write_csv(tmp_path / "test.csv")
    scaler, output = tmp_path / "toy.json", tmp_path / "out.csv"
    options = ("--method", "toy", "--feature", "mass", "-o", scaler)
    outcome = sigmascale("fit", tmp_path / "calibration.csv", *options)
    assert outcome.code == 0, outcome.err
    assert "The larger half is multiplied by" in " ".join(outcome.out.split())
    loaded = ss.load(scaler)
    assert isinstance(loaded.scaling_, ToyScaling)
    expected = fitted.predict(TEST.select("u", "mass"))
    assert loaded.predict(TEST.select("u", "mass")).tolist() == expected.tolist()
    assert sigmascale("apply", scaler, tmp_path / "test.csv", "-o", output).code == 0
    found = pl.read_csv(output)["u_recalibrated"].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_it_appears_in_the_report_with_its_words_and_a_picture_of_its_factors(fitted):
    error, u, features = TEST["E"], TEST["u"], TEST.select("mass")
    new = fitted.predict(TEST.select("u", "mass"))
    page = ss.report.report_html(
        ss.validate(error, u, features),
        recalibrated=ss.validate(error, new, features, ties=u),
        scaler=fitted,
    )
    assert "mall and large uncertainties are multiplied by a factor each" in page
    assert fitted.describe().split(". ")[1] in page
    assert "Factors of the bins of u" in page


@pytest.mark.slow
def test_it_passes_the_common_tests(tmp_path):
    # the registry is read when tests are collected, by a process of their own
    (tmp_path / "toy_plugin.py").write_text(
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('toy', {str(HERE)!r})\n"
        "toy = importlib.util.module_from_spec(spec)\n"
        "sys.modules['toy'] = toy\n"
        "spec.loader.exec_module(toy)\n"
        "toy.register('toy', toy.ToyScaling)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    common = str(HERE.with_name("test_common.py"))
    options = [
        "-p",
        "toy_plugin",
        "-p",
        "no:cacheprovider",
        "-q",
        "-n",
        "0",
        "-k",
        "ToyScaling",
    ]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *options, common],
        env=os.environ | {"PYTHONPATH": path},
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    last = found.stdout.strip().splitlines()[-1]
    assert found.returncode == 0, found.stdout[-3000:]
    assert int(last.split(" passed")[0].split()[-1]) > 100, last


def test_names_are_taken_once_only():
    assert "toy" in methods()

    class Other(ToyScaling):
        pass

    with pytest.raises(InvalidInputError, match="must be a new name"):
        register("linear", Other)
    Other.__name__ = "LinearScaling"
    with pytest.raises(InvalidInputError, match="or its class is known already"):
        register("other", Other)
