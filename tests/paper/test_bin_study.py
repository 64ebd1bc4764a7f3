"""The bin study: its points are those of direct computations, and are drawn."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.predictions.datasets import make_molecules


@pytest.fixture(scope="module")
def halves():
    p = make_molecules(4000, seed=3).predictions
    return p.take(np.arange(2000)), p.take(np.arange(2000, 4000))


@pytest.mark.parametrize("by", ["u", "mass"])
def test_every_point_is_that_of_a_direct_computation(halves, by):
    calibration, test = halves
    study = ss.scores.bin_study(*halves, numbers=(3, 10), n_draws=10, by=by)
    scalings = [ss.BinwiseScaling(n, by=by, prior_rows=0) for n in (3, 10)]
    for i, scaling in enumerate([*scalings, ss.IsotonicScaling()]):
        q = test.with_y_std(scaling.learn(calibration).map.of_rows(test))
        expected = ss.scores.scorecard(q, ties=test.y_std).to_dict()
        if i == 2:
            assert study.rival == expected
            continue
        assert {name: each[i] for name, each in study.scores.items()} == expected
        target = ss.scores.reference_scores(q, n_draws=10, ties=test.y_std)
        assert study.target["S_tot"][i] == pytest.approx(target.mean["S_tot"])
        assert study.spread["f_v_u"][i] == pytest.approx(target.sd["f_v_u"])


def test_a_sentence_says_where_more_bins_stop_helping(halves):
    study = ss.scores.bin_study(*halves, numbers=(1, 4, 12, 40), n_draws=20)
    s_tot, lowest = study.scores["S_tot"], int(np.argmin(study.scores["S_tot"]))
    limit = s_tot[lowest] + study.spread["S_tot"][lowest]
    enough = study.n_bins[s_tot <= limit][0]
    assert f"with {study.n_bins[lowest]} bins of u" in study.words
    assert lowest == 0 or f"from {enough} bins on" in study.words
    assert "cannot choose" in study.words
    assert study.words in str(study)
    assert len(str(study).splitlines()) == 2 + 4 + 1 + 1


def test_another_loss_and_another_rival_can_be_studied(halves):
    study = ss.scores.bin_study(
        *halves, numbers=(5,), loss="adaptivity", rival=halves[1], n_draws=5
    )
    assert study.rival["S_u"] == ss.scores.scorecard(halves[1])["S_u"]
    closed = ss.scores.bin_study(*halves, numbers=(5,), n_draws=5)
    assert study.scores["NLL"] > closed.scores["NLL"] - 0.1
    assert study.scores["NLL"] != closed.scores["NLL"]
    with pytest.raises(InvalidInputError, match=r"numbers.*ascend"):
        ss.scores.bin_study(*halves, numbers=(5, 3))


def test_the_figure_has_four_panels_of_the_scores(halves):
    study = ss.scores.bin_study(*halves, numbers=(2, 4, 8), n_draws=10)
    name = halves[0].names[1]
    panels = ss.plots.bin_study(study)
    assert [ax.get_title(loc="left") for ax in panels] == ["(a)", "(b)", "(c)", "(d)"]
    for ax, score in zip(panels, ("NLL", "ENCE_u", f"S_{name}", "f_v_u"), strict=True):
        drawn = [line.get_ydata() for line in ax.lines]
        assert any(np.array_equal(study.scores[score], each) for each in drawn)
        assert any(set(each) == {study.rival[score]} for each in drawn)
        assert ax.get_legend() is not None
    figure = panels[0].figure.__class__()
    drawn = ss.plots.bin_study(study, ax=figure.subplots())
    assert figure.axes == drawn
