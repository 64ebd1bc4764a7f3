"""How late the app shows a verdict, and how soon it answers meanwhile.

``python benchmarks/app.py --rows 1000000`` makes a Parquet file with three features,
times ``sigmascale check`` on it, and then the app from the order to the verdict, with a
request every 100 ms. It also times the first page against ``sigmascale --help``.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import polars as pl

COMMAND = [sys.executable, "-m", "sigmascale"]


def make_table(path, rows):
    """Write a table whose uncertainties are too small for one feature."""
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=rows), rng.normal(size=(3, rows))
    error = rng.normal(scale=u * (1 + 0.2 * (x[0] > 1)))
    names = dict(zip("abc", x, strict=True))
    pl.DataFrame({"E": error, "u": u, **names}).write_parquet(path)


def timed(*arguments):
    """Return the seconds that a command takes."""
    started = time.perf_counter()
    subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True)
    return time.perf_counter() - started


class App:
    """A running app."""

    def __init__(self, *arguments):
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [*COMMAND, "app", "--no-browser", *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = urlsplit(self.process.stdout.readline().strip())
        self.ask("GET", "")
        self.first_page = time.perf_counter() - started

    def ask(self, method, path, body=None):
        """Return the answer to a request."""
        line = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=60)
        origin = f"http://127.0.0.1:{self.address.port}"
        headers = {"Origin": origin, "Content-Type": "application/json"}
        line.request(method, self.address.path + path, body, headers)
        found = line.getresponse().read()
        line.close()
        return found

    def state(self):
        """Return what the app is doing."""
        return json.loads(self.ask("GET", "api/state"))


def watch(app):
    """Judge the table; return the seconds, and those of each answer meanwhile."""
    answers = []
    started = time.perf_counter()
    app.ask("POST", "api/judge/table", "{}")
    while True:
        asked = time.perf_counter()
        state = app.state()
        answers.append(time.perf_counter() - asked)
        if state["job"] is None:
            app.ask("GET", "api/everything")
            return time.perf_counter() - started, answers
        time.sleep(0.1)


def main():
    """Print all times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        make_table(path, options.rows)
        helped = min(timed("--help") for _ in range(3))
        checked = timed("check", path, "--all-features", "--json")
        app = App()
        try:
            uploaded = time.perf_counter()
            app.ask("PUT", "api/table/table?name=table.parquet", path.read_bytes())
            uploaded = time.perf_counter() - uploaded
            judged, answers = watch(app)
        finally:
            app.process.terminate()
            app.process.wait()
    print(f"help {helped:.2f} s; first page {app.first_page:.2f} s")
    print(f"check {checked:.1f} s, {options.rows:,} rows")
    print(f"app: dropped and looked at {uploaded:.1f} s, judged {judged:.1f} s")
    both = (judged + uploaded) / checked
    print(f"ratio {judged / checked:.2f}, with the drop {both:.2f}")
    slowest = max(answers)
    print(f"{len(answers)} answers meanwhile, the slowest {1000 * slowest:.0f} ms")


if __name__ == "__main__":
    main()
