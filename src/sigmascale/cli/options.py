"""Commands and their options, each said once.

A command is a dataclass. Its fields are the options of the command line
(:func:`parse`), what the app sends as JSON (`from_json`), the keyword arguments in
Python, and the line that the app shows to be typed (`argv`). Those of columns are
declared as their roles.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from os.path import realpath
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
from ..predictions.roles import Roles, UncertaintyRoles

PASSED, FAILED, BAD_INPUT, DEFECT, INCONCLUSIVE = 0, 1, 2, 3, 4
COMMANDS = [
    "check",
    "fit",
    "apply",
    "combine",
    "compare",
    "watch",
    "verify",
    "show",
    "export",
    "app",
    "demo",
    "completion",
]
STANDARD = "-"  # standard input or output
# What options that name files, or folders, call them.
FILES = {"FILE", "JSON", "HTML", "SVG", "ONNX", "PICTURE", "CARD", "FOLDER"}
EXIT_CODES = """\
Exit status: 0 done, or all checks pass; 1 a check fails; 4 inconclusive;
2 input that you can mend; 3 a defect of sigmascale, which please report."""
ABOUT = "Test and recalibrate the uncertainties of regression models."


def command(name: str) -> type[Command]:
    """Return the class of a command; its module is loaded now."""
    modules = {"export": "show", "app": "show"}
    module = import_module(f".{modules.get(name, name)}", __package__)
    cls: type[Command] = getattr(module, name.capitalize())
    return cls


def refuse(words: str, code: str = "", **about: Any) -> NoReturn:
    """Refuse what a user can correct."""
    raise InvalidInputError(words, code, **about)


def option(
    words: str,
    metavar: str = "",
    default: Any = None,
    *,
    name: str = "",
    short: str = "",
    common: bool = False,
    endings: tuple[str, ...] | None = None,
) -> Any:
    """Return a field that is an option; `name` and `short` are what is typed.

    The first page of help shows options that are `common`. What `metavar` calls a file,
    no page of the app may set; one that is written has certain `endings`, or any.
    """
    about = {
        "help": words,
        "metavar": metavar,
        "name": name,
        "short": short,
        "common": common,
        "endings": endings,
    }
    return dataclasses.field(default=default, metadata=about)


def argument(words: str, metavar: str, default: Any = MISSING) -> Any:
    """Return a field that is known by its place."""
    return dataclasses.field(
        default=default, metadata={"help": words, "metavar": metavar}
    )


def names_of_files() -> set[str]:
    """Return the fields of all commands that name what is read or written."""
    fields_of_all = [field for name in COMMANDS for field in fields(command(name))]
    return {field.name for field in fields_of_all if field.metadata["metavar"] in FILES}


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
    validation: Any = None
    recalibrator: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines, as `--json` prints it: JSON has no infinity."""
        told: dict[str, Any] = finite(self.told)
        return told


def finite(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return finite(value.tolist()) if hasattr(value, "tolist") else value


def wrapped(*paragraphs: str) -> str:
    """Return paragraphs that fit a terminal; a number stays with its unit: 95 %.

    >>> print(wrapped("These intervals cover"))
    These intervals cover
    """
    text = "\n".join(filter(None, paragraphs))
    tied = re.sub(r"(?<=\d) (?=[%u±])", "\xa0", text)
    lines = [fill(line, WIDTH - 1) for line in tied.splitlines()]
    return "\n".join(lines).replace("\xa0", " ")


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

    def check_outputs(self) -> None:
        """Refuse to write what is read, or under the ending of another format."""
        read: set[str] = set()
        written = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.metadata["metavar"] not in FILES or value is None:
                continue
            endings = field.metadata.get("endings")
            if endings is None:
                files = [value] if isinstance(value, str) else value
                read.update(realpath(file) for file in files if file != STANDARD)
            elif value != STANDARD:
                written.append((value, endings))
        for file, endings in written:
            if not file:
                refuse("the name of a file to write is empty.")
            if endings and not file.lower().endswith(endings):
                refuse(f"{file}: is written as {endings[0][1:].upper()}. Name it so.")
            if realpath(file) in read:
                refuse(f"{file}: is what is read. Choose another name or folder.")

    @classmethod
    def notes(cls) -> list[str]:
        """Return lines that the page of all options ends with."""
        return []

    @classmethod
    def verb(cls) -> str:
        """Return what is typed."""
        return cls.__name__.lower()

    @classmethod
    def summary(cls) -> str:
        """Return what it does, in a line."""
        return str(cls.__doc__).splitlines()[0]

    def argv(self) -> list[str]:
        """Return what to type for this, after the name of the program.

        >>> command("check")(files=("a.csv",), features=("mass",)).argv()
        ['check', 'a.csv', '--feature=mass']
        """
        arguments: list[str] = []
        options: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if "name" not in field.metadata:
                arguments += [value] if isinstance(value, str) else value or ()
            elif value != field.default:
                options += _typed(field, value)
        if any(_is_flag(word) for word in arguments):
            return [self.verb(), *options, "--", *arguments]
        return [self.verb(), *arguments, *options]

    def to_json(self) -> dict[str, Any]:
        """Return the command, and the fields that differ from what they are by default.

        >>> command("show")(recalibrator="r.json").to_json()
        {'command': 'show', 'recalibrator': 'r.json'}
        """
        said: dict[str, Any] = {"command": self.verb()}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                said[field.name] = list(value) if isinstance(value, tuple) else value
        return said

    @classmethod
    def from_json(cls, said: dict[str, Any] | str | bytes) -> Self:
        """Return the command that `to_json` gave; refuse anything else.

        >>> Command.from_json('{"command": "show", "recalibrator": "r.json"}').argv()
        ['show', 'r.json']
        """
        if isinstance(said, str | bytes):
            said = parse_json(said)
        unread = dict(said) if isinstance(said, dict) else {}
        name = unread.pop("command", None)
        if name not in COMMANDS:
            refuse(
                f"`command` must be one of {', '.join(COMMANDS)}; found {name!r:.80}."
            )

        # each value as the field of the command has it; what is left over is unknown
        of_command = command(str(name))
        hints = get_type_hints(of_command)
        values = {}
        for field in fields(of_command):
            if field.name in unread:
                value = unread.pop(field.name)
                values[field.name] = _checked(field, hints[field.name], value)
            elif field.default is MISSING:
                refuse(f"{name}: `{field.name}` is missing.")
        if unread:
            refuse(f"{name} has no `{next(iter(unread))!s:.80}`.")
        return of_command(**values)  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Reading(Command):
    """Reading"""  # noqa: D400

    where: str | None = option(
        'only rows that meet it, as "mass < 9"', "CONDITION", common=True
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


OF_READING = {field.name for field in (*fields(Roles), *fields(Reading))}
OF_READING -= {field.name for field in fields(Command)}  # how columns are read
ORDER = {UncertaintyRoles: 1, Roles: 2, Reading: 3, Command: 4}  # in pages of help


# -- JSON ------------------------------------------------------------------------------


def _checked(field: Field[Any], hint: Any, value: Any) -> Any:
    """Return a value as a field of this type has it; refuse others."""
    shape = Shape.of(hint)
    if value is None and shape.is_optional:
        return None
    values = value if isinstance(value, list) else [value]
    allowed = (int, float) if shape.kind is float else (shape.kind,)
    is_right = isinstance(value, list) is shape.is_many
    for item in values:
        is_choice = not shape.choices or item in shape.choices
        is_right = is_right and type(item) in allowed and is_choice
    if not is_right:
        must = "a list of " if shape.is_many else "one of " if shape.choices else "of "
        must += ", ".join(shape.choices) or f"type {shape.kind.__name__}"
        refuse(f"`{field.name}` must be {must}; found {json.dumps(value):.80}.")
    values = [shape.kind(item) for item in values]
    return tuple(values) if shape.is_many else values[0]


@dataclass(frozen=True)
class Shape:
    """What a field holds: values of one kind, one or many or none, or some choices.

    >>> Shape.of(tuple[float, ...]).is_many, Shape.of(Literal["a", "b"]).choices
    (True, ('a', 'b'))
    """

    kind: type
    is_many: bool
    is_optional: bool
    choices: tuple[str, ...]

    @classmethod
    def of(cls, hint: Any) -> Shape:
        """Return what the type of a field says."""
        is_many = get_origin(hint) is tuple
        is_optional = NoneType in get_args(hint)
        if is_many or is_optional:
            hint = get_args(hint)[0]
        if get_origin(hint) is Literal:
            return cls(str, is_many, is_optional, get_args(hint))
        return cls(hint, is_many, is_optional, ())


# -- the command line ------------------------------------------------------------------


def flag_of(field: Field[Any]) -> str:
    """Return what is typed for an option."""
    return f"--{field.metadata['name'] or field.name.replace('_', '-')}"


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _typed(field: Field[Any], value: Any) -> list[str]:
    """Return how an option is typed; levels stand in one list."""
    flag = flag_of(field)
    if value is True:
        return [flag]
    if not isinstance(value, tuple):
        return [f"{flag}={value}"]
    if value and isinstance(value[0], float):
        return [f"{flag}={','.join(map(repr, value))}"]
    return [f"{flag}={item}" for item in value]


def parse(words: list[str] | None = None) -> Command:
    """Return the command that was typed; asked for help, print it and exit.

    >>> parse(["fit", "a.csv", "-o", "r.json", "--bias", "auto"]).bias
    'auto'
    """
    words = sys.argv[1:] if words is None else words

    # the command, or a page about all of them
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
        hint = f"It is {' or '.join(COMMANDS)}."
        if near:
            hint = f"Did you mean {near[0]!r}?"
        refuse(f"there is no command {name!r:.80}. {hint}")

    # options, which end where -- says so
    cls = command(name)
    end = words.index("--") if "--" in words else len(words)
    parser = _Parser(cls)
    options, arguments = parser.parse_known_args(words[1:end])
    if unknown := list(filter(_is_flag, arguments)):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    values = vars(options)
    arguments += words[end + 1 :]

    # arguments are known by their place; the last may take all that are left
    hints = get_type_hints(cls)
    for field in fields(cls):
        is_many = Shape.of(hints[field.name]).is_many
        if "name" not in field.metadata:
            if not arguments and field.default is MISSING:
                parser.error(f"{field.metadata['metavar']} is missing")
            if is_many:
                values[field.name] = arguments
                arguments = []
            else:
                value = arguments.pop(0) if arguments else None
                values[field.name] = _checked(field, hints[field.name], value)
        if is_many:
            values[field.name] = tuple(values[field.name] or ())
    if arguments:
        parser.error(f"unrecognized arguments: {' '.join(arguments)}")
    return cls(**values)


def _overview() -> str:
    """Return the page of all commands."""
    lines = [f"Usage: sigmascale COMMAND ...\n\n{ABOUT}\n\nCommands:"]
    for name in COMMANDS:
        lines.append(f"  {name:<11}{command(name).summary()}")
    lines.append("\n`sigmascale COMMAND --help` tells more, with examples; they use")
    lines.append("the files that `sigmascale demo` writes.\n")
    lines.append(EXIT_CODES)
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    """The options of a command; wrong ones are errors in the input."""

    def __init__(self, cls: type[Command], page: str = "") -> None:
        self.cls = cls
        self.page = page

        # usage, what the command does, and examples
        arguments = [field for field in fields(cls) if "name" not in field.metadata]
        shown = " ".join(map(_shown, arguments))
        if len(cls.examples) == 1:
            examples = [f"Example: {cls.examples[0]}"]
        else:
            examples = ["Examples:", *(f"  {example}" for example in cls.examples)]
        if page == "all":
            examples += ["", EXIT_CODES]
        super().__init__(
            f"sigmascale {cls.verb()}",
            usage=f"sigmascale {cls.verb()} {shown} [OPTIONS]",
            description=str(cls.__doc__).replace("\n    ", "\n").replace("\n\n", "\n"),
            epilog="\n".join([*examples, *(cls.notes() if page == "all" else [])]),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, max_help_position=28, width=WIDTH
            ),
            allow_abbrev=False,
            add_help=False,
        )

        # options in groups: first those of the command itself
        hints = get_type_hints(cls)
        first_group = self.add_argument_group("Options")
        groups = {"Options": first_group}
        in_order = sorted(fields(cls), key=lambda one: ORDER.get(_owner(cls, one), 0))
        for field in in_order:
            owner = _owner(cls, field)
            title = "Options"
            if page == "all" and owner in ORDER:
                title = str(owner.__doc__)
            if title not in groups:
                groups[title] = self.add_argument_group(title)
            self._add(groups[title], field, hints[field.name])
        first_group.add_argument(
            *("-h", "--help"),
            nargs="?",
            metavar="all",
            action=_Help,
            default=argparse.SUPPRESS,
            help="this page; --help all shows all options",
        )

    def _add(self, group: Any, field: Field[Any], hint: Any) -> None:
        """Add a field of the command to a group of options."""
        about = field.metadata
        shape = Shape.of(hint)
        settings = {"help": about["help"], "metavar": about["metavar"]}
        if shape.choices:
            settings["choices"] = shape.choices
        if "name" not in about:  # `parse` finds them by their place
            if self.page:
                group.add_argument(field.name, **settings)
            return

        # how often it is typed, and what is read from it
        is_required = field.default is MISSING
        if shape.kind is bool:
            del settings["metavar"]
            settings["action"] = "store_true"
        elif shape.is_many and shape.kind is float:
            settings["type"] = _levels
        else:
            settings["type"] = shape.kind
            settings["required"] = is_required
            if shape.is_many:
                settings["action"] = "append"
            else:
                settings["default"] = field.default
            if is_required:
                settings["help"] += " [required]"
            elif field.default not in (None, ()):
                settings["help"] += f" [{field.default}]"

        # the first page of help has common options alone
        if not (about["common"] or is_required or self.page == "all"):
            settings["help"] = argparse.SUPPRESS
        flags = filter(None, [about["short"], flag_of(field)])
        group.add_argument(*flags, dest=field.name, **settings)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and which option may be meant."""
        hint = f"See sigmascale {self.cls.verb()} --help."
        if message.startswith("unrecognized arguments: -"):
            flags: list[str] = []
            for action in self._actions:
                flags += action.option_strings
            words = message.removeprefix("unrecognized arguments: ").split()
            near = get_close_matches(words[0].split("=")[0], flags, 1)
            if near:
                hint = f"Did you mean {near[0]}? {hint}"
        refuse(f"sigmascale {self.cls.verb()}: {message}. {hint}")


class _Help(argparse.Action):
    """Print a page of help, or of all options, and exit."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: Any = None
    ) -> None:
        page = "all" if values == "all" else "first"
        print(_Parser(parser.cls, page).format_help(), end="")
        raise SystemExit(PASSED)


def _owner(cls: type[Command], field: Field[Any]) -> type[Any]:
    """Return the class that declares a field."""
    for base in cls.__mro__:
        if field.name in vars(base).get("__annotations__", ()):
            return base
    return cls


def _shown(field: Field[Any]) -> str:
    """Return an argument as the line of usage has it: FILE... or [FILE]."""
    shown = field.metadata["metavar"]
    if "tuple" in str(field.type):
        shown += "..."
    return shown if field.default is MISSING else f"[{shown}]"


def _levels(text: str) -> tuple[float, ...]:
    """Return levels of quantiles."""
    return tuple(map(float, text.split(",")))


def shell(words: Iterable[str]) -> str:
    """Return a line to copy: words of a command, quoted for a shell."""
    from shlex import join

    return join(["sigmascale", *words])
