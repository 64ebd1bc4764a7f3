"""The reference has every public name, with types and an explanation of each."""

import importlib
import inspect
import re
import shlex
from collections import Counter
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import sigmascale as ss

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    if not {"_build", "generated"} & set(path.parts)
)
SITE = [
    page for page in PAGES if DOCS in page.parents and page.name != "architecture.md"
]
NO_EXAMPLE = {
    "sigmascale.plots.svg",
}


def documented_names():
    """Return the full names in the lists of the reference."""
    names = []
    text = (DOCS / "api" / "index.md").read_text("utf-8")
    for block in re.findall(r"```{eval-rst}\n(.*?)```", text, re.S):
        names += re.findall(r"^\.\. py:data:: (\S+)$", block, re.MULTILINE)
        module = re.search(r"currentmodule:: (\S+)", block)
        for name in re.findall(r"^   (\w[\w.]*)$", block, re.MULTILINE):
            names.append(f"{module[1]}.{name}")
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


def callables():
    found = {name: resolve(name) for name in documented_names()}
    return {
        name: each
        for name, each in found.items()
        if callable(each)
        and not (inspect.isclass(each) and issubclass(each, Exception))
    }


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


def test_every_public_name_is_in_the_reference_and_only_once():
    count = Counter(documented_names())
    public = set()
    for name in ss.__all__:
        each = getattr(ss, name)
        if not isinstance(each, ModuleType):
            public.add(f"sigmascale.{name}")
        elif hasattr(each, "__all__"):
            public |= {
                f"sigmascale.{name}.{x}"
                for x in each.__all__
                if callable(getattr(each, x))
            }
    assert not public - set(count), "add them to docs/api/index.md"
    assert not [name for name, times in count.items() if times > 1]
    assert len(ss.__all__) <= 40


def test_what_the_reference_names_exists_and_explains_itself():
    for name in documented_names():
        found = resolve(name)
        assert isinstance(found, str) or inspect.getdoc(found), name


def test_every_parameter_and_result_has_a_type():
    for name, each in callables().items():
        functions = [each]
        if inspect.isclass(each):
            functions = [
                function
                for key, function in inspect.getmembers(each, inspect.isfunction)
                if function.__module__.startswith("sigmascale")
                and (not key.startswith("_") or key == "__init__")
            ]
        for function in functions:
            signature = inspect.signature(function)
            assert signature.return_annotation is not inspect.Signature.empty, name
            known = parameters(function).items()
            assert not [n for n, p in known if p.annotation is p.empty], name


def test_a_docstring_explains_exactly_the_parameters_that_there_are():
    for name, each in callables().items():
        if not inspect.isclass(each) or hasattr(each, "get_params"):
            assert section(each.__doc__, "Parameters") == list(parameters(each)), name


def test_a_docstring_explains_every_field_of_a_result():
    for name, each in callables().items():
        if inspect.isclass(each) and is_dataclass(each):
            own = {field.name for field in fields(each) if field.name[0] != "_"}
            assert own <= set(section(each.__doc__, "Attributes")), name


def test_everything_that_one_calls_shows_an_example():
    for name, each in callables().items():
        if not inspect.isclass(each) or hasattr(each, "get_params"):
            assert (">>> " in each.__doc__) == (name not in NO_EXAMPLE), name


def test_every_public_method_and_property_says_what_it_does():
    for name, each in callables().items():
        for key, value in vars(each).items() if inspect.isclass(each) else ():
            told = inspect.isfunction(value) or isinstance(value, property)
            assert key[0] == "_" or not told or inspect.getdoc(value), (name, key)


def test_links_between_pages_lead_to_files_that_exist():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"\w+://|#|mailto:", target):
                assert (page.parent / target.split("#")[0]).exists(), (page, target)


def test_every_page_is_in_the_contents_once():
    entries = [
        (page.parent / f"{entry}.md").resolve()
        for page in SITE
        for tree in re.findall(r"{toctree}\n(.*?)```", page.read_text("utf-8"), re.S)
        for entry in tree.split("\n\n", 1)[1].split()
    ]
    pages = {page.resolve() for page in SITE}
    assert sorted(entries) == sorted(pages - {(DOCS / "index.md").resolve()})


def test_every_page_ends_with_the_next_of_its_path():
    for page in SITE:
        if page.name != "index.md":
            *_, last = page.read_text("utf-8").strip().splitlines()
            assert re.fullmatch(r"\*Next: .*\]\(\S+\.md\).*\*", last), page


def test_the_pages_are_short():
    words = {page: len(page.read_text("utf-8").split()) for page in SITE}
    assert len(SITE) <= 25
    assert sum(words.values()) <= 21_300
    assert words[DOCS / "result.md"] <= 900


def test_words_of_the_field_are_found_in_the_glossary():
    text = (DOCS / "glossary.md").read_text("utf-8").lower()
    for word in (
        *("reliability diagram", "overconfident", "heteroscedastic", "pit"),
        *("sharpness", "conditional calibration"),
    ):
        assert word in text, word


def test_every_command_of_the_pages_can_be_typed():
    from sigmascale.cli.options import parse

    for page in PAGES:
        text = page.read_text("utf-8")
        for line in re.findall(r"^(?:\$ |!)sigmascale (.*)$", text, re.MULTILINE):
            words = shlex.split(line, comments=True)
            if "--help" not in words:
                assert parse(words).argv()[0] == words[0], line
