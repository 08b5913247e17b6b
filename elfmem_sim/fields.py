"""The names of what is measured, in a module that costs nothing to import."""

KNOBS = ("attention_const_weight", "ego_alpha", "distribute_n", "self_check_freq")
"""ADR 0003's four parameters, in the order in which an adapting agent tries them."""

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
    "conf_entropy",
    "mean_evidence",
    "p95_evidence",
    "top_k_diversity",
    "n_blocks",
    "rescore_damage",
    *KNOBS,
)
"""Columns of a snapshot, in order; see :func:`elfmem_sim.kernel.vitals.measure`.

``rescore_damage`` is the mean change that rescoring has made to established confidence so far."""

PRODUCTION_FIELDS = (
    *SNAPSHOT_FIELDS,
    "self_frame_align",
    "self_frame_blocks",
    "answer_blocks",
    "rejected",
    "superseded",
    "suppressed",
    "decayed",
    "const_evidence",
    "eligible_blocks",
    "centroid_age",
)
"""Columns of a snapshot in the production tier; see :meth:`elfmem_sim.production.Life.measure`."""

TIERS = {"model": SNAPSHOT_FIELDS, "production": PRODUCTION_FIELDS}
"""What a scenario can be run on, with the columns that it measures."""

COUNTS = frozenset({"day", "const_alive", "n_blocks"})
"""Columns that hold whole numbers."""

ESTIMANDS = (
    "quality_ratio",
    "quality_ratio_over_time",
    "recent_reach",
    "ego_moat",
    "const_align_to_self",
    "retention",
    "amendments_per_year",
    "proposer_calls_per_year",
)
"""What a run is judged by, in order; the last two are counts, all others shares."""
