"""Two hundred requests that nobody should make: the server tells nothing."""

import fcntl
import gzip
import http.client
import io
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

GOOD = b"E,u\n" + b"".join(b"%.2f,1.5\n" % ((i % 7 - 3) / 2) for i in range(40))
PLACES = ["", "api/state", "static/app.js", "files/mine.csv", "all.zip"]
SECRET = "secret_name.csv"


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server that has a table, which is nobody else's business."""
    with start(tmp_path_factory.mktemp("attacked"), "--largest", 1) as found:
        assert found.put("table", GOOD, SECRET) == 200
        yield found


def is_well(server):
    return server.state()["slots"]["table"]["file"] == SECRET


HOSTS = [
    *("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost"),
    *("LOCALHOST:1", "*", "null", "localhost.evil.example:{port}", "[::1]:1"),
    *("127.0.0.1.evil.example:{port}", "127.0.0.1:{port}.evil", "0.0.0.0:{port}"),
    *("127.0.0.2:{port}", "2130706433:{port}", "127.1:{port}", "evil@127.0.0.1:{port}"),
    *("127.0.0.1:{port}@evil", "127.0.0.1:{port},evil"),
]
ORIGINS = [
    *("http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"),
    *("http://localhost:{port}", "http://127.0.0.1:1", "http://[::1]:{port}"),
    *("http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/", "file://"),
    *("chrome-extension://abc", "*", "http://127.0.0.1:{port},http://evil.example"),
    *("HTTP://127.0.0.1:{port}", "http://0.0.0.0:{port}"),
]
TOKENS = [
    *("x", "{token}x", "x{token}", "{short}", "{swapped}", "{token}%00", "%2e%2e"),
    *(".", "..", "../{token}", "/{token}", "{token};", "{token}?", "{token}#", "*"),
    *("%s", "null", "undefined", "00000000000000000000000000000000"),
]
ORDERS = [
    *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"[" * 100_000),
    *(b'{"a":' * 10_000, b'{"files": ["/etc/passwd"]}', b'{"output": "../x"}'),
    *(b'{"report": "/tmp/x.html"}', b'{"recalibrator": "../../x.json"}'),
    *(b'{"command": "demo"}', b'{"where": NaN}', b'{"where": "\\ud800"}'),
    b"x" * (1 << 20) + b"y",
]
PATHS = [
    *("files/../../../etc/passwd", "files/..%2f..%2f..%2fetc%2fpasswd", "static/.."),
    *("static/../page.html", "static/..%2f..%2fsite.py", "files//etc/passwd"),
    *("files/%2fetc%2fpasswd", "files/secret_name.csv", "files/./secret_name.csv"),
    *("files/uploads/secret_name.csv", "files/secret_name.csv%00.html", "files/"),
    *("static/%2e%2e/%2e%2e/session.py", "files/..", "static/page.html", "..", "../"),
    *("%2e%2e/", "api", "files/C:%5cboot.ini", "api/table/../../x", ".git/config"),
    *("static/..%5c..%5csite.py", "files/%c0%ae%c0%ae/passwd", "files/figures/0.svg"),
]
METHODS = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "FOO"]
NAMES = [
    *("", "x" * 3000, "../../evil.csv", "..%2f..%2fevil.csv", "%2fetc%2fevil.csv"),
    *("-rf.csv", ".hidden", "%00.csv", "a%0d%0ab.csv", "con.csv", "%3Cscript%3E.csv"),
    *("%F0%9F%92%A3", "..", ".", "numpy.py", "polars.py", "%ff%fe.csv"),
    "sitecustomize.py",
]


def attacks(server):
    """Return requests as pairs of words and a function that makes one."""
    token, own = server.token, server.own
    fill = {"port": server.port, "token": token, "short": token[:-1]}
    fill["swapped"] = token.swapcase()
    inside, found = f"/{token}", []

    def add(words, method, path, body=None, **headers):
        found.append((words, lambda: server.ask(method, path, body, **headers)))

    for host in HOSTS:
        name = host.format(**fill)
        add(f"host {host}", "GET", f"{inside}/api/state", Host=name)
    for origin in ORIGINS:
        name = origin.format(**fill)
        add(f"get from {origin}", "GET", f"{inside}/api/state", Origin=name)
        add(f"post from {origin}", "POST", f"{inside}/api/demo", b"{}", Origin=name)
        add(f"put from {origin}", "PUT", f"{inside}/api/table/known", GOOD, Origin=name)
    for each in TOKENS:
        path = f"/{each.format(**fill)}"
        add(f"token {each}", "GET", f"{path}/api/state")
        add(f"put, token {each}", "PUT", f"{path}/api/table/known", GOOD, **own)
    for place in PLACES:
        add(f"no token, {place}", "GET", f"/{place}")
        add(f"a cookie, {place}", "GET", f"/{place}", Cookie=f"token={token}")
        add(f"a header, {place}", "GET", f"/{place}", Authorization=token)
    for site in ("cross-site", "same-site"):
        add(f"fetched {site}", "GET", f"{inside}/", **{"Sec-Fetch-Site": site})
    kind = {"Content-Type": "application/json", **own}
    for body in ORDERS:
        for place in ("fields/table", "run/check"):
            words = f"{place} with {body[:20]!r}"
            add(words, "POST", f"{inside}/api/{place}", body, **kind)
    for place in ("fields/table", "run/check"):  # a form of another page
        add(f"text to {place}", "POST", f"{inside}/api/{place}", b"{}", **own)
    for step in ("demo", "watch", "../check", "__init__", "app"):
        add(f"step {step}", "POST", f"{inside}/api/run/{step}", b"{}", **kind)
    for path in PATHS:
        add(f"path {path}", "GET", f"{inside}/{path}", **own)
    for method in METHODS:
        add(f"method {method}", method, f"{inside}/api/state", **own)
        add(f"method {method}, no origin", method, f"{inside}/api/demo")
    for name in NAMES:
        path = f"{inside}/api/table/x?name={name}"
        add(f"upload to nowhere as {name[:9]}", "PUT", path, GOOD, **own)
    big = b"1" * ((1 << 20) + 1)
    for slot in ("table", "new", "known"):
        path = f"{inside}/api/table/{slot}?name=big.csv"
        add(f"oversized, {slot}", "PUT", path, big, **own)
        add(f"oversized in chunks, {slot}", "PUT", path, iter([big] * 3), **own)
        add(f"no origin, {slot}", "PUT", path, GOOD)
        add(f"a form, {slot}", "POST", path, b"a=b", **own)
    for length in ("-1", "99999999999999999999", "abc"):
        lying = {"Content-Length": length, **own}
        add(f"length {length}", "PUT", f"{inside}/api/table/new", b"", **lying)
    add("a long header", "GET", "/", **{"X-Long": "x" * 100_000})
    add("a long path", "GET", f"{inside}/{'x' * 60_000}")
    return found


@pytest.mark.skipif(os.name == "nt", reason="Windows opens pages in another way")
def test_the_browser_is_started_with_a_file_that_only_its_owner_reads(tmp_path, start):
    told = tmp_path / "told"
    program = tmp_path / "browser"
    program.write_text(
        f'#!/bin/sh\necho "$@" > "{told}.part"; mv "{told}.part" "{told}"\n'
    )
    program.chmod(0o700)
    with start(tmp_path, browser=True, BROWSER=f"{program} %s") as server:
        stop = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < stop, "no browser was started"
            time.sleep(0.05)
        words = told.read_text()
        assert server.token not in words
        page = Path(unquote(urlsplit(words.strip()).path))
        assert page.parent == server.folder
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        assert server.address in page.read_text()
        # which browsers call another site, and what follows it cannot
        elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        for path, status in (("", 200), ("api/state", 403), ("static/app.js", 403)):
            found = server.ask("GET", f"/{server.token}/{path}", **elsewhere)
            assert found[0] == status
        assert server.ask("GET", "/x/", **elsewhere)[0] == 403


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
        assert status != 500, words
        assert b"secret" not in body, words
        assert b"Traceback" not in body, words
        assert str(server.temporary).encode() not in body, words
        if status == 403:
            policy = {name.lower(): value for name, value in headers.items()}
            assert "default-src 'none'" in policy["content-security-policy"], words
            assert server.token.encode() not in body, words
    assert server.files == before
    assert is_well(server)


def head(server, slot, length):
    return (
        f"PUT /{server.token}/api/table/{slot}?name=cut.csv HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{server.port}\r\nOrigin: http://127.0.0.1:{server.port}\r\n"
        f"Content-Length: {length}\r\nConnection: close\r\n\r\n"
    ).encode()


def eventually(found, patience=60):
    """Wait until something is so."""
    stop = time.monotonic() + patience
    while not found():
        assert time.monotonic() < stop
        time.sleep(0.05)


def test_truncated_uploads_leave_no_file(server):
    before = server.files
    for slot in ("table", "new", "known"):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(head(server, slot, 1000) + GOOD[:50])
            eventually(lambda: server.files != before)  # it has begun to arrive
        eventually(lambda: server.files == before)
    assert is_well(server)


def test_a_body_that_does_not_arrive_keeps_no_other_out(server):
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(head(server, "new", len(GOOD)) + GOOD[:50])
        eventually(lambda: any("incoming" in file for file in server.files))
        assert server.put("new", GOOD, "next.csv") == 200
        line.sendall(GOOD[50:])  # what comes too late does not replace it
        assert b" 409 " in line.recv(1000).split(b"\r\n")[0]
    assert server.state()["slots"]["new"]["file"] == "next.csv"
    server.order("DELETE", "api/table/new")
    assert is_well(server)


def test_requests_that_are_no_http_do_no_harm(server):
    for content in (
        b"\0" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"x" * 200_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        f"GET /{server.token}/ HTTP/1.1\r\n\r\n".encode(),  # no host
    ):
        line = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        with line, suppress(OSError):
            line.sendall(content)
            line.shutdown(socket.SHUT_WR)
            assert b" 200 " not in line.recv(65536).split(b"\r\n")[0]
    assert is_well(server)


def test_a_file_that_is_too_large_unpacked_is_refused(server):
    before, sheet = server.files, io.BytesIO()
    with zipfile.ZipFile(sheet, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(64_000_000))
    text = gzip.compress(b"E,u\n" + b"0.0,1.0\n" * 4_000_000)
    for body, name in ((sheet.getvalue(), "bomb.xlsx"), (text, "bomb.csv.gz")):
        assert len(body) < 1 << 20
        assert server.put("new", body, name) == 413
    assert "new" not in server.state()["slots"]
    assert server.files == before


def test_fifty_uploads_at_once_leave_one_table(server):
    def upload(number):
        return server.put("new", GOOD, f"number{number}.csv")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(upload, range(50)))
    assert set(answers) <= {200, 409}
    assert 200 in answers
    assert sum("number" in file for file in server.files) == 1
    server.order("DELETE", "api/table/new")
    assert not any("number" in file for file in server.files)
    assert is_well(server)


def test_names_of_files_cannot_leave_the_folder_nor_be_imported(server):
    others = set(server.files)
    for name in NAMES:
        assert server.put("known", GOOD, name) == 200
        (found,) = set(server.files) - others
        assert found.startswith("uploads/")
        assert found.count("/") == 1
        assert len(found) < 100
    state = server.run("examine/known")  # by a process that starts among such names
    assert state["slots"]["known"]["view"]["rows"] == 40
    server.order("DELETE", "api/table/known")


def test_every_answer_has_a_strict_policy(server):
    for place in ("", "static/app.js", "static/app.css", "api/state", "nowhere"):
        _, headers, _ = server.ask("GET", f"/{server.token}/{place}")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in {name.lower() for name in headers}


def test_only_the_loopback_interface_is_listened_on(server):
    lines = [
        line.split()[1:4]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    listening = [place for place, _, state in lines if state == "0A"]
    port = f"{server.port:04X}"
    assert [x for x in listening if x.endswith(f":{port}")] == [f"0100007F:{port}"]


def test_the_folder_is_private_and_gone_at_the_end(start, tmp_path):
    with start(tmp_path) as server:
        assert oct(server.folder.stat().st_mode)[-3:] == "700"
        server.put("table", GOOD)
        assert server.files == ["uploads/a.csv"]
    assert list(tmp_path.iterdir()) == []


def children(process):
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"PPid:\t{process.pid}\n" in status.read_text():
                found.append(int(status.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def test_what_a_killed_server_leaves_is_removed_by_the_next_one(start, tmp_path):
    with start(tmp_path) as server:
        server.put("table", GOOD)
        server.ask("GET", f"/{server.token}/")  # the page starts the worker
        eventually(lambda: children(server.process))
        workers = children(server.process)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
        left = server.folder
        assert (left / "uploads" / "a.csv").exists()
        # the worker ends with its server
        eventually(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))
    with start(tmp_path) as first:
        assert not left.exists()
        with start(tmp_path) as second:  # one that lives is left alone
            assert len(list(tmp_path.glob("sigmascale-app-*"))) == 2
            assert first.state()["slots"] == second.state()["slots"] == {}


def test_servers_that_start_at_once_remove_nobody_else_s_folder(tmp_path):
    kept = [tmp_path / "sigmascale-apple", tmp_path / "sigmascale-app-x"]
    for path in kept:
        path.mkdir()
    lives = os.open(kept[1], os.O_RDONLY)
    fcntl.flock(lives, fcntl.LOCK_EX)
    (tmp_path / "sigmascale-app-link").symlink_to(tmp_path)
    code = (
        "from sigmascale.app.server import private_folder\n"
        "for _ in range(200):\n"
        "    with private_folder() as folder:\n"
        "        (folder / 'a').write_text('a')\n"
        "        assert (folder / 'a').read_text() == 'a'\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    every = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [each.wait(120) for each in every] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 3
    assert all(path.exists() for path in kept)
    os.close(lives)


def test_a_table_can_be_named_at_the_start_and_stays_where_it_is(start, tmp_path):
    path = tmp_path / "mine[1].csv"
    path.write_bytes(GOOD)
    (tmp_path / "t").mkdir()
    with start(tmp_path / "t", path) as server:
        assert server.run("examine/table")["slots"]["table"]["view"]["rows"] == 40
        server.order("DELETE", "api/table/table")
        assert server.state()["slots"] == {}
    assert path.read_bytes() == GOOD


def test_what_cannot_be_served_is_refused(server, sigmascale):
    for *options, match in (
        ("nowhere.csv", "nowhere.csv"),
        ("--host", "0.0.0.0", "--host"),
        ("--host", "203.0.113.7", "203.0.113.7"),
        ("--port", server.port, "--port"),  # which is taken
    ):
        done = sigmascale("app", "--no-browser", *options)
        assert (done.code, done.out) == (2, "")
        assert match in done.err


def test_the_server_itself_loads_no_table_and_no_statistics():
    code = (
        "import sys, sigmascale.app.server; "
        "print(*{'polars', 'scipy', 'sklearn', 'numpy', 'matplotlib'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == ""


def test_unfinished_headers_of_strangers_do_not_keep_the_owner_out(server):
    def line():
        found = socket.create_connection(("127.0.0.1", server.port))
        found.sendall(b"GET / HTTP/1.1\r\nHost:")
        return found

    lines = [line() for _ in range(250)]
    try:
        assert is_well(server)
    finally:
        for each in lines:
            each.close()


def test_interrupts_and_requests_that_break_off_print_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "sigmascale", "app", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    app = subprocess.Popen(command, text=True, env=environment, **pipes)
    address = urlsplit(app.stdout.readline().strip())
    broken = (
        f"POST {address.path}api/run/check HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Origin: http://{address.netloc}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    )
    with socket.create_connection(("127.0.0.1", address.port), timeout=60) as line:
        line.sendall(broken.encode())
        line.shutdown(socket.SHUT_WR)
        while line.recv(1000):
            pass
    app.send_signal(signal.SIGINT)
    assert app.communicate(timeout=60)[1] == ""
    assert app.returncode in (0, 130)
    assert list(tmp_path.iterdir()) == []
