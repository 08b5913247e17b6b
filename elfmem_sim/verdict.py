"""Judging claims: a claim's rule, applied to the table of replicates."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.claims import Claim, ClaimFile, Sensitivity
from elfmem_sim.compare import SHARES, differences, values_of
from elfmem_sim.stats import (
    Equivalence,
    Estimate,
    bca_interval,
    distinct_pairs,
    equivalence,
    holm,
    judge_range,
    mean_interval,
    one_sided,
    two_seed_probability,
)
from elfmem_sim.streams import generator

Word = Literal["REPRODUCED", "CONSISTENT", "ABOVE", "BELOW", "CONTRADICTED", "INCONCLUSIVE", "HELD"]
WORDS: tuple[Word, ...] = get_args(Word)
"""All verdicts. HELD is for promises: no violation on the occasions counted by ``n``."""

CONTRADICTING: frozenset[Word] = frozenset({"ABOVE", "BELOW", "CONTRADICTED"})
ALPHA = 0.05
_RESAMPLES = 2000
_PAIRS = 100_000
_UNITS = {"es_concentration": "fold"}
_RANGED = {
    "level": "mean of the treatment",
    "ratio": "control over treatment",
    "spread": "largest minus smallest scenario mean of the treatment",
}


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one claim.

    Attributes:
        id: The claim's id.
        statement: The claim.
        rule: The rule that judged it.
        verdict: One of ``WORDS``.
        estimate: Effect, in ``unit``.
        low: Lower end of the 95 % interval (90 % for an equivalence, as TOST takes it).
        high: Upper end.
        n: Seeds, or occasions for a promise.
        unit: ``pp``, ``%``, ``fold`` or ``violations``; nothing for a number without one.
        p: p-value of the rule's test, after Holm within the claim's family; None without a test.
        bootstrap: BCa 95 % interval of the same mean, as a cross-check; None where it has no sense.
        assumption: What the verdict rests on.
        detail: One plain sentence.
        published: The published effect, where the claim has a single one.
        replayed: The same effect at the published seeds, 0 and 1.
        two_seed_probability: Share of all pairs of seeds that show an effect at least as large as
            the published one, as rounded, in its direction.
    """

    id: str
    statement: str
    rule: str
    verdict: Word
    estimate: float
    low: float
    high: float
    n: int
    unit: str
    p: float | None
    bootstrap: tuple[float, float] | None
    assumption: str
    detail: str
    published: float | None = None
    replayed: float | None = None
    two_seed_probability: float | None = None

    def plain(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready data; infinite ends become None."""
        data = asdict(self)
        for key in ("low", "high"):
            if not np.isfinite(data[key]):
                data[key] = None
        if self.bootstrap is not None and not np.all(np.isfinite(self.bootstrap)):
            data["bootstrap"] = None
        return data


@dataclass(frozen=True)
class Effect:
    """What a claim measures: a function of the means of one or more columns of values.

    Attributes:
        values: One row per seed, ``float64[n, columns]``.
        of: The effect of column means: ``float64[..., columns]`` to ``float64[...]``.
        unit: ``pp``, ``%``, ``fold``, or nothing for a number without one.
    """

    values: NDArray[np.float64]
    of: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    unit: str

    @property
    def is_mean(self) -> bool:
        """Whether the effect is the mean of one number per seed."""
        return bool(self.values.shape[1] == 1)

    def estimate(self, rng: np.random.Generator) -> Estimate:
        """Return the effect with its 95 % interval: Student's for a mean, else a bootstrap's."""
        if self.is_mean:
            return mean_interval(self.values[:, 0])
        n = len(self.values)
        drawn = np.array(
            [self.of(self.values[rng.integers(0, n, n)].mean(axis=0)) for _ in range(_RESAMPLES)]
        )
        low, high = np.quantile(drawn, (0.025, 0.975))
        mean = float(self.of(self.values.mean(axis=0)))
        return Estimate(mean, float(drawn.std(ddof=1)), float(low), float(high), n)

    def replayed(self) -> float:
        """Return the effect at the published seeds, 0 and 1."""
        return float(self.of(self.values[:2].mean(axis=0)))

    def two_seeds(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw ``size`` pairs of distinct seeds and return the effect that each pair shows."""
        first, second = distinct_pairs(len(self.values), rng, size)
        return self.of((self.values[first] + self.values[second]) / 2)

    def two_seed_probability(self, published: float, rng: np.random.Generator) -> float:
        """Return how often two seeds show an effect at least as large, in the same direction.

        Exact over all pairs for a mean; else the share of ``_PAIRS`` pairs drawn at random.
        """
        if self.is_mean:
            return two_seed_probability(self.values[:, 0], published)
        drawn = self.two_seeds(rng, _PAIRS)
        return float(np.mean(drawn >= published if published >= 0 else drawn <= published))


@dataclass(frozen=True)
class _Case:
    """A claim with what is needed to judge it."""

    record: ClaimFile
    claim: Claim
    table: pd.DataFrame
    replay: pd.DataFrame | None

    @property
    def estimand(self) -> str:
        return self.claim.estimand or self.record.protocol.estimand

    @property
    def arms(self) -> tuple[str, str]:
        """Treatment and control: the claim's own, or the protocol's."""
        claim, protocol = self.claim, self.record.protocol
        return claim.treatment or protocol.treatment, claim.control or protocol.control

    def shared(self) -> pd.DataFrame:
        """The rows of the claim's cells, at the seeds up to which all of them were run."""
        rows = self.table[
            self.table["scenario"].isin(self.claim.scenarios)
            & self.table["arm"].isin(self.record.arms_of(self.claim))
            & (self.table["variant"] == "")
        ]
        last = rows.groupby(["scenario", "arm"])["seed"].max().min()
        shared: pd.DataFrame = rows[rows["seed"] <= last]
        return shared

    def differences(self) -> NDArray[np.float64]:
        """Treatment minus control, one per seed."""
        return differences(self.shared(), self.claim.scenarios, *self.arms, self.estimand)

    def effect(self) -> Effect:
        claim = self.claim
        share = self.estimand in SHARES
        if claim.rule == "ratio":
            treatment, control = self._columns(claim.scenarios[:1], self.arms).T
            return Effect(np.column_stack((control, treatment)), _ratio_of, "fold")
        if claim.rule == "spread":
            return Effect(self._columns(claim.scenarios, self.arms[:1]), _range_of, "pp")
        if claim.rule == "level":
            values = self._columns(claim.scenarios, self.arms[:1]).mean(axis=1)
            unit = "%" if share else _UNITS.get(self.estimand, "")
            return Effect(values[:, None], _mean_of, unit)
        values = -self.differences() if claim.rule == "cost" else self.differences()
        return Effect(values[:, None], _mean_of, "pp" if share else _UNITS.get(self.estimand, ""))

    def _columns(self, scenarios: Sequence[str], arms: Sequence[str]) -> NDArray[np.float64]:
        rows = self.shared()
        return np.column_stack(
            [values_of(rows, name, arm, self.estimand) for name in scenarios for arm in arms]
        )

    def bootstrap(self, effect: Effect) -> tuple[float, float] | None:
        if not effect.is_mean:
            return None
        return bca_interval(effect.values[:, 0], generator("bootstrap", self.claim.id))

    def verdict(self, word: Word, e: Estimate, detail: str, **changes: Any) -> Verdict:
        """A verdict on ``e`` in percentage points, but for ``changes``."""
        verdict = Verdict(
            id=self.claim.id,
            statement=self.claim.statement,
            rule=self.claim.rule,
            verdict=word,
            estimate=e.mean,
            low=e.low,
            high=e.high,
            n=e.n,
            unit="pp",
            p=None,
            bootstrap=None,
            assumption=self.record.protocol.assumption,
            detail=detail,
            published=self.claim.published,
        )
        return replace(verdict, **changes)

    def two_seeds(self, effect: Effect) -> dict[str, float]:
        """What the two published seeds show, and how often two seeds show as much."""
        published = self.claim.published
        if published is None:
            return {}
        # What rounds to the published figure counts as it: else the published seeds might not.
        half = 0.5 * 10.0**-self.claim.digits
        least = math.copysign(max(0.0, abs(published) - half), published)
        rng = generator("two-seeds", self.claim.id)
        return {
            "replayed": effect.replayed(),
            "two_seed_probability": effect.two_seed_probability(least, rng),
        }


def _mean_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    return means[..., 0]


def _ratio_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = means[..., 0] / means[..., 1]
    return ratio


def _range_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    spread: NDArray[np.float64] = np.ptp(means, axis=-1)
    return spread


def effect_of(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> Effect:
    """Return what ``claim`` measures.

    Args:
        record: The claim file.
        claim: One of its claims, with a rule about an effect.
        table: Tidy replicates of its protocol.
    """
    return _Case(record, claim, table, None).effect()


def judge(record: ClaimFile, table: pd.DataFrame, replay: pd.DataFrame | None) -> list[Verdict]:
    """Judge every claim of ``record``.

    Args:
        record: The claim file.
        table: Tidy replicates of its protocol.
        replay: The replay of the published table, for claims with the rule ``replay``.

    Returns:
        One verdict per claim, in the file's order.
    """
    rules: Mapping[str, Callable[[_Case], Verdict]] = {
        "range": _range,
        "level": _range,
        "ratio": _range,
        "spread": _range,
        "equivalence": _equivalence,
        "improvement": _one_sided,
        "cost": _one_sided,
        "judges": _judges,
        "promise": _promise,
        "replay": _replay,
    }
    verdicts = [rules[c.rule](_Case(record, c, table, replay)) for c in record.claim]
    return _correct_families(record, verdicts)


def _range_p(values: NDArray[np.float64], estimate: Estimate, low: float, high: float) -> float:
    """p-value against the nearer end of the range, for a mean outside it."""
    if estimate.mean < low:
        return one_sided(values, low, "less")
    if estimate.mean > high:
        return one_sided(values, high, "greater")
    return 1.0


def _range(case: _Case) -> Verdict:
    """Judge a claimed range; the p-value is of a mean only."""
    claim, effect = case.claim, case.effect()
    e = effect.estimate(generator("bootstrap", claim.id))
    unit = f" {effect.unit}" if effect.unit else ""
    detail = f"claimed {claim.low:+g} to {claim.high:+g}{unit}"
    if claim.rule == "range":
        unchanged = float(np.mean(effect.values == 0.0) * 100.0)
        detail += f"; in {unchanged:.0f} % of the seeds nothing changed"
    else:
        detail += f"; {_RANGED[claim.rule]} in {case.estimand}"
    p = _range_p(effect.values[:, 0], e, claim.low, claim.high) if effect.is_mean else None
    return case.verdict(
        judge_range(e, claim.low, claim.high),
        e,
        detail,
        p=p,
        bootstrap=case.bootstrap(effect),
        unit=effect.unit,
        **case.two_seeds(effect),
    )


def _equivalence(case: _Case) -> Verdict:
    effect = case.effect()
    values = effect.values[:, 0]
    test = equivalence(values, case.claim.margin)
    detail = (
        "exactly zero: the arm changed nothing in any run"
        if test.exactly_zero
        else f"margin {case.claim.margin:g} pp, two one-sided tests"
    )
    return case.verdict(
        _equivalence_word(test),
        mean_interval(values),
        detail,
        low=test.low,
        high=test.high,
        p=None if test.exactly_zero else test.p,
        bootstrap=None if test.exactly_zero else case.bootstrap(effect),
        unit=effect.unit,
    )


def _equivalence_word(test: Equivalence) -> Word:
    if test.equivalent:
        return "REPRODUCED"
    return "CONTRADICTED" if test.different else "INCONCLUSIVE"


def _one_sided(case: _Case) -> Verdict:
    """Judge the claim that an improvement, or a cost, is above zero."""
    effect = case.effect()
    values = effect.values[:, 0]
    e = mean_interval(values)
    word: Word = "INCONCLUSIVE"
    if e.low > 0.0:
        word = "REPRODUCED"
    elif e.high <= 0.0:
        word = "CONTRADICTED"
    treatment, control = case.arms
    first, second = (control, treatment) if case.claim.rule == "cost" else (treatment, control)
    return case.verdict(
        word,
        e,
        f"{first} minus {second} in {case.estimand}, one-sided",
        p=one_sided(values, 0.0, "greater"),
        bootstrap=case.bootstrap(effect),
        unit=effect.unit,
        **case.two_seeds(effect),
    )


def _judges(case: _Case) -> Verdict:
    claim, table = case.claim, case.table
    label = claim.variant.label if claim.variant else ""
    rows = table[
        table["scenario"].isin(claim.scenarios)
        & (table["arm"] == case.record.protocol.treatment)
        & (table["variant"] == label)
    ]
    share = 100.0 * (1.0 - rows["insufficient"] / rows["reviews"])
    e = mean_interval(share.groupby(rows["seed"]).mean().to_numpy(float))
    word: Word = "INCONCLUSIVE"
    if e.low >= claim.threshold:
        word = "REPRODUCED"
    elif e.high < claim.threshold:
        word = "CONTRADICTED"
    reviews, judged = rows["reviews"].sum(), (rows["reviews"] - rows["insufficient"]).sum()
    detail = f"{judged} of {reviews} reviews could judge; {rows['accepted'].sum()} amendments"
    return case.verdict(word, e, detail, unit="%", assumption=label)


def _promise(case: _Case) -> Verdict:
    # A violation stops the study with an InvariantError, so a table that exists holds none.
    # The sensitivity cells are left out: some share their runs with others.
    rows = case.table[case.table["variant"].isin(("", "reversions"))]
    occasions = int(rows[case.claim.counts].sum())
    # With no violation seen, 3/n bounds the rate at 95 % (the rule of three).
    high = 0.0 if occasions else np.inf
    return case.verdict(
        "HELD" if occasions else "INCONCLUSIVE",
        Estimate(0.0, 0.0, 0.0, high, occasions),
        f"rate below {3.0 / occasions:.1e} at 95 %" if occasions else "no occasion arose",
        unit="violations",
        assumption="elfmem's own code, checked on every occasion",
    )


def _replay(case: _Case) -> Verdict:
    """Judge whether each published figure is its replay, rounded to the digits printed."""
    if case.replay is None:
        raise ValueError(f"claim {case.claim.id} needs the replay table")
    gaps = (case.replay["replayed"] - case.replay["published"]).abs().to_numpy(float)
    # Half of the last digit, and what rounding errors may add to a figure on the brink.
    exact = gaps <= 0.5 * 10.0 ** -case.replay["digits"].to_numpy(float) + 1e-9
    share = 100.0 * float(exact.mean())
    return case.verdict(
        "REPRODUCED" if exact.all() else "CONTRADICTED",
        Estimate(share, 0.0, share, share, len(gaps)),
        f"{exact.sum()} of {len(gaps)} published figures are their replay, rounded",
        unit="%",
    )


def _correct_families(record: ClaimFile, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Apply Holm within each family; a verdict that does not survive it is softened.

    A claim that was not tested (exactly zero) takes no part in the correction.
    """
    corrected = list(verdicts)
    tested = [
        claim.family if verdict.p is not None else ""
        for claim, verdict in zip(record.claim, verdicts, strict=True)
    ]
    for family in sorted(set(tested) - {""}):
        members = [i for i, own in enumerate(tested) if own == family]
        adjusted = holm(np.array([verdicts[i].p for i in members], float))
        for i, p in zip(members, adjusted, strict=True):
            verdict = verdicts[i].verdict
            if p >= ALPHA and verdict in ("ABOVE", "BELOW"):
                verdict = "CONSISTENT"
            shown_by_p = record.claim[i].rule in ("improvement", "cost", "equivalence")
            if p >= ALPHA and shown_by_p and verdict == "REPRODUCED":
                verdict = "INCONCLUSIVE"
            corrected[i] = replace(verdicts[i], p=float(p), verdict=verdict)
    return corrected


def judge_sensitivity(
    plan: Sensitivity, treatment: str, control: str, table: pd.DataFrame, estimand: str
) -> pd.DataFrame:
    """Judge gain and tax in every combination of assumptions.

    Returns:
        Columns uses_per_learn, cadence_days, proposer, judged (% of reviews), amendments (per
        run), gain, gain_low, gain_high, gain_verdict, tax, tax_low, tax_high, tax_verdict, n.
    """
    rows = []
    for variant in plan.variants:
        labels = (variant.label, variant.control_label)
        gain = differences(table, plan.drifting, treatment, control, estimand, labels)
        tax = differences(table, [plan.stable], treatment, control, estimand, labels)
        e = mean_interval(gain)
        test = equivalence(tax, plan.margin)
        t = mean_interval(tax)
        cell = table[(table["variant"] == variant.label) & table["scenario"].isin(plan.drifting)]
        rows.append(
            {
                "uses_per_learn": variant.uses_per_learn,
                "cadence_days": variant.cadence_days,
                "proposer": variant.proposer,
                "judged": 100.0 * (1.0 - cell["insufficient"].sum() / cell["reviews"].sum()),
                "amendments": cell["accepted"].mean(),
                "gain": e.mean,
                "gain_low": e.low,
                "gain_high": e.high,
                "gain_verdict": judge_range(e, plan.low, plan.high),
                "tax": t.mean,
                "tax_low": test.low,
                "tax_high": test.high,
                "tax_verdict": _equivalence_word(test),
                "n": e.n,
            }
        )
    return pd.DataFrame(rows)
