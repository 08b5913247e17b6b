"""One run: a scenario, an arm and a seed make a trajectory. Read this first."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.errors import UserError
from elfmem_sim.fields import COUNTS, KNOBS, SNAPSHOT_FIELDS
from elfmem_sim.kernel.day import day_draws
from elfmem_sim.kernel.loop import advance, birth, lay_down
from elfmem_sim.kernel.state import BLEND, DRIFT, RETURN, ROTATE, Agent, Calendar, Rules, allocate
from elfmem_sim.review import Amendment, Bridge, ReviewRecord
from elfmem_sim.scenario import Adapt, Arm, Ego, Scenario

MOST_ANSWERS = 20  # an adapting arm's four SELF queries a day, shared by five blocks


@dataclass(frozen=True)
class Trajectory:
    """The result of one run.

    Attributes:
        scenario: Scenario name.
        arm: Arm name.
        seed: The run's seed.
        snapshots: One row per measured day, ``float64[measured, len(SNAPSHOT_FIELDS)]``.
        n_blocks: Blocks at the end.
        self_query_concentration: Share of SELF queries' weight on one block (0 without any).
        identity: The self's direction at each step, ``float64[days + 1, dimension]``.
        knobs: The mechanism's parameters at the end, in the order of ``fields.KNOBS``.
        moves: Day and name of each adaptation's turn (``ego_alpha+``, or ``baseline`` for none).
        rescored: Sum and number of the changes that rescoring made to established confidence.
        reviews: What each review did.
        amendments: The amendment log.
        fields: Names of the snapshots' columns.
        digest: Digest of everything the agent was shown and holds (production tier only).
        notes: What the user should know about how it came about.
    """

    scenario: str
    arm: str
    seed: int
    snapshots: NDArray[np.float64]
    n_blocks: int
    self_query_concentration: float
    identity: NDArray[np.float64]
    knobs: tuple[float, ...] = ()
    moves: tuple[tuple[int, str], ...] = ()
    rescored: tuple[float, int] = (0.0, 0)
    reviews: tuple[ReviewRecord, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    fields: tuple[str, ...] = SNAPSHOT_FIELDS
    digest: str = ""
    notes: tuple[str, ...] = ()

    def final(self, field: str) -> float:
        """Return ``field`` (one of ``fields``) on the last measured day."""
        return float(self.snapshots[-1, self.fields.index(field)])


def simulate(
    scenario: Scenario, arm: Arm, seed: int, *, daily: bool = False, explain: bool = False
) -> Trajectory:
    """Simulate one agent.

    Args:
        scenario: The world.
        arm: The agent's build.
        seed: Non-negative integer; equal seeds share the self's path, blocks and queries.
        daily: Measure every day instead of the scenario's measuring days. Changes no other number.
        explain: Have every review say why each block was not proposed. Changes no other number.

    Returns:
        The trajectory; equal arguments give equal bits.

    Raises:
        UserError: If the seed is none, or the arm reviews and elfmem is not supported or refuses
            its configuration.
        InvariantError: If elfmem breaks one of ADR 0004's promises.
    """
    agent, rules, calendar = prepare(scenario, arm, seed, daily=daily)
    days = scenario.horizon_days
    bridge = None
    if arm.review is not None:
        bridge = Bridge(agent, scenario, arm, seed, explain=explain)
    parts = []
    day = 0
    while day < days:
        end = min([*_stops(arm, bridge, day), days])
        parts.append(advance(agent, rules, calendar, day, end))
        _evening(agent, rules, calendar, arm, bridge, end - 1)
        day = end
    trajectory = _trajectory(scenario, arm, seed, agent, np.concatenate(parts))
    if bridge is None:
        return trajectory
    return replace(trajectory, reviews=tuple(bridge.reviews), amendments=tuple(bridge.amendments))


def _stops(arm: Arm, bridge: Bridge | None, day: int) -> list[int]:
    """Days before which the compiled loop, on ``day``, has to hand over for the evening's work."""
    stops = [] if bridge is None else [bridge.next_stop(day)]
    if arm.adapt is not None:
        every = arm.adapt.every_days
        stops.append(every * math.ceil(max(day, arm.adapt.from_day) / every) + 1)
    return stops


def _evening(
    agent: Agent, rules: Rules, calendar: Calendar, arm: Arm, bridge: Bridge | None, day: int
) -> None:
    """Do what happens between days: reversions, then a review; or an adaptation."""
    if bridge is not None:
        bridge.evening(day)
    if arm.adapt is not None and day >= arm.adapt.from_day and day % arm.adapt.every_days == 0:
        from elfmem_sim.kernel.adapt import adapt  # compiled only for arms that adapt

        adapt(agent, rules, calendar, day)


def prepare(
    scenario: Scenario, arm: Arm, seed: int, *, daily: bool = False
) -> tuple[Agent, Rules, Calendar]:
    """Return a newborn agent with the constants and the calendar that govern its days.

    Raises:
        UserError: If ``seed`` is not a whole number from 0 to 2**63 - 1.
    """
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise UserError(seed, "a whole number from 0 to 2**63 - 1", "Give another seed.", "--seed")
    dimension = scenario.identity.dimension
    size = scenario.constitution.size
    days = scenario.horizon_days
    rules = _rules(scenario, arm)
    calendar = _calendar(scenario, daily=daily)
    learning_days = int(np.count_nonzero(~calendar.quiet))
    draws = max(int(day_draws(rules, dimension)), rules.vitals_queries * (dimension + 1))
    capacity = size + scenario.corpus.size + rules.learns_per_day * learning_days
    agent = allocate(capacity, size, dimension, days, draws)
    agent.knobs[:] = _knobs(arm)
    start = scenario.constitution.seed or arm.seed
    birth(
        agent,
        rules,
        seed,
        scenario.constitution.spread,
        start.alpha,
        start.beta,
        float(start.reinforcement),
        float(start.edges),
        start.ego_strength,
        start.decay,
    )
    corpus = scenario.corpus
    uncertain = math.ceil(corpus.size * corpus.uncertain_fraction)
    lay_down(agent, rules, uncertain, corpus.spread, 0.5, 0.5, 0.0, 0.0)
    lay_down(
        agent,
        rules,
        corpus.size - uncertain,
        corpus.spread,
        corpus.alpha,
        corpus.beta,
        float(corpus.reinforcement),
        float(corpus.edges),
    )
    return agent, rules, calendar


def _knobs(arm: Arm) -> tuple[float, float, float, float]:
    ego = arm.ego
    if ego is None:
        return arm.constitution_weight, 0.0, 1.0, 0.0
    return arm.constitution_weight, ego.alpha, float(ego.distribute), float(ego.queries_per_day)


def _rules(scenario: Scenario, arm: Arm) -> Rules:
    work = scenario.workload
    ego = arm.ego or Ego()
    adapt = arm.adapt or Adapt()
    return Rules(
        hours_per_day=work.hours_per_day,
        drift_per_day=scenario.identity.drift_per_day,
        learns_per_day=work.learns_per_day,
        learn_spread_min=work.learn_spread_min,
        learn_spread_width=work.learn_spread_width,
        queries_per_day=work.queries_per_day,
        query_spread=work.query_spread,
        outcome_rate=work.outcome_rate,
        uses_per_learn=work.uses_per_learn,
        vitals_queries=scenario.measurement.queries,
        recent_days=scenario.measurement.recent_days,
        cold_start_floor=arm.cold_start_floor,
        exploration=arm.exploration,
        power_law=arm.power_law,
        ego_decay_per_day=ego.decay_per_day,
        ego_gain=ego.gain,
        ego_loss=ego.loss,
        self_outcome_rate=ego.outcome_rate,
        self_answers=max(ego.queries_per_day * ego.distribute, MOST_ANSWERS if arm.adapt else 0),
        rescore_every=work.rescore.every_days,
        rescore_blocks=work.rescore.blocks,
        rescore_noise=work.rescore.noise,
        rescore_weight=work.rescore.weight,
        additive_rescore=arm.additive_rescore,
        shadow_queries=adapt.shadow_queries,
        shadow_common=adapt.common_numbers,
        rollout_days=adapt.rollout_days,
    )


def _calendar(scenario: Scenario, *, daily: bool) -> Calendar:
    days = scenario.horizon_days
    work = scenario.workload
    day = np.arange(days)
    quiet = np.isin(day % 7, work.quiet_weekdays)
    for first, last in work.quiet:
        quiet[first : last + 1] = True
    noise = np.full(days, work.outcome_noise)
    for interval in work.noise:
        noise[interval.first_day : interval.last_day + 1] = interval.outcome_noise
    kind = np.full(days, DRIFT, np.int64)
    old, new, spread = np.zeros(days), np.zeros(days), np.zeros(days)
    return_step = np.zeros(days, np.int64)
    for regime in scenario.identity.regimes:
        at = regime.day
        if regime.blend is not None:
            kind[at] = BLEND
            old[at], new[at] = regime.blend
            spread[at] = regime.direction_spread
        elif regime.angle_degrees is not None:
            kind[at] = ROTATE
            old[at] = math.cos(math.radians(regime.angle_degrees))
            new[at] = math.sin(math.radians(regime.angle_degrees))
        else:
            kind[at] = RETURN
            return_step[at] = (regime.return_to_day or 0) + 1
    measured = (day > 0) if daily else (day > 0) & (day % scenario.measurement.every_days == 0)
    return Calendar(quiet, noise, kind, old, new, spread, return_step, measured)


def _trajectory(
    scenario: Scenario, arm: Arm, seed: int, agent: Agent, snapshots: NDArray[np.float64]
) -> Trajectory:
    hits = float(agent.self_hits.sum())
    return Trajectory(
        scenario=scenario.name,
        arm=arm.name,
        seed=seed,
        snapshots=snapshots,
        n_blocks=int(agent.blocks[0]),
        self_query_concentration=float(agent.self_hits.max()) / hits if hits else 0.0,
        identity=agent.identity,
        knobs=tuple(agent.knobs.tolist()),
        moves=tuple(_move(*move) for move in agent.moves[: agent.adapted[0]].tolist()),
        rescored=(float(agent.damage[0]), int(agent.damage[1])),
    )


def _move(day: int, knob: int, direction: int) -> tuple[int, str]:
    if knob < 0:
        return day, "baseline"
    return day, KNOBS[knob] + ("+" if direction > 0 else "-")


def as_record(trajectory: Trajectory, arm: Arm) -> dict[str, Any]:
    """Return a trajectory as plain data, with the field names of the published values.

    Args:
        trajectory: The run.
        arm: Its arm: reviews and amendments are listed if it reviews, moves if it adapts.
    """
    record: dict[str, Any] = {
        "scenario": trajectory.scenario,
        "arm": trajectory.arm,
        "seed": trajectory.seed,
        "snapshots": [_snapshot(trajectory.fields, row) for row in trajectory.snapshots.tolist()],
        "n_blocks": trajectory.n_blocks,
        "self_query_concentration": trajectory.self_query_concentration,
    }
    damage, rescored = trajectory.rescored
    record["rescore_damage_mean"] = damage / rescored if rescored else None
    record["rescore_damage_n"] = rescored
    if trajectory.digest:
        record["digest"] = trajectory.digest
        record["notes"] = list(trajectory.notes)
    if arm.adapt is not None:
        record["final_params"] = dict(zip(KNOBS, trajectory.knobs, strict=True))
        record["moves"] = [list(move) for move in trajectory.moves]
    if arm.review is not None:
        record["reviews"] = [_plain(review) for review in trajectory.reviews]
        record["amendments"] = [_plain(amendment) for amendment in trajectory.amendments]
    return record


def _snapshot(fields: tuple[str, ...], row: list[float]) -> dict[str, float]:
    snapshot = {
        name: int(value) if name in COUNTS else value
        for name, value in zip(fields, row, strict=True)
    }
    # The self-architect's published table has another name for the same share.
    snapshot["bedrock_moat"] = snapshot["ego_moat"]
    return snapshot


def _plain(item: ReviewRecord | Amendment) -> dict[str, Any]:
    return {
        name: getattr(item, name)
        for name in item.__slots__
        if getattr(item, name) is not None or name == "reverted_day"
    }
