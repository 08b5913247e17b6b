"""ADR 0003's Model C: Architecture M plus ego strength, fed by the best block of a SELF query."""

from elfmem_sim.scenario import Arm, Ego, Seed

MODEL_C = Arm(
    name="model_c",
    description="Architecture M, with ego strength won by the first block of each SELF query.",
    constitution_weight=0.0,
    seed=Seed(alpha=1.0, beta=0.5, reinforcement=2, edges=2, decay=0.01, ego_strength=20.0),
    ego=Ego(distribute=1),
)
