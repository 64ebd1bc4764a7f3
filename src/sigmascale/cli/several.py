"""What the commands do with several targets, whose columns patterns name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.progress import working
from .._support.terminal import visible
from ..exceptions import InvalidInputError
from ..roles import Choice, Expected, Roles
from .judged import warn_of_shared
from .methods import make_scaler
from .tables.filesets import about
from .tables.lazy import LazyTable
from .tables.opening import stays_lazy
from .tables.patterns import STAR, patterns_of
from .tables.reading import Reading
from .tables.targets import (
    ChosenTargets,
    ExpectedTargets,
    TargetsTable,
    new_names,
    roles_from,
)

if TYPE_CHECKING:
    from ..persistence import SavedTargets
    from ..targets.recalibrated import RecalibratedTargets
    from ..targets.validation import TargetsValidation

LINEAR = "linear"  # what is fitted if nobody says anything else


def refuse_options(**options: Any) -> None:
    """Refuse options that are for one target."""
    for name, value in options.items():
        if value is not None:
            msg = (
                f"--{name.replace('_', '-')} is for one target. Name its columns "
                "without a star."
            )
            raise InvalidInputError(msg)


def open_targets(
    files: Sequence[str],
    reading: Reading,
    choice: ChosenTargets | ExpectedTargets,
) -> TargetsTable:
    """Read a table of several targets into memory."""
    if stays_lazy(files, reading.engine, reading.scheduler):
        msg = (
            "Several targets are fitted and judged in memory. Make a file of some "
            "rows, or pass --engine memory."
        )
        raise InvalidInputError(msg)
    return TargetsTable.open(files, reading, choice)


def learn_targets(
    files: Sequence[str],
    reading: Reading,
    choice: Choice,
    method: str | None,
    *,
    groups: str | None,
    seed: int,
    **options: Any,
) -> tuple[TargetsTable, RecalibratedTargets]:
    """Fit the recalibrators of all targets."""
    from ..targets.recalibrated import RecalibratedTargets

    data = open_targets(files, reading, ChosenTargets(choice))
    roles = next(iter(data.roles.values()))
    template = make_scaler(method or LINEAR, roles, seed=seed, **options)
    targets = RecalibratedTargets(template, names=list(data.roles), random_state=seed)
    data.fit(targets, groups)
    return data, targets


@dataclass(frozen=True)
class JudgedTargets:
    """Verdicts on a table of several targets.

    Attributes
    ----------
    data : TargetsTable
        The table.
    found : TargetsValidation
        The verdicts on its uncertainties as they are.
    recalibrated : TargetsValidation or None
        Those on what recalibrators make of them.
    scalers : dict of str to recalibrator
        These, if there are any.
    """

    data: TargetsTable
    found: TargetsValidation
    recalibrated: TargetsValidation | None
    scalers: dict[str, Any]

    @property
    def final(self) -> TargetsValidation:
        """The verdicts that decide: on new uncertainties, if there are any."""
        return self.found if self.recalibrated is None else self.recalibrated

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, and all verdicts, for machines."""
        told = {"data": self.data.to_dict(), **self.found.to_dict()}
        if self.recalibrated is not None:
            told["recalibrated"] = self.recalibrated.to_dict()
        return told

    def write_reports(self, pattern: Path, seed: int) -> list[Path]:
        """Write a report on each target, whose name takes the place of the star."""
        from ..report import write_report

        paths = [
            pattern.with_name(pattern.name.replace(STAR, _in_a_name(name)))
            for name in self.found.targets
        ]
        if len(set(paths)) < len(paths):
            msg = "--report: names of targets are too much alike for those of files."
            raise InvalidInputError(msg)
        for path, (name, found) in zip(paths, self.found.targets.items(), strict=True):
            with working("writing the reports"):
                write_report(
                    path,
                    found,
                    recalibrated=self.recalibrated and self.recalibrated.targets[name],
                    scaler=self.scalers.get(name),
                    title=visible(f"{name}: uncertainties of {self.data.file}"),
                    rng=seed,
                )
        return paths


def check_reports(report: Path | None) -> None:
    """Refuse a name of reports that has no star for the names of targets."""
    if report is not None and report.name.count(STAR) != 1:
        msg = (
            f"--report {str(report)!r} must have one star, for the names of targets: "
            "--report 'report_*.html'."
        )
        raise InvalidInputError(msg)


def _in_a_name(target: str) -> str:
    """Return a target's name without what names of files cannot have."""
    return re.sub(r"[^\w.+-]", "_", target)


def judge_targets(
    files: Sequence[str],
    reading: Reading,
    choice: Choice,
    scaler: str | None,
    *,
    groups: str | None,
    seed: int,
    **options: Any,
) -> JudgedTargets:
    """Judge a table of several targets, and what recalibrators make of it."""
    if scaler is None:
        data = open_targets(files, reading, ChosenTargets(choice))
        found = data.validate(data.uncertainties, seed, groups=groups, **options)
        return JudgedTargets(data, found, None, {})
    from ..persistence import load

    saved, roles = load_targets(scaler)
    data = open_targets(files, reading, ExpectedTargets(roles, choice, with_error=True))
    warn_of_shared(scaler, data.shared(saved))
    found, recalibrated = (
        data.validate(u, seed, groups=groups, **options)
        for u in (data.uncertainties, data.recalibrated(saved))
    )
    return JudgedTargets(data, found, recalibrated, load(scaler).scalers_)


def load_targets(file: str) -> tuple[SavedTargets, dict[str, Roles]]:
    """Return what a file says of several targets, and the columns that they need."""
    from ..persistence import SavedTargets, load_maps

    saved = load_maps(file)
    with about(file):
        if not isinstance(saved, SavedTargets):
            msg = "it is a recalibrator of one target. Name columns without a star."
            raise InvalidInputError(msg)
        return saved, roles_from(saved)


def holds_targets(file: str) -> bool:
    """Return whether a file holds several targets rather than one recalibrator."""
    from ..persistence import SavedTargets, load_maps

    return isinstance(load_maps(file), SavedTargets)


def recalibrate_targets(
    scaler: str,
    saved: SavedTargets,
    files: Sequence[str],
    reading: Reading,
    choice: Choice,
    name: str | None,
    output: str,
) -> dict[str, Any]:
    """Write a table with a new column for each target; return what is told of it."""
    with about(scaler):
        roles = roles_from(saved)
    if not stays_lazy(files, reading.engine, reading.scheduler):
        table = TargetsTable.open(files, reading, ExpectedTargets(roles, choice))
        table = table.recalibrate(saved, name)
        return table.write(output) | {"columns": list(table.new)}
    # a query for each target, one after the other, of which nothing is read yet
    target, first = next(iter(roles.items()))
    called = {k: v.replace(STAR, target) for k, v in patterns_of(choice).items()}
    lazy = LazyTable.open(
        files,
        replace(reading, drop_missing=False),  # what is missing has an empty result
        Expected(first, replace(Choice(options=True), **called)),  # type: ignore[arg-type]
    )
    return _recalibrate_lazily(lazy, saved, roles, choice, name, output)


def _recalibrate_lazily(
    lazy: LazyTable,
    saved: SavedTargets,
    fitted: dict[str, Roles],
    choice: Choice,
    name: str | None,
    output: str,
) -> dict[str, Any]:
    names = list(lazy.frame.collect_schema())
    with about(lazy.file):
        roles = ExpectedTargets(fitted, choice).find_names(names)
        new = new_names(name, roles, names)
    for called, (target, each) in zip(new, roles.items(), strict=True):
        one = replace(lazy, roles=each)
        lazy = one.recalibrate(saved.maps[target], called, None)
    first = next(iter(roles.values()))
    return replace(lazy, new=tuple(new)).write(output, first) | {"columns": new}
