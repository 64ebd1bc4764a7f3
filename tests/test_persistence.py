import json
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.datasets import make_molecules
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.maps import in_order
from sigmascale.persistence import (
    dumps,
    load,
    load_map,
    loads,
    save,
)
from sigmascale.scaling import scalers

SCALERS = tuple(scalers().values())

DATA = make_molecules(1200, seed=4)
X = pl.DataFrame(
    {
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "hetero <b>": DATA.heteroatom_fraction,
        "group": DATA.group,
    }
)
CASES = {each.__name__: each() for each in SCALERS if each is not ss.CategoryScaling}
CASES |= {
    "category": ss.CategoryScaling(by="group"),
    "bins of a feature": ss.BinwiseScaling(8, by="mass"),
    "cells": ss.BinwiseScaling((4, 3), by=("u", "mass")),
    "raked pairs": ss.RakedScaling(5, pairs=[("u", "mass")]),
    "distributions": ss.Recalibrator(ss.LinearScaling(), shift="auto"),
    "normal law": ss.Recalibrator(law="normal", shift="constant"),
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


def saved(name, *, conformal):
    """Return a scaling, or a recalibrator of it with intervals."""
    if not conformal:
        return CASES[name].fit(X, DATA.error)
    recalibrator = ss.Recalibrator(CASES[name]).fit(X, DATA.error)
    return recalibrator.conformalize(X, DATA.error, by_category=X["group"])


@pytest.mark.parametrize("name", ["BinwiseScaling", "BoostedScaling", "category"])
@pytest.mark.parametrize("conformal", [False, True], ids=["plain", "conformal"])
def test_damaged_files_give_a_clear_error_or_a_valid_recalibrator(name, conformal):
    scaler = saved(name, conformal=conformal)
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


def with_checksum(document):
    """Return the text of a document whose checksum fits again."""
    from sigmascale.persistence.files import _checksum

    document.pop("sha256")
    return json.dumps(document | {"sha256": _checksum(document)})


def _rewritten(change, *, name="BinwiseScaling", conformal=False):
    """Return a file whose content was changed and whose checksum fits again."""
    scaler = saved(name, conformal=conformal)
    document = json.loads(dumps(scaler))
    change(document)
    return with_checksum(document)


NAN = {"is": "number", "value": "nan"}
NAMES = {"is": "array", "dtype": "O", "shape": [1], "values": ["u"]}


def _inputs(*numbers):
    """Return what stands for a tuple of nodes."""
    nodes = [{"is": "node", "number": number} for number in numbers]
    return {"is": "tuple", "items": nodes}


def _node(document, kind):
    """Return the first node of a kind."""
    return next(node for node in document["nodes"] if node["is"] == kind)


def _spoil_limits(document):
    _node(document, "Code")["partition"]["limits"]["values"][0] = NAN


def _set_learned(name, value):
    return lambda document: document["recalibrator"]["learned"].update({name: value})


def _set_node(kind, /, **parts):
    return lambda document: _node(document, kind).update(parts)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_set_learned("min_uncertainty_", -1.0), "uncertainty is -1.0"),
        (_set_learned("min_uncertainty_", "1"), "must be float; found a str"),
        (_set_learned("min_uncertainty_", 10**40), "must be float; found a int"),
        (_set_learned("n_features_in_", 2), "names 4 columns of 2"),
        (_set_learned("feature_names_in_", NAMES), "names 1 columns of 4"),
        (_set_learned("predict", 1.0), "'predict' is not something"),
        (_set_learned("__class__", "x"), "'__class__' is not something"),
        (_set_learned("x_", {"is": "os.system"}), "does not know"),
        (_set_learned("x_", {"is": "Constant", "value": 1.0}), "does not know"),
        (_set_learned("map_", 1.0), "'root' of SavedMap must be Node; found a float"),
        (_set_learned("map_", {"is": "node", "number": 99}), "no node 99"),
        (lambda d: d["recalibrator"].update({"is": "Popen"}), "does not know"),
        (lambda d: d["recalibrator"].update(extra=1), "missing or unknown: extra"),
        (lambda d: d["recalibrator"]["parameters"].update(evil=1), "unknown: evil"),
        (lambda d: d["recalibrator"]["parameters"].pop("n_bins"), "unknown: n_bins"),
        (_spoil_limits, "not one \\(nan\\)"),
        (
            _set_node("Lookup", table=[1.0]),
            "a Lookup: 'table' of Lookup must be an array of float64; found a list",
        ),
        (_set_node("Column", position=-1), "must not be negative"),
        (_set_node("Column", position=2.0), "'position' of Column must be int"),
        (_set_node("Column", position=4), "he map reads column 4 of 4"),
        (_set_node("Column", kind="text"), "'kind' of Column must be"),
        (_set_node("Product", factors=_inputs(99)), "there is no node 99 before"),
        (_set_node("Product", factors=_inputs(-1)), "no node -1 before it"),
        (_set_node("Product", factors=_inputs(True)), "no node True before it"),
        (_set_node("Product", factors=_inputs()), "something to compute from"),
        (_set_node("Product", factors=[1.0]), "must be tuple.*; found a list"),
        (_set_node("Product", extra=1), "parts of Product are missing or unknown"),
        (_set_node("Code", ties={"is": "node", "number": 0}), "Pairs of limits need"),
        (_set_node("Product", **{"is": "Popen"}), "it is a 'Popen'"),
        (lambda d: d.update(nodes=[]), "no node . before it"),
        (lambda d: d.update(nodes=3), "does not fit together"),
    ],
)
def test_what_is_not_known_is_refused_even_with_a_fitting_checksum(change, match):
    with pytest.raises(DamagedFileError, match=match):
        loads(_rewritten(change))


def _scores(document):
    return document["recalibrator"]["learned"]["conformal_"]


def _change_scores(field, change):
    return lambda document: change(_scores(document)[field])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            _change_scores("z", lambda z: z["values"].__setitem__(0, NAN)),
            "not one \\(nan\\)",
        ),
        (_change_scores("z", lambda z: z["values"].reverse()), "not whole, sorted"),
        (
            _change_scores(
                "z", lambda z: z.update(shape=[1199], values=z["values"][1:])
            ),
            "not whole, sorted",
        ),
        (
            _change_scores("sizes", lambda n: n["values"].__setitem__(0, -1)),
            "not whole, sorted",
        ),
        (lambda d: _scores(d).update(categories=None), "not whole, sorted"),
        (lambda d: _scores(d).update(extra=1.0), "missing or unknown: extra"),
        (lambda d: _scores(d).pop("weights"), "missing or unknown: weights"),
        (
            _set_learned("conformal_", [1.0, 2.0]),
            "'conformal' of SavedMap must be ConformalScores or None",
        ),
    ],
)
def test_z_scores_of_intervals_that_do_not_fit_together_are_refused(change, match):
    assert loads(_rewritten(lambda _: None, conformal=True)).conformal_.z.size == 1200
    with pytest.raises(DamagedFileError, match=match):
        loads(_rewritten(change, conformal=True))


@pytest.mark.parametrize("version", [1, 2, 99, None, "3"])
def test_a_file_of_another_version_says_to_fit_again(version):
    text = json.dumps({"format": "sigmascale recalibrator", "version": version})
    with pytest.raises(DamagedFileError, match=r"version is .*Fit .* again"):
        loads(text)


def test_a_map_is_loaded_and_predicts_without_scikit_learn(tmp_path):
    scaler = CASES["SelectedScaling"].fit(X, DATA.error)
    save(scaler, tmp_path / "scaler.json", source={"file": "a.csv"})
    X.write_parquet(tmp_path / "X.parquet")
    code = (
        "import sys, numpy as np, polars as pl\n"
        "from sigmascale.predictions import read_table\n"
        "from sigmascale.persistence import load_map\n"
        "saved = load_map('scaler.json')\n"
        "rows = read_table(pl.read_parquet('X.parquet'))\n"
        "np.save('out.npy', saved.predict(rows))\n"
        "assert not {'sklearn', 'scipy'} & set(sys.modules), sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "out.npy"), scaler.predict(X))
    saved = load_map(tmp_path / "scaler.json")
    assert saved.words == scaler.describe()
    assert saved.method == "SelectedScaling"
    assert saved.names == ("u", "mass", "hetero <b>", "group")


def test_nodes_that_a_map_uses_twice_are_written_once_and_stay_one(tmp_path):
    scaler = CASES["raked pairs"].fit(X, DATA.error)
    save(scaler, tmp_path / "scaler.json")
    before, after = in_order(scaler.map_), in_order(load(tmp_path / "scaler.json").map_)
    assert [type(node) for node in after] == [type(node) for node in before]


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
        '{"format": "sigmascale recalibrator", "version": 3, "library": "", '
        '"sha256": "", "source": null, "nodes": [], '
        f'"recalibrator": {"[" * depth + "]" * depth}}}'
    )
    with pytest.raises(DamagedFileError, match=r"recursion|checksum"):
        loads(text)


def _chained(document):
    nodes = document["nodes"]
    learned = document["recalibrator"]["learned"]
    for _ in range(5000):
        nodes.append({"is": "Root", "x": learned["map_"]})
        learned["map_"] = {"is": "node", "number": len(nodes) - 1}


def test_a_map_that_is_very_deep_predicts_all_the_same():
    # the root of a root of a root ...
    np.testing.assert_allclose(loads(_rewritten(_chained)).predict(X), 1.0)


def test_the_calibration_set_is_summarised_and_its_source_comes_back(tmp_path):
    scaler = ss.TemperatureScaling().fit(X[["u", "mass"]], DATA.error)
    save(scaler, tmp_path / "a.json", source={"file": "cal.csv"})
    document = json.loads((tmp_path / "a.json").read_text())
    learned = document["recalibrator"]["learned"]
    seen = learned["seen_"]
    assert seen["positions"]["values"] == [0, 1]
    assert seen["quantiles"]["shape"] == [2, 5]
    assert seen["hashes"]["shape"] == [256]
    assert learned["n_samples_fit_"] == 1200
    assert learned["feature_names_in_"]["values"] == ["u", "mass"]
    assert learned["min_uncertainty_"] == DATA.uncertainty.min()
    assert document["source"] == {"file": "cal.csv"}
    assert document["library"] == ss.__version__
    assert load_map(tmp_path / "a.json").source == {"file": "cal.csv"}
    of_one = json.loads(dumps(ss.NoScaling().fit([1.0], [1.0])))
    assert of_one["source"] is None
    learned = of_one["recalibrator"]["learned"]
    assert learned["seen_"]["quantiles"]["values"] == [1.0] * 5
    assert "feature_names_in_" not in learned


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not a whole JSON"),
        ("[" * 1_000, "not a whole JSON"),
        ("[" * 100_000, "not a whole JSON"),
        ("\0" * 100, "not a whole JSON"),
        ("[]", "not a file of a recalibrator"),
        ('{"format": "sigmascale recalibrator", "version": 3}', "missing or unknown"),
    ],
)
def test_other_texts_are_refused(text, match):
    with pytest.raises(DamagedFileError, match=match):
        loads(text)


def test_an_unfitted_recalibrator_and_other_objects_are_not_saved():
    with pytest.raises(InvalidInputError, match="must be fitted before"):
        dumps(ss.LinearScaling())
    with pytest.raises(InvalidInputError, match="must be a registered recalibrator"):
        dumps({"a": 1})
