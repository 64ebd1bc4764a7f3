"""The examples in the order of reading: the first ones by name, then the others."""

FIRST = (
    "plot_gaussian_process.py",
    "plot_random_forest.py",
    "plot_deep_ensemble.py",
    "plot_quantile_model.py",
    "plot_intervals_mapie.py",
    "plot_chemprop_csv.py",
    "plot_forces.py",
    "plot_distributions.py",
    "plot_targets.py",
    "plot_drift.py",
    "plot_updates.py",
    "plot_shift.py",
    "plot_categories.py",
    "plot_paper_figures.py",
)


class InReadingOrder:
    """The sort key that sphinx-gallery asks for."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return what file names are sorted by."""
        place = FIRST.index(filename) if filename in FIRST else len(FIRST)
        return place, filename
