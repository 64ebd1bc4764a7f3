"""Several targets of a row at once."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def targets(n, correlation, rng, n_targets=6):
    """Return rows of each target, whose errors are correlated."""
    shape = np.full((n_targets, n_targets), correlation)
    np.fill_diagonal(shape, 1)
    z = rng.multivariate_normal(np.zeros(n_targets), shape, n)
    z *= np.sqrt(3 / rng.chisquare(5, n))[:, None]  # t(5), of variance 1
    x = rng.uniform(-1, 1, n)
    u = np.exp(0.4 * rng.normal(size=(n, n_targets)))
    y = 1.4 * u * np.exp(0.5 * x)[:, None] * z
    return {
        f"y{k}": ss.Predictions(np.zeros(n), u[:, k], y_true=y[:, k], features={"x": x})
        for k in range(n_targets)
    }


@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_boxes_hold_all_targets_and_are_narrower_than_bonferronis(correlation):
    rng = np.random.default_rng(1)
    known = targets(600, correlation, rng)
    new = targets(4000, correlation, rng)
    fitted = {k: ss.Recalibrator(ss.LinearScaling()).fit(p) for k, p in known.items()}
    boxes = ss.together(fitted, coverage=0.9).boxes(new)
    inside = [
        (box[:, 0] <= new[k].y_true) & (new[k].y_true <= box[:, 1])
        for k, box in boxes.items()
    ]
    assert 0.87 < np.all(inside, axis=0).mean() < 0.93
    widths = [np.log(np.ptp(box, axis=1)).mean() for box in boxes.values()]
    bonferroni = []
    for k, r in fitted.items():
        interval = r.apply(new[k]).distributions.interval(1 - 0.1 / 6)
        bonferroni.append(np.log(np.ptp(interval, axis=1)).mean())
    assert np.mean(widths) < np.mean(bonferroni) - (0.2 if correlation else 0.0)


def test_what_cannot_be_answered_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    rows = targets(200, 0.5, rng, n_targets=2)
    fitted = {
        k: ss.Recalibrator(ss.TemperatureScaling()).fit(p) for k, p in rows.items()
    }
    with pytest.raises(InvalidInputError, match="two targets"):
        ss.together({"y0": fitted["y0"]})
    with pytest.raises(InvalidInputError, match=r"y0.*y1"):
        ss.together(fitted).boxes({"y0": rows["y0"]})
    fitted["y0"].save(tmp_path / "r.json")
    loaded = {**fitted, "y0": ss.load(tmp_path / "r.json")}
    with pytest.raises(InvalidInputError, match="calibration="):
        ss.together(loaded)
    assert ss.together(loaded, calibration=rows).n_rows == 200
