"""The command line: see :mod:`sigmascale.cli.options`."""
