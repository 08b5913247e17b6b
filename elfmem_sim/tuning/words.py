"""A tuning study in plain words. Every sentence is made from the numbers; none knows the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from elfmem_sim.report import REVIEW_THREATS, THREATS, Rows, interval, markdown_table
from elfmem_sim.tuning.recommend import MARGIN, RULES, TOLERANCE, Judgement, decision
from elfmem_sim.tuning.space import Config, Field, Value, changed

IDLE = 0.01
"""A field whose total index is shown to be below this in every objective does next to nothing."""

_NOTABLE = 0.05  # a share of variance worth a word
_GATES = {
    "insufficient_history": "too few reinforced blocks to judge by",
    "cooldown": "the cooldown",
    "drift": "the drift threshold",
    "evidence": "the evidence floor",
    "age": "the least age",
    "cap": "the cap on proposals",
}


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Attributes:
        fields: The fields that were varied.
        scenarios: Scenarios of the search.
        defaults: The defaults' objectives on the search's seeds.
        recommended: Settings by rule.
        judged: What fresh seeds say of them.
        judgements: Their objectives beside the defaults'.
        differences: Their paired differences to the defaults by condition and estimand.
        gates: What became of the blocks at each review, at the defaults.
        morris: Elementary effects.
        sobol: Indices.
        constant: Objectives without variance over the design.
        front: The settings that none beats.
        robustness: Gain and tax under other assumptions.
        trials: Settings that the search tried.
        seeds: Seeds of each evaluation of the search.
        fresh: Seeds of the judgement.
    """

    fields: Sequence[Field]
    scenarios: Sequence[str]
    defaults: Mapping[str, float]
    recommended: Mapping[str, Config]
    judged: Sequence[Judgement]
    judgements: pd.DataFrame
    differences: pd.DataFrame
    gates: pd.DataFrame
    morris: pd.DataFrame
    sobol: pd.DataFrame
    constant: Sequence[str]
    front: pd.DataFrame
    robustness: pd.DataFrame
    trials: int
    seeds: int
    fresh: int


def page(f: Findings) -> str:
    """Return the page: what to change, how sure that is, and why."""
    parts = [
        "# Tuning elfmem's review settings\n",
        "## What we would change\n",
        *_paragraphs([answer(f)]),
        *_paragraphs(_recommendation(f, judged) for judged in f.judged),
        markdown_table(*settings_rows(f)),
        "## How sure we are\n",
        *_paragraphs([certainty(f), *(steadiness(f, j) for j in f.judged)]),
        "Each recommendation that differs from the defaults against them, on fresh seeds:\n",
        markdown_table(*judgement_rows(f)),
        "Gain in quality ratio against the defaults, by condition:\n",
        markdown_table(*condition_rows(f)),
        "## Which gate binds at the defaults\n",
        *_paragraphs(gate_sentences(f.gates)),
        "## What matters\n",
        *_paragraphs([*importance_sentences(f), morris_sentence(f.morris), idle_sentence(f)]),
        "## The search\n",
        *_paragraphs([search_sentence(f)]),
        "The rules, fixed before the run:\n",
        "\n".join(f"- **{rule}**: {text}." for rule, text in RULES.items()) + "\n",
        *_paragraphs([rule_sentence()]),
        "## Under other assumptions\n",
        "One assumption at a time; gain is the mean over the drifting scenarios against an agent "
        "that never reviews, the difference is to the defaults, rank 1 gains most.\n",
        markdown_table(*robustness_rows(_moved(f, f.robustness, "setting"))),
        "## Threats to validity\n",
        "\n".join(f"- {threat}" for threat in (*THREATS, *REVIEW_THREATS)) + "\n",
    ]
    return "\n".join(parts)


def _paragraphs(sentences: Any) -> list[str]:
    return [f"{sentence}\n" for sentence in sentences if sentence]


def answer(f: Findings) -> str:
    """Say what to change in elfmem's defaults, or that nothing should be."""
    best = decision(f.judged)
    if best is None:
        return _change_nothing(f)
    text = (
        f"**Change {_changes(f, best.name)}** (the {best.name} recommendation). In the drifting "
        f"scenarios that gains {_signed(best.gain.mean)} pp over the defaults "
        f"(95 % interval {interval(best.gain.low, best.gain.high)}, n = {best.gain.n})"
    )
    return f"{text}. {_price(f, best.name)}"


def _change_nothing(f: Findings) -> str:
    text = (
        "**Change nothing.** No recommendation is shown to gain more than elfmem's defaults "
        "without doing harm."
    )
    spoiled = [j for j in f.judged if j.gains and j.spoiled]
    if not spoiled:
        return text
    names = _listed([j.name for j in spoiled])
    costs = _listed(sorted({_plain(cost) for j in spoiled for cost in j.spoiled}))
    one = len(spoiled) == 1
    return (
        f"{text} A larger gain is shown for the {names} recommendation{'' if one else 's'}, but "
        f"{costs} could not be shown to grow by less than {MARGIN:g} pp on {f.fresh} seeds. Harm "
        "is the mean over seeds of what is lost, a gain counting as 0: it can grow where the mean "
        "improves, and the table by condition says whether it does."
    )


def _price(f: Findings, name: str) -> str:
    rows = f.judgements[f.judgements["recommendation"] == name].set_index("objective")
    read, kept = rows.loc["amendments"], rows.loc["retention"]
    return (
        f"The price: {read['value']:.1f} amendments a year to read instead of "
        f"{read['default']:.1f}, and a constitution that keeps {kept['value']:.1f} % similarity to "
        f"the original one instead of {kept['default']:.1f} %."
    )


def _recommendation(f: Findings, j: Judgement) -> str:
    start = f"The **{j.name}** recommendation"
    if j.same:
        return f"{start} is elfmem's defaults: the search found nothing that its rule prefers."
    gain = (
        f"{start} sets {_changes(f, j.name)}. Its gain differs from the defaults' by "
        f"{_signed(j.gain.mean)} pp ({interval(j.gain.low, j.gain.high)}, n = {j.gain.n}, "
        f"p = {j.p:.2g})"
    )
    if j.earned:
        return f"{gain}, and tax and harm grow by less than {MARGIN:g} pp. {_price(f, j.name)}"
    reasons = []
    if not j.gains:
        reasons.append("a larger gain is not shown")
    if j.spoiled:
        names = _listed([_plain(name) for name in j.spoiled])
        reasons.append(f"{names} may grow by {MARGIN:g} pp or more")
    return f"{gain}; it does not earn a change, as {_listed(reasons)}."


def _changes(f: Findings, name: str) -> str:
    config = f.recommended[name]
    by_name = {field.name: field for field in f.fields}
    return _listed(
        [
            f"`{key}` from {_value(by_name[key].default)} to {_value(config[key])}"
            for key in changed(f.fields, config)
        ]
    )


def certainty(f: Findings) -> str:
    """Say what the figures rest on."""
    return (
        f"The search saw {f.seeds} seeds a setting; all figures about a recommendation come from "
        f"{f.fresh} seeds that it never saw, paired with the defaults within each seed. Intervals "
        f"are 95 %; p-values are one-sided and Holm-adjusted over the {len(f.judged)} "
        f"recommendations. A change is advised only if a larger gain is shown and tax and harm "
        f"are shown to grow by less than {MARGIN:g} pp."
    )


def steadiness(f: Findings, j: Judgement) -> str:
    """Say under which assumptions a recommendation gains more than the defaults."""
    if j.same:
        return ""
    rows = f.robustness[f.robustness["setting"] == j.name]
    better = [_level(r) for r in _rows(rows) if r.low > 0.0]
    worse = [_level(r) for r in _rows(rows) if r.high < 0.0]
    equal = [_level(r) for r in _rows(rows) if r.low == r.high == 0.0]
    rest = len(rows) - len(better) - len(worse) - len(equal)
    name = f"The {j.name} recommendation"
    if not better:
        text = f"{name} is shown to gain more than the defaults under none of {len(rows)} sets of "
        text += "assumptions"
    elif len(better) == 1:
        text = f"{name} **holds only under one assumption** of {len(rows)} ({better[0]})"
    else:
        text = f"{name} gains more than the defaults under {len(better)} of {len(rows)} sets of "
        text += f"assumptions ({_listed(better)})"
    for kind, levels in (("less", worse), ("exactly as much", equal)):
        if levels:
            text += f", {kind} under {len(levels)} ({_listed(levels)})"
    return text + (f", and the rest, {rest}, are undecided." if rest else ".")


def _level(row: Any) -> str:
    return f"{row.assumption} {row.level}".strip()


def gate_sentences(gates: pd.DataFrame) -> list[str]:
    """Say, per scenario, what became of the blocks and which gate held back most."""
    sentences = []
    for scenario, part in gates.groupby("scenario", sort=False):
        # Every day weighs as much as it has blocks.
        blocks = (part["share"] * part["n"]).groupby(part["reason"]).sum()
        shares = 100.0 * blocks / blocks.sum()
        held = shares.drop("proposed").sort_values(ascending=False)
        text = f"{scenario}: {shares['proposed']:.1f} % of all blocks at all reviews were proposed"
        if held.iloc[0] > 0.0:
            most = [f"{_GATES[str(k)]} {v:.1f} %" for k, v in held.items() if v >= 0.05]
            text += f"; held back by {_listed(most)}"
        sentences.append(f"{text} (n = {part.groupby('day')['n'].first().sum():,}).")
    return sentences


def importance_sentences(f: Findings) -> list[str]:
    """Say, per objective, which fields take part in its variance, the strongest first."""
    sentences: list[str] = []
    for objective, part in f.sobol.groupby("objective", sort=False):
        twin = str(part["same_as"].iloc[0])
        if twin:
            sentences.append(
                f"**{_plain(str(objective))}** had the same values as {_plain(twin)} at every "
                "setting of the design."
            )
            continue
        strong = part[part["total"] >= _NOTABLE].sort_values("total", ascending=False)
        words = [
            f"`{r.field}` {100 * r.total:.0f} % "
            f"({interval(100 * r.total_low, 100 * r.total_high, 0)})"
            for r in _rows(strong)
        ]
        sentences.append(
            f"**{_plain(str(objective))}**: shares of variance in which a field takes part: "
            f"{_listed(words)}."
        )
    for name in f.constant:
        sentences.append(
            f"**{_plain(name)}** has one value over the whole design, so there is nothing to "
            "share out."
        )
    if len(f.sobol):
        n = int(f.sobol["n"].iloc[0])
        sentences.append(
            f"Total-order Sobol' indices with bootstrap intervals, from {n * (len(f.fields) + 2):,}"
            f" settings at {f.seeds} seeds each. Shares can add up to more than 100 %, as "
            "interactions count for every field in them."
        )
    return sentences


def morris_sentence(morris: pd.DataFrame) -> str:
    """Say what the screening found for the first objective."""
    if morris.empty or not morris["mean_absolute"].any():
        return ""
    moved = morris[morris["mean_absolute"] > 0.0]
    part = moved[moved["objective"] == moved["objective"].iloc[0]]
    strong = part.sort_values("mean_absolute", ascending=False, kind="stable").head(3)
    words = [f"`{r.field}` {r.mean_absolute:.1f} ± {r.mcse:.1f} {r.unit}" for r in _rows(strong)]
    return (
        f"Morris's screening, mean absolute effect on {_plain(str(part['objective'].iloc[0]))} of "
        f"crossing a field's range (± Monte-Carlo error, {part['n'].iloc[0]} trajectories): "
        f"{_listed(words)}; {len(part)} of {morris['field'].nunique()} fields moved it at all."
    )


def idle_fields(sobol: pd.DataFrame) -> list[str]:
    """Return the fields that are shown to do nothing to speak of in any objective."""
    if sobol.empty:
        return []
    highest = sobol.groupby("field", sort=False)["total_high"].max()
    return [str(name) for name in highest[highest < IDLE].index]


def idle_sentence(f: Findings) -> str:
    """Name the fields that do nothing in the simulated range."""
    idle = idle_fields(f.sobol)
    if not idle:
        return "No field is shown to be idle in the range that was simulated."
    by_name = {field.name: field.range for field in f.fields}
    unmoved = f.sobol.groupby("field", sort=False)["unmoved"].min()
    words = []
    for name in idle:
        never = "changed no objective at all" if unmoved[name] == 100.0 else "next to nothing"
        words.append(f"`{name}` ({by_name[name].low:g} to {by_name[name].high:g}: {never})")
    return f"Doing nothing in the simulated range: {_listed(words)}."


def search_sentence(f: Findings) -> str:
    """Say how far the search went."""
    return (
        f"{f.trials:,} settings were tried in {_listed(list(f.scenarios))} and with a poor "
        f"proposer; {len(f.front):,} of them are beaten by no other in everything."
    )


def rule_sentence() -> str:
    """Say what all rules share."""
    limits = [f"{limit:g} {unit}" for unit, limit in TOLERANCE.items()]
    return (
        f"Every rule asks for a tax of at most {MARGIN:g} pp (or the defaults', if larger), lets "
        "the defaults compete, and prefers fewer amendments, then fewer changes, among equals. "
        "What a rule picked is made simpler: fields go back to the default, the least important "
        "first, as long as no objective is worse than the pick's by more than "
        f"{_listed(limits)}, by its unit."
    )


def settings_rows(f: Findings) -> tuple[list[str], Rows]:
    """Return header and rows of the settings, changes in bold."""
    header = ["field", "varied", "default", *f.recommended]
    rows = []
    for field in f.fields:
        cells = [
            f"**{_value(c[field.name])}**"
            if c[field.name] != field.default
            else _value(c[field.name])
            for c in f.recommended.values()
        ]
        varied = f"{field.range.low:g} to {field.range.high:g}"
        rows.append([f"`{field.name}`", varied, _value(field.default), *cells])
    return header, rows


def judgement_rows(f: Findings) -> tuple[list[str], Rows]:
    """Return header and rows of the objectives on fresh seeds."""
    header = [
        "recommendation", "objective", "value", "defaults", "difference", "95 % interval", "n"
    ]  # fmt: skip
    rows = [
        [
            str(r.recommendation),
            f"{_plain(str(r.objective))} ({r.unit})",
            f"{r.value:.2f}",
            f"{r.default:.2f}",
            _signed(r.mean, 2),
            interval(r.low, r.high, 2),
            str(r.n),
        ]
        for r in _rows(_moved(f, f.judgements, "recommendation"))
    ]
    return header, rows


def condition_rows(f: Findings) -> tuple[list[str], Rows]:
    """Return header and rows of the differences in quality ratio."""
    shown = _moved(f, f.differences, "recommendation")
    shown = shown[shown["estimand"] == "quality_ratio"]
    header = ["recommendation", "condition", "difference (pp)", "95 % interval", "n"]
    rows = [
        [
            str(r.recommendation),
            str(r.condition),
            _signed(r.mean, 2),
            interval(r.low, r.high, 2),
            str(r.n),
        ]
        for r in _rows(shown)
    ]
    return header, rows


def robustness_rows(robustness: pd.DataFrame) -> tuple[list[str], Rows]:
    """Return header and rows of the table of other assumptions."""
    header = [
        "assumption", "setting", "gain (pp)", "tax (pp)", "amendments", "difference (pp)",
        "95 % interval", "rank", "n",
    ]  # fmt: skip
    rows = [
        [
            _level(r),
            str(r.setting),
            f"{r.gain:.1f}",
            f"{r.tax:.2f}",
            f"{r.amendments:.1f}",
            _signed(r.difference, 2),
            interval(r.low, r.high, 2),
            str(r.rank),
            str(r.n),
        ]
        for r in _rows(robustness)
    ]
    return header, rows


def explain_rows(sweep: pd.DataFrame) -> tuple[list[str], Rows]:
    """Return header and rows of one field's sweep."""
    header = ["value", "scenario", "estimand", "difference to no review", "95 % interval", "n"]
    rows = [
        [
            _value(r.value),
            str(r.scenario),
            str(r.estimand),
            _signed(r.mean, 2),
            interval(r.low, r.high, 2),
            str(r.n),
        ]
        for r in _rows(sweep)
    ]
    return header, rows


def yaml_text(rule: str, fields: Sequence[Field], config: Config, command: str) -> str:
    """Return a configuration file for elfmem with one recommendation's settings."""
    moved = changed(fields, config)
    what = "changes " + ", ".join(moved) if moved else "is elfmem's defaults, unchanged"
    lines = [f"# The {rule} recommendation of `{command}`: {what}.", "review:"]
    for field in fields:
        note = f"  # default {_value(field.default)}" if field.name in moved else ""
        lines.append(f"  {field.name}: {_value(config[field.name])}{note}")
    return "\n".join(lines) + "\n"


def _moved(f: Findings, frame: pd.DataFrame, key: str) -> pd.DataFrame:
    """Leave out the recommendations that are the defaults: every difference of theirs is 0."""
    return frame[~frame[key].isin([j.name for j in f.judged if j.same])]


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples(index=False))


def _plain(objective: str) -> str:
    return objective.replace("_", " ")


def _value(value: Value) -> str:
    return f"{value:.10g}"


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}f}" if value else f"{0:.{digits}f}"


def _listed(words: Sequence[str]) -> str:
    """Join words as a sentence does."""
    if not words:
        return "none"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
