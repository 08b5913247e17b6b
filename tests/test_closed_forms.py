"""Results that can be worked out on paper, found again in the kernel.

The half-life of each decay tier is in test_loop.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from elfmem_sim.arms import ARMS
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.score import attention, refresh_all, refresh_base
from elfmem_sim.kernel.state import STRIDE, TOP_K, Agent, allocate
from elfmem_sim.scenario import (
    Constitution,
    Identity,
    Measurement,
    Noise,
    Scenario,
    Seed,
    Workload,
    load_scenario,
)
from elfmem_sim.simulate import prepare

BASELINE = ARMS["baseline"]
W_SIMILARITY, W_CONFIDENCE, W_RECENCY, W_CENTRALITY, W_REINFORCEMENT = 0.35, 0.15, 0.25, 0.15, 0.10
ORDINARY_DECAY = 0.010
FLOOR_HOURS = -math.log(0.70) / ORDINARY_DECAY
RULES = prepare(load_scenario("adr-0003/stable"), BASELINE, 0)[1]


def still_world(days: int, *, seed: Seed | None = None, **workload) -> Scenario:
    """A self that never moves, with one constitutional block exactly on it."""
    return Scenario(
        name="still",
        description="Nothing moves.",
        horizon_days=days,
        identity=Identity(drift_per_day=0.0),
        constitution=Constitution(size=1, spread=0.0, seed=seed),
        workload=Workload(**workload),
        measurement=Measurement(every_days=days - 1),
    )


# Inertness of a Beta posterior.


def confidence(agent: Agent) -> float:
    return float(agent.alpha[0] / (agent.alpha[0] + agent.beta[0]))


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.5), (1.0, 0.5), (0.5, 0.5), (7.0, 3.0)])
@pytest.mark.parametrize("outcomes", [1, 10, 100, 1000])
@pytest.mark.parametrize("signal", [1.0, 0.0], ids=["success", "failure"])
def test_one_more_outcome_moves_confidence_by_what_is_left_of_its_weight(
    alpha, beta, outcomes, signal
):
    # Ten outcomes a day on the one block there is, all successes as it lies on the self; then a
    # day of noise that flips all or none of them.
    days = -(-outcomes // 10) + 1
    flipped = (Noise(first_day=days - 1, last_day=days - 1, outcome_noise=1.0 - signal),)
    scenario = still_world(
        days,
        seed=Seed(alpha=alpha, beta=beta),
        learns_per_day=0,
        queries_per_day=min(outcomes, 10),
        outcome_rate=1.0,
        noise=flipped,
    )
    agent, rules, calendar = prepare(scenario, BASELINE, 0)
    advance(agent, rules, calendar, 0, days - 1)
    before = confidence(agent)
    assert before == pytest.approx((alpha + outcomes) / (alpha + beta + outcomes), abs=1e-12)
    advance(agent, rules._replace(queries_per_day=1), calendar, days - 1, days)
    shift = (signal - before) / (outcomes + alpha + beta + 1.0)
    assert confidence(agent) - before == pytest.approx(shift, abs=1e-12)


def test_a_year_of_outcomes_leaves_a_block_that_a_failure_hardly_moves():
    """At the published rate a block that always answers has eight outcomes a day."""
    scenario = still_world(365, learns_per_day=0, queries_per_day=20)
    agent, rules, calendar = prepare(scenario, BASELINE, 0)
    advance(agent, rules, calendar, 0, 365)
    outcomes = float(agent.alpha[0]) - BASELINE.seed.alpha
    assert outcomes == pytest.approx(365 * 20 * 0.40, rel=0.05)
    fallen = W_CONFIDENCE * confidence(agent) / (outcomes + 2.5 + 1.0)
    standing = float(agent.standing[0])
    agent.beta[0] += 1.0
    refresh_base(agent, 0.0, 0)
    refresh_all(agent, RULES, 365)
    assert standing - float(agent.standing[0]) == pytest.approx(fallen, abs=1e-12)
    assert fallen < 1e-4


# The cold-start floor's window.


def borrowed_centrality(hours_per_day: float, days: int) -> list[float]:
    """Centrality of a block that is learned on day 0 and never linked, by age in days."""
    scenario = still_world(
        days + 1, learns_per_day=1, queries_per_day=0, hours_per_day=hours_per_day
    )
    agent, rules, calendar = prepare(scenario, BASELINE, 0)
    central = []
    for age in range(days):
        advance(agent, rules, calendar, age, age + 1)
        recent = math.exp(-ORDINARY_DECAY * hours_per_day * age)
        rest = float(agent.standing[1] - agent.base[1]) - W_RECENCY * recent
        central.append(rest / W_CENTRALITY)
    return central


def test_the_floor_holds_for_thirty_five_and_two_thirds_active_hours():
    assert pytest.approx(35.667, abs=1e-3) == FLOOR_HOURS


def test_at_four_hours_a_day_the_floor_holds_on_days_0_to_8_and_not_on_day_9():
    central = borrowed_centrality(4.0, 12)
    assert [age for age, value in enumerate(central) if value > 1e-12] == list(range(9))


def test_the_floor_is_half_of_recency_and_ends_at_seven_twentieths():
    central = borrowed_centrality(4.0, 9)
    assert central == pytest.approx([0.5 * math.exp(-0.04 * age) for age in range(9)], abs=1e-12)
    assert central[-1] > 0.35 > 0.5 * math.exp(-0.04 * 9)


@given(st.floats(1.0, 24.0))
def test_the_floor_holds_just_while_its_active_hours_last(hours_per_day):
    ages = np.arange(40)
    assume(np.abs(ages * hours_per_day - FLOOR_HOURS).min() > 1e-6)
    held = np.array(borrowed_centrality(hours_per_day, 40)) > 1e-12
    assert held.tolist() == (ages * hours_per_day < FLOOR_HOURS).tolist()


# The score gap at which a constitutional block cannot be beaten.

EVIDENCE = st.tuples(
    st.floats(0.5, 500.0),  # alpha
    st.floats(0.5, 500.0),  # beta
    st.integers(0, 200),  # reinforcement
    st.integers(0, 20),  # edges
)
SEEDED, SETTLED = (2.0, 0.5, 5, 5), (102.0, 0.5, 105, 105)


def standing_of(evidence, age_days: int = 0) -> float:
    """The published score without similarity, of a block used ``age_days`` ago."""
    alpha, beta, reinforcement, edges = evidence
    recent = math.exp(-ORDINARY_DECAY * 4.0 * age_days)
    raw = min(1.0, edges / 10.0)
    central = max(raw, 0.5 * recent) if raw < 0.10 and recent > 0.70 else raw
    reinforced = min(1.0, math.log(1 + reinforcement) / math.log(101))
    return (
        W_CONFIDENCE * alpha / (alpha + beta)
        + W_RECENCY * recent
        + W_CENTRALITY * central
        + W_REINFORCEMENT * reinforced
    )


def rivals(bedrock, bedrock_cosine: float) -> Agent:
    """One constitutional block, just used, and one newly learned block."""
    agent = allocate(2, 1, 2, 1, 8)
    agent.blocks[0] = 2
    agent.recency[:] = np.exp(-ORDINARY_DECAY * 4.0 * np.arange(2))
    for i, (alpha, beta, reinforcement, edges) in enumerate((bedrock, (0.5, 0.5, 0, 0))):
        agent.alpha[i], agent.beta[i] = alpha, beta
        agent.reinforcement[i], agent.edges[i] = reinforcement, edges
        refresh_base(agent, 0.0, i)
    refresh_all(agent, RULES, 0)
    point(agent, 0, bedrock_cosine)
    return agent


def point(agent: Agent, i: int, cosine: float) -> None:
    """Give block ``i`` this cosine to the first axis, which is the query."""
    agent.topic[i] = cosine, math.sqrt(1.0 - cosine * cosine)


def newcomer_wins(agent: Agent, cosine: float) -> bool:
    stride, scores, indices = np.empty(STRIDE), np.empty(TOP_K), np.full(TOP_K, -1)
    point(agent, 1, cosine)
    attention(agent, np.array([1.0, 0.0]), 1.0, stride, scores, indices)
    return bool(indices[0] == 1)


def overtaking_cosine(agent: Agent) -> float:
    """Bisect for the similarity at which the new block comes to stand above the old one."""
    low, high = -1.0, 1.0
    assert not newcomer_wins(agent, low)
    assert newcomer_wins(agent, high)
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        if newcomer_wins(agent, middle):
            high = middle
        else:
            low = middle
    return high


@given(EVIDENCE, st.floats(-1.0, 1.0))
def test_a_new_block_wins_by_the_gap_in_standing_over_the_weight_of_similarity(bedrock, cosine):
    gap = (standing_of(bedrock) - standing_of((0.5, 0.5, 0, 0))) * 2.0 / W_SIMILARITY
    agent = rivals(bedrock, cosine)
    if cosine + gap >= 1.0 + 1e-9:
        assert not newcomer_wins(agent, 1.0)
    elif cosine + gap <= -1.0 - 1e-9:
        assert newcomer_wins(agent, -1.0)
    else:
        assume(-1.0 + 1e-9 < cosine + gap < 1.0 - 1e-9)
        assert overtaking_cosine(agent) == pytest.approx(cosine + gap, abs=1e-9)


@pytest.mark.parametrize(
    ("bedrock", "gap"), [(SEEDED, 0.4794), (SETTLED, 1.4249)], ids=["at birth", "after 100 uses"]
)
def test_a_seeded_and_a_settled_constitution_lead_by_these_cosines(bedrock, gap):
    # A new block that matches a query perfectly beats a seeded one from 59 degrees off the query,
    # and one with a hundred successes only when that points away from it, beyond 115 degrees.
    beaten_from = 1.0 - gap
    assert not newcomer_wins(rivals(bedrock, beaten_from + 1e-3), 1.0)
    assert newcomer_wins(rivals(bedrock, beaten_from - 1e-3), 1.0)


def test_the_bar_of_a_lived_in_constitution_is_the_analytic_one():
    """After a hundred days of the published workload, with whatever evidence these brought."""
    agent, rules, calendar = prepare(load_scenario("adr-0003/stable"), BASELINE, 0)
    advance(agent, rules, calendar, 0, 100)
    best = int(np.argmax(agent.standing[: agent.decay.shape[0]]))
    newest = int(agent.blocks[0]) - 1
    assert agent.edges[newest] == agent.reinforcement[newest] == 0.0
    lived = tuple(
        float(field[best]) for field in (agent.alpha, agent.beta, agent.reinforcement, agent.edges)
    )
    # It is PERMANENT: since its last use it has lost next to no recency.
    idle = 4.0 * (100 - agent.used_step[best])
    lost = W_RECENCY * (1.0 - math.exp(-1e-5 * idle))
    gap = (standing_of(lived) - lost - standing_of((0.5, 0.5, 0, 0))) * 2.0 / W_SIMILARITY
    assert gap > 1.0
    pair = rivals(lived, -0.6)
    pair.standing[:2] = agent.standing[[best, newest]]
    assert overtaking_cosine(pair) == pytest.approx(-0.6 + gap, abs=1e-9)
