"""The command line. Results go to standard output, warnings and errors to the other.

Libraries that are slow to load are imported where they are used, so that help comes
at once.
"""

from .app import app
from .process import main

__all__ = ["app", "main"]
