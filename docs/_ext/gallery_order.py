"""The examples in the order of reading: the first ones by name, then the others."""

FIRST = (
    "plot_first_validation.py",
    "plot_paper_figures.py",
    "plot_consistency_adaptivity.py",
    "plot_choosing.py",
    "plot_raked_factors.py",
    "plot_few_rows.py",
)


class InReadingOrder:
    """The sort key that sphinx-gallery asks for."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return what file names are sorted by."""
        place = FIRST.index(filename) if filename in FIRST else len(FIRST)
        return place, filename
