"""The command line. Results go to standard output, warnings and errors to the other.

Libraries that are slow to load are imported where they are used, so that help comes
at once.
"""

from .app import app, main, result_of

# Help lists the commands in this order.
from . import check, divide, fit, apply, update, show, export, watch  # noqa: F401  # isort: skip
from . import compare, bins, browse, paper, demo  # noqa: F401  # isort: skip

__all__ = ["app", "main", "result_of"]
