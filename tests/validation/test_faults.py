"""Simulated faults: headlines name them, and the steps that are advised mend them."""

import csv
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
FAULTS = runpy.run_path(str(SCRIPT))
# what the headline must say: the cause, and what to do
CAUSES = {
    "average": ("too small on average", "One factor"),
    "bias": ("too low", "on average", "Correct the bias"),
    "local_bias": ("too low", "kind = alloy", "Correct the bias"),
    "by_u": ("too small", "u below", "Recalibrate by u"),
    "by_number": ("too small", "mass above", "Recalibrate by mass"),
    "by_label": ("too small", "kind = alloy", "Recalibrate by kind"),
    "rare_flag": ("too small", "flag = 1", "Recalibrate by flag"),
    "two_numbers": ("too small", "mass", "T ", "Recalibrate by mass and T"),
    "number_and_label": ("too small", "kind = alloy", "T above"),
    "heavy_tails": ("heavy", "Student's t", "rows would show"),
    "outliers": ("because of the largest", "Look at rows"),
    "repeats": ("too small on average", "One factor"),
    "nothing": ("Right to within", "in every fifth (3,000 rows)."),
    "drift": ("too small for time above", "Recalibrate by the latest rows"),
    "zeros": ("40 % of the errors are exactly 0", "use intervals"),
    "constant_u": ("nothing else was looked at", "Judge again with features"),
    "useless_u": ("u does not show which errors", "A constant would serve"),
    "hidden_repeats": ("Rows look like repeats", "pass groups"),
}
# what 300 rows cannot tell: nine of them have the flag; two columns look like all rows,
# or like one of the two; three errors may be large without a cause
OF_FEW_ROWS = {
    "rare_flag": ("in every fifth", "rows would show"),
    "two_numbers": ("too small",),
    "number_and_label": ("too small", "kind = alloy", "Recalibrate by kind"),
    "outliers": ("probably", "too small on average", "Look at rows"),
    "nothing": ("Right to within", "rows would show"),
}


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.DominantErrorWarning")
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("name", FAULTS["FAULTS"])
def test_the_headline_names_the_fault_and_what_to_do(name, n):
    v = ss.validate(FAULTS["make"](name, n, 5))
    causes = CAUSES | (OF_FEW_ROWS if n == 300 else {})
    assert all(words in v.headline for words in causes[name]), v.headline
    assert v.next_steps or v.answer != "no"
    assert len(v.next_steps) <= 2
    assert all(len(each.sentence) <= 140 for each in v.verdicts.values())
    lines = str(v).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 44
    # a picture of each question, with T; a yes stays within the tolerance
    for question, verdict in v.verdicts.items():
        (line,) = (x for x in v.picture() if x.split()[1:2] == [question])
        low, high = line.index("┊"), line.rindex("┊")
        if verdict.answer == "yes":
            within = (1 / 3 if question == "bias" else v.tolerance) >= verdict.T
            assert within
            assert not set("─●┃") & (set(line[:low]) | set(line[high + 1 :]))
    # what rows prove is rounded upwards: of all, or of intervals if tails are heavy
    if v.answer != "no":
        said = float(re.search(r"within ([\d.]+) times", v.headline)[1])
        proved = [v.T, v.verdicts["coverage"].T][: 1 + (name == "heavy_tails")]
        assert any(T <= said <= 1.01 * T + 0.9 * (T > 10) for T in proved)


def test_what_drifts_is_to_be_fitted_to_the_latest_rows_after_a_fit_too():
    known, new = (FAULTS["make"]("drift", 3000, seed) for seed in (5, 6))
    v = ss.validate(ss.Recalibrator().fit(known).apply(new))
    assert v.answer == "no"
    assert "for time" in v.headline
    assert v.headline.endswith("the latest rows, and watch those to come.")
    assert v.next_steps[0].python == "Recalibrator().fit(latest)"


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
    assert done.says("Left out, as text is a feature if it has .*: name.")
    assert done.says("too small for kind = alloy; .* Recalibrate by kind.")


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.DominantErrorWarning")
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
@pytest.mark.slow
def test_the_first_step_mends_what_is_wrong():
    followed = {name: FAULTS["follow"](name, seed=3) for name in FAULTS["FAULTS"]}
    followed = {name: x for name, x in followed.items() if x}  # what asks for a fit
    mended = [
        name
        for name, each in followed.items()
        if each["worst"] < 1.25 and each["crps"] <= 1
    ]
    assert len(mended) >= 9, followed
    for name in ("bias", "local_bias"):
        gain, promised = 1 - followed[name]["crps"], followed[name]["promised"]
        assert np.isclose(gain, promised, rtol=1 / 3)
