"""Conditions of `--where`: what they mean, and what no stranger can do with one."""

import ast
import datetime
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as package

N = 40
RNG = np.random.default_rng(3)
FRAME = pl.DataFrame(
    {
        "y_true": RNG.normal(size=N),
        "y_pred": np.zeros(N),
        "y_std": np.ones(N),
        "x": [None, float("nan"), *np.arange(2.0, N)],
        "text": [["a", "b%", "it's", "NA"][i % 4] for i in range(N)],
        "flag": [[True, False, None][i % 3] for i in range(N)],
        "day": [datetime.date(2024, 1, 1 + i % 31) for i in range(N)],
        "at": [datetime.datetime(2024, 1, 1 + i % 31, 12) for i in range(N)],
        "a b": np.arange(N),
        "in": np.arange(N) % 2,
    }
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.write_parquet("t.parquet")


def kept(sigmascale, condition, file="t.parquet"):
    """Return how many rows a condition keeps."""
    output = ("check", file, "--where", condition, "--json")
    done = sigmascale(*output)
    assert done.code in (0, 1, 4), done.err
    return json.loads(done.out)["data"]["rows"]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("x > 9", 30),
        ("not x > 9", 8),
        ("x <> 9 AND x != 10", 36),
        ("x == 5 OR x >= 30", 11),
        ("x = 2 OR x = 3 AND x = 9 OR x > 33", 7),
        ("(x < 7 OR x > 33) AND NOT x = 5", 10),
        ("x BETWEEN 3 AND 3 + 2 * 4 - 1", 8),
        ("x NOT BETWEEN 5 AND 1e3 OR x IN (7, -1, 8.0)", 5),
        ("-x + 1 < -(30 - 1) AND x / 2 % 2 = 0", 2),
        ("(x - x) / 0 > 1 OR x > 32", 7),
        ("x IS NOT NULL", 38),
        ("x IS NULL OR x < 5", 5),
        ("text = 'it''s'", 10),
        ("text IN ('a', 'NA')", 20),
        ("text NOT LIKE '_'", 30),
        ("text LIKE '%%' AND text LIKE 'it_s'", 10),
        ("text LIKE '.*' OR text LIKE 'b%'", 10),
        ("flag", 14),
        ("flag = FALSE OR flag IS NULL", 26),
        ("day > '2024-01-20'", 11),
        ("day BETWEEN '2024-01-01' AND '2024-01-02'", 4),
        ("at > '2024-01-20' AND at < '2024-01-21T12:00'", 1),
        ("day IN ('2024-01-31', '2024-01-30')", 2),
        ('"a b" < 8 AND "in" = 1 OR 1 = 2', 4),
    ],
)
def test_a_condition_keeps_the_rows_that_meet_it(condition, rows, sigmascale):
    if rows >= 5:
        assert kept(sigmascale, condition) == rows
    else:
        done = sigmascale("check", "t.parquet", "--where", condition)
        assert done.says(f"{rows} rows? with all values: too few"), done.err


def test_numbers_in_text_are_compared_as_numbers(sigmascale):
    FRAME.drop("x", "flag").write_csv("t.csv")
    assert kept(sigmascale, '"a b" > 9', "t.csv") == 30
    assert kept(sigmascale, "day > '2024-01-20'", "t.csv") == 11


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        ("x > 1 AND y_tru < 3", r"'y_tru'.*y_true"),
        ("x > 1 AND SELECT < 3", r"character 11.*'SELECT'"),
        ("abs(x) > 1", r"'abs' .*character 1\b"),
        ("x > 1 -- all", r"'-' .*character 7\b"),
        ("x > 1; x", r"';' .*character 6\b"),
        ("x > 'a'", r"number.*text.*character 3\b"),
        ("x + text = 1", r"text is no number"),
        ("x", r"number is no condition"),
        ("x > 1 AND", r"the end .*character 10\b"),
        ("x IN ()", r"'\)' .*number or a text"),
        ("x = NULL", r"'NULL'.*character 5\b"),
        ("day > 'today'", r"'today' is no date"),
        ("text = 'a", r"\"'\" .*character 8\b"),
        ("(" * 33 + "x" + ")" * 33 + " > 1", r"nested too deeply"),
        ("NOT " * 33 + "flag", r"nested too deeply"),
        ("x" + " + x" * 33 + " > 1", r"nested too deeply"),
        ("x > 1 OR " * 2000 + "x > 1", r"10,000 characters"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(condition, match, sigmascale):
    done = sigmascale("check", "t.parquet", "--where", condition)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.says(f"--where.*{match}"), done.err


# -- conditions of strangers -----------------------------------------------------------

READERS = (
    "read_csv",
    "read_parquet",
    "read_json",
    "read_ipc",
    "scan_csv",
    '"read_csv"',
)
SECRETS = ("/etc/passwd", "secret.csv", "/dev/zero", "http://127.0.0.1:{port}/x.csv")
HOSTILE = [
    f"x IN (SELECT x FROM {read}('{file}'))" for read in READERS for file in SECRETS
]
HOSTILE += [
    "EXISTS (SELECT 1)",
    "EXISTS (SELECT * FROM read_csv('secret.csv'))",
    "x = (SELECT max(x) FROM read_csv('secret.csv'))",
    "x > ALL (SELECT x FROM read_csv('secret.csv'))",
    "x IN (WITH a AS (SELECT * FROM read_csv('secret.csv')) SELECT * FROM a)",
    "x IN (TABLE secret)",
    "x IN (VALUES (1))",
    "x IN (FROM read_csv('secret.csv'))",
    "x > 1 UNION SELECT * FROM read_csv('secret.csv')",
    "x > 1; COPY t TO 'stolen.csv'",
    "x > 1; DROP TABLE t",
    "'secret.csv' = x",
    "LPAD(text, 2000000000, 'x') = 'a'",
    "REPEAT(text, 2000000000) = 'a'",
    "CONCAT(text, text) = 'a'",
    "REPLACE(text, '', 'aaaaaaaaaa') = 'a'",
    "text || text = 'a'",
    "STRING_TO_ARRAY(text, '') IS NULL",
    "ARRAY_AGG(x) IS NULL",
    "UNNEST(ARRAY[1, 2]) = x",
    "GENERATE_SERIES(1, 1000000000) = x",
    "x::text = 'a'",
    "CAST(x AS VARCHAR) = 'a'",
    "CASE WHEN x > 1 THEN TRUE ELSE FALSE END",
    "text ~ '(a+)+$'",
    "text RLIKE '(a|a)*b'",
    "REGEXP_LIKE(text, '(a+)+b')",
    "text LIKE '" + "_" * 9900 + "'",
    "text LIKE '" + "%a" * 4900 + "b'",
    "text LIKE '" + "_%" * 4900 + "'",
    "+".join(["(x + x)"] * 31) + " < 0",
    "(" * 31 + "x" + " + x)" * 31 + " < 0",
    "(" * 31 + "flag" + " OR flag)" * 31 + " AND x < 0",
    "(" * 31 + "x < 0" + ") = (x < 0) " * 31 + " AND x < 0",
    "(" * 4900 + "x" + ")" * 4900,
    "-" * 9000 + "x < 0",
    "- " * 4900 + "x < 0",
    " OR ".join(["x < 0"] * 1100),
    "x IN (" + ",".join(["-1"] * 3000) + ")",
    "x < -" + "9" * 9000,
    "x < 1e-999999999 - 1",
    "\N{RIGHT-TO-LEFT OVERRIDE} x < 0",
    "x < 0 /* " + "*/",
    '"x" < "y_std"""',
    "'" * 9999,
    "x < 0 AND ${HOME} = 'a'",
    "@@version = 'a'",
    "x < 0 AND text = '\0'",
]
WATCHED = """
import json, os, resource, sys, time
from sigmascale.__main__ import parse
from sigmascale.exceptions import InvalidInputError
from sigmascale.report import read_card, verify_card  # what is imported is not watched

hostile = json.load(open("hostile.json"))
runs = [("check", "t.parquet", "--where", one) for one in hostile]
runs += [("verify", f"card{i}.json", "t.parquet") for i in range(4)]
for words in (*runs[:2], *runs[-1:]):  # engines start, and modules are loaded
    try: parse(list(words)).run()
    except InvalidInputError: pass

allowed = ("t.parquet", *(f"card{i}.json" for i in range(4)))
touched = []
def watch(event, about):
    is_file = event == "open" and not str(about[0]).endswith((*allowed, ".py", ".pyc"))
    if is_file or event.startswith(("socket.", "subprocess.", "os.system", "os.exec")):
        touched.append((event, str(about)[:200]))
sys.addaudithook(watch)
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize()
touched.clear()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, size + 2**30))
for words in runs:
    start = time.monotonic()
    try:
        parse(list(words)).run()
        print("accepted", words)
    except InvalidInputError as problem:
        if "--where" not in str(problem):
            print("odd", words, problem)
    except BaseException as problem:
        print("died", words, repr(problem))
    if time.monotonic() - start > 20:
        print("slow", words)
print(*touched, sep="\\n", end="")
"""


@pytest.fixture
def server():
    """Return a server on this machine, and what was asked of it."""
    import http.server
    import threading

    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening.server_port, asked
        listening.shutdown()


def test_no_condition_opens_a_file_or_a_line_or_takes_memory(server, sigmascale):
    port, asked = server
    hostile = [condition.replace("{port}", str(port)) for condition in HOSTILE]
    assert len(set(hostile)) >= 60
    Path("hostile.json").write_text(json.dumps(hostile))
    os.mkfifo("secret.csv")  # whoever opens it, in any language, waits for ever

    # cards of strangers, whose hash is right
    made = sigmascale("check", "t.parquet", "--card", "card.json", "--where", "x > 3")
    assert made.code in (0, 1, 4)
    card = json.loads(Path("card.json").read_text())
    del card["sha256"]
    for i in range(4):
        card["options"]["where"] = hostile[i]
        text = json.dumps(card, sort_keys=True, ensure_ascii=True, allow_nan=False)
        forged = card | {"sha256": hashlib.sha256(text.encode()).hexdigest()}
        Path(f"card{i}.json").write_text(json.dumps(forged))

    done = subprocess.run(
        [sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert asked == []


def test_no_module_lets_another_parser_read_an_expression():
    calls = []
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute | ast.Name):
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if name in ("sql_expr", "SQLContext", "eval", "exec", "literal_eval"):
                    calls.append(f"{path.name}: {name}")
    assert calls == []
