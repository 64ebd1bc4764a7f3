import io
import os
import pty
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from sigmascale._support import progress
from sigmascale._support.progress import CLEAR, PATIENCE, track, working


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Time that passes only when told."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def watch(monkeypatch, stream):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def terminal(monkeypatch):
    return watch(monkeypatch, Terminal())


def work(clock, seconds, n=4, **options):
    """Go through `n` items, each of which takes a while."""
    seen = []
    for item in track(iter(range(n)), "working", n, **options):
        seen.append(item)
        clock.now += seconds
    assert seen == list(range(n))


def test_nothing_is_written_where_nobody_watches(clock, monkeypatch):
    log = watch(monkeypatch, io.StringIO())
    work(clock, 100)
    assert log.getvalue() == ""


def test_nothing_is_written_when_it_is_soon_done(clock, terminal):
    work(clock, PATIENCE / 4)
    assert terminal.getvalue() == ""


def test_a_bar_appears_after_a_while_and_is_cleared_in_the_end(clock, terminal):
    work(clock, 0.7 * PATIENCE)
    first, second = terminal.getvalue().removesuffix(CLEAR).split("\r")[1:]
    # before the third of four, which took 1.4 s each
    assert first.rstrip() == f"working [{'#' * 15:<30}]  50%, 3 s left"
    assert second.startswith("working [######################  ")
    assert second.rstrip().endswith("]  75%, 1 s left")
    assert len(second) >= len(first)  # or the end of the first would stay
    assert terminal.getvalue().endswith(CLEAR)


def test_the_caller_may_say_how_much_is_done(clock, terminal):
    work(clock, 0.7 * PATIENCE, done=lambda: 1)
    assert terminal.getvalue().count("25%") == 2


def test_a_bar_never_exceeds_its_frame(clock, terminal):
    work(clock, 2 * PATIENCE, done=lambda: 1000)
    bars = terminal.getvalue().removesuffix(CLEAR).split("\r")[1:]
    assert {bar.rstrip() for bar in bars} == {f"working [{'#' * 30}] 100%"}


@pytest.mark.parametrize(
    ("seconds", "expected"), [(33, "99 s left"), (600, "30 min left")]
)
def test_what_is_left_is_told_in_a_fitting_unit(clock, terminal, seconds, expected):
    work(clock, seconds)
    assert expected in terminal.getvalue()


def test_a_notebook_is_watched_too(clock, monkeypatch):
    of_a_kernel = type(
        "OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"}
    )
    stream = watch(monkeypatch, of_a_kernel())
    work(clock, PATIENCE)
    assert "working [" in stream.getvalue()


def test_the_bar_is_cleared_when_the_work_fails(clock, terminal):
    def fail():
        for item in track(range(4), "working", 4):
            clock.now += 2 * PATIENCE
            if item == 2:
                msg = "stopped"
                raise ValueError(msg)

    with pytest.raises(ValueError, match="stopped"):
        fail()
    assert "working" in terminal.getvalue()
    assert terminal.getvalue().endswith(CLEAR)


def test_what_cannot_be_counted_is_told_after_a_while(monkeypatch, terminal):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with working("reading"):
        while not terminal.getvalue():
            time.sleep(0.001)
    assert terminal.getvalue() == f"\rreading ...{CLEAR}"


def test_what_is_soon_done_is_not_told(terminal):
    with working("reading"):
        pass
    assert terminal.getvalue() == ""  # or a notebook would show an empty line


def test_nothing_is_told_where_nobody_watches(monkeypatch):
    log = watch(monkeypatch, io.StringIO())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with working("reading"):
        time.sleep(0.02)
    assert log.getvalue() == ""


def test_a_command_shows_progress_on_a_terminal_and_nowhere_else(
    tmp_path, monkeypatch, sigmascale
):
    """The clock is made to run fast, so that two seconds have soon passed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    (tmp_path / "a.csv").write_text(
        "E,u\n" + "".join(f"{i % 7 - 3},{1 + i % 5}\n" for i in range(300))
    )
    code = (
        "import sigmascale._support.progress as p; p.PATIENCE = 0.0\n"
        "from sigmascale.cli import main; main()"
    )
    arguments = ("fit", "a.csv", "-o", "a.json")
    quiet = sigmascale(*arguments)
    assert (quiet.code, quiet.err) == (0, "")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        assert process.stdout.read().decode() == quiet.out
    os.close(ours)
    assert b"boosting [" in shown
    assert b"reading the table ..." in shown
    assert shown.endswith(CLEAR.encode())


def _read(terminal):
    try:
        return os.read(terminal, 1024)
    except OSError:  # how Linux tells that the other side is closed
        return b""
