"""Judging claims: a claim's rule, applied to the table of replicates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.claims import Claim, ClaimFile, Sensitivity
from elfmem_sim.compare import differences
from elfmem_sim.stats import (
    Estimate,
    bca_interval,
    equivalence,
    holm,
    judge_range,
    mean_interval,
    one_sided,
)
from elfmem_sim.streams import generator

Word = Literal["REPRODUCED", "CONSISTENT", "ABOVE", "BELOW", "CONTRADICTED", "INCONCLUSIVE", "HELD"]
WORDS: tuple[Word, ...] = get_args(Word)
"""All verdicts. HELD is for promises: no violation on the occasions counted by ``n``."""

CONTRADICTING: frozenset[Word] = frozenset({"ABOVE", "BELOW", "CONTRADICTED"})
ALPHA = 0.05


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
        unit: ``pp``, ``%`` or ``violations``.
        p: p-value of the rule's test, after Holm within the claim's family; None without a test.
        bootstrap: BCa 95 % interval of the same mean, as a cross-check; None where it has no sense.
        assumption: What the verdict rests on.
        detail: One plain sentence.
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

    def plain(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready data; infinite ends become None."""
        data = asdict(self)
        for key in ("low", "high"):
            if not np.isfinite(data[key]):
                data[key] = None
        if self.bootstrap is not None and not np.all(np.isfinite(self.bootstrap)):
            data["bootstrap"] = None
        return data


def judge(record: ClaimFile, table: pd.DataFrame, replay: pd.DataFrame | None) -> list[Verdict]:
    """Judge every claim of ``record``.

    Args:
        record: The claim file.
        table: Tidy replicates of its protocol.
        replay: The replay of the published table, for claims with the rule ``replay``.

    Returns:
        One verdict per claim, in the file's order.
    """
    rules: Mapping[str, Callable[[Claim], Verdict]] = {
        "range": lambda claim: _range(record, claim, table),
        "equivalence": lambda claim: _equivalence(record, claim, table),
        "improvement": lambda claim: _improvement(record, claim, table),
        "judges": lambda claim: _judges(record, claim, table),
        "promise": lambda claim: _promise(claim, table),
        "replay": lambda claim: _replay(record, claim, replay),
    }
    return _correct_families(record, [rules[claim.rule](claim) for claim in record.claim])


def paired(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> NDArray[np.float64]:
    """Return the claim's paired differences, one per seed."""
    protocol = record.protocol
    return differences(
        table,
        claim.scenarios,
        protocol.treatment,
        protocol.control,
        claim.estimand or protocol.estimand,
    )


def _bootstrap(claim: Claim, values: NDArray[np.float64]) -> tuple[float, float]:
    return bca_interval(values, generator("bootstrap", claim.id))


def _range_p(values: NDArray[np.float64], estimate: Estimate, low: float, high: float) -> float:
    """p-value against the nearer end of the range, for a mean outside it."""
    if estimate.mean < low:
        return one_sided(values, low, "less")
    if estimate.mean > high:
        return one_sided(values, high, "greater")
    return 1.0


def _range(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> Verdict:
    values = paired(record, claim, table)
    e = mean_interval(values)
    word: Word = judge_range(e, claim.low, claim.high)
    unchanged = float(np.mean(values == 0.0) * 100.0)
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict=word,
        estimate=e.mean,
        low=e.low,
        high=e.high,
        n=e.n,
        unit="pp",
        p=_range_p(values, e, claim.low, claim.high),
        bootstrap=_bootstrap(claim, values),
        assumption=record.protocol.assumption,
        detail=f"claimed {claim.low:+g} to {claim.high:+g} pp; in {unchanged:.0f} % of the seeds "
        "nothing changed",
    )


def _equivalence(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> Verdict:
    values = paired(record, claim, table)
    e = mean_interval(values)
    test = equivalence(values, claim.margin)
    word: Word
    if test.equivalent:
        word = "REPRODUCED"
    elif test.different:
        word = "CONTRADICTED"
    else:
        word = "INCONCLUSIVE"
    detail = (
        "exactly zero: the arm changed nothing in any run"
        if test.exactly_zero
        else f"margin {claim.margin:g} pp, two one-sided tests"
    )
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict=word,
        estimate=e.mean,
        low=test.low,
        high=test.high,
        n=e.n,
        unit="pp",
        p=None if test.exactly_zero else test.p,
        bootstrap=None if test.exactly_zero else _bootstrap(claim, values),
        assumption=record.protocol.assumption,
        detail=detail,
    )


def _improvement(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> Verdict:
    values = paired(record, claim, table)
    e = mean_interval(values)
    word: Word = "INCONCLUSIVE"
    if e.low > 0.0:
        word = "REPRODUCED"
    elif e.high <= 0.0:
        word = "CONTRADICTED"
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict=word,
        estimate=e.mean,
        low=e.low,
        high=e.high,
        n=e.n,
        unit="pp",
        p=one_sided(values, 0.0, "greater"),
        bootstrap=_bootstrap(claim, values),
        assumption=record.protocol.assumption,
        detail=f"{claim.estimand or record.protocol.estimand}, one-sided",
    )


def _judges(record: ClaimFile, claim: Claim, table: pd.DataFrame) -> Verdict:
    label = claim.variant.label if claim.variant else ""
    rows = table[
        table["scenario"].isin(claim.scenarios)
        & (table["arm"] == record.protocol.treatment)
        & (table["variant"] == label)
    ]
    share = 100.0 * (1.0 - rows["insufficient"] / rows["reviews"])
    by_seed = share.groupby(rows["seed"]).mean().to_numpy(float)
    e = mean_interval(by_seed)
    word: Word = "INCONCLUSIVE"
    if e.low >= claim.threshold:
        word = "REPRODUCED"
    elif e.high < claim.threshold:
        word = "CONTRADICTED"
    reviews, judged = (
        int(rows["reviews"].sum()),
        int((rows["reviews"] - rows["insufficient"]).sum()),
    )
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict=word,
        estimate=e.mean,
        low=e.low,
        high=e.high,
        n=e.n,
        unit="%",
        p=None,
        bootstrap=None,
        assumption=label,
        detail=f"{judged} of {reviews} reviews could judge; "
        f"{int(rows['accepted'].sum())} amendments",
    )


def _promise(claim: Claim, table: pd.DataFrame) -> Verdict:
    # A violation stops the study with an InvariantError, so a table that exists holds none.
    # The sensitivity cells are left out: some share their runs with others.
    rows = table[table["variant"].isin(("", "reversions"))]
    occasions = int(rows[claim.counts].sum())
    # With no violation seen, 3/n bounds the rate at 95 % (the rule of three).
    bound = 3.0 / occasions if occasions else np.inf
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict="HELD" if occasions else "INCONCLUSIVE",
        estimate=0.0,
        low=0.0,
        high=0.0 if occasions else np.inf,
        n=occasions,
        unit="violations",
        p=None,
        bootstrap=None,
        assumption="elfmem's own code, checked on every occasion",
        detail=f"rate below {bound:.1e} at 95 %" if occasions else "no occasion arose",
    )


def _replay(record: ClaimFile, claim: Claim, replay: pd.DataFrame | None) -> Verdict:
    if replay is None:
        raise ValueError(f"claim {claim.id} needs the replay table")
    gaps = (replay["replayed"] - replay["published"]).to_numpy(float)
    worst = float(np.max(np.abs(gaps)))
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        rule=claim.rule,
        verdict="REPRODUCED" if worst <= claim.tolerance else "CONTRADICTED",
        estimate=worst,
        low=worst,
        high=worst,
        n=len(gaps),
        unit="pp",
        p=None,
        bootstrap=None,
        assumption=record.protocol.assumption,
        detail=f"largest gap between {len(gaps)} published figures and their replay",
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
            shown_by_p = record.claim[i].rule in ("improvement", "equivalence")
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
        tax_word = (
            "REPRODUCED"
            if test.equivalent
            else ("CONTRADICTED" if test.different else "INCONCLUSIVE")
        )
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
                "tax_verdict": tax_word,
                "n": e.n,
            }
        )
    return pd.DataFrame(rows)
