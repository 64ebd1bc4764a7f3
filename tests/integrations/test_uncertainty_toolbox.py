"""The metrics of uncertainty-toolbox: the same names, arguments and numbers."""

import inspect

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import sigmascale.compat.uncertainty_toolbox as ours
from sigmascale.exceptions import InvalidInputError

uct = pytest.importorskip(
    "uncertainty_toolbox", reason="pip install --group neighbours installs it"
)

RNG = np.random.default_rng(4)
STD = RNG.lognormal(0, 0.5, 400)
PRED = RNG.normal(10, 3, 400)
TRUE = PRED + 0.2 + 1.5 * STD * RNG.standard_t(4, 400)
ROWS = PRED, STD, TRUE
CURVES = (
    "mean_absolute_calibration_error",
    "root_mean_squared_calibration_error",
    "miscalibration_area",
)


@pytest.mark.parametrize("name", ours.__all__)
def test_names_and_arguments_are_those_of_uncertainty_toolbox(name):
    module = uct if hasattr(uct, name) else uct.metrics_calibration
    theirs = inspect.signature(getattr(module, name)).parameters
    here = inspect.signature(getattr(ours, name)).parameters
    assert list(here) == list(theirs)
    defaults = {name: each.default for name, each in here.items()}
    assert defaults == {name: each.default for name, each in theirs.items()}


def test_all_metrics_of_the_readme_are_there(monkeypatch):
    # theirs draws groups by NumPy's global generator
    monkeypatch.setattr(np.random, "choice", np.random.default_rng(1).choice)
    here, theirs = (
        module.metrics.get_all_metrics(*ROWS, verbose=False) for module in (ours, uct)
    )
    assert here.keys() == theirs.keys()
    adversarial = here.pop("adv_group_calibration")
    theirs_adversarial = theirs.pop("adv_group_calibration")
    for group, values in theirs.items():
        assert here[group] == pytest.approx(values, abs=1e-9)
    assert adversarial.keys() == theirs_adversarial.keys()
    for name, values in theirs_adversarial.items():
        found = adversarial[name]
        np.testing.assert_array_equal(found["group_sizes"], values["group_sizes"])
        # of 10 trials each; a standard deviation of one is a third of the mean's
        gap = np.abs(found["adv_group_cali_mean"] - values["adv_group_cali_mean"])
        spread = np.hypot(
            found["adv_group_cali_stderr"], values["adv_group_cali_stderr"]
        )
        assert np.all(gap <= 5 / np.sqrt(10) * spread + 1e-9)


@pytest.mark.parametrize("prop_type", ["interval", "quantile"])
@pytest.mark.parametrize("name", CURVES)
def test_calibration_errors_take_kinds_levels_and_isotonic_models(name, prop_type):
    levels = np.linspace(0, 1, 50)
    model = IsotonicRegression(out_of_bounds="clip").fit(levels, levels**1.5)
    how = {"num_bins": 37, "recal_model": model, "prop_type": prop_type}
    theirs = getattr(uct, name)(*ROWS, **how)
    assert getattr(ours, name)(*ROWS, **how) == pytest.approx(theirs, abs=1e-9)
    plain = getattr(ours, name)(*ROWS, num_bins=37, prop_type=prop_type)
    assert abs(plain - theirs) > 0.005


@pytest.mark.parametrize("prop_type", ["interval", "quantile"])
def test_both_axes_of_the_calibration_curve_are_theirs(prop_type):
    here = ours.get_proportion_lists(*ROWS, 21, None, prop_type)
    theirs = uct.get_proportion_lists(*ROWS, 21, None, prop_type)
    np.testing.assert_allclose(here, theirs, atol=1e-12)
    again = ours.get_proportion_lists_vectorized(*ROWS, 21, None, prop_type)
    np.testing.assert_array_equal(here, again)


@pytest.mark.parametrize("name", ["nll_gaussian", "crps_gaussian"])
def test_scores_that_are_not_scaled_are_sums(name):
    theirs = getattr(uct, name)(*ROWS, scaled=False)
    assert getattr(ours, name)(*ROWS, scaled=False) == pytest.approx(theirs, rel=1e-12)


def test_scores_over_levels_take_their_range():
    of_quantiles = {"scaled": False, "start_q": 0.1, "end_q": 0.7, "resolution": 5}
    theirs = uct.check_score(*ROWS, **of_quantiles)
    assert ours.check_score(*ROWS, **of_quantiles) == pytest.approx(theirs, abs=1e-9)
    of_intervals = {"scaled": False, "start_p": 0.1, "end_p": 0.7, "resolution": 5}
    theirs = uct.interval_score(*ROWS, **of_intervals)
    assert ours.interval_score(*ROWS, **of_intervals) == pytest.approx(theirs, abs=1e-9)


def test_intervals_and_quantiles_are_theirs():
    here = ours.get_prediction_interval(PRED, STD, 0.8)
    theirs = uct.get_prediction_interval(PRED, STD, 0.8)
    np.testing.assert_allclose(here.lower, theirs.lower, atol=1e-9)
    np.testing.assert_allclose(here.upper, theirs.upper, atol=1e-9)
    here = ours.get_quantile(PRED, STD, 0.8)
    theirs = uct.metrics_calibration.get_quantile(PRED, STD, 0.8)
    np.testing.assert_allclose(here, theirs, atol=1e-9)
    here = ours.get_proportion_in_interval(*ROWS, 0.8)
    assert here == uct.get_proportion_in_interval(*ROWS, 0.8)


def test_groups_that_are_drawn_otherwise_are_refused():
    with pytest.raises(InvalidInputError, match="draw_with_replacement=True"):
        ours.adversarial_group_calibration(
            *ROWS, "mean_abs", draw_with_replacement=True
        )


def test_metrics_are_printed_unless_that_is_unwanted(capsys):
    ours.get_all_metrics(*ROWS, verbose=False)
    assert not capsys.readouterr().out
    found = ours.get_all_metrics(*ROWS)
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert printed["crps"] == f"{found['scoring_rule']['crps']:.3f}"
    assert len(printed) == 16
