"""Files that somebody has edited, checksum and all: refused, or finite numbers.

Each of six files is changed 120 times, or so many times as an environment variable
says; 5,000 in all by

    SIGMASCALE_CHANGES=834 make test PYTEST_ARGS=tests/support/test_changed_files.py
"""

import json
import os

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.recalibration import persistence

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 300
N_CHANGES = int(os.environ.get("SIGMASCALE_CHANGES", "120"))
RNG = np.random.default_rng(0)
U, KIND = RNG.lognormal(size=N), RNG.choice(["a", "b", "c"], N)
COLUMNS = {
    "y_pred": RNG.normal(size=N),
    "y_std": U,
    "error": U * (0.2 + RNG.normal(size=N) * np.exp(0.5 * (KIND == "a"))),
    "features": {"x": RNG.normal(size=N), "kind": KIND},
    "groups": RNG.integers(0, N // 2, N),
}
P = ss.Predictions(**COLUMNS, time=np.arange(N))
LATER = ss.Predictions(
    **COLUMNS | {"error": 1.1 * COLUMNS["error"]}, time=N + np.arange(N)
)
FAR = ss.Predictions(
    [0.0, 1e3, -5.0],
    [1e-8, 1.0, 1e8],
    features={"x": [0.0, np.nan, 9.0], "kind": ["a", "z", None]},
)
FITS = (
    ss.Recalibrator(bias="auto").fit(P),
    ss.Recalibrator(ss.IsotonicScaling(), bias="constant").fit(P),
    ss.Recalibrator(ss.LinearScaling()).fit(P),
)
MONITORS = (
    ss.Monitor(FITS[1]).update(P),
    ss.Monitor(burn_in=60).update(P),
)
FOLLOWER = ss.Follower(FITS[1]).update(P)
VALUES = (1e308, -1e308, 1e160, 1e80, -1e80, 1e-308, 0.0, 0, -1, 7, 2**31, 2**53)
VALUES += (710.0, -710.0, None, "x", True, [], {}, [1.0])


def rewritten(document):
    """The text of a document whose checksum is right."""
    content = {name: document[name] for name in ("extra", "content")}
    document["sha256"] = persistence._checksum(content)
    return json.dumps(document)


def places(part, path=()):
    """Ways to all parts of a document; those in one list are alike."""
    if path:
        yield path
    pairs = part.items() if isinstance(part, dict) else ()
    if isinstance(part, list):
        pairs = enumerate(part)
    for name, each in pairs:
        yield from places(each, (*path, name))


def by_kind(document):
    found = {}
    for path in places(document["content"]):
        kind = tuple("#" if isinstance(x, int) else x for x in path)
        found.setdefault(kind, []).append(path)
    return list(found.values())


def changed(text, ways, rng):
    """A file with one part changed, of any depth."""
    document = json.loads(text)
    some = ways[rng.integers(len(ways))]
    *way, last = some[rng.integers(len(some))]
    parent = document["content"]
    for name in way:
        parent = parent[name]
    value = VALUES[rng.integers(len(VALUES))]
    old = parent[last]
    if isinstance(old, list) and old and rng.integers(2):
        value = (old[:-1], old[::-1], [*old, old[-1]])[rng.integers(3)]
    parent[last] = value
    return rewritten(document)


def assert_usable(found):
    if isinstance(found, ss.Monitor):
        state = found.update(LATER).state
        json.dumps(state.to_dict(), allow_nan=False)
        assert str(state)
        return
    if isinstance(found, ss.Follower):
        assert not np.isnan(found.interval(FAR)).any()
        json.dumps(found.update(LATER).to_dict(), allow_nan=False)
        assert np.isfinite(found.interval(P)).all()
        return
    for rows in (P, FAR):
        applied = found.apply(rows)
        assert np.isfinite(applied.y_std).all()
        assert (applied.y_std > 0).all()
        assert np.isfinite(applied.y_pred).all()
        assert not np.isnan(applied.distributions.interval(0.9)).any()
    assert found.describe()


@pytest.mark.parametrize("original", [*FITS, *MONITORS, FOLLOWER])
def test_changed_files_are_refused_or_give_finite_numbers(original):
    rng = np.random.default_rng(1)
    text = persistence.dumps(original)
    ways = by_kind(json.loads(text))
    assert_usable(persistence.loads(text)[0])
    n_refused = 0
    for _ in range(N_CHANGES):
        try:
            assert_usable(persistence.loads(changed(text, ways, rng))[0])
        except (DamagedFileError, InvalidInputError):
            n_refused += 1
    assert n_refused > N_CHANGES / 2


def test_states_that_no_stream_has_made_are_refused():
    for original, path, value in (
        (MONITORS[0], ("stream", "sums"), [1.0, 2.0, 3.0]),
        (MONITORS[0], ("overall", "urns", "known", "1", "paid"), [300.0] * 17),
        (FOLLOWER, ("log_stretch",), 1e80),
    ):
        document = json.loads(persistence.dumps(original))
        part = document["content"]
        for name in path[:-1]:
            part = part[name]
        assert part[path[-1]] != value
        part[path[-1]] = value
        with pytest.raises(DamagedFileError):
            persistence.loads(rewritten(document))


def test_numbers_that_no_fit_has_learned_are_refused():
    for name, part, value in (
        ("scale_map", "constant", 701.0),
        ("bias_map", "constant", 1e60),
        ("scale_map", "constant", 1e308),
    ):
        document = json.loads(persistence.dumps(FITS[1]))
        document["content"][name][part] = value
        with pytest.raises(DamagedFileError, match=part if value > 1e100 else "must"):
            persistence.loads(rewritten(document))
    document = json.loads(persistence.dumps(FITS[2]))
    document["content"]["scale_map"]["base"]["a"] = 1e308
    with pytest.raises(DamagedFileError, match="'a'"):
        persistence.loads(rewritten(document))
