"""Results as tables, warnings of one thread, values in messages, signs of progress."""

import io
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import sigmascale as ss
from sigmascale._support import progress
from sigmascale._support.notices import quiet, row_number, rows_at, warn
from sigmascale._support.text import listed, quoted, visible


def test_a_result_is_a_table_plain_values_and_html():
    names = ("a|b", "<script>", "\x1b[2J", "x" * 60)
    x = {
        name: np.random.default_rng(i).normal(size=300) for i, name in enumerate(names)
    }
    u = np.random.default_rng(9).uniform(1, 2, 300)
    p = ss.Predictions(y_std=u, error=u * x["a|b"], features=x)
    card = ss.scores.scorecard(p)
    json.dumps(card.to_dict(), allow_nan=False)
    assert str(card) == repr(card)
    assert "\x1b" not in str(card)
    assert "<script>" not in card._repr_html_()
    assert "&lt;script&gt;" in card._repr_html_()


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
    column = np.array(["b", "10", None, "9", "-3", "01"], dtype=object)
    p = ss.Predictions(y_std=np.ones(6), features={"k": column})
    assert p.categories[1] == ("-3", "9", "10", "01", "b", None)
    numbers = [1, 2.5, 1, 10, -3, 2]
    p = ss.Predictions(y_std=np.ones(6), features={"k": numbers})
    assert p.labels("k").labels == ("-3", "1", "2", "10", "2.5")
    few = p.take(np.array([0, 3])).labels("k").compact()
    assert few.labels == ("1", "10")


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


def test_what_is_done_is_told_after_a_while_if_a_person_watches(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    with progress.working("reading"):
        pass
    assert terminal.getvalue() == ""
    told = threading.Event()
    monkeypatch.setattr(terminal, "flush", told.set)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.silence():
        assert list(progress.track("ab", "reading")) == ["a", "b"]
    assert terminal.getvalue() == ""
    for _ in progress.track("a", "reading"):
        assert told.wait(30)
    assert "reading" in terminal.getvalue()
    assert terminal.getvalue().endswith(progress.CLEAR)
