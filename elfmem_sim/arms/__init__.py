"""The arms: one file each, one way of building an agent each."""

from pathlib import Path
from typing import Any

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
    """Return the arm called ``name``, or the review arm with the settings of an elfmem file.

    Args:
        name: A name, or the path of an elfmem configuration (``.yaml``) with a ``review`` block;
            the arm is then called after the file.

    Raises:
        UserError: If there is none, or the file has no such block. Whether elfmem accepts what is
            in the block shows when the arm is run.
    """
    if name.endswith((".yaml", ".yml")):
        return _from_yaml(Path(name))
    if name not in ARMS:
        raise UserError(name, f"one of {', '.join(ARMS)}", "Correct the arm's name.", "--arm")
    return ARMS[name]


def _from_yaml(path: Path) -> Arm:
    import yaml

    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            str(path), "a readable file", f"The system says: {error.strerror}.", "--arm"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        document = None
    block = document.get("review") if isinstance(document, dict) else None
    if not isinstance(block, dict) or not all(
        isinstance(key, str) and isinstance(value, int | float) for key, value in block.items()
    ):
        raise UserError(
            str(path),
            "an elfmem configuration with a `review:` block of numbers",
            "Write the block, or name one of elfmem-sim's arms.",
            "--arm",
        )
    assert REVIEW.review is not None
    review = REVIEW.review.model_copy(update={"config": block})
    description = f"As review, with the settings of {path.name}."
    return REVIEW.model_copy(
        update={"name": path.stem, "description": description, "review": review}
    )
