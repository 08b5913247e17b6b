"""What the scenarios really do: how far the self moves, and what a review would see of it.

A scenario is described by a regime's blend or a drift's sigma. What decides a result is the angle
that these make, and how far elfmem's drift score gets from its threshold. Both are measured here on
the baseline agent, whose constitution nobody amends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.kernel.centroid import Gate, follow
from elfmem_sim.review import review_config
from elfmem_sim.scenario import Review, Scenario, load_scenario
from elfmem_sim.simulate import prepare
from elfmem_sim.stats import mean_interval, share_interval
from elfmem_sim.study import in_order

Floats = NDArray[np.float64]

WORLDS = (
    "adr-0003/stable",
    "adr-0003/slow_drift",
    "adr-0003/regime_change",
    "adr-0003/quiet_burst",
    "adr-0003/adversarial",
    "adr-0003-self-architect/drift",
    "adr-0003-self-architect/regime_change",
)
USES_PER_LEARN = 3
"""Uses of a learned block. A review sees no block used less, and so would have no centroid; the
self's path does not depend on it."""

COLUMNS = (
    "scenario", "quantity", "unit", "mean", "sd", "q05", "q25", "median", "q75", "q95", "low",
    "high", "n",
)  # fmt: skip

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_SEEDS_PER_TASK = 50


@dataclass(frozen=True)
class World:
    """One seed's world, as an unamended constitution meets it.

    Attributes:
        identity: The self's direction at each step, ``float64[days + 1, dimension]``.
        drift: elfmem's drift score of each constitutional block at the end of each day,
            ``float64[days, size]``; NaN on days on which a review would see too little history.
        evidence_blocks: Blocks in the centroid, ``int64[days]``.
    """

    identity: Floats
    drift: Floats
    evidence_blocks: NDArray[np.int64]


def live_through(scenario: Scenario, seed: int) -> World:
    """Live one baseline agent through ``scenario`` and score its constitution at every day's end.

    Blocks are used ``USES_PER_LEARN`` times when learned, whatever the scenario says, and reviews
    are elfmem's shipped ones.

    Raises:
        UserError: If the seed is none or elfmem is not supported.
    """
    config = review_config(Review())
    gate = Gate(config.top_n, config.min_reinforcement, float(config.window_hours))
    workload = scenario.workload.model_copy(update={"uses_per_learn": USES_PER_LEARN})
    used = scenario.model_copy(update={"workload": workload})
    agent, rules, calendar = prepare(used, ARMS["baseline"], seed)
    days, dimension = scenario.horizon_days, scenario.identity.dimension
    centroids, counts = np.empty((days, dimension)), np.empty(days, np.int64)
    follow(agent, rules, calendar, gate, centroids, counts)
    drift = drift_scores(agent.origin, centroids)
    drift[counts < config.min_recent_reinforced_blocks] = np.nan
    return World(agent.identity, drift, counts)


def drift_scores(constitution: Floats, centroids: Floats) -> Floats:
    """Return elfmem's drift scores, ``(1 - cosine) / 2``; .5 where a direction is undefined.

    Args:
        constitution: Unit vectors, ``float64[size, dimension]``.
        centroids: Of any length, ``float64[days, dimension]``.

    Returns:
        ``float64[days, size]``, from 0 to 1.
    """
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    directions = centroids / np.where(lengths > 0.0, lengths, 1.0)
    return np.asarray((1.0 - np.clip(directions @ constitution.T, -1.0, 1.0)) / 2.0)


def angles(first: Floats, second: Floats) -> Floats:
    """Return the angles between unit vectors, row by row, in degrees.

    By the half-angle tangent: the arc cosine loses half of the digits of a small angle.
    """
    apart = np.linalg.norm(first - second, axis=-1)
    together = np.linalg.norm(first + second, axis=-1)
    return np.asarray(np.degrees(2.0 * np.arctan2(apart, together)))


def measure_worlds(
    seeds: Sequence[int], scenarios: Sequence[str] = WORLDS, *, workers: int = 1
) -> pd.DataFrame:
    """Measure the scenarios over many seeds.

    Args:
        seeds: Seeds of the worlds, at least one.
        scenarios: Names of scenarios; the default is ADR 0003's.
        workers: Processes; the result does not depend on it.

    Returns:
        One row per scenario and quantity, with the columns in ``COLUMNS``. ``low`` and ``high`` are
        the ends of the 95 % interval of the mean (Student's, over seeds) or of the share (Clopper
        and Pearson's); ``n`` counts seeds. The quantities:

        - ``angle_day_120``: between the self before and after a jump, one row per jump; and
          ``angle_ordinary_day``: the same on the last day without a jump.
        - ``angle_net``: between the self at birth and at the end; ``path``: the sum of all days'.
        - ``drift_block_end``, ``drift_block_peak``: drift score of each constitutional block at the
          end, and its highest; quantiles and sd are over the blocks of all seeds.
        - ``drift_mean_end``, ``drift_mean_peak``: the same of the mean over the blocks.
        - ``drift_most_end``, ``drift_most_peak``: the same of the block that scores highest.
        - ``share_any_above``, ``share_mean_above``: share of seeds in which any block, or the mean
          over blocks, is above elfmem's shipped ``drift_threshold`` at the end of any day.
        - ``first_day_any_above``, ``first_day_mean_above``: the first such day in those seeds.

    Raises:
        UserError: If there is no such scenario, it gives a review nothing to judge, a seed is none,
            or elfmem is not supported.
        ValueError: If there are no seeds.
    """
    if not seeds:
        raise ValueError("no seeds given; expected at least one")
    threshold = float(review_config(Review()).drift_threshold)
    chunks = [
        tuple(seeds[at : at + _SEEDS_PER_TASK]) for at in range(0, len(seeds), _SEEDS_PER_TASK)
    ]
    rows: list[tuple[object, ...]] = []
    for name in scenarios:
        scenario = load_scenario(name)
        values: dict[str, list[Floats]] = {}
        for part in in_order(partial(_quantities, scenario, threshold), chunks, workers):
            for quantity, found in part.items():
                values.setdefault(quantity, []).append(found)
        rows += [
            (name, quantity, *_describe(quantity, np.concatenate(found)))
            for quantity, found in values.items()
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _quantities(scenario: Scenario, threshold: float, seeds: tuple[int, ...]) -> dict[str, Floats]:
    """Return each quantity of each seed, ``float64[seeds]`` or ``float64[seeds, size]``."""
    worlds = [live_through(scenario, seed) for seed in seeds]
    found = [dict(_quantities_of(scenario, threshold, world)) for world in worlds]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def _quantities_of(
    scenario: Scenario, threshold: float, world: World
) -> Iterator[tuple[str, Floats]]:
    moved = angles(world.identity[:-1], world.identity[1:])
    jumps = [regime.day for regime in scenario.identity.regimes]
    for day in jumps:
        yield f"angle_day_{day}", moved[day]
    ordinary = max(set(range(len(moved))) - set(jumps))
    yield "angle_ordinary_day", moved[ordinary]
    yield "angle_net", angles(world.identity[0], world.identity[-1])
    yield "path", moved.sum()
    days = np.flatnonzero(~np.isnan(world.drift).all(axis=1))
    if days.size == 0:
        raise UserError(
            scenario.name,
            "a world with a constitution and enough history for a review",
            "Choose another scenario.",
            "scenario",
        )
    judged = world.drift[days]
    yield "drift_block_end", judged[-1]
    yield "drift_block_peak", judged.max(axis=0)
    for name, score in (("mean", judged.mean(axis=1)), ("most", judged.max(axis=1))):
        yield f"drift_{name}_end", score[-1]
        yield f"drift_{name}_peak", score.max()
        above = days[score > threshold]
        who = "any" if name == "most" else name
        yield f"share_{who}_above", np.array(above.size > 0, np.float64)
        yield f"first_day_{who}_above", np.array(above[0] if above.size else np.nan, np.float64)


def _describe(quantity: str, values: Floats) -> tuple[object, ...]:
    """Return unit, mean, sd, quantiles, interval and n of one quantity."""
    nothing = (np.nan,) * (1 + len(_QUANTILES))
    if quantity.startswith("share"):
        n, seen = values.size, int(values.sum())
        low, high = share_interval(seen, n)
        return ("%", 100.0 * seen / n, *nothing, 100.0 * low, 100.0 * high, n)
    if quantity.startswith("first_day"):
        unit, values = "day", values[~np.isnan(values)]
        if values.size == 0:
            return (unit, np.nan, *nothing, np.nan, np.nan, 0)
    else:
        unit = "drift score" if quantity.startswith("drift") else "degrees"
    # Blocks of one seed are no independent sample: the interval is over the seeds' means.
    estimate = mean_interval(values.reshape(len(values), -1).mean(axis=1))
    sd = float(values.std(ddof=1)) if values.size > 1 else np.nan
    quantiles = np.quantile(values, _QUANTILES).tolist()
    return (unit, estimate.mean, sd, *quantiles, estimate.low, estimate.high, estimate.n)
