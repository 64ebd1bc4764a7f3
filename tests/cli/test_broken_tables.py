"""Whatever is wrong with a file, a command says so in one line and changes nothing."""

import errno
import gzip
import io
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

HEADER = "E,u,mass"
ROWS = [(f"{(i % 7 - 3) / 10}", f"{0.1 + i % 5 / 10}", f"{i}") for i in range(40)]


def text(header=HEADER, rows=ROWS, separator=",", end="\n"):
    lines = [header, *(separator.join(row) for row in rows)]
    return "".join(line + end for line in lines)


def csv(*arguments, encoding="utf-8", **options):
    return "a.csv", text(*arguments, **options).encode(encoding)


def cell(column, value, row=16, header=HEADER, encoding="utf-8"):
    """Return the good table with another value in one cell."""
    rows = [list(each) for each in ROWS]
    rows[row][column] = value
    return csv(header, rows, encoding=encoding)


def column(position, value):
    """Return the good table with one value in all of a column."""
    rows = [tuple(value if j == position else x for j, x in enumerate(r)) for r in ROWS]
    return csv(HEADER, rows)


def written(method, *arguments, **options):
    buffer = io.BytesIO()
    method(buffer, *arguments, **options)
    return buffer.getvalue()


def parquet(**columns):
    frame = FRAME.with_columns(**columns)
    return "a.parquet", written(lambda buffer: frame.write_parquet(buffer))


GOOD = text().encode()
FRAME = pl.read_csv(GOOD)
PARQUET = parquet()[1]
ARROW = written(lambda buffer: FRAME.write_ipc(buffer))
ONES = np.ones(40)
JSON_LINE = b'{"E":0.1,"u":1}\n'


def spreadsheet():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return "a.xlsx", buffer.getvalue()


# The uncertainties cannot be read, so that every command refuses these.
BROKEN = {
    "semicolons": (csv("E;u;mass", separator=";"), "--separator ';'"),
    "tabs": (csv("E\tu\tmass", separator="\t"), r"--separator \$'\\t'"),
    "spaces": (csv("E u mass", separator=" "), "columns .*'E u mass'"),
    "no header": (("a.csv", GOOD.split(b"\n", 1)[1]), "columns .*'-0.3', '0.1'"),
    "a comment first": (
        ("a.csv", b"# mine\n" + GOOD),
        "row 1 .*3 .* header .*1",
    ),
    "units below the header": (
        ("a.csv", GOOD.replace(b"\n", b"\neV,eV,Da\n", 1)),
        "column 'u', row 1 .*: 'eV' .*number",
    ),
    "a web page": (
        ("a.csv", b"<!DOCTYPE html>\n<html>404</html>\n"),
        "columns .*'<!DOCTYPE html>'",
    ),
    "no uncertainty": (csv("E,sd,mass"), "columns .*'E', 'sd', 'mass'"),
    "text in a number": (
        cell(1, "bad"),
        "column 'u', row 17 .*: 'bad' .*number",
    ),
    "decimal comma": (cell(1, '"0,5"'), "row 17 .*--decimal ,"),
    "decimal commas": (
        csv("E;u;mass", [tuple(x.replace(".", ",") for x in r) for r in ROWS], ";"),
        "--separator ';'.*--decimal ,",
    ),
    "a unit in a cell": (cell(1, "0.5 eV"), "'0.5 eV' .*number"),
    "negative": (cell(1, "-0.1"), "row 17 .*-0.1 .*negative"),
    "infinite": (cell(1, "inf"), "row 17 .*inf .*infinite"),
    "too large for a number": (cell(1, "1e999"), "row 17 .*infinite"),
    "not a number": (cell(1, "NaN"), "1 of 40 rows .*: 'u' 1.*--drop-missing"),
    "missing": (cell(1, ""), "1 of 40 rows .*missing.*'u' 1"),
    "all missing": (column(1, "NA"), "40 of 40 rows"),
    "blank lines between": (
        ("a.csv", GOOD.replace(b"\n", b"\n\n")),
        "40 of 80 rows .*missing",
    ),
    "header alone": (csv(HEADER, []), "'mass'.*no rows"),
    "header without an end": (("a.csv", HEADER.encode()), "no rows"),
    "empty": (("a.csv", b""), "a.csv: .*empty"),
    "blank lines alone": (("a.csv", b"\n \n\n"), "empty"),
    "names twice": (csv("E,u,u"), "more than one .*'u'"),
    "names twice, quoted": (csv('E,u,"u"'), "more than one .*'u'"),
    "Latin-1 name": (csv("E,u,größe", encoding="latin-1"), "names .*UTF-8"),
    "Latin-1 cell": (
        cell(2, "größe", encoding="latin-1"),
        "row 17 .*UTF-8.* iconv -f LATIN1",
    ),
    "UTF-16": (csv(encoding="utf-16"), "UTF-16"),
    "UTF-16 without a mark": (csv(encoding="utf-16-le"), "UTF-16"),
    "zero bytes": (cell(2, "\0"), "no text"),
    "too many fields": (cell(2, "1,2"), "row 17 .*4 .* header .*3"),
    "a cut line": (
        ("a.csv", GOOD[: GOOD.rindex(b",0.")]),
        "row 40 .*1 fields.* header .*3",
    ),
    "an open quote": (cell(2, '"oops'), "quote .*row 17"),
    "an open quote in the header": (csv('E,u,"mass'), "quote .*closed"),
    "lines of an old Mac": (csv(end="\r"), "carriage returns"),
    "cut gzip": (("a.csv.gz", gzip.compress(GOOD)[:-20]), "unpacked"),
    "damaged gzip": (
        ("a.csv.gz", gzip.compress(GOOD)[:30] + bytes(99)),
        "unpacked",
    ),
    "gzip of nothing": (("a.csv.gz", gzip.compress(b"")), "empty"),
    "cut Parquet": (("a.parquet", PARQUET[:-30]), "PARQUET"),
    "damaged Parquet": (
        ("a.parquet", PARQUET[:40] + bytes(200) + PARQUET[240:]),
        "PARQUET",
    ),
    "CSV called Parquet": (("a.parquet", GOOD), "PARQUET"),
    "Parquet called CSV": (("a.csv", PARQUET), "no text"),
    "cut Feather": (("a.feather", ARROW[:-30]), "ARROW"),
    "CSV called Feather": (("a.arrow", GOOD), "ARROW"),
    "dates": (parquet(u=pl.date(2020, 1, 1)), "'u' .*numbers.*Date"),
    "lists": (parquet(u=pl.concat_list("E", "u")), "'u' .*numbers.*List"),
    "no values at all": (parquet(u=pl.lit(None)), "40 of 40 rows"),
    "a pickle": (("a.pkl", pickle.dumps([1])), "no text"),
    "a spreadsheet that is none": (spreadsheet(), "EXCEL"),
    "nested JSON": (
        ("a.jsonl", 40 * b'{"E":1,"u":{"a":1}}\n'),
        "'u' .*numbers.*Struct",
    ),
    "a JSON array": (("a.json", b'[{"E":1,"u":2}]'), "NDJSON"),
    "broken JSON": (
        ("a.jsonl", 9 * JSON_LINE + b'{"E":1,'),
        "NDJSON",
    ),
    "text in JSON": (
        ("a.jsonl", 40 * JSON_LINE + b'{"E":1,"u":"x"}\n'),
        "row 41 .*: 'x' .*number",
    ),
    "lacking in JSON": (("a.jsonl", 40 * JSON_LINE + b'{"E":1}\n'), "1 of 41 rows"),
}
# These can be recalibrated, but nothing can be learned from them.
BROKEN_ERRORS = {
    "no error": (csv("resid,u,mass"), "No column is .*error"),
    "text in an error": (
        cell(0, "bad"),
        "column 'E', row 17 .*: 'bad' .*number",
    ),
    "an infinite error": (cell(0, "-Infinity"), "column 'E', row 17 .*-inf .*infinite"),
    "one row": (csv(HEADER, ROWS[:1]), "1 row .*too few"),
    "four rows": (csv(HEADER, ROWS[:4]), "4 rows .*too few"),
    "no uncertainty but 0": (column(1, "0"), r"uncertainty|positive"),
    "two errors": (
        csv("E,u,error"),
        "Several .*error: 'E', 'error'",
    ),
}


@pytest.fixture(scope="module")
def scaler(tmp_path_factory, sigmascale):
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "calibration.csv").write_bytes(GOOD)
    path = folder / "linear.json"
    done = sigmascale(
        "fit", folder / "calibration.csv", "--method", "linear", "-o", path
    )
    assert done.code == 0
    return path


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def commands(file, scaler):
    return {
        "check": ("check", file, "--all-features", "--json"),
        "check with a report": ("check", file, "--report", "out.html"),
        "fit": ("fit", file, "--method", "linear", "-o", "out.json"),
        "apply": ("apply", scaler, file, "-o", "out.csv"),
    }


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(done, match):
    """Assert that a command said in one line what is wrong, and nothing else."""
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert len(done.err) < 400
    assert re.search(match, done.err), done.err


@pytest.mark.parametrize("name", [*BROKEN, *BROKEN_ERRORS])
def test_a_broken_table_is_refused_in_one_line_and_nothing_is_written(
    name, tmp_path, sigmascale, scaler
):
    (file, content), match = (BROKEN | BROKEN_ERRORS)[name]
    (tmp_path / file).write_bytes(content)
    old = {f"out.{ending}": b"old" for ending in ("html", "json", "csv")}
    for each, was in old.items():
        (tmp_path / each).write_bytes(was)
    runs = commands(file, scaler)
    if name in BROKEN_ERRORS:
        del runs["apply"]
    for run, arguments in runs.items():
        words = match
        if run == "apply" and match.startswith("columns"):
            words = "needs .*'u'"  # a recalibrator knows what it needs
        refused(sigmascale(*arguments), words)
    assert contents(tmp_path) == {file: content, **old}


def test_there_are_more_than_forty_of_them():
    assert len(BROKEN) + len(BROKEN_ERRORS) > 60


UNUSUAL = {
    "BOM": ("a.csv", b"\xef\xbb\xbf" + GOOD),
    "BOM and quotes": ("a.csv", b'\xef\xbb\xbf"E","u","mass"' + GOOD[len(HEADER) :]),
    "Windows": ("a.csv", GOOD.replace(b"\n", b"\r\n")),
    "Windows and BOM": ("a.csv", b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n")),
    "blank lines": ("a.csv", b"\n\n" + GOOD + b"\n\r\n"),
    "no last line end": ("a.csv", GOOD.rstrip(b"\n")),
    "spaces": ("a.csv", GOOD.replace(b",", b" , ")),
    "not gzip, whatever its name": ("a.csv.gz", GOOD),
    "gzip, whatever its name": ("a.csv", gzip.compress(GOOD)),
    "tabs": ("a.txt", GOOD.replace(b",", b"\t")),
}


@pytest.mark.parametrize(("file", "content"), UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_merely_unusual_works_and_gives_the_same_numbers(
    file, content, tmp_path, sigmascale, scaler
):
    (tmp_path / "plain.csv").write_bytes(GOOD)
    (tmp_path / file).write_bytes(content)
    spaced = b" , " in content
    options = ["--uncertainty", " u "] if spaced else []
    tables = (("plain.csv", []), (file, options))
    for (source, named), target in zip(tables, ("x.csv", "y.csv"), strict=True):
        done = sigmascale("apply", scaler, source, "-o", target, *named)
        assert (done.code, done.err) == (0, "")
    x, y = (pl.read_csv(tmp_path / name) for name in ("x.csv", "y.csv"))
    assert x.height == y.height == 40
    assert x[:, -1].to_list() == y[:, -1].to_list()
    errors = y[:, 0].cast(pl.String).str.strip_chars().cast(pl.Float64)
    assert errors.to_list() == FRAME["E"].to_list()
    codes = [sigmascale("check", each, *named).code for each, named in tables]
    assert codes[0] == codes[1] in (1, 4)


def test_files_that_are_not_there_folders_and_locked_files_are_refused(
    tmp_path, sigmascale, scaler, monkeypatch
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked.csv").write_bytes(GOOD)

    def locked(path, *arguments, **options):
        if path.name == "locked.csv":  # root may open anything
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *arguments, **options)

    real = Path.open
    monkeypatch.setattr(Path, "open", locked)
    for file, match in (
        ("nowhere.csv", "nowhere.csv: No such file"),
        ("folder", "folder: is a folder"),
        ("locked.csv", "locked.csv: Permission denied"),
        ("locked.csv/a.csv", "Not a directory"),
    ):
        for arguments in commands(file, scaler).values():
            refused(sigmascale(*arguments), match)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "locked.csv"]


@pytest.mark.parametrize("stdin", [b"", b"\n\n", GOOD[: len(HEADER)], b"\x1f\x8b\x08"])
def test_standard_input_without_a_table_is_refused(stdin, sigmascale, scaler):
    for arguments in commands("-", scaler).values():
        refused(sigmascale(*arguments, stdin=stdin), "empty|no rows|unpacked")


@pytest.mark.parametrize(
    ("output", "match"),
    [
        ("good.csv/out.csv", "Not a directory|File exists"),
        ("folder.csv", "folder.csv: .*not a file"),
        ("out.xlsx", "out.xlsx: .*ending .*format"),
        ("out", "out: .*ending .*format"),
        ("out.parquet.gz", "ending .*format"),
        ("good.csv/deeper/out.csv", "Not a directory|File exists"),
    ],
)
def test_an_output_that_cannot_be_is_refused(
    output, match, tmp_path, sigmascale, scaler
):
    (tmp_path / "good.csv").write_bytes(GOOD)
    (tmp_path / "folder.csv").mkdir()
    refused(sigmascale("apply", scaler, "good.csv", "-o", output), match)
    assert contents(tmp_path) == {"good.csv": GOOD}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--name", "mass"], "'mass' already.*--name"),
        (["--uncertainty", "mas"], "mean 'mass'"),
        (["--uncertainty", "u", "--variance", "u"], "not both"),
        (["--separator", "::"], "one character.*'::'"),
        (["--separator", ";"], "separated by ','"),
    ],
)
def test_options_of_apply_that_do_not_fit_the_table(
    options, match, tmp_path, sigmascale, scaler
):
    (tmp_path / "good.csv").write_bytes(GOOD)
    arguments = ("apply", scaler, "good.csv", "-o", "out.csv", *options)
    refused(sigmascale(*arguments), match)
    assert contents(tmp_path) == {"good.csv": GOOD}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--error", "mas"], "--error needs .*'mas'.*'mass'"),
        (["--error", "u"], "'u' .*both error and uncertainty"),
        (["--reference", "E", "--prediction", "E"], "both reference and prediction"),
        (["--reference", "E"], "No column is .*prediction"),
        (["--error", "E", "--reference", "E"], "not both"),
        (["--feature", "E"], "'E' .*part already"),
        (["--feature", "u"], "'u' .*part already"),
        (["--feature", "Mass"], "mean 'mass'"),
        (["--label", "u"], "'u' .*part already"),
        (["--formula", "formula"], "--formula .*'formula'"),
        (["--formula", "mass"], "formula"),
        (["--by", "x"], "--by .*'x'"),
        (["--by", "mass"], "--by .*--method binwise .*--method category"),
        (["--bins", "3"], "--bins .*--method binwise"),
        (["--loss", "total"], "--loss .*--method binwise"),
        (["--method", "category"], "--method category .*one column of labels"),
        (["--groups", "mol"], "--groups .*'mol'"),
        (["--method", "binwise", *3 * ["--by", "mass"], "--by", "u"], "one column, or"),
    ],
)
def test_options_of_fit_that_do_not_fit_the_table(options, match, tmp_path, sigmascale):
    (tmp_path / "good.csv").write_bytes(GOOD)
    refused(sigmascale("fit", "good.csv", "-o", "out.json", *options), match)
    assert contents(tmp_path) == {"good.csv": GOOD}


def test_a_feature_that_was_numbers_must_be_numbers(tmp_path, sigmascale):
    (tmp_path / "good.csv").write_bytes(GOOD)
    (tmp_path / "bad.csv").write_bytes(GOOD.replace(b",7\n", b",seven\n"))
    (tmp_path / "less.csv").write_bytes(GOOD.replace(b"mass", b"mas"))
    options = ("--method", "raked", "--feature", "mass", "-o", "raked.json")
    assert sigmascale("fit", "good.csv", *options).code == 0
    for file, match in (("bad.csv", "'seven' .*number"), ("less.csv", "'mas'")):
        refused(sigmascale("apply", "raked.json", file, "-o", "out.csv"), match)
        refused(sigmascale("compare", "good.csv", file, "--feature", "mass"), match)
    assert not (tmp_path / "out.csv").exists()


def _damaged(scaler):
    return scaler.replace(b'"a_": ', b'"a_": 1')


@pytest.mark.parametrize(
    ("name", "damage", "match"),
    [
        ("missing", None, "missing.json: No such file"),
        ("damaged", _damaged, "checksum"),
        ("cut", lambda content: content[:-100], "JSON"),
        ("empty", lambda content: b"", "JSON"),
        ("a table", lambda content: GOOD, "JSON"),
        ("a pickle", pickle.dumps, "not text"),
        ("other JSON", lambda content: b'{"a": 1}', '"format" is not'),
        ("zeros", lambda content: bytes(1000), "JSON"),
    ],
)
def test_a_file_that_is_no_recalibrator_is_refused(
    name, damage, match, tmp_path, sigmascale, scaler
):
    (tmp_path / "good.csv").write_bytes(GOOD)
    path = tmp_path / f"{name}.json"
    if damage is not None:
        path.write_bytes(damage(scaler.read_bytes()))
    refused(sigmascale("apply", path.name, "good.csv", "-o", "out.csv"), match)
    assert not (tmp_path / "out.csv").exists()


def test_a_recalibrator_that_knows_no_columns_is_refused(tmp_path, sigmascale):
    import sigmascale as ss

    (tmp_path / "good.csv").write_bytes(GOOD)
    ss.save(ss.TemperatureScaling().fit([1.0], [2.0]), tmp_path / "python.json")
    done = sigmascale("apply", "python.json", "good.csv", "-o", "out.csv")
    refused(done, "python.json: .*`sigmascale fit`")
    assert not (tmp_path / "out.csv").exists()


@pytest.fixture
def little_disk():
    """Let files grow to 20 kB and no further, as on a disk that fills up."""
    found = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextmanager
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, found[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, found)

    return limited


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "ndjson"])
def test_a_full_disk_leaves_the_old_file_and_no_other(
    ending, tmp_path, scaler, sigmascale, little_disk
):
    rng = np.random.default_rng(0)
    FRAME.select(pl.all().repeat_by(500).explode()).with_columns(
        noise=rng.random(20_000)
    ).write_csv("good.csv")
    output = tmp_path / f"out.{ending}"
    output.write_bytes(b"old")
    with little_disk():
        done = sigmascale("apply", scaler, "good.csv", "-o", output)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "File too large" in done.err
    assert done.err.count("\n") == 1
    assert output.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["help", "apply"])
def test_a_full_disk_behind_standard_output_is_told(command, tmp_path, scaler):
    (tmp_path / "good.csv").write_bytes(GOOD)
    arguments = {
        "help": ["--help"],
        "apply": ["apply", scaler, "good.csv", "-o", "-"],
    }[command]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sigmascale", *map(str, arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_what_nobody_foresaw_is_no_verdict(sigmascale, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyError

    (tmp_path / "good.csv").write_bytes(GOOD)
    monkeypatch.setattr("sigmascale.cli.table.read_files", fail)
    done = sigmascale("check", "good.csv")
    assert done.code == 3
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("error: this is a defect")
