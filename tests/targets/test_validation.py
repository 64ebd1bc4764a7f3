"""Verdicts on several targets: one error rate, gaps, and what belongs together."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

QUICK = {"joint": False, "n_bins": 4}


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
            found = ss.validate_targets(error, u, groups=groups, **QUICK)
            alarms[grouped] += found.answer == "no"
    assert stats.binomtest(alarms[True], n_sets, 0.05, "greater").pvalue > 0.01
    assert alarms[False] > n_sets / 2


def test_the_target_at_fault_is_named_and_the_table_has_all():
    error, u = make_targets([1.0, 1.6, 1.0])
    found = ss.validate_targets(error, u, names=["a", "b", "c"], **QUICK)
    assert found.answer == "no"
    assert not found.passed
    assert found.failures == {"b": ["average"]}
    assert [line.split()[0] for line in found.to_table().splitlines()[2:]] == [
        *("a", "b", "c")
    ]
    assert "b: Not calibrated" in str(found)
    assert found.scores["b"].zms == pytest.approx(ss.zms(error[:, 1], u[:, 1]))
    told = found.to_dict()
    assert told["targets"]["b"]["answer"] == "no"
    assert told["targets"]["c"]["scores"] == found.scores["c"].to_dict()
    assert "<td>b</td>" in found._repr_html_()


def test_targets_share_the_error_rate_of_those_that_can_be_judged():
    error, u = make_targets([1.0] * 4)
    error[10:, 3] = np.nan  # too few to say no
    found = ss.validate_targets(error, u, confidence=0.9, joint=False, n_bins=2)
    assert found.confidence == 0.9
    for each in found.targets.values():
        assert each.confidence == pytest.approx(1 - 0.1 / 3)
    assert found.targets["y3"].answer == "cannot tell"
    assert found.targets["y3"].scores.n_rows == 10


def test_missing_entries_are_left_out_of_a_target_with_its_features_and_groups():
    error, u = make_targets([1.0, 1.2])
    x, group = np.random.default_rng(1).random(400), np.arange(400) // 2
    error[:100, 1] = np.nan
    found = ss.validate_targets(error, u, {"x": x}, groups=group, **QUICK)
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
    found = ss.validate_targets(error, u, sample_weight=weight, **QUICK)
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
    wide = ss.validate_targets(
        pl.DataFrame(error, schema=["a", "b"]), pl.DataFrame(u), **QUICK
    )
    long = ss.validate_targets(
        error.T.ravel(), u.T.ravel(), labels=np.repeat(["a", "b"], 400), **QUICK
    )
    assert wide.to_dict() == long.to_dict()


def test_what_cannot_be_judged_is_named():
    error, u = make_targets([1.0, 1.0])
    with pytest.raises(InvalidInputError, match="same shape"):
        ss.validate_targets(error, u[:, 0])
    with pytest.raises(InvalidInputError, match="`labels` are for long tables"):
        ss.validate_targets(error, u, labels=np.zeros(400))
    u[3, 1] = 0
    with pytest.raises(InvalidInputError, match="target 'y1': `uncertainty` must be"):
        ss.validate_targets(error, u)
    error[1:, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"target 'y0' has 1 known error"):
        ss.validate_targets(error, u)
