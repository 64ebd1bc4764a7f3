"""Save from several processes at once, and kill commands while they write.

    make torture
    python tests/torture.py --saves 600 --kills 8

Ends with 0 if no save failed, no file was torn, and nothing was left behind.
"""

from __future__ import annotations

import argparse
import itertools
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale._support.files import PREFIX

SIGNALS = [getattr(signal, f"SIG{name}") for name in ("KILL", "TERM", "HUP", "INT")]
LEAVES_NOTHING = SIGNALS[1:]  # the command line cleans up by itself
SAVE = """
import sys
import polars as pl
import sigmascale as ss

folder, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
scaler = ss.TemperatureScaling().fit([1.0, 2.0], [2.0, -4.0])
frame = pl.LazyFrame({"u": [1.0, 2.0]})
for i in range(count):
    if i % 20 == number:
        ss.frames.sink(frame, f"{folder}/{i % 7}.parquet")
    else:
        ss.save(scaler, f"{folder}/{i % 7}.json")
"""
SINK = (
    "from sigmascale.frames import scan, sink\nsink(scan('new.parquet'), 'o.parquet')"
)


def left(folder: Path) -> list[Path]:
    """Return temporary files and folders."""
    return list(folder.glob(f"{PREFIX}*"))


def save_at_once(n_saves: int, processes: int = 6) -> list[str]:
    """Save into one folder from several processes; return what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        share = [n_saves // processes] * processes
        share[0] += n_saves - sum(share)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", SAVE, name, str(number), str(count)],
                stderr=subprocess.PIPE,
                text=True,
            )
            for number, count in enumerate(share)
        ]
        problems = [each.communicate()[1].strip()[-300:] for each in running]
        wrong = [words for words in problems if words]
        wrong += [f"left behind: {path.name}" for path in left(Path(name))]
        for path in Path(name).glob("*.json"):
            ss.load(path)
        for path in Path(name).glob("*.parquet"):
            pl.read_parquet(path)
        return wrong


@dataclass(frozen=True)
class Command:
    """What is killed: its arguments, what it writes, and whether that is whole."""

    arguments: list[str]
    output: str
    is_whole: Callable[[Path], bool]
    is_ours: bool = True  # a command of sigmascale, which cleans up by itself


def commands(folder: Path, rows: int) -> list[Command]:
    """Write the tables that commands need, and return the commands."""
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, rows)
    table = pl.DataFrame({"E": rng.normal(scale=2 * u), "u": u, "x": rng.random(rows)})
    table.write_csv(folder / "new.csv")
    table.write_parquet(folder / "new.parquet", row_group_size=1000)
    table[:2000].write_csv(folder / "few.csv")
    sigmascale = ["-m", "sigmascale"]
    run([*sigmascale, "fit", "few.csv", "--method", "linear", "-o", "s.json"], folder)

    def has_all_rows(path: Path) -> bool:
        read = pl.read_csv if path.suffix == ".csv" else pl.read_parquet
        return bool(read(path).height == rows)

    def is_page(path: Path) -> bool:
        return path.read_text().rstrip().endswith("</html>")

    def loads(path: Path) -> bool:
        return ss.load(path) is not None

    apply = [*sigmascale, "apply", "s.json"]
    lazily = [*apply, "new.parquet", "--engine", "polars", "-o", "p.parquet"]
    fit = [*sigmascale, "fit", "few.csv", "--method", "isotonic", "-o", "f.json"]
    report = [*sigmascale, "check", "few.csv", "--report", "r.html"]
    return [
        Command([*apply, "new.csv", "-o", "o.csv"], "o.csv", has_all_rows),
        Command(lazily, "p.parquet", has_all_rows),
        Command(fit, "f.json", loads),
        Command([*report, "--tolerate", "no"], "r.html", is_page),
        Command(["-c", SINK], "o.parquet", has_all_rows, is_ours=False),
    ]


def run(arguments: list[str], folder: Path) -> None:
    """Run a command to its end."""
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=True, capture_output=True
    )


def kill_while_writing(n_kills: int, seed: int, rows: int) -> tuple[list[str], int]:
    """Kill commands at random moments; return what went wrong, and how many wrote."""
    rng = random.Random(seed)
    wrong, caught = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_commands = commands(folder, rows)
        seconds = {}
        for command in all_commands:
            start = time.monotonic()
            run(command.arguments, folder)
            seconds[command.output] = time.monotonic() - start
        cases = itertools.product(SIGNALS, all_commands)
        for number, command in itertools.islice(itertools.cycle(cases), n_kills):
            output = folder / command.output
            old = rng.choice([b"old", None])
            output.unlink(missing_ok=True)
            if old is not None:
                output.write_bytes(old)
            process = subprocess.Popen(
                [sys.executable, *command.arguments],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            before = set(left(folder))
            if rng.random() < 0.7:  # as soon as something is being written
                while process.poll() is None and not set(left(folder)) - before:
                    time.sleep(0.0005)
                time.sleep(rng.choice([0.0, 0.01 * rng.random(), 0.2 * rng.random()]))
            else:
                time.sleep(rng.random() * seconds[command.output])
            caught += bool(set(left(folder)) - before)
            process.send_signal(number)  # unless it has ended
            process.wait()
            what = f"{signal.Signals(number).name} of {' '.join(command.arguments)}"
            if not output.exists():
                if old is not None:
                    wrong.append(f"{what}: the old file is gone")
            elif output.read_bytes() != old and not command.is_whole(output):
                wrong.append(f"{what}: the file is torn")
            if command.is_ours and number in LEAVES_NOTHING:
                stale = set(left(folder)) - before
                wrong += [f"{what}: {path.name} was left" for path in stale]
    return wrong, caught


def main() -> int:
    """Do both, and tell what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--saves", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = save_at_once(options.saves) if options.saves else []
    print(f"{options.saves} saves from 6 processes into one folder: {len(wrong)} wrong")
    if options.kills:
        torn, caught = kill_while_writing(options.kills, options.seed, options.rows)
        print(
            f"{options.kills} kills, {caught} of them while something was being "
            f"written: {len(torn)} wrong"
        )
        wrong += torn
    for words in wrong[:20]:
        print(words)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
