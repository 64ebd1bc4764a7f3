"""Kept files: what a release has written is read for ever, and gives the same."""

import importlib
import json
import pkgutil

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale import monitoring, recalibration
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.predictions.schema import Schema
from sigmascale.recalibration import persistence
from sigmascale.recalibration.scalings import SCALINGS
from sigmascale.report import read_card, rows_sha256

from .make import FOLDER, KINDS, gave

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.InfiniteIntervalWarning",
)
NAMES = sorted(path.name[:-10] for path in FOLDER.glob("*.gave.json"))


def kind_of(name):
    """Return the class that a kept file holds."""
    kinds = {"monitor": ss.Monitor, "follower": ss.Follower}
    return kinds.get(name.split("-")[0], ss.Recalibrator)


@pytest.mark.parametrize("name", NAMES)
def test_kept_files_give_what_they_gave(name):
    kept = json.loads((FOLDER / f"{name}.gave.json").read_text("utf-8"))
    given = gave(ss.load(FOLDER / f"{name}.json", kind=kind_of(name)), kept["rows"])
    # evidence adds up logarithms of SciPy's functions: last digits differ by version
    digits = 1e-10 if name.startswith("monitor") else 1e-12
    assert given.keys() == kept["gave"].keys()
    for what, expected in kept["gave"].items():
        if what == "alarm":
            assert given[what] == pytest.approx(expected, rel=digits)
            continue
        found = np.array(given[what], dtype=float)
        found[np.isinf(found)] = np.nan  # JSON has null
        np.testing.assert_allclose(
            found, np.array(expected, dtype=float), rtol=digits, atol=digits
        )


def test_a_kept_file_of_the_command_line_knows_its_columns(sigmascale, tmp_path):
    out = tmp_path / "out.csv"
    table = FOLDER / "table.csv"
    assert sigmascale("apply", FOLDER / "fitted.json", table, "-o", out).code == 0
    expected = pl.read_csv(FOLDER / "applied.csv")
    found = pl.read_csv(out)
    assert found.columns == expected.columns
    numbers = expected.select(pl.col(pl.Float64)).columns
    assert len(numbers) == 7
    np.testing.assert_allclose(found[numbers], expected[numbers], rtol=1e-12)


def test_kept_cards_are_read_and_know_their_rows_and_their_recalibrator():
    r, extra = persistence.load_with_extra(FOLDER / "fitted.json", ss.Recalibrator)
    rows = Schema.from_dict(extra["schema"]).read(pl.read_csv(FOLDER / "table.csv"))
    for ending in ("json", "md", "html"):
        card = read_card(FOLDER / f"card.{ending}")
        assert card["data"]["rows_sha256"] == rows_sha256(r.apply(rows))
        assert card["recalibrator"]["sha256"] == persistence.checksum(r)


def classes_within(value):
    """Yield the names of the classes of all objects in a file."""
    if isinstance(value, dict):
        yield from [value["is"]] if "is" in value else []
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from classes_within(item)


def test_a_file_of_every_kind_is_kept():
    declared = set()
    for package in (recalibration, monitoring):
        prefix = f"{package.__name__}."
        for found in pkgutil.walk_packages(package.__path__, prefix):
            for each in vars(importlib.import_module(found.name)).values():
                if isinstance(each, type) and "stored_parts" in vars(each):
                    declared.add(each.__name__)
    kept = set()
    for name in NAMES:
        text = (FOLDER / f"{name}.json").read_text("utf-8")
        kept.update(classes_within(json.loads(text)["content"]))
    assert len(declared) > 15
    assert kept == declared
    assert set(KINDS) | set(SCALINGS) <= set(NAMES)


# -- older and newer formats -----------------------------------------------------------


def as_format(name, version, change):
    """Return a kept file with another number of its format, and other parts."""
    document = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    change(document["content"])
    document["version"] = version
    content = {part: document[part] for part in ("extra", "content")}
    document["sha256"] = persistence._checksum(content)
    return json.dumps(document)


def older(content):
    """Give an object the parts that a made-up format before the first one had."""
    scale = content["scale_map"]
    del scale["most"]
    scale["factor"] = np.exp(scale.pop("constant"))
    content["title"] = "of old"


def test_an_older_format_is_converted_and_gives_the_same(monkeypatch):
    text = as_format("binwise", persistence.VERSION - 2, older)
    with pytest.raises(DamagedFileError, match="format -1, which is not known"):
        persistence.loads(text)
    # two steps, the second of which changes nothing
    steps = {
        "Additive": lambda parts: {
            **{name: part for name, part in parts.items() if name != "factor"},
            "constant": float(np.log(parts["factor"])),
            "most": None,
        },
        "Recalibrator": lambda parts: {
            name: part for name, part in parts.items() if name != "title"
        },
    }
    monkeypatch.setitem(persistence.CONVERSIONS, persistence.VERSION - 2, steps)
    monkeypatch.setitem(persistence.CONVERSIONS, persistence.VERSION - 1, {})
    kept = json.loads((FOLDER / "binwise.gave.json").read_text("utf-8"))
    loaded, _ = persistence.loads(text)
    for what, expected in kept["gave"].items():
        found = gave(loaded, kept["rows"])[what]
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    # what is converted is as strictly looked at as what is not
    for change in (lambda content: None, lambda content: content["z"].clear()):
        with pytest.raises(DamagedFileError):
            persistence.loads(as_format("binwise", persistence.VERSION - 2, change))


def test_a_newer_format_is_refused_with_the_remedy():
    text = as_format("linear", persistence.VERSION + 1, lambda content: None)
    with pytest.raises(DamagedFileError, match="pip install --upgrade sigmascale"):
        persistence.loads(text)


def test_a_file_of_another_kind_is_refused_and_named(sigmascale):
    with pytest.raises(InvalidInputError, match=r"a Follower.*kind=ss\.Follower"):
        ss.load(FOLDER / "follower.json")
    with pytest.raises(InvalidInputError, match="a Recalibrator, and no Monitor"):
        ss.load(FOLDER / "linear.json", kind=ss.Monitor)
    for command in ("show", "export"):
        done = sigmascale(command, FOLDER / "monitor.json")
        assert done.code == 2
        assert done.says("it holds a Monitor, and no Recalibrator")
