"""Tests of `elfmem_sim.screen`: one life for many settings, and never a wrong one."""

import numpy as np
import pytest

from elfmem_sim.errors import UserError
from elfmem_sim.scenario import Identity, Scenario, Workload
from elfmem_sim.screen import quiet_life, quiet_lives
from elfmem_sim.simulate import simulate
from elfmem_sim.tune import review_fields
from elfmem_sim.tuning.plan import review_arm
from elfmem_sim.tuning.space import config_at

WORLD = Scenario(
    name="small",
    description="Four months of drift.",
    horizon_days=130,
    identity=Identity(drift_per_day=0.1),
    workload=Workload(uses_per_learn=3),
)
POINTS = np.random.default_rng(1).random((40, 9))
ARMS = [review_arm(config_at(review_fields({}), point)) for point in POINTS]


@pytest.fixture(scope="module")
def lives():
    """Each setting's own life, by the ordinary simulation."""
    return [simulate(WORLD, arm, 3) for arm in ARMS]


@pytest.fixture(scope="module")
def screened():
    return quiet_life(WORLD, ARMS, 3)


def called(life):
    return any(review.proposals + review.failed for review in life.reviews)


def test_quiet_settings_are_those_that_never_call_the_proposer(lives, screened):
    assert screened[1] == [i for i, life in enumerate(lives) if not called(life)]


def test_the_example_has_both_kinds(lives):
    assert 4 < sum(map(called, lives)) < 36


def test_a_quiet_life_is_each_settings_own(lives, screened):
    snapshots, quiet = screened
    assert all((lives[i].snapshots == snapshots).all() for i in quiet)


def test_with_nobody_quiet_there_is_no_life():
    eager = review_arm({"drift_threshold": 0.0, "min_age_days": 0.0, "min_block_evidence": 0.0})
    snapshots, quiet = quiet_life(WORLD, [eager], 0)
    assert (snapshots.size, quiet) == (0, [])


def test_a_proposer_that_fails_was_called():
    arm = review_arm({"drift_threshold": 0.0})
    review = arm.review.model_copy(update={"proposer_failure_rate": 1.0})
    failing = arm.model_copy(update={"review": review})
    assert not simulate(WORLD, failing, 0).amendments
    assert quiet_life(WORLD, [failing], 0)[1] == []


def test_a_setting_that_elfmem_refuses_is_an_error():
    with pytest.raises(UserError, match="drift_threshold"):
        quiet_life(WORLD, [review_arm({"drift_threshold": 2.0})], 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_are_told_apart(workers):
    tasks = [(WORLD, tuple(ARMS[:10]), seed) for seed in range(3)]
    found = {number: (life, quiet) for number, life, quiet in quiet_lives(tasks, workers)}
    for number, task in enumerate(tasks):
        life, quiet = quiet_life(*task)
        assert found[number][1] == quiet
        assert np.array_equal(found[number][0], life)
