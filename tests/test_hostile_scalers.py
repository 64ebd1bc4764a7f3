"""Saved recalibrators with right checksums and hostile content.

Run as a program, this file changes saved recalibrators in their structure: each must be
refused, or predict finite positive numbers for any row, within the memory it is given.
"""

import json
import random
import subprocess
import sys
import time
import tracemalloc
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.bins.partitions import LabelBins
from sigmascale.exceptions import DamagedFileError
from sigmascale.maps import Code, in_order
from sigmascale.maps.nodes import columns_of
from sigmascale.persistence import dumps, load, loads
from sigmascale.persistence.files import _checksum

N_ROWS = 10_000
MEMORY = 300 * 2**20  # bytes that an attack may take
SECONDS = 1.0

NUMBERS = [
    *(0, 1, -1, 2, 7, 0.5, -0.5, 1e-320, 1e-70, 1e70, 1e300, -1e300, 1e308),
    *(10**5, 10**9, 2**63, 10**30, -(10**9)),
    *({"is": "number", "value": text} for text in ("nan", "inf", "-inf")),
]
OTHERS = [
    *(None, True, False, "", "abc", "u", "label", "optional", "number", "1.5", "nan"),
    *([], {}, [1.0], [[]], {"is": "node", "number": 0}, {"is": "dict", "items": []}),
    *("f", "i", "b", "O", {"is": "os.system"}, {"is": "tuple", "items": []}),
]


def places(value, path=()):
    """Yield the path of every value within a value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        # of long lists, some entries: the others are like these
        few = range(len(value)) if len(value) < 8 else (0, 1, 2, -2, -1)
        items = [(i, value[i]) for i in few]
    for key, each in items:
        yield from places(each, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def mutate(document, rng):
    """Change one place of a document."""
    part = rng.choice(["nodes", "nodes", "recalibrator", "source"])
    path = rng.choice([p for p in places(document[part], (part,)) if p])
    *above, key = path
    holder, old = at(document, above), at(document, path)
    kinds = ["number", "number", "other", "remove", "copy"]
    if isinstance(old, list):
        kinds = ["shorten", "lengthen", "reverse", "shuffle", "inside", *kinds]
    if isinstance(old, dict) and "shape" in old:
        kinds = ["reshape", "resize", "inside", "inside", *kinds]
    if isinstance(old, (int, float)) and not isinstance(old, bool):
        kinds = ["negate", "scale", "next", "nudge", *kinds]
    match rng.choice(kinds):
        case "number":
            holder[key] = deepcopy(rng.choice(NUMBERS))
        case "other":
            holder[key] = deepcopy(rng.choice(OTHERS))
        case "remove":
            del holder[key]
        case "copy":
            other = rng.choice(list(places(document)))
            holder[key] = deepcopy(at(document, other))
        case "shorten":
            holder[key] = old[: rng.randrange(len(old) + 1)]
        case "lengthen":
            holder[key] = old + deepcopy(old[-rng.randrange(1, 4) :])
        case "reverse":
            holder[key] = old[::-1]
        case "shuffle":
            holder[key] = rng.sample(old, len(old))
        case "inside":
            values = old["values"] if isinstance(old, dict) else old
            if isinstance(values, list) and values:
                new = rng.choice(NUMBERS + OTHERS)
                values[rng.randrange(len(values))] = deepcopy(new)
        case "reshape":
            sizes = [0, 1, 3, 10**9, 3 * 10**9, 2**62, -1, True, 2.0, "4"]
            old["shape"] = rng.choices(sizes, k=rng.randrange(4))
        case "resize" if isinstance(old["values"], list) and len(old["shape"]) == 1:
            n = rng.randrange(2 * len(old["values"]) + 2)
            old["values"] = deepcopy((old["values"] * 3)[:n])
            old["shape"] = [n]
        case "negate":
            holder[key] = -old
        case "scale":
            holder[key] = old * rng.choice([1e-300, 1e-9, 1e9, 1e200])
        case "next":
            holder[key] = old + rng.choice([-1, 1])
        case "nudge":
            holder[key] = float(old) * rng.choice([0.5, 2.0, 1.0])


def mutant(text, seed):
    """Return a file that was changed in one place or a few, with its checksum."""
    rng = random.Random(seed)
    document = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        try:
            mutate(document, rng)
        except (KeyError, IndexError, OverflowError, TypeError, ValueError):
            continue  # an earlier change has removed what this one needs
    return with_checksum(document)


def with_checksum(document):
    """Return the text of a document whose checksum fits again."""
    document.pop("sha256")
    document["sha256"] = _checksum(document)
    return json.dumps(document, ensure_ascii=False)


def rows_for(scaler, rng):
    """Return rows of what a recalibrator reads: extremes, unseen labels, gaps."""
    extremes = np.array([0.0, 5e-324, 1e-70, 1e-9, 1.0, 1e9, 1e70, 1.7e308])
    kinds = {column.position: column.kind for column in columns_of(scaler.map_)}
    words = {
        node.x.position: node.partition.are_text
        for node in in_order(scaler.map_)
        if isinstance(node, Code) and isinstance(node.partition, LabelBins)
    }
    known = rng.choice([0.0, 1e-70, 1e-9, 1.0, 1e9, 1e70], N_ROWS)
    u = np.where(rng.random(N_ROWS) < 0.5, known, rng.random())
    columns = [u]
    for position in range(1, scaler.n_features_in_):
        if words.get(position):
            seen = ["O0N0", "O1N0", "O0N1", "never", "", None, "\0", "é" * 30]
            columns.append(rng.choice(np.array(seen, dtype=object), N_ROWS))
            continue
        x = np.where(
            rng.random(N_ROWS) < 0.5,
            rng.choice(np.append(extremes, -extremes), N_ROWS),
            rng.normal(100, 100, N_ROWS),
        )
        if kinds.get(position) in ("optional", "label"):
            x[rng.random(N_ROWS) < 0.1] = np.nan
        columns.append(x)
    names = getattr(scaler, "feature_names_in_", None)
    names = [f"x{i}" for i in range(len(columns))] if names is None else names
    return pl.DataFrame(dict(zip(names, columns, strict=True)), strict=False)


def attack(text, seed):
    """Return "refused" or "predicts"; raise if it is neither."""
    changed = mutant(text, seed)
    start = time.process_time()
    try:
        scaler = loads(changed)
    except DamagedFileError as problem:
        if len(str(problem)) > 1000:
            msg = "a long message"
            raise AssertionError(msg) from problem
        return "refused"
    if scaler.n_features_in_ > 50:
        return "predicts"  # nobody has such a table
    rows = rows_for(scaler, np.random.default_rng(seed))
    predicted = scaler.predict(rows)
    if isinstance(scaler, ss.Recalibrator):
        limits = scaler.predict_quantiles(rows, [0.05, 0.95])
        assert (limits[:, 0] <= limits[:, 1]).all(), "no quantiles"
    taken = time.process_time() - start
    assert (np.isfinite(predicted) & (predicted > 0)).all(), "no positive numbers"
    assert taken < SECONDS, f"{taken:.2f} s"
    return "predicts"


def main(folder, first, n_seeds):
    """Attack the files of a folder with many seeds; print what went wrong."""
    import resource

    warnings.simplefilter("ignore")
    texts = [path.read_text("utf-8") for path in sorted(Path(folder).glob("*.json"))]
    for text in texts:  # so that everything that it takes to predict is loaded
        scaler = loads(text)
        scaler.predict(rows_for(scaler, np.random.default_rng(0)))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    counts = {"refused": 0, "predicts": 0}
    for seed in range(int(first), int(first) + int(n_seeds)):
        try:
            counts[attack(texts[seed % len(texts)], seed)] += 1
        except BaseException as problem:
            print(f"seed {seed}: {type(problem).__name__}: {str(problem)[:300]}")
    print(json.dumps(counts))


DATA = ss.datasets.make_molecules(600, seed=4)
X = pl.DataFrame(
    {
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "hetero": DATA.heteroatom_fraction,
        "group": DATA.group,
    }
)
CASES = {
    "temperature": ss.TemperatureScaling(),
    "linear": ss.LinearScaling(),
    "isotonic": ss.IsotonicScaling(),
    "binwise": ss.BinwiseScaling(6),
    "feature": ss.BinwiseScaling(5, by="mass"),
    "cells": ss.BinwiseScaling((3, 3), by=("u", "mass")),
    "category": ss.CategoryScaling(by="group"),
    "raked": ss.RakedScaling(5, pairs=[("u", "mass")]),
    "boosted": ss.BoostedScaling(max_trees=12, depth=2),
    "selected": ss.SelectedScaling(
        {"none": ss.NoScaling(), "isotonic": ss.IsotonicScaling()}
    ),
    "distributions": ss.Recalibrator(ss.LinearScaling()),
    "shift": ss.Recalibrator(ss.TemperatureScaling(), shift="auto"),
}


@pytest.fixture(scope="module")
def saved():
    """The texts of saved recalibrators, some with intervals."""
    texts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, scaler in CASES.items():
            scaler.fit(X, DATA.error)
            if name in ("distributions", "shift"):
                scaler.conformalize(X, DATA.error, by_category=X["group"])
            texts[name] = dumps(scaler)
    return texts


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does")
@pytest.mark.parametrize(
    ("first", "n_seeds"),
    [(0, 2000), pytest.param(10**6, 50_000, marks=pytest.mark.torture)],
    ids=["some", "many"],
)
def test_what_loads_predicts_positive_numbers_for_any_row_within_300_mb(
    saved, tmp_path, first, n_seeds
):
    for name, text in saved.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    program = [sys.executable, __file__]
    found = subprocess.run(
        [*program, tmp_path, str(first), str(n_seeds)],
        capture_output=True,
        text=True,
        check=True,
    )
    *wrong, counts = found.stdout.splitlines()
    assert not wrong
    counted = json.loads(counts)
    assert sum(counted.values()) == n_seeds
    assert counted["predicts"] > 0.03 * n_seeds  # or nothing would be shown


def _change(saved, name, change):
    document = json.loads(saved[name])
    change(document)
    return with_checksum(document)


def _node(document, kind):
    return next(node for node in document["nodes"] if node["is"] == kind)


def _values(kind, field, change):
    """Change the values of an array of the first node of a kind."""

    def changed(document):
        array = _node(document, kind)[field]
        array["values"] = change(array["values"])
        array["shape"] = [len(array["values"])]

    return changed


def _learned(name, value):
    return lambda document: document["recalibrator"]["learned"].update({name: value})


def _summed(name, values):
    """Replace one of the sums that were kept."""

    def changed(document):
        sums = document["recalibrator"]["learned"]["sums_"]
        sums[name] = {"is": "array", "dtype": "f", "shape": [1], "values": values}

    return changed


INF, NAN = ({"is": "number", "value": value} for value in ("inf", "nan"))


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        (
            "temperature",
            _learned("n_features_in_", 10**9),
            "the number of its columns is 1000000000",
        ),
        (
            "binwise",
            _learned("n_samples_fit_", 2.5),
            "'n_rows' of SavedMap must be int; found a float",
        ),
        (
            "binwise",
            lambda d: d["recalibrator"]["learned"]["feature_names_in_"].update(
                values=["u", "u", "x", "y"]
            ),
            "columns of the same name",
        ),
        (
            "boosted",
            lambda d: _node(d, "Trees")["left"].update(shape=[3 * 10**9]),
            "a Trees: .* bytes stand for 3000000000 truth values",
        ),
        (
            "boosted",
            lambda d: _node(d, "Trees")["value"]["values"].__setitem__(0, INF),
            "a Trees: Leaves must be finite",
        ),
        (
            "isotonic",
            _values("Interpolation", "values", lambda v: v[::-1]),
            "an? Interpolation: Values must not fall",
        ),
        (
            "isotonic",
            _values("Interpolation", "values", lambda v: [-1.0, *v[1:]]),
            "no root of numbers as low as -1",
        ),
        (
            "isotonic",
            _values("Interpolation", "knots", lambda v: v[1:]),
            "a value at each knot",
        ),
        (
            "isotonic",
            _values("Interpolation", "knots", lambda v: [str(x) for x in v]),
            r"holds something else .*\(str\)",
        ),
        (
            "isotonic",
            _values("Interpolation", "knots", lambda v: [v[1], v[0], *v[2:]]),
            "Knots must ascend",
        ),
        (
            "binwise",
            lambda d: _node(d, "Code")["partition"]["limits"]["values"].reverse(),
            "its EqualSizeBins are not whole, sorted",
        ),
        (
            "category",
            lambda d: _node(d, "Code")["partition"]["labels"]["items"].reverse(),
            "its LabelBins are not whole, sorted",
        ),
        ("linear", _learned("a_", "1.5"), "the LinearScaling"),
        ("linear", _learned("a_", [NAN]), "'a_': it holds a number that is not one"),
        ("linear", _learned("feature_names_in_", []), "names 0 columns of 4"),
        ("selected", _learned("cv_results_", {"is": "dict", "items": []}), "fit toge"),
        (
            "binwise",
            lambda d: d["recalibrator"].update(words="All is well."),
            "words are not those",
        ),
        ("temperature", _learned("sums_", [1.0]), "sums are not those of its bins"),
        ("temperature", _summed("z2", [-1.0]), "its BinSums are not whole"),
        ("temperature", _summed("n", [NAN]), "holds a number that is not one"),
        ("category", _learned("rare_sums_", "abc"), "sums are a str"),
        ("binwise", _learned("partition_", None), "sums are not those of its bins"),
        (
            "temperature",
            lambda d: _node(d, "Constant").update(value=-2.0),
            "must be positive; those of the map lie between",
        ),
        (
            "temperature",
            lambda d: _node(d, "Constant").update(value="2"),
            "'value' of Constant must be float; found a str",
        ),
        (
            "raked",
            lambda d: _node(d, "Column").update(kind="optional"),
            "Column 0 is read both as number and optional",
        ),
    ],
)
def test_hostile_content_is_refused_with_its_place(saved, name, change, match):
    loads(saved[name])
    with pytest.raises(DamagedFileError, match=match):
        loads(_change(saved, name, change))


def test_what_maps_may_be_is_found_out_before_any_row(saved):
    # the exponential function of numbers up to 1e308, times one that may be 0
    def change(document):
        nodes, learned = document["nodes"], document["recalibrator"]["learned"]

        def add(kind, /, **parts):
            nodes.append({"is": kind, **parts})
            return {"is": "node", "number": len(nodes) - 1}

        root = learned["map_"]
        x = add("Exponential", x=add("Column", position=1, kind="number"))
        square = add("Product", factors={"is": "tuple", "items": [x, x]})
        both = {"is": "tuple", "items": [root, square]}
        learned["map_"] = add("Product", factors=both)

    with pytest.raises(DamagedFileError, match="0 may be multiplied by an infinite"):
        loads(_change(saved, "temperature", change))


@pytest.mark.parametrize(
    "extra",
    [
        {"is": "array", "dtype": "b", "shape": [3 * 10**9], "values": "AAAA" * 800},
        {"is": "array", "dtype": "f", "shape": [3 * 10**9], "values": [0.5]},
        {
            "is": "array",
            "dtype": "O",
            "shape": [3001],
            "values": ["a" * 200_000, *map(str, range(3000))],
        },
    ],
    ids=["bits", "numbers", "text"],
)
def test_arrays_take_no_more_memory_than_the_file_has_values_for(
    saved, tmp_path, extra
):
    path = tmp_path / "scaler.json"
    path.write_text(saved["category"], encoding="utf-8")
    load(path)  # what is imported is not counted
    document = json.loads(saved["category"])
    document["recalibrator"]["learned"]["extra_"] = extra
    path.write_text(with_checksum(document), encoding="utf-8")
    del document
    tracemalloc.start()
    try:
        load(path)
    except DamagedFileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20 * path.stat().st_size


def test_a_long_label_beside_short_ones_is_loaded_and_known(tmp_path):
    long = "C" * 20_000
    labels = np.array([long, "H", *map(str, range(98))], dtype=object)
    X = pl.DataFrame({"u": np.ones(200), "kind": np.tile(labels, 2)})
    error = np.where(X["kind"].to_numpy() == long, 3.0, np.tile([1.0, -1.0], 100))
    scaler = ss.CategoryScaling(by="kind", min_size=1).fit(X, error)
    path = tmp_path / "scaler.json"
    ss.save(scaler, path)
    again = load(path)
    assert again.predict(X).tolist() == scaler.predict(X).tolist()
    assert dumps(again) == dumps(scaler)


def test_columns_that_no_table_has_are_not_saved():
    scaler = ss.NoScaling().fit([1.0], [1.0])
    scaler.n_features_in_ = 10**6
    with pytest.raises(ss.exceptions.InvalidInputError, match="at most 100000 columns"):
        dumps(scaler)


def test_the_attack_finds_a_map_that_is_not_checked(saved, monkeypatch):
    monkeypatch.setattr(
        "sigmascale.persistence.files.check_map", lambda root, n_columns: None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(5000):
            try:
                attack(saved["isotonic"], seed)
            except AssertionError:
                return
    pytest.fail("nothing was found")


if __name__ == "__main__":
    main(*sys.argv[1:])
