"""A few settings out of many, by rules that were fixed before any of them was run.

Reference:
    Zeleny (1973), Compromise programming, in Multiple Criteria Decision Making, University of South
        Carolina Press: the setting nearest to an ideal that has the best of everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elfmem_sim.stats import Estimate, equivalence, holm, mean_interval, one_sided
from elfmem_sim.tuning.objectives import OBJECTIVES, Array, costs
from elfmem_sim.tuning.space import Config, Field, changed

MARGIN = 0.5
"""Tax or harm, in pp, that counts as none: the margin of ADR 0004's claims."""

TOLERANCE = {"pp": 0.25, "%": 1.0, "a year": 1.0}
"""By how much, in the objective's unit, a simpler setting may be worse: half of ``MARGIN`` in
quality, one percent of similarity, one amendment or call a year. The last two were raised from a
quarter after a first quick study and before any full one."""

_NEVER_MORE = ("harm_adversarial", "harm_poor_proposer", "retention")


@dataclass(frozen=True)
class Candidate:
    """One setting with its objectives, by name."""

    config: Config
    values: Mapping[str, float]


RULES: Mapping[str, str] = {
    "conservative": "the largest gain in the worst drifting scenario among settings that, compared "
    "with the defaults, harm no more and keep no less of the original constitution",
    "balanced": "nearest to the ideal that has the best of every objective on the front, each "
    "objective scaled by its span there",
    "responsive": "the largest mean gain in drifting scenarios",
}
"""The recommendations in their order of caution. Each rule also asks for a tax of at most
``MARGIN``; the defaults compete too; and of equals the one with the fewest amendments wins, then
the one with the fewest changes."""


def admits(rule: str, values: Mapping[str, float], defaults: Mapping[str, float]) -> bool:
    """Return whether a rule considers a setting with these objectives."""
    if values.get("tax", 0.0) > max(MARGIN, defaults.get("tax", 0.0)):
        return False
    if rule != "conservative":
        return True
    names = [name for name in _NEVER_MORE if name in values]
    return bool(np.all(costs([values], names) <= costs([defaults], names)))


def pick(
    rule: str, fields: Sequence[Field], front: Sequence[Candidate], defaults: Candidate
) -> Candidate:
    """Return the setting that a rule chooses among the front and the defaults."""
    pool = [defaults, *front]
    score = _score(rule, pool)
    allowed = [i for i, c in enumerate(pool) if admits(rule, c.values, defaults.values)]

    def order(i: int) -> tuple[float, float, int, int]:
        amendments = pool[i].values["amendments"]
        return (-score[i], amendments, len(changed(fields, pool[i].config)), i)

    return pool[min(allowed, key=order)]


def _score(rule: str, pool: Sequence[Candidate]) -> list[float]:
    if rule == "conservative":
        return [c.values["gain_worst"] for c in pool]
    if rule == "responsive":
        return [c.values["gain_mean"] for c in pool]
    cost = costs([c.values for c in pool], list(pool[0].values))
    span = np.ptp(cost, axis=0)
    scaled = (cost - cost.min(axis=0)) / np.where(span > 0.0, span, 1.0)
    return [-float(distance) for distance in np.linalg.norm(scaled, axis=1)]


def simplify(
    rule: str,
    fields: Sequence[Field],
    chosen: Candidate,
    defaults: Candidate,
    order: Sequence[str],
    evaluate: Callable[[Config], Mapping[str, float]],
) -> Candidate:
    """Put fields back to elfmem's defaults, one after the other, as long as nothing is lost.

    Args:
        rule: The rule that chose, which has to admit what comes out too.
        fields: All fields.
        chosen: The setting to simplify.
        defaults: elfmem's defaults.
        order: The fields' names, the least important first.
        evaluate: Returns a setting's objectives.

    Returns:
        A setting whose every objective is at most ``TOLERANCE`` worse than the chosen one's.
    """
    names = list(chosen.values)
    limit = costs([chosen.values], names)[0] + [TOLERANCE[OBJECTIVES[n].unit] for n in names]
    kept = chosen
    by_name = {field.name: field for field in fields}
    for name in order:
        if name not in changed(fields, kept.config):
            continue
        config = {**kept.config, name: by_name[name].default}
        values = evaluate(config)
        no_loss = bool(np.all(costs([values], names)[0] <= limit))
        if no_loss and admits(rule, values, defaults.values):
            kept = Candidate(config, values)
    return kept


@dataclass(frozen=True)
class Judgement:
    """What seeds that the search never saw say of a recommendation, against the defaults.

    Attributes:
        name: The recommendation.
        same: It is the defaults.
        gain: Paired difference in mean gain, pp.
        p: One-sided p-value of a larger gain, Holm-adjusted over the recommendations.
        spoiled: Objectives (tax, harms) that are not shown to be at most ``MARGIN`` worse.
    """

    name: str
    same: bool
    gain: Estimate
    p: float
    spoiled: tuple[str, ...]

    @property
    def gains(self) -> bool:
        """Whether it is shown to gain more than the defaults."""
        return self.p < 0.05 and self.gain.mean > 0.0

    @property
    def earned(self) -> bool:
        """Whether it gains more than the defaults and does no harm that matters."""
        return self.gains and not self.spoiled


def judge(
    recommended: Mapping[str, Config],
    defaults: Config,
    per_seed: Mapping[str, Mapping[str, Array]],
    default_per_seed: Mapping[str, Array],
) -> list[Judgement]:
    """Judge recommendations on fresh seeds.

    Args:
        recommended: Settings by name.
        defaults: elfmem's defaults.
        per_seed: Each recommendation's objectives by seed.
        default_per_seed: The defaults' objectives at the same seeds.
    """
    gains = {n: v["gain_mean"] - default_per_seed["gain_mean"] for n, v in per_seed.items()}
    adjusted = holm([one_sided(d, 0.0, "greater") for d in gains.values()])
    judged = []
    for (name, gain), p in zip(gains.items(), adjusted, strict=True):
        spoiled = [
            objective
            for objective in ("tax", "harm_adversarial", "harm_poor_proposer")
            if objective in default_per_seed
            and not _at_most(per_seed[name][objective] - default_per_seed[objective])
        ]
        same = recommended[name] == defaults
        judged.append(Judgement(name, same, mean_interval(gain), float(p), tuple(spoiled)))
    return judged


def _at_most(worse: Array) -> bool:
    """Whether a cost is shown to have grown by less than the margin, at the 5 % level."""
    return equivalence(worse, MARGIN).exactly_zero or one_sided(worse, MARGIN, "less") < 0.05


def decision(judged: Sequence[Judgement]) -> Judgement | None:
    """Return the most cautious recommendation that earned its place, or None: change nothing."""
    return next((j for j in judged if j.earned), None)
