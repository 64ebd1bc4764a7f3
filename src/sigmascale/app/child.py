"""The server's side of its child process: one order at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError

LONGEST_ANSWER = 1 << 27  # bytes
CRASHED = (
    "The work ended unexpectedly; perhaps the memory of this machine did not suffice. "
    "Try fewer rows, or another method."
)


class CancelledWork(Exception):
    """Someone has stopped the work."""


class Child:
    """Runs what is too slow, or too dangerous, for the server.

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
                env={**os.environ, "SIGMASCALE_APP_LARGEST": str(self._largest)},
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
            raise CancelledWork
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
