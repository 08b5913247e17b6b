"""The scoring arms of ADR 0001 and 0002: what became of a block's evidence, and how it fades.

They were published on a corpus without a constitution and without the cold-start floor.
"""

from elfmem_sim.scenario import Arm

CURRENT = Arm(
    name="current",
    description="Scoring before v0.16: a rescore overwrites confidence.",
    cold_start_floor=False,
)
V016_ADDITIVE = CURRENT.model_copy(
    update={
        "name": "v016_additive",
        "description": "A rescore adds evidence instead of overwriting confidence.",
        "additive_rescore": True,
    }
)
V017_EXPLORATION = V016_ADDITIVE.model_copy(
    update={
        "name": "v017_exploration",
        "description": "Additive rescore, and a ranking bonus for uncertain blocks.",
        "exploration": 0.05,
    }
)
V017_FULL = V017_EXPLORATION.model_copy(
    update={
        "name": "v017_full",
        "description": "Additive rescore, exploration bonus, and power-law decay.",
        "power_law": True,
    }
)
