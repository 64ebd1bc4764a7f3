"""False alarms, delays, names and states of monitors."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.monitoring import over_time
from sigmascale.monitoring.ranks import Units, Urn
from sigmascale.recalibration import persistence

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "monitor.py"
spec = importlib.util.spec_from_file_location("monitor_study", SCRIPT)
study = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)
rows = study.rows


def normal(n=1000, seed=0):
    return rows(np.random.default_rng(seed).normal(size=n))


def changed(change, n_before=500, n_after=1500, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=n_before), change(rng.normal(size=n_after))])


def again(monitor):
    """Return a monitor from its file."""
    return persistence.loads(persistence.dumps(monitor))[0]


def is_rare(found, n):
    return stats.binomtest(found, n, 0.05, alternative="greater").pvalue > 0.001


# -- statistics ------------------------------------------------------------------------


@pytest.mark.slow
def test_streams_without_a_change_rarely_raise_an_alarm():
    n = 40
    for name in ("normal", "t(4)", "exponential"):
        for features in (False, True):
            found = study.false_alarms(name, n, features=features, n_rows=2000, seed=5)
            assert is_rare(found, n), (name, features)


@pytest.mark.slow
def test_changes_are_found_in_time_and_by_their_name():
    n, bounds = 20, (250, 250, 150, 150, 1500, 1500)
    for change, bound in zip(study.CHANGES, bounds, strict=True):
        for name in ("normal", "lognormal"):
            found, right = study.delays(name, change, n, seed=6)
            assert np.median(found) <= bound, (change, name)
            named = stats.binomtest(round(right * n), n, 0.85, alternative="less")
            assert named.pvalue > 0.01, (change, name)


@pytest.mark.slow
def test_groups_are_ranked_among_groups_of_their_size():
    n = 60
    for name, sizes in study.SIZES.items():
        rngs = np.random.default_rng(3).spawn(n)
        found = sum(study.alarm_of_groups(r, *sizes).alarm is not None for r in rngs)
        assert is_rare(found, n), name
        if name != "5, then 2":  # whose later sizes say themselves what is normal
            alarms = [study.alarm_of_groups(r, *sizes, 1.6).alarm for r in rngs[:20]]
            assert sum(each is not None for each in alarms) >= 19, name


def test_groups_of_other_sizes_are_no_change():
    found = 0
    for rng in np.random.default_rng(4).spawn(15):
        first, later = (
            rows(rng.normal(size=2400), groups=np.arange(2400) // size)
            for size in (8, 2)
        )
        found += ss.Monitor(first).update(later).alarm is not None
    assert found <= 3


@pytest.mark.slow
def test_what_is_learned_out_of_fold_is_normal():
    n, found = 40, 0
    for seed in range(n):
        known, new = (
            ss.datasets.make_molecules(size, seed=2 * seed + k).predictions
            for k, size in enumerate((600, 3000))
        )
        r = ss.Recalibrator(ss.LinearScaling()).fit(known)
        found += ss.Monitor(r).update(new).alarm is not None
    assert is_rare(found, n)


def tied(kind, n, seed, late=1.0):
    """Rows whose errors have few values; those from row 2,500 on are `late` times."""
    rng = np.random.default_rng([seed, len(kind)])
    u, features = np.ones(n), None
    if kind == "ratings":
        error = rng.choice([-2.0, -1, 0, 1, 2], n, p=[0.1, 0.2, 0.4, 0.2, 0.1])
    elif kind == "counts":
        u, error = np.full(n, np.sqrt(3)), rng.poisson(3, n) - 3.0
    elif kind == "grid":
        error = np.round(2 * rng.normal(size=n)) / 2
    else:
        label = rng.choice(["a", "b"], n)
        error = rng.integers(-2, 3, n) * np.where(label == "a", 1.0, 1.7)
        features = {"label": label}
    error[2500:] *= late
    return ss.Predictions(y_std=u, error=error, features=features)


def alarms_of_ties(kind, seed, late=1.0):
    """Return the rows of the alarms of a monitor of each kind; None for no alarm."""
    p = tied(kind, 4000, seed, late)
    known, stream = p.take(slice(1000)), p.take(slice(1000, None))
    scaling = ss.BoostedScaling() if kind == "labels" else ss.TemperatureScaling()
    r = ss.Recalibrator(scaling).fit(known)
    monitors = (ss.Monitor(r), ss.Monitor(known), ss.Monitor(r, reference=known))
    alarms = [monitor.update(stream).alarm for monitor in monitors]
    return [alarm and alarm.row for alarm in alarms]


TIED = ("ratings", "counts", "grid", "labels")


def test_errors_that_tie_are_no_change_and_a_change_of_them_is_found():
    found = [alarms_of_ties(kind, seed) for kind in TIED for seed in range(3)]
    assert (np.array(found) != None).sum(axis=0).max() <= 3  # noqa: E711
    late = [alarms_of_ties(kind, seed, 1.6) for kind in TIED for seed in (5,)]
    assert sum(all(row and row > 1500 for row in rows_) for rows_ in late) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIED)
def test_promised_rates_hold_where_errors_tie(kind):
    n = 100
    found = np.array([alarms_of_ties(kind, seed) for seed in range(n)]) != None  # noqa: E711
    assert all(is_rare(alarms, n) for alarms in found.sum(axis=0))
    late = np.array([alarms_of_ties(kind, n + seed, 1.6) for seed in range(20)])
    assert (late != None).sum(axis=0).min() >= 19  # noqa: E711


@pytest.mark.slow
def test_what_rows_pay_is_fair_however_small_the_reference_is():
    # 20 rows are far from their distribution; the mean payoff is 1 all the same
    paid = []
    for rng in np.random.default_rng(3).spawn(3000):
        z = rng.normal(size=25)
        columns = {"size": np.abs(z), "z": z, "tie": rng.random(25)}
        units = Units(columns)
        urn = Urn.of(units.take(slice(20)))
        paid.append(urn.pay(units.take(slice(20, 25))).ratios.prod(axis=0))
    # of bets on small changes: those on large ones pay much, but rarely
    paid = np.array(paid).reshape(-1, 4, 4)[:, :, :2]
    error = np.std(paid, axis=0) / np.sqrt(len(paid))
    assert (np.abs(np.mean(paid, axis=0) - 1) < 4 * error).all()
    assert (error < 0.05).all()


def test_a_late_change_is_found_too():
    z = changed(lambda z: 1.4 * z, n_before=50_000)
    alarm = ss.Monitor(normal()).update(rows(z)).alarm
    assert alarm.kind == "too small"
    assert 0 < alarm.row - 50_000 < 400


# -- what is said ----------------------------------------------------------------------


def test_the_alarm_says_what_since_when_and_how_much():
    changes = {
        ("too small", 1.5): lambda z: 1.5 * z,
        ("too large", 1 / 1.5): lambda z: z / 1.5,
        ("biased", 0.8): lambda z: z + 0.8,
        ("biased", -0.8): lambda z: z - 0.8,
    }
    for (kind, size), change in changes.items():
        alarms = [
            ss.Monitor(normal()).update(rows(changed(change, seed=i))).alarm
            for i in range(8)
        ]
        assert sum(alarm.kind == kind for alarm in alarms) >= 7
        assert np.median([abs(alarm.since - 500) for alarm in alarms]) <= 40
        found = np.median([alarm.size for alarm in alarms if alarm.kind == kind])
        assert found == pytest.approx(size, rel=0.2)
        for alarm in alarms:
            assert f"row {alarm.since}" in alarm.words
            assert alarm.evidence >= 20
            told = json.loads(json.dumps(alarm.to_dict(), allow_nan=False))
            assert told["suggestion"] in str(alarm)
            assert "any order" in told["guarantee"]


def test_a_change_from_the_first_row_on_began_at_row_0():
    for start in (normal(), ss.Recalibrator(ss.TemperatureScaling()).fit(normal())):
        alarm = ss.Monitor(start).update(rows(2 * normal(seed=3).z)).alarm
        assert alarm.since == 0
        assert alarm.row < 200


def test_times_are_told_as_numbers_or_dates_and_order_the_rows():
    z = changed(lambda z: 2 * z)
    hours = np.datetime64("2024-05-01") + np.arange(2000) * np.timedelta64(1, "h")
    for times in (np.arange(2000) / 10, hours):
        order = np.random.default_rng(0).permutation(2000)
        p = ss.Predictions(error=z, y_std=np.ones(2000), time=times)
        alarm, mixed = (
            ss.Monitor(normal()).update(each).alarm for each in (p, p.take(order))
        )
        assert mixed.to_dict() == alarm.to_dict()
        first = times[alarm.since]
        if times is hours:
            assert alarm.since_time >= str(first)[:10]
            assert re.fullmatch(r"2024-05-\d\d( \d\d:00:00)?", alarm.since_time)
            assert alarm.since_time in alarm.words
        else:
            assert first <= alarm.since_time <= first + 1
            assert alarm.time == pytest.approx((alarm.row - 1) / 10)


def test_a_region_of_numbers_or_a_label_is_named():
    rng = np.random.default_rng(8)
    n = 6000
    z, mass = rng.normal(size=n), rng.uniform(0, 100, n)
    phase = rng.choice(["gas", "liquid", "solid"], n)
    late = np.arange(n) > 3000

    def alarm_of(z):
        features = {"mass": mass, "phase": phase, "same": np.ones(n)}
        p = ss.Predictions(error=z, y_std=np.ones(n), features=features)
        first, others = np.split(np.arange(n), [2000])
        return ss.Monitor(p.take(first)).update(p.take(others)).alarm

    alarm = alarm_of(np.where((mass > 80) & late, 2 * z, z))
    assert (alarm.kind, alarm.column) == ("region", "mass")
    low = float(re.search(r"mass ≥ ([\d.]+)$", alarm.region)[1])
    assert 65 < low < 92
    alarm = alarm_of(np.where((phase == "solid") & late, z / 2, z))
    assert (alarm.kind, alarm.region) == ("region", "phase = solid")
    assert alarm.size == pytest.approx(0.5, rel=0.2)
    assert "phase = solid" in alarm.words
    assert "phase" in alarm.suggestion


def test_a_region_that_was_wrong_from_the_first_is_no_change():
    rng = np.random.default_rng(8)

    def batch(n, factor):
        X, z = rng.random((n, 2)), rng.normal(size=n)
        return rows(np.where(X[:, 1] > 0.8, factor * z, z), X)

    monitor = ss.Monitor(batch(2000, 1.6))
    assert monitor.update(batch(4000, 1.6)).alarm is None
    alarm = monitor.update(batch(3000, 2.6)).alarm
    assert (alarm.kind, alarm.column) == ("region", "X2")
    assert abs(alarm.since - 4000) < 200


def test_neighbours_that_are_alike_are_told_and_others_are_not():
    rng = np.random.default_rng(1)
    z, groups = study.in_groups(rng, [5] * 800)
    monitor = ss.Monitor(normal()).update(rows(z))
    assert "rows are alike" in monitor.state.caution
    assert "give groups" in monitor.state.words
    assert again(monitor).state == monitor.state
    alarm = ss.Monitor(rows(z)).update(rows(2 * z)).alarm
    assert "give groups" in alarm.guarantee
    with_groups = ss.Monitor(normal()).update(rows(z, groups=groups))
    alone = ss.Monitor(normal()).update(rows(changed(lambda z: 2 * z)))
    for quiet in (with_groups, alone):
        assert quiet.state.caution is None
    assert "give groups" not in str(alone.alarm)


def test_the_state_is_an_answer_in_words_and_plain_values():
    monitor = ss.Monitor(burn_in=400)
    rng = np.random.default_rng(5)
    state = monitor.update(rows(5 * rng.normal(size=399))).state
    assert (state.answer, state.missing, state.n_rows) == ("inconclusive", 1, 399)
    state = monitor.update(rows(5 * rng.normal(size=2001))).state
    assert (state.answer, state.limit, state.alarm) == ("no", 20, None)
    state = monitor.update(rows(8 * rng.normal(size=1000))).state
    assert state.answer == "yes"
    assert abs(state.alarm.since - 2400) < 100
    told = json.loads(json.dumps(state.to_dict(), allow_nan=False))
    assert told["alarm"]["kind"] == "too small"
    assert told["words"] in repr(monitor)
    assert monitor.update(rows(rng.normal(size=10))).state.alarm == state.alarm


def test_a_monitor_shows_what_it_watches_and_how_rare_false_alarms_are():
    rng = np.random.default_rng(2)

    def batch(n, factor=1.0):
        features = {"<b>x": rng.random(n), "kind": rng.choice(["a", "b"], n)}
        error = factor * rng.normal(size=n)
        return ss.Predictions(error=error, y_std=np.ones(n), features=features)

    monitor = ss.Monitor(confidence=0.999)
    assert repr(monitor).startswith("Monitor of all rows: 0 rows seen\n")
    assert "at most 0.1 % of streams" in repr(monitor)
    shown = repr(monitor.update(batch(3000)))
    assert "regions of <b>x, kind: 3,000 rows seen\n" in shown
    assert monitor.state.words in shown
    html = monitor._repr_html_()
    assert "regions of &lt;b&gt;x, kind" in html
    assert html.count("<p>") == 3
    # of an alarm, which says itself how rare it is
    alarm = monitor.update(batch(3000, 2.0)).alarm
    assert str(alarm) in repr(monitor)
    assert repr(monitor).count("0.1 %") == 1
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(normal())
    assert "all recalibrated rows: 0 rows" in repr(ss.Monitor(r))


# -- what does not matter --------------------------------------------------------------


def test_it_does_not_matter_how_rows_are_divided_nor_that_a_file_lies_between():
    rng = np.random.default_rng(2)
    z = np.round(changed(lambda z: z + 0.6, n_after=400), 1)  # with ties
    features = {"x": rng.random(z.size), "k": rng.choice(["a", "b"], z.size)}
    p = ss.Predictions(
        error=z, y_std=np.ones(z.size), features=features, time=np.arange(z.size)
    )
    for start in (None, p.take(np.arange(100))):
        whole = ss.Monitor(start, burn_in=100).update(p)
        for size in (60, 250):
            parts = ss.Monitor(start, burn_in=100)
            for i in range(0, z.size, size):
                parts.update(p.take(np.arange(i, min(i + size, z.size))))
                parts = again(parts)
            assert parts.alarm == whole.alarm is not None
            np.testing.assert_allclose(parts.history, whole.history, atol=1e-9)


def test_units_and_names_of_groups_do_not_matter():
    rng = np.random.default_rng(0)
    z, groups = study.in_groups(rng, rng.integers(1, 9, 600))
    z[groups > 400] *= 2
    u = rng.uniform(1, 2, z.size)
    names = np.array([f"g{i}" for i in rng.permutation(600)])[groups]
    alarms = [
        ss.Monitor(burn_in=100)
        .update(ss.Predictions(error=f * z * u, y_std=f * u, groups=labels))
        .alarm
        for f, labels in ((1, groups), (1e10, names), (1e-10, groups))
    ]
    assert alarms[0].units == "groups"
    for other in alarms[1:]:
        assert other.words == alarms[0].words


def test_vectors_are_watched_by_their_size_whatever_the_orientation():
    rng = np.random.default_rng(1)
    e = rng.normal(size=(3000, 3))
    e[2000:] *= 1.5
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    alarms = []
    for error in (e, e @ turn):
        p = ss.Predictions(error=error, y_std=np.ones(3000))
        first, others = np.split(np.arange(3000), [1000])
        alarms.append(ss.Monitor(p.take(first)).update(p.take(others)).alarm)
    assert alarms[0].kind == "too small"
    assert alarms[0].words == alarms[1].words
    line = ss.Predictions(error=e[:, :1], y_std=np.ones(3000))
    first, others = np.split(np.arange(3000), [1000])
    assert ss.Monitor(line.take(first)).update(line.take(others)).alarm is not None


def test_errors_of_exactly_0_and_other_ties_are_no_change():
    alarms = 0
    for seed in range(20):
        z = np.round(np.random.default_rng(seed).normal(size=3000))
        alarms += ss.Monitor(rows(z[:500])).update(rows(z[500:])).alarm is not None
    assert alarms <= 4
    nothing = ss.Monitor(rows(np.zeros(50)))
    assert nothing.update(rows(np.zeros(500))).alarm is None
    assert nothing.update(rows(np.ones(500))).alarm.kind == "too small"


# -- recalibrators and files -----------------------------------------------------------


@pytest.fixture(scope="module")
def molecules():
    return [ss.datasets.make_molecules(1500, seed=i).predictions for i in range(3)]


def test_a_recalibrator_recalibrates_and_says_what_is_normal(molecules, tmp_path):
    known, held, new = molecules
    r = ss.Recalibrator(ss.RakedScaling()).fit(known)
    direct = ss.Monitor(r.apply(held)).update(r.apply(new))
    monitor = ss.Monitor(r, reference=held).update(new)
    np.testing.assert_array_equal(monitor.history, direct.history)
    alone = ss.Monitor(r).update(new)
    assert monitor.alarm is alone.alarm is None
    alone.save(tmp_path / "monitor.json")
    loaded = ss.load(tmp_path / "monitor.json", kind=ss.Monitor)
    doubled = new._with(error=2 * new.errors)
    for each in (alone, loaded):
        assert each.update(doubled).alarm.kind == "too small"
    assert loaded.alarm == alone.alarm
    assert loaded.alarm.since - 1500 < 100


def test_a_batch_that_is_refused_leaves_no_trace():
    rng = np.random.default_rng(4)
    columns = {"y_std": np.ones(60), "features": {"x": rng.normal(size=60)}}
    error = rng.normal(size=60)
    labels = rng.choice(["a", "b"], 60)
    for normal in (None, rows(rng.normal(size=100), {"x": rng.normal(size=100)})):
        one, other = ss.Monitor(normal, burn_in=50), ss.Monitor(normal, burn_in=50)
        for hour in (0, 1):
            time = 60 * hour + np.arange(60)
            batch = ss.Predictions(**columns, error=error + hour, time=time)
            for monitor in (one, other):
                monitor.update(batch)
            for wrong in (
                {"error": rng.normal(size=(60, 3))},
                {"error": error, "features": {"x": labels}},
            ):
                later = ss.Predictions(**columns | wrong, time=time + 1e6)
                with pytest.raises(ss.exceptions.InvalidInputError):
                    one.update(later)
        assert persistence.dumps(one) == persistence.dumps(other)


def test_a_monitor_with_gaps_in_its_first_rows_goes_on_from_a_file():
    rng = np.random.default_rng(3)
    x = np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))
    p = ss.Predictions(
        y_std=np.ones(300), error=rng.normal(size=300), features={"x": x}
    )
    halves = p.take(np.arange(100)), p.take(np.arange(100, 300))
    one = ss.Monitor(burn_in=150).update(halves[0])
    other = again(one)
    for monitor in (one, other):
        monitor.update(halves[1])
    assert persistence.dumps(other) == persistence.dumps(one)


def test_a_bias_that_the_recalibrator_corrects_is_no_change():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, (2, 2000))
    error = u * (1 + rng.normal(size=u.shape))
    known, new = (
        ss.Predictions(error=e, y_std=s) for e, s in zip(error, u, strict=True)
    )
    r = ss.Recalibrator(ss.TemperatureScaling(), bias="constant").fit(known)
    monitor = ss.Monitor(r)
    assert monitor.update(new).alarm is None
    assert monitor.update(new._with(error=error[1] - u[1])).alarm.kind == "biased"


def test_a_normal_distribution_leaves_it_to_the_first_rows(molecules):
    known, _, new = molecules
    r = ss.Recalibrator(ss.TemperatureScaling(), distribution="normal").fit(known)
    assert ss.Monitor(r).state.missing == 200
    assert ss.Monitor(r).update(new).state.answer == "no"


def test_a_set_in_time_is_compared_with_its_first_quarter():
    z = changed(lambda z: 1.8 * z, n_before=1200, n_after=800, seed=2)
    p = ss.Predictions(error=z, y_std=np.ones(2000), time=np.arange(2000.0))
    alarm = over_time(p).alarm
    assert alarm.kind == "too small"
    assert 1150 < alarm.since_time < 1250
    assert over_time(p.take(np.arange(300))).state.answer == "no"
    assert over_time(p.take(np.arange(100))).state.answer == "inconclusive"


def test_what_cannot_be_used_is_refused_with_a_remedy(molecules):
    p, labelled = normal(30), {"x": ["a", "b", "c"] * 10}
    r = ss.Recalibrator(ss.RakedScaling()).fit(molecules[0])
    with_x = ss.Predictions(error=p.error, y_std=p.y_std, features={"x": p.error})
    as_label = ss.Predictions(error=p.error, y_std=p.y_std, features=labelled)
    vector = ss.Predictions(error=np.ones((30, 2)), y_std=np.ones(30))
    for match, call in {
        "20 rows": lambda: ss.Monitor(normal(5)),
        "20 groups": lambda: ss.Monitor(rows(p.z, groups=np.arange(30) // 2)),
        "confidence": lambda: ss.Monitor(confidence=1.0),
        "burn_in": lambda: ss.Monitor(burn_in=3),
        "fitted Recalibrator": lambda: ss.Monitor(ss.Recalibrator()),
        "without a `reference`": lambda: ss.Monitor(p, reference=p),
        "Predictions": lambda: ss.Monitor().update([1.0, 2.0]),
        "y_true": lambda: ss.Monitor().update(ss.Predictions([1.0], [1.0])),
        "features of the first rows": lambda: ss.Monitor(with_x).update(p),
        "holds labels": lambda: ss.Monitor(with_x).update(as_label),
        "vectors": lambda: ss.Monitor(p).update(vector),
        "be vectors": lambda: ss.Monitor().update(p).update(vector),
        "mass": lambda: ss.Monitor(r).update(p),
    }.items():
        with pytest.raises(InvalidInputError, match=re.escape(match)):
            call()


def test_a_damaged_file_is_refused():
    p = ss.Predictions(
        error=np.random.default_rng(0).normal(size=305),
        y_std=np.ones(305),
        features={"x": np.arange(305.0), "k": ["a", "b", "c", "d", "e"] * 61},
    )
    document = json.loads(persistence.dumps(ss.Monitor(burn_in=300).update(p)))

    def read(path, change):
        """Read the file after a change, with a checksum that fits."""
        damaged = json.loads(json.dumps(document))
        part = damaged["content"]
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = change(part[path[-1]])
        content = {name: damaged[name] for name in ("extra", "content")}
        damaged["sha256"] = persistence._checksum(content)
        return persistence.loads(json.dumps(damaged))

    urn = ("overall", "urns", "known", "1")
    evidence = ("overall", "evidence")

    def shorter(x):
        return {"shape": [1], "values": [1.0]}

    read(("n_rows",), int)
    for path, change in (
        (("n_rows",), str),
        (("burn_in",), lambda x: -x),
        (("alarm",), lambda x: {"is": "os.system"}),
        (("units",), lambda x: "weeks"),
        (("confidence",), lambda x: 1.0),
        (("history", "shape"), lambda x: x[::-1]),
        (("overall",), lambda x: {**x, "more": 1}),
        ((*evidence, "gained", "shape"), lambda x: [16]),
        ((*evidence, "stakes", "values", 0), lambda x: None),
        ((*evidence, "started"), shorter),
        (("regions", 0, "evidence", "facts"), shorter),
        (("regions", 0, "limits"), lambda x: x[:3]),
        (("regions", 1, "labels"), lambda x: x[:3]),
        ((*urn, "positions"), lambda x: x[::-1]),
        ((*urn, "paid"), lambda x: [-each for each in x]),
        ((*urn, "paid"), shorter),
        ((*urn, "limits", "values"), lambda x: x[::-1]),
    ):
        with pytest.raises(DamagedFileError):
            read(path, change)


def test_batches_that_do_not_go_on_with_the_stream_are_refused():
    rng = np.random.default_rng(0)
    n = 60
    u, error, x = rng.uniform(1, 2, n), rng.normal(size=n), rng.normal(size=n)

    def batch(part, **others):
        rows = slice(20 * part, 20 * part + 20)
        others = {name: values[rows] for name, values in others.items()}
        return ss.Predictions(error=error[rows], y_std=u[rows], **others)

    time, groups = np.arange(n), np.arange(n) // 2
    monitor = ss.Monitor().update(batch(1, time=time))
    for odd, match in (
        (batch(0, time=time), "Times must not go back"),
        (batch(1, time=time), "Times must not go back"),
        (batch(2), "times of one kind or none; earlier ones .* numbers"),
        (batch(2, time=time, groups=groups), "this is of groups"),
    ):
        state = monitor.state
        with pytest.raises(InvalidInputError, match=match):
            monitor.update(odd)
        assert monitor.state == state
    monitor = ss.Monitor().update(batch(0))
    with pytest.raises(InvalidInputError, match="taken already"):
        monitor.update(batch(0))
    later = ss.Predictions(error=error[20:], y_std=u[20:], features={"x": x[20:]})
    with pytest.raises(InvalidInputError, match="features of the first rows: none"):
        monitor.update(later)
    assert monitor.update(batch(1)).state.n_rows == 40
