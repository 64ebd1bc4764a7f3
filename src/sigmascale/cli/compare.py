"""``sigmascale compare`` and ``bins``: recalibrators side by side."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._support.progress import working
from .app import app
from .methods import make_scaler
from .options import (
    AsJson,
    CalFile,
    DropMissing,
    Method,
    Report,
    Seed,
    Separator,
    TestFile,
    example,
    with_columns,
)
from .outputs import HTML, check_output
from .show import show_json, show_verdicts, tell_guesses, tell_written

if TYPE_CHECKING:
    from .tables.loading import LoadedSet

SCORE_BINS = 100
SIMULATED_SETS = 200  # behind each point of a scan; 1000 would take minutes


@app.command(
    epilog=example(
        "sigmascale compare demo-output/cal.csv demo-output/test.csv --feature mass",
        "sigmascale compare demo-output/cal.csv demo-output/test.csv --report out.html",
    )
)
@with_columns
def compare(
    cal: CalFile,
    test: TestFile,
    choice: Any,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of the scores; 100, or what leaves 5 rows in each.",
            min=1,
            metavar="N",
        ),
    ] = None,
    report: Report = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit every recalibrator on one set, and judge all on another."""
    from sklearn.frozen import FrozenEstimator

    from ..comparison import compare as compare_scalers
    from ..judging.verdicts import validate
    from ..scaling import SelectedScaling
    from .tables.loading import about, read_pair

    if report is not None:
        check_output(report, HTML, [cal, test])
    training, testing = read_pair(
        cal, test, choice, drop_missing=drop_missing, separator=separator
    )
    if training.frame.equals(testing.frame):
        warnings.warn(
            f"{test} holds the rows of {cal}: judged on what they were fitted on, all "
            "recalibrators look better than they are.",
            UserWarning,
            stacklevel=1,
        )
    bins = bins or score_bins(training, testing)
    methods: dict[str, Any] = {
        each.value: make_scaler(each, training.columns, seed=seed)
        for each in Method
        if each not in (Method.auto, Method.group)
    }
    with about(cal):
        chosen = SelectedScaling(random_state=seed).fit(training.X, training.error)
    methods["auto"] = FrozenEstimator(chosen)  # fitted once
    table = compare_scalers(
        methods,
        (training.X, training.error),
        (testing.X, testing.error),
        n_bins=bins,
        rng=seed,
    )
    recalibrated = chosen.predict(testing.X)
    if report is not None:
        from ..report import write_report

        with working("writing the report"):
            write_report(
                report,
                testing.error,
                testing.uncertainty,
                testing.features,
                recalibrated=recalibrated,
                scaler=chosen,
                calibration=(training.X, training.error),
                comparison=table,
                title=f"Uncertainties of {test}, recalibrated with {cal}",
                rng=seed,
            )
    with about(test), working("judging the uncertainties"):
        verdicts = {
            what: validate(
                testing.error, u, testing.features, ties=testing.uncertainty, rng=seed
            )
            for what, u in (("before", testing.uncertainty), ("after", recalibrated))
        }
    if as_json:
        told = {"chosen": chosen.name_, "comparison": table.to_dict()}
        data = {"cal": training.to_dict(), "test": testing.to_dict()}
        show_json(data | told | {what: v.to_dict() for what, v in verdicts.items()})
        return
    tell_guesses(choice, training)
    print(f"\nScores on {test}, with {bins} bins:\n\n{table}")
    print("NLL and S: lower is better. Valid bins: 95 % is ideal.")
    print(f"\nauto is: {chosen.name_}, chosen by cross-validation on {cal}.")
    for what, found in verdicts.items():
        print()
        show_verdicts(found, "Before" if what == "before" else "After, with auto")
    tell_written(report)


@app.command(
    epilog=example("sigmascale bins demo-output/cal.csv demo-output/test.csv --by mass")
)
@with_columns
def bins(
    cal: CalFile,
    test: TestFile,
    choice: Any,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column to bin by; the uncertainty if not given.", metavar="COLUMN"
        ),
    ] = None,
    drop_missing: DropMissing = False,
    separator: Separator = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show what the number of bins does, and which one cross-validation prefers."""
    from ..judging.scan import choose_n_bins, scan_bins
    from .tables.loading import read_pair

    training, testing = read_pair(
        cal,
        test,
        choice,
        by=[by] if by else [],
        drop_missing=drop_missing,
        separator=separator,
    )
    column = by or 0
    best = choose_n_bins(training.X, training.error, by=column, rng=seed)
    scan = scan_bins(
        (training.X, training.error),
        (testing.X, testing.error),
        n_bins=[int(n) for n in best.candidates],
        by=column,
        score_bins=score_bins(training, testing),
        n_draws=SIMULATED_SETS,
        rng=seed,
    )
    if as_json:
        show_json({"choice": best.to_dict(), "scan": scan.to_dict()})
        return
    tell_guesses(choice, training)
    print(f"\nScores on {test} of bin-wise scaling, by its number of bins:\n")
    print(scan)
    plural = "" if best.n_bins == 1 else "s"
    print(f"\nCross-validation on {cal} alone prefers {best.n_bins} bin{plural}.")


def score_bins(*sets: LoadedSet) -> int:
    """Return how many bins the scores of some sets have, if nobody says it."""
    from ..judging.confidence_intervals import MIN_ROWS

    return max(1, min(SCORE_BINS, *(data.X.height // MIN_ROWS for data in sets)))
