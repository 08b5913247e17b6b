"""Can the self-architect's objective see its own parameters?

Along the life of the published agent, before each of its adaptations, every candidate is valued by
the published objective and by the sounder ones, each twice on independent draws. What the two
valuations share is signal, what they do not is noise; and a knob to which an objective never
responds on common draws is invisible to it. Measuring changes nothing: no number is drawn from the
run's stream, and the probe stream is seeded anew before every use.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.arms import ARMS
from elfmem_sim.fields import KNOBS
from elfmem_sim.kernel.adapt import HIGHEST, LOWEST, SHADOW_SEEDS, adapt, evaluate, step_of
from elfmem_sim.kernel.loop import advance
from elfmem_sim.kernel.state import TOP_K, WEIGHT, Agent, Calendar, Rules
from elfmem_sim.scenario import Adapt, Scenario, load_scenario
from elfmem_sim.simulate import prepare
from elfmem_sim.stats import mean_interval
from elfmem_sim.streams import generator
from elfmem_sim.study import in_order

SCENARIOS = (
    "adr-0003-self-architect/stable",
    "adr-0003-self-architect/drift",
    "adr-0003-self-architect/regime_change",
)
PUBLISHED, COMMON, QUERIES, ROLLOUT = OBJECTIVES = (
    "self_architect",
    "self_architect_common",
    "self_architect_queries",
    "self_architect_rollout",
)
"""The objectives, each called after the arm that climbs by it."""

SHADOWS = (PUBLISHED, COMMON, QUERIES)
"""Objectives that ask shadow queries: they estimate one quantity, QUERIES the most precisely."""

BLIND = "self_architect_blind"
"""The chooser that knows nothing."""

_CHOOSERS = (*OBJECTIVES, BLIND)

EVALUATIONS = (
    "scenario", "seed", "day", "knob", "direction", "value", "candidate", "weight", "chosen",
    "objective", "common", "first", "second", "null",
)  # fmt: skip
"""Columns of :func:`observe_objectives`."""

RESPONSES = (
    "scenario", "objective", "knob", "direction", "n", "seeds", "mean", "low", "high", "sd",
    "sd_null", "noise", "signal", "signal_to_noise", "agreement", "zero", "visibility",
)  # fmt: skip
"""Columns of :func:`responses`."""

CHOICES = ("scenario", "chooser", "quantity", "unit", "mean", "low", "high", "seeds")
"""Columns of :func:`choices`."""

_POINTS = 100.0
_SEEDS_PER_TASK = 2


class Candidate(NamedTuple):
    """One step of one knob: its index, -1 or 1, and the value that it leads to."""

    knob: int
    direction: int
    value: float


def candidates(knobs: NDArray[np.float64]) -> list[Candidate]:
    """Return the steps that are possible from ``knobs``, in the order in which they are tried."""
    steps = []
    for knob, value in enumerate(knobs.tolist()):
        for direction in (-1, 1):
            moved = value + direction * step_of(knob)
            moved = max(float(LOWEST[knob]), min(float(HIGHEST[knob]), moved))
            if moved != value:
                steps.append(Candidate(knob, direction, moved))
    return steps


def observe_objectives(
    seeds: Sequence[int],
    scenarios: Sequence[str] = SCENARIOS,
    *,
    rollout_seeds: int = 0,
    workers: int = 1,
) -> pd.DataFrame:
    """Value every candidate of every adaptation in the lives of ``self_architect``.

    Args:
        seeds: Seeds of the lives, at least one.
        scenarios: Names of scenarios.
        rollout_seeds: How many of the seeds, the first ones, roll out too: that is slow.
        workers: Processes; the result does not depend on it.

    Returns:
        One row per adaptation, candidate and objective, with the columns in ``EVALUATIONS``:

        - ``knob``, ``direction`` (-1 or 1), ``value`` and ``candidate`` (before and after the
          step), ``weight``: of the constitution in ATTENTION, at present; ``chosen``: whether the
          run took this step.
        - ``common``, ``first``, ``second``, ``null``: differences of two valuations in percentage
          points. ``common`` is candidate less present knobs on the same draws; ``first`` and
          ``second`` are the same as the objective itself draws, each on draws of its own (for the
          published one that is, fresh draws for every valuation); ``null`` is present knobs less
          present knobs, as the objective draws, one for all candidates of a day.

    Raises:
        UserError: If there is no such scenario or a seed is none.
        ValueError: If there are no seeds.
    """
    if not seeds:
        raise ValueError("no seeds given; expected at least one")
    rolled = frozenset(seeds[:rollout_seeds])
    chunks = [
        tuple(seeds[at : at + _SEEDS_PER_TASK]) for at in range(0, len(seeds), _SEEDS_PER_TASK)
    ]
    rows: list[tuple[object, ...]] = []
    for name in scenarios:
        for part in in_order(partial(_observe, load_scenario(name), rolled), chunks, workers):
            rows += part
    return pd.DataFrame(rows, columns=list(EVALUATIONS))


def _observe(
    scenario: Scenario, rolled: frozenset[int], seeds: tuple[int, ...]
) -> list[tuple[object, ...]]:
    return [
        row
        for seed in seeds
        for row in observe(scenario, seed, OBJECTIVES if seed in rolled else SHADOWS)[1]
    ]


def observe(
    scenario: Scenario, seed: int, objectives: Sequence[str] = SHADOWS
) -> tuple[Agent, list[tuple[object, ...]]]:
    """Live one published self-architect, valuing its candidates before each adaptation.

    Args:
        scenario: The world.
        seed: The run's seed.
        objectives: What to value by, of ``OBJECTIVES``; none leaves a plain run.

    Returns:
        The agent at the end of its life, the same whatever was measured, and rows of
        ``EVALUATIONS``.

    Raises:
        UserError: If the seed is none.
    """
    arm = ARMS[PUBLISHED]
    settings = _settings(PUBLISHED)
    agent, rules, calendar = prepare(scenario, arm, seed)
    rows: list[tuple[object, ...]] = []
    lived = 0
    for day in range(settings.from_day, scenario.horizon_days):
        if day % settings.every_days:
            continue
        advance(agent, rules, calendar, lived, day + 1)
        lived = day + 1
        steps = candidates(agent.knobs)
        before = agent.knobs.copy()
        values = [
            (name, list(_valued(agent, rules, calendar, day, name, (scenario.name, seed), steps)))
            for name in objectives
        ]
        adapt(agent, rules, calendar, day)
        turned = tuple(agent.moves[agent.adapted[0] - 1, 1:].tolist())
        for name, found in values:
            for step, differences in zip(steps, found, strict=True):
                at = (KNOBS[step.knob], step.direction, before[step.knob], step.value)
                chosen = (step.knob, step.direction) == turned
                rows.append(
                    (scenario.name, seed, day, *at, before[WEIGHT], chosen, name, *differences)
                )
    advance(agent, rules, calendar, lived, scenario.horizon_days)
    return agent, rows


def _settings(objective: str) -> Adapt:
    settings = ARMS[objective].adapt
    if settings is None:
        raise ValueError(f"arm {objective} does not adapt")
    return settings


def _valued(
    agent: Agent,
    rules: Rules,
    calendar: Calendar,
    day: int,
    objective: str,
    identity: tuple[str, int],
    steps: Sequence[Candidate],
) -> Iterator[tuple[float, float, float, float]]:
    """Yield ``common``, ``first``, ``second`` and ``null`` of each candidate."""
    settings = _settings(objective)
    own = rules._replace(
        shadow_queries=settings.shadow_queries,
        shadow_common=settings.common_numbers,
        rollout_days=settings.rollout_days,
    )
    scratch = np.empty(agent.topic.shape[1]), np.empty(TOP_K), np.full(TOP_K, -1)
    rng = generator("objective", *identity, day, objective)

    def value(knobs: NDArray[np.float64], draws: int) -> float:
        return _POINTS * evaluate(agent, own, calendar, day, knobs, draws, *scratch)

    def fresh() -> int:
        return int(rng.integers(SHADOW_SEEDS))

    present, candidate = agent.knobs.copy(), agent.knobs.copy()
    shared = fresh(), fresh()
    base = [value(present, draws) for draws in shared]
    other = shared[0] if settings.common_numbers else fresh()
    null = value(present, other) - base[0]
    for step in steps:
        candidate[:] = present
        candidate[step.knob] = step.value
        common = value(candidate, shared[0]) - base[0]
        if settings.common_numbers:
            yield common, common, value(candidate, shared[1]) - base[1], null
        else:
            first, second = (value(candidate, fresh()) - value(present, fresh()) for _ in "12")
            yield common, first, second, null


def responses(evaluations: pd.DataFrame, *, by_weight: bool = False) -> pd.DataFrame:
    """Say how each objective responds to each knob.

    Args:
        evaluations: As :func:`observe_objectives` returns them.
        by_weight: Whether to tell apart the present weights of the constitution in ATTENTION: all
            other knobs act on answers through it alone.

    Returns:
        One row per scenario, objective, knob and direction (and ``weight``, one more column, to a
        hundredth), with the columns in ``RESPONSES``; responses in percentage points:

        - ``n`` evaluations in ``seeds`` lives; ``mean`` response on common draws, with the 95 %
          interval over the lives' means, ``low`` to ``high``.
        - ``sd`` of a difference as the objective draws it, ``sd_null`` of the control's.
        - ``noise``: the sd of a difference at given knobs and day, from its two measurements;
          ``signal``: root mean square of the true response, from the most precise objective that
          estimates the same, as the root of the mean product of its two measurements, which is
          free of their noise (0 if negative); ``signal_to_noise``: their ratio, 0 without signal
          and NaN if the objective itself showed nothing of a signal that is there.
        - ``agreement``: share in percent of the evaluations with a true response in which the
          objective's difference has its sign, as the same precise objective's second measurement
          shows it; NaN without.
        - ``zero``: share in percent of the evaluations whose response on common draws is exactly
          zero; ``visibility``: ``invisible`` if all are, else ``visible``.
    """
    table = evaluations.assign(weight=evaluations["weight"].round(2))
    step = ["scenario", "seed", "day", "knob", "direction"]
    precise = {
        name: table[table["objective"] == name].set_index(step)[["first", "second"]]
        for name in (QUERIES, ROLLOUT)
    }
    keys = ["scenario", "objective", "knob", "direction"] + by_weight * ["weight"]
    rows: list[tuple[object, ...]] = []
    for key, part in table.groupby(keys, sort=False):
        yardstick = precise[ROLLOUT if key[1] == ROLLOUT else QUERIES]
        true = yardstick.loc[pd.MultiIndex.from_frame(part[step])].to_numpy(float)
        rows.append((*key, *_response(part, true)))
    rows.sort(key=partial(_place, list(dict.fromkeys(table["scenario"]))))
    return pd.DataFrame(rows, columns=[*keys, *RESPONSES[4:]])


def _place(scenarios: list[str], row: tuple[Any, ...]) -> tuple[object, ...]:
    scenario, objective, knob, *rest = row[:5]
    return scenarios.index(scenario), OBJECTIVES.index(objective), KNOBS.index(knob), *rest


def _response(part: pd.DataFrame, true: NDArray[np.float64]) -> tuple[object, ...]:
    """Return the columns in ``RESPONSES`` from ``n`` on; ``true`` is ``float64[n, 2]``."""
    estimate = mean_interval(part.groupby("seed")["common"].mean().to_numpy(float))
    first, second = part["first"].to_numpy(float), part["second"].to_numpy(float)
    signal = math.sqrt(max(0.0, float(np.mean(true[:, 0] * true[:, 1]))))
    noise = math.sqrt(float(np.mean((first - second) ** 2)) / 2.0)
    felt = true[:, 1] != 0.0
    right = np.sign(first[felt]) == np.sign(true[felt, 1])
    # What an objective with common draws measures twice, it measures twice on common draws.
    silent = (part["common"] == 0.0) & ((part["objective"] == PUBLISHED) | (second == 0.0))
    zero = 100.0 * float(silent.mean())
    return (
        len(part),
        estimate.n,
        estimate.mean,
        estimate.low,
        estimate.high,
        float(part["first"].std(ddof=1)),
        float(part["null"].std(ddof=1)),
        noise,
        signal,
        0.0 if signal == 0.0 else signal / noise if noise > 0.0 else math.nan,
        100.0 * float(right.mean()) if right.size else math.nan,
        zero,
        "invisible" if zero == 100.0 else "visible",
    )


def choices(evaluations: pd.DataFrame) -> pd.DataFrame:
    """Say what each objective chooses in the states of the published agent, and what comes of it.

    Choosers are the published agent, as it chose; the sounder objectives, by their ``first``
    valuation; and the coin, by its expectation over equally likely candidates, none among them.

    Args:
        evaluations: As :func:`observe_objectives` returns them.

    Returns:
        One row per scenario, chooser and quantity, with the columns in ``CHOICES``; the 95 %
        interval is over lives, and ``seeds`` counts those in which there was anything to count:

        - ``moves``: share of adaptations that turn a knob.
        - ``invisible``: share of the moves that turn a knob, in that direction, to which shadow
          queries never respond in that scenario; ``no_effect``: share of the moves to which they
          do not respond there and then.
        - ``shadow_gain``: mean true response to the choice (0 for none) of 200 shadow queries, and
          ``rollout_gain``: of a rollout, where there is one; by their ``second`` valuations, which
          no chooser has seen.
    """
    seen = responses(evaluations)
    blind = seen[(seen["objective"] == QUERIES) & (seen["visibility"] == "invisible")]
    invisible = set(zip(blind["scenario"], blind["knob"], blind["direction"], strict=True))
    # As arrays: a frame for each of thousands of adaptations would take seconds.
    columns = {str(name): values.to_numpy() for name, values in evaluations.items()}
    found: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    adaptations = evaluations.groupby(["scenario", "seed", "day"], sort=False).indices
    for key, at in adaptations.items():
        scenario, seed, _ = cast(tuple[str, int, int], key)
        day = {name: values[at] for name, values in columns.items()}
        for chooser, quantity, value in _choices_of(day, invisible):
            lives = found.setdefault((scenario, chooser, quantity), {})
            lives.setdefault(seed, []).append(value)
    rows = []
    scenarios = list(dict.fromkeys(evaluations["scenario"]))
    for row in sorted(found, key=lambda k: (scenarios.index(k[0]), _CHOOSERS.index(k[1]))):
        e = mean_interval([float(np.mean(values)) for values in found[row].values()])
        if row[-1].endswith("gain"):
            rows.append((*row, "pp", e.mean, e.low, e.high, e.n))
        else:  # no share is outside 0 to 100
            rows.append((*row, "%", e.mean, max(0.0, e.low), min(100.0, e.high), e.n))
    return pd.DataFrame(rows, columns=list(CHOICES))


def _choices_of(
    day: dict[str, NDArray[Any]], invisible: set[tuple[str, str, int]]
) -> Iterator[tuple[str, str, float]]:
    """Yield chooser, quantity and value for one adaptation."""
    by_objective = {
        name: {column: values[day["objective"] == name] for column, values in day.items()}
        for name in OBJECTIVES
        if (day["objective"] == name).any()
    }
    shadow = by_objective[QUERIES]
    steps = zip(shadow["scenario"], shadow["knob"], shadow["direction"], strict=True)
    kinds = {
        "invisible": np.array([100.0 * (step in invisible) for step in steps]),
        "no_effect": 100.0 * ((shadow["first"] == 0.0) & (shadow["second"] == 0.0)),
    }
    gains = {"shadow_gain": shadow["second"]}
    if ROLLOUT in by_objective:
        gains["rollout_gain"] = by_objective[ROLLOUT]["second"]
    chosen = {PUBLISHED: shadow["chosen"].astype(np.float64)}
    for name in set(by_objective) - {PUBLISHED}:
        first = by_objective[name]["first"]
        chosen[name] = (np.arange(first.size) == np.argmax(first)) * float(first.max() > 0.0)
    chosen[BLIND] = np.full(shadow["first"].size, 1.0 / (shadow["first"].size + 1))
    for chooser, weight in chosen.items():
        yield chooser, "moves", 100.0 * float(weight.sum())
        if weight.sum() > 0.0:
            for quantity, values in kinds.items():
                yield chooser, quantity, float(weight @ values / weight.sum())
        for quantity, values in gains.items():
            yield chooser, quantity, float(weight @ values)
