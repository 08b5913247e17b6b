"""ADR 0003's Model D: Model C with a SELF query's outcome shared by its first three blocks."""

from elfmem_sim.arms.model_c import MODEL_C
from elfmem_sim.scenario import Ego

MODEL_D = MODEL_C.model_copy(
    update={
        "name": "model_d",
        "description": "Model C, with outcomes shared by the first three blocks of a SELF query.",
        "ego": Ego(distribute=3),
    }
)
