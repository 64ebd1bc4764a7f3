"""``sigmascale show``: tell what a saved recalibrator is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .app import app, say, show_json, show_words
from .files import load_saved
from .options import AsJson, SavedScaler, example

if TYPE_CHECKING:
    from ..persistence import SavedMap


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --all-features -o scaler.json",
        "sigmascale show scaler.json",
    )
)
def show(scaler: SavedScaler, as_json: AsJson = False) -> None:
    """Tell what a saved recalibrator does, and which columns it needs."""
    saved = load_saved(scaler, needs_roles=False)
    told = _to_dict(scaler, saved)
    if as_json:
        show_json(told)
        return
    show_words(f"{scaler}: {saved.words}")
    if saved.is_several:
        for name, each in saved.maps.items():
            columns = f": columns {', '.join(each.names)}" if each.named else ""
            show_words(f"  {name}: {each.n_rows} rows{columns}.")
    else:
        say(f"\nMethod: {saved.method}, fitted on {saved.n_rows} rows.")
        show_words(f"Columns: {_columns(saved)}.")
        say(f"Smallest uncertainty: {saved.smallest_uncertainty:g}.")
        held_back = f"from {told['held_back']} rows that were held back"
        if not told["held_back"]:
            held_back = "those of the law; fit --conformal-share gives a guarantee"
        show_words(f"Intervals: {held_back}.")
    say(f"Written by sigmascale {saved.library}.")


def _columns(saved: SavedMap) -> str:
    if saved.source is not None:
        roles = saved.roles[""]
        formula = "" if roles.formula is None else f" (from formula {roles.formula})"
        return f"{roles}{formula}"
    if saved.named:
        return ", ".join(saved.names)
    return f"{len(saved.names)} without names, the uncertainty first"


def _to_dict(scaler: str, saved: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"file": scaler, "words": saved.words}
    told |= {"library": saved.library, "method": "RecalibratedTargets"}
    if saved.is_several:
        targets = {
            name: {
                "words": each.words,
                "rows": each.n_rows,
                "columns": list(each.names) if each.named else None,
            }
            for name, each in saved.maps.items()
        }
        columns = None if saved.columns is None else list(saved.columns)
        return told | {"targets": targets, "columns": columns}
    return told | {
        "method": saved.method,
        "rows": saved.n_rows,
        "columns": list(saved.names) if saved.named else None,
        "roles": None if saved.source is None else saved.roles[""].to_dict(),
        "smallest_uncertainty": saved.smallest_uncertainty,
        "held_back": 0 if saved.conformal is None else saved.conformal.z.size,
    }
