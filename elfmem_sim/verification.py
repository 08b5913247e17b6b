"""Verifying a decision record: run its protocol, judge its claims, leave a results folder."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from elfmem_sim.claims import ClaimFile, load_claims
from elfmem_sim.compare import SUMMARISED, against_control, summarise
from elfmem_sim.figures import quality_over_time
from elfmem_sim.protocol import (
    Evidence,
    Found,
    Sizes,
    check_precision,
    check_seeds,
    gather,
    inputs,
    published_frame,
    replayed_table,
)
from elfmem_sim.report import markdown
from elfmem_sim.review import require_elfmem
from elfmem_sim.store import Results, identity_of, over_time, tidy
from elfmem_sim.study import Cell, Replicate, code_digest, release_workers
from elfmem_sim.verdict import Verdict


@dataclass(frozen=True)
class Verification:
    """The outcome of :func:`verify`.

    Attributes:
        record: The claim file.
        verdicts: One per claim.
        replay: Published figures beside replay and population, or None.
        sensitivity: Gain and tax under other assumptions, or None.
        folder: Where everything is kept.
        notes: What the user should know about how it came about.
    """

    record: ClaimFile
    verdicts: list[Verdict]
    replay: pd.DataFrame | None
    sensitivity: pd.DataFrame | None
    folder: Path
    notes: tuple[str, ...]


def verify(
    name: str,
    *,
    seeds: int | None = None,
    precision: float | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    workers: int = 1,
    quiet: bool = False,
) -> Verification:
    """Run a decision record's protocol and judge its claims.

    Args:
        name: Name of a claim file, ``adr-0004``.
        seeds: Seeds per cell in every part; the claim file's own numbers by default.
        precision: Go on until the half-width of every effect is at most this many pp; each cell
            gets the seeds that the effects resting on it need.
        out: Results folder; by default one under ``runs/`` named after the study's digest.
        overwrite: Whether a folder with other results may be emptied.
        workers: Processes; no number depends on it.
        quiet: Report no progress.

    Raises:
        UserError: For wrong input; nothing already computed is lost.
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    record, sha = load_claims(name)
    hashes = {name: sha}
    if record.replay:
        hashes[record.replay] = load_claims(record.replay)[1]
    check_seeds(seeds, least=2)
    check_precision(precision)
    elfmem = require_elfmem()
    identity = identity_of(
        (*hashes.items(), seeds, precision, code_digest(), elfmem, *inputs(record))
    )
    folder = out or Path("runs") / f"{name}-{identity[:8]}"
    results = Results(folder, identity, overwrite=overwrite)
    if not results.finished:
        found = index(results.replicates_so_far())
        sizes = Sizes(seeds=seeds, precision=precision)
        evidence = gather(record, results, found, sizes, workers=workers, quiet=quiet)
        if workers > 1:
            release_workers()
        manifest = {
            "kind": "verify",
            "command": command_of(name, seeds, precision),
            "claims": hashes,
            "code": code_digest(),
            "notes": evidence.notes,
            "cells": cells_of(evidence.cells),
        }
        results.finish(_files(evidence, found), manifest)
    return _read(record, results)


def index(replicates: Sequence[Replicate]) -> Found:
    """Return replicates by cell digest and seed."""
    found: Found = {}
    for replicate in replicates:
        found.setdefault(replicate.digest, {})[replicate.seed] = replicate
    return found


def command_of(name: str, seeds: int | None, precision: float | None) -> str:
    """Return the command that makes a verification."""
    parts = ["elfmem-sim verify", name]
    if seeds is not None:
        parts.append(f"--seeds {seeds}")
    if precision is not None:
        parts.append(f"--precision {precision:g}pp")
    return " ".join(parts)


def cells_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return cells as a manifest lists them."""
    return [
        {
            "scenario": cell.scenario.name,
            "arm": cell.arm.name,
            "variant": cell.variant,
            "digest": cell.digest,
            "seeds": [cell.seeds[0], cell.seeds[-1]],
        }
        for cell in cells
    ]


def _files(evidence: Evidence, found: Found) -> dict[str, pd.DataFrame | bytes | str]:
    record = evidence.record
    files: dict[str, pd.DataFrame | bytes | str] = {"replicates.csv.gz": evidence.table}
    if evidence.replay is not None:
        files["replay.csv"] = evidence.replay
    other = replayed_table(record)
    if other is not None:
        files["replay.png"] = quality_over_time(
            over_time(evidence.replayed, found),
            _quality(published_frame([other])),
            f"ADR {record.replay.removeprefix('adr-')} replayed "
            "(diamonds: published, mean of two seeds)",
        )
    series = over_time(evidence.own, found)
    files["over_time.csv"] = series
    own = tidy(evidence.own, found)
    files["summary.csv"] = summarise(own, SUMMARISED)
    differences = against_control(own, record.protocol.control, SUMMARISED)
    files["differences.csv"] = differences
    diamonds = " (diamonds: published, mean of two seeds)" if record.published else ""
    files["quality.png"] = quality_over_time(
        series,
        _quality(published_frame(record.published)),
        f"ADR {record.adr}{diamonds}",
    )
    if evidence.sensitivity is not None:
        files["sensitivity.csv"] = evidence.sensitivity
    files["claims.json"] = json.dumps([v.plain() for v in evidence.verdicts], indent=1) + "\n"
    files["report.md"] = markdown(
        record,
        evidence.verdicts,
        evidence.replay,
        evidence.sensitivity,
        evidence.notes,
        differences,
    )
    return files


def _quality(published: pd.DataFrame) -> pd.DataFrame:
    return published[published["estimand"] == "quality_ratio"]


def _read(record: ClaimFile, results: Results) -> Verification:
    manifest = results.manifest()
    present = manifest["files"]
    return Verification(
        record=record,
        verdicts=verdicts_from(results.read("claims.json")),
        replay=results.table("replay.csv") if "replay.csv" in present else None,
        sensitivity=results.table("sensitivity.csv") if "sensitivity.csv" in present else None,
        folder=results.folder,
        notes=(*results.notes, *manifest["notes"]),
    )


def verdicts_from(data: bytes) -> list[Verdict]:
    """Return the verdicts that a folder's ``claims.json`` holds."""
    verdicts = []
    for entry in json.loads(data):
        low = -math.inf if entry["low"] is None else entry["low"]
        high = math.inf if entry["high"] is None else entry["high"]
        bootstrap = None if entry["bootstrap"] is None else tuple(entry["bootstrap"])
        verdicts.append(replace(Verdict(**entry), low=low, high=high, bootstrap=bootstrap))
    return verdicts
