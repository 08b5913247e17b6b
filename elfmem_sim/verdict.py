"""Judging claims: a claim's rule, applied to the table of replicates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.claims import Claim, ClaimFile, Sensitivity
from elfmem_sim.compare import differences, values_of
from elfmem_sim.stats import (
    Equivalence,
    Estimate,
    bca_interval,
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
        unit: ``pp``, ``%``, ``fold`` or ``violations``.
        p: p-value of the rule's test, after Holm within the claim's family; None without a test.
        bootstrap: BCa 95 % interval of the same mean, as a cross-check; None where it has no sense.
        assumption: What the verdict rests on.
        detail: One plain sentence.
        published: The published effect, where the claim has a single one.
        replayed: The same effect at the published seeds, 0 and 1.
        two_seed_probability: Share of all pairs of seeds that show an effect at least as large as
            the published one, in its direction.
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

    def differences(self) -> NDArray[np.float64]:
        """Treatment minus control, one per seed."""
        return differences(self.table, self.claim.scenarios, *self.arms, self.estimand)

    def bootstrap(self, values: NDArray[np.float64]) -> tuple[float, float]:
        return bca_interval(values, generator("bootstrap", self.claim.id))

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

    def two_seeds(self, values: NDArray[np.float64]) -> dict[str, float]:
        """What the two published seeds show, and how often two seeds show as much."""
        if self.claim.published is None:
            return {}
        return {
            "replayed": float(values[:2].mean()),
            "two_seed_probability": two_seed_probability(values, self.claim.published),
        }


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
        "equivalence": _equivalence,
        "improvement": _improvement,
        "cost": _cost,
        "ratio": _ratio,
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
    claim, values = case.claim, case.differences()
    e = mean_interval(values)
    unchanged = float(np.mean(values == 0.0) * 100.0)
    return case.verdict(
        judge_range(e, claim.low, claim.high),
        e,
        f"claimed {claim.low:+g} to {claim.high:+g} pp; in {unchanged:.0f} % of the seeds "
        "nothing changed",
        p=_range_p(values, e, claim.low, claim.high),
        bootstrap=case.bootstrap(values),
        **case.two_seeds(values),
    )


def _equivalence(case: _Case) -> Verdict:
    values = case.differences()
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
        bootstrap=None if test.exactly_zero else case.bootstrap(values),
    )


def _equivalence_word(test: Equivalence) -> Word:
    if test.equivalent:
        return "REPRODUCED"
    return "CONTRADICTED" if test.different else "INCONCLUSIVE"


def _one_sided(case: _Case, values: NDArray[np.float64], detail: str) -> Verdict:
    """Judge the claim that the mean of ``values`` is above zero."""
    e = mean_interval(values)
    word: Word = "INCONCLUSIVE"
    if e.low > 0.0:
        word = "REPRODUCED"
    elif e.high <= 0.0:
        word = "CONTRADICTED"
    return case.verdict(
        word,
        e,
        detail,
        p=one_sided(values, 0.0, "greater"),
        bootstrap=case.bootstrap(values),
        **case.two_seeds(values),
    )


def _improvement(case: _Case) -> Verdict:
    return _one_sided(case, case.differences(), f"{case.estimand}, one-sided")


def _cost(case: _Case) -> Verdict:
    treatment, control = case.arms
    detail = f"{control} minus {treatment} in {case.estimand}, one-sided"
    return _one_sided(case, -case.differences(), detail)


def _ratio(case: _Case) -> Verdict:
    """Judge how many times larger the control's mean is; the interval is a paired bootstrap's."""
    claim = case.claim
    treatment, control = (
        values_of(case.table, claim.scenarios[0], arm, case.estimand).to_numpy(float)
        for arm in case.arms
    )
    rng = generator("bootstrap", claim.id)
    drawn = rng.integers(0, len(control), (_RESAMPLES, len(control)))
    ratios = control[drawn].mean(axis=1) / treatment[drawn].mean(axis=1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    mean = float(control.mean() / treatment.mean())
    e = Estimate(mean, float(ratios.std(ddof=1)), float(low), float(high), len(control))
    replayed = (
        {}
        if claim.published is None
        else {"replayed": float(control[:2].mean() / treatment[:2].mean())}
    )
    detail = f"claimed {claim.low:g} to {claim.high:g} fold; {case.estimand}, control / treatment"
    word = judge_range(e, claim.low, claim.high)
    return case.verdict(word, e, detail, unit="fold", **replayed)


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
    if case.replay is None:
        raise ValueError(f"claim {case.claim.id} needs the replay table")
    gaps = (case.replay["replayed"] - case.replay["published"]).to_numpy(float)
    worst = float(np.max(np.abs(gaps)))
    return case.verdict(
        "REPRODUCED" if worst <= case.claim.tolerance else "CONTRADICTED",
        Estimate(worst, 0.0, worst, worst, len(gaps)),
        f"largest gap between {len(gaps)} published figures and their replay",
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
