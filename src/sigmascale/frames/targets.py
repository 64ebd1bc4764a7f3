"""Several targets of a wide lazy frame, fitted to a sample of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.telling import telling_of
from ..exceptions import InvalidInputError
from ..targets.tables import TargetRows, check_names, paired
from .lazy_rows import LazyRows, as_lazy, is_missing, number, read_rows
from .sampling import Sample, draw

if TYPE_CHECKING:
    from ..targets.recalibrated import RecalibratedTargets, TargetScaling


def fit_targets(
    targets: RecalibratedTargets,
    frame: Any,
    *,
    error: Sequence[str],
    uncertainty: Sequence[str],
    features: Sequence[str],
    groups: str | None,
    most: int,
) -> list[tuple[TargetScaling, LazyRows, Sample]]:
    """Fit several targets to a sample of the known entries of each.

    What is returned are the recalibrators, the rows that each is for, and their sample.
    """
    errors, uncertainties = list(error), list(uncertainty)
    if targets.by is not None or len(errors) != len(uncertainties):
        msg = (
            "`frame` must be wide: `error` and `uncertainty` are lists of a column for "
            "each target, in the same order, and there is no `by`."
        )
        raise InvalidInputError(msg)
    names = check_names(targets.names, errors, len(errors))
    order = paired(errors, uncertainties, "uncertainty")
    uncertainties = [uncertainties[k] for k in order]
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    wanted = list(features)
    all_rows, drawn = [], []
    for name, e, u in zip(names, errors, uncertainties, strict=True):
        if e not in schema:
            msg = f"`error` must name columns of the frame; there is no {e!r}."
            raise InvalidInputError(msg)
        known = lazy.filter(~is_missing(number(schema, e)))
        with telling_of(f"target {name!r}"):
            labels = [groups] if groups is not None and groups not in wanted else []
            rows = read_rows(known, e, u, [*wanted, *labels], categorical=labels)
            all_rows.append(rows)
            drawn.append(draw(rows, most // len(names), groups))
    read = [each.rows.with_features(wanted) for each in drawn]
    targets.is_column_ = False
    targets.uncertainty_columns_ = list(range(len(names)))
    targets.columns_ = [*uncertainties, *wanted]
    targets.n_features_in_ = len(uncertainties) + len(wanted)
    targets.feature_names_in_ = np.array(targets.columns_, dtype=object)
    targets.fit_rows(
        [
            TargetRows(name, rows, np.arange(rows.n_rows), rows.n_rows)
            for name, rows in zip(names, read, strict=True)
        ]
    )
    for scaler, each in zip(targets.scalers_.values(), drawn, strict=True):
        scaler.min_uncertainty_ = each.smallest_uncertainty
        if each.outside is not None:
            scaler.n_sample_, scaler.n_samples_fit_ = each.rows.n_rows, each.n_rows
    return list(zip(targets.scalers_.values(), all_rows, drawn, strict=True))
