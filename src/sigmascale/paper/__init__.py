"""The study: every table and figure of the paper, computed and compared."""
