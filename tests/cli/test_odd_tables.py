"""Whatever a table holds, commands end with an answer or with a sentence.

Tables are drawn from a seed, 20 of them or as many as an environment variable says:

    SIGMASCALE_TABLES=1000 make test PYTEST_ARGS=tests/cli/test_odd_tables.py
"""

import datetime
import json
import os

import numpy as np
import polars as pl
import pytest

from sigmascale.cli.file_formats import write
from sigmascale.recalibration.scalings import SCALINGS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N_TABLES = int(os.environ.get("SIGMASCALE_TABLES", "20"))
N_ROWS = (1, 2, 3, 5, 10, 19, 20, 21, 39, 40, 41, 60, 100, 150, 300)
DAY = datetime.date(2024, 1, 1)
# what columns hold: each of a random generator and the number of rows
U = (
    lambda rng, n: rng.lognormal(size=n),
    lambda rng, n: np.full(n, 0.5),
    lambda rng, n: rng.choice([0.1, 0.2, 0.5], n),
    lambda rng, n: rng.lognormal(size=n) * 1e60,
    lambda rng, n: rng.lognormal(size=n) * 1e-60,
    lambda rng, n: np.round(rng.lognormal(size=n), 1) + 0.1,
    lambda rng, n: 10.0 ** rng.uniform(-30, 30, n),
    lambda rng, n: rng.integers(1, 5, n).astype(float),
    lambda rng, n: rng.lognormal(size=n) * (rng.random(n) > 0.1),
)
Z = (
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: np.zeros(n),
    lambda rng, n: np.full(n, 2.0),
    lambda rng, n: rng.normal(size=n) * (rng.random(n) < 0.5),
    lambda rng, n: rng.standard_cauchy(n),
    lambda rng, n: np.where(np.arange(n) == n // 2, 1e12, rng.normal(size=n)),
    lambda rng, n: np.resize([1.0, -1.0], n),
    lambda rng, n: np.abs(rng.normal(size=n)),
    lambda rng, n: np.where(np.arange(n) == 0, 1.0, 0.0),
)
FEATURES = (
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: np.ones(n),
    lambda rng, n: [None] * n,
    lambda rng, n: [float(k) if rng.random() < 0.1 else None for k in range(n)],
    lambda rng, n: rng.random(n) < 0.3,
    lambda rng, n: rng.choice(["a", "b", "01", "NA", "1.0", "", "<b>"], n),
    lambda rng, n: [f"row {k}" for k in range(n)],
    lambda rng, n: ["x"] * n,
    lambda rng, n: [DAY + datetime.timedelta(int(k)) for k in rng.integers(0, 9, n)],
    lambda rng, n: rng.integers(0, 3, n),
    lambda rng, n: np.where(np.arange(n) == 1, np.inf, rng.normal(size=n)),
    lambda rng, n: rng.normal(size=n) * 1e300,
    lambda rng, n: rng.normal(size=n) * 1e-300,
    lambda rng, n: rng.normal(size=n) + 1e15,
    lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
)
OTHERS = {
    "--weight": (
        lambda rng, n: rng.uniform(0.5, 2, n),
        lambda rng, n: 10.0 ** rng.uniform(-40, 0, n),
        lambda rng, n: 1.0 * (rng.random(n) < 0.5),
        lambda rng, n: 10.0 ** rng.uniform(-300, 300, n),
    ),
    "--groups": (
        lambda rng, n: np.zeros(n, int),
        lambda rng, n: np.arange(n) // 2,
        lambda rng, n: rng.choice(["a", "b", "c"], n),
        lambda rng, n: [None if rng.random() < 0.1 else "a" for _ in range(n)],
    ),
    "--time": (
        lambda rng, n: np.arange(n) / 2,
        lambda rng, n: [str(DAY + datetime.timedelta(k)) for k in range(n)],
        lambda rng, n: np.ones(n),
    ),
}


def odd_table(rng, n):
    """Return a table, and the options that name its columns."""

    def one_of(makers):
        return makers[rng.integers(len(makers))](rng, n)

    u = one_of(U)
    error = np.where(u > 0, u, 1.0) * one_of(Z)
    value = rng.normal(size=n)
    table = {"u": u, "V": value, "R": value + error}
    words = ["--reference", "R", "--prediction", "V", "--uncertainty", "u"]
    for name in ("x", "y w", "<k>")[: rng.integers(4)]:
        table[name] = one_of(FEATURES)
        words += [["--feature", name], ["--label", name], []][rng.integers(3)]
    for option, makers in OTHERS.items():
        if rng.random() < 0.3:
            table[option[2:]] = one_of(makers)
            words += [option, option[2:]]
    extra = ("--all-features", 0.2), ("--drop-missing", 0.4), ("--min-std=0.01", 0.4)
    words += [option for option, share in extra if rng.random() < share]
    return pl.DataFrame(table, strict=False), words


@pytest.mark.parametrize("seed", range(N_TABLES))
def test_odd_tables_end_in_an_answer_or_a_sentence(
    seed, sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(seed)

    def some(words, share=0.3):
        return words if rng.random() < share else []

    def done(*words):
        outcome = sigmascale(*words)
        assert outcome.code in (0, 1, 2, 4), f"{words}\n{outcome.err}"
        return outcome

    table, words = odd_table(rng, int(rng.choice(N_ROWS)))
    file = f"a.{rng.choice(['csv', 'parquet', 'jsonl', 'xlsx'])}"
    write(table.lazy(), file)
    check = [*words, *some(["--report", "c.html"]), *some(["--card", "card.html"])]
    outcome = done("check", file, *check, "--scores", "--json")
    if outcome.code != 2:

        def refuse(constant):
            raise AssertionError(constant)

        json.loads(outcome.out, parse_constant=refuse)
        if "--card" in check:
            assert done("verify", "card.html", file).code == 0

    fit = [*words, "--scaling", rng.choice([*SCALINGS]), "-o", "r.json"]
    fit += some(["--bias", rng.choice(["constant", "auto"])])
    fit += some(["--hold-out", "0.4"]) + some(["--parts", rng.choice(table.columns)])
    if done("fit", file, *fit).code == 0:
        named = words[:6]
        done("show", "r.json")
        done("apply", "r.json", file, "-o", "o.parquet", *some(["--quantiles", "0.1"]))
        done("check", file, *named, "--recalibrator", "r.json", "--report", "a.html")
        done("watch", "r.json", file, *some(["--follow", "0.9"]))
        new, _ = odd_table(rng, 30)
        write(new.lazy(), "new.csv")
        done("apply", "r.json", "new.csv", "-o", "new.jsonl")
