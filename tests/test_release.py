"""Files that a release needs agree with each other and with the package."""

import os
import re
import shutil
import subprocess
import tomllib
from email import message_from_string
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import sigmascale as ss

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
ADDRESS = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
EXAMPLE = "https://example.org/sigmascale"
RECIPE = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
PAPER = (ROOT / "joss" / "paper.md").read_text("utf-8")
BIBLIOGRAPHY = (ROOT / "joss" / "paper.bib").read_text("utf-8")
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def bounds(requirements):
    """Return lower bounds by the name that conda knows."""
    found = dict(re.split(r" *>=", each) for each in requirements)
    return {CONDA_NAMES.get(name, name): bound for name, bound in found.items()}


@pytest.fixture
def checkout(tmp_path):
    """Return a copy of what a release is made of, and a function that edits it."""
    folder = tmp_path / "sigmascale"
    hidden = shutil.ignore_patterns(".*", "__pycache__", "dist", "*-output", "_build")
    shutil.copytree(ROOT, folder, ignore=hidden)

    def edit(name, pattern, replacement):
        path = folder / name
        text, count = re.subn(pattern, replacement, path.read_text("utf-8"), flags=re.M)
        path.write_text(text, "utf-8")
        return count

    return folder, edit


def set_address(edit, address):
    line = r'^repository = "[^"]*"'
    assert edit("pyproject.toml", line, f'repository = "{address}"') == 1


def test_a_release_waits_for_its_address_and_whatever_else_is_to_be_filled_in(checkout):
    folder, edit = checkout
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")

    def filled_in():
        plain = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        return subprocess.run(
            [make, "filled-in"], cwd=folder, capture_output=True, text=True, env=plain
        )

    forms = re.search("^FORMS := (.*)", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for name in forms[1].split():
        edit(name, r" *(# FILL-IN.*|<!-- FILL-IN.*?-->)", "")
    set_address(edit, "")
    unset = filled_in()
    assert unset.returncode
    assert "address" in unset.stdout
    assert "pyproject.toml" in unset.stdout

    set_address(edit, EXAMPLE)
    assert filled_in().returncode == 0, filled_in().stdout

    edit("CITATION.cff", "^version", "# FILL-IN: a name\nversion")
    left = filled_in()
    assert left.returncode
    assert re.search(r"^CITATION.cff:\d+:# FILL-IN: a name$", left.stdout, re.M)


def metadata_of(folder, monkeypatch):
    """Return what a wheel of a checkout says of itself."""
    build = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(folder)
    made = build.prepare_metadata_for_build_wheel(str(folder))
    return message_from_string((folder / made / "METADATA").read_text("utf-8"))


def test_the_readme_of_a_package_index_has_absolute_links_and_needs_no_checkout(
    checkout, monkeypatch
):
    folder, edit = checkout
    set_address(edit, EXAMPLE)
    told = metadata_of(folder, monkeypatch)
    readme = told.get_payload()
    at = f"{EXAMPLE}/blob/v{ss.__version__}"
    assert f"]({at}/docs/start.md)" in readme
    assert f"]({EXAMPLE}/raw/v{ss.__version__}/docs/images/hero.svg)" in readme
    assert f"]({at}/https" not in readme
    targets = re.findall(r"\]\(([^)]*)\)", readme)
    assert all(re.match("https?://", target) for target in targets)
    assert len(targets) > 20
    assert '$ pip install "sigmascale[cli]"' in readme
    assert '".[cli]"' not in readme
    urls = dict(each.split(", ") for each in told.get_all("Project-URL"))
    assert urls["Repository"] == EXAMPLE
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    for name in ("Documentation", "Changelog"):
        assert (ROOT / urls[name].removeprefix(at + "/")).exists()


def test_without_an_address_a_wheel_has_the_readme_of_the_checkout(
    checkout, monkeypatch
):
    folder, edit = checkout
    set_address(edit, "")
    told = metadata_of(folder, monkeypatch)
    assert told.get_all("Project-URL") is None
    assert told.get_payload() == (ROOT / "README.md").read_text("utf-8")


def test_no_other_file_has_an_address_of_its_own():
    assert CITATION.get("repository-code", "") == ADDRESS, "write it in CITATION.cff"
    assert RECIPE["about"].get("repository", "") == ADDRESS, "write it in conda"
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    for page in pages:
        named = re.findall(r"https?://[\w./-]+/sigmascale\b", page.read_text("utf-8"))
        assert not named, page


def test_the_version_is_the_same_everywhere():
    assert CITATION["version"] == ss.__version__
    assert RECIPE["context"]["version"] == ss.__version__


def test_the_conda_recipe_has_the_bounds_of_the_package():
    python, *run = RECIPE["requirements"]["run"]
    cli = PROJECT["optional-dependencies"]["cli"]  # conda has no extras
    assert bounds(run) == bounds([*PROJECT["dependencies"], *cli])
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={RECIPE['context']['python_min']}"
    ((name, starter),) = PROJECT["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {starter}"]


def test_the_licence_is_the_same_everywhere():
    assert CITATION["license"] == PROJECT["license"] == RECIPE["about"]["license"]


def test_hooks_are_of_versions_that_the_development_tools_may_have():
    lint = [Requirement(each) for each in PYPROJECT["dependency-groups"]["lint"]]
    allowed = {each.name: each.specifier for each in lint}
    checked = set()
    for repository in HOOKS["repos"]:
        for name in set(re.findall(r"\b(?:ruff|mypy)\b", repository["repo"])):
            assert repository["rev"].removeprefix("v") in allowed[name]
            checked.add(name)
    assert checked == {"mypy", "ruff"}


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
