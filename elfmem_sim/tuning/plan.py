"""What a tuning study runs: its size, its conditions, and the other assumptions it tries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elfmem_sim.arms.review import REVIEW
from elfmem_sim.scenario import Arm, Constitution, Corpus, Scenario, Workload, override
from elfmem_sim.tuning.objectives import Roles
from elfmem_sim.tuning.space import Config

RECORD = (
    "adr-0004/stable",
    "adr-0004/slow_drift",
    "adr-0004/regime_change",
    "adr-0004/quiet_burst",
    "adr-0004/adversarial",
)
"""The decision record's scenarios: recommendations are judged in all of them."""

DEFAULT_SCENARIOS = ("adr-0004/stable", "adr-0004/regime_change", "adr-0004/adversarial")
"""Scenarios to search in: no drift, a jump, and steady drift with false outcomes. The other two of
the record are left for the judgement."""

FRESH_SEEDS = 100_000
"""First of the seeds that the search never sees."""

STABLE_DRIFT = 0.01
"""A self that never jumps and drifts at most this much a day, per component, counts as stable."""

POOR = {"proposer_move": 0.5, "proposer_noise": 0.3, "proposer_failure_rate": 0.1}
"""A poor proposer: moves half-way, says it with noise, and fails once in ten calls."""


@dataclass(frozen=True)
class Budget:
    """How much is run; all numbers of seeds are per condition.

    Attributes:
        seeds: Seeds of a search's evaluation, from 0 upwards.
        trajectories: Morris's trajectories.
        base: Base of the Sobol' design, a power of two.
        grid: Values a field takes in its sweep.
        trials: Trials of the search.
        population: Trials a generation.
        judging: Fresh seeds to judge recommendations on; seeds of a sweep that is run alone.
        robustness: Fresh seeds under each other assumption.
        gates: Fresh seeds for the gates.
    """

    seeds: int
    trajectories: int
    base: int
    grid: int
    trials: int
    population: int
    judging: int
    robustness: int
    gates: int


BUDGETS: Mapping[str, Budget] = {
    # About 11,000 and 290,000 runs, at 15 to 35 ms of one core each.
    "quick": Budget(
        seeds=4, trajectories=6, base=64, grid=7, trials=160, population=20, judging=40,
        robustness=6, gates=8,
    ),
    "full": Budget(
        seeds=16, trajectories=12, base=256, grid=9, trials=2000, population=50, judging=300,
        robustness=60, gates=64,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A scenario and the proposer at work in it.

    Attributes:
        scenario: The scenario.
        poor: Whether the proposer is the poor one.
    """

    scenario: Scenario
    poor: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.scenario.name + (" (poor proposer)" if self.poor else "")


def review_arm(config: Config, *, poor: bool = False) -> Arm:
    """Return the review arm with elfmem's settings ``config``."""
    assert REVIEW.review is not None
    changes = {"config": config, **(POOR if poor else {})}
    return REVIEW.model_copy(update={"review": REVIEW.review.model_copy(update=changes)})


def is_stable(scenario: Scenario) -> bool:
    """Whether the self stays where it was, so that a review can only cost."""
    return not scenario.identity.regimes and scenario.identity.drift_per_day <= STABLE_DRIFT


def is_adversarial(scenario: Scenario) -> bool:
    """Whether outcomes are flipped."""
    return scenario.workload.outcome_noise > 0.0 or bool(scenario.workload.noise)


def conditions_of(scenarios: Sequence[Scenario]) -> list[Condition]:
    """Return the scenarios as conditions, and the poor proposer in the first that drifts."""
    drifting = [s for s in scenarios if not is_stable(s)]
    honest = [s for s in drifting if not is_adversarial(s)] or drifting
    return [*map(Condition, scenarios), *(Condition(s, poor=True) for s in honest[:1])]


def roles_of(conditions: Sequence[Condition], names: Sequence[str] | None = None) -> Roles:
    """Return which condition plays which part.

    Args:
        conditions: The conditions.
        names: Scenarios that play a part; by default all.
    """
    taking_part = [
        (i, c) for i, c in enumerate(conditions) if names is None or c.scenario.name in names
    ]
    ordinary = [(i, c.scenario) for i, c in taking_part if not c.poor]
    return Roles(
        drifting=tuple(i for i, s in ordinary if not is_stable(s)),
        stable=tuple(i for i, s in ordinary if is_stable(s)),
        adversarial=tuple(i for i, s in ordinary if is_adversarial(s)),
        poor=tuple(i for i, c in taking_part if c.poor),
    )


@dataclass(frozen=True)
class Assumption:
    """Something the study takes for granted, taken otherwise.

    Attributes:
        name: What is assumed.
        level: The other value, in words.
        settings: Keys and values, as ``--set`` takes them.
    """

    name: str
    level: str
    settings: Mapping[str, str]


ASSUMPTIONS = (
    Assumption("as searched", "", {}),
    Assumption("uses of a learned block", "0", {"workload.uses_per_learn": "0"}),
    Assumption("uses of a learned block", "5", {"workload.uses_per_learn": "5"}),
    Assumption("days between reviews", "7", {"review.cadence_days": "7"}),
    Assumption("days between reviews", "90", {"review.cadence_days": "90"}),
    Assumption("proposer", "moves half-way", {"review.proposer_move": "0.5"}),
    Assumption("proposer", "noisy", {"review.proposer_noise": "0.3"}),
    Assumption("proposer", "poor", {f"review.{key}": f"{value}" for key, value in POOR.items()}),
    Assumption("proposals accepted", "half", {"review.accept_probability": "0.5"}),
    Assumption("dimension", "64", {"identity.dimension": "64"}),
    Assumption("active hours a day", "1", {"workload.hours_per_day": "1.0"}),
    Assumption("active hours a day", "12", {"workload.hours_per_day": "12.0"}),
)
"""One assumption at a time. The study's own are three uses (in ADR 0004's scenarios), a monthly
review, an ideal proposer, every proposal accepted, eight dimensions and four hours a day."""


def assume(assumption: Assumption, condition: Condition, arm: Arm) -> tuple[Scenario, Arm]:
    """Return a condition's scenario and an arm under an assumption.

    Another dimension leaves all angles as they are: spreads, which are per component, shrink with
    the square root of the dimension.
    """
    if not assumption.settings:
        return condition.scenario, arm
    own = {
        key: value
        for key, value in assumption.settings.items()
        if arm.review is not None or not key.startswith("review.")
    }
    scenario, arm = override(condition.scenario, arm, own)
    ratio = condition.scenario.identity.dimension / scenario.identity.dimension
    return (scenario if ratio == 1.0 else _same_angles(scenario, math.sqrt(ratio))), arm


def _same_angles(scenario: Scenario, scale: float) -> Scenario:
    identity, work = scenario.identity, scenario.workload
    regimes = tuple(
        r.model_copy(update={"direction_spread": scale * r.direction_spread})
        for r in identity.regimes
    )
    return scenario.model_copy(
        update={
            "identity": identity.model_copy(
                update={"drift_per_day": scale * identity.drift_per_day, "regimes": regimes}
            ),
            "constitution": _scaled(scenario.constitution, scale, "spread"),
            "corpus": _scaled(scenario.corpus, scale, "spread"),
            "workload": _scaled(
                work, scale, "learn_spread_min", "learn_spread_width", "query_spread"
            ),
        }
    )


def _scaled(section: Constitution | Corpus | Workload, scale: float, *keys: str) -> object:
    return section.model_copy(update={key: scale * getattr(section, key) for key in keys})
