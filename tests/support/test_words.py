"""Results as tables, warnings of one thread, values in messages, signs of progress."""

import io
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from sigmascale._support import progress
from sigmascale._support.labels import Categories, label_of
from sigmascale._support.notices import quiet, row_number, rows_at, warn
from sigmascale._support.render import WIDTH, Result, text_table
from sigmascale._support.text import listed, quoted, visible


@dataclass(frozen=True, eq=False)
class Part(Result):
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Whole(Result):
    name: str
    part: Part
    pairs: tuple

    def _cells(self):
        return ["", "a|b", "c"], [[self.name, "<1>", "\x1b[2J"]]


def test_a_result_is_a_table_plain_values_and_html():
    found = Whole("x", Part(np.arange(2.0)), ((1, np.float64(0.5)),))
    assert found.to_dict() == {
        "name": "x",
        "part": {"values": [0.0, 1.0]},
        "pairs": [[1, 0.5]],
    }
    assert str(found) == repr(found) == found.to_table()
    assert "\x1b" not in str(found)
    assert r"a\|b" in found.to_table("markdown").splitlines()[0]
    assert "&lt;1&gt;" in found._repr_html_()


def test_a_table_that_is_too_wide_goes_on_below():
    header = ["method", *(f"column {i}" for i in range(10))]
    rows = [[name, *(f"{name}{i}" for i in range(10))] for name in ("a", "bb")]
    blocks = text_table(header, rows).split("\n\n")
    assert len(blocks) == 2
    for block in blocks:
        lines = block.splitlines()
        assert lines[0].startswith("method  ")
        assert set(lines[1]) == {"-"}
        assert max(map(len, lines)) <= WIDTH
    assert "\n\n" not in text_table(["a", "b" * 200], [["1", "2"]])  # no way to fold


def test_values_in_messages_are_cut_at_eighty_characters():
    for value in ("x" * 10**6, list(range(10**4)), b"y" * 500, 1.5, "short"):
        assert len(quoted(value)) <= 80
    assert quoted("a" * 50 + "tail" * 20).endswith("tail'")
    assert listed("abcd", most=2) == "a, b and 2 more"
    assert visible("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\n"

    class Broken:
        def __repr__(self):
            raise RuntimeError

    assert "Broken" in quoted(Broken())


def test_labels_are_text_in_one_order():
    assert [label_of(x) for x in (1, 1.0, "1", True, 2.5, None, np.nan)] == [
        *("1", "1", "1", "True", "2.5", None, None)
    ]
    found = Categories.of(np.array(["b", "10", None, "9", "-3", "01"], dtype=object))
    assert found.labels == ("-3", "9", "10", "01", "b", None)
    few = found[np.array([0, 1])].compact()
    assert few.labels == ("10", "b")
    assert few.values().tolist() == ["b", "10"]


def test_a_quiet_thread_leaves_the_others_their_warnings():
    begun, heard = threading.Event(), threading.Event()

    def keep_quiet():
        with quiet():
            begun.set()
            heard.wait(10)
            warn("not this one", UserWarning)

    thread = threading.Thread(target=keep_quiet)
    thread.start()
    begun.wait(10)
    with pytest.warns(UserWarning, match="this one") as told:
        warn("this one", UserWarning)
    heard.set()
    thread.join()
    assert [str(each.message) for each in told] == ["this one"]


def test_rows_are_counted_as_the_user_counts_them():
    with rows_at([4, 5, 6], first=1), rows_at([0, 2]):
        assert row_number(1) == 7
    assert row_number(1) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Time that passes only when told."""

    now = 100.0

    def monotonic(self):
        return self.now


def work(clock, seconds):
    for _ in progress.track(range(4), "working", 4):
        clock.now += seconds


def test_a_bar_appears_after_a_while_if_a_person_watches(monkeypatch):
    clock, terminal, log = Clock(), Terminal(), io.StringIO()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=log))
    work(clock, 100)
    assert log.getvalue() == ""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    work(clock, progress.PATIENCE / 4)
    with progress.silence():
        work(clock, 100)
    assert terminal.getvalue() == ""
    work(clock, 0.7 * progress.PATIENCE)
    first, second = terminal.getvalue().removesuffix(progress.CLEAR).split("\r")[1:]
    assert "50%" in first
    assert "75%" in second
    assert terminal.getvalue().endswith(progress.CLEAR)


def test_what_cannot_be_counted_is_told_after_a_while(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    with progress.working("reading"):
        pass
    assert terminal.getvalue() == ""
    told = threading.Event()
    monkeypatch.setattr(terminal, "flush", told.set)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.working("reading"):
        assert told.wait(30)
    assert "reading" in terminal.getvalue()
    assert terminal.getvalue().endswith(progress.CLEAR)
