"""The benchmark of recalibration: sets, methods, and who wins."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks" / "recalibration").is_dir():
    pytest.skip("benchmarks are not part of this copy", allow_module_level=True)

OWN = """
import numpy as np
from benchmarks.recalibration.methods import Method

class Half(Method):
    name = "half"
    def fit(self, X, error, groups):
        assert groups is None or len(groups) == len(error)
    def predict(self, X):
        return X["u"].to_numpy() / 2

class Broken(Method):
    name = "broken"
    def fit(self, X, error, groups):
        raise ValueError("no idea")

class Lacking(Method):
    name = "lacking"
    requires = "no_such_package"
"""


@pytest.fixture(scope="module")
def module():
    """Import a module of the benchmark by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield lambda name: importlib.import_module(f"benchmarks.recalibration.{name}")


def outcomes(module, losses, methods="abc"):
    """Outcomes whose only score is given: a line for each method."""
    scoring = module("scoring")
    return [
        scoring.Outcome(f"set{j}", methods[i], {"nll": float(loss)}, 1.0)
        for i, row in enumerate(losses)
        for j, loss in enumerate(row)
    ]


def test_ranks_count_ties_half_and_failures_last(module):
    found = module("standings").Standings.of(
        outcomes(module, [[1.0, 2.0], [1.0, np.nan], [0.5, 3.0]])
    )
    assert found.ranks().tolist() == [[2.5, 1], [2.5, 3], [1, 2]]
    assert found.wins("a", "b")[0] == 0.75
    assert found.by_more_than(0.02, "a", "b") == (1, 0)
    assert found.by_more_than(0.6, "c", "a") == (0, 1)


def test_intervals_of_wins_hold_the_truth_as_often_as_they_say(module):
    Standings = module("standings").Standings
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        losses = rng.normal(size=(2, 40)) + np.array([[0.0], [0.5]])
        _, low, high = Standings.of(outcomes(module, losses)).wins("a", "b")
        inside += low <= 0.638 <= high  # the normal law of 0.5 / sqrt(2)
    assert 88 <= inside <= 100


def test_what_is_plainly_apart_is_not_joined_by_a_bar(module):
    rng = np.random.default_rng(1)
    losses = np.array([[0.0], [0.0], [5.0]]) + 0.5 * rng.normal(size=(3, 30))
    found = module("standings").Standings.of(outcomes(module, losses))
    assert [set(run) for run in found.cliques()] == [{0, 1}]


def test_scores_are_those_of_the_library(module):
    import sigmascale as ss

    data = module("sets").built_in("features")
    normal = ss.Distributions(np.zeros(data.test.u.size), data.test.u)
    found = module("scoring").score(data.test, data.test.u, normal)
    e, u = data.test.error, data.test.u
    assert found["nll"] == ss.nll(e, u)
    assert found["calibration"] == pytest.approx(abs(np.log(ss.zms(e, u))))
    per_feature = [
        ss.local_calibration_error(e, u, by=data.test.X[name].to_numpy(), n_bins=20)
        for name in ("X1", "X2", "X3", "G1")
    ]
    assert found["adaptivity"] == pytest.approx(np.mean(per_feature))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_set_is_read_with_its_groups_labels_and_parts(module, tmp_path, ending):
    table = pl.DataFrame(
        {
            "time": ["2020-01-01"] * 4,
            "E": [1, 2, -1, 0],
            "u": [1.0, 2.0, 3.0, 4.0],
            "X1": [5, 6, 7, 8],
            "G1": [1, 2, 1, 2],
            "group": [1, 1, 2, 3],
            "split": ["cal", "cal", "test", "test"],
        }
    )
    path = tmp_path / f"mine{ending}"
    if ending == ".parquet":
        table.write_parquet(path)
    elif ending == ".csv":
        table.write_csv(path)
    else:
        import gzip

        path.write_bytes(gzip.compress(table.write_csv().encode()))
    (tmp_path / "index.csv").write_text("nothing\n")
    sets = module("sets")
    assert sets.files_of(tmp_path) == {"mine": path}
    data = sets.read_set("mine", path)
    assert data.calibration.X.columns == ["u", "X1", "G1"]
    assert data.calibration.X["G1"].dtype == pl.String
    assert data.test.groups.tolist() == ["2", "3"]
    assert data.test.error.tolist() == [-1, 0]


def test_a_set_that_lacks_something_is_named(module, tmp_path):
    sets = module("sets")
    with pytest.raises(SystemExit, match="no set is there"):
        sets.files_of(tmp_path)
    path = tmp_path / "mine.csv"
    path.write_text("E,split\n1,cal\n")
    with pytest.raises(SystemExit, match=r"mine\.csv: there is no column u"):
        sets.read_set("mine", path)
    path.write_text("E,u,split\n1,1,cal\n")
    with pytest.raises(SystemExit, match="no row has the split 'test'"):
        sets.read_set("mine", path)


@pytest.mark.slow
def test_one_command_runs_methods_of_a_file_over_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        u = rng.lognormal(0, 0.5, 200)
        split = ["cal"] * 100 + ["test"] * 100
        error = rng.normal(scale=u / 2)
        table = pl.DataFrame({"E": error, "u": u, "split": split})
        (tmp_path / "sets").mkdir(exist_ok=True)
        table.write_csv(tmp_path / "sets" / f"{name}.csv")
    (tmp_path / "own.py").write_text(OWN)
    command = [sys.executable, "-m", "benchmarks.recalibration", "--jobs", "1"]
    command += ["--method", str(tmp_path / "own.py"), "--out", str(tmp_path / "out")]
    for name in ("none", "one factor", "half", "broken", "lacking"):
        command += ["--only", name]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "RECALIBRATION_SETS": str(tmp_path / "sets")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lacking: skipped: pip install no-such-package" in done.stderr
    assert "broken on `one`: ValueError: no idea" in done.stdout
    found = pl.read_csv(tmp_path / "out" / "recalibration.csv")
    assert found.height == 2 * 4
    nll = dict(found.filter(pl.col("set") == "one").select("method", "nll").iter_rows())
    assert nll["half"] < nll["none"]
    assert (tmp_path / "out" / "recalibration.png").stat().st_size > 5000
    wins = pl.read_csv(tmp_path / "out" / "recalibration_wins.csv")
    pair = (pl.col("method") == "half") & (pl.col("against") == "none")
    assert wins.filter(pair & (pl.col("score") == "nll"))["wins"].to_list() == [1.0]
