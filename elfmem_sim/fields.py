"""The names of what is measured, in a module that costs nothing to import."""

SNAPSHOT_FIELDS = (
    "day",
    "quality",
    "quality_ratio",
    "recent_reach",
    "ego_moat",
    "es_mean",
    "es_max",
    "es_min",
    "es_concentration",
    "const_alive",
    "const_align_to_self",
    "retention",
)
"""Columns of a snapshot, in order; see :func:`elfmem_sim.kernel.vitals.measure`."""
