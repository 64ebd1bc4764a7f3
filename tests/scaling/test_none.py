import numpy as np

import sigmascale as ss


def test_no_scaling_leaves_uncertainties_as_they_are_whatever_the_errors():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 50)
    scaler = ss.NoScaling().fit(u, 7 * rng.normal(size=50))
    assert scaler.predict(u[::-1]).tolist() == u[::-1].tolist()
    assert scaler.describe() == "Uncertainties are left as they are."
