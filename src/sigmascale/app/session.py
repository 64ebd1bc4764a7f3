"""What the page shows, kept by the server: it survives a reload."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError
from .commands import Plan, TableSettings, free_stem
from .uploads import safe_name
from .worker import Worker

# What goes when a file changes: the results that rest on it.
SLOTS = {
    "table": ("table", "recalibrated", "new"),
    "other": ("other",),
    "known": ("recalibrated", "new"),
    "new": ("new",),
    "scaler": ("new",),
}
DOING = {"judge": "judging the uncertainties", "report": "drawing the pictures"}
LONGEST_JOB = 3600.0  # seconds


class BusyError(InvalidInputError):
    """There is work going on."""


@dataclass
class Slot:
    """A file that was dropped, and what is known of it."""

    file: str
    size: int
    settings: dict[str, Any] = field(default_factory=dict)
    examined: dict[str, Any] | None = None
    is_demo: bool = False


@dataclass
class Job:
    """What is being done."""

    what: str
    slot: str
    since: float = field(default_factory=time.monotonic)
    progress: str = ""


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
        self.incoming, self.uploads, self.made = (
            folder / name for name in ("incoming", "uploads", "made")
        )
        for path in (self.incoming, self.uploads, self.made):
            path.mkdir(mode=0o700)
        self.largest = largest
        self.worker = Worker(self.made, largest)
        self.slots: dict[str, Slot] = {}
        self.results: dict[str, Any] = {}
        self.plan: dict[str, Any] = {}
        self.problems: dict[str, str] = {}
        self.revision = 0
        self.job: Job | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- what the page asks for -----------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that is small; `revision` tells whether results are new."""
        job = self.job
        return {
            "revision": self.revision,
            "slots": {
                name: {"file": slot.file, "size": slot.size}
                for name, slot in self.slots.items()
            },
            "results": list(self.results),
            "plan": self.plan,
            "problems": self.problems,
            "largest": self.largest,
            "job": None
            if job is None
            else {
                "what": job.what,
                "slot": job.slot,
                "progress": job.progress,
                "seconds": round(time.monotonic() - job.since, 1),
            },
        }

    def everything(self) -> dict[str, Any]:
        """Return the tables and the results in full."""
        return {
            "revision": self.revision,
            "tables": {name: slot.examined for name, slot in self.slots.items()},
            "results": self.results,
        }

    def path_of(self, name: str) -> Path | None:
        """Return where a file for download is, if it is one."""
        path = self.made / name
        return path if name in self._downloads() and path.is_file() else None

    def archive(self) -> Path:
        """Return a new archive of all files for download."""
        path = self.incoming / secrets.token_hex(8)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(self._downloads()):
                # without the time, so that the same files give the same archive
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with (
                    (self.made / name).open("rb") as source,
                    archive.open(entry, "w", force_zip64=True) as target,
                ):
                    shutil.copyfileobj(source, target, 1 << 20)
        return path

    def _downloads(self) -> set[str]:
        """Return the files that were made for the person."""
        allowed: set[str] = set()
        for result in self.results.values():
            files = [result.get("report"), *result.get("files", {}).values()]
            allowed.update(file for file in files if file)
            for picture in result.get("pictures", ()):
                for kind in ("svg", "png"):
                    allowed.add(f"{result['parts']}/{picture['name']}.{kind}")
            if result.get("parts"):
                allowed.add(f"{result['parts']}/methods.txt")
        return allowed

    # -- files ----------------------------------------------------------------------

    def name_for(self, slot: str, name: str) -> str:
        """Return what a new file in a slot will be called."""
        taken = {each.file for key, each in self.slots.items() if key != slot}
        if slot != "table":  # with which everything goes that was made
            taken |= set(self._made())
        return safe_name(name, taken)

    def _made(self) -> dict[str, Path]:
        """Return what commands have made: all but the links to tables."""
        tables = {slot.file for slot in self.slots.values()}
        return {x.name: x for x in self.made.iterdir() if x.name not in tables}

    def take(self, slot: str, incoming: Path, name: str) -> None:
        """Put a file that has arrived into a slot, instead of the one there."""
        if slot == "table":  # what belongs to the demo's own table goes with it
            for other in [name for name, each in self.slots.items() if each.is_demo]:
                self.clear(other)
        self.clear(slot)
        incoming.replace(self.uploads / name)
        self.link(slot, self.uploads / name)

    def link(self, slot: str, path: Path) -> None:
        """Put a file of this machine into a slot, where it stays.

        Commands find it by its name, where they work.
        """
        name = self.name_for(slot, path.name)
        try:
            (self.made / name).symlink_to(path)
        except OSError:  # a system without links
            shutil.copyfile(path, self.made / name)
        self.slots[slot] = Slot(name, path.stat().st_size)
        self._changed()

    def copy_table(self, slot: str) -> None:
        """Put the table into another slot as well, to be read otherwise."""
        table = self._slot("table")
        incoming = self.incoming / secrets.token_hex(8)
        shutil.copyfile(self.made / table.file, incoming)
        self.take(slot, incoming, self.name_for(slot, table.file))

    def clear(self, slot: str) -> None:
        """Forget a table, and all that was found out about it."""
        old = self.slots.pop(slot, None)
        if old is not None:
            (self.made / old.file).unlink(missing_ok=True)
            (self.uploads / old.file).unlink(missing_ok=True)
        self._forget(slot)
        if slot == "table":
            self.results.clear()
            for path in self._made().values():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for key in (slot, *SLOTS[slot]):
            self.problems.pop(key, None)
        self._changed()

    def _forget(self, slot: str) -> None:
        """Forget the results that rest on a file."""
        for name in SLOTS[slot]:
            self.results.pop(name, None)

    def _changed(self) -> None:
        self.revision += 1

    # -- work -----------------------------------------------------------------------

    def _begin(self, what: str, slot: str) -> Job:
        if self.job is not None:
            msg = f"Wait, or stop what is going on: {self.job.what}."
            raise BusyError(msg)
        self.job = Job(what, slot)
        return self.job

    async def ask(self, what: str, slot: str, order: str, **options: Any) -> Any:
        """Let the worker do something, and wait for its result and warnings."""
        return await self._run(self._begin(what, slot), order, **options)

    async def _run(self, job: Job, order: str, **options: Any) -> Any:
        def tell(words: str) -> None:
            job.progress = words

        try:
            done = self.worker.do(order, tell, **options)
            return await asyncio.wait_for(done, LONGEST_JOB)
        except TimeoutError as problem:
            self.worker.stop()
            msg = f"It was stopped after {LONGEST_JOB / 60:.0f} minutes."
            raise InvalidInputError(msg) from problem
        finally:
            self.job = None

    def _start(self, name: str, what: str, order: str, **options: Any) -> None:
        """Let the worker do something, and keep the result under a name."""
        job = self._begin(what, name)
        self.problems.pop(name, None)

        async def work() -> None:
            try:
                result, warned = await self._run(job, order, **options)
                old = self.results.get(name, {}) if order == "report" else {}
                self.results[name] = {"warnings": warned} | old | result
            except InvalidInputError as problem:
                self.problems[name] = str(problem)
            self._changed()

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def examine(self, slot: str, settings: dict[str, Any]) -> None:
        """Look at a table again, with other settings."""
        table = self._slot(slot)
        order = self._table(slot) | {"settings": settings}
        TableSettings.parse(**order)  # before anything is stopped
        await self.idle()
        try:
            what = "reading the table"
            found, _ = await self.ask(what, slot, "examine", table=order, kind=slot)
            table.examined, table.settings = found, found["settings"]
            self.problems.pop(slot, None)
        except InvalidInputError as problem:
            self.problems[slot] = str(problem)
        self._forget(slot)
        self._changed()

    def start(self, order: str, slot: str) -> None:
        """Start to judge a table, or to draw its pictures and its report."""
        self._start(slot, DOING[order], order, table=self._usable(slot))

    def recalibrate(self, plan: Any) -> None:
        """Start to recalibrate the table."""
        table = self._usable("table")
        known = self._table("known") if "known" in self.slots else None
        second = None if known is None else TableSettings.parse(**known)
        if Plan.parse(TableSettings.parse(**table), second, plan).known is not None:
            self._usable("known")
        self.plan = plan
        self._forget("known")
        orders = {"table": table, "known": known, "plan": plan}
        self._start("recalibrated", "recalibrating", "recalibrate", **orders)

    def apply(self, wanted: dict[str, Any]) -> None:
        """Start to recalibrate new predictions."""
        table, learned = self._usable("new"), self.results.get("recalibrated")
        if wanted.get("source") == "file":
            scaler = self._usable("scaler")["file"]
        elif learned is None:
            msg = "Nothing was learned yet. Recalibrate first, or choose a file."
            raise InvalidInputError(msg)
        else:
            scaler = learned["scaler"]
        self._forget("new")
        orders = {"table": table, "scaler": scaler, "wanted": wanted}
        self._start("new", "recalibrating new predictions", "apply", **orders)

    def stage(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return the table and the recalibrator of what is shown."""
        name, after = str(wanted.get("result")), wanted.get("after") is True
        if name in ("table", "other"):
            return {"table": self._usable(name), "scaler": None}
        result = self.results.get("recalibrated")
        if name != "recalibrated" or result is None:
            msg = "There is no such result yet."
            raise InvalidInputError(msg)
        return {"table": result["test"], "scaler": result["scaler"] if after else None}

    async def idle(self) -> None:
        """Stop what is going on, and wait until it has ended."""
        self.cancel()
        while self.job is not None:
            await asyncio.sleep(0.01)

    def cancel(self) -> None:
        """Stop what is going on."""
        if self.job is not None:
            self.worker.stop()

    def _slot(self, name: str) -> Slot:
        if name not in self.slots:
            msg = "There is no table yet. Drop one."
            raise InvalidInputError(msg)
        return self.slots[name]

    def _table(self, name: str) -> dict[str, Any]:
        """Return a table as orders name it."""
        slot = self._slot(name)
        other = ""
        if name == "new" and "table" in self.slots:
            other = self._table("table")["stem"]
        stem = free_stem(slot.file, [x.file for x in self.slots.values()], other)
        return {"file": slot.file, "stem": stem, "settings": slot.settings}

    def _usable(self, name: str) -> dict[str, Any]:
        """Return a table as orders name it, if it was read and nothing is wrong."""
        examined = self._slot(name).examined
        if examined is None or examined["problem"]:
            msg = "The table was not read." if examined is None else examined["problem"]
            raise InvalidInputError(msg)
        return self._table(name)

    async def demo(self) -> None:
        """Make the tables of the demo."""
        for slot in SLOTS:
            self.clear(slot)
        folder = str(self.incoming)
        files, _ = await self.ask("making the demo", "table", "demo", folder=folder)
        for slot, file in files.items():
            self.take(slot, self.incoming / file, file)
        self.slots["known"].is_demo = True
        for slot in files:
            await self.examine(slot, {})

    async def end(self) -> None:
        """Stop all work."""
        await self.worker.end()
        for task in list(self._tasks):
            with suppress(Exception):
                await asyncio.wait_for(task, 1)
