import builtins
import dataclasses
import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from scipy import stats

from sigmascale import (
    BinwiseScaling,
    CategoryScaling,
    Monitor,
    Predictions,
    RakedScaling,
    SelectedScaling,
    calibration_curve,
    confidence_curve,
    local_coverage,
    local_zms,
    miscalibration_area,
    normal_interval,
    pit_histogram,
    reliability_diagram,
    validate,
)
from sigmascale.datasets import load_health, make_molecules
from sigmascale.exceptions import InvalidInputError
from sigmascale.plots import (
    plot_adaptivity,
    plot_calibration_curve,
    plot_confidence_curve,
    plot_errors,
    plot_factors,
    plot_local_coverage,
    plot_local_zms,
    plot_monitor,
    plot_pit_histogram,
    plot_predictions,
    plot_reliability_diagram,
    share_zms_range,
    summary,
)

DATA = make_molecules(1500, seed=3)
E, U = DATA.error, DATA.uncertainty
HEALTH = load_health().test
DIAGRAM = reliability_diagram(E, U)
COVERED = calibration_curve(E, U)
PIT = pit_histogram(E, U)
CURVE = confidence_curve(E, U, n_draws=40)
LOCAL = local_zms(E, U, n_bins=30, method="moments")
HEAVY = DATA.mass > 125
GROUPS = local_zms(  # the uncertainties of one of the two groups are right
    E,
    np.where(HEAVY, DATA.true_sigma, U),
    by=np.where(HEAVY, "heavy $x$", "<script>"),
    method="moments",
)

COVERAGE = local_coverage(E, U, normal_interval(U), by=DATA.mass, n_bins=15)
COVERED_GROUPS = local_coverage(
    E,
    U,
    normal_interval(np.where(HEAVY, DATA.true_sigma, U)),
    by=np.where(HEAVY, "heavy $x$", "<script>"),
)

ADAPTIVE = validate(
    E,
    U,
    {"mass": DATA.mass, "phase": np.where(HEAVY, "heavy", "light")},
    n_draws=60,
    joint=False,
    method="moments",
)

PLOTS = {
    "adaptivity": lambda **kw: plot_adaptivity(ADAPTIVE.verdicts["mass"], **kw),
    "confidence_curve": lambda **kw: plot_confidence_curve(CURVE, **kw),
    "local_zms": lambda **kw: plot_local_zms(LOCAL, **kw),
    "groups": lambda **kw: plot_local_zms(GROUPS, **kw),
    "local_coverage": lambda **kw: plot_local_coverage(COVERAGE, **kw),
    "covered groups": lambda **kw: plot_local_coverage(COVERED_GROUPS, **kw),
    "reliability_diagram": lambda **kw: plot_reliability_diagram(DIAGRAM, **kw),
    "calibration_curve": lambda **kw: plot_calibration_curve(COVERED, **kw),
    "pit_histogram": lambda **kw: plot_pit_histogram(PIT, **kw),
    "predictions": lambda **kw: plot_predictions(HEALTH, **kw),
    "errors": lambda **kw: plot_errors(E, U, **kw),
}
every_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)


def draw(ax):
    """Draw as a user would; a warning is an error here."""
    with io.BytesIO() as file:
        ax.figure.savefig(file, format="png")
        assert file.tell() > 1000
    return ax


def line(ax, label):
    (found,) = [each for each in ax.lines if each.get_label() == label]
    return found


def legend_texts(ax):
    return [each.get_text() for each in ax.get_legend().get_texts()]


def note(ax):
    return ax.get_legend().get_title().get_text()


# --- every plot ---------------------------------------------------------------------


@every_plot
def test_the_given_axes_are_drawn_on_and_returned(plot):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot(ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    assert figure.axes == [left, right]


@every_plot
def test_without_axes_a_new_figure_is_made_that_can_be_saved(plot):
    first, second = plot(), plot()
    assert isinstance(first, Axes)
    assert first.figure is not second.figure
    draw(first)


@every_plot
def test_no_global_state_changes(plot):
    settings, figures = dict(mpl.rcParams), plt.get_fignums()
    np.random.seed(0)  # noqa: NPY002
    draw(plot())
    assert dict(mpl.rcParams) == settings
    assert plt.get_fignums() == figures
    assert np.random.random() == pytest.approx(0.5488135)  # noqa: NPY002


@every_plot
def test_both_axes_are_labelled_and_there_is_a_legend(plot):
    ax = plot()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(legend_texts(ax)) >= 2


@every_plot
@pytest.mark.parametrize("size", [(2.7, 2.5), (3.4, 2.6), (6, 4)])
def test_the_legend_stays_inside_the_axes_and_above_what_is_drawn(plot, size):
    figure = Figure(size, layout="constrained")
    ax = draw(plot(ax=figure.subplots()))
    box = ax.get_legend().get_window_extent()
    frame = ax.get_window_extent()
    assert frame.x0 <= box.x0
    assert box.x1 <= frame.x1 + 1
    assert box.y1 <= frame.y1 + 1
    for each in [*ax.lines, *ax.collections, *ax.patches]:
        vertices = [p.vertices for p in getattr(each, "get_paths", lambda: [])()]
        data = np.vstack(vertices) if vertices else each.get_path().vertices
        drawn = each.get_transform().transform(data)[:, 1]
        assert drawn[np.isfinite(drawn)].max() <= box.y0 + 3


@every_plot
def test_a_style_reaches_the_main_artist_also_under_its_short_name(plot):
    ax = plot(alpha=0.77, label="mine", lw=3)
    artists = [*ax.lines, *ax.patches]
    (main,) = [each for each in artists if each.get_label() == "mine"]
    assert main.get_alpha() == 0.77
    assert main.get_linewidth() == 3
    assert "mine" in legend_texts(ax)


@every_plot
def test_a_color_replaces_the_color_of_the_main_artist(plot):
    ax = draw(plot(color="#123456", label="mine"))
    (main,) = [a for a in [*ax.lines, *ax.patches] if a.get_label() == "mine"]
    shown = main.get_color() if main in ax.lines else main.get_facecolor()[:3]
    assert same_color(shown, "#123456")


def test_adaptivity_is_drawn_with_the_band_of_the_verdict():
    verdicts, local = ADAPTIVE.verdicts, ADAPTIVE.local
    ax = draw(plot_adaptivity(verdicts["mass"]))
    band, mass = verdicts["mass"].band, local["mass"]
    x, low, high = band_of(ax, "band")
    np.testing.assert_allclose(x, (band.x_min + band.x_max) / 2)
    np.testing.assert_allclose(low, mass.overall[0] * band.low**2)
    np.testing.assert_allclose(high, mass.overall[0] * band.high**2)
    drawn = np.concatenate([each.get_ydata() for each in ax.lines])
    assert set(mass.zms) <= set(drawn)
    assert ax.get_xlabel() == "mass"


def test_adaptivity_for_labels_has_a_band_at_each_label():
    verdict = ADAPTIVE.verdicts["phase"]
    ax = draw(plot_adaptivity(verdict))
    (bars,) = [each for each in ax.collections if each.get_label() == "band"]
    names = [each.get_text() for each in ax.get_xticklabels()]
    drawn = {names[int(x)]: (low, high) for (x, low), (_, high) in bars.get_segments()}
    overall = verdict.local.overall[0]
    for label, low, high in zip(
        verdict.band.x_min, verdict.band.low, verdict.band.high, strict=True
    ):
        assert drawn[label] == pytest.approx((overall * low**2, overall * high**2))


def test_a_verdict_on_no_variable_has_no_adaptivity_to_draw():
    with pytest.raises(InvalidInputError, match=r"must be on u or a feature.*average"):
        plot_adaptivity(ADAPTIVE.verdicts["average"])


def test_bins_that_say_nothing_are_grey_if_a_tolerance_is_given():
    vague = LOCAL.says_nothing(1.1)
    assert 0 < vague.sum() < vague.size
    ax = plot_local_zms(LOCAL, tolerance=1.1, color="k")
    grey = line(ax, "cannot tell")
    np.testing.assert_array_equal(grey.get_ydata(), LOCAL.zms[vague])
    assert same_color(grey.get_color(), "#999999")
    valid = LOCAL.zms[LOCAL.valid & ~vague]
    np.testing.assert_array_equal(line(ax, "valid").get_ydata(), valid)
    assert "cannot tell" not in legend_texts(plot_local_zms(LOCAL))
    inside = (LOCAL.low <= 1.1**-2) & (LOCAL.high >= 1.1**2)
    np.testing.assert_array_equal(vague, inside)


@pytest.mark.parametrize("tolerance", [1, 0.5, np.inf, "2"])
def test_a_tolerance_that_is_no_factor_above_1_is_refused(tolerance):
    with pytest.raises(InvalidInputError, match=r"`tolerance` must be a factor of the"):
        plot_local_zms(LOCAL, tolerance=tolerance)


def test_a_short_name_of_a_color_does_not_clash_with_the_default():
    assert same_color(line(plot_local_zms(LOCAL, c="k"), "valid").get_color(), "k")
    assert same_color(
        plot_pit_histogram(PIT, fc="k").patches[0].get_facecolor()[:3], "k"
    )


@every_plot
def test_something_that_is_no_axes_is_refused(plot):
    with pytest.raises(
        InvalidInputError, match="`ax` must be a Matplotlib Axes; found"
    ):
        plot(ax=Figure())


@pytest.mark.parametrize(
    ("plot", "kind"),
    [
        (plot_confidence_curve, "ConfidenceCurve"),
        (plot_local_zms, "LocalZMS"),
        (plot_local_coverage, "LocalCoverage"),
        (plot_reliability_diagram, "ReliabilityDiagram"),
        (plot_calibration_curve, "CalibrationCurve"),
        (plot_pit_histogram, "PITHistogram"),
    ],
)
def test_something_that_is_no_result_is_refused(plot, kind):
    with pytest.raises(InvalidInputError, match=f"must be a {kind}; found ndarray"):
        plot(E)


def test_rows_are_checked_as_everywhere():
    with pytest.raises(InvalidInputError, match="`uncertainty` must be strictly posi"):
        plot_errors([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(InvalidInputError, match="same number of rows; found 2 and 3"):
        plot_errors([1.0, 2.0], [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("error", "uncertainty"),
    [([1.0], [2.0]), ([0.0, 0.0], [1.0, 1.0]), ([1e-9, 3e-9], [1e-9, 4e-8])],
    ids=["one row", "no error", "tiny"],
)
def test_the_smallest_sets_are_drawn_without_a_warning(error, uncertainty):
    curve = confidence_curve(error, uncertainty, n_draws=9)
    for ax in (
        plot_errors(error, uncertainty),
        plot_pit_histogram(pit_histogram(error, uncertainty)),
        plot_confidence_curve(curve),
    ):
        low, high = draw(ax).get_ylim()
        assert -np.inf < low < high < np.inf


@every_plot
def test_a_missing_matplotlib_is_named_with_the_remedy(plot, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "\.\[cli\]" in a checkout'):
        plot()


def test_importing_sigmascale_and_its_plots_loads_no_optional_package():
    code = (
        "import sys, sigmascale, sigmascale.plots\n"
        "print({'matplotlib', 'polars', 'typer'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- confidence curve ---------------------------------------------------------------


def test_the_confidence_curve_draws_what_was_computed():
    ax = plot_confidence_curve(CURVE)
    for label, values in {
        "data": CURVE.error,
        "oracle": CURVE.oracle,
        "reference": CURVE.reference,
    }.items():
        np.testing.assert_array_equal(line(ax, label).get_xdata(), CURVE.pruned)
        np.testing.assert_array_equal(line(ax, label).get_ydata(), values)
    band = ax.collections[0].get_paths()[0].vertices
    n = CURVE.pruned.size
    np.testing.assert_array_equal(band[1 : n + 1, 1], CURVE.reference_low)
    np.testing.assert_array_equal(
        band[n + 2 : 2 * n + 2, 1][::-1], CURVE.reference_high
    )
    assert ax.get_ylabel() == "RMSE of the rows left"


def test_two_confidence_curves_share_axes_in_which_both_are_whole():
    larger = confidence_curve(5 * E, U, n_draws=20)
    ax = plot_confidence_curve(larger, label="larger")
    plot_confidence_curve(CURVE, ax=ax, label="smaller", color="k")
    assert sorted(legend_texts(ax)) == ["larger", "oracle", "reference", "smaller"]
    assert ax.get_ylim()[1] > larger.error.max()


def test_the_name_of_a_statistic_is_drawn_literally():
    def worst_in_dollars(errors):
        return np.abs(errors).max()

    worst_in_dollars.__name__ = "$worst$"
    curve = confidence_curve(E, U, statistic=worst_in_dollars, n_draws=3, n_points=10)
    assert draw(plot_confidence_curve(curve)).get_ylabel() == (
        r"\$worst\$ of the rows left"
    )


# --- local ZMS and local coverage ---------------------------------------------------


@pytest.mark.parametrize(
    ("plot", "result", "field"),
    [
        (plot_local_zms, LOCAL, "zms"),
        (plot_local_zms, GROUPS, "zms"),
        (plot_local_coverage, COVERAGE, "coverage"),
        (plot_local_coverage, COVERED_GROUPS, "coverage"),
    ],
    ids=["zms", "zms of groups", "coverage", "coverage of groups"],
)
def test_points_and_bars_of_bins_are_what_was_computed(plot, result, field):
    ax = plot(result)
    values = getattr(result, field)
    x = np.arange(result.x.size) if result.is_grouped else result.x
    drawn = {}
    for label, rows in (("valid", result.valid), ("not valid", ~result.valid)):
        if rows.any():
            points = line(ax, label)
            np.testing.assert_array_equal(points.get_xdata(), x[rows])
            np.testing.assert_array_equal(points.get_ydata(), values[rows])
            drawn[label] = rows
    for (label, rows), bars in zip(drawn.items(), ax.collections, strict=True):
        ends = np.array(bars.get_segments())
        np.testing.assert_array_equal(ends[:, 0, 0], x[rows])
        np.testing.assert_array_equal(ends[:, 0, 1], result.low[rows])
        np.testing.assert_array_equal(ends[:, 1, 1], result.high[rows])
        assert same_color(bars.get_color(), line(ax, label).get_color())


def test_invalid_bins_have_another_colour_and_another_marker_whatever_the_style():
    assert 0 < LOCAL.fraction_valid < 1
    for style in ({}, {"color": "k", "marker": "s", "mfc": "r", "markersize": 3}):
        ax = plot_local_zms(LOCAL, **style)
        good, bad = line(ax, "valid"), line(ax, "not valid")
        assert not same_color(good.get_color(), bad.get_color())
        assert not same_color(good.get_markerfacecolor(), bad.get_markerfacecolor())
        assert good.get_marker() != bad.get_marker()


def test_target_average_and_fraction_of_valid_bins_are_shown():
    ax = plot_local_zms(LOCAL)
    assert any(np.all(np.array(each.get_ydata()) == 1) for each in ax.lines)
    average = line(ax, "all rows")
    assert average.get_ydata()[0] == LOCAL.overall[0]
    assert any(list(each.get_ydata()) == [*LOCAL.overall[1:]] for each in ax.lines)
    # in the right margin: in fractions of the axes, past 1, and not cut off
    assert average.get_xdata()[0] > 1
    assert not average.get_clip_on()
    low, high = LOCAL.fraction_interval
    assert note(ax) == f"valid bins: {LOCAL.fraction_valid:.2f} [{low:.2f}, {high:.2f}]"


def test_target_average_and_fraction_of_local_coverage_are_shown():
    assert 0 < COVERAGE.fraction_valid < 1
    ax = draw(plot_local_coverage(COVERAGE))
    assert any(np.all(np.array(each.get_ydata()) == 0.9) for each in ax.lines)
    assert line(ax, "all rows").get_ydata()[0] == COVERAGE.overall[0]
    assert any(list(each.get_ydata()) == [*COVERAGE.overall[1:]] for each in ax.lines)
    low, high = COVERAGE.fraction_interval
    assert note(ax) == (
        f"valid bins: {COVERAGE.fraction_valid:.2f} [{low:.2f}, {high:.2f}]"
    )
    assert ax.get_ylim()[0] < COVERAGE.low.min()
    assert ax.get_ylim()[1] > 1
    assert max(ax.get_yticks()) <= 1


def test_coverage_of_none_and_of_all_can_be_drawn():
    for interval in (normal_interval(1e-9 * U), normal_interval(1e9 * U)):
        ax = draw(plot_local_coverage(local_coverage(E, U, interval, n_bins=9)))
        assert ax.get_legend_handles_labels()[1][0] == "not valid"
        assert all(0 <= tick <= 1 for tick in ax.get_yticks())


def test_all_bins_are_in_sight():
    ax = plot_local_zms(LOCAL)
    low, high = ax.get_ylim()
    assert low < min(LOCAL.low.min(), LOCAL.overall[1])
    assert high > LOCAL.high.max()
    left, right = ax.get_xlim()
    assert left < LOCAL.x.min()
    assert right > LOCAL.x.max()


@pytest.mark.parametrize(
    ("x", "scale"),
    [
        (np.geomspace(0.01, 100, 500), "log"),
        (np.exp(0.6 * stats.norm.ppf(np.linspace(0.001, 0.999, 500))), "log"),
        (np.linspace(0.001, 1, 500), "linear"),
        (np.linspace(100, 150, 500), "linear"),
        (np.geomspace(0.01, 100, 500) - 0.02, "linear"),
        (np.ones(500), "linear"),
    ],
    ids=["decades", "skewed", "uniform", "narrow", "not positive", "constant"],
)
def test_the_variable_has_a_log_axis_where_that_helps(x, scale):
    rng = np.random.default_rng(0)
    result = local_zms(rng.normal(size=500), np.ones(500), by=x, n_bins=20)
    ax = draw(plot_local_zms(result))
    assert (ax.get_xscale(), ax.get_yscale()) == (scale, "log")


def test_few_groups_are_all_named_and_names_are_literal():
    ax = draw(plot_local_zms(GROUPS))
    shown = [each.get_text() for each in ax.get_xticklabels()]
    assert shown == ["<script>", r"heavy \$x\$"]
    np.testing.assert_array_equal(GROUPS.valid, [False, True])


def test_of_many_groups_some_are_named_and_the_names_do_not_overlap():
    rng = np.random.default_rng(0)
    labels = np.array([f"group number {i}" for i in rng.integers(0, 90, 3000)])
    result = local_zms(
        rng.normal(size=3000), np.ones(3000), by=labels, method="moments"
    )
    ax = draw(plot_local_zms(result))
    shown = ax.get_xticklabels()
    assert 10 < len(shown) < 60
    pixels = ax.transData.transform([(each.get_position()[0], 1) for each in shown])
    line_height = shown[0].get_fontsize() * ax.figure.dpi / 72
    assert np.diff(pixels[:, 0]).min() > line_height
    assert all(each.get_text()[-1].isdigit() for each in shown)  # cut in the middle


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("$x$", r"\$x\$"),
        (r"cost in \$", r"cost in \\$"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("_{%}^\\frac", "_{%}^\\frac"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("zero\x00byte \ud800", "zero�byte �"),
        ("a\u200db \u202ec", "a\u200db �c"),
        ("u", "uncertainty u"),
    ],
)
def test_the_name_of_a_variable_is_drawn_literally(name, shown):
    ax = draw(plot_local_zms(dataclasses.replace(LOCAL, name=name)))
    assert ax.get_xlabel() == shown


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # fonts differ
@pytest.mark.parametrize("name", ["😀", "质量", "\U0010ffff", "x" * 500])
def test_no_name_raises(name):
    draw(plot_local_zms(dataclasses.replace(LOCAL, name=name)))


def test_a_bin_without_errors_is_marked_at_the_bottom_and_does_not_squash_the_rest():
    error = E.copy()
    error[np.argsort(U)[:100]] = 0
    result = local_zms(error, U, n_bins=15, method="moments")
    assert result.zms[0] == 0
    ax = draw(plot_local_zms(result))
    (marks,) = [each for each in ax.lines if each.get_marker() == "v"]
    np.testing.assert_array_equal(marks.get_xdata(), result.x[:1])
    assert ax.get_ylim()[0] > result.zms[result.zms > 0].min() / 10
    draw(plot_local_zms(local_zms(0 * E, U, n_bins=3, method="moments")))


def test_an_interval_that_reaches_zero_is_cut_by_the_axis():
    rng = np.random.default_rng(1)
    result = local_zms(
        rng.standard_t(2.1, 200), np.ones(200), n_bins=20, method="student"
    )
    assert result.low.min() <= 0
    assert draw(plot_local_zms(result)).get_ylim()[0] > 0


def test_every_variable_of_a_validation_can_be_drawn():
    local = validate(E, U, DATA.features, n_bins=20).local
    labels = [draw(plot_local_zms(each)).get_xlabel() for each in local.values()]
    assert labels == ["uncertainty u", "mass", "heteroatom_fraction"]


# --- the figures of the field -------------------------------------------------------


def band_of(ax, label):
    """Return the x, the lower and the upper edge of a band."""
    (band,) = [each for each in ax.collections if each.get_label() == label]
    vertices = band.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    at = [vertices[vertices[:, 0] == each, 1] for each in x]
    return x, np.array([y.min() for y in at]), np.array([y.max() for y in at])


def bars_of(ax):
    """Return the ends of all vertical bars, by their x."""
    found = [
        each.get_segments() for each in ax.collections if hasattr(each, "get_segments")
    ]
    bars = np.concatenate(found)
    return bars[np.argsort(bars[:, 0, 0])]


def test_the_reliability_diagram_is_what_was_computed():
    ax = draw(plot_reliability_diagram(DIAGRAM))
    points = line(ax, "bins")
    np.testing.assert_array_equal(points.get_xdata(), DIAGRAM.rmv)
    np.testing.assert_array_equal(points.get_ydata(), DIAGRAM.rmse)
    np.testing.assert_array_equal(bars_of(ax)[:, 0, 1], DIAGRAM.low)
    np.testing.assert_array_equal(bars_of(ax)[:, 1, 1], DIAGRAM.high)
    x, low, high = band_of(ax, "attainable")
    np.testing.assert_array_equal(x, DIAGRAM.rmv)
    np.testing.assert_array_equal(low, DIAGRAM.attainable_low)
    np.testing.assert_array_equal(high, DIAGRAM.attainable_high)
    assert f"ENCE {DIAGRAM.ence:.2f} (attainable {DIAGRAM.attainable_ence:.2f})" in (
        note(ax)
    )


@pytest.mark.parametrize("factor", [1e-3, 1, 1e3])
def test_the_diagonal_and_all_bins_are_in_sight_however_wrong_u_is(factor):
    ax = plot_reliability_diagram(reliability_diagram(E, factor * U))
    (diagonal,) = [each for each in ax.lines if each.get_gid() == "diagonal"]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    points = line(ax, "bins")
    for which, (low, high) in (("x", ax.get_xlim()), ("y", ax.get_ylim())):
        for each in (diagonal, points):
            data = np.asarray(getattr(each, f"get_{which}data")())
            assert np.all((low <= data) & (data <= high))
    width = np.ptp(np.log(diagonal.get_xdata())) / np.ptp(np.log(points.get_xdata()))
    assert width > 0.9


@pytest.mark.parametrize("kind", ["interval", "quantile"])
def test_the_calibration_curve_is_that_of_uncertainty_toolbox(kind):
    uct = pytest.importorskip("uncertainty_toolbox")
    ax = draw(plot_calibration_curve(calibration_curve(HEALTH, kind=kind)))
    expected, observed = uct.get_proportion_lists_vectorized(
        # the fraction of truths below quantiles; there it is that of predictions
        *(-HEALTH.error, HEALTH.uncertainty, np.zeros(len(HEALTH))),
        prop_type=kind,
    )
    if kind == "quantile":
        observed = uct.get_proportion_lists_vectorized(
            HEALTH.error, HEALTH.uncertainty, np.zeros(len(HEALTH)), prop_type=kind
        )[1]
    curve = line(ax, "observed")
    np.testing.assert_allclose(curve.get_xdata(), expected, atol=1e-12)
    np.testing.assert_allclose(curve.get_ydata(), observed, atol=1e-12)


def test_the_curve_s_band_and_area_are_what_was_computed():
    ax = draw(plot_calibration_curve(COVERED))
    x, low, high = band_of(ax, "calibrated")
    np.testing.assert_array_equal(x, COVERED.level)
    np.testing.assert_array_equal(low, COVERED.low)
    np.testing.assert_array_equal(high, COVERED.high)
    assert note(ax) == f"miscalibration area {miscalibration_area(E, U):.3f}"
    words = {text.get_text(): text.get_position() for text in ax.texts}
    assert words["overconfident"][1] < 0.5 < words["underconfident"][1]


def test_the_pit_histogram_is_what_was_computed():
    ax = draw(plot_pit_histogram(PIT))
    (bars,) = [each for each in ax.patches if each.get_label() == "PIT"]
    np.testing.assert_array_equal(bars.get_data().values, PIT.density)
    np.testing.assert_array_equal(bars.get_data().edges, PIT.edges)
    (band,) = [each for each in ax.patches if each.get_label() == "calibrated"]
    corners = band.get_patch_transform().transform_path(band.get_path()).vertices
    assert corners[:, 1].min() == pytest.approx(PIT.low)
    assert corners[:, 1].max() == pytest.approx(PIT.high)


def test_predictions_are_drawn_with_intervals_that_hold_the_truth_or_not():
    ax = draw(plot_predictions(HEALTH, coverage=0.8, max_points=10_000))
    truth = HEALTH.y_pred + HEALTH.error
    half = stats.norm.ppf(0.9) * HEALTH.uncertainty
    held = np.abs(HEALTH.error) <= half
    for label, which in (("holds", held), ("misses", ~held)):
        np.testing.assert_allclose(line(ax, label).get_xdata(), truth[which])
        np.testing.assert_allclose(line(ax, label).get_ydata(), HEALTH.y_pred[which])
    expected = np.column_stack([truth, HEALTH.y_pred - half, HEALTH.y_pred + half])
    bars = bars_of(ax)
    drawn = np.column_stack([bars[:, 0, 0], bars[:, :, 1]])
    np.testing.assert_allclose(sorted(drawn.tolist()), sorted(expected.tolist()))
    assert f"80 % intervals hold {100 * held.mean():.1f} %" in note(ax)


def test_of_many_predictions_some_are_drawn_and_all_are_counted():
    ax = plot_predictions(HEALTH, max_points=50)
    n = sum(len(line(ax, label).get_xdata()) for label in legend_texts(ax))
    assert n == 50
    held = np.abs(HEALTH.z) <= stats.norm.ppf(0.95)
    assert f"hold {100 * held.mean():.1f} %" in note(ax)
    assert "50 of 2003 rows shown" in note(ax)


def test_errors_without_predictions_have_no_place_beside_truths():
    with pytest.raises(InvalidInputError, match="must have `y_pred` and `y_true`"):
        plot_predictions(Predictions(error=E, y_std=U))


def test_the_summary_draws_four_figures():
    figure = summary(HEALTH)
    reliability, coverage, pit, errors = figure.axes
    diagram = reliability_diagram(HEALTH)
    np.testing.assert_array_equal(line(reliability, "bins").get_ydata(), diagram.rmse)
    curve = calibration_curve(HEALTH)
    np.testing.assert_array_equal(
        line(coverage, "observed").get_ydata(), curve.observed
    )
    (bars,) = [each for each in pit.patches if each.get_label() == "PIT"]
    np.testing.assert_array_equal(bars.get_data().values, pit_histogram(HEALTH).density)
    assert set(line(errors, "E").get_xdata()) <= set(HEALTH.uncertainty)
    draw(errors)


def test_a_summary_is_drawn_on_the_figure_that_is_given():
    figure = Figure((5, 5))
    assert summary(HEALTH, figure=figure) is figure
    assert len(figure.axes) == 4


def test_notebooks_show_new_figures_without_pyplot():
    for figure in (summary(HEALTH), plot_pit_histogram(PIT).figure):
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_summary_lays_what_is_recalibrated_over_what_was_raw():
    after = HEALTH.with_uncertainty(1.4 * HEALTH.uncertainty)
    figure = summary(HEALTH, after)
    reliability, coverage, pit, errors = figure.axes
    for label, rows in (("before", HEALTH), ("after", after)):
        rmse = reliability_diagram(rows).rmse
        np.testing.assert_array_equal(line(reliability, label).get_ydata(), rmse)
        observed = calibration_curve(rows).observed
        np.testing.assert_array_equal(line(coverage, label).get_ydata(), observed)
        (bars,) = [each for each in pit.patches if each.get_label() == label]
        np.testing.assert_array_equal(
            bars.get_data().values, pit_histogram(rows).density
        )
        assert f"{label}: miscalibration area" in note(coverage)
    assert line(errors, "after").get_xdata().min() >= after.uncertainty.min()
    low, high = reliability.get_xlim()
    assert low < HEALTH.uncertainty.mean() < after.uncertainty.mean() < high
    draw(errors)


# --- errors -------------------------------------------------------------------------


def test_errors_are_drawn_against_uncertainties_with_lines_at_twice_u():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 300)
    error = u * rng.uniform(-2.5, 2.5, 300)
    ax = draw(plot_errors(error, u))
    np.testing.assert_array_equal(line(ax, "E").get_xdata(), u)
    np.testing.assert_array_equal(line(ax, "E").get_ydata(), error)
    upper = line(ax, "±2u")
    np.testing.assert_array_equal(upper.get_ydata(), 2 * upper.get_xdata())
    assert any(
        np.array_equal(each.get_ydata(), -upper.get_ydata()) for each in ax.lines
    )
    assert ax.get_xscale() == "linear"
    assert note(ax) == ""


def test_errors_of_bins_have_quantiles():
    rng = np.random.default_rng(0)
    u = np.sort(rng.uniform(1, 2, 500))
    error = rng.normal(scale=u)
    ax = draw(plot_errors(error, u))
    upper = line(ax, "95 % of errors")
    bins = np.split(error, 5)
    expected = [np.quantile(each, 0.975) for each in bins]
    np.testing.assert_allclose(upper.get_ydata(), expected)
    middle = [np.median(each) for each in np.split(u, 5)]
    np.testing.assert_allclose(upper.get_xdata(), middle)
    few = plot_errors(error[:150], u[:150])
    assert "95 % of errors" not in legend_texts(few)


def test_of_many_rows_a_seeded_subset_is_drawn_and_the_legend_says_so():
    def drawn(**options):
        ax = plot_errors(E, U, max_points=200, **options)
        assert "200 of 1500 rows shown" in note(ax)
        return line(ax, "E").get_xydata()

    first = drawn()
    assert 190 <= len(first) <= 200
    assert set(map(tuple, first)) <= set(zip(U, E, strict=True))
    np.testing.assert_array_equal(first, drawn())
    assert not np.array_equal(first, drawn(rng=1))


def test_a_few_outliers_do_not_squash_the_errors_and_are_counted():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 2000)
    error = rng.normal(scale=u)
    usual = plot_errors(error, u).get_ylim()
    error[:3], u[3:5] = 1e4, 1e-6
    ax = plot_errors(error, u)
    assert ax.get_ylim()[1] < 2 * usual[1]
    assert ax.get_xlim()[0] > 0.1
    assert note(ax) == "5 outside the axes"
    assert len(line(ax, "E").get_xdata()) == 1995


def test_skewed_uncertainties_have_a_log_axis():
    assert plot_errors(E, U).get_xscale() == "log"


@pytest.mark.parametrize("wrong", [0, 2.5, True, None])
def test_a_number_of_points_that_is_none_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="`max_points` must be"):
        plot_errors(E, U, max_points=wrong)


def test_predictions_are_drawn_as_their_errors_and_uncertainties():
    by_arrays, by_rows = plot_errors(E, U), plot_errors(Predictions(error=E, y_std=U))
    for one, other in zip(by_arrays.lines, by_rows.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    assert note(by_arrays) == note(by_rows)
    with pytest.raises(InvalidInputError, match="Predictions"):
        plot_errors(Predictions(error=E, y_std=U), U)


@pytest.fixture
def raked():
    rng = np.random.default_rng(0)
    u, x = rng.uniform(1, 2, 900), rng.normal(size=900)
    kind = rng.choice(["gas", "solid"], 900)
    error = rng.normal(scale=u * np.where(kind == "gas", 1.0, 2.0))
    table = pd.DataFrame({"u": u, "x": x, "kind": kind})
    return RakedScaling(n_bins=5, shrinkage=1.0).fit(table, error)


def test_factors_of_numbers_are_steps_between_the_limits(raked):
    (line,) = (
        line for line in plot_factors(raked, "x").lines if len(line.get_xdata()) > 2
    )
    assert np.array_equal(line.get_ydata(), np.repeat(raked.factors_["x"][1:], 2))
    assert np.array_equal(line.get_xdata()[1:-1], np.repeat(raked.limits_["x"], 2))


def test_factors_of_labels_are_points_with_names(raked):
    ax = plot_factors(raked, "kind", color="k")
    points = ax.lines[-1]
    assert np.array_equal(points.get_ydata(), raked.factors_["kind"][1:])
    assert points.get_color() == "k"
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    assert names == ["gas", "solid"]


def test_factors_of_an_unknown_variable_are_refused(raked):
    with pytest.raises(InvalidInputError, match="must be one of u, x, kind; found 'y'"):
        plot_factors(raked, "y")
    with pytest.raises(InvalidInputError, match="must be one of u, x, kind; found Non"):
        plot_factors(raked)


def test_factors_of_bins_and_of_groups_are_drawn_too():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"u": rng.uniform(1, 2, 200), "x": rng.normal(size=200)})
    error = rng.normal(size=200)
    bins = BinwiseScaling(4, by="x").fit(table, error)
    ax = plot_factors(bins)
    steps = ax.lines[-1]
    assert np.array_equal(steps.get_ydata(), np.repeat(bins.factors_, 2))
    limits = bins.partition_.limits
    assert np.array_equal(steps.get_xdata()[1:-1], np.repeat(limits, 2))
    assert ax.get_xlabel() == "x"
    assert plot_factors(bins, "mass").get_xlabel() == "mass"
    table["x"] = np.where(table["x"] > 0, "b", "a")
    groups = CategoryScaling(by=1).fit(table, error)
    points = plot_factors(groups).lines[-1]
    assert np.array_equal(points.get_ydata(), groups.factors_[:-1])


def test_factors_of_cells_are_refused():
    cells = BinwiseScaling(2, by=(0, 1)).fit(DATA.X, E)
    with pytest.raises(InvalidInputError, match="bins of one variable; found Binwise"):
        plot_factors(cells)
    with pytest.raises(InvalidInputError, match=r"a fitted recalibrator .* ndarray"):
        plot_factors(E)
    with pytest.raises(InvalidInputError, match=r"a fitted recalibrator .* BinwiseSc"):
        plot_factors(BinwiseScaling())


def test_factors_of_whatever_has_tables_are_drawn_and_columns_keep_their_names():
    chosen = SelectedScaling({"bins": BinwiseScaling(4, by=1)}).fit(DATA.X, E)
    ax = plot_factors(chosen)
    assert ax.get_xlabel() == "X1"
    expected = np.repeat(chosen.scaler_.factors_, 2)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), expected)
    table = pd.DataFrame({"sigma": U, "mass": DATA.mass})
    raked = RakedScaling(n_bins=4, shrinkage=5.0).fit(table, E)
    for variable in ("u", "sigma"):
        steps = plot_factors(raked, variable).lines[-1]
        expected = np.repeat(raked.factors_["sigma"][1:], 2)
        np.testing.assert_array_equal(steps.get_ydata(), expected)


def test_plots_of_local_zms_can_share_their_range():
    larger = local_zms(5 * E, U, n_bins=30, method="moments")
    axes = [plot_local_zms(LOCAL), plot_local_zms(larger)]
    low, high = axes[0].get_ylim()[0], axes[1].get_ylim()[1]
    share_zms_range(axes)
    assert [ax.get_ylim() for ax in axes] == [(low, high)] * 2


def test_plot_monitor_draws_the_evidence_and_the_change():
    rng = np.random.default_rng(0)
    monitor = Monitor(rng.normal(size=500))
    monitor.update(rng.normal(size=300), np.ones(300))
    quiet = plot_monitor(monitor)
    labels = ["too small", "too large", "biased up", "biased down"]
    assert [line.get_label() for line in quiet.lines[:4]] == labels
    np.testing.assert_array_equal(quiet.lines[0].get_xdata(), monitor.history.rows)
    drawn = np.log10(quiet.lines[2].get_ydata())
    np.testing.assert_allclose(drawn, [point[2] for point in monitor.history.evidence])
    assert quiet.lines[4].get_ydata()[0] == pytest.approx(20)
    monitor.update(2 * rng.normal(size=300), np.ones(300))
    (change,) = plot_monitor(monitor).patches
    assert across(change) == (monitor.alarm.since, monitor.alarm.row)


def across(patch):
    """Return where a patch begins and ends, a rectangle or, in the past, a polygon."""
    path = patch.get_path().transformed(patch.get_patch_transform())
    return path.vertices[:, 0].min(), path.vertices[:, 0].max()


def test_plot_monitor_has_times_on_its_axis_where_they_are_numbers():
    rng = np.random.default_rng(0)
    monitor = Monitor(rng.normal(size=500))
    time = np.arange(900) / 2
    monitor.update(2 * rng.normal(size=900), np.ones(900), X=rng.random(900), time=time)
    ax = plot_monitor(monitor, alpha=0.5)
    assert ax.get_xlabel() == "time"
    assert ax.lines[0].get_xdata()[0] == 4.5
    assert across(ax.patches[0])[0] == monitor.alarm.since_time
    with pytest.raises(InvalidInputError, match="must be a Monitor"):
        plot_monitor(CURVE)
