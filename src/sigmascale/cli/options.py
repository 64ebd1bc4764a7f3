"""Commands and their options, each said once.

A command is a dataclass. Its fields are the options of the command line
(:func:`parse`), what the app sends as JSON (`from_json`), the keyword arguments in
Python, and the line that the app shows to be typed (`words`).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from importlib import import_module
from textwrap import fill
from types import NoneType
from typing import (
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

from .._support.files import parse_json
from .._support.text import WIDTH
from ..exceptions import InvalidInputError

PASSED, FAILED, BAD_INPUT, DEFECT, CANNOT_TELL = 0, 1, 2, 3, 4
COMMANDS = [
    *("check", "fit", "apply", "compare", "watch", "verify"),
    *("show", "export", "app", "demo"),
]
ABOUT = "Honest error bars for regression: check, recalibrate and compare them."


def command(name: str) -> type[Command]:
    """Return the class of a command; its module is loaded now."""
    modules = {"export": "show", "app": "show"}
    module = import_module(f".{modules.get(name, name)}", __package__)
    found: type[Command] = getattr(module, name.capitalize())
    return found


def refuse(words: str, code: str = "", **about: Any) -> NoReturn:
    """Refuse what a user can mend."""
    raise InvalidInputError(words, code, **about)


def option(
    words: str,
    metavar: str = "",
    default: Any = None,
    *,
    name: str = "",
    short: str = "",
    common: bool = False,
) -> Any:
    """Return a field that is an option; `name` and `short` are what is typed.

    The first page of help shows options that are `common`.
    """
    about = {"help": words, "metavar": metavar, "name": name}
    return field(default=default, metadata=about | {"short": short, "common": common})


def argument(words: str, metavar: str, default: Any = MISSING) -> Any:
    """Return a field that is known by its place."""
    return field(default=default, metadata={"help": words, "metavar": metavar})


def tables() -> Any:
    """Return the field of the tables that a command reads."""
    return argument("a table, in one file or more; - is stdin", "FILE")


def saved() -> Any:
    """Return the field of a recalibrator that was saved."""
    return argument("file made by `sigmascale fit`", "JSON")


@dataclass(frozen=True)
class CommandResult:
    """What a command found: for machines, for people, for pipelines and for the app."""

    told: dict[str, Any]
    words: str = ""
    code: int = PASSED
    before: Any = None  # a Validation
    after: Any = None  # another, of what a recalibrator made of the same rows
    recalibrator: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines, as `--json` prints it: JSON has no infinity."""
        told: dict[str, Any] = finite(self.told)
        return told


def finite(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return finite(value.tolist()) if hasattr(value, "tolist") else value


def wrapped(*paragraphs: str) -> str:
    """Return paragraphs that fit a terminal; a number stays with its unit: 95 %.

    >>> print(wrapped("These intervals hold"))
    These intervals hold
    """
    text = "\n".join(filter(None, paragraphs))
    tied = re.sub(r"(?<=\d) (?=[%u±])", "\xa0", text).splitlines()
    return "\n".join(fill(words, WIDTH - 1) for words in tied).replace("\xa0", " ")


# -- groups of options -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Command:
    """Printing"""  # noqa: D400 - the title of this group of options

    examples: ClassVar[tuple[str, ...]] = ()

    json: bool = option("print JSON, for machines", default=False, common=True)
    quiet: bool = option("print no words", default=False, short="-q", common=True)

    def run(self) -> CommandResult:
        """Do it."""
        raise NotImplementedError

    @classmethod
    def verb(cls) -> str:
        """Return what is typed."""
        return cls.__name__.lower()

    def words(self) -> list[str]:
        """Return what to type for this, after the name of the program.

        >>> command("check")(files=("a.csv",), features=("mass",)).words()
        ['check', 'a.csv', '--feature=mass']
        """
        places, named = list[str](), list[str]()
        for each in fields(self):
            value = getattr(self, each.name)
            if "name" not in each.metadata:
                places += [value] if isinstance(value, str) else value or ()
            elif value != each.default:
                named += [*_typed(each, value)]
        if any(x.startswith("-") and x != "-" for x in places):
            return [self.verb(), *named, "--", *places]
        return [self.verb(), *places, *named]

    def to_json(self) -> dict[str, Any]:
        """Return the command, and the fields that differ from what they are by default.

        >>> command("show")(recalibrator="r.json").to_json()
        {'command': 'show', 'recalibrator': 'r.json'}
        """
        values = {x.name: (getattr(self, x.name), x.default) for x in fields(self)}
        told = {
            k: list(v) if isinstance(v, tuple) else v
            for k, (v, default) in values.items()
            if v != default
        }
        return {"command": self.verb(), **told}

    @classmethod
    def from_json(cls, found: dict[str, Any] | str | bytes) -> Self:
        """Return the command that `to_json` gave; refuse anything else.

        >>> Command.from_json('{"command": "show", "recalibrator": "r.json"}').words()
        ['show', 'r.json']
        """
        if isinstance(found, str | bytes):
            found = parse_json(found)
        rest = dict(found) if isinstance(found, dict) else {}
        name = rest.pop("command", None)
        if name not in COMMANDS:
            refuse(
                f"`command` must be one of {', '.join(COMMANDS)}; found {name!r:.80}."
            )
        made = command(str(name))
        hints, values = get_type_hints(made), {}
        for each in fields(made):
            if each.name in rest:
                value = rest.pop(each.name)
                values[each.name] = _checked(each, hints[each.name], value)
            elif each.default is MISSING:
                refuse(f"{name}: `{each.name}` is missing.")
        if rest:
            refuse(f"{name} has no `{next(iter(rest))!s:.80}`.")
        return made(**values)  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Uncertain(Command):
    """Columns: what is not named is guessed from names"""  # noqa: D400

    uncertainty: str | None = option("standard deviations", "COLUMN", common=True)
    prediction: str | None = option("predictions", "COLUMN", common=True)
    variance: str | None = option("squares, instead of uncertainties", "COLUMN")
    members: tuple[str, ...] = option(
        "or a member of an ensemble; 'm_*' is many", "COLUMN", ()
    )
    quantile_columns: tuple[str, ...] = option(
        "or a quantile, with its level: q05=0.05", "COLUMN=LEVEL", ()
    )
    interval: tuple[str, ...] = option(
        "or a limit of intervals; then the other", "COLUMN", ()
    )
    interval_coverage: float | None = option("share that these claim to hold", "SHARE")
    min_std: float | None = option("raise what is smaller, such as 0", "NUMBER")


@dataclass(frozen=True, kw_only=True)
class Columns(Uncertain):
    """Columns: what is not named is guessed from names"""  # noqa: D400

    reference: str | None = option("true values", "COLUMN", common=True)
    error: str | None = option("true values minus predictions, instead", "COLUMN")
    features: tuple[str, ...] = option(
        "a feature; repeat it for more", "COLUMN", (), name="feature", common=True
    )
    all_features: bool = option(
        "all other columns of numbers, or of few labels", default=False, common=True
    )
    labels: tuple[str, ...] = option(
        "a feature of labels, such as codes", "COLUMN", (), name="label"
    )
    exclude: tuple[str, ...] = option("not this one of all features", "COLUMN", ())
    groups: str | None = option(
        "rows with equal values belong together", "COLUMN", common=True
    )
    weight: str | None = option("weights of the rows; 0 leaves a row out", "COLUMN")
    time: str | None = option("when rows came", "COLUMN")


@dataclass(frozen=True, kw_only=True)
class Reading(Command):
    """Reading"""  # noqa: D400

    where: str | None = option(
        "only rows that meet a condition in SQL", "CONDITION", common=True
    )
    drop_missing: bool = option(
        "leave out rows with missing values", default=False, common=True
    )
    separator: str | None = option("between the columns of text files", "CHARACTER")
    decimal: Literal[".", ","] = option("decimal mark of text files", "MARK", ".")
    most: int = option("rows in memory; of more, a sample", "N", 1_000_000)

    def __post_init__(self) -> None:
        """Refuse what cannot stand between columns, no rows, and no seed."""
        mark = self.separator
        if mark is not None and (len(mark) != 1 or mark > "~" or mark in '"\r\n'):
            refuse(f"--separator must be one character; found {mark!r:.80}.")
        if self.most < 1:
            refuse(f"--most must be positive; found {self.most}.")
        if (seed := getattr(self, "seed", 0)) < 0:
            refuse(f"--seed must not be negative; found {seed}.")


ORDER = {Uncertain: 1, Columns: 2, Reading: 3, Command: 4}  # in pages of help


# -- JSON ------------------------------------------------------------------------------


def _checked(each: Field[Any], hint: Any, value: Any) -> Any:
    """Return a value of JSON as a field of this type has it."""
    kind, many, optional, choices = _shape(hint)
    if value is None and optional:
        return None
    values = value if isinstance(value, list) else [value]
    allowed = (int, float) if kind is float else (kind,)
    right = isinstance(value, list) is many
    right &= all(type(x) in allowed and x in (choices or [x]) for x in values)
    if not right:
        what = "a list of " if many else "of "
        what += f"{', '.join(choices)}" if choices else f"type {kind.__name__}"
        refuse(f"`{each.name}` must be {what}; found {json.dumps(value):.80}.")
    values = [kind(x) for x in values]
    return tuple(values) if many else values[0]


def _shape(hint: Any) -> tuple[type, bool, bool, tuple[str, ...]]:
    """Return a field's plain type, whether it is several or none, and its choices."""
    many, optional = get_origin(hint) is tuple, NoneType in get_args(hint)
    hint = get_args(hint)[0] if many or optional else hint
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    return (str if choices else hint), many, optional, choices


# -- the command line ------------------------------------------------------------------


def _flag(each: Field[Any]) -> str:
    return f"--{each.metadata['name'] or each.name.replace('_', '-')}"


def _typed(each: Field[Any], value: Any) -> Iterator[str]:
    """Yield how an option is typed; levels stand in one list."""
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        value = ",".join(map(repr, value))
    for one in value if isinstance(value, tuple) else [value]:
        yield _flag(each) if one is True else f"{_flag(each)}={one}"


def parse(words: list[str] | None = None) -> Command:
    """Return the command that was typed; asked for help, print it and exit.

    >>> parse(["fit", "a.csv", "-o", "r.json", "--bias", "auto"]).bias
    'auto'
    """
    words = sys.argv[1:] if words is None else words
    name = words[0] if words else "--help"
    if name == "--version":
        from .._support.version import __version__

        print(f"sigmascale {__version__}")
        raise SystemExit(PASSED)
    if name in ("-h", "--help"):
        print(_overview())
        raise SystemExit(PASSED)
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = (
            f"Did you mean {near[0]!r}?" if near else f"It is {' or '.join(COMMANDS)}."
        )
        refuse(f"there is no command {name!r:.80}. {hint}")
    cls = command(name)
    end = words.index("--") if "--" in words else len(words)
    parser = _Parser(cls)
    given, rest = parser.parse_known_args(words[1:end])
    if unknown := [x for x in rest if x.startswith("-") and x != "-"]:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    values, places = vars(given), [*rest, *words[end + 1 :]]
    hints = get_type_hints(cls)
    for each in fields(cls):
        many = get_origin(hints[each.name]) is tuple
        if "name" not in each.metadata:
            if not places and each.default is MISSING:
                parser.error(f"{each.metadata['metavar']} is missing")
            values[each.name] = places if many else places.pop(0) if places else None
            places = [] if many else places
        if many:
            values[each.name] = tuple(values[each.name] or ())
    if places:
        parser.error(f"unrecognized arguments: {' '.join(places)}")
    return cls(**values)


def _overview() -> str:
    """Return the page of all commands."""
    lines = [f"Usage: sigmascale COMMAND ...\n\n{ABOUT}\n\nCommands:"]
    for name in COMMANDS:
        lines.append(f"  {name:<10}{str(command(name).__doc__).splitlines()[0]}")
    lines.append("\n`sigmascale COMMAND --help` tells more, with examples; they use")
    lines.append("the files that `sigmascale demo` writes.")
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    """The options of a command; wrong ones are errors in the input."""

    def __init__(self, cls: type[Command], page: str = "") -> None:
        self.cls, self.page, everything = cls, page, page == "all"
        places = [x for x in fields(cls) if "name" not in x.metadata]
        shown = " ".join(_shown(x) for x in places)
        parts = ["Examples:", *(f"  {x}" for x in cls.examples)]
        if len(cls.examples) == 1:
            parts = [f"Example: {cls.examples[0]}"]
        super().__init__(
            f"sigmascale {cls.verb()}",
            usage=f"sigmascale {cls.verb()} {shown} [OPTIONS]",
            description=str(cls.__doc__).replace("\n    ", "\n").replace("\n\n", "\n"),
            epilog="\n".join(parts),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, max_help_position=28, width=WIDTH
            ),
            allow_abbrev=False,
            add_help=False,
        )
        hints, own = get_type_hints(cls), self.add_argument_group("Options")
        groups = {"Options": own}
        for each in sorted(fields(cls), key=lambda x: ORDER.get(_owner(cls, x), 0)):
            owner = _owner(cls, each)
            title = str(owner.__doc__) if everything and owner in ORDER else "Options"
            if title not in groups:
                groups[title] = self.add_argument_group(title)
            self._add(groups[title], each, hints[each.name])
        words = "this page; --help all shows all options"
        own.add_argument(
            *("-h", "--help"),
            nargs="?",
            metavar="all",
            action=_Help,
            default=argparse.SUPPRESS,
            help=words,
        )

    def _add(self, group: Any, each: Field[Any], hint: Any) -> None:
        about = each.metadata
        how: dict[str, Any] = {"help": about["help"], "metavar": about["metavar"]}
        kind, many, _, choices = _shape(hint)
        required = each.default is MISSING
        how |= {"choices": choices} if choices else {}
        if "name" not in about:  # `parse` finds them by their place
            if self.page:
                group.add_argument(each.name, **how)
            return
        if kind is bool:
            del how["metavar"]
            how["action"] = "store_true"
        elif many and kind is float:
            how["type"] = _levels
        else:
            how |= {"type": kind, "required": required}
            how |= {"action": "append"} if many else {"default": each.default}
            if required:
                how["help"] += " [required]"
            elif each.default not in (None, ()):
                how["help"] += f" [{each.default}]"
        if not (about["common"] or required or self.page == "all"):
            how["help"] = argparse.SUPPRESS
        flags = [x for x in (about["short"], _flag(each)) if x]
        group.add_argument(*flags, dest=each.name, **how)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and which option may be meant."""
        hint = f"See sigmascale {self.cls.verb()} --help."
        if message.startswith("unrecognized arguments:"):
            known = [x for each in self._actions for x in each.option_strings]
            word = message.split(": ", 1)[1].split()[0].split("=")[0]
            near = get_close_matches(word, known, 1) if word.startswith("-") else []
            hint = f"Did you mean {near[0]}? {hint}" if near else hint
        refuse(f"sigmascale {self.cls.verb()}: {message}. {hint}")


class _Help(argparse.Action):
    """Print a page of help, or of all options, and exit."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: Any = None
    ) -> None:
        page = "all" if values == "all" else "first"
        print(_Parser(parser.cls, page).format_help(), end="")
        raise SystemExit(PASSED)


def _owner(cls: type[Command], each: Field[Any]) -> type[Any]:
    """Return the class that declares a field."""
    owners = [x for x in cls.__mro__ if each.name in vars(x).get("__annotations__", ())]
    return owners[0]


def _shown(each: Field[Any]) -> str:
    many = "tuple" in str(each.type)
    shown = f"{each.metadata['metavar']}{'...' if many else ''}"
    return shown if each.default is MISSING else f"[{shown}]"


def _levels(text: str) -> tuple[float, ...]:
    """Return levels of quantiles."""
    return tuple(float(x) for x in text.split(","))


def shell(words: Iterable[str]) -> str:
    """Return a line to copy: words of a command, quoted for a shell."""
    from shlex import join

    return join(["sigmascale", *words])
