"""The audit: every decision record's claims at population size, in one table."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from elfmem_sim import objective
from elfmem_sim.arms import ARMS
from elfmem_sim.claims import claim_file_names, load_claims
from elfmem_sim.compare import PERCENT, against_control
from elfmem_sim.fields import KNOBS
from elfmem_sim.figures import two_seed_distributions
from elfmem_sim.progress import ProgressReport
from elfmem_sim.protocol import (
    Evidence,
    Found,
    Sizes,
    check_precision,
    check_seeds,
    gather,
    inputs,
    last_day_only,
)
from elfmem_sim.report import audit_markdown
from elfmem_sim.review import require_elfmem
from elfmem_sim.scenario import load_scenario
from elfmem_sim.stats import mean_interval
from elfmem_sim.store import Results, identity_of, tidy
from elfmem_sim.streams import generator
from elfmem_sim.study import Cell, code_digest, release_workers, run_study
from elfmem_sim.verdict import Verdict, effect_of
from elfmem_sim.verification import cells_of, command_of, index, verdicts_from
from elfmem_sim.worlds import WORLDS, measure_worlds

PRECISION = 0.3
"""Half-width of every effect, in percentage points."""
COARSE = 0.5
"""The half-width to settle for where ``PRECISION`` would take more than 20,000 seeds."""

QUANTILES = tuple(round(0.01 * percent, 2) for percent in range(1, 100))
"""Quantiles by which ``two_seed.csv`` gives a distribution of two-seed effects."""

CLIMBERS = (
    "self_architect",
    "self_architect_blind",
    "self_architect_common",
    "self_architect_queries",
    "self_architect_rollout",
)
FIXED = ("baseline", "architecture_m", "model_c", "model_d")
CLIMBED = ("stable", "drift", "regime_change")
CLIMBER_SEEDS = 1000
WORLD_SEEDS = 1000
OBJECTIVE_SEEDS, ROLLOUT_SEEDS = 100, 20

_PAIRS = 100_000


@dataclass(frozen=True)
class Audit:
    """The outcome of :func:`audit`.

    Attributes:
        table: One row per claim: claim, adr, scenario, horizon_days, published, replayed,
            estimate, low, high, n, two_seed_probability, verdict; effects in percentage points
            unless the claim names another unit.
        verdicts: The verdicts, by record.
        climbers: Paired differences in quality between the self-architect's arms and others.
        worlds: What the scenarios do; see :func:`elfmem_sim.worlds.measure_worlds`.
        responses: What the self-architect's objectives see; see
            :func:`elfmem_sim.objective.responses`.
        choices: What they choose; see :func:`elfmem_sim.objective.choices`.
        folder: Where everything is kept.
        notes: What the user should know about how it came about.
    """

    table: pd.DataFrame
    verdicts: Mapping[str, Sequence[Verdict]]
    climbers: pd.DataFrame
    worlds: pd.DataFrame
    responses: pd.DataFrame
    choices: pd.DataFrame
    folder: Path
    notes: tuple[str, ...]


def audit(
    *,
    seeds: int | None = None,
    precision: float | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    workers: int = 1,
    quiet: bool = False,
) -> Audit:
    """Judge the claims of every decision record, each at the n that its effect needs.

    Args:
        seeds: Seeds per cell in every part, and no more; by default each record's own to begin
            with, and then as many as the precision takes.
        precision: Half-width that every effect must reach, in pp; 0.3 by default, or 0.5 where
            that takes more than 20,000 seeds.
        out: Results folder; by default one under ``runs/`` named after the study's digest.
        overwrite: Whether a folder with other results may be emptied.
        workers: Processes; no number depends on it.
        quiet: Report no progress.

    Raises:
        UserError: For wrong input; nothing already computed is lost.
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    check_seeds(seeds, least=2)
    check_precision(precision)
    elfmem = require_elfmem()
    loaded = {name: load_claims(name) for name in claim_file_names()}
    records = [record for record, _ in loaded.values()]
    hashes = {name: sha for name, (_, sha) in loaded.items()}
    cells = list(_climber_cells(seeds or CLIMBER_SEEDS))
    digests = [digest for record in records for digest in inputs(record)]
    digests += [cell.digest for cell in cells]
    identity = identity_of((*hashes.items(), seeds, precision, code_digest(), elfmem, *digests))
    folder = out or Path("runs") / f"all-{identity[:8]}"
    results = Results(folder, identity, overwrite=overwrite)
    if not results.finished:
        found = index(results.replicates_so_far())
        sizes = _sizes(seeds, precision)
        evidence = [
            gather(record, results, found, sizes, workers=workers, quiet=quiet)
            for record in records
        ]
        context = {
            "climbers.csv": _climb(cells, results, found, workers=workers, quiet=quiet),
            **_objectives(seeds or OBJECTIVE_SEEDS, workers=workers, quiet=quiet),
            "worlds.csv": _worlds(seeds or WORLD_SEEDS, workers=workers, quiet=quiet),
        }
        if workers > 1:
            release_workers()
        notes = tuple(f"ADR {e.record.adr}: {note}" for e in evidence for note in e.notes)
        manifest = {
            "kind": "audit",
            "command": command_of("all", seeds, precision),
            "claims": hashes,
            "code": code_digest(),
            "notes": notes,
            "cells": cells_of([cell for e in evidence for cell in e.cells] + cells),
        }
        results.finish(_files(evidence, context, notes), manifest)
    return _read(results)


def _sizes(seeds: int | None, precision: float | None) -> Sizes:
    """Return the sizes that the two options ask for; a number of seeds alone is kept to."""
    if precision is not None:
        return Sizes(seeds=seeds, precision=precision, last_day_only=True)
    if seeds is not None:
        return Sizes(seeds=seeds, last_day_only=True)
    return Sizes(precision=PRECISION, coarse=COARSE, last_day_only=True)


def audit_table(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """Return one row per claim; see :class:`Audit`."""
    rows = []
    for part in evidence:
        for claim, v in zip(part.record.claim, part.verdicts, strict=True):
            days = {str(load_scenario(name).horizon_days) for name in claim.scenarios}
            rows.append(
                {
                    "claim": v.statement,
                    "adr": part.record.adr,
                    "scenario": " + ".join(claim.scenarios) or "all",
                    "horizon_days": " + ".join(sorted(days)),
                    "published": v.published,
                    "replayed": v.replayed,
                    "estimate": v.estimate,
                    "low": v.low,
                    "high": v.high,
                    "n": v.n,
                    "two_seed_probability": v.two_seed_probability,
                    "verdict": v.verdict,
                }
            )
    return pd.DataFrame(rows).astype(
        dict.fromkeys(("published", "replayed", "two_seed_probability"), float)
    )


def two_seed_table(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """Return, for each effect in percentage points, what two seeds would show.

    Columns: adr, claim, published, claimed_low, claimed_high (nan where nothing of the kind is
    claimed), estimate, low, high, n, and the quantiles q01 .. q99 of the effect over pairs of
    distinct seeds.
    """
    rows = []
    for part in evidence:
        for claim, v in zip(part.record.claim, part.verdicts, strict=True):
            published = claim.published is not None
            if v.unit != "pp" or not (published or claim.rule == "range"):
                continue
            effect = effect_of(part.record, claim, part.table)
            drawn = effect.two_seeds(generator("two-seed-figure", claim.id), _PAIRS)
            rows.append(
                {
                    "adr": part.record.adr,
                    "claim": claim.id,
                    "published": claim.published,
                    "claimed_low": np.nan if published else claim.low,
                    "claimed_high": np.nan if published else claim.high,
                    "estimate": v.estimate,
                    "low": v.low,
                    "high": v.high,
                    "n": v.n,
                    **{
                        f"q{round(100 * at):02d}": value
                        for at, value in zip(QUANTILES, np.quantile(drawn, QUANTILES), strict=True)
                    },
                }
            )
    return pd.DataFrame(rows).astype({"published": float})


def _climber_cells(n: int) -> Iterator[Cell]:
    for name in CLIMBED:
        scenario = last_day_only(load_scenario(f"adr-0003-self-architect/{name}"))
        for arm in (*FIXED, *CLIMBERS):
            yield Cell(scenario, ARMS[arm], tuple(range(n)))


def _climb(
    cells: Sequence[Cell], results: Results, found: Found, *, workers: int, quiet: bool
) -> pd.DataFrame:
    """Run the self-architect with sound, published and blind objectives, beside the fixed arms.

    Columns as :func:`elfmem_sim.compare.against_control` returns them; rows with the estimand
    ``moved`` give the share of runs that leave the starting knobs.
    """
    with ProgressReport("the self-architect's objectives", quiet=quiet) as report:
        runs = run_study(
            cells,
            workers=workers,
            done=[r for by_seed in found.values() for r in by_seed.values()],
            keep=results.append,
            progress=report.update,
        )
    table = tidy(cells, runs)
    parts = []
    for control in (*FIXED, "self_architect", "self_architect_blind"):
        compared = against_control(table, control, ["quality_ratio"])
        parts.append(compared[compared["arm"].isin(CLIMBERS)])
    return pd.concat([_moved(table), *parts], ignore_index=True)


def _moved(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share of runs that end with other knobs than they began with, in percent."""
    rows = []
    for (scenario, name), part in table[table["arm"].isin(CLIMBERS)].groupby(
        ["scenario", "arm"], sort=False
    ):
        arm = ARMS[str(name)]
        assert arm.ego is not None
        ego = (arm.ego.alpha, arm.ego.distribute, arm.ego.queries_per_day)
        start = (arm.constitution_weight, *ego)
        moved = (part[list(KNOBS)].to_numpy(float) != start).any(axis=1)
        e = mean_interval(PERCENT * moved)
        rows.append((scenario, name, "start", "", "moved", e.mean, e.mcse, e.low, e.high, e.n))
    columns = [
        "scenario", "arm", "control", "variant", "estimand", "mean", "mcse", "low", "high", "n",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _objectives(n: int, *, workers: int, quiet: bool) -> dict[str, pd.DataFrame]:
    """Measure what the self-architect's objectives see of its knobs, and what they choose."""
    rollouts = min(n, ROLLOUT_SEEDS)
    parts = []
    with ProgressReport("what the self-architect sees", quiet=quiet) as report:
        for done, name in enumerate(objective.SCENARIOS):
            report.update(done * n, len(objective.SCENARIOS) * n)
            parts.append(
                objective.observe_objectives(
                    range(n), [name], rollout_seeds=rollouts, workers=workers
                )
            )
        report.update(len(parts) * n, len(parts) * n)
    evaluations = pd.concat(parts, ignore_index=True)
    return {
        "responses.csv": objective.responses(evaluations),
        "choices.csv": objective.choices(evaluations),
    }


def _worlds(n: int, *, workers: int, quiet: bool) -> pd.DataFrame:
    """Measure what the scenarios do."""
    parts = []
    with ProgressReport("what the scenarios do", quiet=quiet) as report:
        for done, name in enumerate(WORLDS):
            report.update(done * n, len(WORLDS) * n)
            parts.append(measure_worlds(range(n), [name], workers=workers))
        report.update(len(WORLDS) * n, len(WORLDS) * n)
    return pd.concat(parts, ignore_index=True)


def _files(
    evidence: Sequence[Evidence], context: Mapping[str, pd.DataFrame], notes: Sequence[str]
) -> dict[str, pd.DataFrame | bytes | str]:
    table = audit_table(evidence)
    distributions = two_seed_table(evidence)
    verdicts = {part.record.adr: part.verdicts for part in evidence}
    records = {part.record.adr: part.record for part in evidence}
    plain = [
        {"adr": adr, **verdict.plain()} for adr, group in verdicts.items() for verdict in group
    ]
    return {
        "audit.csv": table,
        "audit.md": audit_markdown(records, verdicts, table, context, notes),
        "audit.png": two_seed_distributions(distributions),
        "two_seed.csv": distributions,
        **context,
        "claims.json": json.dumps(plain, indent=1) + "\n",
    }


def _read(results: Results) -> Audit:
    manifest = results.manifest()
    verdicts: dict[str, list[Verdict]] = {}
    plain = json.loads(results.read("claims.json"))
    adrs = [entry.pop("adr") for entry in plain]
    for adr, verdict in zip(adrs, verdicts_from(json.dumps(plain).encode()), strict=True):
        verdicts.setdefault(adr, []).append(verdict)
    return Audit(
        table=results.table("audit.csv"),
        verdicts=verdicts,
        climbers=results.table("climbers.csv"),
        worlds=results.table("worlds.csv"),
        responses=results.table("responses.csv"),
        choices=results.table("choices.csv"),
        folder=results.folder,
        notes=(*results.notes, *manifest["notes"]),
    )
