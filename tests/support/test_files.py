import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale._support.files import (
    FULL,
    PREFIX,
    as_pattern,
    locked,
    whole_file,
    whole_file_or_folder,
    write_text,
)
from sigmascale.exceptions import InvalidInputError
from sigmascale.roles import Roles


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_whoever_locks_a_file_waits_for_others_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "new" / "count.txt"
    write_text(path, "0")

    def add():
        for _ in range(20):
            with locked(path):
                count = int(path.read_text())
                time.sleep(0.001)
                write_text(path, str(count + 1))

    threads = [Thread(target=add) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert path.read_text() == "100"
    assert names(path.parent) == ["count.txt"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="all may be written")
def test_a_lock_that_cannot_be_made_is_told_by_the_name_of_the_file(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"/t\.json"), locked(tmp_path / "t.json"):
        pass


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    with whole_file(path) as part:
        part.write_text("half")
        assert not path.exists()
        assert part.parent == tmp_path  # so that the last step is one rename
        assert part.suffix == ".csv"  # from which writers tell the format
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, problem):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail():
        with whole_file(path) as part:
            part.write_text("half")
            msg = "stopped"
            raise problem(msg)

    with pytest.raises(problem, match="stopped"):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def test_what_is_no_file_is_never_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InvalidInputError, match=f"{name}: is not a file"):
            write_text(tmp_path / name, "it is in the way")
    assert names(tmp_path) == ["folder", "pipe"]


@pytest.mark.parametrize("writer", [whole_file, whole_file_or_folder])
def test_a_failure_of_the_last_step_leaves_no_other_file(writer, tmp_path, monkeypatch):
    def fail(*_):
        msg = "the disk is full"
        raise OSError(msg)

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "old").write_text("old")
    with pytest.raises(OSError, match="full"), writer(tmp_path / "old") as part:
        part.write_text("new")
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_folders_are_made_as_needed(tmp_path):
    path = tmp_path / "a" / "b" / "text.txt"
    write_text(path, "<Z²> = 1\n")
    assert path.read_bytes() == "<Z²> = 1\n".encode()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    path = tmp_path / "new"
    write_text(path, "new")
    assert path.stat().st_mode == ordinary.stat().st_mode
    path.chmod(0o640)
    write_text(path, "newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("writer", [whole_file, whole_file_or_folder])
def test_nothing_is_removed_that_was_not_made_here(tmp_path, writer):
    (tmp_path / f"{PREFIX}backup").mkdir()
    (tmp_path / f"{PREFIX}notes").write_text("mine")
    os.mkfifo(tmp_path / f"{PREFIX}pipe")
    with writer(tmp_path / "a.csv") as part:
        part.write_text("whole")
    assert names(tmp_path) == [
        *(f"{PREFIX}{each}" for each in ("backup", "notes", "pipe")),
        "a.csv",
    ]
    assert (tmp_path / f"{PREFIX}notes").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
@pytest.mark.parametrize("place", ["/proc/a.json", "/dev/null", "/dev/full"])
def test_what_is_no_place_for_files_is_refused_at_once(place):
    with pytest.raises((InvalidInputError, OSError), match=place):
        write_text(Path(place), "never")


@pytest.mark.parametrize("writer", [whole_file, whole_file_or_folder])
def test_what_others_are_writing_is_left_alone(tmp_path, writer):
    with writer(tmp_path / "a.csv") as a:
        a.write_text("a")
        write_text(tmp_path / "b.csv", "b")
        assert a.read_text() == "a"
    assert names(tmp_path) == ["a.csv", "b.csv"]
    assert (tmp_path / "a.csv").read_text() == "a"


@pytest.mark.parametrize("writer", [whole_file, whole_file_or_folder])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_permissions_of_a_file_that_is_replaced_stay(writer, mode, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(mode)
    with writer(path) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_folder_in_place_of_a_private_file_is_private(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text("old")
    path.chmod(0o600)
    with whole_file_or_folder(path) as part:
        part.mkdir()
        (part / "1").write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("writer", [whole_file, whole_file_or_folder])
@pytest.mark.parametrize("number", FULL)
def test_a_full_disk_is_told_with_the_name_of_the_output(writer, number, tmp_path):
    class EngineError(Exception):
        pass

    def fail():
        msg = f"while sinking: {os.strerror(number)} (os error {number})"
        raise EngineError(msg)

    with pytest.raises(OSError, match=r"a\.csv") as found, writer(tmp_path / "a.csv"):
        fail()
    assert found.value.errno == number
    assert names(tmp_path) == []


def test_an_empty_name_is_not_the_current_folder():
    with pytest.raises(InvalidInputError, match="name of a file is empty"):
        as_pattern("")
    with pytest.raises(InvalidInputError, match="name of a file is empty"):
        ss.frames.scan("")


TORTURE = Path(__file__).parents[1] / "torture.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("saves", "kills"),
    [(600, 0), (0, 4)],  # `make torture` has more
)
def test_many_processes_and_kills_leave_whole_files_and_no_others(saves, kills):
    only = "saves" if saves else "kills"
    sizes = ("--saves", str(saves), "--kills", str(kills), "--rows", "50000")
    sizes = (*sizes, "--only", only)
    done = subprocess.run(
        [sys.executable, TORTURE, *sizes], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_kill_9_leaves_the_old_table_or_the_whole_new_one(tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 1_000_000
    u = rng.gamma(4.0, 0.1, n_rows).round(4)
    table = pl.DataFrame({"u": u, "x": rng.normal(size=n_rows).round(3)})
    table.write_csv(tmp_path / "new.csv")
    scaler = ss.TemperatureScaling().fit(pl.DataFrame({"u": u[:9]}), 2 * u[:9])
    ss.save(scaler, tmp_path / "s.json", source=Roles("u").to_dict())
    arguments = ["apply", "s.json", "new.csv", "-o", "out.csv"]
    command = [sys.executable, "-m", "sigmascale", *arguments]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    whole = (tmp_path / "out.csv").read_bytes()
    assert whole.count(b"\n") == n_rows + 1

    outcomes = set()
    for old in [b"old", None] * 6:
        out = tmp_path / "out.csv"
        out.unlink() if old is None else out.write_bytes(old)
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        # at any moment, and often while the table is being written
        until_written = rng.random() < 0.7
        while until_written and process.poll() is None and not parts(tmp_path):
            time.sleep(0.001)
        time.sleep(0.4 * rng.random() if until_written else 1.5 * rng.random())
        seen = parts(tmp_path)
        process.kill()
        process.wait()
        for left in parts(tmp_path):  # by a process that could not do it
            left.unlink()
        found = out.read_bytes() if out.exists() else None
        assert found in (old, whole)
        outcomes.add((found == whole, bool(seen)))
    assert (False, True) in outcomes  # some were killed while they wrote
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert names(tmp_path) == ["new.csv", "out.csv", "s.json"]
    assert (tmp_path / "out.csv").read_bytes() == whole


def parts(folder):
    return list(Path(folder).glob(f"{PREFIX}*"))
