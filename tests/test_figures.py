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
from elfmem_sim.figures import COLOURS, NAMES, _quality_figure, quality_over_time

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
