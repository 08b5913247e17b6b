"""The vital signs that every published table reports, measured without touching the agent."""

import math

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.kernel._compile import borrowing, compiled
from elfmem_sim.kernel.rng import reseed, reserve
from elfmem_sim.kernel.score import attention, mean_cosine, nearest, similarity
from elfmem_sim.kernel.state import STRIDE, TOP_K, WEIGHT, Agent, Floats, Ints, Rules
from elfmem_sim.kernel.topic import perturb

PROBE_SEED = 99
_BINS = 10


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
        indices: Scratch, ``int64[5]``, with rows of an earlier answer or -1.
        oracle: Scratch, ``float64[5]``.
        oracle_indices: The same.
        out: Receives the snapshot, ``float64[len(SNAPSHOT_FIELDS)]``.
    """
    step = day + 1
    self_topic = agent.identity[step]
    size = agent.decay.shape[0]
    reseed(agent.probe, PROBE_SEED + day)
    reserve(agent.probe, rules.vitals_queries * (agent.topic.shape[1] + 1))
    weight = agent.knobs[WEIGHT]
    quality = best = recent = moat = 0.0
    seen = np.zeros(agent.blocks[0], np.bool_)
    stride = np.empty(STRIDE)
    for _ in range(rules.vitals_queries):
        perturb(self_topic, agent.probe, rules.query_spread, query)
        attention(agent, query, weight, stride, scores, indices)
        nearest(agent, query, stride, oracle, oracle_indices)
        quality += mean_cosine(agent, query, indices)
        best += mean_cosine(agent, query, oracle_indices)
        returned = young = constitutional = 0
        for i in indices:
            if i >= 0:
                returned += 1
                young += step - agent.birth_step[i] < rules.recent_days
                constitutional += i < size
                seen[i] = True
        if returned:
            recent += young / returned
            moat += constitutional / returned
    n = rules.vitals_queries
    out[0] = day
    out[1] = quality / n
    out[2] = (quality / n) / (best / n) if best > 0.0 else 0.0
    out[3] = recent / n
    out[4] = moat / n
    for k in range(5, 12):
        out[k] = 0.0
    if size > 0:
        _measure_constitution(agent, self_topic, out)
    _measure_evidence(agent, seen, TOP_K * n, out)
    out[16] = agent.blocks[0]
    out[17] = agent.damage[0] / agent.damage[1] if agent.damage[1] > 0.0 else 0.0
    for k in range(agent.knobs.shape[0]):
        out[18 + k] = agent.knobs[k]


@borrowing
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


@compiled
def _measure_evidence(agent: Agent, seen: NDArray[np.bool_], slots: int, out: Floats) -> None:
    """How much the corpus knows of its blocks, and how many of them the probes returned."""
    blocks = agent.blocks[0]
    evidence = agent.alpha[:blocks] + agent.beta[:blocks]
    counts = np.zeros(_BINS, np.int64)
    for confidence in agent.alpha[:blocks] / evidence:
        # As numpy.histogram: the edge decides, not the rounded product. It matters, because the
        # established corpus starts exactly on an edge, at 0.7.
        at = min(int(confidence * _BINS), _BINS - 1)
        if confidence < at * (1.0 / _BINS):
            at -= 1
        elif at < _BINS - 1 and confidence >= (at + 1) * (1.0 / _BINS):
            at += 1
        counts[at] += 1
    entropy = 0.0
    for count in counts:
        if count > 0:
            share = count / blocks
            entropy -= share * math.log(share)
    out[12] = entropy
    out[13] = np.mean(evidence)
    # The 95th percentile, as numpy.percentile has it; sorting compiles in a fraction of the time.
    ordered = np.sort(evidence)
    place = 0.95 * (blocks - 1)
    below = int(place)
    above = min(below + 1, blocks - 1)
    out[14] = ordered[below] + (ordered[above] - ordered[below]) * (place - below)
    out[15] = np.sum(seen) / slots
