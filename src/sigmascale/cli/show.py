"""``sigmascale show``: tell what a saved recalibrator is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .app import app, say, show_json, show_words
from .methods import Saved, load_saved
from .options import AsJson, SavedScaler, example

if TYPE_CHECKING:
    from ..persistence import SavedMap
    from ..roles import Roles


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
    whole = saved.whole
    show_words(f"{scaler}: {whole.words}")
    if saved.is_several:
        for name, each in saved.maps.items():
            columns = f": columns {', '.join(each.names)}" if each.named else ""
            show_words(f"  {name}: {each.n_rows} rows{columns}.")
    else:
        say(f"\nMethod: {whole.method}, fitted on {whole.n_rows} rows.")
        show_words(f"Columns: {_columns(whole, saved.roles.get(''))}.")
        say(f"Smallest uncertainty: {whole.smallest_uncertainty:g}.")
        held_back = f"from {told['held_back']} rows that were held back"
        if not told["held_back"]:
            held_back = "those of the law; fit --conformal-share gives a guarantee"
        show_words(f"Intervals: {held_back}.")
    say(f"Written by sigmascale {whole.library}.")


def _columns(saved: SavedMap, roles: Roles | None) -> str:
    if roles is not None:
        formula = "" if roles.formula is None else f" (from formula {roles.formula})"
        return f"{roles}{formula}"
    if saved.named:
        return ", ".join(saved.names)
    return f"{len(saved.names)} without names, the uncertainty first"


def _to_dict(scaler: str, saved: Saved) -> dict[str, Any]:
    whole = saved.whole
    told = {"file": scaler, "words": whole.words, "library": whole.library}
    if saved.is_several:
        targets = {
            name: {
                "words": each.words,
                "rows": each.n_rows,
                "columns": list(each.names) if each.named else None,
            }
            for name, each in saved.maps.items()
        }
        columns = None if whole.columns is None else list(whole.columns)
        method = {"method": "RecalibratedTargets"}
        return told | method | {"targets": targets, "columns": columns}
    roles = saved.roles.get("")
    return told | {
        "method": whole.method,
        "rows": whole.n_rows,
        "columns": list(whole.names) if whole.named else None,
        "roles": None if roles is None else roles.to_dict(),
        "smallest_uncertainty": whole.smallest_uncertainty,
        "held_back": 0 if whole.conformal is None else whole.conformal.z.size,
    }
