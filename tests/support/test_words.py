"""Results as tables, warnings of one thread, signs of progress."""

import io
import json
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

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


@pytest.fixture
def watched(monkeypatch):
    """Return a terminal on which all that is done appears at once."""

    class AtOnce(threading.Timer):
        def start(self):
            self.function()

        def join(self, timeout=None):
            pass

    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(progress, "Timer", AtOnce)
    return terminal


def test_whatever_may_take_long_says_so_once(watched):
    X = np.random.default_rng(0).normal(size=(120, 2))
    p = ss.Predictions(error=X[:, 0], y_std=np.ones(120))
    ss.validate(p)
    ss.Recalibrator(ss.LinearScaling()).fit(p)
    ss.compare({"a": p, "b": p})
    linear = ss.Recalibrator(ss.LinearScaling())
    ss.RecalibratedRegressor(LinearRegression(), linear).fit(X, X[:, 1] + X[:, 0] ** 2)
    with progress.working("all of it"):
        ss.validate(p)
    lines = watched.getvalue().replace("\r", "").split(" ...\x1b[2K")
    assert lines == [
        "testing the uncertainties",
        "fitting LinearScaling",
        "comparing",
        "fitting the regressor to each fold",
        "fitting LinearScaling",
        "all of it",
        "",
    ]


def test_a_notebook_shows_what_is_done_and_takes_it_away(watched, monkeypatch):
    shown = []

    class Shown:
        def update(self, data, *, raw):
            shown.append((data, raw))

    def display(data, *, raw, display_id):
        shown.append((data, raw and display_id))
        return Shown()

    monkeypatch.setitem(
        sys.modules, "IPython.display", SimpleNamespace(display=display)
    )
    monkeypatch.setattr(Terminal, "__module__", "ipykernel.iostream")
    monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    with progress.working("fitting"):
        assert shown == [({"text/plain": "fitting ..."}, True)]
    assert shown[1:] == [({"text/plain": ""}, True)]
    assert watched.getvalue() == ""
