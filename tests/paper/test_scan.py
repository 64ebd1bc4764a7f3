"""The scan of bin numbers: its points are those of direct computations, and drawn."""

import numpy as np
import pytest

import sigmascale as ss
from paper import study
from paper.scan import draw_scan, scan_bins
from sigmascale.datasets import make_molecules


@pytest.fixture(scope="module")
def halves():
    p = make_molecules(4000, seed=3).predictions
    return p.take(np.arange(2000)), p.take(np.arange(2000, 4000))


@pytest.mark.parametrize("by", ["u", "mass"])
def test_every_point_is_that_of_a_direct_computation(halves, by):
    training, test = halves
    scan = scan_bins(*halves, (3, 10), seed=0, n_draws=10, by=by)
    scalings = [ss.BinwiseScaling(n, by=by, prior_rows=0) for n in (3, 10)]
    for i, scaling in enumerate([*scalings, ss.IsotonicScaling()]):
        q = test.with_y_std(scaling.learn(training).map.of_rows(test))
        found = ss.scores.scorecard(q, n_bins=study.SCORE_BINS, ties=test.y_std)
        expected = found.to_dict()
        if i == 2:
            assert scan.isotonic.scores.to_dict() == expected
        else:
            assert {name: each[i] for name, each in scan.scores.items()} == expected


def test_the_figure_has_four_panels_of_the_scores(halves):
    scan = scan_bins(*halves, (2, 4, 8), seed=0, n_draws=10)
    nll, ence, s, valid = draw_scan(scan).axes
    name = halves[0].names[1]
    for ax, score in ((nll, "NLL"), (ence, "ENCE_u"), (s, f"S_{name}")):
        drawn = [line.get_ydata() for line in ax.lines]
        assert any(np.array_equal(scan.scores[score], each) for each in drawn)
    drawn = [line.get_ydata() for line in valid.lines]
    assert any(np.array_equal(scan.valid["u"], each) for each in drawn)
