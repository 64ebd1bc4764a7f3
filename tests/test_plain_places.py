"""What must not matter does not: roundings, last bits, units, and the order of rows.

What else is plain stands with its room: arrays that change later and times in
tests/predictions, sheets, keys that occur twice, odd names and conditions on missing
values in tests/cli, answers out of step in tests/app.
"""

import io
import json
import zipfile

import numpy as np
import openpyxl
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.recalibration.scalings import SCALINGS

# of heavy tails that some of these sets have, and of bins with few rows
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LEVELS = [0.05, 0.5, 0.95]


class Rows:
    """Rows with a number, a label, and groups, of which all can be made anew."""

    def __init__(self, seed, n=300, *, rounded=False):
        rng = np.random.default_rng(seed)
        self.kind = rng.choice(["a", "b", "01"], n)
        self.x = np.round(rng.normal(size=n), 1 if rounded else 3)
        self.u = rng.lognormal(-1, 0.5, n)
        self.groups = rng.integers(0, n // 4, n)
        z = rng.normal(size=n) + 0.7 * rng.normal(size=n // 4)[self.groups]
        self.error = z * self.u * np.exp(0.5 * (self.kind == "a") + 0.3 * self.x)
        if rounded:  # many rows, and many ratios, are then equal
            self.u, self.error = np.round(self.u, 1) + 0.1, np.round(self.error, 1)
        self.rng = rng

    def made(self, unit=1.0, order=slice(None), **other):
        x = other.pop("x", self.x)
        groups = other.pop("groups", None)
        return ss.Predictions(
            y_std=unit * other.pop("u", self.u)[order],
            error=unit * self.error[order],
            features={"x": x[order], "kind": self.kind[order]},
            groups=None if groups is None else groups[order],
            **other,
        )


def fitted(name, p):
    bias = "auto" if name == "linear" else None
    return ss.Recalibrator(SCALINGS[name](), bias=bias).fit(p)


def answers(validation):
    return {name: check.result for name, check in validation.checks.items()}


def limits_of(validation):
    return {
        name: (check.subgroup.low, check.subgroup.high)
        for name, check in validation.checks.items()
        if check.subgroup is not None
    }


def same_verdicts(found, expected):
    assert answers(found) == answers(expected)
    for name, limits in limits_of(expected).items():
        here = limits_of(found)[name]
        np.testing.assert_allclose(here, limits, rtol=1e-9, err_msg=name)


# -- weights ---------------------------------------------------------------------------


# root mean square of what a rounding to one decimal may change: the choice of trees and
# the place of edges depend on all weights, a line does not
BY_ROUNDING = {"linear": 0.01, "temperature": 0.01, "isotonic": 0.03}


def test_a_rounding_of_weights_changes_answers_by_no_more_than_rounding():
    rows = Rows(0)
    w = rows.rng.uniform(0.5, 5, rows.u.size)
    whole = np.round(w) + 1

    def scales(name, weights):
        p = rows.made(weights=weights)
        return ss.Recalibrator(SCALINGS[name]()).fit(p).predict(rows.made())

    for name in SCALINGS:
        nearly, expected = scales(name, whole + 1e-7), scales(name, whole)
        np.testing.assert_allclose(nearly, expected, rtol=1e-6, err_msg=name)
        change = np.log(scales(name, np.round(w, 1)) / scales(name, w))
        assert np.sqrt(np.mean(change**2)) < BY_ROUNDING.get(name, 0.12), name
    found, nearly = (
        ss.validate(rows.made(weights=each)) for each in (whole, whole + 1e-7)
    )
    assert answers(found) == answers(nearly)
    for name, limits in limits_of(found).items():
        here = limits_of(nearly)[name]
        np.testing.assert_allclose(here, limits, rtol=1e-5, err_msg=name)


def test_whole_weights_are_no_repeats():
    rows = Rows(1)
    w = rows.rng.integers(1, 4, rows.u.size)
    p = rows.made(weights=w)
    assert len(p) == rows.u.size
    assert p.n_effective == pytest.approx(w.sum() ** 2 / (w @ w))
    for name in SCALINGS:
        r, other = (fitted(name, rows.made(weights=k * w)) for k in (1, 1 / 7))
        np.testing.assert_allclose(other.predict(p), r.predict(p), rtol=1e-9)


def test_a_fit_to_weights_of_any_spread_can_be_loaded(tmp_path):
    rows = Rows(3)
    for decades in (8, 16, 40, 300):  # as Boltzmann weights may have
        weights = 10.0 ** rows.rng.uniform(-decades, 0, rows.u.size)
        p = rows.made(weights=weights)
        for name in SCALINGS:
            r = fitted(name, p)
            r.save(tmp_path / "r.json")
            again = ss.load(tmp_path / "r.json")
            np.testing.assert_array_equal(again.predict(p), r.predict(p), name)


# -- last bits -------------------------------------------------------------------------


def test_last_bits_of_features_and_uncertainties_move_nothing():
    rows = Rows(2)
    x, u = rows.x / 3, rows.u  # no short decimal numbers
    p = rows.made(x=x)

    def as_written(values):
        return np.array([float(f"{v:.15g}") for v in values])

    others = [
        rows.made(x=np.nextafter(x, np.inf)),
        rows.made(x=np.nextafter(x, -np.inf)),
        rows.made(x=as_written(x), u=as_written(u)),
        rows.made(x=x, u=np.nextafter(u, 0)),
    ]
    for name in SCALINGS:
        r = fitted(name, p)
        expected = r.predict(p)
        # bin-wise scaling has the edges of the paper: values of rows
        for q in others[:3] if name == "binwise" else others:
            np.testing.assert_allclose(
                fitted(name, q).predict(q), expected, rtol=1e-9, err_msg=name
            )
            if name != "binwise":
                np.testing.assert_allclose(
                    r.predict(q), expected, rtol=1e-9, err_msg=name
                )


# -- units, order and names ------------------------------------------------------------


def test_the_unit_matters_to_no_quantile_and_to_no_verdict():
    for rows in (Rows(4), Rows(5, rounded=True)):
        p = rows.made(groups=rows.groups)
        verdicts = ss.validate(p)
        quantiles = {
            name: fitted(name, p).apply(p).distributions.quantile(LEVELS)
            for name in SCALINGS
        }
        for unit in (1e-10, 1e10):
            q = rows.made(unit, groups=rows.groups)
            same_verdicts(ss.validate(q), verdicts)
            for name, expected in quantiles.items():
                found = fitted(name, q).apply(q).distributions.quantile(LEVELS)
                np.testing.assert_allclose(
                    found / unit, expected, rtol=1e-9, atol=1e-9, err_msg=name
                )


@pytest.mark.parametrize("decimals", range(4))
def test_unit_zero_and_sign_matter_to_no_u_where_values_are_on_a_grid(decimals):
    rng = np.random.default_rng(decimals)
    n, step = 200, 10.0**-decimals
    y = np.round(rng.normal(5, 3, n), decimals)
    u = np.round(rng.lognormal(0.3, 0.5, n), decimals) + step
    truth = np.round(y + u * (0.3 + 1.3 * rng.normal(size=n)), decimals)
    features = {"x": np.round(rng.normal(size=n), 1)}
    groups = rng.integers(0, n // 3, n)

    def u_new(scaling, options, factor=1.0, zero=0.0, sign=1.0):
        unit = factor * sign
        p = ss.Predictions(
            unit * (y + zero),
            factor * u,
            y_true=unit * (truth + zero),
            features=features,
            groups=groups if options["hold_out"] else None,
        )
        return ss.Recalibrator(scaling(), **options).fit(p).predict(p) / factor

    for name, scaling in SCALINGS.items():
        for bias, hold_out in (("auto", 0.0), ("constant", 0.3)):
            options = {"bias": bias, "hold_out": hold_out}
            expected = u_new(scaling, options)
            for other in ({"factor": 1e-10, "sign": -1.0}, {"zero": 1000.0}):
                found = u_new(scaling, options, **other)
                np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)


def test_the_order_of_rows_and_the_names_of_groups_matter_to_nothing():
    for rows, n_turns in ((Rows(6), 10), (Rows(7, rounded=True), 4)):
        n = rows.u.size
        p = rows.made(groups=rows.groups)
        verdicts = ss.validate(p)
        names = np.array([f"g{i}" for i in rows.rng.permutation(10**4)[:n]])
        for turn in range(n_turns):
            order = rows.rng.permutation(n)
            groups = rows.groups if turn % 2 else names[rows.groups]
            same_verdicts(ss.validate(rows.made(order=order, groups=groups)), verdicts)
        for name in SCALINGS:
            expected = fitted(name, p).apply(p).distributions.quantile(LEVELS)
            order = rows.rng.permutation(n)
            q = rows.made(order=order, groups=names[rows.groups])
            found = fitted(name, q).apply(q).distributions.quantile(LEVELS)
            np.testing.assert_allclose(
                found, expected[order], rtol=1e-9, atol=1e-12, err_msg=name
            )


def test_shuffled_files_have_the_same_exit_codes_and_scores(sigmascale, tmp_path):
    rows = Rows(8)
    table = pl.DataFrame(
        {"E": rows.error, "u": rows.u, "x": rows.x, "kind": rows.kind}
    ).with_columns(mol=rows.groups)
    told = []
    options = ("--feature", "x", "--label", "kind", "--groups", "mol", "--json")
    for turn in range(4):
        file = tmp_path / f"{turn}.csv"
        order = (
            np.arange(rows.u.size) if not turn else rows.rng.permutation(rows.u.size)
        )
        table[order].write_csv(file)
        done = sigmascale("check", file, *options)
        checks = json.loads(done.out)["checks"]
        told.append((done.code, {k: v["result"] for k, v in checks.items()}))
    assert told[0][0] in (0, 1, 4)
    assert all(each == told[0] for each in told)


# -- messages have a size --------------------------------------------------------------

LONG = "ä" * 5000


class Unspeakable:
    def __repr__(self):
        raise RuntimeError


def refusals():
    """What is refused because of something endless."""
    u, x = np.ones(60), np.arange(60.0)
    p = ss.Predictions(y_std=u, error=x, features={"x": x})
    r = ss.Recalibrator(ss.LinearScaling())
    frame = pl.DataFrame({"u": u, "E": x, LONG: [LONG] * 60})
    yield lambda: ss.Predictions(y_std=[1.0, LONG])
    yield lambda: ss.Predictions(y_std=u, features={LONG: [LONG, *x[1:]]}, error=[LONG])
    yield lambda: ss.Predictions(y_std=u, features={LONG: np.full(60, np.inf)})
    yield lambda: ss.Predictions(y_std=u, time=[LONG] * 60)
    yield lambda: ss.Predictions(y_std=u, weights=[LONG] * 60)
    yield lambda: ss.Predictions.from_frame(frame, y_std=LONG, error="E")
    yield lambda: ss.Predictions.from_frame(frame, y_std="x" * 5000, error="E")
    yield lambda: ss.Recalibrator(ss.BinwiseScaling(LONG)).fit(p)
    yield lambda: ss.Recalibrator(LONG).fit(p)
    yield lambda: ss.Recalibrator(ss.LinearScaling(), bias=LONG).fit(p)
    yield lambda: ss.Recalibrator(ss.LinearScaling(), distribution=LONG).fit(p)
    yield lambda: ss.validate(p, tolerance=LONG)
    yield lambda: ss.validate(p, tolerance=Unspeakable())
    yield lambda: ss.validate(LONG)
    yield lambda: ss.scores.local_statistics(p, by=LONG)
    yield lambda: ss.frames.apply(r.fit(p), frame.lazy(), y_std=LONG)
    yield lambda: ss.compare({LONG: p, "other": LONG})
    yield lambda: r.fit(p).predict(ss.Predictions(y_std=u, features={LONG: x}))


def test_no_message_of_the_library_is_endless():
    for number, refuse in enumerate(refusals()):
        with pytest.raises((ValueError, TypeError)) as found:
            refuse()
        assert "ä" * 81 not in str(found.value), number
        assert "x" * 81 not in str(found.value), number


def test_no_message_of_the_command_line_is_endless(sigmascale, tmp_path):
    file = tmp_path / "a.csv"
    rows = "".join(f"{i % 7 - 3},{1 + i % 5},{LONG}\n" for i in range(40))
    file.write_text(f"E,u,{LONG}\n{rows}", encoding="utf-8")
    for options in (
        ("--feature", "x" * 5000),
        ("--uncertainty", LONG),
        ("--where", f"{LONG} < 3"),
        ("--where", LONG + "'"),
        ("--weight", LONG),
        ("--time", LONG),
        ("--tolerance", "1" * 5000),
    ):
        done = sigmascale("check", file, *options)
        assert done.code == 2, options[0]
        assert "ä" * 81 not in done.err, options[0]
        assert "x" * 81 not in done.err, options[0]
        assert len(done.err) < 1000, options[0]


# -- files -----------------------------------------------------------------------------


def test_a_sheet_is_what_it_holds_and_not_what_it_claims(sigmascale, tmp_path):
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for row in [("E", "u"), *((i % 7 - 3, 1 + i % 5) for i in range(40))]:
        book.active.append(row)
    book.save(buffer)
    for claim in ("A1:XFD1048576", "A1:B2", "A1"):
        path = tmp_path / "a.xlsx"
        with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                part = old.read(name).replace(
                    b'ref="A1:B41"', f'ref="{claim}"'.encode()
                )
                new.writestr(name, part)
        assert claim.encode() in zipfile.ZipFile(path).read("xl/worksheets/sheet1.xml")
        done = sigmascale("check", path, "--json")
        assert done.code in (0, 1, 4), done.err
        assert json.loads(done.out)["data"]["rows"] == 40


def test_what_is_saved_loads_without_looking_at_annotations(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise AssertionError

    rows = Rows(9, 200)
    p = rows.made(groups=rows.groups)
    monkeypatch.setattr("typing.get_type_hints", refuse)
    for name in SCALINGS:
        r = fitted(name, p)
        r.save(tmp_path / "r.json")
        np.testing.assert_array_equal(
            ss.load(tmp_path / "r.json").predict(p), r.predict(p)
        )
    monitor = ss.Monitor(reference=p).update(p)
    monitor.save(tmp_path / "m.json")
    assert ss.load(tmp_path / "m.json", kind=ss.Monitor).state == monitor.state
