"""The agent's days: drift, learn, query, reflect, measure. ADR 0003's draw order throughout."""

import math

import numpy as np

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.rng import reseed, reserve, uniform
from elfmem_sim.kernel.score import (
    attention,
    clear_top,
    insert_top,
    recency,
    refresh_all,
    refresh_base,
    refresh_standing,
    reinforcement_term,
    similarity,
)
from elfmem_sim.kernel.state import N_FIELDS, TOP_K, Agent, Calendar, Floats, Ints, Rules
from elfmem_sim.kernel.topic import blend, perturb, random_topic, rotate
from elfmem_sim.kernel.vitals import measure

STANDARD_DECAY = 0.010
"""Decay per active hour of ordinary blocks (elfmem's STANDARD tier)."""

_LINKED = 3  # an outcome links the first three blocks of the answer
_OUTCOME_DRAWS = 3  # whether there is one, what it is, whether it is flipped


@compiled
def day_draws(rules: Rules, dimension: int) -> int:
    """Upper bound of the draws that one day can take from the run's stream."""
    directions = 1 + rules.learns_per_day + rules.queries_per_day
    outcomes = rules.queries_per_day + rules.self_queries_per_day * rules.self_distribute
    return directions * (dimension + 1) + rules.learns_per_day + outcomes * _OUTCOME_DRAWS


@compiled
def birth(
    agent: Agent,
    rules: Rules,
    seed: int,
    spread: float,
    alpha: float,
    beta: float,
    reinforcement: float,
    edges: float,
    ego: float,
    decay: float,
) -> None:
    """Seed the stream, draw the self, and lay down the constitution around it.

    Args:
        agent: A freshly allocated agent.
        rules: The run's constants.
        seed: The run's seed.
        spread: Gaussian spread of constitutional blocks around the self, per component.
        alpha: Initial successes of each constitutional block.
        beta: Initial failures.
        reinforcement: Initial reinforcement count.
        edges: Initial number of edges.
        ego: Initial ego strength.
        decay: Decay per active hour (an arm with ego strength derives its own from ``ego``).
    """
    reseed(agent.stream, seed)
    reserve(agent.stream, (agent.decay.shape[0] + 1) * (agent.topic.shape[1] + 1))
    random_topic(agent.stream, agent.identity[0])
    size = agent.decay.shape[0]
    for i in range(size):
        perturb(agent.identity[0], agent.stream, spread, agent.topic[i])
        agent.origin[i] = agent.topic[i]
        agent.alpha[i] = alpha
        agent.beta[i] = beta
        agent.reinforcement[i] = reinforcement
        agent.edges[i] = edges
        agent.ego[i] = ego
        agent.decay[i] = STANDARD_DECAY / (1.0 + rules.ego_alpha * ego) if rules.ego else decay
        refresh_base(agent, i)
    agent.blocks[0] = size
    for age in range(agent.recency.shape[0]):
        agent.recency[age] = math.exp(-STANDARD_DECAY * (age * rules.hours_per_day))


@compiled
def advance(agent: Agent, rules: Rules, calendar: Calendar, first: int, last: int) -> Floats:
    """Live the days ``first .. last - 1`` and return their snapshots.

    Args:
        agent: The agent at the end of day ``first - 1``.
        rules: The run's constants.
        calendar: What each day holds.
        first: First day to live.
        last: Day after the last one to live.

    Returns:
        One row per measured day, ``float64[measured, len(SNAPSHOT_FIELDS)]``.
    """
    dimension = agent.topic.shape[1]
    query = np.empty(dimension)
    scores = np.empty(TOP_K)
    indices = np.empty(TOP_K, np.int64)
    oracle = np.empty(TOP_K)
    oracle_indices = np.empty(TOP_K, np.int64)
    snapshots = np.empty((int(np.sum(calendar.measured[first:last])), N_FIELDS))
    row = 0
    for day in range(first, last):
        step = day + 1
        reserve(agent.stream, day_draws(rules, dimension))
        _move_self(agent, rules, calendar, day)
        if rules.ego:
            _fade_ego(agent, rules)
        if not calendar.quiet[day]:
            _learn(agent, rules, step)
            refresh_all(agent, step, rules.hours_per_day)
            _query(agent, rules, step, calendar.noise[day], query, scores, indices)
            if rules.self_queries_per_day > 0:
                _reflect(agent, rules, step, calendar.noise[day])
        if calendar.measured[day]:
            if calendar.quiet[day]:
                refresh_all(agent, step, rules.hours_per_day)
            out = snapshots[row]
            measure(agent, rules, day, query, scores, indices, oracle, oracle_indices, out)
            row += 1
    return snapshots


@compiled
def _move_self(agent: Agent, rules: Rules, calendar: Calendar, day: int) -> None:
    old = agent.identity[day]
    new = agent.identity[day + 1]
    kind = calendar.regime[day]
    if kind == 1:
        blend(
            old,
            agent.stream,
            calendar.direction_spread[day],
            calendar.weight_old[day],
            calendar.weight_new[day],
            new,
        )
    elif kind == 2:
        rotate(old, agent.stream, calendar.weight_old[day], calendar.weight_new[day], new)
    elif kind == 3:
        new[:] = agent.identity[calendar.return_step[day]]
    else:
        perturb(old, agent.stream, rules.drift_per_day, new)


@compiled
def _set_ego(agent: Agent, rules: Rules, i: int, change: float) -> None:
    agent.ego[i] = max(0.0, agent.ego[i] + change)
    agent.decay[i] = STANDARD_DECAY / (1.0 + rules.ego_alpha * agent.ego[i])


@compiled
def _fade_ego(agent: Agent, rules: Rules) -> None:
    for i in range(agent.decay.shape[0]):
        _set_ego(agent, rules, i, -rules.ego_decay_per_day)


@compiled
def _learn(agent: Agent, rules: Rules, step: int) -> None:
    self_topic = agent.identity[step]
    for event in range(rules.learns_per_day):
        i = agent.blocks[0]
        spread = rules.learn_spread_min + rules.learn_spread_width * uniform(agent.stream)
        perturb(self_topic, agent.stream, spread, agent.topic[i])
        agent.alpha[i] = 0.5
        agent.beta[i] = 0.5
        agent.reinforcement[i] = rules.uses_per_learn
        agent.edges[i] = 0.0
        agent.birth_step[i] = step
        agent.used_step[i] = step
        agent.used_event[i] = event
        agent.blocks[0] = i + 1
        refresh_base(agent, i)


@compiled
def _outcome(agent: Agent, step: int, i: int, noise: float) -> float:
    """Draw whether block ``i`` served: more likely the closer it is to the current self."""
    aligned = (similarity(agent.topic[i], agent.identity[step]) + 1.0) / 2.0
    signal = 1.0 if uniform(agent.stream) < aligned else 0.0
    if noise > 0.0 and uniform(agent.stream) < noise:
        signal = 1.0 - signal
    return signal


@compiled
def _query(
    agent: Agent,
    rules: Rules,
    step: int,
    noise: float,
    query: Floats,
    scores: Floats,
    indices: Ints,
) -> None:
    size = agent.decay.shape[0]
    self_topic = agent.identity[step]
    for number in range(rules.queries_per_day):
        perturb(self_topic, agent.stream, rules.query_spread, query)
        attention(agent, query, rules.constitution_in_attention, scores, indices)
        top = indices[0]
        if uniform(agent.stream) >= rules.outcome_rate or top < 0:
            continue
        signal = _outcome(agent, step, top, noise)
        agent.alpha[top] += signal
        agent.beta[top] += 1.0 - signal
        agent.reinforcement[top] += 1.0
        agent.used_step[top] = step
        agent.used_event[top] = rules.learns_per_day + number
        refresh_base(agent, top)
        if rules.ego and top < size:
            _set_ego(agent, rules, top, rules.ego_gain if signal > 0.5 else -rules.ego_loss)
        for k in range(_LINKED):
            if indices[k] >= 0:
                agent.edges[indices[k]] += 1.0
                refresh_standing(agent, indices[k], step, rules.hours_per_day)


@compiled
def _reflect(agent: Agent, rules: Rules, step: int, noise: float) -> None:
    """SELF queries: constitutional blocks answer, and outcomes feed their ego strength.

    The day's SELF queries all ask for the current self and see one state, the one after the last
    ATTENTION query, so they share one answer; only their outcomes differ.
    """
    size = agent.decay.shape[0]
    answers = min(rules.self_distribute, size)
    scores = np.empty(answers)
    indices = np.empty(answers, np.int64)
    clear_top(scores, indices)
    for i in range(size):
        score = (
            0.10 * (similarity(agent.topic[i], agent.identity[step]) + 1.0) / 2.0
            + 0.30 * (agent.alpha[i] / (agent.alpha[i] + agent.beta[i]))
            + 0.05 * recency(agent, i, step, rules.hours_per_day)
            + 0.25 * min(1.0, agent.edges[i] / 10.0)
            + 0.30 * reinforcement_term(agent.reinforcement[i])
        )
        insert_top(score, i, scores, indices)
    weights = np.exp(scores - scores[0])
    weights /= np.sum(weights)
    for _ in range(rules.self_queries_per_day):
        for k in range(answers):
            i = indices[k]
            agent.self_hits[i] += weights[k]
            if uniform(agent.stream) >= rules.self_outcome_rate:
                continue
            signal = _outcome(agent, step, i, noise)
            agent.alpha[i] += signal * weights[k]
            agent.beta[i] += (1.0 - signal) * weights[k]
            agent.reinforcement[i] += weights[k]
            agent.used_step[i] = step
            change = rules.ego_gain if signal > 0.5 else -rules.ego_loss
            _set_ego(agent, rules, i, change * weights[k])
    for i in range(size):
        refresh_base(agent, i)
        refresh_standing(agent, i, step, rules.hours_per_day)
