"""The vital signs that every published table reports, measured without touching the agent."""

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.rng import reseed, reserve
from elfmem_sim.kernel.score import W_SIMILARITY, clear_top, insert_top, similarity
from elfmem_sim.kernel.state import Agent, Floats, Ints, Rules
from elfmem_sim.kernel.topic import perturb

PROBE_SEED = 99


@compiled
def measure(
    agent: Agent,
    rules: Rules,
    day: int,
    query: Floats,
    scores: Floats,
    indices: Ints,
    oracle: Floats,
    oracle_indices: Ints,
    out: Floats,
) -> None:
    """Write one snapshot (see ``SNAPSHOT_FIELDS``) at the end of ``day`` into ``out``.

    Quality is the mean cosine between a probe query and the five blocks returned; its ratio is
    taken to the five most similar blocks of all, the constitution included in every arm. Probe
    queries come from ``Random(99 + day)``, the same for every arm and seed.

    Args:
        agent: The agent, with ``standing`` up to date.
        rules: The run's constants.
        day: Day index, 0-based.
        query: Scratch, ``float64[dimension]``.
        scores: Scratch, ``float64[5]``.
        indices: Scratch, ``int64[5]``.
        oracle: Scratch, ``float64[5]``.
        oracle_indices: Scratch, ``int64[5]``.
        out: Receives the snapshot, ``float64[len(SNAPSHOT_FIELDS)]``.
    """
    step = day + 1
    self_topic = agent.identity[step]
    size = agent.decay.shape[0]
    reseed(agent.probe, PROBE_SEED + day)
    reserve(agent.probe, rules.vitals_queries * (agent.topic.shape[1] + 1))
    quality = best = recent = moat = 0.0
    for _ in range(rules.vitals_queries):
        perturb(self_topic, agent.probe, rules.query_spread, query)
        clear_top(scores, indices)
        clear_top(oracle, oracle_indices)
        for i in range(agent.blocks[0]):
            cosine = similarity(agent.topic[i], query)
            insert_top(cosine, i, oracle, oracle_indices)
            if i >= size or rules.constitution_in_attention:
                score = W_SIMILARITY * ((cosine + 1.0) / 2.0) + agent.standing[i]
                insert_top(score, i, scores, indices)
        quality += _mean_cosine(agent, query, indices)
        best += _mean_cosine(agent, query, oracle_indices)
        returned = young = constitutional = 0
        for i in indices:
            if i >= 0:
                returned += 1
                young += step - agent.birth_step[i] < rules.recent_days
                constitutional += i < size
        if returned:
            recent += young / returned
            moat += constitutional / returned
    n = rules.vitals_queries
    out[0] = day
    out[1] = quality / n
    out[2] = (quality / n) / (best / n) if best > 0.0 else 0.0
    out[3] = recent / n
    out[4] = moat / n
    _measure_constitution(agent, self_topic, out)


@compiled
def _mean_cosine(agent: Agent, query: Floats, indices: Ints) -> float:
    total = 0.0
    returned = 0
    for i in indices:
        if i >= 0:
            total += similarity(agent.topic[i], query)
            returned += 1
    return total / returned if returned else 0.0


@compiled
def _measure_constitution(agent: Agent, self_topic: Floats, out: Floats) -> None:
    size = agent.decay.shape[0]
    total = strongest = aligned = retained = 0.0
    weakest = agent.ego[0]
    alive = 0
    for i in range(size):
        ego = agent.ego[i]
        total += ego
        strongest = max(strongest, ego)
        weakest = min(weakest, ego)
        alive += ego > 0.01
        aligned += (similarity(agent.topic[i], self_topic) + 1.0) / 2.0
        retained += (similarity(agent.topic[i], agent.origin[i]) + 1.0) / 2.0
    mean = total / size
    out[5] = mean
    out[6] = strongest
    out[7] = weakest
    out[8] = strongest / mean if mean > 0.01 else 0.0
    out[9] = alive
    out[10] = aligned / size
    out[11] = retained / size
