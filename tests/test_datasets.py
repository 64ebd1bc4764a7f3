import hashlib
import os
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale import datasets
from sigmascale.chemistry import composition, describe_formulas
from sigmascale.datasets import fetch_qm9, make_molecules
from sigmascale.exceptions import InvalidInputError

QM9_FOLDER = os.environ.get("SIGMASCALE_QM9")
needs_qm9 = pytest.mark.skipif(
    not QM9_FOLDER, reason="SIGMASCALE_QM9 does not name a folder with the QM9 files"
)


# --- real sets ----------------------------------------------------------------------

LOADERS = {"diabetes": datasets.load_diabetes, "health": datasets.load_health}


@pytest.mark.parametrize("model", ["forest", "gp", "quantiles"])
@pytest.mark.parametrize("name", LOADERS)
def test_predictions_are_the_rows_of_the_table(name, model):
    data = LOADERS[name](model)
    table = data.table
    for which, p in (("calibration", data.calibration), ("test", data.test)):
        rows = table["part"] == which
        np.testing.assert_array_equal(p.y_pred, table["y_pred"][rows])
        np.testing.assert_array_equal(p.uncertainty, table["y_std"][rows])
        error = table["y_true"] - table["y_pred"]
        np.testing.assert_array_equal(p.error, error[rows])
    assert len(data.calibration) + len(data.test) == table["y_true"].size
    assert repr(data).startswith("UnseenRows(")


def test_persons_are_unseen_as_a_whole():
    data = datasets.load_health()
    person, test = data.table["person"], data.table["part"] == "test"
    assert len(data.test) >= 1500
    assert not set(person[test]) & set(person[~test])
    assert data.test.groups is not None


def test_models_beat_the_mean_but_leave_much_to_recalibrate():
    for load in LOADERS.values():
        for model in ("forest", "gp", "quantiles"):
            test = load(model).test
            assert np.std(test.error) < np.std(test.y_pred + test.error)
        assert ss.zms(load("forest").test) > 1.3


@pytest.mark.parametrize("name", LOADERS)
def test_quantiles_are_in_order_and_make_the_uncertainty(name):
    table = LOADERS[name]("quantiles").table
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    quantiles = np.array([table[f"q{round(100 * level):02d}"] for level in levels])
    assert np.all(np.diff(quantiles, axis=0) >= 0)
    np.testing.assert_array_equal(table["y_pred"], quantiles[2])
    low, high = (table["y_std"] * z for z in stats.norm.ppf([0.05, 0.95]))
    np.testing.assert_allclose(high - low, quantiles[-1] - quantiles[0])


def test_another_model_is_refused():
    with pytest.raises(InvalidInputError, match=r"`model`.*forest.*'svm'"):
        datasets.load_health("svm")


def test_the_files_stay_small():
    folder = Path(datasets.__file__).with_name("_data")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000


# --- synthetic molecules ------------------------------------------------------------


def nll(error, sigma):
    return np.mean(np.log(sigma) + 0.5 * (error / sigma) ** 2)


def test_the_same_seed_gives_the_same_molecules_and_another_seed_others():
    first, again, other = (make_molecules(300, seed=s) for s in (1, 1, 2))
    for name, column in first.to_dict().items():
        np.testing.assert_array_equal(column, again.to_dict()[name])
    assert not np.any(first.error == other.error)
    assert np.mean(first.formula == other.formula) < 0.2


def test_the_global_random_state_is_neither_used_nor_changed():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = make_molecules(50)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    np.testing.assert_array_equal(first.error, make_molecules(50).error)


def test_molecules_are_small_saturated_or_less_and_of_five_elements():
    for formula in np.unique(make_molecules(5000).formula):
        atoms = composition(str(formula))
        n = {symbol: atoms.pop(symbol, 0) for symbol in "CHNOF"}
        assert not atoms
        assert n["C"] >= 1
        assert 5 <= n["C"] + n["N"] + n["O"] + n["F"] <= 9
        missing = 2 * n["C"] + 2 + n["N"] - n["H"] - n["F"]
        assert missing >= 0
        assert missing % 2 == 0


def test_descriptors_are_those_of_the_formula_of_the_row():
    molecules = make_molecules(500)
    for name, column in describe_formulas(molecules.formula).to_dict().items():
        np.testing.assert_array_equal(column, molecules.to_dict()[name])


def test_mass_and_heteroatom_fraction_are_stratified():
    molecules = make_molecules(5000)
    assert 200 < len(np.unique(molecules.mass)) < 600
    assert 40 < len(np.unique(molecules.heteroatom_fraction)) < 120
    assert len(np.unique(molecules.error)) == len(molecules)


def test_the_conditioning_table_holds_uncertainty_and_features():
    molecules = make_molecules(20)
    assert list(molecules.features) == ["mass", "heteroatom_fraction"]
    assert molecules.X.shape == (20, 3)
    columns = [molecules.uncertainty, molecules.mass, molecules.heteroatom_fraction]
    np.testing.assert_array_equal(molecules.X.T, columns)
    assert molecules.X.dtype == float
    assert repr(molecules).startswith("SyntheticMolecules(20 rows: formula, error, ")


def test_the_true_sigma_follows_the_documented_formula():
    m = make_molecules(1000, seed=4)
    factor = (m.uncertainty / 0.02) ** -0.4
    factor *= np.exp(0.3 * np.tanh((m.mass - 118) / 10))
    factor *= np.exp(0.3 * np.tanh((m.heteroatom_fraction - 0.12) / 0.08))
    np.testing.assert_allclose(m.true_sigma, m.uncertainty / 2 * factor, rtol=1e-12)


def test_errors_over_true_sigma_are_student_t_of_unit_variance():
    molecules = make_molecules(20_000, seed=7)
    z = molecules.error / molecules.true_sigma
    assert stats.kstest(z, stats.t(6, scale=np.sqrt(4 / 6)).cdf).pvalue > 1e-3
    assert stats.kstest(z, stats.norm.cdf).pvalue < 1e-6


@pytest.mark.parametrize("name", ["uncertainty", "mass", "heteroatom_fraction"])
def test_uncertainties_are_wrong_along_each_variable_and_the_truth_is_not(name):
    molecules = make_molecules(40_000, seed=3)
    order = np.argsort(molecules.to_dict()[name], kind="stable").reshape(10, -1)
    z2 = (molecules.error / molecules.uncertainty)[order] ** 2
    local = z2.mean(axis=1) / z2.mean()
    assert local.max() / local.min() > 2
    true_z2 = (molecules.error / molecules.true_sigma)[order] ** 2
    standard_error = true_z2.std(axis=1) / np.sqrt(order.shape[1])
    assert np.all(np.abs(true_z2.mean(axis=1) - 1) < 4 * standard_error)


def test_uncertainties_are_too_large_by_about_1_7():
    molecules = make_molecules(40_000, seed=1)
    z2 = (molecules.error / molecules.uncertainty) ** 2
    assert np.sqrt(1 / z2.mean()) == pytest.approx(1.7, abs=0.1)


def test_one_factor_helps_a_function_of_u_more_and_one_of_all_variables_most():
    m = make_molecules(5000)

    def calibrated(sigma):
        return sigma * np.sqrt(np.mean((m.error / sigma) ** 2))

    power_of_u = calibrated(m.uncertainty**0.6)
    scores = [
        nll(m.error, sigma)
        for sigma in (
            m.uncertainty,
            calibrated(m.uncertainty),
            power_of_u,
            m.true_sigma,
        )
    ]
    assert np.all(np.diff(scores) < -0.03)


def test_a_hundred_thousand_molecules_take_less_than_two_seconds():
    start = time.process_time()
    assert len(make_molecules(100_000)) == 100_000
    assert time.process_time() - start < 2


def test_one_molecule_is_possible():
    assert make_molecules(1).X.shape == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": 0}, "`n` must be at least 1; found 0"),
        ({"n": 10.5}, "`n` must be an integer; found 10.5"),
        ({"n": True}, "`n` must be an integer; found True"),
        ({"seed": -1}, "`seed` must be at least 0; found -1"),
        ({"seed": None}, "`seed` must be an integer; found None"),
    ],
)
def test_a_wrong_size_or_seed_is_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        make_molecules(**arguments)


# --- QM9 ----------------------------------------------------------------------------

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
        known[member] = (
            f"{member}.csv",
            hashlib.sha256(text.encode()).hexdigest(),
        )
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
def serve(monkeypatch):
    """Serve a folder on loopback; returns the server, which knows its `url`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = []

    def start(folder):
        handler = partial(Handler, directory=str(folder))
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.url = f"http://127.0.0.1:{server.server_address[1]}/"
        server.requests, server.interrupt = [], False
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def check_fake(qm9):
    rows = qm9.calibration
    assert rows.formula.tolist() == ["C2H6O", "CH4"]
    assert rows.error.tolist() == [0.5, 1.0]
    assert rows.uncertainty.tolist() == [0.5, 1.0]
    assert rows.heteroatom_fraction.tolist() == [1 / 9, 0]
    assert rows.group.tolist() == ["O1N0", "O0N0"]
    assert rows.X.shape == (2, 3)
    assert qm9.test.error.tolist() == qm9.isotonic_test.error.tolist() == [0.25]
    assert qm9.test.uncertainty.tolist() == [0.25]
    assert qm9.isotonic_test.uncertainty.tolist() == [0.1]


def test_files_are_read_from_a_folder_or_from_the_one_the_environment_names(
    fake_files, monkeypatch
):
    check_fake(fetch_qm9(folder=fake_files))
    check_fake(fetch_qm9(folder=str(fake_files)))
    monkeypatch.setenv("SIGMASCALE_QM9", str(fake_files))
    check_fake(fetch_qm9())


def test_files_are_downloaded_once_and_then_kept(fake_files, serve, tmp_path):
    server = serve(fake_files)
    home = tmp_path / "home" / "deeper"
    check_fake(fetch_qm9(home, base_url=server.url))
    assert sorted(server.requests) == [f"/{name}.csv" for name in sorted(FAKE)]
    check_fake(fetch_qm9(str(home), base_url=server.url.rstrip("/")))
    assert len(server.requests) == 3
    assert sorted(p.name for p in home.iterdir()) == sorted(
        p.name for p in fake_files.iterdir()
    )


def test_an_explicit_data_home_takes_precedence_over_the_environment(
    fake_files, serve, tmp_path, monkeypatch
):
    monkeypatch.setenv("SIGMASCALE_QM9", str(tmp_path / "nowhere"))
    monkeypatch.setattr(datasets, "QM9_URL", serve(fake_files).url)
    check_fake(fetch_qm9(tmp_path / "home"))


def test_a_mirror_fills_the_cache_folder_of_the_user_whatever_the_environment_says(
    fake_files, serve, tmp_path, monkeypatch
):
    pooch = pytest.importorskip("pooch")
    monkeypatch.setenv("SIGMASCALE_QM9", str(tmp_path / "nowhere"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    check_fake(fetch_qm9(base_url=serve(fake_files).url))
    assert (tmp_path / "sigmascale" / "qm9" / "test.csv").is_file()


def test_a_damaged_copy_is_downloaded_again(fake_files, serve, tmp_path):
    server = serve(fake_files)
    fetch_qm9(tmp_path / "home", base_url=server.url)
    (tmp_path / "home" / "test.csv").write_text("rubbish")
    check_fake(fetch_qm9(tmp_path / "home", base_url=server.url))
    assert server.requests[3:] == ["/test.csv"]


def test_a_wrong_file_on_the_server_is_refused_and_not_kept(
    fake_files, serve, tmp_path
):
    (fake_files / "calibration.csv").write_text(FAKE["test"])
    with pytest.raises(
        InvalidInputError,
        match=r"calibration\.csv could not be fetched from http://127.*SHA256.*folder",
    ):
        fetch_qm9(tmp_path / "home", base_url=serve(fake_files).url)
    assert list((tmp_path / "home").iterdir()) == []


def test_an_interrupted_download_leaves_nothing_behind(fake_files, serve, tmp_path):
    server = serve(fake_files)
    server.interrupt = True
    with pytest.raises(OSError, match=r"calibration\.csv could not be fetched"):
        fetch_qm9(tmp_path / "home", base_url=server.url)
    assert list((tmp_path / "home").iterdir()) == []
    server.interrupt = False
    check_fake(fetch_qm9(tmp_path / "home", base_url=server.url))


def test_a_file_missing_on_the_server_is_named(fake_files, serve, tmp_path):
    (fake_files / "test.csv").unlink()
    with pytest.raises(OSError, match=r"test\.csv could not be fetched.*404"):
        fetch_qm9(tmp_path / "home", base_url=serve(fake_files).url)


def test_without_pooch_the_message_says_what_to_install(
    fake_files, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[cli\]" in a checkout'):
        fetch_qm9(tmp_path / "home")
    check_fake(fetch_qm9(folder=fake_files))


def test_a_folder_without_the_files_is_refused(fake_files):
    (fake_files / "test.csv").unlink()
    with pytest.raises(InvalidInputError, match=r"`folder` must hold test\.csv"):
        fetch_qm9(folder=fake_files)


def test_a_damaged_file_in_a_folder_is_refused(fake_files):
    path = fake_files / "test.csv"
    path.write_text(FAKE["test"].replace("0.0625", "0.0626"))
    with pytest.raises(InvalidInputError, match=r"test\.csv is damaged or another"):
        fetch_qm9(folder=fake_files)


@needs_qm9
def test_qm9_has_the_published_rows_and_statistics():
    qm9 = fetch_qm9(folder=QM9_FOLDER)
    assert [len(qm9.calibration), len(qm9.test), len(qm9.isotonic_test)] == [
        10_000,
        13_885,
        13_885,
    ]
    # X1 and X2 of the published study are stratified: 364 and 73 values to learn from.
    assert len(np.unique(qm9.calibration.mass)) == 364
    assert len(np.unique(qm9.calibration.heteroatom_fraction)) == 73
    assert len(np.unique(qm9.test.mass)) == 398
    assert len(np.unique(qm9.test.heteroatom_fraction)) == 76
    # |ln <Z²>| by the study's own R code (R 4.2.2, ErrViewLib 1.7.2, bvs.R v1.2).
    for rows, golden in (
        (qm9.calibration, 1.16514625756573),
        (qm9.test, 1.12812773116048),
        (qm9.isotonic_test, 0.0283937492714615),
    ):
        zms = np.mean((rows.error / rows.uncertainty) ** 2)
        assert abs(np.log(zms)) == pytest.approx(golden, abs=1e-12)


@needs_qm9
def test_qm9_rows_keep_the_order_of_the_files():
    qm9 = fetch_qm9(folder=QM9_FOLDER)
    assert qm9.calibration.formula[:2].tolist() == ["C6H7NO2", "C9H14"]
    assert qm9.test.formula[:2].tolist() == ["C5H10N2O", "C6H5NO"]
    np.testing.assert_array_equal(qm9.test.formula, qm9.isotonic_test.formula)
    np.testing.assert_array_equal(qm9.test.error, qm9.isotonic_test.error)
    assert qm9.test.error[0] == -76.2868485932116 - -76.29452667236328
    assert qm9.test.uncertainty[0] == np.sqrt(0.0008159444760531187)
    assert qm9.test.group[0] == "O1N2"


@needs_qm9
def test_qm9_can_be_fetched_from_a_mirror(serve, tmp_path):
    server = serve(QM9_FOLDER)
    fetched = fetch_qm9(tmp_path, base_url=server.url)
    assert len(server.requests) == 3
    local = fetch_qm9(folder=QM9_FOLDER)
    np.testing.assert_array_equal(fetched.test.X, local.test.X)
