"""What the compiled loop works on: one agent's arrays, and the constants that govern them.

Time is counted in steps: step ``s`` is the end of day ``s - 1``, so the agent is born at step 0 and
its active clock reads ``s * hours_per_day``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.fields import SNAPSHOT_FIELDS
from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.rng import Stream, new_stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOP_K = 5
"""Blocks that a query returns."""

STRIDE = 64
"""Blocks that are scored together."""

WEIGHT, EGO_ALPHA, DISTRIBUTE, SELF_QUERIES = range(4)
"""Places in ``Agent.knobs``: weight of the constitution in ATTENTION, slowing of decay by ego
strength, blocks that share a SELF query, SELF queries a day (ADR 0003's four parameters)."""

DRIFT, BLEND, ROTATE, RETURN = range(4)
"""Ways in which the self moves on a day; see ``Calendar.regime``."""

N_FIELDS = len(SNAPSHOT_FIELDS)


class Rules(NamedTuple):
    """Everything constant during a run: the scenario's workload and the arm's mechanism.

    The fields are those of :mod:`elfmem_sim.scenario` and mean what they mean there, but for these.

    Attributes:
        self_answers: SELF queries a day times blocks that share one, at most.
        rescore_every: Days between rescores; 0 for none.
        shadow_common: Whether all candidates of an adaptation see the same draws.
        rollout_days: Days that an adaptation lives ahead; 0 for shadow queries.
    """

    hours_per_day: float
    drift_per_day: float
    learns_per_day: int
    learn_spread_min: float
    learn_spread_width: float
    queries_per_day: int
    query_spread: float
    outcome_rate: float
    uses_per_learn: int
    vitals_queries: int
    recent_days: int
    cold_start_floor: bool
    exploration: float
    power_law: bool
    ego_decay_per_day: float
    ego_gain: float
    ego_loss: float
    self_outcome_rate: float
    self_answers: int
    rescore_every: int
    rescore_blocks: int
    rescore_noise: float
    rescore_weight: float
    additive_rescore: bool
    shadow_queries: int
    shadow_common: bool
    rollout_days: int


class Calendar(NamedTuple):
    """What each day of the scenario holds; every array has one entry a day.

    Attributes:
        quiet: True on days without learning and queries, ``bool[days]``.
        noise: Probability that an outcome is flipped, ``float64[days]``.
        regime: DRIFT, BLEND, ROTATE or RETURN, ``int64[days]``.
        weight_old: Weight of the old direction (BLEND), or cosine of the angle (ROTATE),
            ``float64[days]``.
        weight_new: Weight of the new direction (BLEND), or sine of the angle (ROTATE),
            ``float64[days]``.
        direction_spread: Spread of a blend's new direction, ``float64[days]``.
        return_step: Step whose self comes back (RETURN), ``int64[days]``.
        measured: True on days that end with vitals, ``bool[days]``.
    """

    quiet: NDArray[np.bool_]
    noise: Floats
    regime: Ints
    weight_old: Floats
    weight_new: Floats
    direction_spread: Floats
    return_step: Ints
    measured: NDArray[np.bool_]


class Agent(NamedTuple):
    """One simulated agent. Blocks are rows; the constitution is rows ``0 .. size - 1``.

    The capacity is a multiple of ``STRIDE``: a loop over a whole stride, whose length the compiler
    knows, runs several times as fast as one that stops at the last block.

    Attributes:
        topic: Unit vectors, ``float64[capacity, dimension]``. In memory a component of all blocks
            lies together, so that the similarities of many blocks are computed at once.
        alpha: Beta posterior, successes, ``float64[capacity]``.
        beta: Beta posterior, failures, ``float64[capacity]``.
        reinforcement: Times reinforced, ``float64[capacity]``.
        edges: Edges in the graph, ``float64[capacity]``.
        used_step: Step of the last reinforcement, ``int64[capacity]``.
        used_event: Position of that reinforcement among its day's events, ``int64[capacity]``.
        birth_step: Step of creation, ``int64[capacity]``.
        base: The part of the ATTENTION score that time does not change, ``float64[capacity]``.
        standing: The ATTENTION score without its similarity term, today, ``float64[capacity]``.
        decay: Decay per active hour of each constitutional block, ``float64[size]``.
        ego: Ego strength, ``float64[size]``.
        ego_step: Step of each constitutional block's last ego decay, ``int64[size]``.
        knobs: The mechanism's parameters, ``float64[len(KNOBS)]``; adaptive arms turn them.
        moves: Day, knob (-1 for none) and direction of each adaptation, ``int64[days, 3]``.
        adapted: Number of adaptations so far, ``int64[1]``.
        damage: Sum and number of the changes that rescoring made to established confidence,
            ``float64[2]``.
        self_hits: Weight with which SELF queries returned each block, ``float64[size]``.
        origin: The constitution at birth, ``float64[size, dimension]``.
        identity: The self's direction at each step, ``float64[days + 1, dimension]``.
        recency: ``exp(-decay * age)`` of an ordinary block by age in days, ``float64[days + 1]``.
        blocks: Number of blocks, ``int64[1]``.
        stream: The run's random stream.
        probe: The stream of the vitals' queries.
    """

    topic: Floats
    alpha: Floats
    beta: Floats
    reinforcement: Floats
    edges: Floats
    used_step: Ints
    used_event: Ints
    birth_step: Ints
    base: Floats
    standing: Floats
    decay: Floats
    ego: Floats
    ego_step: Ints
    knobs: Floats
    moves: Ints
    adapted: Ints
    damage: Floats
    self_hits: Floats
    origin: Floats
    identity: Floats
    recency: Floats
    blocks: Ints
    stream: Stream
    probe: Stream


@compiled
def allocate(capacity: int, size: int, dimension: int, days: int, draws: int) -> Agent:
    """Return an unborn agent.

    Args:
        capacity: Room for at least this many blocks.
        size: Blocks in the constitution.
        dimension: Dimension of the topic space.
        days: Horizon.
        draws: Most draws that are ever reserved at once on one of its streams.
    """
    capacity += -capacity % STRIDE
    return Agent(
        np.zeros((dimension, capacity)).T,
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size, np.int64),
        np.zeros(4),
        np.zeros((days, 3), np.int64),
        np.zeros(1, np.int64),
        np.zeros(2),
        np.zeros(size),
        np.zeros((size, dimension)),
        np.zeros((days + 1, dimension)),
        np.zeros(days + 1),
        np.zeros(1, np.int64),
        new_stream(2 * draws),
        new_stream(2 * draws),
    )
