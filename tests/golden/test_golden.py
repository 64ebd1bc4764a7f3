"""Agreement with the published study's own code, run on the published data.

The golden values were made with R 4.2.2, ErrViewLib 1.7.2, boot 1.3-28.1 and the
study's script, version 1.2 (``origin`` in qm9_golden.json). Its *train* set is our
calibration set. Scores depend on how rows with equal X1 or X2 are ordered, so each row
names the order that the script used, and passes it as `ties`.
"""

from typing import NamedTuple

import numpy as np
import pytest

import sigmascale as ss

N_BINS = (20, 40, 80)
VARIABLES = ("u", "X1", "X2")

# golden name -> ours
SCORES = {
    "NLL": "NLL",
    "Scal": "S_cal",
    "Su": "S_u",
    "SX1": "S_X1",
    "SX2": "S_X2",
    "Stot": "S_tot",
    **{f"ENCE{x}": f"ENCE_{x}" for x in VARIABLES},
    **{f"UCE{x}": f"UCE_{x}" for x in VARIABLES},
}
# The script writes ln 2π as 1.837877.
NLL_TRUNCATION = 0.5 * (np.log(2 * np.pi) - 1.837877)


class Row(NamedTuple):
    """A set with the uncertainties to score and the script's order of its rows."""

    rows: ss.Predictions
    ties: np.ndarray


def rank(*keys):
    """Return each row's place in lexicographic order of `keys`, then as in the file."""
    order = np.lexsort(keys[::-1])
    place = np.empty(order.size)
    place[order] = np.arange(order.size)
    return place


def in_notation(molecules):
    p = molecules.predictions
    features = {
        "X1": p.features["mass"],
        "X2": p.features["heteroatom_fraction"],
    }
    return ss.Predictions(y_std=p.y_std, error=p.error, features=features)


def with_groups(molecules):
    p = molecules.predictions
    return ss.Predictions(
        y_std=p.y_std, error=p.error, features={"group": molecules.group}
    )


@pytest.fixture(scope="module")
def sets(qm9):
    return {"train": in_notation(qm9.calibration), "test": in_notation(qm9.test)}


@pytest.fixture(scope="module")
def maps(sets):
    """What bin-wise scalings learn from the calibration set."""
    plans = {"uX1_2D": (("u", "X1"), 20)}
    plans |= {f"{x}_NLL_{n}": (x, n) for x in ("u", "X1") for n in N_BINS}
    return {
        name: ss.BinwiseScaling(n, by=by, prior_rows=0).learn(sets["train"]).map
        for name, (by, n) in plans.items()
    }


@pytest.fixture(scope="module")
def groups(qm9):
    """What a scaling by composition learns, from those with at least 10 rows."""
    labels, counts = np.unique(qm9.calibration.group, return_counts=True)
    known = labels[counts >= 10]
    p = with_groups(qm9.calibration)
    rows = p.take(np.flatnonzero(np.isin(qm9.calibration.group, known)))
    return known, ss.BinwiseScaling(by="group", prior_rows=0).learn(rows).map


@pytest.fixture(scope="module")
def rows(qm9, sets, maps, groups):
    """Every golden row: the set, its uncertainties and the order of ties."""
    isotonic = in_notation(qm9.isotonic_test)
    # sorted by u, where equal u stay in the order of the file
    found = {"test_isotonic": Row(isotonic, rank(isotonic.y_std))}
    for name, p in sets.items():
        by_u, by_x1 = p.y_std, rank(p.features["X1"], p.y_std)

        def scaled(which, p=p):
            return p.with_y_std(maps[which].of_rows(p))

        found[f"{name}_unscaled"] = Row(p, by_u)
        corrected = "_lexfix" if name == "test" else ""
        for n in N_BINS:
            found[f"u_NLL_{n}_{name}"] = Row(scaled(f"u_NLL_{n}"), by_u)
            row = Row(scaled(f"X1_NLL_{n}"), by_x1)
            found[f"X1_NLL_{n}_{name}{corrected}"] = row
        found[f"uX1_2D_{name}"] = Row(scaled("uX1_2D"), by_u)
        found[f"uX1_2D_X1order_{name}"] = Row(scaled("uX1_2D"), by_x1)
    known, scale = groups
    for name, molecules in (("train", qm9.calibration), ("test", qm9.test)):
        kept = np.flatnonzero(np.isin(molecules.group, known))
        u = scale.of_rows(with_groups(molecules).take(kept))
        p = sets[name].take(kept).with_y_std(u)
        found[f"OxNy_{name}_fixed"] = Row(p, kept.astype(float))
    return found


def test_all_scores_of_all_rows_match(golden, rows):
    # As published, new rows are sent to bins by X1 alone although bins are learned on
    # (X1, u), and the last valid group of each number of O atoms is lost: "lexfix" and
    # "fixed" rows are without these slips. Cells are scored in both orders of rows.
    assert set(rows) == set(golden["rows"])
    for name, row in rows.items():
        card = ss.scores.scorecard(row.rows, n_bins=100, ties=row.ties)
        found = {score: card[ours] for score, ours in SCORES.items()}
        found["NLL"] -= NLL_TRUNCATION
        wanted = {score: golden["rows"][name][score] for score in SCORES}
        assert found == pytest.approx(wanted, rel=0, abs=1e-10), name


def test_factors_and_limits_of_bins_match(golden, maps):
    for name, expected in golden["factors"].items():
        if name.startswith(("u_NLL", "X1_NLL")):
            (axis,), (table,) = maps[name].axes, maps[name].tables
            factors = np.exp(table.values[table.classes[0]])[1:]  # 0 is missing
            limits = expected["lwlims" if axis.ties is None else "lwlims1"]
            np.testing.assert_allclose(factors, expected["s"], rtol=0, atol=1e-10)
            np.testing.assert_allclose(axis.edges, limits, rtol=0, atol=1e-10)
            if axis.ties is not None:
                np.testing.assert_allclose(axis.ties, expected["lwlims2"], atol=1e-10)


def test_factors_and_limits_of_cells_match(golden, maps):
    expected, scale = golden["factors"]["uX1_2D"], maps["uX1_2D"]
    (table,) = scale.tables
    values = table.values[np.ix_(*table.classes)]
    factors, counts = np.exp(values)[1:, 1:], np.array(expected["counts"])
    np.testing.assert_allclose(factors, expected["s0"], rtol=0, atol=1e-10)
    assert factors[counts == 0] == pytest.approx([expected["savg"]], abs=1e-10)
    for axis, name in zip(scale.axes, ("lwlimsU", "lwlimsX"), strict=True):
        np.testing.assert_allclose(axis.edges, expected[name], rtol=0, atol=1e-10)


def test_factors_of_groups_match(golden, groups):
    known, scale = groups
    (axis,), (table,) = scale.axes, scale.tables
    factors = np.exp(table.values[table.classes[0]])[1:]
    found = dict(zip(axis.labels, factors, strict=True))
    wanted = {
        f"O{o}N{n}": factor
        for o, of_row in enumerate(golden["factors"]["OxNy"]["s1"])
        for n, factor in enumerate(of_row)
        if factor is not None
    }
    assert sorted(known) == sorted(wanted)
    assert found == pytest.approx(wanted, rel=0, abs=1e-10)


def local_by_variable(row, *, method="bca", n_bins=100, seed=0):
    options = {"n_bins": n_bins, "method": method, "ties": row.ties, "rng": seed}
    return {x: ss.scores.local_statistics(row.rows, by=x, **options) for x in VARIABLES}


def test_fractions_of_valid_bins_agree_within_the_spread_of_seeds(golden, rows):
    for method, largest, mean in (("bca", 0.05, 0.02), ("moments", 0.06, 0.03)):
        deviations = []
        for name, row in rows.items():
            expected = golden["rows"][name]
            # The script wants 100 rows a bin, and so makes 99 bins of the 9982 rows
            # that are left in OxNy_train_fixed.
            n_bins = expected.get("n_fv_bins", 100)
            found = local_by_variable(row, method=method, n_bins=n_bins)
            deviations += [
                abs(found[x].fraction_valid - expected[f"fv{x}"]) for x in VARIABLES
            ]
        assert len(deviations) == 63
        assert max(deviations) <= largest + 1e-12
        assert np.mean(deviations) <= mean


def test_local_statistics_matches_in_every_bin_and_its_bca_limits_but_for_their_noise(
    golden, rows
):
    for name, row, x in (
        ("test_unscaled_u", "test_unscaled", "u"),
        ("test_u40_u", "u_NLL_40_test", "u"),
        ("test_u40_X1", "u_NLL_40_test", "X1"),
        ("test_u40_X2", "u_NLL_40_test", "X2"),
        ("iso_u", "test_isotonic", "u"),
    ):
        expected = {key: np.array(v) for key, v in golden["per_bin"][name].items()}
        p, ties = rows[row]
        found, other = (
            ss.scores.local_statistics(p, by=x, n_bins=100, ties=ties, rng=seed)
            for seed in (0, 1)
        )
        np.testing.assert_allclose(found.value, expected["zms"], rtol=0, atol=1e-10)
        width = expected["up"] - expected["lo"]
        for ours, again, theirs in (
            (found.low, other.low, expected["lo"]),
            (found.high, other.high, expected["up"]),
        ):
            noise = np.std((ours - again) / width)  # of two bootstraps
            deviation = (ours - theirs) / width
            assert np.std(deviation) < 1.5 * noise
            assert abs(np.mean(deviation)) < 4 * noise / np.sqrt(deviation.size)


def test_simulated_scores_agree_with_golden_within_four_standard_errors(golden, sets):
    found = ss.scores.reference_scores(sets["test"], n_draws=500)
    expected = golden["simulated"]
    names = {name.lower(): ours for name, ours in SCORES.items()}
    assert len(expected["mean"]) == 12
    for name, wanted in expected["mean"].items():
        ours = names[name.lower()]
        if ours == "NLL":
            wanted += NLL_TRUNCATION
        # means of 1000 draws, and of 500
        margin = 4 * expected["sd"][name] * np.sqrt(1 / 1000 + 1 / 500)
        assert found.mean[ours] == pytest.approx(wanted, rel=0, abs=margin), name
        assert found.sd[ours] == pytest.approx(expected["sd"][name], rel=0.2), name


def test_scores_stay_within_the_spread_that_the_order_of_ties_gives(golden, rows):
    for name, row in (("iso", "test_isotonic"), ("test_u40", "u_NLL_40_test")):
        expected = golden["scores_over_50_orders_of_ties"][name]
        p = rows[row].rows
        at_random = np.random.default_rng(0).permutation(len(p)).astype(float)
        for ties in (at_random, None):
            card = ss.scores.scorecard(p, n_bins=100, ties=ties)
            for x in VARIABLES:
                low, high = (expected[end][f"S{x}"] for end in ("min", "max"))
                assert low - 1e-9 <= card.s[x] <= high + 1e-9
