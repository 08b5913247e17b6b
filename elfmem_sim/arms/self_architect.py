"""ADR 0003's self-architecting agent, and the same hill-climber with sounder objectives.

The published agent compares candidates by eight queries each, drawn afresh for every candidate.
The other arms change nothing but that objective, so that a verdict on the idea can be told from a
verdict on its implementation; one of them tosses coins, as the control of all.
"""

from elfmem_sim.arms.model_c import MODEL_C
from elfmem_sim.scenario import Adapt, Arm, Ego

SELF_ARCHITECT = Arm(
    name="self_architect",
    description="Turns its own four knobs every 28 days, by 8 fresh shadow queries a candidate.",
    constitution_weight=0.0,
    seed=MODEL_C.seed,
    ego=Ego(alpha=0.0, queries_per_day=2, distribute=1),
    adapt=Adapt(),
)


def _variant(name: str, description: str, adapt: Adapt) -> Arm:
    return SELF_ARCHITECT.model_copy(
        update={"name": name, "description": description, "adapt": adapt}
    )


SELF_ARCHITECT_COMMON = _variant(
    "self_architect_common",
    "As self_architect, with the same 8 queries for all candidates of a day.",
    Adapt(common_numbers=True),
)
SELF_ARCHITECT_QUERIES = _variant(
    "self_architect_queries",
    "As self_architect, with the same 200 queries for all candidates of a day.",
    Adapt(common_numbers=True, shadow_queries=200),
)
SELF_ARCHITECT_ROLLOUT = _variant(
    "self_architect_rollout",
    "As self_architect, judging a candidate by living 28 days ahead on common draws.",
    Adapt(common_numbers=True, rollout_days=28),
)
SELF_ARCHITECT_BLIND = _variant(
    "self_architect_blind",
    "As self_architect, but a candidate's value is a coin: the control, which knows nothing.",
    Adapt(shadow_queries=0),
)
