"""ADR 0004's manual review on the baseline agent, by elfmem's own review module.

The ADR does not say how often its simulation reviewed, who accepted, or what an accepted text
became. The defaults here are a monthly review, an owner who accepts every proposal, and a proposer
that writes exactly what its evidence says: the most favourable reading that the shipped
``ReviewConfig`` allows. Each field of :class:`elfmem_sim.scenario.Review` can be set otherwise.
"""

from elfmem_sim.arms.baseline import BASELINE
from elfmem_sim.scenario import Review

REVIEW = BASELINE.model_copy(
    update={
        "name": "review",
        "description": "As the baseline, with a monthly review by elfmem and every proposal "
        "accepted.",
        "review": Review(),
    }
)
