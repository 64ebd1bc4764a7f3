import os
import stat

import pytest

from sigmascale._files import whole_file, write_text
from sigmascale.exceptions import InvalidInputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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


def test_a_failure_of_the_last_step_leaves_no_other_file(tmp_path, monkeypatch):
    def fail(*_):
        msg = "the disk is full"
        raise OSError(msg)

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "old").write_text("old")
    with pytest.raises(OSError, match="full"):
        write_text(tmp_path / "old", "new")
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
