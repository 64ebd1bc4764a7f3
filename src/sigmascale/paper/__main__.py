"""``python -m sigmascale.paper`` is the command ``sigmascale paper``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line with the command and this program's own options."""
    from ..__main__ import main as run

    sys.argv = ["sigmascale", "paper", *sys.argv[1:]]
    run()


if __name__ == "__main__":
    main()
