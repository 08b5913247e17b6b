"""Evaluations by the hundred thousand: of every run a few numbers are kept, durably and small.

A study's replicates hold whole trajectories; a search over settings needs eight numbers of each.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.fields import ESTIMANDS, SNAPSHOT_FIELDS
from elfmem_sim.screen import quiet_lives
from elfmem_sim.store import Results
from elfmem_sim.study import TALLIES, Cell, Progress, Replicate, run_study

_CALLS = ESTIMANDS.index("proposer_calls_per_year")
_SHARES = [SNAPSHOT_FIELDS.index(name) for name in ESTIMANDS if name in SNAPSHOT_FIELDS]
_QUALITY = SNAPSHOT_FIELDS.index("quality_ratio")

_SETTINGS_PER_LIFE = 64
_LEAST_SETTINGS = 4  # for fewer, a life of their own is not worth its time

Outcome = NDArray[np.float64]
"""Of one run, ``fields.ESTIMANDS`` in order: shares in percent, counts a year."""


def outcome_of(replicate: Replicate, years: float) -> Outcome:
    """Return ``float64[len(ESTIMANDS)]``, by the definitions of :func:`elfmem_sim.store.tidy`."""
    final = 100.0 * replicate.snapshots[-1, _SHARES]
    over_time = 100.0 * replicate.snapshots[:, _QUALITY].mean()
    calls = replicate.tally("proposals") + replicate.tally("failed")
    counts = [replicate.tally("accepted") / years, calls / years]
    return np.array([final[0], over_time, *final[1:], *counts])


class Evaluations:
    """What is known so far, by cell digest and seed; every batch is written down at once.

    Args:
        results: The folder in which evaluations are kept.
        workers: Processes; no number depends on it.
    """

    def __init__(self, results: Results, workers: int) -> None:
        self._results = results
        self._workers = workers
        self._found: dict[str, dict[int, Outcome]] = {}
        for digest, seeds, outcomes in results.records_so_far(_from_plain):
            self._found.setdefault(digest, {}).update(zip(seeds, outcomes, strict=True))

    def run(
        self,
        cells: Sequence[Cell],
        progress: Progress = lambda _done, _planned: None,
        *,
        screen: bool = True,
    ) -> None:
        """Simulate what is missing of ``cells``.

        Args:
            cells: What to run.
            progress: Hears of all their runs.
            screen: Whether settings that never call the proposer may be found many at a time;
                changes no number.
        """
        planned = sum(len(cell.seeds) for cell in cells)
        missing = self._missing(cells)
        done = planned - sum(len(cell.seeds) for cell in missing)
        progress(done, planned)
        if screen:
            for found in self._screen(missing):
                done += found
                progress(done, planned)
            missing = self._missing(missing)
        years = {cell.digest: cell.scenario.horizon_days / 365 for cell in cells}

        def keep(replicates: Sequence[Replicate]) -> None:
            self._keep([(r.digest, r.seed, outcome_of(r, years[r.digest])) for r in replicates])

        run_study(
            missing,
            workers=self._workers,
            keep=keep,
            progress=lambda now, _: progress(done + now, planned),
        )

    def _missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return what is left to run, each cell and seed once."""
        missing = []
        claimed: set[tuple[str, int]] = set()
        for cell in cells:
            known = self._found.setdefault(cell.digest, {})
            left = tuple(
                s for s in cell.seeds if s not in known and (cell.digest, s) not in claimed
            )
            claimed.update((cell.digest, seed) for seed in left)
            if left:
                # A copy would work out its digest anew.
                missing.append(cell if left == cell.seeds else replace(cell, seeds=left))
        return missing

    def _keep(self, batch: Sequence[tuple[str, int, Outcome]]) -> None:
        for digest, seed, outcome in batch:
            self._found[digest][seed] = outcome
        self._results.append_records(_to_plain(batch))

    def _screen(self, cells: Sequence[Cell]) -> Iterator[int]:
        """Find the runs in which no proposer is called; yields how many were just found."""
        families: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            if cell.arm.review is not None:
                review = cell.arm.review.model_copy(update={"config": {}})
                arm = cell.arm.model_copy(update={"review": review})
                key = (cell.scenario.model_dump_json(), arm.model_dump_json())
                families.setdefault(key, []).append(cell)
        tasks: list[tuple[list[Cell], int]] = []
        for family in families.values():
            for seed in sorted({seed for cell in family for seed in cell.seeds}):
                members = [cell for cell in family if seed in cell.seeds]
                for at in range(0, len(members), _SETTINGS_PER_LIFE):
                    part = members[at : at + _SETTINGS_PER_LIFE]
                    if len(part) >= _LEAST_SETTINGS:
                        tasks.append((part, seed))
        wanted = [(part[0].scenario, tuple(c.arm for c in part), seed) for part, seed in tasks]
        for number, snapshots, quiet in quiet_lives(wanted, self._workers):
            if quiet:
                part, seed = tasks[number]
                life = Replicate("", seed, snapshots, np.zeros(len(TALLIES), np.int64))
                outcome = outcome_of(life, part[0].scenario.horizon_days / 365)
                self._keep([(part[i].digest, seed, outcome) for i in quiet])
            yield len(quiet)

    def carry_over(self, finished: Cell, other: Cell) -> None:
        """Let runs in which the proposer was never called stand for another proposer's too."""
        known = self._found.setdefault(other.digest, {})
        for seed in other.seeds:
            outcome = self._found[finished.digest].get(seed)
            if outcome is not None and outcome[_CALLS] == 0.0:
                known.setdefault(seed, outcome)

    def outcomes(self, cell: Cell) -> Outcome:
        """Return a finished cell's outcomes, ``float64[seeds, len(ESTIMANDS)]``."""
        known = self._found[cell.digest]
        return np.array([known[seed] for seed in cell.seeds])


def _to_plain(batch: Iterable[tuple[str, int, Outcome]]) -> list[dict[str, Any]]:
    by_cell: dict[str, tuple[list[int], list[Outcome]]] = {}
    for digest, seed, outcome in batch:
        seeds, outcomes = by_cell.setdefault(digest, ([], []))
        seeds.append(seed)
        outcomes.append(outcome)
    return [
        {
            "digest": digest,
            "seeds": seeds,
            "outcomes": base64.b64encode(np.array(outcomes, "<f8").tobytes()).decode(),
        }
        for digest, (seeds, outcomes) in by_cell.items()
    ]


def _from_plain(data: dict[str, Any]) -> tuple[str, list[int], Outcome]:
    seeds = [int(seed) for seed in data["seeds"]]
    packed = np.frombuffer(base64.b64decode(data["outcomes"], validate=True), "<f8")
    outcomes = packed.reshape(len(seeds), len(ESTIMANDS)).astype(np.float64)
    return str(data["digest"]), seeds, outcomes
