"""Several targets in one file: what comes back, and what is refused."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.persistence import dumps, load_map, load_maps, loads
from sigmascale.persistence.files import _checksum
from sigmascale.predictions import read_table


def make(n=60, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, (n, 3))
    error = rng.normal(scale=np.hypot(u, [0.1, 1.0, 3.0]))
    error[n // 2 :, 2] = np.nan
    x = rng.random(n)
    X = pl.DataFrame(np.column_stack([u, x]), schema=["u_a", "u_b", "u_c", "x"])
    return X, pl.DataFrame(error, schema=["a", "b", "c"], nan_to_null=True)


def fitted(**parameters):
    return ss.RecalibratedTargets(**parameters).fit(*make())


def resealed(targets, change):
    """Return a saved document with one change, and a right checksum."""
    document = json.loads(dumps(targets))
    change(document)
    return sealed(document)


def sealed(document):
    document.pop("sha256")
    return json.dumps(document | {"sha256": _checksum(document)})


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"scaling": ss.BinwiseScaling(3, by="x"), "names": ["p", "q", "r"]},
        {"law": "normal", "shift": "auto", "random_state": 3},
    ],
    ids=["default", "binwise", "normal law"],
)
def test_what_is_loaded_predicts_bit_for_bit_and_is_saved_to_the_same_bytes(
    parameters, tmp_path
):
    targets, (X, y) = fitted(**parameters), make()
    path = tmp_path / "targets.json"
    ss.save(targets, path, source={"file": "a.csv"})
    again = ss.load(path)
    np.testing.assert_array_equal(again.predict(X), targets.predict(X))
    assert again.score(X, y) == targets.score(X, y)
    assert again.describe() == targets.describe()
    assert again.to_table() == targets.to_table()
    assert dumps(again, {"file": "a.csv"}) == path.read_text("utf-8")
    saved = load_maps(path)
    assert saved.source == {"file": "a.csv"}
    for u, each, expected in zip(
        X.columns[:3], saved.maps.values(), targets.predict(X).T, strict=True
    ):
        found = each.predict(read_table(X.select(u, "x")))
        np.testing.assert_array_equal(found, expected)


def test_long_tables_and_single_columns_come_back():
    X, y = make()
    table = pl.DataFrame({"u": X["u_a"], "x": X["x"], "t": ["a", "b", "c"] * 20})
    long = ss.RecalibratedTargets(by="t").fit(table, y["a"])
    np.testing.assert_array_equal(
        loads(dumps(long)).predict(table), long.predict(table)
    )
    numbers = X["u_a"].to_numpy()
    one = ss.RecalibratedTargets().fit(numbers, y["a"])
    again = loads(dumps(one)).predict(numbers)
    assert again.shape == (60,)
    np.testing.assert_array_equal(again, one.predict(numbers))


def test_one_target_is_saved_alone_as_any_recalibrator(tmp_path):
    targets, (X, _) = fitted(), make()
    path = tmp_path / "one.json"
    ss.save(targets.recalibrators_["b"], path)
    np.testing.assert_array_equal(
        ss.load(path).predict(X.select("u_b", "x")), targets.predict(X)[:, 1]
    )
    ss.save(targets, path)
    with pytest.raises(InvalidInputError, match="it holds 3 targets, and here one"):
        load_map(path)


def test_maps_of_targets_predict_without_scikit_learn(tmp_path):
    path = tmp_path / "targets.json"
    ss.save(fitted(), path)
    program = (
        "import sys, polars as pl\n"
        "from sigmascale.persistence import load_maps\n"
        "from sigmascale.predictions import read_table\n"
        "rows = read_table(pl.DataFrame({'u_a': [1.0], 'x': [0.5]}))\n"
        f"print(load_maps({str(path)!r}).maps['a'].predict(rows).shape)\n"
        "assert 'sklearn' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.stdout.decode().strip() == "(1,)", done.stderr.decode()


def test_what_is_not_fitted_is_not_saved():
    with pytest.raises(InvalidInputError, match="must be fitted"):
        dumps(ss.RecalibratedTargets())


def together(document):
    return document["recalibrator"]["learned"]


def parameters(document):
    return document["recalibrator"]["parameters"]


def listed(document):
    """Return the targets, each with its name."""
    return together(document)["recalibrators_"]["items"]


def learned(document, k=0):
    return listed(document)[k][1]["learned"]


def scaling(document):
    return learned(document)["scaling_"]["learned"]


def columns(names):
    return {"is": "array", "dtype": "O", "shape": [len(names)], "values": names}


CHANGES = {
    "no targets": (lambda d: listed(d).clear(), "no targets"),
    "not a dict": (
        lambda d: together(d).update(recalibrators_=[]),
        "RecalibratedTargets",
    ),
    "same name": (lambda d: listed(d)[1].__setitem__(0, "a"), "RecalibratedTargets"),
    "no name": (
        lambda d: listed(d)[0].__setitem__(0, 3),
        "'maps' of SavedTargets must be dict",
    ),
    "another class": (
        lambda d: listed(d)[0].__setitem__(
            1, json.loads(dumps(ss.TemperatureScaling().fit(*ONE)))["recalibrator"]
        ),
        "recalibrat|Recalibrat",
    ),
    "unknown class": (
        lambda d: listed(d)[0][1].update({"is": "os.system"}),
        "does not know",
    ),
    "negative factor": (lambda d: scaling(d).update(factor_=-1.0), "TargetScaling"),
    "weight of 2": (lambda d: scaling(d).update(own_weight_=2.0), "TargetScaling"),
    "more learned": (lambda d: learned(d).update(predict=1), "not something that"),
    "half way": (lambda d: together(d).update(half_way_="far"), "that anyone learns"),
    "half way of 0": (lambda d: together(d).update(half_way_=0.0), "anyone learns"),
    "no column": (lambda d: together(d).update(is_column_=True), "are no column"),
    "by a list": (lambda d: parameters(d).update(by=[]), "'by' of SavedTargets"),
    "by that is none": (lambda d: parameters(d).update(by="z"), "the columns"),
    "other names": (
        lambda d: parameters(d).update(names=["a", "b", "d"]),
        "that anyone learns",
    ),
    "template": (lambda d: parameters(d).update(scaling=3), "that anyone learns"),
    "more parameters": (
        lambda d: parameters(d).update(n_jobs=3),
        "missing or unknown: n_jobs",
    ),
    "more together": (
        lambda d: d["recalibrator"].update(more=1),
        "missing or unknown: more",
    ),
    "fewer columns": (lambda d: together(d).update(n_features_in_=3), "names 4 col"),
    "columns of one name": (
        lambda d: together(d).update(
            feature_names_in_=columns(["u_a", "u_a", "u_c", "x"])
        ),
        "columns of the same name",
    ),
    "other columns": (
        lambda d: together(d).update(
            feature_names_in_=columns(["u_a", "u_c", "u_b", "x"])
        ),
        "those of target 'b' are not",
    ),
    "another order": (
        lambda d: together(d).update(uncertainty_columns_=[1, 0, 2]),
        "those of target 'a' are not",
    ),
    "no order": (
        lambda d: together(d).update(uncertainty_columns_=[0, 1, 1]),
        r"uncertainties are \[0, 1, 1\]",
    ),
    "words": (
        lambda d: d["recalibrator"].update(words="All is well."),
        "words are not those",
    ),
    "words that are none": (
        lambda d: d["recalibrator"].update(words=1),
        "'words' of SavedTargets must be str",
    ),
    "map": (lambda d: d["nodes"].clear(), "no node"),
    "columns of a target": (
        lambda d: learned(d, 2).update(
            n_features_in_=1, feature_names_in_=columns(["u_c"])
        ),
        "'c': the Recalibrator: what was seen",
    ),
    "no part": (lambda d: learned(d, 1).pop("map_"), "'b': the Recalibrator"),
    "no target": (lambda d: listed(d).append(3), "does not fit together"),
}
ONE = ([1.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize(("change", "match"), CHANGES.values(), ids=CHANGES)
def test_content_that_does_not_fit_together_is_refused(change, match):
    with pytest.raises(DamagedFileError, match=match):
        loads(resealed(fitted(), change))


def test_other_keys_and_checksums_are_refused():
    document = json.loads(dumps(fitted()))
    with pytest.raises(DamagedFileError, match="missing or unknown: more"):
        loads(json.dumps(document | {"more": 1}))
    with pytest.raises(DamagedFileError, match=r"version is 2, .* Fit .* again"):
        loads(json.dumps(document | {"version": 2}))
    together(document)["half_way_"] = 10.0
    with pytest.raises(DamagedFileError, match="the checksum does not fit"):
        loads(json.dumps(document))


ODD = [0, -1, 0.5, 1e300, None, True, "", "abc", [], {}, {"is": "os.system"}]


def places(value, path=()):
    """Yield the path of every value within a value; of long lists, of some."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value[:4])
    for key, each in items:
        yield from places(each, (*path, key))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_changed_is_refused_or_predicts_positive_numbers():
    X, _ = make()
    rng = np.random.default_rng(0)
    text = dumps(fitted(scaling=ss.BinwiseScaling(3, by="x")))
    refused = 0
    for _ in range(80):
        document = json.loads(text)
        part = ("recalibrator", "recalibrator", "nodes")[rng.integers(3)]
        paths = [path for path in places(document[part], (part,)) if path]
        *above, key = paths[rng.integers(len(paths))]
        holder = document
        for each in above:
            holder = holder[each]
        holder[key] = ODD[rng.integers(len(ODD))]
        try:
            found = loads(sealed(document)).predict(X)
        except DamagedFileError:
            refused += 1
            continue
        assert found.shape == (60, 3)
        assert (found > 0).all()
        assert np.isfinite(found).all()
    assert refused > 40
