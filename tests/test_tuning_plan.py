"""Tests of `elfmem_sim.tuning.plan`: conditions, roles, and other assumptions."""

import numpy as np
import pytest

from elfmem_sim.arms import ARMS
from elfmem_sim.scenario import Regime, load_scenario
from elfmem_sim.simulate import simulate
from elfmem_sim.tuning.plan import (
    ASSUMPTIONS,
    BUDGETS,
    DEFAULT_SCENARIOS,
    FRESH_SEEDS,
    POOR,
    RECORD,
    Condition,
    assume,
    conditions_of,
    is_adversarial,
    is_stable,
    review_arm,
    roles_of,
)

WORLDS = {name: load_scenario(name) for name in RECORD}
DEFAULT = conditions_of([WORLDS[name] for name in DEFAULT_SCENARIOS])
BY_LABEL = {f"{a.name} {a.level}".strip(): a for a in ASSUMPTIONS}


def test_only_one_scenario_of_the_record_is_stable():
    assert [name for name in RECORD if is_stable(WORLDS[name])] == ["adr-0004/stable"]


def test_a_self_that_jumps_is_not_stable():
    calm = WORLDS["adr-0004/stable"]
    jump = Regime(day=50, angle_degrees=60.0)
    identity = calm.identity.model_copy(update={"regimes": (jump,)})
    assert not is_stable(calm.model_copy(update={"identity": identity}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("adr-0004/adversarial", True), ("life/poisoned_week", True), ("adr-0004/slow_drift", False)],
)
def test_flipped_outcomes_are_adversarial(name, expected):
    assert is_adversarial(load_scenario(name)) == expected


def test_the_poor_proposer_works_in_the_first_honest_drifting_scenario():
    worlds = [WORLDS[f"adr-0004/{n}"] for n in ("stable", "adversarial", "slow_drift")]
    assert [c.scenario.name for c in conditions_of(worlds) if c.poor] == ["adr-0004/slow_drift"]


def test_without_drift_there_is_no_poor_proposer():
    assert conditions_of([WORLDS["adr-0004/stable"]]) == [Condition(WORLDS["adr-0004/stable"])]


def test_the_default_scenarios_play_every_part():
    roles = roles_of(DEFAULT)
    assert (roles.stable, roles.drifting, roles.adversarial, roles.poor) == (
        (0,),
        (1, 2),
        (2,),
        (3,),
    )


def test_scenarios_that_were_not_searched_play_no_part():
    conditions = [*DEFAULT, Condition(WORLDS["adr-0004/slow_drift"])]
    assert roles_of(conditions, DEFAULT_SCENARIOS) == roles_of(DEFAULT)


def test_the_poor_proposer_is_poor():
    review = review_arm({"top_n": 20}, poor=True).review
    assert {key: getattr(review, key) for key in POOR} == POOR
    assert review.config == {"top_n": 20}


def test_the_usual_proposer_is_the_arms_own():
    assert review_arm({}) == ARMS["review"]


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_fresh_seeds_are_fresh(budget):
    assert budget.seeds <= FRESH_SEEDS


def test_the_full_budget_is_what_the_full_study_needs():
    full = BUDGETS["full"]
    assert (full.base >= 256, full.seeds >= 16, full.trials >= 2000) == (True, True, True)


# Assumptions.


def assumed(label, name="adr-0004/regime_change", arm="review"):
    return assume(BY_LABEL[label], Condition(WORLDS[name]), ARMS[arm])


def test_the_first_set_is_the_studys_own():
    assert assumed("as searched") == (WORLDS["adr-0004/regime_change"], ARMS["review"])


@pytest.mark.parametrize(
    ("label", "read", "value"),
    [
        ("uses of a learned block 0", lambda w, a: w.workload.uses_per_learn, 0),
        ("uses of a learned block 5", lambda w, a: w.workload.uses_per_learn, 5),
        ("days between reviews 7", lambda w, a: a.review.cadence_days, 7),
        ("days between reviews 90", lambda w, a: a.review.cadence_days, 90),
        ("proposer moves half-way", lambda w, a: a.review.proposer_move, 0.5),
        ("proposer noisy", lambda w, a: a.review.proposer_noise, 0.3),
        ("proposer poor", lambda w, a: a.review.proposer_failure_rate, 0.1),
        ("proposals accepted half", lambda w, a: a.review.accept_probability, 0.5),
        ("dimension 64", lambda w, a: w.identity.dimension, 64),
        ("active hours a day 1", lambda w, a: w.workload.hours_per_day, 1.0),
        ("active hours a day 12", lambda w, a: w.workload.hours_per_day, 12.0),
    ],
)
def test_every_assumption_is_made(label, read, value):
    assert read(*assumed(label)) == value


def test_every_assumption_is_tested():
    assert len(ASSUMPTIONS) == len(BY_LABEL) == 12


def test_an_agent_without_reviews_takes_only_what_concerns_its_world():
    world, arm = assumed("days between reviews 7", arm="baseline")
    assert (world, arm) == (WORLDS["adr-0004/regime_change"], ARMS["baseline"])


def test_in_more_dimensions_the_self_turns_as_far_in_a_day():
    turns = {}
    for label in ("as searched", "dimension 64"):
        world, arm = assumed(label, "adr-0004/slow_drift", "baseline")
        cosines = []
        for seed in range(3):
            path = simulate(world, arm, seed).identity
            cosines.append((path[1:] * path[:-1]).sum(axis=1))
        # Steps have d - 1 components across the self.
        tangent = np.sqrt((world.identity.dimension - 1) / world.identity.dimension)
        turns[label] = np.arccos(np.clip(cosines, -1, 1)).mean() / tangent
    assert turns["dimension 64"] == pytest.approx(turns["as searched"], rel=0.05)


def test_every_spread_is_scaled():
    world, _ = assumed("dimension 64")
    old = WORLDS["adr-0004/regime_change"]
    pairs = [
        (world.identity.regimes[0].direction_spread, old.identity.regimes[0].direction_spread),
        (world.constitution.spread, old.constitution.spread),
        (world.corpus.spread, old.corpus.spread),
        (world.workload.query_spread, old.workload.query_spread),
        (world.workload.learn_spread_min, old.workload.learn_spread_min),
        (world.workload.learn_spread_width, old.workload.learn_spread_width),
    ]
    assert [new / before for new, before in pairs] == pytest.approx([8**-0.5] * len(pairs))
