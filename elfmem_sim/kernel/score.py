"""Scores and top-k selection, with the ATTENTION weights of ADR 0001 to 0003."""

import math

import numpy as np

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.state import TOP_K, Agent, Floats, Ints, Rules

W_SIMILARITY = 0.35
W_CONFIDENCE = 0.15
W_RECENCY = 0.25
W_CENTRALITY = 0.15
W_REINFORCEMENT = 0.10
FLOOR_RECENCY = 0.70
FLOOR_CENTRALITY = 0.10
FLOOR_STRENGTH = 0.50
LOG_101 = math.log(101.0)

# No similarity term can exceed its weight by more than rounding, so a block whose score without it
# is further than this below the fifth best cannot enter the top five.
_REACH = W_SIMILARITY + 1e-9
_STRIDE = 64


@compiled
def similarity(a: Floats, b: Floats) -> float:
    """Dot product of two unit vectors of the same length."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@compiled
def reinforcement_term(reinforcement: float) -> float:
    """Reinforcement on a log scale, 1 at 100 reinforcements."""
    return min(1.0, math.log1p(reinforcement) / LOG_101)


@compiled
def refresh_base(agent: Agent, exploration: float, i: int) -> None:
    """Recompute the time-free part of block ``i``'s score after its evidence changed.

    Args:
        agent: The agent.
        exploration: Weight of ADR 0002's bonus, the spread of the block's Beta posterior.
        i: Row of the block.
    """
    evidence = agent.alpha[i] + agent.beta[i]
    agent.base[i] = W_CONFIDENCE * (agent.alpha[i] / evidence) + (
        W_REINFORCEMENT * reinforcement_term(agent.reinforcement[i])
    )
    if exploration > 0.0:
        variance = (agent.alpha[i] * agent.beta[i]) / (evidence * evidence * (evidence + 1.0))
        agent.base[i] += exploration * math.sqrt(variance)


@compiled
def recency(agent: Agent, i: int, step: int, hours_per_day: float) -> float:
    """``exp(-decay * hours since block i was reinforced)`` at ``step``."""
    age = step - agent.used_step[i]
    if i < agent.decay.shape[0]:
        return math.exp(-agent.decay[i] * (age * hours_per_day))
    return float(agent.recency[age])


@compiled
def refresh_standing(
    agent: Agent, hours_per_day: float, cold_start_floor: bool, i: int, step: int
) -> None:
    """Recompute block ``i``'s ATTENTION score without its similarity term."""
    recent = recency(agent, i, step, hours_per_day)
    central = min(1.0, agent.edges[i] / 10.0)
    # The cold-start floor: a block nobody has linked yet borrows centrality while it is fresh.
    if cold_start_floor and central < FLOOR_CENTRALITY and recent > FLOOR_RECENCY:
        central = max(central, FLOOR_STRENGTH * recent)
    agent.standing[i] = agent.base[i] + W_RECENCY * recent + W_CENTRALITY * central


@compiled
def refresh_all(agent: Agent, rules: Rules, step: int) -> None:
    """Bring every block's standing to ``step``."""
    # Passed one by one: a tuple of constants would be copied at every call.
    hours_per_day, cold_start_floor = rules.hours_per_day, rules.cold_start_floor
    for i in range(agent.blocks[0]):
        refresh_standing(agent, hours_per_day, cold_start_floor, i, step)


@compiled
def insert_top(score: float, i: int, scores: Floats, indices: Ints) -> None:
    """Insert block ``i`` into the descending top-k if its score belongs there."""
    k = scores.shape[0]
    if score <= scores[k - 1]:
        return
    slot = k - 1
    while slot > 0 and scores[slot - 1] < score:
        scores[slot] = scores[slot - 1]
        indices[slot] = indices[slot - 1]
        slot -= 1
    scores[slot] = score
    indices[slot] = i


@compiled
def clear_top(scores: Floats, indices: Ints) -> None:
    """Empty the top-k: scores to minus infinity, indices to -1."""
    for k in range(scores.shape[0]):
        scores[k] = -np.inf
        indices[k] = -1


@compiled
def attention(agent: Agent, query: Floats, weight: float, scores: Floats, indices: Ints) -> None:
    """Find the five blocks with the highest ATTENTION score for ``query``.

    Args:
        agent: The agent, with ``standing`` up to date.
        query: Unit vector, ``float64[dimension]``.
        weight: Factor on the scores of constitutional blocks; 0 keeps them out (Architecture M).
        scores: Receives the scores, best first; minus infinity where there are too few blocks.
        indices: Receives the rows, best first; -1 where there are too few blocks.
    """
    size, count = agent.decay.shape[0], agent.blocks[0]
    rank(agent.topic, agent.standing, size, count, query, weight, scores, indices)


@compiled
def rank(
    topic: Floats,
    standing: Floats,
    size: int,
    count: int,
    query: Floats,
    weight: float,
    scores: Floats,
    indices: Ints,
) -> None:
    """Do the work of :func:`attention` on bare arrays: a whole agent is slow to hand over."""
    clear_top(scores, indices)
    if weight > 0.0:
        for i in range(size):
            score = W_SIMILARITY * ((similarity(topic[i], query) + 1.0) / 2.0) + standing[i]
            insert_top(weight * score, i, scores, indices)
    # Newest first: fresh blocks stand highest, so the fifth best score rises early. From then on
    # most strides hold nothing above the bar, and counting is a loop the compiler vectorises.
    last = TOP_K - 1
    bar = scores[last] - _REACH
    stop = count
    while stop > size:
        start = max(size, stop - _STRIDE)
        contenders = 0
        for i in range(start, stop):
            contenders += standing[i] > bar
        if contenders > 0:
            for i in range(stop - 1, start - 1, -1):
                if standing[i] > bar:
                    cosine = similarity(topic[i], query)
                    score = W_SIMILARITY * ((cosine + 1.0) / 2.0) + standing[i]
                    insert_top(score, i, scores, indices)
                    bar = scores[last] - _REACH
        stop = start


@compiled
def mean_cosine(agent: Agent, query: Floats, indices: Ints) -> float:
    """Mean cosine between ``query`` and the blocks at ``indices``, -1 marking an empty place."""
    total = 0.0
    returned = 0
    for i in indices:
        if i >= 0:
            total += similarity(agent.topic[i], query)
            returned += 1
    return total / returned if returned else 0.0
