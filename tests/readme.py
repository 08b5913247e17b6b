"""The parts of the README that quote results: `python tests/readme.py` writes them anew."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from elfmem_sim.report import markdown_table

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


def audited() -> list[dict[str, Any]]:
    path = ROOT / "results" / "audit" / "claims.json"
    return list(json.loads(path.read_text(encoding="utf-8")))


def claims() -> dict[str, dict[str, Any]]:
    """ADR 0004's claims, as the audit judges them."""
    return {claim["id"]: claim for claim in audited() if claim["adr"] == "0004"}


def quoted(claim: dict[str, Any]) -> str:
    """Effect, interval and verdict of a claim, as a sentence quotes them."""
    return (
        f"{claim['estimate']:+.1f} pp (95 % interval {claim['low']:+.1f} to {claim['high']:+.1f}, "
        f"n = {claim['n']:,}; {claim['verdict']})"
    )


def findings() -> str:
    c = claims()
    opened = c["defaults.open"]
    table = pd.read_csv(ROOT / "results" / "adr-0004" / "sensitivity.csv")
    used = table[table["uses_per_learn"] >= 3]
    idle = table[table["uses_per_learn"] < 3]
    ideal = used[used["proposer"] == "full move"]
    real = used[used["proposer"] != "full move"]
    inside = int(used["gain_verdict"].isin(["REPRODUCED", "CONSISTENT"]).sum())
    sentences = [
        f"At the literal workload of ADR 0003 the review gate never opens: {opened['detail']} "
        f"({opened['verdict']}), and the same holds in all {len(idle)} combinations with "
        "fewer than three uses of a learned block, where the largest gain is "
        f"{idle['gain'].max():.1f} pp.",
        "If an agent uses each block three times on the day it learns it, reviews monthly, accepts "
        f"everything, and its texts say exactly what their evidence says, the mean gain over the "
        f"three drifting scenarios is {quoted(c['gain.drifting'])}.",
        f"That mean hides two regimes: slow drift gains {quoted(c['gain.slow_drift'])} and "
        f"adversarial drift {quoted(c['gain.adversarial'])}, while a regime change gains "
        f"{quoted(c['gain.regime_change'])}.",
        "The gain needs an ideal writer: with full moves to the evidence it lies between "
        f"{ideal['gain'].min():.1f} and {ideal['gain'].max():.1f} pp, with half moves or noisy "
        f"texts between {real['gain'].min():.1f} and {real['gain'].max():.1f} pp; of the "
        f"{len(used)} combinations in which reviews can judge, {inside} overlap the claimed range.",
        f"The zero tax holds in the stable case, because nothing is ever proposed there: "
        f"{c['tax.stable']['detail']} (n = {c['tax.stable']['n']:,}; "
        f"{c['tax.stable']['verdict']}).",
    ]
    return "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(sentences, start=1)) + "\n"


def verdicts() -> str:
    rows = []
    for claim in claims().values():
        digits = 0 if claim["unit"] == "violations" else 2
        interval = f"{claim['low']:.{digits}f} to {claim['high']:.{digits}f}"
        effect = f"{claim['estimate']:.{digits}f} {claim['unit']}"
        rows.append([claim["statement"], claim["verdict"], effect, interval, f"{claim['n']:,}"])
    return markdown_table(["claim", "verdict", "effect", "interval", "n"], rows)


def audit() -> str:
    """The audit's claims with a published effect; the self-architect's in two sentences."""
    claims = audited()
    rows = [
        [
            claim["adr"],
            claim["statement"],
            f"{claim['published']:g}",
            f"{claim['estimate']:.1f} {claim['unit']} ({claim['low']:.1f} to {claim['high']:.1f})",
            f"{claim['n']:,}",
            f"{claim['two_seed_probability']:.2f}",
            claim["verdict"],
        ]
        for claim in claims
        if claim["published"] is not None and not claim["id"].startswith("self_architect")
    ]
    header = [
        "ADR", "claim", "published", "population (95 % interval)", "n", "two-seed probability",
        "verdict",
    ]  # fmt: skip
    below = [claim for claim in claims if claim["id"].startswith("self_architect.below")]
    direction = [claim for claim in claims if claim["id"].startswith("self_architect.direction")]
    return (
        markdown_table(header, rows)
        + f"\nThe self-architect, said to be below every fixed arm: {_counted(below)}. Said to "
        f"move in the right direction, more than a blind climber: {_counted(direction)}.\n"
    )


def _counted(claims: list[dict[str, Any]]) -> str:
    words = [claim["verdict"] for claim in claims]
    counts = ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))
    return f"of {len(words)} claims {counts}"


PAST = (
    ("horizon", "adr-0003/stable", "architecture_m", "Architecture M minus baseline"),
    ("horizon", "adr-0003/slow_drift", "architecture_m", "Architecture M minus baseline"),
    ("horizon-scoring", "adr-0001/baseline", "v017_exploration", "exploration bonus"),
    ("horizon-scoring", "adr-0001/baseline", "v017_full", "power-law decay and exploration bonus"),
)


def horizon() -> str:
    """Paired differences in quality after one, five and ten years."""
    lines = []
    for folder, scenario, arm, name in PAST:
        table = pd.read_csv(ROOT / "results" / folder / "differences.csv", keep_default_na=False)
        rows = table[
            (table["scenario"] == scenario)
            & (table["arm"] == arm)
            & (table["estimand"] == "quality_ratio")
        ].set_index("variant")
        effects = [
            f"{rows['mean'][label]:+.1f} ({rows['low'][label]:+.1f} to {rows['high'][label]:+.1f})"
            for label in ("", "horizon_days=1825", "horizon_days=3650")
        ]
        lines.append([scenario, name, *effects, str(rows["n"].min())])
    header = ["scenario", "effect (pp, 95 % interval)", "1 year", "5 years", "10 years", "n"]
    return markdown_table(header, lines)


def tuning() -> str:
    """What the tuning's page would change, above its table of settings."""
    page = (ROOT / "results" / "tuning" / "report.md").read_text(encoding="utf-8")
    answer = page.split("## What we would change\n")[1].split("\n| ")[0]
    return f"{answer.strip()}\n\n{_on_the_product()}\n"


def _on_the_product() -> str:
    """The recommendations against the defaults, on elfmem itself."""
    folder = ROOT / "results" / "tuning-production"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    table = pd.read_csv(folder / "differences.csv", keep_default_na=False)
    parts = []
    for arm in dict.fromkeys(table["arm"]):
        rows = table[table["arm"] == arm].set_index("estimand")
        quality, read = rows.loc["quality_ratio"], rows.loc["amendments_per_year"]
        parts.append(
            f"{arm} {quality['mean']:+.1f} pp ({quality['low']:+.1f} to {quality['high']:+.1f}) "
            f"with {read['mean']:+.0f} amendments a year"
        )
    return (
        f"On elfmem {manifest['versions']['elfmem']} itself (production tier, regime change, "
        f"n = {table['n'].min()}), against the defaults: {'; '.join(parts)}."
    )


def rewritten(text: str) -> str:
    """The README's text with every quoting part made anew."""
    parts = {
        "findings": findings(),
        "verdicts": verdicts(),
        "audit": audit(),
        "tuning": tuning(),
        "horizon": horizon(),
    }
    for name, content in parts.items():
        part = re.compile(f"<!-- {name}: begin -->\n.*?<!-- {name}: end -->", re.S)
        if not part.search(text):
            raise ValueError(f"the README has no part called {name}")
        block = f"<!-- {name}: begin -->\n{content}<!-- {name}: end -->"
        text = part.sub(lambda _, block=block: block, text)
    return text


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
