"""Write synthetic predictions to Parquet: ``python make_large.py FOLDER --rows 1e8``.

Four columns, the error E, its uncertainty u and two features, and a fifth that only
the hand-written query of `large_frames.py` reads: the row's bin, of 40 of u.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

ROWS_OF_A_FILE = 5_000_000
LOG_MEAN, LOG_SD = -3.0, 0.7
LIMITS = np.exp(stats.norm.ppf(np.arange(1, 40) / 40, LOG_MEAN, LOG_SD))


def make_large(folder: Path, n_rows: int) -> None:
    """Write so many rows to files of a folder, a few seconds for every ten million."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, n_rows, ROWS_OF_A_FILE):
        rows = min(ROWS_OF_A_FILE, n_rows - start)
        rng = np.random.default_rng([7, start])
        u = rng.lognormal(LOG_MEAN, LOG_SD, rows)
        x1, x2 = rng.uniform(10, 150, rows), rng.normal(0, 1, rows)
        scale = (u / np.exp(LOG_MEAN)) ** 0.2 * np.where(x1 > 90, 1.3, 1.0)
        table = pl.DataFrame(
            {
                "E": rng.standard_normal(rows) * u * scale,
                "u": u,
                "X1": x1,
                "X2": x2,
                "bin": np.searchsorted(LIMITS, u, side="right").astype(np.int32),
            }
        )
        table.write_parquet(folder / f"{start // ROWS_OF_A_FILE:05}.parquet")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=float, default=1e8)
    arguments = parser.parse_args()
    make_large(arguments.folder, int(arguments.rows))
