import json
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.datasets import make_molecules
from sigmascale.exceptions import InvalidInputError
from sigmascale.persistence import (
    DamagedFileError,
    dumps,
    load,
    load_with_source,
    loads,
    save,
)
from sigmascale.scaling import SCALERS

DATA = make_molecules(1200, seed=4)
X = pl.DataFrame(
    {
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "hetero <b>": DATA.heteroatom_fraction,
        "group": DATA.group,
    }
)
CASES = {each.__name__: each() for each in SCALERS if each is not ss.GroupScaling}
CASES |= {
    "groups": ss.GroupScaling(by="group"),
    "bins of a feature": ss.BinwiseScaling(8, by="mass"),
    "cells": ss.BinwiseScaling((4, 3), by=("u", "mass")),
    "raked pairs": ss.RakedScaling(5, pairs=[("u", "mass")]),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    return CASES[request.param].fit(X, DATA.error)


def test_a_loaded_recalibrator_predicts_bit_for_bit_what_was_saved(fitted):
    assert np.array_equal(loads(dumps(fitted)).predict(X), fitted.predict(X))


def test_saving_what_was_loaded_gives_the_same_bytes(fitted):
    text = dumps(fitted)
    assert dumps(loads(text)) == text


def test_the_same_fit_gives_the_same_bytes(fitted):
    text = dumps(fitted)
    assert dumps(fitted.fit(X, DATA.error)) == text


def test_a_new_process_predicts_the_same_bits(tmp_path):
    scaler = CASES["SelectedScaling"].fit(X, DATA.error)
    save(scaler, tmp_path / "scaler.json")
    X.write_parquet(tmp_path / "X.parquet")
    code = (
        "import sys, numpy as np, polars as pl\n"
        "from sigmascale.persistence import load\n"
        "scaler = load(sys.argv[1])\n"
        "np.save(sys.argv[3], scaler.predict(pl.read_parquet(sys.argv[2])))\n"
    )
    paths = [tmp_path / name for name in ("scaler.json", "X.parquet", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)
    assert np.array_equal(np.load(paths[2]), scaler.predict(X))


@pytest.mark.parametrize("name", ["BinwiseScaling", "BoostedScaling", "groups"])
@pytest.mark.parametrize("conformal", [False, True], ids=["plain", "conformal"])
def test_damaged_files_give_a_clear_error_or_a_valid_recalibrator(name, conformal):
    scaler = CASES[name].fit(X, DATA.error)
    if conformal:
        scaler.conformalize(X, DATA.error, by_group=X["group"])
    text = dumps(scaler)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(350):
        at, length = rng.integers(len(text)), rng.integers(1, 20)
        junk = "".join(chr(c) for c in rng.integers(32, 127, rng.integers(0, 20)))
        damaged = text[:at] + junk + text[at + length :]
        try:
            assert (loads(damaged).predict(X) > 0).all()
        except DamagedFileError:
            refused += 1
    assert refused > 300


def _rewritten(change, *, conformal=False):
    """Return a file whose content was changed and whose checksum fits again."""
    from sigmascale.persistence import _checksum

    scaler = CASES["BinwiseScaling"].fit(X, DATA.error)
    if conformal:
        scaler.conformalize(X, DATA.error, by_group=X["group"])
    document = json.loads(dumps(scaler))
    change(document["recalibrator"])
    content = {name: document[name] for name in ("training", "recalibrator")}
    document["sha256"] = _checksum(content)
    return json.dumps(document)


def _spoil_limits(content):
    limits = content["learned"]["partition_"]["fields"]["limits"]["values"]
    limits[0] = {"is": "number", "value": "nan"}


def _set_learned(name, value):
    return lambda content: content["learned"].__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_set_learned("min_uncertainty_", -1.0), "smallest uncertainty is -1.0"),
        (_set_learned("factors_", [1.0]), "does not fit together"),
        (_set_learned("predict", 1.0), "'predict' is not something"),
        (_set_learned("__class__", "x"), "'__class__' is not something"),
        (_set_learned("x_", {"is": "os.system"}), "does not know"),
        (lambda c: c.update({"is": "Popen"}), "does not know"),
        (lambda c: c["parameters"].update(evil=1), "missing or unknown: evil"),
        (lambda c: c["parameters"].pop("n_bins"), "missing or unknown: n_bins"),
        (_spoil_limits, "not one \\(NaN\\)"),
    ],
)
def test_what_is_not_known_is_refused_even_with_a_fitting_checksum(change, match):
    with pytest.raises(DamagedFileError, match=match):
        loads(_rewritten(change))


def _change_scores(field, change):
    def apply(content):
        change(content["learned"]["conformal_"]["fields"][field])

    return apply


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            _change_scores(
                "z",
                lambda z: z["values"].__setitem__(0, {"is": "number", "value": "nan"}),
            ),
            "not one \\(NaN\\)",
        ),
        (_change_scores("z", lambda z: z["values"].reverse()), "not whole or sorted"),
        (
            _change_scores(
                "z", lambda z: z.update(shape=[1199], values=z["values"][1:])
            ),
            "not whole or sorted",
        ),
        (
            _change_scores("sizes", lambda n: n["values"].__setitem__(0, -1)),
            "not whole or sorted",
        ),
        (
            lambda c: c["learned"]["conformal_"]["fields"].update(groups=None),
            "not whole or sorted",
        ),
        (
            lambda c: c["learned"]["conformal_"]["fields"].update(extra=1.0),
            "does not fit together",
        ),
        (_set_learned("conformal_", None), "not whole or sorted"),
        (_set_learned("conformal_", [1.0, 2.0]), "not whole or sorted"),
    ],
)
def test_z_scores_of_intervals_that_do_not_fit_together_are_refused(change, match):
    assert loads(_rewritten(lambda _: None, conformal=True)).conformal_.z.size == 1200
    with pytest.raises(DamagedFileError, match=match):
        loads(_rewritten(change, conformal=True))


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "scaler.json"
    path.write_bytes(pickle.dumps(CASES["LinearScaling"].fit(X, DATA.error)))
    with pytest.raises(DamagedFileError, match="not text"):
        load(path)


def test_a_huge_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "scaler.json"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(DamagedFileError, match="1073741824 bytes"):
        load(path)


@pytest.mark.parametrize("depth", range(900, 1010, 3))
def test_deep_nesting_is_refused_whatever_part_of_python_gives_up(depth):
    text = (
        '{"format": "sigmascale recalibrator", "version": 1, "library": "", '
        f'"sha256": "", "training": {"[" * depth + "]" * depth}, "recalibrator": 0}}'
    )
    with pytest.raises(DamagedFileError, match=r"recalibrator|checksum"):
        loads(text)


def test_the_training_set_is_summarised_and_its_source_comes_back(tmp_path):
    scaler = ss.TemperatureScaling().fit(X[["u", "mass"]], DATA.error)
    save(scaler, tmp_path / "a.json", source={"file": "cal.csv"})
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["training"] == {
        "rows": 1200,
        "columns": ["u", "mass"],
        "source": {"file": "cal.csv"},
    }
    assert document["library"] == ss.__version__
    assert load_with_source(tmp_path / "a.json")[1] == {"file": "cal.csv"}
    assert json.loads(dumps(ss.NoScaling().fit([1.0], [1.0])))["training"] == {
        "rows": 1,
        "columns": None,
        "source": None,
    }


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not a whole JSON"),
        ("[" * 100_000, "not a whole JSON"),
        ("\0" * 100, "not a whole JSON"),
        ("[]", "not a file of a recalibrator"),
        ('{"format": "sigmascale recalibrator", "version": 99}', "version is 99"),
        ('{"format": "sigmascale recalibrator", "version": 1}', "missing or unknown"),
    ],
)
def test_other_texts_are_refused(text, match):
    with pytest.raises(DamagedFileError, match=match):
        loads(text)


def test_an_unfitted_recalibrator_and_other_objects_are_not_saved():
    with pytest.raises(InvalidInputError, match="must be fitted before"):
        dumps(ss.LinearScaling())
    with pytest.raises(InvalidInputError, match="must be a recalibrator"):
        dumps({"a": 1})
