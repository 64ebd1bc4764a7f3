import os
import stat
from pathlib import Path

import pytest

from sigmascale._support.files import (
    FULL,
    PREFIX,
    parse_json,
    remove_unfinished,
    whole_file,
    write_text,
)
from sigmascale.exceptions import DamagedFileError, InvalidInputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a" / "table.csv"
    with whole_file(path) as part:
        part.write_text("half")
        assert not path.exists()
        assert part.parent == path.parent  # so that the last step is one rename
        assert part.suffix == ".csv"  # from which writers tell the format
        write_text(path.parent / "b.csv", "what others write is left alone")
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert names(path.parent) == ["b.csv", "table.csv"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail(problem):
        with whole_file(path) as part:
            part.write_text("half")
            raise problem

    for problem in (ValueError("stopped"), KeyboardInterrupt("stopped")):
        with pytest.raises(type(problem), match="stopped"):
            fail(problem)
    monkeypatch.setattr(os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def test_what_is_no_file_is_never_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InvalidInputError, match=f"{name}: is not a file"):
            write_text(tmp_path / name, "it is in the way")
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "<Z²> = 1\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == "<Z²> = 1\n".encode()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    ordinary, path = tmp_path / "ordinary", tmp_path / "new"
    ordinary.touch()
    write_text(path, "new")
    assert path.stat().st_mode == ordinary.stat().st_mode
    for mode in (0o600, 0o640, 0o444, 0o666):
        path.chmod(mode)
        write_text(path, "newer")
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nothing_is_removed_that_was_not_made_here(tmp_path):
    (tmp_path / f"{PREFIX}backup").mkdir()
    (tmp_path / f"{PREFIX}notes").write_text("mine")
    write_text(tmp_path / "a.csv", "whole")
    assert names(tmp_path) == [f"{PREFIX}backup", f"{PREFIX}notes", "a.csv"]


def test_what_is_unfinished_can_be_removed_before_the_end(tmp_path):
    writing = whole_file(tmp_path / "a.csv")
    writing.__enter__().write_text("half")
    remove_unfinished()
    assert names(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        writing.__exit__(None, None, None)


def test_a_full_disk_is_told_with_the_name_of_the_output(tmp_path):
    class EngineError(Exception):
        pass

    def fail(number):
        with whole_file(tmp_path / "a.csv"):
            msg = f"while sinking: {os.strerror(number)} (os error {number})"
            raise EngineError(msg)

    for number in FULL:
        with pytest.raises(OSError, match=r"a\.csv") as found:
            fail(number)
        assert found.value.errno == number
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
def test_what_is_no_place_for_files_is_refused_at_once():
    for place in ("/proc/a.json", "/dev/null", "/dev/full"):
        with pytest.raises((InvalidInputError, OSError), match=place):
            write_text(Path(place), "never")


def test_json_is_read_strictly():
    assert parse_json('{"a": [1, 2.5, null], "b": {"a": true}}') == {
        "a": [1, 2.5, None],
        "b": {"a": True},
    }
    deep = "[" * 100_000
    for text in (
        '{"a": 1, "a": 2}',
        "[NaN]",
        "[-Infinity]",
        "{",
        "",
        deep,
        b"\xff\xfe",
    ):
        with pytest.raises(DamagedFileError, match="JSON") as found:
            parse_json(text)
        assert len(str(found.value)) < 200
