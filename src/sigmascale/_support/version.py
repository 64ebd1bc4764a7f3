"""The version of the package, also where it is on the path but not installed."""

__version__ = "0.1.0"
