"""Ctrl-C, a refusal or another thread finds an object as it was, or as it shall be."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.persistence import dumps


def rows(n, seed, factor=3.0, names=("a", "b"), **more):
    """Rows whose errors are larger where a is, with features in this order."""
    rng = np.random.default_rng(seed)
    features = {"a": rng.uniform(size=n), "b": rng.uniform(size=n)}
    u = rng.lognormal(0, 0.3, n)
    error = u * rng.normal(size=n) * np.where(features["a"] > 0.5, factor, 0.5)
    features = {name: features[name] for name in names}
    return ss.Predictions(rng.normal(size=n), u, error=error, features=features, **more)


FIRST = rows(1200, 0)
SECOND = rows(1200, 1, factor=0.1, names=("b", "a"))
ASKED = rows(60, 2)
STREAM = rows(5000, 3)
RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + X[:, 1] ** 2 * RNG.normal(size=300)


def of_recalibrator(r):
    q = r.apply(ASKED)
    return np.column_stack([q.y_std, q.y_pred, q.distributions.interval(0.9)])


def regressor():
    quick = ss.Recalibrator(ss.RakedScaling(), bias="constant")
    return ss.RecalibratedRegressor(LinearRegression(), quick, cv=3)


def follower():
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(FIRST)
    return ss.Follower(r).update(FIRST)


# what is made, how it is changed (and back), and what it says
KINDS = {
    "recalibrator": (
        lambda: ss.Recalibrator(bias="constant").fit(FIRST),
        lambda r: r.fit(SECOND),
        lambda r: r.fit(FIRST),
        of_recalibrator,
    ),
    "regressor": (
        lambda: regressor().fit(X, Y),
        lambda model: model.fit(X, 10 * Y + 5),
        lambda model: model.fit(X, Y),
        lambda model: model.predict_interval(X[:40]),
    ),
    "monitor": (
        lambda: ss.Monitor(rows(300, 5)).update(rows(900, 6)),
        lambda monitor: monitor.update(STREAM),
        None,
        dumps,
    ),
    "follower": (
        follower,
        lambda follower: follower.update(rows(100_000, 3)),
        None,
        dumps,
    ),
}


def press_ctrl_c_during(change, it, after):
    """Change something, and let SIGINT come after so many seconds of it."""

    def press():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)

    key = threading.Thread(target=press)
    # in the background of a shell, tests begin with a SIGINT that is ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        key.start()
        change(it)
        key.join()
        time.sleep(1)  # it comes at once, unless a callback has swallowed it
    except KeyboardInterrupt:
        key.join()
    finally:
        signal.signal(signal.SIGINT, before)


# in a callback of C, an exception is told and forgotten
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
def test_ctrl_c_leaves_what_was_or_what_shall_be():
    rng = np.random.default_rng()  # at other moments each time
    n_stopped = 0
    for name, n in zip(KINDS, (8, 6, 8, 8), strict=True):
        make, change, _, says = KINDS[name]
        made = make()
        changed = deepcopy(made)
        begun = time.perf_counter()
        change(changed)
        lasts = time.perf_counter() - begun
        for _ in range(n):
            it = deepcopy(made)
            press_ctrl_c_during(change, it, rng.uniform(0, lasts))
            found = says(it)
            was_stopped = np.array_equal(found, says(made))
            assert was_stopped or np.array_equal(found, says(changed)), name
            n_stopped += was_stopped
    assert n_stopped >= 15


@pytest.mark.parametrize(("name", "n"), [("recalibrator", 6), ("regressor", 6)])
def test_threads_that_predict_during_a_refit_find_the_old_fit_or_the_new_one(name, n):
    make, change, back, says = KINDS[name]
    it = make()
    known = [says(it), says(change(deepcopy(it)))]
    has_ended = threading.Event()

    def look():
        """Return how often each of both was found, and anything else."""
        found = np.zeros(3, dtype=int)
        while not has_ended.is_set():
            now = says(it)
            is_known = [np.array_equal(now, one) for one in known]
            found += [*is_known, not any(is_known)]
            time.sleep(0.05)  # or a fit would hardly get on
        return found

    with ThreadPoolExecutor(16) as threads:
        looks = [threads.submit(look) for _ in range(16)]
        try:
            for k in range(n):
                (back if k % 2 else change)(it)
        finally:
            has_ended.set()
    old, new, neither = sum(found.result() for found in looks)
    assert min(old, new) > 50
    assert neither == 0


def test_what_is_refused_changes_nothing():
    too_late = ss.BinwiseScaling(by="c")  # is refused while it learns
    in_groups = rows(50, 7, groups=np.arange(50))
    refusals = {
        "recalibrator": lambda r: r.set_params(scaling=too_late).fit(SECOND),
        "regressor": lambda model: model.fit(X[:, :2], Y, np.zeros(300)),
        "monitor": lambda monitor: monitor.update(rows(50, 7, names=("a",))),
        "follower": lambda follower: follower.update(in_groups),
    }
    for name, (make, _, _, says) in KINDS.items():
        it = make()
        before = says(it)
        with pytest.raises((InvalidInputError, ValueError), match=r"\w"):
            refusals[name](it)
        np.testing.assert_array_equal(says(it), before, name)
