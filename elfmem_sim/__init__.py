"""elfmem-sim: a Monte-Carlo harness for the agent-memory library elfmem.

The whole flow in a few lines::

    import elfmem_sim as es

    scenario = es.load_scenario("adr-0004/regime_change")
    life = es.replay(scenario, es.get_arm("review"), seed=0)  # one run
    print(life.final("quality_ratio"), len(life.amendments))

    study = es.run(["adr-0004/regime_change"], arms=["baseline", "review"], seeds=50)
    print(study.differences)  # paired by seed, with Monte-Carlo errors

    audit = es.verify("adr-0004", seeds=50)
    print([(v.id, v.verdict) for v in audit.verdicts])
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from elfmem_sim.arms import get_arm as get_arm
    from elfmem_sim.errors import InvariantError as InvariantError
    from elfmem_sim.errors import UserError as UserError
    from elfmem_sim.experiment import run as run
    from elfmem_sim.scenario import load_scenario as load_scenario
    from elfmem_sim.scenario import override as override
    from elfmem_sim.simulate import simulate as replay  # noqa: F401
    from elfmem_sim.verification import verify as verify

_HOMES = {
    "InvariantError": "errors.InvariantError",
    "UserError": "errors.UserError",
    "get_arm": "arms.get_arm",
    "load_scenario": "scenario.load_scenario",
    "override": "scenario.override",
    "replay": "simulate.simulate",
    "run": "experiment.run",
    "verify": "verification.verify",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elfmem_sim' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name].split(".")
    return getattr(import_module(f"elfmem_sim.{module}"), attribute)
