"""``sigmascale show``: tell what a saved recalibrator is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .app import app
from .options import AsJson, SavedScaler, example
from .printing import say, show_json, show_words

if TYPE_CHECKING:
    from ..persistence import SavedMap, SavedTargets
    from ..roles import Roles


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --all-features -o scaler.json",
        "sigmascale show scaler.json",
    )
)
def show(scaler: SavedScaler, as_json: AsJson = False) -> None:
    """Tell what a saved recalibrator does, and which columns it needs."""
    from ..persistence import SavedTargets, load_maps
    from ..roles import Roles
    from .tables.filesets import about

    saved = load_maps(scaler)
    if isinstance(saved, SavedTargets):
        _show_targets(scaler, saved, as_json)
        return
    roles = None
    if saved.source is not None:  # it knows the columns of files
        with about(scaler):
            roles = Roles.from_dict(saved.source)
    if as_json:
        show_json(_to_dict(scaler, saved, roles))
        return
    show_words(f"{scaler}: {saved.words}")
    say(f"\nMethod: {saved.method}, fitted on {saved.n_rows} rows.")
    show_words(f"Columns: {_columns(saved, roles)}.")
    say(f"Smallest uncertainty: {saved.smallest_uncertainty:g}.")
    show_words(f"Intervals: {_intervals(saved)}.")
    say(f"Written by sigmascale {saved.library}.")


def _show_targets(scaler: str, saved: SavedTargets, as_json: bool) -> None:
    """Tell what several targets are."""
    if as_json:
        show_json(
            {
                "file": scaler,
                "words": saved.words,
                "method": "RecalibratedTargets",
                "targets": {
                    name: {
                        "words": each.words,
                        "rows": each.n_rows,
                        "columns": list(each.names) if each.named else None,
                    }
                    for name, each in saved.maps.items()
                },
                "columns": None if saved.columns is None else list(saved.columns),
                "library": saved.library,
            }
        )
        return
    show_words(f"{scaler}: {saved.words}")
    for name, each in saved.maps.items():
        columns = f": columns {', '.join(each.names)}" if each.named else ""
        show_words(f"  {name}: {each.n_rows} rows{columns}.")
    say(f"Written by sigmascale {saved.library}.")


def _columns(saved: SavedMap, roles: Roles | None) -> str:
    if roles is not None:
        formula = "" if roles.formula is None else f" (from formula {roles.formula})"
        return f"{roles}{formula}"
    if saved.named:
        return ", ".join(saved.names)
    return f"{len(saved.names)} without names, the uncertainty first"


def _intervals(saved: SavedMap) -> str:
    if saved.conformal is None:
        return "none; fit --conformal-share would make some possible"
    return f"from {saved.conformal.z.size} rows that were held back"


def _to_dict(scaler: str, saved: SavedMap, roles: Roles | None) -> dict[str, Any]:
    held_back = 0 if saved.conformal is None else saved.conformal.z.size
    return {
        "file": scaler,
        "words": saved.words,
        "method": saved.method,
        "rows": saved.n_rows,
        "columns": list(saved.names) if saved.named else None,
        "roles": None if roles is None else roles.to_dict(),
        "smallest_uncertainty": saved.smallest_uncertainty,
        "held_back": held_back,
        "library": saved.library,
    }
