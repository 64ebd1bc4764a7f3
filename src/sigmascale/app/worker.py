"""The child process of the app: takes orders line by line, and answers line by line.

It is started with ``python -P``, so that no file of its folder is imported, and it ends
when the server does, also in the middle of a computation.
"""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
import traceback
import warnings
from typing import Any

MEMORY_SHARE = 0.8  # of the machine's memory that the worker may use


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
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()

    def answer(**message: Any) -> None:
        answers.write(json.dumps(message, allow_nan=False) + "\n")
        answers.flush()

    tell = lambda words: answer(progress=words)  # noqa: E731
    sys.stderr = Reporter(tell)
    from ..exceptions import InvalidInputError
    from .bench import Bench, done

    bench = Bench(tell, int(os.environ["SIGMASCALE_APP_LARGEST"]))
    answer(ready=True)
    while True:
        order = orders.get()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            try:
                result = done(getattr(bench, order["do"])(**order["with"]))
                told = list(dict.fromkeys(str(each.message) for each in caught))
                answer(result=result, warnings=told)
            except InvalidInputError as problem:
                answer(problem=" ".join(str(problem).split()))
            except MemoryError:
                answer(problem="The memory of this machine does not suffice.")
            except (OSError, ImportError) as problem:
                answer(problem=str(problem))
            except Exception:
                answer(
                    problem="This is a defect of sigmascale, not of your data: please "
                    "report it with what the terminal shows.",
                    traceback=traceback.format_exc(),
                )


def _listen(orders: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        orders.put(json.loads(line))
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
