"""Scores and top-k selection, with the ATTENTION weights of ADR 0001 to 0003."""

import math

import numpy as np

from elfmem_sim.kernel._compile import borrowing
from elfmem_sim.kernel.state import STRIDE, TOP_K, Agent, Floats, Ints, Rules

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
_SLACK = 1e-9
_REACH = W_SIMILARITY + _SLACK


@borrowing
def similarity(a: Floats, b: Floats) -> float:
    """Dot product of two unit vectors of the same length."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@borrowing
def reinforcement_term(reinforcement: float) -> float:
    """Reinforcement on a log scale, 1 at 100 reinforcements."""
    return min(1.0, math.log1p(reinforcement) / LOG_101)


@borrowing
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


@borrowing
def recency(agent: Agent, i: int, step: int, hours_per_day: float) -> float:
    """``exp(-decay * hours since block i was reinforced)`` at ``step``."""
    age = step - agent.used_step[i]
    if i < agent.decay.shape[0]:
        return math.exp(-agent.decay[i] * (age * hours_per_day))
    return float(agent.recency[age])


@borrowing
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


@borrowing
def refresh_all(agent: Agent, rules: Rules, step: int) -> None:
    """Bring every block's standing to ``step``."""
    # Passed one by one: a tuple of constants would be copied at every call.
    hours_per_day, cold_start_floor = rules.hours_per_day, rules.cold_start_floor
    for i in range(agent.blocks[0]):
        refresh_standing(agent, hours_per_day, cold_start_floor, i, step)


@borrowing
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


@borrowing
def clear_top(scores: Floats, indices: Ints, floor: float) -> None:
    """Empty the top-k for what scores at least ``floor``: its places hold just less, and -1."""
    for k in range(scores.shape[0]):
        scores[k] = floor - _SLACK
        indices[k] = -1


@borrowing
def similarities(columns: Floats, query: Floats, start: int, out: Floats) -> None:
    """Write the dot products of a stride of blocks with ``query`` into ``out``.

    The loop over blocks is inside, where the compiler vectorises it; every block's products are
    summed in the order of :func:`similarity`, so the bits are the same.

    Args:
        columns: Unit vectors, ``float64[dimension, capacity]``.
        query: Unit vector, ``float64[dimension]``.
        start: First block, with room for a whole stride from there.
        out: Receives the products, ``float64[STRIDE]``.
    """
    dimension = query.shape[0]
    for i in range(STRIDE):
        out[i] = 0.0
    grouped = dimension - dimension % 4
    for j in range(0, grouped, 4):  # four at a time, for fewer passes over ``out``
        a, b = columns[j, start:], columns[j + 1, start:]
        c, d = columns[j + 2, start:], columns[j + 3, start:]
        p, q, r, s = query[j], query[j + 1], query[j + 2], query[j + 3]
        for i in range(STRIDE):
            out[i] = out[i] + a[i] * p + b[i] * q + c[i] * r + d[i] * s
    for j in range(grouped, dimension):
        a, p = columns[j, start:], query[j]
        for i in range(STRIDE):
            out[i] += a[i] * p


@borrowing
def any_above(values: Floats, bar: float) -> bool:
    """Whether any of a stride's values exceeds ``bar``; counting is a loop that vectorises."""
    above = 0
    for i in range(STRIDE):
        above += values[i] > bar
    return above > 0


@borrowing
def attention_score(cosine: float, standing: float) -> float:
    """The ATTENTION score of a block with this cosine to the query."""
    return W_SIMILARITY * ((cosine + 1.0) / 2.0) + standing


@borrowing
def attention(
    agent: Agent, query: Floats, weight: float, stride: Floats, scores: Floats, indices: Ints
) -> None:
    """Find the five blocks with the highest ATTENTION score for ``query``.

    Args:
        agent: The agent, with ``standing`` up to date.
        query: Unit vector, ``float64[dimension]``.
        weight: Factor on the scores of constitutional blocks; 0 keeps them out (Architecture M).
        stride: Scratch, ``float64[STRIDE]``.
        scores: Receives the scores, best first; minus infinity where there are too few blocks.
        indices: Receives the rows, best first; -1 where there are too few blocks. Comes with the
            agent's rows of an earlier answer, or with -1 anywhere. The lowest score of five rows
            is where the search can start: it spares most of the insertions and changes no answer.
    """
    size, count = agent.decay.shape[0], agent.blocks[0]
    rank(agent.topic.T, agent.standing, size, count, query, weight, stride, scores, indices)


@borrowing
def rank(
    columns: Floats,
    standing: Floats,
    size: int,
    count: int,
    query: Floats,
    weight: float,
    stride: Floats,
    scores: Floats,
    indices: Ints,
) -> None:
    """Do the work of :func:`attention` on bare arrays: a whole agent is slow to hand over."""
    floor = np.inf
    for i in indices:
        if i < 0 or (i < size and weight <= 0.0):
            floor = -np.inf
        else:
            score = attention_score(similarity(columns[:, i], query), standing[i])
            floor = min(floor, weight * score if i < size else score)
    clear_top(scores, indices, floor)
    if weight > 0.0:
        for i in range(size):
            score = attention_score(similarity(columns[:, i], query), standing[i])
            insert_top(weight * score, i, scores, indices)
    # Newest first: fresh blocks stand highest, so the fifth best score rises early. From then on
    # many strides hold nothing that could reach it, and most of the others nothing that does.
    last = TOP_K - 1
    for start in range((count - 1) // STRIDE * STRIDE, size - STRIDE, -STRIDE):
        stands = standing[start:]
        if not any_above(stands, scores[last] - _REACH):
            continue
        similarities(columns, query, start, stride)
        for i in range(STRIDE):
            stride[i] = attention_score(stride[i], stands[i])
        if any_above(stride, scores[last]):
            for i in range(min(count, start + STRIDE) - 1, max(size, start) - 1, -1):
                insert_top(stride[i - start], i, scores, indices)


@borrowing
def nearest(agent: Agent, query: Floats, stride: Floats, scores: Floats, indices: Ints) -> None:
    """Find the five blocks most similar to ``query``, whatever their standing.

    Args:
        agent: The agent.
        query: Unit vector, ``float64[dimension]``.
        stride: Scratch, ``float64[STRIDE]``.
        scores: Receives the cosines, best first; minus infinity where there are too few blocks.
        indices: Receives the rows, best first; -1 where there are too few blocks. Comes with an
            earlier answer or -1, as for :func:`attention`.
    """
    columns, count = agent.topic.T, agent.blocks[0]
    floor = np.inf
    for i in indices:
        floor = min(floor, similarity(columns[:, i], query)) if i >= 0 else -np.inf
    clear_top(scores, indices, floor)
    for start in range(0, count, STRIDE):
        similarities(columns, query, start, stride)
        if any_above(stride, scores[TOP_K - 1]):
            for i in range(start, min(count, start + STRIDE)):
                insert_top(stride[i - start], i, scores, indices)


@borrowing
def mean_cosine(agent: Agent, query: Floats, indices: Ints) -> float:
    """Mean cosine between ``query`` and the blocks at ``indices``, -1 marking an empty place."""
    total = 0.0
    returned = 0
    for i in indices:
        if i >= 0:
            total += similarity(agent.topic[i], query)
            returned += 1
    return total / returned if returned else 0.0
