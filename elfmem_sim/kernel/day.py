"""One day of an agent: drift, learn, query, reflect. ADR 0003's draw order throughout."""

import math

import numpy as np

from elfmem_sim.kernel._compile import borrowing, compiled
from elfmem_sim.kernel.rng import Stream, fill_gauss, reserve, sample, uniform
from elfmem_sim.kernel.score import (
    clear_top,
    insert_top,
    mean_cosine,
    rank,
    recency,
    refresh_all,
    refresh_base,
    refresh_standing,
    reinforcement_term,
    similarity,
)
from elfmem_sim.kernel.state import (
    BLEND,
    DISTRIBUTE,
    EGO_ALPHA,
    RETURN,
    ROTATE,
    SELF_QUERIES,
    STRIDE,
    WEIGHT,
    Agent,
    Calendar,
    Floats,
    Ints,
    Rules,
)
from elfmem_sim.kernel.topic import blend, copy, perturb, rotate

STANDARD_DECAY = 0.010
"""Decay per active hour of ordinary blocks (elfmem's STANDARD tier)."""

ESTABLISHED = 5.0
"""Evidence above which a block counts towards rescore damage."""

POWER_LAW_HOURS = 100.0
"""Time scale of ADR 0001's power-law decay."""

_LINKED = 3  # an outcome links the first three blocks of the answer
_OUTCOME_DRAWS = 3  # whether there is one, what it is, whether it is flipped


@borrowing
def fill_recency(rules: Rules, recency_by_age: Floats) -> None:
    """Tabulate an ordinary block's recency by days since it was used; all share one decay."""
    for age in range(recency_by_age.shape[0]):
        elapsed = age * rules.hours_per_day
        if rules.power_law:
            recency_by_age[age] = (1.0 + 0.5 * elapsed / POWER_LAW_HOURS) ** -0.5
        else:
            recency_by_age[age] = math.exp(-STANDARD_DECAY * elapsed)


@borrowing
def day_draws(rules: Rules, dimension: int) -> int:
    """Upper bound of the draws that one day can take from the run's stream."""
    directions = 1 + rules.learns_per_day + rules.queries_per_day
    outcomes = rules.queries_per_day + rules.self_answers
    rescore = rules.rescore_blocks + 2
    return directions * (dimension + 1) + rules.learns_per_day + outcomes * _OUTCOME_DRAWS + rescore


@compiled
def live(
    agent: Agent,
    rules: Rules,
    calendar: Calendar,
    day: int,
    query: Floats,
    scores: Floats,
    indices: Ints,
) -> float:
    """Live one day, with the day's draws reserved, and return the quality of its answers.

    Returns:
        Mean cosine between the day's ATTENTION queries and the blocks they returned, for arms
        that roll out; else 0.
    """
    step = day + 1
    _move_self(agent, rules, calendar, day)
    if agent.knobs[EGO_ALPHA] > 0.0:
        _fade_ego(agent, rules, step)
    if calendar.quiet[day]:
        return 0.0
    _learn(agent, rules, step, query)
    refresh_all(agent, rules, step)
    stride = np.empty(STRIDE)
    quality = _query(agent, rules, step, calendar.noise[day], query, stride, scores, indices)
    if agent.knobs[SELF_QUERIES] > 0.0:
        answers = min(int(agent.knobs[DISTRIBUTE]), agent.decay.shape[0])
        weights, blocks = np.empty(answers), np.empty(answers, np.int64)
        _reflect(agent, rules, step, calendar.noise[day], weights, blocks)
    return quality


@borrowing
def _move_self(agent: Agent, rules: Rules, calendar: Calendar, day: int) -> None:
    old = agent.identity[day]
    new = agent.identity[day + 1]
    kind = calendar.regime[day]
    if kind == BLEND:
        blend(
            old,
            agent.stream,
            calendar.direction_spread[day],
            calendar.weight_old[day],
            calendar.weight_new[day],
            new,
        )
    elif kind == ROTATE:
        rotate(old, agent.stream, calendar.weight_old[day], calendar.weight_new[day], new)
    elif kind == RETURN:
        copy(agent.identity[calendar.return_step[day]], new)
    else:
        perturb(old, agent.stream, rules.drift_per_day, new)


@borrowing
def _set_ego(agent: Agent, i: int, change: float) -> None:
    agent.ego[i] = max(0.0, agent.ego[i] + change)
    agent.decay[i] = STANDARD_DECAY / (1.0 + agent.knobs[EGO_ALPHA] * agent.ego[i])


@borrowing
def _fade_ego(agent: Agent, rules: Rules, step: int) -> None:
    for i in range(agent.decay.shape[0]):
        _set_ego(agent, i, -rules.ego_decay_per_day * (step - agent.ego_step[i]))
        agent.ego_step[i] = step


@borrowing
def _learn(agent: Agent, rules: Rules, step: int, topic: Floats) -> None:
    self_topic = agent.identity[step]
    for event in range(rules.learns_per_day):
        i = agent.blocks[0]
        spread = rules.learn_spread_min + rules.learn_spread_width * uniform(agent.stream)
        perturb(self_topic, agent.stream, spread, topic)
        copy(topic, agent.topic[i])
        agent.alpha[i] = 0.5
        agent.beta[i] = 0.5
        agent.reinforcement[i] = rules.uses_per_learn
        agent.edges[i] = 0.0
        agent.birth_step[i] = step
        agent.used_step[i] = step
        agent.used_event[i] = event
        agent.blocks[0] = i + 1
        refresh_base(agent, rules.exploration, i)


@borrowing
def _outcome(topic: Floats, self_topic: Floats, stream: Stream, noise: float) -> float:
    """Draw whether a block served: more likely the closer it is to the current self."""
    aligned = (similarity(topic, self_topic) + 1.0) / 2.0
    signal = 1.0 if uniform(stream) < aligned else 0.0
    if noise > 0.0 and uniform(stream) < noise:
        signal = 1.0 - signal
    return signal


@borrowing
def _query(
    agent: Agent,
    rules: Rules,
    step: int,
    noise: float,
    query: Floats,
    stride: Floats,
    scores: Floats,
    indices: Ints,
) -> float:
    size, count = agent.decay.shape[0], agent.blocks[0]
    columns, standing, stream = agent.topic.T, agent.standing, agent.stream
    quality = 0.0
    self_topic = agent.identity[step]
    weight = agent.knobs[WEIGHT]
    ego = agent.knobs[EGO_ALPHA] > 0.0
    for number in range(rules.queries_per_day):
        perturb(self_topic, stream, rules.query_spread, query)
        rank(columns, standing, size, count, query, weight, stride, scores, indices)
        if rules.rollout_days > 0:
            quality += mean_cosine(agent, query, indices) / rules.queries_per_day
        top = indices[0]
        if uniform(stream) >= rules.outcome_rate or top < 0:
            continue
        signal = _outcome(agent.topic[top], self_topic, stream, noise)
        agent.alpha[top] += signal
        agent.beta[top] += 1.0 - signal
        agent.reinforcement[top] += 1.0
        agent.used_step[top] = step
        agent.used_event[top] = rules.learns_per_day + number
        refresh_base(agent, rules.exploration, top)
        if ego and top < size:
            _set_ego(agent, top, rules.ego_gain if signal > 0.5 else -rules.ego_loss)
        for k in range(_LINKED):
            if indices[k] >= 0:
                agent.edges[indices[k]] += 1.0
                refresh_standing(
                    agent, rules.hours_per_day, rules.cold_start_floor, indices[k], step
                )
    return quality


@borrowing
def _reflect(
    agent: Agent, rules: Rules, step: int, noise: float, weights: Floats, indices: Ints
) -> None:
    """SELF queries: constitutional blocks answer, and outcomes feed their ego strength.

    The day's SELF queries all ask for the current self and see one state, the one after the last
    ATTENTION query, so they share one answer; only their outcomes differ.
    """
    size = agent.decay.shape[0]
    clear_top(weights, indices, -np.inf)
    for i in range(size):
        score = (
            0.10 * (similarity(agent.topic[i], agent.identity[step]) + 1.0) / 2.0
            + 0.30 * (agent.alpha[i] / (agent.alpha[i] + agent.beta[i]))
            + 0.05 * recency(agent, i, step, rules.hours_per_day)
            + 0.25 * min(1.0, agent.edges[i] / 10.0)
            + 0.30 * reinforcement_term(agent.reinforcement[i])
        )
        insert_top(score, i, weights, indices)
    best, total = weights[0], 0.0
    for k in range(weights.shape[0]):
        weights[k] = math.exp(weights[k] - best)
        total += weights[k]
    for k in range(weights.shape[0]):
        weights[k] /= total
    for _ in range(int(agent.knobs[SELF_QUERIES])):
        for k in range(weights.shape[0]):
            i = indices[k]
            agent.self_hits[i] += weights[k]
            if uniform(agent.stream) >= rules.self_outcome_rate:
                continue
            signal = _outcome(agent.topic[i], agent.identity[step], agent.stream, noise)
            agent.alpha[i] += signal * weights[k]
            agent.beta[i] += (1.0 - signal) * weights[k]
            agent.reinforcement[i] += weights[k]
            agent.used_step[i] = step
            if agent.knobs[EGO_ALPHA] > 0.0:
                change = rules.ego_gain if signal > 0.5 else -rules.ego_loss
                _set_ego(agent, i, change * weights[k])
    for i in range(size):
        refresh_base(agent, rules.exploration, i)
        refresh_standing(agent, rules.hours_per_day, rules.cold_start_floor, i, step)


@compiled
def rescore(agent: Agent, rules: Rules, step: int) -> None:
    """Have a sample of blocks judged anew (ADR 0002): confidence overwritten, or evidence added."""
    chosen = np.empty(min(rules.rescore_blocks, agent.blocks[0]), np.int64)
    sample(agent.stream, agent.blocks[0], chosen)
    noise = np.empty(1)
    reserve(agent.stream, chosen.shape[0] + 1)
    for i in chosen:
        fill_gauss(agent.stream, noise)
        aligned = (similarity(agent.topic[i], agent.identity[step]) + 1.0) / 2.0
        judged = max(0.0, min(1.0, aligned + noise[0] * rules.rescore_noise))
        before = agent.alpha[i] + agent.beta[i]
        confidence = agent.alpha[i] / before
        if rules.additive_rescore:
            agent.alpha[i] += judged * rules.rescore_weight
            agent.beta[i] += (1.0 - judged) * rules.rescore_weight
        else:
            agent.alpha[i] = judged * before
            agent.beta[i] = (1.0 - judged) * before
        refresh_base(agent, rules.exploration, i)
        if before > ESTABLISHED:
            after = agent.alpha[i] / (agent.alpha[i] + agent.beta[i])
            agent.damage[0] += abs(confidence - after)
            agent.damage[1] += 1.0
