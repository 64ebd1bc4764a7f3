"""Results on the screen, for people and for machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..judging.verdicts import Validation
    from .large import LazySet
    from .tables.columns import Choice
    from .tables.loading import LoadedSet


def show_json(result: dict[str, Any], *, to_stderr: bool = False) -> None:
    """Print a result for machines."""
    text = json.dumps(_finite(result), indent=1, ensure_ascii=False)
    print(text, file=sys.stderr if to_stderr else sys.stdout)


def tell_written(report: Path | None) -> None:
    """Print where the report is."""
    if report is not None:
        print(f"\nReport: {report}")


def _finite(value: Any) -> Any:
    """Return a value that JSON can hold: it knows no infinite numbers."""
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value.item() if hasattr(value, "item") else value


def show_verdicts(validation: Validation, title: str = "") -> None:
    """Print verdicts with a mark each, in colour where there is any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if title:
        console.print(Text(title, style="bold"))
    for verdict in validation.verdicts.values():
        mark, style = ("✓", "green") if verdict.passed else ("✗", "red")
        words = fill(f"  {verdict.sentence}", console.width - 1, subsequent_indent="  ")
        console.print(Text(mark, style=style) + Text(words[1:]), soft_wrap=True)


def tell_doubts(data: LoadedSet) -> None:
    """Print what makes verdicts and recalibration of these rows doubtful."""
    from ..judging.diagnostics import z_scores
    from ..report.cautions import FEW_ROWS

    z = z_scores(data.error, data.uncertainty)
    if z.biased:
        print(
            f"The mean of z = E/u is {z.mean:.2f}: the predictions are biased. Correct "
            "them\nfirst; uncertainties are no remedy."
        )
    if data.X.height < FEW_ROWS:
        print(
            f"{data.X.height} rows are few: only gross faults can be found in so small "
            "a set."
        )


def tell_guesses(choice: Choice, data: LoadedSet | LazySet) -> None:
    """Print what was taken from a file, and which columns nobody named."""
    print(fill(str(data), 79))
    guessed = [] if any(choice.error_names) else list(data.error_columns)
    if choice.uncertainty is None and choice.variance is None:
        guessed.append(data.columns.uncertainty)
    if guessed:
        print(f"Guessed from their names: {', '.join(guessed)}.")
    if not data.columns.features:
        print("No features: --feature COLUMN or --all-features would use some.")
