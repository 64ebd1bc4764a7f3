"""Results as tables, warnings of one thread, signs of progress."""

import io
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import sigmascale as ss
from sigmascale._support import progress
from sigmascale._support.notices import quiet, warn


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
    monkeypatch.setattr(progress, "SECONDS_OF_PATIENCE", 0.01)
    with progress.silence():
        assert list(progress.track("ab", "reading")) == ["a", "b"]
    assert terminal.getvalue() == ""
    for _ in progress.track("a", "reading"):
        assert told.wait(30)
    assert "reading" in terminal.getvalue()
    assert terminal.getvalue().endswith(progress.CLEAR_LINE)
