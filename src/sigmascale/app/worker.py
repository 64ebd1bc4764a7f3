"""The process that works for the server: takes orders, and answers, line by line.

It is started with ``python -P``, so that no file of its folder is imported, and it ends
when the server does, also in the middle of a computation.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError

LARGEST = "SIGMASCALE_APP_LARGEST"  # tells the process how much a packed file may hold
LONGEST_ANSWER = 1 << 27  # bytes
MEMORY_SHARE = 0.8  # of the machine's memory that the worker may use
STOPPED = "Stopped."
CRASHED = (
    "The work ended unexpectedly; perhaps the memory of this machine did not suffice. "
    "Try fewer rows, or another method."
)
DEFECT = (
    "This is a defect of sigmascale, not of your data: please report it with what the "
    "terminal shows."
)


# -- the server's side --------------------------------------------------------------


class CancelledWork(InvalidInputError):
    """Someone has stopped the work."""


class Worker:
    """The process as the server sees it: runs what is too slow, or too dangerous.

    Parameters
    ----------
    folder : Path
        Where it works.
    largest : int
        Bytes that a packed file may hold.
    """

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder = folder
        self._largest = largest
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._stopped = False

    async def warm_up(self) -> None:
        """Start it, so that the first order need not wait."""
        async with self._lock:
            await self._running()

    async def do(
        self,
        order: str,
        tell: Callable[[str], None] = lambda words: None,
        **options: Any,
    ) -> tuple[Any, list[str]]:
        """Return the result of an order, and its warnings."""
        async with self._lock:
            process = await self._running()
            assert process.stdin is not None
            self._stopped = False
            line = json.dumps({"do": order, "with": options}).encode() + b"\n"
            with contextlib.suppress(ConnectionError):
                process.stdin.write(line)
                await process.stdin.drain()
            while True:
                message = await self._next(process)
                if "progress" in message:
                    tell(message["progress"])
                elif "problem" in message:
                    if "traceback" in message:
                        print(message["traceback"], file=sys.stderr, flush=True)
                    raise InvalidInputError(message["problem"])
                else:
                    return message["result"], message["warnings"]

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._stopped:  # after its last answer
            await self._process.wait()
            self._process = None
        if self._process is None:
            # -P: nothing in the folder is ever imported
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "sigmascale.app.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._folder,
                env={**os.environ, LARGEST: str(self._largest)},
                limit=LONGEST_ANSWER,
                start_new_session=True,
            )
            self._stopped = False
            await self._next(self._process)  # that it is ready
        return self._process

    async def _next(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if line:
            message: dict[str, Any] = json.loads(line)
            return message
        await process.wait()
        self._process = None
        if self._stopped:
            raise CancelledWork(STOPPED)
        raise InvalidInputError(CRASHED)

    def stop(self) -> None:
        """Kill it, and all that it has started; the next order starts another."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        process = self._process
        self.stop()
        if process is not None:
            await process.wait()


# -- the process itself -------------------------------------------------------------


class Reporter(io.TextIOBase):
    """Stands for the terminal: signs of life go to the server."""

    def __init__(self, tell: Any) -> None:
        super().__init__()
        self._tell = tell

    def isatty(self) -> bool:
        """Someone is watching."""
        return True

    def write(self, text: str) -> int:
        """Pass on the last sign of life."""
        words = text.replace("\x1b[2K", "").strip()
        if words:
            self._tell(words)
        return len(text)


def main() -> None:
    """Do what the server says, until it is gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what a library prints is no answer
    _limit_memory()
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()

    def answer(**message: Any) -> None:
        answers.write(json.dumps(message, allow_nan=False) + "\n")
        answers.flush()

    tell = lambda words: answer(progress=words)  # noqa: E731
    sys.stderr = Reporter(tell)
    from ..cli.app import finite
    from .orders import Orders
    from .views import on_page

    orders = Orders(tell, int(os.environ[LARGEST]))
    answer(ready=True)
    while True:
        order = lines.get()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            try:
                result = finite(getattr(orders, order["do"])(**order["with"]))
                told = list(dict.fromkeys(on_page(str(x.message)) for x in caught))
                answer(result=result, warnings=told)
            except InvalidInputError as problem:
                answer(problem=on_page(str(problem)))
            except MemoryError:
                answer(problem="The memory of this machine does not suffice.")
            except (OSError, ImportError) as problem:
                answer(problem=str(problem))
            except Exception:
                answer(problem=DEFECT, traceback=traceback.format_exc())


def _listen(lines: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        lines.put(json.loads(line))
    os._exit(0)  # the server is gone, and nobody waits for a result


def _limit_memory() -> None:
    """Let a table that is too large end this process, not the machine."""
    try:
        import resource

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = int(MEMORY_SHARE * memory)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ImportError, ValueError, OSError):  # not on this system
        return


if __name__ == "__main__":
    main()
