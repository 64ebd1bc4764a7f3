"""The study of the paper: on QM9, with a search of a moment, and on few rows."""

import csv
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from paper import __main__ as program
from paper import figures, pages, study
from paper.study import SCORES, StudyData, StudyRow, published_rows
from sigmascale import scores
from sigmascale.recalibration.scalings import factors

ANALYTIC = ("none", "isotonic", "NLL")
# golden name (R 4.2.2, ErrViewLib 1.7.2, the study's script, version 1.2) -> ours
GOLDEN_NAMES = dict(
    zip(("NLL", "Scal", "Su", "SX1", "SX2", "Stot"), SCORES, strict=True)
)
# The script writes ln 2π as 1.837877.
NLL_TRUNCATION = 0.5 * (np.log(2 * np.pi) - 1.837877)


@pytest.fixture(scope="module")
def on_qm9(qm9):
    """All rows on QM9; optimised rows are left at the analytic factors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "N_RESAMPLES", 300)
        patch.setattr(study, "SEEDS", 2)
        patch.setattr(factors, "MOVES", 20)
        return study.run_tables(StudyData.qm9(qm9), n_draws=20)


def test_all_64_rows_are_there_and_those_with_analytic_factors_as_printed(on_qm9):
    published = published_rows()
    assert [row.key for row in on_qm9.rows] == list(published)
    assert len(published) == 64
    rows = [row for row in on_qm9.rows if row.key[3] in ANALYTIC]
    assert len(rows) == 25
    gaps = []
    for row in rows:
        values = row.as_published or row.ours  # slips of the published code included
        printed = published[row.key]
        for name in SCORES:
            found = f"{values[name] + 0.0:.2f}".replace("-0.00", "0.00")
            assert found == f"{printed[name]:.2f}", (row.key, name)
        gaps += [abs(values[name] - printed[name]) for name in study.VALID]
    # of valid fractions, but for the bootstrap
    assert max(gaps) < 0.08
    assert np.mean(gaps) < 0.02


def test_only_rows_with_a_slip_differ_and_every_difference_has_a_name(on_qm9):
    differing = {
        row.key
        for row in on_qm9.rows
        if row.key[3] in ANALYTIC and any(row.differs(name) for name in SCORES)
    }
    assert differing == {
        *((n, "X1", "test", "NLL") for n in (20, 40, 80)),
        *((20, "OxNy", which, "NLL") for which in ("training", "test")),
    }
    reasons = {row.key: pages.explain(row) for row in on_qm9.rows}
    assert "unexplained" not in reasons.values()
    assert reasons[20, "X1", "test", "NLL"] == "mapping"
    assert reasons[20, "OxNy", "test", "NLL"] == "groups lost"
    unknown = StudyRow(
        (20, "u", "test", "NLL"), {"S_u": 0.216}, None, None, {"S_u": 0.21}
    )
    assert pages.explain(unknown) == "unexplained"


def test_our_rows_match_the_published_code_with_and_without_its_slips(on_qm9, golden):
    ours = {
        (20, "none", "training", "none"): "train_unscaled",
        (80, "none", "test", "isotonic"): "test_isotonic",
        (40, "u", "test", "NLL"): "u_NLL_40_test",
        (80, "X1", "training", "NLL"): "X1_NLL_80_train",
        **{(n, "X1", "test", "NLL"): f"X1_NLL_{n}_test_lexfix" for n in (20, 40, 80)},
        (20, "u&X1", "training", "NLL"): "uX1_2D_X1order_train",
        (20, "u&X1", "test", "NLL"): "uX1_2D_X1order_test",
        (20, "OxNy", "training", "NLL"): "OxNy_train_fixed",
        (20, "OxNy", "test", "NLL"): "OxNy_test_fixed",
    }
    for key, name in ours.items():
        expected = {score: golden["rows"][name][score] for score in GOLDEN_NAMES}
        assert_matches(on_qm9[key].ours, expected)
    # the same program with its slips: S_u and S_tot
    for key, values in {
        (20, "X1", "test", "NLL"): (0.334584836913592, 1.12592929371636),
        (40, "X1", "test", "NLL"): (0.299888238111059, 1.11006426170954),
        (80, "X1", "test", "NLL"): (0.338490649183157, 1.15682128919228),
        (20, "OxNy", "training", "NLL"): (0.297347449971085, 0.850471685086187),
        (20, "OxNy", "test", "NLL"): (0.282937467439708, 0.907109449168819),
    }.items():
        found = on_qm9[key].as_published
        assert (found["S_u"], found["S_tot"]) == pytest.approx(values, rel=0, abs=1e-10)


def assert_matches(values, expected):
    found = {name: values[ours] for name, ours in GOLDEN_NAMES.items()}
    found["NLL"] -= NLL_TRUNCATION
    assert found == pytest.approx(expected, rel=0, abs=1e-10)


def test_the_page_of_deviations_has_both_numbers_of_each(on_qm9):
    page = pages.deviations_page(on_qm9)
    titles = re.findall(r"^## ([^:\n]*)", page, flags=re.MULTILINE)
    names = ("Sign of Eq. 2", "mapping", "optimiser", "one draw", "groups lost")
    assert titles == [*names, "bootstrap"]
    # bins, rows in another bin; S_tot published, with the slip, and ours
    assert re.search(r"\| 80 \| 5\d% \| 1.16 \| 1.16 \| 1.01 \|", page)
    assert "(112 rows of the training set)" in page
    assert "without scaling them (16 rows)" in page
    # S_ada of u bins: closed form, published, ours
    assert "| 20 | u | S_ada | 0.618 | 0.62 | 0.553 |" in page
    # fractions of valid bins over seeds, and the published limits
    seeds = r"\| isotonic \| u \| 0.8\d \| 0.8\d+ \| 0.8\d \| \[0.73, 0.89\]"
    assert re.search(seeds, page)


# --- on few synthetic molecules: the whole program ------------------------------------


# cells of the smaller set hold few rows
pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.FewerBinsWarning"
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "output"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "N_RESAMPLES", 50)
        patch.setattr(study, "SEEDS", 2)
        patch.setattr(factors, "MOVES", 20)
        few = StudyData.synthetic(0, 3000)
        options = {"n_draws": 20, "step": 60}
        patch.setattr(figures, "figure2", lambda *_, **__: Figure())
        patch.setattr(figures, "figure3", lambda _: Figure())
        paths = program.run(few, folder, **options)
        again = study.run_tables(few, n_draws=20)
    return folder, paths, again


def test_all_files_are_written_and_the_same_seed_gives_the_same_bytes(written):
    folder, paths, again = written
    assert {path.name for path in paths} == {path.name for path in folder.iterdir()}
    texts = {"tables.md", "tables.csv", "deviations.md", "beyond.md", "beyond.csv"}
    pictures = {f"figure{k}.{end}" for k in (1, 2, 3) for end in ("png", "pdf")}
    assert {path.name for path in paths} == texts | pictures
    assert all(path.stat().st_size > 500 for path in paths)
    for name, text in (
        ("tables.md", pages.tables_page(again)),
        ("tables.csv", pages.tables_csv(again)),
        ("deviations.md", pages.deviations_page(again)),
    ):
        assert (folder / name).read_bytes() == text.encode(), name


def test_tables_are_whole_and_have_no_published_values_for_other_data(written):
    folder, *_ = written
    for path in folder.glob("*.md"):
        for table in re.findall(
            r"(?:^\|.*\n?)+", path.read_text("utf-8"), re.MULTILINE
        ):
            lines = table.splitlines()
            assert re.fullmatch(r"\|( --- \|)+", lines[1])
            assert len({line.count("|") for line in lines}) == 1
    text = (folder / "tables.md").read_text("utf-8")
    assert "| published |" not in text
    assert "\\*" not in text
    assert text.count("| slip kept |") == 3 * 4 + 2  # X1 test rows, and OxNy
    with (folder / "tables.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, strict=True))
    names = ("n_bins", "binning", "dataset", "scaling")
    keys = [tuple(x[k] for k in names) for x in lines if x["source"] == "ours"]
    assert keys == [(str(n), *rest) for n, *rest in published_rows()]
    assert np.median([len(line["S_u"].partition(".")[2]) for line in lines]) >= 15
    page = (folder / "deviations.md").read_text("utf-8")
    assert "These are not the paper's data" in page
    pattern = r"^\| \d0 \| \w+ \| S_\w+ \| ([\d.]+) \| - \| ([\d.]+) \|"
    rows = re.findall(pattern, page, re.MULTILINE)
    assert len(rows) == 18
    assert all(float(reached) <= float(closed) for closed, reached in rows)


def test_figures_have_the_panels_and_lines_of_the_paper():
    data = StudyData.synthetic(0, 2000)
    first = figures.figure1(data)
    second = figures.figure2(data, seed=0, step=40, n_draws=5)
    for figure in (first, second):
        letters = [ax.get_title(loc="left") for ax in figure.axes]
        assert letters == ["(a)", "(b)", "(c)", "(d)"]
    curves, *local = first.axes
    assert [line.get_label() for line in curves.lines] == ["training", "test"]
    assert [ax.get_xlabel() for ax in local] == list(figures.WORDS.values())
    nll, isotonic = second.axes[0].lines[:2]
    assert nll.get_xdata().tolist() == [2, 42, 82]
    authors = data.test.with_y_std(data.isotonic)
    assert set(isotonic.get_ydata()) == {scores.nll(authors)}


def test_panels_fill_their_figure_and_explain_marks_within_the_axes():
    data = StudyData.synthetic(0, 2000)
    u = {"none": data.test.y_std, "isotonic": data.isotonic, "boosted": data.isotonic}
    first = figures.figure1(data)
    third = figures.figure3(study.Beyond(data, {}, u, {}, 0))
    for figure, n_columns in ((first, 2), (third, 3)):
        figure.draw_without_rendering()
        heights = [ax.get_position().height for ax in figure.axes[::n_columns]]
        assert sum(heights) > 0.65
        for ax in figure.axes:
            if (legend := ax.get_legend()) is not None:
                (left, low), (right, high) = ax.transAxes.inverted().transform(
                    legend.get_window_extent()
                )
                assert 0 <= min(left, low) < max(right, high) <= 1
    marks = [text.get_text() for text in first.axes[1].get_legend().texts]
    assert marks[-2:] == ["that miss 1", "all rows"]
    assert not any(ax.get_title(loc="left") for ax in third.axes)


def test_the_program_takes_a_folder_and_says_what_it_wrote(
    tmp_path, monkeypatch, capsys
):
    calls = []
    monkeypatch.setattr(program, "run", lambda *a, **k: calls.append((a, k)) or a[1:])
    program.main(["--out", str(tmp_path), "--draws", "7", "--step", "3"])
    (data, out), options = calls[0]
    assert (data.published, out) == (False, tmp_path)
    assert options == {"seed": 0, "n_draws": 7, "step": 3}
    assert "synthetic" in capsys.readouterr().out
    with pytest.raises(ValueError, match="folder"):
        program.main(["--data", str(tmp_path / "nowhere")])
