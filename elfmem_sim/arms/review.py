"""ADR 0004's manual review on the baseline agent, by elfmem's own review module.

The ADR does not say how often its simulation reviewed, who accepted, or what an accepted text
became. The defaults here are a monthly review, an owner who accepts every proposal, and a proposer
that writes exactly what its evidence says: the most favourable reading that the shipped
``ReviewConfig`` allows. Every setting can be changed: ``--set review.cadence_days=90``.
"""

from elfmem_sim.arms.baseline import BASELINE
from elfmem_sim.scenario import Review

REVIEW = BASELINE.model_copy(
    update={
        "name": "review",
        "description": "As the baseline, with a monthly review by elfmem and every proposal "
        "accepted.",
        "review": Review(
            cadence_days=30,  # a review at the end of every thirtieth day
            config={},  # none of the nine ReviewConfig fields differs from elfmem's defaults
            proposer_move=1.0,  # the text moves all the way to the mean of its evidence
            proposer_noise=0.0,  # and says exactly that
            proposer_failure_rate=0.0,  # the proposer always answers
            accept_probability=1.0,  # the owner accepts every proposal (0 accepts none)
            accept_above_drift=0.0,  # whatever its drift score
            revert_probability=0.0,  # and regrets none
            revert_after_days=30,  # (a regretted amendment is reverted after so many days)
        ),
    }
)
