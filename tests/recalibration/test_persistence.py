"""Files of recalibrators: what is saved comes back, and nothing else is read."""

import copy
import hashlib
import json
import random
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.recalibration.persistence import dumps, loads, save
from sigmascale.recalibration.scalings import SCALINGS

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.InfiniteIntervalWarning",
    "ignore::sigmascale.exceptions.FewerBinsWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",  # of files that were changed
    "ignore:.*:RuntimeWarning",
)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.5, n), rng.normal(size=n)
    kind = rng.choice(["a", "b", "é <b>"], n)
    error = (
        rng.normal(scale=u * np.exp(0.6 * x) * np.where(kind == "a", 2, 1)) + 0.5 * u
    )
    return ss.Predictions(np.zeros(n), u, y_true=error, features={"x": x, "kind": kind})


def recalibrators():
    for scaling in SCALINGS.values():
        yield ss.Recalibrator(scaling())
    yield ss.Recalibrator(ss.BinwiseScaling(by=("u", "kind")), bias="constant")
    yield ss.Recalibrator(bias="auto", hold_out=0.3, bounds=(-1e3, None))
    yield ss.Recalibrator(distribution="normal")
    yield ss.Recalibrator(ss.LinearScaling(), parts=["kind", "u"])
    yield ss.Recalibrator(ss.LinearScaling(), parts=["kind", "x"], hold_out=0.5)


def test_what_was_saved_says_the_same(tmp_path):
    p, new = rows(), rows(seed=1)
    for k, r in enumerate(recalibrators()):
        r.fit(p).save(tmp_path / f"{k}.json")
        again = ss.load(tmp_path / f"{k}.json")
        for level in (0.2, 0.5, 0.8):
            np.testing.assert_array_equal(
                again.apply(new).distributions.quantile([level]),
                r.apply(new).distributions.quantile([level]),
            )
        assert again.describe() == r.describe()
        assert dumps(loads(dumps(again, None))[0], None) == dumps(again, None)


def test_a_table_s_schema_can_lie_beside_a_recalibrator(tmp_path):
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows())
    extra = {"schema": {"uncertainty": "u", "labels": ["kind"]}}
    save(r, tmp_path / "r.json", extra)
    _, found = loads((tmp_path / "r.json").read_text("utf-8"))
    assert found["schema"]["uncertainty"] == "u"


def test_a_saved_default_is_small(tmp_path):
    rng = np.random.default_rng(0)
    for n_columns in (3, 30):
        X = rng.normal(size=(3000, n_columns))
        error = rng.normal(scale=np.exp(0.5 * X[:, 0] + 0.5 * X[:, 1] * X[:, 2]))
        p = ss.Predictions(y_std=np.ones(3000), error=error, features=X)
        ss.Recalibrator().fit(p).save(tmp_path / "r.json")
        assert (tmp_path / "r.json").stat().st_size < 2e6


def test_what_is_no_file_of_ours_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "r.json"
    for text in (
        *("", "{", "[]", "null", "3", '"text"', '{"format": "sigmascale 3"}', "\x00"),
        *('{"a": 1, "a": 2}', '{"format": "sigmascale", "version": 4}', "[" * 5000),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(DamagedFileError, match=r"r\.json"):
            ss.load(path)
    with pytest.raises((FileNotFoundError, InvalidInputError), match="nothing"):
        ss.load(tmp_path / "nothing.json")


def test_a_file_of_another_kind_is_refused_with_the_line_that_reads_it(tmp_path):
    path = tmp_path / "monitor.json"
    monitor = ss.Monitor(reference=rows()).update(rows(seed=1))
    monitor.save(path)
    with pytest.raises(InvalidInputError, match=r"kind=ss\.Monitor"):
        ss.load(path)
    assert ss.load(path, kind=ss.Monitor).state == monitor.state


def test_unfitted_recalibrators_are_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="fit"):
        ss.Recalibrator().save(tmp_path / "r.json")
    assert not list(tmp_path.iterdir())


def places(value, path=()):
    """Yield the path of everything within a value of JSON."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for k, each in enumerate(value[:40]):
            yield from places(each, (*path, k))


ODD = (
    *(None, True, -1, 0, 1e308, -1e308, 10**30, 1.5, "", "text", [], {}, [None]),
    *({"is": "Recalibrator"}, [[1, 2], [3]], "__import__('os')", float("nan")),
)


def mutated(document, rng):
    """Return a document with one thing in it replaced, dropped, doubled or moved."""
    new = copy.deepcopy(document)
    *path, last = rng.choice([x for x in places(new) if x])
    holder = new
    for key in path:
        holder = holder[key]
    how = rng.randrange(5)
    if how == 0:
        holder[last] = rng.choice(ODD)
    elif how == 1:
        del holder[last]
    elif how == 2 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), holder[last])
    elif how == 3 and isinstance(holder, dict):
        holder[f"{last}_"] = holder.pop(last)
    elif isinstance(holder[last], int | float) and not isinstance(holder[last], bool):
        holder[last] = holder[last] * rng.choice([-1, 0, 2, 1e200, 0.5])
    else:
        holder[last] = rng.choice(ODD)
    return new


def signature(document):
    """Return the checksum that a forger would write, too."""
    content = {name: document.get(name) for name in ("extra", "content")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def test_a_changed_file_is_refused_or_means_what_it_says():
    p, new, rng = rows(80), rows(20, seed=1), random.Random(0)
    documents = [json.loads(dumps(r.fit(p), None)) for r in recalibrators()]
    refused = 0
    for k in range(600):
        document = mutated(documents[k % len(documents)], rng)
        document["sha256"] = signature(document)
        text = json.dumps(document)
        try:
            found, _ = loads(text)
            y_std = found.apply(new).y_std
            found.describe()
        except InvalidInputError:  # of which DamagedFileError is one
            refused += 1
            continue
        assert np.isfinite(y_std).all()
        assert (y_std > 0).all()
    assert refused > 200
    for constant, is_refused in ((-700.0, False), (700.5, True)):  # of a logarithm
        document = copy.deepcopy(documents[0])
        document["content"]["scale_map"]["constant"] = constant
        document["sha256"] = signature(document)
        with pytest.raises(DamagedFileError) if is_refused else nullcontext():
            loads(json.dumps(document))


def test_nothing_in_a_file_is_executed(tmp_path):
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows())
    document = json.loads(dumps(r, None))
    marker = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"

    def replaced(value):
        if isinstance(value, dict):
            return {key: replaced(each) for key, each in value.items()}
        if isinstance(value, list):
            return [replaced(each) for each in value]
        return code if isinstance(value, str) else value

    with pytest.raises(InvalidInputError):
        loads(json.dumps(replaced(document)))
    assert not marker.exists()
