"""Tests of `elfmem_sim.tuning.sensitivity`, on functions whose indices are known."""

import math

import numpy as np
import pytest
from scipy import stats

from elfmem_sim.streams import generator
from elfmem_sim.tuning.sensitivity import (
    LEVELS,
    is_constant,
    morris_design,
    morris_effects,
    sobol_design,
    sobol_indices,
)

SLOPES = np.array([3.0, -1.0, 0.0, 0.5])


def linear(points):
    return points @ SLOPES


def ishigami(points):
    """Ishigami and Homma (1990) with a = 7 and b = 0.1, on the unit cube."""
    x = math.pi * (2 * points - 1)
    return np.sin(x[..., 0]) + 7 * np.sin(x[..., 1]) ** 2 + 0.1 * x[..., 2] ** 4 * np.sin(x[..., 0])


ISHIGAMI_FIRST = [0.3139, 0.4424, 0.0]
ISHIGAMI_TOTAL = [0.5576, 0.4424, 0.2437]

WEIGHTS = np.array([0.0, 1.0, 4.5, 99.0])


def g_function(points):
    """Sobol's g-function."""
    return np.prod((np.abs(4 * points - 2) + WEIGHTS) / (1 + WEIGHTS), axis=-1)


def g_indices():
    """Exact indices, from the partial variances."""
    v = 1 / (3 * (1 + WEIGHTS) ** 2)
    variance = np.prod(1 + v) - 1
    return v / variance, v * np.prod(1 + v) / (1 + v) / variance


def analyse(function, d, base=1024, seed=0):
    points = sobol_design(d, base, generator("test", seed))
    return sobol_indices(function(points), generator("bootstrap", seed))


# Morris.


def test_a_trajectory_moves_every_input_once():
    points = morris_design(5, 20, generator("test", 0))
    moved = np.diff(points, axis=1) != 0.0
    assert (moved.sum(axis=2) == 1).all()
    assert (moved.sum(axis=1) == 1).all()


def test_trajectories_stay_on_the_grid():
    points = morris_design(5, 20, generator("test", 0))
    assert set(np.round(points * (LEVELS - 1), 9).ravel()) == {0.0, 1.0, 2.0, 3.0}


def test_every_level_is_a_start_of_as_many_trajectories_as_any_other():
    starts = morris_design(1, 4000, generator("test", 0))[:, 0, 0]
    counts = np.unique(np.round(starts, 9), return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_effects_of_a_linear_function_are_its_slopes():
    points = morris_design(4, 6, generator("test", 0))
    effects = morris_effects(points, linear(points))
    assert effects.mean == pytest.approx(SLOPES)
    assert effects.mean_absolute == pytest.approx(np.abs(SLOPES))


def test_effects_of_a_linear_function_do_not_spread():
    points = morris_design(4, 6, generator("test", 0))
    effects = morris_effects(points, linear(points))
    assert effects.spread == pytest.approx(np.zeros(4), abs=1e-12)
    assert effects.mcse == pytest.approx(np.zeros(4), abs=1e-12)


def test_an_interaction_spreads_the_effects():
    points = morris_design(2, 50, generator("test", 0))
    effects = morris_effects(points, points[..., 0] * points[..., 1])
    assert (effects.spread > 0.1).all()


def test_an_effect_that_changes_sign_counts_in_the_absolute_mean():
    points = morris_design(1, 100, generator("test", 0))
    effects = morris_effects(points, (points[..., 0] - 0.5) ** 2)
    assert abs(effects.mean[0]) < effects.mean_absolute[0] / 2


def test_morris_refuses_values_of_another_shape():
    points = morris_design(3, 4, generator("test", 0))
    with pytest.raises(ValueError, match="expected"):
        morris_effects(points, np.zeros((4, 3)))


def test_one_trajectory_has_no_error_and_is_refused():
    points = morris_design(3, 2, generator("test", 0))[:1]
    with pytest.raises(ValueError, match="at least 2"):
        morris_effects(points, np.zeros((1, 4)))


# Sobol'.


def test_indices_of_ishigami():
    found = analyse(ishigami, 3)
    assert found.first == pytest.approx(ISHIGAMI_FIRST, abs=0.02)
    assert found.total == pytest.approx(ISHIGAMI_TOTAL, abs=0.02)


def test_indices_of_the_g_function():
    first, total = g_indices()
    found = analyse(g_function, 4)
    assert found.first == pytest.approx(first, abs=0.02)
    assert found.total == pytest.approx(total, abs=0.02)


def test_an_input_without_influence_has_indices_of_zero():
    found = analyse(lambda points: points[..., 0], 3)
    assert found.total[1:].tolist() == [0.0, 0.0]
    assert found.total_high[1:].tolist() == [0.0, 0.0]


def test_intervals_cover_the_truth():
    first, total = np.array(ISHIGAMI_FIRST), np.array(ISHIGAMI_TOTAL)
    runs = [analyse(ishigami, 3, base=128, seed=seed) for seed in range(60)]
    inside = [
        np.concatenate(
            (
                (f.first_low <= first) & (first <= f.first_high),
                (f.total_low <= total) & (total <= f.total_high),
            )
        )
        for f in runs
    ]
    # 60 runs: a true coverage of 95 % falls below 51 (85 %) with a chance of about one in 1,500,
    # for each index. The points of a scrambled design are more even than the resamples assume, so
    # more than 95 % is right.
    assert np.sum(inside, axis=0).min() >= 51


def test_intervals_hold_less_than_the_estimates_of_other_designs_could_be():
    found = analyse(ishigami, 3, base=1024)
    wide = analyse(ishigami, 3, base=64)
    assert (found.total_high - found.total_low < wide.total_high - wide.total_low).all()


def test_a_design_changes_one_column_at_a_time():
    points = sobol_design(3, 8, generator("test", 0))
    for i in range(3):
        assert (points[2 + i, :, i] == points[1, :, i]).all()
        others = [j for j in range(3) if j != i]
        assert (points[2 + i][:, others] == points[0][:, others]).all()


def test_a_design_is_scrambled_by_its_generator():
    first, again, other = (sobol_design(3, 8, generator("test", s)) for s in (0, 0, 1))
    assert (first == again).all()
    assert not (first == other).any()


@pytest.mark.parametrize("base", [0, 1, 3, 100])
def test_a_base_that_is_no_power_of_two_is_refused(base):
    with pytest.raises(ValueError, match="power of two"):
        sobol_design(3, base, generator("test", 0))


def test_a_constant_function_has_no_indices():
    with pytest.raises(ValueError, match="constant"):
        sobol_indices(np.full((5, 8), 0.3), generator("test", 0))


def test_rounding_is_no_variance():
    assert is_constant(0.1 + np.array([0.0, 1e-16]))


def test_little_variance_is_variance():
    assert not is_constant(np.array([0.0, 1e-6]))


def test_values_are_left_as_they_were():
    values = ishigami(sobol_design(3, 16, generator("test", 0)))
    before = values.copy()
    sobol_indices(values, generator("test", 0))
    assert (values == before).all()


def test_shifting_a_function_changes_no_index():
    points = sobol_design(3, 64, generator("test", 0))
    plain = sobol_indices(ishigami(points), generator("test", 0))
    shifted = sobol_indices(ishigami(points) + 1000.0, generator("test", 0))
    assert shifted.first == pytest.approx(plain.first)
    assert shifted.first_high == pytest.approx(plain.first_high)
