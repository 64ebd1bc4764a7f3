"""Two hundred requests that nobody should make: the server tells nothing."""

import gzip
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest

GOOD = b"E,u\n" + b"".join(b"%.2f,1.5\n" % ((i % 7 - 3) / 2) for i in range(40))
PLACES = ["", "api/state", "api/everything", "static/app.js", "files/mine.csv"]


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server that has a table, which is nobody else's business."""
    with start(tmp_path_factory.mktemp("attacked"), "--largest", 1) as found:
        own = {"Origin": f"http://127.0.0.1:{found.port}"}
        put(
            found,
            "table",
            GOOD.replace(b"u\n", b"u\n", 1),
            name="secret_name.csv",
            **own,
        )
        yield found


def ask(server, method, path, body=None, *, timeout=40, **headers):
    """Return status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def put(server, slot, body, name="a.csv", **headers):
    path = f"/{server.token}/api/table/{slot}?name={name}"
    return ask(server, "PUT", path, body, **headers)


def everything_of(server):
    return json.loads(ask(server, "GET", f"/{server.token}/api/everything")[2])


def own(server):
    return {"Origin": f"http://127.0.0.1:{server.port}"}


def is_well(server):
    status, _, body = ask(server, "GET", f"/{server.token}/api/state")
    return status == 200 and json.loads(body)["slots"]["table"]["file"]


HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost",
    "LOCALHOST:1",
    "*",
    "null",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "[::1]:1",
    "127.0.0.1:{port}.evil",
    "0.0.0.0:{port}",
    "127.0.0.2:{port}",
    "2130706433:{port}",
    "127.1:{port}",
    "evil@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil",
    "127.0.0.1:{port},evil",
]
ORIGINS = [
    "http://evil.example",
    "null",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1",
    "http://localhost:{port}",
    "http://127.0.0.1:1",
    "http://127.0.0.1:{port}.evil.example",
    "http://127.0.0.1:{port}/",
    "file://",
    "chrome-extension://abc",
    "*",
    "http://127.0.0.1:{port},http://evil.example",
    "http://[::1]:{port}",
    "HTTP://127.0.0.1:{port}",
    "http://0.0.0.0:{port}",
]
TOKENS = [
    "x",
    "{token}x",
    "x{token}",
    "{short}",
    "{swapped}",
    "{token}%00",
    "%2e%2e",
    ".",
    "..",
    "../{token}",
    "/{token}",
    "{token};",
    "{token}?",
    "{token}#",
    "*",
    "%s",
    "null",
    "undefined",
    "00000000000000000000000000000000",
]
ORDERS = [
    *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"[" * 100_000),
    *(b'{"a":' * 10_000, b'{"roles": 3}', b'{"roles": {"E": "admin"}}'),
    *(b'{"separator": "abc"}', b'{"separator": {"a": 1}}', b'{"decimal": "x"}'),
    *(b'{"where": "__import__(1)"}', b'{"where": "' + b"x" * 5000 + b'"}'),
    b"x" * (1 << 20) + b"y",
]
PATHS = [
    "files/../../../etc/passwd",
    "files/..%2f..%2f..%2fetc%2fpasswd",
    "static/../page.html",
    "static/..",
    "static/..%2f..%2fsite.py",
    "files//etc/passwd",
    "files/%2fetc%2fpasswd",
    "files/secret_name.csv",
    "files/uploads/secret_name.csv",
    "files/./secret_name.csv",
    "files/secret_name.csv%00.html",
    "files/",
    "static/%2e%2e/%2e%2e/session.py",
    "files/..",
    "static/words.json/../app.js",
    "..",
    "../",
    "%2e%2e/",
    "api",
    "files/C:%5cboot.ini",
    "api/table/../../x",
    "static/..%5c..%5csite.py",
    ".git/config",
    "files/%c0%ae%c0%ae/passwd",
]
METHODS = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "FOO"]
NAMES = [
    "",
    "x" * 3000,
    *[
        "../../evil.csv",
        "..%2f..%2fevil.csv",
        "%2fetc%2fevil.csv",
        "-rf.csv",
        ".hidden",
        "%00.csv",
        "a%0d%0ab.csv",
        "con.csv",
        "%3Cscript%3E.csv",
        "%F0%9F%92%A3",
        "..",
        ".",
        "numpy.py",
        "polars.py",
        "%ff%fe.csv",
        "sitecustomize.py",
    ],
]


def attacks(server):
    """Return requests as pairs of words and a function that makes one."""
    port, token = server.port, server.token
    fill = {"port": port, "token": token, "short": token[:-1]}
    fill["swapped"] = token.swapcase()
    inside, found = f"/{token}", []

    def add(words, method, path, body=None, **headers):
        found.append((words, lambda: ask(server, method, path, body, **headers)))

    for host in HOSTS:
        name = host.format(**fill)
        add(f"host {host}", "GET", f"{inside}/api/everything", Host=name)
    for origin in ORIGINS:
        name = origin.format(**fill)
        add(f"get from {origin}", "GET", f"{inside}/api/everything", Origin=name)
        add(f"post from {origin}", "POST", f"{inside}/api/demo", b"{}", Origin=name)
        add(f"put from {origin}", "PUT", f"{inside}/api/table/known", GOOD, Origin=name)
    for each in TOKENS:
        path = f"/{each.format(**fill)}"
        add(f"token {each}", "GET", f"{path}/api/everything")
        add(f"put, token {each}", "PUT", f"{path}/api/table/known", GOOD, **own(server))
    for place in PLACES:
        add(f"no token, {place}", "GET", f"/{place}")
        add(f"a cookie, {place}", "GET", f"/{place}", Cookie=f"token={token}")
        add(f"a header, {place}", "GET", f"/{place}", Authorization=token)
    for site in ("cross-site", "same-site"):
        add(f"fetched {site}", "GET", f"{inside}/", **{"Sec-Fetch-Site": site})
    for body in ORDERS:
        kind = {"Content-Type": "application/json", **own(server)}
        add(f"order {body[:20]!r}", "POST", f"{inside}/api/settings/x", body, **kind)
    for path in PATHS:
        add(f"path {path}", "GET", f"{inside}/{path}", **own(server))
    for method in METHODS:
        add(f"method {method}", method, f"{inside}/api/state", **own(server))
        add(f"method {method}, no origin", method, f"{inside}/api/demo")
    for name in NAMES:
        path = f"{inside}/api/table/x?name={name}"
        add(f"upload to nowhere as {name[:9]}", "PUT", path, GOOD, **own(server))
    big = b"1" * ((1 << 20) + 1)
    for slot in ("table", "other", "known"):
        path = f"{inside}/api/table/{slot}?name=big.csv"
        add(f"oversized, {slot}", "PUT", path, big, **own(server))
        add(f"oversized in chunks, {slot}", "PUT", path, iter([big] * 3), **own(server))
        add(f"no origin, {slot}", "PUT", path, GOOD)
        add(f"a form, {slot}", "POST", path, b"a=b", **own(server))
    for length in ("-1", "99999999999999999999", "abc"):
        lying = {"Content-Length": length, **own(server)}
        add(f"length {length}", "PUT", f"{inside}/api/table/other", b"", **lying)
    add("a long header", "GET", "/", **{"X-Long": "x" * 100_000})
    add("a long path", "GET", f"{inside}/{'x' * 60_000}")
    return found


def test_two_hundred_attacks_are_refused_disclose_nothing_and_leave_no_file(server):
    every = attacks(server)
    assert len(every) >= 200, len(every)
    assert len({words for words, _ in every}) == len(every)
    before = server.files
    assert any("secret_name" in file for file in before)
    for words, attack in every:
        try:
            status, headers, body = attack()
        except (http.client.HTTPException, OSError, ValueError):
            continue  # the line was cut, or Python itself refuses to ask
        assert status >= 300, (words, status)
        assert b"secret" not in body, words
        assert b"Traceback" not in body, words
        assert str(server.temporary).encode() not in body, words
        if status == 403:
            policy = {name.lower(): value for name, value in headers.items()}
            assert "default-src 'none'" in policy["content-security-policy"], words
            assert server.token.encode() not in body, words
    assert server.files == before
    assert is_well(server) == "secret_name.csv"


def raw(server, *pieces, pause=0.0, wait=20):
    """Send bytes as they are; return what comes back until the line is cut."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as line:
        try:
            for piece in pieces:
                line.sendall(piece)
                time.sleep(pause)
            found = b""
            while more := line.recv(65536):
                found += more
        except (TimeoutError, ConnectionError):
            return b""
        return found


def head(server, slot, length):
    return (
        f"PUT /{server.token}/api/table/{slot}?name=cut.csv HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{server.port}\r\nOrigin: http://127.0.0.1:{server.port}\r\n"
        f"Content-Length: {length}\r\nConnection: close\r\n\r\n"
    ).encode()


def test_truncated_uploads_leave_no_file(server):
    before = server.files
    for slot in ("table", "other", "known"):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(head(server, slot, 1000) + GOOD[:50])
            time.sleep(0.2)
    stop = time.monotonic() + 10
    while server.files != before and time.monotonic() < stop:
        time.sleep(0.1)
    assert server.files == before
    assert is_well(server) == "secret_name.csv"


@pytest.mark.slow  # it takes as long as the server waits
def test_a_body_that_does_not_arrive_is_given_up(server):
    before = server.files
    told = raw(server, head(server, "other", 1000) + GOOD[:50], wait=30)
    assert b" 408 " in told.split(b"\r\n")[0]
    assert server.files == before
    assert is_well(server)


def test_requests_that_are_no_http_do_no_harm(server):
    for pieces in (
        [b"\0" * 1000],
        [b"GET / HTTP/9.9\r\n\r\n"],
        [b"GET " + b"x" * 200_000],
        [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],  # TLS
        [b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
        [f"GET /{server.token}/ HTTP/1.1\r\n\r\n".encode()],  # no host
    ):
        assert b" 200 " not in raw(server, *pieces, wait=2).split(b"\r\n")[0]
    assert is_well(server)


def packed(kind):
    """Return a file of a few kilobytes that holds many megabytes."""
    buffer = io.BytesIO()
    if kind == "csv.gz":
        with gzip.GzipFile(fileobj=buffer, mode="wb") as file:
            file.write(b"E,u\n" + b"0.0,1.0\n" * 4_000_000)
    else:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", bytes(64_000_000))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["csv.gz", "xlsx"])
def test_a_bomb_is_not_unpacked(server, kind):
    body = packed(kind)
    assert len(body) < 1 << 20
    status, _, _ = put(server, "other", body, f"bomb.{kind}", **own(server))
    assert status == 200
    everything = everything_of(server)
    assert "when unpacked" in everything["tables"]["other"]["problem"]
    path = f"/{server.token}/api/table/other"
    assert ask(server, "DELETE", path, **own(server))[0] == 200
    assert not any("bomb" in file for file in server.files)


def test_fifty_uploads_at_once_leave_one_table(server):
    def upload(number):
        return put(server, "other", GOOD, f"number{number}.csv", **own(server))[0]

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(upload, range(50)))
    assert set(answers) <= {200, 409}
    assert 200 in answers
    assert sum("number" in file for file in server.files) == 1
    ask(server, "DELETE", f"/{server.token}/api/table/other", **own(server))
    assert not any("number" in file for file in server.files)
    assert is_well(server) == "secret_name.csv"


def test_names_of_files_cannot_leave_the_folder_nor_be_imported(server):
    for name in NAMES:
        status, _, _ = put(server, "other", GOOD, name, **own(server))
        assert status == 200
        (found,) = [f for f in server.files if f not in ("uploads/secret_name.csv",)]
        assert found.startswith("uploads/")
        assert found.count("/") == 1
        assert len(found) < 100
        everything = json.loads(
            ask(server, "GET", f"/{server.token}/api/everything")[2]
        )
        assert everything["tables"]["other"]["rows"] == 40, name
    ask(server, "DELETE", f"/{server.token}/api/table/other", **own(server))


def test_every_answer_has_a_strict_policy(server):
    for place in ("", "static/app.js", "static/app.css", "api/state", "nowhere"):
        _, headers, _ = ask(server, "GET", f"/{server.token}/{place}")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in {name.lower() for name in headers}


def listening(port):
    """Return the addresses that a port is listened on, as Linux tells them."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, number = local.split(":")
            if int(number, 16) == port and state == "0A":
                found.add(address)
    return found


def test_only_the_loopback_interface_is_listened_on(server):
    assert listening(server.port) == {"0100007F"}


def test_the_folder_is_private_and_gone_at_the_end(start, tmp_path):
    with start(tmp_path) as server:
        assert oct(server.folder.stat().st_mode)[-3:] == "700"
        put(server, "table", GOOD, **own(server))
        assert server.files == ["uploads/a.csv"]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_leaves_is_removed_by_the_next_one(start, tmp_path):
    with start(tmp_path) as server:
        put(server, "table", GOOD, **own(server))
        children = [
            int(status.parent.name)
            for status in Path("/proc").glob("[0-9]*/status")
            if f"PPid:\t{server.process.pid}\n" in status.read_text()
        ]
        assert children
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
        left = server.folder
        assert (left / "uploads" / "a.csv").exists()
        stop = time.monotonic() + 10  # the worker ends with its server
        while any(Path(f"/proc/{child}").exists() for child in children):
            assert time.monotonic() < stop
            time.sleep(0.05)
    with start(tmp_path) as first:
        assert not left.exists()
        with start(tmp_path) as second:  # one that lives is left alone
            folders = sorted(tmp_path.glob("sigmascale-app-*"))
            assert len(folders) == 2
            assert is_running(first)
            assert is_running(second)


def is_running(server):
    return ask(server, "GET", f"/{server.token}/api/state")[0] == 200


def test_a_table_can_be_named_at_the_start_and_stays_where_it_is(start, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(GOOD)
    (tmp_path / "t").mkdir()
    with start(tmp_path / "t", path) as server:
        stop = time.monotonic() + 60
        while True:
            found = everything_of(server)
            if found["tables"]["table"]:
                break
            assert time.monotonic() < stop
            time.sleep(0.1)
        assert found["tables"]["table"]["rows"] == 40
        ask(server, "DELETE", f"/{server.token}/api/table/table", **own(server))
    assert path.read_bytes() == GOOD


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["nowhere.csv"], "nowhere.csv: there is no such file"),
        (["--host", "0.0.0.0"], "Name the one by which the page will be called"),
        (["--host", "203.0.113.7"], "Cannot listen on 203.0.113.7"),
    ],
)
def test_what_cannot_be_served_is_refused(options, match, sigmascale, tmp_path):
    done = sigmascale("app", "--no-browser", *options)
    assert done.code == 2
    assert match in done.err
    assert done.out == ""


def test_a_port_that_is_taken_is_told(server, sigmascale):
    done = sigmascale("app", "--no-browser", "--port", server.port)
    assert done.code == 2
    assert "Choose another with --port" in done.err


def test_the_server_itself_loads_no_table_and_no_statistics():
    code = (
        "import sys, sigmascale.app.server; "
        "print(*{'polars', 'scipy', 'sklearn', 'numpy', 'matplotlib'} & {*sys.modules})"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stderr == ""
    assert done.stdout.strip() == ""


def test_a_parquet_file_of_the_app_is_read_by_the_command_line_functions(server):
    buffer = io.BytesIO()
    pl.DataFrame(
        {"E": np.ones(30), "u": np.ones(30), "when": ["x"] * 30}
    ).write_parquet(buffer)
    assert put(server, "other", buffer.getvalue(), "a.parquet", **own(server))[0] == 200
    found = everything_of(server)
    roles = found["tables"]["other"]["settings"]["roles"]
    assert roles == {"E": "error", "u": "uncertainty", "when": "ignored"}
    ask(server, "DELETE", f"/{server.token}/api/table/other", **own(server))


@pytest.mark.parametrize("value", [r'"\ud800"', "NaN", "1e999"])
def test_what_cannot_be_shown_again_does_not_spoil_the_state(server, value):
    kind = {"Content-Type": "application/json", **own(server)}
    for place in ("recalibrate", "settings/table"):
        body = f'{{"method": {value}, "where": {value}}}'.encode()
        status, _, told = ask(
            server, "POST", f"/{server.token}/api/{place}", body, **kind
        )
        assert status == 400, told
    assert is_well(server) == "secret_name.csv"
    assert everything_of(server)["tables"]["table"]["rows"] == 40


def test_unfinished_headers_of_strangers_do_not_keep_the_owner_out(server):
    def line():
        found = socket.create_connection(("127.0.0.1", server.port))
        found.sendall(b"GET / HTTP/1.1\r\nHost:")
        return found

    lines = [line() for _ in range(250)]
    try:
        assert is_well(server) == "secret_name.csv"
    finally:
        for each in lines:
            each.close()


@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.2])
def test_an_interrupt_during_the_start_prints_no_traceback(seconds):
    code = (
        "import os, signal, sys, threading; from sigmascale.__main__ import main; "
        "sys.argv = ['sigmascale', 'app', '--no-browser']; "
        f"stop = lambda: os.kill(os.getpid(), signal.SIGINT); "
        f"threading.Timer({seconds}, stop).start(); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 130)
    assert "Traceback" not in done.stderr


def test_a_request_that_breaks_off_prints_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "sigmascale", "app", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    app = subprocess.Popen(command, text=True, env=environment, **pipes)
    address = urlsplit(app.stdout.readline().strip())
    broken = (
        f"POST {address.path}api/judge HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Origin: http://{address.netloc}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    )
    with socket.create_connection(("127.0.0.1", address.port), timeout=9) as line:
        line.sendall(broken.encode())
        line.shutdown(socket.SHUT_WR)
        while line.recv(1000):
            pass
    app.terminate()
    assert "Traceback" not in app.communicate(timeout=60)[1]
