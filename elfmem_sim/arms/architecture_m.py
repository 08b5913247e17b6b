"""ADR 0003's Architecture M: the constitution is kept out of ATTENTION."""

from elfmem_sim.scenario import Arm

ARCHITECTURE_M = Arm(
    name="architecture_m",
    description="As the baseline, but ATTENTION never returns constitutional blocks.",
    constitution_weight=0.0,
)
