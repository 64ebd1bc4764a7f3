"""Saved files appear whole or not at all, and are read strictly."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import DamagedFileError, InvalidInputError

RNG = np.random.default_rng(0)
P = ss.Predictions(y_std=np.ones(60), error=RNG.normal(size=60))


@pytest.fixture(scope="module")
def recalibrator():
    return ss.Recalibrator(ss.TemperatureScaling(), distribution="normal").fit(P)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_it_is_whole(recalibrator, tmp_path, monkeypatch):
    path = tmp_path / "a" / "r.json"
    seen, replace = [], os.replace

    def watched(part, place):
        seen.append((Path(part).read_text(), Path(place).exists(), names(path.parent)))
        replace(part, place)

    monkeypatch.setattr(os, "replace", watched)
    recalibrator.save(path)
    (text, existed, there), *_ = seen
    assert (path.read_text(), existed) == (text, False)
    assert len(there) == 1  # beside it, so that the last step is one rename
    assert there[0].endswith(".json")
    assert names(path.parent) == ["r.json"]
    np.testing.assert_array_equal(
        ss.load(path).apply(P).y_std, recalibrator.apply(P).y_std
    )


def test_a_failure_leaves_the_old_file_and_no_other(
    recalibrator, tmp_path, monkeypatch
):
    path = tmp_path / "r.json"
    path.write_text("old")
    (tmp_path / ".sigmascale-notes").write_text("mine")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for problem in (ValueError("stopped"), KeyboardInterrupt("stopped"), full):

        def fail(_, problem=problem):
            raise problem

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(type(problem), match=r"stopped|r\.json"):
            recalibrator.save(path)
        assert path.read_text() == "old"
        assert names(tmp_path) == [".sigmascale-notes", "r.json"]


def test_what_is_no_file_is_never_replaced(recalibrator, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InvalidInputError, match=f"{name}: is not a file"):
            recalibrator.save(tmp_path / name)
    assert names(tmp_path) == ["folder", "pipe"]
    if Path("/proc").is_dir():
        for place in ("/proc/a.json", "/dev/null", "/dev/full"):
            with pytest.raises((InvalidInputError, OSError), match=place):
                recalibrator.save(place)


def test_a_link_to_itself_is_refused(recalibrator, tmp_path):
    link = tmp_path / "r.json"
    link.symlink_to("r.json")
    with pytest.raises((InvalidInputError, OSError), match=r"r\.json"):
        recalibrator.save(link)
    assert link.is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_what_a_killed_save_has_left_is_removed_by_the_next(recalibrator, tmp_path):
    program = (
        "import os, signal, sys; from pathlib import Path;"
        "from sigmascale._support.files import write_text;"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL);"
        "write_text(Path(sys.argv[1]), 'half')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "r.json")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert [name[:12] for name in names(tmp_path)] == [".sigmascale-"]
    recalibrator.save(tmp_path / "r.json")
    assert names(tmp_path) == ["r.json"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_a_save_of_any_container_is_left_alone_while_it_lives(recalibrator, tmp_path):
    # processes of one container see nothing of another's, but for its numbers
    program = (
        "import os, sys; from pathlib import Path;"
        "import sigmascale._support.files as files;"
        "os.getpid = lambda: 999_999_999;"
        "part = files.whole_file(Path(sys.argv[1]));"
        "path = part.__enter__(); path.write_text('all of it');"
        "print('begun', flush=True); sys.stdin.read();"
        "part.__exit__(None, None, None)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "other.txt")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == b"begun\n"
        recalibrator.save(tmp_path / "r.json")
        assert len(names(tmp_path)) == 2
        other.stdin.close()
        assert other.wait(60) == 0
    assert names(tmp_path) == ["other.txt", "r.json"]
    assert (tmp_path / "other.txt").read_text() == "all of it"


def test_a_link_stays_and_its_target_is_replaced(recalibrator, tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    recalibrator.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() != "old"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_those_of_the_old_file_or_of_any_new_one(
    recalibrator, tmp_path
):
    ordinary, path = tmp_path / "ordinary", tmp_path / "new"
    ordinary.touch()
    recalibrator.save(path)
    assert path.stat().st_mode == ordinary.stat().st_mode
    for mode in (0o600, 0o640, 0o444, 0o666):
        path.chmod(mode)
        recalibrator.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_json_is_read_strictly(recalibrator, tmp_path):
    path = tmp_path / "r.json"
    recalibrator.save(path)
    text = path.read_text()
    twice = text.replace("{", '{"format": 1, "format": 1, ', 1)
    deep = "[" * 100_000
    for wrong in (twice, text[:-20], text.replace("60.0", "NaN", 1), "", "{}", deep):
        path.write_text(wrong)
        with pytest.raises(DamagedFileError, match=r".") as found:
            ss.load(path)
        assert len(str(found.value)) < 500
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DamagedFileError, match=r"."):
        ss.load(path)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.parametrize("head", ["[", '{"a": [', '{"format": "sigmascale", "x": ['])
def test_a_file_of_brackets_is_refused_before_it_takes_memory(head, tmp_path):
    path = tmp_path / "r.json"
    with path.open("w") as file:
        file.write(head)
        for _ in range(60):
            file.write("[]," * (2**20 // 3))
        file.write("[]" + "]" + "}" * head.startswith("{"))
    program = (
        "import resource, sys; import sigmascale as ss;"
        "ss.Recalibrator, ss.load;"
        "size = int(open('/proc/self/statm').read().split()[0]) * 4096;"
        "resource.setrlimit(resource.RLIMIT_AS, (size + 3 * 2**28,) * 2);"
        "ss.load(sys.argv[1])"
    )
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "DamagedFileError" in done.stderr, done.stderr
    assert "MemoryError" not in done.stderr


def test_a_monitor_whose_inner_columns_have_other_names_is_refused(tmp_path):
    from sigmascale.recalibration import persistence

    rng = np.random.default_rng(0)
    features = {"mass": rng.normal(size=400)}
    p = ss.Predictions(
        y_std=np.ones(400), error=rng.normal(size=400), features=features
    )
    for burn_in in (1000, 200):
        monitor = ss.Monitor(burn_in=burn_in).update(p)
        document = json.loads(persistence.dumps(monitor))
        if burn_in == 1000:
            columns = document["content"]["first"]["columns"]
            columns["of temp"] = columns.pop("of mass")
        else:
            assert document["content"]["regions"][0]["name"] == "mass"
            document["content"]["regions"][0]["name"] = "temp"
        inner = {name: document[name] for name in ("extra", "content")}
        document["sha256"] = persistence._checksum(inner)
        (tmp_path / "m.json").write_text(json.dumps(document))
        with pytest.raises(DamagedFileError, match="names"):
            ss.load(tmp_path / "m.json", kind=ss.Monitor)
