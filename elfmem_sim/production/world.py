"""What happens to a production agent, whatever its arm: the model tier's world at the same seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.rng import new_stream, reseed, reserve
from elfmem_sim.kernel.state import Calendar
from elfmem_sim.kernel.topic import perturb
from elfmem_sim.kernel.vitals import PROBE_SEED
from elfmem_sim.scenario import Arm, Scenario
from elfmem_sim.simulate import prepare

ANY = Arm(name="any", description="The world is the same in every arm.")


@dataclass(frozen=True)
class World:
    """What happens to an agent.

    Attributes:
        calendar: What each day holds.
        identity: The self's direction at each step, ``float64[days + 1, dimension]``.
        constitution: Topics of the constitution at birth, ``float64[size, dimension]``.
        corpus: Topics of what else is known at birth, ``float64[n, dimension]``.
        learned: Topics learned on each day, ``float64[n, dimension]`` each.
    """

    calendar: Calendar
    identity: NDArray[np.float64]
    constitution: NDArray[np.float64]
    corpus: NDArray[np.float64]
    learned: tuple[NDArray[np.float64], ...]


def world_of(scenario: Scenario, seed: int, *, daily: bool = False) -> World:
    """Return the model tier's world at ``seed``, by living there.

    The self moves, and blocks are learned, in the scenario's own dimensions: an angle per day is
    the same in both tiers, whatever the dimension of the embeddings.

    Raises:
        UserError: If the seed is none.
    """
    agent, rules, calendar = prepare(scenario, ANY, seed, daily=daily)
    days, size = scenario.horizon_days, scenario.constitution.size
    advance(agent, rules, calendar, 0, days)
    known, count = size + scenario.corpus.size, int(agent.blocks[0])
    # What is learned on a day is born at its step, one more than the day.
    ends = np.searchsorted(agent.birth_step[known:count], np.arange(2, days + 1))
    return World(
        calendar=calendar,
        identity=agent.identity,
        constitution=agent.topic[:size],
        corpus=agent.topic[size:known],
        learned=tuple(np.split(agent.topic[known:count], ends)),
    )


def probes_of(scenario: Scenario, world: World, day: int) -> NDArray[np.float64]:
    """Return the model tier's probe queries of ``day``, ``float64[n, dimension]``."""
    dimension = world.identity.shape[1]
    draws = scenario.measurement.queries * (dimension + 1)
    stream = new_stream(2 * draws)
    reseed(stream, PROBE_SEED + day)
    reserve(stream, draws)
    probes = np.empty((scenario.measurement.queries, dimension))
    for probe in probes:
        perturb(world.identity[day + 1], stream, scenario.workload.query_spread, probe)
    return probes
