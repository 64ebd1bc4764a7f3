"""``sigmascale completion``: a script by which a shell completes what is typed.

It is made of the declaration of the commands, and it is static: no Python is started
when a word is completed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from shlex import quote
from typing import Literal, get_type_hints

from .options import (
    COMMANDS,
    FILES,
    Command,
    CommandResult,
    Shape,
    argument,
    command,
    flag_of,
)

BASH = """\
_sigmascale() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} offered=
    # bash takes --bias=auto for three words
    [[ $before == "=" ]] && before=${COMP_WORDS[COMP_CWORD-2]}
    [[ $word == "=" ]] && word=
    case "$COMP_CWORD ${COMP_WORDS[1]} $before" in
        "1 "*) offered="%s" ;;
        %s
    esac
    COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o default -F _sigmascale sigmascale  # where nothing is offered, files"""
ZSH = """\
#compdef sigmascale
_sigmascale() {
    local -a commands=(
        %s
    )
    (( CURRENT == 2 )) && { _describe command commands; return }
    shift words
    (( CURRENT-- ))
    case $words[1] in
        %s
    esac
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _sigmascale sigmascale"""


@dataclass(frozen=True, kw_only=True)
class Completion(Command):
    """Print a script that completes commands and options in a shell.

    bash, in ~/.bashrc:  eval "$(sigmascale completion bash)"
    zsh, in ~/.zshrc:    eval "$(sigmascale completion zsh)"
    fish, in ~/.config/fish/config.fish:  sigmascale completion fish | source
    """

    examples = ("sigmascale completion bash",)

    shell: Literal["bash", "zsh", "fish"] = argument("bash, zsh or fish", "SHELL")

    def run(self) -> CommandResult:
        """Make the script."""
        script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[self.shell]()
        return CommandResult({"script": script}, script)


@dataclass(frozen=True)
class Word:
    """An option, or an argument, which has no flags, and what may be its value."""

    flags: list[str]
    help: str
    value: str  # what it is called; a switch has none
    choices: tuple[str, ...]
    is_many: bool

    @property
    def is_free(self) -> bool:
        """Whether its value is neither one of a few nor the name of a file."""
        return bool(self.value) and not self.choices and self.value not in FILES


def words_of(verb: str) -> list[Word]:
    """Return the options and the arguments of a command.

    >>> words_of("completion")[-1].choices
    ('bash', 'zsh', 'fish')
    """
    from ..recalibration.scalings import SCALINGS

    cls = command(verb)
    hints = get_type_hints(cls)
    words = [Word(["-h", "--help"], "print a page of help", "", (), False)]
    for field in fields(cls):
        about = field.metadata
        shape = Shape.of(hints[field.name])
        flags = [about["short"], flag_of(field)] if "name" in about else []
        word = Word(
            flags=[flag for flag in flags if flag],
            help=about["help"],
            value="" if shape.kind is bool else about["metavar"],
            choices=tuple(SCALINGS) if field.name == "scaling" else shape.choices,
            is_many=shape.is_many,
        )
        words.append(word)
    return words


def _bash() -> str:
    """Return the script of bash, which shows no descriptions."""
    cases = []
    for verb in COMMANDS:
        flags: list[str] = []
        free: list[str] = []
        offered = "''"
        for word in words_of(verb):
            flags += word.flags
            choices = quote(" ".join(word.choices))
            if word.is_free:
                free += [f'*" {verb} {flag}"' for flag in word.flags]
            elif word.choices and word.flags:
                cases.append(f'*" {verb} {word.flags[-1]}") offered={choices} ;;')
            elif word.choices:
                offered = choices
        if free:
            cases.append(f"{'|'.join(free)}) compopt +o default ;;")
        of_dash = f"[[ $word == -* ]] && offered='{' '.join(flags)}'"
        cases.append(f'*" {verb} "*) offered={offered}; {of_dash} ;;')
    return BASH % (" ".join(COMMANDS), "\n        ".join(cases))


def _zsh() -> str:
    """Return the script of zsh."""
    commands = [quote(f"{verb}:{command(verb).summary()}") for verb in COMMANDS]
    cases = []
    for verb in COMMANDS:
        specs = []
        for word in words_of(verb):
            value = ""
            if word.value:
                action = f"({' '.join(word.choices)})" if word.choices else "_files"
                value = f":{word.value}:{' ' if word.is_free else action}"
            many = "*" if word.is_many else ""
            about = re.sub(r"([][:\\])", r"\\\1", word.help)
            for flag in word.flags:
                equals = "=" if word.value and flag.startswith("--") else ""
                specs.append(quote(f"{many}{flag}{equals}[{about}]{value}"))
            if not word.flags:
                specs.append(quote(f"{many}{value}"))
        cases.append(f"{verb}) _arguments {' '.join(specs)} ;;")
    return ZSH % ("\n        ".join(commands), "\n        ".join(cases))


def _fish() -> str:
    """Return the script of fish."""
    lines = ["complete -c sigmascale -f"]
    for verb in COMMANDS:
        start = "complete -c sigmascale -n __fish_use_subcommand"
        lines.append(f"{start} -a {verb} -d {_in_fish(command(verb).summary())}")
        for word in words_of(verb):
            parts = [f"complete -c sigmascale -n '__fish_seen_subcommand_from {verb}'"]
            for flag in word.flags:
                name = flag.lstrip("-")
                parts.append(f"-{'s' if len(name) == 1 else 'l'} {name}")
            if word.choices:
                parts.append(f"-x -a '{' '.join(word.choices)}'")
            elif word.value:
                parts.append("-x" if word.is_free else "-r -F")
            parts.append(f"-d {_in_fish(word.help)}")
            lines.append(" ".join(parts))
    return "\n".join(lines)


def _in_fish(text: str) -> str:
    """Return a text in quotes of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
