"""From the tidy table of replicates to estimates. Pure functions; everything is paired by seed."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.stats import Estimate, mean_interval, paired_difference, two_seed_percentile

PERCENT = 100.0
SHARES = frozenset(
    {
        "quality_ratio",
        "quality_ratio_over_time",
        "quality",
        "recent_reach",
        "ego_moat",
        "const_align_to_self",
        "retention",
        "self_frame_align",
        "rejected",
        "superseded",
        "suppressed",
        "decayed",
    }
)
"""Estimands reported in percent; their differences are in percentage points."""

SUMMARISED = (*ESTIMANDS, "es_concentration", "rescore_damage")
"""Estimands of every summary, in order."""


def values_of(
    table: pd.DataFrame, scenario: str, arm: str, estimand: str, variant: str = ""
) -> pd.Series:
    """Return an estimand by seed, in percent where it is a share.

    Raises:
        KeyError: If the table has no such cell.
        ValueError: If a seed occurs twice in it.
    """
    rows = table[
        (table["scenario"] == scenario) & (table["arm"] == arm) & (table["variant"] == variant)
    ]
    if rows.empty:
        raise KeyError(f"no replicates of {scenario}, arm {arm}, variant {variant!r}")
    series = rows.set_index("seed")[estimand].sort_index()
    if series.index.has_duplicates:
        raise ValueError(f"{scenario}, arm {arm}, variant {variant!r}: a seed occurs twice")
    return series * PERCENT if estimand in SHARES else series.astype(float)


def differences(
    table: pd.DataFrame,
    scenarios: Sequence[str],
    treatment: str,
    control: str,
    estimand: str,
    variants: tuple[str, str] = ("", ""),
) -> NDArray[np.float64]:
    """Return treatment minus control within each seed, averaged over scenarios with equal weight.

    Args:
        table: Tidy replicates.
        scenarios: Scenario names.
        treatment: Arm.
        control: Arm.
        estimand: Column of the table.
        variants: The variants of treatment and control.

    Returns:
        One difference per seed, in seed order, in percentage points where the estimand is a share.

    Raises:
        ValueError: If the arms or the scenarios were not run at the same seeds.
    """
    total: NDArray[np.float64] | None = None
    seeds: list[int] | None = None
    for scenario in scenarios:
        a, b = _paired(table, scenario, treatment, control, estimand, variants)
        if seeds is not None and list(a.index) != seeds:
            raise ValueError(
                f"{scenario} and {scenarios[0]} have different seeds; a mean over scenarios needs "
                "the same"
            )
        seeds = list(a.index)
        difference = a.to_numpy(float) - b.to_numpy(float)
        total = difference if total is None else total + difference
    if total is None:
        raise ValueError("no scenario given")
    return total / len(scenarios)


def _paired(
    table: pd.DataFrame,
    scenario: str,
    treatment: str,
    control: str,
    estimand: str,
    variants: tuple[str, str],
) -> tuple[pd.Series, pd.Series]:
    a = values_of(table, scenario, treatment, estimand, variants[0])
    b = values_of(table, scenario, control, estimand, variants[1])
    if list(a.index) != list(b.index):
        raise ValueError(
            f"{scenario}: {treatment} and {control} have different seeds; a paired difference "
            "needs the same"
        )
    return a, b


def summarise(table: pd.DataFrame, estimands: Sequence[str]) -> pd.DataFrame:
    """Return mean, Monte-Carlo error and 95 % interval of each estimand in each cell.

    Columns: scenario, arm, variant, estimand, mean, mcse, low, high, n; shares in percent.
    """
    rows = []
    for (scenario, arm, variant), part in table.groupby(["scenario", "arm", "variant"], sort=False):
        for estimand in estimands:
            scale = PERCENT if estimand in SHARES else 1.0
            e = mean_interval(part[estimand].to_numpy(float) * scale)
            rows.append((scenario, arm, variant, estimand, e.mean, e.mcse, e.low, e.high, e.n))
    columns = ["scenario", "arm", "variant", "estimand", "mean", "mcse", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def against_control(table: pd.DataFrame, control: str, estimands: Sequence[str]) -> pd.DataFrame:
    """Return every other arm's paired difference to ``control``, per scenario and estimand.

    Arms are compared within a variant. A scenario without the control has no rows; an arm run at
    more seeds than the control, or fewer, is compared at those up to which both were run.

    Columns: scenario, arm, control, variant, estimand, mean, mcse, low, high, n.

    Raises:
        ValueError: If a seed among those was left out in one of the two.
    """
    rows = []
    for (scenario, variant), part in table.groupby(["scenario", "variant"], sort=False):
        arms = list(dict.fromkeys(part["arm"]))
        for arm in arms if control in arms else ():
            if arm == control:
                continue
            last = part[part["arm"].isin((arm, control))].groupby("arm")["seed"].max().min()
            both = part[part["seed"] <= last]
            for estimand in estimands:
                e = paired_difference(
                    *_paired(both, str(scenario), arm, control, estimand, (str(variant),) * 2)
                )
                rows.append(
                    (scenario, arm, control, variant, estimand, e.mean, e.mcse, e.low, e.high, e.n)
                )
    columns = [
        "scenario", "arm", "control", "variant", "estimand", "mean", "mcse", "low", "high", "n",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def replay_table(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Set each published two-seed figure beside its replay and the population.

    Args:
        table: Tidy replicates that include seeds 0 and 1.
        published: Columns scenario, arm, estimand, value, digits (decimals printed).

    Returns:
        Columns scenario, arm, estimand, published, digits, replayed, mean, low, high, n, sd,
        percentile: the percentile of the replayed two-seed mean among the means of all pairs of
        seeds.
    """
    rows = []
    for row in published.itertuples(index=False):
        values = values_of(table, str(row.scenario), str(row.arm), str(row.estimand))
        replayed = float(values.loc[[0, 1]].mean())
        e: Estimate = mean_interval(values.to_numpy(float))
        rows.append(
            (
                row.scenario,
                row.arm,
                row.estimand,
                row.value,
                row.digits,
                replayed,
                e.mean,
                e.low,
                e.high,
                e.n,
                float(values.std(ddof=1)),
                two_seed_percentile(values.to_numpy(float), replayed),
            )
        )
    columns = [
        "scenario", "arm", "estimand", "published", "digits", "replayed", "mean", "low", "high",
        "n", "sd", "percentile",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
