"""The arena: sets, methods, scores, and who wins."""

import importlib
import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri

import sigmascale as ss

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks" / "arena").is_dir():
    pytest.skip("benchmarks are not part of this copy", allow_module_level=True)

COUNTED = """
from pathlib import Path
NAME = "counted"

def fit(train):
    with Path(__file__).with_suffix(".log").open("a") as file:
        file.write("fit ")
    return 1.0

def predict(state, new):
    assert new.error is None and new.groups is None
    return state * new.u
"""
BROKEN = """
def fit(train):
    raise ValueError("no idea")

def predict(state, new):
    return new.u
"""


@pytest.fixture(scope="module")
def module():
    """Import a module of the arena by its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield lambda name: importlib.import_module(f"benchmarks.arena.{name}")


def results(module, losses, kind="real"):
    """Results whose scores are given: by method, set and halving."""
    rows = [
        {"set": f"set{j}", "kind": kind, "tier": "open", "rows": 10, "halving": k}
        | {"method": "abc"[i], "problem": "" if np.isfinite(x) else "failed"}
        | {"crps": float(x), "nll": float(x), "seconds": 1.0}
        for i, sets in enumerate(losses)
        for j, halvings in enumerate(sets)
        for k, x in enumerate(halvings)
    ]
    return module("standings").Standings.of(module("running").table_of(rows))


def run(module, tmp_path, *options):
    """Run the command on one small world, and return its page and results."""
    out = tmp_path / "out"
    given = ["--set", "floor_300", "--halvings", "2", "--only", "one factor"]
    given += ["--jobs", "1", "--cache", str(tmp_path / "cache"), "--out", str(out)]
    module("__main__").main([*given, *options])
    table = pl.read_csv(out / "arena" / "results.csv", infer_schema_length=None)
    return (out / "arena.md").read_text(encoding="utf-8"), table


def test_the_file_of_a_rival_on_the_page_takes_part(module, tmp_path):
    text = (ROOT / "benchmarks" / "arena" / "page.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(code.splitlines()) <= 22
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "broken.py").write_text(BROKEN)
    page, table = run(
        module,
        tmp_path,
        *("--method", str(tmp_path / "mine.py"), "--only", "median factor"),
        *("--method", str(tmp_path / "broken.py"), "--only", "broken"),
    )
    assert set(table["method"]) == {
        "sigmascale",
        "one factor",
        "median factor",
        "broken",
    }
    mine = table.filter(pl.col("method") == "median factor")
    assert mine.height == 2
    assert mine["nll"].is_finite().all()
    assert "| median factor | own code | cannot use them |" in page
    assert "broken on `floor_300`, 2 times: ValueError: no idea" in page


def test_what_was_computed_is_recalled_until_the_method_changes(module, tmp_path):
    path = tmp_path / "mine.py"
    options = ("--method", str(path), "--only", "counted")
    path.write_text(COUNTED)
    for _ in range(2):
        run(module, tmp_path, *options)
    assert path.with_suffix(".log").read_text() == "fit fit "
    path.write_text(COUNTED.replace("1.0", "2.0"))
    _, table = run(module, tmp_path, *options)
    assert path.with_suffix(".log").read_text() == "fit fit fit fit "
    assert (table["problem"].fill_null("") == "").all()


def test_the_page_is_made_of_the_files_beside_it(module):
    page = ROOT / "docs" / "arena.md"
    assert module("page").page_of(ROOT / "docs" / "arena") == page.read_text(
        encoding="utf-8"
    )


def test_ranks_count_ties_half_and_failures_last(module):
    found = results(module, [[[1.0], [2.0]], [[1.0], [np.nan]], [[0.5], [3.0]]])
    assert found.ranks("nll").tolist() == [[2.5, 1], [2.5, 3], [1, 2]]
    assert found.wins("a", "b", "nll")[0] == 0.75
    assert found.best_other("nll", ["c"]) == ["a", "a"]


def test_the_critical_difference_is_that_of_nemenyi(module):
    losses = np.random.default_rng(0).normal(size=(3, 14, 1))
    # q of 3 methods at 5 % is 2.343: J. Demšar, J. Mach. Learn. Res. 7, 1 (2006)
    found = results(module, losses).critical_difference()
    assert found == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 14)), rel=1e-3)


def test_halvings_of_the_same_rows_tell_less_than_draws_of_a_world(module):
    losses = np.random.default_rng(0).normal(size=(2, 3, 4))
    errors = [
        results(module, losses, kind).difference("a", "b", "nll")[1]
        for kind in ("real", "world")
    ]
    spread = (losses[0] - losses[1]).std(axis=1, ddof=1)
    np.testing.assert_allclose(errors[1], spread / 2, rtol=1e-4)
    np.testing.assert_allclose(errors[0], spread * np.sqrt(1 / 4 + 1), rtol=1e-4)


def test_intervals_of_wins_hold_the_truth_as_often_as_they_say(module):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(60):
        won = (rng.normal(size=40) < 0.5 / np.sqrt(2)).astype(float)
        _, low, high = module("standings").drawn(won)
        inside += low <= 0.638 <= high
    assert 52 <= inside <= 60


def test_scores_are_those_of_the_library(module):
    worlds, parts = module("worlds"), module("parts")
    table, n = worlds.make("labels", 300, seed=0)
    part = parts.part_of(table)
    train, test = part.take(slice(None, n)), part.take(slice(n, None))
    std = 1.3 * test.u
    found = module("scoring").score(test, train, std)
    law = ss.Distributions(np.zeros(len(test)), std)
    assert found["crps"] == pytest.approx(law.crps(test.error).mean(), rel=0.002)
    interval = law.interval(0.9)
    assert found["coverage"] == ss.picp(test.error, interval)
    assert found["width"] == pytest.approx(np.diff(interval).mean())
    local = ss.local_calibration_error(test.error, std, n_bins=20)
    assert found["local_u"] == pytest.approx(local)
    # the expected NLL is what many draws of the errors have on average
    rng = np.random.default_rng(0)
    drawn = [ss.nll(rng.normal(scale=test.sigma), std) for _ in range(50)]
    assert found["nll"] == pytest.approx(np.mean(drawn), abs=0.005)
    assert found["absurd"] == 0
    wild = np.where(np.arange(len(test)) < 7, 1e9, std)
    assert module("scoring").score(test, train, wild)["absurd"] == 7


def test_quantiles_and_standard_deviations_are_completed_alike(module):
    scoring, levels = module("scoring"), module("parts").LEVELS
    std = np.array([1.0, 2.0])
    quantiles = np.multiply.outer(std, ndtri(levels))
    one = scoring.completed(std, 2)
    np.testing.assert_allclose(one["quantiles"], quantiles)
    other = scoring.completed({"quantiles": quantiles}, 2)
    np.testing.assert_allclose(other["std"], std)
    with pytest.raises(ValueError, match=r"quantiles has shape \(2, 3\)"):
        scoring.completed({"quantiles": quantiles[:, :3]}, 2)


def test_worlds_have_the_truth_that_they_say(module):
    worlds = module("worlds")
    assert len(worlds.WORLDS) >= 10
    for name, maker in worlds.WORLDS.items():
        table = maker(np.random.default_rng(1), 20_000)
        error = table.get("E")
        if error is not None:
            z2 = (error / table["sigma"]) ** 2
            assert z2.mean() == pytest.approx(1, abs=0.15), name
            assert abs(np.mean(error / table["sigma"])) < 0.05, name


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_set_of_a_folder_is_read_with_its_groups_and_labels(module, tmp_path, ending):
    columns = {"time": ["2020"] * 4, "E": [1, 2, -1, 0], "u": [1.0, 2.0, 3.0, 4.0]}
    columns |= {"X1": [5, 6, 7, 8], "G1": ["a", "b", "a", "b"], "group": [1, 1, 2, 3]}
    table = pl.concat([pl.DataFrame(columns)] * 10)
    path = tmp_path / f"mine{ending}"
    if ending == ".parquet":
        table.write_parquet(path)
    elif ending == ".csv":
        table.write_csv(path)
    else:
        import gzip

        path.write_bytes(gzip.compress(table.write_csv().encode()))
    (tmp_path / "index.csv").write_text("nothing\n")
    parts = module("parts")
    assert parts.files_of(tmp_path) == {"mine": path}
    part = parts.read_part(path)
    assert part.frame.columns == ["u", "X1", "G1"]
    assert part.X[1].tolist() == [2.0, 6.0, 0.0, 1.0]  # u, X1, and the two labels
    assert part.error[:4].tolist() == [1, 2, -1, 0]
    one, other = parts.halves(part, seed=0, most=100)
    assert len(one) + len(other) == 40
    assert not set(one.groups) & set(other.groups)


def test_a_folder_that_lacks_something_is_named(module, tmp_path):
    parts = module("parts")
    with pytest.raises(SystemExit, match="no set is there"):
        parts.files_of(tmp_path)
    path = tmp_path / "mine.csv"
    path.write_text("E,X1\n1,1\n")
    with pytest.raises(SystemExit, match=r"mine\.csv: there is no column u"):
        parts.read_part(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "package"),
    [
        ("uncertainty_toolbox", "uncertainty_toolbox"),
        ("crepes_normalised", "crepes"),
        ("mapie", "mapie"),
        ("puncc", "deel"),
        ("ngboost", "ngboost"),
        ("quantile_forest", "quantile_forest"),
        ("lightgbm", "lightgbm"),
    ],
)
def test_an_opponent_is_as_good_as_its_documentation_makes_it(
    module, tmp_path, script, package
):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; make arena installs it")
    documented, running = module("documented"), module("running")
    function = getattr(documented, script)
    for each in documented.SETS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            running.build(each, tmp_path)
            rows = running.parts(each, tmp_path, 0, 1000)
            found = documented.compared(function, *rows)
        for better in (found["script is better by"], found["by"]):
            assert better < 0.01
            assert better > -0.01 or documented.SCRIPTS[function]
