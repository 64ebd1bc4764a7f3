import sys
import threading
import warnings

import numpy as np
import pytest

import sigmascale as ss
from sigmascale._support.notices import noted, quiet, warn
from sigmascale.exceptions import FewerBinsWarning


def test_a_quiet_thread_leaves_the_others_their_warnings():
    begun, heard = threading.Event(), threading.Event()

    def keep_quiet():
        with quiet():
            begun.set()
            heard.wait(10)
            warn("not this one", UserWarning)

    def tell_meanwhile():
        warn("this one", UserWarning)
        heard.set()
        thread.join()

    thread = threading.Thread(target=keep_quiet)
    thread.start()
    begun.wait(10)
    with pytest.warns(UserWarning, match="this one") as told:
        tell_meanwhile()
    assert [str(each.message) for each in told] == ["this one"]
    with pytest.warns(UserWarning, match="and this one"):
        warn("and this one", UserWarning)


def test_notes_are_taken_in_their_own_thread_only():
    def tell_elsewhere():
        thread = threading.Thread(target=lambda: warn("elsewhere", UserWarning))
        thread.start()
        thread.join()

    with noted() as notes, quiet():
        with pytest.warns(UserWarning, match="elsewhere"):
            tell_elsewhere()
        warn("here", FewerBinsWarning)
    assert [str(note) for note in notes] == ["here"]


@pytest.fixture
def catching(monkeypatch):
    """The modules that catch warnings, as they do it.

    Filters cannot be compared before and after: scikit-learn catches warnings within
    its fits, and those of threads may restore each other's filters.
    """
    found, begin = [], warnings.catch_warnings.__init__

    def noted(self, **options):
        found.append(sys._getframe(1).f_globals["__name__"])
        begin(self, **options)

    monkeypatch.setattr(warnings.catch_warnings, "__init__", noted)
    return found


def test_fits_in_threads_leave_the_filters_of_warnings_as_they_are(catching):
    data = ss.datasets.make_molecules(150, seed=0)
    candidates = {"temperature": ss.TemperatureScaling(), "bins": ss.BinwiseScaling(2)}
    barrier = threading.Barrier(4)
    failed = []

    def fit():
        try:
            barrier.wait(30)
            ss.SelectedScaling(candidates).fit(data.uncertainty, data.error)
            ss.validate(data.error, data.uncertainty, n_draws=50)
        except Exception as problem:  # pragma: no cover
            failed.append(problem)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert any(name.startswith("sklearn.") for name in catching)
    assert not [name for name in catching if name.startswith("sigmascale")]
    with pytest.warns(FewerBinsWarning):
        ss.ence(np.ones(4), np.ones(4), n_bins=9)


def test_no_part_of_the_library_changes_the_filters_of_warnings():
    # but for the command line and the worker of the app, processes of their own, and
    # pictures, whose library has settings of the whole process, too
    from pathlib import Path

    root = Path(ss.__file__).parent
    users = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "catch_warnings(" in path.read_text("utf-8")
    }
    assert users == {*("app/worker.py", "cli/app.py", "cli/demo.py", "report/svg.py")}
