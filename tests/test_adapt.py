"""The agent that turns its own knobs: exact moves, and an objective that sees only one of them."""

import json
import random
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import KNOBS
from elfmem_sim.kernel.adapt import HIGHEST, LOWEST, adapt, evaluate, step_of
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.rng import below
from elfmem_sim.kernel.state import TOP_K
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import as_record, prepare, simulate

VALUES = json.loads(
    (Path(__file__).parent / "data" / "adr-0003-self-architect.json").read_text(encoding="utf-8")
)
FILE_ARMS = {"M": "architecture_m", "Model_C": "model_c", "Model_D": "model_d"}
KEYS = sorted({(r["scenario"], r["arm"]) for r in VALUES})


@pytest.mark.parametrize(("scenario", "arm"), KEYS)
def test_every_published_vital_move_and_final_parameter_is_reproduced(scenario, arm):
    records = [r for r in VALUES if (r["scenario"], r["arm"]) == (scenario, arm)]
    assert {record["seed"] for record in records} == {0, 1, 2, 3}
    world, build = (
        load_scenario(f"adr-0003-self-architect/{scenario}"),
        ARMS[FILE_ARMS.get(arm, arm)],
    )
    for record in records:
        ours = as_record(simulate(world, build, record["seed"]), build)
        for mine, theirs in zip(ours["snapshots"], record["snapshots"], strict=True):
            assert {key: mine[key] for key in theirs} == pytest.approx(theirs, rel=0, abs=1e-9)
        if build.adapt is not None:
            assert ours["moves"] == record["moves"]
            assert ours["final_params"] == pytest.approx(record["final_params"], rel=0, abs=1e-9)


@pytest.fixture(scope="module")
def grown():
    scenario = load_scenario("adr-0003-self-architect/drift")
    agent, rules, calendar = prepare(scenario, ARMS["self_architect"], 0)
    advance(agent, rules, calendar, 0, 200)
    return agent, rules, calendar


def judged(grown, knobs, rules=None) -> float:
    agent, own, calendar = grown
    scratch = np.empty(8), np.empty(TOP_K), np.full(TOP_K, -1)
    return evaluate(agent, rules or own, calendar, 199, np.array(knobs), 12345, *scratch)


def test_shadow_evaluation_sees_the_weight_of_the_constitution(grown):
    assert judged(grown, [0.0, 0.0, 1.0, 2.0]) != judged(grown, [1.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize("knob", [1, 2, 3], ids=KNOBS[1:])
def test_shadow_evaluation_is_blind_to_the_other_knobs(grown, knob):
    low, high = [0.5, 0.0, 1.0, 2.0], [0.5, 0.0, 1.0, 2.0]
    low[knob], high[knob] = LOWEST[knob], HIGHEST[knob]
    assert judged(grown, low) == judged(grown, high)


def test_coin_is_one_draw_of_the_candidates_own_stream(grown):
    rules = grown[1]._replace(shadow_queries=0)
    assert judged(grown, [0.0, 0.0, 1.0, 2.0], rules) == random.Random(12345).random()


def test_coin_takes_from_the_run_what_the_published_objective_takes(grown):
    agent, rules, calendar = grown
    after = []
    for queries in (8, 0):
        twin = deepcopy(agent)
        adapt(twin, rules._replace(shadow_queries=queries), calendar, 199)
        after.append([below(twin.stream, 2**30) for _ in range(5)])
    assert after[0] == after[1]


def test_coin_keeps_the_knobs_as_often_as_any_candidate():
    # With m candidates the present knobs win one toss in m + 1, and m is 5 to 8.
    scenario = load_scenario("adr-0003-self-architect/stable")
    lives = [simulate(scenario, ARMS["self_architect_blind"], seed) for seed in range(20)]
    moves = [move for life in lives for _, move in life.moves]
    assert len(moves) == 240
    assert 240 / 9 - 18 < moves.count("baseline") < 240 / 6 + 18  # three standard errors


def test_rollout_leaves_the_agent_as_it_was(grown):
    agent, rules, _ = grown
    before = [np.copy(array) for array in agent if isinstance(array, np.ndarray)]
    judged(grown, [0.0, 0.05, 3.0, 2.0], rules._replace(rollout_days=7))
    after = [array for array in agent if isinstance(array, np.ndarray)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_rollout_sees_self_queries(grown):
    rules = grown[1]._replace(rollout_days=28)
    # With the constitution in ATTENTION, reinforcing it by SELF queries changes the answers.
    assert judged(grown, [1.0, 0.1, 5.0, 0.0], rules) != judged(grown, [1.0, 0.1, 5.0, 4.0], rules)


@pytest.mark.parametrize("knob", [1, 2, 3], ids=KNOBS[1:])
def test_rollout_on_common_draws_compares_candidates_in_one_world(grown, knob):
    # With the constitution kept out of ATTENTION these knobs cannot change an answer, though they
    # change how much is drawn.
    rules = grown[1]._replace(rollout_days=28)
    low, high = [0.0, 0.05, 2.0, 2.0], [0.0, 0.05, 2.0, 2.0]
    low[knob], high[knob] = LOWEST[knob], HIGHEST[knob]
    assert judged(grown, low, rules) == judged(grown, high, rules)


def test_steps_are_a_fifth_of_the_range_or_one():
    assert [step_of(knob) for knob in range(4)] == pytest.approx([0.2, 0.02, 1.0, 1.0])


@pytest.mark.parametrize("arm", [name for name in ARMS if name.startswith("self_architect")])
def test_knobs_stay_within_their_ranges(arm):
    scenario = load_scenario("adr-0003-self-architect/drift")
    moves = simulate(scenario, ARMS[arm], 5)
    knobs = moves.snapshots[:, -4:]
    assert np.all(knobs >= LOWEST - 1e-12)
    assert np.all(knobs <= HIGHEST + 1e-12)
    assert [day for day, _ in moves.moves] == list(range(56, 365, 28))
