"""What is drawn is what was computed, artist by artist."""

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import sigmascale as ss
from sigmascale import plots
from sigmascale.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def sets():
    """Rows before and after recalibration, that were not fitted."""
    rng = np.random.default_rng(1)
    n = 3000
    kind = rng.choice(["alloy", "oxide", "metal"], n, p=[0.2, 0.5, 0.3])
    mass, u, y = rng.uniform(20, 200, n), rng.lognormal(0, 0.5, n), rng.normal(0, 5, n)
    error = u * rng.normal(size=n) * np.where(kind == "alloy", 1.9, 1)
    features = {"mass": mass, "kind": kind}
    p = ss.Predictions(y - error, u, y_true=y, features=features)
    known, new = p.take(np.arange(1500)), p.take(np.arange(1500, n))
    return new, ss.Recalibrator(ss.RakedScaling(n_bins=5)).fit(known).apply(new)


@pytest.fixture(scope="module")
def judged(sets):
    return [ss.validate(p) for p in sets]


def points(ax, marker=None):
    """Return what lines with markers show, as (x, y) pairs."""
    found = [
        np.column_stack(line.get_data())
        for line in ax.lines
        if (line.get_marker() == marker if marker else line.get_marker() != "None")
    ]
    return np.vstack(found) if found else np.empty((0, 2))


def bars(ax):
    """Return the ends of bars, as (x0, y0, x1, y1)."""
    found = [c.get_segments() for c in ax.collections if hasattr(c, "get_segments")]
    return np.array([each.ravel() for several in found for each in several])


def band_of(ax, label):
    """Return the x, low and high of a band."""
    (found,) = [c for c in ax.collections if c.get_label() == label]
    vertices = found.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    low, high = (
        np.array([f(vertices[vertices[:, 0] == each, 1]) for each in x])
        for f in (np.min, np.max)
    )
    return x, low, high


def legend_of(ax):
    legend = ax.get_legend()
    title = legend.get_title().get_text()
    return title, [text.get_text() for text in legend.get_texts()]


# -- verdicts --------------------------------------------------------------------------


def test_the_forest_plot_shows_estimates_limits_tolerance_and_answers(judged):
    v, _ = judged
    ax = plots.verdicts(v)
    names = list(v.verdicts)
    rows = {name: row for row, name in enumerate(names)}
    assert [tick.get_text() for tick in ax.get_yticklabels()][rows["mass"]] == "mass"
    span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (span.x0, span.x1) == pytest.approx((1 / v.tolerance, v.tolerance))
    marks = {round(y): x for x, y in points(ax, "o")}
    for name in ("average", "u", "mass", "kind"):
        assert marks[rows[name]] == pytest.approx(v.verdicts[name].worst.estimate)
    # a bias lies where its own axis, above, says
    unit = (v.tolerance - 1) / np.log(v.tolerance)
    bias = unit * np.log(marks[rows["bias"]])
    assert bias == pytest.approx(v.verdicts["bias"].worst.estimate)
    (above,) = ax.child_axes
    assert "bias" in above.get_xlabel()
    ends = [round(float(x), 6) for line in ax.lines for x in line.get_xdata()]
    for value in v.verdicts["kind"].limits:
        assert round(value, 6) in ends
    answers = {round(text.get_position()[1]): text.get_text() for text in ax.texts}
    signs = {"yes": "✓", "no": "✗", "cannot tell": "?"}
    for name, row in rows.items():
        assert answers[row] == signs[v.verdicts[name].answer]


def test_before_and_after_differ_by_colour_mark_and_place(judged):
    ax = plots.verdicts(*judged)
    before, after = points(ax, "s"), points(ax, "o")
    row = list(judged[0].verdicts).index("kind")
    for v, found, side in zip(judged, (before, after), (-1, 1), strict=True):
        own = found[np.abs(found[:, 1] - row) < 0.3]
        estimate = v.verdicts["kind"].worst.estimate
        assert own[0] == pytest.approx([estimate, row + 0.17 * side])
    assert legend_of(ax)[1] == ["before", "after"]
    shades = {
        line.get_marker(): np.dot(
            mpl.colors.to_rgb(line.get_color()), [0.3, 0.59, 0.11]
        )
        for line in ax.lines
        if line.get_label() in ("before", "after")
    }
    assert abs(shades["s"] - shades["o"]) > 0.1  # told apart in grey, too


def test_limits_that_are_0_or_infinite_end_in_arrows(judged):
    v = judged[0]
    wide = replace(v.verdicts["mass"], limits=(0.0, float("inf")))
    worst = replace(v.verdicts["u"].worst, estimate=0.0, low=0.0, high=1e260)
    verdicts = {**v.verdicts, "mass": wide, "u": replace(wide, name="u", worst=worst)}
    ax = plots.verdicts(replace(v, verdicts=verdicts))
    low, high = ax.get_xlim()
    for marker, end in (("<", low), (">", high)):
        assert points(ax, marker)[:, 0] == pytest.approx(end)
    assert np.isfinite([low, high]).all()
    none = replace(wide, worst=None, limits=None, answer="cannot tell")
    plots.verdicts(replace(v, verdicts={**v.verdicts, "mass": none}))


def test_vectors_have_no_axis_of_a_bias():
    rng = np.random.default_rng(0)
    p = ss.Predictions(error=rng.normal(size=(600, 3)), y_std=np.ones(600))
    ax = plots.verdicts(ss.validate(p))
    assert ax.child_axes == []


def test_the_factor_along_a_number_is_that_of_its_regions(judged):
    v, _ = judged
    ax = plots.local(v, "mass")
    regions = v.verdicts["mass"].regions
    assert np.sort(points(ax)[:, 1]) == pytest.approx(
        np.sort([each.estimate for each in regions])
    )
    mass = v.rows.features["mass"]
    upright = {round(x0, 6): (y0, y1) for x0, y0, x1, y1 in bars(ax) if x0 == x1}
    for each in regions:
        low = mass.min() if each.low_value is None else each.low_value
        high = mass.max() if each.high_value is None else each.high_value
        limits = upright[round((low + high) / 2, 6)]
        assert limits == pytest.approx((each.low, each.high))
    assert ax.get_xlabel() == "mass"
    assert ax.get_yscale() == "log"


def test_labels_have_their_names_and_broken_ones_an_x(judged):
    v, after = judged
    ax = plots.local(v, "kind", after)
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    regions = v.verdicts["kind"].regions
    assert names == [each.low_value for each in regions]
    alloy = next(each for each in regions if each.low_value == "alloy")
    assert alloy.state == "broken"
    expected = [names.index("alloy") - 0.12, alloy.estimate]
    assert expected == pytest.approx(points(ax, "X")[0])
    assert legend_of(ax)[1] == ["before", "after"]


def test_bias_and_coverage_are_drawn_along_a_variable(judged):
    v, _ = judged
    for question in ("bias", "coverage"):
        ax = plots.local(v, "kind", question=question)
        own = [x for x in v.verdicts[question].regions if x.column == "kind"]
        found = np.sort(points(ax)[:, 1])
        assert found == pytest.approx(np.sort([each.estimate for each in own]))
    assert plots.local(v, "u", question="bias").get_yscale() == "linear"


def test_a_variable_without_regions_says_so(judged):
    v = judged[0]
    for name in ("mass", "kind"):
        empty = {name: replace(v.verdicts[name], regions=())}
        ax = plots.local(replace(v, verdicts=v.verdicts | empty), name)
        assert "too few" in ax.texts[0].get_text()


# -- comparisons and monitors ----------------------------------------------------------


def test_paired_differences_are_drawn_with_their_intervals(sets):
    p, q = sets
    found = ss.compare({"raw": p, "raked": q, "half": p.with_y_std(p.y_std / 3)})
    for score in (None, "nll"):
        ax = plots.comparison(found, score)
        for row, name in enumerate(("raked", "half")):
            each = found.differences[name][score or "crps"]
            drawn = {tuple(line.get_ydata()): line.get_xdata() for line in ax.lines}
            assert drawn[row, row] == pytest.approx([each.low, each.high])
            assert drawn[(row,)] == pytest.approx([each.value])
    assert points(ax, "X")[0, 1] == 1  # what is surely worse
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels == ["raked", "half"]
    for high, face in ((-1e-6, plots.BLUE), (0.001, "none")):  # better; cannot tell
        each = replace(found.differences["raked"]["crps"], low=-0.2, high=high)
        ax = plots.comparison(replace(found, differences={"raked": {"crps": each}}))
        (mark,) = [line for line in ax.lines if line.get_marker() == "o"]
        assert mark.get_markerfacecolor() == face
    with pytest.raises(InvalidInputError, match="score"):
        plots.comparison(found, "beauty")


def test_the_evidence_over_time_is_that_of_the_monitor(sets):
    p, _ = sets
    monitor = ss.Monitor(p).update(p).update(p.with_y_std(p.y_std / 2))
    ax = plots.monitor(monitor)
    by_name = {line.get_label(): line for line in ax.lines}
    rows, evidence = by_name["too small"].get_data()
    np.testing.assert_array_equal(rows, monitor.history[:, 0])
    np.testing.assert_allclose(evidence, 10 ** monitor.history[:, 2])
    assert set(by_name) >= {"too large", "biased up", "biased down", "in a region"}
    span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (span.x0, span.x1) == pytest.approx((monitor.alarm.since, monitor.alarm.row))
    limit = [line for line in ax.lines if set(line.get_ydata()) == {20.0}]
    assert len(limit) == 1


# -- rows and scores -------------------------------------------------------------------


def test_errors_are_drawn_against_u_with_lines_at_2u(sets):
    p, _ = sets
    ax = plots.errors(p, max_points=10_000)
    drawn = {tuple(x) for x in points(ax)}
    rows = {tuple(x) for x in np.column_stack([p.y_std, p.error])}
    title, labels = legend_of(ax)
    outside = int(re.search(r"(\d+) outside", title)[1])
    assert drawn <= rows
    assert len(rows) - len(drawn) == outside
    for line in ax.lines:
        if line.get_label() == "±2u":
            x, y = line.get_data()
            np.testing.assert_allclose(y, 2 * x)
    beyond = 100 * np.mean(np.abs(p.z) > 2)
    assert f"{beyond:.3g} % beyond 2u" in title
    some = plots.errors(p, max_points=100)
    assert len(points(some)) <= 100
    assert "100 of 1,500 rows shown" in legend_of(some)[0]
    assert labels == ["E", "±2u"]
    vector = ss.Predictions(error=np.ones((50, 3)), y_std=np.linspace(1, 2, 50))
    assert points(plots.errors(vector))[:, 1] == pytest.approx(1)


def test_intervals_that_miss_are_marked_and_all_are_counted(sets):
    p, q = sets
    for rows in (p, q):
        ax = plots.intervals(rows, coverage=0.8, max_points=300)
        claimed = rows.distributions or ss.Distributions.normal(rows)
        low, high = claimed.interval(0.8).T
        held = (low <= rows.y_true) & (rows.y_true <= high)
        share = f"80 % intervals hold {100 * held.mean():.1f} %"
        assert share in legend_of(ax)[0]
        good, bad = points(ax, "o"), points(ax, "X")
        assert len(good) + len(bad) == 300
        missed = {tuple(x) for x in np.column_stack([rows.y_true, rows.y_pred])[~held]}
        assert {tuple(x) for x in bad} <= missed
        ends = {(x0, y0, y1) for x0, y0, _, y1 in bars(ax)}
        assert ends <= set(zip(rows.y_true, low, high, strict=True))


def test_scores_are_drawn_as_they_were_computed(sets):
    p, _ = sets
    diagram = ss.scores.reliability_diagram(p)
    ax = plots.reliability(diagram)
    expected = np.column_stack([diagram.rmv, diagram.rmse])
    np.testing.assert_array_equal(points(ax, "o"), expected)
    np.testing.assert_array_equal(bars(ax)[:, [1, 3]], np.c_[diagram.low, diagram.high])
    _, low, high = band_of(ax, "calibrated")
    np.testing.assert_allclose(low, diagram.attainable_low)
    np.testing.assert_allclose(high, diagram.attainable_high)
    assert f"ENCE {diagram.ence:.2f}" in legend_of(ax)[0]

    curve = ss.scores.calibration_curve(p)
    ax = plots.calibration(curve)
    line = next(line for line in ax.lines if line.get_label() == "observed")
    np.testing.assert_array_equal(line.get_data(), [curve.level, curve.observed])
    _, low, high = band_of(ax, "calibrated")
    np.testing.assert_allclose(low, curve.low)
    np.testing.assert_allclose(high, curve.high)
    assert f"{curve.area:.3f}" in legend_of(ax)[0]

    histogram = ss.scores.pit_histogram(p)
    ax = plots.pit(histogram)
    stairs = ax.patches[0].get_data()
    np.testing.assert_array_equal(stairs.values, histogram.density)
    np.testing.assert_array_equal(stairs.edges, histogram.edges)
    _, low, high = band_of(ax, "calibrated")
    assert (low[0], high[0]) == (histogram.low, histogram.high)

    confidence = ss.scores.confidence_curve(p)
    ax = plots.confidence_curve(confidence)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_array_equal(drawn["data"], confidence.error)
    np.testing.assert_array_equal(drawn["oracle"], confidence.oracle)


def test_local_zms_shows_valid_and_other_bins_and_the_average(sets):
    p, _ = sets
    for by in ("u", "kind"):
        result = ss.scores.local_zms(p, by=by)
        ax = plots.local_zms(result)
        x = np.arange(3) if by == "kind" else result.x
        for marker, which in (("o", result.valid), ("X", ~result.valid)):
            expected = np.column_stack([x, result.zms])[which]
            np.testing.assert_allclose(points(ax, marker).reshape(-1, 2), expected)
        average = points(ax, "s")
        assert average[0, 1] == pytest.approx(result.overall[0])
        assert f"{result.fraction_valid:.2f}" in legend_of(ax)[0]
    zero = replace(result, zms=np.zeros(3), low=np.zeros(3), valid=np.zeros(3, bool))
    assert len(points(plots.local_zms(zero), "v")) == 3


def test_several_results_in_one_axes_share_one_band_and_one_legend(sets):
    looks = {"before": plots.VERMILION, "after": plots.BLUE}
    for draw, compute in (
        (plots.calibration, ss.scores.calibration_curve),
        (plots.pit, ss.scores.pit_histogram),
        (plots.reliability, ss.scores.reliability_diagram),
        (plots.confidence_curve, ss.scores.confidence_curve),
    ):
        ax = None
        for p, (label, color) in zip(sets, looks.items(), strict=True):
            ax = draw(compute(p), ax=ax, label=label, color=color)
        title, labels = legend_of(ax)
        assert {"before", "after"} <= set(labels)
        assert labels.count("calibrated") == 1
        if draw in (plots.calibration, plots.reliability):
            assert title.count("before:") == title.count("after:") == 1


def test_limits_of_0_do_not_squash_a_reliability_diagram(sets):
    rng = np.random.default_rng(0)
    u, groups = np.repeat(rng.lognormal(size=100), 4), np.repeat(np.arange(100), 4)
    error = np.repeat(rng.normal(size=100), 4) * u
    p = ss.Predictions(error=error, y_std=u, groups=groups)
    diagram = ss.scores.reliability_diagram(p)
    for each in (diagram, replace(diagram, low=0 * diagram.low)):
        low, high = plots.reliability(each).get_ylim()
        assert 0 < low < diagram.rmse.min()
        assert high < 1e3 * low


def test_axes_may_share_a_range(sets):
    axes = [plots.local_zms(ss.scores.local_zms(p, by="kind")) for p in sets]
    ranges = [ax.get_ylim() for ax in axes]
    plots.share_range(axes)
    for ax in axes:
        low, high = zip(*ranges, strict=True)
        assert ax.get_ylim() == pytest.approx((min(low), max(high)))


# -- habits ----------------------------------------------------------------------------


def test_every_function_draws_on_given_axes_and_takes_a_style(sets, judged):
    p, _ = sets
    calls = (
        (plots.errors, (p,), {}),
        (plots.intervals, (p,), {}),
        (plots.local, (judged[0], "mass"), {}),
        (plots.reliability, (ss.scores.reliability_diagram(p),), {}),
        (plots.calibration, (ss.scores.calibration_curve(p),), {}),
        (plots.confidence_curve, (ss.scores.confidence_curve(p),), {}),
        (plots.local_zms, (ss.scores.local_zms(p),), {}),
        (plots.monitor, (ss.Monitor(p).update(p),), {}),
    )
    settings = dict(mpl.rcParams)
    for draw, given, _ in calls:
        ax = Figure().subplots()
        assert draw(*given, ax=ax, c="#123456") is ax
        colours = {to_hex(line.get_color()) for line in ax.lines}
        assert "#123456" in colours, draw.__name__
        with pytest.raises(InvalidInputError, match="Axes"):
            draw(*given, ax="here")
        with pytest.raises(InvalidInputError, match="found list"):
            draw([1.0], *given[1:])
    assert dict(mpl.rcParams) == settings


def test_what_cannot_be_drawn_is_refused(sets, judged):
    p, _ = sets
    errors_only = ss.Predictions(error=p.error, y_std=p.y_std)
    with pytest.raises(InvalidInputError, match="y_pred"):
        plots.intervals(errors_only)
    with pytest.raises(InvalidInputError, match="mass"):
        plots.local(judged[0], "colour")
    with pytest.raises(InvalidInputError, match="no sign"):
        plots.intervals(ss.Predictions(error=np.ones((9, 2)), y_std=np.ones(9)))


def test_names_are_drawn_as_they_are(judged):
    v = judged[0]
    odd = "cost $x$ \n of_y^2"
    verdicts = {odd: v.verdicts["mass"], "average": v.verdicts["average"]}
    ax = plots.verdicts(replace(v, verdicts=verdicts))
    ax.figure.canvas.draw()
    assert ax.get_yticklabels()[0].get_text() == r"cost \$x\$ of_y^2"


def test_svg_is_one_element_with_text_names_of_its_own_and_colours_of_the_page(judged):
    with plots.drawing() as new_figure:
        texts = []
        for key in ("a", "b", "a"):
            ax = new_figure((4.5, 3)).subplots()
            plots.verdicts(*judged, ax=ax)
            words = {"title": "Verdicts", "description": "before & after"}
            texts.append(plots.svg(ax.figure, key=key, **words))
        cloud = plots.errors(judged[0].rows).figure
        points = plots.svg(cloud, key="c")
    assert texts[0] == texts[2]
    root = ElementTree.fromstring(texts[0])
    assert root.get("role") == "img"
    assert (root[0].text, root[1].text) == ("Verdicts", "before & after")
    tags = {each.tag for each in root.iter()}
    assert not tags & {"metadata", "style", "image"}
    written = {each.text for each in root.iter("text")}
    assert {"mass", "kind", "on average"} <= written
    for name in ("blue", "vermilion", "grey", "ink"):
        assert f"var(--{name}," in texts[0] + points
    names = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts[:2]]
    assert not names[0] & names[1]
    used = re.findall(r'(?:href="|url\()#([^")]+)', texts[0])
    assert set(used) <= names[0]
    # colours of the cloud are the page's too, and said once
    assert "var(--blue" in points
    assert points.count("fill-opacity") < 10


def test_svg_alone_has_a_style_for_light_and_dark(judged):
    with plots.drawing():
        text = plots.svg(plots.verdicts(judged[0]).figure, alone=True)
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme:dark" in text
    ElementTree.fromstring(text)


def test_figures_need_no_pyplot_and_notebooks_show_them():
    code = (
        "import sys, sigmascale as ss\n"
        "p = ss.datasets.load_diabetes().test\n"
        "figure = ss.plots.errors(p).figure\n"
        "assert figure._repr_png_().startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
