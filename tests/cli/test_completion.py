"""Completion, as bash, zsh and fish do it."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
from dataclasses import fields

import pytest

from sigmascale.cli.options import COMMANDS, command, flag_of
from sigmascale.recalibration.scalings import SCALINGS

SECONDS = 60  # that a shell may take
# TAB puts in all that can stand there; Ctrl-T prints the line, and empties it.
BASH = """
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
bind '"\\t": insert-completions'
printed() { printf '\\2%s\\3' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\\C-t": printed'
"""
ZSH = """
zstyle ':completion:*' completer _all_matches _complete
zstyle ':completion:*' insert true
printed() { printf '\\2%s\\3' "$BUFFER"; BUFFER=; }
zle -N printed
bindkey '^I' complete-word
bindkey '^T' printed
"""
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i", "-o", "no_prompt_sp"],
}


class Terminal:
    """A shell that somebody types into."""

    def __init__(self, shell, script, folder):
        (folder / "start").write_text(script + {"bash": BASH, "zsh": ZSH}[shell])
        self.screen, other_end = pty.openpty()
        self.process = subprocess.Popen(
            START[shell],
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
            cwd=folder,
            env=os.environ | {"TERM": "dumb", "HOME": str(folder)},
            start_new_session=True,
        )
        os.close(other_end)
        self.types("source ./start; echo be''gun\n", "(begun)")

    def types(self, text, until):
        """Type, and return what a pattern finds on the screen then."""
        os.write(self.screen, text.encode())
        seen = ""
        end = time.monotonic() + SECONDS
        while not (found := re.search(until, seen, re.DOTALL)):
            ready = select.select([self.screen], [], [], end - time.monotonic())[0]
            assert ready, seen
            seen += os.read(self.screen, 4096).decode()
        return found[1]

    def completed(self, line):
        """Return the words that take the place of the last one of a line."""
        found = self.types(f"{line}\t\x14", "\x02(.*?)\x03")
        before = line[: line.rindex(" ")]
        assert found.startswith(before), found
        return shlex.split(found[len(before) :])

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.screen)


class Fish:
    """Fish tells by itself what it would offer."""

    def __init__(self, script, folder):
        self.folder = folder
        (folder / "start").write_text(script)

    def completed(self, line):
        ask = f"source ./start; complete -C {shlex.quote(line)}"
        done = subprocess.run(
            ["fish", "--no-config", "-c", ask],
            cwd=self.folder,
            env=os.environ | {"HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.stderr == ""
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    def close(self):
        pass


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def shell(request, sigmascale, tmp_path_factory):
    """A shell that has read its script, in a folder with two tables."""
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp(name)
    for file in ("table.csv", "two words.csv"):
        (folder / file).touch()
    done = sigmascale("completion", name)
    assert (done.code, done.err) == (0, "")
    is_fish = name == "fish"
    started = Fish(done.out, folder) if is_fish else Terminal(name, done.out, folder)
    yield started
    started.close()


def test_commands_options_choices_and_files_are_completed(shell):
    for line, offered in {
        "sigmascale ": set(COMMANDS),
        "sigmascale ch": {"check"},
        "sigmascale co": {"combine", "compare", "completion"},
        "sigmascale completion ": {"bash", "zsh", "fish"},
        "sigmascale fit table.csv --bi": {"--bias", "--bins"},
        "sigmascale fit table.csv --bias ": {"constant", "auto"},
        "sigmascale fit --bias co": {"constant"},
        "sigmascale fit --bias=co": {"--bias=constant"},
        "sigmascale fit --scaling ": set(SCALINGS),
        "sigmascale check tab": {"table.csv"},
        "sigmascale check two": {"two words.csv"},
        "sigmascale check table.csv --report tab": {"table.csv"},
        "sigmascale apply r.json tab": {"table.csv"},
        "sigmascale apply r.json table.csv -o tab": {"table.csv"},
    }.items():
        found = {word.removesuffix("=") for word in shell.completed(line)}
        assert found == offered, line


def test_names_of_columns_are_not_taken_for_files(shell):
    for option in ("--feature", "--seed"):
        (word,) = shell.completed(f"sigmascale fit table.csv {option} tab") or ["tab"]
        assert word == "tab"


def test_every_option_of_every_command_is_completed(shell):
    for name in COMMANDS:
        offered = {
            word.rstrip("=") for word in shell.completed(f"sigmascale {name} --")
        }
        options = [field for field in fields(command(name)) if "name" in field.metadata]
        assert offered == {"--help", *map(flag_of, options)}, name
