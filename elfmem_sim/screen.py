"""Many review settings in one life, for as long as none of them makes a difference.

Agents that differ in elfmem's ``ReviewConfig`` alone live the same life until the proposer is first
called. So one agent is simulated, elfmem is asked at each of its reviews with every setting, and a
setting that never calls the proposer has this life for its result. The others are simulated in
full, each on its own.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.scenario import Arm, Scenario
from elfmem_sim.study import in_order

Task = tuple[Scenario, tuple[Arm, ...], int]
"""A scenario, arms that differ in ``review.config`` alone, and a seed."""


def quiet_life(
    scenario: Scenario, arms: Sequence[Arm], seed: int
) -> tuple[NDArray[np.float64], list[int]]:
    """Find the arms whose proposer is never called, and their common life.

    Args:
        scenario: The world.
        arms: Arms that differ in ``review.config`` alone.
        seed: The run's seed.

    Returns:
        The life's snapshots, ``float64[measured, len(SNAPSHOT_FIELDS)]``, and the indices of the
        arms that live it. No snapshots if there is none.

    Raises:
        UserError: If elfmem refuses a configuration.
    """
    from elfmem_sim.kernel.loop import advance
    from elfmem_sim.review import Bridge, review_config
    from elfmem_sim.simulate import prepare

    agent, rules, calendar = prepare(scenario, arms[0], seed)
    bridge = Bridge(agent, scenario, arms[0], seed)
    left = {i: review_config(arm.review) for i, arm in enumerate(arms) if arm.review is not None}
    review = arms[0].review
    assert review is not None
    parts = []
    day = 0
    while day < scenario.horizon_days and left:
        end = min(bridge.next_stop(day), scenario.horizon_days)
        parts.append(advance(agent, rules, calendar, day, end))
        if end % review.cadence_days == 0:
            bridge.sync(end)
            left = {i: c for i, c in left.items() if not bridge.would_call(c, end)}
        day = end
    return (np.concatenate(parts) if left else np.empty((0, 0))), list(left)


def quiet_lives(
    tasks: Sequence[Task], workers: int
) -> Iterator[tuple[int, NDArray[np.float64], list[int]]]:
    """Find quiet lives in parallel; yields each task's number and result, in order."""
    for number, (snapshots, quiet) in enumerate(in_order(_quiet_life, tasks, workers)):
        yield number, snapshots, quiet


def _quiet_life(task: Task) -> tuple[NDArray[np.float64], list[int]]:
    return quiet_life(*task)
