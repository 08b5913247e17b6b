"""ADR 0003's self-architecting agent: every 28 days it tries its own knobs and turns one.

The published objective is a shadow evaluation: a few queries answered without any change of state,
with fresh queries for every candidate. The arms that judge the idea rather than this
implementation change the objective only: more queries, the same queries for all candidates, or a
rollout of the candidate's next weeks. With no query at all a candidate's value is a coin, which is
the control: what the hill-climber does when its objective knows nothing.
"""

import numpy as np

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.day import day_draws, fill_recency, live
from elfmem_sim.kernel.rng import below, reseed, reserve, uniform
from elfmem_sim.kernel.score import attention, mean_cosine, nearest
from elfmem_sim.kernel.state import (
    DISTRIBUTE,
    STRIDE,
    TOP_K,
    WEIGHT,
    Agent,
    Calendar,
    Floats,
    Ints,
    Rules,
    allocate,
)
from elfmem_sim.kernel.topic import perturb

LOWEST = np.array([0.0, 0.0, 1.0, 0.0])
HIGHEST = np.array([1.0, 0.1, 5.0, 4.0])
STEP_SHARE = 0.20
SHADOW_SEEDS = 2**30 + 1


@compiled
def step_of(knob: int) -> float:
    """How far one adaptation moves a knob: a fifth of its range, or 1 for whole numbers."""
    if knob >= DISTRIBUTE:
        return 1.0
    return float((HIGHEST[knob] - LOWEST[knob]) * STEP_SHARE)


@compiled
def adapt(agent: Agent, rules: Rules, calendar: Calendar, day: int) -> None:
    """Evaluate the present knobs and one step down and up for each; keep the strictly best.

    Args:
        agent: The agent at the end of ``day``.
        rules: The run's constants.
        calendar: The scenario's days.
        day: Day index.
    """
    query = np.empty(agent.topic.shape[1])
    scores = np.empty(TOP_K)
    indices = np.full(TOP_K, -1)
    common = below(agent.stream, SHADOW_SEEDS) if rules.shadow_common else -1
    best = evaluate(agent, rules, calendar, day, agent.knobs, common, query, scores, indices)
    turned = -1
    direction = 0
    candidate = agent.knobs.copy()
    for knob in range(agent.knobs.shape[0]):
        for sign in (-1, 1):
            value = agent.knobs[knob] + sign * step_of(knob)
            value = max(LOWEST[knob], min(HIGHEST[knob], value))
            if value == agent.knobs[knob]:
                continue
            candidate[:] = agent.knobs
            candidate[knob] = value
            quality = evaluate(
                agent, rules, calendar, day, candidate, common, query, scores, indices
            )
            if quality > best:
                best = quality
                turned = knob
                direction = sign
    if turned >= 0:
        value = agent.knobs[turned] + direction * step_of(turned)
        agent.knobs[turned] = max(LOWEST[turned], min(HIGHEST[turned], value))
    at = agent.adapted[0]
    agent.moves[at, 0] = day
    agent.moves[at, 1] = turned
    agent.moves[at, 2] = direction
    agent.adapted[0] = at + 1


@compiled
def evaluate(
    agent: Agent,
    rules: Rules,
    calendar: Calendar,
    day: int,
    knobs: Floats,
    common: int,
    query: Floats,
    scores: Floats,
    indices: Ints,
) -> float:
    """Estimate the quality of ``knobs`` without changing the agent, but for its stream.

    Args:
        agent: The agent at the end of ``day``.
        rules: The run's constants.
        calendar: The scenario's days; a rollout does not look at what they hold.
        day: Day index.
        knobs: The candidate.
        common: Seed shared by all candidates, or -1 to draw one from the run's stream.
        query: Scratch, ``float64[dimension]``.
        scores: Scratch, ``float64[5]``.
        indices: Scratch, ``int64[5]``, with rows of an earlier answer or -1.
    """
    seed = common if common >= 0 else below(agent.stream, SHADOW_SEEDS)
    if rules.rollout_days > 0:
        return _roll_out(agent, rules, calendar, day, knobs, seed, query, scores, indices)
    reseed(agent.probe, seed)
    if rules.shadow_queries == 0:
        reserve(agent.probe, 1)
        return uniform(agent.probe)
    self_topic = agent.identity[day + 1]
    quality = best = 0.0
    stride, oracle, oracle_indices = np.empty(STRIDE), np.empty(TOP_K), np.full(TOP_K, -1)
    for _ in range(rules.shadow_queries):
        reserve(agent.probe, query.shape[0] + 1)
        perturb(self_topic, agent.probe, rules.query_spread, query)
        attention(agent, query, knobs[WEIGHT], stride, scores, indices)
        quality += mean_cosine(agent, query, indices)
        nearest(agent, query, stride, oracle, oracle_indices)
        best += mean_cosine(agent, query, oracle_indices)
    return quality / max(0.001, best)


@compiled
def _roll_out(
    agent: Agent,
    rules: Rules,
    calendar: Calendar,
    day: int,
    knobs: Floats,
    seed: int,
    query: Floats,
    scores: Floats,
    indices: Ints,
) -> float:
    """Mean quality over the next days of a copy of the agent, in a world that only drifts.

    Every day has a stream of its own. A day's last draws are for SELF queries, and the knobs set
    their number: on one stream they would shift the next day's world, and candidates on common
    draws would be compared in different worlds.
    """
    days = rules.rollout_days
    size = agent.decay.shape[0]
    blocks = agent.blocks[0]
    twin = allocate(
        blocks + days * rules.learns_per_day,
        size,
        query.shape[0],
        day + 1 + days,
        day_draws(rules, query.shape[0]),
    )
    _copy(agent, twin)
    twin.identity[: day + 2] = agent.identity[: day + 2]
    fill_recency(rules, twin.recency)
    twin.knobs[:] = knobs
    future = _plain_calendar(calendar, day + 1 + days)
    total = 0.0
    for ahead in range(day + 1, day + 1 + days):
        reseed(twin.stream, seed + ahead)
        reserve(twin.stream, day_draws(rules, query.shape[0]))
        total += live(twin, rules, future, ahead, query, scores, indices)
    return total / days


@compiled
def _copy(agent: Agent, twin: Agent) -> None:
    blocks = agent.blocks[0]
    twin.blocks[0] = blocks
    twin.topic[:blocks] = agent.topic[:blocks]
    twin.alpha[:blocks] = agent.alpha[:blocks]
    twin.beta[:blocks] = agent.beta[:blocks]
    twin.reinforcement[:blocks] = agent.reinforcement[:blocks]
    twin.edges[:blocks] = agent.edges[:blocks]
    twin.used_step[:blocks] = agent.used_step[:blocks]
    twin.birth_step[:blocks] = agent.birth_step[:blocks]
    twin.base[:blocks] = agent.base[:blocks]
    twin.decay[:] = agent.decay
    twin.ego[:] = agent.ego
    twin.ego_step[:] = agent.ego_step


@compiled
def _plain_calendar(calendar: Calendar, days: int) -> Calendar:
    """A calendar of ordinary days: an agent that rolls out does not know what is coming."""
    return Calendar(
        np.zeros(days, np.bool_),
        np.full(days, calendar.noise[0]),
        np.zeros(days, np.int64),
        np.zeros(days),
        np.zeros(days),
        np.zeros(days),
        np.zeros(days, np.int64),
        np.zeros(days, np.bool_),
    )
