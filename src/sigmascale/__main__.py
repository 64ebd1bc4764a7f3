"""The command line as a process: ``sigmascale``, or ``python -m sigmascale``."""

import os
import signal
import sys
from typing import Any, NoReturn

STOPPED = 128  # and the number of the signal that stopped it


def main() -> NoReturn:
    """Run the command line in a process of its own."""
    _open_streams()
    for each in ("SIGTERM", "SIGHUP"):  # so that nothing half-written is left
        number = getattr(signal, each, None)  # Windows has no terminal to hang up
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _stop)
    if hasattr(signal, "SIGPIPE"):  # end quietly when `| head` has seen enough
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        try:
            from .cli import main as run
        except ImportError as problem:
            needs = 'needs more packages: pip install ".[cli]" in a checkout'
            print(f"error: {problem}. The command line {needs}", file=sys.stderr)
            sys.exit(2)
        run()
    except (KeyboardInterrupt, SystemExit) as end:
        code = end.code if isinstance(end, SystemExit) else STOPPED + signal.SIGINT
        if isinstance(code, int) and code > STOPPED:
            from ._support.files import remove_unfinished

            remove_unfinished()
            print("error: interrupted.", file=sys.stderr, flush=True)
            os._exit(code)  # threads that still compute would make Python abort
        raise


def _open_streams() -> None:
    """Open closed standard streams, which are None, or files would take their place.

    Nothing comes from standard input then, and nobody reads what is told.
    """
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _stop(number: int, frame: Any) -> NoReturn:
    sys.exit(STOPPED + number)


if __name__ == "__main__":
    main()
