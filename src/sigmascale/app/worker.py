"""The process that works for the server: one order in, one line of JSON out.

It is started with ``python -P``, so that no file of its folder is imported, and it ends
when the server does, also in the middle of a computation. Every answer carries the
number of its order; one that is too long, malformed or out of step ends the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError

LONGEST_ANSWER = 1 << 24  # bytes
MEMORY_SHARE = 0.8  # of the machine's memory that the worker may use
# -P: nothing in the folder is ever imported
PROGRAM = (sys.executable, "-P", "-m", "sigmascale.app.worker")
PROBLEM_WORDS = {
    "stopped": "Stopped.",
    "crashed": "The work ended unexpectedly; perhaps the memory of this machine did "
    "not suffice. Try fewer rows.",
    "garbled": "The work was ended, as its answer was too long or made no sense. Try "
    "again, with fewer columns.",
    "defect": "This is a defect of sigmascale, not of your data: please report it with "
    "what the terminal shows.",
    "memory": "The memory of this machine does not suffice. Try fewer rows.",
}


# -- the server's side --------------------------------------------------------------


class Worker:
    """The process as the server sees it: runs what is too slow, or too dangerous.

    Parameters
    ----------
    folder : Path
        Where it works.
    program : sequence of str, optional
        What is started.
    longest : int, optional
        Bytes that an answer may have.
    """

    def __init__(
        self,
        folder: Path,
        program: Sequence[str] = PROGRAM,
        longest: int = LONGEST_ANSWER,
    ) -> None:
        self._folder = folder
        self._program = program
        self._longest = longest
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._number = 0
        self._stopped = False

    async def warm_up(self) -> None:
        """Start it, so that the first order need not wait."""
        async with self._lock:
            await self._running()

    async def do(self, order: str, **options: Any) -> dict[str, Any]:
        """Return the answer to an order: its result and warnings; or raise it."""
        async with self._lock:
            process = await self._running()
            assert process.stdin is not None
            self._number += 1
            message = {"number": self._number, "do": order, "with": options}
            with contextlib.suppress(ConnectionError):
                process.stdin.write(json.dumps(message).encode() + b"\n")
                await process.stdin.drain()
            answer = await self._answer(process)
        if "traceback" in answer:
            print(answer["traceback"], file=sys.stderr, flush=True)
        if "problem" in answer:
            problem = answer["problem"]
            raise InvalidInputError(
                problem["message"], problem["code"], **problem["fields"]
            )
        return answer

    async def _running(self) -> asyncio.subprocess.Process:
        """Return the process, a new one if there is none or it was stopped."""
        if self._process is not None and self._stopped:  # after its last answer
            await self._end(self._process)
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._program,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._folder,
                limit=self._longest,
                start_new_session=True,
            )
            self._stopped = False
        return self._process

    async def _answer(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        """Return the answer to the last order, and to no other."""
        assert process.stdout is not None
        code = "garbled"
        try:
            line = await process.stdout.readline()
            if not line:
                code = "stopped" if self._stopped else "crashed"
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("number") == self._number:
                return answer
        except (ValueError, RecursionError):  # longer than the limit, or no JSON
            pass
        await self._end(process)
        raise InvalidInputError(PROBLEM_WORDS[code], code)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kill a process that is of no use any more."""
        self._process = None
        _kill(process)
        await process.wait()

    def stop(self) -> None:
        """Kill it, and all that it has started; the next order starts another."""
        self._stopped = True
        if self._process is not None:
            _kill(self._process)

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        process = self._process
        self.stop()
        if process is not None:
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process with its children, where the system can."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


# -- the process itself -------------------------------------------------------------


def main() -> None:
    """Do what the server says, until it is gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    _limit_memory()
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    from . import orders

    while True:
        order = lines.get()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            answer = _done(getattr(orders, order["do"]), order["with"])
        messages = [str(warning.message) for warning in caught]
        answer["warnings"] = list(dict.fromkeys(messages))
        answer["number"] = order["number"]
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()


def _done(do: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return what an order gives, or what is wrong."""
    try:
        return {"result": do(**options)}
    except InvalidInputError as problem:
        return _problem(str(problem), problem.code, problem.fields)
    except MemoryError:
        return _problem(PROBLEM_WORDS["memory"], "memory")
    except (OSError, ImportError) as problem:
        return _problem(str(problem), "system")
    except BaseException:  # panics of libraries in Rust are no exceptions
        about = {"traceback": traceback.format_exc()}
        return _problem(PROBLEM_WORDS["defect"], "defect") | about


def _problem(
    message: str, code: str, fields: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the answer that something is wrong, as data."""
    return {"problem": {"message": message, "code": code, "fields": fields or {}}}


def _listen(lines: queue.Queue[dict[str, Any]]) -> None:
    """Put orders into a queue; end the process with the server."""
    for line in sys.stdin.buffer:
        lines.put(json.loads(line))
    os._exit(0)  # the server is gone, and nobody waits for a result


def _limit_memory() -> None:
    """Let a table that is too large end this process, not the machine."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = int(MEMORY_SHARE * memory)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


if __name__ == "__main__":
    main()
