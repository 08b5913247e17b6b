"""Beside the original simulator, at seeds that nobody published."""

import os
import warnings

import numpy as np
import original
import pytest

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import KNOBS, SNAPSHOT_FIELDS
from elfmem_sim.scenario import load_scenario
from elfmem_sim.simulate import simulate

pytestmark = pytest.mark.original

FURTHER = os.environ.get("ELFMEM_SIM_SEEDS", "").split()
SEEDS = list(dict.fromkeys([11, 12345, *map(int, FURTHER)]))
COLUMN = {name: i for i, name in enumerate(SNAPSHOT_FIELDS)}
COLUMN["bedrock_moat"] = COLUMN["ego_moat"]


def simulator(module):
    try:
        return original.load(module)
    except original.OriginalUnavailableError as reason:
        warnings.warn(f"not compared with the original simulator: {reason}", stacklevel=2)
        pytest.skip(str(reason))


def assert_same_vitals(ours, theirs):
    fields = list(theirs["weekly"][0])
    np.testing.assert_allclose(
        ours.snapshots[:, [COLUMN[field] for field in fields]],
        [[row[field] for field in fields] for row in theirs["weekly"]],
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", original.SCENARIOS)
@pytest.mark.parametrize("their_arm", original.ARMS)
def test_every_number_of_a_scenario_run_equals_the_originals(their_arm, scenario, seed):
    module = simulator("mc_scenarios")
    theirs = module.simulate(module.STRATEGIES[their_arm], module.SCENARIOS[scenario], seed)
    ours = simulate(load_scenario(f"adr-0003/{scenario}"), ARMS[original.ARMS[their_arm]], seed)
    assert_same_vitals(ours, theirs)
    assert ours.n_blocks == theirs["n_blocks"]
    assert ours.self_query_concentration == pytest.approx(
        theirs["self_query_concentration"], rel=0, abs=1e-9
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("scenario", "arm"),
    [
        ("baseline", "v017_exploration"),
        ("weekly_rescore", "current"),
        ("weekly_rescore", "v016_additive"),
        ("uncertain_mix", "v017_full"),
    ],
)
def test_every_number_of_a_scoring_run_equals_the_originals(scenario, arm, seed):
    module = simulator("mc_scoring_proposed")
    theirs = module.simulate(module.STRATEGIES[arm], module.SCENARIOS[scenario], seed)
    ours = simulate(load_scenario(f"adr-0001/{scenario}"), ARMS[arm], seed)
    assert_same_vitals(ours, theirs)
    damage = [abs(before - after) for _, before, after, _ in theirs["rescore_damage_samples"]]
    assert ours.rescored[1] == len(damage)
    assert ours.rescored[0] == pytest.approx(sum(damage), rel=0, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", ["stable", "drift", "regime_change"])
@pytest.mark.parametrize("arm", ["baseline", "model_d", "self_architect"])
def test_every_number_of_a_self_architect_run_equals_the_originals(arm, scenario, seed):
    module = simulator("mc_self_architect")
    start = module.Params(*original.PARAMETERS[arm])
    adapts = arm == "self_architect"
    theirs = module.simulate(start, module.SCENARIOS[scenario], seed, self_architect=adapts)
    ours = simulate(load_scenario(f"adr-0003-self-architect/{scenario}"), ARMS[arm], seed)
    assert_same_vitals(ours, theirs)
    assert list(ours.moves) == [(day, move) for day, move, _ in theirs["param_history"]]
    assert dict(zip(KNOBS, ours.knobs, strict=True)) == pytest.approx(
        theirs["final_params"], rel=0, abs=1e-9
    )
