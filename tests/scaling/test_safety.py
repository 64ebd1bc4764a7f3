"""Made-up sets on which a careless recalibrator does harm."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale import SelectedScaling, TemperatureScaling

N_TEST = 20_000


def make(kind, n, seed):
    """Return X, error and categorical columns of n rows to fit and N_TEST to judge."""
    rng = np.random.default_rng([20261115, seed])
    total = n + N_TEST
    sigma = np.exp(0.6 * rng.standard_normal(total))
    u = sigma * np.exp(0.2 * rng.standard_normal(total))
    first, second = rng.uniform(-1, 1, total), rng.standard_normal(total)
    of_u = np.sqrt((0.8 * sigma) ** 2 + 0.2)
    true = of_u * np.exp(0.5 * first + 0.3 * (np.abs(second) > 1))
    features, categorical = [first, second], None
    z = rng.standard_normal(total)
    if kind == "a third of errors is 0":
        z[rng.random(total) < 1 / 3] = 0
    elif kind == "zero errors where u is small":
        z[(u < np.quantile(u, 0.3)) & (rng.random(total) < 0.9)] = 0
    elif kind == "Student-t(3)":
        z = rng.standard_t(3, total) / np.sqrt(3)
    elif kind == "20 noise features":
        features, true = list(rng.standard_normal((20, total))), of_u
    elif kind == "u without information":
        u = np.exp(0.6 * rng.standard_normal(total))
    elif kind == "perfect u":
        true = u
    elif kind == "a category with 3 rows":
        label = rng.integers(0, 5, total).astype(float)
        true = of_u * np.exp(0.2 * label)
        label[:3] = 7
        label[n:][rng.random(N_TEST) < 0.01] = 7
        features, categorical = [first, label], [2]
    elif kind == "40 % missing":
        features[0] = np.where(rng.random(total) < 0.4, np.nan, first)
    return np.column_stack([u, *features]), true * z, categorical


def losses(error, u):
    return 0.5 * (error / u) ** 2 + np.log(u)


# a candidate that diverges on few rows is dropped, as it should be
@pytest.mark.filterwarnings(
    "ignore:candidate .* dropped:sigmascale.exceptions.CandidateDroppedWarning"
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n", "seed"),
    [
        ("200 rows", 200, 1),
        ("200 rows", 200, 2),
        ("50,000 rows", 50_000, 3),
        ("a third of errors is 0", 1500, 4),
        ("zero errors where u is small", 1500, 5),
        ("Student-t(3)", 1500, 6),
        ("20 noise features", 500, 7),
        ("u without information", 1500, 8),
        ("perfect u", 1500, 9),
        ("perfect u", 200, 10),
        ("a category with 3 rows", 1500, 11),
        ("40 % missing", 1500, 12),
    ],
)
def test_the_default_is_never_worse_than_one_factor(kind, n, seed):
    X, error, categorical = make(kind, n, seed)
    fit, new = slice(None, n), slice(n, None)
    scaler = SelectedScaling(categorical=categorical).fit(X[fit], error[fit])
    predicted = scaler.predict(X[new])
    assert np.all(np.isfinite(predicted))
    assert np.all(predicted > 0)
    one_factor = TemperatureScaling().fit(X[fit], error[fit]).predict(X[new])
    change = losses(error[new], predicted) - losses(error[new], one_factor)
    noise = change.std() / np.sqrt(change.size)
    print(f"{kind}: {scaler.name_} {change.mean():+.4f} ± {noise:.4f}")
    assert change.mean() <= 2 * noise + 1e-12
    if kind == "perfect u":
        # what the choice costs is below the noise of the likelihood of the rows that
        # it was made from
        loss = losses(error[new], X[new, 0])
        cost = np.mean(losses(error[new], predicted) - loss)
        assert cost < loss.std() / np.sqrt(n)


@pytest.mark.slow
@pytest.mark.parametrize("Scaler", [ss.RakedScaling, ss.BoostedScaling])
def test_heavy_tails_do_not_make_the_average_uncertainty_too_small(Scaler):
    # what caps enormous errors while learning must not cap the final average
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng([9, seed])
        u, x = rng.uniform(1, 2, 3000), rng.uniform(-1, 1, 3000)
        sigma = u * np.exp(0.5 * x)
        error = sigma * rng.standard_t(3, 3000) / np.sqrt(3)
        X = np.column_stack([u, x])
        found = [
            np.mean((sigma / scaler.fit(X, error).predict(X)) ** 2)
            for scaler in (Scaler(), ss.TemperatureScaling())
        ]
        ratios.append(found[0] / found[1])
    assert np.mean(ratios) == pytest.approx(1, abs=0.04)
