"""The study of the paper: on QM9, with the optimiser switched off, and on few rows."""

import contextlib
import csv
import functools
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from sigmascale.exceptions import InvalidInputError
from sigmascale.judging.bin_numbers import scan_bins
from sigmascale.judging.local import check_settings
from sigmascale.paper import figures, pages, program, study
from sigmascale.paper.study import SCORES, StudyData, StudyRow, published_rows
from sigmascale.scaling import (
    BinwiseScaling,
    LinearScaling,
    SelectedScaling,
    TemperatureScaling,
)

ANALYTIC = ("none", "isotonic", "NLL")
FILES = {
    *("tables.md", "tables.tex", "tables.csv", "deviations.md"),
    *("figure1.png", "figure1.pdf", "figure2.png", "figure2.pdf"),
}


@contextlib.contextmanager
def quick_study(max_evaluations):
    """Let optimised fits stop soon, and the bootstrap draw less."""
    with pytest.MonkeyPatch.context() as patch:
        fewer = functools.partial(BinwiseScaling, max_evaluations=max_evaluations)
        patch.setattr(study, "BinwiseScaling", fewer)
        quicker = functools.partial(check_settings, n_resamples=300)
        patch.setattr(study, "check_settings", quicker)
        yield patch


# --- on QM9: what needs no optimiser


@pytest.fixture(scope="module")
def on_qm9(qm9):
    """All rows on QM9; optimised rows are left at the analytic factors."""
    with quick_study(1):
        return study.run_tables(StudyData.qm9(qm9), n_draws=20)


def test_all_64_rows_are_there_in_the_order_of_the_paper(on_qm9):
    published = published_rows()
    assert [row.key for row in on_qm9.rows] == list(published)
    assert len(published) == 64
    for row in on_qm9.rows:
        assert row.published == published[row.key]


def test_rows_with_analytic_factors_reproduce_every_printed_score(on_qm9):
    rows = [row for row in on_qm9.rows if row.key[3] in ANALYTIC]
    assert len(rows) == 25
    for row in rows:
        values = row.as_published or row.ours  # slips of the published code included
        for name in SCORES:
            printed = f"{row.published[name]:.2f}"
            assert f"{values[name] + 0.0:.2f}".replace("-0.00", "0.00") == printed, (
                row.key,
                name,
            )


def test_only_rows_with_a_slip_differ_from_what_was_published(on_qm9):
    differing = {
        row.key
        for row in on_qm9.rows
        if row.key[3] in ANALYTIC and any(row.differs(name) for name in SCORES)
    }
    assert differing == {
        *((n, "X1", "test", "NLL") for n in (20, 40, 80)),
        *((20, "OxNy", which, "NLL") for which in ("training", "test")),
    }


def test_no_difference_is_left_unexplained(on_qm9):
    reasons = {row.key: pages.explain(row) for row in on_qm9.rows}
    assert "unexplained" not in reasons.values()
    assert reasons[20, "none", "test", "none"] in ("", "bootstrap")
    assert reasons[20, "X1", "test", "NLL"] == "mapping"
    assert reasons[20, "OxNy", "test", "NLL"] == "groups lost"
    assert "unexplained" not in pages.tables_page(on_qm9)


def test_a_difference_without_a_name_is_called_unexplained():
    row = StudyRow(
        (20, "u", "test", "NLL"), ours={"S_u": 0.216}, published={"S_u": 0.21}
    )
    assert pages.explain(row) == "unexplained"
    within = StudyRow(row.key, ours={"S_u": 0.2149}, published={"S_u": 0.21})
    assert pages.explain(within) == ""
    fraction = {"fv_u_lo": 0.5}
    by_seed = StudyRow(row.key, ours=fraction, published={"fv_u_lo": 0.53})
    assert pages.explain(by_seed) == "bootstrap"


def test_printed_intervals_of_valid_fractions_agree_but_for_the_bootstrap(on_qm9):
    gaps = [
        abs((row.as_published or row.ours)[name] - row.published[name])
        for row in on_qm9.rows
        if row.key[3] in ANALYTIC
        for name in study.VALID
    ]
    assert max(gaps) < 0.08
    assert np.mean(gaps) < 0.02


# golden name (R 4.2.2, ErrViewLib 1.7.2, the study's script, version 1.2) -> ours
GOLDEN_NAMES = {
    "NLL": "NLL",
    "Scal": "S_cal",
    "Su": "S_u",
    "SX1": "S_X1",
    "SX2": "S_X2",
    "Stot": "S_tot",
}
# The script writes ln 2π as 1.837877.
NLL_TRUNCATION = 0.5 * (np.log(2 * np.pi) - 1.837877)


def assert_matches(values, expected):
    found = {name: values[ours] for name, ours in GOLDEN_NAMES.items()}
    found["NLL"] -= NLL_TRUNCATION
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ((20, "none", "training", "none"), "train_unscaled"),
        ((40, "none", "test", "none"), "test_unscaled"),
        ((80, "none", "test", "isotonic"), "test_isotonic"),
        ((20, "u", "training", "NLL"), "u_NLL_20_train"),
        ((40, "u", "test", "NLL"), "u_NLL_40_test"),
        ((80, "X1", "training", "NLL"), "X1_NLL_80_train"),
        ((20, "X1", "test", "NLL"), "X1_NLL_20_test_lexfix"),
        ((40, "X1", "test", "NLL"), "X1_NLL_40_test_lexfix"),
        ((80, "X1", "test", "NLL"), "X1_NLL_80_test_lexfix"),
        ((20, "u&X1", "training", "NLL"), "uX1_2D_X1order_train"),
        ((20, "u&X1", "test", "NLL"), "uX1_2D_X1order_test"),
        ((20, "OxNy", "training", "NLL"), "OxNy_train_fixed"),
        ((20, "OxNy", "test", "NLL"), "OxNy_test_fixed"),
    ],
)
def test_our_rows_match_the_published_code_without_its_slips(on_qm9, golden, key, name):
    expected = {score: golden["rows"][name][score] for score in GOLDEN_NAMES}
    assert_matches(on_qm9[key].ours, expected)


# The same program with its slips: NLL, Scal, Su, SX1, SX2, Stot.
WITH_SLIPS = {
    (20, "X1", "test", "NLL"): (
        *(-2.98181132826527, 0.0775497031250098, 0.334584836913592),
        *(0.34575040847054, 0.368044345207217, 1.12592929371636),
    ),
    (40, "X1", "test", "NLL"): (
        *(-2.98218325337075, 0.0632465716016544, 0.299888238111059),
        *(0.366466859504765, 0.380462592492057, 1.11006426170954),
    ),
    (80, "X1", "test", "NLL"): (
        *(-2.97307113434313, 0.0216359634697955, 0.338490649183157),
        *(0.396144247445121, 0.400550429094211, 1.15682128919228),
    ),
    (20, "OxNy", "training", "NLL"): (
        *(-3.02915469689629, 0.00117589552257944, 0.297347449971085),
        *(0.308930007669728, 0.243018331922795, 0.850471685086187),
    ),
    (20, "OxNy", "test", "NLL"): (
        *(-3.00818423129531, 0.0428636451114688, 0.282937467439708),
        *(0.323663807502132, 0.25764452911551, 0.907109449168819),
    ),
}


@pytest.mark.parametrize("key", WITH_SLIPS)
def test_rows_with_the_slip_kept_match_the_published_code(on_qm9, key):
    expected = dict(zip(GOLDEN_NAMES, WITH_SLIPS[key], strict=True))
    assert_matches(on_qm9[key].as_published, expected)


def test_the_page_of_deviations_has_both_numbers_of_each(on_qm9):
    page = pages.deviations_page(on_qm9)
    titles = re.findall(r"^## ([^:\n]*)", page, flags=re.MULTILINE)
    assert titles == [
        *("Sign of Eq. 2", "mapping", "optimiser", "one draw", "groups lost"),
        "bootstrap",
    ]
    # bins, rows in another bin; S_tot published, with the slip, and ours
    assert re.search(r"\| 80 \| 5\d% \| 1.16 \| 1.16 \| 1.01 \|", page)
    assert "(112 rows of the training set)" in page
    assert "without scaling them (16 rows)" in page
    assert "| test | 0.91 | 0.91 |" in page
    # S_tot of u bins: closed and reached, minimised; closed, published, ours, tabled
    assert "| 20 | u | S_tot | 0.823 | 0.823 | 0.83 | 0.81 | 0.83 |" in page


# --- on few synthetic molecules: the whole command


class Blank:
    """A picture that takes no time."""

    def savefig(self, path, **_):
        path.write_bytes(b"picture")


def few_molecules(seed, whole=StudyData.synthetic):
    return whole(seed, 3000)


def run_command(folder):
    """Run the command on few molecules; return what it prints."""
    said = io.StringIO()
    with quick_study(30) as patch, contextlib.redirect_stdout(said):
        patch.setattr(StudyData, "synthetic", few_molecules)
        simple = {"temperature": TemperatureScaling(), "linear": LinearScaling()}
        selected = functools.partial(SelectedScaling, simple)
        patch.setattr(study, "SelectedScaling", selected)
        patch.setattr(study, "BoostedScaling", lambda **_: LinearScaling())
        patch.setattr(study, "RakedScaling", lambda **_: LinearScaling())
        for name in ("figure1", "figure2", "figure3"):
            patch.setattr(figures, name, lambda *_, **__: Blank())
        program.reproduce(None, download=False, out=folder, seed=0, n_draws=20, step=60)
    return said.getvalue()


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "output"
    return run_command(folder), folder


def test_without_data_it_says_that_molecules_are_synthetic(command):
    said, folder = command
    assert "built-in synthetic molecules, not QM9" in said
    assert "synthetic molecules (seed 0)" in (folder / "tables.md").read_text("utf-8")
    page = (folder / "deviations.md").read_text("utf-8")
    assert "These are not the paper's data" in page


def test_all_files_are_written_and_named(command):
    said, folder = command
    written = {path.name for path in folder.iterdir()}
    assert written >= FILES
    named = said.partition("Written:\n")[2].splitlines()
    assert sorted(named) == sorted(f"  {folder / name}" for name in written)
    assert all((folder / name).stat().st_size for name in written)


def test_markdown_tables_have_as_many_cells_in_every_line(command):
    _, folder = command
    pages = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    found = {
        name: re.findall(r"(?:^\|.*\n?)+", text, flags=re.MULTILINE)
        for name, text in pages.items()
    }
    assert len(found["tables.md"]) == 3
    assert len(found["deviations.md"]) == 5
    for each in found.values():
        for table in each:
            lines = table.splitlines()
            assert re.fullmatch(r"\|( --- \|)+", lines[1])
            assert len({line.count("|") for line in lines}) == 1
            assert all(line.startswith("| ") for line in (lines[0], *lines[2:]))
            assert all(line.endswith(" |") for line in lines)


def test_markdown_has_no_published_values_and_no_stars_for_other_data(command):
    _, folder = command
    text = (folder / "tables.md").read_text("utf-8")
    assert "| published |" not in text
    assert "\\*" not in text
    assert text.count("| slip kept |") == 3 * 4 + 2  # X1 test rows, and OxNy


def test_latex_is_balanced(command):
    _, folder = command
    text = (folder / "tables.tex").read_text("utf-8")
    open_environments = []
    for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if what == "begin":
            open_environments.append(name)
        else:
            assert open_environments.pop() == name
    assert not open_environments
    assert text.count(r"\begin{table}") == 3
    depth = np.cumsum([{"{": 1, "}": -1}.get(c, 0) for c in text])
    assert depth.min() == depth[-1] == 0
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = len(pages.HEADER)
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}
    assert not re.search(r"(?<!\\)[_%#]", text)
    assert text.count("$") % 2 == 0
    preamble = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text).group(1)
    assert len(preamble) == columns


def test_csv_has_every_row_at_full_precision(command):
    _, folder = command
    with (folder / "tables.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, strict=True))
    assert all(None not in line and None not in line.values() for line in lines)
    ours = [line for line in lines if line["source"] == "ours"]
    names = ("n_bins", "binning", "dataset", "scaling")
    keys = [tuple(line[name] for name in names) for line in ours]
    assert keys == [(str(n), *rest) for n, *rest in published_rows()]
    for line in lines:
        numbers = {name: line[name] for name in (*SCORES, *study.VALID)}
        if line["scaling"] == "simulated":
            assert numbers.pop("NLL") == ""
        assert np.isfinite([float(value) for value in numbers.values()]).all()
    digits = [len(line["S_u"].partition(".")[2]) for line in lines]
    assert np.median(digits) >= 15


def test_the_same_seed_gives_the_same_bytes(command):
    _, folder = command
    with quick_study(30):
        again = study.run_tables(few_molecules(0), seed=0, n_draws=20)
    for name, text in (
        ("tables.md", pages.tables_page(again)),
        ("tables.tex", pages.tables_latex(again)),
        ("tables.csv", pages.tables_csv(again)),
        ("deviations.md", pages.deviations_page(again)),
    ):
        assert (folder / name).read_bytes() == text.encode(), name


def test_optimised_rows_are_at_least_as_good_as_analytic_ones(command):
    _, folder = command
    page = (folder / "deviations.md").read_text("utf-8")
    rows = re.findall(
        r"^\| (?:20|40|80) \| (?:u|X1) \| S_\w+ \| ([\d.]+) \| ([\d.]+) \|",
        page,
        flags=re.MULTILINE,
    )
    assert len(rows) == 18
    assert all(float(reached) <= float(closed) for closed, reached in rows)


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ThinBinsWarning")
def test_figures_have_the_panels_and_lines_of_the_paper(tmp_path):
    data = few_molecules(0)
    first = figures.figure1(data)
    scan = scan_bins(
        *((each.X, each.error) for each in (data.training, data.test)),
        n_bins=(2, 30, 60),
        n_draws=20,
        method="moments",
    )
    second = figures.figure2(scan)
    for figure in (first, second):
        letters = [ax.get_title(loc="left") for ax in figure.axes]
        assert letters == ["(a)", "(b)", "(c)", "(d)"]
    curves, *local = first.axes
    assert [line.get_label() for line in curves.lines] == ["training", "test"]
    assert [ax.get_xlabel() for ax in local] == ["$u$", "$X_1$", "$X_2$"]
    for ax, names in zip(
        second.axes,
        (
            ["NLL"],
            ["ENCE_u", "ENCE_X1", "ENCE_X2"],
            ["S_u", "S_X1", "S_X2", "S_cal", "S_tot"],
        ),
        strict=False,
    ):
        drawn, isotonic, simulated = ax.lines[::3], ax.lines[1::3], ax.lines[2::3]
        for i, name in enumerate(names):
            factor = 0.5 if name == "S_tot" else 1  # as its legend says
            np.testing.assert_array_equal(drawn[i].get_xdata(), scan.n_bins)
            expected = factor * scan.scores[name]
            np.testing.assert_array_equal(drawn[i].get_ydata(), expected)
            assert set(isotonic[i].get_ydata()) == {factor * scan.isotonic[name]}
            assert isotonic[i].get_linestyle() == "--"
            expected = factor * scan.simulated_mean[name]
            np.testing.assert_array_equal(simulated[i].get_ydata(), expected)
            assert simulated[i].get_linestyle() == ":"
        assert len(drawn) == len(names) == len(ax.collections)  # a band each
    path = tmp_path / "figure.png"
    second.savefig(path, dpi=50)
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "{tmp}/nowhere"], "`folder` must hold qm9_qm9_E_uncalibrated"),
        (["--step", "0"], "'--step'"),
        (["--draws", "0"], "'--draws'"),
        (["--seed", "-1"], "'--seed'"),
    ],
)
def test_what_cannot_be_done_gives_code_2_and_no_file(
    tmp_path, sigmascale, options, message
):
    out = tmp_path / "output"
    options = [option.format(tmp=tmp_path) for option in options]
    done = sigmascale("paper", *options, "--out", out)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0}, "`step` must be at least 1; found 0"),
        ({"n_draws": 0}, "`n_draws` must be at least 1; found 0"),
    ],
)
def test_numbers_that_make_no_study_are_refused(tmp_path, options, message):
    options = {"seed": 0, "n_draws": 20, "step": 60} | options
    out = tmp_path / "output"
    with pytest.raises(InvalidInputError, match=message):
        program.reproduce(None, download=False, out=out, **options)
    assert not out.exists()


def test_an_output_folder_that_is_a_file_is_told_before_any_work(tmp_path, sigmascale):
    out = tmp_path / "output"
    out.write_text("a file")
    with quick_study(1) as patch:
        patch.setattr(program, "run_tables", None)
        done = sigmascale("paper", "--out", out)
    assert done.code == 2
    assert "File exists" in done.err
    assert out.read_text() == "a file"


def test_the_module_is_the_command_of_the_same_name(tmp_path, sigmascale):
    told = [
        subprocess.run(
            [sys.executable, "-m", *module, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "80"},
        ).stdout
        for module in (["sigmascale.paper"], ["sigmascale", "paper"])
    ]
    assert told[0] == told[1]
    assert "Usage: sigmascale paper" in told[0]


def test_a_folder_without_the_data_is_refused_from_the_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sigmascale.paper", "--data", tmp_path, "--out", "o"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"error: `folder` must hold .*\n", done.stderr)
    assert not list(tmp_path.iterdir())
