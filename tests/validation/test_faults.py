"""Simulated faults: the first line names them, and what is advised corrects them."""

import csv
import runpy
from pathlib import Path

import pytest

import sigmascale as ss

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
FAULTS = runpy.run_path(str(SCRIPT))
# what the first line says of 3,000 rows, and the command that is advised
CAUSES = {
    "average": ("NOT CALIBRATED: overconfident, u is too small overall", "fit"),
    "bias": ("BIASED: predictions are too low overall", "fit"),
    "local_bias": ("BIASED: predictions are too low for kind = alloy", "fit"),
    "by_u": ("NOT CALIBRATED: overconfident", "fit"),
    "by_number": ("NOT CALIBRATED: overconfident", "fit"),
    "by_label": ("NOT CALIBRATED: overconfident", "fit"),
    "rare_flag": ("NOT CALIBRATED: overconfident for flag = 1", "fit"),
    "two_numbers": ("NOT CALIBRATED: overconfident", "fit"),
    "number_and_label": ("NOT CALIBRATED: overconfident", "fit"),
    "drift": ("NOT CALIBRATED: overconfident", "fit"),
    "useless_u": ("u does not rank errors", None),
    "hidden_repeats": ("INCONCLUSIVE: rows look like repeats", "groups"),
}


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.DominantErrorWarning")
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
@pytest.mark.parametrize("name", FAULTS["FAULTS"])
def test_the_first_line_names_the_fault_and_the_step_corrects_it(name):
    for n in (300, 3000):
        v = ss.validate(FAULTS["make"](name, n, 5))
        assert bool(v.next_steps) == (not v.passed)
        lines = str(v).splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) <= 28
    words, verb = CAUSES.get(name, ("", None))
    assert words in v.headline, v.headline
    assert verb in (None, *(step.verb for step in v.next_steps))


def test_what_drifts_is_to_be_fitted_to_the_latest_rows():
    v = ss.validate(FAULTS["make"]("drift", 3000, 5))
    assert "latest rows" in v.next_steps[0].what


@pytest.mark.parametrize("n", [300, 3000])
def test_the_command_line_names_the_label_at_fault_and_text_it_left_out(
    n, sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    p = FAULTS["make"]("by_label", n, 5)
    columns = {"error": p.error, "uncertainty": p.y_std, **p.features}
    columns["name"] = [f"sample {i}" for i in range(n)]
    with open("rows.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    done = sigmascale("check", "rows.csv", "--all-features")
    assert done.code == 1
    assert done.says("no labels name: ")
    assert done.says("kind = alloy, .* % of rows")


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.DominantErrorWarning")
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
@pytest.mark.slow
def test_the_first_step_corrects_what_is_wrong():
    followed = {name: FAULTS["follow"](name, seed=3) for name in FAULTS["FAULTS"]}
    followed = {name: x for name, x in followed.items() if x}  # what asks for a fit
    gained = [name for name, x in followed.items() if x["crps"] < 0]
    assert len(gained) >= 9, followed
