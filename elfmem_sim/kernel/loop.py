"""An agent's life: birth, then day after day, with vitals and rescoring between."""

import numpy as np

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.day import STANDARD_DECAY, day_draws, fill_recency, live, rescore
from elfmem_sim.kernel.rng import reseed, reserve
from elfmem_sim.kernel.score import refresh_all, refresh_base
from elfmem_sim.kernel.state import EGO_ALPHA, N_FIELDS, TOP_K, Agent, Calendar, Floats, Rules
from elfmem_sim.kernel.topic import copy, perturb, random_topic
from elfmem_sim.kernel.vitals import measure


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
        agent: A freshly allocated agent with its knobs set.
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
    reserve(agent.stream, agent.topic.shape[1] + 1)
    random_topic(agent.stream, agent.identity[0])
    alpha_ego = agent.knobs[EGO_ALPHA]
    size = agent.decay.shape[0]
    for i in range(size):
        agent.ego[i] = ego
        agent.decay[i] = STANDARD_DECAY / (1.0 + alpha_ego * ego) if alpha_ego > 0.0 else decay
    lay_down(agent, rules, size, spread, alpha, beta, reinforcement, edges)
    for i in range(size):
        copy(agent.topic[i], agent.origin[i])
    fill_recency(rules, agent.recency)


@compiled
def lay_down(
    agent: Agent,
    rules: Rules,
    number: int,
    spread: float,
    alpha: float,
    beta: float,
    reinforcement: float,
    edges: float,
) -> None:
    """Add ``number`` blocks around the newborn self, all with the same evidence."""
    first = agent.blocks[0]
    topic = np.empty(agent.topic.shape[1])
    for i in range(first, first + number):
        reserve(agent.stream, topic.shape[0] + 1)
        perturb(agent.identity[0], agent.stream, spread, topic)
        copy(topic, agent.topic[i])
        agent.alpha[i] = alpha
        agent.beta[i] = beta
        agent.reinforcement[i] = reinforcement
        agent.edges[i] = edges
        refresh_base(agent, rules.exploration, i)
    agent.blocks[0] = first + number


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
    indices = np.full(TOP_K, -1)
    oracle = np.empty(TOP_K)
    oracle_indices = np.full(TOP_K, -1)
    snapshots = np.empty((int(np.sum(calendar.measured[first:last])), N_FIELDS))
    row = 0
    for day in range(first, last):
        step = day + 1
        reserve(agent.stream, day_draws(rules, dimension))
        live(agent, rules, calendar, day, query, scores, indices)
        if calendar.measured[day]:
            if calendar.quiet[day]:
                refresh_all(agent, rules, step)
            out = snapshots[row]
            measure(agent, rules, day, query, scores, indices, oracle, oracle_indices, out)
            row += 1
        # The published rescore precedes the vitals but was not seen by them; nothing else differs.
        if rules.rescore_every > 0 and day > 0 and day % rules.rescore_every == 0:
            rescore(agent, rules, step)
    return snapshots
