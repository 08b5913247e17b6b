"""Tests of `elfmem_sim.tuning.space`: the unit cube and elfmem's settings."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.tune import review_fields
from elfmem_sim.tuning.space import (
    RANGES,
    Field,
    Range,
    changed,
    config_at,
    default_point,
    defaults_of,
)

FIELDS = review_fields({})
BY_NAME = {field.name: field for field in FIELDS}
POSITIONS = st.floats(0.0, 1.0)


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_the_ends_of_the_cube_are_the_ends_of_the_range(field):
    assert (field.value(0.0), field.value(1.0)) == (field.range.low, field.range.high)


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_the_default_has_a_place_in_the_cube(field):
    assert field.value(field.position(field.default)) == field.default


@given(st.sampled_from(FIELDS), POSITIONS)
def test_values_stay_in_the_range(field, position):
    assert field.range.low <= field.value(position) <= field.range.high


@given(st.sampled_from(FIELDS), POSITIONS, POSITIONS)
def test_values_rise_with_the_position(field, a, b):
    low, high = sorted((a, b))
    assert field.value(low) <= field.value(high)


@given(st.sampled_from(FIELDS), POSITIONS)
def test_whole_fields_hold_whole_numbers(field, position):
    assert isinstance(field.value(position), int) == isinstance(field.default, int)


@given(POSITIONS)
def test_values_can_be_read(position):
    assert len(f"{BY_NAME['drift_threshold'].value(position)!r}") <= 4


def test_whole_numbers_have_equal_shares():
    field = BY_NAME["max_proposals"]
    counts = Counter(field.value(u) for u in (np.arange(1000) + 0.5) / 1000)
    assert set(counts.values()) == {100}


def test_a_log_scale_has_its_geometric_mean_in_the_middle():
    assert Field("x", 30, Range(1, 100, log=True), whole=False).value(0.5) == 10.0


def test_a_grid_holds_both_ends_and_the_default():
    field = BY_NAME["cooldown_hours"]
    grid = field.grid(5)
    assert {field.range.low, field.range.high, field.default} <= set(grid)
    assert grid == sorted(grid)


def test_a_grid_does_not_leave_the_range_for_the_default():
    field = Field("x", 9, Range(0, 4), whole=True)
    assert field.grid(3) == [0, 2, 4]


def test_a_point_becomes_settings_by_name():
    config = config_at(FIELDS, np.zeros(len(FIELDS)))
    assert config == {name: r.low for name, r in RANGES.items()}


def test_the_defaults_point_at_themselves():
    point = default_point(FIELDS)
    assert config_at(FIELDS, point) == defaults_of(FIELDS)


def test_defaults_outside_the_ranges_have_no_point():
    fields = review_fields({"drift_threshold": (0.4, 0.6)})
    assert default_point(fields) is None


def test_what_differs_from_the_defaults():
    config = {**defaults_of(FIELDS), "top_n": 20}
    assert changed(FIELDS, config) == ["top_n"]
