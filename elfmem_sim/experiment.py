"""Free studies: any scenarios and arms, with estimates and paired differences."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from elfmem_sim.arms import get_arm
from elfmem_sim.compare import SUMMARISED, against_control, summarise
from elfmem_sim.errors import UserError
from elfmem_sim.fields import TIERS
from elfmem_sim.figures import quality_over_time
from elfmem_sim.production import check_production, loss_note
from elfmem_sim.progress import ProgressReport
from elfmem_sim.protocol import MAX_SEEDS, check_precision, check_seeds, precision_note
from elfmem_sim.report import run_markdown
from elfmem_sim.review import review_config
from elfmem_sim.scenario import Arm, load_scenario, override
from elfmem_sim.stats import larger_n
from elfmem_sim.store import Results, identity_of, over_time, tidy
from elfmem_sim.study import Cell, code_digest, run_study

DEFAULT_SEEDS = 100
DEFAULT_PRODUCTION_SEEDS = 8
"""A production agent takes a minute for a year."""

PRODUCTION_ESTIMANDS = (
    *(name for name in SUMMARISED if name not in ("es_concentration", "rescore_damage")),
    "self_frame_align",
    "rejected",
    "superseded",
    "suppressed",
    "decayed",
)
"""What the production tier estimates: elfmem has no ego strength, and adds when it rescores."""


@dataclass(frozen=True)
class Experiment:
    """The outcome of :func:`run`.

    Attributes:
        replicates: Tidy table, one row per scenario, arm and seed.
        summary: Estimates per scenario, arm and estimand; shares in percent.
        differences: Paired differences to the first arm; shares in percentage points.
        folder: Where everything is kept.
        notes: What the user should know about how it came about.
    """

    replicates: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    folder: Path
    notes: tuple[str, ...]


def run(
    scenarios: Sequence[str],
    arms: Sequence[str] = ("baseline", "review"),
    *,
    seeds: int | None = None,
    precision: float | None = None,
    settings: Mapping[str, str] | None = None,
    sweep: Mapping[str, Sequence[str]] | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    workers: int = 1,
    quiet: bool = False,
    tier: str = "model",
) -> Experiment:
    """Run scenarios and arms at common seeds and compare each arm with the first.

    Args:
        scenarios: Names of shipped scenarios or paths of TOML files.
        arms: Names of arms, or elfmem configurations (``.yaml``); the first is the control.
        seeds: Seeds per cell, from 0 upwards; by default 100, on the production tier 8.
        precision: Go on until the half-width of every quality ratio's paired difference (of every
            mean, if there is one arm) is at most this many pp.
        settings: Dotted keys and values, as ``--set`` takes them.
        sweep: Values to try for a key, one key at a time, beside the plain study; each is a
            variant, and arms are compared within it.
        out: Results folder; by default one under ``runs/`` named after the study's digest.
        overwrite: Whether a folder with other results may be emptied.
        workers: Processes; no number depends on it.
        quiet: Report no progress.
        tier: ``model`` or ``production``.

    Raises:
        UserError: For wrong input; nothing already computed is lost.
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    check_seeds(seeds, least=1)
    check_precision(precision)
    if tier not in TIERS:
        raise UserError(tier, f"one of {', '.join(TIERS)}", "Correct the tier.", "--tier")
    default = DEFAULT_PRODUCTION_SEEDS if tier == "production" else DEFAULT_SEEDS
    variants = dict(_variants(settings or {}, sweep or {}))
    cells = _cells(scenarios, arms, variants, seeds or default, tier)
    labelled = [f"{cell.variant}:{cell.digest}" for cell in cells]
    identity = identity_of((*labelled, seeds, precision, code_digest(tier)))
    results = Results(out or Path("runs") / f"run-{identity[:8]}", identity, overwrite=overwrite)
    if not results.finished:
        command = _command(scenarios, arms, settings or {}, sweep or {}, seeds, precision, tier)
        _complete(results, cells, command, precision=precision, workers=workers, quiet=quiet)
    manifest = results.manifest()
    return Experiment(
        replicates=results.table("replicates.csv.gz"),
        summary=results.table("summary.csv"),
        differences=results.table("differences.csv"),
        folder=results.folder,
        notes=(*results.notes, *manifest["notes"]),
    )


def _variants(
    settings: Mapping[str, str], sweep: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Label and settings of the plain study, then of each swept value."""
    yield "", settings
    for key, values in sweep.items():
        for value in values:
            yield f"{key}={value}", {**settings, key: value}


def _cells(
    scenarios: Sequence[str],
    arms: Sequence[str],
    variants: Mapping[str, Mapping[str, str]],
    n: int,
    tier: str,
) -> list[Cell]:
    cells = []
    builds = [get_arm(arm) for arm in arms]
    if len({arm.name for arm in builds}) != len(arms):
        raise UserError(", ".join(arms), "different arms", "Name each arm once.", "--arm")
    worlds = [load_scenario(name) for name in scenarios]
    for scenario in worlds:
        for label, settings in variants.items():
            for arm in builds:
                own = {key: text for key, text in settings.items() if _concerns(key, arm, builds)}
                world, build = override(scenario, arm, own)
                if tier == "production":
                    check_production(world, build)
                elif build.review is not None:
                    review_config(build.review)
                cells.append(Cell(world, build, tuple(range(n)), label, tier))
    names = [world.name for world in worlds]
    if len(set(names)) != len(names):
        raise UserError(
            ", ".join(names), "scenarios with different names", "Rename a file.", "scenario"
        )
    return cells


def _concerns(key: str, arm: Arm, arms: Sequence[Arm]) -> bool:
    """Whether a setting is for ``arm``: one of a section, for the arms that have the section.

    If none has it, the setting is for all, and an error.
    """
    section, _, _ = key.partition(".")
    if section not in ("review", "ego") or getattr(arm, section) is not None:
        return True
    return all(getattr(other, section) is None for other in arms)


def _complete(
    results: Results,
    cells: list[Cell],
    command: str,
    *,
    precision: float | None,
    workers: int,
    quiet: bool,
) -> None:
    done = results.replicates_so_far()
    notes: list[str] = []  # of the results; a repair is not part of them
    tier = cells[0].tier
    estimands = PRODUCTION_ESTIMANDS if tier == "production" else SUMMARISED
    while True:
        with ProgressReport("runs", quiet=quiet) as report:
            found = run_study(
                cells, workers=workers, done=done, keep=results.append, progress=report.update
            )
        done = [replicate for by_seed in found.values() for replicate in by_seed.values()]
        table = tidy(cells, found)
        control = cells[0].arm.name
        summary = summarise(table, estimands)
        differences = against_control(table, control, estimands)
        if precision is None:
            break
        frame = differences if len(differences) else summary
        rows = frame[frame["estimand"] == "quality_ratio"]
        widest = float(((rows["high"] - rows["low"]) / 2).max())
        n = len(cells[0].seeds)
        if widest <= precision or n >= MAX_SEEDS:
            notes.append(precision_note(precision, widest, n))
            break
        seeds = tuple(range(min(MAX_SEEDS, larger_n(n, widest, precision))))
        cells = [replace(cell, seeds=seeds) for cell in cells]
    if tier == "production":
        for (scenario, arm), rows in table.groupby(["scenario", "arm"], sort=False):
            lost = rows[["rejected", "superseded", "suppressed"]].sum(axis=1)
            notes += loss_note(float(lost.mean()), f"{scenario}, arm {arm}")
    series = over_time(cells, found)
    panels = series.assign(scenario=(series["scenario"] + " " + series["variant"]).str.strip())
    results.finish(
        {
            "replicates.csv.gz": table,
            "summary.csv": summary,
            "differences.csv": differences,
            "over_time.csv": series,
            "quality.png": quality_over_time(panels),
            "report.md": run_markdown(command, summary, differences, notes),
        },
        {
            "kind": "run",
            "command": command,
            "code": code_digest(tier),
            "tier": tier,
            "notes": notes,
            "cells": [
                {
                    "scenario": cell.scenario.model_dump(mode="json"),
                    "arm": cell.arm.model_dump(mode="json"),
                    "variant": cell.variant,
                    "digest": cell.digest,
                    "seeds": [cell.seeds[0], cell.seeds[-1]],
                }
                for cell in cells
            ],
        },
    )


def _command(
    scenarios: Sequence[str],
    arms: Sequence[str],
    settings: Mapping[str, str],
    sweep: Mapping[str, Sequence[str]],
    seeds: int | None,
    precision: float | None,
    tier: str,
) -> str:
    parts = ["elfmem-sim", "run", *scenarios]
    parts += [] if tier == "model" else ["--tier", tier]
    parts += [part for arm in arms for part in ("--arm", arm)]
    parts += [part for key, text in settings.items() for part in ("--set", f"{key}={text}")]
    for key, values in sweep.items():
        parts += ["--sweep", f"{key}={','.join(values)}"]
    if seeds is not None:
        parts += ["--seeds", f"{seeds}"]
    if precision is not None:
        parts += ["--precision", f"{precision:g}pp"]
    return shlex.join(parts)
