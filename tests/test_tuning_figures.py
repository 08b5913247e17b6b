"""Tests of `elfmem_sim.tuning.figures`, by what is in a figure."""

import numpy as np
import pandas as pd
import pytest

from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.tune import review_fields
from elfmem_sim.tuning import figures
from elfmem_sim.tuning.objectives import OBJECTIVES
from elfmem_sim.tuning.space import RANGES, defaults_of
from elfmem_sim.tuning.tables import REASONS

DEFAULTS = defaults_of(review_fields({}))


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were drawn, in place of their bytes."""
    kept = []

    def keep(figure):
        kept.append(figure)
        return original(figure)

    original = figures.png_of
    monkeypatch.setattr(figures, "png_of", keep)
    return kept


def shares(scenarios=("calm", "moving"), days=(29, 59)):
    rows = [
        (scenario, day, reason, {"drift": 70.0, "proposed": 30.0}.get(reason, 0.0), 10)
        for scenario in scenarios
        for day in days
        for reason in REASONS
    ]
    return pd.DataFrame(rows, columns=["scenario", "day", "reason", "share", "n"])


def indices(objectives=("gain_mean", "tax", "calls")):
    rows = [
        (
            objective,
            field,
            0.1 * i,
            0.1 * i + 0.05,
            0.1 * i,
            0.1 * i + 0.2,
            "tax" if objective == "calls" else "",
        )
        for objective in objectives
        for i, field in enumerate(RANGES)
    ]
    columns = ["objective", "field", "first", "total", "total_low", "total_high", "same_as"]
    return pd.DataFrame(rows, columns=columns)


def trials():
    values = np.random.default_rng(0).random((30, len(OBJECTIVES)))
    table = pd.DataFrame(values, columns=list(OBJECTIVES))
    table["tax"] = 0.0
    table["front"] = [True, False] * 15
    return table


def sweeps(fields=("top_n", "drift_threshold")):
    rows = [
        (field, value, scenario, estimand, value / 10, value / 10 - 1, value / 10 + 1, 5)
        for field in fields
        for value in (10, 20, 30)
        for scenario in ("calm", "moving")
        for estimand in ESTIMANDS
    ]
    columns = ["field", "value", "scenario", "estimand", "mean", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def panels(figure):
    return [axis for axis in figure.axes if axis.axison]


DRAW = {
    "gates": lambda: figures.gates(shares()),
    "tornado": lambda: figures.tornado(indices()),
    "front": lambda: figures.front(trials(), {"defaults": dict.fromkeys(OBJECTIVES, 0.5)}),
    "sweeps": lambda: figures.sweeps(sweeps(), DEFAULTS),
    "sweep": lambda: figures.sweep(sweeps(["top_n"]), 50),
}


@pytest.mark.parametrize("name", DRAW)
def test_the_same_data_make_the_same_png(name):
    first = DRAW[name]()
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert first == DRAW[name]()


@pytest.mark.parametrize("name", DRAW)
def test_nothing_is_cut_off(name, drawn):
    DRAW[name]()
    (figure,) = drawn
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    texts = [figure._suptitle, *(t for axis in panels(figure) for t in axis.get_yticklabels())]
    texts += [axis.xaxis.label for axis in panels(figure)] + [*figure.legends]
    for text in texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= -0.5, text
        assert box.x1 <= width + 0.5, text
        assert box.y0 >= -0.5, text
        assert box.y1 <= height + 0.5, text


def test_gates_are_stacked_to_the_whole(drawn):
    figures.gates(shares())
    axis = panels(drawn[0])[0]
    tops = [bar.get_y() + bar.get_height() for bar in axis.patches]
    assert max(tops) == pytest.approx(100.0)
    assert len(axis.patches) == 2 * len(REASONS)


def test_one_day_of_reviews_can_be_drawn():
    assert figures.gates(shares(days=(29,)))


def test_the_strongest_field_is_on_top(drawn):
    figures.tornado(indices())
    names = [label.get_text() for label in panels(drawn[0])[0].get_yticklabels()]
    assert names == list(RANGES)  # from the bottom, weakest first


def test_an_objective_with_the_values_of_another_has_no_panel(drawn):
    figures.tornado(indices())
    assert [axis.get_title() for axis in panels(drawn[0])] == ["gain mean", "tax"]


def test_an_objective_that_never_varies_has_no_panel(drawn):
    figures.front(trials(), {})
    labels = [axis.get_xlabel() for axis in panels(drawn[0])]
    assert len(labels) == len(OBJECTIVES) - 2  # gain_mean is the other axis
    assert not any(label.startswith("tax") for label in labels)


def test_recommendations_are_marked(drawn):
    figures.front(trials(), {"balanced": dict.fromkeys(OBJECTIVES, 0.25)})
    (mark,) = (line for line in panels(drawn[0])[0].lines if line.get_label() == "balanced")
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (0.25, 0.25)


def test_a_front_without_any_variance_can_be_drawn():
    flat = pd.DataFrame({"gain_mean": [1.0, 1.0], "tax": [0.0, 0.0], "front": [True, True]})
    assert figures.front(flat, {})


def test_every_field_has_a_panel_with_a_line_per_scenario(drawn):
    figures.sweeps(sweeps(), DEFAULTS)
    axes = panels(drawn[0])
    assert [axis.get_xlabel() for axis in axes] == ["top_n", "drift_threshold"]
    assert [line.get_label() for line in axes[0].lines[:2]] == ["calm", "moving"]


def test_every_estimand_has_a_panel(drawn):
    figures.sweep(sweeps(["top_n"]), 50)
    assert len(panels(drawn[0])) == len(ESTIMANDS)


def test_the_default_is_marked(drawn):
    figures.sweep(sweeps(["top_n"]), 50)
    assert panels(drawn[0])[0].lines[-1].get_xdata()[0] == 50
