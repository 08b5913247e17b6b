"""Tests of `elfmem_sim.tuning.objectives`, on outcomes made by hand."""

import numpy as np
import pytest

from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.tuning.objectives import OBJECTIVES, Roles, costs, front_of, per_seed, values_of

# Conditions: stable, drifting, adversarial (drifts too), and the drifting one with a poor proposer.
ROLES = Roles(drifting=(1, 2), stable=(0,), adversarial=(2,), poor=(3,))
GAINS = [[-1.0, 0.0], [10.0, 20.0], [-4.0, 8.0], [-6.0, -2.0]]


def outcomes(quality, **others):
    """Outcomes with these values by condition and seed; 0 in all other estimands."""
    found = np.zeros((len(quality), len(quality[0]), len(ESTIMANDS)))
    for name, values in {"quality_ratio": quality, **others}.items():
        found[:, :, ESTIMANDS.index(name)] = values
    return found


CONTROL = outcomes([[50.0, 60.0]] * 4)


def treated(**others):
    return outcomes(np.add(GAINS, [50.0, 60.0]).tolist(), **others)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gain_mean", (15.0 + 2.0) / 2),
        ("gain_worst", 2.0),
        ("tax", 0.5),
        ("harm_adversarial", 2.0),  # a gain of 8 counts as 0
        ("harm_poor_proposer", 4.0),
    ],
)
def test_objectives_in_quality(name, value):
    assert values_of(treated(), CONTROL, ROLES)[name] == pytest.approx(value)


def test_amendments_are_a_mean_over_ordinary_conditions():
    counts = [[0, 0], [2, 4], [1, 2], [90, 90]]
    found = values_of(treated(amendments_per_year=counts), CONTROL, ROLES)
    assert found["amendments"] == pytest.approx(1.5)


def test_calls_count_the_poor_proposer_too():
    counts = [[0, 0], [2, 2], [0, 0], [6, 6]]
    found = values_of(treated(proposer_calls_per_year=counts), CONTROL, ROLES)
    assert found["calls"] == pytest.approx(2.0)


def test_retention_is_a_mean_over_ordinary_conditions():
    shares = [[100, 100], [80, 80], [90, 90], [0, 0]]
    assert values_of(treated(retention=shares), CONTROL, ROLES)["retention"] == pytest.approx(90.0)


def test_every_objective_is_the_mean_of_its_seeds():
    values = values_of(treated(), CONTROL, ROLES)
    seeds = per_seed(treated(), CONTROL, ROLES)
    assert {n: v.mean() for n, v in seeds.items()} == pytest.approx(
        {n: v for n, v in values.items() if n != "gain_worst"}
    )


def test_what_never_reviews_has_neither_gain_nor_harm():
    values = values_of(CONTROL, CONTROL, ROLES)
    assert set(values.values()) == {0.0}


def test_all_objectives_are_there_in_their_order():
    assert list(values_of(treated(), CONTROL, ROLES)) == list(OBJECTIVES) == ROLES.supported()


def test_objectives_without_their_condition_are_left_out():
    roles = Roles(drifting=(1,))
    missing = set(OBJECTIVES) - set(values_of(treated(), CONTROL, roles))
    assert missing == {"tax", "harm_adversarial", "harm_poor_proposer"}
    assert missing.isdisjoint(roles.supported())


def test_costs_turn_what_should_be_large():
    found = costs([{"gain_mean": 3.0, "tax": 1.0}], ["tax", "gain_mean"])
    assert found.tolist() == [[1.0, -3.0]]


def test_a_front_leaves_out_what_is_beaten():
    cost = np.array([[0.0, 2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 0.0], [1.0, 1.0]])
    assert front_of(cost).tolist() == [True, True, False, True, True]


def test_a_front_is_what_the_definition_says():
    cost = np.random.default_rng(0).integers(0, 4, (60, 3)).astype(float)
    beaten = [any((o <= c).all() and (o < c).any() for o in cost) for c in cost]
    assert front_of(cost).tolist() == [not b for b in beaten]
