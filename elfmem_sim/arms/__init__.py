"""The arms: one file each, one way of building an agent each."""

from elfmem_sim.arms.architecture_m import ARCHITECTURE_M
from elfmem_sim.arms.baseline import BASELINE
from elfmem_sim.arms.model_c import MODEL_C
from elfmem_sim.arms.model_d import MODEL_D
from elfmem_sim.arms.review import REVIEW
from elfmem_sim.arms.scoring import CURRENT, V016_ADDITIVE, V017_EXPLORATION, V017_FULL
from elfmem_sim.arms.self_architect import (
    SELF_ARCHITECT,
    SELF_ARCHITECT_BLIND,
    SELF_ARCHITECT_COMMON,
    SELF_ARCHITECT_QUERIES,
    SELF_ARCHITECT_ROLLOUT,
)
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import Arm

ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        BASELINE,
        ARCHITECTURE_M,
        MODEL_C,
        MODEL_D,
        REVIEW,
        CURRENT,
        V016_ADDITIVE,
        V017_EXPLORATION,
        V017_FULL,
        SELF_ARCHITECT,
        SELF_ARCHITECT_COMMON,
        SELF_ARCHITECT_QUERIES,
        SELF_ARCHITECT_ROLLOUT,
        SELF_ARCHITECT_BLIND,
    )
}
"""All arms by name."""


def get_arm(name: str) -> Arm:
    """Return the arm called ``name``.

    Raises:
        UserError: If there is none.
    """
    if name not in ARMS:
        raise UserError(name, f"one of {', '.join(ARMS)}", "Correct the arm's name.", "--arm")
    return ARMS[name]
