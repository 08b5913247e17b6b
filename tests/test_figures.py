"""Tests of `elfmem_sim.figures`, by what is in a figure and where it lies."""

import io
import math

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from scipy import stats as scipy_stats

from elfmem_sim.arms import ARMS
from elfmem_sim.figures import (
    COLOURS,
    NAMES,
    _quality_figure,
    _two_seed_figure,
    quality_over_time,
    two_seed_distributions,
)

DAYS = [28, 56, 84]
FIVE = [f"adr-0004/{s}" for s in ("stable", "slow_drift", "regime_change", "quiet", "adversarial")]
MANY = [*ARMS, "x", "y", "z", "another_arm_with_a_long_name", "v", "w"]


def series(scenarios=("drift",), arms=("baseline", "review"), n=5):
    """Falling lines, a pair of points lower for each arm."""
    rows = []
    for scenario in scenarios:
        for k, arm in enumerate(arms):
            for day in DAYS:
                mean = 0.9 - 0.001 * day - 0.02 * k
                spread = 0.05 if n > 1 else 0.0
                error = 0.01 if n > 1 else math.nan
                rows += [
                    (scenario, arm, "", day, "quality_ratio", mean, error,
                     mean - 2 * spread, mean - spread, mean + spread, mean + 2 * spread, n),
                    (scenario, arm, "", day, "retention", 0.1, error, 0.1, 0.1, 0.1, 0.1, n),
                ]  # fmt: skip
    columns = ["scenario", "arm", "variant", "day", "estimand", "mean", "mcse",
               "q05", "q25", "q75", "q95", "n"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def published(**values):
    rows = [("drift", arm, "quality_ratio", value) for arm, value in values.items()]
    return pd.DataFrame(rows, columns=["scenario", "arm", "estimand", "value"])


def draw(data=None, marks=None, title="A title"):
    return _quality_figure(series() if data is None else data, marks, title)


def panels(figure):
    return [axis for axis in figure.axes if axis.axison]


def lines(axis):
    return [line for line in axis.lines if line.get_marker() in ("None", None, "")]


def diamonds(axis):
    return [line for line in axis.lines if line.get_marker() == "D"]


# --- the file ---


def test_a_figure_is_a_png():
    assert quality_over_time(series()).startswith(b"\x89PNG\r\n\x1a\n")


def test_the_same_data_make_the_same_bytes():
    marks = published(baseline=80.0)
    assert quality_over_time(series(), marks, "t") == quality_over_time(series(), marks, "t")


def test_other_data_make_other_bytes():
    other = series()
    other["mean"] += 0.01
    assert quality_over_time(other) != quality_over_time(series())


def test_the_data_are_left_as_they_are():
    data = series()
    quality_over_time(data)
    pd.testing.assert_frame_equal(data, series())


def test_the_file_has_the_size_of_the_figure():
    pixels = matplotlib.image.imread(io.BytesIO(quality_over_time(series(), None, "A title")))
    width, height = draw().canvas.get_width_height()
    assert pixels.shape[:2] == (height, width)


# --- panels and lines ---


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_there_is_one_panel_per_scenario(count):
    titles = [axis.get_title() for axis in panels(draw(series(FIVE[:count])))]
    assert titles == FIVE[:count]


def test_panels_share_the_scale_of_quality():
    assert len({axis.get_ylim() for axis in panels(draw(series(FIVE)))}) == 1


def test_there_is_one_line_per_arm():
    (axis,) = panels(draw(series(arms=list(ARMS))))
    assert len(lines(axis)) == len(ARMS)


def test_a_line_is_the_mean_in_percent():
    (axis,) = panels(draw(series(arms=["baseline"])))
    (line,) = lines(axis)
    assert line.get_xdata().tolist() == DAYS
    assert line.get_ydata().tolist() == pytest.approx([100 * (0.9 - 0.001 * d) for d in DAYS])


def band(collection):
    """Lower and upper edge of a band on the first day."""
    corners = np.concatenate([path.vertices for path in collection.get_paths()])
    first = corners[corners[:, 0] == DAYS[0], 1]
    return first.min(), first.max()


def test_the_light_band_is_the_middle_half_of_the_seeds():
    (axis,) = panels(draw(series(arms=["baseline"])))
    mean = 100 * (0.9 - 0.001 * DAYS[0])
    assert band(axis.collections[0]) == pytest.approx((mean - 5.0, mean + 5.0))


def test_the_dark_band_is_students_interval():
    (axis,) = panels(draw(series(arms=["baseline"], n=5)))
    mean, half = 100 * (0.9 - 0.001 * DAYS[0]), scipy_stats.t.ppf(0.975, 4) * 1.0
    assert band(axis.collections[1]) == pytest.approx((mean - half, mean + half))


def test_one_seed_has_no_dark_band():
    (axis,) = panels(draw(series(arms=["baseline"], n=1)))
    assert sum(len(path.vertices) for path in axis.collections[1].get_paths()) == 0


def test_one_seed_has_its_line():
    (axis,) = panels(draw(series(arms=["baseline"], n=1)))
    assert np.isfinite(lines(axis)[0].get_ydata()).all()


def look(line):
    return to_hex(line.get_color()), line.get_linestyle()


def test_arms_have_the_colours_given_to_them():
    (axis,) = panels(draw(series(arms=list(COLOURS))))
    assert [look(line)[0] for line in lines(axis)] == [c.lower() for c in COLOURS.values()]


def test_every_shipped_arm_has_a_colour_and_a_name():
    assert set(COLOURS) == set(NAMES) == set(ARMS)


def test_no_two_arms_look_alike():
    (axis,) = panels(draw(series(arms=MANY)))
    assert len({look(line) for line in lines(axis)}) == len(MANY)


def test_an_arm_looks_the_same_in_every_panel():
    first, second = series(["a"], ["x", "y"]), series(["b"], ["y"])
    one, other = panels(draw(pd.concat([first, second])))
    assert look(lines(one)[1]) == look(lines(other)[0])


# --- published marks ---


def test_a_published_figure_is_marked_on_the_last_day():
    (axis,) = panels(draw(marks=published(baseline=81.5)))
    (mark,) = diamonds(axis)
    assert (list(mark.get_xdata()), list(mark.get_ydata())) == ([DAYS[-1]], [81.5])


def test_a_mark_has_the_colour_of_its_arm():
    (axis,) = panels(draw(marks=published(review=81.5)))
    (mark,) = diamonds(axis)
    assert mark.get_markerfacecolor() == COLOURS["review"]


def test_a_mark_is_in_its_own_scenarios_panel_only():
    figure = draw(series(["drift", "calm"]), published(baseline=81.5))
    assert [len(diamonds(axis)) for axis in panels(figure)] == [1, 0]


def test_without_published_figures_there_is_no_mark():
    (axis,) = panels(draw())
    assert diamonds(axis) == []


# --- words ---


def words(figure):
    """All texts that are seen."""
    figure.draw_without_rendering()
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def legend(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def heading(figure):
    return figure.get_suptitle().replace("\n", " ")


def test_the_legend_names_every_arm():
    assert legend(draw(series(arms=list(ARMS)))) == [NAMES[arm] for arm in ARMS]


def test_the_legend_names_an_arm_that_the_first_panel_lacks():
    data = pd.concat([series(["a"], ["baseline"]), series(["b"], ["review"])])
    assert legend(draw(data)) == ["baseline", "review"]


def test_the_heading_says_what_lines_and_bands_are():
    expected = (
        "A title line: mean of 5 seeds; dark band: 95 % interval of the mean; light band: middle "
        "half of the seeds"
    )
    assert heading(draw()) == expected


def test_without_a_title_the_heading_starts_with_the_key():
    assert heading(draw(title="")).startswith("line: mean of 5 seeds")


def test_the_heading_does_not_call_one_seed_a_mean():
    assert heading(draw(series(n=1), title="")) == "line: one seed; one seed has no interval"


def test_different_numbers_of_seeds_are_both_named():
    data = pd.concat([series(["a"], n=5), series(["b"], n=9)])
    assert "mean of 5 to 9 seeds" in heading(draw(data))


def test_the_axes_are_labelled_with_their_units():
    (axis,) = panels(draw())
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("day", "quality ratio (%)")


CASES = {
    "one panel, one arm": (series(arms=["baseline"]), "t"),
    "one panel, many arms": (series(arms=MANY), "ADR 0003 replayed"),
    "two panels": (series(FIVE[:2]), "t"),
    "five panels, five arms": (series(FIVE, list(ARMS)), "ADR 0003 replayed (diamonds: published)"),
    "two seeds far apart": (series(FIVE[:1], n=2).assign(mcse=0.3), ""),
    "one seed": (series(FIVE[:1], n=1), ""),
    "long title": (series(FIVE[:1]), "A title that goes on and on, beyond any margin, " * 4),
    "long scenario": (series(["a_scenario_with_a_name_of_" + 5 * "many_words_", "b"]), "t"),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=list(CASES))
def drawn(request):
    data, title = request.param
    return draw(data, published(baseline=81.5), title)


def test_no_text_is_smaller_than_9_points(drawn):
    assert min(text.get_fontsize() for text in words(drawn)) >= 9


def test_nothing_is_cut_off(drawn):
    drawn.draw_without_rendering()
    drawn_on, paper = drawn.get_tightbbox(), drawn.get_size_inches()
    assert min(drawn_on.x0, drawn_on.y0, *(paper - drawn_on.max)) >= 0


def test_headings_labels_and_legend_do_not_overlap(drawn):
    drawn.draw_without_rendering()
    headings = [text for axis in panels(drawn) for text in (axis.title, axis.xaxis.label)]
    headings += [drawn._suptitle, drawn.legends[0]]
    boxes = [heading.get_window_extent() for heading in headings]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_panels_keep_room_to_be_read(drawn):
    drawn.draw_without_rendering()
    heights = [axis.get_window_extent().height / drawn.dpi for axis in panels(drawn)]
    assert min(heights) > 1.5  # inches


# --- what two seeds show ---

QUANTILES = [f"q{percent:02d}" for percent in range(1, 100)]
SHARES = np.arange(1, 100) / 100


def effects(*rows):
    """Effects by record and claim: published figure or claimed range, estimate, and spread."""
    return pd.DataFrame(
        [
            {
                "adr": adr, "claim": claim,
                "published": math.nan if isinstance(claimed, tuple) else claimed,
                "claimed_low": claimed[0] if isinstance(claimed, tuple) else math.nan,
                "claimed_high": claimed[1] if isinstance(claimed, tuple) else math.nan,
                "estimate": estimate, "low": estimate - 0.3, "high": estimate + 0.3, "n": 800,
                **dict(zip(QUANTILES, estimate + sd * scipy_stats.norm.ppf(SHARES), strict=True)),
            }
            for adr, claim, claimed, estimate, sd in rows
        ]
    )  # fmt: skip


RECORDS = effects(
    ("0001", "power_law.quality.baseline", -5.4, -4.6, 2.0),
    ("0001", "power_law.reach.baseline", -53.0, -50.0, 9.0),
    ("0004", "gain.drifting", (9.0, 14.0), 6.5, 3.0),
)
LONG = effects(
    *(("0003", "self_architect.below.architecture_m.regime_change", 4.6, 2.0, 3.0),) * 12,
    *(("0003", f"m.{i}", -33.1, -20.0, 12.0) for i in range(6)),
    ("0004", "gain.slow_drift", (9.0, 14.0), 60.0, 3.0),
)
ONE = effects(("0002", "exploration.long", 5.6, 0.0, 0.0))


def test_what_two_seeds_show_is_a_png_of_the_same_bytes_for_the_same_data():
    drawn = two_seed_distributions(RECORDS)
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    assert two_seed_distributions(RECORDS) == drawn


def test_other_effects_make_other_bytes():
    other = RECORDS.assign(published=RECORDS["published"] + 0.5)
    assert two_seed_distributions(other) != two_seed_distributions(RECORDS)


def test_the_effects_are_left_as_they_are():
    given = RECORDS.copy()
    two_seed_distributions(given)
    pd.testing.assert_frame_equal(given, RECORDS)


def test_there_is_one_panel_per_record():
    axes = _two_seed_figure(RECORDS).axes
    assert [axis.get_title(loc="left") for axis in axes] == ["ADR 0001", "ADR 0004"]


def test_every_claim_has_its_label_from_top_to_bottom():
    first, second = _two_seed_figure(RECORDS).axes
    labels = {t.get_text(): y for t, y in zip(first.get_yticklabels(), first.get_yticks(),
                                              strict=True)}  # fmt: skip
    assert labels == {"power_law.quality.baseline": 1, "power_law.reach.baseline": 0}
    assert [t.get_text() for t in second.get_yticklabels()] == ["gain.drifting"]


def test_a_published_effect_is_a_diamond_in_the_row_of_its_claim():
    first, second = _two_seed_figure(RECORDS).axes
    found = [(*mark.get_xdata(), *mark.get_ydata()) for mark in diamonds(first)]
    assert found == [(-5.4, 1), (-53.0, 0)]
    assert diamonds(second) == []


def bars(axis):
    """Lines that are no axis: claimed ranges."""
    return [line for line in lines(axis) if line.get_linewidth() == 5]


def test_a_claimed_range_is_a_bar_in_the_row_of_its_claim():
    first, second = _two_seed_figure(RECORDS).axes
    (bar,) = bars(second)
    assert (list(bar.get_xdata()), list(bar.get_ydata())) == ([9.0, 14.0], [0, 0])
    assert bars(first) == []


def estimates(axis):
    """Ends of each interval and the place of its mark, from top to bottom."""
    return [
        (line.get_xdata()[0], line.get_xdata()[line.get_markevery()[0]], line.get_xdata()[-1])
        for line in axis.lines
        if line.get_marker() == "|"
    ]


def test_an_estimate_is_a_mark_with_its_interval():
    first, second = _two_seed_figure(RECORDS).axes
    expected = [(-4.9, -4.6, -4.3), (-50.3, -50.0, -49.7)]
    np.testing.assert_allclose(estimates(first), expected)
    np.testing.assert_allclose(estimates(second), [(6.2, 6.5, 6.8)])


def test_an_interval_that_does_not_hold_its_estimate_is_drawn_as_it_is():
    (axis,) = _two_seed_figure(ONE.assign(low=0.2, high=0.6)).axes
    assert estimates(axis) == [(0.2, 0.0, 0.6)]


def test_a_distribution_lies_where_two_seeds_fall():
    axis = _two_seed_figure(RECORDS).axes[1]
    (steps,) = axis.patches
    data = steps.get_data()
    centres = (data.edges[1:] + data.edges[:-1]) / 2
    height = data.values - data.values.min()
    row = RECORDS.iloc[2]
    assert (data.edges[0], data.edges[-1]) == pytest.approx((row["q01"], row["q99"]))
    assert np.average(centres, weights=height + 1e-9) == pytest.approx(6.5, abs=0.2)
    # A normal density falls off to the sides: highest near its mean.
    assert abs(centres[height.argmax()] - 6.5) < 1.0


def test_an_effect_that_never_varies_has_no_distribution():
    (axis,) = _two_seed_figure(ONE).axes
    assert list(axis.patches) == []


def test_the_legend_says_what_each_mark_is_once():
    assert sorted(legend(_two_seed_figure(RECORDS))) == [
        "claimed range",
        "population mean, 95 % interval",
        "published (mean of two seeds)",
        "what two seeds show (98 % of pairs)",
    ]


def test_the_axis_is_labelled_with_its_unit():
    axes = _two_seed_figure(RECORDS).axes
    assert axes[-1].get_xlabel() == "effect (percentage points)"


@pytest.fixture(scope="module", params=[RECORDS, LONG, ONE], ids=["two records", "long", "one"])
def shown(request):
    return _two_seed_figure(request.param)


def test_no_text_of_the_effects_is_smaller_than_9_points(shown):
    assert min(text.get_fontsize() for text in words(shown)) >= 9


def test_no_effect_or_label_is_cut_off(shown):
    shown.draw_without_rendering()
    drawn_on, paper = shown.get_tightbbox(), shown.get_size_inches()
    assert min(drawn_on.x0, drawn_on.y0, *(paper - drawn_on.max)) >= 0


def test_headings_of_the_effects_do_not_overlap(shown):
    shown.draw_without_rendering()
    headings = [shown._suptitle, shown.legends[0], shown.axes[-1].xaxis.label]
    headings += [axis._left_title for axis in shown.axes]
    boxes = [heading.get_window_extent() for heading in headings]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_marks_of_the_effects_are_within_their_panel(shown):
    for axis in shown.axes:
        left, right = axis.get_xlim()
        for line in axis.lines:
            x = np.asarray(line.get_xdata(), float)
            assert ((left <= x) & (x <= right)).all()
