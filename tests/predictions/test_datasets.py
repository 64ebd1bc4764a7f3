"""Data to try things on: real sets, synthetic molecules, and QM9."""

import hashlib
import re
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sigmascale import datasets
from sigmascale.exceptions import InvalidInputError
from sigmascale.predictions.datasets import (
    fetch_qm9,
    load_diabetes,
    load_health,
    load_melting,
    make_molecules,
)

# -- real sets -------------------------------------------------------------------------


def test_real_sets_have_two_parts_and_all_columns():
    for load, sizes in ((load_diabetes, (221, 221)), (load_health, (1998, 2003))):
        for model in ("forest", "gp"):
            data = load(model)
            assert (len(data.calibration), len(data.test)) == sizes
            test = data.table["part"] == "test"
            for name in ("y_true", "y_pred", "y_std"):
                expected = data.table[name][test]
                np.testing.assert_array_equal(getattr(data.test, name), expected)
            assert {*data.test.features, "q05", "q95"} <= set(data.table)
            assert f"{sizes[0]} + {sizes[1]} rows" in repr(data)
    with pytest.raises(InvalidInputError, match=r"`model`.*forest.*'svm'"):
        load_health("svm")


def test_melting_points_are_predicted_by_an_ensemble_of_five():
    data = load_melting()
    sets = (f"calibration: {data.calibration}", f"test: {data.test}")
    assert repr(data).split("\n")[1:] == list(sets)
    assert all(f"<p>{line}</p>" in data._repr_html_() for line in sets)
    calibration, test = data
    assert (len(calibration), len(test)) == (3000, 3000)
    members = np.array([data.table[f"member_{k}"] for k in range(5)])
    np.testing.assert_allclose(data.table["y_pred"], members.mean(axis=0), rtol=1e-12)
    is_test = data.table["part"] == "test"
    np.testing.assert_allclose(test.y_std, members[:, is_test].std(axis=0, ddof=1))
    np.testing.assert_array_equal(test.y_true, data.table["y_true"][is_test])
    assert len(test.features) == 7
    assert test.features["mass"].mean() > 100
    # u is too small, and most where it is smallest
    smallest = test.y_std < np.quantile(test.y_std, 0.1)
    assert 2 < np.sqrt(test.z2.mean()) < 2.4
    assert 3 < np.sqrt(test.z2[smallest].mean()) < 5


def test_the_years_of_a_person_are_a_group_in_one_part():
    data = load_health()
    people = data.table["person"]
    parts = data.table["part"]
    assert not set(people[parts == "test"]) & set(people[parts == "calibration"])
    assert data.test.groups.max() + 1 == len(set(people[parts == "test"]))


def test_the_files_stay_small():
    folder = Path(datasets.__file__).with_name("data")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000


# -- synthetic molecules ---------------------------------------------------------------


def test_the_seed_alone_decides_on_molecules():
    np.random.seed(0)  # noqa: NPY002 - which must not matter
    first, again, other = (make_molecules(300, seed=s) for s in (1, 1, 2))
    for name, column in first.to_dict().items():
        np.testing.assert_array_equal(column, again.to_dict()[name])
    assert not np.any(first.predictions.error == other.predictions.error)
    assert repr(first).startswith("Molecules(300 rows: formula, error, uncertainty")
    for wrong in ({"n": 0}, {"n": 10.5}, {"n": True}, {"seed": -1}, {"seed": None}):
        with pytest.raises(InvalidInputError, match=f"`{next(iter(wrong))}`"):
            make_molecules(**wrong)
    assert len(make_molecules(1)) == 1


def test_molecules_are_small_saturated_or_less_and_of_five_elements():
    for formula in np.unique(make_molecules(2000).formula):
        atoms = dict(re.findall(r"([A-Z])(\d*)", str(formula)))
        n = {
            symbol: int(atoms.pop(symbol, 0) or 1)
            for symbol in "CHNOF"
            if symbol in atoms
        }
        assert not atoms
        heavy = sum(count for symbol, count in n.items() if symbol != "H")
        assert 5 <= heavy <= 9
        lacking = 2 * n["C"] + 2 + n.get("N", 0) - n.get("H", 0) - n.get("F", 0)
        assert lacking >= 0
        assert lacking % 2 == 0


def test_the_true_std_follows_the_documented_formula_and_errors_follow_it():
    m = make_molecules(20_000, seed=7)
    u, x = m.predictions.y_std, m.predictions.features
    factor = (u / 0.02) ** -0.4
    factor *= np.exp(0.3 * np.tanh((x["mass"] - 118) / 10))
    factor *= np.exp(0.3 * np.tanh((x["heteroatom_fraction"] - 0.12) / 0.08))
    np.testing.assert_allclose(m.true_std, u / 2 * factor, rtol=1e-12)
    z = m.predictions.error / m.true_std
    assert stats.kstest(z, stats.t(6, scale=np.sqrt(4 / 6)).cdf).pvalue > 1e-3
    assert np.sqrt(1 / m.predictions.z2.mean()) == pytest.approx(1.7, abs=0.1)
    assert 200 < len(np.unique(x["mass"])) < 800


# -- QM9 -------------------------------------------------------------------------------

HEADER = (
    "index,formula,E_,prediction,uncertainty_aleatoric,uncertainty_epistemic,"
    "uncertainty_total\n"
)
FAKE = {
    "calibration": HEADER + "7,C2H6O,-1.5,-2,0.1,0.15,0.25\n9,CH4,3,2,0,1,1\n",
    "test": HEADER + "1,H2O,0.5,0.25,0,0.0625,0.0625\n",
    "isotonic_test": HEADER + "1,H2O,0.5,0.25,0,0.01,0.01\n",
}


@pytest.fixture
def fake_files(tmp_path, monkeypatch):
    """Three small files, which the module is made to take for the published ones."""
    folder = tmp_path / "fake"
    folder.mkdir()
    known = {}
    for member, text in FAKE.items():
        (folder / f"{member}.csv").write_bytes(text.encode())
        known[member] = f"{member}.csv", hashlib.sha256(text.encode()).hexdigest()
    monkeypatch.setattr(datasets, "_QM9_FILES", known)
    monkeypatch.delenv("SIGMASCALE_QM9", raising=False)
    return folder


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile):
        content = source.read()
        keep = len(content) // 2 if self.server.interrupt else len(content)
        outputfile.write(content[:keep])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(fake_files, tmp_path, monkeypatch):
    """Serve the folder on loopback; the server knows its `url`."""
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = partial(Handler, directory=str(fake_files))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.url = f"http://127.0.0.1:{server.server_address[1]}/"
    server.requests, server.interrupt = [], False
    monkeypatch.setattr(datasets, "QM9_URL", server.url)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def check_fake(qm9):
    rows = qm9.calibration
    assert rows.formula.tolist() == ["C2H6O", "CH4"]
    assert rows.predictions.error.tolist() == [0.5, 1.0]
    assert rows.predictions.y_true.tolist() == [-1.5, 3.0]
    assert rows.predictions.y_std.tolist() == [0.5, 1.0]
    assert rows.predictions.features["heteroatom_fraction"].tolist() == [1 / 9, 0]
    assert rows.group.tolist() == ["O1N0", "O0N0"]
    assert qm9.test.predictions.error.tolist() == [0.25]
    assert qm9.isotonic_test.predictions.y_std.tolist() == [0.1]


def test_files_are_read_from_a_folder_or_from_the_one_the_environment_names(
    fake_files, monkeypatch
):
    check_fake(fetch_qm9(folder=fake_files))
    monkeypatch.setenv("SIGMASCALE_QM9", str(fake_files))
    check_fake(fetch_qm9())


def test_files_are_downloaded_once_and_a_damaged_copy_again(server, tmp_path):
    check_fake(fetch_qm9())
    assert sorted(server.requests) == [f"/{name}.csv" for name in sorted(FAKE)]
    check_fake(fetch_qm9())
    assert len(server.requests) == 3
    (tmp_path / "sigmascale" / "qm9" / "test.csv").write_text("rubbish")
    check_fake(fetch_qm9())
    assert server.requests[3:] == ["/test.csv"]


def test_a_failed_download_leaves_nothing_behind(server, fake_files, tmp_path):
    server.interrupt = True
    with pytest.raises(OSError, match=r"."):
        fetch_qm9()
    server.interrupt = False
    (fake_files / "calibration.csv").write_text(FAKE["test"])
    with pytest.raises(ValueError, match="SHA256"):
        fetch_qm9()
    assert list((tmp_path / "sigmascale" / "qm9").iterdir()) == []


def test_without_pooch_the_message_says_what_to_install(fake_files, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pooch.*`folder`"):
        fetch_qm9()


def test_files_that_are_missing_or_damaged_are_refused(fake_files):
    path = fake_files / "test.csv"
    path.write_text(FAKE["test"].replace("0.0625", "0.0626"))
    with pytest.raises(InvalidInputError, match=r"test\.csv is damaged or another"):
        fetch_qm9(folder=fake_files)
    path.unlink()
    with pytest.raises(InvalidInputError, match=r"`folder` must contain test\.csv"):
        fetch_qm9(folder=fake_files)


def test_qm9_has_the_published_rows_and_statistics(qm9):
    # |ln <Z²>| by the study's own R code (R 4.2.2, ErrViewLib 1.7.2, bvs.R v1.2).
    for rows, n, golden in (
        (qm9.calibration, 10_000, 1.16514625756573),
        (qm9.test, 13_885, 1.12812773116048),
        (qm9.isotonic_test, 13_885, 0.0283937492714615),
    ):
        assert len(rows) == n
        z2 = rows.predictions.z2
        assert abs(np.log(z2.mean())) == pytest.approx(golden, abs=1e-12)
    # X1 and X2 of the published study are stratified: 364 and 73 values to learn from.
    x = qm9.calibration.predictions.features
    assert len(np.unique(x["mass"])) == 364
    assert len(np.unique(x["heteroatom_fraction"])) == 73
    assert qm9.test.formula[:2].tolist() == ["C5H10N2O", "C6H5NO"]
    assert qm9.test.predictions.error[0] == -76.2868485932116 - -76.29452667236328
