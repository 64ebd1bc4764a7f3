"""Verdicts on several targets: one error rate, gaps, and what belongs together."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

QUICK = {"joint": False, "n_bins": 4}


def validate(error, u, features=None, *, groups=None, weights=None, **options):
    """Judge the targets of a wide table."""
    rows = ss.split_targets(error, u, features, groups=groups, sample_weight=weights)
    return ss.validate(rows, **options)


def make_targets(factors, n=400, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(1, 2, (n, len(factors)))
    return rng.normal(scale=u * factors), u


def calibrated_forces(seed, structures=30, atoms=10):
    """Perfect uncertainties of components that have much in common."""
    rng = np.random.default_rng(seed)
    structure = np.repeat(np.arange(structures), atoms)
    covariance = 0.6 + 0.4 * np.eye(3)
    common, own = (
        rng.multivariate_normal(np.zeros(3), covariance, n)
        for n in (structures, structure.size)
    )
    z = np.sqrt(0.6) * common[structure] + np.sqrt(0.4) * own
    u = rng.lognormal(0, 0.3, z.shape)
    return z * u, u, structure


@pytest.mark.slow
def test_components_of_forces_are_judged_by_structures():
    n_sets, alarms = 6, {True: 0, False: 0}
    for seed in range(n_sets):
        error, u, structure = calibrated_forces(seed)
        for grouped in alarms:
            groups = structure if grouped else None
            found = validate(error, u, groups=groups, **QUICK)
            alarms[grouped] += found.answer == "no"
    assert stats.binomtest(alarms[True], n_sets, 0.05, "greater").pvalue > 0.01
    assert alarms[False] > n_sets / 2


def test_the_target_at_fault_is_named_and_the_table_has_all():
    error, u = make_targets([1.0, 1.6, 1.0])
    targets = ss.split_targets(error, u, names=["a", "b", "c"])
    found = ss.validate(targets, **QUICK)
    assert found.answer == "no"
    assert not found.passed
    assert [each.failures for each in found.targets.values()] == [[], ["average"], []]
    assert [line.split()[0] for line in found.to_table().splitlines()[2:]] == [
        *("a", "b", "c")
    ]
    assert "b: Not calibrated" in str(found)
    scores = found.targets["b"].scores
    assert scores.zms == pytest.approx(ss.zms(error[:, 1], u[:, 1]))
    told = found.to_dict()
    assert told["targets"]["b"]["answer"] == "no"
    assert told["targets"]["b"]["scores"] == scores.to_dict()
    assert "<td>b</td>" in found._repr_html_()


def test_targets_share_the_error_rate_of_those_that_can_be_judged():
    error, u = make_targets([1.0] * 4)
    error[10:, 3] = np.nan  # too few to say no
    found = validate(error, u, confidence=0.9, joint=False, n_bins=2)
    assert found.confidence == 0.9
    for each in found.targets.values():
        assert each.confidence == pytest.approx(1 - 0.1 / 3)
    assert found.targets["y3"].answer == "cannot tell"
    assert found.targets["y3"].scores.n_rows == 10


def test_missing_entries_are_left_out_of_a_target_with_its_features_and_groups():
    error, u = make_targets([1.0, 1.2])
    x, group = np.random.default_rng(1).random(400), np.arange(400) // 2
    error[:100, 1] = np.nan
    found = validate(error, u, {"x": x}, groups=group, **QUICK)
    alone = ss.validate(
        error[100:, 1],
        u[100:, 1],
        {"x": x[100:]},
        groups=group[100:],
        confidence=0.975,
        **QUICK,
    )
    assert found.targets["y1"].to_dict() == alone.to_dict()


def test_weights_are_those_of_the_rows_of_each_target():
    error, u = make_targets([1.0, 1.2])
    error[:100, 1] = np.nan
    weight = np.random.default_rng(0).uniform(0.5, 1, 400)
    found = validate(error, u, weights=weight, **QUICK)
    alone = ss.validate(
        error[100:, 1],
        u[100:, 1],
        sample_weight=weight[100:],
        confidence=0.975,
        **QUICK,
    )
    assert found.targets["y1"].summary == alone.summary


def test_long_tables_and_data_frames_are_judged_alike():
    error, u = make_targets([1.0, 1.5])
    wide = validate(pl.DataFrame(error, schema=["a", "b"]), pl.DataFrame(u), **QUICK)
    labels = np.repeat(["a", "b"], 400)
    long = ss.split_targets(error.T.ravel(), u.T.ravel(), labels=labels)
    assert wide.to_dict() == ss.validate(long, **QUICK).to_dict()


def test_one_target_is_a_table_of_one():
    error, u = make_targets([1.3])
    alone = ss.validate(error[:, 0], u[:, 0], confidence=0.93, **QUICK)
    found = validate(error, u, confidence=0.93, **QUICK)
    assert found.targets["y0"].to_dict() == alone.to_dict()
    assert found.answer == alone.answer


def test_equal_values_are_ordered_by_the_ties_of_their_target():
    error, u = make_targets([1.0, 1.0])
    same = np.ones_like(u)
    ties = {"y0": np.arange(400), "y1": np.arange(400)[::-1]}
    found = ss.validate(ss.split_targets(error, same), ties=ties, **QUICK)
    for k, (name, each) in enumerate(ties.items()):
        alone = ss.validate(
            error[:, k], same[:, k], ties=each, confidence=0.975, **QUICK
        )
        assert found.targets[name].to_dict() == alone.to_dict()


def test_what_cannot_be_judged_is_named():
    error, u = make_targets([1.0, 1.0])
    with pytest.raises(InvalidInputError, match="same shape"):
        ss.split_targets(error, u[:, 0])
    with pytest.raises(InvalidInputError, match="`labels` are for long tables"):
        ss.split_targets(error, u, labels=np.zeros(400))
    u[3, 1] = 0
    with pytest.raises(InvalidInputError, match="target 'y1': `uncertainty` must be"):
        ss.split_targets(error, u)
    error[3, 1], error[1:, 0] = np.nan, np.nan
    with pytest.raises(InvalidInputError, match=r"target 'y0'.* at least 2 rows"):
        validate(error, u)
    for nothing in ({}, {"y0": error[:, 0]}):
        with pytest.raises(InvalidInputError, match="Predictions of each target"):
            ss.validate(nothing)
