"""A tuning study's tables, row by row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.stats import Estimate, mean_interval, paired_difference
from elfmem_sim.tuning.objectives import OBJECTIVES, Array
from elfmem_sim.tuning.recommend import Judgement
from elfmem_sim.tuning.sensitivity import Effects, Indices
from elfmem_sim.tuning.space import Field

ESTIMATE = ("mean", "mcse", "low", "high", "n")
"""Columns of an estimate."""

REASONS = ("insufficient_history", "cooldown", "drift", "evidence", "age", "cap", "proposed")
"""What becomes of a block at a review, in the order in which elfmem asks."""

ROBUSTNESS = (
    "assumption", "level", "setting", "gain", "gain_low", "gain_high", "tax", "amendments",
    "difference", "low", "high", "rank", "n",
)  # fmt: skip
"""Columns of the robustness table; the difference is in gain, to the defaults."""


def numbers(e: Estimate) -> tuple[float, float, float, float, int]:
    """Return an estimate in the order of ``ESTIMATE``."""
    return e.mean, e.mcse, e.low, e.high, e.n


def gate_shares(reviews: Iterable[tuple[str, int, Any]]) -> pd.DataFrame:
    """Return what became of the constitutional blocks at each review.

    Args:
        reviews: Scenario, number of constitutional blocks, and the explained review's record.

    Returns:
        Columns scenario, day, reason, share, n: the share, in percent, of all blocks of all seeds
        at the reviews of that day, and their number.
    """
    counts: dict[tuple[str, int], dict[str, int]] = {}
    for scenario, size, record in reviews:
        found = counts.setdefault((scenario, record.day), dict.fromkeys(REASONS, 0))
        if record.insufficient_history:
            found["insufficient_history"] += size
            continue
        for reason, blocks in record.reasons.items():
            found[reason] += blocks
        found["proposed"] += record.proposals + record.failed
    rows = [
        (scenario, day, reason, 100.0 * blocks / sum(found.values()), sum(found.values()))
        for (scenario, day), found in counts.items()
        for reason, blocks in found.items()
    ]
    return pd.DataFrame(rows, columns=["scenario", "day", "reason", "share", "n"])


def morris_table(fields: Sequence[Field], effects: Mapping[str, Effects], n: int) -> pd.DataFrame:
    """Return one row per objective and field; effects of a step across the whole range."""
    rows = [
        (
            objective, field.name, OBJECTIVES[objective].unit, e.mean_absolute[i], e.mcse[i],
            e.mean[i], e.spread[i], n,
        )
        for objective, e in effects.items()
        for i, field in enumerate(fields)
    ]  # fmt: skip
    columns = ["objective", "field", "unit", "mean_absolute", "mcse", "mean", "spread", "n"]
    return pd.DataFrame(rows, columns=columns)


def sobol_table(
    fields: Sequence[Field], indices: Mapping[str, Indices], values: Mapping[str, Array]
) -> pd.DataFrame:
    """Return one row per objective and field: indices, intervals, and how often nothing moved.

    ``unmoved`` is the percentage of the design's pairs of settings, alike but for this field, whose
    objective is the same; ``same_as`` names an earlier objective with the same values everywhere.
    """
    rows = []
    for objective, found in indices.items():
        earlier = list(indices)[: list(indices).index(objective)]
        twins = [name for name in earlier if np.array_equal(values[name], values[objective])]
        for i, field in enumerate(fields):
            same = values[objective][2 + i] == values[objective][0]
            rows.append(
                (
                    objective, field.name, found.first[i], found.first_low[i], found.first_high[i],
                    found.total[i], found.total_low[i], found.total_high[i],
                    100.0 * float(np.mean(same)), "".join(twins[:1]), values[objective].shape[1],
                )
            )  # fmt: skip
    columns = [
        "objective", "field", "first", "first_low", "first_high", "total", "total_low",
        "total_high", "unmoved", "same_as", "n",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def difference_table(
    outcomes: Mapping[str, Array], default: Array, conditions: Sequence[str]
) -> pd.DataFrame:
    """Return each recommendation's paired difference to the defaults.

    Columns: recommendation, condition, estimand, and those of an estimate.
    """
    rows = [
        (
            name,
            condition,
            estimand,
            *numbers(paired_difference(outcome[c, :, i], default[c, :, i])),
        )
        for name, outcome in outcomes.items()
        for c, condition in enumerate(conditions)
        for i, estimand in enumerate(ESTIMANDS)
    ]
    return pd.DataFrame(rows, columns=["recommendation", "condition", "estimand", *ESTIMATE])


def judgement_table(
    judged: Sequence[Judgement],
    by_seed: Mapping[str, Mapping[str, Array]],
    default: Mapping[str, Array],
) -> pd.DataFrame:
    """Return each recommendation's objectives beside the defaults', with paired differences.

    Columns: recommendation, objective, unit, value, default, those of an estimate (of the
    difference), p (of a larger gain, Holm-adjusted; NaN for other objectives).
    """
    rows = []
    for j in judged:
        for name, values in by_seed[j.name].items():
            e = paired_difference(values, default[name])
            rows.append(
                (
                    j.name, name, OBJECTIVES[name].unit, values.mean(), default[name].mean(),
                    *numbers(e), j.p if name == "gain_mean" else np.nan,
                )
            )  # fmt: skip
    columns = ["recommendation", "objective", "unit", "value", "default", *ESTIMATE, "p"]
    return pd.DataFrame(rows, columns=columns)


def robustness_rows(
    assumption: str, level: str, by_seed: Mapping[str, Mapping[str, Array]]
) -> list[tuple[Any, ...]]:
    """Return one row per setting under one assumption, in the order of ``ROBUSTNESS``.

    Args:
        assumption: What is assumed.
        level: Its value.
        by_seed: Each setting's objectives by seed, ``defaults`` among them.
    """
    gains = {name: float(values["gain_mean"].mean()) for name, values in by_seed.items()}
    rows = []
    for name, values in by_seed.items():
        gain = mean_interval(values["gain_mean"])
        to_default = paired_difference(values["gain_mean"], by_seed["defaults"]["gain_mean"])
        rank = 1 + sum(other > gains[name] for other in gains.values())
        tax = float(values["tax"].mean()) if "tax" in values else np.nan
        rows.append(
            (
                assumption, level, name, gain.mean, gain.low, gain.high, tax,
                float(values["amendments"].mean()), to_default.mean, to_default.low,
                to_default.high, rank, gain.n,
            )
        )  # fmt: skip
    return rows
