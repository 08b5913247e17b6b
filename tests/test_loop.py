"""What the days must add up to, in closed form."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.arms import ARMS
from elfmem_sim.kernel.day import day_draws
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.rng import reserve
from elfmem_sim.kernel.score import recency
from elfmem_sim.kernel.state import Agent
from elfmem_sim.scenario import (
    Arm,
    Constitution,
    Ego,
    Identity,
    Measurement,
    Scenario,
    Seed,
    Workload,
)
from elfmem_sim.simulate import prepare

BASELINE, MODEL_C, MODEL_D = ARMS["baseline"], ARMS["model_c"], ARMS["model_d"]
TIERS = {"PERMANENT": 1e-5, "DURABLE": 1e-3, "STANDARD": 1e-2}
SEEDS = st.integers(0, 2**62)


def world(days: int = 40, *, drift=0.02, spread=0.15, size=10, dimension=8, **workload) -> Scenario:
    return Scenario(
        name="world",
        description="A world for one test.",
        horizon_days=days,
        identity=Identity(dimension=dimension, drift_per_day=drift),
        constitution=Constitution(size=size, spread=spread),
        workload=Workload(**workload),
        measurement=Measurement(every_days=days - 1),
    )


def silent(days: int, **rest) -> Scenario:
    return world(days, quiet=((0, days - 1),), **rest)


def live(scenario: Scenario, arm: Arm = BASELINE, seed: int = 0) -> Agent:
    agent, rules, calendar = prepare(scenario, arm, seed)
    advance(agent, rules, calendar, 0, scenario.horizon_days)
    return agent


def with_ego(arm: Arm, **changes) -> Arm:
    return arm.model_copy(update={"ego": Ego(**{**arm.ego.model_dump(), **changes})})


def gained(agent: Agent, arm: Arm = BASELINE, *, each_learned: float = 0.0) -> dict[str, float]:
    """What outcomes added to the blocks, over what they had at birth or when learned."""
    count, size = int(agent.blocks[0]), agent.decay.shape[0]
    learned = count - size
    return {
        "alpha": agent.alpha[:count].sum() - size * arm.seed.alpha - learned * 0.5,
        "beta": agent.beta[:count].sum() - size * arm.seed.beta - learned * 0.5,
        "reinforcement": agent.reinforcement[:count].sum()
        - size * arm.seed.reinforcement
        - learned * each_learned,
        "edges": agent.edges[:count].sum() - size * arm.seed.edges,
    }


def state(agent: Agent) -> list[np.ndarray]:
    return [np.copy(array) for array in (*agent[:-2], *agent.stream[:1])]


def equal(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


# Decay.


@pytest.mark.parametrize("tier", TIERS)
def test_constitutional_recency_halves_after_ln_2_by_lambda(tier):
    arm = BASELINE.model_copy(update={"seed": Seed(decay=TIERS[tier])})
    agent, *_ = prepare(world(), arm, 0)
    hours_per_step = math.log(2.0) / TIERS[tier] / 10.0
    assert recency(agent, 0, 10, hours_per_step) == pytest.approx(0.5, abs=1e-12)


def test_ordinary_recency_halves_after_ln_2_by_lambda():
    hours_per_day = math.log(2.0) / TIERS["STANDARD"] / 10.0
    scenario = world(hours_per_day=hours_per_day)
    agent, rules, calendar = prepare(scenario, BASELINE, 0)
    advance(agent, rules, calendar, 0, 1)
    learned = agent.decay.shape[0]
    born = int(agent.birth_step[learned])
    agent.used_step[learned] = born
    assert recency(agent, learned, born + 10, hours_per_day) == pytest.approx(0.5, abs=1e-12)


def test_recency_is_one_at_the_moment_of_use():
    agent = live(world())
    agent.used_step[:] = 40
    assert [recency(agent, i, 40, 4.0) for i in (0, 9, 10, 100)] == [1.0] * 4


# Ego strength.


@pytest.mark.parametrize("days", [2, 100, 399, 400, 401, 500])
def test_ego_fades_by_the_day_down_to_nothing(days):
    agent = live(silent(days), MODEL_C)
    assert agent.ego.tolist() == pytest.approx([max(0.0, 20.0 - 0.05 * days)] * 10, abs=1e-9)


def test_ego_fades_by_the_day_and_not_by_the_active_hour():
    assert np.array_equal(
        live(silent(50, hours_per_day=1.0), MODEL_C).ego,
        live(silent(50, hours_per_day=24.0), MODEL_C).ego,
    )


@pytest.mark.parametrize("arm", [MODEL_C, MODEL_D], ids=["model_c", "model_d"])
def test_decay_follows_from_ego_strength(arm):
    agent = live(world(), arm)
    assert np.ptp(agent.ego) > 1.0
    np.testing.assert_allclose(agent.decay, 0.01 / (1.0 + 0.05 * agent.ego), rtol=1e-14)


def test_decay_of_an_arm_without_ego_stays_at_its_tier():
    assert live(world()).decay.tolist() == [1e-5] * 10


@pytest.mark.parametrize(("noise", "change"), [(0.0, 1.0), (1.0, -0.3)])
def test_self_outcomes_win_or_lose_ego_by_their_weights(noise, change):
    # All blocks sit on a self that stays, so that a signal is a success before the noise.
    arm = with_ego(MODEL_D, outcome_rate=1.0, decay_per_day=0.0, queries_per_day=2)
    scenario = world(20, drift=0.0, spread=0.0, queries_per_day=0, outcome_noise=noise)
    agent = live(scenario, arm)
    assert agent.ego.sum() - 10 * 20.0 == pytest.approx(20 * 2 * change, abs=1e-9)


def test_attention_outcome_on_a_constitutional_block_moves_its_ego():
    arm = with_ego(MODEL_C, decay_per_day=0.0, queries_per_day=0)
    arm = arm.model_copy(update={"constitution_weight": 1.0})
    scenario = world(
        20, drift=0.0, spread=0.0, learns_per_day=0, queries_per_day=3, outcome_rate=1.0
    )
    assert live(scenario, arm).ego.sum() - 200.0 == pytest.approx(20 * 3 * 1.0, abs=1e-9)


def test_ego_never_falls_below_zero():
    arm = with_ego(MODEL_C, loss=50.0, outcome_rate=1.0)
    agent = live(world(outcome_noise=1.0), arm)
    assert agent.ego.min() == 0.0


# Outcomes.


@given(SEEDS, st.sampled_from([0.0, 0.4, 1.0]), st.sampled_from([0.0, 0.15, 1.0]))
def test_beta_counts_add_up_to_the_outcomes_reinforced(seed, rate, noise):
    gain = gained(live(world(outcome_rate=rate, outcome_noise=noise), seed=seed))
    assert gain["alpha"] + gain["beta"] == gain["reinforcement"]


@given(SEEDS, st.sampled_from([0.0, 0.4, 1.0]))
def test_each_outcome_adds_three_edges(seed, rate):
    gain = gained(live(world(outcome_rate=rate), seed=seed))
    assert gain["edges"] == 3 * gain["reinforcement"]


@pytest.mark.parametrize(("rate", "outcomes"), [(0.0, 0), (1.0, 40 * 20)])
def test_outcome_rate_at_its_ends_gives_none_or_one_per_query(rate, outcomes):
    assert gained(live(world(outcome_rate=rate)))["reinforcement"] == outcomes


def test_outcome_rate_of_forty_percent_gives_about_that_many():
    # 8000 queries: five standard deviations are 219.
    gain = gained(live(world(400)))
    assert gain["reinforcement"] == pytest.approx(0.4 * 8000, abs=219)


@pytest.mark.parametrize(("noise", "kind"), [(0.0, "alpha"), (1.0, "beta")])
def test_noise_turns_successes_into_failures(noise, kind):
    scenario = world(drift=0.0, spread=0.0, learns_per_day=0, outcome_noise=noise)
    gain = gained(live(scenario))
    assert gain[kind] == gain["reinforcement"] > 0


def test_blocks_opposite_to_the_self_fail():
    agent, rules, calendar = prepare(world(drift=0.0, spread=0.0, learns_per_day=0), BASELINE, 0)
    agent.topic[:10] *= -1.0
    advance(agent, rules, calendar, 0, 40)
    gain = gained(agent)
    assert gain["beta"] == gain["reinforcement"] > 0


@given(SEEDS, st.integers(0, 4))
def test_uses_on_the_day_of_learning_are_reinforcements_and_nothing_else(seed, uses):
    agent = live(world(queries_per_day=0, uses_per_learn=uses), seed=seed)
    assert gained(agent) == {"alpha": 0, "beta": 0, "edges": 0, "reinforcement": 200 * uses}
    assert gained(agent, each_learned=uses)["reinforcement"] == 0


@pytest.mark.parametrize("arm", [MODEL_C, MODEL_D], ids=["model_c", "model_d"])
def test_self_query_shares_out_exactly_one_hit(arm):
    assert live(world(), arm).self_hits.sum() == pytest.approx(2 * 40, abs=1e-9)


@pytest.mark.parametrize(("distribute", "blocks"), [(1, 1), (3, 3), (10, 10), (99, 10)])
def test_self_query_answers_with_as_many_blocks_as_share(distribute, blocks):
    agent = live(world(2, queries_per_day=0), with_ego(MODEL_C, distribute=distribute))
    first_day = np.count_nonzero(agent.self_hits)
    assert first_day >= blocks
    one_day, rules, calendar = prepare(world(2), with_ego(MODEL_C, distribute=distribute), 0)
    advance(one_day, rules, calendar, 0, 1)
    assert np.count_nonzero(one_day.self_hits) == blocks


@pytest.mark.parametrize("distribute", [1, 3])
def test_self_outcomes_at_rate_one_reinforce_once_per_query(distribute):
    arm = with_ego(MODEL_C, distribute=distribute, outcome_rate=1.0)
    gain = gained(live(world(queries_per_day=0), arm), arm)
    assert gain["reinforcement"] == pytest.approx(2 * 40, abs=1e-9)
    assert gain["alpha"] + gain["beta"] == pytest.approx(2 * 40, abs=1e-9)
    assert gain["edges"] == 0


def test_self_outcomes_reinforce_the_constitution_alone():
    agent = live(world(queries_per_day=0), MODEL_D)
    assert not agent.reinforcement[10:].any()


# Days.


def test_learned_block_starts_without_evidence_on_its_day():
    agent = live(world(queries_per_day=0))
    learned = slice(10, 210)
    assert set(agent.alpha[learned]) == set(agent.beta[learned]) == {0.5}
    assert set(agent.edges[learned]) == set(agent.reinforcement[learned]) == {0.0}
    assert agent.birth_step[learned].tolist() == [day + 1 for day in range(40) for _ in range(5)]
    assert np.array_equal(agent.used_step[learned], agent.birth_step[learned])
    assert agent.used_event[learned].tolist() == list(range(5)) * 40


def test_constitution_is_as_old_as_the_agent():
    agent = live(silent(5))
    assert not agent.birth_step[:10].any()
    assert not agent.used_step[:10].any()


def test_use_is_stamped_with_the_day_and_the_queries_place_in_it():
    agent = live(world(2, outcome_rate=1.0, learns_per_day=5, queries_per_day=20))
    last = int(np.argmax(agent.used_step * 1000 + agent.used_event))
    assert (agent.used_step[last], agent.used_event[last]) == (2, 5 + 19)


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**62])
def test_first_day_draws_in_the_published_order(seed):
    agent = live(world(2, queries_per_day=0), seed=seed)
    reference = random.Random(seed)

    def perturbed(topic, sigma):
        out = topic + np.array([reference.gauss(0.0, sigma) for _ in range(8)])
        return out / np.linalg.norm(out)

    self_topic = perturbed(np.zeros(8), 1.0)
    constitution = [perturbed(self_topic, 0.15) for _ in range(10)]
    learned, identity = [], [self_topic]
    for _ in range(2):
        identity.append(perturbed(identity[-1], 0.02))
        learned += [perturbed(identity[-1], 0.3 + 0.4 * reference.random()) for _ in range(5)]
    np.testing.assert_allclose(agent.identity, identity, rtol=0, atol=1e-13)
    np.testing.assert_allclose(agent.topic[:20], constitution + learned, rtol=0, atol=1e-13)
    assert np.array_equal(agent.origin, agent.topic[:10])


@given(SEEDS, st.sampled_from(list(ARMS)), st.lists(st.integers(0, 40), max_size=4))
def test_living_in_parts_is_living_at_once(seed, arm, stops):
    whole, rules, calendar = prepare(world(), ARMS[arm], seed, daily=True)
    parts, *_ = prepare(world(), ARMS[arm], seed, daily=True)
    at_once = advance(whole, rules, calendar, 0, 40)
    edges = [0, *sorted(stops), 40]
    pieces = [advance(parts, rules, calendar, first, last) for first, last in pairwise(edges)]
    assert np.array_equal(np.concatenate(pieces), at_once, equal_nan=True)
    assert equal(state(parts), state(whole))


@given(
    seed=SEEDS,
    dimension=st.integers(2, 9),
    size=st.integers(1, 12),
    learns=st.integers(0, 6),
    queries=st.integers(0, 6),
    self_queries=st.integers(0, 4),
    distribute=st.integers(1, 12),
)
def test_no_day_draws_more_than_it_reserved(
    seed, dimension, size, learns, queries, self_queries, distribute
):
    # Every outcome happens and is drawn for noise: the most that a day can take.
    scenario = world(
        6,
        dimension=dimension,
        size=size,
        learns_per_day=learns,
        queries_per_day=queries,
        outcome_rate=1.0,
        outcome_noise=0.5,
    )
    ego = {"queries_per_day": self_queries, "distribute": distribute, "outcome_rate": 1.0}
    agent, rules, calendar = prepare(scenario, with_ego(MODEL_D, **ego), seed)
    for day in range(6):
        reserve(agent.stream, day_draws(rules, dimension))
        start = int(agent.stream.cursor[0])
        advance(agent, rules, calendar, day, day + 1)
        used = int(agent.stream.cursor[0]) - start
        assert used <= 2 * day_draws(rules, dimension)
        assert agent.stream.cursor[0] <= agent.stream.cursor[1]


@given(SEEDS, st.integers(1, 4), st.integers(0, 1), st.sampled_from(list(ARMS)))
def test_agents_with_fewer_than_five_blocks_live_on(seed, size, learns, arm):
    scenario = world(3, size=size, learns_per_day=learns, quiet=((1, 2),))
    agent = live(scenario, ARMS[arm], seed)
    assert agent.blocks[0] == size + learns
    assert np.isfinite(agent.standing).all()


def test_standing_is_up_to_date_at_the_end_of_a_day():
    agent, rules, calendar = prepare(world(), MODEL_D, 0)
    advance(agent, rules, calendar, 0, 40)
    recent = [recency(agent, i, 40, 4.0) for i in range(int(agent.blocks[0]))]
    count = int(agent.blocks[0])
    raw = np.minimum(1.0, agent.edges[:count] / 10.0)
    fresh = (raw < 0.1) & (np.array(recent) > 0.7)
    central = np.where(fresh, 0.5 * np.array(recent), raw)
    confidence = agent.alpha[:count] / (agent.alpha[:count] + agent.beta[:count])
    reinforced = np.minimum(1.0, np.log1p(agent.reinforcement[:count]) / np.log(101.0))
    want = 0.15 * confidence + 0.25 * np.array(recent) + 0.15 * central + 0.10 * reinforced
    np.testing.assert_allclose(agent.standing[:count], want, rtol=0, atol=1e-12)
