"""ADR 0003's baseline: a permanent constitution that takes part in ATTENTION like any block."""

from elfmem_sim.scenario import Arm

BASELINE = Arm(
    name="baseline",
    description="Constitution permanent, heavily seeded, and never changed.",
)
