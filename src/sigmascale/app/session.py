"""What the page shows, kept by the server: it survives a reload."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import time
import unicodedata
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from ..cli.options import names_of_files
from ..exceptions import InvalidInputError
from ..predictions.roles import roles_of_page
from .worker import Worker

# What goes when a file or its columns change: the results that rest on it.
SLOTS = {
    "table": ("check", "fit", "apply"),
    "known": ("fit", "apply"),
    "new": ("apply",),
    "recalibrator": ("apply",),
}
STEPS = ("check", "fit", "apply")
DOING = {
    "examine": "reading the file",
    "demo": "making the demo",
    "check": "testing the uncertainties",
    "fit": "recalibrating",
    "apply": "recalibrating new predictions",
}
# How a table is read, and what is not said, where a recalibrator knows the columns.
READING = ("where", "separator", "decimal")
REMEMBERED = ("features", "labels")
ENDING = re.compile(
    r"(\.(csv|tsv|tab|parquet|pq|feather|arrow|ipc|jsonl|ndjson|xlsx)(\.gz)?)$", re.I
)
LONGEST_NAME = 80  # bytes
UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
Fields = dict[str, Any]


@dataclass
class Slot:
    """A file that was dropped, the fields of commands about it, and what it is."""

    file: str
    size: int
    fields: Fields = field(default_factory=dict)
    view: dict[str, Any] | None = None


@dataclass
class Job:
    """What is being done."""

    what: str
    since: float = field(default_factory=time.monotonic)


class Session:
    """The tables, the results and the work of one person.

    Parameters
    ----------
    folder : Path
        The private folder. Below it, what is on its way is in `incoming`, what has
        arrived in `uploads`, and what commands make in `made`: no upload is replaced.
    largest : int
        Bytes that a file may have.
    """

    def __init__(self, folder: Path, largest: int) -> None:
        self.incoming = folder / "incoming"
        self.uploads = folder / "uploads"
        self.made = folder / "made"
        for path in (self.incoming, self.uploads, self.made):
            path.mkdir(mode=0o700)
        self.largest = largest
        self.worker = Worker(self.made)
        self.slots: dict[str, Slot] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.problems: dict[str, dict[str, Any]] = {}
        self.revision = 0
        self.job: Job | None = None
        self._task: asyncio.Task[None] | None = None

    # -- what the page asks for -----------------------------------------------------

    def state(self, known: str = "") -> dict[str, Any]:
        """Return what is going on, and all the rest unless the page knows it."""
        state: dict[str, Any] = {"revision": self.revision, "job": None}
        if self.job is not None:
            state["job"] = {
                "what": self.job.what,
                "words": DOING[self.job.what],
                "seconds": round(time.monotonic() - self.job.since, 1),
            }
        if known == str(self.revision):
            return state
        return state | {
            "slots": {name: vars(slot) for name, slot in self.slots.items()},
            "results": self.results,
            "problems": self.problems,
            "largest": self.largest,
            "roles": roles_of_page(),
        }

    def path_of(self, name: str) -> Path | None:
        """Return where a file for download, or a picture, is; if it is one."""
        allowed = self.downloads()
        for result in self.results.values():
            allowed.update(figure["file"] for figure in result["figures"])
        path = self.made / name
        return path if name in allowed and path.is_file() else None

    def downloads(self) -> set[str]:
        """Return the files that were made for the person."""
        names: set[str] = set()
        for result in self.results.values():
            names.update(result["files"])
        return names

    def archive(self) -> Path:
        """Return a new archive of all files for download."""
        path = self.incoming / secrets.token_hex(8)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(self.downloads()):
                # without the time, so that the same files give the same archive
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with (
                    (self.made / name).open("rb") as source,
                    archive.open(entry, "w", force_zip64=True) as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
        return path

    # -- files ----------------------------------------------------------------------

    def take(self, slot: str, incoming: Path, name: str) -> None:
        """Put a file that has arrived into a slot, instead of the one there."""
        self.clear(slot)
        name = self._free(name, {path.name for path in self.made.iterdir()})
        incoming.replace(self.uploads / name)
        self.link(slot, self.uploads / name)

    def link(self, slot: str, path: Path) -> None:
        """Put a file of this machine into a slot, where it stays.

        Commands find it by its name, where they work.
        """
        name = self._free(path.name)
        try:
            (self.made / name).symlink_to(path)
        except OSError:  # a system without links
            shutil.copyfile(path, self.made / name)
        self.slots[slot] = Slot(name, path.stat().st_size)
        self.revision += 1

    def clear(self, slot: str) -> None:
        """Forget a file, and all that was found out about it."""
        old = self.slots.pop(slot, None)
        if old is not None:
            (self.made / old.file).unlink(missing_ok=True)
            (self.uploads / old.file).unlink(missing_ok=True)
        self._forget(slot)

    def settle(self, slot: str, fields: Fields) -> None:
        """Keep what a person says of the columns of a file, and how it is read."""
        self._slot(slot).fields = _checked(fields)
        self._forget(slot)

    def _forget(self, slot: str) -> None:
        """Forget the results that rest on a file, and the files that were made."""
        for name in SLOTS[slot]:
            for file in self.results.pop(name, {}).get("files", ()):
                (self.made / file).unlink(missing_ok=True)
            self.problems.pop(name, None)
        self.problems.pop(slot, None)
        self.revision += 1

    def _free(self, name: str, others: set[str] | None = None) -> str:
        """Return a name that no file in a slot has, nor others."""
        taken = {slot.file for slot in self.slots.values()}
        return safe_name(name, taken | (others or set()))

    def _slot(self, name: str) -> Slot:
        """Return a slot that has a file; refuse one that has none."""
        if name not in self.slots:
            msg = "There is no such file yet. Drop one."
            raise InvalidInputError(msg, "no-file", slot=name)
        return self.slots[name]

    # -- work -----------------------------------------------------------------------

    def examine(self, slot: str) -> None:
        """Start to look at a file: its columns, what they may be, its first rows."""
        examined = self._slot(slot)
        like = self.slots["table"].fields if slot == "known" else {}

        async def work() -> None:
            about = {"file": examined.file, "kind": slot, "like": like}
            answer = await self.worker.do("examine", fields=examined.fields, **about)
            examined.view = answer["result"]
            examined.fields = examined.view.pop("fields")

        self._start("examine", slot, work)

    def demo(self) -> None:
        """Start to make the table of the demo."""

        async def work() -> None:
            answer = await self.worker.do("demo", folder=str(self.incoming))
            name = answer["result"]
            for slot in SLOTS:
                self.clear(slot)
            self.take("table", self.incoming / name, name)

        self._start("demo", "table", work)

    def run(self, step: str, fields: Fields) -> None:
        """Start the commands of a step; the page gives fields, the files are ours."""
        commands_of = {"check": self._check, "fit": self._fit, "apply": self._apply}
        commands = commands_of[step](_checked(fields))

        async def work() -> None:
            lines: list[str] = []
            warnings: dict[str, None] = {}  # each once
            files: list[str] = []
            result: dict[str, Any] = {"figures": []}
            for command in commands:
                answer = await self.worker.do("command", step=step, fields=command)
                result |= answer["result"]
                lines.append(result.pop("line"))
                warnings |= dict.fromkeys(answer["warnings"])
                for output in ("output", "report", "card"):
                    if command.get(output):
                        files.append(command[output])
            result |= {"files": files, "lines": lines, "warnings": list(warnings)}
            self.results[step] = result

        self._start(step, step, work)

    def _check(self, fields: Fields) -> list[Fields]:
        """Return what tests the table, by its fields and those of this run."""
        table = self._slot("table")
        report = self._free(f"{_stem(table.file)}_report.html")
        card = self._free(f"{_stem(table.file)}_card.html")
        check = {"command": "check", "files": [table.file], "report": report}
        return [check | {"card": card} | table.fields | fields]

    def _fit(self, fields: Fields) -> list[Fields]:
        """Return what fits, tests other rows, and recalibrates the table."""
        table = self._slot("table")
        stem = _stem(table.file)
        output = self._free(f"{stem}_recalibrator.json")
        report = self._free(f"{stem}_before_after.html")
        apply = self._applied(table, output)

        # of one table, a share is held out, by the command that fits the rest
        fit: Fields = {"command": "fit", "output": output}
        if fields.get("test_share") is not None:
            fit |= {"files": [table.file], **table.fields, **fields, "report": report}
            return [fit, apply]

        # of two, the other is fitted, whose features the recalibrator remembers
        known = self._slot("known")
        fit |= {"files": [known.file], **known.fields, **fields}
        check = {"command": "check", "files": [table.file], "report": report}
        check["card"] = self._free(f"{stem}_before_after_card.html")
        for name, value in table.fields.items():
            if name not in REMEMBERED:
                check[name] = value
        check["recalibrator"] = output
        return [fit, check, apply]

    def _apply(self, fields: Fields) -> list[Fields]:
        """Return what recalibrates a new table, by what was fitted or dropped."""
        new = self._slot("new")
        source = fields.pop("source", "fit")
        if source == "file":
            recalibrator = self._slot("recalibrator").file
        elif "fit" in self.results:
            recalibrator = self.results["fit"]["files"][0]
        else:
            msg = "Nothing is fitted yet. Recalibrate first, or drop a recalibrator."
            raise InvalidInputError(msg, "not-fitted")
        return [self._applied(new, recalibrator) | new.fields | fields]

    def _applied(self, table: Slot, recalibrator: str) -> Fields:
        """Return the command that recalibrates a table, read as its fields say."""
        match = ENDING.search(table.file)
        ending = match[1] if match else ".csv"
        command: Fields = {
            "command": "apply",
            "recalibrator": recalibrator,
            "files": [table.file],
            "output": self._free(f"{_stem(table.file)}_recalibrated{ending}"),
        }
        for name in READING:
            if name in table.fields:
                command[name] = table.fields[name]
        return command

    def _start(self, what: str, place: str, work: Any) -> None:
        """Begin to work, and keep what goes wrong under a name."""
        if self.job is not None:
            msg = f"Wait, or stop what is going on: {DOING[self.job.what]}."
            raise InvalidInputError(msg, "busy")
        self.job = job = Job(what)
        self.problems.pop(place, None)
        self.results.pop(what, None)
        self.revision += 1

        async def working() -> None:
            try:
                await work()
            except InvalidInputError as problem:
                about = {"message": str(problem), "code": problem.code}
                self.problems[place] = about | {"fields": problem.fields}
            finally:
                assert self.job is job
                self.job = None
                self.revision += 1

        self._task = asyncio.create_task(working())

    async def idle(self) -> None:
        """Stop what is going on, and wait until it has ended."""
        while self.job is not None and self._task is not None:
            self.worker.stop()
            await asyncio.wait([self._task])

    async def end(self) -> None:
        """Stop all work."""
        await self.worker.end()
        if self._task is not None:
            with suppress(Exception):
                await asyncio.wait_for(self._task, 1)


def _stem(file: str) -> str:
    """Return the name of a file without what tells its format.

    >>> _stem("a.b.csv.gz"), _stem("table.json"), _stem("plain")
    ('a.b', 'table', 'plain')
    """
    return ENDING.sub("", file) if ENDING.search(file) else PurePath(file).stem


def _checked(fields: Fields) -> Fields:
    """Refuse fields that are not the page's; commands check the others.

    Those that name files are set here.
    """
    if forbidden := {"command", *names_of_files()}.intersection(fields):
        msg = f"A page cannot set {', '.join(sorted(forbidden))}."
        raise InvalidInputError(msg, "field")
    return dict(fields)


def safe_name(name: str, taken: set[str]) -> str:
    """Return the name that a file gets in the folder: a plain one, not yet taken.

    >>> safe_name("../../etc/passwd", set()), safe_name("-rf.csv", {"rf.csv"})
    ('passwd', 'rf-2.csv')
    """
    # without folders, without what a system or a shell may act upon, and not too long
    name = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(filter(str.isprintable, UNSAFE.sub("_", name)))
    name = name.encode("utf-8", "ignore").decode().strip().lstrip(".-~ ")
    if len(name.encode()) > LONGEST_NAME:
        name = name.encode()[-LONGEST_NAME:].decode("utf-8", "ignore").lstrip(".-~ ")
    name = name or "table.csv"

    # with a number if the name is taken; some systems know no capital letters
    stem, dot, ending = name.partition(".")
    folded = {other.casefold() for other in taken}
    number = 1
    while name.casefold() in folded:
        number += 1
        name = f"{stem}-{number}{dot}{ending}"
    return name
