"""The command line as a process: ``sigmascale``, or ``python -m sigmascale``."""

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line in a process of its own."""
    if hasattr(signal, "SIGPIPE"):  # end quietly when `| head` has seen enough
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.argv[1:2] == ["apply"]:
        from . import _prediction_only  # noqa: F401
    try:
        from .cli import main as run
    except ImportError as problem:
        needs = 'The command line needs more packages: pip install "sigmascale[cli]"'
        print(f"error: {problem}. {needs}", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
