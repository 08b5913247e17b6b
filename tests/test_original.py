"""Beside the original simulator, at seeds that nobody published."""

import os
import warnings

import numpy as np
import original
import pytest

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import SNAPSHOT_FIELDS
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import simulate

pytestmark = pytest.mark.original

FURTHER = os.environ.get("ELFMEM_SIM_SEEDS", "").split()
SEEDS = list(dict.fromkeys([11, 12345, *map(int, FURTHER)]))


@pytest.fixture(scope="session")
def simulator():
    try:
        return original.load("mc_scenarios")
    except original.OriginalUnavailableError as reason:
        warnings.warn(f"not compared with the original simulator: {reason}", stacklevel=2)
        pytest.skip(str(reason))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", original.SCENARIOS)
@pytest.mark.parametrize("their_arm", original.ARMS)
def test_every_number_of_a_run_equals_the_originals(simulator, their_arm, scenario, seed):
    theirs = simulator.simulate(
        simulator.STRATEGIES[their_arm], simulator.SCENARIOS[scenario], seed
    )
    ours = simulate(load_scenario(f"adr-0003/{scenario}"), ARMS[original.ARMS[their_arm]], seed)
    fields = list(theirs["weekly"][0])
    np.testing.assert_allclose(
        ours.snapshots[:, [SNAPSHOT_FIELDS.index(field) for field in fields]],
        [[row[field] for field in fields] for row in theirs["weekly"]],
        rtol=0,
        atol=1e-9,
    )
    assert ours.n_blocks == theirs["n_blocks"]
    assert ours.self_query_concentration == pytest.approx(
        theirs["self_query_concentration"], rel=0, abs=1e-9
    )
