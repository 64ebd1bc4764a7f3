"""Cards: results that travel, and are found again in the data."""

import hashlib
import json
import re
import subprocess
import sys

import numpy as np
import openpyxl
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError
from sigmascale.report import read_card, rows_sha256, verify_card, write_card

N = 400


def table(seed=0):
    rng = np.random.default_rng(seed)
    u, mass = rng.lognormal(-1, 0.5, N), rng.uniform(size=N)
    error = u * (1 + (mass > 0.7)) * rng.normal(size=N)
    kind = rng.choice(["a", "b"], N)
    pred = rng.normal(size=N)
    columns = {"y": pred + error, "pred": pred, "std": u, "mass": mass, "kind": kind}
    return pl.DataFrame(columns)


def rows(frame):
    return ss.Predictions.from_frame(frame, features=["mass", "kind"])


@pytest.fixture(scope="module")
def judged():
    return ss.validate(rows(table()))


@pytest.fixture(scope="module")
def recalibrator():
    return ss.Recalibrator(ss.RakedScaling()).fit(rows(table(1)))


@pytest.fixture(scope="module")
def after(recalibrator):
    return found_after(recalibrator, rows(table()))


def found_after(recalibrator, p, **how):
    return ss.validate(recalibrator.apply(p), before=p, **how)


@pytest.fixture(params=[".html", ".md", ".json"])
def card(request, tmp_path, after, recalibrator):
    path = tmp_path / f"card{request.param}"
    write_card(path, after, recalibrator=recalibrator)
    return path


def test_a_card_is_found_again_in_the_data(card, after, recalibrator):
    assert verify_card(card, after, recalibrator=recalibrator) == ()


def test_every_number_of_a_card_is_one_of_the_validation(card, after):
    told = json.loads(json.dumps(after.to_dict(), default=str))
    kept = read_card(card)["results"]
    assert kept["bound"] == told["bound"]
    assert kept["summary"] == told["summary"]
    assert set(kept) == {*told, "numbers", "tables"}


def test_an_edited_number_or_word_is_told(card, after, recalibrator):
    text = card.read_text("utf-8")
    bound = json.dumps(read_card(card)["results"]["bound"])
    for old, new in ((bound, "1.01"), ("overconfident", "underconfident")):
        assert old in text
        card.write_text(text.replace(old, new), "utf-8")
        found = verify_card(card, after, recalibrator=recalibrator)
        assert any("edited" in words for words in found)


def test_what_a_page_shows_must_be_what_it_carries(tmp_path, judged):
    path = tmp_path / "card.html"
    write_card(path, judged)
    text = path.read_text("utf-8")
    shown = re.search(r"<td>(\d\.\d\d) \[", text)[1]
    path.write_text(text.replace(f"<td>{shown} [", "<td>1.00 [", 1), "utf-8")
    (words,) = verify_card(path, judged)
    assert "page was edited" in words
    drawn = text.replace("<svg", '<svg class="mine"', 1)
    path.write_text(drawn, "utf-8")
    assert any("picture" in words for words in verify_card(path, judged))


def test_other_rows_another_recalibrator_and_another_seed_are_told(
    card, after, recalibrator
):
    frame = table()
    changed = frame.with_columns(
        y=pl.when(pl.int_range(N) == 7).then(pl.col("y") + 1e-6).otherwise(pl.col("y"))
    )
    others = found_after(recalibrator, rows(changed))
    found = verify_card(card, others, recalibrator=recalibrator)
    assert found[0].startswith("Other rows")
    other = ss.Recalibrator(ss.TemperatureScaling()).fit(rows(table(1)))
    found = verify_card(card, after, recalibrator=other)
    assert found[0].startswith("Another recalibrator")
    seeded = found_after(recalibrator, rows(frame), rng=5)
    found = verify_card(card, seeded, recalibrator=recalibrator)
    assert any(words.startswith("results.") for words in found)


def test_the_hash_of_rows_knows_values_alone(tmp_path):
    frame = table()
    frame = frame.with_columns(
        group=pl.int_range(N) // 4, w=pl.lit(1.0) + pl.col("mass")
    )
    options = {"features": ["mass", "kind"], "groups": "group", "weights": "w"}

    def sha256(frame):
        return rows_sha256(ss.Predictions.from_frame(frame, **options))

    expected = sha256(frame)
    order = np.random.default_rng(0).permutation(N)
    renamed = (pl.lit("g") + pl.col("group").cast(pl.String)).alias("group")
    assert sha256(frame[order]) == expected
    assert sha256(frame.with_columns(renamed)) == expected
    assert sha256(frame.with_columns(w=3 * pl.col("w"))) == expected
    frame.write_csv(tmp_path / "a.csv")
    assert sha256(pl.read_csv(tmp_path / "a.csv")) == expected
    for column in ("y", "std", "mass", "w"):
        one = pl.when(pl.int_range(N) == 3).then(1.1 * pl.col(column))
        assert (
            sha256(frame.with_columns(one.otherwise(column).alias(column))) != expected
        )
    regrouped = frame.with_columns(group=pl.int_range(N) // 5)
    assert sha256(regrouped) != expected


def test_what_is_no_card_is_refused(tmp_path, judged):
    for name, text in (
        ("a.html", "<p>nothing</p>"),
        ("a.md", "# nothing"),
        ("a.json", "{}"),
        ("b.json", '{"sigmascale_card": 99}'),
        ("c.json", "{"),
    ):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(DamagedFileError):
            read_card(path)
    write_card(tmp_path / "whole.json", judged)
    text = (tmp_path / "whole.json").read_text()
    (tmp_path / "far.json").write_text(
        text.replace('"bound": ', '"bound": 1e999, "b": ', 1)
    )
    with pytest.raises(DamagedFileError, match="infinite"):
        read_card(tmp_path / "far.json")
    write_card(tmp_path / "whole.html", judged)
    text = (tmp_path / "whole.html").read_text()
    (tmp_path / "cut.html").write_text(text[: text.index("<pre")])
    with pytest.raises(DamagedFileError, match="cut short"):
        read_card(tmp_path / "cut.html")
    with pytest.raises(InvalidInputError, match=r"\.html, \.md or \.json"):
        write_card(tmp_path / "card.txt", judged)


def test_other_data_with_their_own_hash_are_no_card(tmp_path, judged):
    path = tmp_path / "card.json"
    write_card(path, judged)
    card = json.loads(path.read_text())
    for field, value in (
        ("version", None),
        ("data", 3),
        ("data", {**card["data"], "columns": None}),
        ("recalibrator", "mine"),
        ("pictures", ["by_u"]),
    ):
        forged = card | {field: value}
        if value is None:
            del forged[field]
        del forged["sha256"]
        text = json.dumps(forged, sort_keys=True)
        forged["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        path.write_text(json.dumps(forged))
        with pytest.raises(DamagedFileError, match="fields"):
            verify_card(path, judged)


def test_markup_in_names_is_text(tmp_path):
    name = "<script>alert(1)</script>|`x`"
    frame = table()
    p = ss.Predictions(
        frame["pred"].to_numpy(),
        frame["std"].to_numpy(),
        y_true=frame["y"].to_numpy(),
        features={name: frame["mass"].to_numpy()},
    )
    v = ss.validate(p)
    for ending in ("html", "md"):
        path = tmp_path / f"card.{ending}"
        write_card(path, v, title=name)
        text = path.read_text("utf-8")
        assert "<script" not in text
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert verify_card(path, v) == ()


def test_a_card_of_vectors_says_nothing_of_tails(tmp_path):
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=(N, 3)), rng.lognormal(size=N)
    v = ss.validate(
        ss.Predictions(y, u, y_true=y + u[:, None] * rng.normal(size=(N, 3)))
    )
    for ending in ("html", "md"):
        path = tmp_path / f"card.{ending}"
        write_card(path, v)
        assert "degrees of freedom" not in path.read_text("utf-8")
        assert verify_card(path, v) == ()


# -- the command line ------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv("a.csv")
    table().write_parquet("a.parquet")
    book = openpyxl.Workbook()
    book.active.append(table().columns)
    for row in table()[::-1].iter_rows():
        book.active.append(row)
    book.save("a.xlsx")
    return tmp_path


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_a_card_of_the_command_line_is_verified_in_any_format(
    sigmascale, files, ending
):
    options = ("--all-features", "--card", f"c.{ending}")
    done = sigmascale("check", "a.csv", *options, "--tolerance", "1.4")
    assert done.code in (0, 1, 4)
    for file in ("a.csv", "a.parquet", "a.xlsx"):
        done = sigmascale("verify", f"c.{ending}", file)
        assert done.code == 0, done.out + done.err
    changed = table().with_columns(mass=pl.col("mass") + 1e-6)
    changed.write_csv("b.csv")
    done = sigmascale("verify", f"c.{ending}", "b.csv")
    assert done.code == 1
    assert done.says("Other rows")


def test_a_card_of_recalibrated_rows_asks_for_the_recalibrator(sigmascale, files):
    table(1).write_csv("cal.csv")
    fit = ("fit", "cal.csv", "--all-features", "--scaling", "linear", "-o", "r.json")
    assert sigmascale(*fit).code == 0
    options = ("--recalibrator", "r.json", "--card", "c.html")
    assert sigmascale("check", "a.csv", *options).code in (0, 1, 4)
    assert sigmascale("verify", "c.html", "a.csv").code == 2
    done = sigmascale("verify", "c.html", "a.csv", "--recalibrator", "r.json")
    assert done.code == 0, done.out + done.err


def test_a_card_names_no_file_that_is_read_or_written(sigmascale, files):
    sigmascale("check", "a.csv", "--all-features", "--card", "c.json")
    card = json.loads((files / "c.json").read_text())
    card["options"] |= {"report": "stolen.html"}
    (files / "c.json").write_text(json.dumps(card))
    done = sigmascale("verify", "c.json", "a.csv")
    assert done.code == 1
    assert done.says("edited")
    assert not (files / "stolen.html").exists()


def test_each_kind_of_tampering_is_told_by_the_command_line(sigmascale, files):
    sigmascale("check", "a.csv", "--all-features", "--card", "c.json")
    text = (files / "c.json").read_text()
    card = json.loads(text)
    frame = table()
    others = {
        "Other rows: .* 399 others": frame[1:],
        "Other rows: .* 401 others": pl.concat([frame, frame[:1]]),
        "Other rows": frame.with_columns(kind=pl.col("kind").reverse()),
        "Other columns: .* u, Mass, kind": frame.rename({"mass": "Mass"}),
        "Other columns: .* u, mass, more, kind": frame.with_columns(
            more=pl.col("mass") ** 2
        ),
    }
    for words, other in others.items():
        other.write_csv("b.csv")
        done = sigmascale("verify", "c.json", "b.csv")
        assert (done.code, done.says(words)) == (1, True), words
    edits = {
        "sigmascale 0.0.1; this is": {"version": "0.0.1"},
        "edited": {"date": "2001-01-01"},
        "seed is 7 in the card|edited": {"seed": 7},
        "do not have the hash": {"sha256": "0" * 64},
        "edited.* results.headline": {
            "results": card["results"] | {"headline": "Fine."}
        },
    }
    for words, edit in edits.items():
        (files / "e.json").write_text(json.dumps(card | edit))
        done = sigmascale("verify", "e.json", "a.csv")
        assert (done.code, done.says(words)) == (1, True), words
    (files / "e.json").write_text(text[: len(text) // 2])
    assert sigmascale("verify", "e.json", "a.csv").code == 2


def test_reading_a_card_loads_no_pictures(files):
    code = (
        "import sys; from sigmascale.report.card import read_card\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def notes_of(v):
    """Return what is said of the rows, in the first line and below."""
    return f"{v.headline} {' '.join(words for _, words in v.to_dict()['statements'])}"


def test_rows_that_a_model_was_trained_on_are_told():
    rng = np.random.default_rng(3)
    for n, share, factor in ((1000, 0.02, 1e-3), (1000, 0.1, 1e-9), (300, 0.05, 1e-4)):
        u = rng.lognormal(size=n)
        error = u * rng.standard_t(4, n)
        v = ss.validate(ss.Predictions(y_std=u, error=error), scope="intervals")
        assert "train" not in notes_of(v)
        leaked = rng.choice(n, round(share * n), replace=False)
        error[leaked] *= factor
        v = ss.validate(ss.Predictions(y_std=u, error=error), scope="intervals")
        assert "train" in notes_of(v)
        assert leaked.size <= v.leaked.size <= 1.3 * leaked.size  # some by chance
        assert (v.result == "inconclusive") >= (share > 0.05)


def test_ten_of_a_thousand_rows_that_a_model_was_trained_on_are_told():
    n_told = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(size=1000)
        error = u * rng.normal(size=1000)
        error[:10] *= 1e-3
        v = ss.validate(ss.Predictions(y_std=u, error=error), scope="intervals")
        n_told += "look like training data" in notes_of(v)
    assert n_told >= 18


def test_errors_that_are_exactly_0_are_no_leak():
    rng = np.random.default_rng(4)
    u = rng.lognormal(size=1000)
    error = u * rng.normal(size=1000) * (rng.random(1000) < 0.7)
    v = ss.validate(ss.Predictions(y_std=u, error=error), scope="intervals")
    assert "train" not in notes_of(v)
    assert "exactly 0" in notes_of(v)
