"""Simulated faults: headlines name them, and the steps that are advised mend them."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
FAULTS = runpy.run_path(str(SCRIPT))
# what the headline must say, of 3,000 rows
CAUSES = {
    "average": ("too small on average",),
    "bias": ("too low", "on average"),
    "local_bias": ("too low", "kind = alloy"),
    "by_u": ("too small", "u below"),
    "by_number": ("too small", "mass above"),
    "by_label": ("too small", "kind = alloy"),
    "rare_flag": ("too small", "flag = 1"),
    "two_numbers": ("too small", "mass", "T "),
    "number_and_label": ("too small", "kind = alloy", "T above"),
    "heavy_tails": ("No fault found", "rare large errors"),
    "outliers": ("because of the largest",),
    "repeats": ("too small on average",),
    "nothing": ("No fault found",),
}


@pytest.mark.parametrize("name", FAULTS["FAULTS"])
def test_the_headline_names_the_fault(name):
    v = ss.validate(FAULTS["make"](name, 3000, 5))
    assert all(words in v.headline for words in CAUSES[name]), v.headline
    assert bool(v.next_steps) == (v.answer == "no")
    assert len(v.next_steps) <= 2
    assert all(len(each.sentence) <= 140 for each in v.verdicts.values())
    lines = str(v).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    # a picture of each question; a yes stays within the tolerance
    pictures = [line for line in lines if "●" in line]
    assert len(pictures) == len(v.verdicts)
    for line, (question, verdict) in zip(pictures, v.verdicts.items(), strict=True):
        assert line.split()[1] == question
        low, high = line.index("┊"), line.rindex("┊")
        if verdict.answer == "yes":
            assert set(line[:low].split()[2:]) | set(line[high + 1 :]) == set()


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
