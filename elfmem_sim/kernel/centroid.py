"""The centroid that elfmem's review compares a constitution with, followed day by day.

elfmem takes the newest reinforced blocks, and an old block that is used again is among them. So the
centroid cannot be read off the blocks at the end of a life: it is taken at the end of every day.
"""

from typing import NamedTuple

import numpy as np

from elfmem_sim.kernel._compile import compiled
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.score import clear_top, insert_top
from elfmem_sim.kernel.state import Agent, Calendar, Floats, Ints, Rules

_EVENTS_A_DAY = 2.0**14  # more than any day has; the same order as in the bridge's tables


class Gate(NamedTuple):
    """Which blocks elfmem's review takes for the centroid; its ``ReviewConfig`` has these names.

    Attributes:
        top_n: At most so many, newest reinforced first.
        min_reinforcement: Only blocks reinforced more often than this.
        window_hours: Only blocks reinforced within so many active hours.
    """

    top_n: int
    min_reinforcement: int
    window_hours: float


@compiled
def follow(
    agent: Agent, rules: Rules, calendar: Calendar, gate: Gate, centroids: Floats, counts: Ints
) -> None:
    """Live a newborn agent's days and take the centroid at the end of each.

    Args:
        agent: A newborn agent.
        rules: The run's constants.
        calendar: What each day holds.
        gate: Which blocks count.
        centroids: Receives the mean of the blocks' topics, not normalised, 0 where there is none,
            ``float64[days, dimension]``.
        counts: Receives the number of blocks in the mean, ``int64[days]``.
    """
    times = np.empty(gate.top_n)
    rows = np.empty(gate.top_n, np.int64)
    for day in range(centroids.shape[0]):
        advance(agent, rules, calendar, day, day + 1)
        counts[day] = _newest(agent, rules.hours_per_day, gate, day + 1, times, rows)
        centroids[day] = 0.0
        for i in rows[: counts[day]]:
            centroids[day] += agent.topic[i] / counts[day]


@compiled
def _newest(
    agent: Agent, hours_per_day: float, gate: Gate, step: int, times: Floats, rows: Ints
) -> int:
    """Put the rows of the newest reinforced ordinary blocks into ``rows`` and count them."""
    clear_top(times, rows, -np.inf)
    for i in range(agent.blocks[0] - 1, agent.decay.shape[0] - 1, -1):
        used = agent.used_step[i]
        inside = (step - used) * hours_per_day < gate.window_hours
        if inside and agent.reinforcement[i] > gate.min_reinforcement:
            insert_top(used * _EVENTS_A_DAY + agent.used_event[i], i, times, rows)
    return int(np.sum(rows >= 0))
