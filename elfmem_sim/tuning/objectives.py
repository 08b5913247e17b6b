"""What a setting is judged by: objectives that pull apart, from outcomes paired by seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.fields import ESTIMANDS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """One thing to judge a setting by.

    Attributes:
        name: What ``--objective`` calls it.
        maximise: Whether more is better.
        unit: Unit of its values.
        meaning: What it is, in words.
    """

    name: str
    maximise: bool
    unit: str
    meaning: str


OBJECTIVES: Mapping[str, Objective] = {
    o.name: o
    for o in (
        Objective("gain_mean", True, "pp", "gain in quality ratio, mean over drifting scenarios"),
        Objective("gain_worst", True, "pp", "gain in the drifting scenario that gains least"),
        Objective("tax", False, "pp", "loss in quality ratio where the self is stable"),
        Objective("amendments", False, "a year", "amendments that a person must read"),
        Objective("calls", False, "a year", "calls of the proposer"),
        Objective("retention", True, "%", "similarity of the constitution to the original one"),
        Objective(
            "harm_adversarial",
            False,
            "pp",
            "loss where outcomes are adversarial: the mean over seeds, a gain counting as 0",
        ),
        Objective(
            "harm_poor_proposer",
            False,
            "pp",
            "loss where the proposer is poor: the mean over seeds, a gain counting as 0",
        ),
    )
}
"""All objectives by name. Gains, taxes and losses compare with the agent that never reviews."""


@dataclass(frozen=True)
class Roles:
    """Which of the conditions plays which part; indices into the outcomes' first axis.

    Attributes:
        drifting: Scenarios in which a review should gain.
        stable: Scenarios in which it should cost nothing.
        adversarial: Scenarios with flipped outcomes.
        poor: Conditions with a poor proposer.
    """

    drifting: tuple[int, ...]
    stable: tuple[int, ...] = ()
    adversarial: tuple[int, ...] = ()
    poor: tuple[int, ...] = ()

    @property
    def ordinary(self) -> list[int]:
        """Conditions with the arm's own proposer."""
        return sorted({*self.drifting, *self.stable, *self.adversarial})

    def supported(self) -> list[str]:
        """Return the names of the objectives that these conditions can express."""
        needs = {
            "gain_mean": self.drifting,
            "gain_worst": self.drifting,
            "tax": self.stable,
            "harm_adversarial": self.adversarial,
            "harm_poor_proposer": self.poor,
        }
        return [name for name in OBJECTIVES if needs.get(name, (0,))]


def per_seed(treated: Array, control: Array, roles: Roles) -> dict[str, Array]:
    """Return each supported objective's contribution of every seed, ``float64[seeds]``.

    Args:
        treated: Outcomes of a setting, ``float64[conditions, seeds, len(ESTIMANDS)]``.
        control: Outcomes of the agent that never reviews, in the same conditions at the same seeds.
        roles: The conditions' parts.

    Returns:
        By name, all but ``gain_worst``, which is no mean over seeds. The objective is the mean.
    """
    quality = ESTIMANDS.index("quality_ratio")
    gain = treated[:, :, quality] - control[:, :, quality]
    ordinary = roles.ordinary

    def mean(estimand: str, conditions: Sequence[int]) -> Array:
        chosen: Array = treated[list(conditions), :, ESTIMANDS.index(estimand)]
        return np.asarray(chosen.mean(axis=0))

    found = {
        "amendments": mean("amendments_per_year", ordinary),
        # A poor proposer's failures come back at the next review.
        "calls": mean("proposer_calls_per_year", [*ordinary, *roles.poor]),
        "retention": mean("retention", ordinary),
    }
    if roles.drifting:
        found["gain_mean"] = gain[list(roles.drifting)].mean(axis=0)
    if roles.stable:
        found["tax"] = -gain[list(roles.stable)].mean(axis=0)
    if roles.adversarial:
        found["harm_adversarial"] = np.maximum(0.0, -gain[list(roles.adversarial)]).mean(axis=0)
    if roles.poor:
        found["harm_poor_proposer"] = np.maximum(0.0, -gain[list(roles.poor)]).mean(axis=0)
    return {name: found[name] for name in OBJECTIVES if name in found}


def values_of(treated: Array, control: Array, roles: Roles) -> dict[str, float]:
    """Return every supported objective; see :func:`per_seed` for the arguments."""
    found = {name: float(v.mean()) for name, v in per_seed(treated, control, roles).items()}
    if roles.drifting:
        quality = ESTIMANDS.index("quality_ratio")
        gain = (treated[:, :, quality] - control[:, :, quality])[list(roles.drifting)]
        found["gain_worst"] = float(gain.mean(axis=1).min())
    return {name: found[name] for name in OBJECTIVES if name in found}


def costs(table: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    """Return objectives as costs, less being better, ``float64[len(table), len(names)]``."""
    sign = np.array([-1.0 if OBJECTIVES[name].maximise else 1.0 for name in names])
    return np.asarray(sign * [[row[name] for name in names] for row in table])


def front_of(cost: Array) -> NDArray[np.bool_]:
    """Return which rows no other row beats: nowhere worse and somewhere better.

    Args:
        cost: ``float64[n, objectives]``, less being better. Of equal rows all stay.
    """
    kept = np.ones(len(cost), bool)
    for i, row in enumerate(cost):
        no_worse = np.all(cost <= row, axis=1)
        kept[i] = not np.any(no_worse & np.any(cost < row, axis=1))
    return kept
