"""False alarms, delays, names and states of monitors."""

import datetime
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import (
    DamagedFileError,
    InvalidInputError,
    RepeatedRowsWarning,
)
from sigmascale.monitoring.alarm import MOST_POINTS
from sigmascale.monitoring.evidence import Regions, not_started
from sigmascale.monitoring.reference import (
    WEIGHTS,
    Ranks,
    Scores,
    factor_bets,
    shift_bets,
)

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "monitor.py"
spec = importlib.util.spec_from_file_location("monitor_study", SCRIPT)
study = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)


def watched(z, calibration=1000, *, seed=0, batch=None, **options):
    """Return a monitor that has seen z-scores, and some more for what is normal."""
    normal = np.random.default_rng(seed).normal(size=calibration)
    monitor = ss.Monitor(normal)
    for part in np.split(z, range(batch, z.size, batch) if batch else []):
        monitor.update(part, np.ones(part.size), **options)
    return monitor


def changed(change, n_before=500, n_after=1500, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=n_before), change(rng.normal(size=n_after))])


@pytest.mark.parametrize("law", ["normal", "t(4)", "exponential"])
@pytest.mark.parametrize("features", [False, True])
def test_streams_without_a_change_rarely_raise_an_alarm(law, features):
    n = 60
    found = study.false_alarms(law, n, features=features, n_rows=3000, seed=5)
    assert stats.binomtest(found, n, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("name", study.CHANGES)
@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_changes_are_found_in_time_and_by_their_name(name, law):
    n, bound = 20, study.CHANGES[name][2]
    rows, right = study.delays(law, name, n, seed=6)
    in_time = int(np.sum(rows <= bound))
    assert stats.binomtest(in_time, n, 0.5, alternative="less").pvalue > 0.01
    named = round(right * n)
    assert stats.binomtest(named, n, 0.9, alternative="less").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("law", ["t(4)", "exponential"])
@pytest.mark.parametrize("name", ["u too small, 1.3", "u too large, 1.5, a fifth"])
def test_regions_with_normals_of_their_own_are_told_from_all_rows(name, law):
    n = 20
    rows, right = study.delays(law, name, n, own=True, seed=8)
    assert np.median(rows) <= study.CHANGES[name][2]
    named = round(right * n)
    assert stats.binomtest(named, n, 0.9, alternative="less").pvalue > 0.01


def test_a_late_change_is_found_too():
    alarm = watched(changed(lambda z: 1.4 * z, n_before=50_000)).alarm
    assert alarm.kind == "too small"
    assert alarm.row - 50_000 < 400


@pytest.mark.slow
def test_what_rows_pay_is_fair_whatever_the_calibration_set_says():
    # 30 rows of calibration are far from their law; the mean payoff is 1 all the same
    paid = []
    for rng in np.random.default_rng(3).spawn(4000):
        ranks = Ranks.of(rng.normal(size=30), rng.random(30))
        table = shift_bets(ranks, np.array([0.5]))[:, 0]
        bins = ranks.bins(rng.normal(size=5), rng.random(5))
        before = 31.0 + np.concatenate([[0], np.cumsum(table[bins])[:-1]])
        paid.append(np.prod(table[bins] * (31 + np.arange(5)) / before))
    error = np.std(paid) / np.sqrt(len(paid))
    assert abs(np.mean(paid) - 1) < 4 * error
    assert error < 0.05


def test_equal_values_fall_into_bins_at_the_right_rates():
    counts, expected = 0, 0
    for rng in np.random.default_rng(4).spawn(300):
        ranks = Ranks.of(rng.integers(0, 3, 40).astype(float), rng.random(40))
        bins = ranks.bins(rng.integers(0, 3, 20).astype(float), rng.random(20))
        half = ranks.positions.searchsorted(20, side="right")
        counts += np.sum(bins < half)
        expected += 20 * ranks.edges[half]
    sd = np.sqrt(expected) * 1.3  # more than binomial: sets differ, too
    assert abs(counts - expected) < 4 * sd


def test_tables_of_payoffs_have_a_mean_of_1_and_stakes_sum_to_1():
    ranks = Ranks.of(np.random.default_rng(0).normal(size=777), np.ones(777))
    shares = np.diff(ranks.edges)
    for table in (
        factor_bets(ranks, np.array([0.3, 1.3])),
        shift_bets(ranks, np.array([-1.0, 0.2])),
    ):
        np.testing.assert_allclose(shares @ table, 1)
    assert sum(WEIGHTS) == pytest.approx(1)
    assert not_started(np.array([0.0]))[0] == 1
    assert not_started(np.array([1e12]))[0] < 1e-4


@pytest.mark.parametrize("batch", [1, 7, 400])
def test_it_does_not_matter_how_rows_are_divided(batch):
    rng = np.random.default_rng(2)
    z = changed(lambda z: z + 0.6, n_after=400)
    x = rng.random(z.size)
    whole = ss.Monitor(rng.normal(size=500))
    parts = ss.Monitor.from_dict(whole.to_dict())
    whole.update(z, np.ones(z.size), X=x, time=np.arange(z.size))
    for i in range(0, z.size, batch):
        rows = slice(i, i + batch)
        time = np.arange(z.size)[rows]
        parts.update(z[rows], np.ones(time.size), X=x[rows], time=time)
    assert parts.n_rows == whole.n_rows
    assert parts.alarm.words == whole.alarm.words
    assert parts.alarm.evidence == pytest.approx(whole.alarm.evidence, rel=1e-6)
    assert parts.history.rows == whole.history.rows


def test_ties_give_the_same_result_however_rows_are_divided():
    # with a calibration set, and with first rows and regions that say what is normal
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = np.round(np.concatenate([rng.normal(size=500), 1.4 * rng.normal(size=500)]))
        x = np.round(rng.random(z.size), 1)
        for options in ({}, {"X": x}):
            normal = None if options else z[rng.permutation(500)[:100]]
            whole, parts = ss.Monitor(normal), ss.Monitor(normal)
            whole.update(z, np.ones(z.size), **options)
            for i in range(0, z.size, 10):
                rows = slice(i, i + 10)
                some = {name: column[rows] for name, column in options.items()}
                parts.update(z[rows], np.ones(10), **some)
            assert str(parts.alarm) == str(whole.alarm)
            assert parts.evidence == pytest.approx(whole.evidence, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", [True, False])
def test_groups_count_as_one_and_are_not_much_slower_than_independent_rows(calibration):
    n = 60
    found = study.false_alarms_of_groups(n, calibration=calibration, seed=3)
    assert stats.binomtest(found, n, 0.05, alternative="greater").pvalue > 0.001
    for factor in (1.4, 1 / 1.4):
        alone, grouped = (
            study.delays_of_groups(factor, n // 3, size=size, seed=4) for size in (1, 5)
        )
        assert np.median(grouped) <= 3 * np.median(alone)


def test_groups_in_any_division_are_the_same_and_the_last_one_waits():
    z = study.in_blocks(np.random.default_rng(0), 1000, 5)
    z[500:] *= 2
    labels = np.repeat([f"g{i}" for i in range(200)], 5)
    time = np.arange(1000)
    whole, parts = (ss.Monitor(burn_in=40) for _ in range(2))
    whole.update(z, np.ones(1000), time=time, groups=labels)
    for i in range(0, 1000, 7):
        rows = slice(i, i + 7)
        some = {"time": time[rows], "groups": labels[rows]}
        parts.update(z[rows], np.ones(len(z[rows])), **some)
        parts = ss.Monitor.from_dict(json.loads(json.dumps(parts.to_dict())))
    assert whole.alarm.kind == "too small"
    assert whole.alarm == parts.alarm
    assert whole.alarm.since % 5 == 0
    assert whole.alarm.since_time == whole.alarm.since
    assert abs(whole.alarm.since - 500) <= 50
    # as Predictions, whose groups end with the call
    predictions = ss.Predictions(error=z, y_std=np.ones(1000), groups=labels, time=time)
    assert ss.Monitor(burn_in=40).update(predictions).alarm == whole.alarm
    # a group is looked at when the next one has begun
    waiting = ss.Monitor(burn_in=20)
    for i in range(21):
        assert not waiting.knows_normal
        waiting.update(z[5 * i : 5 * i + 5], np.ones(5), groups=[i] * 5)
    assert waiting.knows_normal


def test_dependent_rows_without_groups_are_noticed_and_told():
    rng = np.random.default_rng(1)
    z = study.in_blocks(rng, 5000, 5)
    monitor = ss.Monitor(rng.normal(size=500))
    with pytest.warns(RepeatedRowsWarning, match="cannot be trusted"):
        monitor.update(z, np.ones(5000))
    assert "groups" in monitor.caution
    assert "cannot be trusted" in repr(monitor)
    loaded = ss.Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert loaded.caution == monitor.caution
    changed_law = watched(changed(lambda z: 2 * z + 1, n_before=2000, n_after=2000))
    assert changed_law.alarm is not None
    assert changed_law.caution is None


@pytest.mark.slow
def test_dependence_is_always_noticed_and_independence_rarely_doubted():
    n = 40
    assert study.cautions(n, size=5, seed=1) == n
    for law in ("normal", "t(4)"):
        found = study.cautions(n, size=1, law=law, seed=2)
        assert stats.binomtest(found, n, 0.05, alternative="greater").pvalue > 0.001


def test_predictions_may_arrive_with_their_features_and_times():
    rng = np.random.default_rng(3)
    error, u, x = rng.normal(size=(3, 300))
    u, time = np.exp(u), np.arange(300)
    rows = ss.Predictions(error=error, y_std=u, features={"x": x}, time=time)
    by_arrays = ss.Monitor().update(error, u, {"x": x}, time)
    assert ss.Monitor().update(rows).to_dict() == by_arrays.to_dict()


def test_a_row_may_come_as_numbers_with_named_features_and_a_date():
    monitor = ss.Monitor(burn_in=20)
    for day in range(1, 25):
        features = {"mass": 3.0 * day, "phase": "gas" if day % 2 else "solid"}
        monitor.update(0.1 * day, 1.0, X=features, time=datetime.date(2024, 1, day))
    assert monitor.n_rows == 24
    assert monitor.knows_normal
    assert json.loads(json.dumps(monitor.to_dict()))["state"]["waiting"]["times"] == [
        f"2024-01-{day}" for day in range(21, 25)
    ]


def test_a_scaled_stream_with_scaled_uncertainties_is_the_same():
    rng = np.random.default_rng(0)
    z, u = changed(lambda z: 1.5 * z), rng.uniform(1, 2, 2000)
    normal = rng.normal(size=300)
    one, other = ss.Monitor(normal), ss.Monitor(normal)
    assert str(one.update(z, np.ones(2000)).alarm) == str(
        other.update(1e3 * z * u, 1e3 * u).alarm
    )


@pytest.mark.parametrize(
    ("change", "kind", "size"),
    [
        (lambda z: 1.5 * z, "too small", 1.5),
        (lambda z: z / 1.5, "too large", 1 / 1.5),
        (lambda z: z + 0.8, "biased", 0.8),
        (lambda z: z - 0.8, "biased", -0.8),
    ],
)
def test_the_alarm_says_what_since_when_and_how_much(change, kind, size):
    time = np.arange(2000) / 10
    alarms = [watched(changed(change, seed=i), time=time).alarm for i in range(15)]
    for alarm in alarms:
        assert alarm.since_time == alarm.since / 10
        assert alarm.time == (alarm.row - 1) / 10
        assert alarm.evidence > 0
        assert f"row {alarm.since}" in alarm.words
        assert alarm.suggestion in str(alarm)
        json.dumps(alarm.to_dict(), allow_nan=False)
    assert sum(alarm.kind == kind for alarm in alarms) >= 12
    assert np.median([abs(alarm.since - 500) for alarm in alarms]) <= 30
    assert np.median([alarm.size for alarm in alarms]) == pytest.approx(size, rel=0.15)


def test_a_region_of_numbers_or_a_label_is_named():
    rng = np.random.default_rng(8)
    z, mass = rng.normal(size=4000), rng.uniform(0, 100, 4000)
    phase = rng.choice(["gas", "liquid", "solid"], 4000)
    heavy = np.where((mass > 80) & (np.arange(4000) > 1000), 2 * z, z)
    X = pl.DataFrame({"mass": mass, "phase": phase})
    alarm = watched(heavy, X=X).alarm
    assert (alarm.kind, alarm.feature) == ("region", "mass")
    low = float(re.fullmatch(r"mass above ([\d.]+)", alarm.region)[1])
    assert 70 < low < 92
    solid = np.where((phase == "solid") & (np.arange(4000) > 1000), z / 2, z)
    alarm = watched(solid, X=X).alarm
    assert (alarm.kind, alarm.region) == ("region", "phase = solid")
    assert alarm.size == pytest.approx(0.5, rel=0.2)
    assert "phase = solid" in alarm.words


def test_a_region_that_was_wrong_from_the_first_is_no_change_if_that_is_known():
    rng = np.random.default_rng(8)

    def rows(n, factor):
        X, z = rng.random((n, 2)), rng.normal(size=n)
        return np.where(X[:, 1] > 0.8, factor * z, z), X

    z, X = rows(2000, 1.6)
    knows, does_not = ss.Monitor(z, X), ss.Monitor(z)
    z, X = rows(4003, 1.6)
    assert does_not.update(z, np.ones(z.size), X=X).alarm.kind == "region"
    assert knows.update(z, np.ones(z.size), X=X).alarm is None
    loaded = ss.Monitor.from_dict(json.loads(json.dumps(knows.to_dict())))
    z, X = rows(3000, 2.4)
    for monitor in (knows, loaded):
        alarm = monitor.update(z, np.ones(z.size), X=X).alarm
        assert (alarm.kind, alarm.feature) == ("region", "X2")
        assert 1.1 < alarm.size < 3  # of few rows
        assert abs(alarm.since - 4003) < 200
    assert knows.alarm == loaded.alarm


def test_what_is_usual_in_a_region_is_the_mean_of_its_own_rows():
    rng = np.random.default_rng(2)
    x, z = rng.random(1000), rng.normal(size=1000)
    regions = Regions.learn("x", x, 0.2, 0)
    regions.learn_normal(Scores(z, np.abs(z), rng.random(1000)), x)
    n_regions = regions.members.shape[1]
    assert n_regions == 10 + 9
    for kind in (0, 4, 9, 12, n_regions, 2 * n_regions - 1):
        parts = np.flatnonzero(regions.members[:, kind % n_regions])
        inside = np.isin(regions.parts(x), parts)
        assert regions.mean_size(kind) == pytest.approx(np.abs(z[inside]).mean())
        assert np.mean(inside) == pytest.approx(0.1 * parts.size, abs=0.01)


def test_a_recalibrator_recalibrates_and_its_held_back_rows_are_normal(tmp_path):
    fit, held, new = (ss.datasets.make_molecules(2000, seed=i) for i in (1, 2, 4))
    scaler = ss.Recalibrator(ss.RakedScaling()).fit(fit.X, fit.error)
    scaler.conformalize(held.X, held.error)
    monitor = ss.Monitor(scaler)
    assert monitor.knows_normal
    features = np.column_stack([new.mass, new.heteroatom_fraction])
    assert monitor.update(new.error, new.uncertainty, X=features).alarm is None
    monitor.save(tmp_path / "monitor.json")
    loaded = ss.Monitor.load(tmp_path / "monitor.json")
    for each in (monitor, loaded):
        each.update(2 * new.error, new.uncertainty, X=features)
    assert monitor.alarm.kind == "too small"
    assert loaded.alarm == monitor.alarm


def test_a_bias_that_the_recalibrator_shifts_away_is_no_change():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, (3, 2000))
    error = u * (1 + rng.normal(size=u.shape))
    scaler = ss.Recalibrator(ss.TemperatureScaling(), shift="constant")
    scaler.fit(u[0], error[0]).conformalize(u[1], error[1])
    monitor = ss.Monitor(scaler)
    assert monitor.update(error[2], u[2]).alarm is None
    assert monitor.update(error[2] - u[2], u[2]).alarm.kind == "biased"


def test_without_a_calibration_set_the_first_rows_say_what_is_normal():
    rng = np.random.default_rng(5)
    monitor = ss.Monitor(burn_in=400)
    monitor.update(5 * rng.normal(size=399), np.ones(399))
    assert not monitor.knows_normal
    assert "waits for 400 rows" in repr(monitor)
    assert monitor.update(5 * rng.normal(size=2001), np.ones(2001)).alarm is None
    monitor.update(8 * rng.normal(size=1000), np.ones(1000))
    assert monitor.alarm.kind == "too small"
    assert abs(monitor.alarm.since - 2400) < 100


def test_a_state_goes_on_bit_for_bit_through_json():
    z = changed(lambda z: 1.3 * z, n_before=1234, n_after=3000)
    x = np.random.default_rng(1).random((z.size, 2))
    for cut in (5, 133, 1000, 1300):
        one = watched(z[:cut], X=x[:cut])
        other = ss.Monitor.from_dict(json.loads(json.dumps(one.to_dict())))
        for each in (one, other):
            each.update(z[cut:], np.ones(z.size - cut), X=x[cut:])
        assert one.to_dict() == other.to_dict()


def test_memory_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    monitor = ss.Monitor(rng.normal(size=500))
    sizes = []
    for _ in range(6):
        monitor.update(rng.normal(size=20_003), np.ones(20_003), X=rng.random(20_003))
        sizes.append(len(json.dumps(monitor.to_dict())))
    assert monitor.alarm is None
    assert len(monitor.history.rows) <= MOST_POINTS
    assert max(sizes[3:]) <= 1.2 * max(sizes[:3])


def test_errors_of_exactly_0_and_other_ties_are_no_change():
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(20):
        z = np.round(np.random.default_rng(seed).normal(size=4000))
        monitor = ss.Monitor(z[:500]).update(z[500:], np.ones(3500))
        alarms += monitor.alarm is not None
    assert alarms <= 4
    assert ss.Monitor(z).update(2 * np.round(rng.normal(size=500)), np.ones(500)).alarm


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ss.Monitor([1.0] * 5), "at least 20 z-scores; found 5"),
        (lambda: ss.Monitor(np.zeros(50)), "all 50 z-scores are 0"),
        (lambda: ss.Monitor(confidence=1.0), "`confidence` must lie"),
        (lambda: ss.Monitor(burn_in=3), "`burn_in` must be at least 20"),
        (lambda: ss.Monitor(ss.TemperatureScaling()), "fitted recalibrator"),
        (lambda: ss.Monitor(X=np.zeros(30)), "z-scores of its rows"),
        (lambda: ss.Monitor().update([1.0], [0.0]), "strictly positive"),
        (lambda: ss.Monitor().update([1.0, 2.0], [1.0]), "same number of rows"),
        (lambda: ss.Monitor().update([1.0], [1.0], time=[1, 2]), "same number of rows"),
        (
            lambda: ss.Monitor().update(1.0, 1.0, X=[2.0]).update(1.0, 1.0),
            "the same features in all calls; had X1, has none",
        ),
        (
            lambda: ss.Monitor(np.arange(30.0)).update(1.0, 1.0, groups="a"),
            "`groups` must be given in all calls",
        ),
        (
            lambda: ss.Monitor().update(np.ones(3), np.ones(3), groups=["a", "b", "a"]),
            "'a' comes back after other groups",
        ),
        (
            lambda: ss.Monitor(np.arange(30.0), groups=np.arange(30) // 2),
            "at least 20 groups; found 15",
        ),
        (lambda: ss.Monitor(groups=np.arange(30)), "z-scores of its rows"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_remedy(call, words):
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        call()


def test_features_that_a_recalibrator_needs_are_asked_for():
    data = ss.datasets.make_molecules(300)
    monitor = ss.Monitor(ss.RakedScaling(n_bins=3).fit(data.X, data.error))
    with pytest.raises(InvalidInputError, match="features that the recalibrator"):
        monitor.update(data.error, data.uncertainty)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(format="other"),
        lambda d: d.update(version=99),
        lambda d: d.update(more=1),
        lambda d: d.pop("random"),
        lambda d: d["random"].update(items=[]),
        lambda d: d["state"].pop("overall"),
        lambda d: d["state"].update(more=1),
        lambda d: d["state"].update(n_rows="305"),
        lambda d: d["state"]["overall"].update(more=1),
        lambda d: d["state"]["overall"]["growth"]["values"].pop(),
        lambda d: d["state"]["overall"]["growth"].update(shape=[16]),
        lambda d: d["state"]["overall"]["stakes"]["values"].__setitem__(0, None),
        lambda d: d["state"]["reference"]["size"]["limits"]["values"].reverse(),
        lambda d: d["state"]["reference"]["paid"]["values"].pop(),
        lambda d: d["state"]["waiting"]["times"].append(3),
        lambda d: d["state"]["history"]["rows"].append(3),
        lambda d: d["state"]["dependence"]["heads"]["values"].__setitem__(0, 9e9),
        lambda d: d["state"]["regions"][0]["limits"]["values"].reverse(),
        lambda d: d["state"].update(alarm={"is": "Alarm", "kind": "odd"}),
        lambda d: d["state"].update(alarm={"is": "os.system"}),
    ],
)
def test_a_damaged_state_is_refused(damage):
    rng = np.random.default_rng(0)
    state = watched(rng.normal(size=305), X=rng.random(305)).to_dict()
    state = json.loads(json.dumps(state))
    damage(state)
    with pytest.raises(DamagedFileError):
        ss.Monitor.from_dict(state)


def test_a_file_that_is_no_monitor_is_refused_by_its_name(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{", "utf-8")
    with pytest.raises(DamagedFileError, match=r"x\.json"):
        ss.Monitor.load(path)
