"""A command is a dataclass: what is typed, sent as JSON and called in Python agree."""

import inspect
import json
import shlex
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigmascale import Predictions
from sigmascale.cli.options import (
    COMMANDS,
    FILES,
    Command,
    command,
    names_of_files,
    parse,
    shell,
)
from sigmascale.exceptions import InvalidInputError
from sigmascale.predictions.roles import ARGUMENTS, Roles
from sigmascale.recalibration.scalings import SCALINGS

ODD = [
    *("u*", "m,1", "q=05", "-x", "--y", "a b", "", "'", '"', "é\n", "data[1].csv"),
    "--",
]
# as the value of an option, argparse of Python 3.11 takes "--" away
NAME = st.one_of(st.sampled_from(ODD[:-1]), st.text(max_size=6).filter("--".__ne__))
PATH = st.one_of(
    st.sampled_from([x for x in ODD if x]), st.text(min_size=1, max_size=6)
)
SHARES = st.floats(0.01, 0.99)
CHECKS = st.fixed_dictionaries(
    {"files": st.lists(PATH, min_size=1, max_size=3).map(tuple)},
    optional={
        "uncertainty": NAME,
        "features": st.lists(NAME, max_size=3).map(tuple),
        "members": st.lists(NAME, max_size=3).map(tuple),
        "all_features": st.booleans(),
        "recalibrator": NAME,
        "tolerance": SHARES,
        "tolerate": st.sampled_from(["FAIL", "inconclusive"]),
        "decimal": st.sampled_from([".", ","]),
        "separator": st.sampled_from([";", "\t", "-", " "]),
        "most": st.integers(1, 10**9),
        "where": NAME,
        "json": st.booleans(),
    },
)


@given(fields=CHECKS)
@example(fields={"files": ("-x", "--", "-"), "uncertainty": "--y", "features": ("-1",)})
def test_what_is_typed_for_a_check_gives_the_same_check(fields):
    typed = command("check")(**fields)
    assert parse(typed.argv()) == typed
    assert Command.from_json(json.dumps(typed.to_json())) == typed
    assert parse(shlex.split(shell(typed.argv()))[1:]) == typed


@given(
    recalibrator=PATH,
    files=st.lists(PATH, min_size=1, max_size=2).map(tuple),
    output=NAME,
    quantiles=st.lists(SHARES, max_size=3).map(tuple),
)
def test_what_is_typed_for_an_application_gives_the_same(recalibrator, files, **rest):
    typed = command("apply")(recalibrator=recalibrator, files=files, **rest)
    assert parse(typed.argv()) == typed
    assert Command.from_json(typed.to_json()) == typed


def test_every_command_has_fields_help_and_examples_that_can_be_typed(capsys):
    for name in COMMANDS:
        made = command(name)
        assert made.verb() == name
        for line in made.examples:
            typed = parse(shlex.split(line)[1:])
            assert type(typed) is made
            assert parse(typed.argv()) == typed
        for page in (["--help"], ["--help", "all"], ["-h"]):
            with pytest.raises(SystemExit, match="0"):
                parse([name, *page])
            text = capsys.readouterr().out
            assert max(map(len, text.splitlines())) <= 80
            assert "Example" in text


def test_options_and_files_may_come_in_any_order():
    typed = parse(["check", "a.csv", "--feature", "mass", "b.csv", "--json"])
    assert typed.files == ("a.csv", "b.csv")
    assert typed.features == ("mass",)
    assert typed.json


def test_the_first_page_of_check_fits_a_screen_and_the_other_has_all(capsys):
    with pytest.raises(SystemExit):
        parse(["check", "--help"])
    first = capsys.readouterr().out
    assert len(first.splitlines()) <= 24
    assert "--interval" not in first
    with pytest.raises(SystemExit):
        parse(["check", "--help", "all"])
    page = capsys.readouterr().out
    for each in fields(command("check")):
        typed = each.metadata.get("name") or each.name
        assert each.name == "files" or f"--{typed.replace('_', '-')}" in page


def test_all_commands_are_listed_and_the_version_is_told(capsys):
    for words in (["--help"], []):
        with pytest.raises(SystemExit):
            parse(words)
        page = capsys.readouterr().out
        assert all(f"\n  {name} " in page for name in COMMANDS)
        assert max(map(len, page.splitlines())) <= 80
    with pytest.raises(SystemExit):
        parse(["--version"])
    assert capsys.readouterr().out.startswith("sigmascale ")


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["chek"], "Did you mean 'check'"),
        (["check"], "FILE"),
        (["check", "a", "--recalibrater", "r"], "--recalibrater.*--recalibrator"),
        (["check", "a", "--recal", "r"], "--recal"),
        (["check", "a", "--tolerance", "x"], "--tolerance.*'x'"),
        (["check", "a", "--tolerate", "x"], "--tolerate.*inconclusive"),
        (["check", "a", "--most", "0"], "--most.*0"),
        (["check", "a", "--separator", "::"], "--separator.*'::'"),
        (["check", "a", "--feature"], "--feature.*argument"),
        (["fit", "a"], "--output"),
        (["apply", "r.json", "-o", "b"], "FILE"),
        (["apply", "r", "a", "-o", "b", "--quantiles", "0.1,x"], "--quantiles"),
    ],
)
def test_wrong_words_are_refused_with_what_they_may_have_been(words, match):
    with pytest.raises(InvalidInputError, match=match):
        parse(words)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[]", "command"),
        ('{"command": "delete"}', "'delete'"),
        ('{"command": "check"}', "files"),
        ('{"command": "check", "files": "a.csv"}', "files.*list"),
        ('{"command": "check", "files": [1]}', "files"),
        ('{"command": "check", "files": ["a"], "most": 1.5}', "most"),
        ('{"command": "check", "files": ["a"], "most": true}', "most"),
        ('{"command": "check", "files": ["a"], "json": 1}', "json"),
        ('{"command": "check", "files": ["a"], "decimal": "x"}', "decimal"),
        ('{"command": "check", "files": ["a"], "nonsense": 1}', "nonsense"),
        ('{"command": "check", "files": ["a"], "files": ["b"]}', "twice"),
        ('{"command": "check"', "JSON"),
    ],
)
def test_json_that_is_no_command_is_refused(text, match):
    with pytest.raises(InvalidInputError, match=match):
        Command.from_json(text)


def test_json_takes_whole_numbers_for_real_ones_and_null_for_nothing():
    sent = {"command": "check", "files": ["a"], "tolerance": 2, "report": None}
    found = Command.from_json(sent)
    assert found.tolerance == 2.0
    assert isinstance(found.tolerance, float)
    assert found.to_json() == {"command": "check", "files": ["a"], "tolerance": 2.0}


def test_every_option_that_names_a_file_is_one_that_no_page_may_set():
    no_files = {"COLUMN", "COLUMN=LEVEL", "SHARE", "NUMBER", "CONDITION", "CHARACTER"}
    no_files |= {"MARK", "N", "FACTOR", "RESULT", "SCOPE", "NAME", "HOW", "LOSS"}
    no_files |= {"KIND", "LEVELS", "ADDRESS", "SHELL", ""}
    for name in COMMANDS:
        for field in fields(command(name)):
            about = field.metadata["metavar"]
            assert (about in FILES) is not (about in no_files), (name, field.name)
    assert {"files", "output", "report", "card"} <= names_of_files()
    assert {"recalibrator", "state", "plot", "calibration"} <= names_of_files()
    assert not names_of_files() & {"features", "seed", "name", "separator"}


def test_the_page_of_all_options_of_a_fit_lists_the_scalings(capsys):
    with pytest.raises(SystemExit):
        parse(["fit", "--help", "all"])
    page = " ".join(capsys.readouterr().out.split())
    for name, scaling in SCALINGS.items():
        first = scaling.__doc__.splitlines()[0].rstrip(".")
        assert f" {name} {first[0].lower()}{first[1:]}" in page


def test_arguments_in_python_and_options_are_those_of_the_declared_roles():
    arguments = set(inspect.signature(Predictions.from_frame).parameters) - {"frame"}
    assert arguments == set(ARGUMENTS.values())
    for name in ("check", "fit", "compare", "watch", "verify"):
        assert {field.name for field in fields(Roles)} <= {
            field.name for field in fields(command(name))
        }
