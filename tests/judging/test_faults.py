"""Simulated faults: headlines name them, and the steps that are advised mend them."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
FAULTS = runpy.run_path(str(SCRIPT))
# what the headline must say of 3,000 rows: the cause, and what to do
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
    "nothing": ("Right to within", "in every fifth"),
}


@pytest.mark.parametrize("name", FAULTS["FAULTS"])
def test_the_headline_names_the_fault_and_what_to_do(name):
    v = ss.validate(FAULTS["make"](name, 3000, 5))
    assert all(words in v.headline for words in CAUSES[name]), v.headline
    assert bool(v.next_steps) == (v.answer == "no")
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
    proved = math.ceil(100 * v.T) / 100  # what rows prove is rounded upwards
    assert f"{proved:.3g}" in v.headline or v.answer == "no"


@pytest.mark.slow
def test_the_first_step_mends_what_is_wrong():
    followed = {
        name: FAULTS["follow"](name, seed=3)
        for name in FAULTS["FAULTS"]
        if name not in ("heavy_tails", "nothing")  # where no step is advised
    }
    mended = [
        name
        for name, each in followed.items()
        if each["worst"] < 1.25 and each["crps"] <= 1
    ]
    assert len(mended) >= 9, followed
    for name in ("bias", "local_bias"):
        gain, promised = 1 - followed[name]["crps"], followed[name]["promised"]
        assert np.isclose(gain, promised, rtol=1 / 3)
