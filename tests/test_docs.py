"""The reference has every public name, with types and an explanation of each."""

import ast
import importlib
import inspect
import re
from collections import Counter
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator

import sigmascale as ss

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# public as a whole
SUBMODULES = (
    *("chemistry", "datasets", "exceptions", "export", "frames", "maps", "plots"),
    "report",
)
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    if not {"_build", "auto_examples", "generated"} & set(path.parts)
)


def documented_names():
    """Return the full names in the lists of the reference, page by page."""
    names = []
    for page in sorted((DOCS / "api").glob("*.md")):
        for block in re.findall(
            r"```{eval-rst}\n(.*?)```", page.read_text("utf-8"), re.S
        ):
            names += re.findall(r"^\.\. py:data:: (\S+)$", block, re.MULTILINE)
            module = re.search(r"currentmodule:: (\S+)", block)
            for name in re.findall(r"^   (\w[\w.]*)$", block, re.MULTILINE):
                names.append(f"{module[1]}.{name}")
    return names


def public_names():
    """Return the full name of everything that a user may import."""
    names = []
    for name in ss.__all__:
        if not isinstance(getattr(ss, name), ModuleType):
            names.append(f"sigmascale.{name}")
    for submodule in SUBMODULES:
        module = importlib.import_module(f"sigmascale.{submodule}")
        defined_here = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__
            and callable(value)
            and not name.startswith("_")
        ]
        names += [
            f"{module.__name__}.{name}"
            for name in getattr(module, "__all__", defined_here)
        ]
    return names


def resolve(name):
    """Return the object of a full name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


PUBLIC = public_names()
CALLABLES = {name: resolve(name) for name in PUBLIC if callable(resolve(name))}
FUNCTIONS = {n: f for n, f in CALLABLES.items() if inspect.isfunction(f)}
CLASSES = {n: c for n, c in CALLABLES.items() if inspect.isclass(c)}
ESTIMATORS = {n: c for n, c in CLASSES.items() if issubclass(c, BaseEstimator)}
RESULTS = {n: c for n, c in CLASSES.items() if is_dataclass(c)}
NO_EXAMPLE = {"sigmascale.load"}  # the example of `save` loads what it has saved


def section(docstring, title):
    """Return the names that a section of a numpydoc docstring explains."""
    found = re.search(
        rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)",
        inspect.cleandoc(docstring or ""),
        re.MULTILINE | re.DOTALL,
    )
    if not found:
        return []
    heads = re.findall(r"^(\*{0,2}\w[\w, *]*?)(?: :.*)?$", found[1], re.MULTILINE)
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def parameters(function):
    """Return the parameters of a callable, without `self`."""
    found = inspect.signature(function).parameters
    return {name: p for name, p in found.items() if name != "self"}


def own_methods(cls):
    """Return the public methods of a class that are ours, inherited ones too."""
    return {
        name: function
        for name, function in inspect.getmembers(cls, inspect.isfunction)
        if function.__module__.startswith("sigmascale")
        and (not name.startswith("_") or name == "__init__")
    }


def test_the_stub_exports_exactly_what_it_imports():
    tree = ast.parse((ROOT / "src/sigmascale/__init__.pyi").read_text("utf-8"))
    imported = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    (exported,) = (
        ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign)
    )
    assert sorted(imported) == exported
    assert sorted(ss.__all__) == exported


def test_the_submodules_of_the_package_are_public_as_a_whole():
    modules = {n for n in ss.__all__ if isinstance(getattr(ss, n), ModuleType)}
    assert modules <= set(SUBMODULES)


def test_every_public_name_is_in_the_reference_and_only_once():
    count = Counter(documented_names())
    assert not set(PUBLIC) - set(count), "add them to a page of docs/api"
    assert not [name for name, times in count.items() if times > 1]


@pytest.mark.parametrize("name", documented_names())
def test_what_the_reference_names_exists_and_explains_itself(name):
    found = resolve(name)
    assert isinstance(found, str) or inspect.getdoc(found)


@pytest.mark.parametrize(
    "page", sorted((DOCS / "api").glob("*.md")), ids=lambda p: p.stem
)
def test_every_page_of_the_reference_is_reached_from_its_index(page):
    index = (DOCS / "api" / "index.md").read_text("utf-8")
    assert page.stem == "index" or index.count(f"({page.name})") == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_and_result_of_a_function_has_a_type(name):
    check_types(FUNCTIONS[name])


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_and_result_of_a_method_has_a_type(name):
    for method in own_methods(CLASSES[name]).values():
        check_types(method)


def check_types(function):
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    untyped = [n for n, p in parameters(function).items() if p.annotation is p.empty]
    assert not untyped


@pytest.mark.parametrize("name", [*FUNCTIONS, *ESTIMATORS])
def test_a_docstring_explains_exactly_the_parameters_that_there_are(name):
    explained = section(CALLABLES[name].__doc__, "Parameters")
    assert explained == list(parameters(CALLABLES[name]))


@pytest.mark.parametrize("name", RESULTS)
def test_a_docstring_explains_every_field_of_a_result(name):
    result = RESULTS[name]
    inherited = {
        f.name
        for base in result.__mro__[1:]
        if is_dataclass(base)
        for f in fields(base)
    }
    own = {field.name for field in fields(result)} - inherited
    assert own <= set(section(result.__doc__, "Attributes"))


@pytest.mark.parametrize("name", [*FUNCTIONS, *ESTIMATORS])
def test_everything_that_one_calls_shows_an_example(name):
    assert (">>> " in CALLABLES[name].__doc__) == (name not in NO_EXAMPLE)


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_and_property_says_what_it_does(name):
    members = vars(CLASSES[name]).items()
    silent = [
        n
        for n, value in members
        if not n.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and not inspect.getdoc(value)
    ]
    assert not silent


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_to_files_that_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+://|#|mailto:", target):
            continue
        path = page.parent / target.split("#")[0]
        made = re.fullmatch(r"(.*/)?(auto_examples|generated)/(.+)\.rst", target)
        if made and made[2] == "auto_examples" and made[3] != "index":
            path = DOCS / "gallery" / f"{made[3]}.py"
        elif made:
            # index of the gallery, or a page of the reference: the build makes it
            assert made[3] == "index" or made[3] in documented_names()
            continue
        assert path.exists(), target


def test_every_page_is_in_the_contents():
    trees = [
        (page.parent, entry)
        for page in PAGES
        for tree in re.findall(r"{toctree}\n(.*?)```", page.read_text("utf-8"), re.S)
        for entry in tree.split()
    ]
    found = {(folder / f"{entry}.md").resolve() for folder, entry in trees}
    assert {path.resolve() for path in DOCS.glob("*.md")} - found == {DOCS / "index.md"}


def test_no_page_advises_to_install_what_is_not_published():
    for page in PAGES:
        assert not re.search(r"pip install [\"']?sigmascale", page.read_text("utf-8"))


WORDS = ("reliability diagram", "overconfident", "heteroscedastic", "PIT", "notebook")
WORDS += ("sharpness", "conditional calibration")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_field_is_found_in_the_docs(word):
    texts = {page.stem: page.read_text("utf-8") for page in PAGES}
    hits = [name for name, text in texts.items() if word.lower() in text.lower()]
    assert len(hits) > 1
    assert "glossary" in hits or word == "notebook"


@pytest.mark.parametrize(
    "example", sorted((DOCS / "gallery").glob("*.py")), ids=lambda p: p.stem
)
def test_an_example_of_the_gallery_has_a_title_and_is_run(example):
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    title, line, *_ = docstring.splitlines()
    assert example.stem.startswith("plot_")  # or the gallery would not run it
    assert len(title) == len(line)


def test_the_example_for_users_of_chemprop_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    variance = rng.gamma(3.0, 1.0, 400)
    table = pl.DataFrame({"energy": rng.normal(size=400), "energy_unc": variance})
    table.write_csv("calibration_predictions.csv")
    table.write_csv("new_predictions.csv")
    error = rng.normal(scale=2 * np.sqrt(variance))  # twice what the model says
    truth = table.select(energy=table["energy"] + error)
    truth.write_csv("calibration.csv")
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "for_users_of.md").read_text("utf-8"), re.S
    )
    names = {}
    exec(compile(code, "for_users_of.md", "exec"), names)
    assert np.median(names["new"]["u"] / np.sqrt(variance)) == pytest.approx(2, rel=0.1)
