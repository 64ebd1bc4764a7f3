"""Imports run one way, in the order that the page *Architecture* shows."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from sigmascale.scaling import scalers

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sigmascale"
PAGE = ROOT / "docs" / "architecture.md"


def layers_of_the_page():
    """Return the modules of each layer, from the table of the page."""
    _, table = PAGE.read_text("utf-8").split("<!-- layers:", 1)
    rows = re.findall(r"^\| *(\w[\w ]*?) *\| *(`.*?) *\|", table, re.MULTILINE)
    return {
        layer: [name.rstrip("/") for name in re.findall(r"`([\w/]+)`", modules)]
        for layer, modules in rows
    }


def modules():
    """Return the path of each module by its dotted name within the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts:  # but for the package itself, which only lists names
            found[".".join(parts)] = path
    return found


def imports_of(name, path, known):
    """Return the modules of the package that a module imports, wherever it does."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
            targets = [each[1:] for each in targets if each[0] == "sigmascale"]
        elif isinstance(node, ast.ImportFrom):
            inside = (node.module or "").split(".") if node.module else []
            if node.level:
                up = len(package) - (node.level - 1)
                inside = package[:up] + inside
            elif inside[:1] == ["sigmascale"]:
                inside = inside[1:]
            else:
                continue
            targets = [[*inside, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            # the longest part that is a module: the rest are names within it
            while target and ".".join(target) not in known:
                target = target[:-1]
            found.add(".".join(target))
    # a bare `import sigmascale` reaches every module
    return found - {name}


MODULES = modules()
IMPORTS = {name: imports_of(name, path, MODULES) for name, path in MODULES.items()}
LAYERS = layers_of_the_page()
LEVEL = {
    module: level for level, names in enumerate(LAYERS.values()) for module in names
}


# These start the command line, and so stand below it, though their room does not.
STARTERS = {"paper.__main__": "__main__"}


def top(module):
    return STARTERS.get(module, module).split(".")[0]


def test_every_module_stands_in_one_layer_and_every_layer_names_modules():
    listed = [module for names in LAYERS.values() for module in names]
    assert sorted(listed) == sorted({top(name) for name in MODULES})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_its_own_layer_and_those_above(module):
    assert "" not in IMPORTS[module], "import from the module, not from the package"
    upwards = {
        other for other in IMPORTS[module] if LEVEL[top(other)] > LEVEL[top(module)]
    }
    assert not upwards


def test_no_modules_import_each_other_in_a_circle():
    # a module of a package loads its __init__ first; what that imports is no circle
    graph = {
        name: {other for other in others if not name.startswith(other + ".")}
        for name, others in IMPORTS.items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize(
    ("below", "above"),
    [
        ("maps", "recalibrators"),
        ("statistics", "pictures"),
        ("recalibrators", "report"),
    ],
)
def test_the_order_is_the_one_that_the_conventions_ask_for(below, above):
    order = list(LAYERS)
    assert order.index(below) < order.index(above)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from .b import x", {"a.b"}),
        ("from . import b", {"a.b"}),
        ("from ..c import x", {"c"}),
        ("def f():\n    from ..c import x", {"c"}),
        ("import sigmascale.c", {"c"}),
        ("from sigmascale.a.b import x", {"a.b"}),
        ("import sigmascale", {""}),
        ("import numpy\nfrom scipy import stats", set()),
    ],
)
def test_imports_are_found_in_every_form(source, expected, tmp_path):
    path = tmp_path / "me.py"
    path.write_text(source, "utf-8")
    assert imports_of("a.me", path, {"a", "a.b", "a.me", "c"}) == expected


def files_of_the_recipe():
    """Return the files that adding a recalibrator changes, from the page's recipe."""
    _, recipe = PAGE.read_text("utf-8").split("<!-- recipe:", 1)
    recipe = recipe.split("\n## ", 1)[0]
    return re.findall(r"\*\*`([\w./]+)`\*\*", recipe)


SCALERS = {each.__name__: each for each in scalers().values()}


def test_the_recipe_names_files():
    assert len(files_of_the_recipe()) == 7


@pytest.mark.parametrize("file", files_of_the_recipe())
@pytest.mark.parametrize("name", SCALERS)
def test_every_recalibrator_is_in_every_file_of_the_recipe(name, file):
    module = SCALERS[name].__module__.split(".")[-1]
    assert name in (ROOT / file.replace("new", module)).read_text("utf-8")


def mentions(path, names):
    """Return where code (no text, no comment) asks whether something is of a class."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            *("isinstance", "issubclass"),
        ):
            asked = list(ast.walk(node.args[1]))
        else:
            continue
        yield from (
            f"{path.name}:{node.lineno if hasattr(node, 'lineno') else ''} {each.id}"
            for each in asked
            if isinstance(each, ast.Name) and each.id in names
        )


@pytest.mark.parametrize("module", MODULES)
def test_no_other_place_switches_on_the_class_of_a_recalibrator(module):
    names = set(SCALERS)
    allowed = {"scaling.selected"}  # which needs some rows for each bin of a candidate
    if module not in allowed:
        assert not list(mentions(MODULES[module], names))


def test_no_module_is_imported_by_a_string_but_within_its_own_room():
    for module, path in MODULES.items():
        if "import_module(" in path.read_text("utf-8"):
            assert module in {"scaling.registry", "datasets", "report.page"}, module


def test_the_root_shows_the_rooms():
    root = [path.stem for path in PACKAGE.glob("*.py")]
    assert len(root) <= 12, root
