"""Processes of this machine: whose leftovers may be cleared up."""

from __future__ import annotations

import os


def is_gone(process: str) -> bool:
    """Return whether there is no process of a number on this machine any more."""
    if os.name != "posix" or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)  # asks whether there is such a process
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
