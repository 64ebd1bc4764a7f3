"""What `check` finds out about a table: as it is, and as a recalibrator changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.progress import working
from .._support.terminal import visible
from ..exceptions import InvalidInputError, SharedRowsWarning
from ..roles import Choice, Expected
from .tables.filesets import about

if TYPE_CHECKING:
    from .._support.checks import Floats
    from ..judging.validation import Validation
    from ..monitoring.over_time import OverTime
    from ..scaling import VarianceScaler
    from .tables.lazy import LazyTable
    from .tables.memory import MemoryTable


SHARED = 0.02  # of the calibration set: rows that are the same by chance are rare


@dataclass(frozen=True)
class Judged:
    """Verdicts on a table, and all that a report on it needs.

    Attributes
    ----------
    data : MemoryTable or LazyTable
        The table.
    found : Validation
        The verdicts on its uncertainties as they are.
    recalibrated : Validation or None
        Those on what a recalibrator makes of them.
    scaler : recalibrator or None
        That recalibrator.
    seed : int
        The seed of all random numbers.
    times : array or None
        When rows came, if a column says that.
    """

    data: MemoryTable | LazyTable
    found: Validation
    recalibrated: Validation | None
    scaler: VarianceScaler | None
    seed: int
    times: Any = None

    @property
    def final(self) -> Validation:
        """The verdicts that decide: on new uncertainties, if there are any."""
        return self.found if self.recalibrated is None else self.recalibrated

    @cached_property
    def over_time(self) -> OverTime | None:
        """How calibration runs over time, if it is known when rows came."""
        rows = self.final.rows
        if self.times is None or rows is None:
            return None
        from ..monitoring.over_time import over_time

        with about(self.data.file):
            return over_time(rows, self.times, confidence=self.final.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, and all verdicts, for machines."""
        told = {"data": self.data.to_dict(), **_in_full(self.found)}
        if self.recalibrated is not None:
            told["recalibrated"] = _in_full(self.recalibrated)
        if self.over_time is not None:
            told["time"] = self.over_time.to_dict()
        return told

    def write_report(
        self,
        path: Path,
        *,
        calibration: MemoryTable | None = None,
        parts: Path | None = None,
    ) -> None:
        """Write a report, and its parts to a folder if there is one."""
        from ..report import write_report

        title = f"Uncertainties of {self.data.file}"
        if calibration is not None:
            title += f", recalibrated with {calibration.file}"
        with working("writing the report"):
            write_report(
                path,
                self.found,
                recalibrated=self.recalibrated,
                scaler=self.scaler,
                calibration=None
                if calibration is None
                else (calibration.X, calibration.error),
                time=self.times,
                title=visible(title),
                parts=parts,
                rng=self.seed,
            )


def _in_full(found: Validation) -> dict[str, Any]:
    """Return verdicts with all scores, and what is attainable of each."""
    reference = found.reference
    attainable = {
        name: {"mean": reference.mean[name], "sd": reference.sd[name]}
        for name in found.scores.to_dict()
    }
    return {
        **found.to_dict(),
        "scores": found.scores.to_dict(),
        "attainable": attainable,
        "tails": found.tails,
    }


def expected_by(scaler: str, choice: Choice) -> Expected:
    """Return what a recalibrator expects of a table whose errors are known."""
    from .methods import load_saved

    named = (*choice.features, *choice.labels, *choice.exclude)
    if named or choice.all_features or choice.formula is not None:
        msg = (
            f"{scaler}: features are those that it was fitted with. Pass --scaler "
            "without --feature, --all-features, --exclude, --label and --formula."
        )
        raise InvalidInputError(msg)
    _, roles = load_saved(scaler)
    return Expected(roles, choice, with_error=True)


def judge_table(
    data: MemoryTable | LazyTable,
    *,
    scaler: str | None = None,
    groups: str | None = None,
    bins: int | None = None,
    seed: int = 0,
    time: str | None = None,
    **options: Any,
) -> Judged:
    """Judge the uncertainties of a table, and those that a recalibrator makes.

    `time` is the column that says when rows came.
    """
    times = None if time is None else data.times(time)
    found = data.validate(bins, seed, groups=groups, **options)
    if scaler is None:
        return Judged(data, found, None, None, seed, times)
    from ..judging.verdicts import validate
    from ..persistence import load

    table: Any = data  # in memory
    loaded = load(scaler)
    _warn_of_shared(scaler, loaded, table)
    labels = None if groups is None else table.labels(groups, "--groups")
    with about(data.file), working("judging the recalibrated uncertainties"):
        recalibrated = validate(
            table.error,
            rescale(scaler, table),
            table.features,
            groups=labels,
            ties=table.uncertainty,
            n_bins=bins,
            rng=seed,
            sample_weight=table.weights,
            **options,
        )
    return Judged(data, found, recalibrated, loaded, seed, times)


def rescale(scaler: str, table: MemoryTable) -> Floats:
    """Return what a saved recalibrator makes of the uncertainties of a table.

    The column may have another name than in `fit`.
    """
    from ..persistence import load_map
    from ..predictions import read_table

    return load_map(scaler).predict(read_table(table.X))


def _warn_of_shared(scaler: str, loaded: VarianceScaler, table: MemoryTable) -> None:
    """Warn if rows are among those that the recalibrator was fitted on."""
    from ..predictions import read_table

    rows = read_table(table.X).changed(error=table.error)
    warn_of_shared(
        scaler, loaded.seen_.shared(rows) if hasattr(loaded, "seen_") else 0.0
    )


def warn_of_shared(scaler: str, shared: float) -> None:
    """Warn if a share of what a recalibrator was fitted on is judged."""
    from .._support.telling import warn

    if shared >= SHARED:
        warn(
            f"About {shared:.0%} of the rows that {scaler} was fitted on are among "
            "those to be judged, where it is better than on new ones. Judge it on "
            "other rows.",
            SharedRowsWarning,
            stacklevel=2,
        )


def without_features(choice: Choice) -> Choice:
    """Return what is said of the columns but for features."""
    return replace(
        choice, features=(), labels=(), exclude=(), all_features=False, formula=None
    )
