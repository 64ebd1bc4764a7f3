"""Imports run one way, as *Architecture* shows; the package loads what it needs."""

import ast
import inspect
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

ROOT = Path(__file__).parents[1]
PACKAGE = Path(ss.__file__).parent
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


class WithoutTypes(ast.NodeTransformer):
    """Takes out what is imported for types alone, which nothing is at run time."""

    def visit_If(self, node):
        """Leave out ``if TYPE_CHECKING:``."""
        is_for_types = ast.unparse(node.test) == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)


def imports_of(name, path, known, *, at_once=False):
    """Return the modules of the package that a module imports, wherever it does.

    Those that are imported `at_once` are not within a function.
    """
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    tree = ast.parse(path.read_text("utf-8"))
    if not at_once:
        tree = WithoutTypes().visit(tree)
    nodes = tree.body if at_once else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
            targets = [each[1:] for each in targets if each[0] == "sigmascale"]
        elif isinstance(node, ast.ImportFrom):
            inside = node.module.split(".") if node.module else []
            if node.level:
                inside = package[: len(package) - (node.level - 1)] + inside
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
    return found - {name}


MODULES = modules()
LAYERS = layers_of_the_page()


def top(module):
    return module.split(".")[0]


def test_every_module_stands_in_one_layer_and_every_layer_names_modules():
    named = [module for names in LAYERS.values() for module in names]
    assert sorted(named) == sorted({top(name) for name in MODULES})


def test_a_module_imports_only_from_its_own_layer_and_those_above():
    level = {name: i for i, names in enumerate(LAYERS.values()) for name in names}
    wrong = []
    for module, path in MODULES.items():
        found = imports_of(module, path, MODULES)
        # a bare `import sigmascale` reaches every module
        wrong += [module] if "" in found else []
        wrong += [
            f"{module} imports {x}"
            for x in found
            if x and level[top(x)] > level[top(module)]
        ]
    assert not wrong


def test_no_modules_load_each_other_in_a_circle():
    graph = {
        # a module of a folder loads its __init__ first; what that imports is no circle
        name: {
            other
            for other in imports_of(name, path, MODULES, at_once=True)
            if not name.startswith(other + ".")
        }
        for name, path in MODULES.items()
    }
    assert list(TopologicalSorter(graph).static_order())


def test_every_step_of_the_walk_names_a_function_that_there_is():
    page = PAGE.read_text("utf-8")
    steps = re.findall(r"`([\w/]+\.py)` `([\w.]+)`", page)
    assert len(steps) > 25
    for path, name in steps:
        inside = ast.parse((PACKAGE / path).read_text("utf-8"))
        for part in name.split("."):
            defined = {x.name: x for x in inside.body if hasattr(x, "name")}
            assert part in defined, f"{path} has no {name}"
            inside = defined[part]


def test_imports_are_found_in_every_form(tmp_path):
    path = tmp_path / "me.py"
    for source, expected in {
        "from .b import x": {"a.b"},
        "from . import b": {"a.b"},
        "from ..c import x": {"c"},
        "def f():\n    from ..c import x": {"c"},
        "import sigmascale.c": {"c"},
        "from sigmascale.a.b import x": {"a.b"},
        "import sigmascale": {""},
        "if TYPE_CHECKING:\n    from ..c import x\nelse:\n    y = 1": set(),
        "if here:\n    from ..c import x": {"c"},
        "import numpy\nfrom scipy import stats": set(),
    }.items():
        path.write_text(source, "utf-8")
        assert imports_of("a.me", path, {"a", "a.b", "a.me", "c"}) == expected


def loaded_by(code):
    """Return the packages that are loaded after some code, in a process of its own."""
    code += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_no_optional_or_slow_package():
    slow = {"scipy", "sklearn", "narwhals", "array_api_compat"}
    optional = {"pandas", "polars", "matplotlib", "jinja2", "torch", "onnx", "ase"}
    assert not loaded_by("import sigmascale") & (slow | optional)


def test_all_public_names_load_required_packages_alone():
    optional = {
        *("pandas", "polars", "pyarrow", "matplotlib", "jinja2", "starlette"),
        *("torch", "jax", "onnx", "onnxruntime", "ndonnx", "duckdb", "dask", "pyspark"),
        *("ase", "pooch", "fastexcel", "xlsxwriter", "openpyxl"),
    }
    code = "import sigmascale as ss\nfor name in ss.__all__: getattr(ss, name)"
    loaded = loaded_by(code)
    assert "sklearn" in loaded
    # scikit-learn loads some by itself where they are installed
    theirs = loaded_by("import narwhals, sklearn.ensemble, sklearn.isotonic")
    assert not (loaded - theirs) & optional


def test_private_names_of_others_are_not_used():
    wrong = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.level or 0) > 0:
                names = [alias.name for alias in node.names]
                wrong += [f"{module}: {x}" for x in names if re.match(r"_[^_]", x)]
    assert not [each for each in wrong if not each.endswith(": _support")]


def test_every_door_tells_how_predictions_are_made():
    doors = [ss.validate, ss.Recalibrator().fit, ss.Monitor().update]
    scores = vars(ss.scores)
    doors += [scores[x] for x in ss.scores.__all__ if inspect.isfunction(scores[x])]
    assert len(doors) > 15
    for door in doors:
        needed = [
            each
            for each in inspect.signature(door).parameters.values()
            if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        with pytest.raises(InvalidInputError, match=r"ss\.Predictions\(") as found:
            door(*([1.0, 2.0] for _ in needed))
        assert found.value.code == "no-predictions"
