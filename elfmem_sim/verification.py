"""Verifying a decision record: run its protocol, judge its claims, leave a results folder."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from elfmem_sim.arms import ARMS
from elfmem_sim.claims import ClaimFile, Published, load_claims
from elfmem_sim.compare import against_control, replay_table, summarise
from elfmem_sim.errors import UserError
from elfmem_sim.figures import quality_over_time
from elfmem_sim.progress import ProgressReport
from elfmem_sim.report import markdown
from elfmem_sim.review import require_elfmem
from elfmem_sim.scenario import Arm, Scenario, load_scenario, override
from elfmem_sim.stats import larger_n
from elfmem_sim.store import Results, identity_of, over_time, tidy
from elfmem_sim.study import (
    Cell,
    Replicate,
    code_digest,
    release_workers,
    reuse_without_calls,
    run_study,
)
from elfmem_sim.verdict import Verdict, judge, judge_sensitivity

ESTIMANDS = (
    "quality_ratio",
    "quality_ratio_over_time",
    "recent_reach",
    "ego_moat",
    "const_align_to_self",
    "retention",
    "es_concentration",
    "rescore_damage",
    "amendments_per_year",
    "proposer_calls_per_year",
)
MAX_SEEDS = 20_000
_EFFECTS = ("range", "equivalence", "cost")

Found = dict[str, dict[int, Replicate]]


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
        precision: Go on until the half-width of every effect (of every mean, where the record
            claims no effect) is at most this many pp.
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
        (*hashes.items(), seeds, precision, code_digest(), elfmem, *_inputs(record))
    )
    folder = out or Path("runs") / f"{name}-{identity[:8]}"
    results = Results(folder, identity, overwrite=overwrite)
    if not results.finished:
        _Run(record, hashes, results, seeds, precision, workers, quiet).complete(name)
    return _read(record, results)


def check_seeds(seeds: int | None, *, least: int) -> None:
    """Refuse a number of seeds that supports no estimate.

    Raises:
        UserError: If ``seeds`` is below ``least``.
    """
    if seeds is not None and seeds < least:
        raise UserError(seeds, f"at least {least} seeds", "Give a larger --seeds.", "--seeds")


def check_precision(precision: float | None) -> None:
    """Refuse a half-width that no number of seeds reaches.

    Raises:
        UserError: If ``precision`` is not a positive number.
    """
    if precision is not None and not precision > 0.0:
        raise UserError(
            precision, "a half-width above 0 in percentage points", "Write 0.5pp.", "--precision"
        )


def precision_note(precision: float, widest: float, n: int) -> str:
    """Say whether a precision was reached."""
    reached = "reached" if widest <= precision else f"capped at {n} seeds"
    return f"Precision {precision:g} pp {reached}: widest half-width {widest:.2f} pp at {n} seeds."


def _inputs(record: ClaimFile) -> Iterator[str]:
    """Digests of the shipped scenarios and arms that the record rests on."""
    protocol, source = record.protocol, _replayed(record).published
    pairs = [(scenario, arm) for scenario in protocol.scenarios for arm in protocol.run_arms]
    if source is not None:
        pairs += [(scenario, arm) for scenario in source.values for arm in source.arms]
    for scenario, arm in pairs:
        yield Cell(load_scenario(scenario), ARMS[arm], ()).digest


def _replayed(record: ClaimFile) -> ClaimFile:
    """Return the record whose published table is replayed: another's, or its own."""
    return load_claims(record.replay)[0] if record.replay else record


class _Run:
    def __init__(
        self,
        record: ClaimFile,
        hashes: dict[str, str],
        results: Results,
        seeds: int | None,
        precision: float | None,
        workers: int,
        quiet: bool,
    ) -> None:
        self.record = record
        self.hashes = hashes
        self.results = results
        self.seeds = seeds
        self.precision = precision
        self.workers = workers
        self.quiet = quiet
        self.found: Found = {}
        self.notes: list[str] = []

    def complete(self, name: str) -> None:
        """Run every part, then write the folder."""
        record = self.record
        self.found = _index(self.results.replicates_so_far())
        published, replay_cells = self._replay_cells()
        headline = list(self._headline(self._n(record.protocol.seeds)))
        reversions = list(self._reversions())
        self._simulate("replay and headline", [*replay_cells, *headline, *reversions])
        if headline:
            headline = self._until_precise(headline)
        else:
            replay_cells = self._until_precise(replay_cells)
        first, rest = self._sensitivity_cells()
        self._simulate("sensitivity", first)
        self._simulate("sensitivity, other proposers", self._carry_over(first, rest))
        cells = [*replay_cells, *headline, *reversions, *first, *rest]
        if self.workers > 1:
            release_workers()
        self._write(name, published, replay_cells, headline, cells)

    def _n(self, planned: int) -> int:
        return self.seeds if self.seeds is not None else planned

    def _simulate(self, label: str, cells: Sequence[Cell]) -> None:
        if not cells:
            return
        with ProgressReport(label, quiet=self.quiet) as report:
            new = run_study(
                cells,
                workers=self.workers,
                done=[r for by_seed in self.found.values() for r in by_seed.values()],
                keep=self.results.append,
                progress=report.update,
            )
        for digest, by_seed in new.items():
            self.found.setdefault(digest, {}).update(by_seed)

    def _replay_cells(self) -> tuple[Published | None, list[Cell]]:
        source = _replayed(self.record)
        if source.published is None:
            return None, []
        seeds = tuple(range(self._n(source.protocol.seeds)))
        cells = [
            Cell(load_scenario(scenario), ARMS[arm], seeds)
            for scenario in source.published.values
            for arm in source.published.arms
        ]
        return source.published, cells

    def _arms(self) -> tuple[Arm, ...]:
        return tuple(ARMS[arm] for arm in self.record.protocol.run_arms)

    def _headline(self, n: int) -> Iterator[Cell]:
        for name in self.record.protocol.scenarios:
            scenario = load_scenario(name)
            for arm in self._arms():
                yield Cell(scenario, arm, tuple(range(n)))

    def _reversions(self) -> Iterator[Cell]:
        plan = self.record.reversions
        if plan is None:
            return
        for name in plan.scenarios:
            scenario, arm = override(load_scenario(name), self._arms()[1], plan.settings)
            yield Cell(scenario, arm, tuple(range(self._n(plan.seeds))), "reversions")

    def _until_precise(self, cells: list[Cell]) -> list[Cell]:
        """Add seeds until every effect is as precise as asked, or the cap is reached."""
        if self.precision is None:
            return cells
        while True:
            n = len(cells[0].seeds)
            widest = self._widest(tidy(cells, self.found))
            if widest <= self.precision or n >= MAX_SEEDS:
                self.notes.append(precision_note(self.precision, widest, n))
                return cells
            seeds = tuple(range(min(MAX_SEEDS, larger_n(n, widest, self.precision))))
            cells = [replace(cell, seeds=seeds) for cell in cells]
            self._simulate("more seeds", cells)

    def _widest(self, table: pd.DataFrame) -> float:
        """Widest half-width of the record's effects; of its means, where it claims no effect."""
        effects = tuple(c for c in self.record.claim if c.rule in _EFFECTS)
        if effects:
            judged = judge(self.record.model_copy(update={"claim": effects}), table, None)
            return max((v.high - v.low) / 2 for v in judged)
        means = summarise(table, [self.record.protocol.estimand])
        return float(((means["high"] - means["low"]) / 2).max())

    def _sensitivity_cells(self) -> tuple[list[Cell], list[Cell]]:
        """Cells to run first, and cells whose proposer differs from one of the first."""
        plan = self.record.sensitivity
        if plan is None:
            return [], []
        control, treatment = self._arms()
        seeds = tuple(range(self._n(plan.seeds)))
        first: list[Cell] = []
        rest: list[Cell] = []
        proposers = list(plan.proposers)
        for name in (*plan.drifting, plan.stable):
            for uses in plan.uses_per_learn:
                world = _with_uses(load_scenario(name), uses)
                first.append(Cell(world, control, seeds, f"uses_per_learn={uses}"))
                for variant in plan.variants:
                    if variant.uses_per_learn != uses:
                        continue
                    settings = plan.proposers[variant.proposer] | {
                        "review.cadence_days": str(variant.cadence_days)
                    }
                    _, arm = override(world, treatment, settings)
                    target = first if variant.proposer == proposers[0] else rest
                    target.append(Cell(world, arm, seeds, variant.label))
        return first, rest

    def _carry_over(self, first: Sequence[Cell], rest: Sequence[Cell]) -> list[Cell]:
        """Reuse what does not depend on the proposer; return what is left to simulate."""
        by_key = {
            (c.scenario.name, c.scenario.workload.uses_per_learn, c.arm.review.cadence_days): c
            for c in first
            if c.arm.review
        }
        remaining = []
        for cell in rest:
            review = cell.arm.review
            assert review is not None
            uses = cell.scenario.workload.uses_per_learn
            finished = by_key[cell.scenario.name, uses, review.cadence_days]
            carried, left = reuse_without_calls(self.found[finished.digest], cell)
            self.found.setdefault(cell.digest, {}).update(carried)
            remaining.append(left)
        return remaining

    def _write(
        self,
        name: str,
        published: Published | None,
        replay_cells: list[Cell],
        headline: list[Cell],
        cells: list[Cell],
    ) -> None:
        record = self.record
        table = tidy(cells, self.found)
        replay = None
        files: dict[str, pd.DataFrame | bytes | str] = {"replicates.csv.gz": table}
        if published is not None:
            frame = _published_frame(published)
            replay = replay_table(table[table["variant"] == ""], frame)
            series = over_time(replay_cells, self.found)
            files["replay.csv"] = replay
            files["replay.png"] = quality_over_time(
                series,
                frame,
                f"ADR {_replayed(record).adr} replayed (diamonds: published, mean of two seeds)",
            )
        main = headline or replay_cells
        series = over_time(main, self.found)
        files["over_time.csv"] = series
        own = tidy(main, self.found)
        files["summary.csv"] = summarise(own, ESTIMANDS)
        control = record.protocol.control or "baseline"
        differences = against_control(own, control, ESTIMANDS)
        files["differences.csv"] = differences
        if headline:
            files["quality.png"] = quality_over_time(series, None, f"ADR {record.adr}")
        verdicts = judge(record, table, replay)
        sensitivity = None
        if record.sensitivity is not None:
            protocol = record.protocol
            sensitivity = judge_sensitivity(
                record.sensitivity, protocol.treatment, protocol.control, table, protocol.estimand
            )
            files["sensitivity.csv"] = sensitivity
        files["claims.json"] = json.dumps([v.plain() for v in verdicts], indent=1) + "\n"
        files["report.md"] = markdown(
            record, verdicts, replay, sensitivity, self.notes, differences
        )
        self.results.finish(
            files,
            {
                "kind": "verify",
                "command": self._command(name),
                "claims": self.hashes,
                "code": code_digest(),
                "notes": self.notes,
                "cells": [
                    {
                        "scenario": cell.scenario.name,
                        "arm": cell.arm.name,
                        "variant": cell.variant,
                        "digest": cell.digest,
                        "seeds": [cell.seeds[0], cell.seeds[-1]],
                    }
                    for cell in cells
                ],
            },
        )

    def _command(self, name: str) -> str:
        parts = ["elfmem-sim verify", name]
        if self.seeds is not None:
            parts.append(f"--seeds {self.seeds}")
        if self.precision is not None:
            parts.append(f"--precision {self.precision:g}pp")
        return " ".join(parts)


def _with_uses(scenario: Scenario, uses: int) -> Scenario:
    workload = scenario.workload.model_copy(update={"uses_per_learn": uses})
    return scenario.model_copy(update={"workload": workload})


def _index(replicates: Sequence[Replicate]) -> Found:
    found: Found = {}
    for replicate in replicates:
        found.setdefault(replicate.digest, {})[replicate.seed] = replicate
    return found


def _published_frame(published: Published) -> pd.DataFrame:
    return pd.DataFrame(
        [
            (scenario, arm, published.estimand, value)
            for scenario, values in published.values.items()
            for arm, value in zip(published.arms, values, strict=True)
        ],
        columns=["scenario", "arm", "estimand", "value"],
    )


def _read(record: ClaimFile, results: Results) -> Verification:
    manifest = results.manifest()
    verdicts = []
    for data in json.loads(results.read("claims.json")):
        low = -math.inf if data["low"] is None else data["low"]
        high = math.inf if data["high"] is None else data["high"]
        bootstrap = None if data["bootstrap"] is None else tuple(data["bootstrap"])
        verdicts.append(replace(Verdict(**data), low=low, high=high, bootstrap=bootstrap))
    present = manifest["files"]
    return Verification(
        record=record,
        verdicts=verdicts,
        replay=results.table("replay.csv") if "replay.csv" in present else None,
        sensitivity=results.table("sensitivity.csv") if "sensitivity.csv" in present else None,
        folder=results.folder,
        notes=(*results.notes, *manifest["notes"]),
    )
