"""Tables for people: on the terminal and in Markdown. Nothing is computed here."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elfmem_sim.claims import ClaimFile
from elfmem_sim.compare import SHARES
from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

Rows = list[list[str]]

_CONCLUSIONS = {
    "REPRODUCED": "Stands",
    "CONSISTENT": "Stands within its error",
    "ABOVE": "Changes in size",
    "BELOW": "Changes in size",
    "CONTRADICTED": "Does not stand",
    "INCONCLUSIVE": "Not shown",
}
_NONE = 1.0  # a published effect below the point by which single figures are judged is none

_UNBOUNDED = 10_000  # columns; a table takes only those that it needs

OTHER_ESTIMANDS = ESTIMANDS
"""Estimands in which a report repeats the comparison, in order."""

THREATS = (
    "The model is not elfmem's retrieval pipeline: one formula scores every block, without "
    "elfmem's search window, graph expansion, consolidation or archiving.",
    'The regime change, published as a "rotation by 60 degrees", is a blend: 0.5 of the old self '
    "and 0.866 of a direction drawn around it, so the angle differs from seed to seed.",
    "The estimand is the quality ratio on the last measured day; its mean over the run "
    "(quality_ratio_over_time) weighs early and late days alike and can differ in size.",
    "Where the constitution is kept out of ATTENTION (Architecture M, Models C and D, the "
    "self-architect at weight 0), no ego parameter can reach the quality ratio: such arms differ "
    "from each other by nothing but the random draws that they use up.",
)
"""What limits any study on the published workloads."""

_SHOWN_OBJECTIVES = ("self_architect", "self_architect_rollout")
_WORLD_QUANTITIES = (
    "angle_day_120",
    "angle_ordinary_day",
    "angle_net",
    "path",
    "drift_block_end",
    "drift_most_end",
    "drift_most_peak",
    "share_any_above",
    "first_day_any_above",
)

REVIEW_THREATS = (
    "How often an agent uses what it has learned (uses_per_learn) is an assumption; the decision "
    "record does not state it.",
    "The stand-in proposer and embedding are ideal: a proposal says what its evidence says, and "
    "its text embeds to exactly that, which a language model need not reach.",
    "On elfmem 0.20, constitutional blocks no longer appear in ATTENTION at all, so this "
    "mechanism cannot act there.",
)
"""What limits a study of the review besides."""


def interval(low: float, high: float, digits: int = 1) -> str:
    """Return an interval as text."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "unbounded"
    return f"{low:.{digits}f} to {high:.{digits}f}"


def verdict_table(verdicts: Sequence[Verdict]) -> tuple[list[str], Rows]:
    """Return header and rows of the verdict table."""
    header = ["claim", "verdict", "effect", "interval", "n", "p", "detail"]
    rows = []
    for v in verdicts:
        digits = 0 if v.unit == "violations" else 2
        rows.append(
            [
                v.id,
                v.verdict,
                f"{v.estimate:.{digits}f} {v.unit}",
                interval(v.low, v.high, digits),
                f"{v.n}",
                "" if v.p is None else ("<0.0001" if v.p < 1e-4 else f"{v.p:.4f}"),
                v.detail,
            ]
        )
    return header, rows


def assumption_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return, for each assumption, the claims that rest on it."""
    claims: dict[str, list[str]] = {}
    for verdict in verdicts:
        claims.setdefault(verdict.assumption, []).append(verdict.id)
    if len(claims) == 1:
        return [f"Assumed for all claims: {text}." for text in claims]
    return [f"Assumed for {', '.join(ids)}: {text}." for text, ids in claims.items()]


def replay_rows(replay: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of the replay table."""
    header = [
        "scenario", "arm", "estimand", "published", "seeds 0, 1", "population", "95 % interval",
        "n", "percentile",
    ]  # fmt: skip
    rows = [
        [
            str(row.scenario),
            str(row.arm),
            str(row.estimand),
            f"{row.published:.{row.digits}f}",
            f"{row.replayed:.{row.digits}f}",
            f"{row.mean:.{row.digits}f}",
            interval(_number(row.low), _number(row.high), int(str(row.digits))),
            str(row.n),
            f"{row.percentile:.0f}",
        ]
        for row in replay.itertuples(index=False)
    ]
    return header, rows


def sensitivity_rows(sensitivity: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of the sensitivity table."""
    header = [
        "uses", "cadence", "proposer", "reviews that judge", "amendments", "gain", "95 % interval",
        "verdict", "tax", "tax verdict", "n",
    ]  # fmt: skip
    rows = [
        [
            str(row.uses_per_learn),
            f"{row.cadence_days} d",
            str(row.proposer),
            f"{row.judged:.0f} %",
            f"{row.amendments:.1f}",
            f"{row.gain:.1f} pp",
            interval(_number(row.gain_low), _number(row.gain_high)),
            str(row.gain_verdict),
            f"{row.tax:.2f} pp",
            str(row.tax_verdict),
            str(row.n),
        ]
        for row in sensitivity.itertuples(index=False)
    ]
    return header, rows


def estimate_rows(frame: "pd.DataFrame", keys: Sequence[str]) -> tuple[list[str], Rows]:
    """Return header and rows of a table with columns mean, mcse, low, high, n."""
    header = [*keys, "mean", "MC error", "95 % interval", "n"]
    rows = [
        [
            *(str(row[key]) for key in keys),
            f"{row['mean']:.2f}",
            f"{row['mcse']:.2f}",
            interval(row["low"], row["high"], 2),
            str(row["n"]),
        ]
        for _, row in frame.iterrows()
    ]
    return header, rows


def keys_of(frame: "pd.DataFrame", *keys: str) -> list[str]:
    """Return ``keys`` and, where the table has variants, that of the variant before the last."""
    varied = len(frame) > 0 and bool((frame["variant"] != "").any())
    return [*keys[:-1], "variant", keys[-1]] if varied else list(keys)


def difference_rows(differences: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of the paired differences in ``OTHER_ESTIMANDS``."""
    shown = differences[differences["estimand"].isin(OTHER_ESTIMANDS)]
    keys = keys_of(shown, "scenario", "arm", "estimand")
    header, rows = estimate_rows(shown, keys)
    for row in rows:
        row[len(keys) - 1] += " (pp)" if row[len(keys) - 1] in SHARES else ""
    header[header.index("mean")] = "difference"
    return header, rows


def markdown_table(header: Sequence[str], rows: Rows) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def markdown(
    record: ClaimFile,
    verdicts: Sequence[Verdict],
    replay: "pd.DataFrame | None",
    sensitivity: "pd.DataFrame | None",
    notes: Sequence[str],
    differences: "pd.DataFrame | None" = None,
) -> str:
    """Return the whole verification as Markdown, verdicts first."""
    parts = [
        f"# ADR {record.adr}: {record.title}\n",
        f"Claimed: {record.statement}\n",
        markdown_table(*verdict_table(verdicts)),
        *(f"{line}\n" for line in assumption_lines(verdicts)),
        "Effects are paired within seed. Intervals are 95 % (90 % where the rule is equivalence); "
        "p-values are Holm-adjusted within a claim's family.\n",
    ]
    parts += [f"{note}\n" for note in notes]
    if sensitivity is not None:
        parts += [
            "## What the claim needs to be true\n",
            "The gain is the equal-weight mean over the drifting scenarios, judged by the "
            "headline's rule in every combination of what the decision record leaves open.\n",
            markdown_table(*sensitivity_rows(sensitivity)),
        ]
    if replay is not None:
        parts += [
            "## Published figures, replayed\n",
            "Percentile: where the two published seeds fall among the means of all pairs of "
            "seeds.\n",
            markdown_table(*replay_rows(replay)),
        ]
    if differences is not None:
        parts += [
            "## The same comparison in other estimands\n",
            f"Each arm minus {record.protocol.control or 'baseline'}, paired within seed: shares "
            "in percentage points (pp), amendments and proposer calls in counts per year.\n",
            markdown_table(*difference_rows(differences)),
        ]
    threats = THREATS + REVIEW_THREATS if record.sensitivity is not None else THREATS
    parts += ["## Threats to validity\n", "\n".join(f"- {threat}" for threat in threats) + "\n"]
    return "\n".join(parts)


def conclusion(v: Verdict) -> str:
    """Return one plain sentence on what a verdict does to its claim."""
    if v.verdict == "HELD":
        return f"**Stands.** {v.statement} No violation on {v.n:,} occasions."
    if v.unit == "%":  # a share of figures or of reviews, whose detail says of what
        return f"**{_CONCLUSIONS[v.verdict]}.** {v.statement} {v.detail}."
    digits = 2 if v.unit else 3
    size = f"{v.estimate:.{digits}f} {v.unit}".strip()
    measured = f"measured {size} ({interval(v.low, v.high, digits)}; n = {v.n:,})"
    change = _change(v)
    if change:
        return f"**Changes.** {v.statement} {change}: {measured}."
    return f"**{_CONCLUSIONS[v.verdict]}.** {v.statement} It is {measured}."


def _change(v: Verdict) -> str:
    """Say how an effect is another one than published; nothing if only its size differs."""
    nothing = v.low <= 0.0 <= v.high
    if v.verdict in ("ABOVE", "BELOW"):
        # A range without a single figure is of gains.
        claimed = _NONE if v.published is None else v.published
        if nothing:
            return "No effect is left"
        if abs(claimed) < _NONE:
            return "There is an effect"
        return "The effect has the other sign" if (claimed < 0.0) != (v.estimate < 0.0) else ""
    gone = nothing and v.published is not None and not v.low <= v.published <= v.high
    return "No effect is left" if v.verdict == "INCONCLUSIVE" and gone else ""


def audit_rows(table: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of the audit table."""
    rows = [
        [
            str(row.claim),
            str(row.adr),
            str(row.scenario),
            str(row.horizon_days),
            _optional(_number(row.published), 1),
            _optional(_number(row.replayed), 1),
            f"{row.estimate:.2f}",
            _optional(_number(row.low), 2),
            _optional(_number(row.high), 2),
            str(row.n),
            _optional(_number(row.two_seed_probability), 3),
            str(row.verdict),
        ]
        for row in table.itertuples(index=False)
    ]
    return list(table.columns), rows


def audit_markdown(
    records: Mapping[str, ClaimFile],
    verdicts: Mapping[str, Sequence[Verdict]],
    table: "pd.DataFrame",
    context: "Mapping[str, pd.DataFrame]",
    notes: Sequence[str],
) -> str:
    """Return the whole audit as Markdown: conclusions, the table, and what decides them.

    Args:
        records: The claim files by ADR.
        verdicts: Their verdicts.
        table: The audit table.
        context: ``climbers.csv``, ``responses.csv``, ``choices.csv`` and ``worlds.csv``.
        notes: What the reader should know about how it came about.
    """
    keys = ["scenario", "arm", "control"]
    parts = [
        "# The published evidence, audited\n",
        "Every quantitative claim of elfmem's decision records 0001 to 0004, replayed at the "
        "published seeds and measured at population size. Effects are in percentage points, "
        "paired within seed, with 95 % intervals (90 % where the claim is an equivalence), unless "
        "the claim names another unit. `replayed` is the effect at seeds 0 and 1, on which the "
        "records rest; `two_seed_probability` is how often two seeds show an effect at least as "
        "large as the published one, in its direction.\n",
        "## What stands and what changes\n",
    ]
    for adr, group in verdicts.items():
        parts += [
            f"### ADR {adr}: {records[adr].title}\n",
            f"Claimed: {records[adr].statement}\n",
            "\n".join(f"- {conclusion(v)}" for v in group) + "\n",
        ]
        parts += [f"{line}\n" for line in assumption_lines(group)]
    parts += ["## The table\n", markdown_table(*audit_rows(table))]
    parts += [f"{note}\n" for note in notes]
    parts += [
        "![Published effects on the distribution of what two seeds show](audit.png)\n",
        "## What the scenarios really do\n",
        "Angles of the self in degrees, elfmem's drift score of an unamended constitution against "
        "the centroid that a review would take that day (each learned block used three times), and "
        "the share of seeds in which that score is ever above the shipped threshold. A score of "
        ".35 is an angle of 72.5 degrees. `worlds.csv` has more quantities.\n",
        *(f"{line}\n" for line in world_lines(context["worlds.csv"])),
        markdown_table(*world_rows(context["worlds.csv"])),
        "## Can the self-architect see its own knobs?\n",
        "What each objective makes of one step of each knob, in percentage points, along the "
        "published agent's life: its mean response on common draws; the noise of one comparison "
        "as the objective draws it, and of present knobs against themselves (null); the signal in "
        "it; and the share of comparisons whose response on common draws is exactly zero. "
        "`responses.csv` has the objectives in between too.\n",
        *(f"{line}\n" for line in sight_lines(context["responses.csv"])),
        markdown_table(*response_rows(context["responses.csv"])),
        "What they choose, and what it is worth by an independent valuation (200 queries, or a "
        "rollout of 28 days); `invisible`: share of moves that turn a knob to which shadow "
        "queries never respond.\n",
        markdown_table(*choice_rows(context["choices.csv"])),
        "## The self-architect with other objectives\n",
        "The same hill-climber, with its published objective (eight fresh queries a candidate), "
        "with a coin for an objective (blind), and with sounder ones: eight queries common to all "
        "candidates, 200 common queries, and a rollout of 28 days. Each arm minus each control, "
        "in quality ratio, paired within seed.\n",
        *(f"{line}\n" for line in climber_lines(context["climbers.csv"])),
        markdown_table(*estimate_rows(_quality(context["climbers.csv"]), keys)),
        "## Threats to validity\n",
        "\n".join(f"- {threat}" for threat in (*THREATS, *REVIEW_THREATS)) + "\n",
    ]
    return "\n".join(parts)


def run_markdown(
    command: str, summary: "pd.DataFrame", differences: "pd.DataFrame", notes: Sequence[str]
) -> str:
    """Return a free study as Markdown: differences first."""
    parts = ["# A study\n", f"`{command}`\n"]
    parts += [f"{note}\n" for note in notes]
    if len(differences):
        parts += [
            "## Differences\n",
            f"Each arm minus {differences['control'].iloc[0]}, paired within seed: shares in "
            "percentage points (pp), amendments and proposer calls in counts per year.\n",
            markdown_table(*difference_rows(differences)),
        ]
    shown = summary[summary["estimand"].isin((*OTHER_ESTIMANDS, "es_concentration"))]
    parts += [
        "## Arms\n",
        "Shares in %.\n",
        markdown_table(*estimate_rows(shown, keys_of(shown, "scenario", "arm", "estimand"))),
    ]
    return "\n".join(parts)


def world_rows(worlds: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of what the scenarios do."""
    header = [
        "scenario", "quantity", "unit", "mean", "95 % interval", "sd", "5 %", "median", "95 %", "n",
    ]  # fmt: skip
    rows = []
    for row in worlds[worlds["quantity"].isin(_WORLD_QUANTITIES)].itertuples(index=False):
        digits = 3 if row.unit == "drift score" else 1
        numbers = [_number(value) for value in (row.mean, row.sd, row.q05, row.median, row.q95)]
        mean, *rest = (_optional(number, digits) for number in numbers)
        between = interval(_number(row.low), _number(row.high), digits)
        rows.append(
            [str(row.scenario), str(row.quantity), str(row.unit), mean, between, *rest, str(row.n)]
        )
    return header, rows


def response_rows(responses: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of what the self-architect's objectives see."""
    header = [
        "scenario", "objective", "knob", "step", "mean", "95 % interval", "noise", "null", "signal",
        "exactly zero", "visibility", "n", "seeds",
    ]  # fmt: skip
    rows = [
        [
            str(row.scenario),
            str(row.objective),
            str(row.knob),
            "up" if _number(row.direction) > 0 else "down",
            f"{row.mean:.3f}",
            interval(_number(row.low), _number(row.high), 3),
            f"{row.noise:.3f}",
            f"{row.sd_null:.3f}",
            f"{row.signal:.3f}",
            f"{row.zero:.1f} %",
            str(row.visibility),
            str(row.n),
            str(row.seeds),
        ]
        for row in responses[responses["objective"].isin(_SHOWN_OBJECTIVES)].itertuples(index=False)
    ]
    return header, rows


def world_lines(worlds: "pd.DataFrame") -> list[str]:
    """Say in plain sentences what decides many a result."""
    at: dict[tuple[str, str], Any] = {
        (str(row.scenario), str(row.quantity)): row for row in worlds.itertuples(index=False)
    }
    lines = []
    for (scenario, quantity), row in at.items():
        if quantity.startswith("angle_day"):
            lines.append(
                f"{scenario}: the regime change on day {quantity.rsplit('_', 1)[1]}, described as "
                f"a rotation by 60 degrees, turns the self by {row.mean:.1f} degrees "
                f"({interval(row.low, row.high)}); 90 % of the seeds lie between {row.q05:.1f} and "
                f"{row.q95:.1f} (n = {row.n:,})."
            )
        if quantity == "share_any_above":
            net = at[scenario, "angle_net"]
            lines.append(
                f"{scenario}: in a year the self ends {net.mean:.1f} degrees from where it began "
                f"(90 % of the seeds: {net.q05:.1f} to {net.q95:.1f}); some constitutional block "
                f"is ever above elfmem's threshold in {row.mean:.1f} % of the seeds "
                f"({interval(row.low, row.high)}; n = {row.n:,})."
            )
    return lines


def climber_lines(climbers: "pd.DataFrame") -> list[str]:
    """Say which climbers move at all, and what that does to the verdict on the idea."""
    lines = []
    for name, part in climbers[climbers["estimand"] == "moved"].groupby("arm", sort=False):
        shares = ", ".join(f"{mean:.0f} %" for mean in part["mean"])
        scenarios = ", ".join(scenario.rsplit("/")[-1] for scenario in part["scenario"])
        if (part["mean"] == 0.0).all():
            lines.append(
                f"{name}: in none of {part['n'].sum():,} runs does it leave the parameters that it "
                "starts with: by its valuation no step is ever better."
            )
        else:
            lines.append(f"{name}: leaves its starting parameters in {shares} ({scenarios}).")
    return lines


def _quality(table: "pd.DataFrame") -> "pd.DataFrame":
    return table[table["estimand"] == "quality_ratio"]


def sight_lines(responses: "pd.DataFrame") -> list[str]:
    """Say in one sentence per objective which knobs it cannot see."""
    lines = []
    for name, part in responses.groupby("objective", sort=False):
        seen = set(part[part["visibility"] == "visible"]["knob"])
        knobs = list(dict.fromkeys(part["knob"]))
        hidden = [knob for knob in knobs if knob not in seen]
        n = part[part["knob"].isin(hidden)]["n"].sum()
        lines.append(
            f"{name}: {', '.join(hidden)} cannot be seen by it: exactly no response in any of "
            f"{n:,} comparisons."
            if hidden
            else f"{name}: responds, somewhere, to each of the {len(knobs)} knobs."
        )
    return lines


def choice_rows(choices: "pd.DataFrame") -> tuple[list[str], Rows]:
    """Return header and rows of what the self-architect's objectives choose."""
    rows = [
        [
            str(row.scenario),
            str(row.chooser),
            str(row.quantity),
            f"{row.mean:.2f} {row.unit}",
            interval(_number(row.low), _number(row.high), 2),
            str(row.seeds),
        ]
        for row in choices.itertuples(index=False)
    ]
    return ["scenario", "chooser", "quantity", "mean", "95 % interval", "seeds"], rows


def _optional(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else ""


def print_table(title: str, header: Sequence[str], rows: Rows) -> None:
    """Print a table: as wide as the terminal, or as wide as it needs to be without one.

    No cell is cut short: what does not fit goes on in the next line.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False)
    if not console.is_terminal:
        console = Console(width=_UNBOUNDED, no_color=True, markup=False)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _number(value: Any) -> float:
    return float(value)
