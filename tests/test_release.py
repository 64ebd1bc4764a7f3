"""Files that a release needs agree with each other and with the package."""

import re
import tomllib
from pathlib import Path

import yaml

import sigmascale as ss

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
PAPER = (ROOT / "joss" / "paper.md").read_text("utf-8")
BIBLIOGRAPHY = (ROOT / "joss" / "paper.bib").read_text("utf-8")
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def bounds(requirements):
    """Return lower bounds by the name that conda knows."""
    found = dict(re.split(r" *>=", each) for each in requirements)
    return {CONDA_NAMES.get(name, name): bound for name, bound in found.items()}


def test_the_version_is_the_same_everywhere():
    assert CITATION["version"] == ss.__version__
    assert RECIPE["context"]["version"] == ss.__version__


def test_the_conda_recipe_has_the_bounds_of_the_package():
    python, *run = RECIPE["requirements"]["run"]
    assert bounds(run) == bounds(PROJECT["dependencies"])
    constraints = bounds(RECIPE["requirements"]["run_constraints"])
    assert constraints == bounds(PROJECT["optional-dependencies"]["cli"])
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={RECIPE['context']['python_min']}"
    ((name, starter),) = PROJECT["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {starter}"]


def test_the_licence_is_the_same_everywhere():
    assert CITATION["license"] == PROJECT["license"] == RECIPE["about"]["license"]


def test_the_paper_cites_what_its_bibliography_has_and_no_more():
    _, _, body = PAPER.split("---\n", 2)
    cited = set(re.findall(r"@(\w+)", body))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY, re.MULTILINE))
    entries = re.split(r"^@", BIBLIOGRAPHY, flags=re.MULTILINE)[1:]
    assert all(re.search(r"\b(doi|url|isbn) = ", entry) for entry in entries)


def test_the_paper_has_the_parts_and_the_length_that_the_journal_asks_for():
    _, head, body = PAPER.split("---\n", 2)
    told = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date"} <= set(told)
    assert (ROOT / "joss" / told["bibliography"]).exists()
    sections = re.findall(r"^# (.+)$", body, re.MULTILINE)
    assert {"Summary", "Statement of need", "State of the field"} <= set(sections)
    assert sections[-1] == "References"
    assert 750 <= len(body.split()) <= 1750


def test_what_a_public_project_has_is_there():
    for name in ("CODE_OF_CONDUCT.md", "SECURITY.md", "LICENSE"):
        assert len((ROOT / name).read_text("utf-8")) > 500


def test_no_page_says_that_the_package_can_be_had_from_pypi():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "joss/paper.md"]
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.search(r"(pip|uv) install sigmascale|pypi\.org/.*sigma", text)
