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
from .child import CancelledWork, Child
from .plan import Plan
from .settings import TableSettings
from .uploads import safe_name

SLOTS = ("table", "other", "known")
LONGEST_JOB = 3600.0  # seconds
CANCELLED = "Stopped."


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


class Desk:
    """The tables, the results and the work of one person.

    Parameters
    ----------
    folder : Path
        The private folder; files are in `work` below it.
    largest : int
        Bytes that a file may have.
    """

    def __init__(self, folder: Path, largest: int) -> None:
        self.work = folder / "work"
        self.work.mkdir(mode=0o700)
        self.incoming = folder / "incoming"
        self.incoming.mkdir(mode=0o700)
        self.largest = largest
        self.child = Child(self.work, largest)
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
        path = self.work / name
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
                    (self.work / name).open("rb") as source,
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
        if slot not in SLOTS:
            msg = f"A file goes to one of {', '.join(SLOTS)}."
            raise InvalidInputError(msg)
        taken = {each.file for key, each in self.slots.items() if key != slot}
        return safe_name(name, taken | self._made())

    def _made(self) -> set[str]:
        """Return the files that were made here, and that no upload may replace."""
        made = self.results.get("recalibrated", {}).get("files", {})
        return set(made.values())

    def take(self, slot: str, incoming: Path, name: str) -> None:
        """Put a file that has arrived into a slot, instead of the one there."""
        for other in [name for name, each in self.slots.items() if each.is_demo]:
            self.clear(other)  # it belongs to the demo's own table
        self.clear(slot)
        size = incoming.stat().st_size
        target = self.work / name
        incoming.replace(target)
        self.slots[slot] = Slot(name, size)
        self._changed()

    def link(self, slot: str, path: Path) -> None:
        """Put a file of this machine into a slot, where it stays."""
        name = self.name_for(slot, path.name)
        try:
            (self.work / name).symlink_to(path)
        except OSError:  # a system without links
            shutil.copyfile(path, self.work / name)
        self.slots[slot] = Slot(name, path.stat().st_size)
        self._changed()

    def copy_table(self, slot: str) -> None:
        """Put the table into another slot as well, to be read otherwise."""
        table = self._slot("table")
        incoming = self.incoming / secrets.token_hex(8)
        shutil.copyfile(self.work / table.file, incoming)
        self.take(slot, incoming, self.name_for(slot, table.file))

    def clear(self, slot: str) -> None:
        """Forget a table, and all that was found out about it."""
        old = self.slots.pop(slot, None)
        if slot == "table":
            self.results.clear()
            for path in self.work.iterdir():
                if path.name not in {each.file for each in self.slots.values()}:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif old is not None:
            self.results.pop(slot, None)
            (self.work / old.file).unlink(missing_ok=True)
        for key in (slot, "recalibrated"):
            self.problems.pop(key, None)
        self._changed()

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
        """Let the child do something, and wait for its result and warnings."""
        return await self._run(self._begin(what, slot), order, **options)

    async def _run(self, job: Job, order: str, **options: Any) -> Any:
        def tell(words: str) -> None:
            job.progress = words

        try:
            done = self.child.do(order, tell, **options)
            return await asyncio.wait_for(done, LONGEST_JOB)
        except TimeoutError as problem:
            self.child.stop()
            msg = f"It was stopped after {LONGEST_JOB / 60:.0f} minutes."
            raise InvalidInputError(msg) from problem
        finally:
            self.job = None

    def start(self, name: str, what: str, order: str, **options: Any) -> None:
        """Let the child do something, and keep the result under a name."""
        job = self._begin(what, name)
        self.problems.pop(name, None)

        async def work() -> None:
            try:
                result, warned = await self._run(job, order, **options)
                self.results[name] = self._merged(name, order, result, warned)
            except CancelledWork:
                self.problems[name] = CANCELLED
            except InvalidInputError as problem:
                self.problems[name] = str(problem)
            self._changed()

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _merged(self, name: str, order: str, result: Any, warned: list[str]) -> Any:
        if order == "report":  # belongs to the verdict
            return self.results.get(name, {}) | result
        return result | {"warnings": warned}

    async def examine(self, slot: str, settings: dict[str, Any]) -> None:
        """Look at a table again, with other settings."""
        table = self._slot(slot)
        checked = TableSettings.parse(table.file, settings).to_dict()
        await self.idle()
        try:
            found, _ = await self.ask(
                "reading the table", slot, "examine", file=table.file, settings=checked
            )
            table.examined, table.settings = found, found["settings"]
            self.problems.pop(slot, None)
        except CancelledWork:
            self.problems[slot] = CANCELLED
        except InvalidInputError as problem:
            self.problems[slot] = str(problem)
        self.results.pop(slot, None)
        if slot != "other":
            self.results.pop("recalibrated", None)
        self._changed()

    def judge(self, slot: str) -> None:
        """Start to judge a table."""
        table = self._slot(slot)
        options = {"file": table.file, "settings": table.settings}
        self.start(slot, "judging the uncertainties", "judge", **options)

    def report(self, slot: str) -> None:
        """Start to draw the pictures of a table, and its report."""
        table = self._slot(slot)
        options = {"file": table.file, "settings": table.settings}
        self.start(slot, "drawing the pictures", "report", **options)

    def recalibrate(self, plan: Any) -> None:
        """Start to recalibrate the table."""
        table, known = self._slot("table"), self.slots.get("known")
        settings = TableSettings.parse(table.file, table.settings)
        second = (
            None if known is None else TableSettings.parse(known.file, known.settings)
        )
        Plan.parse(settings, second, plan)
        self.plan = plan
        self.results.pop("recalibrated", None)
        self.start(
            "recalibrated",
            "recalibrating",
            "recalibrate",
            file=table.file,
            settings=table.settings,
            known=None if known is None else (known.file, known.settings),
            plan=plan,
        )

    def stage(self, name: str, after: bool) -> dict[str, Any]:
        """Return the file, settings and recalibrator of what is shown."""
        if name in ("table", "other"):
            slot = self._slot(name)
            return {"file": slot.file, "settings": slot.settings, "scaler": None}
        result = self.results.get("recalibrated")
        if name != "recalibrated" or result is None:
            msg = "There is no such result yet."
            raise InvalidInputError(msg)
        return {**result["test"], "scaler": result["scaler"] if after else None}

    async def idle(self) -> None:
        """Stop what is going on, and wait until it has ended."""
        self.cancel()
        while self.job is not None:
            await asyncio.sleep(0.01)

    def cancel(self) -> None:
        """Stop what is going on."""
        if self.job is not None:
            self.child.stop()

    def _slot(self, name: str) -> Slot:
        if name not in self.slots:
            msg = "There is no table yet. Drop one."
            raise InvalidInputError(msg)
        return self.slots[name]

    async def demo(self) -> None:
        """Make the tables of the demo."""
        for slot in SLOTS:
            self.clear(slot)
        files, _ = await self.ask("making the demo", "table", "demo")
        for slot, file in files.items():
            size = (self.work / file).stat().st_size
            self.slots[slot] = Slot(file, size, is_demo=slot == "known")
        self._changed()
        for slot in ("known", "table"):
            await self.examine(slot, {})

    async def end(self) -> None:
        """Stop all work."""
        await self.child.end()
        for task in list(self._tasks):
            with suppress(Exception):
                await asyncio.wait_for(task, 1)
